"""What several files of tests of searches and networks share."""

from __future__ import annotations

import numpy as np

from dgsr.generator.config import GeneratorConfig

X = np.random.default_rng(0).uniform(0.5, 2.0, (40, 2))
Y = X[:, 0] * np.exp(-X[:, 1]) + 0.05 * np.sin(7.0 * X[:, 0])


def tiny_guided_config(max_length):
    """Return the sizes of a generator with a guide that is made and run in no time."""
    return GeneratorConfig(
        encoder_width=16, encoder_heads=2, encoder_layers=1, n_inducing=4, n_latents=2, tree_embedding=4,
        decoder_width=16, decoder_heads=2, decoder_layers=1, max_length=max_length,
        guide_width=16, guide_heads=2, guide_layers=1,
    )  # fmt: skip


def rounds(search, n):
    for _ in range(n):
        search.tell(search.ask())
    return search


def without_seconds(history):
    return [{name: value for name, value in entry.items() if name != "seconds"} for entry in history]


def assert_equal_populations(a, b):
    for name in ("tokens", "lengths", "constants"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
