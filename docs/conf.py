"""How Sphinx builds the site: `nox -s docs`, or `sphinx-build docs build/site`. Nothing is fetched."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

import dgsr  # noqa: E402  # of this checkout

project = "dgsr"
author = "dgsr developers"
copyright = author
version = release = dgsr.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

html_theme = "furo"
html_title = f"dgsr {version}"
html_copy_source = False
html_show_sphinx = False
html_static_path: list[str] = []

myst_heading_anchors = 3

# Docstrings are numpydoc's; a word in backticks is a name, linked where there is such a thing.
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_preprocess_types = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"exclude-members": "set_fit_request, set_predict_request, set_score_request"}

# Every link of a page must lead somewhere. Of the names in docstrings those with the package's name before
# them must, unless they are of modules that the reference leaves out; the others may be parameters, or types
# such as "array-like of shape (n,)".
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!dgsr\.).*"),
    (
        "py:.*",
        r"dgsr\.(evolution|expressions\.(formula_prior|syntax)|generator|kernels|pretraining\.conditioning_gap"
        r"|saving)\..*|dgsr\.expressions\.soundness",
    ),
]
suppress_warnings = ["myst.header"]  # headings of the third level under a title are meant

# A folder of the repository, or a page outside docs, has no page here: its path is given instead of the link.
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#]+)\)")


def _name_what_has_no_page(app, name: str, source: list[str]) -> None:
    page = Path(app.env.doc2path(name))

    def named(link: re.Match) -> str:
        target = (page.parent / link[2]).resolve()
        has_page = target.is_relative_to(ROOT / "docs") or (target.is_file() and target.suffix != ".md")
        return link[0] if has_page else f"{link[1]} (`{target.relative_to(ROOT)}`)"

    source[0] = _LINK.sub(named, source[0])


def _escape_names(app, what, name, obj, options, lines: list[str]) -> None:
    # "of shape (n_features_in_,)" would be read as a link to a target named n_features_in.
    name_alone = re.compile(r"(?<![`\w])(n_features_in)_(?![`\w])")
    lines[:] = [line if line.startswith("..") else name_alone.sub(r"\1\\_", line) for line in lines]


def setup(app) -> None:
    app.connect("source-read", _name_what_has_no_page)
    app.connect("autodoc-process-docstring", _escape_names)
