"""Requests of remote clients: what is one, and that nothing else gets through."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock.errors import MQError
from penstock.flight.requests import (
    FIELDS,
    MOST_BYTES,
    Request,
    error_of,
    parse,
    written,
    written_error,
)

OPS = tuple(FIELDS)
FULL = {"op": "take", "manager": "QM1", "queue": "Q", "unit": "u-1", "attempt": 2, "messages": 0,
        "bytes": 7}  # fmt: skip
Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.parametrize("op", OPS)
def test_what_is_written_is_read_back(op: str) -> None:
    given = {"manager": "QM1", "queue": "Q", "unit": "u", "attempt": 1, "messages": 5, "bytes": 6,
             "columns": ("priority", "body"), "range": (9, 0, 0, 2**64 - 1, 7), "first": 2,
             "last": 9, "parts": 3, "queues": ("A", "B"), "events": ("PUT",), "start": 4096,
             "end": 8192, "history": "0" * 31 + "f 3"}  # fmt: skip
    request = Request(op, **{name: given[name] for name in FIELDS[op]})  # type: ignore[arg-type]
    assert parse(written(request), OPS) == request == parse(written(request), (op,), op)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"op": "drop"}, "its op is 'drop'"),
        ({"op": None}, "its op is None"),
        ({"extra": 1}, "fields manager, queue, unit, attempt, messages, bytes are wanted"),
        ({"queue": "A B"}, "queue is 'A B', which must match"),
        ({"queue": "../etc"}, None),
        ({"queue": 7}, "queue is 7"),
        ({"manager": ""}, "manager is ''"),
        ({"unit": "x" * 41}, "unit is 'xxx"),
        ({"unit": "a/b"}, "unit is 'a/b'"),
        ({"attempt": 0}, "attempt is 0, not a whole number of at least 1"),
        ({"attempt": True}, "attempt is True"),
        ({"attempt": 1.0}, "attempt is 1.0"),
        ({"messages": -1}, "messages is -1"),
        ({"bytes": 1 << 63}, "bytes is 9223372036854775808"),
        ({"columns": ["a"]}, "fields manager, queue"),
    ],
)
def test_what_is_no_request_is_refused(change: dict[str, Any], text: str | None) -> None:
    body = json.dumps({**FULL, **change}).encode()
    if text is None:  # a name of MQ may have dots and slashes; no path is made of it
        assert parse(body, OPS).queue == "../etc"
        return
    with pytest.raises(penstock.InvalidValue) as caught:
        parse(body, OPS)
    assert caught.value.reason == 2046 and text in str(caught.value)


@pytest.mark.parametrize(
    ("op", "change", "text"),
    [
        ("browse", {"range": [9, 0, 0, 1]}, "range is"),
        ("browse", {"range": [10, 0, 0, 1, 1]}, "range is"),
        ("browse", {"range": [9, 0, 0, 1 << 64, 1]}, "range is"),
        ("browse", {"range": [9, 0, 0, True, 1]}, "range is"),
        ("ranges", {"parts": 0}, "parts is 0"),
        ("journal", {"history": "x"}, "history is 'x'"),
        ("journal", {"queues": "Q"}, "queues is 'Q'"),
        ("journal", {"start": -1}, "start is -1"),
    ],
)
def test_numbers_of_ranges_and_of_the_journal_are_checked(
    op: str, change: dict[str, Any], text: str
) -> None:
    full = {"browse": {"manager": "QM1", "queue": "Q", "columns": [], "range": []},
            "ranges": {"manager": "QM1", "queue": "Q", "parts": 1},
            "journal": {"manager": "QM1", "queues": [], "columns": [], "events": [], "start": 0,
                        "end": 0, "history": ""}}  # fmt: skip
    assert parse(json.dumps({"op": op, **full[op]}).encode(), OPS).op == op
    with pytest.raises(penstock.InvalidValue, match=text):
        parse(json.dumps({"op": op, **full[op], **change}).encode(), OPS)


def test_an_op_is_that_of_its_call() -> None:
    with pytest.raises(penstock.InvalidValue, match="its op is 'take', not commit"):
        parse(json.dumps(FULL).encode(), OPS, "commit")
    with pytest.raises(penstock.InvalidValue, match="its op is 'take', not browse or read"):
        parse(json.dumps(FULL).encode(), ("browse", "read"))


@pytest.mark.parametrize(
    "text", [b"", b"\xff", b"[]", b"7", b"[" * 50_000, b" " * (MOST_BYTES + 1), b'{"op": "put"}']
)
def test_what_is_no_object_is_refused(text: bytes) -> None:
    with pytest.raises(penstock.InvalidValue, match="the request is refused"):
        parse(text, OPS)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200) | Json.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_request_or_refused(text: bytes) -> None:
    try:
        assert parse(text, OPS).op in OPS
    except penstock.InvalidValue:
        pass


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(FULL)), Json)
def test_any_value_of_a_field_is_taken_as_it_is_or_refused(name: str, value: Any) -> None:
    try:
        found = parse(json.dumps({**FULL, name: value}).encode(), OPS)
    except penstock.InvalidValue:
        return
    assert getattr(found, name) == value and type(getattr(found, name)) is type(value)


def test_errors_keep_reason_and_class() -> None:
    for error in (penstock.QueueFull(2053, "full"), MQError(2035, "no")):
        back = error_of(written_error(error))
        assert type(back) is type(error) and str(back) == str(error)
    for text in (b"", b"{}", b'{"reason": "x", "text": 1}', b"\xff", b"7"):
        assert error_of(text) is None
