"""What several files of tests of searches and networks share."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from dgsr import DGSRRegressor
from dgsr.estimator.parameters import grouped
from dgsr.expressions import Constraints, get_library
from dgsr.expressions.trees.user_operators import UserOperator
from dgsr.finders.finder import Problem
from dgsr.finders.validity import Validity
from dgsr.generator.config import GeneratorConfig
from dgsr.generator.generator import Generator
from dgsr.generator.guide.descriptions import describe
from dgsr.pretraining import run as run_module

X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
Y = X[:, 0] * np.exp(-X[:, 1]) + 0.05 * np.sin(7.0 * X[:, 0])


def flat_regressor(library="auto", generator="auto", **settings):
    """Return an estimator with settings that stand by themselves, which its parameters group."""
    return DGSRRegressor(**grouped({"library": library, "generator": generator, **settings}))


def problem_for(data, library, constraints=None):
    """Return the problem that a finder is given in a search of this table, without constraints by default."""
    constraints = constraints or Constraints()
    grammar = constraints.grammar(library, library.n_variables)
    return Problem(data, library, grammar, Validity(constraints, library), 1e-20)


def tiny_guided_config(max_length, **others):
    """Return the sizes of a generator with a guide that is made and run in no time."""
    return GeneratorConfig(
        encoder="descriptions", encoder_width=16, encoder_heads=2, encoder_layers=1, n_latents=1,
        tree_embedding=4, decoder_width=16, decoder_heads=2, decoder_layers=1, max_length=max_length,
        **others,
    )  # fmt: skip


def lively(module, seed=0, scale=0.15):
    """Return the same network with weights as large as training makes them."""
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(scale * torch.randn(parameter.shape, generator=noise))
    return module


def table(seed, n_rows=40, n_columns=3):
    """Return a table of ordinary data, no two of whose numbers are equal."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.2, 3.0, (n_rows, n_columns)) * rng.choice([-1.0, 1.0], (n_rows, n_columns))
    return X, X[:, 0] * np.sin(2.0 * X[:, -1]) + rng.normal(size=n_rows)


def table_with_ties(seed, n_rows=40, n_columns=3):
    """Return a table of whole numbers but 0, few of which are different, and of halves of odd ones."""
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 4, (n_rows, n_columns)) * rng.choice([-1.0, 1.0], (n_rows, n_columns))
    return X, X[:, 0] * X[:, -1] + rng.integers(-1, 2, n_rows) + 0.5


def wide_table(n_columns=100, seed=0):
    """Return a table of many columns, three of which matter: 11, 42 and the last one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, n_columns))
    return X, X[:, 11] + np.exp(X[:, 42]) + 3.0 * np.abs(X[:, -1])


_operator = cache(UserOperator)


def twice(x):
    return 2.0 * x


def with_own(library, name="twice", function=twice, sympy=None, complexity=3, derivative=None):
    """Return the library that `Library.with_operator` returns, its operator compiled once in a process.

    It is compiled where its values are asked for first, which takes a third of a second: no test of what
    becomes of an operator's name has to wait for it.
    """
    operator = _operator(name, function, sympy, complexity, derivative)
    operators = (*library.operators, name)
    return replace(library, operators=operators, user_operators=(*library.user_operators, operator))


def whole_run(tmp_path_factory, run):
    """Return the generator of a training run, and its folder."""
    folder = tmp_path_factory.mktemp("runs") / "mine"
    with pytest.MonkeyPatch.context() as patch:
        measure_few_programs(patch, 10)
        return run(folder), folder


def tensors(*arrays):
    """Return arrays of one table as tensors of a batch of one."""
    return tuple(torch.from_numpy(np.array(array, dtype=np.float64, order="C")[None]) for array in arrays)


def described(X, y):
    """Return the descriptions of one table."""
    return describe(*tensors(X, y))


def measure_few_programs(monkeypatch, n):
    """Have a training measure its generator by at most `n` programs of each equation, and draw no curves."""
    real = run_module.measure

    def measure(generator, held_out, n_programs, n_datasets):
        return real(generator, held_out, min(n_programs, n), n_datasets)

    monkeypatch.setattr(run_module, "measure", measure)
    monkeypatch.setattr(run_module, "to_svg", lambda curves, equations: None)


def log_prob(generator, population, X, y):
    """Return the log-probability of every program given a data set."""
    with torch.inference_mode():
        arguments = population.tokens, population.lengths, generator.grammar(X.shape[1])
        return generator.log_probs(generator.encode_dataset(X, y), *arguments).programs[0].numpy()


def rounds(search, n):
    for _ in range(n):
        search.tell(search.ask())
    return search


def without_seconds(history):
    return [{name: value for name, value in entry.items() if name != "seconds"} for entry in history]


def assert_equal_populations(a, b):
    for name in ("tokens", "lengths", "constants"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def assert_same(one, other):
    """Check that two fits found the same in the same number of evaluations."""
    assert one.expression_ == other.expression_
    assert one.n_evaluations_ == other.n_evaluations_
    assert one.n_examined_ == other.n_examined_
    assert [c.expression for c in one.pareto_front_] == [c.expression for c in other.pareto_front_]
    assert [c.loss for c in one.pareto_front_] == [c.loss for c in other.pareto_front_]
    assert without_seconds(one.history_) == without_seconds(other.history_)


def tiny_generator(library="physics", n_variables=2, max_length=12, **config):
    """Return an untrained generator of the paper that is made and run in no time."""
    config = GeneratorConfig(
        encoder_width=16,
        encoder_heads=2,
        encoder_layers=1,
        n_inducing=4,
        n_latents=2,
        decoder_width=16,
        decoder_heads=2,
        decoder_layers=1,
        tree_embedding=8,
        max_length=max_length,
        **config,
    )
    constraints = Constraints(max_length=max_length)
    return Generator.untrained(get_library(library, n_variables), config, constraints, seed=0)
