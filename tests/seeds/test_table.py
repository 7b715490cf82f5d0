"""The table sentence -> test of tests/seeds/README.md has every test by sentence, no other rows.

`python tests/seeds/test_table.py --write` writes the table again from the tests' docstrings;
without the option it prints the rows.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
README = HERE / "README.md"
SENTENCES = "## The seeds, sentence by sentence"
DEFERRED = "## Sentences that need a second queue manager"
SEEDS = {"000", "001", "002", "003", "004"}
SENTENCES_LEAST = 128  # rules that the five documents state
_DOCSTRING = re.compile(r"Seed (\d{3}), (\w+)(?:, the other half)?: (.+)\.")


@functools.cache
def collected() -> list[str]:
    """Ids of the tests by sentence, as pytest collects them."""
    listing = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/seeds", "-p",
         "no:cacheprovider"],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    ids = [line for line in listing.stdout.splitlines() if "::test_" in line]
    assert ids, listing.stdout + listing.stderr
    return [name for name in ids if "/test_seed_" in name]


def subjects() -> dict[str, tuple[str, str, str]]:
    """(seed, number, subject) of each test function, from its docstring."""
    found = {}
    for path in sorted(HERE.glob("test_seed_*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                match = _DOCSTRING.fullmatch(ast.get_docstring(node) or "")
                assert match, f"{path.name}: {node.name} does not cite its sentence"
                found[f"tests/seeds/{path.name}::{node.name}"] = match.groups()
    return found  # type: ignore[return-value]


def expected_rows() -> list[str]:
    """The rows of the table, from the tests."""
    known = subjects()
    rows = []
    for test in collected():
        function, _, case = test.partition("[")
        seed, number, subject = known[function]
        case = f" ({case[:-1]})" if case else ""
        rows.append(f"| {seed} | {number} | {subject}{case} | `{test.split('/')[-1]}` |")
    return rows


def section(title: str) -> list[str]:
    """Rows of a table of the page, without its head."""
    text = README.read_text("utf-8")
    assert title in text, f"{README.name} has no section {title!r}"
    body = text.split(title)[1].split("\n## ")[0]
    return [line for line in body.splitlines() if line.startswith("| ")][1:]


def test_the_table_is_what_the_tests_say() -> None:
    rows, expected = section(SENTENCES), expected_rows()
    assert sorted(set(expected) - set(rows)) == [], "tests that the table lacks"
    assert sorted(set(rows) - set(expected)) == [], "rows without a test"
    assert len(rows) == len(set(rows))


def test_all_sentences_of_all_seeds_are_there() -> None:
    known = subjects().values()
    assert {seed for seed, _, _ in known} == SEEDS
    sentences = {(seed, number) for seed, number, _ in known}
    assert len(sentences) >= SENTENCES_LEAST
    print(f"{len(sentences)} sentences, {len(collected())} tests")


def test_deferred_sentences_say_what_is_tested_already() -> None:
    known = {test.split("/")[-1] for test in subjects()}
    rows = section(DEFERRED)
    assert rows
    for row in rows:
        seed, number, *_, tested = [cell.strip() for cell in row.strip("|").split("|")]
        assert seed in SEEDS and number.isalnum(), row
        tests = re.findall(r"`([^`]+)`", tested)
        assert tests and set(tests) <= known, row


def write_table() -> None:
    """Puts the rows of the table of sentences in place; it is the last section of the page."""
    text = README.read_text("utf-8")
    before, after = text.split(SENTENCES)
    head = after.split("|---|---|---|---|\n")[0] + "|---|---|---|---|\n"
    README.write_text(before + SENTENCES + head + "\n".join(expected_rows()) + "\n", "utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write_table()
    else:
        print("\n".join(expected_rows()))
