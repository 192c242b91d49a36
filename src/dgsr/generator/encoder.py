"""The encoder: a data set, in any order of its rows, to a few latent vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dgsr.generator.config import GeneratorConfig
from dgsr.generator.layers import Attention, InducedSetAttention, feedforward

_HALF_MAX = 65504.0


def encode_floats(values: Tensor) -> Tensor:
    """(..., C) numbers to (..., C, 1): the inverse hyperbolic sine, linear near zero, then a logarithm."""
    return torch.asinh(values).unsqueeze(-1).float()


def encode_bits(values: Tensor) -> Tensor:
    """(..., C) numbers to (..., C, 17): `encode_floats` and the 16 bits of IEEE-754 half precision.

    References
    ----------
    Biggio et al., ICML 2021; Holt, Qian, van der Schaar, ICLR 2023, appendix "DGSR Instantiation".
    """
    half = values.clamp(-_HALF_MAX, _HALF_MAX).half().view(torch.int16)
    shifts = torch.arange(16, device=values.device, dtype=torch.int16)
    bits = (half.unsqueeze(-1) >> shifts) & 1
    return torch.cat([encode_floats(values), bits.float()], dim=-1)


class Encoder(nn.Module):
    """Set transformer over the rows (x_i, y_i) of a data set.

    References
    ----------
    Lee et al., ICML 2019; Holt, Qian, van der Schaar, ICLR 2023, appendix "DGSR Instantiation".
    """

    def __init__(self, config: GeneratorConfig, n_variables: int) -> None:
        super().__init__()
        width, multiple = config.encoder_width, config.feedforward
        self.encode_numbers = encode_bits if config.input_encoding == "bits" else encode_floats
        per_number = 17 if config.input_encoding == "bits" else 1
        # One more feature per variable says whether the data have that variable at all.
        self.embed = nn.Linear((n_variables + 1) * per_number + n_variables, width)
        self.blocks = nn.ModuleList(
            InducedSetAttention(width, config.encoder_heads, config.n_inducing, multiple)
            for _ in range(config.encoder_layers)
        )
        self.norm = nn.LayerNorm(width)
        self.seeds = nn.Parameter(torch.randn(1, config.n_latents, width) * width**-0.5)
        self.pool = Attention(width, config.encoder_heads, width)
        self.pool_forward = feedforward(width, multiple)
        self.out_norm = nn.LayerNorm(width)

    def forward(self, X: Tensor, y: Tensor, n_variables: int) -> Tensor:
        """Encode data sets.

        Parameters
        ----------
        X : Tensor of shape (D, N, C), float64
            C is the number of variables the generator knows; columns from `n_variables` on unused.
        y : Tensor of shape (D, N), float64
        n_variables : int

        Returns
        -------
        Tensor of shape (D, S, encoder_width)
        """
        numbers = self.encode_numbers(torch.cat([X, y.unsqueeze(-1)], dim=-1))  # (D, N, C + 1, F)
        present = torch.zeros(X.shape[-1], device=X.device)
        present[:n_variables] = 1.0
        numbers = torch.cat([numbers[..., :-1, :] * present[:, None], numbers[..., -1:, :]], dim=-2)
        rows = torch.cat([numbers.flatten(-2), present.expand(*X.shape)], dim=-1)  # (D, N, (C+1)F + C)
        x = self.embed(rows)
        for block in self.blocks:
            x = block(x)
        seeds = self.seeds.expand(len(x), -1, -1)
        latents = seeds + self.pool(seeds, *self.pool.keys_values(self.norm(x)))
        return self.out_norm(latents + self.pool_forward(latents))
