"""Sizes of a generator."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

#: Version of what the numbers mean that the network reads: their names and order, which
#: `dgsr.generator.generator.Generator.input_names` returns, how each is computed, and the order of the tokens
#: of a program. Weights of another version are refused. Whatever changes the log-probabilities of the
#: shipped weights (tests/test_pretrained.py holds them) makes a new version and needs new weights.
INPUT_LAYOUT = 1

INPUT_ENCODINGS = ("float", "bits", "moments")
ENCODERS = ("rows", "columns")


@dataclass(frozen=True)
class GeneratorConfig:
    """Every size of the conditional generator p_theta(f|D).

    Parameters
    ----------
    input_encoding : {"float", "bits", "moments"}
        How the encoder ``"rows"`` reads a row: the inverse hyperbolic sine of its numbers; besides that
        the 16 bits of their half-precision form (for data whose scale varies widely); or besides that
        the products of standardised inputs and target whose means are their correlations.
    encoder : {"rows", "columns"}
        Whether the encoder is the paper's set transformer over the rows, with a place for every variable,
        or reads the table as a set of rows and of columns; the decoder then chooses a variable by its
        column, and one generator serves any number of them.
    target : {"raw", "standardised"}
        Whether the encoder reads y as it is, or less its mean over its standard deviation, as suits
        programs whose scale and offset are fitted.
    encoder_width, encoder_heads, encoder_layers : int
        Features, attention heads, and blocks: of induced set attention, or of table layers.
    n_inducing : int
        Inducing points of each block of ``"rows"``.
    n_latents : int
        Vectors the data set is summarised in (seeds of the pooling attention).
    max_rows : int
        Rows read; of a larger data set a random sample of this size.
    tree_embedding, tree_heads, tree_layers : int
        Tree-state encoder: size of the embeddings of parent and of sibling, heads, layers (0: the
        embeddings themselves).
    decoder_width, decoder_heads, decoder_layers : int
    feedforward : int
        Hidden features of every feed-forward block, as a multiple of the block's width.
    max_length : int
        Longest program.
    remainders : bool
        Whether the decoder is told, at every token, what the rest of the program has to be; see
        `dgsr.generator.conditioning.targets`. With the encoder ``"columns"`` alone.
    reader_width : int
        Features it reads a column's part of that in.

    Raises
    ------
    ValueError
        If `input_encoding`, `encoder` or `target` is unknown, a size is below 1 (layers: 0), a width is
        not a multiple of its heads, or `remainders` are asked for with the encoder ``"rows"``.
    """

    input_encoding: str = "bits"
    encoder_width: int = 96
    encoder_heads: int = 4
    encoder_layers: int = 3
    n_inducing: int = 24
    n_latents: int = 8
    max_rows: int = 200
    tree_embedding: int = 16
    tree_heads: int = 1
    tree_layers: int = 0
    decoder_width: int = 64
    decoder_heads: int = 4
    decoder_layers: int = 3
    feedforward: int = 2
    max_length: int = 30
    target: str = "raw"
    encoder: str = "rows"
    remainders: bool = False
    reader_width: int = 32

    def __post_init__(self) -> None:
        if self.input_encoding not in INPUT_ENCODINGS:
            raise ValueError(
                f"input_encoding={self.input_encoding!r} must be one of {', '.join(INPUT_ENCODINGS)}."
            )
        if self.encoder not in ENCODERS:
            raise ValueError(f"encoder={self.encoder!r} must be one of {', '.join(ENCODERS)}.")
        if self.target not in ("raw", "standardised"):
            raise ValueError(f"target={self.target!r} must be 'raw' or 'standardised'.")
        for field in fields(self):
            least = 0 if field.name.endswith("_layers") else 1
            value = getattr(self, field.name)
            if field.name not in ("input_encoding", "target", "encoder", "remainders") and (
                not isinstance(value, int) or value < least
            ):
                raise ValueError(f"{field.name}={value!r} must be an integer of at least {least}.")
        if self.remainders and self.encoder != "columns":
            raise ValueError("remainders=True needs encoder='columns'; set both, or remainders=False.")
        for width, heads in (
            (self.encoder_width, self.encoder_heads),
            (2 * self.tree_embedding, self.tree_heads),
            (self.decoder_width, self.decoder_heads),
        ):
            if width % heads:
                raise ValueError(f"A width of {width} must be a multiple of its {heads} heads.")

    def with_max_length(self, max_length: int) -> GeneratorConfig:
        """Return the same sizes for programs of another length."""
        return replace(self, max_length=max_length)


#: The paper's sizes (appendix "Benchmark Algorithms"), and the sizes we ship.
CONFIGS = {
    "paper": GeneratorConfig(
        input_encoding="float",
        encoder_width=32,
        encoder_heads=1,
        encoder_layers=3,
        n_inducing=64,
        n_latents=1,
        tree_layers=3,
        decoder_width=32,
        decoder_heads=1,
        decoder_layers=2,
        feedforward=2,
    ),
    "base": GeneratorConfig(encoder="columns", encoder_width=64, encoder_layers=4, remainders=True),
}
