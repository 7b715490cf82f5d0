"""The protocol of source and sinks step by step, as Spark takes them, and cut short at each step.

No Spark runs here: what Spark would call is called, and a driver that dies is a reader that is
dropped with its connection.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from spark_steps import START, TEXT, Bench, Put, Task, batch_writer, plan, rows, stream_writer

import penstock
from penstock.spark.base import connection as engine
from penstock.spark.base import ledger, options, units
from penstock.spark.base.errors import DataLoss, SchemaError, SourceError, TooManyUnits
from penstock.spark.source.committing import Commits
from penstock.spark.source.taking import Taker

# ---- the source ----


def test_the_first_micro_batch_is_not_taken_before_its_offset_is_in_the_log(bench: Bench) -> None:
    made = bench.fill(0, 5)
    reader = bench.reader()
    assert reader.initialOffset() == START
    end = plan(reader, START)
    assert end["unit"] == 1 and len(end["stream"]) == 32
    assert bench.left() == made and bench.qm.recover() == []
    reader.stop()


def test_without_messages_the_offset_stays_as_it_is(bench: Bench) -> None:
    reader = bench.reader()
    assert plan(reader, START) == START
    bench.fill(0, 1, persistent=False)
    only = bench.reader(nonPersistent="exclude")
    assert plan(only, START) == START
    assert plan(reader, START)["unit"] == 1
    only.stop()
    reader.stop()


def test_a_micro_batch_that_is_planned_again_has_the_same_rows(bench: Bench) -> None:
    made = bench.fill(0, 5) + bench.fill(5, 9, persistent=False)
    reader = bench.reader()
    end = plan(reader, START)
    assert rows(reader, START, end) == made
    bench.fill(9, 12)
    assert rows(reader, START, end) == made
    reader.stop()  # the driver dies; another one plans it from the log
    again = bench.reader()
    assert rows(again, START, end) == made
    again.stop()


def test_a_micro_batch_that_others_emptied_is_empty_for_ever(bench: Bench) -> None:
    bench.fill(0, 3)
    reader = bench.reader()
    end = plan(reader, START)
    bench.source.get_batch(9)
    assert rows(reader, START, end) == []
    bench.fill(3, 6)
    assert rows(reader, START, end) == []
    assert rows(reader, end, plan(reader, end)) == [b"0003", b"0004", b"0005"]
    reader.stop()


def test_a_driver_that_dies_while_it_takes_leaves_the_messages(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bench.fill(0, 5)
    reader = bench.reader()
    end = plan(reader, START)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(penstock.QueueManager, "prepare", die)
        with pytest.raises(KeyboardInterrupt):
            reader.partitions(START, end)
    assert bench.left() == made and bench.qm.recover() == []
    again = bench.reader()
    assert rows(again, START, end) == made
    reader.stop()
    again.stop()


def test_parts_that_were_prepared_before_a_death_are_kept_and_the_rest_is_taken(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.qm.alter("QMGR", maxumsgs=4)
    made = bench.fill(0, 4) + bench.fill(4, 8) + bench.fill(8, 10)
    reader = bench.reader()
    end = plan(reader, START)
    assert end["parts"] == {"IN": 3}
    prepare = penstock.QueueManager.prepare
    calls: list[object] = []

    def second_time_die(self: Any, xid: Any, **given: Any) -> None:
        calls.append(xid)
        if len(calls) == 2:
            raise KeyboardInterrupt
        prepare(self, xid, **given)

    with monkeypatch.context() as patch:
        patch.setattr(penstock.QueueManager, "prepare", second_time_die)
        with pytest.raises(KeyboardInterrupt):
            reader.partitions(START, end)
    assert len(bench.qm.recover()) == 1
    again = bench.reader()
    assert rows(again, START, end) == made
    again.commit(end)
    assert bench.qm.recover() == [] and bench.left() == []
    reader.stop()
    again.stop()


def test_two_processes_that_take_one_micro_batch_read_the_same_rows(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = bench.fill(0, 6)
    one, two = bench.reader(), bench.reader()
    end = plan(one, START)
    take = Taker.take_part

    def late(self: Taker, *args: Any) -> Any:
        with monkeypatch.context() as inner:
            inner.setattr(Taker, "take_part", take)
            assert rows(two, START, end) == made  # the other one is faster
        bench.fill(6, 9)
        return take(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Taker, "take_part", late)
        parts = one.partitions(START, end)
    assert [row for part in parts for b in one.read(part) for row in b["body"].to_pylist()] == made
    assert bench.left() == [b"0006", b"0007", b"0008"]
    one.stop()
    two.stop()


def test_commit_takes_the_messages_away_however_often_it_comes(bench: Bench) -> None:
    bench.fill(0, 3)
    reader = bench.reader(eagerCommit="false", maxMessagesPerTrigger="1")
    first = plan(reader, START)
    rows(reader, START, first)
    second = plan(reader, first)
    rows(reader, first, second)
    assert len(bench.qm.recover()) == 2
    reader.commit(second)  # the one before was skipped
    reader.commit(first)
    reader.commit(second)
    assert bench.qm.recover() == [] and bench.left() == [b"0002"]
    reader.stop()


def test_a_micro_batch_is_committed_when_the_next_one_is_requested(bench: Bench) -> None:
    bench.fill(0, 3)
    reader = bench.reader()
    end = plan(reader, START)
    rows(reader, START, end)
    assert plan(reader, end) == end
    assert bench.qm.recover() == []
    reader.stop()


def test_an_interrupted_commit_is_made_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.fill(0, 3)
    reader = bench.reader()
    end = plan(reader, START)
    rows(reader, START, end)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(penstock.QueueManager, "commit_prepared", die)
        with pytest.raises(KeyboardInterrupt):
            reader.commit(end)
    assert len(bench.qm.recover()) == 2  # the micro-batch, and the ledger's
    again = bench.reader()
    again.commit(end)
    assert bench.qm.recover() == [] and bench.left() == []
    assert plan(again, end) == end
    reader.stop()
    again.stop()


def test_what_a_latecomer_prepares_after_the_commit_goes_back_on_the_queue(bench: Bench) -> None:
    bench.fill(0, 3)
    reader = bench.reader()
    end = plan(reader, START)
    rows(reader, START, end)
    reader.commit(end)
    made = bench.fill(3, 5)
    bench.source.get_batch(9, syncpoint=True)
    bench.qm.prepare(units.stream_unit(end["stream"], 1, units.Part("IN", 7)))
    after = {**end, "unit": 2}
    fresh = bench.reader()
    fresh.commit(after)
    assert bench.qm.recover() == [] and bench.left() == made
    reader.stop()
    fresh.stop()


def test_a_checkpoint_that_is_older_than_the_ledger_is_data_loss(bench: Bench) -> None:
    bench.fill(0, 3)
    reader = bench.reader()
    end = plan(reader, START)
    rows(reader, START, end)
    reader.commit(end)
    with pytest.raises(DataLoss, match="asked for again, but its messages were committed"):
        reader.partitions(START, end)
    lenient = bench.reader(failOnDataLoss="false")
    with pytest.warns(RuntimeWarning, match="asked for again"):
        assert lenient.partitions(START, end) == []
    reader.stop()
    lenient.stop()


def test_a_queue_manager_without_the_stream_is_data_loss(bench: Bench) -> None:
    bench.fill(0, 3)
    reader = bench.reader()
    before = {"stream": units.new_id(), "unit": 4, "parts": {"IN": 1}}
    with pytest.raises(DataLoss, match=r"micro-batch 4 of stream .* is neither prepared nor"):
        reader.partitions(before, {**before, "unit": 5})
    reader.stop()


def test_limits_bound_a_micro_batch(bench: Bench) -> None:
    bench.fill(0, 30)
    reader = bench.reader(maxMessagesPerTrigger="7")
    end = plan(reader, START)
    assert len(rows(reader, START, end)) == 7
    by_bytes = bench.reader(maxBytesPerTrigger="20")
    assert len(rows(by_bytes, START, plan(by_bytes, START))) == 5
    with pytest.warns(RuntimeWarning, match="Trigger.Once"):
        last = by_bytes.latestOffset(START, ReadAllAvailable())
    other = {**last, "stream": units.new_id()}
    assert len(rows(by_bytes, START, other)) == 18
    reader.stop()
    by_bytes.stop()


def test_available_now_takes_what_was_there_and_nothing_that_comes(bench: Bench) -> None:
    made = bench.fill(0, 6)
    reader = bench.reader(maxMessagesPerTrigger="4")
    reader.prepareForTriggerAvailableNow()
    bench.fill(6, 12, priority=9)
    seen: list[bytes] = []
    start, end = START, plan(reader, START)
    while end != start:
        seen += rows(reader, start, end)
        start, end = end, plan(reader, end)
    assert seen == made and len(bench.left()) == 6
    reader.stop()


def test_two_streams_and_a_consumer_share_a_queue_without_overlap(bench: Bench) -> None:
    made = bench.fill(0, 90)
    one, two = (bench.reader(maxMessagesPerTrigger="20") for _ in range(2))
    seen: list[bytes] = []
    starts = [START, START]
    while len(seen) < 90:
        for at, reader in enumerate((one, two)):
            end = plan(reader, starts[at])
            if end != starts[at]:
                seen += rows(reader, starts[at], end)
            starts[at] = end
        seen += [message.data for message in bench.source.get_batch(5)]
    assert sorted(seen) == made
    one.stop()
    two.stop()


def test_slices_are_disjoint_and_in_delivery_order(bench: Bench) -> None:
    bench.qm.alter("QMGR", maxumsgs=40)
    made = bench.fill(0, 100)
    reader = bench.reader(minPartitions="4")
    end = plan(reader, START)
    parts = reader.partitions(START, end)
    sizes = [sum(p.last - p.first for (p,) in part.groups) for part in parts]  # type: ignore
    assert sizes == [25, 25, 25, 25]
    assert rows(reader, START, end) == made
    small = bench.reader(messagesPerPartition="30")
    assert len(small.partitions(START, end)) == 4
    reader.stop()
    small.stop()


def test_a_reader_is_pickled_without_its_connection(bench: Bench) -> None:
    import pickle

    made = bench.fill(0, 3)
    reader = bench.reader()
    end = plan(reader, START)
    parts = reader.partitions(START, end)
    copy, sent = pickle.loads(pickle.dumps((reader, parts)))
    assert not hasattr(copy, "_qm")
    assert [row for b in copy.read(sent[0]) for row in b["body"].to_pylist()] == made
    reader.stop()


def test_progress_contains_depth_age_and_lag(bench: Bench) -> None:
    def told() -> dict[str, Any]:
        found = reader.reportLatestOffset()
        assert found is not None and found.pop("queue") == "IN"
        return found

    reader = bench.reader(maxMessagesPerTrigger="2")
    place = {"queueManager": "QM1", "home": bench.base["home"], "queue": "IN"}
    assert told() == {
        "depth": 0, "inDoubt": 0, "lag": 0, "oldestMessageAgeMs": 0, "abandoned": 0,
        "backedOut": 0, "badBodies": 0, "takeMs": 0, "commitMs": 0,
        "commitAtEnd": place,
    }  # fmt: skip
    bench.fill(0, 3)
    assert 0 <= told().pop("oldestMessageAgeMs") < 60_000
    end = plan(reader, START)
    reader.partitions(START, end)
    now = told()
    assert (now["depth"], now["inDoubt"], now["lag"]) == (1, 2, 3)
    reader.commit(end)
    now = told()
    assert (now["depth"], now["inDoubt"], now["lag"]) == (1, 0, 1)
    reader.stop()


@pytest.mark.parametrize(
    ("name", "of", "slow"),
    [("takeMs", Taker, "take_part"), ("commitMs", Commits, "_commit")],
    ids=["take", "commit"],
)
def test_progress_says_how_long_the_last_take_and_the_last_commit_took(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str, of: type, slow: str
) -> None:
    real = getattr(of, slow)

    def slowed(*given: Any) -> Any:
        time.sleep(0.03)
        return real(*given)

    monkeypatch.setattr(of, slow, slowed)
    reader = bench.reader()
    bench.fill(0, 3)
    end = plan(reader, START)
    reader.partitions(START, end)
    reader.commit(end)
    now = reader.reportLatestOffset()
    assert now is not None and now[name] >= 30
    reader.stop()


# ---- the sinks ----


def table(*values: str) -> pa.Table:
    return pa.table({"value": list(values)})


def out(bench: Bench) -> list[bytes]:
    return [message.data for message in bench.target.browse()]


def test_a_batch_is_visible_when_the_driver_commits_it_and_not_before(
    bench: Bench, put: Put
) -> None:
    writer = stream_writer(bench)
    told = [put(writer, table("c"), 1), put(writer, table("a", "b"), 0)]
    assert out(bench) == [] and len(bench.qm.recover()) == 2
    writer.commit(told, 0)
    assert out(bench) == [b"c", b"a", b"b"] and bench.qm.recover() == []  # in the order of puts


def test_a_batch_that_is_replayed_is_written_once(bench: Bench, put: Put) -> None:
    writer = stream_writer(bench)
    writer.commit([put(writer, table("a"))], 0)
    writer.commit([put(writer, table("a"))], 0)
    assert out(bench) == [b"a"] and bench.qm.recover() == []
    writer.commit([put(writer, table("b"), batch=1)], 1)
    assert out(bench) == [b"a", b"b"]


def test_what_a_dead_attempt_left_is_backed_out_by_the_next_commit(bench: Bench, put: Put) -> None:
    writer = stream_writer(bench)
    put(writer, table("lost"))
    put(writer, table("lost too"))
    writer.commit([put(writer, table("a"))], 0)
    assert out(bench) == [b"a"] and bench.qm.recover() == []


def test_a_commit_of_the_sink_that_was_cut_short_leaves_nothing(
    bench: Bench, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = stream_writer(bench)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        told = put(writer, table("a"))
        patch.setattr(penstock.QueueManager, "commit_prepared", die)
        with pytest.raises(KeyboardInterrupt):
            writer.commit([told], 0)
    assert out(bench) == []
    writer.commit([put(writer, table("a"))], 0)
    assert out(bench) == [b"a"] and bench.qm.recover() == []


def test_a_job_that_is_aborted_leaves_nothing(bench: Bench, put: Put) -> None:
    writer = stream_writer(bench)
    writer.abort([put(writer, table("a")), None], 0)
    assert out(bench) == [] and bench.qm.recover() == []


def test_a_task_with_more_rows_than_maxumsgs_prepares_several_units(
    bench: Bench, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.qm.alter("QMGR", maxumsgs=10)
    writer = stream_writer(bench)
    told = put(writer, table(*[str(n) for n in range(25)]))
    assert len(told.xids) == 3 and told.messages == 25
    writer.commit([told], 0)
    assert out(bench) == [b"%d" % n for n in range(25)]
    monkeypatch.setattr(units, "MOST_UNITS", 2)
    told = put(writer, table(*[str(n) for n in range(25)]), batch=1)
    with pytest.raises(TooManyUnits, match="the batch has 3 units of work, 2 can be committed"):
        writer.commit([told], 1)
    assert len(out(bench)) == 25 and bench.qm.recover() == []


def test_columns_become_the_fields_of_messages(bench: Bench, put: Put) -> None:
    columns = {
        "body": "binary", "queue": "string", "priority": "int", "persistent": "boolean",
        "correl_id": "binary", "expiry": "double", "reply_to_q": "string", "format": "string",
        "msg_type": "int", "group_id": "binary", "msg_seq_number": "int", "sequence": "bigint",
        "properties": "map<string,string>",
    }  # fmt: skip
    bench.qm.alter("QLOCAL", "OUT", defprty=3, defpsist=False)
    rows_ = {
        "body": [b"1", b"2"], "queue": ["OUT", "IN"], "priority": [8, None],
        "persistent": [True, None], "correl_id": [b"c" * 24, None], "expiry": [60.0, None],
        "reply_to_q": ["REPLIES", None], "format": ["MQSTR", None], "msg_type": [1, None],
        "group_id": [b"g" * 24, None], "msg_seq_number": [5, None], "sequence": [99, 98],
        "properties": pa.nulls(2, pa.map_(pa.string(), pa.string())),
    }  # fmt: skip
    writer = batch_writer(bench, columns)
    writer.commit([put(writer, pa.table(rows_))])
    first, second = bench.target.get(), bench.source.get()
    assert (first.data, first.priority, first.persistent, first.correl_id) == (
        b"1", 8, True, b"c" * 24,
    )  # fmt: skip
    assert first.expiry is not None and 59 < first.expiry <= 60
    assert (first.reply_to_q, first.format, first.msg_type) == ("REPLIES", "MQSTR", 1)
    assert (first.group_id, first.msg_seq_number) == (b"g" * 24, 5)
    assert (second.data, second.priority, second.persistent) == (b"2", 0, True)  # of IN
    assert (second.correl_id, second.expiry, second.reply_to_q) == (bytes(24), None, "")
    assert (second.format, second.msg_type, second.group_id) == ("", 8, bytes(24))


def test_identifiers_and_texts_of_any_length_become_the_padded_fields(
    bench: Bench, put: Put
) -> None:
    ids = [None, b"", b"x", b"\0y", b"i" * 24, b"z\0"] * 30
    texts = ["", None, "A", "B.C", "R" * 48, "D"] * 30
    columns = {
        "body": "binary", "correl_id": "binary", "group_id": "binary", "reply_to_q": "string",
    }  # fmt: skip
    made = pa.table({"body": [b"1"] * 180, "correl_id": ids, "group_id": ids, "reply_to_q": texts})
    writer = batch_writer(bench, columns, queue="OUT")
    writer.commit([put(writer, made.slice(1, 178))])
    messages = bench.target.get_batch(200)
    assert len(messages) == 178
    for message, name, text in zip(messages, ids[1:], texts[1:], strict=False):
        assert message.correl_id == message.group_id == (name or b"").ljust(24, b"\0")
        assert message.reply_to_q == (text or "")
        assert bool(message.msg_flags & 8) == (message.group_id != bytes(24))
    for wrong in ({"correl_id": [b"i" * 25]}, {"reply_to_q": ["R" * 49]}):
        text = rf"{next(iter(wrong))} has .* \(row 0 of partition 0"
        with pytest.raises(SourceError, match=text):
            put(writer, pa.table({"body": [b"1"], **wrong}))


BATCH_HEAD = 64  # of the next batch of the journal, which has nothing in it yet


def test_units_are_durable_when_the_driver_or_spark_learns_their_names(
    bench: Bench, put: Put
) -> None:
    bench.qm.alter("QMGR", maxumsgs=10)
    bench.fill(0, 35)
    reader = bench.reader()
    end = plan(reader, START)
    reader.partitions(START, end)
    status = bench.qm.status()
    assert status.tail_lsn - status.durable_lsn <= BATCH_HEAD and len(bench.qm.recover()) == 4
    reader.stop()
    put(stream_writer(bench), table(*["x"] * 35))
    status = bench.qm.status()
    assert status.tail_lsn - status.durable_lsn <= BATCH_HEAD and len(bench.qm.recover()) == 8


def test_rows_that_end_with_an_error_leave_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.qm.alter("QMGR", maxumsgs=10)
    writer = stream_writer(bench)
    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: Task("query-1", 0, 0))

    def failing() -> Any:
        for number in range(40):
            yield from table(*[str(number)] * 3).to_batches()
        raise RuntimeError("no more rows")

    with pytest.raises(RuntimeError, match="no more rows"):
        writer.write(failing())
    assert bench.qm.recover() == [] and out(bench) == []
    assert bench.target.status().uncommitted == 0 and bench.qm.status().handles <= 2


def test_a_priority_above_the_highest_is_counted_and_no_error(bench: Bench, put: Put) -> None:
    writer = batch_writer(bench, {"body": "binary", "priority": "int"}, queue="OUT")
    told = put(writer, pa.table({"body": [b"1", b"2"], "priority": [12, 3]}))
    assert told.warnings == 1
    with pytest.warns(RuntimeWarning, match=r"1 of 2 messages were put .* \(2049\)"):
        writer.commit([told])
    assert out(bench) == [b"1", b"2"]


@pytest.mark.parametrize(
    ("columns", "rows_", "text"),
    [
        ({"value": "string"}, {"value": ["a", None]}, "the body of a row is null"),
        (
            {"value": "string", "queue": "string"},
            {"value": ["a"], "queue": [None]},
            "a queue is null, and there is no option queue",
        ),
    ],
)
def test_values_that_no_message_can_have_are_refused_and_nothing_is_put(
    bench: Bench, put: Put, columns: dict[str, str], rows_: dict[str, Any], text: str
) -> None:
    given = {} if "queue" in columns else {"queue": "OUT"}
    writer = batch_writer(bench, columns, **given)
    made = pa.table({name: pa.array(values, pa.string()) for name, values in rows_.items()})
    with pytest.raises(SchemaError, match=text):
        put(writer, made)
    assert out(bench) == [] and bench.qm.recover() == []


def test_an_unknown_queue_is_refused_before_anything_is_put(bench: Bench, put: Put) -> None:
    writer = stream_writer(bench, queue="NONE")
    for given in (table("a"), table()):
        with pytest.raises(SourceError, match="queue NONE: MQRC_UNKNOWN_OBJECT_NAME"):
            put(writer, given)
    with pytest.raises(SourceError, match="queue NONE: MQRC_UNKNOWN_OBJECT_NAME"):
        batch_writer(bench, TEXT, queue="NONE")


def test_an_abort_does_not_fail_where_the_queue_manager_has_gone(bench: Bench, put: Put) -> None:
    told = put(stream_writer(bench), table("a"))
    writer = stream_writer(bench, queueManager="GONE")  # Spark makes one for each of both ends
    with pytest.raises(SourceError, match="there is no queue manager GONE"):
        writer.commit([told], 0)
    with pytest.warns(RuntimeWarning, match="there is no queue manager GONE"):
        writer.abort([told], 0)  # a failure would hide that of the commit
    writer.abort([None], 0)
    stream_writer(bench).abort([told], 0)
    assert out(bench) == [] and bench.qm.recover() == []


def test_a_queue_of_a_row_that_is_not_there_undoes_the_task(bench: Bench, put: Put) -> None:
    writer = batch_writer(bench, {"value": "string", "queue": "string"})
    with pytest.raises(SourceError, match="queue NONE of a row: MQRC_UNKNOWN_OBJECT_NAME"):
        put(writer, pa.table({"value": ["a", "b"], "queue": ["OUT", "NONE"]}))
    assert out(bench) == [] and bench.qm.recover() == []


def test_the_ledger_has_one_entry_for_each_owner(bench: Bench, put: Put) -> None:
    writer = stream_writer(bench)
    for batch in range(4):
        writer.commit([put(writer, table("a"), batch=batch)], batch)
    bench.fill(0, 2)
    reader = bench.reader()
    end = plan(reader, START)
    rows(reader, START, end)
    reader.commit(end)
    reader.stop()
    with bench.qm.open(ledger.QUEUE, input=False) as queue:
        assert queue.depth == 2
    with ledger.ledger(bench.qm) as book:
        sink = book.read("sink:query-1")
        stream = book.read(f"stream:{end['stream']}")
        assert sink is not None and sink["version"] == 3
        assert stream is not None and stream["unit"] == 1 and stream["queue"] == "IN"
        assert book.read("stream:nobody") is None


def test_entries_of_the_ledger_do_not_keep_the_journal(
    bench: Bench, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.fill(0, 1)
    idle, other = bench.reader(), bench.reader()
    end = plan(idle, START)
    rows(idle, START, end)
    idle.commit(end)
    writer = stream_writer(bench)
    writer.commit([put(writer, table("a"))], 0)
    bench.target.get_batch(9)

    def work() -> int:
        bench.target.put_batch([b"x" * (1 << 20)], persistent=True)
        bench.target.get_batch(1)
        return bench.qm.status().segments

    # two intervals between checkpoints, of a quarter of the limit each, and what is put meanwhile
    assert max(work() for _ in range(96)) < 48
    with ledger.ledger(bench.qm) as book:
        stream, sink = book.read(f"stream:{end['stream']}"), book.read("sink:query-1")
        assert stream is not None and stream["unit"] == 1
        assert sink is not None and sink["version"] == 0
    idle.stop()
    other.stop()


def test_a_stream_empties_a_journal_that_takes_no_message_any_more(home: Path) -> None:
    small = {"segment_size": 256 << 10, "journal_limit": 1 << 20, "ring_size": 1 << 20}
    penstock.create("QM1", home, **small)
    with penstock.connect("QM1", home) as qm:
        bench = Bench(qm, home)
        bench.fill(0, 1)
        reader = bench.reader(maxMessagesPerTrigger="10")
        at = plan(reader, START)
        rows(reader, START, at)
        made: list[bytes] = []
        for size in (4000, 0):
            with contextlib.suppress(penstock.StorageMediumFull):
                while True:
                    bench.source.put(b"%04d" % len(made) + bytes(size), persistent=True)
                    made.append(b"%04d" % len(made))
        found: list[bytes] = []
        while (end := plan(reader, at)) != at:  # commits the previous ones
            found += [body[:4] for body in rows(reader, at, end)]
            at = end
        assert found == made and len(made) > 50 and qm.recover() == []
        bench.source.put(bytes(4000), persistent=True)
        reader.stop()
    penstock.delete("QM1", home)


def test_a_batch_that_cannot_even_be_dropped_warns_and_keeps_its_own_error(
    bench: Bench, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = stream_writer(bench)
    told = put(writer, table("a"))

    def full(*_: Any) -> None:
        raise penstock.StorageMediumFull(2192, "no room")

    monkeypatch.setattr(units, "back_out", full)
    text = r"are left prepared, .*: queue manager QM1, queue OUT: .*2192.* PSNK:query-1\.0:"
    with pytest.warns(RuntimeWarning, match=text):
        writer.abort([told], 0)
    monkeypatch.undo()
    writer.commit([put(writer, table("a"))], 0)  # the batch again: backs out the old units
    assert out(bench) == [b"a"] and bench.qm.recover() == []


def test_what_was_committed_stays_so_where_the_end_of_the_queue_manager_cannot_be_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = options.parse({**bench.base, "queue": "OUT"}, options.WRITE)
    detach = penstock.QueueManager.detach

    def full(qm: penstock.QueueManager, **how: bool) -> None:
        detach(qm, **how)
        raise penstock.StorageMediumFull(2192, "writing a checkpoint")

    monkeypatch.setattr(penstock.QueueManager, "detach", full)
    with engine.connected(given) as qm, qm.queue("OUT") as queue:
        queue.put(b"done")
    monkeypatch.undo()
    assert out(bench) == [b"done"]


def test_an_aborted_batch_write_leaves_no_unit_of_an_unreported_task(
    bench: Bench, put: Put
) -> None:
    writer = batch_writer(bench, TEXT, queue="OUT")
    other = batch_writer(bench, TEXT, queue="OUT")
    told = put(writer, table("told"))
    put(writer, table("not told"), 1)
    kept = put(other, table("another write"))
    writer.abort([told, None])
    assert len(bench.qm.recover()) == 1
    other.commit([kept])
    assert out(bench) == [b"another write"] and bench.qm.recover() == []
