"""The basis: functions of the columns of a data set with which targets are compared, in compiled code."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dgsr.exact_search.bank import Semantics, fill, room_for_semantics
from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import compiled

#: Most columns of a data set for which features of targets are computed. The work grows as the square of the
#: number of columns, to two milliseconds for every token of a program.
MOST_COLUMNS = 32

# The functions below are named in the order in which `_fill_tables` and `_fill_nested` compute them.
# Functions of a column x.
BASES = ("x", "log|x|", "x^2", "exp x", "sin x", "cos x", "1/x")
# Functions of two columns x and z, of which x is the first.
PAIRS = ("x + z", "x - z", "x z", "x/z", "z/x")
# Functions of functions of a column, and of sums, differences and products of two:
NESTED = (
    *(f"{outer} {inner}" for inner in ("log|x|", "x^2", "exp x", "1/x") for outer in ("sin", "cos")),
    *(f"exp {inner}" for inner in ("x^2", "sin x", "cos x", "1/x")),
    *(f"log |{inner}|" for inner in ("log|x|", "sin x")),
)
NESTED_PAIRS = tuple(f"{outer}({inner})" for inner in ("x + z", "x - z", "x z") for outer in ("sin", "cos"))
# Columns of the design of a product; their coefficients are exponents.
FACTORS = ("log|x|", "x", "log|sin x|", "log|cos x|", "log|log|x||")
N_BASES, N_PAIRS, N_NESTED, N_NESTED_PAIRS = len(BASES), len(PAIRS), len(NESTED), len(NESTED_PAIRS)
N_FACTORS = len(FACTORS)

# Least norm of a row of a design after projecting out the rows before, for which it counts as independent.
_INDEPENDENT = 1e-7

_compiled = compiled(fastmath={"reassoc", "contract", "arcp"})


class Tables(NamedTuple):
    """The basis of D data sets: rows of unit norm and mean zero, or zero."""

    columns: np.ndarray  # (D, C, n) float64
    y: np.ndarray  # (D, n) float64
    raw: np.ndarray  # (D, C N_BASES, n) float64: as they are; zeros where one is not finite
    bases: np.ndarray  # (D, n, C N_BASES + C (C - 1) / 2 N_PAIRS) float32, in columns
    nested: np.ndarray  # (D, n, C N_NESTED + C (C - 1) / 2 N_NESTED_PAIRS) float32, in columns
    spans: np.ndarray  # (D, n, C (1 + N_BASES)) float32, in columns: of all x, and of all terms
    products: np.ndarray  # (D, n, C N_FACTORS) float32, in columns: of all factors
    terms: np.ndarray  # (D, C N_BASES, n) float64, orthogonal
    term_weights: np.ndarray  # (D, C N_BASES, C N_BASES): from products with `terms` to coefficients
    factors: np.ndarray  # (D, C N_FACTORS, n)
    factor_weights: np.ndarray  # (D, C N_FACTORS, C N_FACTORS)
    bank_values: np.ndarray  # of the bank's subprograms: as `Semantics` has them
    bank_at_first: np.ndarray
    bank_rows: np.ndarray
    bank_slots: np.ndarray
    bank_bloom: np.ndarray
    plans: np.ndarray  # (D, max_length) int64: laws that the exact solver found, -1 after their end


@compiled()
def n_nested(n_columns):
    """Return the number of columns of `Tables.nested`."""
    return n_columns * N_NESTED + n_columns * (n_columns - 1) // 2 * N_NESTED_PAIRS


@_compiled
def standardise(values, out):
    """Write `values`, centred and of norm 1, to `out`; zeros, and return False, if constant or not finite."""
    n = len(values)
    mean, largest = 0.0, 0.0
    for j in range(n):
        mean += values[j]
        largest = max(largest, abs(values[j]))
    mean /= n
    total = 0.0
    for j in range(n):
        out[j] = values[j] - mean
        total += out[j] * out[j]
    norm = math.sqrt(total)
    if not (norm < 1e150 and norm > 1e-9 * largest * math.sqrt(n)):  # false for NaN too
        out[:] = 0.0
        return False
    for j in range(n):
        out[j] /= norm
    return True


@_compiled
def log_of_size(values, out):
    """Logarithms of absolute values, to twelve digits and without calls; of 0 some large negative number."""
    for j in range(len(values)):
        x = abs(values[j])
        bits = np.float64(x).view(np.int64)
        e = (bits >> 52) - 1023
        m = np.int64((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000).view(np.float64)
        above = m > 1.4142135623730951
        m = 0.5 * m if above else m
        k = np.float64(e) + (1.0 if above else 0.0)
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        p = 1.0 / 15.0
        p = p * z + 1.0 / 13.0
        p = p * z + 1.0 / 11.0
        p = p * z + 1.0 / 9.0
        p = p * z + 1.0 / 7.0
        p = p * z + 1.0 / 5.0
        p = p * z + 1.0 / 3.0
        p = p * z + 1.0
        out[j] = k * 0.6931471805599453 + 2.0 * s * p + 0.0 * x


@_compiled
def _orthogonalise(design, order, rows, weights, work):
    """Gram-Schmidt of some rows of `design`, each standardised, in this order.

    Rows that depend on those before are left out, as zeros. ``weights @ (rows @ u)`` are the coefficients of
    u by the rows of the design as they are.
    """
    k, n = design.shape
    rows[:] = 0.0
    weights[:] = 0.0
    scale = np.zeros(k)
    kept = 0
    triangle = np.zeros((k, k))
    taken = np.zeros(k, dtype=np.int64)
    for i in order:
        if not standardise(design[i], work):
            continue
        spread = 0.0
        for j in range(n):
            spread += design[i, j] * work[j]
        for _ in range(2):
            for a in range(kept):
                row = rows[taken[a]]
                product = 0.0
                for j in range(n):
                    product += row[j] * work[j]
                triangle[a, kept] += product
                for j in range(n):
                    work[j] -= product * row[j]
        norm = 0.0
        for j in range(n):
            norm += work[j] * work[j]
        norm = math.sqrt(norm)
        if norm < _INDEPENDENT:
            triangle[: kept + 1, kept] = 0.0
            continue
        for j in range(n):
            rows[i, j] = work[j] / norm
        triangle[kept, kept] = norm
        scale[kept] = spread
        taken[kept] = i
        kept += 1
    # The inverse of the triangle, column by column.
    for b in range(kept):
        weights[taken[b], taken[b]] = 1.0 / triangle[b, b]
        for a in range(b - 1, -1, -1):
            total = 0.0
            for c in range(a + 1, b + 1):
                total += triangle[a, c] * weights[taken[c], taken[b]]
            weights[taken[a], taken[b]] = -total / triangle[a, a]
    for a in range(kept):
        for b in range(k):
            weights[taken[a], b] /= scale[a]


@compiled()
def _order(n_columns, n_each, n_kinds):
    """Numbers of the first `n_kinds` of the `n_each` functions of every column, kind by kind."""
    order = np.empty(n_columns * n_kinds, dtype=np.int64)
    for k in range(n_kinds):
        for c in range(n_columns):
            order[k * n_columns + c] = c * n_each + k
    return order


@compiled()
def _transpose_to(out, rows):
    """out[j, i] = rows[i, j]."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            out[j, i] = rows[i, j]


@compiled()
def _fill_tables(tables):
    n_datasets, n_columns, n = tables.columns.shape
    work, unit = np.empty(n), np.empty(n)
    terms = np.empty((n_columns * N_BASES, n))
    factors = np.empty((n_columns * N_FACTORS, n))
    # Few rows have not room for all: the simplest, of every column, since their order must not matter.
    n_kinds = n // 2 // n_columns
    term_order = _order(n_columns, N_BASES, min(n_kinds, N_BASES))
    factor_order = _order(n_columns, N_FACTORS, min(n_kinds, N_FACTORS))
    order = _order(n_columns if n_columns < n - 1 else 0, 1, 1)
    linear, unused = np.empty((n_columns, n)), np.empty((n_columns, n_columns))
    for d in range(n_datasets):
        bases = tables.bases[d]
        for c in range(n_columns):
            x = tables.columns[d, c]
            at, of = c * N_BASES, c * N_FACTORS
            for j in range(n):
                terms[at, j] = x[j]
                terms[at + 1, j] = math.log(abs(x[j]))
                terms[at + 2, j] = x[j] * x[j]
                terms[at + 3, j] = math.exp(min(x[j], 300.0))
                terms[at + 4, j] = math.sin(x[j])
                terms[at + 5, j] = math.cos(x[j])
                terms[at + 6, j] = 1.0 / x[j]
                factors[of, j] = terms[at + 1, j]
                factors[of + 1, j] = x[j]
                factors[of + 2, j] = math.log(abs(terms[at + 4, j]))
                factors[of + 3, j] = math.log(abs(terms[at + 5, j]))
                factors[of + 4, j] = math.log(abs(terms[at + 1, j]))
            for b in range(N_BASES):
                if standardise(terms[at + b], unit):
                    copy_to(tables.raw[d, at + b], terms[at + b])
                copy_to(bases[:, at + b], unit)
        _orthogonalise(tables.columns[d], order, linear, unused, work)
        _transpose_to(tables.spans[d], linear)
        at = n_columns * N_BASES
        for a in range(n_columns):
            for b in range(a + 1, n_columns):
                first, second = tables.columns[d, a], tables.columns[d, b]
                for k in range(N_PAIRS):
                    for j in range(n):
                        if k == 0:
                            work[j] = first[j] + second[j]
                        elif k == 1:
                            work[j] = first[j] - second[j]
                        elif k == 2:
                            work[j] = first[j] * second[j]
                        elif k == 3:
                            work[j] = first[j] / second[j]
                        else:
                            work[j] = second[j] / first[j]
                    standardise(work, unit)
                    copy_to(bases[:, at], unit)
                    at += 1
        _fill_nested(tables.columns[d], terms, tables.nested[d], work, unit)
        _orthogonalise(terms, term_order, tables.terms[d], tables.term_weights[d], work)
        _orthogonalise(factors, factor_order, tables.factors[d], tables.factor_weights[d], work)
        _transpose_to(tables.spans[d, :, n_columns:], tables.terms[d])
        _transpose_to(tables.products[d], tables.factors[d])


@compiled()
def _fill_nested(columns, terms, nested, work, unit):
    n_columns, n = columns.shape
    at = 0
    for c in range(n_columns):
        of = c * N_BASES
        for b in (1, 2, 3, 6):  # sin and cos of log|x|, x^2, exp, 1/x
            _sine(terms[of + b], 0.0, work)
            standardise(work, unit)
            copy_to(nested[:, at], unit)
            _sine(terms[of + b], 0.5 * math.pi, work)
            standardise(work, unit)
            copy_to(nested[:, at + 1], unit)
            at += 2
        for b in (2, 4, 5, 6):  # exp of x^2, sin, cos, 1/x
            for j in range(n):
                work[j] = math.exp(min(terms[of + b, j], 300.0))
            standardise(work, unit)
            copy_to(nested[:, at], unit)
            at += 1
        for b in (1, 4):  # log of log|x|, sin
            log_of_size(terms[of + b], work)
            standardise(work, unit)
            copy_to(nested[:, at], unit)
            at += 1
    for a in range(n_columns):
        for b in range(a + 1, n_columns):
            for k in range(N_NESTED_PAIRS):
                for j in range(n):
                    if k < 2:
                        work[j] = columns[a, j] + columns[b, j]
                    elif k < 4:
                        work[j] = columns[a, j] - columns[b, j]
                    else:
                        work[j] = columns[a, j] * columns[b, j]
                _sine(work, 0.5 * math.pi * (k % 2), work)
                standardise(work, unit)
                copy_to(nested[:, at], unit)
                at += 1


@compiled()
def _sine(values, shift, out):
    for j in range(len(values)):
        out[j] = math.sin(values[j] + shift) if abs(values[j]) < 1e5 else np.nan


def new_tables(columns, y, bank, plans):
    """Return the `Tables` of D data sets; see `room_for_tables`."""
    tables = room_for_tables(columns, y, bank, plans)
    _fill_tables(tables)
    for d in range(len(tables.columns)):
        semantics = Semantics(*(getattr(tables, f"bank_{name}")[d] for name in Semantics._fields))
        fill(tables.columns[d], bank._replace(semantics=semantics))
    return tables


def room_for_tables(columns, y, bank, plans):
    """Return the `Tables` of D data sets with nothing computed.

    Parameters
    ----------
    columns : ndarray of shape (D, C, n), float64
    y : ndarray of shape (D, n), float64
    bank : dgsr.exact_search.Bank
        The subprograms of the library over these columns.
    plans : ndarray of shape (D, max_length), int64
        Tokens of their laws as the exact solver found them, -1 after the end of each; all -1 where it found
        none.
    """
    n_datasets, n_columns, n = columns.shape
    k, f, p = n_columns * N_BASES, n_columns * N_FACTORS, n_columns * (n_columns - 1) // 2 * N_PAIRS

    def zeros(*shape):
        return np.zeros((n_datasets, *shape))

    semantics = room_for_semantics(bank, n_datasets)
    return Tables(
        columns=np.ascontiguousarray(columns),
        y=np.ascontiguousarray(y),
        raw=zeros(k, n),
        bases=np.zeros((n_datasets, n, k + p), dtype=np.float32),
        nested=np.zeros((n_datasets, n, n_nested(n_columns)), dtype=np.float32),
        spans=np.zeros((n_datasets, n, n_columns + k), dtype=np.float32),
        products=np.zeros((n_datasets, n, f), dtype=np.float32),
        terms=zeros(k, n),
        term_weights=zeros(k, k),
        factors=zeros(f, n),
        factor_weights=zeros(f, f),
        **{f"bank_{name}": array for name, array in semantics._asdict().items()},
        plans=plans,
    )
