"""Fits of one program to groups of rows: some constants have a value for each group, the others are shared.

The normal equations of such a fit are blocks, one for each group, with a border for the shared constants.
They are solved by the Schur complement of the blocks, in a time in proportion to the number of rows.

References
----------
Golub and Pereyra, 2003 (separable least squares); Laird and Ware, 1982 (values of groups as random effects).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dgsr.constants.levenberg_marquardt import FIRST_DAMPING, MOST_DAMPING
from dgsr.constants.uncertainty import LEAST_LEFT, STEP, Directions, Uncertainty
from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.expressions.formulas.description_length import BITS_OF_CONSTANT
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.formulas.grouped import NOT_FITTED, GroupedExpression, with_columns_for_constants
from dgsr.expressions.programs.library import Library

# Smallest damping, relative to the diagonal of the normal equations.
_LEAST_DAMPING = 1e-12
# Square of a singular value of a group's derivatives, relative to the largest, below which a direction of
# constants has no effect.
_RANK = 1e-12
# Most dampings of one step.
_MOST_TRIALS = 8
# Share of the squared error; a fit ends when a step lowers the error by less.
_PRECISION = 1e-7


def numbers_of(parts: Sequence[np.ndarray], n_constants: int) -> np.ndarray:
    """Return the number of the part of each constant, (n_constants,) int64, -1 for those in none."""
    numbers = np.full(n_constants, -1)
    for number, part in enumerate(parts):
        numbers[part] = number
    return numbers


class BlockDirections(NamedTuple):
    """The directions in which the constants of a program change its weighted values, group by group."""

    is_own: np.ndarray  # (k,) bool: which constants have a value for each group
    # (n_groups, q, q): that times its transpose is the covariance at fixed shared constants
    inverse: np.ndarray
    along: np.ndarray  # (n_groups, q, s): changes of constants by group with the shared ones
    lost: np.ndarray  # (n_groups, q, q): projectors on the constants by group that the rows leave open
    n_own: int  # number of values by group that the rows determine
    shared: Directions  # of the shared constants, with the others projected out

    @classmethod
    def of(cls, slopes: np.ndarray, is_own: np.ndarray, groups: np.ndarray, n_groups: int) -> BlockDirections:
        """Decompose weighted derivatives (n_rows, k) by constants, of which some are by group, (k,) bool."""
        own, shared = slopes[:, is_own], slopes[:, ~is_own]
        lengths = np.sqrt(_summed(own**2, groups, n_groups))
        lengths[lengths == 0.0] = 1.0
        scaled = own / lengths[groups]
        squares, vectors = np.linalg.eigh(_summed(scaled[:, :, None] * scaled[:, None], groups, n_groups))
        is_seen = squares > _RANK * squares.max(axis=1, keepdims=True, initial=0.0)
        roots = np.sqrt(np.where(is_seen, squares, np.inf))
        inverse = vectors / roots[:, None] / lengths[:, :, None]
        rows = np.einsum("nq,nqr->nr", own, inverse[groups])  # orthonormal within each group
        shares = _summed(rows[:, :, None] * shared[:, None], groups, n_groups)  # (n_groups, q, s)
        shared = shared - np.einsum("nr,nrs->ns", rows, shares[groups])
        lost = np.where(is_seen[:, None], 0.0, vectors) @ vectors.transpose(0, 2, 1)
        lost *= lengths[:, None] / lengths[:, :, None]
        return cls(is_own, inverse, inverse @ shares, lost, int(is_seen.sum()), Directions.of(shared))

    @property
    def n_constants(self) -> int:
        """Number of values of constants that the rows determine."""
        return self.shared.rows.shape[1] + self.n_own

    def covariances(self, noise: float, spread: np.ndarray) -> np.ndarray:
        """Return the covariances of the constants in each group, (n_groups, k, k).

        Constants by group that the rows of a group leave open vary as among the groups, by `spread`, (q, q).
        """
        shared = self.shared.inverse @ self.shared.inverse.T
        found = np.zeros((len(self.inverse), len(self.is_own), len(self.is_own)))
        own, others = np.flatnonzero(self.is_own), np.flatnonzero(~self.is_own)
        both = -self.along @ shared
        found[:, others[:, None], others] = shared
        found[:, own[:, None], others] = both
        found[:, others[:, None], own] = both.transpose(0, 2, 1)
        found[:, own[:, None], own] = self.inverse @ self.inverse.transpose(
            0, 2, 1
        ) - both @ self.along.transpose(0, 2, 1)
        found *= noise**2
        found[:, own[:, None], own] += self.lost @ spread @ self.lost.transpose(0, 2, 1)
        return found


class GroupedProgram:
    """One program and data with groups, to which its constants are fitted.

    Parameters
    ----------
    library : Library
    tokens : ndarray of shape (length,), int64
    constants : ndarray of shape (n_constants,)
        Values of those that are in no part.
    parts : sequence of ndarray
        Indices of the constants that are equal to each other, for each of the k constants that are fitted.
    data : DataSet
        Its `groups` are numbers from 0 to n_groups - 1.
    n_groups : int
        A group may have no rows.
    """

    def __init__(
        self,
        library: Library,
        tokens: np.ndarray,
        constants: np.ndarray,
        parts: Sequence[np.ndarray],
        data: DataSet,
        n_groups: int,
    ) -> None:
        self.data, self.n_groups = data, n_groups
        part_of = numbers_of(parts, len(constants))
        library, tokens, constants = with_columns_for_constants(library, tokens, constants, part_of)
        self._program = Population.of_one(library, tokens, constants[None])
        self._columns = data.columns[: library.n_variables - len(parts)]
        self._root = np.sqrt(data.weights)

    @classmethod
    def of_expression(cls, formula: GroupedExpression, data: DataSet, n_groups: int) -> GroupedProgram:
        """Return the program of a formula, its constants in the order of `ByGroup.parts`."""
        parts = formula.by_group.parts
        return cls(formula.library, formula.tokens, formula.constants, parts, data, n_groups)

    @property
    def has_rows(self) -> np.ndarray:
        """Which groups have rows, (n_groups,)."""
        return np.bincount(self.data.groups, minlength=self.n_groups) > 0

    def _values(self, constants: np.ndarray) -> np.ndarray:
        """Return values by constants (n_times, k, n_rows), of shape (n_times, n_rows)."""
        n_times, k, n_rows = constants.shape
        numbers = constants.transpose(1, 0, 2).reshape(k, -1)
        columns = np.concatenate([np.tile(self._columns, n_times), numbers])
        with np.errstate(all="ignore"):
            return self._program.predict(columns.T)[0].reshape(n_times, n_rows)

    def slopes(self, constants: np.ndarray) -> np.ndarray:
        """Return weighted derivatives by constants (k, n_groups), (n_rows, k), 0 where one is not finite."""
        at, k = constants[:, self.data.groups], len(constants)
        steps = np.where(at == 0.0, STEP, STEP * np.abs(at))
        moved = np.tile(at, (2 * k, 1, 1))
        moved[np.arange(k), np.arange(k)] += steps
        moved[k + np.arange(k), np.arange(k)] -= steps
        values = self._values(moved)
        with np.errstate(all="ignore"):
            slopes = (values[:k] - values[k:]) / (2.0 * steps) * self._root
        return np.where(np.isfinite(slopes), slopes, 0.0).T

    def residuals(self, constants: np.ndarray) -> np.ndarray:
        """Return weighted residuals, prediction minus target, (n_rows,), by constants (k, n_groups)."""
        (values,) = self._values(constants[None, :, self.data.groups])
        with np.errstate(all="ignore"):
            return (values - self.data.y) * self._root

    def nmse(self, residuals: np.ndarray) -> float:
        """Return the NMSE of weighted residuals (n_rows,), inf where one is not finite."""
        with np.errstate(all="ignore"):
            found = float(np.mean(residuals**2) / self.data.variance)
        return found if np.isfinite(found) else np.inf

    def fit(self, constants: np.ndarray, is_own: np.ndarray, n_iterations: int) -> np.ndarray:
        """Return the constants (k, n_groups) after Levenberg-Marquardt steps from given ones.

        Those of `is_own`, (k,) bool, have a value for each group; the others are equal in all groups. Every
        group has a damping of its own, and keeps its step if its error has fallen with the shared constants
        of the step.
        """
        residuals, damping = self.residuals(constants), np.full(self.n_groups, FIRST_DAMPING)
        losses = self._losses(residuals)
        if not np.isfinite(losses).all():
            return constants
        has_shared = not is_own.all()
        for _ in range(n_iterations):
            slopes = self.slopes(constants)
            system = _normal_equations(slopes, residuals, is_own, self.data.groups, self.n_groups)
            before = losses.sum()
            for _ in range(_MOST_TRIALS):
                trial = _moved(constants, system, damping, is_own)
                its_losses = self._losses(self.residuals(trial))
                is_worse = ~(its_losses <= losses)
                if not has_shared:
                    trial[:, is_worse] = constants[:, is_worse]
                damping = np.clip(np.where(is_worse, 10.0, 0.1) * damping, _LEAST_DAMPING, MOST_DAMPING)
                if its_losses.sum() < before or not (has_shared or is_worse.all()):
                    constants, residuals = trial, self.residuals(trial)
                    losses = self._losses(residuals)
                    break
                damping = np.minimum(10.0 * damping, MOST_DAMPING)
            is_trying = is_worse & (damping < MOST_DAMPING)
            if losses.sum() >= (1.0 - _PRECISION) * before and not (is_trying.any() and not has_shared):
                break
        return constants

    def _losses(self, residuals: np.ndarray) -> np.ndarray:
        """Return the sum of squares of each group, (n_groups,), inf where a residual is not finite."""
        with np.errstate(all="ignore"):
            squares = np.where(np.isfinite(residuals), residuals**2, np.inf)
        return np.bincount(self.data.groups, squares, self.n_groups)

    def bits_of_values(self, constants: np.ndarray, is_own: np.ndarray, noise: float) -> float:
        """Return the bits that describe the constants by group, for noise of a standard deviation.

        The values of a constant are a sample of a normal distribution of standard deviation s_j, which is a
        constant, too. With the information A of a group's rows on its values, these take
        log2(det(1 + S A S)) / 2 bits, where S is the diagonal matrix of the s_j.

        References
        ----------
        Laird and Ware, "Random-effects models for longitudinal data", 1982 (the marginal likelihood).
        """
        own = constants[is_own]
        slopes = self.slopes(constants)[:, is_own]
        blocks = _summed(slopes[:, :, None] * slopes[:, None], self.data.groups, self.n_groups)
        spread = own[:, self.has_rows].std(axis=1) / max(noise, np.finfo(np.float64).tiny)
        with np.errstate(all="ignore"):
            logarithms = np.linalg.slogdet(np.eye(len(own)) + spread[:, None] * blocks * spread)[1]
        bits = 0.5 * np.maximum(logarithms, 0.0).sum() / np.log(2.0) + BITS_OF_CONSTANT * len(own)
        return float(bits) if np.isfinite(logarithms).all() else np.inf

    def directions(self, constants: np.ndarray, is_own: np.ndarray) -> BlockDirections:
        """Return the directions of constants (k, n_groups)."""
        return BlockDirections.of(self.slopes(constants), is_own, self.data.groups, self.n_groups)

    def leave_one_out(self, constants: np.ndarray, apart: BlockDirections) -> float:
        """Return an NMSE of rows that are predicted from others, by linearisation.

        A row is left out of the fit of the shared constants. The constants by group are counted by the
        degrees of freedom that they take, since `bits_of_values` is the rest of their marginal likelihood.
        """
        residuals, n = self.residuals(constants), len(self.data.y)
        explained = apart.shared.rows @ (apart.shared.rows.T @ residuals)
        others = np.maximum(1.0 - apart.shared.leverages / self.data.counts, LEAST_LEFT)
        left_out = self.nmse((residuals - explained) / others + explained)
        return left_out * n / (n - apart.n_own) if apart.n_own < n else np.inf


class _System(NamedTuple):
    """The normal equations of one step: blocks of the groups, and their border."""

    own: np.ndarray  # (n_groups, q, q)
    border: np.ndarray  # (n_groups, q, s)
    shared: np.ndarray  # (s, s)
    of_own: np.ndarray  # (n_groups, q): the right-hand side
    of_shared: np.ndarray  # (s,)


def _normal_equations(
    slopes: np.ndarray, residuals: np.ndarray, is_own: np.ndarray, groups: np.ndarray, n_groups: int
) -> _System:
    """Return the normal equations of weighted derivatives (n_rows, k) and residuals (n_rows,)."""
    own, shared = slopes[:, is_own], slopes[:, ~is_own]
    return _System(
        _summed(own[:, :, None] * own[:, None], groups, n_groups),
        _summed(own[:, :, None] * shared[:, None], groups, n_groups),
        shared.T @ shared,
        _summed(own * residuals[:, None], groups, n_groups),
        shared.T @ residuals,
    )


def _summed(values: np.ndarray, groups: np.ndarray, n_groups: int) -> np.ndarray:
    """Return sums of values (n_rows, ...) over the rows of each group, (n_groups, ...)."""
    flat = values.reshape(len(values), int(np.prod(values.shape[1:])))
    sums = np.empty((n_groups, flat.shape[1]))
    for i, column in enumerate(flat.T):
        sums[:, i] = np.bincount(groups, column, n_groups)
    return sums.reshape(n_groups, *values.shape[1:])


def _moved(constants: np.ndarray, system: _System, damping: np.ndarray, is_own: np.ndarray) -> np.ndarray:
    """Return the constants (k, n_groups) after a step with a damping of each group, (n_groups,)."""
    blocks = _damped(system.own, damping)
    with np.errstate(all="ignore"):
        along = _solved(blocks, system.border)
        alone = _solved(blocks, system.of_own[..., None])[..., 0]
        rest = _damped(system.shared[None], np.exp(np.mean(np.log(damping))))[0]
        rest = rest - np.einsum("gqs,gqt->st", system.border, along)
        target = system.of_shared - np.einsum("gqs,gq->s", system.border, alone)
        shared = _solved(rest[None], target[None, :, None])[0, :, 0]
        moved = constants.copy()
        moved[~is_own] -= shared[:, None]
        moved[is_own] -= (alone - along @ shared).T
    return moved


def _solved(matrices: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the solutions of linear systems (n, m, m), nan if one of them is singular."""
    try:
        return np.linalg.solve(matrices, targets)
    except np.linalg.LinAlgError:
        return np.full(targets.shape, np.nan)


def _damped(matrices: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """Return matrices (n, m, m) with a larger diagonal; that of a constant without effect becomes 1."""
    found = matrices.copy()
    at = np.arange(matrices.shape[-1])
    diagonal = matrices[:, at, at]
    found[:, at, at] = np.where(diagonal > 0.0, diagonal * (1.0 + np.atleast_1d(damping)[:, None]), 1.0)
    return found


def noise_of(loss: float, n_constants: int, data: DataSet) -> float:
    """Return the standard deviation of the noise by an NMSE and the number of fitted constants.

    It is that of a row of mean weight, which stands for several measurements where there are more than rows.
    """
    n_free = max(data.n_independent - n_constants, 1.0)
    square = max(loss, data.rounding_nmse) * data.variance * data.n_independent / n_free
    return float(np.sqrt(square * len(data.y) / data.n_effective))


class UncertaintyByGroup(Uncertainty):
    """The uncertainty of a formula with constants by group.

    The covariance is that of a new group, in which these constants vary as among the groups of the fit. Their
    standard errors are nan here; those in each group are in `ByGroup.standard_errors`.
    """

    def _variances(self, expression: Expression, X: np.ndarray) -> np.ndarray:
        assert isinstance(expression, GroupedExpression)
        by_group = expression.by_group
        table = DataSet.from_arrays(X, np.zeros(len(X)))._replace(groups=by_group.numbers_of(X))
        n_groups = len(by_group.labels) + 1
        slopes = GroupedProgram.of_expression(expression, table, n_groups).slopes(_constants_of(expression))
        return np.einsum("nj,njk,nk->n", slopes, by_group.covariances[table.groups], slopes)


def _constants_of(formula: GroupedExpression) -> np.ndarray:
    """Return the constants of every group and of a new one, (k, n_groups + 1)."""
    by_group = formula.by_group
    own = np.column_stack([by_group.values, by_group.typical])
    shared = formula.constants[[part[0] for part in by_group.parts[len(own) :]]]
    return np.concatenate([own, np.tile(shared[:, None], (1, own.shape[1]))])


def assessed(
    formula: GroupedExpression, data: DataSet, relative: bool = False
) -> tuple[GroupedExpression, UncertaintyByGroup]:
    """Return a formula with covariances and bits of its constants by group, and its uncertainty.

    `data` are the rows of the fit, with their groups; if `relative`, they are weighted by inverse squares of
    their targets, and the noise is in proportion to the formula.
    """
    formula, program, constants, apart = _without_idle_ones(formula, data)
    by_group, is_own = formula.by_group, apart.is_own
    loss = program.nmse(program.residuals(constants))
    noise = noise_of(loss, apart.n_constants, data)
    # Constants by group have no more digits than the targets from which they follow.
    of_digits = noise_of(max(loss, data.digits_nmse), apart.n_constants, data)
    spread = np.zeros((is_own.sum(), is_own.sum()))
    if program.has_rows.sum() > 1:
        spread[:] = np.cov(by_group.values[:, program.has_rows])
    of_groups = apart.covariances(noise, spread)
    of_new = np.where(is_own[:, None] | is_own, 0.0, of_groups[0])
    of_new[np.ix_(is_own, is_own)] = spread
    errors = np.sqrt(np.diag(of_new))
    errors[~is_own] = np.where(apart.shared.is_lost, np.inf, errors[~is_own])
    errors[is_own] = np.nan
    n_constants = len(formula.constants)
    copies, of_constants = np.zeros((n_constants, len(constants))), np.zeros(n_constants)
    for number, part in enumerate(by_group.parts):
        copies[part, number], of_constants[part] = 1.0, errors[number]
    by_group = by_group._replace(
        covariances=np.concatenate([of_groups, of_new[None]]),
        bits=program.bits_of_values(constants, is_own, of_digits),
    )
    of_row = noise * np.sqrt(data.n_effective / len(data.y))
    if relative:
        of_row /= np.sqrt(np.mean(data.weights * data.y**2))
    left_out = program.leave_one_out(constants, apart)
    found = UncertaintyByGroup(float(of_row), copies @ of_new @ copies.T, of_constants, left_out)
    return formula.with_groups(by_group), found


def _without_idle_ones(
    formula: GroupedExpression, data: DataSet
) -> tuple[GroupedExpression, GroupedProgram, np.ndarray, BlockDirections]:
    """Return a formula of which redundant constants of value 1 are not fitted, and its directions.

    The 1 of a*(1 - exp(b*x)) is one, since a and others can replace it. Program and constants are returned,
    too.
    """
    while True:
        by_group, constants = formula.by_group, _constants_of(formula)[:, :-1]
        program = GroupedProgram.of_expression(formula, data, len(by_group.labels))
        is_own = np.arange(len(constants)) < len(by_group.values)
        apart = program.directions(constants, is_own)
        ones = np.flatnonzero(apart.shared.is_lost & (constants[~is_own, 0] == 1.0))
        if not len(ones):
            return formula, program, constants, apart
        part_of = by_group.part_of.copy()
        part_of[by_group.parts[len(by_group.values) + ones[0]]] = NOT_FITTED
        formula = formula.with_groups(by_group._replace(part_of=part_of))
