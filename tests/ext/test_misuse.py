"""Wrong types, wrong values, closed handles: each an exception with value, rule, codes and name."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import penstock
from penstock import Queue, QueueManager, _engine

PUTS: list[tuple[dict[str, Any], int, type[Exception]]] = [
    ({"data": "half a pair: \ud800"}, 2004, ValueError),
    ({"data": None}, 2004, TypeError),
    ({"data": 5}, 2004, TypeError),
    ({"data": memoryview(b"abcd")[::2]}, 2004, TypeError),
    ({"priority": -2}, 2050, ValueError),
    ({"priority": 1 << 31}, 2050, ValueError),
    ({"priority": -(1 << 80)}, 2050, ValueError),
    ({"priority": "5"}, 2026, TypeError),
    ({"priority": 5.0}, 2026, TypeError),
    ({"persistent": 3}, 2047, ValueError),
    ({"persistent": -1}, 2047, ValueError),
    ({"persistent": "yes"}, 2047, TypeError),
    ({"msg_id": b"x" * 25}, 2206, ValueError),
    ({"msg_id": "text"}, 2206, TypeError),
    ({"correl_id": b"x" * 25}, 2207, ValueError),
    ({"correl_id": 7}, 2207, TypeError),
    ({"group_id": b"x" * 25}, 2258, ValueError),
    ({"expiry": 0}, 2013, ValueError),
    ({"expiry": -1}, 2013, ValueError),
    ({"expiry": float("nan")}, 2013, ValueError),
    ({"expiry": 1e9}, 2013, ValueError),
    ({"expiry": "1"}, 2013, TypeError),
    ({"expiry": True}, 2013, TypeError),
    ({"syncpoint": 1}, 2046, TypeError),
    ({"syncpoint": "yes"}, 2046, TypeError),
    ({"format": "much too long"}, 2026, ValueError),
    ({"format": 1}, 2026, TypeError),
    ({"reply_to_q": "x" * 49}, 2026, ValueError),
    ({"msg_type": 0}, 2029, ValueError),
    ({"msg_type": 1000000000}, 2029, ValueError),
    ({"msg_type": 1}, 2027, ValueError),
    ({"report": 256}, 2027, ValueError),
    ({"report": 0x00100000}, 2061, ValueError),
    ({"msg_flags": 32}, 2249, ValueError),
    ({"msg_seq_number": 0}, 2250, ValueError),
]
GETS: list[tuple[dict[str, Any], int, type[Exception]]] = [
    ({"wait": -1}, 2090, ValueError),
    ({"wait": float("nan")}, 2090, ValueError),
    ({"wait": "1"}, 2090, TypeError),
    ({"wait": True}, 2090, TypeError),
    ({"msg_id": b"x" * 25}, 2206, ValueError),
    ({"correl_id": "text"}, 2207, TypeError),
    ({"group_id": b"x" * 25}, 2258, ValueError),
    ({"syncpoint": 0}, 2046, TypeError),
    ({"max_length": -1}, 2005, ValueError),
    ({"max_length": 104857601}, 2005, ValueError),
    ({"max_length": 1.0}, 2005, TypeError),
    ({"truncate": True}, 2046, ValueError),
    ({"browse": "last"}, 2046, ValueError),
    ({"browse": "first", "under_cursor": True}, 2046, ValueError),
    ({"browse": "first", "syncpoint": True}, 2046, ValueError),
    ({"lock": True}, 2046, ValueError),
    ({"unlock": True, "browse": "next"}, 2046, ValueError),
    ({"syncpoint_if_persistent": True, "syncpoint": True}, 2046, ValueError),
]


@pytest.mark.parametrize(("given", "reason", "kind"), PUTS)
def test_a_put_with_a_wrong_value_is_refused(
    queue: Queue, given: dict[str, Any], reason: int, kind: type[Exception]
) -> None:
    with pytest.raises(penstock.MQError) as caught:
        queue.put(**{"data": b"x", **given})
    assert caught.value.reason == reason
    assert caught.value.comp_code == 2
    assert caught.value.reason_name == _engine.reason_name(reason)
    assert isinstance(caught.value, kind)
    (value,) = given.values()
    if not isinstance(value, memoryview) and value is not None and "data" not in given:
        assert repr(value) in str(caught.value) or str(value) in str(caught.value)
    assert queue.depth == 0


@pytest.mark.parametrize(("given", "reason", "kind"), GETS)
def test_a_get_with_a_wrong_value_is_refused_and_takes_nothing(
    queue: Queue, given: dict[str, Any], reason: int, kind: type[Exception]
) -> None:
    queue.put(b"x")
    with pytest.raises(penstock.MQError) as caught:
        queue.get(**given)
    assert caught.value.reason == reason
    assert isinstance(caught.value, kind)
    assert queue.depth == 1


def test_an_unknown_keyword_is_a_type_error(queue: Queue) -> None:
    with pytest.raises(TypeError, match="prio"):
        queue.put(b"x", prio=5)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="at least 1"):
        queue.put()  # type: ignore[call-arg]


def test_a_queue_is_unusable_after_close(queue: Queue) -> None:
    queue.close()
    assert queue.closed and "closed" in repr(queue)
    calls = [
        lambda: queue.put(b"x"),
        queue.get,
        lambda: list(queue.browse()) if queue.get() else None,
    ]
    for call in calls:
        with pytest.raises(penstock.ClosedHandle) as caught:
            call()
        assert caught.value.reason == 2019
        assert isinstance(caught.value, ValueError)


def test_everything_is_unusable_after_the_connection_closed(qm: QueueManager, queue: Queue) -> None:
    unit = qm.transaction()
    qm.close()
    qm.close()
    assert qm.closed and queue.closed
    calls = [
        lambda: queue.put(b"x"),
        queue.get,
        lambda: queue.depth,
        lambda: list(queue.browse()),
        qm.commit,
        qm.backout,
        qm.transaction,
        qm.unit,
        unit.__enter__,
        lambda: qm.open("Q"),
        lambda: qm.define("QLOCAL", "B"),
        lambda: qm.display("QLOCAL"),
        qm.status,
        qm.check,
        qm.checkpoint,
        qm.maintain,
        lambda: qm.log(9999, "I", "text"),
        lambda: qm.end(),
    ]
    for call in calls:
        with pytest.raises(penstock.ClosedHandle) as caught:
            call()
        assert caught.value.reason == 2018
    queue.close()


def test_engine_objects_cannot_be_made_or_opened_twice(qm: QueueManager, queue: Queue) -> None:
    for kind in (penstock.Message, penstock.PutResult, penstock.Unit):
        with pytest.raises(TypeError):
            kind()
    with pytest.raises(RuntimeError):
        queue.__init__(qm, "Q", 16)  # type: ignore[misc]
    with pytest.raises(RuntimeError):
        qm.__init__("QM1", qm.path.parent)  # type: ignore[misc]
    queue.put(b"still works")


@pytest.mark.parametrize("kind", [_engine.QueueHandle, penstock.Queue, _engine.Connection])
def test_an_object_whose_init_never_ran_refuses_and_does_not_crash(kind: Any) -> None:
    bare: Any = kind.__new__(kind)
    if issubclass(kind, _engine.QueueHandle):
        for call in (lambda: bare.put(b"x"), bare.get):
            with pytest.raises((penstock.MQError, TypeError, AttributeError)):
                call()
    else:
        for call in (bare.commit, bare.transaction, bare.check):
            with pytest.raises(penstock.MQError):
                call()


def test_errors_can_be_pickled_with_all_they_carry(queue: Queue) -> None:
    queue.put(b"12345")
    with pytest.raises(penstock.TruncatedMessage) as caught:
        queue.get(max_length=1)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is penstock.TruncatedMessage
    assert (copy.reason, copy.length, str(copy)) == (2080, 5, str(caught.value))


def test_bad_log_severities_and_end_modes_are_refused(qm: QueueManager) -> None:
    for call in (lambda: qm.log(1, "X", "t"), lambda: qm.end("now")):
        with pytest.raises(penstock.InvalidValue):
            call()
    qm.log(9999, "I", "a line")


def test_settings_of_the_engine_are_checked(home: object) -> None:
    for settings in ({"ring_size": -1}, {"ring_size": "1"}, {"nonsense": 1}, {"qm_id": b"x"}):
        with pytest.raises(penstock.MQError) as caught:
            _engine.create_files(str(home), settings)
        assert caught.value.reason == 2046
