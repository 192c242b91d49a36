"""The interface of the exact search: it solves for the whole law, stage by stage, and repairs near misses."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population
from dgsr.exact_search import limits
from dgsr.exact_search.backpropagation import repair
from dgsr.exact_search.bank import Bank, bank_of, choose_points
from dgsr.exact_search.quotients import rational_trees
from dgsr.exact_search.stages import STAGES, find_law
from dgsr.expressions.programs.constraints import Grammar
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.translation import to_program
from dgsr.kernels.evaluate import predictions
from dgsr.kernels.grammar import are_valid
from dgsr.kernels.programs import Programs

# The stages of the table that form each stage of the solver. Stage 0 searches the small bank, and the others
# the large one, where the first nine of the table are one stage and each later one is a stage of its own.
_STAGES = (STAGES[:1], STAGES[:9], *((stage,) for stage in STAGES[9:]))


class ExactSolver:
    """Finds programs without fitted constants that have the values of the target.

    The search for the whole law has `n_stages` stages. The first takes milliseconds, the second one or two
    seconds, and each of the others up to one second.

    Parameters
    ----------
    library, data
    grammar : Grammar
        Only programs that are valid by it are found. Columns that it forbids have no influence.
    size : int
        Number of subprograms in the large bank, in which all stages but the first search.

    Attributes
    ----------
    n_examined : int
        Candidates examined so far; see `dgsr.exact_search.limits` for this unit of work.
    """

    n_stages = len(_STAGES)

    def __init__(self, library: Library, data: DataSet, grammar: Grammar, size: int = limits.LARGE) -> None:
        self.library, self.size, self.grammar = library, size, grammar
        self._data, self.n_examined = data, 0
        self._usable = np.flatnonzero(grammar.is_variable) - library.first_variable  # not forbidden
        ordinary = np.flatnonzero(data.has_ordinary_weight)
        n_rows = min(len(ordinary), limits.MOST_ROWS)
        rows = ordinary[np.arange(n_rows) * len(ordinary) // n_rows]  # evenly spread; a table may be sorted
        self._columns = np.ascontiguousarray(data.columns[:, rows])
        self._y = data.y[rows]
        self._has_points = len(rows) >= limits.N_POINTS and len(self._usable) > 0
        if self._has_points:
            points = choose_points(self._columns[self._usable])
            self._points = np.ascontiguousarray(self._columns[:, points])
            self._target = self._y[points]
            self._bank = self._filled_bank(limits.SMALL)
            self._largest = self._bank  # the largest bank that has been searched

    def solve(self, stage: int, should_stop: Callable[[], bool] = lambda: False) -> Population:
        """Search for the whole law at one stage; return the program, or an empty population.

        Stage 0 searches the small bank, and the last one is ``n_stages - 1``. The search ends without a
        result when `should_stop`, which is called about ten times a second but not at stage 0, returns True.
        """
        tokens = np.zeros((1, self.grammar.max_length), dtype=np.int64)
        n = 0
        if self._has_points:
            bank = self._bank
            if stage > 0:
                bank = self._largest = self._large_bank
            arguments = self._target, bank, self._is_law, tokens[0], should_stop, self._count
            n = find_law(_STAGES[stage], *arguments)
            if n == 0 and stage == 0:
                n = self._rational(tokens[0])
        return self._population(tokens[: n > 0], np.array([n] if n > 0 else [], dtype=np.int64))

    def _count(self, n_examined: int) -> None:
        self.n_examined += n_examined

    def _rational(self, program: np.ndarray) -> int:
        """Write a law that is a polynomial or a quotient of two; return its length, or 0."""
        if not {"add", "sub", "mul", "div"} <= set(self.library.index):
            return 0
        self._count(limits.CANDIDATES_OF_POLYNOMIALS)
        sample = self._data.ordinary_rows(limits.MOST_ROWS_OF_POLYNOMIALS)
        with np.errstate(all="ignore"):  # powers of large columns may overflow
            trees = list(rational_trees(sample.columns[self._usable], sample.y))
        for tree in trees:
            try:
                tokens = self._over_usable(to_program(tree, self.library)[0])
            except ValueError:  # a number or the whole tree is too large for a library without constants
                continue
            n = len(tokens)
            if n <= len(program) and self._is_law(tokens, n):
                program[:n] = tokens
                return n
        return 0

    def go_on(self, stage: int) -> None:
        """Restore the state in which exactly the stages before the given one have been searched."""
        if self._has_points:
            self._largest = self._large_bank if stage > 1 else self._bank

    @cached_property
    def _large_bank(self) -> Bank:
        return self._filled_bank(self.size)

    def _filled_bank(self, size: int) -> Bank:
        """Return the bank of the usable columns with its values at the points."""
        bank = bank_of(self.library, len(self._usable), size).at(self._points[self._usable])
        return bank._replace(token=self._over_usable(bank.token))

    def _over_usable(self, tokens: np.ndarray) -> np.ndarray:
        """Return tokens in which the k-th column is replaced by the k-th usable column."""
        first_variable = self.library.first_variable
        return np.append(np.arange(first_variable), first_variable + self._usable)[tokens]

    def _is_law(self, program: np.ndarray, n: int) -> bool:
        """Return whether the first n tokens are a valid program with the target's values at all rows."""
        tokens, lengths = program[None, :n], np.array([n])
        if not are_valid(tokens, lengths, self.grammar)[0]:
            return False
        values = predictions(Programs(tokens, lengths, np.ones((1, 0))), self.library.table, self._columns)[0]
        with np.errstate(all="ignore"):  # a program that is not finite is no law
            return bool(np.mean((values - self._y) ** 2) <= limits.LAW_ERROR * np.mean(self._y**2))

    def repair(
        self,
        near_misses: Population,
        should_stop: Callable[[], bool] = lambda: False,
        most_candidates: int = limits.MOST_CANDIDATES_OF_STAGE,
    ) -> Population:
        """Return copies of near misses with one subtree replaced so that they are exact at the points.

        The repairs end when `should_stop`, which is called before each near miss, returns True, or after
        `most_candidates` examined candidates.
        """
        width = self.grammar.max_length
        lengths = np.zeros(len(near_misses) * width, dtype=np.int64)  # each subtree may be replaced
        tokens = np.zeros((len(lengths), width), dtype=np.int64)
        n, most_candidates = 0, min(most_candidates, limits.MOST_CANDIDATES_OF_STAGE)
        remaining = np.array([most_candidates])
        if self._has_points:
            data = self.library.table, self._points, self._target, self._largest, remaining
            for b in range(len(near_misses)):
                if should_stop():
                    break
                program = near_misses.tokens[b, :width], near_misses.lengths[b]
                n += repair(*program, *data, tokens[n:], lengths[n:])
            self._count(most_candidates - int(remaining[0]))
        return self._population(tokens[:n], lengths[:n])

    def _population(self, tokens: np.ndarray, lengths: np.ndarray) -> Population:
        kept = are_valid(tokens, lengths, self.grammar)
        return Population(self.library, tokens[kept], lengths[kept], np.ones((kept.sum(), 0)))
