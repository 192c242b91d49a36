"""Merging of constants: a formula is rewritten with as few fitted constants as its values need.

c1*(c2*f + c3*g) has a redundant constant, which the normal form lacks. This module writes the normal form as
a tree again, with the scale of a product at one of the `PLACEMENTS`. A fitted scale is distributed over a sum
only where that adds no fitted constant: 2.5*(1 + x1) has one, and 2.5 + 2.5*x1 would have two.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache

from dgsr.expressions.rewriting.algebra import Number, added, clean, divided, over, powered, to_power
from dgsr.expressions.rewriting.nodes import Call, Node, Product, Scaled, Sum, exponent_of
from dgsr.expressions.rewriting.normal_form import normal_form, with_squares
from dgsr.expressions.trees.simple_numbers import COST_OF_FLOAT, cost
from dgsr.expressions.trees.trees import Tree

#: Placements of the scale of a product of sums. ``leading``: before the product, whose sums stay as in the
#: normal form; ``number``: the same, but the number of a sum in the denominator, or under a root or power,
#: becomes 1; ``inside``: into a sum of the product; ``inside-number``: both; ``simplest``: the placement with
#: the least cost of numbers.
PLACEMENTS = ("leading", "number", "inside", "inside-number", "simplest")

Terms = Sequence[tuple[Node, Number]]  # nodes and their coefficients
Factors = tuple[tuple[Node, int], ...]  # nodes and their powers


def merge(tree: Tree, placement: str = "simplest", squares: bool = False) -> Tree:
    """Return a tree of the same values with redundant constants merged.

    Floats of the tree are fitted constants, its other numbers exact. `placement` is one of `PLACEMENTS`. With
    `squares`, squares are completed inside functions and powers: exp((x1 + 1.5)**2 - 2.25) for exp(x1**2 +
    3*x1). ArithmeticError where a part is undefined, such as a division by 0, or beyond the largest float.

    Examples
    --------
    >>> merge(("mul", 2.0, ("add", ("mul", 3.0, "x1"), 4.0)))
    ('add', 8.0, ('mul', 6.0, 'x1'))
    """
    scale, node = _normal_form_of(tree, repr(tree))
    return _Writer(placement).tree(scale, with_squares(node) if squares else node)


@lru_cache(maxsize=1 << 10)  # finishing merges the constants of a tree with one placement after the other
def _normal_form_of(tree: Tree, text: str) -> Scaled:
    """Return the normal form of a tree; its text, a key of the cache, distinguishes 1 from the equal 1.0."""
    return normal_form(tree)


def _weight(coefficient: Number) -> float:
    """Return the cost of a coefficient: that of the number, and 2 for the tokens ``mul`` and ``const``."""
    if coefficient == 1:
        return 0.0
    return 0.5 if coefficient == -1 else 2.0 + _cost(coefficient)


def _cost(value: Number) -> float:
    """Return the cost of a number; a float is a fitted constant, which may become any number."""
    return COST_OF_FLOAT if isinstance(value, float) else cost(value)


class _Writer:
    """Writes scaled nodes as trees."""

    def __init__(self, placement: str) -> None:
        self.placement = placement

    def tree(self, scale: Number, node: Node) -> Tree:
        return added([self.parts(scale, node)])

    def parts(self, scale: Number, node: Node) -> tuple[int, Tree]:
        """Return the sign, 1 or -1, and the tree of scale*node without its sign."""
        if node == 1:
            return (1, scale) if scale >= 0 else (-1, -scale)
        if isinstance(node, Sum):
            return 1, self.sum(scale, node)
        factors = node.factors if isinstance(node, Product) else ((node, 1),)
        return self.product(scale, factors)

    def sum(self, scale: Number, node: Sum) -> Tree:
        """Write a sum: a coefficient for each term, or the scale before parentheses if that costs less.

        The number of the sum stays outside the parentheses, unless that would add a fitted constant.
        """
        terms = _scaled_terms(node, scale)
        rest = [pair for pair in node.terms if pair[0] != 1]
        number = [pair for pair in terms if pair[0] == 1]
        weight = _weight(scale) + _terms_weight([*rest, *number])
        if len(rest) < 2 or weight >= _terms_weight(terms) - 1e-9:
            n_fitted, outside, rest = _n_fitted(terms), terms, []
        else:
            n_fitted, outside = _n_fitted([*rest, *number]) + isinstance(scale, float), number
        if n_fitted > _n_fitted(node.terms) + isinstance(scale, float):
            outside, rest = [], list(node.terms)
        written = [self.parts(coefficient, part) for part, coefficient in outside]
        if rest:
            inside, size = self._added(rest), abs(scale)
            product = inside if size == 1 else ("mul", size, inside)
            written.append((1 if scale > 0 else -1, product))
        return added(written)

    def _added(self, terms: Terms) -> Tree:
        return added([self.parts(coefficient, part) for part, coefficient in terms])

    def product(self, scale: Number, factors: Factors) -> tuple[int, Tree]:
        """Return the sign, 1 or -1, and the tree of a scaled product without its sign."""
        scale, scales = self._placed(scale, factors)
        above: list[Tree] = []
        below: list[Tree] = []
        for (base, power), inner in zip(factors, scales, strict=True):
            if isinstance(base, Sum):
                tree = self._added(_scaled_terms(base, inner))
            elif isinstance(base, Call):
                (size, node), *others = base.arguments
                arguments = [(clean(size * inner), node), *others]
                tree = (base.name, *(self.tree(*argument) for argument in arguments))
            else:
                tree = base
            (above if power > 0 else below).append(powered(tree, abs(power)))
        sign = 1 if scale > 0 else -1
        if scale * sign != 1 or not above:
            above.insert(0, scale * sign)
        return sign, divided(above, below)

    def _placed(self, scale: Number, factors: Factors) -> tuple[Number, list[Number]]:
        """Return the scale of a product and a factor for the coefficients of each sum in it.

        A sum keeps its coefficients where the placement would add a fitted constant.
        """
        sums = [
            i for i, (base, power) in enumerate(factors) if isinstance(base, Sum) and abs(power) in (1, 2)
        ]
        scales: list[Number] = [1] * len(factors)
        if self.placement == "simplest":
            return self._simplest(scale, factors, sums)
        if self.placement.endswith("number"):
            for i, (base, power) in enumerate(factors):
                size, node, exponent = _sum_in(base, power)
                number = size * dict(node.terms).get(1, 0) if isinstance(node, Sum) else 0
                if number > 0 or (number < 0 and base is node):  # a negative number has no root
                    inner = over(1, number)
                    outer = over(scale, to_power(inner, exponent))
                    if not _adds_fitted(node, (scale, size), (outer, clean(size * inner))):
                        scale, scales[i] = outer, inner
        inside = [i for i in sums if factors[i][1] == 1] or [i for i in sums if factors[i][1] == -1]
        if self.placement.startswith("inside") and inside:
            i, size = inside[0], abs(scale)
            inner = clean(scales[i] * (size if factors[i][1] == 1 else over(1, size)))
            if not _adds_fitted(factors[i][0], (size, scales[i]), (1, inner)):
                scale, scales[i] = 1 if scale > 0 else -1, inner
        return scale, scales

    def _simplest(self, scale: Number, factors: Factors, sums: list[int]) -> tuple[Number, list[Number]]:
        """Return the placement of least cost: the scale before the product, and one for each factor."""
        options: list[list[Number]] = [
            [1, *(over(1, coefficient) for _, coefficient in factors[i][0].terms)] for i in sums[:3]
        ]
        best: tuple[float, Number, list[Number]] | None = None
        fewest = 0
        for chosen in itertools.islice(itertools.product(*options), 100):
            scales: list[Number] = [1] * len(factors)
            outer = scale
            for i, inner in zip(sums, chosen):
                scales[i] = inner
                outer = over(outer, to_power(inner, factors[i][1]))
            for into in [None, *(i for i in sums if abs(factors[i][1]) == 1)]:
                tried, left = scales, outer
                if into is not None:  # the rest of the scale goes into this sum
                    tried = list(scales)
                    tried[into] = clean(tried[into] * (outer if factors[into][1] == 1 else over(1, outer)))
                    left = 1
                written = [_scaled_terms(factors[j][0], tried[j]) for j in sums]
                weight = _weight(left) + sum(map(_terms_weight, written))
                n_fitted = isinstance(left, float) + sum(map(_n_fitted, written))
                if best is None:
                    fewest = n_fitted
                if best is None or (weight < best[0] - 1e-9 and n_fitted <= fewest):
                    best = weight, left, tried
        assert best is not None  # since the first option changes nothing
        return best[1], best[2]


def _sum_in(base: Node, power: int) -> tuple[Number, Node, Number]:
    """Return the scale of a sum, the sum, and its power in a product: 1.5, f and -1/2 for 1/sqrt(1.5*f).

    Factors without such a sum, and sums that are not in the denominator, give 1, 1 and 1.
    """
    if isinstance(base, Sum) and power in (-1, -2):
        return 1, base, power
    exponent = exponent_of(base)
    return (1, 1, 1) if exponent is None else (*base.arguments[0], power * exponent)


def _scaled_terms(node: Sum, scale: Number) -> list[tuple[Node, Number]]:
    return [(part, clean(scale * coefficient)) for part, coefficient in node.terms]


def _n_fitted(terms: Terms) -> int:
    """Return the number of fitted constants among the coefficients of a sum."""
    return sum(isinstance(coefficient, float) for _, coefficient in terms)


def _adds_fitted(node: Sum, now: tuple[Number, Number], then: tuple[Number, Number]) -> bool:
    """Return whether a sum and the scale before it have more fitted constants `then` than `now`.

    Both arguments are pairs of the scale before the sum and the factor of the sum's coefficients.
    """
    before, after = (
        isinstance(outer, float) + _n_fitted(_scaled_terms(node, inner)) for outer, inner in (now, then)
    )
    return after > before


def _terms_weight(terms: Terms) -> float:
    """Return the cost of the coefficients of a sum."""
    # A sum without a positive term needs one more token.
    weight = sum(_cost(scale) if node == 1 else _weight(scale) for node, scale in terms)
    return weight + 2.0 * all(scale < 0 for _, scale in terms)
