"""The searches of a fit, one after the other: what a formula is judged by, and what comes of it."""

from dgsr.passes.beginning import Beginning, Last, LastFit
from dgsr.passes.demands import Demands
from dgsr.passes.losses import WITHOUT_OUTLIERS, Loss, check_loss
from dgsr.passes.outliers import outlying_rows
from dgsr.passes.outputs import fit_each
from dgsr.passes.parameters import Parameters
from dgsr.passes.plan import planned
from dgsr.passes.run import Outcome, Passes

__all__ = [
    "WITHOUT_OUTLIERS",
    "Beginning",
    "Demands",
    "Last",
    "LastFit",
    "Loss",
    "Outcome",
    "Parameters",
    "Passes",
    "check_loss",
    "fit_each",
    "outlying_rows",
    "planned",
]
