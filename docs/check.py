"""Check the pages: every link to a file of the project leads
somewhere, every Python block parses, the pages of the generators and of the tables say what cards and files
say, figures that are marked as from a table are those of its file, the page on installing has the versions of
pyproject.toml, the README can be read on a package index, and the pictures are those that docs/pictures.py
draws."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import benchmark_tables
import marked_figures
import models
import pictures
import readme_table
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[1]


def problems(page: Path, text: str) -> list[str]:
    """Return what is wrong with the `text` of the page at `page`, one line each."""
    found = []
    for token in flat(MarkdownIt("commonmark").parse(text)):
        if token.type == "fence" and token.info == "python":
            try:
                compile(token.content, str(page), "exec")
            except SyntaxError as error:
                found.append(f"{page.relative_to(ROOT)}: a Python block does not parse: {error}")
        link = str(token.attrs.get("href") or token.attrs.get("src") or "").partition("#")[0]
        target = page.parent / link
        if link and "://" not in link and not target.exists():
            found.append(f"{page.relative_to(ROOT)}: {link} does not exist")
    return found


def flat(tokens: list[Token]) -> list[Token]:
    """Return `tokens` and all that are inside them."""
    return [inner for token in tokens for inner in (token, *flat(token.children or []))]


def versions() -> list[str]:
    """Return the rows of docs/guide/installing.md: a library, its lowest version, that of the tests."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = dict(re.findall(r"^(\S+)==(\S+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE))
    lowest = [requirement.split(">=") for requirement in project["dependencies"]]
    return [f"| {name} | {version} | {pinned[name]} |" for name, version in lowest]


def readme_on_an_index() -> str:
    """Return the README as a package index shows it, by the substitutions of pyproject.toml."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    content = (ROOT / "README.md").read_text(encoding="utf-8")
    for change in tool["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        content = re.sub(change["pattern"], change["replacement"], content)
    return content


def main() -> None:
    """Print what is wrong with the pages and exit with 1 if anything is."""
    paths = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
    pages = {path: path.read_text(encoding="utf-8") for path in paths}
    found = [line for page, text in pages.items() for line in problems(page, text)]
    if models.PAGE.read_text(encoding="utf-8") != models.page():
        found.append("docs/models.md is not what the cards say; run python docs/models.py")
    installing = (ROOT / "docs" / "guide" / "installing.md").read_text(encoding="utf-8").splitlines()
    found += [f"docs/guide/installing.md lacks the line {row}" for row in versions() if row not in installing]
    for token in flat(MarkdownIt("commonmark").parse(readme_on_an_index())):
        link = str(token.attrs.get("href") or token.attrs.get("src") or "#")
        if not link.startswith(("https://", "#")):
            found.append(f"README.md: a package index cannot follow the link to {link}")
    made = benchmark_tables.pages()
    found += [
        f"{path.relative_to(ROOT)} is not what the files say; run python docs/benchmark_tables.py"
        for path in {*made, *benchmark_tables.PAGES.glob("*.md")}
        if not path.is_file() or path.read_text(encoding="utf-8") != made.get(path)
    ]
    files = ROOT / benchmark_tables.FOLDER
    readme = readme_table.README.read_text(encoding="utf-8")
    if readme != readme_table.with_table(readme):
        found.append("README.md is not what the files say; run python docs/readme_table.py")
    found += [
        f"{page.relative_to(ROOT)}: {line}"
        for page, text in pages.items()
        for line in marked_figures.wrong_figures(text, files)
    ]
    found += [
        f"docs/pictures/{name}.svg is out of date; run python docs/pictures.py"
        for name in pictures.outdated()
    ]
    print("\n".join(found) or f"{len(pages)} pages are in order")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
