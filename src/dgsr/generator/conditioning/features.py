"""Features of the target of an open node, as inputs of the network, in compiled code.

They are moments of the target; the shares of its variance that functions of the columns explain, of each
column and of all together, also after inverting an operator or removing a factor or a term; and its
coefficients by least squares.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dgsr.generator.conditioning.basis import (
    BASES,
    FACTORS,
    N_BASES,
    N_FACTORS,
    N_NESTED,
    N_NESTED_PAIRS,
    N_PAIRS,
    NESTED,
    NESTED_PAIRS,
    PAIRS,
    log_of_size,
    n_nested,
    standardise,
)
from dgsr.kernels.arrays import copy_to
from dgsr.kernels.compilation import compiled
from dgsr.kernels.inverses import take_off
from dgsr.kernels.operators import EXP

_N_INTEGERS = 6
# Features of a target alone, before those after inverting each operator; the first say how certain it is.
_ORIGIN = ("is beyond doubt", "doubt", "is under sin or cos")
_MOMENTS = (
    *_ORIGIN,
    *("share finite", "share negative", "share within 1", "asinh mean", "asinh lowest", "asinh highest"),
    *("log root mean square", "log relative spread", "is finite in all rows", "is constant"),
    *("is an integer", *(f"is {i}" for i in range(_N_INTEGERS)), "is a negative constant"),
    *("explained by the fit of terms", "explained by the fit of factors", "unused"),
)
N_MOMENTS, N_ORIGIN = len(_MOMENTS), len(_ORIGIN)
_CLIP = 3.0
# Where the parts of a column's numbers begin: its match and correlation, coefficients as a term and as a
# factor, what is left without each of its functions, what is left without itself in all ways.
_AS_TERM = 2
_AS_FACTOR = _AS_TERM + N_BASES
_WITHOUT = _AS_FACTOR + N_FACTORS
_WITHOUT_ITSELF = _WITHOUT + 3 * N_BASES

_compiled = compiled(fastmath={"reassoc", "contract", "arcp"})


@compiled()
def n_moments(n_ways):
    """Return the number of features of a target alone, for a number of operators that are inverted."""
    return N_MOMENTS + 4 * (n_ways + 1)


def moment_names(ways):
    """Return the names of the features of a target alone; `ways` are the operators that are inverted."""
    kinds = ("can be looked at", "explained by columns", "explained by terms", "explained by factors")
    return _MOMENTS + tuple(f"{look}: {kind}" for look in _looks(ways) for kind in kinds)


def column_names(ways):
    """Return the names of the features of a target and a column x, in the order of `describe`."""
    functions = (*BASES, *PAIRS[:3], "x/z or z/x")
    return (
        "equal to x",
        "correlation with x",
        *(f"coefficient of {term}" for term in BASES),
        *(f"exponent of {factor}" for factor in FACTORS),
        *(
            name
            for base in BASES
            for name in (
                f"divided by {base}: explained by columns",
                f"divided by {base}: explained by terms",
                f"less {base}: explained by factors",
            )
        ),
        *(f"divided by x, {way} taken off: explained by terms" for way in ways),
        *(f"less x, {way} taken off: explained by terms" for way in ways),
        *(f"explained by {function}" for function in (*NESTED, *NESTED_PAIRS)),
        *(f"{look}: explained by {function}" for look in _looks(ways) for function in functions),
    )


def _looks(ways):
    return ("as it is", *(f"{way} taken off" for way in ways))


class Scratch(NamedTuple):
    """Working memory of `describe`."""

    work: np.ndarray  # (n,)
    unit: np.ndarray  # (n,)
    other: np.ndarray  # (n,)
    units: np.ndarray  # (n_looks, n) float32: every way to look, then quotients, then these in all ways
    logs: np.ndarray  # (n_ways + 1 + C N_BASES, n) float32: logarithms of the ways, then of differences
    with_nested: np.ndarray  # (1, columns of Tables.nested) float32
    with_bases: np.ndarray  # (n_ways + 1, columns of Tables.bases) float32
    with_spans: np.ndarray  # (n_looks, C (1 + N_BASES)) float32
    with_products: np.ndarray  # (n_ways + 1 + C N_BASES, C N_FACTORS) float32


@compiled()
def new_scratch(n_columns, n_rows, n_ways):
    """Return `Scratch` for descriptions."""
    n_logs = n_ways + 1 + n_columns * N_BASES
    n_looks = n_logs + 2 * n_ways * n_columns
    n_bases = n_columns * N_BASES + n_columns * (n_columns - 1) // 2 * N_PAIRS
    return Scratch(
        np.zeros(n_rows),
        np.zeros(n_rows),
        np.zeros(n_rows),
        np.zeros((n_looks, n_rows), dtype=np.float32),
        np.zeros((n_logs, n_rows), dtype=np.float32),
        np.zeros((1, n_nested(n_columns)), dtype=np.float32),
        np.zeros((n_ways + 1, n_bases), dtype=np.float32),
        np.zeros((n_looks, n_columns * (1 + N_BASES)), dtype=np.float32),
        np.zeros((n_logs, n_columns * N_FACTORS), dtype=np.float32),
    )


@compiled()
def describe(values, d, tables, ways, scratch, moments, by_column):
    """Compute the features of a target.

    Parameters
    ----------
    values : ndarray of shape (n,), float64
    d : int
        Its data set.
    tables : Tables
    ways : ndarray of int64
        From `dgsr.kernels.inverses.ways_to_look`.
    scratch : Scratch
    moments : ndarray of shape (at least n_moments,), float32
        Zeros; all are written but the first `N_ORIGIN`.
    by_column : ndarray of shape (C, at least n_by_column), float32
        Zeros.
    """
    n_columns, n = tables.columns.shape[1:]
    size = _describe_as_a_whole(values, moments)
    if moments[11] == 0.0 or moments[12] == 1.0:
        return  # not finite in all rows; or a constant, and the rest would be rounding
    for c in range(n_columns):
        x = tables.columns[d, c]
        error = 0.0
        for j in range(n):
            error += (values[j] - x[j]) ** 2
        by_column[c, 0] = _bounded(_nines(error / (n * size * size + 1e-300), 1e-12))
    _look(values, d, tables, ways, scratch, moments, by_column)
    _take_away(values, size, d, tables, ways, scratch)
    units = scratch.units
    np.dot(units[:1], tables.nested[d], scratch.with_nested)
    np.dot(units[: len(ways) + 1], tables.bases[d], scratch.with_bases)
    np.dot(units, tables.spans[d], scratch.with_spans)
    np.dot(scratch.logs, tables.products[d], scratch.with_products)
    _write_ways(n_columns, len(ways), scratch, moments, by_column)
    _write_columns(n_columns, len(ways), scratch, by_column)


@compiled()
def _describe_as_a_whole(values, moments):
    """Write the moments that need no data set; return the root mean square."""
    n = len(values)
    n_finite, n_negative, n_small = 0, 0, 0
    mean, square, lowest, highest = 0.0, 0.0, np.inf, -np.inf
    for j in range(n):
        value = values[j]
        if abs(value) < 1e150:
            n_finite += 1
            mean += value
            square += value * value
            lowest, highest = min(lowest, value), max(highest, value)
            n_negative += value < 0.0
            n_small += abs(value) <= 1.0
    moments[3] = n_finite / n
    if n_finite == 0:
        return 0.0
    mean /= n_finite
    size = math.sqrt(square / n_finite)
    spread = 0.0
    for j in range(n):
        if abs(values[j]) < 1e150:
            spread += (values[j] - mean) ** 2
    spread = math.sqrt(spread / n_finite)
    moments[4] = n_negative / n_finite
    moments[5] = n_small / n_finite
    moments[6] = _bounded(math.asinh(mean) / 3.0)
    moments[7] = _bounded(math.asinh(lowest) / 3.0)
    moments[8] = _bounded(math.asinh(highest) / 3.0)
    moments[9] = _bounded(math.log(size + 1e-6) / 5.0)
    moments[10] = _bounded(math.log10(spread / (size + 1e-300) + 1e-12) / 4.0)
    moments[11] = n_finite == n
    if spread <= 1e-7 * size or size < 1e-9:
        moments[12] = 1.0
        nearest = round(mean)
        moments[13] = abs(mean - nearest) < 1e-6
        if moments[13] and 0 <= nearest < _N_INTEGERS:
            moments[14 + int(nearest)] = 1.0
        moments[20] = mean < 0.0
    return size


@compiled()
def _look(values, d, tables, ways, scratch, moments, by_column):
    """Look at a remainder as it is and with each operator taken off: fill the first rows of the scratch."""
    work, unit = scratch.work, scratch.unit
    for w in range(len(ways) + 1):
        if w == 0:
            copy_to(work, values)
        else:
            take_off(ways[w - 1], values, work)
        moments[N_MOMENTS + 4 * w] = standardise(work, unit)
        copy_to(scratch.units[w], unit)
        if w == 0:
            arrays = tables.terms[d], tables.term_weights[d]
            moments[21] = _coefficients(values, unit, *arrays, N_BASES, by_column, _AS_TERM)
        elif ways[w - 1] == EXP:
            arrays = tables.factors[d], tables.factor_weights[d]
            moments[22] = _coefficients(work, unit, *arrays, N_FACTORS, by_column, _AS_FACTOR)
        log_of_size(work, scratch.other)
        standardise(scratch.other, unit)
        copy_to(scratch.logs[w], unit)


@compiled()
def _take_away(values, size, d, tables, ways, scratch):
    """Take functions of the columns away, as factors and as terms: fill the other rows of the scratch."""
    work, unit, other = scratch.work, scratch.unit, scratch.other
    n_columns, n = tables.columns.shape[1:]
    row = len(ways) + 1
    for i in range(n_columns * N_BASES):
        function = tables.raw[d, i]
        for j in range(n):
            work[j] = values[j] / function[j]
        standardise(work, unit)
        copy_to(scratch.units[row], unit)
        largest = 0.0
        for j in range(n):
            work[j] = values[j] - function[j]
            largest = max(largest, abs(work[j]))
        unit[:] = 0.0
        if largest > 1e-9 * size:  # else there is nothing left but rounding
            log_of_size(work, other)
            standardise(other, unit)
        copy_to(scratch.logs[row], unit)
        row += 1
    for c in range(n_columns):
        x = tables.columns[d, c]
        for k in range(2):
            largest = 0.0
            for j in range(n):
                other[j] = values[j] / x[j] if k == 0 else values[j] - x[j]
                largest = max(largest, abs(other[j]))
            for w in range(len(ways)):
                unit[:] = 0.0
                if largest > 1e-9 * size:
                    take_off(ways[w], other, work)
                    standardise(work, unit)
                copy_to(scratch.units[row], unit)
                row += 1


@compiled()
def _write_ways(n_columns, n_ways, scratch, moments, by_column):
    """Write what explains a remainder in each way of looking."""
    with_bases, with_spans = scratch.with_bases, scratch.with_spans
    at = _WITHOUT_ITSELF + 2 * n_ways + N_NESTED + N_NESTED_PAIRS
    for w in range(n_ways + 1):
        of_way = N_MOMENTS + 4 * w
        if moments[of_way] == 1.0:
            moments[of_way + 1] = _explained(with_spans[w, :n_columns])
            moments[of_way + 2] = _explained(with_spans[w, n_columns:])
            moments[of_way + 3] = _explained(scratch.with_products[w])
            for c in range(n_columns):
                for b in range(N_BASES):
                    by_column[c, at + b] = _signed_nines(with_bases[w, c * N_BASES + b])
            pairs = with_bases[w, n_columns * N_BASES :]
            _write_pairs(n_columns, pairs, N_PAIRS, 1, by_column, at + N_BASES)
        at += N_BASES + N_PAIRS - 1


@compiled()
def _write_pairs(n_columns, products, n_each, odd, by_column, at):
    """Write, for every column, the best of its pairs; that of number `odd` changes its sign with the order.

    The two quotients, numbers 3 and 4 of five, are one.
    """
    p = 0
    for a in range(n_columns):
        for b in range(a + 1, n_columns):
            for k in range(n_each):
                nines = _signed_nines(products[p])
                p += 1
                to = at + (N_PAIRS - 2 if n_each == N_PAIRS and k > N_PAIRS - 2 else k)
                if abs(nines) > abs(by_column[a, to]):
                    by_column[a, to] = nines
                if abs(nines) > abs(by_column[b, to]):
                    by_column[b, to] = -nines if k == odd else nines


@compiled()
def _write_columns(n_columns, n_ways, scratch, by_column):
    """Write what explains a remainder of which a column's functions are taken away, and nested functions."""
    with_spans, with_nested = scratch.with_spans, scratch.with_nested[0]
    for c in range(n_columns):
        by_column[c, 1] = scratch.with_bases[0, c * N_BASES]
        at = _WITHOUT
        for b in range(N_BASES):
            row = n_ways + 1 + c * N_BASES + b
            by_column[c, at] = _explained(with_spans[row, :n_columns])
            by_column[c, at + 1] = _explained(with_spans[row, n_columns:])
            by_column[c, at + 2] = _explained(scratch.with_products[row])
            at += 3
        row = n_ways + 1 + n_columns * N_BASES + 2 * n_ways * c
        for w in range(2 * n_ways):
            by_column[c, at + w] = _explained(with_spans[row + w, n_columns:])
        at += 2 * n_ways
        for b in range(N_NESTED):
            by_column[c, at + b] = _signed_nines(with_nested[c * N_NESTED + b])
    at = _WITHOUT_ITSELF + 2 * n_ways + N_NESTED
    _write_pairs(n_columns, with_nested[n_columns * N_NESTED :], N_NESTED_PAIRS, 2, by_column, at)


@compiled()
def _explained(products):
    """Nines of what orthogonal rows explain."""
    rest = 1.0
    for i in range(len(products)):
        rest -= products[i] * products[i]
    return _nines(rest, 1e-6)


@compiled()
def _signed_nines(r):
    """Nines of what a correlation explains, with its sign."""
    nines = _nines(1.0 - r * r, 1e-6)
    return nines if r > 0.0 else -nines


@compiled()
def _coefficients(values, unit, rows, weights, n_each, by_column, at):
    """Write the coefficients of a least-squares fit, as far as it explains the values; return how far."""
    k = len(rows)
    products = np.empty(k)
    rest = 1.0
    for i in range(k):
        products[i] = _dot(rows[i], unit)
        rest -= products[i] ** 2
    nines = _nines(rest, 1e-12)
    scale = min(nines, 1.0)
    norm = _dot(values, unit)
    for i in range(k):
        coefficient = _dot(weights[i], products)
        by_column[i // n_each, at + i % n_each] = scale * _bounded(coefficient * norm)
    return nines


@_compiled
def _dot(a, b):
    total = 0.0
    for j in range(len(a)):
        total += a[j] * b[j]
    return total


@compiled()
def _nines(unexplained, floor):
    """Return the score of a coefficient of determination R2, -log10(1 - R2) / 6: 1 for R2 = 1 - 1e-6."""
    return -math.log10(max(unexplained, floor)) / 6.0


@compiled()
def _bounded(value):
    if value != value:
        return 0.0
    return min(max(value, -_CLIP), _CLIP)
