"""The constraint table, against a checker that knows nothing of how it is compiled."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgsr.expressions.programs import constraints as rules
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import OPERATORS, Library, get_library
from dgsr.expressions.programs.nesting import Nesting
from dgsr.kernels.grammar import allowed, are_valid, length_logit, new_tree_state, push, walk

TRIGONOMETRIC = {"sin", "cos"}
INVERSE = {"exp": "log", "log": "exp"}

SMALL = Library("small", ("add", "sin", "exp", "log"), True, 2)
LIBRARIES = {"koza": get_library("koza", 1), "small": SMALL}


def parse(library, tokens):
    """Nested (name, children) of a prefix program, None unless it is exactly one whole tree."""

    def subtree(at):
        if at == len(tokens):
            return None, at
        entry = library.tokens[tokens[at]]
        at += 1
        children = []
        for _ in range(entry.arity):
            child, at = subtree(at)
            if child is None:
                return None, at
            children.append(child)
        return (entry.name, children), at

    tree, end = subtree(0)
    return tree if end == len(tokens) else None


def nodes(tree):
    """Every node of a tree."""
    yield tree
    for child in tree[1]:
        yield from nodes(child)


def most_on_a_path(tree, name):
    """The most nodes of a name on one way down a tree."""
    return (tree[0] == name) + max((most_on_a_path(child, name) for child in tree[1]), default=0)


def keeps(tree, limits):
    """Whether nothing is nested more often than limits say, given as (outer, inner): most."""
    return all(
        most is None or most_on_a_path(child, inner) <= most
        for (outer, inner), most in limits.items()
        for name, children in nodes(tree)
        if name == outer
        for child in children
    )


def meets(library, constraints, tokens, n_used):
    """The rules of `Constraints`' docstring, read off the tree."""
    tree = parse(library, tokens)
    if tree is None or not constraints.min_length <= len(tokens) <= constraints.max_length:
        return False
    names = [name for name, _ in nodes(tree)]
    variables = [name for name in names if name.startswith("x")]
    if not variables or any(int(name[1:]) > n_used for name in variables):
        return False
    if names.count("const") > constraints.max_constants:
        return False
    usual = dict.fromkeys(product(TRIGONOMETRIC, TRIGONOMETRIC), 0)
    if not keeps(tree, usual | {(outer, inner): most for outer, inner, most in constraints.nested}):
        return False
    for name, children in nodes(tree):
        if children and all(child[0] == "const" for child in children):
            return False
        if any(child[0] == INVERSE.get(name) for child in children):
            return False
    if constraints.linear_scaling and library.has_constants and tree[0] in ("add", "sub", "mul", "div"):
        scaled = tree[1][1:] if tree[0] == "div" else tree[1]
        return all(child[0] != "const" for child in scaled)
    return True


def every_program(library, longest):
    for length in range(1, longest + 1):
        yield from product(range(len(library)), repeat=length)


def as_arrays(programs, width):
    tokens = np.zeros((len(programs), width), dtype=np.int64)
    for b, program in enumerate(programs):
        tokens[b, : len(program)] = program
    return tokens, np.array([len(program) for program in programs])


@pytest.mark.parametrize("n_used", [1, 2])
@pytest.mark.parametrize(("min_length", "max_length", "max_constants"), [(1, 5, 2), (3, 4, 1), (4, 6, 0)])
def test_exactly_the_programs_that_meet_the_rules_are_valid(min_length, max_length, max_constants, n_used):
    constraints = Constraints(min_length, max_length, max_constants)
    programs = list(every_program(SMALL, 5))
    valid = are_valid(*as_arrays(programs, 6), constraints.grammar(SMALL, n_used))
    expected = [meets(SMALL, constraints, program, n_used) for program in programs]
    assert sum(expected) > 10
    assert valid.tolist() == expected


def test_exactly_the_koza_programs_that_meet_the_rules_are_valid():
    library, constraints = LIBRARIES["koza"], Constraints(1, 5)
    programs = list(every_program(library, 5))
    valid = are_valid(*as_arrays(programs, 5), constraints.grammar(library))
    assert valid.tolist() == [meets(library, constraints, program, 1) for program in programs]


@pytest.mark.parametrize(
    "nested",
    [
        [("sin", "sin", None)],
        [("sin", "sin", 1)],
        [("sin", "sin", 2), ("exp", "sin", 0), ("exp", "exp", 0)],
        [("sin", "exp", 1), ("log", "exp", 2), ("add", "log", 1)],
        [("add", "add", 0), ("log", "add", 0), ("log", "sin", 1)],
    ],
)
def test_exactly_the_programs_that_keep_the_limits_are_valid(nested):
    constraints = Constraints(1, 5, nested=tuple(nested))
    programs = list(every_program(SMALL, 5))
    arrays = as_arrays(programs, 5)
    valid = are_valid(*arrays, constraints.grammar(SMALL))
    assert valid.tolist() == [meets(SMALL, constraints, program, 2) for program in programs]
    usual = are_valid(*arrays, Constraints(1, 5).grammar(SMALL))
    assert (valid != usual).any()
    # What is kept is looked at by the person's own limits alone.
    trees = [parse(SMALL, program) for program in programs]
    whole = np.flatnonzero([tree is not None for tree in trees])
    kept = constraints.satisfy_user_rules(arrays[0][whole], arrays[1][whole], SMALL)
    assert kept.tolist() == [keeps(trees[i], constraints.limits) for i in whole]


def test_limits_of_more_than_63_bits_are_refused():
    library = get_library("physics", 1)
    names = library.operators[4:11]
    limits = dict.fromkeys(zip(names, names[::-1]), 9)
    assert len(limits) == 7
    with pytest.raises(ValueError, match=r"70 bits, and there are 63: .*fewer or smaller limits"):
        Nesting.of(limits, library)
    limits.popitem()
    bits = Nesting.of(limits, library)
    assert int(np.bitwise_or.reduce(bits.closed)).bit_count() == 6


@pytest.mark.parametrize("linear_scaling", [False, True])
def test_with_linear_scaling_no_constant_is_scale_or_offset_of_a_program(linear_scaling):
    library = Library("mine", ("add", "sub", "mul", "div"), True, 1)
    constraints = Constraints(1, 5, linear_scaling=linear_scaling)
    programs = list(every_program(library, 5))
    valid = are_valid(*as_arrays(programs, 5), constraints.grammar(library))
    assert valid.tolist() == [meets(library, constraints, program, 1) for program in programs]
    texts = {" ".join(library.tokens[t].name for t in p) for p, ok in zip(programs, valid) if ok}
    idle = {f"{name} const x1" for name in ("add", "sub", "mul")}
    idle |= {f"{name} x1 const" for name in ("add", "sub", "mul", "div")}
    assert idle & texts == (set() if linear_scaling else idle)
    assert {"div const x1", "div x1 add const x1", "mul x1 sub x1 const"} <= texts


def test_linear_scaling_has_no_effect_without_constants():
    library = LIBRARIES["koza"]
    with_it, without = (Constraints(linear_scaling=flag).grammar(library) for flag in (True, False))
    assert not with_it.linear_scaling
    assert all(np.array_equal(a, b) for a, b in zip(with_it, without, strict=True))


@pytest.mark.parametrize(
    ("parent", "child"), [pair for pair in rules._FORBIDDEN_PAIRS if {*pair} <= OPERATORS.keys()]
)
def test_an_operator_that_undoes_its_child_is_forbidden_as_its_parent_and_nowhere_else(parent, child):
    library = Library("mine", ("add", *sorted({parent, child})), False, 1)
    grammar = Constraints().grammar(library)
    texts = (f"{parent} {child} x1", f"{parent} add x1 {child} x1")
    programs = [[library.index[name] for name in text.split()] for text in texts]
    allowed_below = not ({parent, child} <= TRIGONOMETRIC)
    assert are_valid(*as_arrays(programs, 30), grammar).tolist() == [False, allowed_below]


def test_a_program_longer_than_its_length_says_is_judged_by_its_length_alone():
    library, constraints = LIBRARIES["koza"], Constraints(1, 5)
    x, add = library.index["x1"], library.index["add"]
    tokens = np.array([[add, x, x, add, add], [x, x, x, x, x], [add, x, x, x, x]])
    assert are_valid(tokens, np.array([3, 1, 2]), constraints.grammar(library)).tolist() == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("length", [0, 6])
def test_lengths_outside_the_limits_are_invalid(length):
    library = LIBRARIES["koza"]
    tokens = np.full((1, 8), library.index["x1"])
    assert not are_valid(tokens, np.array([length]), Constraints(1, 5).grammar(library))[0]


def reachable_prefixes(library, grammar, width):
    """Every partial program `allowed` lets one arrive at, and the whole ones."""
    partial, whole = {()}, set()
    frontier = [()]
    while frontier:
        prefix = frontier.pop()
        counters, stack = (array[0] for array in new_tree_state(1, width))
        for token in prefix:
            push(token, counters, stack, grammar)
        if counters[1] == 0:
            whole.add(prefix)
            continue
        following = [t for t in range(len(library)) if allowed(t, counters, stack, grammar)]
        assert following, f"dead end after {[library.tokens[t].name for t in prefix]}"
        for token in following:
            partial.add((*prefix, token))
            frontier.append((*prefix, token))
    return partial, whole


@pytest.mark.parametrize(("min_length", "max_length"), [(1, 2), (1, 5), (3, 4), (4, 5), (5, 6)])
@pytest.mark.parametrize("operators", [("add",), ("sin", "log", "mul"), ("exp", "log")])
@pytest.mark.parametrize("has_constants", [False, True])
def test_whatever_is_allowed_can_be_completed(operators, has_constants, min_length, max_length):
    """No dead ends; and a token is allowed exactly when some valid program goes on so."""
    library = Library("tiny", operators, has_constants, 1)
    constraints = Constraints(min_length, max_length, max_constants=1)
    grammar = constraints.grammar(library)
    partial, whole = reachable_prefixes(library, grammar, max_length)
    valid = {p for p in every_program(library, max_length) if meets(library, constraints, p, 1)}
    assert whole == valid
    assert partial == {p[:i] for p in valid for i in range(len(p) + 1)}


@settings(max_examples=40, deadline=None)
@given(
    min_length=st.integers(1, 29),
    extra=st.integers(1, 10),
    n_used=st.integers(1, 3),
    seed=st.integers(0, 2**31),
    leaves_first=st.booleans(),
)
def test_random_walks_never_get_stuck(min_length, extra, n_used, seed, leaves_first):
    library = get_library("koza-const", 3)
    constraints = Constraints(min_length, min_length + extra, 3)
    grammar = constraints.grammar(library, n_used)
    counters, stack = (array[0] for array in new_tree_state(1, constraints.max_length))
    rng = np.random.default_rng(seed)
    program = []
    while counters[1] > 0:
        following = [t for t in range(len(library)) if allowed(t, counters, stack, grammar)]
        assert following
        eager = [t for t in following if (library.tokens[t].arity == 0) == leaves_first]
        program.append(int(rng.choice(eager if eager and rng.random() < 0.7 else following)))
        push(program[-1], counters, stack, grammar)
    assert meets(library, constraints, program, n_used)


def parents_and_siblings(library, tokens):
    """Names of parent and left sibling of each node, in the order of the tokens, from the tree."""
    result = []

    def visit(tree, parent, sibling):
        result.append((parent, sibling))
        left = None
        for child in tree[1]:
            visit(child, tree[0], left)
            left = child[0]

    visit(parse(library, tokens), None, None)
    return result


def test_walk_tells_parent_and_sibling_of_the_tree():
    constraints = Constraints(1, 5)
    grammar = constraints.grammar(SMALL)
    programs = [p for p in every_program(SMALL, 5) if meets(SMALL, constraints, p, 2)]
    deep = ("add", "exp", "add", "x1", "x2", "add", "sin", "x2", "log", "x1")
    programs.append([SMALL.index[name] for name in deep])
    tokens, lengths = as_arrays(programs, 12)
    tokens[np.arange(12) >= lengths[:, None]] = 1  # what stands after the end is not looked at
    grammar = Constraints(1, 12).grammar(SMALL)
    parents, siblings, logits = walk(tokens, lengths, grammar)
    names = [token.name for token in SMALL.tokens] + [None]
    for b, program in enumerate(programs):
        walked = [(names[p], names[s]) for p, s in zip(parents[b], siblings[b])]
        n = len(program)
        assert walked == parents_and_siblings(SMALL, program) + [(None, None)] * (parents.shape[1] - n)
        assert (logits[b, np.arange(n), list(program)] == 0).all()
        assert (logits[b, n:] == 0).all()


def test_walk_masks_what_no_valid_program_goes_on_with():
    constraints = Constraints(2, 5, max_constants=1)
    valid = [p for p in every_program(SMALL, 5) if meets(SMALL, constraints, p, 1)]
    prefixes = {p[:i] for p in valid for i in range(1, len(p) + 1)}
    tokens, lengths = as_arrays(valid, 5)
    logits = walk(tokens, lengths, constraints.grammar(SMALL, 1))[2]
    for b, program in enumerate(valid):
        for i in range(len(program)):
            open_tokens = [t for t in range(len(SMALL)) if (*program[:i], t) in prefixes]
            assert np.flatnonzero(logits[b, i] == 0).tolist() == open_tokens
            assert np.isneginf(np.delete(logits[b, i], open_tokens)).all()


@pytest.mark.parametrize(("loc", "scale"), [(4.0, 2.0), (10.0, 5.0), (2.0, 0.5)])
def test_soft_length_prior_is_gaussian_on_either_side_of_its_centre(loc, scale):
    library = LIBRARIES["koza"]
    grammar = Constraints(1, 20, length_loc=loc, length_scale=scale).grammar(library)
    x, add, sin = (library.index[name] for name in ("x1", "add", "sin"))
    program = [add, x, add, sin, x, add, x, add, x, x]
    logits = walk(np.array([program]), np.array([len(program)]), grammar)[2][0]
    n_open = 1
    for i, token in enumerate(program):
        penalty = -((i - loc) ** 2) / (2 * scale**2)
        ends = n_open == 1
        assert logits[i, x] == pytest.approx(penalty if i < loc and ends else 0.0, rel=1e-6)
        assert logits[i, add] == pytest.approx(penalty if i > loc else 0.0, rel=1e-6)
        n_open += library.tokens[token].arity - 1


def test_a_width_of_zero_is_no_length_prior():
    library = LIBRARIES["koza"]
    grammar = Constraints(1, 20, length_loc=5.0).grammar(library)
    counters = new_tree_state(1, 20).counters[0]
    assert [length_logit(t, counters, grammar) for t in range(len(library))] == [0.0] * len(library)


@pytest.mark.parametrize(
    "limits",
    [
        {"min_length": 0},
        {"min_length": 5, "max_length": 5},
        {"max_constants": -1},
        {"length_scale": -1.0},
    ],
)
def test_impossible_limits_are_refused(limits):
    with pytest.raises(ValueError, match=next(iter(limits))):
        Constraints(**limits)


@pytest.mark.parametrize("n_variables", [0, 3])
def test_a_table_for_variables_the_library_lacks_is_refused(n_variables):
    with pytest.raises(ValueError, match="n_variables"):
        Constraints().grammar(SMALL, n_variables)
