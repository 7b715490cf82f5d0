"""The independent count: what grep sees, and that a difference is found."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from penstock.spark.pipelines.formats import LEVELS, parse_line
from pipeline_proof.check import Checks, WrongCount, count_by_grep
from pipeline_proof.generate import generate

Key = tuple[str, str]


def counted(files: list[Path]) -> Counter[Key]:
    found: Counter[Key] = Counter()
    for file in files:
        for line in file.read_bytes().split(b"\n"):
            if line.strip():
                parts = parse_line(line)
                found[parts.format, parts.level] += 1
    return found


def test_grep_and_the_parser_count_alike(tmp_path: Path) -> None:
    files = generate(tmp_path, 500, seed=11)
    odd = tmp_path / "odd"
    odd.write_bytes(
        b"no format\n \r\n\t\nERROR alone\r\n\xff\xfe\n"
        + b"".join(b"26/03/01 20:10:40 %s a.B: x\r\n" % word.encode() for word in LEVELS)
        + b"".join(
            b"[Sun Mar 01 04:47:44.5 2026] [core:%s] x\n" % word.lower().encode() for word in LEVELS
        )
        + b"Mar  1 06:55:46 h p[1]: crit: x\nMar  1 06:55:46 h p: x: error: y"
    )
    total, expected = count_by_grep([*files, odd, odd])
    assert total == sum(expected.values()) == 2500 + 3 + 2 * len(LEVELS) + 2
    assert expected == counted([*files, odd])
    assert expected["generic", "ERROR"] == 1


PIECES = (
    b"ERROR", b"WARNING", b"xERROR", b"ERROR_", b"[error]", b"level=warn", b'level="crit"', b"INFO",
    b" ", b" ", b".", b":", b"_", b"9", b"[", b"]", b" - ", b"\x00", b"\x0b", b"\x1c", b"\x85",
    b"\xff", b"\xc3\xa9", b"\r", b"2026-03-01 10:00:00,123", b"Mar  1 06:55:46 h p[1]: ",
    b"crit: ", b"26/03/01 20:10:40 WARN a.B: ", b"[Sun Mar 01 04:47:44 2026] ",
)  # fmt: skip


def test_grep_and_the_parser_count_alike_in_lines_of_any_bytes(tmp_path: Path) -> None:
    chance = random.Random(3)
    lines = [b"".join(chance.choices(PIECES, k=chance.randrange(9))) for _ in range(20_000)]
    file = tmp_path / "any"
    file.write_bytes(b"\n".join(lines))
    total, expected = count_by_grep([file])
    assert total == sum(1 for line in lines if line.strip())
    assert expected == counted([file])


def test_what_differs_is_named_and_all_of_it() -> None:
    checks = Checks()
    checks.add("lines", 7, 7)
    checks.add_lines("the table", {("spark", "INFO"): 5}, {("spark", "INFO"): 5})
    checks.evaluate()
    checks.add("alerts", 3, 4)
    checks.add_lines(
        "the table", {("spark", "INFO"): 5, ("a", "X"): 1}, {("spark", "INFO"): 6, ("b", "Y"): 2}
    )
    with pytest.raises(WrongCount) as caught:
        checks.evaluate()
    assert str(caught.value) == (
        "alerts: 3; grep: 4; the table: a, X: 1; grep: 0; the table: b, Y: 0; grep: 2; "
        "the table: spark, INFO: 5; grep: 6"
    )


def test_files_that_grep_cannot_read_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="grep"):
        count_by_grep([tmp_path / "nowhere"])
