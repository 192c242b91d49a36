"""Other architectures than the package's, for the ablations of `trainings.py`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from dgsr.expressions.programs.constraints import Constraints, Grammar
from dgsr.expressions.programs.library import Library
from dgsr.generator.config import GeneratorConfig
from dgsr.generator.decoder import Decoder
from dgsr.generator.encoder import Encoder
from dgsr.generator.encoding import Encoding
from dgsr.generator.generator import Generator
from dgsr.generator.layers import Attention, feedforward
from dgsr.generator.sampling import Samples
from dgsr.kernels.grammar import LENGTH, new_tree_state
from dgsr.kernels.sampling import Draws, draw_tokens


@dataclass
class Recurrence:
    """State of the LSTM after all positions so far, with which a pass computes the next one alone."""

    hidden: tuple[Tensor, Tensor] | None = None
    length: int = 0


class LSTMDecoder(Decoder):
    """An LSTM over the embeddings of the paper's decoder and the vectors of the data set.

    It has as many layers as the paper's decoder, of the same width. The parent and the sibling of the next
    token are given as their embeddings: the LSTM remembers those of earlier positions itself, for which the
    paper's tree-state encoder has attention.
    """

    def __init__(self, config: GeneratorConfig, n_tokens: int, first_variable: int) -> None:
        super().__init__(replace(config, tree_layers=0, decoder_layers=0), n_tokens, first_variable)
        inputs = config.decoder_width + 2 * config.tree_embedding + config.n_latents * config.encoder_width
        self.lstm = nn.LSTM(inputs, config.decoder_width, config.decoder_layers, batch_first=True)

    def memory(self, latents: Tensor) -> Tensor:
        """Return the vectors of each data set in a row: (D, S encoder_width)."""
        return latents.flatten(1)

    def forward(
        self,
        previous: Tensor,
        parents: Tensor,
        siblings: Tensor,
        memory: Tensor,
        cache: Recurrence | None = None,
    ) -> Tensor:
        """Compute logits (D, K, L, n_tokens); the arguments are those of `Decoder`."""
        cache = cache or Recurrence()
        d, k, length = previous.shape
        at = slice(cache.length, cache.length + length)
        tree = torch.cat([self.parents(parents), self.siblings(siblings)], dim=-1)
        inputs = (
            self.tokens(previous) + self.positions.weight[at],
            tree + self.tree_positions.weight[at],
            memory[:, None, None].expand(-1, k, length, -1),
        )
        x, cache.hidden = self.lstm(torch.cat(inputs, dim=-1).flatten(0, 1), cache.hidden)
        cache.length += length
        return self.out(self.norm(x)).view(d, k, length, -1)


class LSTMGenerator(Generator):
    """The paper's encoder with an LSTM as decoder."""

    def __init__(self, library: Library, config: GeneratorConfig, constraints: Constraints) -> None:
        super().__init__(library, config, constraints)
        self.decoder = LSTMDecoder(config, len(library), library.first_variable)

    @torch.inference_mode()
    def sample_encoded(self, encoding: Encoding, n: int, grammar: Grammar, state: np.ndarray) -> Samples:
        """Draw `n` programs for each encoded data set, a token of all of them at a time."""
        n_programs, n_tokens = len(encoding) * n, self.decoder.n_tokens
        tokens = np.zeros((n_programs, grammar.max_length), dtype=np.int64)
        draws = Draws(new_tree_state(n_programs, grammar.max_length), tokens, np.zeros(n_programs))
        inputs = np.full((3, n_programs), n_tokens)  # previous token, parent, sibling; at first none
        finished = np.zeros(n_programs, dtype=np.bool_)
        memory, cache = self.decoder.memory(encoding.latents), Recurrence()
        while not finished.all():
            previous, parents, siblings = torch.from_numpy(inputs).view(3, len(encoding), n, 1)
            logits = self.decoder(previous, parents, siblings, memory, cache).view(n_programs, n_tokens)
            at = cache.length - 1
            draw_tokens(logits.numpy(), np.arange(n_programs), at, draws, grammar, state, inputs, finished)
        return Samples(tokens, draws.tree.counters[:, LENGTH].copy(), draws.log_probs)


class RowPositions(nn.Module):
    """Add a learned vector to every row, by its place in the table."""

    def __init__(self, n_rows: int, width: int) -> None:
        super().__init__()
        self.vectors = nn.Parameter(nn.init.normal_(torch.empty(n_rows, width), std=0.1))

    def forward(self, x: Tensor) -> Tensor:
        """Map x (D, N, width) to the same shape."""
        return x + self.vectors[: x.shape[1]]


class SelfAttention(nn.Module):
    """A layer of a plain transformer: every row attends to all rows."""

    def __init__(self, width: int, heads: int, multiple: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads, width)
        self.feedforward = feedforward(width, multiple)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (D, N, width) to the same shape."""
        normed = self.norm(x)
        x = x + self.attention(normed, *self.attention.keys_values(normed))
        return x + self.feedforward(x)


class PlainEncoder(Encoder):
    """A plain transformer over the rows and their places; the pooling is the set transformer's."""

    def __init__(self, config: GeneratorConfig, n_variables: int) -> None:
        super().__init__(config, n_variables)
        width, heads = config.encoder_width, config.encoder_heads
        layers = (SelfAttention(width, heads, config.feedforward) for _ in range(config.encoder_layers))
        self.blocks = nn.ModuleList([RowPositions(config.max_rows, width), *layers])


class PlainGenerator(Generator):
    """A plain transformer as encoder with the paper's decoder."""

    def __init__(self, library: Library, config: GeneratorConfig, constraints: Constraints) -> None:
        super().__init__(library, config, constraints)
        self.encoder = PlainEncoder(config, library.n_variables)
