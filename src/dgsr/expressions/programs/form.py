"""Forms: the part of a formula that a person knows, with unknown functions and constants.

A search of the functions in a form evolves *forests* (`dgsr.kernels.forms`), and everything else sees the
whole programs that `Form.filled` makes of them. `Form.read` finds the functions in such a program again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import write_program
from dgsr.expressions.trees.syntax import parse_form, to_text
from dgsr.expressions.trees.trees import Tree, rename, rewritten
from dgsr.kernels.forms import CALL, NAMED, NUMBER, TOKEN, FormCode, Tokens, fill
from dgsr.kernels.growth import subtree_end
from dgsr.kernels.programs import Programs


class Filled(NamedTuple):
    """Whole programs made of forests."""

    programs: Programs
    # (n_programs, max_constants) int64: index in the forest of each constant, -1 if fixed
    origins: np.ndarray
    has_room: np.ndarray  # (n_programs,) bool; programs without room are x1


class Parts(NamedTuple):
    """What stands in a whole program in the place of what a form leaves open."""

    functions: list[list[int]]  # the tokens of each function, over its arguments as x1, x2 ..
    origins: np.ndarray  # (n_constants,) int64, as in `Filled`, of a forest with these functions

    @property
    def groups(self) -> list[np.ndarray]:
        """The indices of the constants of the program that are one constant each, without fixed ones."""
        numbers = dict.fromkeys(number for number in self.origins.tolist() if number >= 0)
        return [np.flatnonzero(self.origins == number) for number in numbers]


class Form:
    """A formula with unknown functions of columns, and constants that are fitted.

    Parameters
    ----------
    text : str
        Such as ``"f(T)*g(p, c) + k"``; see `dgsr.expressions.trees.syntax.parse_form`.
    library : Library
        A library with constants, over the columns.
    columns : sequence of str, optional
        Names of the columns, x1 .. xd by default.

    Raises
    ------
    ValueError
        If the text cannot be read, cannot be written in the library, or has nothing to find.

    Examples
    --------
    >>> from dgsr.expressions import get_library
    >>> form = Form("k*f(x1) - f(x2)", get_library("koza-const", 2))
    >>> form.functions, form.constants
    (('f',), ('k',))
    """

    def __init__(self, text: str, library: Library, columns: Sequence[str] | None = None) -> None:
        names = library.variable_names if columns is None else columns
        if not library.has_constants:
            raise ValueError(
                f"a form needs fitted constants, which library={library.name!r} lacks; choose another."
            )
        tree, unknown, constants = parse_form(text, names, library.functions)
        if not unknown and not constants:
            raise ValueError(
                "it has neither an unknown function nor a constant; write what is to be found, as in "
                "'f(x1) + k'."
            )
        widest = max(unknown, key=lambda name: unknown[name], default="")
        if unknown and unknown[widest] > library.n_variables:
            raise ValueError(
                f"it has {widest} of {unknown[widest]} arguments, and there are {library.n_variables} "
                "columns; write at most as many arguments."
            )
        self.text, self.library = text, library
        self.functions, self.n_arguments = tuple(unknown), tuple(unknown.values())
        self.constants = tuple(constants)
        writer = _CodeWriter(self, names)
        self.code = writer.code(tree)
        #: The instructions of every argument of every application.
        self.arguments = writer.arguments

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and (self.text, self.library) == (other.text, other.library)

    def __hash__(self) -> int:
        return hash(self.text)

    @cached_property
    def tokens(self) -> Tokens:
        index = self.library.index
        constant, add, mul = (index[name] for name in ("const", "add", "mul"))
        return Tokens(self.library.table.arity, constant, add, mul, self.library.first_variable)

    @property
    def n_outside(self) -> int:
        """Number of the constants of a forest before its trees: the named ones, scales and offsets."""
        return len(self.constants) + 2 * len(self.functions)

    @property
    def n_trees(self) -> int:
        """Number of trees of a forest, each constant before the functions counted as one."""
        return self.n_outside + len(self.functions)

    @cached_property
    def columns(self) -> frozenset[int]:
        """Indices of the columns that the form has."""
        tokens = self.code.values[self.code.kinds == TOKEN] - self.tokens.first_variable
        return frozenset(tokens[tokens >= 0].tolist())

    def compile_kernel(self) -> None:
        """Compile the kernel of `filled`, or load it."""
        leaf = [[self.tokens.first_variable]] * len(self.functions)
        row = np.array([self.forest(leaf)], dtype=np.int64)
        forest = Programs(row, np.array([row.shape[1]]), np.ones((1, self.n_outside)))
        around = np.zeros((1, len(self.functions), 2), dtype=np.bool_)
        self.filled(forest, self.code.n_instructions, self.code.n_instructions, around)

    def most_tokens(self, f: int, max_length: int) -> int:
        """Return the most tokens of a function in a whole program of a length, the others having one each.

        Each use of an argument counts as one token.
        """
        n_uses = self.code.functions.tolist().count(f)
        return (max_length - self.code.n_instructions) // n_uses + 1

    def filled(self, forests: Programs, width: int, n_constants: int, around: np.ndarray) -> Filled:
        """Return the whole programs of forests, in arrays of the given widths.

        `around`, of shape (n_programs, n_functions, 2), says whether each function has its scale, and whether
        it has its offset, as in ``a*f + b``.
        """
        n = len(forests.lengths)
        programs = Programs(
            np.zeros((n, width), dtype=np.int64), np.zeros(n, dtype=np.int64), np.ones((n, n_constants))
        )
        origins = np.full((n, n_constants), -1, dtype=np.int64)
        has_room = fill(forests, around, self.code, self.tokens, programs, origins)
        return Filled(programs, origins, has_room)

    def functions_of(self, tokens: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Return the index of the function in whose tree each token of forests stands.

        It is negative before the first function and -1 - n_outside after the end. The shapes of the tokens
        and the result are (n_programs, width), that of the lengths (n_programs,).
        """
        missing = self.n_trees + np.cumsum(self.tokens.arity[tokens] - 1, axis=1)
        fewest = np.minimum.accumulate(np.insert(missing, 0, self.n_trees, axis=1), axis=1)[:, :-1]
        inside = np.arange(tokens.shape[1]) < lengths[:, None]
        return np.where(inside, self.n_trees - fewest, -1) - self.n_outside

    def forest(self, functions: Sequence[Sequence[int]]) -> list[int]:
        """Return the tokens of a forest from those of its functions."""
        return [self.tokens.constant] * self.n_outside + [token for tree in functions for token in tree]

    def read(self, tokens: np.ndarray, constants: np.ndarray) -> Parts | None:
        """Return the functions that a whole program has in the places of the unknown ones.

        It is None for a program of another form, as one is in which a constant of the form has two values.
        """
        return _Reader(self, tokens, constants).parts()


class _CodeWriter:
    """Writes the instructions of a form.

    Constants and applications are written as further variables of the library, so that the translation of
    trees to programs serves forms, too.
    """

    def __init__(self, form: Form, columns: Sequence[str]) -> None:
        self.form, self.library, self.columns = form, form.library, columns
        self.calls: list[Tree] = []
        self.numbers: list[float] = []
        self.arguments: list[list[list[tuple[int, int]]]] = []

    def code(self, tree: Tree) -> FormCode:
        own = self._instructions(rewritten(tree, self._without_call))
        instructions, bounds = list(own), []
        n = 1 + max(self.form.n_arguments, default=0)
        for call in self.calls:
            ends = [len(instructions)]
            self.arguments.append([self._instructions(argument) for argument in call[1:]])
            for of_one in self.arguments[-1]:
                instructions += of_one
                ends.append(len(instructions))
            bounds.append(ends + [ends[-1]] * (n - len(ends)))
        kinds, values = np.array(instructions, dtype=np.int64).T.copy()
        return FormCode(
            kinds,
            values,
            np.array(self.numbers, dtype=np.float64),
            np.array([self.form.functions.index(call[0]) for call in self.calls], dtype=np.int64),
            np.array(bounds, dtype=np.int64).reshape(-1, n),
            len(own),
            len(self.form.constants),
            len(self.form.functions),
        )

    def _without_call(self, node: Tree) -> Tree:
        """Return a leaf of its own in the place of an application, and other nodes unchanged."""
        if node[0] not in self.form.functions:
            return node
        self.calls.append(node)
        return f"{_PLACE}{len(self.calls) - 1}"

    def _instructions(self, tree: Tree) -> list[tuple[int, int]]:
        d, n_named = self.library.n_variables, len(self.form.constants)
        places = (f"{_PLACE}{i}" for i in range(len(self.calls)))
        leaves = [*self.columns, *self.form.constants, *places]
        over = self.library.with_variables(len(leaves))
        program = write_program(
            rename(tree, dict(zip(leaves, over.variable_names))),
            over,
            names=[*self.columns, *self.form.constants, *map(to_text, self.calls)],
        )
        numbers = iter(program.constants.tolist())
        found = []
        for token in program.tokens.tolist():
            beyond = token - over.first_variable - d
            if token == self.library.index["const"]:
                found.append((NUMBER, len(self.numbers)))
                self.numbers.append(next(numbers))
            elif beyond < 0:
                found.append((TOKEN, token))
            else:
                found.append((NAMED, beyond) if beyond < n_named else (CALL, beyond - n_named))
        return found


# Beginning of the leaves that stand for applications, which no name of a formula has.
_PLACE = "\0"


class _Reader:
    """Reads a whole program along a form.

    All uses of a function are read at once: an argument that is `x1` in one use may be another one in the
    next, as in ``f(x1, x1) - f(x1, x2)``. The numbers in an argument decide as well: `x1 + 3` is no
    argument of ``f(x1 + 2)``.
    """

    def __init__(self, form: Form, tokens: np.ndarray, constants: np.ndarray) -> None:
        self.form, self.tokens = form, tokens.tolist()
        at = np.flatnonzero(tokens == form.tokens.constant).tolist()
        self.numbers: dict[int, float] = dict(zip(at, constants.tolist()))  # by their positions
        self.form_numbers: list[float] = form.code.numbers.tolist()
        self.named: dict[int, float] = {}  # the constants of the form that were read
        # Of each constant of the program, by its position: the function that has it, -1 for the form, and its
        # index there.
        self.places: dict[int, tuple[int, int]] = {}

    def parts(self) -> Parts | None:
        code = self.form.code
        at, begins = 0, dict[int, int]()
        for kind, value in zip(code.kinds[: code.n_instructions].tolist(), code.values.tolist()):
            if at >= len(self.tokens) or (kind != CALL and not self._takes(at, kind, value)):
                return None
            if kind == CALL:
                begins[value] = at
            at = self._end(at) if kind == CALL else at + 1
        if at != len(self.tokens):
            return None
        functions = list[list[int]]()
        for f in range(len(self.form.functions)):
            calls = np.flatnonzero(code.functions == f).tolist()
            tree = self._tree(f, calls, [begins[call] for call in calls])
            if tree is None:
                return None
            functions.append(tree)
        constant = self.form.tokens.constant
        firsts = self.form.n_outside + np.cumsum([0] + [tree.count(constant) for tree in functions])
        places = (self.places[at] for at in sorted(self.places))
        origins = [i if f < 0 else int(firsts[f]) + i for f, i in places]
        return Parts(functions, np.array(origins, dtype=np.int64))

    def _end(self, at: int) -> int:
        return int(subtree_end(np.array(self.tokens, dtype=np.int64), at, self.form.tokens.arity))

    def _takes(self, at: int, kind: int, value: int) -> bool:
        """Return whether an instruction wrote a token, and keep the place of a constant."""
        if kind == TOKEN or at not in self.numbers:
            return kind == TOKEN and self.tokens[at : at + 1] == [value]
        self.places[at] = (-1, value if kind == NAMED else -1)
        number = self.numbers[at]
        if kind == NAMED:
            return self.named.setdefault(value, number) == number
        return number == self.form_numbers[value]

    def _tree(self, f: int, calls: list[int], begins: list[int]) -> list[int] | None:
        """Return the tokens of a function over its arguments, None if its uses are of different functions."""
        tokens = self.form.tokens
        places, end = begins, self._end(begins[0])
        tree, n_constants = list[int](), 0
        while places[0] < end:
            argument = self._argument_at(calls, places)
            if argument >= 0:
                sizes = [len(self.form.arguments[call][argument]) for call in calls]
                places = [at + size for at, size in zip(places, sizes)]
                tree.append(tokens.first_variable + argument)
                continue
            token = self.tokens[places[0]]
            if token >= tokens.first_variable or any(self.tokens[at] != token for at in places):
                return None
            if token == tokens.constant:
                if len({self.numbers[at] for at in places}) > 1:
                    return None
                self.places |= dict.fromkeys(places, (f, n_constants))
                n_constants += 1
            tree.append(token)
            places = [at + 1 for at in places]
        return tree

    def _argument_at(self, calls: list[int], places: list[int]) -> int:
        """Return the argument that stands in all uses of a function, the longest of several, or -1."""
        arguments = [self.form.arguments[call] for call in calls]
        for j in sorted(range(len(arguments[0])), key=lambda j: -len(arguments[0][j])):
            named = self.named.copy()  # which an argument changes that fits in a part only
            uses = zip(places, (own[j] for own in arguments))
            if all(self._takes(at + i, *each) for at, own in uses for i, each in enumerate(own)):
                return j
            self.named = named
        return -1
