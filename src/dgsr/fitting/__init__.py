"""The searches of a fit, one after the other: their losses, their weights of rows, and their results."""

from dgsr.fitting.beginning import Beginning, Last, LastFit
from dgsr.fitting.demands import demanded
from dgsr.fitting.losses import WITHOUT_OUTLIERS, Loss, check_loss
from dgsr.fitting.outliers import outlying_rows
from dgsr.fitting.plan import planned
from dgsr.fitting.run import FitDriver, Outcome
from dgsr.fitting.shape import check_number

__all__ = [
    "WITHOUT_OUTLIERS",
    "Beginning",
    "FitDriver",
    "Last",
    "LastFit",
    "Loss",
    "Outcome",
    "check_loss",
    "check_number",
    "demanded",
    "outlying_rows",
    "planned",
]
