"""The decoder's steps for a whole batch in one compiled call: what `Decoder.step` does, without torch.

A step of a small network is mostly the overhead of its hundred calls. Here a block of programs goes from its
first token to its last, in the processor's caches: matrix products by the BLAS library, the rest in loops.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dgsr.generator.conditioning.features import new_scratch
from dgsr.generator.conditioning.targets import append, describe_next, new_holes
from dgsr.kernels.compilation import compiled
from dgsr.kernels.elementary import exp
from dgsr.kernels.sampling import draw_tokens

#: Programs that go through the steps together: their keys and values have to stay in the cache.
BLOCK = 32

_EPSILON = 1e-5  # of torch's layer norm

# Sums may be taken in any order; nan and infinity are kept, for they must be seen.
_compiled = compiled(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp"})


class StackedLayers(NamedTuple):
    """Weights of n like layers, one after the other; matrices are (n, in, out). Float32."""

    norm: np.ndarray  # (n, 2, width): weight and bias of the norm before the self-attention
    qkv: np.ndarray  # (n, width, 3 width)
    qkv_bias: np.ndarray  # (n, 3 width)
    out: np.ndarray  # (n, width, width)
    out_bias: np.ndarray  # (n, width)
    forward_norm: np.ndarray  # (n, 2, width)
    widen: np.ndarray  # (n, width, hidden)
    widen_bias: np.ndarray  # (n, hidden)
    narrow: np.ndarray  # (n, hidden, width)
    narrow_bias: np.ndarray  # (n, width)


class Attending(NamedTuple):
    """Weights of the attention of n decoder layers to one data set, and what they attend to. Float32."""

    norm: np.ndarray  # (n, 2, width)
    query: np.ndarray  # (n, width, width)
    query_bias: np.ndarray  # (n, width)
    out: np.ndarray  # (n, width, width)
    out_bias: np.ndarray  # (n, width)
    tree: np.ndarray  # (n, tree width, width)
    keys: np.ndarray  # (n, S, width)
    values: np.ndarray  # (n, S, width)


class Tables(NamedTuple):
    """What tokens are read as and chosen by. Float32."""

    tokens: np.ndarray  # (n_tokens + 1, width)
    positions: np.ndarray  # (max_length, width)
    parents: np.ndarray  # (n_parents, E); those beyond are the last
    siblings: np.ndarray  # (n_tokens + 1, E)
    tree_positions: np.ndarray  # (max_length, 2 E)
    norm: np.ndarray  # (2, width)
    outputs: np.ndarray  # (width, n_tokens)
    outputs_bias: np.ndarray  # (n_tokens,)


class ReaderWeights(NamedTuple):
    """Weights of `dgsr.generator.reader.Reader`; matrices are (in, out). Float32."""

    column: np.ndarray  # (n_by_column, hidden)
    column_bias: np.ndarray  # (hidden,)
    widen: np.ndarray  # (n_moments + 2 hidden, wide)
    widen_bias: np.ndarray  # (wide,)
    narrow: np.ndarray  # (wide, width)
    narrow_bias: np.ndarray  # (width,)
    query: np.ndarray  # (width, hidden)
    query_bias: np.ndarray  # (hidden,)


@_compiled
def _normalise(x, n, norm, out):
    """Layer norm of the first n rows."""
    width = x.shape[1]
    for a in range(n):
        mean, variance = np.float32(0.0), np.float32(0.0)
        for j in range(width):
            mean += x[a, j]
        mean /= width
        for j in range(width):
            variance += (x[a, j] - mean) ** 2
        scale = np.float32(1.0 / math.sqrt(variance / width + _EPSILON))
        for j in range(width):
            out[a, j] = (x[a, j] - mean) * scale * norm[0, j] + norm[1, j]


@_compiled
def _linear(x, n, weight, bias, out):
    """The first n rows times the weight, plus the bias."""
    np.dot(x[:n], weight, out[:n])
    for a in range(n):
        for j in range(len(bias)):
            out[a, j] += bias[j]


@_compiled
def _gelu(x, n):
    """x times the normal distribution function of x, in place.

    References
    ----------
    Abramowitz & Stegun, 7.1.26: the error function to 1.5e-7.
    """
    for a in range(n):
        for j in range(x.shape[1]):
            value = np.float64(x[a, j])
            z = abs(value) * 0.7071067811865476
            t = 1.0 / (1.0 + 0.3275911 * z)
            p = 1.061405429 * t - 1.453152027
            p = p * t + 1.421413741
            p = p * t - 0.284496736
            p = p * t + 0.254829592
            tail = 0.5 * p * t * exp(-z * z)
            x[a, j] = np.float32(value * (1.0 - tail if value > 0.0 else tail))


@_compiled
def _attend(query, keys, values, n_keys, heads, scores, out):
    """One query's attention over the first keys, head by head."""
    size = len(query) // heads
    scale = np.float32(1.0 / math.sqrt(size))
    for h in range(heads):
        first = h * size
        highest = np.float32(-np.inf)
        for s in range(n_keys):
            score = np.float32(0.0)
            for j in range(first, first + size):
                score += query[j] * keys[s, j]
            scores[s] = score * scale
            highest = max(highest, scores[s])
        total = np.float32(0.0)
        for s in range(n_keys):
            scores[s] = np.float32(exp(np.float64(scores[s] - highest)))
            total += scores[s]
        for j in range(first, first + size):
            out[j] = 0.0
        for s in range(n_keys):
            share = scores[s] / total
            for j in range(first, first + size):
                out[j] += share * values[s, j]


@_compiled
def _self_attention(x, n, rows, t, at, heads, layers, keys, values, scores, normed, qkv, attended):
    """Add the self-attention of layer `at` at position t; keys and values (n, BLOCK, max_length, width)."""
    width = x.shape[1]
    _normalise(x, n, layers.norm[at], normed)
    _linear(normed, n, layers.qkv[at], layers.qkv_bias[at], qkv)
    for a in range(n):
        r = rows[a]
        for j in range(width):
            keys[at, r, t, j] = qkv[a, width + j]
            values[at, r, t, j] = qkv[a, 2 * width + j]
        _attend(qkv[a, :width], keys[at, r], values[at, r], t + 1, heads, scores, attended[a])
    _linear(attended, n, layers.out[at], layers.out_bias[at], normed)
    for a in range(n):
        for j in range(width):
            x[a, j] += normed[a, j]


@_compiled
def _feed_forward(x, n, at, layers, normed, hidden):
    _normalise(x, n, layers.forward_norm[at], normed)
    _linear(normed, n, layers.widen[at], layers.widen_bias[at], hidden)
    _gelu(hidden, n)
    _linear(hidden, n, layers.narrow[at], layers.narrow_bias[at], normed)
    for a in range(n):
        for j in range(x.shape[1]):
            x[a, j] += normed[a, j]


@_compiled
def _attention_to_data(x, tree, n, at, heads, attending, scores, normed, queries, attended):
    """Add what layer `at` reads of the data set, and its map of the tree states."""
    _normalise(x, n, attending.norm[at], normed)
    _linear(normed, n, attending.query[at], attending.query_bias[at], queries)
    n_keys = attending.keys.shape[1]
    for a in range(n):
        _attend(queries[a], attending.keys[at], attending.values[at], n_keys, heads, scores, attended[a])
    _linear(attended, n, attending.out[at], attending.out_bias[at], normed)
    np.dot(tree[:n], attending.tree[at], queries[:n])
    for a in range(n):
        for j in range(x.shape[1]):
            x[a, j] += normed[a, j] + queries[a, j]


@_compiled
def _read(n, weights, moments, by_column, columns, together, wide, x):
    """Add to the first n rows of x what the reader makes of descriptions; fill `columns` (n C, hidden)."""
    n_columns = len(by_column) // len(x)
    n_moments, hidden = moments.shape[1], columns.shape[1]
    _linear(by_column, n * n_columns, weights.column, weights.column_bias, columns)
    _gelu(columns, n * n_columns)
    for a in range(n):
        for j in range(n_moments):
            together[a, j] = moments[a, j]
        for j in range(hidden):
            mean, highest = np.float32(0.0), np.float32(-np.inf)
            for c in range(a * n_columns, (a + 1) * n_columns):
                mean += columns[c, j]
                highest = max(highest, columns[c, j])
            together[a, n_moments + j] = mean / n_columns
            together[a, n_moments + hidden + j] = highest
    _linear(together, n, weights.widen, weights.widen_bias, wide)
    _gelu(wide, n)
    out = np.empty_like(x)
    _linear(wide, n, weights.narrow, weights.narrow_bias, out)
    for a in range(n):
        for j in range(x.shape[1]):
            x[a, j] += out[a, j]


@_compiled
def _score_columns(n, weights, normed, columns, first_variable, logits):
    """Add to the logits of the variables what speaks for their columns."""
    queries = np.empty((len(normed), columns.shape[1]), dtype=np.float32)
    _linear(normed, n, weights.query, weights.query_bias, queries)
    n_columns = len(columns) // len(normed)
    for a in range(n):
        for c in range(n_columns):
            score = np.float32(0.0)
            for j in range(columns.shape[1]):
                score += queries[a, j] * columns[a * n_columns + c, j]
            logits[a, first_variable + c] += score


@_compiled
def decode(
    tables,
    tree_layers,
    layers,
    attending,
    reader,
    library,
    remainders,
    bank,
    dataset,
    tree_heads,
    heads,
    counters,
    stack,
    grammar,
    tokens,
    log_probs,
    state,
):
    """Draw all programs of a data set.

    Parameters
    ----------
    tables : Tables
    tree_layers, layers : StackedLayers
    attending : Attending
    reader : ReaderWeights or None
    library : TokenTable
    remainders : dgsr.generator.conditioning.basis.Tables or None
        None if the decoder is not told of remainders.
    bank : dgsr.exact_search.Bank or None
        Likewise.
    dataset : int
        Which of them the programs are for.
    tree_heads, heads : int
    counters, stack : ndarray
        New tree states, one for each program; see `dgsr.kernels.grammar.TreeState`.
    grammar : Grammar
    tokens : ndarray of shape (n_programs, max_length), int64
        Receives the programs.
    log_probs : ndarray of shape (n_programs,), float64
        Zeros; receives the log-probabilities.
    state : ndarray of 4 uint64
        Random state; advanced.
    """
    n_tokens = tables.outputs.shape[1]
    max_length, width = grammar.max_length, tables.tokens.shape[1]
    embedding = tables.siblings.shape[1]
    tree_width = 2 * embedding
    n_layers, n_tree = layers.qkv.shape[0], tree_layers.qkv.shape[0]
    last_parent = len(tables.parents) - 1
    x = np.empty((BLOCK, width), dtype=np.float32)
    normed, attended, queries = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    qkv = np.empty((BLOCK, 3 * width), dtype=np.float32)
    hidden = np.empty((BLOCK, layers.widen.shape[2]), dtype=np.float32)
    keys = np.empty((n_layers, BLOCK, max_length, width), dtype=np.float32)
    values = np.empty_like(keys)
    tree = np.empty((BLOCK, tree_width), dtype=np.float32)
    tree_normed, tree_attended = np.empty_like(tree), np.empty_like(tree)
    tree_qkv = np.empty((BLOCK, 3 * tree_width), dtype=np.float32)
    tree_hidden = np.empty((BLOCK, tree_layers.widen.shape[2]), dtype=np.float32)
    tree_keys = np.empty((n_tree, BLOCK, max_length, tree_width), dtype=np.float32)
    tree_values = np.empty_like(tree_keys)
    scores = np.empty(max(max_length, attending.keys.shape[1]), dtype=np.float32)
    logits = np.empty((BLOCK, n_tokens), dtype=np.float32)
    if remainders is not None:  # else the compiler leaves these parts out
        opcode, argument = library.opcode, library.argument
        n_columns, n_rows = remainders.columns.shape[1:]
        holes = new_holes(BLOCK, max_length, n_rows)
        scratch = new_scratch(n_columns, n_rows, len(bank.unary))
        hidden_columns = reader.column.shape[1]
        moments = np.empty((BLOCK, len(reader.widen) - 2 * hidden_columns), dtype=np.float32)
        by_column = np.empty((BLOCK, n_columns, len(reader.column)), dtype=np.float32)
        by_column_flat = by_column.reshape(BLOCK * n_columns, by_column.shape[2])
        read_columns = np.empty((BLOCK * n_columns, hidden_columns), dtype=np.float32)
        together = np.empty((BLOCK, reader.widen.shape[0]), dtype=np.float32)
        wide = np.empty((BLOCK, reader.widen.shape[1]), dtype=np.float32)
    rows = np.empty(BLOCK, dtype=np.int64)
    active = np.empty(BLOCK, dtype=np.int64)
    inputs = np.empty((3, BLOCK), dtype=np.int64)
    finished = np.empty(BLOCK, dtype=np.bool_)
    for start in range(0, len(tokens), BLOCK):
        n = min(BLOCK, len(tokens) - start)
        for a in range(n):
            rows[a], active[a] = a, start + a
            inputs[:, a] = n_tokens
            finished[a] = False
        if remainders is not None:
            holes.depths[:] = 0
        for t in range(max_length):
            for a in range(n):
                parent = min(inputs[1, a], last_parent)
                for j in range(width):
                    x[a, j] = tables.tokens[inputs[0, a], j] + tables.positions[t, j]
                for j in range(embedding):
                    tree[a, j] = tables.parents[parent, j] + tables.tree_positions[t, j]
                    tree[a, embedding + j] = (
                        tables.siblings[inputs[2, a], j] + tables.tree_positions[t, embedding + j]
                    )
            if remainders is not None:
                for a in range(n):
                    r = rows[a]
                    describe_next(r, dataset, remainders, bank, holes, scratch, moments[a], by_column[a])
                _read(n, reader, moments, by_column_flat, read_columns, together, wide, x)
            for at in range(n_tree):
                _self_attention(
                    tree, n, rows, t, at, tree_heads, tree_layers, tree_keys, tree_values, scores,
                    tree_normed, tree_qkv, tree_attended,
                )  # fmt: skip
                _feed_forward(tree, n, at, tree_layers, tree_normed, tree_hidden)
            for at in range(n_layers):
                _self_attention(x, n, rows, t, at, heads, layers, keys, values, scores, normed, qkv, attended)
                _attention_to_data(x, tree, n, at, heads, attending, scores, normed, queries, attended)
                _feed_forward(x, n, at, layers, normed, hidden)
            _normalise(x, n, tables.norm, normed)
            _linear(normed, n, tables.outputs, tables.outputs_bias, logits)
            if remainders is not None:
                _score_columns(n, reader, normed, read_columns, last_parent, logits)
            draw_tokens(
                logits[:n], active[:n], t, counters, stack, grammar, tokens, log_probs, state, inputs,
                finished,
            )  # fmt: skip
            n_left = 0
            for a in range(n):
                if not finished[a]:
                    if remainders is not None:
                        token = tokens[active[a], t]
                        append(token, rows[a], dataset, opcode, argument, remainders, holes, scratch)
                    rows[n_left], active[n_left] = rows[a], active[a]
                    for k in range(3):
                        inputs[k, n_left] = inputs[k, a]
                    finished[n_left] = False
                    n_left += 1
            n = n_left
            if n == 0:
                break
