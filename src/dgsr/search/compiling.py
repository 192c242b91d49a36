"""Compile all kernels of a fit before its clock starts, once after an installation; later fits load them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dgsr.constants.fitting import fit_constants
from dgsr.data.dataset import DataSet
from dgsr.exact_search import ExactSolver
from dgsr.expressions.formulas.expression import Expression
from dgsr.expressions.programs.constraints import Constraints, Grammar
from dgsr.expressions.programs.library import Library
from dgsr.files.writing import write_atomically
from dgsr.finishing import finish
from dgsr.kernels.compilation import Kernel, folder, name_of_processor
from dgsr.kernels.random import new_state
from dgsr.reporting.progress import begin_phase
from dgsr.search.evolution import CompiledEvolution, EvolutionConfig, random_population

if TYPE_CHECKING:
    from dgsr.generator.generator import Generator

# Seconds that the first process, after its half, waits for the second one, before it compiles the rest.
_PATIENCE = 60.0


@cache
def compile_kernels(has_constants: bool) -> None:
    """Compile all kernels of a fit with or without constants once, or load their kept machine code."""
    place, kind = folder(), "constants" if has_constants else "exact"
    # The file with the names of a fit's kernels, written when all are compiled.
    names = None if place is None else place / f"{kind}-{name_of_processor()}.json"
    if names is None or not _load(names):
        begin_phase("compiling, once after an installation (10 to 40 s)")
        with _second_process(has_constants):
            _run_sampler(has_constants)
        # This search loads the kernels that the other process has compiled, and compiles all others.
        _run_search(has_constants)
        if names is not None:
            _keep_names(names)


def _keep_names(path: Path) -> None:
    compiled = [name for name, kernel in Kernel.instances.items() if kernel.signatures]
    names = [name for name in compiled if not name.startswith("dgsr.pretraining.")]
    with suppress(OSError):  # without the file the next process runs the small search again
        write_atomically(path, json.dumps(names).encode())


def _load(path: Path) -> bool:
    """Load the kernels that the file names; return False if there is no file that fits these sources."""
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
        for name in names:
            import_module(name.rpartition(".")[0])
        kernels = [Kernel.instances[name] for name in names]
    except (OSError, ValueError, TypeError, KeyError, ImportError):
        return False
    for kernel in kernels:
        kernel.load_kept()
    return True


@contextmanager
def _second_process(has_constants: bool) -> Iterator[None]:
    """Compile the kernels that need no network in a second process meanwhile, if one can be started."""
    if folder() is None or not Path(sys.executable or "").stem.lower().startswith(("python", "pypy")):
        yield
        return
    command = f"from dgsr.search.compiling import _run_searchers; _run_searchers({has_constants})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    none, call = subprocess.DEVNULL, [sys.executable, "-c", command]
    try:
        process = subprocess.Popen(call, env=environment, stdin=none, stdout=none, stderr=none)
    except OSError:
        yield
        return
    try:
        yield
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        pass
    finally:
        process.kill()
        process.wait()


def _small_problem(has_constants: bool) -> tuple[Library, Constraints, DataSet]:
    library = Library("compiling", ("add", "mul", "div", "sin"), has_constants, 1)
    X = np.linspace(0.5, 2.0, 8)[:, None]
    return library, Constraints(max_length=8), DataSet.from_arrays(X, np.exp(X[:, 0]))


def _run_searchers(has_constants: bool) -> None:
    """Evaluate programs, fit their constants and run exact search on a small problem, without a network."""
    library, constraints, data = _small_problem(has_constants)
    grammar = constraints.grammar(library, 1)
    state = new_state(0)
    population = random_population(4, library, grammar, state)
    population.nmse(data)
    Expression(library, [library.index["x1"]])(data.columns.T)  # `predict` calls the same kernel
    if has_constants:
        fit_constants(population, data)
    else:
        _small_solver(library, data, grammar).repair(population)


def _small_solver(library: Library, data: DataSet, grammar: Grammar) -> ExactSolver:
    """Return a solver that has run all its stages, with hundreds of subprograms instead of a million."""
    solver = ExactSolver(library, data, grammar, size=256)
    for stage in range(solver.n_stages):
        solver.solve(stage)
    return solver


def _small_generator(library: Library, constraints: Constraints) -> Generator:
    from dgsr.generator.config import GeneratorConfig
    from dgsr.generator.generator import Generator

    sizes = GeneratorConfig(
        encoder="descriptions", encoder_width=4, encoder_heads=1, encoder_layers=1, n_latents=1,
        tree_embedding=4, decoder_width=4, decoder_heads=1, decoder_layers=1, max_length=8,
    )  # fmt: skip
    return Generator.untrained(library, sizes, constraints, 0)


def _run_sampler(has_constants: bool) -> None:
    """Sample a few programs from a small generator, compute their probabilities, and let them evolve."""
    import torch

    from dgsr.generator.encoding import Encoding

    library, constraints, _ = _small_problem(has_constants)
    generator = _small_generator(library, constraints)
    grammar, state = constraints.grammar(library, 1), new_state(0)
    # One table of one column.
    encoding = Encoding(torch.zeros(1, 2, generator.config.encoder_width, dtype=torch.float32))
    samples = generator.sample_encoded(encoding, 4, grammar, state)
    generator.log_probs(encoding, samples.tokens, samples.lengths, grammar)
    population = generator.population(samples.tokens, samples.lengths)
    engine = CompiledEvolution(EvolutionConfig(generations=1))
    engine.evolve(population, np.ones(4), lambda them: np.ones(len(them)), grammar, state, lambda: False)


def _run_search(has_constants: bool) -> None:
    """Run a search that calls every kernel of a fit with the argument types of a fit."""
    from dgsr.search.config import SearchConfig
    from dgsr.search.search import Search, run

    library, constraints, data = _small_problem(has_constants)
    config = SearchConfig(
        max_evaluations=200, batch_size=20, tolerance=0.0, evolution=EvolutionConfig(generations=2)
    )
    search = Search(data, library, constraints, config, _small_generator(library, constraints))
    if search.scheduler.exact is not None:
        search.scheduler.exact.solver = _small_solver(library, data, search.grammar)
    run(search)
    Expression(library, [library.index["x1"]])(data.columns.T)
    if has_constants:
        finish(search.archive.population(), np.ones(1), data, config.tolerance)
