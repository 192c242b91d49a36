"""Check a built site: `python docs/check_site.py build/site`. It must work where there is no network, so no
page may load a script, a style, a font or a picture from elsewhere."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

# What a browser fetches by itself; an ordinary link, <a href>, is not fetched.
_FETCHED = dict.fromkeys(("script", "img", "iframe", "source", "embed", "video"), "src") | {"object": "data"}
_FETCHED_LINKS = {"stylesheet", "preload", "prefetch", "modulepreload", "preconnect", "icon", "shortcut"}
_ELSEWHERE = re.compile(r"\s*(?:https?:)?//", re.IGNORECASE)
_IN_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?\s*((?:https?:)?//[^\"')\s]+)", re.IGNORECASE)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.is_style = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        address = values.get(_FETCHED.get(tag, ""), "")
        if tag == "link" and _FETCHED_LINKS & set(values.get("rel", "").lower().split()):
            address = values.get("href", "")
        if _ELSEWHERE.match(address):
            self.outside.append(address)
        self.outside += _IN_STYLE.findall(values.get("style", ""))
        self.is_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self.is_style = False

    def handle_data(self, data: str) -> None:
        if self.is_style:
            self.outside += _IN_STYLE.findall(data)


def outside(name: str, content: str) -> list[str]:
    """Return the addresses elsewhere that a browser would fetch for a file of the site.

    Parameters
    ----------
    name : str
        The name of the file; a page ends in ``.html`` or ``.svg``, a style in ``.css``; others load nothing.
    content : str
    """
    if name.endswith(".css"):
        return _IN_STYLE.findall(content)
    if not name.endswith((".html", ".svg")):
        return []
    page = _Page()
    page.feed(content)
    return page.outside


def main() -> None:
    """Print what the site would fetch from elsewhere and exit with 1 if there is anything."""
    site = Path(sys.argv[1])
    files = sorted(path for path in site.rglob("*") if path.suffix in (".html", ".svg", ".css"))
    found = [
        f"{path.relative_to(site)}: loads {address}"
        for path in files
        for address in outside(path.name, path.read_text(encoding="utf-8"))
    ]
    if not files:
        found = [f"{site} has no pages"]
    print("\n".join(found) or f"{len(files)} files load nothing from elsewhere")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
