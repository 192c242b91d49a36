"""Our encoder: a table is a set of rows and a set of columns, of any number each."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from dgsr.generator.config import GeneratorConfig
from dgsr.generator.encoder import standardise
from dgsr.generator.layers import Attention, learned_vectors, merge_heads, split_heads

# Names of the features that `cells` returns for each cell and `pairs` for each pair of columns, in order.
# z is a standardised input, t the standardised target.
CELL_FEATURES = (
    *("asinh x", "log|x|", "sin x", "cos x"),
    *("z", "z^2 - 1", "z t", "(z^2 - 1) t", "z (t^2 - 1)", "(z^2 - 1) (t^2 - 1)", "t", "t^2 - 1"),
    *("asinh y", "log|y|"),
)
PAIR_FEATURES = ("z_i z_j t", "(z_i^2 - 1) (z_j^2 - 1) t", "(z_i^2 - 1) z_j t", "z_i z_j (t^2 - 1)")


def cells(X: Tensor, y: Tensor, with_scale: bool) -> Tensor:
    """Return the features of every cell x_ij and the target of its row.

    The means over the rows of products of z and t are correlations. Given them, the network learns within a
    few hundred batches to use a target whose scale is unknown; without them it did not.

    Parameters
    ----------
    X : Tensor of shape (D, N, C), float64
    y : Tensor of shape (D, N), float64
    with_scale : bool
        Whether the features of y itself, which tell its scale, are given; otherwise they are zero.

    Returns
    -------
    Tensor of shape (D, C, N, len(CELL_FEATURES)), float32
    """
    x = X.transpose(-1, -2)  # (D, C, N)
    z = standardise(x).float()
    t = standardise(y).float().unsqueeze(1).expand_as(z)
    scale = torch.stack([torch.asinh(y), y.abs().clamp_min(1e-6).log() / 3.0]).float() * float(with_scale)
    asinh_y, log_y = scale.unsqueeze(2).expand(-1, *z.shape)
    z2, t2 = z * z - 1.0, t * t - 1.0
    features = {
        "asinh x": torch.asinh(x).float(),
        "log|x|": (x.abs().clamp_min(1e-6).log() / 3.0).float(),
        "sin x": x.sin().float(),
        "cos x": x.cos().float(),
        "z": z,
        "z^2 - 1": z2,
        "z t": z * t,
        "(z^2 - 1) t": z2 * t,
        "z (t^2 - 1)": z * t2,
        "(z^2 - 1) (t^2 - 1)": z2 * t2,
        "t": t,
        "t^2 - 1": t2,
        "asinh y": asinh_y,
        "log|y|": log_y,
    }
    return torch.stack([features[name] for name in CELL_FEATURES], dim=-1).clamp(-10.0, 10.0)


def pairs(X: Tensor, y: Tensor) -> Tensor:
    """Return mean products over the rows for every two columns: (D, C, C, len(PAIR_FEATURES))."""
    z = standardise(X.transpose(-1, -2)).float().clamp(-10.0, 10.0)  # (D, C, N)
    t = standardise(y).float().clamp(-10.0, 10.0).unsqueeze(1)
    z2 = z * z - 1.0
    n = z.shape[-1]
    products = {
        "z_i z_j t": (z * t, z),
        "(z_i^2 - 1) (z_j^2 - 1) t": (z2 * t, z2),
        "(z_i^2 - 1) z_j t": (z2 * t, z),
        "z_i z_j (t^2 - 1)": (z * (t * t - 1.0), z),
    }
    means = [a @ b.transpose(-1, -2) / n for a, b in (products[name] for name in PAIR_FEATURES)]
    return torch.stack(means, dim=-1).clamp(-10.0, 10.0)


class ColumnAttention(nn.Module):
    """Self-attention among the columns of a table, biased by the features of their pairs."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.bias = nn.Linear(len(PAIR_FEATURES), heads)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, related: Tensor) -> Tensor:
        """Map x (D, C, width), given related (D, C, C, len(PAIR_FEATURES)), to the same shape."""
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(self.norm(x)).chunk(3, dim=-1))
        bias = self.bias(related).permute(0, 3, 1, 2)  # (D, H, C, C)
        return x + self.out(merge_heads(functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)))


class TableBlock(nn.Module):
    """A layer that multiplies every cell with the mean of its column and the mean of its row.

    The mean over the cells of a column holds moments of the column with the target. Columns attend to each
    other before their means go back to the cells.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.into = nn.Linear(width, 2 * width)
        self.columns = ColumnAttention(width, heads)
        self.of_column = nn.Linear(width, width)
        self.of_row = nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, related: Tensor) -> Tensor:
        """Map x (D, C, N, width), given related (D, C, C, len(PAIR_FEATURES)), to the same shape."""
        u, v = self.into(self.norm(x)).chunk(2, dim=-1)
        u = functional.gelu(u)
        column = self.of_column(self.columns(u.mean(2), related)).unsqueeze(2)  # (D, C, 1, width)
        row = self.of_row(u.mean(1)).unsqueeze(1)  # (D, 1, N, width)
        return x + self.out(u * (v + column + row))


class ColumnEncoder(nn.Module):
    """Table blocks over all cells, then attention that pools the whole table, and each column alone.

    The order of the rows does not matter. That of the columns matters by a position embedding alone, since
    programs name the first of two equal columns first; columns beyond `n_variables` share the last position.

    References
    ----------
    Hartford et al., ICML 2018 (layers equivariant to the orders of rows and columns); Lee et al., ICML 2019
    (pooling by attention).
    """

    def __init__(self, config: GeneratorConfig, n_variables: int) -> None:
        super().__init__()
        width, heads, multiple = config.encoder_width, config.encoder_heads, config.feedforward
        self.with_scale = config.target == "raw"
        self.input_names = {"cell": CELL_FEATURES, "pair of columns": PAIR_FEATURES}
        self.embed = nn.Linear(len(CELL_FEATURES), width)
        self.related = nn.Sequential(nn.Linear(len(PAIR_FEATURES), width), nn.GELU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(TableBlock(width, heads) for _ in range(config.encoder_layers))
        self.norm = nn.LayerNorm(width)
        self.pool = Attention(width, heads, width)
        self.seed = learned_vectors(1, width)
        self.seeds = learned_vectors(config.n_latents, width)
        self.order = nn.Embedding(n_variables, width)
        self.mix = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, heads, multiple * width, 0.0, nn.GELU(), batch_first=True, norm_first=True
            )
            for _ in range(2)
        )
        self.out_norm = nn.LayerNorm(width)
        nn.init.normal_(self.order.weight, std=0.1)

    def forward(self, X: Tensor, y: Tensor, n_variables: int) -> Tensor:
        """Encode data sets.

        Parameters
        ----------
        X : Tensor of shape (D, N, C), float64
            Columns from `n_variables` on are ignored.
        y : Tensor of shape (D, N), float64
        n_variables : int

        Returns
        -------
        Tensor of shape (D, S + n_variables, encoder_width)
            S vectors of the data set, then a vector of each column.
        """
        X = X[..., :n_variables]
        n_datasets, n_rows, n_columns = X.shape
        related = pairs(X, y)
        x = self.embed(cells(X, y, self.with_scale))  # (D, C, N, width)
        x = x + self.related(related).sum(2).unsqueeze(2)
        for block in self.blocks:
            x = block(x, related)
        keys, values = self.pool.keys_values(self.norm(x).flatten(1, 2))  # (D, H, C N, width / H)
        seeds = self.seeds.expand(n_datasets, -1, -1)
        table = seeds + self.pool(seeds, keys, values)
        seed = self.seed.expand(n_datasets * n_columns, -1, -1)
        of_columns = [
            t.unflatten(2, (n_columns, n_rows)).transpose(1, 2).flatten(0, 1) for t in (keys, values)
        ]
        columns = (seed + self.pool(seed, *of_columns)).view(n_datasets, n_columns, -1)
        at = torch.arange(n_columns, device=X.device).clamp_max(self.order.num_embeddings - 1)
        latents = torch.cat([table, columns + self.order(at)], dim=1)
        for layer in self.mix:
            latents = layer(latents)
        return self.out_norm(latents)
