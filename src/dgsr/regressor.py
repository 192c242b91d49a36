"""`DGSRRegressor`: its parameters, and `fit`, the search behind scikit-learn's conventions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, validate_data

from dgsr import saving
from dgsr.constants.scaling import check_can_scale
from dgsr.constants.uncertainty import Uncertainty
from dgsr.expressions.constraints import Constraints
from dgsr.expressions.expression import Expression
from dgsr.expressions.library import Library, library_over
from dgsr.fitted import FittedRegressor
from dgsr.pareto import SELECTIONS, Candidate, ParetoFront
from dgsr.passes import (
    LOSSES,
    Beginning,
    Demands,
    LastFit,
    Loss,
    Outcome,
    Passes,
    check_loss,
    planned,
)
from dgsr.preprocessing import check_spread
from dgsr.reporting.facts import evenly_spaced_rows
from dgsr.reporting.progress import SearchCallback, print_line, printable, search_shown
from dgsr.search import OBJECTIVES

if TYPE_CHECKING:
    from dgsr.generator.generator import Generator


class DGSRRegressor(FittedRegressor):
    """Symbolic regression with a pre-trained conditional generator, refined on the data.

    Parameters
    ----------
    library : str or Library, default="auto"
        Token library: the name of a preset (``"koza"``, ``"koza-const"``, ``"synth"``, ``"physics"``),
        or a `Library` of any number of variables. ``"auto"`` is ``"physics"``, which has constants.
    generator : str, path, Generator or None, default="auto"
        The pre-trained generator: a name of `dgsr.list_generators`, a folder, or the
        object. ``"auto"`` takes the shipped one that knows most operators of the library, for programs of any
        length; it never writes the others, which evolution does. Where none knows any, the network is
        untrained, and a warning says so. ``"untrained"`` has random weights; None searches by genetic
        programming without a network.
    max_evaluations : int or float, default=2_000_000
        Most equations to evaluate, such as ``1e6``.
    max_time : float or None, default=None
        Most seconds to search. Compiling before the search, which takes up to a minute once after an
        installation, starting the processes of `n_jobs` and finishing the front do not count.
    batch_size : int, default=500
        Programs sampled in a round.
    objective : {"pqt", "risk-seeking", "vpg"}, default="pqt"
        How the decoder is refined: by priority queue training, a risk-seeking or a vanilla policy gradient.
    refine : bool or "auto", default="auto"
        Whether the decoder is refined during the search. ``"auto"`` refines it but where constants are fitted
        and the generator has a guide, as in the default library: there it took time and found no more.
    look_up : bool, default=True
        Whether short laws are looked for exhaustively, too. In libraries without fitted constants exact
        search solves for the law of exact data before and between the rounds, and repairs near misses; in
        those with constants all laws of two simple terms are compared before the first round.
    gp : {"compiled", "deap"} or object, default="compiled"
        Engine of the genetic programming; an object needs the method `evolve` of
        `dgsr.evolution.Engine`.
    gp_generations : int, default=25
        Generations of genetic programming in a round; 0 leaves it out.
    min_length, max_length : int, default=1, 30
        Fewest and most tokens of an equation; scale and offset, which a library with constants adds, do not
        count. A sum of parts of such equations, for data that no short formula fits, may be four times as
        long.
    max_rows : int or None, default=200
        Most rows that the search evaluates equations on, a random sample of a larger data set; None and more
        than 2,000 stand for 2,000. The constants of the front are fitted on up to 2,000 rows, and its losses
        are those on all rows, in any case.
    loss : {"auto", "squared", "relative", "absolute", "huber"} or callable, default="auto"
        What a formula is judged by: the square of its error, the square of its relative error, the size of
        its error, or squares up to 1.345 robust standard deviations and sizes beyond. A callable is given the
        targets and the values of a formula, arrays of shape (n_rows,), and returns the loss of every row, not
        negative. ``"auto"`` is squared, but where the median size of the targets is a hundredth of the
        largest, or less, and none is 0: there half of the budget judges relative errors, if the data have any
        noise, and the shorter description of formula and residuals is kept. Losses are searched for as
        weights of the rows, and those of the front are NMSE under these weights.
    selection : {"mdl", "bic", "score", "accuracy", "holdout"}, default="mdl"
        Rule that chooses the candidate of the front that predicts, unless one fits exactly; see
        `dgsr.pareto.ParetoFront.select`.
    tolerance : float, default=1e-20
        NMSE at which a fit is exact and the search stops.
    random_state : int, RandomState instance or None, default=None
        The same integer gives the same result, whatever the number of threads.
    initial_formulas : sequence of str or Expression, default=None
        Formulas to begin with, such as ``["a*x1/(b + x1)"]``: they compete from the first round on, and may
        be chosen as they are. A name that is no column is a constant to fit; a column whose name is no word
        stands in backticks, as in the text of a formula.
    required, forbidden : sequence of str, default=None
        Names of columns and operators that every formula of the front has, such as ``["x1", "exp"]``, and
        those that none has. The scale and the offset around a formula do not count.
    units : dict of str to str, default=None
        Units of the columns by name, such as ``{"m": "kg", "v": "m/s"}``, read by pint (``dgsr[units]``).
        Only dimensionally consistent formulas are then kept. The unit ``""`` has no dimension; that of a
        column without an entry is unknown, and nothing is held against it. Only dimensions count: km and m
        are alike.
    y_units : str, default=None
        Unit of the target, such as ``"J"``; None if it is unknown.
    unitless_constants : bool, default=False
        Whether constants are mere numbers. Otherwise each may carry a unit, which the front prints.
    unit_penalty : float or None, default=None
        What violations of units cost: the loss of a formula counts 1 + unit_penalty times their number. None
        keeps no formula that has any.
    warm_start : bool, default=False
        Whether a further call of `fit` begins with the formulas and the decoder that the last one ended
        with, and has a whole budget of its own; the columns and the library must be the same, the rows need
        not.
    checkpoint : str, path or None, default=None
        A file that the search is written to as it goes, at most every three seconds. The same call goes on
        from it, after a crash or with a larger budget; with a budget of evaluations the result is that of
        one uninterrupted fit. Where the file holds a fit of other data or settings the call is refused.
    n_jobs : int or None, default=None
        Number of searches that look for the law together, each in a process of its own, or on a machine of a
        cluster where joblib's backend is one. They share one budget, one archive and one front, and their
        best formulas migrate. With `max_time` they meet by the clock, and what they find depends on how fast
        the machine is. None is 1, or what `joblib.parallel_config` says; -1 is one for each core.
        Inside a parallel loop, as of `GridSearchCV`, they take turns in one process, and None and -1 are 1.
    verbose : int, default=0
        1 shows the progress of the search: one line on a terminal, a bar in a notebook, else a line every
        two seconds. 0 shows nothing.
    callback : callable, default=None
        A function that is called with a `SearchProgress` after every round, once there is a formula with
        finite values; with `n_jobs`, after the few rounds that its searches do between two exchanges. Where
        it returns True or raises StopIteration the search ends, and the best so far is kept.

    Attributes
    ----------
    expression_ : Expression
        The chosen formula.
    sympy_expr_ : sympy.Expr
        The chosen formula in sympy, over symbols named as the features.
    pareto_front_ : ParetoFront
        Candidates in order of their description length, each with `complexity`, `description_length` (bits),
        `loss` (NMSE), `leave_one_out` (NMSE of rows left out), `expression` and the `standard_errors` of its
        constants; see also `predict(X, index=...)`.
    n_evaluations_ : int
        Number of equations evaluated.
    history_ : list of dict
        Evaluations, seconds, best NMSE and rewards at every call of `callback`.
    loss_ : str
        The loss that the formulas were judged by, ``"callable"`` for one of your own.
    stop_reason_ : str
        ``"exact fit"``, ``"max_evaluations"``, ``"max_time"``, ``"callback"``, ``"interrupted"``,
        ``"constant target"``, or ``"error"`` after an exception of the callback or from outside.
    random_state_ : int or None
        The `random_state` of the fit, or the integer that was drawn in its place: it repeats the fit. None if
        nothing is random because the targets are constant.
    library_ : Library
        The library used, over as many variables as `X` has columns.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "library": [str, Library],
        "generator": [str, Path, HasMethods(["encode_dataset", "refinable_copy"]), None],
        "max_evaluations": [Interval(Real, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "objective": [StrOptions(set(OBJECTIVES))],
        "refine": ["boolean", StrOptions({"auto"})],
        "look_up": ["boolean"],
        "gp": [StrOptions({"compiled", "deap"}), HasMethods("evolve")],
        "gp_generations": [Interval(Integral, 0, None, closed="left")],
        "min_length": [Interval(Integral, 1, None, closed="left")],
        "max_length": [Interval(Integral, 2, None, closed="left")],
        "max_rows": [Interval(Integral, 2, None, closed="left"), None],
        "loss": [StrOptions(set(LOSSES)), callable],
        "selection": [StrOptions(set(SELECTIONS))],
        "tolerance": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "initial_formulas": ["array-like", None],
        "required": ["array-like", None],
        "forbidden": ["array-like", None],
        "units": [dict, None],
        "y_units": [str, None],
        "unitless_constants": ["boolean"],
        "unit_penalty": [Interval(Real, 0, None, closed="left"), None],
        "warm_start": ["boolean"],
        "checkpoint": [str, Path, None],
        "n_jobs": [
            Interval(Integral, None, -1, closed="right"),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    def __init__(
        self,
        library: str | Library = "auto",
        generator: str | Path | Generator | None = "auto",
        *,
        max_evaluations: float = 2_000_000,
        max_time: float | None = None,
        batch_size: int = 500,
        objective: str = "pqt",
        refine: bool | str = "auto",
        look_up: bool = True,
        gp: Any = "compiled",
        gp_generations: int = 25,
        min_length: int = 1,
        max_length: int = 30,
        max_rows: int | None = 200,
        loss: str | Loss = "auto",
        selection: str = "mdl",
        tolerance: float = 1e-20,
        random_state: int | np.random.RandomState | None = None,
        initial_formulas: Sequence[str | Expression] | None = None,
        required: Sequence[str] | None = None,
        forbidden: Sequence[str] | None = None,
        units: dict[str, str | None] | None = None,
        y_units: str | None = None,
        unitless_constants: bool = False,
        unit_penalty: float | None = None,
        warm_start: bool = False,
        checkpoint: str | Path | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: SearchCallback | None = None,
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
        self.loss = loss
        self.selection = selection
        self.tolerance = tolerance
        self.random_state = random_state
        self.initial_formulas = initial_formulas
        self.required = required
        self.forbidden = forbidden
        self.units = units
        self.y_units = y_units
        self.unitless_constants = unitless_constants
        self.unit_penalty = unit_penalty
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DGSRRegressor:
        """Search for the formula behind the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs; at least two rows of finite numbers.
        y : array-like of shape (n_samples,)
            Target; finite numbers.
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
        last = self.__dict__.pop("_last_fit", None) if self.warm_start else None
        for name in ("expression_", "_last_fit"):
            self.__dict__.pop(name, None)  # so that a fit that fails leaves nothing of an earlier one
        X, y, sample_weight = self._checked(X, y, sample_weight)
        names = self._feature_names()
        library = library_over(self.library, X.shape[1])
        demands = Demands.of(self.required, self.forbidden, library, names)
        self.library_ = demands.library
        check_can_scale(self.library_)
        shown = evenly_spaced_rows(len(y))  # for `report`
        self._rows = X[shown], y[shown], None if sample_weight is None else sample_weight[shown]
        targets = y if sample_weight is None else y[sample_weight > 0]
        if targets.min() == targets.max():
            return self._fit_constant(float(targets[0]))
        check_spread(targets)
        check_loss(self.loss, targets)
        parameters = self.get_params(deep=False)
        begin = Beginning.of(parameters, self.library_, last)
        self.random_state_: int | None = begin.random_state
        searches = planned(parameters, (X, y, sample_weight), names, demands, begin, self._resolve_generator)
        self._run(searches, begin.search)
        if self.warm_start:
            state, scales = searches.search.state_dict(), searches.prepared.column_scales
            state.pop("islands", None)  # a search begins with what they found together
            self._last_fit = LastFit(begin.n_fits + 1, self.library_, scales, state)
        if self.verbose:
            loss = min(candidate.loss for candidate in self.pareto_front_)
            line = (
                f"{self.n_evaluations_:,} evaluations, best NMSE {loss:.3g}, stopped: {self.stop_reason_}; "
                f"chosen: {self.expression_}"
            )
            print_line(printable(line))
        return self

    def _checked(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return the data as arrays of floats; ValueError if they cannot be fitted."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
            if not sample_weight.any():
                raise ValueError("sample_weight is 0 in every row; give some row a weight above 0.")
        names = self._feature_names() or []
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"X has several columns named {repeated[0]!r}; give each its own name.")
        return X, np.asarray(y, dtype=np.float64), sample_weight

    def _run(self, searches: Passes, state: dict[str, Any] | None) -> None:
        """Search, and leave a fitted estimator behind however it ends."""
        n_rows = len(searches.prepared.data.y)
        if n_rows < 3:
            warnings.warn(
                f"So few rows ({n_rows}) cannot tell formulas apart, because nearly every one can be "
                "fitted to them; give more.",
                stacklevel=4,
            )
        try:
            with search_shown(bool(self.verbose), self.callback) as show:
                outcome = searches.run(state, show)
        finally:
            if searches.outcome is not None:
                self._take(searches, searches.outcome)
        if searches.stop_reason == "interrupted":
            warnings.warn("The search was interrupted; the best formulas so far are kept.", stacklevel=4)
        linear = outcome.better_linear_model(self.tolerance)
        if linear is not None:
            warnings.warn(
                f"A linear model of all columns predicts rows left out better than the chosen formula (NMSE "
                f"{linear:.3g}, formula {outcome.chosen.leave_one_out:.3g}); the data may have no shorter "
                "law, or the search may need more time.",
                stacklevel=4,
            )

    def _take(self, searches: Passes, outcome: Outcome) -> None:
        """Set the attributes of the fit."""
        self.pareto_front_ = outcome.front
        self.expression_ = outcome.chosen.expression
        self.loss_ = outcome.loss if isinstance(outcome.loss, str) else "callable"
        self.n_evaluations_ = searches.search.n_evaluations
        self.history_ = searches.history
        self.stop_reason_ = searches.stop_reason

    def _fit_constant(self, value: float) -> DGSRRegressor:
        if self.required is not None and len(self.required):
            raise ValueError(
                f"y is {value:g} in every row, and required={[*self.required]} asks for more than a number; "
                "require nothing, or give targets that vary."
            )
        warnings.warn(f"y is {value:g} in every row; the formula is that number.", stacklevel=4)
        library = Library("constant", (), True, self.n_features_in_)
        self.expression_ = Expression(library, [library.index["const"]], [value], self._feature_names())
        certain = Uncertainty(0.0, np.zeros((1, 1)), np.zeros(1), 0.0)
        candidate = Candidate(1, 0.0, self.expression_, certain)
        self.pareto_front_ = ParetoFront([candidate], tolerance=self.tolerance)
        self.n_evaluations_ = 0
        self.history_ = []
        self.loss_ = "squared"
        self.stop_reason_ = "constant target"
        self.random_state_ = None
        self.generator_ = "none"
        return self

    def _resolve_generator(self, constraints: Constraints, seed: int) -> Generator | None:
        """Return the generator for this fit, and set `generator_` to its name."""
        if self.generator is None:
            self.generator_ = "none"
            return None
        # Imported here since it imports torch, which takes more than a second.
        from dgsr.generator.choice import choose_generator

        self.generator_, generator = choose_generator(self.generator, self.library_, constraints, seed)
        return generator


def load(path: str | Path) -> DGSRRegressor:
    """Read an estimator that `DGSRRegressor.save` wrote.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    DGSRRegressor
        A fitted estimator, which predicts as the saved one did.

    Raises
    ------
    ValueError
        If the file is no saved estimator, is damaged, or was written by a later version of dgsr.
    FileNotFoundError
        If there is no such file.
    """
    return saving.load(path, DGSRRegressor)
