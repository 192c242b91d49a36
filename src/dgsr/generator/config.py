"""The sizes of a generator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

#: Version of the network's inputs: their names and order, which
#: `dgsr.generator.generator.Generator.input_names` returns, the way each is computed, and the order of the
#: tokens of a program. Weights of another version are refused. A change of the log-probabilities of the
#: shipped weights (tests/generator/test_pretrained.py holds them) makes a new version and needs new weights.
INPUT_LAYOUT = 1

ENCODERS = ("rows", "descriptions")
TARGETS = ("raw", "standardised")


def least_size(name: str) -> int:
    """Return the smallest valid value of a size: 0 for numbers of layers and 1 for all others."""
    return 0 if name.endswith("_layers") else 1


@dataclass(frozen=True)
class GeneratorConfig:
    """Every size of the conditional generator p_theta(f|D); ValueError for sizes that do not go together."""

    # "rows" is the paper's set transformer over the rows, with a fixed place for every variable.
    # "descriptions" reads how well simple functions of the columns explain the target. The decoder then
    # scores a variable by the vector of its column, so that one generator serves any number of variables, and
    # a guide for evolution reads the same vectors; see `dgsr.generator.guide`.
    encoder: str = "rows"
    # Whether the encoder "rows" reads y itself ("raw"), or y with mean 0 and standard deviation 1
    # ("standardised"), which suits programs whose scale and offset are fitted.
    target: str = "raw"
    encoder_width: int = 96
    encoder_heads: int = 4
    encoder_layers: int = 3  # blocks of induced set attention, or of attention among the columns
    n_inducing: int = 24  # inducing points of each block of "rows"
    n_latents: int = 8  # vectors that summarise a data set (seeds of the pooling attention)
    max_rows: int = 200  # most rows that the encoder reads; of more it reads a random sample
    tree_embedding: int = 16  # size of the embeddings of parent and of sibling
    tree_heads: int = 1
    tree_layers: int = 0  # with 0 the tree state is the embeddings themselves
    decoder_width: int = 64
    decoder_heads: int = 4
    decoder_layers: int = 3
    feedforward: int = 2  # hidden features of a feed-forward block, as a multiple of its width
    max_length: int = 30  # tokens of the longest program

    def __post_init__(self) -> None:
        if self.encoder not in ENCODERS:
            raise ValueError(f"encoder={self.encoder!r} must be one of {', '.join(ENCODERS)}.")
        if self.target not in TARGETS:
            raise ValueError(f"target={self.target!r} must be one of {', '.join(TARGETS)}.")
        for field in fields(self):
            value, least = getattr(self, field.name), least_size(field.name)
            if field.type == "int" and (not isinstance(value, int) or value < least):
                raise ValueError(f"{field.name}={value!r} must be an integer of at least {least}.")
        if self.encoder == "descriptions" and self.n_latents != 1:
            raise ValueError(f"n_latents={self.n_latents} must be 1 with encoder='descriptions'.")
        for width, heads in (
            (self.encoder_width, self.encoder_heads),
            (2 * self.tree_embedding, self.tree_heads),
            (self.decoder_width, self.decoder_heads),
        ):
            if width % heads:
                raise ValueError(f"A width of {width} must be a multiple of its {heads} heads.")

    def with_max_length(self, max_length: int) -> GeneratorConfig:
        """Return the same sizes for programs of another length."""
        return replace(self, max_length=max_length)


def current_fields(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `GeneratorConfig` in a file, without fields that only older versions had.

    Raises ValueError if the weights are of a network that no longer exists.
    """
    fields = dict(written)
    for name, supported in (("input_encoding", "float"), ("remainders", False)):
        value = fields.pop(name, supported)
        if value != supported:
            raise ValueError(f"{name}={value!r} is no longer supported; pretrain the generator again")
    fields.pop("reader_width", None)
    return fields


_BASE = GeneratorConfig(encoder="descriptions", n_latents=1, encoder_width=128, decoder_width=128)

#: Presets: ``"paper"`` has the paper's sizes (appendix "Benchmark Algorithms"), ``"base"`` has sizes for
#: training on a processor, and ``"large"`` those of the shipped generators, which were trained on a GPU.
CONFIGS = {
    "paper": GeneratorConfig(
        encoder_width=32, encoder_heads=1, n_inducing=64, n_latents=1, tree_layers=3,
        decoder_width=32, decoder_heads=1, decoder_layers=2,
    ),
    "base": _BASE,
    "large": replace(_BASE, encoder_width=256, encoder_heads=8, encoder_layers=4),
}  # fmt: skip
