"""Start and stop events (STRSTPEV), for whoever has defined their queue."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import NamedTuple

import pytest

import penstock

QUEUE = "SYSTEM.ADMIN.QMGR.EVENT"
ACTIVE, NOT_ACTIVE = 2222, 2223


class Event(NamedTuple):
    """MQRC_*, ReasonQualifier and HostName of an event message."""

    reason: int
    qualifier: int | None
    host: str | None


def parsed(data: bytes, manager: str = "QM1") -> Event:
    """The fields of an event message; every other one is compared here."""
    head = struct.unpack_from("=9i", data)
    assert head[:7] == (7, 36, 1, 44, 1, 1, 1)
    found: dict[int, int | str] = {}
    at = 36
    for _ in range(head[8]):
        kind, length, selector, value = struct.unpack_from("=4i", data, at)
        if kind == 4:
            [size] = struct.unpack_from("=i", data, at + 16)
            assert (value, length % 4) == (1208, 0)
            found[selector] = data[at + 20 : at + 20 + size].decode().rstrip()
        else:
            assert (kind, length) == (3, 16)
            found[selector] = value
        at += length
    assert at == len(data) and found.pop(2015) == manager
    return Event(head[7], found.pop(1020, None), found.pop(3191, None))


def taken(qm: penstock.QueueManager) -> list[Event]:
    """The event messages that are there; none afterwards."""
    with qm.queue(QUEUE) as queue:
        found = []
        while (message := queue.get(default=None)) is not None:
            assert (message.format, message.msg_type) == ("MQEVENT", 8)
            found.append(parsed(message.data, qm.name))
        return found


@pytest.fixture
def wanted(tmp_path: Path) -> Path:
    """A queue manager with the queue of the events, stopped."""
    with penstock.connect("QM1", tmp_path, create=True) as qm:
        qm.define("QLOCAL", QUEUE, defpsist=True)
    return tmp_path


def test_a_start_puts_an_event_for_whoever_has_defined_its_queue(wanted: Path) -> None:
    with penstock.connect("QM1", wanted) as qm:
        assert taken(qm) == [Event(ACTIVE, 31, os.uname().nodename)]
        with penstock.connect("QM1", wanted):  # which starts nothing
            assert taken(qm) == []


@pytest.mark.parametrize(
    ("mode", "qualifier"), [("controlled", 6), ("wait", 6), ("immediate", 5), ("preemptive", 5)]
)
def test_a_stop_that_is_asked_for_puts_one_with_its_kind(
    wanted: Path, mode: str, qualifier: int
) -> None:
    with penstock.connect("QM1", wanted) as qm:
        taken(qm)
        qm.end(mode)
    with penstock.connect("QM1", wanted) as qm:
        assert [each[:2] for each in taken(qm)] == [(NOT_ACTIVE, qualifier), (ACTIVE, 31)]


def test_a_disabled_strstpev_has_no_events(wanted: Path) -> None:
    with penstock.connect("QM1", wanted) as qm:
        taken(qm)
        qm.alter("QMGR", strstpev="DISABLED")
        qm.end()
    with penstock.connect("QM1", wanted) as qm:
        assert taken(qm) == []


def test_a_new_queue_manager_has_no_queue_for_them_and_logs_nothing(tmp_path: Path) -> None:
    with penstock.connect("QM1", tmp_path, create=True) as qm:
        assert qm.display("QLOCAL", QUEUE) == []
        qm.end()
    with penstock.connect("QM1", tmp_path):
        logs = "".join(path.read_text() for path in tmp_path.rglob("*.LOG"))
    assert QUEUE not in logs


def test_on_zos_a_start_has_no_qualifier_and_a_stop_no_event(tmp_path: Path) -> None:
    penstock.create("CSQ1", tmp_path, platform="zos")
    with penstock.connect("CSQ1", tmp_path) as qm:
        qm.define("QLOCAL", QUEUE, defpsist=True)
        qm.end()
    with penstock.connect("CSQ1", tmp_path) as qm:
        assert taken(qm) == [Event(ACTIVE, None, None)]


def test_a_start_does_not_fail_for_want_of_a_place_and_logs_the_event(wanted: Path) -> None:
    with penstock.connect("QM1", wanted) as qm:
        qm.alter("QLOCAL", QUEUE, put="DISABLED")
        taken(qm)
    with penstock.connect("QM1", wanted) as qm:
        assert taken(qm) == []
    logs = "".join(
        path.read_text() for path in wanted.rglob("*") if path.suffix in (".LOG", ".log")
    )
    assert QUEUE in logs and "2051" in logs
