"""Initial formulas that a user gives, as programs with which a search begins."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dgsr.data.population import Population
from dgsr.expressions.formulas.coordinates import Coordinates
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.nesting import Nesting
from dgsr.expressions.programs.translation import in_operators_of, to_program
from dgsr.expressions.trees import syntax
from dgsr.expressions.trees.trees import Tree, is_number, leaves, map_leaves, nodes
from dgsr.kernels.grammar import are_valid


class Initial(NamedTuple):
    """Programs with which a search begins."""

    programs: Population
    is_allowed: np.ndarray  # (n_programs,) bool: whether each meets the constraints, and so may breed


def initial_programs(
    formulas: Sequence[str | Expression] | None,
    library: Library,
    names: Sequence[str],
    coordinates: Coordinates,
    constraints: Constraints,
) -> tuple[Initial | None, Constraints]:
    """Return formulas as programs of a search, and constraints with room for their constants.

    The formulas are without scale and offset, which a search fits to every program of a library with
    constants, and None if there are none. A name that is no column is a constant that is fitted.

    Raises ValueError if a formula cannot be read or cannot be written in the library, has no column, divides
    by the number 0, is too long, has a forbidden column, lacks a required token, breaks a limit of `nested`
    or a rule of units. The message names the formula and the place in its text.
    """
    found = []
    for number, formula in enumerate(() if formulas is None else formulas):
        try:
            tree = _read(str(formula), library, names)
            if any(node[0] == "div" and node[2] == 0 for node in nodes(tree)):
                raise ValueError("it divides by the number 0; write another number, or a name for it.")
            given = Expression(library, *to_program(tree, library, names))
            program = _bare(coordinates.read(given))
            if program.length > constraints.max_length:
                raise ValueError(
                    f"it has {program.length} tokens, and max_length is {constraints.max_length}; raise "
                    "max_length, or shorten it."
                )
            _check_demands(_bare(given), constraints, names)
            found.append(program)
        except ValueError as error:
            raise ValueError(f"initial_formulas[{number}]: {error}") from error
    if not found:
        return None, constraints
    programs = Population.from_expressions(found)
    most = max(constraints.max_constants, *(len(program.constants) for program in found))
    constraints = replace(constraints, max_constants=most)
    is_allowed = are_valid(programs.tokens, programs.lengths, constraints.grammar(library))
    return Initial(programs, is_allowed), constraints


def _check_demands(program: Expression, constraints: Constraints, names: Sequence[str]) -> None:
    """Raise ValueError if a program has a forbidden column, lacks a required token or breaks a limit."""
    library, tokens = program.library, set(program.tokens.tolist())
    for column in constraints.forbidden_columns:
        if library.first_variable + column in tokens:
            raise ValueError(f"it has {names[column]!r}, which is forbidden; take it out of one of the two.")
    for name in constraints.required:
        token = library.index[name]
        if token not in tokens:
            column = token - library.first_variable
            missing = repr(names[column]) if column >= 0 else f"{name!r} inside its scale and offset"
            raise ValueError(f"it lacks {missing}, which is required; write it in, or require less.")
    for outer, inner, most in constraints.nested:
        if not Nesting.of({(outer, inner): most}, library).holds(program.tokens.tolist(), library):
            raise ValueError(
                f"it has {inner!r} under {outer!r} more often than nested={ {outer: {inner: most}} } allows; "
                "write it otherwise, or raise the limit."
            )
    units = constraints.units
    if units is not None and units.penalty is None:
        arrays = Population.from_expressions([program]).arrays
        of_whole = units.unitless_constants or not library.has_constants  # otherwise its scale has any unit
        if units.violations(*arrays, library, of_whole=of_whole)[0]:
            raise ValueError(
                "it is not consistent with the units; correct one of the two, or set a penalty in Units."
            )


def _bare(program: Expression) -> Expression:
    """Return a program without its scale and offset, which a search of a library with constants fits."""
    library = program.library
    if not library.has_constants:
        return program
    return Expression.from_tree(_without_scale(program.tree, library), library)


def _read(text: str, library: Library, names: Sequence[str]) -> Tree:
    """Return the tree of a formula over x1 .. xd, with 1.0 for every name that is no column."""
    columns = {name: f"x{i + 1}" for i, name in enumerate(names)}

    def replaced(leaf: Tree) -> Tree:
        if not isinstance(leaf, str):
            return leaf
        if leaf in columns:
            return columns[leaf]
        if len(leaf) > 2 and (similar := difflib.get_close_matches(leaf, names, 1, 0.75)):
            raise ValueError(f"{leaf!r} is no column. Did you mean {similar[0]!r}?")
        if not library.has_constants:
            raise ValueError(
                f"{leaf!r} is no column, and a library without constants has none to fit in its place; "
                "choose another library or write a column."
            )
        return 1.0  # the starting point of its fit

    tree = syntax.parse(text, None, library.functions)
    over_columns = map_leaves(tree, replaced)
    if not any(leaf in columns for leaf in leaves(tree) if isinstance(leaf, str)):
        raise ValueError(f"it has no column; the columns are {', '.join(map(syntax.quoted, names[:20]))}.")
    return in_operators_of(library, over_columns)


def _without_scale(tree: Tree, library: Library) -> Tree:
    """Return a tree without the numbers that are added to the whole of it or multiply it."""
    while isinstance(tree, tuple) and len(tree) == 3:
        name, left, right = tree
        if name in ("add", "sub", "mul", "div") and is_number(right):
            tree = left
        elif name in ("add", "sub", "mul") and is_number(left):
            tree = right
        elif name == "div" and is_number(left) and "inv" in library.index:
            return ("inv", right)
        else:
            break
    return tree
