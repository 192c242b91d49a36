"""The choice of the generator of a search: a shipped one, one that the user gives, or an untrained one."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import Library
from dgsr.generator.adaptation import adapted, can_adapt
from dgsr.generator.checkpoints import WEIGHTS, card_of, folder_of, list_generators, load_generator
from dgsr.generator.config import CONFIGS
from dgsr.generator.generator import Generator
from dgsr.reporting.warning import warn_caller

# Nats by which its own table must make a true program likelier than another one does. The shipped generators
# have 19 and 26, and one has 0.5 after 51 steps.
_LEAST_GAP = 1.0


def _loaded(name: str | Path) -> Generator:
    """Return a generator from its files, from a cache where they have not changed.

    A warning says so if by its card it does not tell its own table from another one.
    """
    folder = folder_of(name).resolve()
    card = card_of(folder)
    figures = card.get("validation", {})
    gap = figures.get("log_likelihood_right", 0.0) - figures.get("log_likelihood_wrong", -math.inf)
    if gap < _LEAST_GAP:
        warn_caller(
            f"The generator '{name}' has learned nothing in {card.get('steps_done', 0):,} steps: its own "
            f"table makes a law {gap:.1f} nats likelier than another does. Train it for longer, or choose "
            "another generator."
        )
    file = folder / WEIGHTS
    return _read(folder, file.stat().st_mtime_ns if file.is_file() else 0)


@lru_cache(maxsize=2)
def _read(folder: Path, changed: int) -> Generator:
    return load_generator(folder)


def find_generator(library: Library) -> str | None:
    """Return the name of the shipped generator that suits a library best, or None.

    It knows the most operators of the library. Ties are broken by the fewest other operators, then by the
    smallest sufficient number of variables, or by the largest number where none is sufficient.
    """
    suitability = {}
    for info in list_generators():
        card, encoder = info.card["library"], info.card["config"].get("encoder", "rows")
        theirs = Library(info.name, tuple(card["operators"]), card["has_constants"], card["n_variables"])
        is_enough = theirs.n_variables >= library.n_variables
        is_able = theirs.has_constants == library.has_constants and can_adapt(encoder, theirs, library)
        if is_able and (is_enough or encoder != "rows"):
            n_common = len(set(theirs.operators) & set(library.operators))
            n_spare = -theirs.n_variables if is_enough else theirs.n_variables
            suitability[info.name] = n_common, -len(theirs.operators), is_enough, n_spare
    return max(suitability, key=suitability.__getitem__, default=None)


def choose_generator(
    chosen: str | Path | Generator, library: Library, constraints: Constraints, seed: int
) -> tuple[str, Generator]:
    """Return the name of a generator, and the generator for a search over the columns of a library.

    The chosen one is ``"auto"`` (the most suitable shipped generator, or an untrained one with a warning),
    ``"untrained"`` (with weights drawn by `seed`, for programs within the constraints), the name of a shipped
    generator, a folder, or a generator itself, whose name is then ``"given"``. Raises ValueError if it cannot
    be adapted to the library or to the number of columns.
    """
    if chosen == "auto":
        chosen = find_generator(library) or "untrained"
        if chosen == "untrained":
            operators = ", ".join(library.operators)
            known = f"the operators {operators}" if operators else "a library without operators"
            warn_caller(
                f"No generator that comes with dgsr knows {known}; the search has an untrained one. Set "
                "generator=None to search without, or pretrain one."
            )
    if chosen == "untrained":
        config = CONFIGS["paper"].with_max_length(constraints.max_length)
        return "untrained", Generator.untrained(library, config, constraints, seed)
    if not isinstance(chosen, Generator | str | Path):
        raise ValueError(f"generator={chosen!r} must be a dgsr Generator, a name or a folder.")
    name, generator = "given", chosen
    if not isinstance(generator, Generator):
        name, generator = str(chosen), _loaded(generator)
    theirs = generator.library
    if not can_adapt(generator.config.encoder, theirs, library):
        missing = [operator for operator in theirs.operators if operator not in library.operators]
        own = f"{library.name!r}" + (f" without {', '.join(missing)}" if theirs.name == library.name else "")
        raise ValueError(
            f"The generator {name!r} is for the library {theirs.name!r}, the search uses {own}; "
            f"set library={theirs.name!r} and forbid none of its operators, or choose another generator."
        )
    return name, adapted(generator, library, constraints.max_length)
