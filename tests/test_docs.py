"""The documents are true where a program can tell: links lead somewhere, examples run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(
    path
    for folder in (".", "csrc", "tests", "bench", "bench/results")
    for path in (ROOT / folder).glob("*.md")
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
_CODE = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_within_the_tree_lead_somewhere(path: Path) -> None:
    targets = [t for t in _LINK.findall(path.read_text()) if "://" not in t]
    missing = [t for t in targets if not (path.parent / t).exists()]
    assert not missing, missing


def python_examples() -> list[tuple[str, str]]:
    return [
        (f"{name(path)}:{n}", code)
        for path in DOCUMENTS
        for n, (language, code) in enumerate(_CODE.findall(path.read_text()), 1)
        if language == "python"
    ]


def without_spark() -> list[tuple[str, str]]:
    """Those that start Spark run in spark/test_java.py."""
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
    block = text.split("The same from a shell:\n\n")[1].split("\n\n")[0]
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


def test_make_help_names_every_target_of_the_makefile() -> None:
    text = (ROOT / "Makefile").read_text()
    phony = set(re.findall(r"[\w-]+", " ".join(re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE))))
    phony.discard("LAYERS")
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = {line.split()[0] for line in done.stdout.splitlines()}
    assert phony <= listed, phony - listed
