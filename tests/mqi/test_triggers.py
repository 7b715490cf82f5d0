"""Trigger messages: section 8.7 of the reference, a test for each condition and moment."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import penstock
import penstock.asyncio
from penstock import mqi
from penstock.client.triggers import trigger_message
from qmgr_fixture import QmgrFixture

INPUT, OUTPUT, SET = mqi.MQOO_INPUT_SHARED, mqi.MQOO_OUTPUT, mqi.MQOO_SET
NAMES = iter(range(1, 100000))


class Triggered:
    """A queue with triggers, its initiation queue and its process; no message and no opener."""

    def __init__(self, qm: penstock.QueueManager, **attributes: Any) -> None:
        number = next(NAMES)
        self.qm = qm
        self.name, self.initq, self.process = f"T.{number}.Q", f"T.{number}.INIT", f"T.{number}.P"
        qm.define("QLOCAL", self.initq)
        qm.define("PROCESS", self.process, applicid="/bin/run it", envrdata="&", userdata="user")
        given = {"trigger": True, "initq": self.initq, "process": self.process, **attributes}
        qm.define("QLOCAL", self.name, **given)

    def watch(self) -> Any:
        """A handle on the initiation queue, as a trigger monitor has it."""
        return self.qm.open(self.initq, input=True, output=False, browse=False)

    def put(self, data: bytes = b"x", **fields: Any) -> None:
        with self.qm.open(self.name, input=False, browse=False) as queue:
            queue.put(data, **fields)

    def names(self) -> list[str]:
        """QName of the trigger messages that are available now, which are taken."""
        with self.qm.open(self.initq, input=False, output=False, browse=True) as queue:
            found = []
            message = queue.get(browse="first", default=None)
            while message is not None:
                found.append(message.data[8:56].decode().rstrip())
                message = queue.get(browse="next", default=None)
        return found

    def count(self) -> int:
        return len(self.names())

    def depth(self, name: str) -> int:
        return int(self.qm.queue_status(*self.qm.find_object(name))["depth"])


@pytest.fixture
def qm(qmgr: QmgrFixture) -> Iterator[penstock.QueueManager]:
    yield qmgr.qm


# ---- what a trigger message is ----


def test_the_message_is_an_mqtm_of_the_definitions(qm: penstock.QueueManager) -> None:
    t = Triggered(qm, trigdata="data of the queue")
    qm.alter("QLOCAL", t.initq, defprty=3, defpsist=True)
    with t.watch() as monitor:
        t.put(priority=7, persistent=True, expiry=60)
        message = monitor.get()
    assert message.data == trigger_message(
        t.name, t.process, "data of the queue", 6, "/bin/run it", "&", "user"
    )
    assert len(message.data) == 684
    assert (message.format, message.persistent, message.priority) == ("MQTRIG", False, 3)
    assert message.expiry is None or message.expiry == -1
    assert message.msg_type == mqi.MQMT_DATAGRAM
    assert message.put_appl_type == mqi.MQAT_QMGR


# ---- types ----


def test_first_triggers_when_the_queue_was_empty(qm: penstock.QueueManager) -> None:
    t = Triggered(qm)
    with t.watch():
        t.put()
        t.put()
        assert t.names() == [t.name]


def test_first_triggers_again_after_the_queue_was_drained(qm: penstock.QueueManager) -> None:
    t = Triggered(qm)
    with t.watch():
        t.put()
        with qm.open(t.name, input=True, output=False, browse=False) as queue:
            queue.get()
        t.put()
        assert t.count() == 2


def test_every_triggers_for_each_message(qm: penstock.QueueManager) -> None:
    t = Triggered(qm, trigtype="EVERY")
    with t.watch(), qm.open(t.name, input=True, output=False, browse=False):
        t.put()
        t.put()
        assert t.count() == 2


def test_depth_triggers_once_and_sets_notrigger(qm: penstock.QueueManager) -> None:
    t = Triggered(qm, trigtype="DEPTH", trigdpth=3)
    with t.watch():
        t.put()
        t.put()
        assert t.count() == 0
        t.put()
        assert t.count() == 1
        assert not qm.display("QLOCAL", t.name)[0]["trigger"]
        t.put()
        assert t.count() == 1


def test_none_and_notrigger_trigger_nothing(qm: penstock.QueueManager) -> None:
    for given in ({"trigtype": "NONE"}, {"trigger": False}):
        t = Triggered(qm, **given)
        with t.watch():
            t.put()
            assert t.count() == 0, given


# ---- conditions ----


def test_only_messages_of_sufficient_priority_count(qm: penstock.QueueManager) -> None:
    t = Triggered(qm, trigmpri=5)
    with t.watch():
        t.put(priority=4)
        assert t.count() == 0
        t.put(priority=5)
        assert t.count() == 1
        t.put(priority=6)
        assert t.count() == 1
    deep = Triggered(qm, trigtype="DEPTH", trigdpth=2, trigmpri=5)
    with deep.watch():
        for priority in (4, 9, 4):
            deep.put(priority=priority)
        assert deep.count() == 0
        deep.put(priority=5)
        assert deep.count() == 1


@pytest.mark.parametrize("kind", ["FIRST", "DEPTH"])
def test_an_opener_for_input_keeps_first_and_depth_from_triggering(
    qm: penstock.QueueManager, kind: str
) -> None:
    t = Triggered(qm, trigtype=kind)
    with t.watch(), qm.open(t.name, input=True, output=False, browse=False):
        t.put()
        assert t.count() == 0


@pytest.mark.parametrize(
    "attributes",
    [{"get": False}, {"process": ""}, {"process": "NO.SUCH.PROCESS"}, {"initq": ""},
     {"initq": "NO.SUCH.QUEUE"}],
)  # fmt: skip
def test_a_condition_of_the_queue_that_is_not_met(
    qm: penstock.QueueManager, attributes: dict[str, Any]
) -> None:
    t = Triggered(qm, **attributes)
    with t.watch():
        t.put()
        assert t.count() == 0


@pytest.mark.parametrize("attributes", [{"put": False}, {"get": False}, {"usage": "XMITQ"}])
def test_a_condition_of_the_initiation_queue_that_is_not_met(
    qm: penstock.QueueManager, attributes: dict[str, Any]
) -> None:
    t = Triggered(qm)
    qm.alter("QLOCAL", t.initq, **attributes)
    with t.watch():
        t.put()
        assert t.depth(t.initq) == 0


def test_nobody_waits_on_the_initiation_queue(qm: penstock.QueueManager) -> None:
    t = Triggered(qm)
    t.put()
    with qm.open(t.initq, input=False, output=False, browse=True):
        t.put()
    assert t.count() == 0


def test_a_transmission_queue_needs_no_process_when_trigdata_names_a_channel(
    qm: penstock.QueueManager,
) -> None:
    t = Triggered(qm, usage="XMITQ", process="", trigdata="TO.THERE")
    remote = t.name + ".R"
    qm.define("QREMOTE", remote, rname="X", rqmname="THERE", xmitq=t.name)
    with t.watch() as monitor:
        with qm.open(remote, input=False, browse=False) as queue:
            queue.put(b"x")
        assert monitor.get().data[104:168].rstrip() == b"TO.THERE"


# ---- other moments ----


def test_opening_the_initiation_queue_triggers_for_each_queue_once(
    qm: penstock.QueueManager,
) -> None:
    t = Triggered(qm)
    other = t.name + ".2"
    qm.define("QLOCAL", other, trigger=True, trigtype="EVERY", initq=t.initq, process=t.process)
    empty = t.name + ".3"
    qm.define("QLOCAL", empty, trigger=True, initq=t.initq, process=t.process)
    for name in (t.name, t.name, other, other):
        with qm.open(name, input=False, browse=False) as queue:
            queue.put(b"x")
    assert t.count() == 0
    with t.watch():
        assert sorted(t.names()) == [t.name, other]


@pytest.mark.parametrize(("kind", "left", "expected"), [
    ("FIRST", 1, 1), ("DEPTH", 2, 1), ("DEPTH", 1, 0), ("EVERY", 1, 0), ("FIRST", 0, 0),
])  # fmt: skip
def test_the_last_close_for_input_triggers_for_what_is_left(
    qm: penstock.QueueManager, kind: str, left: int, expected: int
) -> None:
    t = Triggered(qm, trigtype=kind, trigdpth=2)
    with t.watch() as monitor:
        first, second = (qm.open(t.name, input=True, output=False, browse=False) for _ in range(2))
        for _ in range(left):
            t.put()
        while monitor.get(default=None) is not None:
            pass
        first.close()
        assert t.count() == 0
        second.close()
        assert t.count() == expected


def test_a_changed_definition_triggers_for_what_is_there(qm: penstock.QueueManager) -> None:
    changes: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"trigger": False}, {"trigger": True}),
        ({"get": False}, {"get": True}),
        ({"trigmpri": 9}, {"trigmpri": 0}),
        ({"trigtype": "DEPTH", "trigdpth": 5}, {"trigdpth": 1}),
    ]
    for before, after in changes:
        t = Triggered(qm, **before)
        with t.watch():
            t.put()
            assert t.count() == 0, before
            qm.alter("QLOCAL", t.name, **after)
            assert t.count() == 1, after
    t = Triggered(qm, process="LATER.PROCESS")
    with t.watch():
        t.put()
        assert t.count() == 0
        qm.define("PROCESS", "LATER.PROCESS")
        assert t.count() == 1


def test_mqset_of_the_trigger_control_triggers(qmgr: QmgrFixture) -> None:
    t = Triggered(qmgr.qm, trigger=False)
    with t.watch():
        t.put()
        handle, _, reason = mqi.MQOPEN(qmgr.hconn, mqi.MQOD(ObjectName=t.name), SET)
        assert reason == 0
        assert mqi.MQSET(qmgr.hconn, handle, {mqi.MQIA_TRIGGER_CONTROL: 1}) == (0, 0)
        assert mqi.MQCLOSE(qmgr.hconn, handle, 0) == (0, 0)
        assert t.count() == 1


def test_trigint_triggers_first_again_on_a_queue_with_messages(qm: penstock.QueueManager) -> None:
    t = Triggered(qm)
    with t.watch():
        t.put()
        t.put()
        assert t.count() == 1
        qm.alter("QMGR", trigint=0)
        try:
            t.put()
            assert t.count() == 2
        finally:
            qm.alter("QMGR", trigint=999999999)
        t.put()
        assert t.count() == 2


# ---- units of work ----


@pytest.mark.parametrize("commit", [True, False])
def test_a_trigger_message_appears_when_its_unit_ends_whichever_way(
    qm: penstock.QueueManager, commit: bool
) -> None:
    t = Triggered(qm)
    with t.watch():
        with qm.open(t.name, input=False, browse=False) as queue:
            queue.put(b"x", syncpoint=True)
            assert t.count() == 0
            qm.commit() if commit else qm.backout()
        assert t.names() == [t.name]
        assert t.depth(t.name) == int(commit)


def test_uncommitted_messages_count(qm: penstock.QueueManager) -> None:
    t = Triggered(qm)
    with t.watch(), qm.open(t.name, input=False, browse=False) as queue:
        queue.put(b"x", syncpoint=True)
        t.put()
        assert t.count() == 0
        qm.commit()
        assert t.count() == 1


def test_a_batch_triggers_message_by_message(qm: penstock.QueueManager) -> None:
    t = Triggered(qm, trigtype="EVERY")
    with t.watch(), qm.open(t.name, input=False, browse=False) as queue:
        queue.put_batch([b"1", b"2", b"3"])
        assert t.count() == 3


def test_a_full_initiation_queue_makes_a_dead_letter(qm: penstock.QueueManager) -> None:
    t = Triggered(qm, trigtype="EVERY")
    dead = t.name + ".DEAD"
    qm.define("QLOCAL", dead)
    qm.alter("QLOCAL", t.initq, maxdepth=1)
    with t.watch(), qm.open(dead, input=True, output=False, browse=False) as letters:
        t.put()
        t.put()  # discarded: there is no dead-letter queue
        qm.alter("QMGR", deadq=dead)
        try:
            t.put()
        finally:
            qm.alter("QMGR", deadq="")
        letter = letters.get()
        assert letter.format == "MQDEAD"
        assert int.from_bytes(letter.data[8:12], sys.byteorder) == 2053
        assert letter.data[116:124] == b"MQTRIG  "
        assert letter.data[172:] == trigger_message(t.name, t.process, "", 6, "/bin/run it", "&",
                                                    "user")  # fmt: skip
    assert t.depth(t.name) == 3


# ---- killed processes ----

PUTTER = """
import os, sys, penstock
qm = penstock.connect(sys.argv[1], home=sys.argv[2])
out = sys.argv[4] == "output"
queue = qm.open(sys.argv[3], input=not out, output=out, browse=False)
if out:
    queue.put(b"x", syncpoint=True)
print("ready", flush=True)
sys.stdin.read()
"""


def killed_program(qm: penstock.QueueManager, name: str, options: str, meanwhile: Any) -> None:
    """A program opens the queue, for output puts a message in a unit, and is killed."""
    program = subprocess.Popen(
        [sys.executable, "-c", PUTTER, qm.name, str(qm.path.parent), name, options],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert program.stdout is not None and program.stdout.readline() == "ready\n"
        meanwhile()
    finally:
        os.kill(program.pid, signal.SIGKILL)
        program.communicate()


def test_the_trigger_message_of_a_killed_program_appears(qm: penstock.QueueManager) -> None:
    t = Triggered(qm)
    with t.watch() as monitor:
        killed_program(qm, t.name, "output", t.put)
        assert monitor.get(wait=20).data[8:56].rstrip() == t.name.encode()
    assert t.depth(t.name) == 1


def test_a_killed_server_is_triggered_again(qm: penstock.QueueManager) -> None:
    t = Triggered(qm)
    with t.watch() as monitor:
        killed_program(qm, t.name, "input", t.put)
        assert monitor.get(wait=20).data[8:56].rstrip() == t.name.encode()
        assert monitor.get(default=None) is None


def test_after_a_restart_the_initiation_queue_triggers_again(
    tmp_path: Any,
) -> None:
    penstock.create("TRIG", home=tmp_path)
    with penstock.connect("TRIG", home=tmp_path) as qm:
        t = Triggered(qm)
        with t.watch():
            t.put(persistent=True)
            assert t.count() == 1
    with penstock.connect("TRIG", home=tmp_path) as qm:
        t.qm = qm
        assert t.count() == 0
        with t.watch():
            assert t.count() == 1


INTERRUPTED = """
import os, sys, penstock
from penstock.client import triggers

def on_put(*arguments):
    print("ready", flush=True)
    sys.stdin.read()

triggers.on_put = on_put
qm = penstock.connect(sys.argv[1], home=sys.argv[2])
qm.open(sys.argv[3], input=False, browse=False).put(b"x")
"""


def test_a_program_killed_between_its_put_and_the_trigger_message_leaves_no_queue_untriggered(
    qm: penstock.QueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = Triggered(qm)
    monkeypatch.setattr(sys.modules[__name__], "PUTTER", INTERRUPTED)
    with t.watch() as monitor:
        killed_program(qm, t.name, "output", t.put)  # which finds a message there
        assert monitor.get(default=None) is None
        assert monitor.get(wait=30).data[8:56].rstrip() == t.name.encode()
        assert monitor.get(wait=2, default=None) is None
    assert t.depth(t.name) == 1


# ---- event loops ----


@pytest.mark.parametrize("kind", ["FIRST", "DEPTH"])
def test_a_durable_put_of_an_event_loop_triggers_once(qm: penstock.QueueManager, kind: str) -> None:
    t = Triggered(qm, trigtype=kind)

    async def put() -> None:
        async with (
            penstock.asyncio.connect(qm.name, qm.path.parent) as other,
            await other.open(t.name, input=False, browse=False) as queue,
        ):
            await queue.put(b"x", persistent=True)
            async with other.transaction():
                await queue.put(b"y", persistent=True)

    with t.watch():
        asyncio.run(put())
        assert t.names() == [t.name]
    assert t.depth(t.name) == 2


def test_the_last_room_of_a_unit_is_the_reports_and_not_the_trigger_messages(
    qm: penstock.QueueManager,
) -> None:
    t = Triggered(qm, trigtype="EVERY")
    qm.define("QLOCAL", "T.REPORTS")
    asked = {"persistent": True, "report": mqi.MQRO_COA, "reply_to_q": "T.REPORTS"}
    with t.watch():
        for most, triggers in ((2, 0), (3, 1)):
            qm.alter("QMGR", maxumsgs=most)
            with qm.transaction():
                t.put(**asked)
            assert t.depth("T.REPORTS") == t.depth(t.name) == most - 1
            assert t.depth(t.initq) == triggers
    qm.alter("QMGR", maxumsgs=10000)
    qm.clear("T.REPORTS")
    qm.delete("QLOCAL", "T.REPORTS")
