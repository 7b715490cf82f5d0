"""Exactly once: what a repeated, fenced or interrupted call leaves, without the transport."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.client import ledger
from penstock.errors import MQError
from penstock.flight import service as services
from penstock.flight.access import ANYBODY, Access
from penstock.flight.requests import Request
from penstock.flight.service import LEDGER, Service
from penstock.flight.unit_names import owner_of

ME = Access("me", ("QM1",), ("*",), ("browse", "get", "put"))
SCHEMA = pa.schema([("body", pa.binary())])


class Calls:
    """A service, and its calls in short."""

    def __init__(self, home: Path, qm: penstock.QueueManager, **times: float) -> None:
        self.qm = qm
        self.service = Service(
            {"QM1": lambda: penstock.connect("QM1", home)},
            times.get("lease", 3600),
            times.get("stall", 60),
        )

    def put(
        self, bodies: Any, unit: str = "u", attempt: int = 1, access: Access = ME, queue: str = "Q"
    ) -> dict[str, Any]:
        request = Request("put", "QM1", queue, unit, attempt)
        return self.service.put(access, request, batches(bodies), SCHEMA)

    def take(self, unit: str = "t", attempt: int = 1, messages: int = 0, **more: Any) -> Any:
        request = Request("take", "QM1", "Q", unit, attempt, messages, more.pop("bytes", 0))
        return self.service.take(more.pop("access", ME), request)

    def read(self, unit: str = "t", attempt: int = 1, access: Access = ME) -> list[bytes]:
        request = Request("read", "QM1", unit=unit, attempt=attempt)
        schema, found = self.service.read(access, request)
        made = pa.Table.from_batches(list(found), schema)
        bodies: list[bytes] = made.column("body").to_pylist()
        return bodies

    def end(self, how: str, unit: str = "u", attempt: int = 1, access: Access = ME) -> Any:
        return getattr(self.service, how)(access, Request(how, "QM1", unit=unit, attempt=attempt))

    def left(self, queue: str = "Q") -> list[bytes]:
        with self.qm.open(queue, input=False, browse=True, output=False) as q:
            return [message.data for message in q.browse()]


def batches(bodies: Any) -> Iterator[Any]:
    """One record batch of bytes, or those of an iterator."""
    if isinstance(bodies, list):
        bodies = iter([bodies])
    for some in bodies:
        yield pa.record_batch({"body": pa.array(some, pa.binary())})


def numbered(count: int) -> list[bytes]:
    return [b"%04d" % n for n in range(count)]


def interrupt_a_commit(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server dies when the ledger's entry is prepared."""

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(penstock.QueueManager, "commit_prepared", die)
        with pytest.raises(KeyboardInterrupt):
            calls.end("commit")


@pytest.fixture
def calls(qm: penstock.QueueManager, home: Path) -> Iterator[Calls]:
    qm.define("QLOCAL", "Q")
    made = Calls(home, qm)
    yield made
    made.service.close()


@pytest.fixture
def again(qm: penstock.QueueManager, home: Path) -> Iterator[Callable[[], Calls]]:
    """Makes further services, as after a restart of the server."""
    made: list[Calls] = []

    def make(**times: float) -> Calls:
        made.append(Calls(home, qm, **times))
        return made[-1]

    yield make
    for one in made:
        one.service.close()


# ---- putting ----


def test_a_put_is_visible_with_its_commit_and_both_may_be_repeated(calls: Calls) -> None:
    for _ in range(2):
        assert calls.put(numbered(5))["state"] == "prepared"
        assert calls.left() == []
    for _ in range(3):
        assert calls.end("commit") == {"state": "committed", "messages": 5, "attempt": 1}
    assert calls.left() == numbered(5)
    assert calls.put(numbered(5))["state"] == "committed"
    assert calls.put([b"other"], attempt=2)["state"] == "committed"
    assert calls.left() == numbered(5) and calls.qm.recover() == []


def test_a_repeated_put_with_other_rows_is_refused_and_changes_nothing(calls: Calls) -> None:
    calls.put([b"ab", b"c"])
    for other in ([b"a", b"bc"], [b"ab"], [b"ab", b"c", b""], [b"ab", b"d"]):
        with pytest.raises(penstock.InvalidValue, match="of another content"):
            calls.put(other)
    assert calls.put(iter([[b"ab"], [b"c"]]))["state"] == "prepared"  # batches do not count
    calls.end("commit")
    assert calls.left() == [b"ab", b"c"]


def test_more_messages_than_a_unit_of_work_holds_are_one_unit(calls: Calls) -> None:
    calls.qm.alter("QMGR", maxumsgs=4)
    made = numbered(11)
    calls.put(iter([made[:3], made[3:9], [], made[9:]]))
    assert len(calls.qm.recover()) == 4 and calls.left() == []  # three parts and the end
    calls.end("commit")
    assert calls.left() == made and calls.qm.recover() == []
    calls.put([], unit="empty")
    assert calls.end("commit", "empty")["messages"] == 0


def test_an_error_puts_nothing(calls: Calls) -> None:
    calls.qm.alter("QMGR", maxumsgs=4)
    calls.qm.alter("QLOCAL", "Q", maxdepth=6)
    with pytest.raises(penstock.QueueFull):
        calls.put(numbered(9))
    with pytest.raises(penstock.UnknownObjectName):
        calls.put(numbered(1), queue="NONE")
    with pytest.raises(penstock.InvalidValue, match="row 1 has no body"):
        calls.put([b"a", None])
    assert calls.put([b"ok"], attempt=2)["state"] == "prepared"  # and what was left is gone
    calls.end("commit", attempt=2)
    assert calls.left() == [b"ok"] and calls.qm.recover() == []


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"text": pa.string()}, "one column body, or value"),
        ({"body": pa.int64()}, "column body is of type int64"),
        ({"body": pa.binary(), "prority": pa.int32()}, "do you mean priority"),
        ({"body": pa.binary(), "priority": pa.string()}, "column priority is of type string"),
    ],
)
def test_columns_that_no_message_has_are_refused(
    calls: Calls, columns: dict[str, Any], text: str
) -> None:
    request = Request("put", "QM1", "Q", "u", 1)
    with pytest.raises(penstock.InvalidValue, match=text):
        calls.service.put(ME, request, iter(()), pa.schema(list(columns.items())))


# ---- taking ----


def test_what_is_taken_is_the_same_however_often_it_is_asked_for(calls: Calls) -> None:
    made = numbered(9)
    calls.put(made)
    calls.end("commit")
    assert calls.take(messages=5) == {"state": "prepared", "messages": 5, "bytes": 20}
    for _ in range(2):
        assert calls.take(messages=9)["messages"] == 5
        assert calls.read() == made[:5] and calls.left() == made[5:]
    assert calls.end("commit", "t")["messages"] == 5
    assert calls.take()["state"] == "committed"
    with pytest.raises(penstock.UnknownXid, match="not prepared"):
        calls.read()
    assert calls.take("next", bytes=1)["messages"] == 1
    assert calls.end("backout", "next") == {"state": "backed out", "messages": 0}
    assert calls.left() == made[5:] and calls.qm.recover() == []


def test_a_take_of_nothing_is_a_unit_too(calls: Calls) -> None:
    assert calls.take() == {"state": "prepared", "messages": 0, "bytes": 0}
    calls.put([b"late"])
    calls.end("commit")
    assert calls.take()["messages"] == 0 and calls.read() == []
    calls.end("commit", "t")
    assert calls.left() == [b"late"]


def test_a_take_larger_than_a_unit_of_work_is_read_in_order(calls: Calls) -> None:
    made = numbered(11)
    calls.put(made)
    calls.end("commit")
    calls.qm.alter("QMGR", maxumsgs=4)
    assert calls.take()["messages"] == 11 and calls.read() == made
    calls.end("commit", "t")
    assert calls.qm.recover() == [] and calls.left() == []


def test_a_unit_either_puts_or_takes(calls: Calls) -> None:
    calls.put(numbered(2))
    with pytest.raises(penstock.InvalidValue, match="unit u puts: it cannot take"):
        calls.take("u")
    calls.take("t")
    with pytest.raises(penstock.InvalidValue, match="of another content"):
        calls.put(numbered(2), unit="t")
    with pytest.raises(penstock.InvalidValue, match="there is nothing to read"):
        calls.read("u")


# ---- attempts ----


def test_a_later_attempt_fences_an_earlier_one(calls: Calls) -> None:
    calls.put(numbered(2))
    assert calls.put([b"new"], attempt=2)["state"] == "prepared"
    with pytest.raises(penstock.BackedOut, match="attempt 2 has fenced attempt 1"):
        calls.put(numbered(2))
    with pytest.raises(penstock.UnknownXid):
        calls.end("commit", attempt=1)
    calls.end("commit", attempt=2)
    assert calls.left() == [b"new"] and calls.qm.recover() == []
    assert calls.end("commit", attempt=1)["attempt"] == 2


def test_a_later_attempt_of_a_take_returns_the_messages_of_the_earlier_one(calls: Calls) -> None:
    calls.put(numbered(6))
    calls.end("commit")
    calls.take(messages=4)
    assert calls.take(attempt=2)["messages"] == 6
    with pytest.raises(penstock.BackedOut):
        calls.take(attempt=1)
    assert sorted(calls.read(attempt=2)) == numbered(6)


def test_an_attempt_that_still_sends_is_fenced_when_it_ends(calls: Calls) -> None:
    gate, begun = threading.Event(), threading.Event()
    caught: list[BaseException] = []

    def slow() -> Iterator[list[bytes]]:
        yield [b"old"]
        begun.set()
        assert gate.wait(30)
        yield [b"old"]

    def first() -> None:
        try:
            calls.put(slow())
        except MQError as error:
            caught.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(30)
    calls.put([b"new"], attempt=2)
    calls.end("commit", attempt=2)
    gate.set()
    thread.join(30)
    assert not thread.is_alive()
    assert caught == [] or isinstance(caught[0], penstock.BackedOut)
    assert calls.left() == [b"new"] and calls.qm.recover() == []


def test_two_calls_for_one_attempt_put_once(calls: Calls) -> None:
    gate, begun = threading.Event(), threading.Event()
    answers: list[dict[str, Any]] = []
    calls.qm.alter("QMGR", maxumsgs=2)
    made = numbered(5)

    def slow() -> Iterator[list[bytes]]:
        yield made[:3]
        begun.set()
        assert gate.wait(30)
        yield made[3:]

    thread = threading.Thread(target=lambda: answers.append(calls.put(slow())))
    thread.start()
    assert begun.wait(30)
    answers.append(calls.put(made))  # the first call is believed lost
    gate.set()
    thread.join(30)
    assert not thread.is_alive() and [a["state"] for a in answers] == ["prepared"] * 2
    calls.end("commit")
    assert calls.left() == made
    calls.end("backout", "other")
    strays = [xid for xid in calls.qm.recover() if owner_of(xid)]
    assert strays == [], "parts of the slower call"


class Halted:
    """A put of a thread, whose client has sent some rows and then halts."""

    def __init__(self, calls: Calls, first: list[bytes], rest: list[bytes]) -> None:
        self._gate, begun = threading.Event(), threading.Event()
        self.answer: dict[str, Any] | MQError | None = None

        def sent() -> Iterator[list[bytes]]:
            yield first
            begun.set()
            assert self._gate.wait(30)
            yield rest

        def call() -> None:
            try:
                self.answer = calls.put(sent())
            except MQError as error:
                self.answer = error

        self._thread = threading.Thread(target=call)
        self._thread.start()
        assert begun.wait(30)

    def go_on(self) -> dict[str, Any] | MQError | None:
        """What the call gives."""
        self._gate.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.answer


def test_a_slower_call_for_an_attempt_leaves_nothing_if_the_server_dies_then(calls: Calls) -> None:
    calls.qm.alter("QMGR", maxumsgs=2)
    made = numbered(9)
    early = Halted(calls, made[:5], made[5:])
    calls.put(made)
    whole = calls.qm.recover()
    assert len(whole) == 6, "the parts of the early call are there, too"
    late = Halted(calls, made[:5], made[5:])
    assert calls.qm.recover() == whole, "a repeated call prepares parts"
    calls.end("commit")
    assert calls.qm.recover() == [] and calls.qm.status().units == 0
    for slower in (early, late):
        answer = slower.go_on()
        assert isinstance(answer, dict) and answer["state"] == "committed"
    assert calls.left() == made and calls.qm.recover() == []


def test_a_slower_call_with_other_rows_is_refused(calls: Calls) -> None:
    slower = Halted(calls, [b"a"], [b"c"])
    calls.put([b"a", b"b"])
    answer = slower.go_on()
    assert isinstance(answer, penstock.InvalidValue) and "another content" in str(answer)
    calls.end("commit")
    assert calls.left() == [b"a", b"b"]


def test_a_put_is_backed_out_while_its_client_sends(calls: Calls) -> None:
    calls.qm.alter("QMGR", maxumsgs=2)
    slower = Halted(calls, numbered(5), numbered(2))
    assert len(calls.qm.recover()) == 2
    calls.end("backout")
    assert calls.qm.recover() == [] and calls.qm.status().units == 0
    answer = slower.go_on()
    assert isinstance(answer, penstock.BackedOut) and "while its messages were put" in str(answer)
    assert calls.left() == [] and calls.qm.recover() == []


def test_a_backout_of_an_attempt_does_not_touch_a_later_one(calls: Calls) -> None:
    def sent() -> Iterator[list[bytes]]:
        yield [b"new"]
        calls.end("backout", attempt=1)

    assert calls.put(sent(), attempt=2)["state"] == "prepared"
    assert calls.end("commit", attempt=2)["messages"] == 1


# ---- deaths ----


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("what", ["put", "take"])
def test_a_server_that_dies_while_it_prepares_leaves_nothing_half_done(
    calls: Calls, again: Any, monkeypatch: pytest.MonkeyPatch, at: int, what: str
) -> None:
    made = numbered(7)
    if what == "take":
        calls.put(made, unit="before")
        calls.end("commit", "before")
    calls.qm.alter("QMGR", maxumsgs=4)
    call = getattr(calls, what)
    given = (made,) if what == "put" else ()
    real, count = services.Unit.part, []

    def dies(*args: Any) -> Any:
        count.append(args)
        if len(count) == at:
            raise KeyboardInterrupt
        return real(*args)

    dead: list[object] = []  # whose handles end with the connection, and not before

    with monkeypatch.context() as patch:
        patch.setattr(services._Put, "close", lambda self: dead.append(self))
        patch.setattr(services, "_back_out", lambda qm, run: None)
        patch.setattr(services.Unit, "part", dies)
        patch.setattr(services.Unit, "end", dies)
        with pytest.raises(KeyboardInterrupt):
            call(*given)
    calls.service.close()
    assert len(calls.qm.recover()) == at - 1
    other = again()
    unit = "u" if what == "put" else "t"
    with pytest.raises(penstock.UnknownXid):
        other.end("commit", unit)
    assert getattr(other, what)(*given)["messages"] == 7
    other.end("commit", unit)
    assert other.left() == (made if what == "put" else []) and other.qm.recover() == []


def test_a_unit_outlives_its_server_and_its_queue_manager(
    calls: Calls, again: Any, home: Path
) -> None:
    calls.put(numbered(3))
    calls.service.close()
    other = again()
    assert other.service.units(ME, Request("units", "QM1")) == [
        {"unit": "u", "attempt": 1, "state": "prepared", "messages": 3, "sum": other.put(
            numbered(3))["sum"]}
    ]  # fmt: skip
    other.end("commit")
    assert other.left() == numbered(3)


def test_a_server_that_dies_in_a_commit_is_asked_again(
    calls: Calls, again: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls.put(numbered(3))
    interrupt_a_commit(calls, monkeypatch)
    assert len(calls.qm.recover()) == 3  # part, end, and the ledger's
    other = again()
    assert other.end("commit")["state"] == "committed"
    assert other.left() == numbered(3) and other.qm.recover() == []
    (entry,) = ledger.entries(other.qm, LEDGER)
    assert (entry["owner"], entry["messages"]) == ("me/u", 3)


# ---- leases ----


def test_what_is_not_committed_within_the_lease_is_backed_out(calls: Calls, again: Any) -> None:
    calls.put([b"kept"], unit="before")
    calls.end("commit", "before")
    short = again(lease=0.05)
    short.put(numbered(2))
    short.take()
    time.sleep(0.1)
    short.service.look()
    assert short.qm.recover() == [] and short.left() == [b"kept"]
    with pytest.raises(penstock.UnknownXid, match="its lease is over"):
        short.end("commit")
    assert short.put(numbered(2))["state"] == "prepared"


def test_a_commit_that_was_interrupted_leaves_nothing_behind_its_lease(
    calls: Calls, again: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls.put(numbered(3))
    interrupt_a_commit(calls, monkeypatch)
    time.sleep(0.1)
    short = again(lease=0.05)
    short.service.queues(ANYBODY, Request("queues", "QM1"))  # it is connected
    short.service.look()
    assert short.qm.recover() == [] and short.left() == []


def test_a_put_whose_client_sends_nothing_holds_no_unit(calls: Calls, again: Any) -> None:
    short = again(stall=0.05)

    calls.qm.alter("QMGR", maxumsgs=2)

    def slow() -> Iterator[list[bytes]]:
        yield [b"one", b"and", b"more"]
        assert short.qm.status().units == 1 and len(short.qm.recover()) == 1
        time.sleep(0.1)
        short.service.look()
        assert short.qm.status().units == 0 and short.qm.recover() == []
        yield [b"two"]

    with pytest.raises(penstock.BackedOut, match="sent nothing for too long"):
        short.put(slow())
    assert short.left() == [] and short.qm.recover() == []


def test_a_lease_ends_while_the_client_sends(calls: Calls, again: Any) -> None:
    calls.qm.alter("QMGR", maxumsgs=2)
    short = again(lease=0.05)

    def slow() -> Iterator[list[bytes]]:
        yield numbered(5)
        time.sleep(0.1)
        short.service.look()
        assert short.qm.recover() == [] and short.qm.status().units == 0
        yield [b"more"]

    with pytest.raises(penstock.BackedOut, match="while its messages were put"):
        short.put(slow())
    assert short.left() == [] and short.qm.recover() == []


def test_the_server_leaves_a_queue_manager_that_is_ending(
    calls: Calls, again: Any, home: Path
) -> None:
    calls.put([b"prepared"])
    assert calls.qm.status().attached == 1  # the test and the service are one process
    calls.qm.end()
    calls.service.look()
    with pytest.raises(penstock.QueueManagerQuiescing):
        calls.put([b"late"], unit="late")


# ---- rights ----


def test_units_of_one_token_are_not_those_of_another(calls: Calls) -> None:
    other = Access("other", ("QM1",), ("*",), ("browse", "get", "put"))
    calls.put(numbered(2))
    with pytest.raises(penstock.UnknownXid):
        calls.end("commit", access=other)
    calls.end("backout", access=other)
    assert calls.service.units(other, Request("units", "QM1")) == []
    calls.end("commit")
    assert calls.left() == numbered(2)


@pytest.mark.parametrize(
    ("access", "text"),
    [
        (Access("x", ("QM2",), ("*",), ("get", "put", "browse")), "queue manager QM1"),
        (Access("x", ("*",), ("APP.*",), ("get", "put", "browse")), "queue Q"),
        (Access("x", ("*",), ("*",), ("browse",)), "no right to"),
    ],
)
def test_what_a_token_does_not_allow_is_refused(calls: Calls, access: Access, text: str) -> None:
    for call in (
        lambda: calls.put([b"x"], access=access),
        lambda: calls.take(access=access),
    ):
        with pytest.raises(MQError, match=text) as caught:
            call()
        assert caught.value.reason == 2035
    assert calls.left() == [] and calls.qm.recover() == []


def test_queues_are_those_that_the_token_allows(calls: Calls) -> None:
    calls.put(numbered(2))
    calls.end("commit")
    calls.qm.define("QLOCAL", "APP.X")
    ask = Request("queues", "QM1")
    assert calls.service.queues(ANYBODY, ask) == [
        {"queue": "APP.X", "depth": 0},
        {"queue": "Q", "depth": 2},
    ]
    only = Access("x", ("*",), ("APP.*",), ("browse",))
    assert [one["queue"] for one in calls.service.queues(only, ask)] == ["APP.X"]
    with pytest.raises(penstock.QueueManagerNameError, match="no queue manager QM2"):
        calls.service.queues(ANYBODY, Request("queues", "QM2"))
