"""Prepared units of work on the command line: listed, resolved, seen by the second reader."""

from __future__ import annotations

import json
import uuid

import pytest
from command_process import Command

import penstock as library
from penstock import Xid

STREAM = uuid.UUID("6b5b2ab1-5a1f-4f0e-9a43-0123456789ab")
PSPK = int.from_bytes(b"PSPK", "big")
OURS = [Xid(PSPK, STREAM.bytes, b"1"), Xid(PSPK, str(STREAM).encode(), b"2")]
OTHERS = [Xid(PSPK, uuid.uuid4().bytes, b"1"), Xid(9, STREAM.bytes)]


@pytest.fixture
def prepared(qm1: Command) -> Command:
    """Queue Q of QM1 with messages m0 to m3, each got in a prepared unit."""
    with library.connect("QM1", qm1.home) as qm, qm.open("Q") as q:
        for number, xid in enumerate([*OURS, *OTHERS]):
            q.put(b"m%d" % number)
            q.get(syncpoint=True)
            q.put(b"n%d" % number, syncpoint=True)
            qm.prepare(xid)
    return qm1


def listed(command: Command, *more: str) -> list[str]:
    text = command.ok("resolve", "QM1", "--json", *more).decode()
    return [json.loads(line)["xid"] for line in text.splitlines()]


def messages(command: Command) -> list[bytes]:
    return command.run("browse", "QM1", "Q").stdout.split()


def test_the_list_has_every_unit_and_its_numbers(prepared: Command) -> None:
    assert listed(prepared) == [str(x) for x in (*OURS, *OTHERS)]
    text = prepared.ok("resolve", "QM1", "--list").decode()
    assert all(str(xid) in text for xid in (*OURS, *OTHERS))
    first = json.loads(prepared.ok("resolve", "QM1", "--json").splitlines()[0])
    assert (first["puts"], first["gets"], first["nonpersistent"], first["bytes"]) == (1, 1, 0, 4)


def test_units_are_committed_and_backed_out_by_name(prepared: Command) -> None:
    done = prepared.ok("resolve", "QM1", "--commit", str(OURS[0]), str(OTHERS[1])).decode()
    assert done.splitlines() == [
        f"committed {OURS[0]}: 1 put, 1 get",
        f"committed {OTHERS[1]}: 1 put, 1 get",
    ]
    assert sorted(messages(prepared)) == [b"n0", b"n3"]
    done = prepared.ok("resolve", "QM1", "--backout", str(OURS[1])).decode()
    assert done == f"backed out {OURS[1]}: 1 put, 1 get\n"
    assert sorted(messages(prepared)) == [b"m1", b"n0", b"n3"]
    assert listed(prepared) == [str(OTHERS[0])]


def test_the_units_of_a_stream_end_together(prepared: Command) -> None:
    assert listed(prepared, "--stream", str(STREAM)) == [str(xid) for xid in OURS]
    prepared.ok("resolve", "QM1", "--backout", "--stream", str(STREAM))
    assert messages(prepared) == [b"m0", b"m1"]
    again = prepared.run("resolve", "QM1", "--backout", "--stream", str(STREAM))
    assert (again.returncode, again.stdout) == (1, b"")


def test_all_units_end_after_a_question(prepared: Command) -> None:
    asked = prepared.run("resolve", "QM1", "--backout", "--all", data=b"n\n")
    assert asked.returncode == 130 and b"Back out 4 prepared units" in asked.stdout
    assert len(listed(prepared)) == 4
    prepared.ok("resolve", "QM1", "--backout", "--all", data=b"y\n")
    assert messages(prepared) == [b"m0", b"m1", b"m2", b"m3"]
    assert prepared.run("resolve", "QM1").returncode == 1
    assert prepared.run("resolve", "QM1", "--commit", "--all", "--yes").returncode == 1


def test_an_unknown_name_ends_with_status_2_and_nothing_is_done(prepared: Command) -> None:
    done = prepared.run("resolve", "QM1", "--commit", str(OURS[0]), "1:unknown")
    assert done.returncode == 2 and b"1:unknown" in done.stderr
    assert len(listed(prepared)) == 4 and messages(prepared) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("--commit",),
        ("--backout",),
        ("1:a",),
        ("--commit", "--backout", "1:a"),
        ("--commit", "--list", "1:a"),
        ("--commit", "--all", "1:a"),
        ("--commit", "--stream", str(STREAM), "1:a"),
        ("--stream", "no-uuid"),
        ("--commit", "no xid"),
    ],
)
def test_what_contradicts_itself_is_refused(qm1: Command, arguments: tuple[str, ...]) -> None:
    done = qm1.run("resolve", "QM1", *arguments)
    assert done.returncode == 2 and b"Usage:" in done.stderr, done


def test_nonpersistent_messages_that_a_restart_discarded_are_reported(qm1: Command) -> None:
    with library.connect("QM1", qm1.home) as qm, qm.open("Q") as q:
        q.put(b"volatile", persistent=False)
        q.get(syncpoint=True)
        qm.prepare(OURS[0])
    done = qm1.ok("resolve", "QM1", "--backout", str(OURS[0])).decode()
    assert "1 non-persistent message discarded" in done
    assert messages(qm1) == []


def test_status_journal_and_verify_show_prepared_units(prepared: Command) -> None:
    prepared.ok("start", "QM1")
    found = json.loads(prepared.ok("status", "QM1", "--json"))
    assert [row["xid"] for row in found["prepared"]] == [str(x) for x in (*OURS, *OTHERS)]
    assert found["units"] == []
    text = prepared.ok("status", "QM1").decode()
    assert "prepared units of work" in text and str(OURS[1]) in text
    prepared.ok("resolve", "QM1", "--commit", str(OURS[0]), str(OURS[1]))
    rows = [json.loads(line) for line in prepared.ok("journal", "QM1", "--json").splitlines()]
    ends = [row["units"] for row in rows if row["type"] == "COMMIT_PREPARED"]
    units = {row["xid"]: row["unit"] for row in rows if row["type"] == "PREPARE"}
    assert ends == [[units[str(xid)] for xid in OURS]]
    text = prepared.ok("journal", "QM1").decode()
    assert f"as {OTHERS[0]}" in text and "COMMIT_PREPARED" in text
    notes = prepared.ok("verify", "QM1").decode()
    assert f"is prepared as {OTHERS[0]} and waits" in notes and str(OURS[0]) not in notes
    prepared.ok("end", "-w", "QM1")
