"""Show where the pages print other outputs than the code now gives: `python docs/outputs.py [PAGE ...]`.

The blocks of each page run one after the other, as in the tests. The comments of lines that print, and the
lines of the block of text after them, are looked for in what they print; numbers of seconds and of equations
a second are not compared. Where a search goes depends on a processor's rounding, so this is no test.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

from typer.testing import CliRunner

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
import test_examples as pages  # noqa: E402  (the tests know the blocks of a page)
from dgsr.cli import app  # noqa: E402

TEXT = re.DOTALL | re.MULTILINE
SECONDS = re.compile(r"[\d,.]+ (s of search|a second)")


def shown_after(content: str, end: int) -> list[str]:
    """Return the comments of a block that ends at `end`, and the lines of the block of text after it."""
    code = content[content.rindex("```", 0, end - 3) : end]
    shown = re.findall(r"^print\(.*\) +# (.*)$", code, re.MULTILINE)
    text = re.match(r"\n*(?:(?!```)[^\n]+\n)*\n*```(?:text)?\n(.*?)^```$", content[end:], TEXT)
    return shown + (text[1].splitlines() if text else [])


def printed(block: pages.Block, page: Path, namespace: dict) -> str:
    """Run a block and return what it prints."""
    if block.language == "python":
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)
        return out.getvalue()
    commands = pages.commands(block) if page in pages.GUIDE else []
    return "".join(CliRunner().invoke(app, words).output for words in commands)


def clean(line: str) -> str:
    """Return a line without what differs from run to run."""
    return SECONDS.sub("", line).strip()


def main() -> None:
    os.environ["MPLBACKEND"] = "agg"
    names = sys.argv[1:]
    for page in pages.PAGES:
        if names and page.name not in names:
            continue
        content = page.read_text(encoding="utf-8")
        namespace = {"__name__": "__main__"} | pages.GIVEN.get(page.name, dict)()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            Path("examples").symlink_to(ROOT / "examples")
            for block in pages.blocks(page):
                if not block.is_run:
                    continue
                lines = printed(block, page, namespace).splitlines()
                end = content.index(block.code) + len(block.code) + 3
                shown, given = [*map(clean, shown_after(content, end))], [*map(clean, lines)]
                missing = [line for line in shown if line and line not in given]
                if missing and lines:
                    print(f"{page.relative_to(ROOT)}:{block.line}")
                    print(*(f"    page: {line}" for line in missing), sep="\n")
                    print(*(f"    code: {line}" for line in lines), sep="\n", flush=True)


if __name__ == "__main__":
    main()
