"""The stages in which the exact solver searches for a whole law, one table in the order of the search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dgsr.exact_search import limits
from dgsr.exact_search.contexts import n_contexts
from dgsr.exact_search.join import join
from dgsr.exact_search.stage_kernels import (
    IN_CONTEXTS,
    IN_SINE,
    LENGTH,
    REMAINING,
    WHOLE,
    WIDE,
    StageTask,
    go_on,
    new_progress,
)


class Contexts(NamedTuple):
    """A range of one-hole contexts, by the nodes of the subprogram beside the hole."""

    most: int  # with 0, only unary operators and powers
    more_than: int | None = None  # None includes unary operators and powers
    or_none: bool = False  # whether the context may be missing


class Stage(NamedTuple):
    """One stage: the programs among which it searches, and an example."""

    name: str
    example: str  # a law over two columns that the stage finds and the first stage does not
    kind: int
    outer: int | None = None  # most nodes beside the hole of the outermost context; None for no context
    inner: Contexts | None = None
    innermost: Contexts | None = None
    plain: bool = False  # whether the join is no unary operator or power, so that more subprograms are tried
    first_nodes: int | None = None  # most nodes of the first of two in a sine; None tries `FEWEST_FIRSTS`
    largest: float = limits.ANGLE  # absolute value up to which the operands of a sine are searched for


STAGES = (
    Stage("join", "exp(x2)*sin(x1)", WHOLE),
    Stage("join in one context", "log(exp(x1*x2)/2)/log(x2)", IN_CONTEXTS, 2),
    Stage("wide join", "exp(x1)*cos(x2)/(x2**2 + sin(x1))", WIDE),
    Stage("plain join in a short context", "3/((x2 + 1)**2 - cos(x2))", IN_CONTEXTS, 1, plain=True),
    Stage("plain join in one context", "log(x1)*exp(x1 + x2)/cos(x2)", IN_CONTEXTS, 2, plain=True),
    Stage("sine of a join", "cos(exp(x1 + x2)/log(x2))",
          IN_SINE, first_nodes=4, largest=limits.FARTHEST_ANGLE),
    Stage("sine of a short context", "sin(3 - log(x1 + x2)/log(x1))",
          IN_SINE, None, Contexts(1, or_none=True), largest=limits.FARTHEST_ANGLE),
    Stage("sine of one context", "sin((x2**3 - (x2 + 1)**2)/log(x1))",
          IN_SINE, None, Contexts(2), first_nodes=3),
    Stage("sine in one context", "log(x2) + cos(x2**3*log(x1 + x2))",
          IN_SINE, 2, largest=limits.FARTHEST_ANGLE),
    Stage("plain join in a long context", "x1 + x2 + log(x1) - exp(x1*x2)", IN_CONTEXTS, 3, plain=True),
    Stage("sine in a very long context", "exp(x1 + x2) - cos((x2 + 1)**2 + x2)", IN_SINE, 4),
    Stage("sine of an operator in a long context", "cos(exp(log(x1)/exp(x1*x2)))/(x2 - 2)",
          IN_SINE, 3, Contexts(0)),
    Stage("sine of a short context in another", "log(x1) + cos(x2*exp(x1*x2) - x2)", IN_SINE, 2, Contexts(1)),
    Stage("operator on a plain join in one context", "(exp(x1)*(x2 + 1)**2/exp(x2))**2",
          IN_CONTEXTS, 0, Contexts(2), plain=True),
    Stage("plain join in a very long context", "(exp(x1 + x2) - exp(x2))*log(x1 + x2)",
          IN_CONTEXTS, 4, plain=True),
    Stage("plain join in two contexts", "log(x2)*x1**2/(x2 + log(x1 + x2))",
          IN_CONTEXTS, 2, Contexts(2), plain=True),
    Stage("operator on a plain join in a long context", "log((x2 + 1)**2 - 2)*sin(x1)**2",
          IN_CONTEXTS, 3, Contexts(0), plain=True),
    Stage("operator on a sine of a long context", "exp(sin(3/(x1 + 1)/log(x1)**2))",
          IN_SINE, 0, Contexts(3, more_than=1)),
    Stage("operator on a sine of an operator in a context", "log(cos(log((x1 + x2)/x2**3)/exp(x1)))",
          IN_SINE, 0, Contexts(2), Contexts(0)),
    Stage("sine of two contexts", "sin((x2**2 - log(x1 + x2))/exp(x2)/3)",
          IN_SINE, None, Contexts(1), Contexts(2, more_than=0)),
    Stage("sine of an operator in a short context", "cos(x2*log(x1 + (x2 + 1)**2))",
          IN_SINE, None, Contexts(1), Contexts(0), first_nodes=3),
    Stage("sine of an operator on a join", "sin(exp(x2/exp(x1*x2)))",
          IN_SINE, None, Contexts(0), first_nodes=4, largest=limits.FAR_ANGLE),
    Stage("sine of an operator in a long context, far", "x1 + cos(exp(x1*x2 + 3))",
          IN_SINE, 3, Contexts(0), largest=limits.FARTHEST_ANGLE),
    Stage("join in two short contexts", "3*(x1 - (cos(x2) + x1*x2)**3)", IN_CONTEXTS, 1, Contexts(1)),
)  # fmt: skip


def task_of(stage, bank):
    """Return a stage for one bank as the numbers that compiled code reads."""
    counts = [int(n_contexts(min(n, bank.n_kept), bank)) for n in bank.n_up_to]

    def ends(contexts):
        if contexts is None:
            return -1, 0
        first = 0 if contexts.more_than is None else counts[contexts.more_than]
        return -1 if contexts.or_none else first, counts[contexts.most]

    few = min(limits.FEWEST_FIRSTS, len(bank.token))
    return StageTask(
        stage.kind,
        0 if stage.outer is None else counts[stage.outer],
        ends(stage.inner),
        ends(stage.innermost),
        stage.plain,
        few if stage.first_nodes is None else int(bank.n_up_to[stage.first_nodes]),
        stage.largest,
    )


def find_law(stages, target, bank, accepts, program, should_stop, count_candidates):
    """Search stage by stage for a program that has the values of a target; return its length, or 0.

    The tokens are written into `program`, and the search continues where ``accepts(program, length)`` is
    False. It ends without a result when `should_stop` returns True; this is called about ten times a second,
    but not in the stage "join", which takes a millisecond. `count_candidates` is called as often with the
    number of candidates examined since the last call. This function is not compiled, so that Ctrl-C takes
    effect.
    """
    for stage in stages:
        if stage.kind == WHOLE:
            remaining = np.array([limits.CANDIDATES_OF_JOIN])
            n = join(target, bank, False, limits.MOST_FIRST_OF_LAW, remaining, program)
            count_candidates(limits.CANDIDATES_OF_JOIN - int(remaining[0]))
        else:
            task, progress = task_of(stage, bank), new_progress()
            goes_on, left = True, limits.MOST_CANDIDATES_OF_STAGE
            while goes_on:
                if should_stop():
                    return 0
                goes_on = go_on(task, progress, target, bank, program)
                count_candidates(left - int(progress[REMAINING]))
                left = int(progress[REMAINING])
            n = int(progress[LENGTH])
        if n > 0 and accepts(program, n):
            return n
    return 0
