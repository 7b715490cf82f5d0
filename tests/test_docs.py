"""The documents are true where a program can tell.

Links and paths lead somewhere, examples run, generated tables and figures are current, figures
agree with the samples they come from, and every rule that a comment cites is on its page.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README_LINES_MAX = 130
RULES = range(1, 62)
DOCUMENTS = sorted(
    path
    for pattern in (
        "*.md",
        *(f"{f}/**/*.md" for f in ("csrc", "docs", "examples", "python", "tests", "bench")),
    )
    for path in ROOT.glob(pattern)
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(?:#([^)]*))?\)")
_CODE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PATH = re.compile(r"`((?:csrc|pyext|python|tests|tools|docs|bench)/[\w./-]*)`")
_SHELL = "The same from a shell:\n\n"


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as renderers of Markdown make them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_within_the_tree_lead_somewhere(path: Path) -> None:
    missing = []
    for target, anchor in _LINK.findall(path.read_text("utf-8")):
        if "://" in target:
            continue
        page = path.parent / target if target else path
        if not page.exists() or (anchor and anchor not in anchors(page)):
            missing.append(f"{target}#{anchor}")
    assert not missing, missing


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_paths_that_a_document_names_exist(path: Path) -> None:
    named = set(_PATH.findall(path.read_text("utf-8")))
    missing = sorted(target for target in named if not (ROOT / target).exists())
    assert not missing, missing


def python_examples() -> list[tuple[str, str]]:
    return [
        (f"{name(path)}:{n}", code)
        for path in DOCUMENTS
        for n, (language, code) in enumerate(_CODE.findall(path.read_text()), 1)
        if language == "python"
    ]


def without_spark() -> list[tuple[str, str]]:
    """The examples that start Spark run in spark/test_java.py."""
    return [(where, code) for where, code in python_examples() if "local_session" not in code]


@pytest.mark.parametrize(("where", "code"), without_spark(), ids=lambda v: v.split("\n")[0])
def test_python_examples_run(where: str, code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PENSTOCK_HOME": str(tmp_path)},
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    for said in re.findall(r"print\(.*# (.+)$", code, re.MULTILINE):
        assert said in done.stdout.splitlines(), where


def test_the_readme_has_an_example_to_run() -> None:
    assert any(where.startswith("README.md") for where, _ in python_examples())


def test_the_readmes_shell_example_runs(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    block = text.split(_SHELL)[1].split("\n\n")[0]
    commands = [line.strip() for line in block.splitlines()]
    assert len(commands) == 4 and all(c.startswith("penstock ") for c in commands)
    (tmp_path / "server.log").write_bytes(b"an INFO\nan ERROR\n")
    script = "set -e\n" + "\n".join(commands).replace("penstock ", '"$PYTHON" -m penstock.cli ')
    environment = {**os.environ, "PENSTOCK_HOME": str(tmp_path), "PYTHON": sys.executable}
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path,
        env=environment, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("an ERROR\nan INFO\n")


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=name)
def test_an_example_prints_what_its_docstring_says(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        capture_output=True, text=True, check=False, cwd=tmp_path, timeout=100,
        env={**os.environ, "PENSTOCK_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    [block] = re.findall(r"prints\n\n((?:    .+\n)+)\"\"\"", path.read_text("utf-8"))
    promised = [line.strip() for line in block.splitlines()]
    assert promised and done.stdout.splitlines() == promised
    assert "Warning" not in done.stderr, done.stderr


def test_make_help_names_every_target_of_the_makefile() -> None:
    text = (ROOT / "Makefile").read_text()
    phony = set(re.findall(r"[\w-]+", " ".join(re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE))))
    phony.discard("LAYERS")
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = {line.split()[0] for line in done.stdout.splitlines()}
    assert phony <= listed, phony - listed


def test_the_readme_fits_on_its_page() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES_MAX


@pytest.mark.parametrize("tool", ["figures.py", "reference.py"])
def test_generated_blocks_are_current(tool: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / tool)],
        capture_output=True, text=True, check=False, cwd=ROOT, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def shown_results() -> list[tuple[str, dict[str, object]]]:
    """Every figure of the result files that docs/figures.md names."""
    names = re.findall(
        r"\((\.\./bench/results/[^)]+\.json)\)", (ROOT / "docs/figures.md").read_text()
    )
    assert names
    return [
        (path, figure)
        for path in sorted(set(names))
        for figure in json.loads((ROOT / "docs" / path).read_text())["figures"]
    ]


def test_medians_and_ratios_of_shown_results_follow_from_their_samples() -> None:
    for path, figure in shown_results():
        medians = {side: statistics.median(values) for side, values in figure["samples"].items()}
        assert medians == pytest.approx(figure["medians"]), (path, figure["workload"])
        for aim in figure["aims"]:
            if aim["kind"] not in ("rate", "time"):
                continue
            ratio = medians[aim["side"]] / medians[aim["limit"]]
            expected = 1 / ratio if aim["kind"] == "rate" else ratio
            assert aim["value"] == pytest.approx(expected), (path, figure["workload"])


def cells(text: str) -> list[list[str]]:
    """The rows of all tables of a text."""
    lines = (line for line in text.splitlines() if line.startswith("| "))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("document", ["README.md", "ROADMAP.md"])
def test_figures_of_a_document_stand_on_the_page_of_figures(document: str) -> None:
    blocks = re.findall(
        r"<!-- figures: \w+ -->(.*?)<!-- figures end -->", (ROOT / document).read_text(), re.DOTALL
    )
    rows = [row for block in blocks for row in cells(block)][1:]
    shown = {tuple(row[1:4]) for row in cells((ROOT / "docs/figures.md").read_text())}
    assert len(rows) >= 5
    assert [row for row in rows if tuple(row[1:4]) not in shown] == []


def test_every_rule_that_the_core_cites_is_on_the_page_of_rules() -> None:
    page = (ROOT / "docs/crash-safety.md").read_text()
    written = [int(number) for number in re.findall(r"^\*\*(\d+)\. ", page, re.MULTILINE)]
    assert written == list(RULES)
    cited = set()
    for path in (ROOT / "csrc").rglob("*.[ch]"):
        for numbers in re.findall(r"\brules? ((?:\d+|[-, ]|and|to)+)", path.read_text("utf-8")):
            cited |= {int(number) for number in re.findall(r"\d+", numbers)}
    assert len(cited) > 30 and cited <= set(RULES), sorted(cited - set(RULES))
