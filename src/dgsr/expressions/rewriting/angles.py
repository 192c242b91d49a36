"""Roots, and the cosines of arcsines that are the same functions in fewer tokens.

sqrt(1 - u**2) equals cos(arcsin(u)) wherever either has a value. A search finds the second, which is shorter,
and a person writes the first. So a formula is written with the root, and the cosine determines its length.
"""

from __future__ import annotations

from dgsr.expressions.trees.trees import Tree, rewritten

# Functions of inverse functions that are roots.
_ROOTS = (("cos", "arcsin"), ("sin", "arccos"))


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
    if isinstance(tree[1], tuple) and (tree[0], tree[1][0]) in _ROOTS:
        return ("sqrt", ("sub", 1, ("square", tree[1][1])))
    return tree


def _angle(tree: Tree) -> Tree:
    if tree[0] == "sqrt" and isinstance(tree[1], tuple) and tree[1][:2] == ("sub", 1):
        base = _base(tree[1][2])
        if base is not None:
            return ("cos", ("arcsin", base))
    return tree


def _base(tree: Tree) -> Tree | None:
    """Return u where the tree is u**2 or a product or quotient of squares, else None."""
    if not isinstance(tree, tuple):
        return 1 if tree == 1 else None
    if tree[0] == "square" or (tree[0] == "pow" and tree[2] == 2):
        return tree[1]
    if tree[0] in ("mul", "div"):
        if tree[0] == "mul" and tree[1] == tree[2]:
            return tree[1]
        left, right = _base(tree[1]), _base(tree[2])
        if left is not None and right is not None:
            return (tree[0], left, right)
    return None
