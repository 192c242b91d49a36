"""The README's commands and code are what the project has."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SET_UP = "python3 -m venv .venv && .venv/bin/pip install -q nox && .venv/bin/nox -s "


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def shell_lines() -> list[str]:
    return "".join(blocks("sh")).splitlines()


@pytest.mark.parametrize("session", ["demo", "tests"])
def test_each_of_the_two_commands_is_one_line_that_runs_a_nox_session(session):
    assert SET_UP + session in shell_lines()
    assert re.search(rf"^@nox\.session\ndef {session}\(", (ROOT / "noxfile.py").read_text(), re.MULTILINE)


def test_continuous_integration_runs_the_readmes_test_command():
    script = ROOT / ".ci" / "run"
    assert SET_UP + "tests" in [line.strip() for line in script.read_text().splitlines()]
    assert script.stat().st_mode & 0o111


def test_the_command_lines_examples_name_commands_and_files_that_exist():
    from dgsr.cli import app

    commands = {command.callback.__name__ for command in app.registered_commands}
    used = [line.split() for line in shell_lines() if line.startswith("dgsr ")]
    assert used
    assert {words[1] for words in used} <= commands
    assert all((ROOT / word).is_file() for words in used for word in words if word.endswith(".csv"))


def test_what_the_python_example_imports_exists():
    (code,) = blocks("python")
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
    assert imports
    for node in imports:
        module = importlib.import_module(node.module)
        assert all(hasattr(module, alias.name) for alias in node.names)


def test_links_to_files_of_the_project_lead_somewhere():
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert links
    assert all((ROOT / link).exists() for link in links)
