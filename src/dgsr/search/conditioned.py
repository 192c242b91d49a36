"""The generator of a search: it samples programs for the data, and its decoder learns from the best."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dgsr.data.dataset import DataSet
from dgsr.data.population import Population, rewards_of
from dgsr.expressions.programs.constraints import Grammar
from dgsr.expressions.programs.library import Library
from dgsr.kernels.random import new_state
from dgsr.search.config import SearchConfig

# torch takes more than a second to import; the functions that need it import it.
if TYPE_CHECKING:
    import torch

    from dgsr.generator.generator import Generator

# Programs that one call samples. The clock is read between calls, so a larger number reacts later to a limit.
_SAMPLED_AT_ONCE = 128
# Programs of one part of a refinement step on a table of up to twelve columns. The decoder attends to all
# columns, so with more of them parts are smaller in proportion. The clock is read between parts.
_REFINED_AT_ONCE = 256
_FEW_COLUMNS = 12
# Samples of the pre-trained decoder by which the divergence is estimated.
_N_COMPARED = 16


class ConditionedGenerator:
    """The conditional generator p_theta(f|D) of one data set D, whose decoder can be refined.

    The given generator is not changed: its decoder is copied before it is first trained. Its encoder reads
    the data once, and `seed` is that of the choice of rows. With ``refine="auto"``, where a guide drives
    evolution, training `is_bounded`: the decoder goes along the gradient to a fixed divergence from the
    pre-trained one, and stays there when the search restarts. Otherwise Adam trains it, as in the paper, and
    a restart goes back to the pre-trained one.
    """

    def __init__(
        self,
        generator: Generator,
        data: DataSet,
        library: Library,
        grammar: Grammar,
        config: SearchConfig,
        seed: int,
    ) -> None:
        self.generator = generator
        # A detached copy, because gradients do not pass through tensors of the inference mode.
        self.encoding = generator.encode_dataset(data.columns.T, data.y, seed).detached()
        self._library, self._grammar, self._config = library, grammar, config
        self._pretrained = generator.decoder
        #: Probabilities of tokens by the guide; see `Generator.guide_probabilities`.
        self.guide_probabilities = generator.guide_probabilities(self.encoding)
        has_evolution = config.evolution.generations > 0
        self.is_bounded = config.refine == "auto" and has_evolution and self.guide_probabilities is not None
        self._seed = seed
        self.n_steps = 0  # of training so far
        self.n_evaluations = 0  # of the search at the last of these steps
        self._forget_training()

    def _forget_training(self) -> None:
        from dgsr.generator import objectives

        self.baseline = objectives.Baseline()
        self.__dict__.pop("optimizer", None)

    @cached_property
    def optimizer(self) -> torch.optim.Adam:
        """The Adam optimiser of the decoder's parameters phi, made at first use, since it imports torch."""
        import torch

        return torch.optim.Adam(self.generator.decoder.parameters(), lr=self._config.learning_rate)

    def _own_decoder(self) -> None:
        """Copy the pre-trained decoder, in a tenth of a second, unless it has been copied already."""
        if self.generator.decoder is self._pretrained:
            self.generator = self.generator.refinable_copy()

    def restart(self) -> None:
        """Go back to the pre-trained decoder, unless training is bounded."""
        if self.is_bounded:
            return
        if self.generator.decoder is not self._pretrained:
            self.generator.decoder.load_state_dict(self._pretrained.state_dict())
        self._forget_training()

    def sample(
        self, n: int, n_constants: int, state: np.ndarray, should_stop: Callable[[], bool]
    ) -> Population:
        """Return `n` programs sampled from p_theta(f|D), with `n_constants` constants of 1.

        The random generator of `state`, 4 uint64, is advanced. There are fewer programs if `should_stop`,
        which is called between parts of them, says that time is up.
        """
        parts = []
        for done in range(0, max(n, 1), _SAMPLED_AT_ONCE):
            if done > 0 and should_stop():
                break
            n_part = min(n - done, _SAMPLED_AT_ONCE)
            samples = self.generator.sample_encoded(self.encoding, n_part, self._grammar, state)
            constants = np.ones((n_part, n_constants))
            parts.append(Population(self._library, samples.tokens, samples.lengths, constants))
        return Population.concatenate(parts)

    def refine(
        self,
        queue: Population,
        train: Population,
        nmse: np.ndarray,
        n_evaluations: int,
        should_stop: Callable[[], bool],
    ) -> None:
        """Take one step of training on the decoder's parameters phi, unless time is up during its gradient.

        ``pqt`` trains on `queue`, the best programs so far, and the policy gradients on `train`, the programs
        of this round with their NMSE, (n_programs,). The search has made `n_evaluations`. `should_stop` is
        called between parts of the programs.
        """
        self._own_decoder()
        config, of_programs = self._config, rewards_of(nmse)
        if config.objective == "pqt":
            train = queue
        elif config.objective == "risk-seeking":
            kept = of_programs >= np.quantile(of_programs, 1.0 - config.epsilon)
            train, of_programs = train[kept], of_programs[kept]
        self.generator.decoder.zero_grad()
        if self._add_gradient(train, of_programs, should_stop):
            self._step()
            self.n_steps, self.n_evaluations = self.n_steps + 1, n_evaluations

    def _add_gradient(
        self, train: Population, of_programs: np.ndarray, should_stop: Callable[[], bool]
    ) -> bool:
        """Add the gradient of the loss of programs with their rewards, and return whether there was time."""
        import torch

        from dgsr.generator import objectives

        config = self._config
        rewards = torch.from_numpy(of_programs[None]).float().to(self.generator.device)
        if config.objective == "risk-seeking":
            baseline = float(rewards.min())  # the quantile, because lower rewards have been removed
        elif config.objective == "vpg":
            baseline = self.baseline.update(rewards)
        at_once = max(1, int(_REFINED_AT_ONCE / max(1.0, self._library.n_variables / _FEW_COLUMNS)))
        for start in range(0, len(train), at_once):
            if start > 0 and should_stop():
                return False
            part = slice(start, start + at_once)
            tokens, lengths = train.tokens[part], train.lengths[part]
            log_probs = self.generator.log_probs(self.encoding, tokens, lengths, self._grammar)
            if config.objective == "pqt":
                loss = objectives.priority_queue_training(log_probs.programs)
            else:
                loss = objectives.vanilla_policy_gradient(log_probs.programs, rewards[:, part], baseline)
            entropy = objectives.hierarchical_entropy(log_probs.entropies, config.entropy_decay)
            # Losses are means over programs, so the loss of all is the sum of the parts' losses, each times
            # the share of its programs.
            share = len(lengths) / len(train)
            (share * (loss - config.entropy_weight * entropy)).backward()
        return True

    def _step(self) -> None:
        """Move the decoder's parameters by their gradient."""
        if not self.is_bounded:
            self.optimizer.step()
            return
        from dgsr.search import trust_region

        trust_region.step(self.generator.decoder, self._pretrained, self._divergence, self._config.divergence)

    @cached_property
    def _compared(self) -> tuple[Population, torch.Tensor]:
        """Samples of the pre-trained decoder, and their log-probabilities, of shape (1, n_programs)."""
        import torch

        known = self.generator.refinable_copy()
        known.decoder = self._pretrained
        samples = known.sample_encoded(self.encoding, _N_COMPARED, self._grammar, new_state(self._seed))
        programs = Population(self._library, samples.tokens, samples.lengths, np.ones((_N_COMPARED, 0)))
        with torch.no_grad():
            return programs, self._log_probs(known, programs)

    def _log_probs(self, generator: Generator, programs: Population) -> torch.Tensor:
        tokens, lengths = programs.tokens, programs.lengths
        return generator.log_probs(self.encoding, tokens, lengths, self._grammar).programs

    def _divergence(self) -> float:
        """Return the divergence of the decoder from the pre-trained one, in nats per program."""
        import torch

        from dgsr.search import trust_region

        programs, before = self._compared
        with torch.no_grad():
            return trust_region.divergence(self._log_probs(self.generator, programs) - before)

    def load_weights(self, weights: dict[str, np.ndarray]) -> None:
        """Take over the weights of another search, if its decoder has the same shapes."""
        self._own_decoder()
        own = {name: tuple(weight.shape) for name, weight in self.generator.decoder.state_dict().items()}
        if own == {name: weight.shape for name, weight in weights.items()}:
            self.generator.decoder.load_state_dict(_tensors(weights))

    def state_dict(self) -> dict[str, Any]:
        """Return what `load_state_dict` needs to go on training, tensors as arrays."""
        import torch

        self._own_decoder()
        moments: dict[str, dict[str, np.ndarray]] = {}
        for i, weight in enumerate([] if self.is_bounded else self.generator.decoder.parameters()):
            # Before its first step Adam has no moments; zeros are equivalent.
            zeros = torch.zeros_like(weight)
            none = {"step": torch.tensor(0.0), "exp_avg": zeros, "exp_avg_sq": zeros}
            moments[str(i)] = _arrays(self.optimizer.state.get(weight) or none)
        return {
            "decoder": _arrays(self.generator.decoder.state_dict()),
            "optimizer": moments,
            "baseline": self.baseline.value,
            "steps": self.n_steps,
            "evaluations": self.n_evaluations,
        }

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Continue training from a saved state."""
        self._own_decoder()
        self.generator.decoder.load_state_dict(_tensors(saved["decoder"]))
        self.n_steps, self.n_evaluations = saved["steps"], saved["evaluations"]
        self.baseline.value = saved["baseline"]
        if self.is_bounded:
            return
        groups = self.optimizer.state_dict()["param_groups"]
        moments = {int(i): _tensors(own) for i, own in saved["optimizer"].items()}
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})


def _arrays(tensors: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in tensors.items()}


def _tensors(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """Return copies of arrays as tensors, into which Adam may write."""
    import torch

    return {name: torch.tensor(array) for name, array in arrays.items()}
