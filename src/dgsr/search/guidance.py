"""The weights of the random choices of evolution: as laws have them, moved towards what the guide read."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

import numpy as np

from dgsr.expressions.constraints import Grammar
from dgsr.expressions.library import Library

#: Shares of the guide's weights, one search after the other: a search that begins again follows the guide
#: more or less than the one before, so that a wrong guide costs some of the searches and not all of them.
SHARES = (0.9, 0.6, 0.3)
# Share of the counts of the prior in the weights of libraries with constants.
_COUNTED = 0.5


class Guidance:
    """The grammar that programs are grown and mutated by.

    Parameters
    ----------
    grammar : Grammar
        The constraints, and the weights of the tokens.
    library : Library
    probabilities : ndarray of shape (n_operators + 1, n_tokens), optional
        Probabilities of children given their parent, which is an operator or, in the last row, none; see
        `dgsr.generator.generator.Generator.guide_probabilities`. Without them the weights are the usual ones.

    Attributes
    ----------
    has_guide : bool
        Whether there are probabilities.
    """

    def __init__(self, grammar: Grammar, library: Library, probabilities: np.ndarray | None) -> None:
        self.has_guide = probabilities is not None
        usual = usual_weights(grammar, library)
        if probabilities is None:
            self._grammars = [grammar._replace(weight=usual)]
            return
        guided = usual.copy()
        rows = _parents(grammar, library)
        # What the generator does not know keeps its usual weight.
        unknown = np.where(probabilities == 0.0, usual[rows], 0.0)
        left = 1.0 - unknown.sum(axis=1, keepdims=True)
        totals = probabilities.sum(axis=1, keepdims=True)
        guided[rows] = unknown + left * probabilities / np.where(totals > 0.0, totals, 1.0)
        self._grammars = [grammar._replace(weight=(1.0 - share) * usual + share * guided) for share in SHARES]

    def grammar(self, n_restarts: int) -> Grammar:
        """Return the grammar of the search after so many restarts."""
        return self._grammars[n_restarts % len(self._grammars)]


def usual_weights(grammar: Grammar, library: Library) -> np.ndarray:
    """Return the weights without a guide, which sum to 1 under every parent.

    In a library with constants they are half the weights of the tokens, half the shares that the tokens have
    under their parent in the equations of the prior. So operators keep their share in a table of many
    columns, and products and quotients stand where laws have them.

    Parameters
    ----------
    grammar : Grammar
        The weights of the tokens.
    library : Library

    Returns
    -------
    ndarray of shape (n_tokens + 1, n_tokens)
    """
    may_occur = (grammar.arity > 0) | grammar.is_variable | grammar.is_constant
    weights = grammar.weight * may_occur
    weights /= weights.sum(axis=1, keepdims=True)
    if not library.has_constants:
        return weights
    counts, n_columns = _counts(), np.count_nonzero(grammar.is_variable)
    for row, parent in zip(_parents(grammar, library), [*library.operators, "root"], strict=True):
        known = counts.get(parent)
        if known is None:  # an operator of the user's own
            continue
        # A child of the user's own keeps the weight of its token; one that was never seen counts as half.
        shares, total = weights[row].copy(), sum(known.values())
        for i, token in enumerate(library.tokens):
            if grammar.is_variable[i]:
                shares[i] = known["variable"] / (n_columns * total)
            elif token.name in known:
                shares[i] = max(known[token.name], 0.5) / total
        shares *= may_occur
        weights[row] = (1.0 - _COUNTED) * weights[row] + _COUNTED * shares / shares.sum()
    return weights


def _parents(grammar: Grammar, library: Library) -> list[int]:
    """Return the rows of the weights that are those of operators and of the root."""
    return [*range(len(library.operators)), len(grammar.arity)]


@cache
def _counts() -> dict[str, dict[str, int]]:
    """Return the counts of children by the names of parent and child; benchmarks/prior_pairs.py made them."""
    return json.loads((resources.files("dgsr.search") / "data" / "prior_pairs.json").read_text("utf-8"))
