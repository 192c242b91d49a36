"""Rules by which the programs of a library are rewritten in canonical form; see `dgsr.kernels.canonical`."""

from __future__ import annotations

import numpy as np

from dgsr.expressions.programs.library import Library
from dgsr.kernels.canonical import OFFSET, SCALE, Rewriting


def rewriting(library: Library) -> Rewriting:
    """Return the tokens and rules of `library` for the rewriting of programs."""
    names = [token.name for token in library.tokens]
    fitted = np.zeros((len(names), 2, 4), dtype=np.int64)
    for around in range(4):
        offset, scale = around & OFFSET, around & SCALE
        inside = dict.fromkeys(("mul", "div"), (scale, scale))
        inside |= dict.fromkeys(("add", "sub"), (offset, offset))
        # A scale of f becomes a scale of its square; an offset of f becomes a scale of exp(f).
        inside |= dict.fromkeys(("square", "cube", "sqrt", "abs", "inv", "pow"), (scale, 0))
        inside |= {"neg": (around, 0), "exp": (OFFSET if scale else 0, 0), "log": (SCALE if offset else 0, 0)}
        for name, children in inside.items():
            if name in library.index:
                fitted[library.index[name], :, around] = children
    return Rewriting(
        commutative=np.array([name in ("add", "mul") for name in names]),
        fitted=fitted,
        constant=library.index.get("const", -1),
        **{
            name: library.index.get(name, -1)
            for name in ("add", "sub", "mul", "div", "neg", "inv", "square", "cube", "pow")
        },
    )
