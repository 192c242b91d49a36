"""The compiled decoder for sampling on a processor: the same function as `dgsr.generator.decoder.Decoder`.

One position of a small network takes a hundred calls in torch, whose overhead is most of the time. Here a
block of programs is completed in one call, with loops over arrays that stay in the processor's caches. A test
compares the results with the reference, `Decoder`. All weights are float32.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dgsr.kernels.compilation import compiled
from dgsr.kernels.elementary import exp
from dgsr.kernels.sampling import draw_tokens

#: Programs that are decoded together, so few that their keys and values stay in the processor's cache.
BLOCK = 32
# Rows, and inputs, that a product takes at a time; it has a variable for each, and BLOCK is a multiple.
_TOGETHER = 4

# Sums may be reordered; NaN and infinity keep their meaning, since they must be detected.
_compiled = compiled(nogil=True, fastmath={"reassoc", "contract", "arcp"})


class _Buffers(NamedTuple):
    """Scratch arrays of stacked layers, for BLOCK programs at one position each."""

    x: np.ndarray  # (BLOCK, width): input of the next layer
    normed: np.ndarray  # (BLOCK, width)
    attended: np.ndarray  # (BLOCK, width)
    qkv: np.ndarray  # (BLOCK, 3 width): queries, keys and values, or queries alone
    hidden: np.ndarray  # (BLOCK, hidden)
    scores: np.ndarray  # (most keys,)
    keys: np.ndarray  # (n, BLOCK, max_length, width): keys of all positions so far
    values: np.ndarray  # (n, BLOCK, max_length, width)


def new_buffers(weights, max_length):
    """Return the buffers of the layers, and those of the tree's layers, for programs of a length at most."""
    width, tree_width = weights.embeddings.tokens.shape[1], 2 * weights.embeddings.siblings.shape[1]
    n_keys = weights.attention.keys.shape[1]
    return (
        _new_buffers(weights.layers, width, max_length, n_keys),
        _new_buffers(weights.tree_layers, tree_width, max_length, 0),
    )


def _new_buffers(layers, width, max_length, n_keys):
    """Return `_Buffers` for layers of a width that attend to at most `n_keys` keys of a data set."""
    shapes = _Buffers(
        x=(BLOCK, width),
        normed=(BLOCK, width),
        attended=(BLOCK, width),
        qkv=(BLOCK, 3 * width),
        hidden=(BLOCK, layers.widen.shape[2]),
        scores=(max(max_length, n_keys),),
        keys=(len(layers.qkv), BLOCK, max_length, width),
        values=(len(layers.qkv), BLOCK, max_length, width),
    )
    return _Buffers(*(np.zeros(shape, dtype=np.float32) for shape in shapes))


@_compiled
def _normalise(x, n, norm, out):
    """Write the layer norm of the first n rows of x to `out`."""
    width = x.shape[1]
    for a in range(n):
        mean, variance = np.float32(0.0), np.float32(0.0)
        for j in range(width):
            mean += x[a, j]
        mean /= width
        for j in range(width):
            variance += (x[a, j] - mean) ** 2
        scale = np.float32(1.0 / math.sqrt(variance / width + 1e-5))  # as torch's layer norm
        for j in range(width):
            out[a, j] = (x[a, j] - mean) * scale * norm[0, j] + norm[1, j]


@_compiled
def _add_product(x, n, weight, out):
    """Add the first n rows of x times the weight to `out`, of which up to three further rows may change.

    The loops are as fast as BLAS with 32 rows, and two to four times as fast with the 4 to 8 that are left
    when most programs are complete, since BLAS copies the weight at every call.
    """
    n_inputs, n_outputs = weight.shape
    n_rest = n_inputs % _TOGETHER
    for a in range(0, n, _TOGETHER):
        o0, o1, o2, o3 = out[a], out[a + 1], out[a + 2], out[a + 3]
        for k in range(0, n_inputs - n_rest, _TOGETHER):
            a0, a1, a2, a3 = x[a, k], x[a, k + 1], x[a, k + 2], x[a, k + 3]
            b0, b1, b2, b3 = x[a + 1, k], x[a + 1, k + 1], x[a + 1, k + 2], x[a + 1, k + 3]
            c0, c1, c2, c3 = x[a + 2, k], x[a + 2, k + 1], x[a + 2, k + 2], x[a + 2, k + 3]
            d0, d1, d2, d3 = x[a + 3, k], x[a + 3, k + 1], x[a + 3, k + 2], x[a + 3, k + 3]
            w0, w1, w2, w3 = weight[k], weight[k + 1], weight[k + 2], weight[k + 3]
            for j in range(n_outputs):
                p, q, r, s = w0[j], w1[j], w2[j], w3[j]
                o0[j] += a0 * p + a1 * q + a2 * r + a3 * s
                o1[j] += b0 * p + b1 * q + b2 * r + b3 * s
                o2[j] += c0 * p + c1 * q + c2 * r + c3 * s
                o3[j] += d0 * p + d1 * q + d2 * r + d3 * s
        for k in range(n_inputs - n_rest, n_inputs):
            for b in range(a, a + _TOGETHER):
                for j in range(n_outputs):
                    out[b, j] += x[b, k] * weight[k, j]


@_compiled
def _linear(x, n, weight, bias, adding, out):
    """Write the first n rows of x times the weight, plus the bias, to `out`; if `adding`, add them to it.

    What is said of further rows in `_add_product` holds here, too.
    """
    for a in range(n):
        row = out[a]
        for j in range(len(bias)):
            row[j] = row[j] + bias[j] if adding else bias[j]
    _add_product(x, n, weight, out)


@_compiled
def _gelu(x, n):
    """Replace the first n rows of x by x times the normal cumulative distribution function of x.

    Reference: Abramowitz & Stegun, 7.1.26: the error function to 1.5e-7.
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
    """Write the attention of the query, as long as `out`, over the first `n_keys` keys, head by head."""
    size = len(out) // heads
    scale = np.float32(1.0 / math.sqrt(size))
    for h in range(heads):
        # Loops over parts of rows that begin at a variable column are not vectorised, those over views are.
        own = slice(h * size, (h + 1) * size)
        part, found = query[own], out[own]
        highest = np.float32(-np.inf)
        for s in range(n_keys):
            key, score = keys[s, own], np.float32(0.0)
            for j in range(size):
                score += part[j] * key[j]
            scores[s] = score * scale
            highest = max(highest, scores[s])
        total = np.float32(0.0)
        for s in range(n_keys):
            scores[s] = np.float32(exp(np.float64(scores[s] - highest)))
            total += scores[s]
        for j in range(size):
            found[j] = np.float32(0.0)
        for s in range(n_keys):
            value, share = values[s, own], scores[s] / total
            for j in range(size):
                found[j] += share * value[j]


@_compiled
def _add_self_attention(n, rows, t, at, layers, buffers):
    """Add the self-attention of layer `at` at position t to the first n rows of `buffers.x`.

    The keys and values of these programs are in the rows `rows` of `buffers.keys` and `buffers.values`.
    """
    x, normed, qkv, attended = buffers.x, buffers.normed, buffers.qkv, buffers.attended
    keys, values = buffers.keys, buffers.values
    width = x.shape[1]
    _normalise(x, n, layers.norm[at], normed)
    _linear(normed, n, layers.qkv[at], layers.qkv_bias[at], False, qkv)
    for a in range(n):
        r = rows[a]
        for j in range(width):
            keys[at, r, t, j] = qkv[a, width + j]
            values[at, r, t, j] = qkv[a, 2 * width + j]
        _attend(qkv[a], keys[at, r], values[at, r], t + 1, layers.heads, buffers.scores, attended[a])
    _linear(attended, n, layers.out[at], layers.out_bias[at], True, x)


@_compiled
def _add_feed_forward(n, at, layers, buffers):
    """Add the feed-forward block of layer `at` to the first n rows of `buffers.x`."""
    x, normed, hidden = buffers.x, buffers.normed, buffers.hidden
    _normalise(x, n, layers.forward_norm[at], normed)
    _linear(normed, n, layers.widen[at], layers.widen_bias[at], False, hidden)
    _gelu(hidden, n)
    _linear(hidden, n, layers.narrow[at], layers.narrow_bias[at], True, x)


@_compiled
def _add_cross_attention(n, at, heads, attention, tree, buffers):
    """Add the attention of layer `at` to the data set, and its linear map of the tree states."""
    x, normed, queries, attended = buffers.x, buffers.normed, buffers.qkv, buffers.attended
    _normalise(x, n, attention.norm[at], normed)
    _linear(normed, n, attention.query[at], attention.query_bias[at], False, queries)
    keys, values = attention.keys[at], attention.values[at]
    for a in range(n):
        _attend(queries[a], keys, values, len(keys), heads, buffers.scores, attended[a])
    _linear(attended, n, attention.out[at], attention.out_bias[at], True, x)
    _add_product(tree, n, attention.tree[at], x)


@_compiled
def decode(weights, grammar, draws, buffers, state):
    """Draw all programs of one data set.

    Parameters
    ----------
    draws : Draws
        Initial tree states, and zeros; they receive the programs and their log-probabilities.
    buffers : tuple of two _Buffers
        What `new_buffers` returns.
    state : ndarray of 4 uint64
        State of the random number generator; advanced.
    """
    embeddings = weights.embeddings
    n_tokens = embeddings.outputs.shape[1]
    width, half = embeddings.tokens.shape[1], embeddings.siblings.shape[1]
    last_parent = len(embeddings.parents) - 1
    buffers, tree_buffers = buffers
    x, tree = buffers.x, tree_buffers.x
    logits = np.empty((BLOCK, n_tokens), dtype=np.float32)
    rows = np.empty(BLOCK, dtype=np.int64)
    active = np.empty(BLOCK, dtype=np.int64)
    inputs = np.empty((3, BLOCK), dtype=np.int64)  # previous token, parent, sibling
    finished = np.empty(BLOCK, dtype=np.bool_)
    for start in range(0, len(draws.tokens), BLOCK):
        n = min(BLOCK, len(draws.tokens) - start)
        for a in range(n):
            rows[a], active[a] = a, start + a
            inputs[:, a] = n_tokens
            finished[a] = False
        for t in range(grammar.max_length):
            # The previous token, and its parent and sibling in the tree, at position t.
            for a in range(n):
                parent = min(inputs[1, a], last_parent)
                for j in range(width):
                    x[a, j] = embeddings.tokens[inputs[0, a], j] + embeddings.positions[t, j]
                for j in range(half):
                    tree[a, j] = embeddings.parents[parent, j] + embeddings.tree_positions[t, j]
                    sibling = embeddings.siblings[inputs[2, a], j]
                    tree[a, half + j] = sibling + embeddings.tree_positions[t, half + j]
            for at in range(weights.tree_layers.qkv.shape[0]):
                _add_self_attention(n, rows, t, at, weights.tree_layers, tree_buffers)
                _add_feed_forward(n, at, weights.tree_layers, tree_buffers)
            for at in range(weights.layers.qkv.shape[0]):
                _add_self_attention(n, rows, t, at, weights.layers, buffers)
                _add_cross_attention(n, at, weights.layers.heads, weights.attention, tree, buffers)
                _add_feed_forward(n, at, weights.layers, buffers)
            _normalise(x, n, embeddings.norm, buffers.normed)
            _linear(buffers.normed, n, embeddings.outputs, embeddings.outputs_bias, False, logits)
            draw_tokens(logits[:n], active[:n], t, draws, grammar, state, inputs, finished)
            n_left = 0  # the programs that are not complete move to the front
            for a in range(n):
                if not finished[a]:
                    rows[n_left], active[n_left] = rows[a], active[a]
                    for k in range(3):
                        inputs[k, n_left] = inputs[k, a]
                    finished[n_left] = False
                    n_left += 1
            n = n_left
            if n == 0:
                break
