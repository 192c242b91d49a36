"""The normal form of a formula: a number times a node that has no scale of its own.

Terms and factors of its nodes (`dgsr.expressions.rewriting.nodes`) have a fixed order, so that equal parts
are recognised in any order. One coefficient of every sum is 1, and redundant constants are merged: a*(b*x)
becomes (a*b)*x, and d*exp(f + c) a number times exp(f). Floats are fitted constants, other numbers are exact.
Where a sum has both, an exact coefficient is taken out of it: 2.5*x1 + 2*x2 becomes 2 times the sum of
1.25*x1 and x2.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dgsr.expressions.rewriting.algebra import ODD, Number, clean, over, to_power
from dgsr.expressions.rewriting.nodes import Call, Node, Product, Scaled, Sum, exponent_of, is_call
from dgsr.expressions.trees.evaluation import evaluate
from dgsr.expressions.trees.simple_numbers import QUARTER_TURN, ROUNDING
from dgsr.expressions.trees.trees import FUNCTIONS, LARGEST_EXPONENT, LARGEST_POWER, WHOLE_POWERS, Tree


def _is_unit(value: Number) -> bool:
    return value in (1, -1)


def normal_form(tree: Tree) -> Scaled:
    """Return the scale and the node of a tree.

    ArithmeticError where a part is undefined, such as a division by 0, or beyond the largest float.
    """
    if isinstance(tree, str):
        return 1, tree
    if not isinstance(tree, tuple):
        return clean(tree), 1
    name, parts = tree[0], [normal_form(child) for child in tree[1:]]
    if name == "pi":
        return math.pi, 1
    if name in ("add", "sub"):
        sign = 1 if name == "add" else -1
        return _sum([parts[0], (sign * parts[1][0], parts[1][1])])
    if name == "neg":
        return -parts[0][0], parts[0][1]
    if name in ("mul", "div"):
        return _product([(parts[0], 1), (parts[1], 1 if name == "mul" else -1)])
    if name in WHOLE_POWERS:
        return _product([(parts[0], WHOLE_POWERS[name])])
    return _call(name, parts)


def _order(pair: tuple[Node, Number]) -> tuple[int, str]:
    """Return the key that sorts nodes with coefficients or powers: 1 first, then simple before deep ones."""
    node, _ = pair
    text = repr(node)
    return (0 if node == 1 else 1 + text.count("("), text)


def _sum(parts: list[Scaled]) -> Scaled:
    terms = _added({}, [(scale, node) for scale, node in parts if not isinstance(node, Sum)])
    for scale, node in parts:
        if isinstance(node, Sum):
            terms = _add_sum(terms, scale, node)
    _merge_logarithms(terms)
    pairs = {node: clean(scale) for node, scale in terms.items()}
    ordered = sorted(((n, s) for n, s in pairs.items() if s != 0), key=_order)
    if not ordered:
        return 0, 1
    if len(ordered) == 1:
        return ordered[0][1], ordered[0][0]
    largest = max(abs(scale) for _, scale in ordered)
    candidates = [(n, s) for n, s in ordered if n != 1 and abs(s) > ROUNDING * largest] or ordered
    exact = (s for _, s in [*candidates, *ordered] if not isinstance(s, float))
    lead = next(exact, candidates[0][1])
    return lead, Sum(tuple(_free_of_inner_scale(node, over(scale, lead)) for node, scale in ordered))


def _add_sum(terms: dict[Node, Number], scale: Number, node: Sum) -> dict[Node, Number]:
    """Return `terms` with scale*node added: term by term, its number apart, or as one term.

    The result has the fewest fitted constants, in case of ties it is the first: x1 + 2.5*(x1 + x2) has one,
    and 3.5*x1 + 2.5*x2 would have two.
    """
    inner = dict(node.terms)
    number = inner.pop(1, 0)
    whole = _added(terms, [(scale, node)])
    own, rest = _sum([(coefficient, part) for part, coefficient in inner.items()])
    number_apart = _added(terms, [(scale * own, rest), (scale * number, 1)])
    term_by_term = _added(terms, [(scale * coefficient, part) for part, coefficient in node.terms])
    n_constants = sum(not _is_unit(coefficient) for coefficient in inner.values())
    overlaps = any(part in terms for part in inner)
    if _is_unit(scale) or overlaps or n_constants >= len(inner) - 1:
        return min(term_by_term, number_apart, whole, key=_n_fitted)
    return min(number_apart, whole, key=_n_fitted)


def _added(terms: dict[Node, Number], parts: list[Scaled]) -> dict[Node, Number]:
    result = dict(terms)
    for scale, node in parts:
        result[node] = result.get(node, 0) + scale
    return result


def _n_fitted(terms: dict[Node, Number]) -> int:
    """Return the number of fitted constants of terms, including those within sums."""
    coefficients: list[Number] = []
    for node, outer in terms.items():
        if outer != 0:
            coefficients += [outer, *(c for _, c in node.terms)] if isinstance(node, Sum) else [outer]
    return sum(isinstance(scale, float) and scale != 0 for scale in coefficients)


def _merge_logarithms(terms: dict[Node, Number]) -> None:
    """Replace log(c*f) by log(f) + log(c) where the sum has another number to which log(c) can be added."""
    scaled = [node for node in terms if is_call(node, "log") and not _is_unit(node.arguments[0][0])]
    if len(scaled) + (terms.get(1, 0) != 0) < 2:
        return
    for node in scaled:
        coefficient = terms.pop(node)
        inside, argument = node.arguments[0]
        bare = Call("log", ((1 if inside > 0 else -1, argument),))
        terms[1] = terms.get(1, 0) + coefficient * math.log(abs(inside))
        terms[bare] = terms.get(bare, 0) + coefficient


def _free_of_inner_scale(node: Node, scale: Number) -> tuple[Node, Number]:
    """Return a term whose scale includes its function's scale: c*sqrt(d) and sqrt(f) for c*sqrt(d*f)."""
    if _is_unit(scale) or node == 1 or isinstance(node, Sum):
        return node, scale
    scale, node = _product([((scale, node), 1)])
    return node, scale


def with_squares(node: Node, is_inside: bool = False) -> Node:
    """Return a node with squares completed inside functions and powers: (f + h)**2 - h**2 for f**2 + 2*h*f.

    A polynomial outside of them is not changed, since a person would write 2 + 3*x1 + x1**2.
    """
    if isinstance(node, Call):
        return Call(node.name, tuple((scale, with_squares(inner, True)) for scale, inner in node.arguments))
    if isinstance(node, Product):
        return Product(tuple((with_squares(base, power != 1), power) for base, power in node.factors))
    if not isinstance(node, Sum):
        return node
    terms = {with_squares(part): coefficient for part, coefficient in node.terms}
    for part, a in [*terms.items()] if is_inside else []:
        f, power = part.factors[0] if isinstance(part, Product) and len(part.factors) == 1 else (1, 0)
        if power == 2 and f in terms:
            h = clean(over(terms.pop(f), 2 * a))
            square = Product(((Sum(((1, h), (f, 1))), 2),))
            terms[1] = clean(terms.get(1, 0) - a * h * h)
            terms = {square if other == part else other: value for other, value in terms.items()}
    return Sum(tuple(sorted(((n, s) for n, s in terms.items() if s != 0), key=_order)))


def _product(parts: list[tuple[Scaled, int]]) -> Scaled:
    """Return the product of scaled nodes raised to whole powers."""
    coefficient: Number = 1
    factors: dict[Node, int] = {}
    for (scale, node), power in parts:
        coefficient = coefficient * to_power(scale, power)
        for base, inner_power in node.factors if isinstance(node, Product) else ((node, 1),):
            if base != 1:
                factors[base] = factors.get(base, 0) + power * inner_power
    factors = {base: power for base, power in factors.items() if power != 0}
    even = [base for base, power in factors.items() if power % 2 == 0 and is_call(base, "sqrt", "abs")]
    if even:  # sqrt(f)**2 is f, abs(f)**2 is f**2
        inner = [(base.arguments[0], factors.pop(base) // (2 if base.name == "sqrt" else 1)) for base in even]
        return _product([((coefficient, 1), 1), *inner, *(((1, base), p) for base, p in factors.items())])
    factors = _merge_exponentials(_merge_powers(factors))
    apart = [(_without_inner_scale(base), power) for base, power in factors.items()]
    if sum(scale != 1 for (scale, _), _ in apart) + (not _is_unit(coefficient)) > 1:
        bare: dict[Node, int] = {}
        for (scale, node), power in apart:
            coefficient = coefficient * to_power(scale, power)
            if node != 1:
                bare[node] = bare.get(node, 0) + power
        factors = _merge_powers({base: power for base, power in bare.items() if power != 0})
    coefficient = clean(coefficient)
    if coefficient == 0 or not factors:
        return coefficient, 1
    if list(factors.values()) == [1]:
        return coefficient, next(iter(factors))
    return coefficient, Product(tuple(sorted(factors.items(), key=_order)))


def _merge_powers(factors: dict[Node, int]) -> dict[Node, int]:
    """Return the factors with one power of each f: f**2.3 for f*f**1.3, f**1.3 for 1/f**(-1.3)."""
    powers_of: dict[Node, list[tuple[Node, Number]]] = {}
    for node in factors:
        base, exponent = _as_power(node)
        powers_of.setdefault(base, []).append((node, exponent))
    merged = dict(factors)
    for base, powers in powers_of.items():
        node, exponent = powers[0]
        if len(powers) > 1 or (exponent < 0 and factors[node] < 0):
            exponent = sum(merged.pop(node) * exponent for node, exponent in powers)
            # The base of one power may be another one: sqrt(f)**1.3*sqrt(f)**0.7 is f, and so is a factor f.
            for factor, power in _factors_of_power(base, exponent).items():
                merged[factor] = merged.get(factor, 0) + power
    return {node: power for node, power in merged.items() if power != 0}


def _as_power(node: Node) -> tuple[Node, Number]:
    """Return f and c of a power f**c or a root; any other node has the exponent 1."""
    exponent = exponent_of(node)
    is_bare = exponent is not None and node.arguments[0][0] == 1
    return (node.arguments[0][1], exponent) if is_bare else (node, 1)


def _factors_of_power(base: Node, exponent: Number) -> dict[Node, int]:
    """Return f**c as factors: f*sqrt(f) for f**1.5, and f*g*sqrt(f*g) for (f*g)**1.5."""
    sign = 1 if exponent > 0 else -1
    halves = 2 * abs(exponent)
    if halves != int(halves):
        return {Call("pow", ((1, base), (clean(abs(exponent)), 1))): sign}
    whole, half = divmod(int(halves), 2)
    factors = base.factors if isinstance(base, Product) else ((base, 1),)
    powers = {node: whole * power for node, power in factors} | {Call("sqrt", ((1, base),)): half}
    return {node: sign * power for node, power in powers.items() if power != 0}


def _merge_exponentials(factors: dict[Node, int]) -> dict[Node, int]:
    """Return the factors with one exponential: exp(f + g) for exp(f)*exp(g), exp(3*f) for exp(f)**3."""
    found = [base for base in factors if is_call(base, "exp")]
    if len(found) == 1 and abs(factors[found[0]]) == 1:
        scale, node = found[0].arguments[0]
        if factors[found[0]] == 1 or scale == 1 or isinstance(node, Sum):
            return factors  # 1/exp(f) stays, while 1/exp(1.5*f) becomes exp(-1.5*f)
    if not found:
        return factors
    exponent = _sum([(factors[e] * e.arguments[0][0], e.arguments[0][1]) for e in found])
    rest = {base: power for base, power in factors.items() if base not in found}
    if exponent == (0, 1):
        return rest
    rest[Call("exp", (exponent,))] = 1
    return rest


def _without_inner_scale(node: Node) -> Scaled:
    """Return a function with the scale taken out of it: sqrt(c) and sqrt(f) for sqrt(c*f).

    The same is done for powers with a number as exponent; the scale of exp(f + c) is exp(c).
    """
    if not isinstance(node, Call):
        return 1, node
    inside, argument = node.arguments[0]
    if node.name == "exp":
        scale = _number_of(inside, argument)
        if scale == 0 or abs(scale) > LARGEST_EXPONENT:
            return 1, node
        return math.exp(scale), Call("exp", (_sum([(inside, argument), (-scale, 1)]),))
    power = exponent_of(node)
    if power is None or argument == 1 or _is_unit(inside):
        return 1, node
    sign = 1 if inside > 0 else -1
    return to_power(abs(inside), power), Call(node.name, ((sign, argument), *node.arguments[1:]))


def _number_of(scale: Number, node: Node) -> Number:
    """Return the number among the terms of a scaled node; 0 if there is none."""
    if node == 1:
        return scale
    return clean(scale * dict(node.terms).get(1, 0)) if isinstance(node, Sum) else 0


def _with_number(scale: Number, node: Node, number: Number) -> Scaled:
    """Return a scaled node with its number replaced by another; the sum is built anew, so that it merges."""
    terms = node.terms if isinstance(node, Sum) else ()
    return _sum([(number, 1), *((scale * coefficient, part) for part, coefficient in terms if part != 1)])


def _call(name: str, parts: list[Scaled]) -> Scaled:
    if (name in FUNCTIONS or name == "pow") and all(node == 1 for _, node in parts):
        value = float(evaluate((name, *(scale for scale, _ in parts)), {}))
        return clean(int(value) if math.isfinite(value) and value == int(value) else value), 1
    if name == "pow":
        return _power(*parts)
    if len(parts) != 1:
        return 1, Call(name, tuple(parts))
    scale, node = parts[0]
    if name == "exp":
        return _exponential(scale, node)
    if name == "log" and scale == 1 and is_call(node, "exp"):
        return node.arguments[0]
    if name == "abs":
        return abs(scale), Call("abs", ((1, node),))
    is_square = isinstance(node, Product) and all(p % 2 == 0 for _, p in node.factors)
    if name == "sqrt" and scale > 0 and is_square:
        root = 1 if scale == 1 else to_power(scale, Fraction(1, 2))
        sizes = [(_call("abs", [(1, base)]), power // 2) for base, power in node.factors]
        return _product([((root, 1), 1), *sizes])  # sqrt(f**2) is abs(f)
    if name in ("sin", "cos"):
        return _wave(name, scale, node)
    if name in ODD and scale < 0:
        return -1, Call(name, ((-scale, node),))
    return 1, Call(name, ((abs(scale) if name == "cosh" else scale, node),))


def _power(base: Scaled, exponent: Scaled) -> Scaled:
    """Return base**exponent; a fitted base b becomes exp(log(b)*exponent), whose constants can be merged."""
    power, node = exponent
    if base == (1, 1):
        return base
    if base[1] == 1 and isinstance(base[0], float) and base[0] > 0:
        return _call("exp", [_product([((math.log(base[0]), 1), 1), (exponent, 1)])])
    if node == 1:
        if power == int(power) and abs(power) <= LARGEST_POWER:
            return _product([(base, int(power))])
        if power == 0.5:
            return _call("sqrt", [base])
        if base[0] == 1 and is_call(base[1], "exp"):
            inside, argument = base[1].arguments[0]
            return _call("exp", [_product([((power, 1), 1), ((inside, argument), 1)])])
    elif power < 0 and not (isinstance(node, Sum) and any(c < 0 for _, c in node.terms)):
        # 1/x**y for x**(-y), but x**(1 - y)
        return _product([((1, Call("pow", (base, (-power, node)))), -1)])
    return 1, Call("pow", (base, exponent))


def _exponential(scale: Number, node: Node) -> Scaled:
    """Return the exponential of scale*node: f**c for exp(c*log(f)), and f*exp(g) for exp(log(f) + g)."""
    if is_call(node, "log"):
        return _power(node.arguments[0], (scale, 1))
    terms = [(scale * c, part) for part, c in node.terms] if isinstance(node, Sum) else []
    powers = [_power(f.arguments[0], (c, 1)) for c, f in terms if _is_whole_logarithm(c, f)]
    if not powers:
        return 1, Call("exp", ((scale, node),))
    rest = _call("exp", [_sum([(c, part) for c, part in terms if not _is_whole_logarithm(c, part)])])
    return _product([(factor, 1) for factor in (*powers, rest)])


def _is_whole_logarithm(coefficient: Number, node: Node) -> bool:
    return is_call(node, "log") and abs(coefficient) <= LARGEST_POWER and coefficient == int(coefficient)


def _wave(name: str, scale: Number, node: Node) -> Scaled:
    """Return a sine or cosine with a positive argument and its phase between -pi and pi."""
    sign = 1
    if scale < 0:
        scale, sign = -scale, -1 if name == "sin" else 1
    phase = _number_of(scale, node)
    quarters = round(float(phase) / QUARTER_TURN)
    is_exact = quarters != 0 and abs(float(phase) - quarters * QUARTER_TURN) <= 4 * math.ulp(float(phase))
    if is_exact:  # sin(f + pi/2) is cos(f)
        scale, node = _with_number(scale, node, 0)
        if name == "cos":
            quarters += 1
        quarters %= 4
        sign = sign * (1 if quarters < 2 else -1)
        turned, turned_node = _wave("sin" if quarters % 2 == 0 else "cos", scale, node)
        return sign * turned, turned_node
    if isinstance(phase, float) and abs(phase) > math.pi:
        turns = round(phase / (2 * math.pi))
        scale, node = _with_number(scale, node, phase - turns * 2 * math.pi)
        if scale < 0:
            scale, sign = -scale, -sign if name == "sin" else sign
    return sign, Call(name, ((scale, node),))
