"""Unload and load: what stands in the files, which messages, what is kept, what is refused."""

from __future__ import annotations

import datetime
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import Queue, QueueManager
from penstock.client import unload
from penstock.client.transfer_ledger import Ledger
from penstock.message_files import MessageFileError
from penstock.message_files.json_lines import JsonLinesWriter

LEDGER = "SYSTEM.TRANSFER.LEDGER"
STORED = slice(64, 180)  # of a descriptor: behind the times, before the BackoutCount


def put_some(queue: Queue) -> None:
    """Messages that differ in all that a put can say."""
    queue.put(b"plain")
    queue.put(b"", persistent=True, priority=9)
    queue.put("grün\n\t\u20ac".encode(), format="MQSTR", priority=12, correl_id=b"\1\0\2")
    queue.put(b"\xff\0 binary", format="MQSTR", ccsid=819, encoding=273, feedback=-7)
    queue.put(b"\x1b[2J", format="MQSTR", expiry=1000, persistent=True)
    queue.put(b"g", group_id=b"G", msg_seq_number=3, msg_flags=8, user_identifier="bob")
    queue.put(b"r", msg_type=1, reply_to_q="ANSWERS", report=64, appl_identity_data="id")
    queue.put(b"l" * 100_000, persistent=True, format="MYFORMAT", put_time_us=1_000_000)
    queue.put(b"t", msg_id=b"M" * 24, reply_to_q="A", reply_to_qmgr="ELSEWHERE")


def stored(queue: Queue) -> list[Any]:
    """Everything of the messages but their numbers and the time of expiry."""
    found = []
    for message in queue.browse():
        state: Any = message.__reduce__()[1]
        data, descriptor, extension, expiry, *_ = state
        ids_and_time, rest = descriptor[:56], descriptor[STORED]
        found.append((data, ids_and_time, rest, descriptor[180:], extension, expiry > 0))
    return found


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def bodies(path: Path) -> list[str]:
    return [record["text"] for record in records(path)[1:-1]]


@pytest.mark.parametrize("parquet", [False, True], ids=["JSON lines", "Parquet"])
@pytest.mark.parametrize("chosen", [{}, {"priority": (0, 99)}], ids=["all", "selected"])
@pytest.mark.parametrize("remove", [False, True], ids=["copied", "removed"])
def test_all_fields_come_back_and_the_order_is_kept(
    qm: QueueManager, queue: Queue, tmp_path: Path, parquet: bool, chosen: Any, remove: bool
) -> None:
    put_some(queue)
    before = stored(queue)
    path = tmp_path / "file"
    assert qm.unload(path, "Q", remove=remove, parquet=parquet, **chosen) == len(before)
    assert queue.depth == (0 if remove else len(before))
    with qm.queue("R") as other:
        assert qm.load(path, queue="R", parquet=parquet) == len(before)
        assert stored(other) == before


def test_a_line_has_what_is_not_initial_and_nothing_that_a_terminal_obeys(
    qm: QueueManager, queue: Queue, tmp_path: Path
) -> None:
    put_some(queue)
    path = tmp_path / "file"
    qm.unload(path, "Q", as_text=True)
    assert path.read_text("utf-8").replace("\n", "").isprintable()
    header, *lines, end = records(path)
    assert header["penstock"] == "messages" and header["version"] == 1
    assert header["queues"] == ["Q"] and header["queue_manager"] == "QM1"
    assert end == {"end": {"messages": len(lines)}}
    by_body = {line.get("text", line.get("base64")): line for line in lines}
    plain = by_body["plain"]
    assert "ccsid" not in plain and "group_id" not in plain and "expiry" not in plain
    assert plain["priority"] == 0 and plain["persistent"] is False and plain["queue"] == "Q"
    assert by_body["grün\n\t\u20ac"]["priority"] == 12
    assert by_body["G1sySg=="]["expiry"] > 900  # the ESC is no text
    assert by_body["/wAgYmluYXJ5"]["feedback"] == -7


def test_bodies_are_text_where_they_are_mqstr_and_printable(
    qm: QueueManager, queue: Queue, tmp_path: Path
) -> None:
    queue.put(b"a", format="MQSTR")
    queue.put(b"b")
    qm.unload(tmp_path / "f", "Q")
    assert ["text" in line for line in records(tmp_path / "f")[1:-1]] == [True, False]


def test_characters_that_are_no_utf_8_are_kept(
    qm: QueueManager, queue: Queue, tmp_path: Path
) -> None:
    queue.put(b"x", format=b"\xc1\xc2\0\x7f", user_identifier=b"\x9b\xe2\x80\xae")
    before = stored(queue)
    qm.unload(tmp_path / "f", "Q", remove=True)
    qm.load(tmp_path / "f")
    assert stored(queue) == before


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"priority": 3}, ["3"]),
        ({"priority": (2, 4)}, ["4", "3", "2"]),
        ({"msg_id": b"id5"}, ["5"]),
        ({"correl_id": b"odd", "count": 2}, ["9", "7"]),
        ({"format": "MQSTR", "priority": (0, 1)}, ["1", "0"]),
        ({"format": "OTHER"}, []),
        ({"count": 4}, ["9", "8", "7", "6"]),
        (
            {
                "put_from": datetime.datetime.fromtimestamp(2, datetime.timezone.utc),
                "put_before": datetime.datetime.fromtimestamp(4, datetime.timezone.utc),
            },
            ["3", "2"],
        ),
    ],
    ids=lambda value: ",".join(value),
)
def test_conditions_choose_messages_of_an_unload_and_of_a_load(
    qm: QueueManager, queue: Queue, tmp_path: Path, chosen: Any, expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(unload, "UNIT_MESSAGES", 3)
    for number in range(10):
        correl_id = b"odd" if number % 2 else b"even"
        queue.put(
            b"%d" % number, priority=number, msg_id=b"id%d" % number, correl_id=correl_id,
            format="MQSTR", put_time_us=number * 1_000_000,
        )  # fmt: skip
    assert qm.unload(tmp_path / "a", "Q", **chosen) == len(expected)
    assert bodies(tmp_path / "a") == expected
    assert queue.depth == 10
    assert qm.unload(tmp_path / "b", "Q", remove=True, **chosen) == len(expected)
    assert bodies(tmp_path / "b") == expected
    assert queue.depth == 10 - len(expected)
    qm.load(tmp_path / "b")
    qm.unload(tmp_path / "all", "Q", remove=True)
    assert qm.load(tmp_path / "all", **chosen) == len(expected)
    assert [message.data.decode() for message in queue.browse()] == expected


def test_several_queues_keep_their_messages_apart(
    qm: QueueManager, queue: Queue, tmp_path: Path
) -> None:
    with qm.queue("B") as other:
        for number in range(4):
            queue.put(b"q%d" % number)
            other.put(b"b%d" % number, priority=number)
        before = stored(queue), stored(other)
        assert qm.unload(tmp_path / "f", "Q", "B", remove=True) == 8
        assert qm.load(tmp_path / "f") == 8
        assert (stored(queue), stored(other)) == before


def test_messages_that_arrive_during_the_unload_stay(
    qm: QueueManager, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unload, "UNIT_MESSAGES", 2)
    for number in range(6):
        queue.put(b"%d" % number, format="MQSTR")

    def arrive(messages: int) -> None:
        with qm.open("Q") as other:
            other.put(b"new", priority=9, syncpoint=False)

    assert qm.unload(tmp_path / "f", "Q", remove=True, progress=arrive) == 6
    assert bodies(tmp_path / "f") == ["0", "1", "2", "3", "4", "5"]
    assert [message.data for message in queue.browse()] == [b"new"] * 3


@pytest.mark.parametrize("parquet", [False, True], ids=["JSON lines", "Parquet"])
def test_what_a_unit_has_got_is_on_the_disk_before_it_commits(
    qm: QueueManager, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parquet: bool
) -> None:
    monkeypatch.setattr(unload, "UNIT_MESSAGES", 2)
    path = tmp_path / "f"
    synced: dict[int, int] = {}  # inode -> bytes
    sync, commit = os.fsync, Ledger.commit
    positions = []

    def fsync(fd: int) -> None:
        sync(fd)
        status = os.fstat(fd)
        synced[status.st_ino] = status.st_size

    def check(self: Ledger, unit: penstock.Unit, position: Any, finished: bool = False) -> None:
        files = [path]
        if parquet:
            files = [path / f"part-{at + 1:06d}.parquet" for at in range(position["parts"])]
            assert synced[path.stat().st_ino], "the names as well"
        for file in files:
            assert synced[file.stat().st_ino] == file.stat().st_size
        positions.append(position)
        commit(self, unit, position, finished)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Ledger, "commit", check)
    for number in range(5):
        queue.put(b"%d" % number)
    qm.unload(path, "Q", remove=True, parquet=parquet)
    assert [position["messages"] for position in positions] == [2, 4, 5]


def test_units_are_no_larger_than_maxumsgs_allows(
    qm: QueueManager, queue: Queue, tmp_path: Path
) -> None:
    for number in range(7):
        queue.put(b"%d" % number)
    qm.alter("QMGR", maxumsgs=4)
    steps: list[int] = []
    qm.unload(tmp_path / "f", "Q", remove=True, progress=steps.append)
    assert steps == [2, 4, 6, 7]
    assert qm.load(tmp_path / "f") == 7
    qm.alter("QMGR", maxumsgs=2)
    with pytest.raises(penstock.UnitLimitReached, match="MAXUMSGS is 2"):
        qm.unload(tmp_path / "g", "Q", remove=True)
    qm.alter("QMGR", maxumsgs=10000)


def test_an_existing_file_is_never_overwritten(
    qm: QueueManager, queue: Queue, tmp_path: Path
) -> None:
    queue.put(b"x")
    (tmp_path / "f").write_text("mine")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "mine").write_text("mine")
    for name, parquet in (("f", False), ("d", True)):
        with pytest.raises(FileExistsError):
            qm.unload(tmp_path / name, "Q", remove=True, parquet=parquet)
    with pytest.raises(MessageFileError, match="line 1: no header"):
        qm.unload(tmp_path / "f", "Q", remove=True, resume=True)
    assert (tmp_path / "f").read_text() == "mine" and queue.depth == 1


@pytest.mark.parametrize("parquet", [False, True], ids=["JSON lines", "Parquet"])
@pytest.mark.parametrize("remove", [False, True], ids=["copied", "removed"])
def test_a_queue_that_cannot_be_opened_leaves_no_file(
    qm: QueueManager, queue: Queue, tmp_path: Path, parquet: bool, remove: bool
) -> None:
    queue.put(b"x")
    path = tmp_path / "f"
    with pytest.raises(penstock.UnknownObjectName):
        qm.unload(path, "Q", "NO.QUEUE", remove=remove, parquet=parquet)
    assert list(tmp_path.glob("f*")) == [] and queue.depth == 1
    assert qm.unload(path, "Q", remove=remove, parquet=parquet) == 1


def test_arguments_that_do_not_go_together_are_refused(
    qm: QueueManager, queue: Queue, tmp_path: Path
) -> None:
    for arguments, options in [
        ((), {}),
        (("Q", "Q"), {}),
        (("Q",), {"resume": True}),
        (("Q",), {"count": 0}),
        (("Q",), {"msg_id": b"x" * 25}),
        (("Q",), {"format": "TOOLONGNAME"}),
        (("Q",), {"put_from": datetime.datetime(2026, 1, 1)}),
    ]:
        with pytest.raises(penstock.InvalidValue):
            qm.unload(tmp_path / "f", *arguments, **options)  # type: ignore[arg-type]
    with pytest.raises(penstock.InvalidValue):
        qm.unload("-", "Q", remove=True)
    with pytest.raises(penstock.InvalidType):
        qm.unload(tmp_path / "f", "Q", priority="high")  # type: ignore[arg-type]
    with pytest.raises(penstock.UnitInProgress), qm.transaction():
        qm.unload(tmp_path / "f", "Q", remove=True)
    assert not (tmp_path / "g").exists()


HEADER = b'{"penstock":"messages","version":1}\n'
END = b'{"end":{"messages":1}}\n'
TWO = b'{"end":{"messages":2}}\n'
GOOD = b'{"queue":"Q","text":"good"}\n'


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "line 1: no header"),
        (GOOD, "line 1: no header"),
        (b'{"penstock":"messages","version":9}\n', "version 9"),
        (HEADER, "line 2: the end line is missing"),
        (HEADER + GOOD, "line 3: the end line is missing"),
        (HEADER + GOOD + b'{"queue":"Q","te', "line 3: the line is cut off after 16 bytes"),
        (HEADER + GOOD + GOOD + END, "2 messages stand before the end line, which says 1"),
        (HEADER + GOOD + END + GOOD + END, "line 4: a line behind the end line"),
        (HEADER + GOOD + END + GOOD, "line 5: the end line is missing"),
        (HEADER + b"[]\n" + END, "line 2: no message: no object"),
        (HEADER + b'{"queue":"Q"}\n' + END, "line 2: no message: it needs either text or base64"),
        (HEADER + b'{"queue":"Q","base64":"x"}\n' + END, "line 2: no message: base64"),
        (HEADER + b'{"queue":"Q","base64":"AA!?EC=="}\n' + END, "line 2: no message: base64"),
        (HEADER + b'{"queue":"Q","base64":"QUE=QUE="}\n' + END, "line 2: no message: base64"),
        (HEADER + b"[" * 100_000 + b"\n" + END, "line 2: no message: maximum recursion"),
        (b"[" * 100_000 + b"\n", "line 1: no header"),
        (HEADER + b'{"queue":"Q","text":"","colour":1}\n' + END, "unknown field 'colour'"),
        (HEADER + b'{"text":"x"}\n' + END, "line 2: the message names no queue"),
        (
            HEADER + GOOD + b'{"queue":"Q","text":"","priority":"9"}\n' + TWO,
            "line 3: priority: '9'",
        ),
        (HEADER + b'{"queue":"Q","text":"","put_time":"now"}\n' + END, "line 2: put_time: 'now'"),
        (HEADER + b'{"queue":"Q","text":"","msg_id":"zz"}\n' + END, "line 2: msg_id"),
        (
            HEADER + b'{"queue":"Q","text":"","expiry":0}\n' + END,
            "expiry: 0 is not above 0",
        ),
        (HEADER + b'{"queue":"Q","text":"","format":"123456789"}\n' + END, "at most 8 fit"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_line(
    qm: QueueManager, queue: Queue, tmp_path: Path, data: bytes, text: str
) -> None:
    path = tmp_path / "f"
    path.write_bytes(data)
    with pytest.raises(MessageFileError) as raised:
        qm.load(path)
    assert text in str(raised.value) and str(path) in str(raised.value)
    assert queue.depth == 0


def test_a_directory_is_refused_by_its_name(qm: QueueManager, tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(MessageFileError, match=f"{tmp_path}: a directory; .* --parquet"):
        qm.load(tmp_path)
    assert set(os.listdir("/proc/self/fd")) <= before  # nothing stays open


def test_what_a_put_refuses_is_told_with_its_line(
    qm: QueueManager, queue: Queue, tmp_path: Path
) -> None:
    path = tmp_path / "f"
    path.write_bytes(HEADER + GOOD + b'{"queue":"NONE","text":""}\n' + TWO)
    with pytest.raises(penstock.UnknownObjectName, match="line 3"):
        qm.load(path)
    qm.alter("QLOCAL", "Q", maxmsgl=3)
    path.write_bytes(HEADER + b'{"queue":"Q","text":"x"}\n' + GOOD + TWO)
    with pytest.raises(penstock.MessageTooBig, match="line 3"):
        qm.load(path)
    assert queue.depth == 0


def test_lines_written_by_hand_get_what_put_gives(
    qm: QueueManager, queue: Queue, tmp_path: Path
) -> None:
    path = tmp_path / "f"
    path.write_bytes(HEADER + b'{"queue":"Q","text":"by hand","reply_to_q":"A"}\n' + END)
    qm.load(path)
    queue.put(b"by hand", reply_to_q="A")
    loaded, put = queue.get(), queue.get()
    for name in ("priority", "persistent", "format", "reply_to_q", "reply_to_qmgr", "msg_type",
                 "user_identifier", "put_appl_name", "accounting_token", "expiry"):  # fmt: skip
        assert getattr(loaded, name) == getattr(put, name), name
    assert abs(loaded.put_time - put.put_time) < datetime.timedelta(seconds=60)


def test_an_unfinished_file_is_loaded_with_partial_alone(
    qm: QueueManager, queue: Queue, tmp_path: Path
) -> None:
    path = tmp_path / "f"
    path.write_bytes(HEADER + GOOD + GOOD + b'{"queue"')
    with pytest.raises(MessageFileError):
        qm.load(path)
    assert qm.load(path, partial=True) == 2
    assert queue.depth == 2


def test_a_file_loaded_in_part_is_not_begun_anew_by_accident(
    qm: QueueManager, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unload, "UNIT_MESSAGES", 2)
    for number in range(6):
        queue.put(b"%d" % number)
    path = tmp_path / "f"
    qm.unload(path, "Q", remove=True)
    qm.alter("QLOCAL", "Q", maxdepth=4)
    with pytest.raises(penstock.QueueFull, match="line 6"):
        qm.load(path)
    assert queue.depth == 4
    qm.alter("QLOCAL", "Q", maxdepth=100)
    with pytest.raises(MessageFileError, match="4 messages of it have been loaded"):
        qm.load(path)
    with pytest.raises(MessageFileError, match="other conditions"):
        qm.load(path, resume=True, priority=3)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"priority":0', b'"priority":1', 1))
    with pytest.raises(MessageFileError, match="have changed since"):
        qm.load(path, resume=True)
    path.write_bytes(whole)
    assert qm.load(path, resume=True) == 6
    assert [message.data for message in queue.browse()] == [b"%d" % n for n in range(6)]
    assert qm.load(path, resume=True) == 6 and queue.depth == 6
    assert qm.load(path) == 6 and queue.depth == 12  # finished: a new load


def test_an_unload_that_is_continued_must_be_the_same(
    qm: QueueManager, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unload, "UNIT_MESSAGES", 2)
    for number in range(6):
        queue.put(b"%d" % number, format="MQSTR")
    path = tmp_path / "f"

    def stop(messages: int) -> None:
        if messages == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        qm.unload(path, "Q", remove=True, progress=stop)
    with pytest.raises(MessageFileError, match="other queues, conditions"):
        qm.unload(path, "Q", remove=True, resume=True, priority=0)
    assert qm.unload(path, "Q", remove=True, resume=True) == 6
    assert bodies(path) == ["0", "1", "2", "3", "4", "5"]
    assert qm.unload(path, "Q", remove=True, resume=True) == 6
    with qm.open(LEDGER) as entries:
        assert entries.depth == 0


@pytest.mark.parametrize("parquet", [False, True], ids=["JSON lines", "Parquet"])
def test_messages_that_came_back_may_be_taken_by_others_before_the_resume(
    qm: QueueManager, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parquet: bool
) -> None:
    monkeypatch.setattr(unload, "UNIT_MESSAGES", 3)
    for number in range(6):
        queue.put(b"%d" % number * 50, format="MQSTR")
    path = tmp_path / "f"
    commit = Ledger.commit

    def stop(self: Ledger, unit: penstock.Unit, position: Any, finished: bool = False) -> None:
        if position["messages"] == 6:
            raise KeyboardInterrupt
        commit(self, unit, position, finished)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Ledger, "commit", stop)
        qm.unload(path, "Q", remove=True, parquet=parquet)
    taken = [queue.get().data, queue.get().data]  # both are in the file, not committed
    assert taken == [b"3" * 50, b"4" * 50]
    assert qm.unload(path, "Q", remove=True, resume=True, parquet=parquet) == 4
    assert qm.load(path, parquet=parquet) == 4
    assert [message.data[:1] for message in queue.browse()] == [b"0", b"1", b"2", b"5"]


def test_the_end_line_stands_before_the_entry_goes(
    qm: QueueManager, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue.put(b"x", format="MQSTR")
    path = tmp_path / "f"

    def stop(self: object, *arguments: object) -> None:
        raise KeyboardInterrupt

    for kind, name in ((JsonLinesWriter, "finish"), (Ledger, "remove")):
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(kind, name, stop)
            qm.unload(path, "Q", remove=True, resume=True)
    assert qm.unload(path, "Q", remove=True, resume=True) == 1
    assert bodies(path) == ["x"]
    with qm.open(LEDGER) as entries:
        assert entries.depth == 0


def test_a_file_whose_entry_was_removed_is_not_cut_off(
    qm: QueueManager, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unload, "UNIT_MESSAGES", 1)
    queue.put(b"0")
    queue.put(b"1")
    path = tmp_path / "f"

    def stop(messages: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        qm.unload(path, "Q", remove=True, progress=stop)
    before = path.read_bytes()
    qm.clear(LEDGER)
    with pytest.raises(MessageFileError, match="no record of it"):
        qm.unload(path, "Q", remove=True, resume=True)
    assert path.read_bytes() == before


def test_two_processes_do_not_work_on_one_file(
    qm: QueueManager, queue: Queue, tmp_path: Path
) -> None:
    queue.put(b"x")
    path = tmp_path / "f"
    refused: list[str] = []

    def again(messages: int) -> None:
        with penstock.connect("QM1", qm.path.parent) as other:
            for work in (
                lambda: other.unload(path, "Q", remove=True, resume=True),
                lambda: other.load(path),
            ):
                try:
                    in_thread(work)
                except MessageFileError as error:
                    refused.append(str(error))

    qm.unload(path, "Q", remove=True, progress=again)
    assert len(refused) == 2, refused
    assert "another process works on it" in refused[0] and "end line is missing" in refused[1]


def in_thread(work: Any) -> Any:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(60)


def test_without_pyarrow_parquet_is_refused_and_says_what_to_install(
    qm: QueueManager, queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MessageFileError, match=r"pip install 'penstock\[parquet\]'"):
        qm.unload(tmp_path / "f", "Q", parquet=True)
    assert list(tmp_path.glob("f*")) == []


def test_a_connect_does_not_import_what_transfers_need(tmp_path: Path) -> None:
    import subprocess

    code = "import sys, penstock; sys.exit(any('message_files' in m for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
