"""The conditional generator p_theta(f|D): encoder, decoder, sampling and log-probabilities."""

from __future__ import annotations

import copy
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from dgsr.data.population import Population
from dgsr.expressions.programs.constraints import Constraints, Grammar
from dgsr.expressions.programs.library import Library
from dgsr.generator.config import GeneratorConfig
from dgsr.generator.decoder import Decoder
from dgsr.generator.encoder import Encoder
from dgsr.generator.encoding import Encoding
from dgsr.generator.guide.network import DescriptionEncoder, Guide
from dgsr.generator.sampling import Samples, sample_programs
from dgsr.kernels.grammar import walk
from dgsr.kernels.random import new_state


class LogProbs(NamedTuple):
    """Result of a teacher-forced pass over D x K programs."""

    programs: Tensor  # (D, K): log-probability of each program
    entropies: Tensor  # (D, K, L): entropy of the choice at each position, zero after the end


class Generator(nn.Module):
    """Encoder and decoder over the tokens of one library.

    The library's number of variables is the largest that data may have; data with fewer use the first ones.
    `with_variables` allows more, except with the encoder ``"rows"``. The constraints on the sampled programs
    are part of the distribution; ValueError if they allow longer programs than `config` has positions for.

    Reference: Holt, Qian, van der Schaar, ICLR 2023, section 3 and appendix "DGSR Instantiation".
    """

    def __init__(self, library: Library, config: GeneratorConfig, constraints: Constraints) -> None:
        super().__init__()
        if constraints.max_length > config.max_length:
            raise ValueError(
                f"max_length={constraints.max_length} of the constraints must be at most the network's, "
                f"{config.max_length}; use config.with_max_length."
            )
        self.library, self.config, self.constraints = library, config, constraints
        self.encoder: DescriptionEncoder | Encoder
        self.guide: Guide | None = None
        if config.encoder == "descriptions":
            self.encoder = DescriptionEncoder(config)
            self.guide = Guide(library, config.encoder_width)
        else:
            self.encoder = Encoder(config, library.n_variables)
        self.decoder = Decoder(config, len(library), library.first_variable)
        self.float()  # whatever the user's default type in torch

    @classmethod
    def untrained(
        cls, library: Library, config: GeneratorConfig, constraints: Constraints, seed: int
    ) -> Generator:
        """Return a generator with random weights that depend only on `seed`."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(library, config, constraints)

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return self.decoder.positions.weight.device

    def n_parameters(self) -> int:
        """Return the number of weights."""
        return sum(parameter.numel() for parameter in self.parameters())

    def input_names(self) -> dict[str, tuple[str, ...]]:
        """Return the names of the numbers in each input of the network, in their order.

        Weights are valid only for the inputs of their training; see `dgsr.generator.config.INPUT_LAYOUT`.
        """
        n_tokens = self.decoder.tokens.num_embeddings - 1  # columns have no embeddings
        tokens = (*(token.name for token in self.library.tokens[:n_tokens]), "start or none")
        return {**self.encoder.input_names, "token": tokens, "state of the tree": ("parent", "sibling")}

    def refinable_copy(self) -> Generator:
        """Return a generator that shares this frozen encoder and has its own copy of the decoder."""
        twin = copy.copy(self)
        twin._modules = dict(self._modules)
        twin.decoder = copy.deepcopy(self.decoder)
        return twin

    def with_variables(self, n_variables: int) -> Generator:
        """Return this generator, with shared weights, for data of more columns (P3 of the paper).

        Raises ValueError if the encoder is ``"rows"``, whose number of variables is fixed, and that is too
        small.
        """
        if n_variables <= self.library.n_variables:
            return self
        if self.config.encoder == "rows":
            raise ValueError(
                f"The generator knows {self.library.n_variables} columns and X has {n_variables}; set "
                "generator='untrained', leave columns out, or pretrain one with more variables."
            )
        twin = copy.copy(self)
        twin._modules = dict(self._modules)
        twin.library = self.library.with_variables(n_variables)
        twin.decoder = copy.copy(self.decoder)
        twin.decoder.n_tokens = len(twin.library)
        return twin

    def grammar(self, n_variables: int) -> Grammar:
        """Return the constraints for data with `n_variables` columns."""
        return self.constraints.grammar(self.library, n_variables)

    def encode(self, X: np.ndarray, y: np.ndarray, n_variables: int) -> Encoding:
        """Encode D data sets, by the first `n_variables` columns of `X` (D, N, C) and `y` (D, N), float64."""
        return Encoding(self.encoder(*self._on_device(X, y), n_variables))

    @torch.inference_mode()
    def encode_dataset(self, X: np.ndarray, y: np.ndarray, seed: int = 0) -> Encoding:
        """Encode one data set of a user, `X` (n_samples, n_features) and `y` (n_samples,).

        If there are more rows than `config.max_rows`, `seed` is that of the sample that is read. Raises
        ValueError if `X` has more columns than the generator knows.
        """
        n_features = X.shape[1]
        known = self.library.n_variables
        if n_features > known:
            raise ValueError(
                f"X has {n_features} columns, the generator was trained for at most {known}; "
                "use generator='untrained', or pretrain one with more variables."
            )
        if len(y) > self.config.max_rows:
            rows = np.random.default_rng(seed).choice(len(y), self.config.max_rows, replace=False)
            X, y = X[rows], y[rows]
        if isinstance(self.encoder, DescriptionEncoder):
            latents, unread = self.encoder.read_strongest(*self._on_device(X[None], y[None]))
            return Encoding(latents, unread=unread)
        padded = np.zeros((1, len(y), known))
        padded[0, :, :n_features] = X
        return self.encode(padded, y[None], n_features)

    @torch.inference_mode()
    def guide_probabilities(self, encoding: Encoding) -> np.ndarray | None:
        """Return the probabilities of tokens under each parent in the law of one encoded data set.

        They are of shape (n_operators + 1, n_tokens), or None for a generator without a guide. The parents
        are the operators and, in the last row, the root. Operators that the generator does not know and
        variables that the data do not have are 0.
        """
        if self.guide is None:
            return None
        found = self.guide(encoding.latents)[0].exp().double().cpu().numpy()
        found[self.guide.unknown_parents] = 0.0
        if encoding.unread is not None:  # unread columns are less probable than all others
            of_columns = found[:, self.library.first_variable :]
            of_columns[:, encoding.unread] = 0.1 * of_columns.min(axis=1, keepdims=True)
        return np.pad(found, ((0, 0), (0, len(self.library) - found.shape[1])))

    def _on_device(self, X: np.ndarray, y: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return copies of the data as tensors; a view of one column and row would become a number."""
        inputs, target = (torch.from_numpy(np.array(values, dtype=np.float64)) for values in (X, y))
        return inputs.to(self.device), target.to(self.device)

    def log_probs(
        self, encoding: Encoding, tokens: np.ndarray, lengths: np.ndarray, grammar: Grammar
    ) -> LogProbs:
        """Return the log-probabilities of K programs for each of D data sets, in one pass with gradients.

        The tokens, (D K, max_length) int64, and lengths, (D K,), are in the order of `Samples`.
        """
        n_datasets, n_tokens = len(encoding), len(self.library)
        longest = int(lengths.max())
        parents, siblings, masks = walk(tokens, lengths, grammar)
        inside = np.arange(longest) < lengths[:, None]
        previous = np.full((len(lengths), longest), n_tokens)
        previous[:, 1:] = tokens[:, : longest - 1]
        chosen = np.where(inside, tokens[:, :longest], 0)

        def by_dataset(array: np.ndarray) -> Tensor:
            tensor = torch.from_numpy(array).to(self.device)
            return tensor.view(n_datasets, -1, *array.shape[1:])

        memory = self.decoder.memory(encoding.latents)
        inputs = by_dataset(previous), by_dataset(parents), by_dataset(siblings)
        logits = self.decoder(*inputs, memory)
        log_p = torch.log_softmax(logits + by_dataset(masks), dim=-1)  # (D, K, L, n_tokens)
        kept = by_dataset(inside)
        of_tokens = log_p.gather(-1, by_dataset(chosen).unsqueeze(-1)).squeeze(-1)
        # A forbidden token has log_p = -inf. The bound makes its term 0, since 0 * -inf would be NaN.
        terms = log_p.exp() * log_p.clamp_min(-1e4)
        return LogProbs(torch.where(kept, of_tokens, 0.0).sum(-1), torch.where(kept, -terms.sum(-1), 0.0))

    def sample_encoded(self, encoding: Encoding, n: int, grammar: Grammar, state: np.ndarray) -> Samples:
        """Draw `n` programs for each encoded data set; see `sample_programs`."""
        return sample_programs(self.decoder, encoding, n, grammar, state)

    def population(self, tokens: np.ndarray, lengths: np.ndarray) -> Population:
        """Wrap sampled arrays; constants start at 1.0."""
        width = self.constraints.max_constants if self.library.has_constants else 0
        return Population(self.library, tokens, lengths, np.ones((len(lengths), width)))

    def sample(self, X: np.ndarray, y: np.ndarray, n: int, random_state: int = 0) -> Population:
        """Draw `n` programs for a data set, `X` (n_samples, n_features) and `y` (n_samples,)."""
        X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        state = new_state(random_state)
        encoding = self.encode_dataset(X, y, random_state)
        samples = self.sample_encoded(encoding, n, self.grammar(X.shape[1]), state)
        return self.population(samples.tokens, samples.lengths)
