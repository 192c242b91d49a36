"""The rules that choose a candidate of a front."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dgsr.pareto.candidate import Candidate

#: Rules that choose a candidate of a front; see `ParetoFront.select`.
SELECTIONS = ("mdl", "bic", "score", "accuracy", "holdout")

# Largest difference in bits between descriptions that tie, which is odds of eight to one.
_BITS_OF_RIVALS = 3.0
# Tokens above which a formula is long; see `shortest`.
_LONG = 40
# Largest loss of a candidate that PySR's rule may choose, as a multiple of the lowest one.
_MOST_OF_LOWEST = 1.5


def losses_of(candidates: Sequence[Candidate]) -> np.ndarray:
    """Return the losses by which candidates are compared, shape (n_candidates,)."""
    return np.array([candidate.loss * candidate.handicap for candidate in candidates])


def errors_left_out(candidates: Sequence[Candidate], n: float) -> np.ndarray:
    """Return the larger of loss and leave-one-out error for n rows, (n_candidates,).

    A fit that ran out of time has no leave-one-out errors of its last formulas. They are then estimated by
    generalised cross-validation: loss / (1 - k/n)**2 for k constants, infinite for k >= n (Craven, Wahba,
    1979). Where no error is known, formulas are compared by their losses.
    """
    losses = losses_of(candidates)
    n_constants = np.array([candidate.n_constants for candidate in candidates])
    left_out = np.array([candidate.leave_one_out * candidate.handicap for candidate in candidates])
    is_free = n_constants < n
    estimated = np.where(is_free, losses / np.where(is_free, 1.0 - n_constants / n, 1.0) ** 2, np.inf)
    is_unknown = np.isnan(left_out)
    return losses if is_unknown.all() else np.maximum(losses, np.where(is_unknown, estimated, left_out))


def total_bits(candidates: Sequence[Candidate], n: float) -> np.ndarray:
    """Return the bits of formula and residuals of n rows, up to a common constant, (n_candidates,)."""
    lengths = [candidate.description_length for candidate in candidates]
    with np.errstate(divide="ignore"):
        return 0.5 * n * np.log2(errors_left_out(candidates, n)) + lengths


def rivals(candidates: Sequence[Candidate], index: int, n: float) -> list[int]:
    """Return the candidates of another form whose descriptions tie with the description of one."""
    totals, tokens = total_bits(candidates, n), candidates[index].expression.tokens
    if not np.isfinite(totals[index]):
        return []
    near = np.flatnonzero(np.abs(totals - totals[index]) <= _BITS_OF_RIVALS).tolist()
    return [i for i in near if not np.array_equal(candidates[i].expression.tokens, tokens)]


def shortest(candidates: Sequence[Candidate], n: float) -> int:
    """Return the candidate with the shortest description of formula and residuals (Rissanen, 1978).

    A long formula is chosen only if its leave-one-out error is lower than that of the best short one, by more
    than the standard error of a mean square.
    """
    totals, errors = total_bits(candidates, n), errors_left_out(candidates, n)
    are_long = np.array([len(candidate.expression.tokens) > _LONG for candidate in candidates])
    chosen, of_short = int(np.argmin(totals)), int(np.argmin(np.where(are_long, np.inf, totals)))
    is_better = errors[chosen] < (1.0 - np.sqrt(2.0 / n)) * errors[of_short]
    return chosen if is_better or are_long.all() else of_short


def least_bic(candidates: Sequence[Candidate], n: float) -> int:
    """Return the candidate with the lowest n log(loss) + k log(n), for k constants (Schwarz, 1978)."""
    n_constants = np.array([candidate.n_fitted for candidate in candidates])
    return int(np.argmin(n * np.log(losses_of(candidates)) + np.log(n) * n_constants))


def steepest(candidates: Sequence[Candidate]) -> int:
    """Return the candidate with the steepest fall of the loss by complexity, the rule of PySR."""
    losses = losses_of(candidates)
    order: list[int] = []  # the candidates that fit better than all less complex ones
    for i in sorted(range(len(candidates)), key=lambda i: (candidates[i].complexity, losses[i])):
        if not order or losses[i] < losses[order[-1]]:
            order.append(i)
    front = np.array(order)
    complexities = np.array([candidates[i].complexity for i in order])
    scores = np.concatenate([[0.0], -np.diff(np.log(losses[front])) / np.diff(complexities)])
    eligible = np.flatnonzero(losses[front] <= _MOST_OF_LOWEST * losses.min())
    return int(front[eligible[np.argmax(scores[eligible])]])
