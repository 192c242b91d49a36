"""Random expression trees of the prior, in compiled code.

Operators are drawn with the prior's weights and put at random open positions of the tree until there are as
many open positions as leaves are required; then the leaves are drawn.

References
----------
Lample & Charton, ICLR 2020; Holt, Qian, van der Schaar, ICLR 2023, appendix "Dataset Generation and
Training".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.kernels.canonical import Rewriting
from dgsr.kernels.compilation import allocation_free, compiled
from dgsr.kernels.random import choice, integer, uniform

# Kinds of leaves; the entry of the first child holds the index of the variable or the number. In a library
# with constants an INTEGER is a constant of any value, and a NUMBER a constant of the given value. While a
# tree grows, an open position is a VARIABLE.
VARIABLE, INTEGER, NUMBER = -1, -2, -3

#: Most nodes of a tree; larger trees are drawn again.
MAX_NODES = 64


class PriorTable(NamedTuple):
    """The prior as arrays. Its operators are the library's, then the powers 2 to 5."""

    weights: np.ndarray  # (n_operators + 4,) float64
    n_operators: int
    exponents: np.ndarray  # (n_exponents,) float64: the exponents of ``pow``, never a subtree
    rewriting: Rewriting  # has the token ids of operators
    variable_probability: float
    integer_weights: np.ndarray  # (max_integer,) float64
    min_leaves: int
    max_leaves: int
    constant_range: tuple[float, ...]
    log_uniform: bool  # whether constants are log-uniform and not uniform in this range
    noise: tuple[float, ...]  # bounds of its standard deviation, and its probability
    has_constants: bool
    first_variable: int
    domains: np.ndarray  # (n_domains, 3) float64: low, high and weight of the intervals of inputs
    varied: bool  # whether inputs are also log-uniform, normal, gridded, correlated and in other units
    law_share: float  # probability that an equation is a law
    transformed: float  # probability that a target has a scale and perhaps an offset
    shared_domain: float = 0.75  # fraction of the tables of uniform inputs whose columns share a domain
    gridded: float = 0.15  # fraction of varied columns with few different values
    correlated: float = 0.10  # fraction of varied columns that are correlated with the column before them
    other_units: float = 0.3  # fraction of the laws whose variables are measured in other units
    power_of_ten: float = 4.0  # largest absolute exponent of the power of ten by which a base unit changes


class Tree(NamedTuple):
    """A tree; node 0 is the root, and children have larger indices than their parent."""

    kind: np.ndarray  # (MAX_NODES,) int64: operator, VARIABLE, INTEGER or NUMBER
    first: np.ndarray  # (MAX_NODES,) int64: first child
    second: np.ndarray  # (MAX_NODES,) int64: second child, of an operator of two subtrees


@compiled()
def new_tree():
    """Return an empty `Tree`."""
    kind = np.empty(MAX_NODES, dtype=np.int64)
    return Tree(kind, np.empty_like(kind), np.empty_like(kind))


@allocation_free
def takes_two(operator, prior, grammar):
    """Return whether an operator has two subtrees; ``pow`` does not, as its exponent is a number."""
    return operator < prior.n_operators and grammar.arity[operator] == 2 and operator != prior.rewriting.pow


@compiled()
def grow_tree(n_variables, prior, grammar, tree, state):
    """Draw a tree of up to `n_variables` variables into `tree`; return its number of nodes.

    The number is 0 if the tree would have more than `MAX_NODES`.
    """
    n_leaves = prior.min_leaves + integer(state, prior.max_leaves - prior.min_leaves + 1)
    parent = np.full(MAX_NODES, -1, dtype=np.int64)
    leaves = np.zeros(MAX_NODES, dtype=np.int64)
    n_nodes = _place_operators(n_leaves, prior, grammar, tree, parent, leaves, state)
    if n_nodes > 0:
        _fill_leaves(leaves[:n_leaves], parent, n_variables, prior, grammar, tree, state)
        close_gaps(n_nodes, n_variables, tree)
    return n_nodes


@compiled()
def _place_operators(n_leaves, prior, grammar, tree, parent, leaves, state):
    """Place operators until there are `n_leaves` open positions, which are written to `leaves`."""
    kind = tree.kind
    nested = np.zeros(MAX_NODES, dtype=np.int64)  # the bits of nesting above every node
    kind[0] = VARIABLE
    n_nodes, n_open = 1, 1
    while True:
        operator = choice(state, prior.weights)
        binary = takes_two(operator, prior, grammar)
        if binary and n_open == n_leaves:
            return n_nodes
        at = integer(state, n_open)
        node = leaves[at]
        below = nested[node]
        if operator < prior.n_operators:
            above = kind[parent[node]] if parent[node] >= 0 else prior.n_operators
            if above < prior.n_operators and grammar.forbidden_child[above, operator]:
                continue
            if grammar.closed[operator] & below:
                continue
            below |= (below & grammar.advances[operator]) << 1 | grammar.opens[operator]
        if n_nodes + 2 > MAX_NODES:
            return 0
        kind[node] = operator
        tree.first[node] = n_nodes
        leaves[at] = n_nodes
        for k in range(2 if binary else 1):
            if k == 1:
                tree.second[node] = n_nodes
                leaves[n_open] = n_nodes
                n_open += 1
            kind[n_nodes] = VARIABLE
            parent[n_nodes] = node
            nested[n_nodes] = below
            n_nodes += 1


@allocation_free
def _fill_leaves(leaves, parent, n_variables, prior, grammar, tree, state):
    """Draw variables and numbers, with at least one variable below every operator."""
    kind, first = tree.kind, tree.first
    for node in leaves:
        above = parent[node]
        may_be_integer = above >= 0 and takes_two(kind[above], prior, grammar)
        if may_be_integer:
            sibling = first[above] + tree.second[above] - node
            may_be_integer = kind[sibling] != INTEGER
        if may_be_integer and uniform(state) >= prior.variable_probability:
            kind[node] = INTEGER
            first[node] = 1 + choice(state, prior.integer_weights)
        else:
            kind[node] = VARIABLE
            first[node] = integer(state, n_variables)


@compiled()
def close_gaps(n_nodes, n_variables, tree):
    """Renumber the variables, those that occur first, in their present order; return their new numbers."""
    occurs = np.zeros(n_variables, dtype=np.bool_)
    for node in range(n_nodes):
        if tree.kind[node] == VARIABLE:
            occurs[tree.first[node]] = True
    rank = np.empty(n_variables, dtype=np.int64)
    n_ranked = 0
    for comes_now in (True, False):
        for v in range(n_variables):
            if occurs[v] == comes_now:
                rank[v] = n_ranked
                n_ranked += 1
    for node in range(n_nodes):
        if tree.kind[node] == VARIABLE:
            tree.first[node] = rank[tree.first[node]]
    return rank
