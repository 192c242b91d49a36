"""Descriptions of a table: how well simple functions of its columns explain simple functions of its target.

Most numbers are correlations and shares of variance. They do not depend on the order of the rows, nor on the
scale and the offset of y where y itself is described; log|y|, 1/y, y^2 and sqrt|y| express the hypothesis
that y has no offset. The descriptions of a column do not depend on the order of the other columns.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from dgsr.generator.guide.functions import (
    FUNCTIONS,
    ORDERED_PAIRS,
    SYMMETRIC_PAIRS,
    TARGETS,
    exp,
    functions_of,
    log,
    pairs_of,
    standardised,
    targets_of,
)

# Largest absolute logit of a correlation.
_LARGEST_LOGIT = 6.0
# Ridge of the regressions, as a share of the variance of a standardised column.
_RIDGE = 1.1e-5

#: Most columns of a table that are described; the number of pairs of columns grows with their square.
MOST_COLUMNS = 24

#: Frequencies of the sinusoidal regressors, in periods per range of a column.
FREQUENCIES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
#: Linear regressions: a function of y, and the function of every column that is a regressor.
REGRESSIONS = (
    *(("y", "x"), ("log|y|", "log|x|"), ("log|y|", "x"), ("y", "log|x|"), ("1/y", "x"), ("1/y", "1/x")),
    *(("y^2", "x^2"), ("y", "1/x"), ("y", "x^2")),
)
#: Indices of the regressions whose residuals are described in the same way as targets. So are the residuals
#: of the targets `MATCHED` after a regression on the one function, of a column and of two columns, that
#: explains most of each.
RESIDUALS = (0, 1, 2)
MATCHED = ("y", "log|y|")
#: Quotients that are described in the same way as targets: y or its square, divided by the whole powers of
#: the columns that the regression of log|y| on log|x| suggests, and the logarithm of the first quotient.
QUOTIENTS = ("y / powers", "log|y / powers|", "y^2 / powers")
_N_RESIDUALS = len(RESIDUALS) + 2 * len(MATCHED) + len(QUOTIENTS)
# Distance of an exponent from a whole number below which that number replaces it; others are replaced by 0.
_NEAR_WHOLE = 0.15
# Largest absolute value of such a whole number.
_LARGEST_POWER = 4.0
#: Facts about each column and about the whole table.
FACTS = (
    *("negative share", "log10 of the median", "log10 of the span", "span over size", "skewness", "kurtosis"),
    *("share of different values", "is positive"),
)

N_COLUMN = (
    (len(TARGETS) + _N_RESIDUALS) * (2 * len(FUNCTIONS) + 1)
    + 2 * len(FREQUENCIES)
    + 2 * len(REGRESSIONS)
    + 3
    + len(FACTS)
)
N_PAIR = 2 * (len(SYMMETRIC_PAIRS) + len(ORDERED_PAIRS)) * (3 + _N_RESIDUALS)
N_TABLE = 2 * len(REGRESSIONS) + len(FACTS) + 2 * len(TARGETS) + 3


def names() -> dict[str, tuple[str, ...]]:
    """Return the names of the inputs from targets, columns and pairs, in the network's order."""
    return {
        "target of the guide": (
            *(*TARGETS, *(f"{y} without {x}" for y, x in REGRESSIONS)),
            *(*(f"{y} without the best {n}" for n in ("column", "pair") for y in MATCHED), *QUOTIENTS),
        ),
        "column of the guide": (*FUNCTIONS, *(f"wave {frequency}" for frequency in FREQUENCIES), *FACTS),
        "pair of the guide": (*SYMMETRIC_PAIRS, *ORDERED_PAIRS),
    }


class Descriptions(NamedTuple):
    """The descriptions of D tables of C columns each."""

    table: Tensor  # (D, N_TABLE) float32
    columns: Tensor  # (D, C, N_COLUMN) float32
    pairs: Tensor  # (D, C, C, N_PAIR) float32


def _both(correlation: Tensor) -> Tensor:
    """Return correlations r (..., K) and their logits, -log(1 - r^2)/2 with the sign of r: (..., 2 K)."""
    unexplained = (1.0 - correlation.square()).clamp_min(0.0)
    logit = correlation.sign() * (-0.5 * unexplained.log()).clamp_max(_LARGEST_LOGIT)
    return torch.cat([correlation, logit], dim=-1)


class _Regressions(NamedTuple):
    """The REGRESSIONS of D tables."""

    coefficients: Tensor  # (D, C, len(REGRESSIONS)), of standardised functions
    slopes: Tensor  # (D, C): exponents of the columns, from the regression of log|y| on log|x|
    explained: Tensor  # (D, len(REGRESSIONS)): shares of variance
    residuals: Tensor  # (D, len(RESIDUALS), N), standardised


def _regress(targets: Tensor, functions: Tensor, log_x: Tensor, log_y: Tensor) -> _Regressions:
    """Regress functions of y on functions of all columns."""
    n = targets.shape[-1]
    of_y, of_x = zip(*REGRESSIONS, strict=True)
    t = targets[:, [TARGETS.index(name) for name in of_y]].unsqueeze(-1)  # (D, R, N, 1)
    design = functions[:, :, [FUNCTIONS.index(name) for name in of_x]].transpose(1, 2)  # (D, R, C, N)
    gram = design @ design.transpose(-1, -2) / n
    gram = gram + _RIDGE * torch.eye(gram.shape[-1]).to(gram)
    # With the ridge no system is singular, and a test for it would make a GPU wait.
    found, _ = torch.linalg.solve_ex(gram, design @ t / n)  # (D, R, C, 1)
    rest = (t - design.transpose(-1, -2) @ found).squeeze(-1)
    unexplained = rest.square().mean(-1)
    coefficients = found.squeeze(-1).transpose(1, 2)  # (D, C, R)
    left, small = rest[:, RESIDUALS], unexplained[:, RESIDUALS, None] < 1e-9
    spread_y, spread_x = log_y.std(-1, correction=0, keepdim=True), log_x.std(-1, correction=0)
    ratio = spread_y / spread_x.clamp_min(1e-9)  # (D, C)
    slopes = (coefficients[..., 1] * ratio.float()).clamp(-8.0, 8.0)
    explained = (1.0 - unexplained).clamp(0.0, 1.0)
    return _Regressions(coefficients, slopes, explained, standardised(torch.where(small, 0.0, left)))


def _matched(targets: Tensor, *functions: Tensor) -> Tensor:
    """Return the residuals of each of the targets MATCHED after the function (D, F, N) that explains most."""
    t = targets[:, [TARGETS.index(name) for name in MATCHED]]
    n = t.shape[-1]
    correlations = torch.cat([t @ flat.transpose(-1, -2) for flat in functions], dim=-1) / n  # (D, M, F)
    best = correlations.abs().argmax(-1, keepdim=True)
    chosen = torch.cat(functions, dim=1).gather(1, best.expand(-1, -1, n))
    rest = t - (t * chosen).mean(-1, keepdim=True) * chosen
    small = rest.square().mean(-1, keepdim=True) < 1e-9
    return standardised(torch.where(small, 0.0, rest))


def _quotients(x: Tensor, y: Tensor, log_x: Tensor, log_y: Tensor, slopes: Tensor) -> Tensor:
    """Return the QUOTIENTS of y (D, N) and columns (D, C, N): (D, len(QUOTIENTS), N), standardised."""

    def log_quotient(power: int) -> tuple[Tensor, Tensor]:
        exponents = power * slopes.double()
        whole = exponents.round()
        is_near = ((exponents - whole).abs() < _NEAR_WHOLE) & (whole.abs() <= _LARGEST_POWER)
        whole = torch.where(is_near, whole, 0.0).unsqueeze(-1)
        sign = torch.where((whole % 2 != 0) & (x < 0), -1.0, 1.0).prod(1)
        return power * log_y - (whole * log_x).sum(1), sign * y.sign() ** power

    (first, sign), (second, sign_of_second) = log_quotient(1), log_quotient(2)
    return standardised(torch.stack([sign * exp(first), first, sign_of_second * exp(second)], dim=1))


def _smoothness(x: Tensor, targets: Tensor) -> Tensor:
    """Return how smoothly targets (D, T, N) follow each column: 1 minus von Neumann's ratio, (D, C, T).

    It is near 0 where neighbours in the column have unrelated targets, and 1 where they have equal targets.
    """
    ordered_x, order = x.sort(-1)  # (D, C, N)
    shape = (*order.shape[:2], targets.shape[1], order.shape[2])
    ordered = targets.unsqueeze(1).expand(shape).gather(-1, order.unsqueeze(2).expand(shape))
    # Rows with the same value in the column have no order, so each has the mean of their targets.
    totals = functional.pad(ordered.double().cumsum(-1), (1, 0))
    first, last = (
        torch.searchsorted(ordered_x, ordered_x, right=right).unsqueeze(2).expand(shape)
        for right in (False, True)
    )
    means = (totals.gather(-1, last) - totals.gather(-1, first)) / (last - first)
    return 1.0 - 0.5 * means.diff(dim=-1).square().mean(-1).float()


def _facts(values: Tensor) -> Tensor:
    """Return the FACTS about values (..., N): (..., len(FACTS))."""
    low, high = values.amin(-1), values.amax(-1)
    size = values.abs().median(-1).values
    z = standardised(values)
    n = values.shape[-1]
    ordered = values.sort(-1).values
    different = (ordered.diff(dim=-1) != 0).sum(-1) / max(n - 1, 1)
    facts = (
        (values < 0).double().mean(-1),
        size.clamp_min(1e-30).log10() / 5.0,
        (high - low).clamp_min(1e-30).log10() / 5.0,
        ((high - low) / torch.maximum(high.abs(), low.abs()).clamp_min(1e-300)),
        z.pow(3).mean(-1).clamp(-10.0, 10.0) / 3.0,
        z.pow(4).mean(-1).clamp(0.0, 50.0).sqrt() / 3.0,
        different,
        (low > 0).double(),
    )
    return torch.stack([fact.float() for fact in facts], dim=-1)


def _periodic(x: Tensor, targets: Tensor) -> Tensor:
    """Return the shares of variance of targets (D, T, N) that waves in columns (D, C, N) explain.

    They are of shape (D, C, T len(FREQUENCIES)), target by target.
    """
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    place = ((x - low) / (high - low).clamp_min(1e-300)).float()  # (D, C, N), from 0 to 1
    phase = place.unsqueeze(2) * (2.0 * math.pi * place.new_tensor(FREQUENCIES)).unsqueeze(-1)
    sine, cosine = standardised(phase.sin()), standardised(phase.cos())  # (D, C, F, N)
    given = targets.transpose(-1, -2).unsqueeze(1) / x.shape[-1]  # (D, 1, N, T)
    a, b = sine @ given, cosine @ given  # (D, C, F, T)
    c = (sine * cosine).mean(-1, keepdim=True).clamp(-0.999, 0.999)
    shares = (a * a + b * b - 2.0 * a * b * c) / (1.0 - c * c)
    return shares.clamp(0.0, 1.0).transpose(-1, -2).flatten(2)


@torch.no_grad()
def describe(X: Tensor, y: Tensor) -> Descriptions:
    """Return the descriptions of tables X (D, N, C) and y (D, N), float64."""
    x = X.transpose(-1, -2).contiguous()  # (D, C, N)
    n, n_columns = x.shape[-1], x.shape[-2]
    targets, functions = targets_of(y), functions_of(x)
    log_x, log_y = log(x), log(y)
    found = _regress(targets, functions, log_x, log_y)
    pairs = pairs_of(x)
    residuals = torch.cat(
        [
            found.residuals,
            _matched(targets, functions.flatten(1, 2)),
            _matched(targets, pairs.symmetric.flatten(1, 2), pairs.ordered.flatten(1, 3)),
            _quotients(x, y, log_x, log_y, found.slopes),
        ],
        dim=1,
    )
    described = torch.cat([targets, residuals], dim=1)  # (D, T, N)
    correlations = functions.flatten(1, 2) @ described.transpose(-1, -2) / n  # (D, C F, T)
    correlations = correlations.unflatten(1, (n_columns, -1)).flatten(2)  # (D, C, F T)
    waves = _periodic(x, targets[:, :2])
    slopes = torch.stack([found.slopes, found.slopes.sin(), (found.slopes * math.pi * 2.0).cos()], dim=-1)
    of_columns = torch.cat(
        [
            _both(correlations),
            _smoothness(x, described),
            waves,
            found.coefficients.clamp(-4.0, 4.0),
            slopes,
            found.coefficients.abs().clamp_max(4.0).sqrt(),
            _facts(x),
        ],
        dim=-1,
    )
    chosen = torch.cat([targets[:, :3], residuals], dim=1)  # (D, 3 + R, N)
    of_pairs = _both(pairs.correlations(chosen))
    strongest = correlations.unflatten(-1, (len(FUNCTIONS), -1)).abs().amax((1, 2))[:, : len(TARGETS)]
    counts = targets.new_tensor([math.log(n) / 5.0, n_columns / 8.0, 1.0 / n_columns]).expand(len(y), 3)
    of_table = torch.cat([_both(found.explained.sqrt()), _facts(y), _both(strongest), counts], dim=-1)
    # Tables of one row, or of numbers near the largest float, have descriptions that are not finite.
    return Descriptions(*(torch.nan_to_num(part, 0.0, 0.0, 0.0) for part in (of_table, of_columns, of_pairs)))


@torch.no_grad()
def by_strength(X: Tensor, y: Tensor) -> Tensor:
    """Return the columns of a table X (1, N, C), y (1, N), sorted by the correlation of their functions.

    The columns, (C,) int64, begin with the largest absolute correlation with a function of y.
    """
    targets = targets_of(y).transpose(-1, -2).unsqueeze(1)
    parts = X.transpose(-1, -2).split(MOST_COLUMNS, dim=1)
    strength = torch.cat([(functions_of(part) @ targets).abs().amax((2, 3)) for part in parts], dim=1)
    return strength[0].argsort(descending=True, stable=True)
