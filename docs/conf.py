"""How Sphinx builds the site: `nox -s docs`, or `sphinx-build docs build/site`. Nothing is fetched."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "docs")]

import matplotlib  # noqa: E402

import dgsr  # noqa: E402  # of this checkout

project = "dgsr"
author = "dgsr developers"
copyright = author
version = release = dgsr.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]

html_theme = "furo"
html_title = f"dgsr {version}"
html_copy_source = False
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(ROOT / "docs" / "search_scorer.js")
html_extra_path = ["llms.txt"]

myst_heading_anchors = 3

# Code has a button that copies it, without prompts; what a program printed has none.
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_selector = ", ".join(
    f"div.highlight-{language} pre" for language in ("python", "Python", "default", "sh", "c")
)

# Nothing of a figure is cut.
matplotlib.rcParams["savefig.bbox"] = "tight"

# The gallery: every example is run, but for the training of minutes, and its page shows what it printed and
# drew. Figures of seconds are left out, so that two builds are alike.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/(?!pretrain_)\w+\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "capture_repr": (),
    "default_thumb_file": str(ROOT / "pretrained" / "koza-d12" / "curves.svg"),
    "image_srcset": ["2x"],
    "inspect_global_variables": False,
    "min_reported_time": 1e9,
    "notebook_extensions": set(),  # a notebook has no command line for the options
    "reset_modules": (),
    "show_signature": False,
    "write_computation_times": False,
}

# Docstrings are numpydoc's; a word in backticks is a name, linked where there is such a thing.
default_role = "py:obj"
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()
python_maximum_signature_line_length = 88
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
        r"dgsr\.(constants|estimator|exact_search|expressions\.(exports|formulas|rewriting|trees)|finders|finishing"
        r"|fitting|generator|kernels|pareto\.judging|pretraining\.conditioning_gap|search\.(?!evolution))(\..*)?",
    ),
]
suppress_warnings = ["myst.header"]  # headings of the third level under a title are meant

# An example is a page of the gallery. Any other folder of the repository, or a page outside docs, has no page
# here: its path is given instead of the link.
_EXAMPLES = {ROOT / "examples": "index.rst"} | {
    path: f"{path.stem}.rst" for path in (ROOT / "examples").glob("*.py")
}
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#]+)\)")


def linked_on_the_site(content: str, page: Path) -> str:
    """Return the Markdown of a page at `page` with its links to files as the site can follow them."""

    def followed(link: re.Match) -> str:
        target = (page.parent / link[2]).resolve()
        if target in _EXAMPLES:
            return f"[{link[1]}](/gallery/{_EXAMPLES[target]})"
        has_page = target.is_relative_to(ROOT / "docs") or (target.is_file() and target.suffix != ".md")
        return link[0] if has_page else f"{link[1]} (`{target.relative_to(ROOT)}`)"

    return _LINK.sub(followed, content)


def _follow_links(app, name: str, source: list[str]) -> None:
    source[0] = linked_on_the_site(source[0], Path(app.env.doc2path(name)))


def _escape_names(app, what, name, obj, options, lines: list[str]) -> None:
    # "of shape (n_features_in_,)" would be read as a link to a target named n_features_in.
    name_alone = re.compile(r"(?<![`\w])(n_features_in)_(?![`\w])")
    lines[:] = [line if line.startswith("..") else name_alone.sub(r"\1\\_", line) for line in lines]


def _begin_gallery_afresh(app, config) -> None:
    # What an example printed with another state of the package, and pages of examples that are gone, must go.
    shutil.rmtree(Path(app.srcdir) / "gallery", ignore_errors=True)
    # A folder of the examples whose README is Markdown is no section of the gallery.
    config.sphinx_gallery_conf["source_suffix"] = {".rst": "restructuredtext"}


def setup(app) -> None:
    app.connect("config-inited", _begin_gallery_afresh, priority=600)
    app.connect("source-read", _follow_links)
    app.connect("autodoc-process-docstring", _escape_names)
