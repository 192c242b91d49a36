"""The sets of benchmark problems: eight of the DGSR paper, two of SRBench, and the laws of four textbooks."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from importlib import resources

from dgsr.problems.problem import Problem, Variable


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
    files = ("paper_problems.json", "srbench_ground_truth.json", "laws.json")
    return tuple(problem for file_name in files for problem in _problems_of(file_name))


def _problems_of(file_name: str) -> Iterator[Problem]:
    """Yield the problems of a file, whose entries have the parameters of `Problem` beside other facts."""
    file = resources.files("dgsr.problems") / "data" / file_name
    content = json.loads(file.read_text(encoding="utf-8"))
    known = {field.name for field in fields(Problem)}
    for entry in content["problems"]:
        given = {name: value for name, value in {**content["shared"], **entry}.items() if name in known}
        variables = (Variable(v["name"], float(v["low"]), float(v["high"])) for v in entry["variables"])
        yield Problem(**{**given, "variables": tuple(variables)})
