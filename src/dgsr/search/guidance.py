"""The weights of the random choices of evolution, moved towards what the guide read from the data."""

from __future__ import annotations

import numpy as np

from dgsr.expressions.constraints import Grammar

#: Shares of the guide's weights, one search after the other: a search that begins again follows the guide
#: more or less than the one before, so that a wrong guide costs some of the searches and not all of them.
SHARES = (0.9, 0.6, 0.3)


class Guidance:
    """The grammar that programs are grown and mutated by.

    Parameters
    ----------
    grammar : Grammar
        The constraints, and the usual weights.
    n_operators : int
        Number of operators, which are the first tokens.
    probabilities : ndarray of shape (n_operators + 1, n_tokens), optional
        Of children given their parent, which is an operator or, in the last row, none; see
        `dgsr.generator.generator.Generator.guide_probabilities`. Without them the weights are the usual ones.

    Attributes
    ----------
    has_guide : bool
        Whether there are probabilities.
    """

    def __init__(self, grammar: Grammar, n_operators: int, probabilities: np.ndarray | None) -> None:
        self._grammars = [grammar]
        self.has_guide = probabilities is not None
        if probabilities is None:
            return
        may_occur = (grammar.arity > 0) | grammar.is_variable | grammar.is_constant
        usual = grammar.weight * may_occur
        usual /= usual.sum(axis=1, keepdims=True)
        guided = usual.copy()
        parents = [*range(n_operators), len(grammar.arity)]
        guided[parents] = probabilities / probabilities.sum(axis=1, keepdims=True)
        self._grammars = [grammar._replace(weight=(1.0 - share) * usual + share * guided) for share in SHARES]

    def grammar(self, n_restarts: int) -> Grammar:
        """Return the grammar of the search after so many restarts."""
        return self._grammars[n_restarts % len(self._grammars)]
