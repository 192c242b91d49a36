"""The kinds of noise of `noisy_tables.py`: few rows, outliers, weights, and what is told of the law.

Each module has the runs of its kind for `dgsr.benchmarking.recording.record_all`, the entries that identify a
record (`KEY`), and a `summary` of records.
"""
