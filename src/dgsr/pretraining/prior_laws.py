"""Random laws of the prior, in compiled code: products of powers, short sums, functions of groups.

Variables get random units. The terms of a sum have the same unit, and the arguments of functions, called
groups, are dimensionless. Where no product of the variables has the required unit, a constant supplies it, as
in many laws.

The forms and their shares are in `dgsr.pretraining.law_forms`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.kernels.arrays import are_zero, copy_to
from dgsr.kernels.compilation import allocation_free, compiled
from dgsr.kernels.random import choice, integer, uniform
from dgsr.pretraining import law_forms as forms
from dgsr.pretraining.prior_trees import INTEGER, MAX_NODES, NUMBER, VARIABLE, Tree, close_gaps

#: Number of base units, such as length, mass and time.
N_UNITS = 3
# Random products that are tried for a required unit.
_TRIALS = 60
# Nodes that must be free before a factor is drawn; few factors take more.
_ROOM = 24


class LawDraft(NamedTuple):
    """A partly drawn law, in which children come before their parents until `_root_first` is called."""

    tree: Tree
    counts: np.ndarray  # (2,) int64: number of nodes, and of constants that supply a unit
    units: np.ndarray  # (n_variables, N_UNITS) int64: exponents of the base units of each variable
    used: np.ndarray  # (n_variables,) int64: how often each variable occurs
    powers: np.ndarray  # (n_variables,) int64: scratch array for the exponents of a product


@allocation_free
def _node(draft, kind, first, second):
    """Append a node and return its index; where there is no room, only count it."""
    n = draft.counts[0]
    if n < MAX_NODES:
        draft.tree.kind[n], draft.tree.first[n], draft.tree.second[n] = kind, first, second
    draft.counts[0] = n + 1
    return n


@allocation_free
def _constant(draft, state):
    """Append a constant and return its node; in a library without constants it is a small integer."""
    return _node(draft, INTEGER, 1 + integer(state, 3), 0)


@allocation_free
def _times(draft, a, b, law):
    """Return the product of two nodes, where -1 represents the number 1."""
    if a < 0:
        return b
    if b < 0:
        return a
    return _node(draft, law.tokens[forms.MUL], a, b)


@allocation_free
def _over(draft, a, b, law):
    """Return the quotient of two nodes, where -1 represents the number 1."""
    if b < 0:
        return a if a >= 0 else _node(draft, NUMBER, 1, 0)
    if a >= 0:
        return _node(draft, law.tokens[forms.DIV], a, b)
    if law.tokens[forms.INV] >= 0:
        return _node(draft, law.tokens[forms.INV], b, 0)
    return _node(draft, law.tokens[forms.DIV], _node(draft, NUMBER, 1, 0), b)


@allocation_free
def _raised(draft, base, power, law):
    """Return a node raised to the absolute value of an exponent."""
    size = abs(power)
    if size == 0.5:
        return base if law.tokens[forms.SQRT] < 0 else _node(draft, law.tokens[forms.SQRT], base, 0)
    if size == 1.0:
        return base
    return _node(draft, law.n_operators + int(size) - 2, base, 0)


@allocation_free
def _draw_units(draft, law, state):
    """Draw the unit of each variable: the unit of an earlier variable, a new unit, or none."""
    for v in range(len(draft.units)):
        u = uniform(state)
        draft.units[v] = 0
        if v > 0 and u < law.same_unit:
            copy_to(draft.units[v], draft.units[integer(state, v)])
        elif u < law.with_unit:
            for k in range(N_UNITS):
                if uniform(state) < 0.5:
                    draft.units[v, k] = integer(state, 5) - 2


@allocation_free
def _variable(draft, state):
    """Return a random variable, preferably one that does not occur yet."""
    n = len(draft.used)
    v = integer(state, n)
    for _ in range(3):
        if draft.used[v] > 0:
            v = integer(state, n)
    return v


@allocation_free
def _draw_product(draft, unit, law, state):
    """Write the exponents of a random product with a unit; return whether one was found."""
    for _ in range(_TRIALS):
        draft.powers[:] = 0
        for _ in range(1 + integer(state, 3)):
            power = (1, -1, 2, -2)[choice(state, law.small_powers)]
            draft.powers[_variable(draft, state)] += power
        if are_zero(draft.powers):
            continue
        fits = True
        for power in draft.powers:
            fits = fits and abs(power) <= 3
        for k in range(N_UNITS):
            total = 0
            for v in range(len(draft.powers)):
                total += draft.powers[v] * draft.units[v, k]
            fits = fits and total == unit[k]
        if fits:
            return True
    return False


@allocation_free
def _write_product(draft, law):
    """Append the product in `draft.powers` and return its node."""
    above, below = -1, -1
    for v in range(len(draft.powers)):
        power = draft.powers[v]
        if power != 0:
            draft.used[v] += 1
            factor = _raised(draft, _node(draft, VARIABLE, v, 0), float(power), law)
            if power > 0:
                above = _times(draft, above, factor, law)
            else:
                below = _times(draft, below, factor, law)
    return _over(draft, above, below, law)


@allocation_free
def _product_of(draft, unit, law, state):
    """Return a product of variables that has a unit, or one with a constant that supplies the unit."""
    if _draw_product(draft, unit, law, state):
        node = _write_product(draft, law)
        if uniform(state) < law.with_constant:
            node = _times(draft, _constant(draft, state), node, law)
        return node
    draft.counts[1] += 1
    draft.powers[:] = 0
    draft.powers[_variable(draft, state)] = 1
    if uniform(state) < law.second_variable:
        draft.powers[_variable(draft, state)] += 1 if uniform(state) < 0.5 else -1
        if are_zero(draft.powers):
            draft.powers[_variable(draft, state)] = 1
    return _times(draft, _constant(draft, state), _write_product(draft, law), law)


@compiled()
def _sum(draft, law, state):
    """Return a sum of two or three terms, and its unit."""
    v = _variable(draft, state)
    draft.used[v] += 1
    power = 2.0 if uniform(state) < law.first_square else 1.0
    unit = draft.units[v] * int(power)
    node = _raised(draft, _node(draft, VARIABLE, v, 0), power, law)
    for _ in range(1 + (uniform(state) < law.third_term)):
        operator = law.tokens[forms.ADD if uniform(state) < law.plus else forms.SUB]
        if are_zero(unit) and uniform(state) < law.number_one and law.tokens[forms.EXP] >= 0:
            other = _node(draft, NUMBER, 1, 0)
        elif uniform(state) < law.free_constant:
            other = _constant(draft, state)
            if not are_zero(unit):
                draft.counts[1] += 1
        else:
            other = _product_of(draft, unit, law, state)
        if uniform(state) < law.swapped:
            node, other = other, node
        node = _node(draft, operator, node, other)
    return node, unit


@compiled()
def _function(draft, law, state):
    """Return a function of a dimensionless group."""
    kind = choice(state, law.functions)
    group = _product_of(draft, np.zeros(N_UNITS, dtype=np.int64), law, state)
    token = law.of_functions[kind]
    if kind == forms.DECAY:
        return _falling(draft, group, law)
    if kind == forms.SATURATION:
        falling = _falling(draft, group, law)
        return _node(draft, law.tokens[forms.SUB], _node(draft, NUMBER, 1, 0), falling)
    if kind == forms.ONE_PLUS or kind == forms.ONE_MINUS:
        return _node(draft, token, _node(draft, NUMBER, 1, 0), group)
    if kind == forms.LOGARITHM and uniform(state) < law.log_of_one_plus:
        group = _node(draft, law.tokens[forms.ADD], _node(draft, NUMBER, 1, 0), group)
    node = _node(draft, token, group, 0)
    if (kind == forms.SINE or kind == forms.COSINE) and uniform(state) < law.squared_wave:
        node = _raised(draft, node, 2.0, law)
    return node


@allocation_free
def _falling(draft, group, law):
    """Return exp(-g), or 1/exp(g) in a library without the operator neg."""
    if law.tokens[forms.NEG] >= 0:
        return _node(draft, law.tokens[forms.EXP], _node(draft, law.tokens[forms.NEG], group, 0), 0)
    return _over(draft, -1, _node(draft, law.tokens[forms.EXP], group, 0), law)


@compiled()
def _term(draft, is_first, unit, law, state):
    """Return a term of a sum, or -1 if there is no room. The first term determines the `unit` of all."""
    above, below = -1, -1
    n_factors = 1 + choice(state, law.factors)
    own = np.zeros(N_UNITS, dtype=np.int64)  # exponents in halves, like `unit`, because of square roots
    for _ in range(n_factors):
        if draft.counts[0] + _ROOM > MAX_NODES:
            return -1
        kind = choice(state, law.kinds)
        if kind == 0:
            v, power = _variable(draft, state), forms.POWERS[choice(state, law.powers)]
            draft.used[v] += 1
            own += draft.units[v] * int(2.0 * power)
            factor = _raised(draft, _node(draft, VARIABLE, v, 0), power, law)
        elif kind == 1:
            power = forms.POWERS[choice(state, law.sum_powers)]
            base, of_base = _sum(draft, law, state)
            factor = _raised(draft, base, power, law)
            own += of_base * int(2.0 * power)
        else:
            power = 1.0 if uniform(state) < law.function_above else -1.0
            factor = _function(draft, law, state)
        if power > 0:
            above = _times(draft, above, factor, law)
        else:
            below = _times(draft, below, factor, law)
    if is_first:
        copy_to(unit, own)
    elif np.any(own != unit):
        needed = unit - own
        if not np.any(needed % 2) and _draw_product(draft, needed // 2, law, state):
            above = _times(draft, above, _write_product(draft, law), law)
        else:
            draft.counts[1] += 1
            above = _times(draft, _constant(draft, state), above, law)
    elif uniform(state) < law.scaled_term:
        above = _times(draft, _constant(draft, state), above, law)
    return _over(draft, above, below, law)


@compiled()
def grow_law(n_variables, law, tree, units, state):
    """Draw the tree of a law; return its number of nodes, or 0 if it would have more than `MAX_NODES`.

    `units` (n_columns, N_UNITS) receives the exponents of the base units of the variables, or zeros if a
    constant supplies a unit, since that constant would depend on the choice of units.
    """
    draft = LawDraft(
        tree,
        np.zeros(2, dtype=np.int64),
        units[:n_variables],
        np.zeros(n_variables, dtype=np.int64),
        np.zeros(n_variables, dtype=np.int64),
    )
    _draw_units(draft, law, state)
    unit = np.zeros(N_UNITS, dtype=np.int64)
    node = _term(draft, True, unit, law, state)
    for _ in range(choice(state, law.terms)):
        if node < 0 or draft.counts[0] + _ROOM > MAX_NODES:
            return 0
        other = _term(draft, False, unit, law, state)
        if other < 0:
            return 0
        node = _node(draft, law.tokens[forms.ADD if uniform(state) < law.plus else forms.SUB], node, other)
    if node < 0 or draft.counts[0] + 2 > MAX_NODES:
        return 0
    around = choice(state, law.around)
    if around == forms.EXP_AROUND and not are_zero(unit):  # an exponent has no unit
        draft.counts[1] += 1
    if around == forms.ROOT_AROUND:
        node = _raised(draft, node, 0.5, law)
    elif around == forms.LOG_AROUND or around == forms.EXP_AROUND:
        node = _node(draft, law.tokens[forms.LOG if around == forms.LOG_AROUND else forms.EXP], node, 0)
    elif around == forms.INVERSE_AROUND:
        node = _over(draft, -1, node, law)
    elif around == forms.SQUARE_AROUND:
        node = _raised(draft, node, 2.0, law)
    _root_first(draft.counts[0], tree)
    rank = close_gaps(draft.counts[0], n_variables, tree)
    if draft.counts[1] > 0:
        units[:] = 0
    else:
        draft.units[rank] = draft.units.copy()
    return draft.counts[0]


@allocation_free
def _root_first(n_nodes, tree):
    """Reverse the order of the nodes, so that the root, which is the last one, becomes node 0."""
    last = n_nodes - 1
    for node in range(n_nodes):
        if tree.kind[node] >= 0:
            tree.first[node] = last - tree.first[node]
            tree.second[node] = last - tree.second[node]
    for node in range(n_nodes // 2):
        other = last - node
        tree.kind[node], tree.kind[other] = tree.kind[other], tree.kind[node]
        tree.first[node], tree.first[other] = tree.first[other], tree.first[node]
        tree.second[node], tree.second[other] = tree.second[other], tree.second[node]
