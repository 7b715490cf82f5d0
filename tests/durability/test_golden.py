"""Files written by format 1.0 are read the same by every later version."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from penstock.journal import QueueManagerFiles

GOLDEN = Path(__file__).resolve().parent / "golden"


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_make", GOLDEN / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stored() -> dict[str, bytes]:
    root = GOLDEN / "v1"
    paths = [path for path in root.rglob("*") if path.is_file() and path.name != "expected.json"]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def test_golden_files_are_read_as_recorded(make: ModuleType) -> None:
    assert make.expected(stored()) == json.loads((GOLDEN / "v1" / "expected.json").read_text())


def test_golden_files_are_read_from_a_directory(make: ModuleType) -> None:
    reader = QueueManagerFiles(GOLDEN / "v1")
    expected = json.loads((GOLDEN / "v1" / "expected.json").read_text())
    assert [m.identity for m in reader.replay().messages()] == [
        row[0] for row in expected["messages"]
    ]
    assert [[f.severity, f.rule, f.file, f.offset] for f in reader.verify()] == expected["findings"]


def test_golden_files_are_what_their_script_makes(make: ModuleType) -> None:
    assert make.golden() == stored()
