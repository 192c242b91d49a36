"""Simple functions of a target, of columns and of pairs of columns, by which tables are described."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

# Largest standard deviation, relative to the largest value, at which values of each precision are equal.
_ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-5}

#: Names of the functions of y; below, of the functions of one column x and of two columns x and z.
TARGETS = ("y", "log|y|", "1/y", "y^2", "sqrt|y|", "rank y")
FUNCTIONS = (
    *("x", "x^2", "x^3", "1/x", "1/x^2", "sqrt|x|", "log|x|", "exp x", "exp -x", "sin x", "cos x"),
    *("tanh x", "|x|", "exp -x^2", "x^4", "rank x"),
)
SYMMETRIC_PAIRS = (
    *("x z", "x + z", "x - z", "x^2 + z^2", "log|x + z|", "log|x - z|", "log(x^2 + z^2)", "1/(x + z)"),
    *("1/(x - z)", "sqrt(x^2 + z^2)", "exp(x z)", "sin(x z)", "cos(x z)", "sin(x - z)"),
)
#: The symmetric pairs whose sign changes when the two columns are exchanged.
ODD_PAIRS = ("x - z", "1/(x - z)", "sin(x - z)")
ORDERED_PAIRS = (
    *("x/z", "x^2 z", "x^2/z", "x/z^2", "exp(x/z)", "x sin z", "x cos z", "x exp z", "x exp -z", "x log|z|"),
)


def standardised(values: Tensor) -> Tensor:
    """Return values (..., N) with mean 0 and mean square 1, float32.

    Values that are not finite count as 0. Where values do not vary, the result is 0.
    """
    values = torch.nan_to_num(values, 0.0, 0.0, 0.0)
    values = values / values.abs().amax(-1, keepdim=True).clamp_min(torch.finfo(values.dtype).tiny)
    centred = (values - values.mean(-1, keepdim=True)).float()
    scale = torch.linalg.vector_norm(centred, dim=-1, keepdim=True) / math.sqrt(values.shape[-1])
    rounding = _ROUNDING[values.dtype]
    return centred * torch.where(scale > rounding, 1.0 / scale.clamp_min(rounding), 0.0)


def _ranks(values: Tensor) -> Tensor:
    """Return twice the ranks of values (..., N); equal values share the mean of their ranks."""
    values = values.contiguous()  # torch warns for other layouts
    ordered = values.sort(-1).values
    first, last = (torch.searchsorted(ordered, values, right=right) for right in (False, True))
    return (first + last).to(values)


def exp(values: Tensor) -> Tensor:
    """Return e**values, with values clipped to the range from -60 to 60."""
    return values.clamp(-60.0, 60.0).exp()


def log(values: Tensor) -> Tensor:
    """Return log|values| of values (..., N), where each 0 is replaced by the smallest other |value|."""
    sizes = values.abs()
    sizes = torch.where(sizes == 0.0, math.inf, sizes)
    least = sizes.amin(-1, keepdim=True)
    return torch.where(sizes.isinf(), torch.where(least.isinf(), 1.0, least), sizes).log()


def _inverse(values: Tensor) -> Tensor:
    return 1.0 / torch.where(values == 0.0, math.nan, values)


def functions_of(x: Tensor) -> Tensor:
    """Return the FUNCTIONS of columns (D, C, N): (D, C, len(FUNCTIONS), N), standardised."""
    x2, inverse = x * x, _inverse(x)
    values = (
        *(x, x2, x2 * x, inverse, inverse * inverse, x.abs().sqrt(), log(x), exp(x), exp(-x)),
        *(x.sin(), x.cos(), x.tanh(), x.abs(), exp(-x2), x2 * x2, _ranks(x)),
    )
    return standardised(torch.stack(values, dim=2))


def _symmetric_pairs_of(a: Tensor, b: Tensor) -> Tensor:
    """Return the SYMMETRIC_PAIRS of columns (D, P, N): (D, P, len(SYMMETRIC_PAIRS), N), standardised."""
    product, total, difference, squares = a * b, a + b, a - b, a * a + b * b
    values = (
        *(product, total, difference, squares, log(total), log(difference), log(squares)),
        *(_inverse(total), _inverse(difference), squares.sqrt(), exp(product), product.sin()),
        *(product.cos(), difference.sin()),
    )
    return standardised(torch.stack(values, dim=2))


def _ordered_pairs_of(x: Tensor) -> Tensor:
    """Return the ORDERED_PAIRS of every two columns of (D, C, N): (D, C, C, len(ORDERED_PAIRS), N)."""
    a, b, inverse = x.unsqueeze(2), x.unsqueeze(1), _inverse(x).unsqueeze(1)
    exp_b, log_b = exp(x).unsqueeze(1), log(x).unsqueeze(1)
    quotient = a * inverse
    values = (
        *(quotient, a * a * b, a * quotient, quotient * inverse, exp(quotient)),
        *(a * b.sin(), a * b.cos(), a * exp_b, a / exp_b, a * log_b),
    )
    return standardised(torch.stack(values, dim=3))


class Pairs(NamedTuple):
    """The functions of two columns, standardised."""

    symmetric: Tensor  # (D, P, len(SYMMETRIC_PAIRS), N), of the P pairs of columns with i <= j
    ordered: Tensor  # (D, C, C, len(ORDERED_PAIRS), N)

    def correlations(self, targets: Tensor) -> Tensor:
        """Return the correlations with targets (D, T, N): (D, C, C, K)."""
        n_columns, n = self.ordered.shape[1], self.ordered.shape[-1]
        given = targets.transpose(-1, -2) / n
        ordered = (self.ordered.flatten(1, 3) @ given).unflatten(1, (n_columns, n_columns, -1)).flatten(3)
        symmetric = (self.symmetric.flatten(1, 2) @ given).unflatten(1, (self.symmetric.shape[1], -1))
        sign = targets.new_tensor([-1.0 if name in ODD_PAIRS else 1.0 for name in SYMMETRIC_PAIRS])
        i, j = torch.triu_indices(n_columns, n_columns, device=targets.device)
        both = targets.new_empty(len(targets), n_columns, n_columns, symmetric.shape[2:].numel())
        both[:, j, i] = (symmetric * sign[:, None]).flatten(2)
        both[:, i, j] = symmetric.flatten(2)
        return torch.cat([both, ordered], dim=-1)


def pairs_of(x: Tensor) -> Pairs:
    """Return the functions of every two columns of (D, C, N), computed in float32.

    Columns of extreme size are divided by their largest |value|.
    """
    size = x.abs().amax(-1, keepdim=True)
    far = (size < 1e-12) | (size > 1e12)
    x = torch.where(far, x / size.clamp_min(1e-300), x).float()
    i, j = torch.triu_indices(x.shape[1], x.shape[1], device=x.device)
    return Pairs(_symmetric_pairs_of(x[:, i], x[:, j]), _ordered_pairs_of(x))


def targets_of(y: Tensor) -> Tensor:
    """Return the TARGETS of y (D, N): (D, len(TARGETS), N), standardised."""
    values = (y, log(y), _inverse(y), y * y, y.abs().sqrt(), _ranks(y))
    return standardised(torch.stack(values, dim=1))
