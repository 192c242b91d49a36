"""The passes of a fit: its searches, one after the other, and their results."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from dgsr.data import Prepared
from dgsr.data.dataset import DataSet
from dgsr.finders import Budget
from dgsr.fitting.checkpoint import Checkpoint
from dgsr.fitting.ending import BegunSearch, SelectionSettings, front_and_choice
from dgsr.fitting.initial import Initial
from dgsr.fitting.losses import (
    WITHOUT_OUTLIERS,
    Loss,
    Pass,
    passes,
    passes_by_group,
    passes_without_outliers,
    precisions,
    residual_bits,
)
from dgsr.fitting.outcome import Outcome
from dgsr.fitting.outlier_watch import TOO_LATE, Watch
from dgsr.fitting.outliers import residual_bits_with_outliers
from dgsr.fitting.shown import Shown
from dgsr.fitting.weighing import noise_exponent
from dgsr.reporting.progress import SearchCallback, SearchProgress, begin_phase
from dgsr.search import Search, begin_with_programs, begin_with_search, one_thread
from dgsr.search import run as run_search

# Reasons to stop after which the next pass follows; users never see the last one.
_OUTLIERS = "outliers"
_SPENT = ("max_evaluations", "max_time", _OUTLIERS)
# NMSE below which the kind of the noise is not tested, since hardly any is left.
_NEARLY_EXACT = 1e-5


class _Ended(Exception):
    """Raised to end a search whose callback asks for the end."""


class _Outliers(Exception):
    """Raised to end a search when outliers are found."""


class FitDriver:
    """The searches of one fit, and the best of their results.

    `make_search` returns a `Search` of `data`, a `DataSet`, and `budget`, which all searches share. Each that
    begins afresh starts with the `initial` programs.
    """

    def __init__(
        self,
        prepared: Prepared,
        loss: str | Loss,
        make_search: Callable[..., Search],
        budget: Budget,
        rules: SelectionSettings,
        initial: Initial | None,
        checkpoint: Checkpoint | None,
    ) -> None:
        self.prepared, self._loss, self._make_search = prepared, loss, make_search
        self.budget, self._rules, self._initial, self._checkpoint = budget, rules, initial, checkpoint
        self._watch = Watch(prepared)
        self.outcome: Outcome | None = None  # the best so far, if a pass with a finite formula has ended
        self.stop_reason = "error"  # why the last search ended
        self._passes: list[BegunSearch] = []  # one for each pass; some passes share a search
        self._ended: list[dict[str, Any]] = []  # the states of the searches that are over
        self._is_weighed = self._is_last = False

    def run(self, state: dict[str, Any] | None, callback: SearchCallback | None) -> Outcome:
        """Run all passes, and return the best result, also after an interruption.

        The first pass begins with the programs of `state`, by `Search.state_dict`. `callback` is called after
        each round, once there is a formula with finite values on all rows; the search ends if it returns True
        or raises StopIteration. Raises ValueError if no formula has finite values on every row.
        """
        saved = [] if self._checkpoint is None else self._checkpoint.states
        earlier = state  # the last search of an earlier fit, with groups one by group
        with one_thread():
            steps = self._passes_planned()
            while (number := len(self._ended)) < len(steps):
                steps, goes_on_with = self._next(steps, number)
                step, self.stop_reason = steps[number], "error"
                self._is_last = number + 1 == len(steps)
                rows = self._begin(step, goes_on_with)
                if number < len(saved):
                    self._load(saved[number])
                elif goes_on_with is None:
                    goes_on_from = state if step.goes_on or number == 0 else None
                    self._seed_search(earlier if step.by_group else goes_on_from, not step.goes_on)
                is_last_by_squares = step.loss == "squared" and self._is_last and not step.by_group
                self._watch.begin(self.search, self._loss == "auto" and is_last_by_squares)
                if number + 1 < len(saved):  # the pass was over when the file was written
                    has_outliers = self._watch.sees_outliers(self.search, is_over=True)
                    self.stop_reason = _OUTLIERS if has_outliers else _SPENT[0]
                    self._finish(step, rows)
                else:
                    self._run(step, rows, callback)
                    if self.stop_reason not in _SPENT:
                        break
                if steps[number + 1 :] and steps[number + 1].loss == "relative" and not steps[-1].by_group:
                    self._watch.suspect(self.search)
                if self.stop_reason == _OUTLIERS:
                    steps = [*steps[: number + 1], *passes_without_outliers(self.budget.share)]
                state = self.search.state_dict()
                self._ended.append(state)
        if self.outcome is None:
            raise ValueError(self._reason_for_nothing())
        return self.outcome

    def _passes_planned(self) -> list[Pass]:
        """Return the passes of the fit, as far as they are known before the first one."""
        parts = self.prepared.data, self.prepared.held_out
        y = np.concatenate([rows.y for rows in parts if rows is not None])
        return passes(self._loss, y) if self._rules.grouping is None else passes_by_group(self._loss, y)

    def _next(self, steps: list[Pass], number: int) -> tuple[list[Pass], int | None]:
        """Return the passes with the next one settled, and the number of the pass whose search it continues.

        The last pass has the loss with the shortest description of the data. Relative errors get no pass if
        there is too little noise or time.
        """
        step, goes_on_with = steps[number], None
        if step.loss == "best":  # the last pass where there may be outliers, or errors that grow
            by_squares = self.outcome is not None and self.outcome.loss == "squared"
            step = step._replace(loss="squared" if by_squares else steps[number - 1].loss)
            if step.loss != WITHOUT_OUTLIERS:  # its weights depend on the formula, so a new search is needed
                goes_on_with = max(i for i in range(number) if steps[i].loss == step.loss)
        elif step.loss == "relative" and number == 1 and not step.by_group:
            if not self._can_tell_noise():
                return [steps[0], Pass("squared", 1.0, True)], 0
            step = step.after(steps[0].until, self.budget.share)
        return [*steps[:number], step, *steps[number + 1 :]], goes_on_with

    def caveats(self, outcome: Outcome) -> Iterator[str]:
        """Yield the caveats about the outcome that a user should know."""
        if self._rules.selection == "holdout" and outcome.front.held_out is None:
            n = len(self.prepared.data.y)
            are_few, mend = "There are too few different rows", "give 8 or more"
            if n >= 8:  # a quarter of them is two or more
                are_few, mend = f"The target differs in too few of the {n} rows", "give more such rows"
            yield (
                f"{are_few} to hold some out, so the lowest error chose the formula; {mend}, or choose "
                "another selection."
            )
        with one_thread():
            found = list(outcome.caveats(self._rules.constraints, self.stop_reason))
        yield from found

    def _reason_for_nothing(self) -> str:
        """Return the message that says why there is no formula, and what to change."""
        none, units = f"None of {self.search.n_evaluations} equations", self._rules.constraints.units
        if required := list(self._rules.constraints.required):
            names = dict(zip(self._rules.library.variable_names, self._rules.feature_names or ()))
            required = [names.get(name, name) for name in required]
            return (
                f"{none} had all of {required=} and finite values on every row of X; require less, or raise "
                "max_evaluations or max_time."
            )
        if units is not None and units.penalty is None:
            return (
                f"{none} was consistent with the units and finite on every row of X; check the units, let "
                "constants carry them, set a penalty in Units, or raise max_evaluations or max_time."
            )
        if self._rules.constraints.shape is not None:
            return (
                f"{none} kept all that is given of lower, upper, monotone and at on the box of X, and had "
                "finite values there; check these constraints against the data, leave one out, or raise "
                "max_evaluations or max_time."
            )
        return (
            f"{none} had finite values on every row of X; raise max_evaluations or max_time, or rescale the "
            "inputs."
        )

    def _show(self, callback: SearchCallback, search: Search) -> None:
        """Call a callback once the search has a formula with finite values; raise `_Ended` at its request."""
        program, nmse = self._shown.best(search.archive)
        if len(search.data.groups):  # the programs lack their scales and offsets by group
            program, nmse = search.archive.population()[-1:], search.archive.best_nmse()
        if not np.isfinite(nmse):
            return
        best = self.prepared.coordinates.written(program[0]).with_feature_names(self._rules.feature_names)
        progress = SearchProgress(search.n_evaluations, search.seconds, nmse, best, search.budget.share)
        try:
            with self.budget.interrupts.raising():
                is_over = callback(progress)
        except StopIteration:
            is_over = True
        if isinstance(is_over, bool | np.bool_) and is_over:
            raise _Ended

    @property
    def search(self) -> Search:
        """The search of the last pass, once there is one."""
        return self._begun.search

    @property
    def history(self) -> list[dict[str, float]]:
        """The entries of all searches by evaluations, since a search may continue after another one."""
        searches = dict.fromkeys(begun.search for begun in self._passes)
        entries = (entry for search in searches for entry in search.history)
        return sorted(entries, key=operator.itemgetter("evaluations"))

    def _begin(self, step: Pass, goes_on_with: int | None) -> Prepared:
        """Make the search of a pass, or go on with that of an earlier one; return the rows by its loss."""
        rows = self.prepared.by_group() if step.by_group else self.prepared
        if step.loss != "squared":
            rows = rows.with_precision(partial(self._precisions, step.loss))
        self._shown = Shown(rows)  # of one pass only, since it has a copy of the table
        if goes_on_with is not None:
            self._begun = self._passes[goes_on_with]
        else:
            search = self._make_search(data=rows.search, budget=self.budget)
            self._begun = BegunSearch(search, {} if self._checkpoint is None else search.state_dict(), {}, [])
            if not step.by_group:
                search.nmse_shown = lambda archive: self._shown.best(archive)[1]  # changes with the pass
        self._passes.append(self._begun)
        self.budget.end_at(step.until)  # before its first programs are evaluated
        return rows

    def _seed_search(self, state: dict[str, Any] | None, with_initial: bool) -> None:
        """Let a search begin with a state, with initial formulas, and with one that showed outliers."""
        if state is not None:
            begin_with_search(self.search, state)
        if with_initial and self._initial is not None:
            begin_with_programs(self.search, *self._initial)
        if with_initial and self._watch.program is not None:
            self.search.enter(self._watch.program)

    def _load(self, state: dict[str, Any]) -> None:
        """Continue from a state in the checkpoint."""
        assert self._checkpoint is not None
        rules = self._rules
        self._checkpoint.check(state, self._begun.fresh, rules.library, rules.constraints.form)
        self.search.load_state_dict(state)

    def _write(self, search: Search, at_once: bool = False) -> None:
        """Write all searches to the checkpoint, if there is one."""
        if self._checkpoint is not None:
            self._checkpoint.write(lambda: [*self._ended, search.state_dict()], at_once)

    def _run(self, step: Pass, rows: Prepared, callback: SearchCallback | None) -> None:
        """Run one pass; Ctrl-C ends it with the best formula so far, and is raised if there is none."""

        def look(search: Search) -> None:
            if self._watch.is_due(search) and self._watch.sees_outliers(search):
                raise _Outliers

        def after_round(search: Search) -> None:
            look(search)  # before writing, so that a fit that is resumed here has made the same tests
            self._write(search)
            if callback is not None:
                self._show(callback, search)

        begin_phase("searching")
        try:
            look(self.search)
            self.stop_reason = run_search(self.search, after_round)
            if self.stop_reason in _SPENT and self._watch.sees_outliers(self.search):
                self.stop_reason = _OUTLIERS
            self._write(self.search, at_once=True)
        except _Ended:
            self.stop_reason = "callback"
            self._write(self.search, at_once=True)
        except _Outliers:
            self.stop_reason = _OUTLIERS
        except KeyboardInterrupt:
            self.stop_reason = "interrupted"
        finally:
            self._finish(step, rows)
        if self.stop_reason == "interrupted" and self.outcome is None:
            raise KeyboardInterrupt

    def _can_tell_noise(self) -> bool:
        """Return whether there is a formula so far, enough noise to test its kind, and time for a pass."""
        if self.outcome is None:
            return False
        # Both errors count: a search may fit few rows exactly, and an extended formula a few large targets.
        least = max(self.search.best_nmse, self.outcome.chosen.loss)
        return least >= _NEARLY_EXACT and self.budget.share < TOO_LATE

    def _finish(self, step: Pass, rows: Prepared) -> None:
        """Choose a formula of a pass, if a program has finite values, and update the outcome.

        A pass that continues another replaces its result. Any other pass, and every pass once outliers are
        known, does so only if its description of the data is shorter.
        """
        if not np.isfinite(self.search.best_nmse) and not step.by_group:
            return
        n_interrupts = self.budget.interrupts.n
        is_last = self.stop_reason not in _SPENT or (self._is_last and self.stop_reason != _OUTLIERS)
        rows = self._weighed(rows)
        of_all = self._passes[0] if step.by_group else None
        found = front_and_choice(
            self._begun, self._rules, step.loss, rows, self.prepared.fitted, self.budget, is_last, of_all
        )
        if found is None:
            return
        front, chosen = found
        bits = -np.inf
        if chosen.loss > self._rules.tolerance:
            data = self.prepared.data
            predicted = chosen.expression(data.columns.T)
            if self._watch.inliers is None:
                bits = residual_bits(step.loss, data, predicted)
            else:
                bits = residual_bits_with_outliers(data, predicted)
            bits += chosen.description_length
        best = np.inf if self.outcome is None else self.outcome.bits
        # For the same formula, the pass without outliers has the better standard errors of constants.
        is_better = bits <= best if step.loss == WITHOUT_OUTLIERS else bits < best
        is_first_by_group = step.by_group and len(self._passes) == 2
        is_refined = is_first_by_group or (step.goes_on and self._watch.inliers is None)
        if self.outcome is None or is_refined or is_better:
            loss = step.loss if self._loss == "auto" else self._loss
            self.outcome = Outcome(front, chosen, loss, rows, bits)
            if step.loss == WITHOUT_OUTLIERS:
                self._watch.take(chosen.expression)
        if self.budget.interrupts.more_than(n_interrupts):
            self.stop_reason = "interrupted"

    def _weighed(self, rows: Prepared) -> Prepared:
        """Return rows with their effective numbers, which the first search that ends determines for all."""
        if not self._is_weighed:
            data, fitted = self.prepared.data, self.prepared.fitted
            precision = rows.data.weights / data.weights
            exponent = noise_exponent(self.prepared, self.search.archive.population(), precision)
            self.prepared = self.prepared._replace(
                data=data.with_noise_exponent(exponent), fitted=fitted.with_noise_exponent(exponent)
            )
            self._is_weighed = True
        return rows.with_numbers_of(self.prepared)

    def _precisions(self, loss: str | Loss, data: DataSet) -> np.ndarray:
        """Return the precision of rows by the formula so far, or by the mean of y where it is undefined.

        Before there is a formula, the targets themselves serve as predictions.
        """
        if loss == WITHOUT_OUTLIERS and self._watch.inliers is not None:
            return self._watch.inliers.precision(data, fitted=data is not self.prepared.held_out)
        predicted = data.y if self.outcome is None else self.outcome.chosen.expression(data.columns.T)
        return precisions(loss, data, np.where(np.isfinite(predicted), predicted, data.mean))
