"""Which generator a search uses: a shipped one, one of the user's own, or an untrained one."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from dgsr.expressions.constraints import Constraints
from dgsr.expressions.library import Library
from dgsr.generator.checkpoints import WEIGHTS, find_generator, folder_of, load_generator
from dgsr.generator.config import CONFIGS
from dgsr.generator.generator import Generator


def _loaded(name_or_path: str | Path) -> Generator:
    """Return a generator from its files, or the one that was read from them before.

    A search leaves it as it is: what is refined is a copy.
    """
    folder = folder_of(name_or_path).resolve()
    file = folder / WEIGHTS
    return _read(folder, file.stat().st_mtime_ns if file.is_file() else 0)


@lru_cache(maxsize=2)
def _read(folder: Path, changed: int) -> Generator:
    return load_generator(folder)


def choose_generator(
    chosen: str | Path | Generator, library: Library, constraints: Constraints, seed: int
) -> tuple[str, Generator]:
    """Return the name of a generator, and the generator for a search over the columns of a library.

    Parameters
    ----------
    chosen : str, Path or Generator
        ``"auto"`` (the shipped generator that fits best, else an untrained one), ``"untrained"``, the name of
        a shipped generator, a folder, or a generator itself, whose name is then ``"given"``.
    library : Library
    constraints : Constraints
        Limits of the programs of the search; an untrained generator is made for them.
    seed : int
        Seed of the weights of an untrained generator.

    Raises
    ------
    ValueError
        If the generator is for another library, or for shorter programs or fewer columns than the search has.
    """
    if chosen == "auto":
        found = find_generator(library, constraints.max_length)
        chosen = "untrained" if found is None else found
    if chosen == "untrained":
        config = CONFIGS["paper"].with_max_length(constraints.max_length)
        return "untrained", Generator.untrained(library, config, constraints, seed)
    name, generator = "given", chosen
    if not isinstance(generator, Generator):
        name, generator = str(chosen), _loaded(generator)
    theirs = generator.library
    if theirs.operators != library.operators or theirs.has_constants != library.has_constants:
        raise ValueError(
            f"The generator {name!r} is for the library {theirs.name!r}, the search uses {library.name!r}; "
            f"set library={theirs.name!r}, or choose another generator."
        )
    if constraints.max_length > generator.config.max_length:
        raise ValueError(
            f"max_length={constraints.max_length} is more than the {generator.config.max_length} tokens the "
            f"generator {name!r} can write; lower it, or set generator='untrained'."
        )
    return name, generator.with_variables(library.n_variables)
