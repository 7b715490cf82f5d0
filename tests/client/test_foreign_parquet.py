"""Parquet files that other programs have written: each column is taken exactly, or refused."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import Queue, QueueManager
from penstock.message_files import MessageFileError

BODY = pa.array([b"one", b"two"])
DAY = datetime.datetime(1970, 1, 2, tzinfo=datetime.timezone.utc)
NULLS = {"priority": pa.int32(), "persistent": pa.bool_(), "msg_type": pa.int32(),
         "ccsid": pa.int32(), "format": pa.string(), "correl_id": pa.binary(),
         "put_time": pa.timestamp("us"), "expiry": pa.int32(), "md_version": pa.uint8(),
         "group_id": pa.binary(), "original_length": pa.int32()}  # fmt: skip


@pytest.fixture
def queue(qm: QueueManager) -> Iterator[Queue]:
    with qm.queue("FOREIGN", defprty=4) as opened:
        qm.clear("FOREIGN") if opened.depth else None
        yield opened


def load(qm: QueueManager, tmp_path: Path, **columns: Any) -> int:
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"body": BODY, **columns}), path)
    return qm.load(path, queue="FOREIGN", parquet=True)


def pair(value: Any, kind: Any = None) -> Any:
    """A column that is wrong, if at all, in its second row."""
    return pa.array([None, value], kind)


def test_a_null_means_what_a_put_gives(qm: QueueManager, queue: Queue, tmp_path: Path) -> None:
    nulls = {name: pa.array([None, None], kind) for name, kind in NULLS.items()}
    assert load(qm, tmp_path, **nulls, report=pa.nulls(2)) == 2
    queue.put(b"one")
    loaded, _, own = queue.browse()
    for name in ("priority", "persistent", "msg_type", "ccsid", "format", "correl_id", "expiry",
                 "group_id", "original_length", "report"):  # fmt: skip
        assert getattr(loaded, name) == getattr(own, name), name
    assert loaded.priority == 4 and loaded.persistent


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [
        ("priority", pair(7, pa.int64()), 7),
        ("priority", pair(7, pa.uint8()), 7),
        ("priority", pair(7).dictionary_encode(), 7),
        ("persistent", pair(False), False),
        ("persistent", pair(0), False),
        ("correl_id", pair(b"order 4711"), b"order 4711".ljust(24, b"\0")),
        ("correl_id", pair("order 4711"), b"order 4711".ljust(24, b"\0")),
        ("correl_id", pair("order").dictionary_encode(), b"order".ljust(24, b"\0")),
        ("correl_id", pair("order", pa.large_string()), b"order".ljust(24, b"\0")),
        ("group_id", pair(b"g"), b"g".ljust(24, b"\0")),
        ("format", pair("MQSTR"), "MQSTR"),
        ("format", pair(b"MQSTR"), "MQSTR"),
        ("put_time", pair(86_400_000_000_999, pa.timestamp("ns")), DAY),
        ("put_time", pair(86_400, pa.timestamp("s", "Europe/Berlin")), DAY),
        ("put_time", pair(datetime.date(1970, 1, 2)), DAY),
        ("data", pa.array(["one", "grün"]), "grün".encode()),
        ("data", pa.array(["one", "two"]).dictionary_encode(), b"two"),
        ("data", pa.array([b"one", b"two"], pa.large_binary()), b"two"),
        ("data", pa.array([b"one", b"two"], pa.binary(3)), b"two"),
    ],
)
def test_values_that_fit_are_taken_whatever_type_carries_them(
    qm: QueueManager, queue: Queue, tmp_path: Path, name: str, column: Any, value: Any
) -> None:
    assert load(qm, tmp_path, **{"body" if name == "data" else name: column}) == 2
    found = list(queue.browse())
    second = next((m for m in found if m.data == b"two"), found[-1])
    assert getattr(second, name) == value


@pytest.mark.parametrize(
    ("name", "column", "text"),
    [
        ("priority", pair(2**32 + 5), "row 2: priority: 4294967301 is out of range"),
        ("priority", pair(3.5), "column 'priority' is of type double, not integers"),
        ("priority", pair("7"), "column 'priority' is of type string, not integers"),
        ("priority", pair(True), "column 'priority' is of type bool, not integers"),
        ("persistent", pair(256), "row 2: persistent: 256 is out of range"),
        ("persistent", pair("yes"), "column 'persistent' is of type string"),
        ("expiry", pair(2**40), "row 2: expiry: 1099511627776 is out of range"),
        ("expiry", pair(1.5), "column 'expiry' is of type double, not integers"),
        ("md_version", pair(9), "row 2: md_version: 9 is out of range"),
        ("correl_id", pair(b"y" * 25), "row 2: correl_id: b'yyyyyyyyyyyyyyyyyyyyyyyyy' has 25"),
        ("correl_id", pair(5), "column 'correl_id' is of type int64, not binary or text"),
        ("format", pair("TOOLONGNAME"), "at most 8 fit"),
        ("format", pair(["a"]), "column 'format' is of type list"),
        ("put_time", pair("2026-01-01T00:00:00Z"), "column 'put_time' is of type string"),
        ("put_time", pair(1_700_000_000), "column 'put_time' is of type int64, not a timestamp"),
        ("put_time", pair(2**61, pa.timestamp("ms")), "column 'put_time'"),
        ("queue", pair(5), "column 'queue' is of type int64, not text"),
        ("body", pair(b"x"), "row 1: the body is null"),
        ("body", pa.array([1, 2]), "column 'body' is of type int64, not binary or text"),
        ("body", pa.array([[1], [2]]), "column 'body' is of type list"),
        ("body", pa.nulls(2), "there is no column 'body'"),
    ],
)
def test_values_that_do_not_fit_are_refused_with_their_row_or_column(
    qm: QueueManager, queue: Queue, tmp_path: Path, name: str, column: Any, text: str
) -> None:
    with pytest.raises(MessageFileError) as raised:
        load(qm, tmp_path, **{name: column})
    assert text in str(raised.value) and str(tmp_path / "f.parquet") in str(raised.value)
    assert queue.depth == 0


def test_a_column_that_stands_there_twice_is_refused(
    qm: QueueManager, queue: Queue, tmp_path: Path
) -> None:
    path = tmp_path / "f.parquet"
    for names in (["body", "body"], ["body", "priority", "priority"]):
        columns = [BODY if name == "body" else pa.array([1, 2]) for name in names]
        pq.write_table(pa.Table.from_arrays(columns, names), path)
        with pytest.raises(MessageFileError, match=f"2 columns '{names[-1]}'"):
            qm.load(path, queue="FOREIGN", parquet=True)
    assert queue.depth == 0
