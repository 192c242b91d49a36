"""Polynomials of several columns, and short trees that represent them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, reduce
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import sympy

from dgsr.expressions.trees.simple_numbers import cost
from dgsr.expressions.trees.trees import Tree

#: A coefficient. An int is written as a repeated sum, since a library without constants has no number for it.
Coefficient = int | float | Fraction
#: The exponents of the columns, and the coefficient.
Term = tuple[tuple[int, ...], Coefficient]
#: A polynomial: its coefficients by the exponents of the columns, which are all of one type.
Polynomial = Mapping[tuple[int, ...], Coefficient]

#: Most terms of a sum of which every shared column is tried as a factor, not only the most frequent, and most
#: terms and highest degree of a polynomial that is factored for people.
FEW_TERMS = 12


def products_of(n_columns: int, degree: int) -> list[tuple[int, ...]]:
    """Return the column indices of the factors of each product up to a degree, lower degrees first."""
    degrees = range(degree + 1)
    return [of for n in degrees for of in combinations_with_replacement(range(n_columns), n)]


def exponents_of(factors: tuple[int, ...], n_columns: int) -> tuple[int, ...]:
    """Return how often each column is among the factors of a product."""
    return tuple(map(factors.count, range(n_columns)))


class _Signed(NamedTuple):
    """A tree and the sign that it has in a sum."""

    n_tokens: int
    tree: Tree
    sign: int

    @property
    def whole(self) -> Tree:
        """The tree with its sign."""
        return self.tree if self.sign > 0 else ("neg", self.tree)


def polynomial_tree(polynomial: Polynomial, divisor: int = 1) -> Tree:
    """Return a tree of a polynomial over x1 .. xd, divided by a number.

    Parts that share no column are written one by one, and those with exact coefficients as products of their
    factors: a**2 - 2*a*b + b**2 + c**2 is (a - b)*(a - b) + c*c. Of the columns that several terms share, the
    one is factored out first with which the tree has the fewest tokens. Whole coefficients count as sums of
    columns, 2*x as x + x, and others as one number each.
    """
    tree = _written(polynomial).whole
    return tree if divisor == 1 else ("div", tree, divisor)


def tree_in_factors(polynomial: Polynomial) -> Tree | None:
    """Return the tree of `polynomial_tree` if factoring makes it shorter, else None.

    OverflowError if a number of a factor is beyond the largest float.
    """
    in_factors = _written(polynomial)
    return in_factors.whole if in_factors.n_tokens < _written(polynomial, _shortest).n_tokens else None


def quotient_tree(numerator: Polynomial, denominator: Polynomial) -> Tree:
    """Return a tree of a quotient of two polynomials, each written as `polynomial_tree` does."""
    above, below = _written(numerator), _written(denominator)
    tree = above.tree if below.tree == 1.0 else ("div", above.tree, below.tree)
    return tree if above.sign == below.sign else ("neg", tree)


def _factored(terms: tuple[Term, ...]) -> _Signed:
    """Return a sum as the product of its factors if that is shorter, else as a sum."""
    found = _shortest(terms)
    if len(terms) < 3 or isinstance(terms[0][1], float):
        return found
    columns = sympy.symbols(f"x1:{len(terms[0][0]) + 1}")
    exact = {term: sympy.Rational(Fraction(c)) for term, c in terms}
    number, factors = sympy.Poly(exact, *columns).factor_list()
    factor = Fraction(int(number.p), int(number.q))
    powers = [({term: int(c) for term, c in part.terms()}, power) for part, power in factors]
    if not isinstance(terms[0][1], int):
        in_factors = _with_numbers(factor, powers)
    elif abs(factor) == 1:
        parts = [tuple(sorted(polynomial.items())) for polynomial, power in powers for _ in range(power)]
        in_factors = reduce(_multiplied, map(_shortest, parts))
        in_factors = in_factors._replace(sign=in_factors.sign * int(factor))
    else:
        return found
    return in_factors if in_factors.n_tokens < found.n_tokens else found


def _with_numbers(factor: Fraction, powers: Sequence[tuple[Mapping[tuple[int, ...], int], int]]) -> _Signed:
    """Return a product of a number and powers of polynomials, scaled so that their numbers have few digits.

    Thus (10 + 3*x)/10 becomes 1 + 0.3*x, and (2*x - 5)/2 becomes x - 2.5.
    """
    ways = []
    for units in product(*({abs(c) for c in (min(p.items())[1], max(p.items())[1])} for p, _ in powers)):
        parts, outer, cost_of_numbers = list[_Signed](), abs(factor), 0.0
        for (polynomial, power), unit in zip(powers, units):
            outer *= unit**power
            own = {term: Fraction(c, unit) for term, c in polynomial.items()}
            part = _shortest(tuple(sorted(own.items())))
            if power > 1:
                part = _Signed(part.n_tokens + 1, ("pow", part.tree, power), part.sign**power)
            parts.append(part)
            cost_of_numbers += sum(map(cost, own.values()))
        if outer != 1:
            parts.append(_Signed(1, outer, 1))
        whole = reduce(_multiplied, parts)
        ways.append((whole.n_tokens + cost_of_numbers + cost(outer), whole))
    best = min(ways, key=lambda way: way[0])[1]
    return best if factor > 0 else best._replace(sign=-best.sign)


def _multiplied(first: _Signed, second: _Signed) -> _Signed:
    n_tokens = first.n_tokens + second.n_tokens + 1
    return _Signed(n_tokens, ("mul", first.tree, second.tree), first.sign * second.sign)


def _added(first: _Signed, second: _Signed) -> _Signed:
    n = first.n_tokens + second.n_tokens + 1
    if first.sign == second.sign:
        return _Signed(n, ("add", first.tree, second.tree), first.sign)
    if first.sign < 0:
        first, second = second, first
    return _Signed(n, ("sub", first.tree, second.tree), 1)


def _written(polynomial: Polynomial, write: Callable[[tuple[Term, ...]], _Signed] = _factored) -> _Signed:
    """Return a polynomial whose parts that share no column are written one by one."""
    common, left = _without_common_factor(tuple(sorted(polynomial.items())))
    parts, write_once = list(_unconnected(left)), cache(write)
    # A number shares no column with other terms, but may belong to one of the parts, as in (a + 1)**2.
    number = next((part for part in parts if not any(part[0][0])), ())
    others = [part for part in parts if part != number]
    ways = [parts, *([*others[:i], (*number, *others[i]), *others[i + 1 :]] for i in range(len(others)))]
    sums = [reduce(_added, map(write_once, way)) for way in (ways if number else [parts])]
    whole = min(sums, key=lambda each: each.n_tokens)
    return _multiplied(_monomial(common, 1), whole) if any(common) else whole


def _unconnected(terms: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
    """Yield the parts of a sum that share no column, in the order of their first terms."""
    left = list(terms)
    while left:
        part, n_before = [left.pop(0)], 0
        while len(part) > n_before:
            n_before = len(part)
            columns = {i for term, _ in part for i, power in enumerate(term) if power}
            near = [each for each in left if any(each[0][i] for i in columns)]
            left = [each for each in left if each not in near]
            part += near
        yield tuple(sorted(part))


def _without_common_factor(terms: tuple[Term, ...]) -> tuple[tuple[int, ...], tuple[Term, ...]]:
    """Return the common factor of all terms and the terms without it; a single term has none."""
    if len(terms) == 1:
        return (0,) * len(terms[0][0]), terms
    common = tuple(map(min, zip(*(powers for powers, _ in terms))))
    left = tuple((tuple(n - shared for n, shared in zip(powers, common)), c) for powers, c in terms)
    return common, left


def _shortest(terms: tuple[Term, ...]) -> _Signed:
    """Return a sum whose common columns are factored out so that it has few tokens."""

    @cache
    def shortest(terms: tuple[Term, ...]) -> _Signed:
        if len(terms) == 1:
            return _monomial(*terms[0])
        common, left = _without_common_factor(terms)
        if any(common):
            return _multiplied(_monomial(common, 1), shortest(left))
        n_with = [sum(n > 0 for n in powers) for powers in zip(*(powers for powers, _ in terms))]
        shared = [column for column, n in enumerate(n_with) if 1 < n < len(terms)]
        if len(terms) > FEW_TERMS:  # all orders of the columns would be too many
            shared = sorted(shared, key=lambda column: -n_with[column])[:1]
        splits = [[not powers[column] for powers, _ in terms] for column in shared]
        found = []
        for is_first in splits or [[True] + [False] * (len(terms) - 1)]:
            parts = [tuple(t for t, own in zip(terms, is_first) if own == side) for side in (True, False)]
            found.append(_added(*map(shortest, parts)))
        return min(found, key=lambda each: each.n_tokens)

    return shortest(terms)


def _monomial(exponents: tuple[int, ...], coefficient: Coefficient) -> _Signed:
    """Return a product of columns and a number; the tokens of an int are those of a sum of columns."""
    names = [f"x{i + 1}" for i, power in enumerate(exponents) for _ in range(power)]
    size, sign = abs(coefficient), 1 if coefficient > 0 else -1
    if not names:
        return _Signed(2 * size + 1 if isinstance(size, int) else 1, size, sign)
    n_tokens = 2 * len(names) - 1
    tree: Tree = names[-1]
    if size != 1:
        tree = ("mul", size, tree)
        n_tokens += 2 * size - 2 if isinstance(size, int) else 2
    for name in reversed(names[:-1]):
        tree = ("mul", name, tree)
    return _Signed(n_tokens, tree, sign)
