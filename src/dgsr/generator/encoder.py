"""The encoder: a data set, in any order of its rows, to a few latent vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dgsr.generator.config import GeneratorConfig
from dgsr.generator.layers import Attention, InducedSetAttention, feedforward, learned_vectors

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


def standardise(y: Tensor) -> Tensor:
    """(D, N) targets to mean 0 and standard deviation 1 each; zero where a target does not vary."""
    centred = y - y.mean(-1, keepdim=True)
    scale = centred.square().mean(-1, keepdim=True).sqrt()
    varies = scale > 1e-12 * y.abs().amax(-1, keepdim=True)  # more than rounding
    return torch.where(varies, centred / torch.where(varies, scale, 1.0), 0.0)


def moment_names(n_variables: int) -> tuple[str, ...]:
    """Names of the features `moments` returns, in order."""
    z = [f"z{i + 1}" for i in range(n_variables)]
    return (
        *z,
        *(f"{name} t" for name in z),
        *(f"({name}^2 - 1) t" for name in z),
        *(f"{name} (t^2 - 1)" for name in z),
        *(f"{a} {b} t" for i, a in enumerate(z) for b in z[i + 1 :]),
        *("t", "t^2 - 1", "t^3"),
    )


def row_names(input_encoding: str, n_variables: int) -> tuple[str, ...]:
    """Names of the features of a row that `Encoder` reads, in order; `input_encoding` as in the config."""
    x = [f"x{i + 1}" for i in range(n_variables)]
    parts = ("asinh", *(f"bit {i} of" for i in range(16))) if input_encoding == "bits" else ("asinh",)
    numbers = (f"{part} {name}" for name in (*x, "y") for part in parts)
    more = moment_names(n_variables) if input_encoding == "moments" else ()
    return (*numbers, *(f"has {name}" for name in x), *more)


def moments(X: Tensor, y: Tensor, present: Tensor) -> Tensor:
    """Products of standardised inputs z and target t: their means over the rows are correlations.

    Parameters
    ----------
    X : Tensor of shape (D, N, C)
    y : Tensor of shape (D, N)
    present : Tensor of shape (C,)
        1 for the columns the data have, 0 for the others.

    Returns
    -------
    Tensor of shape (D, N, len(moment_names(C)))
        z, z t, (z**2 - 1) t, z (t**2 - 1), z_i z_j t for i < j, t, t**2 - 1 and t**3, within 10 of 0.

    Notes
    -----
    What a set transformer has to find out first before it reads anything from a data set whose target
    has lost its scale; given, it learns to read within a few hundred batches.
    """
    z = standardise(X.transpose(-1, -2)).transpose(-1, -2).float() * present  # (D, N, C)
    t = standardise(y).unsqueeze(-1).float()  # (D, N, 1)
    i, j = torch.triu_indices(X.shape[-1], X.shape[-1], offset=1, device=X.device)
    products = [z, z * t, (z * z - present) * t, z * (t * t - 1.0), z[..., i] * z[..., j] * t]
    return torch.cat([*products, t, t * t - 1.0, t * t * t], dim=-1).clamp(-10.0, 10.0)


class Encoder(nn.Module):
    """Set transformer over the rows (x_i, y_i) of a data set.

    References
    ----------
    Lee et al., ICML 2019; Holt, Qian, van der Schaar, ICLR 2023, appendix "DGSR Instantiation".
    """

    def __init__(self, config: GeneratorConfig, n_variables: int) -> None:
        super().__init__()
        width, multiple = config.encoder_width, config.feedforward
        self.standardised = config.target == "standardised"
        self.with_moments = config.input_encoding == "moments"
        self.encode_numbers = encode_bits if config.input_encoding == "bits" else encode_floats
        names = row_names(config.input_encoding, n_variables)
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
        if self.standardised:
            y = standardise(y)
        numbers = self.encode_numbers(torch.cat([X, y.unsqueeze(-1)], dim=-1))  # (D, N, C + 1, F)
        present = torch.zeros(X.shape[-1], device=X.device)
        present[:n_variables] = 1.0
        numbers = torch.cat([numbers[..., :-1, :] * present[:, None], numbers[..., -1:, :]], dim=-2)
        rows = torch.cat([numbers.flatten(-2), present.expand(*X.shape)], dim=-1)  # (D, N, (C+1)F + C)
        if self.with_moments:
            rows = torch.cat([rows, moments(X, y, present)], dim=-1)
        x = self.embed(rows)
        for block in self.blocks:
            x = block(x)
        seeds = self.seeds.expand(len(x), -1, -1)
        latents = seeds + self.pool(seeds, *self.pool.keys_values(self.norm(x)))
        return self.out_norm(latents + self.pool_forward(latents))
