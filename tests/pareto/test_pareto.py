"""The Pareto archive of a search, the front of a fit, and the rules that choose from it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgsr.constants.uncertainty import Uncertainty
from dgsr.data.dataset import DataSet
from dgsr.expressions import Expression, get_library
from dgsr.expressions.formulas.description_length import description_length
from dgsr.expressions.programs.constraints import Constraints
from dgsr.kernels.random import new_state
from dgsr.pareto import SELECTIONS, Candidate, ParetoArchive, ParetoFront
from dgsr.pareto.judging import are_supported, length_on
from dgsr.search.evolution import random_population

pytestmark = pytest.mark.search

X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
Y = X[:, 0] * np.exp(-X[:, 1]) + 0.05 * np.sin(7.0 * X[:, 0])


def programs_of(population):
    return [tuple(row[:length]) for row, length in zip(population.tokens, population.lengths)]


def draw(n, seed=0):
    """Random programs of the library koza."""
    library = get_library("koza", 2)
    return random_population(n, library, Constraints(max_length=12).grammar(library), new_state(seed))


# --- the archive and the front --------------------------------------------------------------------


losses = st.floats(1e-3, 1e3) | st.sampled_from([1.0, np.inf])


def undominated(bits, nmse):
    """Length and NMSE of every program on the front, by comparing each with all others."""
    pairs = list(zip(bits, nmse))
    return sorted(
        {
            (b, loss)
            for b, loss in pairs
            if np.isfinite(loss)
            and all(loss < (1 - 1e-6) * other for shorter, other in pairs if shorter < b)
            and loss == nmse[bits == b].min()
        }
    )


def lengths_of(population):
    return np.array([description_length(population[i]) for i in range(len(population))])


@settings(max_examples=100, deadline=None)
@given(st.lists(losses, min_size=1, max_size=40), st.integers(0, 20), st.integers(1, 4))
def test_the_archive_and_its_front_are_what_comparing_all_gives(nmse, seed, n_updates):
    population, nmse = draw(len(nmse), seed), np.array(nmse)
    archive = ParetoArchive(population.library, 12, 0)
    for part in np.array_split(np.arange(len(nmse)), n_updates):
        archive.update(population[part], nmse[part])
    places = lengths_of(population).astype(np.int64)
    assert archive.best_nmse() == nmse.min()
    for place in set(places):
        assert archive.nmse[place] == nmse[places == place].min()

    front = archive.front()
    assert list(zip(front, archive.nmse[front])) == undominated(places, nmse)
    np.testing.assert_array_equal(lengths_of(archive.population()).astype(np.int64), front)


def population_of(*texts):
    """Programs of the library koza, as written."""
    library = get_library("koza", 2)
    population = draw(len(texts))
    for i, text in enumerate(texts):
        tokens = Expression.from_text(text, library).tokens
        population.tokens[i], population.lengths[i] = 0, len(tokens)
        population.tokens[i, : len(tokens)] = tokens
    return population


def test_the_same_formula_written_longer_is_not_on_the_front():
    population = population_of("x1", "x1 + x2", "x1 + x2 + x2 - x2")
    archive = ParetoArchive(population.library, 12, 0)
    archive.update(population, np.array([1.0, 0.5, 0.5 * (1 - 1e-12)]))
    assert programs_of(archive.population()) == programs_of(population[:2])


def test_formulas_worse_than_the_mean_are_on_the_front_only_if_all_are():
    data, library = DataSet.from_arrays(X, X[:, 0]), get_library("koza-const", 2)
    texts = ["x2*x2", "x2 + 5.5", "x1 + 0.25", "x1"]
    expressions = [Expression.from_text(text, library) for text in texts]
    worse, all_of_them = (
        ParetoFront.from_expressions(found, data) for found in (expressions[:2], expressions)
    )
    assert [candidate.expression.text for candidate in worse] == ["x2**2"]
    assert worse[0].loss > 1.0
    assert [candidate.expression.text for candidate in all_of_them] == ["x1"]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 30), st.integers(0, 99))
def test_a_front_of_expressions_is_what_comparing_all_gives(n, seed):
    population = draw(n, seed)
    data = DataSet.from_arrays(X, Y, np.random.default_rng(seed).uniform(0.0, 2.0, len(Y)))
    nmse = population.nmse(data)
    front = ParetoFront.from_expressions([population[i] for i in range(n)], data, ["a", "b"])
    lengths = np.array([length_on(population[i], data) for i in range(n)])
    supported = are_supported([population[i] for i in range(n)], nmse, lengths, data, 0.0)
    is_no_worse_than_the_mean = supported & (nmse <= 1.0 + 1e-6)
    kept = is_no_worse_than_the_mean if is_no_worse_than_the_mean.any() else supported
    expected = undominated(lengths[kept], nmse[kept])
    assert [(candidate.description_length, candidate.loss) for candidate in front] == expected
    for candidate in front:
        assert candidate.expression.feature_names == ("a", "b")
        at = [i for i in range(n) if programs_of(population)[i] == tuple(candidate.expression.tokens)]
        assert nmse[at[0]] == candidate.loss


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 30), st.integers(0, 99))
def test_no_formula_of_a_front_predicts_rows_left_out_worse_than_a_shorter_one(n, seed):
    population, data, rng = draw(n, seed), DataSet.from_arrays(X, Y), np.random.default_rng(seed)
    left_out = population.nmse(data) * rng.uniform(1.0, 3.0, n)
    number = {programs_of(population)[i]: i for i in range(n)}

    def error_of(expression):
        return left_out[number[tuple(expression.tokens)]]

    def assess(expression):
        return Uncertainty(0.1, np.zeros((0, 0)), np.zeros(0), error_of(expression))

    front = ParetoFront.from_expressions([population[i] for i in range(n)], data, assess=assess)
    assert (np.diff([candidate.leave_one_out for candidate in front]) < 0.0).all()
    unknown = ParetoFront.from_expressions(
        [population[i] for i in range(n)], data, assess=lambda expression: None
    )
    # What only the loss says is better is left off, and nothing that is better by both is missed.
    for candidate in unknown:
        shorter = [c for c in front if c.description_length <= candidate.description_length]
        errors = [error_of(c.expression) for c in (*shorter, candidate)]
        assert min(errors[:-1]) <= errors[-1]


def test_a_front_of_nothing_or_nothing_finite_is_empty():
    data = DataSet.from_arrays(X, Y)
    population = population_of("log(x1 - x1)", "x1/(x2 - x2)")
    assert len(ParetoFront.from_expressions([], data)) == 0
    assert len(ParetoFront.from_expressions([population[0], population[1]], data)) == 0


def test_nothing_longer_than_an_exact_program_is_on_the_front():
    library = get_library("koza", 2)
    archive = ParetoArchive(library, 9, 0, tolerance=1e-20)
    archive.nmse[[1, 3, 5, 7]] = 0.5, 1e-21, 1e-25, 1e-30
    np.testing.assert_array_equal(archive.front(), [1, 3])


# --- choosing from the front ----------------------------------------------------------------------


def front_of(*pairs):
    expression = Expression.from_text("x1", get_library("koza", 1))
    candidates = [Candidate(complexity, loss, expression) for complexity, loss in pairs]
    return ParetoFront(candidates, n_samples=40, tolerance=1e-16)


FRONTS = {
    "one": ([(1, 0.5)], 0, 0),
    "steepest of the good": ([(1, 1.0), (3, 0.1), (9, 0.09), (11, 0.085)], 1, 3),
    "steep but bad": ([(1, 1.0), (2, 0.2), (9, 0.1), (10, 0.099)], 2, 3),
    "exact": ([(1, 1.0), (5, 1e-30), (9, 1e-32)], 1, 1),
    "exactly zero": ([(1, 1.0), (5, 0.0)], 1, 1),
    "equal slopes": ([(1, 1.0), (2, 0.9), (3, 0.81)], 1, 2),
}


@pytest.mark.parametrize(("pairs", "score", "accuracy"), FRONTS.values(), ids=FRONTS)
def test_score_and_accuracy_choose(pairs, score, accuracy):
    assert front_of(*pairs).select("score") == score
    assert front_of(*pairs).select("accuracy") == accuracy


@pytest.mark.parametrize("selection", SELECTIONS)
def test_every_rule_takes_the_simplest_exact_fit(selection):
    texts = ("x1", 0.5), ("2*x1", 1e-17), ("2*x1 + 3.14159", 1e-30)
    held_out = np.array([0.5, 0.4, 0.3])
    assert weighed(*texts, n_samples=40, tolerance=1e-16, held_out=held_out).select(selection) == 1
    assert weighed(*texts, n_samples=40, tolerance=1e-20, held_out=held_out).select(selection) == 2


def test_a_rule_that_is_unknown_or_has_no_rows_is_refused():
    with pytest.raises(ValueError, match="selection='aic' is unknown; choose from mdl, "):
        front_of((1, 0.5)).select("aic")
    with pytest.raises(ValueError, match="No rows were held out"):
        front_of((1, 0.5)).select("holdout")


def test_a_front_without_formulas_has_none_for_rows_held_out():
    rows = DataSet.from_arrays(X - 1.0, Y)
    undefined = Expression.from_text("log(x1)", get_library("koza", 2))
    assert len(ParetoFront.from_expressions([undefined], rows, held_out=rows)) == 0


def test_rows_held_out_choose_by_their_losses():
    front = weighed(("x1", 0.5), ("2*x1", 0.4), ("2*x1 + 3", 0.3), held_out=np.array([0.5, 0.1, 0.2]))
    assert front.select("holdout") == 1


def weighed(*pairs, n_samples=10, tolerance=1e-16, held_out=None):
    """A front of formulas with constants; the library has 10 tokens."""
    library = get_library("koza-const", 1)
    expressions = [Expression.from_text(text, library) for text, _ in pairs]
    candidates = [Candidate(e.complexity, loss, e) for e, (_, loss) in zip(expressions, pairs, strict=True)]
    return ParetoFront(candidates, n_samples, tolerance, held_out)


# How many times lower the loss must be at 10 rows for the constant to pay: 10/2 log2(ratio) = bits.
@pytest.mark.parametrize("text", ["2*x1", "3.14159*x1"])
def test_the_shortest_description_wins(text):
    short, long = weighed(("x1", 1.0), (text, 1.0))
    ratio = 2.0 ** ((long.description_length - short.description_length) / 5)
    assert weighed(("x1", 0.1 * ratio * 0.99), (text, 0.1)).select("mdl") == 0
    assert weighed(("x1", 0.1 * ratio * 1.01), (text, 0.1)).select("mdl") == 1
    # Of twice as many rows half as much per row is enough.
    assert weighed(("x1", 0.1 * np.sqrt(ratio) * 1.01), (text, 0.1), n_samples=20).select("mdl") == 1


def test_bic_weighs_the_number_of_constants_and_nothing_else():
    ratio = 100 ** (1 / 100)  # n log(ratio) = log(n)
    for text in ("2*x1", "3.14159*x1", "sin(sin(2*x1))"):
        assert weighed(("x1", 0.1 * ratio * 0.999), (text, 0.1), n_samples=100).select("bic") == 0
        assert weighed(("x1", 0.1 * ratio * 1.001), (text, 0.1), n_samples=100).select("bic") == 1
    assert weighed(("x1", 0.1), ("sin(sin(x1))", 0.0999), n_samples=100).select("bic") == 1
    two = weighed(("x1", 0.1 * ratio**2 * 0.999), ("2*x1 + 0.1", 0.1), n_samples=100)
    assert two.select("bic") == 0


def test_a_front_is_a_sequence_that_shows_as_a_table():
    front = front_of((1, 1.0), (3, 0.25))
    assert [candidate.loss for candidate in front] == [1.0, 0.25]
    assert front[-1].complexity == 3
    assert isinstance(front[:1], ParetoFront)
    assert len(front[:1]) == 1
    header, first, second = repr(front).splitlines()
    assert header.split() == ["complexity", "bits", "loss", "leave-one-out", "formula"]
    bits = f"{front[0].description_length:.1f}"
    assert (first.split(), second.split()) == (
        ["0", "1", bits, "1", "nan", "x1"],
        ["1", "3", bits, "0.25", "nan", "x1"],
    )
    frame = front.to_frame()
    numbers = ["complexity", "description_length", "loss", "leave_one_out"]
    assert list(frame.columns) == [*numbers, "standard_errors", "formula"]
    assert frame["loss"].tolist() == [1.0, 0.25]


def test_numbers_that_columns_are_measured_from_do_not_count_as_fitted():
    library = get_library("physics", 1)
    t = 1.7e9 + np.arange(50.0)
    data = DataSet.from_arrays(t[:, None], 1e-3 * (t - 1.7e9) ** 2 + np.random.default_rng(0).normal(size=50))
    texts = ("0.001*(x1 - 1700000000)*(x1 - 1700000000)", "0.0011*(x1 - 1700000000)*(x1 - 1700000000) - 0.01")
    front = ParetoFront.from_expressions([Expression.from_text(text, library) for text in texts], data)
    losses = np.array([each.loss for each in front])
    expected = 50 * np.log(losses) + np.log(50) * np.arange(1, 1 + len(front))
    assert front.select("bic") == np.argmin(expected)
    assert [int(np.count_nonzero(each.standard_errors)) for each in front] == [*range(1, 1 + len(front))]


def test_the_chosen_candidate_is_marked_in_text_latex_and_html_and_in_slices():
    front = front_of((1, 1.0), (3, 0.25), (5, 0.2))
    front.chosen = 1
    marked = [line.startswith(">") for line in repr(front).splitlines()[1:]]
    assert marked == [i == front.chosen for i in range(len(front))]
    assert front.to_latex().splitlines()[2 + front.chosen].startswith(r"\hline")
    assert front.to_html().count("bold") == 1
    assert front[front.chosen :].chosen == 0
    assert front[: front.chosen].chosen is None


def test_a_candidate_prints_as_a_line():
    (candidate,) = front_of((3, 0.25))
    line = f"x1  (complexity 3, {candidate.description_length:.1f} bits, loss 0.25, leave-one-out nan)"
    assert repr(candidate) == line
