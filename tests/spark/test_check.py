"""The independent count: what grep sees, and that a difference is found."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from penstock.spark.pipelines.check import WrongCount, compare, count_by_grep
from penstock.spark.pipelines.formats import LEVELS, parse_line
from penstock.spark.pipelines.generate import generate

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
    found = counted([*files, odd])
    assert total == sum(found.values()) == 2500 + 3 + 2 * len(LEVELS) + 2
    compare("the parser", found, total, expected)
    assert {key for key in found if key[0] != "generic"} == set(expected)


def test_a_line_that_is_lost_doubled_or_of_another_level_is_found(tmp_path: Path) -> None:
    files = generate(tmp_path, 100)
    total, expected = count_by_grep(files)
    found = counted(files)
    some = ("spark", "INFO")
    with pytest.raises(WrongCount, match=f"the table has {total - 1} lines, grep counts {total}"):
        compare("the table", found - Counter([some]), total, expected)
    with pytest.raises(WrongCount, match=f"has {total + 1} lines"):
        compare("the table", found + Counter([some]), total, expected)
    with pytest.raises(WrongCount, match=r"lines of spark with level INFO, grep counts \d+"):
        compare("t", found - Counter([some]) + Counter([("spark", "TRACE")]), total, expected)
    with pytest.raises(WrongCount, match="lines of spark with level INFO"):
        compare("t", found - Counter([some]) + Counter([("generic", "INFO")]), total, expected)


def test_files_that_grep_cannot_read_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="grep"):
        count_by_grep([tmp_path / "nowhere"])
