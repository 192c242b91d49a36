"""The sets of benchmark problems: eight of the DGSR paper, two of SRBench, and the laws of four textbooks."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from dgsr.problems.problem import Problem, Variable, read_table


def list_sets() -> list[str]:
    """Return the names of the problem sets."""
    return list(dict.fromkeys(problem.set for problem in _all_problems()))


def load_set(name: str) -> list[Problem]:
    """Return the problems of a set.

    Raises
    ------
    ValueError
        If there is no set of that name.

    Examples
    --------
    >>> [problem.expression for problem in load_set("nguyen")[:2]]
    ['x1**3+x1**2+x1', 'x1**4+x1**3+x1**2+x1']
    """
    if name not in list_sets():
        raise ValueError(f"name={name!r} is not a problem set; choose from {', '.join(list_sets())}.")
    return [problem for problem in _all_problems() if problem.set == name]


def load_problem(name: str) -> Problem:
    """Return the problem `name`, such as ``"Nguyen-12"`` or ``"strogatz_lv1"``, in any case.

    Raises
    ------
    ValueError
        If there is no problem of that name; lists names that are close.
    """
    by_name = {problem.name.lower(): problem for problem in _all_problems()}
    if name.lower() in by_name:
        return by_name[name.lower()]
    close = difflib.get_close_matches(name.lower(), by_name, n=5, cutoff=0.5)
    names = ", ".join(by_name[match].name for match in close)
    mend = f"did you mean {names}?" if names else f"load_set lists the problems of {', '.join(list_sets())}."
    raise ValueError(f"name={name!r} is not a problem; {mend}")


@cache
def _all_problems() -> tuple[Problem, ...]:
    return (*_paper_problems(), *_srbench_problems(), *_textbook_laws())


def _read_json(file_name: str):
    return json.loads((resources.files("dgsr.problems") / "data" / file_name).read_text(encoding="utf-8"))


def _variables(entries: Iterable[Mapping[str, Any]]) -> tuple[Variable, ...]:
    return tuple(Variable(entry["name"], float(entry["low"]), float(entry["high"])) for entry in entries)


def _paper_problems() -> list[Problem]:
    content = _read_json("paper_problems.json")
    lengths = content["meta"]["length"]
    return [
        Problem(
            name=entry["name"],
            set=entry["set"],
            expression=entry["expr"],
            variables=_variables({**entry, "name": f"x{i + 1}"} for i in range(entry["d"])),
            n_samples=entry["n"],
            sampling={"U": "uniform", "E": "even"}[entry["sampling"]],
            library=entry["library"].replace("+", "-"),
            max_length=lengths.get(entry["set"], lengths["default"])[1],
            paper_recovery=entry["paper_recovery"],
        )
        for entry in content["problems"]
    ]


def _srbench_problems() -> list[Problem]:
    problems = []
    for entry in _read_json("srbench_ground_truth.json"):
        settings: dict[str, Any] = {"set": "srbench_feynman", "sampling": "split", "n_samples": 10_000}
        variables = entry["variables"]
        if "file" in entry:
            table = read_table(entry["file"])
            settings = {"set": "strogatz", "sampling": "table", "n_samples": len(table)}
            settings["data_file"] = entry["file"]
            ends = zip(variables, table.min(axis=0).tolist(), table.max(axis=0).tolist())
            variables = [{**variable, "low": low, "high": high} for variable, low, high in ends]
        about = {"name": entry["name"], "expression": entry["formula"], "library": "physics"}
        problems.append(Problem(**about, **settings, variables=_variables(variables)))
    return problems


def _textbook_laws() -> list[Problem]:
    return [
        Problem(
            name=entry["name"],
            set="laws",
            expression=entry["formula"],
            variables=_variables(entry["variables"]),
            n_samples=200,
            sampling="log-uniform",
            library="physics",
            n_test=1000,
        )
        for entry in _read_json("laws.json")["problems"]
    ]
