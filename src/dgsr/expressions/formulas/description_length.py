"""A prior over formulas: the probability of each token under its parent, and the description lengths."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import resources

import numpy as np

from dgsr.expressions.formulas.common_forms import named_parts
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.constraints import Constraints, Grammar
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import are_terms
from dgsr.expressions.rewriting.angles import with_angles
from dgsr.expressions.trees.simple_numbers import cost
from dgsr.kernels.pair_counts import pair_sums

# Bits to say that a formula has a common form, which one in four has (2), and whether it has an offset (1).
_BITS_OF_NAMING = 3.0
# Bits for the order of magnitude of each number of such a formula, besides its digits. With 1 bit NIST's
# Misra tables got a constant too many, with 2.5 Rat42 was lost.
_BITS_OF_SIZE = 2.0
#: Bits of a constant whose digits are not known yet, which counts as about two digits.
BITS_OF_CONSTANT = 7.0


def description_length(expression: Expression) -> float:
    """Return the bits of a formula: the bits of its structure plus the bits of its numbers' digits.

    The structure takes -log2(p) bits for every token, where p is the share that the token has under its
    parent in the equations of the prior, times the ratio of its complexity to the default
    (`Library.with_complexities`). A formula that has a common form of one column
    (`dgsr.expressions.formulas.common_forms`) takes the bits of naming form and column, if these are fewer.
    One with sqrt(1 - u**2) takes the bits of cos(arcsin(u)), if these are fewer.
    `dgsr.expressions.trees.simple_numbers` counts digits: 1 has none, 0.25 and 1/3 have few, 0.2537 has four.
    A constant formula has the bits of its digits alone; `dgsr.pareto.judging.length_on` adds a penalty for
    the assertion that the target depends on nothing.

    Examples
    --------
    >>> from dgsr import Expression, get_library
    >>> library = get_library("physics", 2)
    >>> for text in ("x1*x2", "2.5*x1*x2", "2.537*x1*x2"):
    ...     print(round(description_length(Expression.from_text(text, library)), 1))
    8.4
    19.5
    28.8

    References
    ----------
    Rissanen, 1978 (minimum description length).
    """
    angles = _in_angles(expression)
    return _bits(expression) if angles is None else min(_bits(expression), _bits(angles))


def _bits(expression: Expression) -> float:
    """Return the bits of a formula without rewriting it."""
    library, tokens = expression.library, expression.tokens.astype(np.int64)
    constants = expression.constants.tolist()
    if len(constants) == len(tokens):
        return _bits_of_digits(constants)
    bits = float(structure_bits(library, tokens[None], np.array([len(tokens)]))[0])
    bits += _bits_of_digits(constants) - BITS_OF_CONSTANT * len(constants)
    named = named_parts(library, tokens.tolist(), constants)[0] if library.has_constants else None
    if named is None:
        return bits
    # A number that occurs twice in the form, as the exponent in Hill's, counts once, and 1 does not count.
    numbers = sorted(value for value in constants if value != 1.0)
    copies = [i for i in range(1, len(numbers)) if numbers[i] == numbers[i - 1]][: named.form.n_copies]
    numbers = np.delete(numbers, copies).tolist()
    of_name = _BITS_OF_NAMING + named.bits + float(np.log2(library.n_variables))
    # An offset of 1 does count, since it would else be chosen wherever chance makes it fit a little better.
    n_offsets = int((are_terms(library, tokens) & (expression.constants == 1.0)).sum())
    of_name += _BITS_OF_SIZE * (max(named.form.n_numbers, len(numbers)) + n_offsets)
    # An operator that the user declares complex makes the forms that have it complex.
    of_name *= max(1.0, float(library.relative_complexities[tokens].max()))
    return min(bits, of_name + _bits_of_digits(numbers))


def _bits_of_digits(numbers: Iterable[float]) -> float:
    return float(np.log2(10.0)) * sum(max(cost(value), 0.0) for value in numbers)


def _in_angles(expression: Expression) -> Expression | None:
    """Return the formula with its roots of 1 - u**2 as cosines of arcsines, or None where it has none."""
    library = expression.library
    has_them = {"sqrt", "cos", "arcsin"} <= library.index.keys()
    if not has_them or library.index["sqrt"] not in expression.tokens:
        return None
    tree = expression.with_feature_names(None).tree
    angles = with_angles(tree)
    return None if angles == tree else Expression.from_tree(angles, library)


def structure_bits(library: Library, tokens: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the bits of the structure of programs, shape (n_programs,), with 7 bits for every constant.

    `tokens` has the shape (n_programs, max_length), `lengths` (n_programs,).
    """
    return pair_sums(tokens, lengths, library.table.arity, _bits_of_tokens(library))


def largest_bits(library: Library) -> float:
    """Return the most bits that a token of a library takes."""
    return float(_bits_of_tokens(library).max())


@lru_cache(maxsize=32)
def _bits_of_tokens(library: Library) -> np.ndarray:
    """Return the bits of tokens under their parents: (n_operators + 1, n_tokens), the root last."""
    grammar = Constraints().grammar(library)
    bits = -np.log2(prior_weights(grammar, library)[rows_of_parents(grammar, library)])
    bits *= library.relative_complexities
    if library.has_constants:
        bits[:, library.index["const"]] += BITS_OF_CONSTANT
    return bits


def prior_weights(grammar: Grammar, library: Library) -> np.ndarray:
    """Return the probabilities of tokens under their parents, by which random programs are drawn, too.

    The weights (n_tokens + 1, n_tokens) sum to 1 under every parent. In a library with constants they are the
    mean of the tokens' own weights, those of `grammar`, and of the shares that the tokens have under their
    parent in the equations of the prior. So the share of operators does not shrink in a table of many
    columns, and products and quotients occur where they do in laws: evolution found 50, 59 and 47 of three
    sets of 84 equations, and by the tokens' own weights alone 46, 58 and 39.
    """
    may_occur = (grammar.arity > 0) | grammar.is_variable | grammar.is_constant
    weights = grammar.weight * may_occur
    weights /= weights.sum(axis=1, keepdims=True)
    if not library.has_constants:
        return weights
    counts, n_columns = _counts(), np.count_nonzero(grammar.is_variable)
    own = library.functions  # their names may equal the entries "variable" and "root" of the counts
    children = [{} if name in own else counts[name] for name in library.operators]
    for row, known in zip(rows_of_parents(grammar, library), [*children, counts["root"]], strict=True):
        if not known:
            continue
        # A user's operator keeps the weight of its token; a child that was never observed counts as 0.5.
        shares, total = weights[row].copy(), sum(known.values())
        for i, token in enumerate(library.tokens):
            if grammar.is_variable[i]:
                shares[i] = known["variable"] / (n_columns * total)
            elif token.name in known and token.name not in own:
                shares[i] = max(known[token.name], 0.5) / total
        shares *= may_occur
        weights[row] = 0.5 * (weights[row] + shares / shares.sum())
    return weights


def rows_of_parents(grammar: Grammar, library: Library) -> list[int]:
    """Return the rows of the weights that belong to operators and to the root."""
    return [*range(len(library.operators)), len(grammar.arity)]


@cache
def _counts() -> dict[str, dict[str, int]]:
    """Return the counts made by benchmarks/shipped_counts.py, by the names of parent and child."""
    return json.loads((resources.files("dgsr.expressions") / "data" / "prior_pairs.json").read_text("utf-8"))
