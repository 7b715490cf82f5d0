"""A definition that was changed in the shared region is refused, and the files keep the right one.

Claims of csrc/catalog/attr_cells.h, on the installed package.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.constants import ReasonCode

DESCRIPTION = "the description that nobody else has"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A directory with a queue manager that has one queue."""
    with penstock.connect("QD", tmp_path, create=True) as qm:
        qm.define("qlocal", "Q", descr=DESCRIPTION)
    yield tmp_path


def change_in_region(old: bytes, new: bytes) -> int:
    """Replaces these bytes wherever this process's region has them. Returns how often."""
    changed = 0
    for name in set(re.findall(r"/\S*/penstock-\S+", Path("/proc/self/maps").read_text())):
        region = os.open(name, os.O_RDWR)
        at = 0
        while True:
            try:
                start = os.lseek(region, at, os.SEEK_DATA)
            except OSError:
                break
            at = os.lseek(region, start, os.SEEK_HOLE)
            for found in re.finditer(re.escape(old), os.pread(region, at - start, start)):
                os.pwrite(region, new, start + found.start())
                changed += 1
        os.close(region)
    return changed


@pytest.mark.parametrize("part", ["description", "selector", "length"])
def test_a_damaged_definition_is_neither_shown_nor_kept(home: Path, part: str) -> None:
    text = DESCRIPTION.encode()
    head = (2013).to_bytes(4, "little") + (2).to_bytes(2, "little")
    length = len(text).to_bytes(2, "little")
    old, new = {
        "description": (text, b"T" + text[1:]),
        "selector": (head + length + text, b"\xff" * 4 + head[4:] + length + text),
        "length": (head + length + text, head + b"\xff\xff" + text),
    }[part]
    qm = penstock.connect("QD", home)
    assert qm.display("queue", "Q")[0]["descr"] == DESCRIPTION
    assert change_in_region(old, new) > 0
    with pytest.raises(penstock.MQError, match="a definition, its sum") as caught:
        qm.display("queue", "Q")
    assert caught.value.reason == ReasonCode.Q_MGR_NOT_AVAILABLE
    with pytest.raises(penstock.MQError):
        qm.checkpoint()
    qm.close()
    with penstock.connect("QD", home) as after:
        assert after.display("queue", "Q")[0]["descr"] == DESCRIPTION
