"""Roots, and the cosines of arcsines that are the same functions in fewer tokens.

sqrt(1 - u**2) equals cos(arcsin(u)) wherever either has a value. A person writes the first, and the second,
which is shorter, determines the length of the formula.
"""

from __future__ import annotations

from dgsr.expressions.trees.trees import Tree, is_number, rewritten


def with_roots(tree: Tree) -> Tree:
    """Return the tree with roots for the cosines of inverse functions.

    Examples
    --------
    >>> with_roots(("cos", ("arcsin", "x1")))
    ('sqrt', ('sub', 1, ('square', 'x1')))
    """
    return rewritten(tree, _root)


def with_angles(tree: Tree) -> Tree:
    """Return the tree with cosines of arcsines for the roots of 1 - u**2.

    Examples
    --------
    >>> with_angles(("sqrt", ("sub", 1, ("div", ("square", "x1"), ("square", "x2")))))
    ('cos', ('arcsin', ('div', 'x1', 'x2')))
    """
    return rewritten(tree, _angle)


def _root(tree: Tree) -> Tree:
    match tree:
        case ("cos", ("arcsin", inside)) | ("sin", ("arccos", inside)):
            return ("sqrt", ("sub", 1, ("square", inside)))
    return tree


def _angle(tree: Tree) -> Tree:
    match tree:
        case ("sqrt", ("sub", 1, inside)) if (base := _base(inside)) is not None:
            return ("cos", ("arcsin", base))
    return tree


def _base(tree: Tree) -> Tree | None:
    """Return u where the tree is u**2 or a product or quotient of squares, else None."""
    match tree:
        case ("square", base) | ("pow", base, 2):
            return base
        case ("mul", left, right) if left == right:
            return left
        case ("mul" | "div" as name, left, right):
            bases = _base(left), _base(right)
            return None if None in bases else (name, *bases)
    return 1 if is_number(tree) and tree == 1 else None
