"""Translation of programs to syntax trees and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dgsr.expressions.programs.library import Library
from dgsr.expressions.trees.evaluation import evaluate_strictly
from dgsr.expressions.trees.syntax import shown, to_text
from dgsr.expressions.trees.trees import (
    LARGEST_POWER,
    MAX_LEVELS,
    POWER_TOKENS,
    SUMS,
    Tree,
    as_float,
    is_number,
    leaves,
    nodes,
    rename,
    rewritten,
    variables_of,
)

#: Most tokens of a program that is written from a tree: operators that the library lacks are expressed by
#: others, and each tan in tan(tan(..)) doubles the length.
MAX_TOKENS = 2_000
# Largest numerator and denominator that are written out in a program without constants.
_MAX_WRITTEN_OUT = 20


def from_program(library: Library, tokens: np.ndarray, constants: np.ndarray) -> Tree:
    """Return the tree of a program, its variables named x1 .. xd; whole constants become int.

    `tokens` is in prefix order without padding; surplus `constants` are ignored. ValueError if the tokens are
    not one complete program of the library, or one of over 130 levels.
    """
    return tree_of_tokens(library, tokens, [_whole_or_float(value) for value in constants])


def tree_of_tokens(library: Library, tokens: np.ndarray, numbers: Sequence[Any]) -> Tree:
    """Return the tree of a program with `numbers`, of any type, in place of its constants.

    The errors are those of `from_program`.
    """
    program = [int(token) for token in tokens]
    if not all(0 <= token < len(library) for token in program):
        raise ValueError(f"tokens={program} must be between 0 and {len(library) - 1}, the library's tokens.")
    n_constants = sum(library.tokens[token].name == "const" for token in program)
    if n_constants > len(numbers):
        raise ValueError(f"constants has {len(numbers)} values; the program needs {n_constants}.")
    stack: list[Tree] = []
    levels: list[int] = []
    for token in reversed(program):
        entry = library.tokens[token]
        if entry.arity > len(stack):
            raise ValueError(f"tokens={program} end before {entry.name} has its {entry.arity} children.")
        if entry.name == "const":
            n_constants -= 1
            stack.append(numbers[n_constants])
        elif entry.arity == 0:
            stack.append(entry.name)
        else:
            children = [stack.pop() for _ in range(entry.arity)]
            stack.append(("div", 1, *children) if entry.name == "inv" else (entry.name, *children))
        levels.append(1 + max((levels.pop() for _ in range(entry.arity)), default=0))
        if levels[-1] > MAX_LEVELS:
            raise _too_large(f"over {MAX_LEVELS} levels deep")
    if len(stack) != 1:
        raise ValueError(f"tokens={program} are {len(stack)} programs; give exactly one.")
    return stack[0]


def places_of_constants(library: Library, tokens: np.ndarray) -> list[tuple[int, int]]:
    """Return for each constant of a program its position, and the column it is subtracted from or -1."""
    found = []
    for place, token in enumerate(program := [int(token) for token in tokens]):
        if library.tokens[token].name == "const":
            is_distance = place > 1 and library.tokens[program[place - 2]].name == "sub"
            column = program[place - 1] - library.first_variable if is_distance else -1
            found.append((place, max(column, -1)))
    return found


def flags_of_constants(
    library: Library, tokens: np.ndarray, of_root: bool, of_argument: Callable[[str, bool, int], bool]
) -> np.ndarray:
    """Return a flag for each constant, shape (n_constants,), which is derived down the tree from the root.

    `of_argument` returns the flag of an argument from the name of its operator, the flag of the operator, and
    the position of the argument.
    """
    found: list[bool] = []
    flags = [of_root]  # of the nodes that follow, the next one last
    for token in tokens.tolist():
        entry, own = library.tokens[token], flags.pop()
        if entry.name == "const":
            found.append(own)
        flags += [of_argument(entry.name, own, number) for number in reversed(range(entry.arity))]
    return np.array(found, dtype=bool)


def are_terms(library: Library, tokens: np.ndarray) -> np.ndarray:
    """Return, for each constant, whether it is a term of the whole formula, shape (n_constants,), bool."""
    return flags_of_constants(library, tokens, True, lambda name, is_term, _: is_term and name in SUMS)


def _too_large(said: str) -> ValueError:
    return ValueError(f"The formula is too large: its program is {said}; shorten the formula.")


def _whole_or_float(value: float) -> int | float:
    """Return a constant as an int where it is whole: 2.0*x1 reads 2*x1."""
    value = float(value)
    return int(value) if abs(value) < 2**53 and value == int(value) else value


def to_program(tree: Tree, library: Library, names: Sequence[str] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Return the tokens (length,), int64, of a tree in a library, and its constants (n_constants,), float64.

    Operators that the library lacks are expressed by others: without ``pow``, whole powers by products, other
    powers and roots by exp and log; tan by sin and cos, and so on. Numbers become ``const`` tokens, or,
    without constants, sums of x1 over sums of x1: 2/3 is (x1 + x1)/(x1 + x1 + x1). Messages have `names` for
    x1 .. xd.

    Raises
    ------
    ValueError
        If a part cannot be written, where the message says how to correct it, or if the program would have
        over 2,000 tokens or 130 levels.
    """
    return write_program(tree, library, names)[:2]


def in_operators_of(library: Library, tree: Tree) -> Tree:
    """Return a tree with what the text of a program has and the library lacks in terms of other operators.

    The text of x1 + -2.0*x2 is x1 - 2*x2, that of x1*pow(x2, -1) is x1/x2, and that of sqrt(cube(x1)) is
    x1**1.5.
    """
    has = library.index

    def rule(node: Tree) -> Tree:
        match node:
            case ("sub", a, b) if "sub" not in has and ("neg" in has or library.has_constants):
                return ("add", a, ("neg", b))
            case ("div", a, b) if "div" not in has and ({"inv", "pow"} & has.keys() or not variables_of(b)):
                return ("pow", b, -1) if a == 1 else ("mul", a, ("pow", b, -1))
            case ("pow", a, Fraction(denominator=2) as b) if "pow" not in has and "sqrt" in has:
                return ("sqrt", ("pow", a, b.numerator))
        return node

    return rewritten(tree, rule)


class FreeProgram(NamedTuple):
    """One program with free constants, which are fitted, and exact constants."""

    tokens: np.ndarray  # (length,) int64
    constants: np.ndarray  # (n_constants,) float64
    free: np.ndarray  # (n_constants,) bool


def write_program(tree: Tree, library: Library, names: Sequence[str] = ()) -> FreeProgram:
    """Write a tree as `to_program` does; the constants computed from floats of the tree are free."""
    writer = _Writer(library, names)
    writer.write(tree)
    return FreeProgram(
        np.array(writer.tokens, dtype=np.int64),
        np.array(writer.constants, dtype=np.float64),
        np.array(writer.free, dtype=bool),
    )


# Functions in terms of others, for libraries without tokens for them.
_WRITTEN_OUT = {
    "tan": lambda a: ("div", ("sin", a), ("cos", a)),
    "cot": lambda a: ("div", ("cos", a), ("sin", a)),
    "sinh": lambda a: ("div", ("sub", ("exp", a), ("div", 1, ("exp", a))), 2),
    "cosh": lambda a: ("div", ("add", ("exp", a), ("div", 1, ("exp", a))), 2),
    "tanh": lambda a: ("div", ("sub", ("exp", ("mul", 2, a)), 1), ("add", ("exp", ("mul", 2, a)), 1)),
    "sqrt": lambda a: ("pow", a, Fraction(1, 2)),
    "square": lambda a: ("pow", a, 2),
    "cube": lambda a: ("pow", a, 3),
    "neg": lambda a: ("sub", 0, a),
}


class _Writer:
    """Appends the tokens and constants of trees to lists."""

    def __init__(self, library: Library, names: Sequence[str]) -> None:
        self.library = library
        self.names = dict(zip(library.variable_names, names))
        self.index = library.index
        self.tokens: list[int] = []
        self.constants: list[float] = []
        self.free: list[bool] = []
        self.level = 0

    def write(self, tree: Tree) -> None:
        if self.level == MAX_LEVELS:
            raise _too_large(f"over {MAX_LEVELS} levels deep")
        if len(self.tokens) > MAX_TOKENS:
            raise _too_large(f"over {MAX_TOKENS} tokens of the library {self.library.name!r} long")
        self.level += 1
        self._write(tree)
        self.level -= 1

    def _write(self, tree: Tree) -> None:
        if isinstance(tree, str):
            if self.index.get(tree, -1) < self.library.first_variable:
                self._fail(tree, f"the variables are x1 to x{self.library.n_variables}")
            self.tokens.append(self.index[tree])
        elif self.library.has_constants and not variables_of(tree):
            self._constant(tree)
        elif not isinstance(tree, tuple):
            self._number(tree)
        elif _is_multiple(tree) and "mul" in self.index and not self.library.has_constants:
            self._multiple(tree)
        elif tree[0] == "pow":
            self._power(tree)
        elif tree[0] == "div" and "inv" in self.index and tree[1] == 1 and not isinstance(tree[1], float):
            self._token("inv", tree[2])
        elif tree[0] in self.index:
            self._token(*tree)
        elif tree[0] == "neg" and is_number(tree[1]):
            self._number(-tree[1])
        elif tree[0] == "neg" and self.library.has_constants:
            self.write(("mul", -1, tree[1]))
        elif tree[0] in _WRITTEN_OUT:
            self._within(tree, _WRITTEN_OUT[tree[0]](*tree[1:]))
        else:
            hint = ", or one with constants such as 'koza-const'" if tree == ("pi",) else ""
            self._fail(tree, f"it needs {tree[0]}, which this library lacks; use one that has it" + hint)

    def _token(self, name: str, *children: Tree) -> None:
        self.tokens.append(self.index[name])
        for child in children:
            self.write(child)

    def _fail(self, tree: Tree, mend: str) -> None:
        part = shown(to_text(rename(tree, self.names)))
        raise ValueError(f"{part!r} cannot be written with library {self.library.name!r}: {mend}.")

    def _within(self, tree: Tree, written_out: Tree) -> None:
        """Write a replacement of `tree`; an error about an operator that the library lacks names `tree`."""
        new = _operators(written_out) - _operators(*tree[1:])
        missing = sorted(new - set(self.index) - set(_WRITTEN_OUT) - {"pow"})
        if missing:
            self._fail(tree, f"it needs {' and '.join(missing)}; use a library that has them")
        self.write(written_out)

    def _constant(self, tree: Tree) -> None:
        value = float(evaluate_strictly(tree, {}, self.library.functions))
        if not math.isfinite(value):
            self._fail(tree, "its value is not finite, or is beyond the largest float")
        self.tokens.append(self.index["const"])
        self.constants.append(value)
        self.free.append(any(isinstance(leaf, float) for leaf in leaves(tree)))

    def _number(self, value: int | float | Fraction) -> None:
        fraction = Fraction(value) if math.isfinite(as_float(value)) else Fraction(10**9)
        p, q = abs(fraction.numerator), fraction.denominator
        if max(p, q) > _MAX_WRITTEN_OUT:
            mend = f"only p/q up to {_MAX_WRITTEN_OUT} are written out; use one with constants"
            self._fail(value, mend + " such as 'koza-const'")
        uses = {"sub": value <= 0, "div": p > 0, "add": max(p, q) > 1}
        missing = [name for name, is_used in uses.items() if is_used and name not in self.index]
        if missing:
            self._fail(value, f"it needs {' and '.join(missing)}; use a library that has them")
        if p == 0:
            self.tokens += [self.index["sub"], self.index["x1"], self.index["x1"]]
            return
        self.tokens.append(self.index["div"])
        if value < 0:  # (x1 - x1 - p x1) / (q x1)
            self.tokens += [self.index["sub"], self.index["sub"], self.index["x1"], self.index["x1"]]
        for count in (p, q):
            self.tokens += [self.index["add"], self.index["x1"]] * (count - 1) + [self.index["x1"]]

    def _multiple(self, tree: Tree) -> None:
        """Write n*f as f + f + .. where that is shorter than the product, whose n is (x1 + x1 + ..)/x1."""
        _, count, child = tree
        start = len(self.tokens)
        self.write(child)
        written = self.tokens[start:]
        del self.tokens[start:]
        if "add" in self.index and len(written) * count + count - 1 <= len(written) + 2 * count + 1:
            self.tokens += [self.index["add"]] * (count - 1) + written * count
        else:
            self.tokens.append(self.index["mul"])
            self.write(count)
            self.tokens += written  # writing the child again would take forever for nested multiples

    def _power(self, tree: Tree) -> None:
        _, base, exponent = tree
        exponent = _folded(exponent)
        is_whole = is_number(exponent) and exponent == int(exponent) and abs(exponent) <= LARGEST_POWER
        token = POWER_TOKENS.get(exponent)
        if token in self.index:
            self._token(str(token), base)
        elif exponent == 1:
            self.write(base)
        elif exponent == -1 and "div" in self.index:
            self.write(("div", 1, base))
        elif exponent == Fraction(-1, 2) and {"div", "sqrt"} <= self.index.keys():
            self.write(("div", 1, ("sqrt", base)))
        elif "pow" in self.index and (self.library.has_constants or not is_whole):
            self._token("pow", base, exponent)
        elif exponent == 0:
            self.write(1)
        elif is_whole:
            product = base
            for _ in range(abs(int(exponent)) - 1):
                product = ("mul", base, product)
            self._within(tree, product if exponent > 0 else ("div", 1, product))
        else:
            self._within(tree, ("exp", ("mul", exponent, ("log", base))))


def _folded(tree: Tree) -> Tree:
    """Return the value of an exact exponent such as -(1/3), or any other tree unchanged."""
    if isinstance(tree, tuple) and tree[0] in ("neg", "div"):
        numbers = [_folded(child) for child in tree[1:]]
        if all(is_number(value) and not isinstance(value, float) for value in numbers):
            if tree[0] == "neg":
                return -numbers[0]
            if numbers[1] != 0:
                return Fraction(numbers[0]) / numbers[1]
    return tree


def _operators(*trees: Tree) -> set[str]:
    return {node[0] for tree in trees for node in nodes(tree)}


def _is_multiple(tree: Tree) -> bool:
    """Return whether the tree is a product by a whole number that is small enough to be written out."""
    match tree:
        case ("mul", int(count), factor):
            return 1 < count <= _MAX_WRITTEN_OUT and not is_number(factor)
    return False
