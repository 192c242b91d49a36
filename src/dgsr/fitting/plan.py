"""From the parameters of a fit and its data to the searches that it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dgsr.data import prepare, redundant_columns
from dgsr.data.dataset import DataSet
from dgsr.data.table import Table
from dgsr.expressions.formulas.coordinates import can_have_origins
from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.form import Form
from dgsr.expressions.programs.library import Library
from dgsr.expressions.programs.units import Units
from dgsr.finders import Budget
from dgsr.finishing.by_group import Grouping
from dgsr.fitting.beginning import OTHER_DATA, Beginning
from dgsr.fitting.ending import SelectionSettings
from dgsr.fitting.initial import Initial, initial_programs
from dgsr.fitting.losses import near_neighbours
from dgsr.fitting.run import FitDriver
from dgsr.fitting.shape import shape_of
from dgsr.search import Islands, Search, SearchConfig, compile_kernels, number_of_islands
from dgsr.search.evolution import EvolutionConfig

if TYPE_CHECKING:
    from dgsr.generator.generator import Generator

# Starting points from which the constants of a form without unknown functions are fitted.
_STARTS = 1_000
# Fewest tokens that a form must leave to an unknown function.
_LEAST_TOKENS = 3


def planned(
    parameters: Mapping[str, Any],
    table: Table,
    feature_names: Sequence[str] | None,
    library: Library,
    constraints: Constraints,
    begin: Beginning,
    budget: Budget,
    grouping: Grouping | None,
    choose_generator: Callable[[Constraints, int], Generator | None],
) -> FitDriver:
    """Return the searches of a fit, after compiling its kernels and claiming its checkpoint.

    The `parameters` are settings of the estimator by `flat`, library and constraints those of `demanded`. The
    clock of the budget is stopped while packages are loaded and kernels compiled. `choose_generator` returns
    the generator for constraints and a seed. Raises ValueError if the units, the initial formulas, the
    generator or the checkpoint are unusable.
    """
    names = [*library.variable_names] if feature_names is None else [*feature_names]
    if (form := _form(parameters, library, names, constraints)) is not None:
        constraints = replace(constraints, form=form)
    # A form names the columns as they are. Constraints and units may not allow x - 1990 in place of a
    # column x.
    has_units = parameters["units"] is not None and parameters["unitless_constants"]
    with_origins = (
        form is None and not has_units and can_have_origins(library) and not _is_limited("sub", constraints)
    )
    with_scales = form is None and library.has_constants and not _is_limited("mul", constraints)
    if (known := begin.coordinates) is not None:
        needs_origins, needs_scales = known.origins.any(), (known.scales != 1.0).any()
        cannot_be_written = (needs_origins and not with_origins) or (needs_scales and not with_scales)
        if cannot_be_written or not known.suit(table.weighted.X):
            raise ValueError(OTHER_DATA)
    prepared = prepare(
        table,
        with_scales=with_scales,
        with_origins=with_origins,
        max_rows=parameters["max_rows"],
        held_out=0.25 if parameters["selection"] == "holdout" else 0.0,
        held_out_seed=begin.held_out_seed,
        coordinates=begin.coordinates,
        group_column=None if grouping is None else grouping.column,
        seed=begin.seed,
    )
    with budget.stopped_clock():  # reading units loads pint
        units = _units(parameters, names)
    shape = shape_of(parameters, names, table)
    if shape is not None and grouping is not None and grouping.column in shape.columns:
        raise ValueError("at or monotone has the column of groups, which no formula has; take it out.")
    lengths = {name: parameters[name] for name in ("min_length", "max_length")}
    constraints = replace(constraints, units=units, **lengths)
    initial, constraints = initial_programs(
        parameters["initial_formulas"], library, names, prepared.coordinates, constraints
    )
    if constraints.units is None and form is None:  # with units an idle column may be needed for its unit
        constraints = _without_idle_columns(constraints, library, prepared.data, initial)
    with budget.stopped_clock():
        generator = choose_generator(constraints, begin.seed)
        compile_kernels(library.has_constants)
        if constraints.units is not None:
            constraints.units.compile_kernel(library)
        if form is not None:
            form.compile_kernel()
            if not form.functions:
                budget.leave_at_most(_STARTS)
    n_islands = number_of_islands(parameters["n_jobs"])
    if begin.checkpoint is not None:
        fit_identity = {**parameters, "library": library, "generator": generator, "n_jobs": n_islands}
        begin.checkpoint.claim(begin.random_state, fit_identity, table)
    tolerance = max(float(parameters["tolerance"]), prepared.data.rounding_nmse)
    config = _search_config(parameters, tolerance)
    make = Search if n_islands == 1 else partial(Islands, n_islands=n_islands, precision_of=near_neighbours)
    settings = dict[str, Any](library=library, constraints=constraints, config=config, generator=generator)
    make_search: Callable[..., Search] = partial(make, **settings, engine=parameters["gp"], seed=begin.seed)
    if shape is not None:
        shape_of_search = shape.in_coordinates(*prepared.coordinates)
        make_search = partial(_make_with_shape, make_search, replace(constraints, shape=shape_of_search))
    # A fit that continues from a checkpoint had this time before the file was written.
    if begin.checkpoint is None or not begin.checkpoint.states:
        budget.leave_time()
    constraints = replace(constraints, shape=shape)
    rules = SelectionSettings(
        library, constraints, feature_names, parameters["selection"], tolerance, grouping
    )
    return FitDriver(prepared, parameters["loss"], make_search, budget, rules, initial, begin.checkpoint)


def _make_with_shape(
    make_search: Callable[..., Search], constraints: Constraints, data: DataSet, budget: Budget
) -> Search:
    """Return a search under constraints with a shape, on data with the points that are known."""
    assert constraints.shape is not None
    data = data.with_anchors(*constraints.shape.anchors)
    return make_search(data=data, budget=budget, constraints=constraints)


def _form(
    parameters: Mapping[str, Any], library: Library, names: Sequence[str], constraints: Constraints
) -> Form | None:
    """Return the form of a fit, None if there is none; ValueError if it is unusable with other settings."""
    if parameters["form"] is None:
        return None
    try:
        form = Form(parameters["form"], library, names)
    except ValueError as error:
        raise ValueError(f"form={parameters['form']!r}: {error}") from error
    for name, usual in (("initial_formulas", None), ("warm_start", False), ("gp", "compiled")):
        if parameters[name] is not usual and parameters[name] != usual:
            raise ValueError(
                f"{name}={parameters[name]!r} cannot be used with a form, in which functions alone are "
                f"searched for; leave out {name}, or the form."
            )
    for column in constraints.forbidden_columns:
        if column in form.columns:
            raise ValueError(
                f"form={form.text!r} has {names[column]!r}, which is forbidden; take it out of one of "
                "the two."
            )
    for f, name in enumerate(form.functions):
        if form.most_tokens(f, parameters["max_length"]) < _LEAST_TOKENS:
            raise ValueError(
                f"form={form.text!r} leaves {name} fewer than {_LEAST_TOKENS} of the "
                f"max_length={parameters['max_length']} tokens; raise max_length."
            )
    return form


def _without_idle_columns(
    constraints: Constraints, library: Library, data: DataSet, initial: Initial | None
) -> Constraints:
    """Return constraints that also forbid idle columns, unless required or in an initial formula."""
    first = library.first_variable
    wanted = {library.index[name] for name in constraints.required}
    wanted |= set() if initial is None else set(initial.programs.tokens.ravel().tolist())
    forbidden = constraints.forbidden_columns
    candidates = [i for i in range(library.n_variables) if i not in forbidden]
    # Wanted columns come first, so that of equal columns another one counts as the copy.
    candidates.sort(key=lambda i: first + i not in wanted)
    idle = redundant_columns(data.columns, candidates, library.has_constants)
    unwanted = {i for i in idle if first + i not in wanted}
    return replace(constraints, forbidden_columns=tuple(sorted(unwanted.union(forbidden))))


def _is_limited(operator: str, constraints: Constraints) -> bool:
    """Return whether a limit of `nested` restricts how often an operator may occur below another one."""
    return any(inner == operator and most is not None for _, inner, most in constraints.nested)


def _units(parameters: Mapping[str, Any], names: Sequence[str]) -> Units | None:
    """Return the units of columns and target, None if none are given."""
    for name in ("unitless_constants", "unit_penalty"):
        if not parameters["units"] and parameters[name] is not None and parameters[name] is not False:
            raise ValueError(
                f"{name}={parameters[name]!r} means nothing without units of columns; give these, too, as in "
                "units=Units({name: unit}), or leave it out."
            )
    unitless, penalty = bool(parameters["unitless_constants"]), parameters["unit_penalty"]
    penalty = None if penalty is None else float(penalty)
    return Units.of(
        parameters["units"], parameters["y_units"], names, unitless_constants=unitless, penalty=penalty
    )


def _search_config(parameters: Mapping[str, Any], tolerance: float) -> SearchConfig:
    """Return the settings of the search.

    Without evolution every program is sampled, since random programs and survivors serve breeding alone, and
    the decoder is trained without restarts, as in Petersen et al., ICLR 2021.
    """
    n_generations = int(parameters["gp_generations"])
    config = SearchConfig(
        max_evaluations=int(parameters["max_evaluations"]),
        tolerance=tolerance,
        batch_size=int(min(parameters["batch_size"], max(2, parameters["max_evaluations"]))),
        evolution=EvolutionConfig(generations=n_generations),
        **{name: parameters[name] for name in ("max_time", "objective", "refine", "look_up")},
    )
    return config if n_generations else replace(config, random_share=0.0, survivors=0.0, patience=0)
