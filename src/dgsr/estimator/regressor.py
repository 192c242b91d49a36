"""`DGSRRegressor`: its parameters and `fit`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.utils.validation import check_consistent_length

from dgsr.data.checks import checked, data_warnings
from dgsr.data.groups import column_of, labels_of, n_columns, numbers_of, values_of, with_numbers
from dgsr.estimator import saving
from dgsr.estimator.one_target import fit_one
from dgsr.estimator.parameters import RULES, Units, explaining_old_names
from dgsr.estimator.several_targets import fit_each
from dgsr.estimator.shown import ShownRegressor
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.library import Library
from dgsr.fitting.losses import Loss
from dgsr.reporting.progress import SearchCallback
from dgsr.reporting.warning import warn_caller

if TYPE_CHECKING:
    from dgsr.generator.generator import Generator

    _Method = TypeVar("_Method", bound=Callable[..., Any])

    def _fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[_Method], _Method]:
        """Return the decorator of `fit`; scikit-learn's own one would hide the types of `fit`."""
else:
    from sklearn.base import _fit_context


class DGSRRegressor(ShownRegressor):
    """Symbolic regression with a pre-trained conditional generator.

    Parameters
    ----------
    library : str or Library, default="auto"
        Operators of the formulas: a preset (``"koza"``, ``"koza-const"``, ``"synth"``, ``"physics"``) or a
        `Library`, whose `with_complexities` raises the complexity of operators and columns. ``"auto"`` is
        ``"physics"``, which has fitted constants.
    generator : str, path, Generator or None, default="auto"
        The pre-trained network: a name of `dgsr.list_generators`, a folder, or the object. ``"auto"`` takes
        the shipped one that knows most operators; ``"untrained"`` has random weights; None searches without.
    operators : sequence of str, default=None
        Operators in the place of a library, such as ``["+", "*", "exp"]``; formulas have fitted constants.
        Some bring a short form of what they write: ``*`` squares and cubes, ``^`` the root.
    max_evaluations : int or float, default=2_000_000
        Most equations to evaluate, such as ``1e6``. A thousand candidates that exact search or another
        finder examines count as one; before the rounds a finder is charged a fiftieth of what is left at
        the most.
    max_time : float or None, default=None
        Most seconds to prepare the data and to search. The fit ends a tenth of them and a second later at
        the latest. Loading and compiling, 10 to 40 s once after an installation, do not count.
    refine : bool, "auto", "pqt", "risk-seeking" or "vpg", default="auto"
        Whether the decoder is trained on the best programs during the search. ``"auto"`` keeps it near the
        pre-trained one where a guide drives evolution. The others are the objectives of the paper; True is
        ``"pqt"``, priority queue training.
    look_up : bool, default=True
        Whether finders look for laws beside evolution: exact search in libraries without constants; in
        others laws of two terms, common forms, quotients of polynomials, and symmetries.
    gp : {"compiled", "deap"}, object or None, default="compiled"
        Engine of the genetic programming; an object needs the method `evolve` of
        `dgsr.search.evolution.Engine`. None evolves nothing: every program is sampled, or random without a
        generator.
    max_length : int, default=30
        Most tokens of an equation, at most 100; scale and offset, which a library with constants adds, do
        not count. A sum of parts of such equations may be four times as long.
    loss : {"auto", "squared", "relative", "absolute", "huber"}, other str or callable, default="auto"
        What a formula is judged by. ``"auto"`` begins with squares, and turns to relative errors or leaves
        outliers out where the data show them. Another text is a formula of ``target`` and ``prediction``; a
        callable returns every row's loss.
    selection : {"mdl", "bic", "score", "accuracy", "holdout"}, default="mdl"
        Rule that selects the formula of the front that `predict` uses; an exact fit takes precedence. See
        `dgsr.pareto.ParetoFront.select`.
    constraints : dict or None, default=None
        Rules that every formula keeps: ``required`` and ``forbidden`` columns and operators, ``nested``
        (``{"exp": {"log": 0}}``: log never below exp), ``min_length`` (1 token), and, between the rows,
        ``lower`` and ``upper`` bounds, ``monotone`` (``{"dose": "increasing"}``) and ``at`` (``{"dose": 0,
        "value": 0}``).
    units : Units, dict or None, default=None
        Units by which formulas must be consistent: `dgsr.Units`, or a dict of the columns' units, such as
        ``{"m": "kg", "v": "m/s"}``.
    groups : str or int, default=None
        Name or number of a column of `X` with the labels of groups, such as subjects. The law has one form,
        and each constant one value or a value for each group, whichever describes the data more shortly.
    initial_formulas : sequence of str or Expression, default=None
        Formulas to begin with, such as ``["a*x1/(b + x1)"]``: they compete from the first round on, and may
        be chosen. A name that is no column is a constant to fit.
    form : str or None, default=None
        A formula with unknown functions, such as ``"f(T)*g(p, c) + k"``, which are found each in its place:
        formulas of the front have these `parts`. Other names that are no columns are constants to fit.
    config : dict or None, default=None
        Settings: ``batch_size`` (500 programs a round), ``gp_generations`` (25 a round), ``max_rows`` (200
        that equations are evaluated on; at most 2,000), ``tolerance`` (1e-20, the NMSE of an exact fit) and
        ``new_groups`` (``"mean"``: mean constants predict rows of a new group; ``"raise"``).
    random_state : int, RandomState instance or None, default=None
        With the same data, versions, kind of processor, `n_jobs` and budget of evaluations the same integer
        gives the same result, whatever the number of threads. With `max_time` it need not.
    warm_start : bool, default=False
        Whether a further call of `fit` begins with the formulas that the last one ended with, and with a
        whole budget. Columns and library must be the same, the rows need not.
    checkpoint : str, path or None, default=None
        A file that the search is written to, at most every three seconds. The same call goes on from it,
        after a crash or with a larger budget; a file of other data or settings is refused.
    n_jobs : int or None, default=None
        Searches that share one budget, each in a process of its own or on a machine of a cluster. None is 1,
        or what `joblib.parallel_config` says; -1 is one for each core. Inside a parallel loop they take
        turns.
    verbose : int, default=0
        1 shows the progress of the search: one line on a terminal, a bar in a notebook, otherwise a line
        every two seconds. 0 shows nothing.
    callback : callable, default=None
        A function that is called with a `SearchProgress` after every round, once there is a formula with
        finite values. Where it returns True or raises StopIteration the search ends.

    Attributes
    ----------
    expression_ : Expression
        The chosen formula, which cannot be assigned; `choose` makes it another one.
    sympy_expr_ : sympy.Expr
        The chosen formula in sympy, over symbols named as the features.
    pareto_front_ : ParetoFront
        Candidates in order of their description length, each with `complexity`, `description_length` (bits),
        `loss` (NMSE), `leave_one_out` (NMSE of rows left out), `expression` and the `standard_errors` of its
        constants; see also `predict(X, index=...)`.
    n_evaluations_ : int
        Number of equations evaluated.
    n_examined_ : int
        Number of candidates that exact search and the other finders examined beside these equations; see
        `max_evaluations`. A fit of constants counts as a thousand.
    history_ : list of dict
        Evaluations, seconds, NMSE of the best formula on all rows (`SearchProgress.best_nmse`), rewards,
        restarts and steps of refinement at every call of `callback`. Whenever there are more than 20,000
        entries every second one is removed.
    loss_ : str
        The loss of the formulas: its name, its formula, or ``"callable"``; ``"squared without outliers"`` if
        ``"auto"`` left rows out.
    outliers_ : ndarray of shape (n_outliers,), int
        Numbers of the rows that ``"auto"`` left out, from 0 on; `save` does not write them.
    stop_reason_ : str
        ``"exact fit"`` of the rows of the search, ``"max_evaluations"``, ``"max_time"``, ``"callback"``,
        ``"interrupted"``, ``"constant target"``, or ``"error"`` after an exception from outside.
    groups_ : tuple
        Only with groups: their labels, which are numbered in the column `group_column_`.
    constants_by_group_ : pandas.DataFrame
        The constants of the chosen formula that have a value for each group, a row for each, with their
        standard errors; without columns if all constants are shared.
    random_state_ : int or None
        The `random_state` of the fit, or the integer that was drawn in its place; with it the fit can be
        repeated. None if the targets are constant, or in a file of an earlier version.
    library_ : Library
        The library used, over as many variables as `X` has columns.
    generator_ : str
        Name of the generator used, ``"untrained"`` or ``"none"``.
    estimators_ : list of DGSRRegressor, of length n_outputs
        The fits of the columns of `y`, only when it has several. The attributes above, except `random_state_`
        and `library_`, are then lists with an entry for each column.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only when `X` has column names that are all strings.
    target_name_ : str
        Only in an estimator that `dgsr.load` read: the name of the target that `save` was given, a list of
        them with several outputs.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = RULES

    @explaining_old_names
    def __init__(
        self,
        library: str | Library = "auto",
        generator: str | Path | Generator | None = "auto",
        *,
        operators: Sequence[str] | None = None,
        max_evaluations: float = 2_000_000,
        max_time: float | None = None,
        refine: bool | str = "auto",
        look_up: bool = True,
        gp: Any = "compiled",
        max_length: int = 30,
        loss: str | Loss = "auto",
        selection: str = "mdl",
        constraints: Mapping[str, Any] | None = None,
        units: Units | Mapping[str, str | None] | None = None,
        groups: str | int | None = None,
        initial_formulas: Sequence[str | Expression] | None = None,
        form: str | None = None,
        config: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        checkpoint: str | Path | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: SearchCallback | None = None,
    ) -> None:
        self.library = library
        self.operators = operators
        self.generator = generator
        self.max_evaluations = max_evaluations
        self.max_time = max_time
        self.refine = refine
        self.look_up = look_up
        self.gp = gp
        self.max_length = max_length
        self.loss = loss
        self.selection = selection
        self.constraints = constraints
        self.units = units
        self.groups = groups
        self.initial_formulas = initial_formulas
        self.form = form
        self.config = config
        self.random_state = random_state
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    @_fit_context(prefer_skip_nested_validation=True)
    @np.errstate(all="ignore")  # also where the caller has set numpy to raise errors
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Search for the formula behind the data, or for one of every column of `y`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs; at least two rows of finite numbers.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Target, or several of them; finite numbers. Each of several has a search of its own, with an equal
            share of `max_evaluations` and `max_time`, the same `random_state`, and a `checkpoint` whose name
            ends in ``.0``, ``.1`` and so on.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows in every loss, not negative. Those of an integer type are counts: a row of
            weight 2 is the same as two equal rows. Of other weights, such as inverse variances, the ratios
            alone matter. The effective number of measurements, on which the length of formulas and the errors
            of constants depend, is estimated from how the residuals depend on the weights.
        groups : array-like of shape (n_samples,), optional
            Labels of the groups of the rows, if no column of `X` has them.

        Returns
        -------
        DGSRRegressor
            The estimator itself. Ctrl-C ends the search of a column of `y` with a warning and the best
            formulas so far; another one ends their finishing. If there is no formula yet, KeyboardInterrupt
            is raised. Any other exception leaves the estimator fitted with the best formulas so far, unless
            `y` has several columns.

        Raises
        ------
        ValueError
            If the data or a parameter are unusable; the message says what to change.
        """
        started = time.perf_counter()
        last = self.__dict__.get("_last_fit") if self.warm_start else None
        for name in [*vars(self)]:  # so that nothing of an earlier fit remains after one that fails
            if name.endswith("_") or name in ("_rows", "_last_fit"):
                delattr(self, name)
        X, numbers = self._with_groups(X, groups)
        table = checked(self, X, y, sample_weight)
        names = getattr(self, "feature_names_in_", range(table.X.shape[1]))
        for doubt in data_warnings(table, names, self.group_column_):
            warn_caller(doubt)
        if numbers is not None:
            check_consistent_length(table.X, numbers)
            table = table._replace(X=np.column_stack([table.X, numbers]))
        if table.y.ndim == 1:
            fit_one(self, table, last, started)
        else:
            self._take_outputs(fit_each(self, table, last))
            if self.warm_start:
                self._last_fit = [getattr(one, "_last_fit", None) for one in self.estimators_]
        return self

    def _with_groups(self, X: Any, groups: Any) -> tuple[Any, np.ndarray | None]:
        """Return X with numbers in its column of groups, and the numbers of groups that are apart from X.

        Sets the attributes `groups_` and `group_column_`.
        """
        if groups is not None:
            if self.groups is not None:
                raise ValueError(
                    f"groups={self.groups!r} and the groups of fit are both given; leave out one."
                )
            self.groups_, self.group_column_ = labels_of(groups, "groups"), n_columns(X)
            return X, numbers_of(groups, self.groups_)
        if self.groups is None:
            return X, None
        self.group_column_ = column_of(self.groups, X)
        values = values_of(X, self.group_column_)
        self.groups_ = labels_of(values, f"Column {self.groups!r} of X")
        return with_numbers(X, self.group_column_, numbers_of(values, self.groups_)), None


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
