"""The paper's encoder: a set transformer that turns the rows of a data set into a few latent vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dgsr.generator.config import GeneratorConfig
from dgsr.generator.layers import Attention, InducedSetAttention, feedforward, learned_vectors


def standardise(y: Tensor) -> Tensor:
    """Return `y` with mean 0 and standard deviation 1 along its last axis; zero where it does not vary."""
    centred = y - y.mean(-1, keepdim=True)
    scale = centred.square().mean(-1, keepdim=True).sqrt()
    varies = scale > 1e-12 * y.abs().amax(-1, keepdim=True)  # more than rounding
    return torch.where(varies, centred / torch.where(varies, scale, 1.0), 0.0)


class Encoder(nn.Module):
    """Set transformer over the rows (x_i, y_i) of a data set.

    Reference: Lee et al., ICML 2019; Holt, Qian, van der Schaar, ICLR 2023, appendix "DGSR Instantiation".
    """

    def __init__(self, config: GeneratorConfig, n_variables: int) -> None:
        super().__init__()
        width, multiple = config.encoder_width, config.feedforward
        self.standardised = config.target == "standardised"
        x = [f"x{i + 1}" for i in range(n_variables)]
        names = (*(f"asinh {name}" for name in (*x, "y")), *(f"has {name}" for name in x))
        self.input_names = {"row": names}
        self.embed = nn.Linear(len(names), width)
        self.blocks = nn.ModuleList(
            InducedSetAttention(width, config.encoder_heads, config.n_inducing, multiple)
            for _ in range(config.encoder_layers)
        )
        self.norm = nn.LayerNorm(width)
        self.seeds = learned_vectors(config.n_latents, width)
        self.pool = Attention(width, config.encoder_heads, width)
        self.pool_forward = feedforward(width, multiple)
        self.out_norm = nn.LayerNorm(width)

    def forward(self, X: Tensor, y: Tensor, n_variables: int) -> Tensor:
        """Encode data sets X (D, N, C) and y (D, N), float64, to (D, S, encoder_width).

        C is the number of variables of the library; the data have the first `n_variables` of them.
        """
        if self.standardised:
            y = standardise(y)
        present = torch.zeros(X.shape[-1], dtype=torch.float32, device=X.device)
        present[:n_variables] = 1.0
        numbers = torch.asinh(torch.cat([X, y.unsqueeze(-1)], dim=-1)).float()  # (D, N, C + 1)
        numbers = torch.cat([numbers[..., :-1] * present, numbers[..., -1:]], dim=-1)
        rows = torch.cat([numbers, present.expand(*X.shape)], dim=-1)  # (D, N, 2 C + 1)
        x = self.embed(rows)
        for block in self.blocks:
            x = block(x)
        seeds = self.seeds.expand(len(x), -1, -1)
        latents = seeds + self.pool(seeds, *self.pool.keys_values(self.norm(x)))
        return self.out_norm(latents + self.pool_forward(latents))
