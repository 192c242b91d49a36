"""The Pareto front of description length and error on rows left out, whose candidates are formulas."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from dgsr.constants.uncertainty import Uncertainty
from dgsr.data.dataset import DataSet
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.formulas.grouped import GroupedExpression
from dgsr.expressions.programs.form import Form
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.shape import ShapeConstraints
from dgsr.expressions.programs.units import Units
from dgsr.pareto.candidate import Candidate
from dgsr.pareto.choosing import SELECTIONS, least_bic, losses_of, rivals, shortest, steepest
from dgsr.pareto.judging import nmse_of
from dgsr.pareto.making import candidates_of

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes

    from dgsr.pareto.display import ParetoFrontDisplay


class ParetoFront(Sequence[Candidate]):
    """Candidates in order of their description length, each with a lower error than all before it.

    The error is that on rows left out of the fit, by which `select` compares them, too.

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
        Number of formulas that were excluded for their behaviour between the rows; see `from_expressions`.
    chosen : int, optional
        The candidate that the fit chose, which is marked where the front is printed.

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
        chosen: int | None = None,
    ) -> None:
        self._candidates = tuple(candidates)
        self.n_samples, self.tolerance, self.held_out = n_samples, tolerance, held_out
        self.n_left_off, self.chosen = n_left_off, chosen

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
        shape: ShapeConstraints | None = None,
        form: Form | None = None,
    ) -> ParetoFront:
        """Return the front of some expressions of one library, whose losses are computed on `data`.

        A formula with weak points, such as a pole between the rows,
        is excluded, unless it fits exactly or its description of the data is shorter than all without such
        points, by 20 bits for each point. Formulas that predict worse than the mean of the targets are
        excluded, too, and those with constants that the data do not determine (`Candidate.is_determined`),
        unless this holds for all formulas.

        Parameters
        ----------
        expressions : sequence of Expression
        data : DataSet
        feature_names : sequence of str, optional
            Names of the variables in the formulas of the front.
        tolerance : float
            NMSE that counts as exact; nothing longer than an exact formula is on the front.
        held_out : DataSet, optional
            Rows that were held out of the fit.
        assess : callable, optional
            Returns the `Uncertainty` of an expression, or None to omit it; by default that of least squares
            on `data`.
        units : Units, optional
            Formulas are compared by their losses times their handicaps, and those that break the rule are
            excluded.
        with_digits : callable, optional
            Returns a formula of the front with the digits for predictions; it is compared by its length
            before.
        nmse : ndarray of shape (n_expressions,), optional
            The NMSE of the expressions on `data`, if it is known.
        shape : ShapeConstraints, optional
            Rules that every formula of the front keeps.
        form : Form, optional
            The form of the expressions, whose parts the front shows.
        """
        candidates, n_left_off = candidates_of(
            expressions, data, feature_names, tolerance, assess, units, with_digits, nmse, shape, form
        )
        losses = None
        if held_out is not None and candidates:
            losses = nmse_of([c.expression for c in candidates], held_out)
        return cls(candidates, data.n_effective, tolerance, losses, n_left_off)

    @classmethod
    def of_number(
        cls, value: float, n_features: int, feature_names: Sequence[str] | None, tolerance: float
    ) -> ParetoFront:
        """Return the front of a target that is the same number in every row."""
        library = Library("constant", (), True, n_features)
        formula = Expression(library, [library.index["const"]], [value], feature_names)
        certain = Uncertainty(0.0, np.zeros((1, 1)), np.zeros(1), 0.0)
        return cls([Candidate(formula.complexity, 0.0, formula, certain)], tolerance=tolerance, chosen=0)

    def __len__(self) -> int:
        return len(self._candidates)

    @overload
    def __getitem__(self, index: int) -> Candidate: ...
    @overload
    def __getitem__(self, index: slice) -> ParetoFront: ...
    def __getitem__(self, index: int | slice) -> Candidate | ParetoFront:
        if isinstance(index, slice):
            numbers = range(len(self))[index]
            return self._with(
                self._candidates[index],
                None if self.held_out is None else self.held_out[index],
                next((i for i, number in enumerate(numbers) if number == self.chosen), None),
            )
        return self._candidates[index]

    def _with(
        self, candidates: Sequence[Candidate], held_out: np.ndarray | None, chosen: int | None
    ) -> ParetoFront:
        """Return a front of other candidates of the same fit."""
        return ParetoFront(candidates, self.n_samples, self.tolerance, held_out, self.n_left_off, chosen)

    def __repr__(self) -> str:
        lines = [f"{'':>4}  {'complexity':>10}  {'bits':>6}  {'loss':>10}  leave-one-out  formula"]
        for i, c in enumerate(self):
            mark, units = ">" if i == self.chosen else " ", f"  [{c.units_text()}]" if c.units else ""
            numbers = f"{c.description_length:>6.1f}  {c.loss:>10.4g}  {c.leave_one_out:>13.4g}"
            formula = f"{c.expression.shortened()}{units}{c.parts_text()}"
            lines.append(f"{mark}{i:>3}  {c.complexity:>10}  {numbers}  {formula}")
        by_group = [c.expression for c in self if isinstance(c.expression, GroupedExpression)]
        if by_group:
            names = dict.fromkeys(name for expression in by_group for name in expression.by_group.names)
            column = by_group[0].feature_names[by_group[0].by_group.column]
            verb = "has a value" if len(names) == 1 else "have values"
            lines.append(f"{', '.join(names)} {verb} for each {column}.")
        return "\n".join(lines)

    def to_html(self, chosen: int | None = None) -> str:
        """Return an HTML table with typeset formulas; one candidate is marked, by default the chosen one."""
        chosen = self.chosen if chosen is None else chosen
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
        return self._with(named, self.held_out, self.chosen)

    def with_chosen(self, index: int) -> ParetoFront:
        """Return the same front with another candidate marked as the chosen one."""
        return self._with(self._candidates, self.held_out, index)

    def to_latex(self) -> str:
        """Return a LaTeX table of the candidates, the chosen one between two rules."""
        rows = [
            rf"{i} & {c.complexity} & {c.description_length:.1f} & {c.loss:.3g} & ${c.expression.latex}$ \\"
            for i, c in enumerate(self)
        ]
        if self.chosen is not None:
            rows[self.chosen] = rf"\hline {rows[self.chosen]} \hline"
        head = r"index & complexity & bits & NMSE & formula \\ \hline"
        return "\n".join([r"\begin{tabular}{rrrrl}", head, *rows, r"\end{tabular}"])

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame, a row for each candidate.

        Its columns are complexity, description_length, loss, leave_one_out, standard_errors (a tuple, in the
        order of ``expression.constants``) and formula; in a fit with units also units, a tuple in that order.
        """
        import pandas

        numbers = ("complexity", "description_length", "loss", "leave_one_out")
        rows = [
            [
                *(getattr(c, name) for name in numbers),
                tuple(c.standard_errors.tolist()),
                str(c.expression),
                c.units,
            ]
            for c in self
        ]
        frame = pandas.DataFrame(rows, columns=[*numbers, "standard_errors", "formula", "units"])
        return frame if any(c.units for c in self) else frame.drop(columns="units")

    def plot(self, selection: str | None = None, *, ax: Axes | None = None) -> ParetoFrontDisplay:
        """Plot the error on rows left out against bits, with formulas at the points; needs matplotlib.

        Parameters
        ----------
        selection : str, optional
            A rule whose choice is marked; see `select`. ValueError if there is no such rule.
        ax : matplotlib Axes, optional
            Where to plot; by default on a new figure.
        """
        from dgsr.pareto.display import ParetoFrontDisplay

        chosen = None if selection is None else self.select(selection)
        return ParetoFrontDisplay.from_front(self, chosen=chosen, ax=ax)

    def index_of(self, expression: Expression) -> int:
        """Return the index of the candidate with this formula; ValueError if it is not on the front."""
        for i, candidate in enumerate(self):
            if candidate.expression == expression:
                return i
        raise ValueError("The expression is not on the front; give that of a candidate.")

    def candidate_of(self, expression: Expression) -> Candidate:
        """Return the candidate with this formula; ValueError if it is not on the front."""
        return self[self.index_of(expression)]

    def select(self, selection: str) -> int:
        """Return the index of the candidate that a rule chooses.

        Every rule chooses the shortest exact fit, with a loss of at most `tolerance`, if there is one.

        Parameters
        ----------
        selection : {"mdl", "bic", "score", "accuracy", "holdout"}
            ``mdl``: the shortest description of formula and residuals together, in bits:
            n/2 log2(error) + `description_length`, where the error is the larger of loss and leave-one-out
            error; a formula of more than 40 tokens must also be better by more than the standard error of
            its mean square. ``bic``: the Bayesian information criterion over k fitted constants,
            n log(loss) + k log(n). ``score``: the
            steepest fall of the loss by complexity, -d log(loss) / d complexity, among the candidates within
            1.5 times the lowest loss that fit better than all less complex ones, as in PySR.
            ``accuracy``: the lowest error, the larger of loss and leave-one-out error.
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
        exact = np.flatnonzero(losses_of(self) <= self.tolerance)
        if len(exact):
            return int(exact[0])
        if selection == "holdout":
            if self.held_out is None:
                raise ValueError(
                    "No rows were held out: the fit had another selection, or too few rows that differ. Fit "
                    "with selection='holdout' and more rows, or choose another rule."
                )
            return int(np.argmin(self.held_out * [candidate.handicap for candidate in self]))
        if selection == "accuracy" or len(self) == 1:  # along the front the error falls
            return len(self) - 1
        if selection == "mdl":
            return shortest(self, self.n_samples)
        return least_bic(self, self.n_samples) if selection == "bic" else steepest(self)

    def rivals(self, index: int) -> list[int]:
        """Return the candidates of another form whose descriptions of the data tie with that of a candidate.

        The bits of formula and residuals differ by at most 3, which is odds of eight to one. An exact fit has
        none.
        """
        is_exact = losses_of(self)[index] <= self.tolerance
        return [] if is_exact else rivals(self, index, self.n_samples)
