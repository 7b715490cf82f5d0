"""Two processes that begin to unload to the same new file at once: one of them is refused, whatever
the moment at which the other one comes, and the file of the other is whole.

The moments are chosen by hand: the second unload runs to its end before a step of the first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from in_thread import in_thread
from penstock import Queue, QueueManager
from penstock.message_files import MessageFileError, file_lock, parquet_files
from penstock.message_files.json_lines import JsonLinesWriter
from penstock.message_files.parquet_files import ParquetWriter

HEADER = {"penstock": "messages", "version": 1, "id": "first"}
OTHER = {**HEADER, "id": "second"}


@pytest.fixture
def queue(qm: QueueManager) -> Iterator[Queue]:
    with qm.queue("RACES") as opened:
        yield opened


def before(patch: pytest.MonkeyPatch, where: Any, name: str, step: Any) -> None:
    """Runs the step once, before the first call of the function."""
    real = getattr(where, name)

    def replaced(*arguments: Any, **more: Any) -> Any:
        patch.setattr(where, name, real)
        step()
        return real(*arguments, **more)

    patch.setattr(where, name, replaced)


@pytest.mark.parametrize("moment", ["open", "stat", "ftruncate"])
def test_an_unload_that_looked_before_another_one_began_does_not_take_its_file_away(
    qm: QueueManager,
    queue: Queue,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    queue.put_batch([b"1", b"2", b"3"], persistent=True)
    path = tmp_path / "f"
    done: list[Any] = []

    def other() -> None:
        result = in_thread(lambda: qm.unload(path, "RACES", remove=True))
        done.append(str(result) if isinstance(result, MessageFileError) else result)

    before(monkeypatch, file_lock.os, moment, other)
    try:
        done.append(qm.unload(path, "RACES", remove=True))
    except FileExistsError:
        done.append("exists")
    # the one that came first to the lock has all messages; the other one nothing
    assert done in ([3, "exists"], [f"{path}: another process works on it", 3]), done
    assert path.read_bytes().count(b'"queue":"RACES"') == 3 and queue.depth == 0
    assert [entry.name for entry in tmp_path.glob("f*")] == ["f"]


def test_a_file_is_locked_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"

    def other() -> None:
        with pytest.raises(MessageFileError, match="another process works on it"):
            JsonLinesWriter(str(path), OTHER)

    before(monkeypatch, Path, "rename", other)
    JsonLinesWriter(str(path), HEADER).close()
    assert b'"first"' in path.read_bytes()


def test_a_directory_is_locked_before_it_has_its_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f.parquet"

    def other() -> None:
        with pytest.raises(MessageFileError, match="another process works on it"):
            ParquetWriter(str(path), OTHER)

    before(monkeypatch, parquet_files, "_write_named", other)
    ParquetWriter(str(path), HEADER).close()
    assert b'"first"' in (path / "_penstock.json").read_bytes()
    assert os.listdir(path) == ["_penstock.json"]


def test_what_a_killed_unload_left_half_made_is_used_again(tmp_path: Path) -> None:
    path = tmp_path / "f"
    (tmp_path / "f.begun").write_bytes(b"x" * 1000)
    JsonLinesWriter(str(path), HEADER).close()
    assert [entry.name for entry in tmp_path.glob("f*")] == ["f"] and path.read_bytes().startswith(
        b'{"penstock"'
    )
