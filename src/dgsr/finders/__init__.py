"""Finders: all ways to find formulas other than evolution and the generator, behind one protocol."""

from dgsr.finders.budget import Budget
from dgsr.finders.fewer_columns.symmetries import find_symmetries
from dgsr.finders.fewer_columns.tables import Symmetry
from dgsr.finders.forms import fitted_curves
from dgsr.finders.interrupts import Interrupts
from dgsr.finders.longer.finder import by_total_bits

__all__ = ["Budget", "Interrupts", "Symmetry", "by_total_bits", "find_symmetries", "fitted_curves"]
