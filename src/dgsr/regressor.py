"""`DGSRRegressor`: the search behind scikit-learn's conventions, and nothing else."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from rich.console import Console
from rich.text import Text
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.utils import check_random_state, estimator_html_repr
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from dgsr import saving, search
from dgsr.evolution import EvolutionConfig
from dgsr.expressions.constraints import Constraints
from dgsr.expressions.expression import Expression
from dgsr.expressions.library import Library, library_over
from dgsr.finishing import finish, rescaled
from dgsr.generator.config import CONFIGS
from dgsr.pareto import SELECTIONS, Candidate, ParetoFront, front_table, select
from dgsr.preprocessing import Prepared, prepare
from dgsr.reporting.progress import SearchProgress, search_line, shown
from dgsr.search.compiling import compile_kernels

if TYPE_CHECKING:
    from dgsr.generator.generator import Generator

# Share of the rows that selection="holdout" chooses by.
_HELD_OUT = 0.25

# Rows that are kept for a report.
_N_REMEMBERED = 1_000

# Between these, squares of the differences in y, summed over any number of rows, are normal floats.
_SMALLEST_SPREAD, _LARGEST_SPREAD = 1e-140, 1e140


class DGSRRegressor(RegressorMixin, BaseEstimator):
    """Symbolic regression with a pre-trained conditional generator, refined on the data.

    Parameters
    ----------
    library : str or Library, default="auto"
        Token library: the name of a preset (``"koza"``, ``"koza-const"``, ``"synth"``, ``"physics"``),
        or a `Library` of any number of variables. ``"auto"`` is ``"physics"``, which has constants.
    generator : str, path, Generator or None, default="auto"
        The pre-trained generator: a name of `dgsr.generator.checkpoints.list_generators`, a folder, or the
        object. ``"auto"`` takes a shipped one for the library and the number of columns, and an
        untrained one where there is none; ``"untrained"`` has random weights; None leaves the
        network out: genetic programming alone.
    max_evaluations : int, default=2_000_000
        Equations to evaluate at most.
    max_time : float or None, default=None
        Seconds to search at most. Compiling, which takes up to a minute once after an installation, is done
        before and not counted; nor is finishing the front, after it.
    batch_size : int, default=500
        Programs sampled in a round.
    objective : {"pqt", "risk-seeking", "vpg"}, default="pqt"
        What the decoder is refined on: priority queue training or a policy gradient.
    refine : bool, default=True
        Whether the decoder is refined at all.
    look_up : bool, default=True
        Whether a law of exact data is looked up in a catalogue of short formulas, and what makes a near
        miss exact; in libraries without fitted constants.
    gp : {"compiled", "deap"} or object, default="compiled"
        Engine of the genetic programming; an object needs the method `evolve` of
        `dgsr.evolution.Engine`.
    gp_generations : int, default=25
        Generations in a round; 0 leaves genetic programming out.
    min_length, max_length : int, default=1, 30
        Tokens of an equation; of a library with constants before scale and offset.
    max_rows : int or None, default=200
        Rows the search evaluates equations on: a random sample of a larger data set. The front is
        fitted on up to 2,000 and judged on all rows in any case.
    selection : {"mdl", "bic", "score", "accuracy", "holdout"}, default="mdl"
        Which candidate of the front predicts, unless one fits exactly; see `dgsr.pareto.select`.
    tolerance : float, default=1e-20
        NMSE at which a fit is exact and the search stops.
    random_state : int, RandomState instance or None, default=None
        The same integer gives the same result, whatever the number of threads.
    warm_start : bool, default=False
        Whether a further call of `fit` begins with the formulas and the decoder the last one ended with, and
        searches on for as much again; the columns and the library must be the same, the rows need not.
    verbose : int, default=0
        1 shows how the search goes: one line on a terminal, a bar in a notebook, else a line every two
        seconds. 0 is silent.
    callback : callable, default=None
        Called with a `SearchProgress` after every round, once there is a formula with finite values.

    Attributes
    ----------
    expression_ : Expression
        The chosen formula.
    sympy_expr_ : sympy.Expr
        The same in sympy, over symbols named as the features.
    pareto_front_ : ParetoFront
        Candidates in order of complexity, each with `complexity`, `loss` (NMSE) and `expression`; see also
        `predict(X, index=...)`.
    n_evaluations_ : int
        Equations evaluated.
    history_ : list of dict
        Evaluations, seconds, best NMSE and rewards after every round.
    stop_reason_ : str
        ``"exact fit"``, ``"max_evaluations"``, ``"max_time"``, ``"interrupted"``,
        ``"constant target"``, or ``"error"`` after an exception of the callback or from outside.
    library_ : Library
        The library used.
    generator_ : str
        Name of the generator used, ``"untrained"`` or ``"none"``.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when `X` has column names that are all strings.

    References
    ----------
    Holt, Qian, van der Schaar, "Deep Generative Symbolic Regression", ICLR 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from dgsr import DGSRRegressor
    >>> X = np.random.default_rng(0).uniform(1, 5, (20, 2))
    >>> model = DGSRRegressor(random_state=0).fit(X, X[:, 0] * X[:, 1])
    >>> print(model.expression_)
    x1*x2
    """

    expression_: Expression

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "library": [str, Library],
        "generator": [str, Path, HasMethods(["encode_dataset", "refinable_copy"]), None],
        "max_evaluations": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "objective": [StrOptions(set(search.OBJECTIVES))],
        "refine": ["boolean"],
        "look_up": ["boolean"],
        "gp": [StrOptions({"compiled", "deap"}), HasMethods("evolve")],
        "gp_generations": [Interval(Integral, 0, None, closed="left")],
        "min_length": [Interval(Integral, 1, None, closed="left")],
        "max_length": [Interval(Integral, 2, None, closed="left")],
        "max_rows": [Interval(Integral, 2, None, closed="left"), None],
        "selection": [StrOptions(set(SELECTIONS))],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    def __init__(
        self,
        library: str | Library = "auto",
        generator: str | Path | Generator | None = "auto",
        *,
        max_evaluations: int = 2_000_000,
        max_time: float | None = None,
        batch_size: int = 500,
        objective: str = "pqt",
        refine: bool = True,
        look_up: bool = True,
        gp: Any = "compiled",
        gp_generations: int = 25,
        min_length: int = 1,
        max_length: int = 30,
        max_rows: int | None = 200,
        selection: str = "mdl",
        tolerance: float = 1e-20,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        callback: Callable[[SearchProgress], None] | None = None,
    ) -> None:
        self.library = library
        self.generator = generator
        self.max_evaluations = max_evaluations
        self.max_time = max_time
        self.batch_size = batch_size
        self.objective = objective
        self.refine = refine
        self.look_up = look_up
        self.gp = gp
        self.gp_generations = gp_generations
        self.min_length = min_length
        self.max_length = max_length
        self.max_rows = max_rows
        self.selection = selection
        self.tolerance = tolerance
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DGSRRegressor:
        """Search for the formula behind the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, at least two rows, finite.
        y : array-like of shape (n_samples,)
            Target, finite.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in every loss, not negative. A row of weight 2 counts as two equal rows.

        Returns
        -------
        DGSRRegressor
            The estimator itself. Ctrl-C ends the search with a warning and keeps the best so far; any
            other exception passes through and leaves the estimator fitted with the best so far.

        Raises
        ------
        ValueError
            If the data or a parameter are unusable; the message says what to change.
        """
        before = self.__dict__.pop("_left", None) if self.warm_start else None
        for name in ("expression_", "_left"):
            self.__dict__.pop(name, None)  # so that a failed fit leaves nothing of the one before
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, dtype=np.float64)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
            if not sample_weight.any():
                raise ValueError("sample_weight is 0 in every row; give some row a weight above 0.")
        self._check_feature_names_differ()
        self.library_ = library_over(self.library, X.shape[1])
        self._remember(X, y, sample_weight)
        kept = y if sample_weight is None else y[sample_weight > 0]
        if kept.min() == kept.max():
            return self._fit_constant(float(kept[0]))
        _check_spread(kept)
        constraints = Constraints(min_length=self.min_length, max_length=self.max_length)
        if before is not None and before["library"] != self.library_:
            raise ValueError(
                "warm_start=True goes on with the columns and the library of the last fit, and these are "
                "others; set warm_start=False, or fit a clone."
            )
        n_before = 0 if before is None else before["n_fits"]
        random = check_random_state(self.random_state)
        seed = int(random.randint(np.iinfo(np.int32).max, size=n_before + 1)[-1])
        generator = self._resolve_generator(constraints, seed)
        config = search.SearchConfig(
            max_evaluations=int(self.max_evaluations),
            max_time=self.max_time,
            tolerance=float(self.tolerance),
            batch_size=int(self.batch_size),
            objective=self.objective,
            refine=self.refine,
            look_up=self.look_up,
            evolution=EvolutionConfig(generations=int(self.gp_generations)),
        )
        prepared = prepare(
            X,
            y,
            sample_weight,
            rescale=self.library_.has_constants,
            max_rows=self.max_rows,
            held_out=_HELD_OUT if self.selection == "holdout" else 0.0,
            scales=None if before is None else before["scales"],
            seed=seed,
        )
        # Losses may overflow, whatever the caller has numpy do then.
        with _one_thread(), np.errstate(all="ignore"):
            compile_kernels(self.library_.has_constants, _print if self.verbose else None)
            run = search.Search(prepared.search, self.library_, constraints, config, generator, self.gp, seed)
            if before is not None:
                run.begin_with(before["search"])
            self._run(run, prepared)
        if self.warm_start:
            self._left = {
                "n_fits": n_before + 1,
                "library": self.library_,
                "scales": prepared.column_scales,
                "search": run.state_dict(),
            }
        if self.verbose:
            self._show_end()
        return self

    def _run(self, run: search.Search, prepared: Prepared) -> None:
        """Search, and leave a fitted estimator behind however it ends."""
        reason = "error"
        try:
            with self._shown() as show:
                reason = search.run(run, None if show is None else partial(self._report, prepared, show))
        except KeyboardInterrupt:
            if not np.isfinite(run.archive.best_nmse()):
                raise
            reason = "interrupted"
            warnings.warn("The search was interrupted; the best formulas so far are kept.", stacklevel=4)
        finally:
            if np.isfinite(run.archive.best_nmse()):
                self._store(run, prepared, reason)
        if not hasattr(self, "expression_"):
            if reason == "max_time" and run.n_evaluations == 0:
                raise ValueError(
                    f"max_time={self.max_time} ended before the first equation was evaluated; raise it."
                )
            raise ValueError(
                f"None of {run.n_evaluations} equations had finite values on every row of X; raise "
                "max_evaluations or max_time, or rescale the inputs."
            )

    def _store(self, run: search.Search, prepared: Prepared, reason: str) -> None:
        programs = run.archive.population()
        if self.library_.has_constants:
            expressions = finish(
                programs, prepared.column_scales, prepared.fitted, self.library_, self.tolerance
            )
        else:
            expressions = [programs[i] for i in range(len(programs))]
        front = ParetoFront.from_expressions(
            expressions, prepared.data, self._feature_names(), self.tolerance, prepared.held_out
        )
        if len(front) == 0:  # finite on the rows of the search only
            return
        self.pareto_front_ = front
        # Of a few rows none are held out, and the lowest loss chooses.
        chosen = select(front, self.selection, self.tolerance, front.n_samples, front.held_out)
        self.expression_ = front[chosen].expression
        self.n_evaluations_ = run.n_evaluations
        self.history_ = run.history
        self.stop_reason_ = reason

    def _fit_constant(self, value: float) -> DGSRRegressor:
        warnings.warn(f"y is {value:g} in every row; the formula is that number.", stacklevel=4)
        library = Library("constant", (), True, self.n_features_in_)
        self.expression_ = Expression(library, [library.index["const"]], [value], self._feature_names())
        self.pareto_front_ = ParetoFront([Candidate(1, 0.0, self.expression_)], tolerance=self.tolerance)
        self.n_evaluations_ = 0
        self.history_ = []
        self.stop_reason_ = "constant target"
        self.generator_ = "none"
        return self

    def predict(self, X: Any, index: int | str | None = None) -> np.ndarray:
        """Evaluate a formula.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        index : int or str, optional
            Another candidate than the chosen one: its number in `pareto_front_`, or the name of the rule that
            chooses it, as of `selection`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Not finite where the formula is undefined.

        Raises
        ------
        ValueError
            If there is no such candidate or rule.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._candidate(index)(X)

    def _candidate(self, index: int | str | None) -> Expression:
        if index is None:
            return self.expression_
        front = self.pareto_front_
        if isinstance(index, str):
            return front[front.select(index)].expression
        if not isinstance(index, Integral) or not -len(front) <= index < len(front):
            raise ValueError(
                f"index={index!r} is no candidate; give a number from 0 to {len(front) - 1}, or the name of "
                f"a rule: {', '.join(SELECTIONS)}."
            )
        return front[int(index)].expression

    def with_feature_names(self, feature_names: Sequence[str]) -> DGSRRegressor:
        """Return a copy of the fitted estimator whose formulas call the features so.

        Parameters
        ----------
        feature_names : sequence of str, of length n_features_in_
        """
        check_is_fitted(self)
        other = copy.copy(self)
        other.pareto_front_ = self.pareto_front_.with_feature_names(feature_names)
        other.expression_ = self.expression_.with_feature_names(feature_names)
        return other

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to a file that `dgsr.load` reads; see `dgsr.saving.save`."""
        check_is_fitted(self)
        saving.save(self, path)

    def report(self, path: str | Path, X: Any = None, y: Any = None, **options: Any) -> None:
        """Write a page of HTML on the fit.

        Parameters
        ----------
        path : str or Path
        X, y : array-like, optional
            Rows to show the candidates on; those of the fit by default, of more than 1,000 a sample.
        **options
            Of `dgsr.reporting.write_report`.

        Raises
        ------
        ValueError
            If `X` or `y` is missing, or both are and the estimator was loaded from a file, which has no rows.
        """
        from dgsr.reporting import write_report

        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("Only one of X and y is given; give both, or none for the rows of the fit.")
        if X is None:
            if not hasattr(self, "_rows"):
                raise ValueError("The estimator was loaded from a file, which has no rows; give X and y.")
            X, y, weights = self._rows
            options = {"sample_weight": weights, **options}
        with warnings.catch_warnings():
            # The rows of the fit are kept without their names.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            write_report(self, path, X, y, **options)

    def _remember(self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None) -> None:
        """Keep rows from all over the data for a report."""
        n = min(len(y), _N_REMEMBERED)
        rows = np.arange(n) * len(y) // n
        self._rows = X[rows], y[rows], None if sample_weight is None else sample_weight[rows]

    def _html_repr(self) -> str:
        """scikit-learn's picture of an estimator, under the formula and the front of a fitted one."""
        diagram = estimator_html_repr(self)
        if not hasattr(self, "expression_"):
            return diagram
        chosen = next(i for i, c in enumerate(self.pareto_front_) if c.expression == self.expression_)
        return (
            f'<div style="font-size: 1.3em; margin: 0.5em 0">{self.expression_.mathml}</div>'
            f"<details open><summary>{len(self.pareto_front_)} candidates</summary>"
            f"{front_table(self.pareto_front_, chosen)}</details>{diagram}"
        )

    @property
    def sympy_expr_(self) -> Any:
        check_is_fitted(self)
        return self.expression_.sympy

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "expression_")

    def _check_feature_names_differ(self) -> None:
        names = self._feature_names() or []
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"X has several columns named {repeated[0]!r}; give each its own name.")

    def _feature_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else list(names)

    def _resolve_generator(self, constraints: Constraints, seed: int) -> Generator | None:
        """Find the generator and set `generator_`."""
        chosen = self.generator
        if chosen is None:
            self.generator_ = "none"
            return None
        # Here, not above: both import torch, which takes more than a second.
        from dgsr.generator.checkpoints import find_generator, load_generator
        from dgsr.generator.generator import Generator

        if chosen == "auto":
            name = find_generator(self.library_, self.max_length)
            chosen = "untrained" if name is None else name
        if chosen == "untrained":
            self.generator_ = "untrained"
            config = CONFIGS["paper"].with_max_length(self.max_length)
            return Generator.untrained(self.library_, config, constraints, seed)
        generator = chosen if isinstance(chosen, Generator) else load_generator(chosen)
        self.generator_ = "given" if isinstance(chosen, Generator) else str(chosen)
        of = generator.library
        if of.operators != self.library_.operators or of.has_constants != self.library_.has_constants:
            raise ValueError(
                f"The generator {self.generator_!r} is for the library {of.name!r}, the search uses "
                f"{self.library_.name!r}; set library={of.name!r}, or choose another generator."
            )
        if self.max_length > generator.config.max_length:
            raise ValueError(
                f"max_length={self.max_length} is more than the {generator.config.max_length} tokens the "
                f"generator {self.generator_!r} can write; lower it, or set generator='untrained'."
            )
        return generator.with_variables(self.library_.n_variables)

    def _report(self, prepared: Prepared, show: Callable[[SearchProgress], None], run: search.Search) -> None:
        if not np.isfinite(run.archive.best_nmse()):
            return
        programs = run.archive.population()
        best = rescaled(programs[len(programs) - 1], prepared.column_scales)
        best = best.with_feature_names(self._feature_names())
        spent = [run.n_evaluations / self.max_evaluations]
        if self.max_time is not None:
            spent.append(run.seconds / self.max_time)
        best_nmse = run.archive.best_nmse()
        show(SearchProgress(run.n_evaluations, run.seconds, best_nmse, best, min(max(spent), 1.0)))

    @contextmanager
    def _shown(self) -> Iterator[Callable[[SearchProgress], None] | None]:
        """Give what is to be told of every round, if anything is."""
        if not self.verbose:
            yield self.callback
            return
        with shown(search_line, Console(highlight=False), lambda progress: progress.share) as show:

            def both(progress: SearchProgress) -> None:
                show(progress)
                if self.callback is not None:
                    self.callback(progress)

            yield both

    def _show_end(self) -> None:
        loss = min(candidate.loss for candidate in self.pareto_front_)
        line = (
            f"{self.n_evaluations_:,} evaluations, best NMSE {loss:.3g}, stopped: {self.stop_reason_}; "
            f"chosen: {self.expression_}"
        )
        _print(line)


def load(path: str | Path) -> DGSRRegressor:
    """Read an estimator that `DGSRRegressor.save` wrote.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DGSRRegressor
        A fitted one, which predicts as the one that was saved.

    Raises
    ------
    ValueError
        If the file is no saved estimator, is damaged, or was written by a later version of dgsr.
    FileNotFoundError
        If there is none.
    """
    return saving.load(path, DGSRRegressor)


def _print(line: str) -> None:
    Console(highlight=False).print(Text(line), soft_wrap=True)


def _check_spread(y: np.ndarray) -> None:
    with np.errstate(over="ignore"):
        spread = float(np.ptp(y))
    if not _SMALLEST_SPREAD <= spread <= _LARGEST_SPREAD:
        raise ValueError(
            f"The values of y spread over {spread:g}, and squares of that are beyond a float; rescale y, "
            "to a standard deviation of 1 for example."
        )


@contextmanager
def _one_thread() -> Any:
    """Let torch use one thread: sums then have one order, and parallel fits don't fight for cores."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
