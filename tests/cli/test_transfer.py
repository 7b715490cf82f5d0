"""Messages to a file and back: unload, load."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from command_process import Command

LINES = [b"%06d " % number + b"x" * 200 for number in range(20_000)]


def records(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def test_messages_go_to_a_file_and_back(qm1: Command, tmp_path: Path) -> None:
    path = str(tmp_path / "q.jsonl")
    qm1.ok("put", "QM1", "Q", "--priority-map", "b=9", data=b"a\nb\nc\n")
    assert qm1.ok("unload", "QM1", "Q", "--to", path, "--remove", "--text").decode() == (
        f"{path}: 3 messages of 1 queue\n"
    )
    assert qm1.depth("Q") == 0
    assert [line.get("text") for line in records(Path(path).read_bytes())[1:-1]] == ["b", "a", "c"]
    assert qm1.ok("load", "QM1", path).decode() == f"{path}: 3 messages loaded\n"
    assert qm1.ok("get", "QM1", "Q") == b"b\na\nc\n"


def test_standard_output_and_input_make_a_pipe(qm1: Command) -> None:
    qm1.ok("mqsc", "QM1", "DEFINE QLOCAL(R)")
    qm1.ok("put", "QM1", "Q", data=b"1\n2\n")
    data = qm1.ok("unload", "QM1", "Q", "--to", "-")
    assert len(records(data)) == 4
    qm1.ok("load", "QM1", "-", "--queue", "R", data=data)
    assert qm1.ok("get", "QM1", "R") == b"1\n2\n" and qm1.depth("Q") == 2


def test_generic_names_leave_out_the_queues_of_the_system(qm1: Command) -> None:
    for name in ("AA", "AB", "B"):
        qm1.ok("mqsc", "QM1", f"DEFINE QLOCAL({name})")
        qm1.ok("put", "QM1", name, "--persistent", data=name.encode())
    header = records(qm1.ok("unload", "QM1", "A*", "--to", "-"))[0]
    assert header["queues"] == ["AA", "AB"]
    header = records(qm1.ok("unload", "QM1", "*", "--to", "-"))[0]
    assert header["queues"] == ["AA", "AB", "B", "Q"]
    assert qm1.run("unload", "QM1", "X*", "--to", "-").returncode == 2


def test_conditions_are_read_from_the_command_line(qm1: Command) -> None:
    qm1.ok("put", "QM1", "Q", "--priority-map", "5=5,6=6,7=7", data=b"5\n6\n7\n")

    def found(*options: str) -> list[str]:
        data = qm1.ok("unload", "QM1", "Q", "--to", "-", "--text", *options)
        return [line["text"] for line in records(data)[1:-1]]

    assert found("--priority", "6-7") == ["7", "6"]
    assert found("--priority", "5") == ["5"]
    assert found("--put-before", "2020-01-01T00:00Z") == []
    assert found("--put-from", "2020-01-01", "--count", "1") == ["7"]
    assert found("--correl-id", "00" * 24) == ["7", "6", "5"]
    for option, value in (("--priority", "high"), ("--msg-id", "xy"), ("--put-from", "now")):
        done = qm1.run("unload", "QM1", "Q", "--to", "-", option, value)
        assert done.returncode == 2 and value.encode() in done.stderr


@pytest.mark.parametrize("name", ["q.jsonl", "q.parquet"])
def test_a_command_that_is_killed_is_continued_by_resume(
    qm1: Command, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    qm1.ok("put", "QM1", "Q", data=b"\n".join(LINES))
    move = ("unload", "QM1", "Q", "--to", str(path), "--remove", "--resume")
    with qm1.running(*move) as process:
        while not path.exists() and process.poll() is None:
            pass
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    qm1.ok(*move)
    assert qm1.depth("Q") == 0
    back = ("load", "QM1", str(path), "--resume")
    with qm1.running(*back) as process:
        while qm1.depth("Q") == 0 and process.poll() is None:
            pass
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    qm1.ok(*back)
    assert qm1.ok("get", "QM1", "Q").splitlines() == LINES


def test_a_file_that_is_cut_off_is_refused_with_its_line(qm1: Command, tmp_path: Path) -> None:
    path = tmp_path / "f"
    qm1.ok("put", "QM1", "Q", data=b"1\n2\n")
    qm1.ok("unload", "QM1", "Q", "--to", str(path))
    path.write_bytes(path.read_bytes()[:-60])
    done = qm1.run("load", "QM1", str(path))
    assert done.returncode == 2 and f"{path}, line 3: the line is cut off".encode() in done.stderr
    assert qm1.run("unload", "QM1", "Q", "--to", str(path)).returncode == 2


def test_a_journal_that_accepts_no_more_messages_is_emptied_by_unload_whose_ledger_exists(
    penstock: Command, tmp_path: Path
) -> None:
    penstock.ok("create", "QM1", "--segment-size", "64k", "--journal-limit", "1M")
    penstock.ok("mqsc", "QM1", "DEFINE QLOCAL(Q) DEFPSIST(YES) MAXDEPTH(999999)")
    penstock.ok("unload", "QM1", "Q", "--to", str(tmp_path / "nothing"), "--remove")
    full = penstock.run("put", "QM1", "Q", data=b"".join(b"%d\n" % n for n in range(20000)))
    assert full.returncode == 2 and b"(2192)" in full.stderr
    path = str(tmp_path / "f.jsonl")
    penstock.ok("unload", "QM1", "Q", "--to", path, "--remove")
    assert penstock.run("get", "QM1", "Q").returncode == 1
    penstock.ok("load", "QM1", path, "--count", "1000")
    assert penstock.ok("get", "QM1", "Q") == b"".join(b"%d\n" % n for n in range(1000))


def test_the_ledger_itself_is_not_taken_away(qm1: Command, tmp_path: Path) -> None:
    qm1.ok("put", "QM1", "Q", data=b"x\n")
    qm1.ok("unload", "QM1", "Q", "--to", str(tmp_path / "f"), "--remove")
    done = qm1.run("unload", "QM1", "SYSTEM*", "--to", str(tmp_path / "g"), "--remove")
    assert done.returncode == 2 and b"SYSTEM.TRANSFER.LEDGER, where unload notes" in done.stderr
    assert not (tmp_path / "g").exists()
    qm1.ok("unload", "QM1", "SYSTEM*", "--to", str(tmp_path / "g"))
