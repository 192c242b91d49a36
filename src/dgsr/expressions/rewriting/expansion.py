"""Other forms of a formula, in which its constants may be simpler numbers.

1.82 + x + x*(0.264... + x)*(1.136... + x) equals x**3 + 1.4*x**2 + 1.3*x + 1.82, 0.262... + log(f) equals
log(1.3*f), and exp(0.262... + f) equals 1.3*exp(f). Only after snapping is it known which form is simpler.
"""

from __future__ import annotations

import math

from dgsr.expressions.rewriting.algebra import SignedTerms, added, signed_terms
from dgsr.expressions.trees.trees import LARGEST_EXPONENT, Tree, is_number

# Most terms of a product that is multiplied out; a longer sum would be no simpler.
_MAX_TERMS = 8


def expanded(tree: Tree) -> Tree:
    """Return the tree with all products and squares of sums in it multiplied out.

    Examples
    --------
    >>> expanded(("mul", "x1", ("add", "x1", 2)))
    ('add', ('mul', 'x1', 'x1'), ('mul', 'x1', 2))
    """
    return added(_terms(tree))


def _terms(tree: Tree) -> SignedTerms:
    """Return the signed terms of a tree, its products multiplied out."""
    return [(sign * s, term) for sign, part in signed_terms(tree) for s, term in _terms_of_product(part)]


def _terms_of_product(tree: Tree) -> SignedTerms:
    match tree:
        case ("mul", left, right):
            return _products(_terms(left), _terms(right))
        case ("square", base) | ("pow", base, 2) if len(terms := _terms(base)) > 1:
            return _products(terms, terms)
        case ("div", above, below):
            divisor = expanded(below)
            return [(s, ("div", part, divisor)) for s, part in _terms(above)]
        case (name, *parts):
            return [(1, (name, *map(expanded, parts)))]
    return [(1, tree)]


def _products(left: SignedTerms, right: SignedTerms) -> SignedTerms:
    """Return the terms of a product of two sums, or the product as one term if they are too many."""
    if len(left) * len(right) > _MAX_TERMS:
        return [(1, ("mul", added(left), added(right)))]
    return [(s * t, ("mul", a, b)) for s, a in left for t, b in right]


def gathered(tree: Tree) -> Tree:
    """Return the tree with a single logarithm in place of each sum of logarithms and numbers.

    Examples
    --------
    >>> gathered(("add", ("log", "x1"), ("log", "x2")))
    ('log', ('mul', 'x1', 'x2'))
    """
    if not isinstance(tree, tuple):
        return tree
    if tree[0] not in ("add", "sub"):
        return (tree[0], *map(gathered, tree[1:]))
    logarithms, others, number = [], [], 0.0
    parts = [(sign, gathered(part)) for sign, part in signed_terms(tree)]
    for sign, part in parts:
        match part:
            case ("log", inside):
                logarithms.append((sign, inside))
            case ("mul", factor, ("log", inside)) if is_number(factor):
                logarithms.append((sign * factor, inside))
            case _ if is_number(part):
                number += sign * float(part)
            case _:
                others.append((sign, part))
    if not logarithms or (len(logarithms) > 1 and any(abs(factor) != 1 for factor, _ in logarithms)):
        return added(parts)
    # k log(f) + c is k log(exp(c/k) f).
    k, inside = logarithms[0]
    for factor, part in logarithms[1:]:
        inside = ("mul" if factor == k else "div", inside, part)
    if number != 0.0:
        inside = ("mul", math.exp(number / k), inside)
    return added([(1, ("mul", k, ("log", inside)) if k != 1 else ("log", inside)), *others])


def separated(tree: Tree) -> Tree:
    """Return the tree with the number in every exponent turned into a factor of the exponential.

    Examples
    --------
    >>> separated(("exp", ("sub", 0.0, "x1")))
    ('mul', 1.0, ('exp', ('neg', 'x1')))
    """
    if not isinstance(tree, tuple):
        return tree
    if tree[0] != "exp":
        return (tree[0], *map(separated, tree[1:]))
    terms = [(sign, separated(part)) for sign, part in signed_terms(tree[1])]
    numbers = [sign * float(part) for sign, part in terms if is_number(part)]
    if not numbers or len(numbers) == len(terms) or abs(sum(numbers)) > LARGEST_EXPONENT:
        return ("exp", added(terms))
    rest = added([(sign, part) for sign, part in terms if not is_number(part)])
    return ("mul", math.exp(sum(numbers)), ("exp", rest))
