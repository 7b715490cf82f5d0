"""Builds the documents and the API pages into a site: build/site/html.

The documents lie where people look for them in the repository (README.md, csrc/FORMAT.md, docs/);
Sphinx wants one folder. So this program copies all of them, with the files that they link to, into
build/site/source at the same relative paths, so that links stay valid, adds the index, and runs
Sphinx with warnings as errors: a broken link, or a page that no index names, fails the build.

    python tools/make_site.py         # needs tools/requirements-docs.txt and an installed penstock
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "site"
SOURCE = BUILD / "source"

# Caption -> pages, in the order of the site's index. Each document of the repository is in one.
PAGES = {
    "Start": ("README",),
    "Use": (
        "docs/python", "docs/asyncio", "docs/retry-and-delay", "docs/schedules", "docs/testing",
        "docs/mq", "docs/spark", "docs/flight", "docs/scale", "docs/operations",
        "docs/mqi-reference", "docs/attributes", "examples/README",
        "docs/api/index",
    ),
    "Proof": ("docs/crash-safety", "docs/figures", "bench/README", "bench/results/README"),
    "Inside": ("ARCHITECTURE", "csrc/README", "csrc/FORMAT", "csrc/LOCKING"),
    "Work on it": (
        "CONTRIBUTING", "tests/README", "tests/seeds/README", "docs/release", "SECURITY", "ROADMAP",
        "CHANGELOG",
    ),
}  # fmt: skip
_PLACES = ("*.md", "docs/**/*.md", "docs/**/*.rst", "csrc/**/*.md", "pyext/**/*.md",
           "python/**/*.md", "examples/*.md", "tests/**/*.md", "bench/**/*.md")  # fmt: skip
_LINK = re.compile(r"\]\(([^)#\s]+)")

# Annotations have short names of classes, which several modules have: Queue, Message, Unit.
CONFIGURATION = """
project = "penstock"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "penstock {version}"
myst_heading_anchors = 4
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]
"""


def documents() -> list[Path]:
    """Every document of the repository, relative to its root."""
    found = (path for place in _PLACES for path in ROOT.glob(place))
    return sorted({path.relative_to(ROOT) for path in found})


def linked_files(document: Path) -> set[Path]:
    """Files of the repository that a document links to and that are no documents themselves."""
    if document.suffix != ".md":
        return set()
    found = set()
    for target in _LINK.findall((ROOT / document).read_text("utf-8")):
        path = (ROOT / document.parent / target).resolve()
        if "://" not in target and path.is_file() and path.suffix not in (".md", ".rst"):
            found.add(path.relative_to(ROOT))
    return found


def index(pages: set[str]) -> str:
    """The root page: one table of contents for each caption; folders of code come last."""
    named = {page for group in PAGES.values() for page in group}
    groups = dict(PAGES)
    groups["Folders"] = tuple(sorted(page for page in pages - named if page.endswith("/README")))
    parts = ["penstock", "========", ""]
    for caption, group in groups.items():
        present = [page for page in group if page in pages]
        parts += ["", ".. toctree::", "   :maxdepth: 1", f"   :caption: {caption}", ""]
        parts += [f"   {page}" for page in present]
    return "\n".join(parts) + "\n"


def version() -> str:
    """The version of the package, without importing it."""
    text = (ROOT / "python/penstock/_version.py").read_text("utf-8")
    return re.findall(r'__version__ = "([^"]+)"', text)[0]


def copy_sources() -> None:
    """Fills build/site/source."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    known = documents()
    for path in {*known, *(file for document in known for file in linked_files(document))}:
        (SOURCE / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, SOURCE / path)
    pages = {str(path.with_suffix("")) for path in known}
    (SOURCE / "index.rst").write_text(index(pages), "utf-8")
    (SOURCE / "conf.py").write_text(CONFIGURATION.format(version=version()), "utf-8")


def main() -> int:
    """Builds the site; the exit status is Sphinx's."""
    copy_sources()
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run([*command, str(SOURCE), str(BUILD / "html")], check=False)
    if done.returncode == 0:
        print(f"{BUILD / 'html' / 'index.html'}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
