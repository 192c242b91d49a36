"""The Pareto front of description length and loss, whose candidates are formulas."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from dgsr.constants.uncertainty import SIGNIFICANT, Uncertainty, uncertainty_of
from dgsr.expressions.expression import Expression
from dgsr.expressions.formula_prior import description_length
from dgsr.expressions.library import Library
from dgsr.expressions.units import Units
from dgsr.expressions.units_of_constants import units_of_constants
from dgsr.pareto.archive import NOTICEABLE
from dgsr.pareto.judging import (
    are_supported,
    is_as_sound,
    judged,
    length_on,
    undominated,
    without_long_exact_fits,
)
from dgsr.population import DataSet, Population

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from dgsr.pareto.display import ParetoFrontDisplay

#: Rules that choose a candidate of a front; see `ParetoFront.select`.
SELECTIONS = ("mdl", "bic", "score", "accuracy", "holdout")

# Bits by which descriptions may differ that are a tie, and the nodes from which on a formula is long.
_BITS_OF_RIVALS, _LONG = 3.0, 40


class Candidate(NamedTuple):
    """One formula of the front.

    Parameters
    ----------
    complexity : int
        C(f) of the paper; see `dgsr.expressions.OPERATORS`.
    loss : float
        NMSE on the data of the fit.
    expression : Expression
    uncertainty : Uncertainty, optional
        None in a fit that a version without uncertainties saved; `leave_one_out` and `standard_errors` are
        nan then.
    units : tuple of str
        Units of the constants (`dgsr.expressions.units_of_constants`); empty in a fit without units.
    handicap : float
        What the loss is multiplied by where formulas are compared, for violations of units.
    bits : float, optional
        Description length by which the formula was compared, where it is not that of `expression`: without
        the numbers that columns are measured from, and with constants of fewer digits.
    """

    complexity: int
    loss: float
    expression: Expression
    uncertainty: Uncertainty | None = None
    units: tuple[str, ...] = ()
    handicap: float = 1.0
    bits: float | None = None

    @property
    def description_length(self) -> float:
        """The bits of the formula; see `dgsr.expressions.formula_prior.description_length`."""
        return description_length(self.expression) if self.bits is None else self.bits

    @property
    def leave_one_out(self) -> float:
        """NMSE of every row predicted by the formula with constants fitted to the others; nan if unknown."""
        return np.nan if self.uncertainty is None else self.uncertainty.leave_one_out

    @property
    def standard_errors(self) -> np.ndarray:
        """Standard errors of the constants, shape (n_constants,); nan if unknown, inf if undetermined."""
        if self.uncertainty is None:
            return np.full(len(self.expression.constants), np.nan)
        return self.uncertainty.standard_errors

    @property
    def is_determined(self) -> bool:
        """Whether the data determine its constants, as far as their errors are known.

        The standard error of each is smaller than it, or than it times its natural logarithm: Arrhenius's
        factor is often known by its order of magnitude alone. A number alone may be 0.
        """
        sizes = np.abs(self.expression.constants)
        with np.errstate(all="ignore"):
            limits = sizes * np.maximum(1.0, np.abs(np.log(sizes)))
        is_number = len(sizes) == len(self.expression.tokens)
        return is_number or not (self.standard_errors >= limits).any()

    def constants_text(self) -> str:
        """Return the constants of the fit with standard errors and units, or the empty string."""
        constants = self.expression.constants.tolist()
        units = self.units or ("",) * len(constants)
        each = zip(constants, self.standard_errors.tolist(), units)
        return ", ".join(
            f"{value!r} ± {error:.2g} {unit}".rstrip() for value, error, unit in each if error > 0.0
        )

    def units_text(self) -> str:
        """Return the constants of the formula in short with their units, or the empty string."""
        each = zip(self.expression.constants.tolist(), self.units)
        return ", ".join(f"{value:.5g} {unit}".rstrip() for value, unit in each)


class ParetoFront(Sequence[Candidate]):
    """Candidates in order of their description length, each a better fit than all shorter ones.

    Parameters
    ----------
    candidates : sequence of Candidate
    n_samples : float
        Effective number of rows that the losses were computed on, for `select`.
    tolerance : float
        NMSE that counts as exact, for `select`.
    held_out : ndarray of shape (n_candidates,), optional
        Losses on rows that were held out of the fit, for `select`.
    n_left_off : int
        Number of formulas that are not on the front because of what they do between the rows; see
        `from_expressions`.

    Examples
    --------
    >>> import numpy as np
    >>> from dgsr import DGSRRegressor
    >>> X = np.random.default_rng(0).uniform(1, 5, (20, 2))
    >>> front = DGSRRegressor("koza", random_state=0).fit(X, X[:, 0] * X[:, 1]).pareto_front_
    >>> print(front[front.select("accuracy")].expression)
    x1*x2
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        n_samples: float = 1.0,
        tolerance: float = 0.0,
        held_out: np.ndarray | None = None,
        n_left_off: int = 0,
    ) -> None:
        self._candidates = tuple(candidates)
        self.n_samples, self.tolerance, self.held_out = n_samples, tolerance, held_out
        self.n_left_off = n_left_off

    @classmethod
    def from_expressions(
        cls,
        expressions: Sequence[Expression],
        data: DataSet,
        feature_names: Sequence[str] | None = None,
        tolerance: float = 0.0,
        held_out: DataSet | None = None,
        assess: Callable[[Expression], Uncertainty | None] | None = None,
        units: Units | None = None,
        with_digits: Callable[[Expression], Expression] | None = None,
        nmse: np.ndarray | None = None,
    ) -> ParetoFront:
        """Return the front of some expressions, whose losses are computed on `data`.

        A formula with weak points (`dgsr.expressions.soundness`), such as a pole between the rows, is left
        off, unless it fits exactly or describes the data more shortly than those without, by 20 bits a point.
        So are formulas that predict worse than the mean of the targets, and those with constants that the
        data do not determine (`Candidate.is_determined`), unless all do.

        Parameters
        ----------
        expressions : sequence of Expression
            All of one library.
        data : DataSet
        feature_names : sequence of str, optional
            Names of the variables in the formulas of the front.
        tolerance : float
            NMSE that counts as exact; nothing longer than an exact formula is on the front.
        held_out : DataSet, optional
            Rows that were held out of the fit.
        assess : callable, optional
            A function that returns the `Uncertainty` of an expression, None where it is left out; by default
            that of least squares on `data`.
        units : Units, optional
            Units of columns and target. Formulas are compared by their losses times their handicaps, and
            those that the rule forbids are left out.
        with_digits : callable, optional
            A function that returns a formula of the front with the digits to predict with. Its length stays
            that of the formula that it is given.
        nmse : ndarray of shape (n_expressions,), optional
            The NMSE of the expressions on `data`; by default it is computed.
        """
        if not expressions:
            return cls([])
        assess = assess or partial(uncertainty_of, data=data)
        losses, handicaps = judged(expressions, data, units, nmse)
        bits = np.array([length_on(e, data) for e in expressions])
        losses = without_long_exact_fits(losses, bits, data, tolerance)
        supported = are_supported(expressions, losses, bits, data, tolerance)
        is_number = np.array([len(e.tokens) == len(e.constants) for e in expressions])
        # The loss of the mean, and of a number within two of its standard errors.
        of_numbers = max(1.01 * SIGNIFICANT / data.n_effective, NOTICEABLE, tolerance)
        limits = 1.0 + np.where(is_number, of_numbers, max(NOTICEABLE, tolerance))
        if not (losses <= limits)[supported].any():
            limits[:] = np.finfo(np.float64).max
        able = np.flatnonzero(losses <= limits)
        if with_digits is not None:
            expressions = list(expressions)
            for i in able[supported[able]].tolist():
                finer = with_digits(expressions[i])
                if finer is expressions[i]:
                    continue
                its_losses, (handicap,) = judged([finer], data, units)
                (loss,) = without_long_exact_fits(its_losses, bits[i], data, tolerance)
                if loss < losses[i] and is_as_sound(finer, expressions[i], data):
                    expressions[i], losses[i], handicaps[i] = finer, loss, handicap
        order = able[np.lexsort((losses[able], bits[able]))].tolist()
        left_off = [i for i in undominated(order, losses, tolerance) if not supported[i]]

        def candidate(i: int) -> Candidate:
            named = expressions[i].with_feature_names(feature_names)
            own_loss, handicap = float(losses[i] / handicaps[i]), float(handicaps[i])
            texts = () if units is None else units_of_constants(named, units)
            own = None if bits[i] == description_length(named) else float(bits[i])
            return Candidate(named.complexity, own_loss, named, assess(named), texts, handicap, own)

        left = [i for i in order if supported[i]]
        on_front = undominated(left, losses, tolerance)
        found = {i: candidate(i) for i in on_front}
        while vague := {i for i in on_front if not found[i].is_determined and losses[i] > tolerance}:
            left = [i for i in left if i not in vague]
            if not left:
                break
            on_front = undominated(left, losses, tolerance)
            found |= {i: candidate(i) for i in on_front if i not in found}
        candidates = [found[i] for i in on_front]
        held_out_losses = None
        if held_out is not None and candidates:
            held_out_losses = Population.from_expressions([c.expression for c in candidates]).nmse(held_out)
        return cls(candidates, data.n_effective, tolerance, held_out_losses, len(left_off))

    @classmethod
    def of_number(
        cls, value: float, n_features: int, feature_names: Sequence[str] | None, tolerance: float
    ) -> ParetoFront:
        """Return the front of a target that is the same number in every row."""
        library = Library("constant", (), True, n_features)
        formula = Expression(library, [library.index["const"]], [value], feature_names)
        certain = Uncertainty(0.0, np.zeros((1, 1)), np.zeros(1), 0.0)
        return cls([Candidate(formula.complexity, 0.0, formula, certain)], tolerance=tolerance)

    def __len__(self) -> int:
        return len(self._candidates)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> ParetoFront: ...
    def __getitem__(self, index: int | slice) -> Candidate | ParetoFront:
        if isinstance(index, slice):
            held_out = None if self.held_out is None else self.held_out[index]
            return ParetoFront(
                self._candidates[index], self.n_samples, self.tolerance, held_out, self.n_left_off
            )
        return self._candidates[index]

    def __repr__(self) -> str:
        lines = [f"{'':>3}  {'complexity':>10}  {'bits':>6}  {'loss':>10}  leave-one-out  formula"]
        lines += [
            f"{i:>3}  {c.complexity:>10}  {c.description_length:>6.1f}  {c.loss:>10.4g}  "
            f"{c.leave_one_out:>13.4g}  {c.expression.shortened()}"
            + (f"  [{c.units_text()}]" if c.units else "")
            for i, c in enumerate(self)
        ]
        return "\n".join(lines)

    def to_html(self, chosen: int | None = None) -> str:
        """Return an HTML table with typeset formulas, in which the candidate `chosen` is marked."""
        mark, has_units = ' style="font-weight: bold"', any(c.units for c in self)
        rows = "".join(
            f"<tr{mark if i == chosen else ''}><td>{i}</td><td>{c.complexity}</td>"
            f"<td>{c.description_length:.1f}</td><td>{c.loss:.4g}</td><td>{c.leave_one_out:.4g}</td>"
            f'<td style="text-align: left">{c.expression.mathml}</td>'
            + (f"<td>{html.escape(c.units_text())}</td>" if has_units else "")
            + "</tr>"
            for i, c in enumerate(self)
        )
        names = ["", "complexity", "bits", "NMSE", "leave-one-out", "formula"]
        names += ["constants"] if has_units else []
        heads = "".join(f"<th>{name}</th>" for name in names)
        return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"

    _repr_html_ = to_html

    def with_feature_names(self, feature_names: Sequence[str] | None) -> ParetoFront:
        """Return the same front with other names of the variables."""
        named = [c._replace(expression=c.expression.with_feature_names(feature_names)) for c in self]
        return ParetoFront(named, self.n_samples, self.tolerance, self.held_out, self.n_left_off)

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame, a row for each candidate.

        Its columns are complexity, description_length, loss, leave_one_out, standard_errors (a tuple, in the
        order of ``expression.constants``) and formula; in a fit with units also units, a tuple in that order.
        """
        import pandas

        numbers = ("complexity", "description_length", "loss", "leave_one_out")
        rows = [
            {
                **{name: getattr(c, name) for name in numbers},
                "standard_errors": tuple(c.standard_errors.tolist()),
                "formula": str(c.expression),
                "units": c.units,
            }
            for c in self
        ]
        names = [*numbers, "standard_errors", "formula"]
        return pandas.DataFrame(rows, columns=[*names, "units"] if any(c.units for c in self) else names)

    def plot(self, selection: str | None = None, *, ax: Axes | None = None) -> ParetoFrontDisplay:
        """Plot loss against description length, with formulas beside the candidates; needs matplotlib.

        Parameters
        ----------
        selection : str, optional
            A rule whose choice is marked; see `select`.
        ax : matplotlib Axes, optional
            Where to plot; by default on a new figure.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If there is no such rule.
        """
        from dgsr.pareto.display import ParetoFrontDisplay

        chosen = None if selection is None else self.select(selection)
        return ParetoFrontDisplay.from_front(self, chosen=chosen, ax=ax)

    def index_of(self, expression: Expression) -> int:
        """Return the index of the candidate with this formula.

        Raises
        ------
        ValueError
            If it is not on the front.
        """
        for i, candidate in enumerate(self):
            if candidate.expression == expression:
                return i
        raise ValueError("expression_ is not on pareto_front_; set it to the expression of a candidate.")

    def candidate_of(self, expression: Expression) -> Candidate:
        """Return the candidate with this formula; ValueError if it is not on the front."""
        return self[self.index_of(expression)]

    def select(self, selection: str) -> int:
        """Return the index of the candidate that a rule chooses.

        The simplest exact fit, with a loss of at most `tolerance`, is chosen by every rule.

        Parameters
        ----------
        selection : {"mdl", "bic", "score", "accuracy", "holdout"}
            ``mdl``: the shortest description of formula and residuals together, in bits:
            n/2 log2(error) + `description_length`, where the error is that of rows left out. ``bic``: Bayes'
            information criterion over the fitted constants, n log(loss) + k log(n). ``score``: of the
            candidates that no less complex one fits as well as, and within 1.5 times the lowest loss, the one
            whose loss falls the most for its complexity, -d log(loss) / d complexity, as in PySR.
            ``accuracy``: the lowest loss.
            ``holdout``: the lowest loss on the rows held out.

        Raises
        ------
        ValueError
            If there is no such rule, or no rows were held out for it.

        References
        ----------
        Schwarz, 1978 (BIC); Rissanen, 1978 (minimum description length).
        """
        if selection not in SELECTIONS:
            raise ValueError(f"selection={selection!r} is unknown; choose from {', '.join(SELECTIONS)}.")
        losses = np.array([candidate.loss * candidate.handicap for candidate in self])
        exact = np.flatnonzero(losses <= self.tolerance)
        if len(exact):
            return int(exact[0])
        if selection == "holdout":
            if self.held_out is None:
                raise ValueError(
                    "No rows were held out: the fit had another selection, or too few rows that differ. Fit "
                    "with selection='holdout' and more rows, or choose another rule."
                )
            return int(np.argmin(self.held_out * [candidate.handicap for candidate in self]))
        if selection == "accuracy" or len(self) == 1:
            return len(self) - 1
        if selection == "mdl":
            return self._shortest()
        if selection == "bic":
            # Numbers that columns are measured from are not fitted, and have no error.
            n_constants = np.array([np.count_nonzero(candidate.standard_errors) for candidate in self])
            return int(np.argmin(self.n_samples * np.log(losses) + np.log(self.n_samples) * n_constants))
        return self._steepest(losses)

    def rivals(self, index: int) -> list[int]:
        """Return the candidates of another form that describe the data about as shortly as one does.

        Formula and residuals take at most 3 bits more or less, which are odds of eight to one. An exact fit
        has no rivals.
        """
        if self[index].loss <= self.tolerance:
            return []
        totals, tokens = self._totals, self[index].expression.tokens
        near = np.flatnonzero(np.abs(totals - totals[index]) <= _BITS_OF_RIVALS).tolist()
        return [i for i in near if not np.array_equal(self[i].expression.tokens, tokens)]

    @property
    def _errors(self) -> np.ndarray:
        """The errors of rows left out, or the losses where these are unknown."""
        losses = np.array([candidate.loss * candidate.handicap for candidate in self])
        return np.fmax(losses, [candidate.leave_one_out * candidate.handicap for candidate in self])

    @property
    def _totals(self) -> np.ndarray:
        """The bits of formula and residuals of every candidate, up to a number that all have."""
        lengths = [candidate.description_length for candidate in self]
        with np.errstate(divide="ignore"):
            return 0.5 * self.n_samples * np.log2(self._errors) + lengths

    def _shortest(self) -> int:
        """Return the candidate with the shortest description of formula and residuals.

        A long formula is taken only if it predicts rows left out better than the best short one does, by more
        than the standard error of a mean square.
        """
        totals, errors = self._totals, self._errors
        are_long = np.array([len(candidate.expression.tokens) > _LONG for candidate in self])
        chosen, of_short = int(np.argmin(totals)), int(np.argmin(np.where(are_long, np.inf, totals)))
        is_better = errors[chosen] < (1.0 - np.sqrt(2.0 / self.n_samples)) * errors[of_short]
        return chosen if is_better or are_long.all() else of_short

    def _steepest(self, losses: np.ndarray) -> int:
        """Return the candidate whose loss falls the most for its complexity."""
        order: list[int] = []  # the candidates that no less complex one fits as well as
        for i in sorted(range(len(self)), key=lambda i: (self[i].complexity, losses[i])):
            if not order or losses[i] < losses[order[-1]]:
                order.append(i)
        front = np.array(order)
        complexities = np.array([self[i].complexity for i in order])
        scores = np.concatenate([[0.0], -np.diff(np.log(losses[front])) / np.diff(complexities)])
        eligible = np.flatnonzero(losses[front] <= 1.5 * losses.min())
        return int(front[eligible[np.argmax(scores[eligible])]])
