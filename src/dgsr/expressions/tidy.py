"""Make a formula short to read in microseconds, where sympy would take seconds.

Programs without constants write 2 as (x1 + x1)/x1 and cubes as products. Like terms and like factors
are collected and numbers worked out; nothing is expanded, and the formula keeps its values wherever
the program has one. Floats that are 1/3 or 2*pi to rounding are written so.
"""

from __future__ import annotations

from fractions import Fraction

from dgsr.expressions.algebra import Number, added, divided, powered, signed_terms, simplified
from dgsr.expressions.simple_numbers import recognised
from dgsr.expressions.trees import WHOLE_POWERS, Tree, is_number

_VALUES = {("exp", 0): 1, ("log", 1): 0, ("sin", 0): 0, ("cos", 0): 1, ("sqrt", 0): 0, ("sqrt", 1): 1}


def tidy(tree: Tree, keeps_domain: bool = False) -> Tree:
    """Return a shorter tree of the same values.

    Parameters
    ----------
    tree : tree
    keeps_domain : bool
        Whether the tree must have no value where the given one has none: x1/x1 stays then, which has none at
        0. Without constants it cannot be so, for there x1/x1 is how a program writes 1.

    Examples
    --------
    >>> tidy(("mul", ("div", ("add", "x1", "x1"), "x1"), ("mul", "x1", "x2")))
    ('mul', ('mul', 2, 'x1'), 'x2')
    >>> tidy(("mul", 0.3333333333333333, "x1"))
    ('div', 'x1', 3)
    """
    return _tidied(recognised(tree), keeps_domain)


def _tidied(tree: Tree, keeps_domain: bool) -> Tree:
    if not isinstance(tree, tuple):
        return tree
    name, children = tree[0], [_tidied(child, keeps_domain) for child in tree[1:]]
    tree = (name, *children)
    if name in ("add", "sub", "neg"):
        terms = _terms(tree, keeps_domain)
        if keeps_domain and any(coefficient == 0 and rest != 1 for rest, coefficient in terms.items()):
            return tree  # log(x1) - log(x1) has no value at 0
        return _sum(terms, keeps_domain)
    if name == "pow" and is_number(tree[2]) and tree[2] == 0.5:
        tree = ("sqrt", tree[1])
    elif name in ("mul", "div", "pow", *WHOLE_POWERS):
        factors: dict[Tree, int] = {}
        coefficient = _collect(tree, 1, factors, keeps_domain)
        return tree if coefficient is None else _product(coefficient, factors)
    if name == "exp" and not keeps_domain:
        return _exponential(tree)
    return _VALUES.get(tree, tree)


# Sums --------------------------------------------------------------------------------------------


def _terms(tree: Tree, keeps_domain: bool) -> dict[Tree, Number]:
    """Return the coefficient of every term of a sum; the key 1 is the number."""
    terms: dict[Tree, Number] = {}
    for sign, part in signed_terms(tree):
        factors: dict[Tree, int] = {}
        coefficient = _collect(part, 1, factors, keeps_domain)
        if coefficient is None:
            coefficient, rest = 1, part
        else:
            rest = _product(1, factors)
        terms[rest] = terms.get(rest, 0) + sign * coefficient
    return terms


def _sum(terms: dict[Tree, Number], keeps_domain: bool) -> Tree:
    kept = [(rest, simplified(coefficient)) for rest, coefficient in terms.items() if coefficient != 0]
    if not kept:
        return 0
    if not any(coefficient > 0 for _, coefficient in kept):
        (rest, coefficient), *kept = kept
        return added([(1, _scaled(rest, coefficient, keeps_domain)), *_signed(kept, keeps_domain)])
    return added(_signed(kept, keeps_domain))


def _signed(terms: list[tuple[Tree, Number]], keeps_domain: bool) -> list[tuple[int, Tree]]:
    return [(1 if c > 0 else -1, _scaled(rest, abs(c), keeps_domain)) for rest, c in terms]


def _scaled(rest: Tree, coefficient: Number, keeps_domain: bool) -> Tree:
    factors: dict[Tree, int] = {}
    own = _collect(rest, 1, factors, keeps_domain)
    if own is None:
        return rest if coefficient == 1 else ("mul", coefficient, rest)
    return _product(own * coefficient, factors)


# Products ----------------------------------------------------------------------------------------


def _collect(tree: Tree, power: int, factors: dict[Tree, int], keeps_domain: bool = False):
    """Add the factors of tree**power and their powers to `factors`; return the coefficient.

    `None` where something is divided by 0 or a number is too large to be worked out; with `keeps_domain` also
    where a factor would drop out.
    """
    if is_number(tree):
        return _number_to_power(tree, power)
    if isinstance(tree, tuple):
        name = tree[0]
        # What is divided by a quotient has no value where the quotient's denominator is 0.
        if name == "mul" or (name == "div" and not (keeps_domain and power < 0)):
            left = _collect(tree[1], power, factors, keeps_domain)
            right = _collect(tree[2], power if name == "mul" else -power, factors, keeps_domain)
            if left is None or right is None or (keeps_domain and left * right == 0):
                return None
            return left * right
        if name == "neg":
            inner = _collect(tree[1], power, factors, keeps_domain)
            return inner if inner is None or power % 2 == 0 else -inner
        exponent = WHOLE_POWERS.get(name) or (tree[2] if name == "pow" else None)
        if isinstance(exponent, int) and not (
            keeps_domain and (exponent == 0 or (exponent < 0 and power < 0))
        ):
            return _collect(tree[1], power * exponent, factors, keeps_domain)
    known = factors.get(tree, 0)
    if keeps_domain and known * power < 0:
        return None
    factors[tree] = known + power
    return 1


def _number_to_power(value, power: int):
    if abs(power) > 64:
        return None
    try:
        result = simplified(Fraction(value) ** power) if not isinstance(value, float) else value**power
    except (ZeroDivisionError, OverflowError):
        return None
    too_long = not isinstance(result, float) and max(abs(result.numerator), result.denominator) > 10**15
    return None if too_long or result != result or abs(result) == float("inf") else result


def _product(coefficient: Number, factors: dict[Tree, int]) -> Tree:
    coefficient = simplified(coefficient)
    if coefficient == 0:
        return 0
    above = [powered(base, power) for base, power in factors.items() if power > 0]
    below = [powered(base, -power) for base, power in factors.items() if power < 0]
    if isinstance(coefficient, Fraction):
        below.insert(0, coefficient.denominator)
        coefficient = coefficient.numerator
    is_negative = coefficient == -1 and len(above) > 0
    if not above or coefficient not in (1, -1):
        above.insert(0, coefficient)
    result = divided(above, below)
    return ("neg", result) if is_negative else result


def _exponential(tree: Tree) -> Tree:
    """Return f**g for exp(g*log(f)), unless g is an integer: f**2 has values where f is negative."""
    factors: dict[Tree, int] = {}
    coefficient = _collect(tree[1], 1, factors)
    logarithms = [base for base in factors if isinstance(base, tuple) and base[0] == "log"]
    if coefficient is None or len(logarithms) != 1 or factors[logarithms[0]] != 1:
        return _VALUES.get(tree, tree)
    base = logarithms[0][1]
    del factors[logarithms[0]]
    exponent = _product(coefficient, factors)
    if isinstance(exponent, tuple) and exponent[0] == "div" and all(map(is_number, exponent[1:])):
        exponent = Fraction(exponent[1], exponent[2])
    if exponent == Fraction(1, 2):
        return ("sqrt", base)
    if is_number(exponent) and exponent == int(exponent):
        return base if exponent == 1 and _is_positive(base) else tree
    return ("pow", base, exponent)


def _is_positive(tree: Tree) -> bool:
    return isinstance(tree, tuple) and tree[0] == "exp"
