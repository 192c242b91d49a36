"""Write docs/tables.md from the files of the tables: `python docs/benchmark_tables.py`."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from full_tables import FOLDER, PAIRS, ROOT, differing, markdown, runs_of

from dgsr.benchmarking import by_problem
from dgsr.benchmarking.published import TABLES, Setting, Table
from dgsr.benchmarking.recording import commit_of
from dgsr.benchmarking.table_runs import Cells

PAGE = ROOT / "docs" / "tables.md"
# The p-value below which a difference is called significant, as usual.
_SIGNIFICANT = 0.05

INTRODUCTION = f"""# Tables by one command

`dgsr bench --table NAME` makes a table of the paper or of the field: the problems of a set, several methods,
several seeds. This page is the summary of the tables. [All tables](all_tables.md) have seconds, equations,
pairs of methods, problems, provenance and commands; they are a page of the site, which is built with it. Both
are made from `{FOLDER}`, where each run is a line of compressed JSON, this page by
`python docs/benchmark_tables.py`.

- A problem is *found* by a method if more than half of the seeds find its law. *Recovery* is the mean over
  problems of the share of the seeds that find it, in percent. Its 95% interval is Wilson's with the problem
  as the unit, since five seeds of seven problems are seven observations.
- Noise is on the rows to fit alone.

| tables | problems |
| --- | --- |
| `feynman_*`, `nguyen*`, `r`, `livermore`, `synthetic_d12` | the paper's, [in part tuned on](benchmarks.md) |
| `strogatz`, `srbench*` | the laws of SRBench, 119 of Feynman's lectures and 14 systems of Strogatz |
| `laws*` | 60 laws of [textbooks](benchmarks.md#laws-of-textbooks), which are in no benchmark |
| `drawn_*`, `extended_*` | what the network learned from, [drawn afresh](benchmarks.md#drawn-sets) |
| `ablations_*` | those of `feynman_*`, for methods of which parts are left out |

| method | what it is |
| --- | --- |
| `dgsr` | the whole search |
| `exact` | the same without a network |
| `generator` | network and evolution; exact search, laws of two terms and symmetries are off |
| `gp` | evolution alone |
| `blind` | `generator` whose encoder returns its mean over other data sets |
| `misled` | `generator` that reads another data set instead of the one that is fitted |
| `features` | `generator` with the best simple functions instead of samples |
| `unrefined`, `guide-alone`, `samples-alone` | `generator` unrefined, and also without samples or guide |
| `untrained` | the paper's network with random weights: it has no guide, and its decoder is refined |
| `pqt`, `vpg`, `risk-seeking` | `generator` whose decoder is refined during the search, by that objective |
| `pqt-alone`, `vpg-alone`, `risk-seeking-alone`, `untrained-alone` | the same without evolution |
| `sampled` | the network's samples alone |
| `operon`, `gplearn` | the packages pyoperon and gplearn |
| `operon-selected` | `operon` in six columns that a random forest selects |

## Summary

Recovery in percent with its interval; a row has the last setting of a table that has several. *Only* counts
the problems that more seeds of the first method of a pair solve than of the second, and the other way round,
with p of McNemar's exact test of the two numbers.

"""
_WORTH = "\n## What the network is worth\n\n"
# The methods that have a column each: those of the two pairs, and a control.
_COLUMNS = ("dgsr", "exact", "generator", "gp", "blind")


def page(folder: Path = ROOT / FOLDER) -> str:
    """Return the page.

    Parameters
    ----------
    folder : Path
        Where the files of the tables are.
    """
    runs = runs_of(folder)
    if not runs:
        return f"{INTRODUCTION}No table has a file yet.\n"
    tables = [table for table in TABLES.values() if table.name in runs]
    rows = [
        _row(table, runs[table.name]) for table in tables if _has_pairs(table.settings[-1], runs[table.name])
    ]
    only = (f"only `{a}`, only `{b}` (p)" for a, b in PAIRS)
    rows.insert(0, ("table", "problems", *(f"`{method}`" for method in _COLUMNS), *only))
    others = [(table.name, _others(table, runs[table.name])) for table in tables]
    others = [("table", "other methods"), *((name, text) for name, text in others if text)]
    parts = [INTRODUCTION, markdown(rows), "\n", markdown(others), f"\n{_commits(runs)}\n"]
    return "".join([*parts, _WORTH, _worth(tables, runs)])


def _commits(runs: Mapping[str, Cells]) -> str:
    """Return how many tables are of which commit."""
    own = [
        ", ".join(sorted({commit_of(record)[:7] for cell in cells.values() for record in cell.values()}))
        for cells in runs.values()
    ]
    counts = ", ".join(f"{commit} ({n} tables)" for commit, n in Counter(own).most_common())
    return f"The tables are of the commits {counts}."


def _row(table: Table, runs: Cells) -> tuple[str, ...]:
    """Return what the usual methods find, and the network alone, in the last setting of a table."""
    setting = table.settings[-1]
    pairs = [_compared(pair, setting, runs) for pair in PAIRS]
    return (
        ", ".join([table.name, *differing(table, setting)]),
        f"{len(table.problems)}",
        *(_recovery(method, setting, runs) if runs.get((setting, method)) else "" for method in _COLUMNS),
        *(f"{pair.only_first}, {pair.only_second} ({pair.p:.2g})" for pair in pairs),
    )


def _others(table: Table, runs: Cells) -> str:
    """Return the recoveries of the methods that have no column, or of all if the table has no row."""
    setting = table.settings[-1]
    shown = _COLUMNS if _has_pairs(setting, runs) else ()
    own = [method for method in table.methods if method not in shown and runs[setting, method]]
    return ", ".join(f"`{method}` {_recovery(method, setting, runs)}" for method in own)


def _worth(tables: Sequence[Table], runs: Mapping[str, Cells]) -> str:
    """Return in which tables and settings the network makes a significant difference."""
    ran = [(t, s, runs[t.name]) for t in tables for s in t.settings if _has_pairs(s, runs[t.name])]
    text = (
        "The methods of each of two pairs differ by the network alone: `generator` and `gp`, and `dgsr` and "
        "`exact`, beside whose look-ups less is left to find."
    )
    for first, second in PAIRS:
        compared = [(table, setting, _compared((first, second), setting, own)) for table, setting, own in ran]
        significant = [each for each in compared if each[2].p < _SIGNIFICANT]
        more = [table.name for table, _, pair in significant if pair.only_first > pair.only_second]
        n_noisy = sum(setting.noise > 0.0 for _, setting, _ in significant)
        text += (
            f" `{first}` solves significantly more problems than `{second}` (p below {_SIGNIFICANT:g}) in "
            f"{len(more)} of the {len(compared)} settings of all tables ({', '.join(more) or 'none'}), and "
            f"fewer in {len(significant) - len(more)}; {n_noisy} of these settings have noise."
        )
    return textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False) + "\n"


def _has_pairs(setting: Setting, runs: Cells) -> bool:
    return all(runs.get((setting, method)) for pair in PAIRS for method in pair)


def _compared(pair: tuple[str, str], setting: Setting, runs: Cells) -> by_problem.Comparison:
    (compared,) = by_problem.comparisons({method: list(runs[setting, method].values()) for method in pair})
    return compared


def _recovery(method: str, setting: Setting, runs: Cells) -> str:
    found = by_problem.summary(method, runs[setting, method].values())
    return f"{found.recovery:.1f} ({found.low:.0f}\N{EN DASH}{found.high:.0f})"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
