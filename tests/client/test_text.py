"""What people type: text and JSON as bodies, queues as collections, exceptions of Python's own."""

from __future__ import annotations

import pickle
import queue as python_queue
from typing import Any

import pytest

import penstock
from penstock import Queue, QueueManager

TEXTS = ["", "3 bolts", "Größe µ", "\U0001f600", "line\nline\0"]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_put_as_utf_8_and_its_format_says_so(queue: Queue, text: str) -> None:
    queue.put(text)
    message = queue.get()
    assert message.data == text.encode("utf-8")
    assert (message.format, message.ccsid) == ("MQSTR", 1208)
    assert message.text == text


def test_a_subclass_of_str_is_put_as_the_text_that_it_holds(queue: Queue) -> None:
    class Shouting(str):
        __slots__ = ()

        def encode(self, *arguments: Any) -> bytes:  # type: ignore[override]
            return b"SOMETHING ELSE"

    queue.put(Shouting("quiet"))
    assert queue.get().text == "quiet"


def test_a_format_that_is_given_stays(queue: Queue) -> None:
    queue.put("<order/>", format="XML")
    message = queue.get()
    assert (message.format, message.text) == ("XML", "<order/>")


def test_a_text_for_another_character_set_is_refused_by_its_number(queue: Queue) -> None:
    with pytest.raises(penstock.InvalidValue, match=r"\(2111\): ccsid 819.*1208"):
        queue.put("Größe", ccsid=819)
    queue.put("Größe".encode("latin-1"), ccsid=819)
    queue.put("Größe", ccsid=1208)
    assert queue.depth == 2


VALUES = [None, True, 4711, 1.5, "Größe", [1, [2, None]], {"order": 4711, "items": ["bolt"]}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_from_json(queue: Queue, value: Any) -> None:
    queue.put(json=value)
    message = queue.get()
    assert message.json() == value
    assert message.format == "MQSTR"


def test_json_is_written_without_blanks_and_without_escapes(queue: Queue) -> None:
    queue.put(json={"größe": [1, 2]}, priority=3)
    message = queue.get()
    assert message.text == '{"größe":[1,2]}'
    assert message.priority == 3


def test_what_is_no_json_is_refused_and_not_put(queue: Queue) -> None:
    circle: list[Any] = []
    circle.append(circle)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value, kind in [
        (object(), penstock.InvalidType),
        ({1, 2}, penstock.InvalidType),
        (b"bytes", penstock.InvalidType),
        (float("nan"), penstock.InvalidValue),
        (circle, penstock.InvalidValue),
        (deep, penstock.InvalidValue),
    ]:
        with pytest.raises(kind, match=r"\(2004\): json: "):
            queue.put(json=value)
    with pytest.raises(penstock.InvalidType, match="data or json, not both"):
        queue.put("text", json=1)
    assert queue.depth == 0


def test_bytes_are_read_as_text_when_they_are_utf_8(queue: Queue) -> None:
    queue.put("Größe".encode())
    assert queue.get().text == "Größe"
    queue.put(b"\xff")
    message = queue.get()
    with pytest.raises(penstock.InvalidValue, match=r"\(2110\): the body is no text: .*0xff"):
        _ = message.text
    with pytest.raises(ValueError, match=r"\(2110\)"):
        message.json()


@pytest.mark.parametrize(
    ("fields", "reason"),
    [({"format": "MQDEAD"}, 2110), ({"format": "MQHRF2"}, 2110), ({"ccsid": 819}, 2111)],
)
def test_text_of_what_is_none_is_refused(queue: Queue, fields: dict[str, Any], reason: int) -> None:
    queue.put(b"plain", **fields)
    message = queue.get()
    (value,) = fields.values()
    for read in (lambda: message.text, message.json):
        with pytest.raises(penstock.InvalidValue, match=str(value)) as caught:
            read()
        assert caught.value.reason == reason


def test_json_of_a_text_that_is_none_shows_it(queue: Queue) -> None:
    queue.put("{order: 4711}")
    with pytest.raises(penstock.InvalidValue, match=r"\(2110\).*'\{order: 4711\}'"):
        queue.get().json()


def test_a_reply_may_be_text_or_json(qm: QueueManager, queue: Queue) -> None:
    qm.define("QLOCAL", "ANSWERS")
    with qm.open("ANSWERS") as answers:
        queue.put("?", reply_to_q="ANSWERS")
        request = queue.get()
        qm.reply(request, "text")
        qm.reply(request, json=[1])
        qm.reply(request)
        answers.put(**request.reply(json=None))
        got = [answers.get() for _ in range(4)]
    assert [message.data for message in got] == [b"text", b"[1]", b"", b"null"]
    assert {message.correl_id for message in got} == {request.msg_id}


# ---- a queue as a collection ----


def test_the_length_of_a_queue_is_its_depth_and_an_empty_one_is_true(queue: Queue) -> None:
    assert len(queue) == 0
    assert queue
    queue.put("a")
    queue.put("b")
    assert len(queue) == queue.depth == 2


def test_iterating_over_a_queue_shows_its_messages_and_takes_none(queue: Queue) -> None:
    for priority in (1, 9, 5):
        queue.put(str(priority), priority=priority)
    assert [message.text for message in queue] == ["9", "5", "1"]
    assert [message.text for message in list(queue)] == ["9", "5", "1"]
    assert len(queue) == 3
    with pytest.raises(TypeError, match="not a container"):
        "9" in queue  # type: ignore[operator]  # noqa: B015
    queue.close()
    with pytest.raises(penstock.ClosedHandle):
        iter(queue)
    with pytest.raises(penstock.ClosedHandle):
        len(queue)


# ---- exceptions ----


def test_no_message_is_pythons_empty_and_after_a_wait_its_timeout(queue: Queue) -> None:
    with pytest.raises(python_queue.Empty) as at_once:
        queue.get()
    assert type(at_once.value) is penstock.NoMessageAvailable
    assert not isinstance(at_once.value, TimeoutError)
    for match in ({}, {"correl_id": b"none"}, {"browse": "first"}):
        with pytest.raises(TimeoutError) as late:
            queue.get(wait=0.001, **match)  # type: ignore[arg-type]
        error = late.value
        assert isinstance(error, penstock.WaitTimedOut)
        assert isinstance(error, penstock.NoMessageAvailable)
        assert (error.reason, error.comp_code) == (2033, 2)
        assert str(error).startswith("MQRC_NO_MSG_AVAILABLE (2033): queue Q has no ")
        assert "the wait is over" in str(error)
    assert not isinstance(at_once.value, penstock.WaitTimedOut)


@pytest.mark.parametrize("comp_code", [None, 2])
def test_a_timeout_keeps_its_facts_when_it_is_copied(comp_code: int | None) -> None:
    error = penstock.WaitTimedOut(2033, "queue Q", comp_code)
    copy = pickle.loads(pickle.dumps(error))
    for one in (error, copy):
        assert (one.reason, one.comp_code, one.text) == (2033, 2, "queue Q")
        assert (one.errno, one.strerror, one.filename) == (110, "queue Q", None)
        assert str(one) == "MQRC_NO_MSG_AVAILABLE (2033): queue Q"


# ---- names ----


@pytest.mark.parametrize(
    ("name", "offer"),
    [
        ("my-queue", "; do you mean MY.QUEUE?"),
        ("orders in:eu", "; do you mean ORDERS.IN.EU?"),
        ("--", ""),
        ("a" * 47 + "ß", ""),
    ],
)
def test_a_name_that_is_none_is_refused_with_the_rule_and_one_that_is(
    qm: QueueManager, name: str, offer: str
) -> None:
    with pytest.raises(penstock.ObjectNameError) as caught:
        qm.queue(name)
    text = str(caught.value)
    assert caught.value.reason == 2152
    assert repr(name) in text
    assert text.endswith("A-Z a-z 0-9 . _ / % are allowed" + offer)
