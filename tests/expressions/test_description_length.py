"""The prior over formulas, and how long formulas are by it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgsr.data.population import Population
from dgsr.expressions import Expression, get_library
from dgsr.expressions.formulas.description_length import description_length, prior_weights, structure_bits
from dgsr.expressions.programs.constraints import Constraints
from dgsr.kernels.random import new_state
from dgsr.search.evolution import random_population
from searches import with_own

DIGIT = np.log2(10.0)


def structure_by_hand(program, library):
    """Bits of the tokens, each given its parent, without those of constants' digits."""
    grammar = Constraints().grammar(library)
    weights = prior_weights(grammar, library)
    open_parents, bits = [len(library)], 0.0  # the last row is of the root
    for token in program:
        bits -= np.log2(weights[open_parents.pop(), token])
        open_parents += [token] * library.tokens[token].arity
    assert not open_parents
    return bits


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(["koza", "physics", "koza-const"]), st.integers(1, 6), st.integers(0, 2**31))
def test_the_structure_takes_the_bits_of_every_token_under_its_parent(preset, n_variables, seed):
    library = get_library(preset, n_variables)
    population = random_population(5, library, Constraints().grammar(library), new_state(seed))
    bits = structure_bits(library, population.tokens, population.lengths)
    for i in range(len(population)):
        program = population.tokens[i, : population.lengths[i]]
        n_constants = np.sum(program == library.index.get("const", -1))
        assert bits[i] == pytest.approx(structure_by_hand(program, library) + 7.0 * n_constants)


@pytest.mark.parametrize(("name", "plain"), [("root", "twice"), ("variable", "twice")])
def test_operators_of_ones_own_have_the_same_weights_whatever_their_names(name, plain):
    weights = []
    for own in (name, plain):
        library = with_own(get_library("physics", 2), own)
        weights.append(prior_weights(Constraints().grammar(library), library))
    np.testing.assert_array_equal(*weights)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(["koza", "physics"]), st.integers(0, 2**31))
def test_a_token_takes_its_bits_times_its_complexity_over_its_usual_one(preset, seed):
    usual = get_library(preset, 3)
    library = usual.with_complexities({"sin": 9, "x1": 2, "add": 1})
    assert library.complexities == (("sin", 9), ("x1", 2))
    population = random_population(5, library, Constraints().grammar(library), new_state(seed))
    tokens, lengths = population.tokens, population.lengths
    more = {usual.index["sin"]: 2.0, usual.index["x1"]: 1.0}  # times the usual bits
    for i, bits in enumerate(
        structure_bits(library, tokens, lengths) - structure_bits(usual, tokens, lengths)
    ):
        expected, parents = 0.0, [len(usual)]
        for token in tokens[i, : lengths[i]].tolist():
            parent = parents.pop()
            weight = prior_weights(Constraints().grammar(usual), usual)[parent, token]
            expected -= more.get(token, 0.0) * np.log2(weight)
            parents += [token] * usual.tokens[token].arity
        assert bits == pytest.approx(expected)
    plain = Population(usual, tokens, lengths, population.constants)
    extra = [population[i].complexity - plain[i].complexity for i in range(len(plain))]
    inside = np.arange(tokens.shape[1]) < lengths[:, None]
    counts = [((tokens == usual.index[name]) & inside).sum(axis=1) for name in ("sin", "x1")]
    np.testing.assert_array_equal(extra, 6 * counts[0] + counts[1])


def test_the_shares_under_a_parent_sum_to_one_so_that_no_formula_is_shorter_than_its_probability():
    """Kraft's inequality, which makes it a description length: the formulas of two tokens and one column."""
    library = get_library("koza", 1)
    operators = [op for op in library.operators if library.tokens[library.index[op]].arity == 1]
    lengths = [
        description_length(Expression(library, [library.index[op], library.index["x1"]])) for op in operators
    ]
    lengths.append(description_length(Expression(library, [library.index["x1"]])))
    assert np.sum(2.0 ** -np.array(lengths)) < 1.0


@pytest.mark.parametrize(
    ("number", "n_digits"), [("2", 1), ("-2", 1), ("0.3", 1), ("31.4", 3), ("3.14159", 6), ("314000", 3)]
)
def test_a_number_takes_its_digits(number, n_digits):
    library = get_library("physics", 1)
    text = "x1 + {}*x1**2"
    tokens, constants = Expression.from_text(text.format("7.123456"), library).tokens, [float(number)]
    of_number = description_length(Expression(library, tokens, constants))
    of_one = description_length(Expression(library, tokens, [1.0]))
    assert of_number - of_one == pytest.approx(n_digits * DIGIT)


@pytest.mark.parametrize(
    ("simple", "other"),
    [("x1**1.5", "x1**1.506"), ("x1/3", "0.3412*x1"), ("0.25*x1", "0.26*x1"), ("x1*x2", "x1*tanh(x2)")],
)
def test_what_people_write_is_shorter(simple, other):
    library = get_library("physics", 2)
    lengths = [description_length(Expression.from_text(text, library)) for text in (simple, other)]
    assert lengths[0] < lengths[1]


def bits_of(text):
    return description_length(Expression.from_text(text, get_library("physics", 1)))


def test_a_number_that_a_form_has_twice_is_one_number():
    of_two = bits_of("8*x1**1.7/(42 + x1**1.9)")
    assert of_two - bits_of("8*x1**1.7/(42 + x1**1.7)") == pytest.approx(2.0 + 2 * np.log2(10.0))
    # Numbers of other forms that happen to be equal are two.
    by_chance = bits_of("100 + 0.37*x1 - 100*exp(-0.008*x1)")
    assert by_chance == pytest.approx(bits_of("200 + 0.37*x1 - 100*exp(-0.008*x1)"))


def test_a_form_with_a_1_in_it_has_no_more_numbers():
    assert bits_of("98/(1 + 200*exp(-0.6*x1))") == pytest.approx(bits_of("0.49/(0.005 + exp(-0.6*x1))"))


@pytest.mark.parametrize("form", ["2/x1", "2.5e-10/x1**2", "x1**2", "-exp(-0.3*x1)", "0.3*sin(2*x1 + 0.4)"])
def test_an_offset_of_1_is_a_number_without_digits(form):
    assert bits_of(f"{form} + 1") - bits_of(form) > 2.0 - 1e-9
    assert bits_of(f"{form} + 7") - bits_of(f"{form} + 1") == pytest.approx(np.log2(10.0))
