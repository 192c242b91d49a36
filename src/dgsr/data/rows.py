"""The different rows of a table, their weights and counts, and random samples of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.data.dataset import MANY_ROWS, ROWS_OF_A_GROUP, DataSet
from dgsr.data.table import Table

#: Rows that are copied or computed at a time.
BLOCK = 4_096


class Rows(NamedTuple):
    """Different rows of inputs and target, with the weights of the measurements that are joined in each.

    Rows are numbered in lexicographic order, so that a sample of them does not depend on the order in which
    they were given.
    """

    table: np.ndarray  # (n_rows, n_features + 1)
    weights: np.ndarray  # (n_rows,): sums of the weights of the measurements
    counts: np.ndarray  # (n_rows,): numbers of the measurements, effective ones where their weights differ
    order: np.ndarray | None = None  # positions in `table` by the numbers of the rows; None if equal

    @classmethod
    def joined(cls, data: Table) -> Rows:
        """Return the different rows of inputs and target with a positive weight."""
        table = _side_by_side(data.X, data.y)
        given = np.ones(len(table), dtype=np.int64) if data.weights is None else data.weights
        used = np.flatnonzero(given > 0)
        table, weights = table if len(used) == len(table) else table[used], given[used].astype(np.float64)
        # An exact division by a power of two makes the weights at most 1, so that no sum of them overflows.
        exponent = -np.frexp(weights.max())[1]
        weights = np.ldexp(weights, exponent)
        ranks, first = row_ranks(table), np.zeros(len(table), dtype=np.int64)
        first[ranks[::-1]] = np.arange(len(table))[::-1]
        is_rank = np.bincount(ranks, minlength=len(table)) > 0
        first, row_of = first[is_rank], (np.cumsum(is_rank) - 1)[ranks]
        if len(first) == len(table) > MANY_ROWS:  # numbered in place
            counts = np.ldexp(weights, -exponent) if are_counts(given) else np.ones(len(table))
            return cls(table, weights, counts, first)
        joined, different = np.bincount(row_of, weights), np.ascontiguousarray(table)[first]
        if are_counts(given):
            return cls(different, joined, np.ldexp(joined, -exponent))
        # The weights are scaled by row, so that no square of them vanishes.
        own = np.ldexp(weights, -np.frexp(joined)[1][row_of])
        return cls(different, joined, np.bincount(row_of, own) ** 2 / np.bincount(row_of, own**2))

    @property
    def data(self) -> DataSet:
        return DataSet.from_arrays(self.table[:, :-1], self.table[:, -1], self.weights, self.counts)

    def at(self, rows: np.ndarray) -> Rows:
        """Return the rows with these numbers."""
        rows = rows if self.order is None else self.order[rows]
        return Rows(self.table[rows], self.weights[rows], self.counts[rows])

    def sample(self, n: int | None, rng: np.random.Generator, group_column: int | None = None) -> Rows:
        """Return `n` random rows, among which the target varies; of groups about as many rows of each.

        A row is drawn with a probability in proportion to its weight, at most 1, and its weight is divided by
        the probability, so that sums over the sample are unbiased estimates of sums over all rows.

        Reference: Horvitz & Thompson, 1952 (the weights); Madow, 1949 (systematic sampling).
        """
        if n is None or len(self.table) <= n:
            return self
        order = slice(None) if self.order is None else self.order
        own, y = self.weights[order], self.table[order, -1]
        if group_column is None:
            chosen, weights = _drawn_by_weight(own, n, rng)
        else:
            chosen, weights = _drawn_of_groups(own, self.table[order, group_column], n, rng)
        if np.ptp(y[chosen]) == 0.0:
            chosen[-1] = rng.choice(np.flatnonzero(y != y[chosen[-1]]))
            weights[-1] = own[chosen[-1]]
        rising = np.argsort(chosen)
        return self.at(chosen[rising])._replace(weights=weights[rising])


def _drawn_of_groups(
    weights: np.ndarray, groups: np.ndarray, n: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return about `n` rows of random groups, at least ten of each that has so many, and their weights."""
    of_groups = np.split(np.argsort(groups, kind="stable"), np.unique(np.sort(groups), True)[1][1:])
    # At least two, since the target may be the same in all rows of one.
    drawn = rng.permutation(len(of_groups))[: max(n // ROWS_OF_A_GROUP, 2)]
    each = [rng.permutation(of_groups[label]) for label in drawn]
    chosen, weights, n_left = list[np.ndarray](), weights.copy(), n
    each.sort(key=len, reverse=True)
    while each:  # the smallest first, so that others have the rows that it lacks
        own = each.pop()
        some = own[: max(n_left // (len(each) + 1), 1)]
        weights[some] *= len(own) / len(some)
        chosen.append(some)
        n_left -= len(some)
    rows = np.concatenate(chosen)
    return rows, weights[rows]


def _drawn_by_weight(weights: np.ndarray, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of n rows, and their weights divided by the probabilities of being drawn."""
    if weights.min() == weights.max():
        return rng.choice(len(weights), n, replace=False), np.full(n, weights.sum() / n)
    is_certain, n_drawn, share = np.zeros(len(weights), dtype=bool), n, 0.0
    while n_drawn > 0:
        share = weights[~is_certain].sum() / n_drawn
        is_heavy = ~is_certain & (weights >= share)
        if not is_heavy.any():
            break
        is_certain |= is_heavy
        n_drawn = n - int(np.count_nonzero(is_certain))
    certain = np.flatnonzero(is_certain)
    others = rng.permutation(np.flatnonzero(~is_certain))
    reached = np.cumsum(weights[others])
    steps = (np.arange(n_drawn) + rng.random()) * (reached[-1] / max(n_drawn, 1))
    drawn = others[np.searchsorted(reached[:-1], steps, side="right")]
    return np.concatenate([certain, drawn]), np.concatenate([weights[certain], np.full(n_drawn, share)])


def _side_by_side(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return inputs and target in one table with contiguous columns, like those of a `DataSet`."""
    columns = np.empty((X.shape[1] + 1, len(y)))
    for start in range(0, len(y), BLOCK):  # copying column by column would read all of X for each
        rows = slice(start, start + BLOCK)
        columns[:-1, rows] = X[rows].T
    columns[-1] = y
    return columns.T


def are_counts(weights: np.ndarray) -> bool:
    """Return whether weights are counts of measurements, which have an integer type."""
    return weights.dtype.kind in "biu"


def row_ranks(table: np.ndarray) -> np.ndarray:
    """Return the rank of every row in lexicographic order; equal rows, and they alone, have equal ranks.

    Columns are compared one by one among the rows that tie so far, in a tenth of the time of sorting rows.
    """
    ranks = np.zeros(len(table), dtype=np.int64)  # number of smaller rows
    tied = np.arange(len(table))
    for column in table.T:
        values = column[tied]
        if len(tied) == 0 or values.min() == values.max():
            continue
        # At first all rows tie, and sorting by one key is twice as fast.
        order = np.lexsort((values, ranks[tied])) if ranks.any() else np.argsort(values)
        tied, values = tied[order], values[order]
        before = ranks[tied]
        is_other = np.concatenate([[True], before[1:] != before[:-1]])
        is_new = is_other | np.concatenate([[True], values[1:] != values[:-1]])
        place = np.arange(len(tied))
        start, new_start = (np.maximum.accumulate(np.where(at, place, 0)) for at in (is_other, is_new))
        ranks[tied] = before + new_start - start
        has_equal = ~is_new | ~np.concatenate([is_new[1:], [True]])
        tied = tied[has_equal]
    return ranks
