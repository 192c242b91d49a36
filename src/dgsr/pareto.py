"""The Pareto front of complexity and loss: kept during the search, shown after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dgsr.expressions.expression import Expression
from dgsr.population import Population

if TYPE_CHECKING:
    import pandas

SELECTIONS = ("best", "accuracy")

# The share by which a more complex program must lower the NMSE to be on the front: less is rounding.
_NOTICEABLE = 1e-6


class Candidate(NamedTuple):
    """One formula of the front."""

    complexity: int
    loss: float  # NMSE on the training data
    expression: Expression


class ParetoArchive:
    """The best program seen of every complexity.

    Parameters
    ----------
    population : Population
        Any population of the search; gives the library and the widths of the arrays.
    """

    def __init__(self, population: Population) -> None:
        self.library = population.library
        n_complexities = int(self.library.table.complexity.max()) * population.tokens.shape[1] + 1
        self.nmse = np.full(n_complexities, np.inf)
        self.tokens = np.zeros((n_complexities, population.tokens.shape[1]), dtype=np.int64)
        self.lengths = np.zeros(n_complexities, dtype=np.int64)
        self.constants = np.ones((n_complexities, population.constants.shape[1]))

    def update(self, population: Population, nmse: np.ndarray) -> None:
        """Take in evaluated programs."""
        complexities = population.complexities()
        better = np.flatnonzero(nmse < self.nmse[complexities])
        # The best of each complexity last, so that it is the one that stays.
        for i in better[np.argsort(-nmse[better], kind="stable")]:
            at = complexities[i]
            self.nmse[at] = np.inf  # Ctrl-C on the way must not leave a loss with another's program
            self.tokens[at] = population.tokens[i]
            self.lengths[at] = population.lengths[i]
            self.constants[at] = population.constants[i]
            self.nmse[at] = nmse[i]

    def front(self) -> np.ndarray:
        """Complexities on the front, in rising order: none has a simpler one that fits as well.

        The same formula written longer has almost the same NMSE, so "as well" means to rounding.
        """
        best_so_far = np.minimum.accumulate(np.concatenate([[np.inf], self.nmse[:-1]]))
        return np.flatnonzero(self.nmse < (1.0 - _NOTICEABLE) * best_so_far)

    def population(self) -> Population:
        """The programs of `front`, in its order."""
        at = self.front()
        return Population(self.library, self.tokens[at], self.lengths[at], self.constants[at])

    def best_nmse(self) -> float:
        return float(self.nmse.min())

    def state_dict(self) -> dict[str, np.ndarray]:
        names = ("nmse", "tokens", "lengths", "constants")
        return {name: getattr(self, name).copy() for name in names}

    def load_state_dict(self, state: dict[str, np.ndarray]) -> None:
        for name, array in state.items():
            getattr(self, name)[...] = array


class ParetoFront(Sequence[Candidate]):
    """Candidates in order of complexity, each a better fit than all simpler ones.

    Parameters
    ----------
    candidates : sequence of Candidate
    """

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._candidates = tuple(candidates)

    @classmethod
    def from_archive(cls, archive: ParetoArchive, feature_names: Sequence[str] | None) -> ParetoFront:
        programs, losses = archive.population(), archive.nmse[archive.front()]
        library = archive.library
        expressions = [
            Expression(
                library, programs.tokens[i, : programs.lengths[i]], programs.constants[i], feature_names
            )
            for i in range(len(programs))
        ]
        return cls(
            [Candidate(e.complexity, float(loss), e) for e, loss in zip(expressions, losses, strict=True)]
        )

    def __len__(self) -> int:
        return len(self._candidates)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return ParetoFront(self._candidates[index])
        return self._candidates[index]

    def __repr__(self) -> str:
        lines = [f"{'complexity':>10}  {'loss':>10}  formula"]
        lines += [f"{c.complexity:>10}  {c.loss:>10.4g}  {c.expression}" for c in self]
        return "\n".join(lines)

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame with the columns complexity, loss and formula."""
        import pandas

        rows = [(c.complexity, c.loss, str(c.expression)) for c in self]
        return pandas.DataFrame(rows, columns=["complexity", "loss", "formula"])


def select(front: ParetoFront, selection: str, tolerance: float) -> int:
    """Return the index of the chosen candidate.

    An exact fit, with a loss of at most `tolerance`, is chosen in any case, the simplest first.

    Parameters
    ----------
    front : ParetoFront
    selection : {"best", "accuracy"}
        ``accuracy``: the lowest loss. ``best``: of the candidates within 1.5 times the lowest loss
        the one whose loss falls the most for its complexity, -d log(loss) / d complexity, as PySR
        does it.
    tolerance : float
    """
    losses = np.array([candidate.loss for candidate in front])
    exact = np.flatnonzero(losses <= tolerance)
    if len(exact):
        return int(exact[0])
    if selection == "accuracy" or len(front) == 1:
        return len(front) - 1
    complexities = np.array([candidate.complexity for candidate in front])
    scores = np.concatenate([[0.0], -np.diff(np.log(losses)) / np.diff(complexities)])
    eligible = np.flatnonzero(losses <= 1.5 * losses.min())
    return int(eligible[np.argmax(scores[eligible])])
