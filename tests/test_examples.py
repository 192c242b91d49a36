"""What the pages and the examples show, runs."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import re
import runpy
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import typer
from matplotlib import pyplot
from typer.testing import CliRunner

from dgsr import DGSRRegressor, pretraining
from dgsr.cli import app

pytestmark = pytest.mark.search

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SCRIPTS = sorted((ROOT / "examples").glob("*.py"))

# What makes a script quick that is not so by itself, and a pattern of what it then prints.
ARGUMENTS = {
    "without_a_law.py": ["--max-evaluations", "3000"],
    "pretrain_your_domain.py": ["--minutes", "0.05", "--laws", "1", "--out", "networks"],
}
PRINTED = {
    "enzyme_inhibition.py": r"law: \d+\*substrate/\(substrate\*\(inhibitor \+ \d+\) \+ \d+\)",
    "grid_search.py": "best: {'max_evaluations'",
    "lynx_and_hare.py": r"growth of hare: 0\.5 - 0\.025\*lynx",
    "multi_output.py": r"distance = speed\*time\*cos\(angle\)",
    "planets.py": r"law: distance\*\*\(3/2\)",
    "pipeline.py": r"R2 on the wires held out: (0\.9|1\.0)",
    "pretrain_your_domain.py": "genetic programming",
    "saving_and_loading.py": "predicts the same: True",
    "tree_volume.py": r"law: 0\.002\d*\*girth\*\*2\*height",
    "vapour_pressure.py": r"relative: \d+\*exp\(-\d+/\(temperature \+ [\d.]+\)\)",
    "without_a_law.py": "R2 on the measurements held out",
}


class Block(NamedTuple):
    language: str
    code: str
    is_run: bool
    line: int


def blocks(page: Path) -> list[Block]:
    """The blocks of a page that can be run; a comment "not run: why" above one says that it is not."""
    content = page.read_text(encoding="utf-8")
    fence = re.compile(r"^(<!-- not run: .+ -->\n)?```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [
        Block(match[2], match[3], match[1] is None, content.count("\n", 0, match.start(3)))
        for match in fence.finditer(content)
    ]


def commands(block: Block) -> list[list[str]]:
    """The command lines of `dgsr` in a block."""
    lines = [line for line in block.code.splitlines() if re.search(r"(^| )dgsr ", line)]
    words = [shlex.split(line, comments=True) for line in lines]
    return [line[line.index("dgsr") + 1 :] for line in words]


GUIDE = sorted(DOCS.glob("guide/*.md"))
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted(DOCS.glob("**/*.md"))]
    if page in GUIDE or any(block.language == "python" for block in blocks(page))
]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# Pages of several fits of thousands of evaluations, or of fits with operators that are compiled first.
SLOW = (
    "tuning.md",
    "scaling_out.md",
    "budgets.md",
    "common_forms.md",
    "constants_and_noise.md",
    "formulas.md",
    "front.md",
    "operators.md",
    "rates.md",
    "rational_laws.md",
    "symmetries.md",
    "units.md",
)


@pytest.fixture
def loaded(monkeypatch):
    """Load a program of docs as a module."""
    monkeypatch.syspath_prepend(DOCS)

    def load(program: str):
        spec = importlib.util.spec_from_file_location(f"docs_{program}", DOCS / f"{program}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def measurements() -> dict:
    """What docs/report.md takes as given."""
    X = np.random.default_rng(0).uniform(0.5, 2, size=(40, 1))
    y = 3 * np.sqrt(X[:, 0])
    regressor = DGSRRegressor(max_evaluations=1_000, random_state=0).fit(X, y)
    return {"X": X, "y": y, "X_test": X + 1.0, "y_test": 3 * np.sqrt(X[:, 0] + 1.0), "regressor": regressor}


GIVEN = {"report.md": measurements}


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page.name in SLOW)) for page in PAGES], ids=name
)
@pytest.mark.filterwarnings("ignore:loss='auto' left out 3 of 100 rows")  # of a table with three errors
def test_the_blocks_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")  # README and index read a table of them
    monkeypatch.setenv("MPLBACKEND", "agg")
    namespace = {"__name__": "__main__"} | GIVEN.get(page.name, dict)()
    for block in blocks(page):
        if not block.is_run:
            continue
        if block.language == "python":
            # Lines before it, so that a traceback has the number of the page's line.
            exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)
        elif page in GUIDE:
            for words in commands(block):
                result = CliRunner().invoke(app, words)
                assert result.exit_code == 0, (words, result.output)


@pytest.mark.parametrize("page", GUIDE, ids=name)
def test_the_command_lines_of_the_guide_have_commands_and_options_that_exist(page):
    group = typer.main.get_command(app)
    for block in blocks(page):
        for words in commands(block) if block.language == "sh" else []:
            assert words[0] in group.commands
            group.commands[words[0]].make_context(words[0], words[1:])  # raises what the command line would


def test_most_blocks_of_the_guide_run():
    python = [block for page in GUIDE for block in blocks(page) if block.language == "python"]
    assert sum(block.is_run for block in python) >= 0.9 * len(python) > 10


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_an_example_runs_and_says_what_it_found(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr(sys, "argv", [str(script), *ARGUMENTS.get(script.name, [])])
    monkeypatch.setattr(pyplot, "show", partial(pyplot.close, "all"))  # agg warns that it shows nothing
    # The figures of a card take a minute and a half, whatever the training: 4 equations in place of 128.
    monkeypatch.setattr(pretraining, "pretrain", partial(pretraining.pretrain, n_validation=4))
    runpy.run_path(str(script), run_name="__main__")  # an exit with an error would raise
    printed = capsys.readouterr().out
    assert printed.strip()
    assert re.search(PRINTED.get(script.name, ""), printed)


def test_the_notebook_has_the_code_of_its_example_and_what_it_printed():
    notebook = json.loads((ROOT / "examples" / "planets.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    script = (ROOT / "examples" / "planets.py").read_text(encoding="utf-8").splitlines()
    of_notebook = [line for cell in cells for line in "".join(cell["source"]).splitlines()]
    assert [line for line in of_notebook if line not in script] == ['table = pd.read_csv("data/planets.csv")']
    printed = "".join("".join(out.get("text", "")) for cell in cells for out in cell["outputs"])
    assert re.search(PRINTED["planets.py"], printed)


def test_the_gallery_runs_every_example_but_the_training(loaded):
    pattern = loaded("conf").sphinx_gallery_conf["filename_pattern"]
    assert [script.name for script in SCRIPTS if not re.search(pattern, f"/examples/{script.name}")] == [
        "pretrain_your_domain.py"
    ]


@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_an_example_begins_with_the_title_of_its_page(script):
    first, second, *_ = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))).splitlines()
    assert second == "=" * len(first)


@pytest.mark.parametrize(
    ("link", "on_the_site"),
    [
        ("[x](../../examples/pipeline.py)", "[x](/gallery/pipeline.rst)"),
        ("[x](../../examples)", "[x](/gallery/index.rst)"),
        ("[x](../../pretrained)", "x (`pretrained`)"),
        ("[x](../models.md#a)", "[x](../models.md#a)"),
    ],
)
def test_a_link_leads_to_a_page_of_the_site_or_is_a_path(loaded, link, on_the_site):
    assert loaded("conf").linked_on_the_site(link, DOCS / "guide" / "page.md") == on_the_site


def test_the_page_on_installing_has_the_versions_of_pyproject(loaded):
    lines = (DOCS / "guide" / "installing.md").read_text(encoding="utf-8").splitlines()
    versions = loaded("check").versions()
    assert len(versions) >= 10
    assert [row for row in versions if row not in lines] == []


def test_the_readme_has_no_links_to_files_on_a_package_index(loaded):
    assert re.findall(r"\]\((?!https://)[^)]+\)", loaded("check").readme_on_an_index()) == []


def test_every_option_that_the_page_on_pysr_names_on_our_side_exists():
    page = (DOCS / "guide" / "coming_from_pysr.md").read_text(encoding="utf-8")
    ours = [row.split("|")[2] for row in page.splitlines() if row.startswith("|") and row.count("|") == 3]
    options = {word for cell in ours for word in re.findall(r"`(?:predict\(X, |fit\(X, y, )?(\w+)=", cell)}
    methods = [DGSRRegressor, DGSRRegressor.fit, DGSRRegressor.predict]
    assert len(options) >= 10
    assert options <= {name for method in methods for name in inspect.signature(method).parameters}


def test_every_example_is_named_in_the_guide():
    guide = (DOCS / "usage.md").read_text(encoding="utf-8")
    assert [script.name for script in SCRIPTS if f"../examples/{script.name}" not in guide] == []


def test_every_page_of_the_guide_is_in_its_list():
    listed = (DOCS / "usage.md").read_text(encoding="utf-8")
    assert [page.name for page in DOCS.glob("guide/*.md") if f"guide/{page.name}" not in listed] == []


def test_every_public_name_is_in_the_reference():
    reference = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("api/*.rst"))
    entries = set(re.findall(r"^\.\. (?:auto|py:)\w+:: (?:[\w.]+\.)?(\w+)$", reference, re.MULTILINE))
    for module in ("dgsr", "dgsr.expressions", "dgsr.pretraining"):
        public = set(importlib.import_module(module).__all__) - {"__version__"}
        assert public <= entries, module


def test_the_pictures_are_what_the_program_draws(loaded):
    assert loaded("pictures").outdated() == []


def test_the_pages_that_a_search_of_the_site_lists_last_exist():
    names = re.search(r"RECORDS = /\^\((.*)\)\$/", (DOCS / "search_scorer.js").read_text())[1].split("|")
    assert {"decisions", "tables"} < set(names)
    for name in names:
        assert list(DOCS.glob(name.replace(r"\/.*", "/*") + ".md")), name


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("a.html", '<script src="https://cdn.example/x.js"></script>'),
        ("a.html", '<link rel="stylesheet" href="//fonts.example/css">'),
        ("a.html", "<style>@import 'https://fonts.example/css';</style>"),
        ("a.html", '<img alt="" src="http://example/x.png">'),
        ("a.css", "@font-face { src: url(https://fonts.example/a.woff2) }"),
    ],
)
def test_what_a_page_would_load_from_elsewhere_is_found(loaded, file, content):
    assert len(loaded("check_site").outside(file, content)) == 1


def test_links_and_files_of_the_site_are_not_from_elsewhere(loaded):
    content = '<a href="https://example.org">x</a><script src="_static/x.js"></script><img src="way.svg">'
    assert loaded("check_site").outside("a.html", content) == []
