"""Lines in, lines out, and the rule that gives a line its priority."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.cli import lines as lines_module
from penstock.cli.lines import LineTooLong, PriorityMap, read_lines, write_all


@contextmanager
def pipe_with(data: bytes) -> Iterator[int]:
    """The reading end of a pipe into which another thread writes the data and closes."""
    reader, writer = os.pipe()

    def feed() -> None:
        write_all(writer, data)
        os.close(writer)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield reader
    finally:
        thread.join()
        os.close(reader)


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=300), size=st.integers(1, 40))
def test_lines_and_newlines_give_the_input_back_for_every_size_of_reads(
    data: bytes, size: int
) -> None:
    before = lines_module.READ_SIZE
    lines_module.READ_SIZE = size
    try:
        with pipe_with(data) as fd:
            found = list(read_lines(fd))
    finally:
        lines_module.READ_SIZE = before
    expected = data.split(b"\n")
    if not expected[-1]:
        expected.pop()
    assert found == expected


def test_a_line_longer_than_a_read_is_one_line() -> None:
    line = os.urandom(5 << 20).replace(b"\n", b"\0")
    with pipe_with(b"a\n" + line + b"\nz") as fd:
        assert list(read_lines(fd)) == [b"a", line, b"z"]


def test_a_line_above_the_limit_stops_the_reading_after_the_lines_before_it(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"ok\n" + b"x" * 11 + b"\nnever\n")
    fd = os.open(path, os.O_RDONLY)
    found = []
    with pytest.raises(LineTooLong):
        for line in read_lines(fd, limit=10):
            found.append(line)
    os.close(fd)
    assert found == [b"ok"]


def test_idle_is_called_before_a_read_that_would_block_and_not_before_one_that_has_data() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"one\ntwo\n")
    found: list[bytes] = []
    calls: list[int] = []

    def idle() -> None:
        calls.append(len(found))
        if writer not in closed:
            os.write(writer, b"three\n")
            os.close(writer)
            closed.append(writer)

    closed: list[int] = []
    for line in read_lines(reader, idle=idle):
        found.append(line)
    os.close(reader)
    assert found == [b"one", b"two", b"three"]
    assert calls == [2]


def test_the_first_word_of_the_map_that_occurs_in_the_line_decides() -> None:
    rules = PriorityMap.parse("ERROR=9,WARN=6,INFO=3")
    assert rules.priority_of(b"INFO then ERROR") == 9
    assert rules.priority_of(b"WARNING: INFO") == 6
    assert rules.priority_of(b"xINFOx") == 3
    assert rules.priority_of(b"info") is None
    assert rules.priority_of(b"nothing", 4) == 4


def test_a_word_may_hold_an_equals_sign_and_a_priority_any_number_of_31_bits() -> None:
    rules = PriorityMap.parse("a=b=7,c=2147483647")
    assert rules.rules == ((b"a=b", 7), (b"c", 2147483647))
    assert str(rules) == "a=b=7,c=2147483647"


@pytest.mark.parametrize("text", ["", "ERROR", "ERROR=", "=3", "A=1,,B=2", "A=-1", "A=2147483648"])
def test_a_bad_map_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not WORD=PRIORITY|does not fit"):
        PriorityMap.parse(text)
