"""Files written by format 2.0 are read the same by every later version."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType

import pytest

import penstock
from penstock.journal import QueueManagerFiles

GOLDEN = Path(__file__).resolve().parent / "golden"


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_make", GOLDEN / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FOLDERS = ("v2", "v2-prepared", "v2-moved", "v2-carried", "v2-delayed")


def stored(folder: str) -> dict[str, bytes]:
    root = GOLDEN / folder
    paths = [path for path in root.rglob("*") if path.is_file() and path.name != "expected.json"]
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("folder", FOLDERS)
def test_golden_files_are_read_as_recorded(make: ModuleType, folder: str) -> None:
    recorded = json.loads((GOLDEN / folder / "expected.json").read_text())
    assert make.expected(stored(folder)) == {"prepared": [], **recorded}


@pytest.mark.parametrize("folder", FOLDERS)
def test_golden_files_are_read_from_a_directory(make: ModuleType, folder: str) -> None:
    reader = QueueManagerFiles(GOLDEN / folder)
    expected = json.loads((GOLDEN / folder / "expected.json").read_text())
    assert [m.identity for m in reader.replay().messages()] == [
        row[0] for row in expected["messages"]
    ]
    assert [[f.severity, f.rule, f.file, f.offset] for f in reader.verify()] == expected["findings"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_golden_files_are_what_their_script_makes(make: ModuleType, folder: str) -> None:
    assert make.HISTORIES[folder]() == stored(folder)


def test_the_core_delays_what_golden_files_say(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "v2-delayed", tmp_path / "GOLD")
    (tmp_path / "GOLD" / "expected.json").unlink()
    recorded = json.loads((GOLDEN / "v2-delayed" / "expected.json").read_text())
    with penstock.connect("GOLD", tmp_path) as qm, qm.open("ORDERS") as queue:
        found = list(queue.browse(delayed=True))
        assert [m.due.timestamp() * 1e6 for m in found if m.due] == [d for _, d in recorded["due"]]
        assert [[m.priority, m.backout_count, m.data[:20].hex()] for m in found] == [
            [row[1], row[3], row[5]] for row in recorded["messages"]
        ]
        delayed = {identity for identity, _ in recorded["due"]}
        assert len(list(queue.browse())) == len(found) - len(delayed)
        assert queue.status().delayed == len(delayed)
