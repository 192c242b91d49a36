"""Count how often operators, constants and variables stand under each operator in the equations of the prior.

    python benchmarks/prior_pairs.py --out src/dgsr/expressions/data/prior_pairs.json

The prior is the mixture that the generator of the library `physics` is trained on, `Prior.varied_for`: half
of it laws, whose forms have the shares of textbook formulas, half the paper's random trees. Variables count
together. The random choices of genetic programming follow these counts in part, and formulas are as
long as they say (`dgsr.expressions.formula_prior`).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from dgsr.expressions.constraints import Constraints
from dgsr.expressions.library import get_library
from dgsr.kernels.pair_counts import pair_counts
from dgsr.kernels.random import new_state
from dgsr.pretraining.prior import Prior

#: Most columns, equations for each column of a table, rows, and the seed.
N_COLUMNS, N_EQUATIONS, N_ROWS, SEED = 5, 4_000, 10, 20_261_123


def counted() -> dict[str, dict[str, int]]:
    """Return the counts by the names of parent, or "root", and child, or "variable"."""
    library = get_library("physics", N_COLUMNS)
    prior, constraints = replace(Prior.varied_for(library, N_COLUMNS), transformed=0.0), Constraints()
    parents = [*library.operators, "root"]
    total = np.zeros((len(parents), len(library)))
    for n_columns in range(1, N_COLUMNS + 1):
        arguments = N_EQUATIONS * n_columns, N_ROWS, n_columns, library, constraints
        programs = prior.draw(*arguments, new_state(SEED, n_columns)).programs
        grammar = constraints.grammar(library, n_columns)
        total += pair_counts(programs.tokens, programs.lengths, grammar, len(library.operators)).sum(axis=0)
    fixed = [token.name for token in library.tokens[: library.first_variable]]
    return {
        parent: dict(zip([*fixed, "variable"], [*map(int, row[: len(fixed)]), int(row[len(fixed) :].sum())]))
        for parent, row in zip(parents, total, strict=True)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="the file of the counts")
    lines = [f' "{parent}": {json.dumps(row)}' for parent, row in counted().items()]
    parser.parse_args().out.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
