"""The encoder of tables: rows are a set, columns are a set but for their names, and any number will do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dgsr.expressions import get_library
from dgsr.expressions.constraints import Constraints
from dgsr.generator.columns import CELL_FEATURES, PAIR_FEATURES, cells, pairs
from dgsr.generator.config import CONFIGS
from dgsr.generator.generator import Generator
from dgsr.kernels.random import new_state

torch.set_num_threads(1)


def tables(n_datasets=3, n_rows=20, n_columns=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_datasets, n_rows, n_columns)) * 10.0 ** rng.uniform(-2, 2, n_columns)
    return torch.from_numpy(X), torch.from_numpy(rng.normal(size=(n_datasets, n_rows)) * 7.0 + 3.0)


@pytest.fixture(scope="module")
def generator():
    return Generator.untrained(get_library("physics", 4), CONFIGS["base"], Constraints(), 0).eval()


@pytest.fixture(scope="module", params=["base", "descriptions"])
def of_any_encoder(request):
    """A generator of each encoder that reads any number of columns."""
    config = replace(CONFIGS[request.param], encoder_width=32)
    return Generator.untrained(get_library("physics", 4), config, Constraints(), 0).eval()


def encoded(generator, X, y, n_columns=4):
    with torch.no_grad():
        return generator.encode(X.numpy(), y.numpy(), n_columns).latents


def test_the_order_of_the_rows_does_not_matter(generator):
    X, y = tables()
    order = torch.randperm(20, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        encoded(generator, X[:, order], y[:, order]), encoded(generator, X, y), atol=1e-4, rtol=1e-3
    )


def test_columns_in_another_order_give_their_vectors_in_that_order(generator):
    """But for the number each column is told."""
    twin = Generator.untrained(generator.library, generator.config, generator.constraints, 0).eval()
    with torch.no_grad():
        twin.encoder.order.weight.zero_()
    X, y = tables()
    order = [2, 0, 3, 1]
    plain, moved = encoded(twin, X, y), encoded(twin, X[..., order], y)
    n = twin.config.n_latents
    torch.testing.assert_close(moved[:, :n], plain[:, :n], atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(moved[:, n:], plain[:, n:][:, order], atol=1e-4, rtol=1e-3)
    assert not torch.allclose(plain[:, n], plain[:, n + 1], atol=1e-2)


def test_like_columns_are_told_apart_by_their_order(generator):
    X, y = tables()
    X[..., 1] = X[..., 0]
    vectors = encoded(generator, X, y)[:, generator.config.n_latents :]
    assert not torch.allclose(vectors[:, 0], vectors[:, 1], atol=1e-3)


def test_columns_the_data_do_not_have_are_not_read(of_any_encoder):
    X, y = tables()
    other = X.clone()
    other[..., 2:] = 99.0
    assert torch.equal(encoded(of_any_encoder, X, y, 2), encoded(of_any_encoder, other, y, 2))
    assert encoded(of_any_encoder, X, y, 2).shape[1] == of_any_encoder.config.n_latents + 2


def test_a_data_set_is_encoded_the_same_beside_others(of_any_encoder):
    X, y = tables()
    together = encoded(of_any_encoder, X, y)
    alone = torch.cat([encoded(of_any_encoder, X[j : j + 1], y[j : j + 1]) for j in range(3)])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_a_standardised_target_has_no_scale(scale):
    config = replace(CONFIGS["base"], target="standardised")
    generator = Generator.untrained(get_library("physics", 4), config, Constraints(), 0).eval()
    X, y = tables()
    torch.testing.assert_close(
        encoded(generator, X, scale * y), encoded(generator, X, y), atol=1e-3, rtol=1e-3
    )


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e8, 1e300])
def test_features_are_finite_whatever_the_scale(scale):
    X, y = tables()
    for a, b in ((scale * X, y), (X, scale * y)):
        features = cells(a, b, True)
        assert features.shape == (3, 4, 20, len(CELL_FEATURES))
        assert torch.isfinite(features).all()
        assert pairs(a, b).shape == (3, 4, 4, len(PAIR_FEATURES))
        assert torch.isfinite(pairs(a, b)).all()


def test_the_first_pair_feature_is_the_correlation_of_a_product_with_the_target():
    X, y = tables(n_datasets=1)
    z = (X[0] - X[0].mean(0)) / X[0].std(0, correction=0)
    t = (y[0] - y[0].mean()) / y[0].std(correction=0)
    expected = (z[:, 1] * z[:, 3] * t).mean()
    assert pairs(X, y)[0, 1, 3, 0].item() == pytest.approx(expected.item(), abs=1e-5)


def test_a_generator_serves_more_columns_than_it_was_made_for(of_any_encoder):
    wide = of_any_encoder.with_variables(7)
    assert of_any_encoder.library.n_variables == 4  # itself unchanged
    X, y = tables(n_columns=7)
    with torch.no_grad():
        encoding = wide.encode(X.numpy(), y.numpy(), 7)
    samples = wide.sample_encoded(encoding, 150, wide.grammar(7), new_state(0))
    used = np.unique(samples.tokens)
    assert wide.library.first_variable + 6 in used
    scored = wide.log_probs(encoding, samples.tokens, samples.lengths, wide.grammar(7)).programs
    np.testing.assert_allclose(scored.detach().numpy().ravel(), samples.log_probs, atol=1e-4)


def test_on_its_own_columns_a_widened_generator_is_the_same(of_any_encoder):
    X, y = tables()
    wide = of_any_encoder.with_variables(9)
    assert torch.equal(encoded(wide, X, y), encoded(of_any_encoder, X, y))
    encoding = of_any_encoder.encode(X.numpy(), y.numpy(), 4).detached()
    one, other = (
        g.sample_encoded(encoding, 50, g.grammar(4), new_state(1)).tokens for g in (of_any_encoder, wide)
    )
    np.testing.assert_array_equal(one, other)


def test_an_encoder_with_places_for_its_variables_is_not_widened():
    narrow = Generator.untrained(get_library("koza", 2), CONFIGS["paper"], Constraints(), 0)
    assert narrow.with_variables(1) is narrow
    with pytest.raises(ValueError, match="knows 2 columns and X has 3"):
        narrow.with_variables(3)


def test_a_variable_is_chosen_by_its_column_and_not_by_its_place(generator):
    """With the columns' order unseen, the probability of x1 in one order is that of x3 in another."""
    twin = Generator.untrained(generator.library, generator.config, generator.constraints, 3).eval()
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
        twin.encoder.order.weight.zero_()
    X, y = tables()
    order = [2, 0, 3, 1]
    first = twin.library.first_variable
    lengths, grammar = np.ones(4, dtype=np.int64), twin.grammar(4)
    tokens = np.zeros((4, 30), dtype=np.int64)
    tokens[:, 0] = first + np.arange(4)
    X, y = X[:1].numpy(), y[:1].numpy()
    with torch.no_grad():
        plain = twin.log_probs(twin.encode(X, y, 4), tokens, lengths, grammar).programs[0]
        moved = twin.log_probs(twin.encode(X[..., order], y, 4), tokens, lengths, grammar).programs[0]
    torch.testing.assert_close(moved, plain[order], atol=1e-4, rtol=1e-3)
    assert plain.std() > 1e-3
