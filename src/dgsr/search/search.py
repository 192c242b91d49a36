"""Algorithm 2 of the paper: sample, evolve, train the decoder on the best, repeat."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dgsr.constants import Fit, fit_constants
from dgsr.evolution import Engine, EvolutionConfig, get_engine, random_population
from dgsr.expressions.constraints import Constraints
from dgsr.expressions.expression import Expression
from dgsr.expressions.library import Library
from dgsr.kernels.random import new_state
from dgsr.kernels.wholes import DEEPEST, SHALLOW
from dgsr.lookup import LookUp
from dgsr.pareto import ParetoArchive
from dgsr.population import DataSet, Population
from dgsr.scaling import N_CONSTANTS, N_TOKENS, written_out

# torch takes more than a second to import: what needs it imports it when a search is under way.
if TYPE_CHECKING:
    import torch

    from dgsr.generator.generator import Generator

OBJECTIVES = ("pqt", "risk-seeking", "vpg")

# Tokens times rows that are evaluated between two looks at the clock: a tenth of a second or so.
_CHUNK = 20_000_000
_USUAL_LENGTH = 15

# Evaluations it takes to fit the constants of one program, more or less.
_FIT_COST = 10

# Programs sampled between two looks at the clock, of data with up to so many columns: all steps of some are
# one compiled call. What a remainder is compared with grows as the square of the columns.
_SAMPLED_AT_ONCE, _FEW_COLUMNS = 64, 12

# Programs the decoder is refined on between two looks at the clock, of data with up to `_FEW_COLUMNS`; the
# decoder attends to all columns.
_REFINED_AT_ONCE = 256

# Programs of the generator looked at before the first round.
_GLANCE = 50
#: Seconds that must be left for a look into the large catalogue, which may take some.
LONG_LOOK = 5.0

# Steps of the constants of a program that enters the archive, and the evaluations they take, more or less.
_THOROUGH, _THOROUGH_COST = 30, 60


@dataclass(frozen=True)
class SearchConfig:
    """Hyperparameters of the search (paper, appendix "Dataset Generation and Training").

    Parameters
    ----------
    max_evaluations : int
        Equations to evaluate on the data set at most.
    max_time : float or None
        Seconds to search at most.
    tolerance : float
        NMSE of an exact fit, at which the search stops.
    batch_size : int
        Programs sampled in a round: k of the paper.
    objective : {"pqt", "risk-seeking", "vpg"}
        What the decoder is refined on.
    refine : bool
        Whether the decoder is refined at all.
    queue_size : int
        Best programs ever seen that ``pqt`` trains on: q of the paper.
    epsilon : float
        Share of the batch ``risk-seeking`` trains on.
    learning_rate : float
        Step size of the Adam optimiser.
    entropy_weight, entropy_decay : float
        Weight of the hierarchical entropy term, and its decay from token to token.
    patience : int or None
        Rounds without a better program after which the search begins again: the decoder with its
        pre-trained weights, queue and population empty, the Pareto front kept. 0 is never; None is
        3, or 1 in libraries with constants, whose rounds go on where the last one ended.
    gain : float
        Share by which a round must lower the NMSE to count as better, in libraries with constants.
    n_joined : int
        Best programs of the genetic programming that join the sampled ones.
    fit_share : float
        Share of the programs with constants, the best as they stand, whose constants are fitted.
    fit_iterations : int
        Steps of a fit, from the constants a program has.
    survivors : float
        Share of a round's first generation that are the best of the last round's, in libraries with
        constants: fitted constants are not sampled anew.
    look_up : bool
        Whether the law is looked up, and what makes near misses exact, in libraries without fitted
        constants.
    random_share : float or None
        Share of the others that are random programs: they find what the generator thinks unlikely, and take
        no time. The rest are sampled. None is 0.5 in libraries with constants, else 0.8.
    evolution : EvolutionConfig
        Settings of the genetic programming component.
    """

    max_evaluations: int = 2_000_000
    max_time: float | None = None
    tolerance: float = 1e-20
    batch_size: int = 500
    objective: str = "pqt"
    refine: bool = True
    queue_size: int = 10
    epsilon: float = 0.02
    learning_rate: float = 1e-3
    entropy_weight: float = 0.003
    entropy_decay: float = 1.0
    patience: int | None = None
    n_joined: int = 50
    fit_share: float = 0.3
    fit_iterations: int = 5
    gain: float = 0.1
    survivors: float = 0.9
    random_share: float | None = None
    look_up: bool = True
    evolution: EvolutionConfig = field(default_factory=EvolutionConfig)


def best_unique(population: Population, nmse: np.ndarray, n: int) -> tuple[Population, np.ndarray]:
    """Return the `n` best different programs with a finite NMSE, best first, the shorter of equals."""
    order = np.lexsort((population.lengths, nmse))
    order = order[np.isfinite(nmse[order])]
    _, first = np.unique(population.tokens[order], axis=0, return_index=True)
    kept = order[np.sort(first)[:n]]
    return population[kept], nmse[kept]


class Search:
    """One search for the equation behind one data set, round by round.

    ``while not search.stop_reason(): search.tell(search.ask())`` is the whole of it; budgets,
    progress and resuming are loops around the two calls. `run` takes a glance first, and looks further.

    Parameters
    ----------
    data : DataSet
        Its y must vary.
    library : Library
        Over the features of the data; its tokens are the first ones of the generator's.
    constraints : Constraints
    config : SearchConfig
    generator : Generator or None
        Its encoder is left as it is; its decoder is copied and refined. None is genetic programming
        alone: rounds go on from the last generation.
    engine : str or Engine
        ``"compiled"``, ``"deap"``, or an object with their method.
    seed : int
    """

    def __init__(
        self,
        data: DataSet,
        library: Library,
        constraints: Constraints,
        config: SearchConfig,
        generator: Generator | None,
        engine: str | Engine = "compiled",
        seed: int = 0,
    ) -> None:
        self.config = config
        self.library = library
        self.data = data
        # Over the generator's tokens, which go on where the library's end.
        tokens_of = library if generator is None else generator.library
        self.grammar = constraints.grammar(tokens_of, library.n_variables)
        self.engine = get_engine(engine, config.evolution)
        self.state = new_state(seed)
        self.n_evaluations = 0
        self.n_invalid = 0
        self.history: list[dict[str, float]] = []
        self._started = time.perf_counter()
        self._earlier_seconds = 0.0

        looks_up = config.look_up and not library.has_constants
        self.look_up = LookUp(library, data, self.grammar) if looks_up else None
        self._depth = 0  # how far it has been looked up
        self._inherits = False  # whether the next round breeds from an earlier search's programs
        self.generator = None
        if generator is not None:
            self.generator = generator.refinable_copy()
            encoding = generator.encode_dataset(data.columns.T, data.y, seed)
            # A copy, because what was computed in inference mode can't be refined through.
            self.encoding = encoding.detached()
            self._pretrained = generator.decoder
            self._forget_training()
        width = constraints.max_constants if library.has_constants else 0
        nothing = Population(
            library,
            np.zeros((0, constraints.max_length), np.int64),
            np.zeros(0, np.int64),
            np.ones((0, width)),
        )
        self.archive = ParetoArchive(
            library,
            constraints.max_length + (N_TOKENS if library.has_constants else 0),
            width + (N_CONSTANTS if library.has_constants else 0),
            config.tolerance,
        )
        if library.has_constants:
            self._enter_constant()
        self.queue, self.queue_nmse = nothing, np.zeros(0)
        self.generation, self.generation_nmse = nothing, np.zeros(0)
        self.stale_rounds, self.n_restarts, self._best_since_restart = 0, 0, np.inf

    def _enter_constant(self) -> None:
        """Enter the mean of y in the archive: what every formula must beat."""
        mean = Expression(self.library, [self.library.index["const"]], [self.data.mean])
        constant = Population.from_expressions([mean])
        self.archive.update(constant, constant.nmse(self.data))

    def _forget_training(self) -> None:
        from dgsr import objectives

        self.baseline = objectives.Baseline()
        self.__dict__.pop("optimizer", None)

    @cached_property
    def optimizer(self) -> torch.optim.Adam:
        """Adam on the decoder's parameters phi, made when first used: torch takes a second to import it."""
        import torch

        assert self.generator is not None
        return torch.optim.Adam(self.generator.decoder.parameters(), lr=self.config.learning_rate)

    @property
    def seconds(self) -> float:
        return self._earlier_seconds + time.perf_counter() - self._started

    def stop_reason(self) -> str | None:
        """Why the search should end now: None while it should go on."""
        if self.archive.best_nmse() <= self.config.tolerance:
            return "exact fit"
        if self.n_evaluations >= self.config.max_evaluations:
            return "max_evaluations"
        if self.config.max_time is not None and self.seconds >= self.config.max_time:
            return "max_time"
        return None

    def _should_stop(self) -> bool:
        """Whether a round should end before its last generation.

        With fitted constants not for an exact fit: the first one is seldom the simplest, and those
        that follow are bred from it.
        """
        reason = self.stop_reason()
        return reason is not None and not (reason == "exact fit" and self.library.has_constants)

    def glance(self) -> None:
        """Look the law up, and at a few programs of the generator: often it is there, and all is done."""
        nmse = np.zeros(0)
        if self.look_up is not None:
            nmse = self.evaluate(self.look_up.whole(0))
        if self.generator is not None and not self._should_stop():
            programs = self._sample(self.generator, min(_GLANCE, self.config.batch_size))
            nmse = self.evaluate(programs)
            self.queue, self.queue_nmse = best_unique(programs, nmse, self.config.queue_size)
        if len(nmse):
            self._record(nmse)

    def look_further(self) -> None:
        """Look the law up in a million short programs, at the next length, if there is time.

        Half of the time that is left is kept for the rounds.
        """
        in_time = self.config.max_time is None or self.seconds + LONG_LOOK < self.config.max_time
        if self.look_up is None or self._depth == DEEPEST or not in_time or self._should_stop():
            return
        depth = SHALLOW if self._depth == 0 else self._depth + 1
        start = self._depth + (self._depth > 0)
        half_time = np.inf if self.config.max_time is None else 0.5 * (self.seconds + self.config.max_time)
        found = self.look_up.whole(depth, start, lambda: self.seconds > half_time or self._should_stop())
        nmse = self.evaluate(found)
        self._depth = depth
        if len(nmse):
            self._record(nmse)

    def what_is_left(self) -> dict[str, Any]:
        """What another search can `begin_with`: programs, and the decoder's weights."""
        decoder = None if self.generator is None else self.generator.decoder.state_dict()
        return {
            "library": self.library,
            "archive": self.archive.population(),
            "programs": Population.concatenate([self.queue, self.generation]),
            "decoder": decoder and {name: tensor.clone() for name, tensor in decoder.items()},
        }

    def begin_with(self, left: dict[str, Any]) -> None:
        """Begin where an earlier search, of the same library, ended; its data may have been others."""
        archive = _of_width(left["archive"], self.archive.tokens.shape[1])
        self.archive.update(archive, archive.nmse(self.data))
        programs = _of_width(left["programs"], self.queue.tokens.shape[1])
        nmse = self.evaluate(programs)
        self.queue, self.queue_nmse = best_unique(programs, nmse, self.config.queue_size)
        self.generation, self.generation_nmse = best_unique(programs, nmse, self.config.batch_size)
        self._best_since_restart = float(self.queue_nmse.min(initial=np.inf))
        self._inherits = True
        if self.generator is not None and left["decoder"] is not None:
            decoder = self.generator.decoder
            if _shapes(decoder.state_dict()) == _shapes(left["decoder"]):
                decoder.load_state_dict(left["decoder"])
        if len(nmse):
            self._record(nmse)

    @property
    def _many_columns(self) -> float:
        """How often there are as many columns as are few, at least 1."""
        return max(1.0, self.library.n_variables / _FEW_COLUMNS)

    def _sample(self, generator: Generator, n: int) -> Population:
        """Draw programs for the data, fewer where time is up; constants start at 1."""
        parts = []
        many = 1.0 if self.encoding.tables is None else self._many_columns
        at_once = max(1, int(_SAMPLED_AT_ONCE / many**2))
        for done in range(0, max(n, 1), at_once):
            if done > 0 and self._should_stop():
                break
            n_part = min(n - done, at_once)
            samples = generator.sample_encoded(self.encoding, n_part, self.grammar, self.state)
            constants = np.ones((n_part, self.queue.constants.shape[1]))
            parts.append(Population(self.library, samples.tokens, samples.lengths, constants))
        return Population.concatenate(parts)

    def ask(self) -> Population:
        """Return the programs a round begins with: F_generator ~ p_theta(f|D)."""
        n = self.config.batch_size
        if self.generator is None:
            if len(self.generation):
                return self.generation
            return random_population(n, self.library, self.grammar, self.state)
        config, has_constants = self.config, self.library.has_constants
        n_survivors = int(config.survivors * n) if has_constants or self._inherits else 0
        survivors, _ = best_unique(self.generation, self.generation_nmse, n_survivors)
        self._inherits = False
        n_fresh = n - len(survivors)
        share = config.random_share
        if share is None:
            share = 0.5 if has_constants else 0.8
        n_random = int(share * n_fresh)
        sampled = self._sample(self.generator, n_fresh - n_random)
        random = random_population(n_random, self.library, self.grammar, self.state)
        return Population.concatenate([sampled, random, survivors])

    def tell(self, sampled: Population) -> None:
        """Do the rest of a round: evaluate, evolve, and train the decoder on the best programs."""
        carried_on = sampled is self.generation and len(sampled) > 0
        nmse = self.generation_nmse if carried_on else self.evaluate(sampled)
        evolved, evolved_nmse = sampled, nmse
        if not self._should_stop():
            evolved, evolved_nmse = self.engine.evolve(
                sampled, nmse, self.evaluate, self.grammar, self.state, self._should_stop
            )
            if self.look_up is not None and not self._should_stop():
                near_misses, _ = best_unique(evolved, evolved_nmse, self.config.n_joined)
                self.evaluate(self.look_up.repaired(near_misses, self._should_stop))
        self.generation, self.generation_nmse = evolved, evolved_nmse
        if self.generator is not None:
            joined, joined_nmse = best_unique(evolved, evolved_nmse, self.config.n_joined)
            train = Population.concatenate([sampled, joined])
            train_nmse = np.concatenate([nmse, joined_nmse])
            self.queue, self.queue_nmse = best_unique(
                Population.concatenate([self.queue, train]),
                np.concatenate([self.queue_nmse, train_nmse]),
                self.config.queue_size,
            )
            if self.config.refine and len(self.queue):
                self._refine(self.generator, train, train_nmse)
        best = min(self.queue_nmse.min(initial=np.inf), evolved_nmse.min(initial=np.inf))
        # Fitted constants make a near miss a little better in every round.
        enough = 1.0 - (self.config.gain if self.library.has_constants else 0.0)
        self.stale_rounds = 0 if best < enough * self._best_since_restart else self.stale_rounds + 1
        self._best_since_restart = min(best, self._best_since_restart)
        patience = self.config.patience
        if patience is None:
            patience = 1 if self.library.has_constants else 3
        if self.stale_rounds == patience > 0:
            self._restart()
        self._record(nmse)

    def _record(self, nmse: np.ndarray) -> None:
        """Add an entry to the history; `nmse` is that of the programs sampled."""
        rewards = 1.0 / (1.0 + nmse)
        self.history.append(
            {
                "evaluations": self.n_evaluations,
                "seconds": self.seconds,
                "best_nmse": self.archive.best_nmse(),
                "mean_reward": float(rewards.mean()),
                "best_reward": float(rewards.max()),
                "invalid": self.n_invalid,
                "restarts": self.n_restarts,
            }
        )

    def _restart(self) -> None:
        """Begin again from p_theta(f|D), or a random population: near misses breed only near misses."""
        if self.generator is not None:
            self.generator.decoder.load_state_dict(self._pretrained.state_dict())
            self._forget_training()
        self.queue, self.queue_nmse = self.queue[:0], self.queue_nmse[:0]
        self.generation, self.generation_nmse = self.generation[:0], self.generation_nmse[:0]
        self.stale_rounds, self._best_since_restart = 0, np.inf
        self.n_restarts += 1

    def evaluate(self, population: Population) -> np.ndarray:
        """NMSE of every program, counted against the budget and entered in the archive.

        Programs beyond the budget are not evaluated and get `inf`; those beyond the time too, where
        evaluating all takes long. Constants are fitted, and written into `population`.
        """
        nmse = np.full(len(population), np.inf)
        n = min(len(population), self.config.max_evaluations - self.n_evaluations)
        if self.library.has_constants:
            nmse[:n] = self._evaluate_fitted(population[:n])
            return nmse
        for part in self._parts(n):
            nmse[part] = population[part].nmse(self.data)
            self._enter(population[part], nmse[part], population[part], nmse[part])
        return nmse

    def _parts(self, n: int, cost: int = 1) -> Iterator[slice]:
        """Yield parts of n programs, each costing `cost` evaluations, while there is time."""
        n_features, n_samples = self.data.columns.shape
        # The second keeps reading the data from taking longer than running the programs.
        at_once = max(_CHUNK // (n_samples * _USUAL_LENGTH * cost), n_features // _USUAL_LENGTH, 1)
        max_time = np.inf if self.config.max_time is None else self.config.max_time
        done = 0
        while done < n and (done == 0 or self.seconds < max_time):
            part = slice(done, min(done + at_once, n))
            yield part
            done = part.stop

    def _enter(
        self, evaluated: Population, nmse: np.ndarray, entries: Population, entry_nmse: np.ndarray
    ) -> None:
        self.n_evaluations += len(evaluated)
        self.n_invalid += int(np.count_nonzero(np.isinf(nmse)))
        self.archive.update(entries, entry_nmse)

    def _evaluate_fitted(self, population: Population) -> np.ndarray:
        """Scale all programs, and fit the constants of the promising ones."""
        config, n = self.config, 0
        fit = Fit(np.full(len(population), np.inf), np.zeros(len(population)), np.zeros(len(population)))
        for part in self._parts(len(population)):
            for array, values in zip(fit, fit_constants(population[part], self.data, n_iterations=0)):
                array[part] = values
            n = part.stop
        is_constant = population.tokens == self.library.index["const"]
        inside = np.arange(population.tokens.shape[1]) < population.lengths[:, None]
        with_constants = np.flatnonzero((is_constant & inside)[:n].any(axis=1))
        chosen = with_constants[np.argsort(fit.nmse[with_constants], kind="stable")]
        chosen = chosen[: int(np.ceil(config.fit_share * len(chosen)))]
        for part in self._parts(len(chosen), _FIT_COST):
            at = chosen[part]
            programs = population[at]
            found = fit_constants(programs, self.data, n_iterations=config.fit_iterations)
            population.constants[at] = programs.constants
            for array, values in zip(fit, found):
                array[at] = values
        self._enter(population[:n], fit.nmse[:n], *self._entries(population, fit))
        # Exact is exact: of two such programs the shorter is to win, not the better rounded one.
        return np.maximum(fit.nmse, config.tolerance)

    def _entries(self, population: Population, fit: Fit) -> tuple[Population, np.ndarray]:
        """The programs that lower the loss at their complexity, scale written out, and their NMSE."""
        best = np.minimum.accumulate(self.archive.nmse)
        able = np.flatnonzero(fit.nmse < best[population.complexities()])
        variants, nmse = written_out(population[able], Fit(*(a[able] for a in fit)), self.data)
        kept = np.flatnonzero(nmse < best[variants.complexities()])
        entries, entry_nmse = variants[kept], nmse[kept]
        # Few, and the ones a person will see: these are fitted to the end.
        for part in self._parts(len(entries), _THOROUGH_COST):
            found = fit_constants(
                entries[part], self.data, scaled=False, n_iterations=_THOROUGH, precision=1e-9
            )
            entry_nmse[part] = found.nmse
        return entries, entry_nmse

    def _refine(self, generator: Generator, train: Population, nmse: np.ndarray) -> None:
        """One step of Adam on the decoder's parameters phi, unless the time is up before it is worked out."""
        import torch

        from dgsr import objectives

        config = self.config
        of_all = 1.0 / (1.0 + nmse)
        if config.objective == "pqt":
            train = self.queue
        elif config.objective == "risk-seeking":
            kept = of_all >= np.quantile(of_all, 1.0 - config.epsilon)
            train, of_all = train[kept], of_all[kept]
        rewards = torch.from_numpy(of_all[None]).float()
        if config.objective == "risk-seeking":
            baseline = float(rewards.min())  # the quantile: the others are already left out
        elif config.objective == "vpg":
            baseline = self.baseline.update(rewards)
        self.optimizer.zero_grad(set_to_none=True)
        at_once = max(1, int(_REFINED_AT_ONCE / self._many_columns))
        for start in range(0, len(train), at_once):
            if start > 0 and self._should_stop():
                return
            part = slice(start, start + at_once)
            tokens, lengths = train.tokens[part], train.lengths[part]
            log_probs = generator.log_probs(self.encoding, tokens, lengths, self.grammar)
            if config.objective == "pqt":
                loss = objectives.priority_queue_training(log_probs.programs)
            else:
                loss = objectives.vanilla_policy_gradient(log_probs.programs, rewards[:, part], baseline)
            entropy = objectives.hierarchical_entropy(log_probs.entropies, config.entropy_decay)
            # Losses are means over programs: that of all is the sum of those of the parts by their shares.
            share = len(lengths) / len(train)
            (share * (loss - config.entropy_weight * entropy)).backward()
        self.optimizer.step()

    def state_dict(self) -> dict[str, Any]:
        """Return everything `load_state_dict` needs to go on exactly as this search would."""
        state: dict[str, Any] = {
            "state": self.state.copy(),
            "n_evaluations": self.n_evaluations,
            "n_invalid": self.n_invalid,
            "depth": self._depth,
            "stale_rounds": self.stale_rounds,
            "n_restarts": self.n_restarts,
            "best_since_restart": self._best_since_restart,
            "history": [dict(entry) for entry in self.history],
            "seconds": self.seconds,
            "archive": self.archive.state_dict(),
        }
        for name in ("queue", "generation"):
            population = getattr(self, name)
            state[name] = {
                "tokens": population.tokens.copy(),
                "lengths": population.lengths.copy(),
                "constants": population.constants.copy(),
                "nmse": getattr(self, f"{name}_nmse").copy(),
            }
        if self.generator is not None:
            decoder = self.generator.decoder.state_dict()
            state["decoder"] = {name: tensor.clone() for name, tensor in decoder.items()}
            optimizer = self.optimizer.state_dict()["state"]
            state["optimizer"] = {i: {k: v.clone() for k, v in m.items()} for i, m in optimizer.items()}
            state["baseline"] = self.baseline.value
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go back to the state of a search over the same data with the same settings."""
        self.state[:] = state["state"]
        self.n_evaluations = state["n_evaluations"]
        self.n_invalid = state["n_invalid"]
        self._depth = state["depth"]
        self.stale_rounds = state["stale_rounds"]
        self.n_restarts = state["n_restarts"]
        self._best_since_restart = state["best_since_restart"]
        self.history = [dict(entry) for entry in state["history"]]
        self._earlier_seconds, self._started = state["seconds"], time.perf_counter()
        self.archive.load_state_dict(state["archive"])
        for name in ("queue", "generation"):
            arrays = state[name]
            population = Population(self.library, arrays["tokens"], arrays["lengths"], arrays["constants"])
            setattr(self, name, population)
            setattr(self, f"{name}_nmse", arrays["nmse"])
        if self.generator is not None:
            self.generator.decoder.load_state_dict(state["decoder"])
            groups = self.optimizer.state_dict()["param_groups"]
            # A copy: Adam goes on writing into the tensors it is given.
            moments = copy.deepcopy(state["optimizer"])
            self.optimizer.load_state_dict({"state": moments, "param_groups": groups})
            self.baseline.value = state["baseline"]


def _of_width(population: Population, width: int) -> Population:
    """The programs that fit into arrays of a width, in such."""
    kept = population[population.lengths <= width]
    tokens = np.zeros((len(kept), width), dtype=np.int64)
    common = min(width, kept.tokens.shape[1])
    tokens[:, :common] = kept.tokens[:, :common]
    return Population(kept.library, tokens, kept.lengths, kept.constants)


def _shapes(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def run(search: Search, callback: Callable[[Search], None] | None = None) -> str:
    """Run rounds until there is a reason to stop, and return it; `callback` is called after each."""
    if search.n_evaluations == 0 and search.stop_reason() is None:
        for look in (search.glance, search.look_further):
            before = search.n_evaluations
            look()
            if callback is not None and search.n_evaluations > before:
                callback(search)
    while (reason := search.stop_reason()) is None:
        search.tell(search.ask())
        search.look_further()
        if callback is not None:
            callback(search)
    return reason
