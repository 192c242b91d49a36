"""Run methods on benchmark problems, test recovery, and print tables."""

from dgsr.benchmarking.methods import METHODS
from dgsr.benchmarking.record_files import read_records
from dgsr.benchmarking.recovery import Recovery, is_recovered
from dgsr.benchmarking.runner import run_set
from dgsr.benchmarking.summaries import tables, wilson_interval

__all__ = [
    "METHODS",
    "Recovery",
    "is_recovered",
    "read_records",
    "run_set",
    "tables",
    "wilson_interval",
]
