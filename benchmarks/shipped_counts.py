"""Make the counts that the package ships: of the formulas of textbooks, and of the equations of the prior.

    python benchmarks/shipped_counts.py textbooks FOLDER --out src/dgsr/pretraining/data/textbook_counts.json
    python benchmarks/shipped_counts.py prior --out src/dgsr/expressions/data/prior_pairs.json

``textbooks`` counts operators, shapes and numbers, which the forms of laws of the prior follow
(`dgsr.pretraining.law_forms`). FOLDER holds one folder a source, each with `modules/*/index.cnxml` and a file
`COMMIT` with its version. The sources of the committed counts are the CNXML repositories of OpenStax
(openstax/osbooks-NAME on GitHub, NAME being university-physics-bundle, college-physics-bundle, physics,
astronomy, chemistry-bundle, principles-finance and statistics), most of them under CC BY-NC-SA 4.0. Counts
alone are kept, no formula. `_textbooks` says how formulas are read, and which are left out.

``prior`` counts how often operators, constants and variables stand under each operator in the mixture that
the generator of the library `physics` is trained on, `Prior.varied_for`: half of it laws, whose forms have
the shares of textbook formulas, half the paper's random trees. Variables count together. The random choices
of genetic programming follow these counts in part, and formulas are as long as they say
(`dgsr.expressions.formulas.description_length`). The committed counts are those of commit f744902; the prior
has changed since, and the counts of the present one differ.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from _textbooks.counts import counted_in

from dgsr.expressions.programs.constraints import Constraints
from dgsr.expressions.programs.library import get_library
from dgsr.kernels.pair_counts import pair_counts
from dgsr.kernels.random import new_state
from dgsr.pretraining.prior import Prior

#: Most columns, equations for each column of a table, rows, and the seed.
N_COLUMNS, N_EQUATIONS, N_ROWS, SEED = 5, 4_000, 10, 20_261_123


def pairs_of_prior() -> dict[str, dict[str, int]]:
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


def write_textbooks(arguments: argparse.Namespace) -> None:
    result = counted_in(arguments.folder)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps(result["source"], indent=1, ensure_ascii=False))


def write_prior(arguments: argparse.Namespace) -> None:
    lines = [f' "{parent}": {json.dumps(row)}' for parent, row in pairs_of_prior().items()]
    arguments.out.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(required=True)
    textbooks, prior = (kinds.add_parser(name) for name in ("textbooks", "prior"))
    textbooks.add_argument("folder", type=Path, help="the folder of the sources")
    textbooks.set_defaults(write=write_textbooks)
    prior.set_defaults(write=write_prior)
    for kind in (textbooks, prior):
        kind.add_argument("--out", type=Path, required=True, help="the file of the counts")
    arguments = parser.parse_args()
    arguments.write(arguments)


if __name__ == "__main__":
    main()
