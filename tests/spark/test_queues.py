"""Several queues in one stream, step by step: named, or by a pattern.

See test_steps.py for how steps are taken without Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from spark_steps import START, Bench, plan

import penstock
from penstock.constants import ReasonCode
from penstock.mqi import MQDLH
from penstock.spark.base import ledger, options, units
from penstock.spark.base.errors import OptionError, SourceError
from penstock.spark.base.schema import MESSAGE, struct_type
from penstock.spark.source import queues
from penstock.spark.source.partitions import Slice
from penstock.spark.source.stream import StreamReader

Row = tuple[str, bytes]


@pytest.fixture
def make(bench: Bench) -> Callable[..., StreamReader]:
    """Makes readers; by default over the queues A and B, which exist."""
    define(bench, "A", "B")

    def reader(**given: str) -> StreamReader:
        if "queuePattern" not in given:
            given = {"queue": "A,B", **given}
        read = options.parse({**bench.base, **given}, options.STREAM)
        return StreamReader(read, struct_type(MESSAGE))

    return reader


Make = Callable[..., StreamReader]


def define(bench: Bench, *names: str, **attributes: Any) -> None:
    for name in names:
        bench.qm.define("QLOCAL", name, **attributes)


def put(bench: Bench, name: str, *bodies: bytes, **fields: Any) -> list[Row]:
    """Puts the bodies; the rows that a stream makes of them."""
    with bench.qm.queue(name) as queue:
        queue.put_batch(list(bodies), **{"persistent": True, **fields})
    return [(name, body) for body in bodies]


def left(bench: Bench, name: str) -> list[bytes]:
    with bench.qm.open(name, input=False, browse=True, output=False) as queue:
        return [message.data for message in queue.browse()]


def rows(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[Row]:
    """Queue and body of each row of a micro-batch."""
    found: list[Row] = []
    for part in reader.partitions(start, end):
        assert isinstance(part, Slice)
        for batch in reader.read(part):
            names, bodies = batch.column("queue").to_pylist(), batch.column("body").to_pylist()
            found += zip(names, bodies, strict=True)
    return found


def numbered(count: int, word: bytes = b"") -> list[bytes]:
    return [b"%s%03d" % (word, n) for n in range(count)]


# ---- what a micro-batch has ----


def test_one_micro_batch_has_the_messages_of_all_queues_and_is_committed_as_one(
    bench: Bench, make: Make
) -> None:
    made = put(bench, "A", *numbered(3)) + put(bench, "B", *numbered(2))
    reader = make()
    end = plan(reader, START)
    assert end["queue"] == "A,B" and end["parts"] == {"A": 1, "B": 1}
    assert rows(reader, START, end) == made
    assert sorted(xid.bqual for xid in bench.qm.recover()) == [b"1.0.A", b"1.0.B"]
    reader.commit(end)
    assert bench.qm.recover() == [] and left(bench, "A") == left(bench, "B") == []
    (entry,) = ledger.entries(bench.qm)
    assert (entry["unit"], entry["queue"]) == (1, "A,B")
    reader.stop()


def test_queues_without_messages_have_no_part(bench: Bench, make: Make) -> None:
    reader = make()
    assert plan(reader, START) == START
    made = put(bench, "B", b"1")
    end = plan(reader, START)
    assert end["parts"] == {"B": 1} and rows(reader, START, end) == made
    put(bench, "A", b"2", persistent=False)
    only = make(nonPersistent="exclude")
    assert plan(only, end) == end
    assert plan(reader, end)["parts"] == {"A": 1}
    only.stop()
    reader.stop()


def test_many_queues_share_few_partitions(bench: Bench, make: Make) -> None:
    names = [f"MANY.{n:03d}" for n in range(60)]
    define(bench, *names)
    made = [row for name in names for row in put(bench, name, b"1", b"2")]
    reader = make(queuePattern="MANY.*", minPartitions="3")
    end = plan(reader, START)
    parts = reader.partitions(START, end)
    assert len(parts) == 3 and rows(reader, START, end) == made
    reader.commit(end)
    assert bench.qm.recover() == []
    reader.stop()


def test_the_units_of_a_queue_are_as_many_as_its_messages_need(bench: Bench, make: Make) -> None:
    bench.qm.alter("QMGR", maxumsgs=4)
    made = []
    for first in (0, 4):
        made += put(bench, "A", *numbered(8)[first : first + 4])
    made += put(bench, "A", b"last") + put(bench, "B", b"one")
    reader = make()
    end = plan(reader, START)
    assert end["parts"] == {"A": 3, "B": 1} and rows(reader, START, end) == made
    reader.commit(end)
    assert bench.qm.recover() == []
    reader.stop()


def test_order_arrival_has_the_rows_of_each_queue_in_the_order_of_their_puts(
    bench: Bench, make: Make
) -> None:
    made = []
    for n in range(30):
        made += put(bench, "A", b"%03d" % n, priority=n % 7)
    made += put(bench, "B", b"low", priority=0) + put(bench, "B", b"high", priority=9)
    reader = make(order="arrival", minPartitions="4")
    assert rows(reader, START, plan(reader, START)) == made
    reader.stop()


# ---- fair shares ----


@pytest.mark.parametrize(
    ("wanted", "limit", "expected"),
    [
        ({"A": 100, "B": 2, "C": 100}, 10, {"A": 4, "B": 2, "C": 4}),
        ({"A": 1, "B": 1}, 10, {"A": 1, "B": 1}),
        ({"A": 50, "B": 50, "C": 50}, 10, {"A": 3, "B": 3, "C": 4}),
        ({"A": 7}, 1 << 62, {"A": 7}),
        ({"A": 9, "B": 9}, 2, {"A": 1, "B": 1}),
    ],
)
def test_a_limit_is_shared_and_what_one_does_not_need_is_for_the_others(
    wanted: dict[str, int], limit: int, expected: dict[str, int]
) -> None:
    assert queues.shares(wanted, limit) == expected


def test_a_deep_queue_does_not_keep_the_others_waiting(bench: Bench, make: Make) -> None:
    put(bench, "A", *numbered(500))
    put(bench, "B", b"1", b"2")
    reader = make(maxMessagesPerTrigger="10")
    found = rows(reader, START, plan(reader, START))
    assert [name for name, _ in found] == ["A"] * 8 + ["B"] * 2
    reader.stop()
    by_bytes = make(maxBytesPerTrigger="30", onAbandoned="ignore")  # of bodies of three bytes
    with pytest.warns(RuntimeWarning, match="onAbandoned=ignore"):
        assert len(rows(by_bytes, START, plan(by_bytes, START))) == 10
    by_bytes.stop()


def test_where_queues_are_more_than_messages_allowed_they_take_turns(
    bench: Bench, make: Make
) -> None:
    names = [f"T.{n}" for n in range(5)]
    define(bench, *names)
    for name in names:
        put(bench, name, *numbered(4))
    reader = make(queuePattern="T.*", maxMessagesPerTrigger="2")
    start, seen = START, []
    for _ in range(5):
        end = plan(reader, start)
        found = rows(reader, start, end)
        assert len(found) == 2
        seen += [name for name, _ in found]
        start = end
    assert sorted(seen) == sorted(names * 2)
    reader.stop()


# ---- deaths and latecomers ----


def test_a_driver_that_dies_between_two_queues_leaves_the_same_micro_batch(
    bench: Bench, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = put(bench, "A", *numbered(3)) + put(bench, "B", *numbered(2))
    reader = make()
    end = plan(reader, START)
    prepare = penstock.QueueManager.prepare
    calls: list[object] = []

    def die_at_the_second(self: Any, xid: Any, **given: Any) -> None:
        calls.append(xid)
        if len(calls) == 2:
            raise KeyboardInterrupt
        prepare(self, xid, **given)

    with monkeypatch.context() as patch:
        patch.setattr(penstock.QueueManager, "prepare", die_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            reader.partitions(START, end)
    assert len(bench.qm.recover()) == 1
    reader.stop()
    again = make()
    assert rows(again, START, end) == made
    again.commit(end)
    assert bench.qm.recover() == []
    again.stop()


def test_what_was_taken_before_the_log_had_it_is_found_by_queue(bench: Bench, make: Make) -> None:
    put(bench, "A", b"first")
    reader = make()
    start = plan(reader, START)
    rows(reader, START, start)
    made = put(bench, "A", *numbered(3)) + put(bench, "B", *numbered(2))
    end = plan(reader, start)
    reader.stop()  # waits for what it takes ahead; the log has no offset of it
    put(bench, "B", b"later")
    again = make()
    assert plan(again, start) == end and rows(again, start, end) == made
    assert rows(again, end, plan(again, end)) == [("B", b"later")]
    again.stop()


def test_a_part_that_a_late_driver_adds_to_a_micro_batch_goes_back_on_its_queue(
    bench: Bench, make: Make
) -> None:
    made = put(bench, "A", *numbered(3))
    reader = make()
    end = plan(reader, START)
    assert rows(reader, START, end) == made
    put(bench, "B", b"1", b"2")
    with bench.qm.open("B", input=True) as queue:  # taken for the same number, by another plan
        queue.get(syncpoint=True)
        bench.qm.prepare(units.stream_unit(end["stream"], 1, units.Part("B", 0)))
    assert rows(reader, START, end) == made
    reader.commit(end)
    assert bench.qm.recover() == [] and left(bench, "B") == [b"1", b"2"]
    reader.stop()


def test_a_new_stream_over_one_queue_finds_what_a_stream_over_several_left(
    bench: Bench, make: Make
) -> None:
    put(bench, "A", b"1")
    put(bench, "B", b"2")
    reader = make()
    rows(reader, START, plan(reader, START))
    reader.stop()
    other = make(queue="IN")
    assert plan(other, START) == START
    other.stop()
    new = make(queuePattern="B*")
    with pytest.raises(SourceError, match=r"queues B\*: 2 messages are prepared for streams that"):
        plan(new, START)
    new.stop()
    new = make(queue="B", onAbandoned="backout")
    with pytest.warns(RuntimeWarning, match="they are back on the queue"):
        assert plan(new, START)["parts"] == {"B": 1}
    assert left(bench, "A") == [b"1"] and left(bench, "B") == [b"2"]
    new.stop()


# ---- checkpoints ----


@pytest.mark.parametrize(
    ("given", "is_taken"),
    [
        ({"queue": "B,A"}, True),
        ({"queue": "IN,A,B"}, True),
        ({"queuePattern": "?"}, True),
        ({"queue": "A"}, False),
        ({"queuePattern": "A*"}, False),
        ({"queue": "IN"}, False),
    ],
)
def test_a_checkpoint_is_continued_over_the_same_queues_or_more(
    bench: Bench, make: Make, given: dict[str, str], is_taken: bool
) -> None:
    made = put(bench, "A", b"1") + put(bench, "B", b"2")
    reader = make()
    end = plan(reader, START)
    rows(reader, START, end)
    reader.stop()
    other = make(**given)
    if is_taken:
        assert rows(other, START, end) == made
        assert plan(other, end) == end  # and so it is committed
        assert bench.qm.recover() == []
    else:
        with pytest.raises(SourceError, match="belongs to a stream over queues A,B, this one"):
            plan(other, end)
        assert len(bench.qm.recover()) == 2
    other.stop()


def test_a_checkpoint_of_a_pattern_is_of_that_pattern(bench: Bench, make: Make) -> None:
    put(bench, "A", b"1")
    reader = make(queuePattern="A*")
    end = plan(reader, START)
    assert end["queuePattern"] == "A*" and "queue" not in end
    reader.stop()
    for given in ({"queue": "A"}, {"queuePattern": "A"}):
        other = make(**given)
        with pytest.raises(SourceError, match=r"over queues A\*, this one is over queues? A:"):
            plan(other, end)
        other.stop()


# ---- patterns ----


def test_a_pattern_takes_queues_that_are_defined_later(
    bench: Bench, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(queues, "_LOOK_SHARE", 0.0)
    with pytest.warns(RuntimeWarning, match="no queue yet that fits queuePattern NEW"):
        reader = make(queuePattern="NEW.?")
        assert reader.initialOffset() == START
    assert plan(reader, START) == START
    define(bench, "NEW.A", "NEW.AB", "NEW.B")
    made = put(bench, "NEW.A", b"1") + put(bench, "NEW.B", b"2")
    put(bench, "NEW.AB", b"3")
    assert rows(reader, START, plan(reader, START)) == made
    reader.stop()


def test_a_pattern_leaves_out_what_nobody_means_by_it(bench: Bench, make: Make) -> None:
    define(bench, "P.DEAD", "P.POISON", "P.LETTERS")
    define(bench, "P.FAR", usage="XMITQ")
    define(bench, "P.ONE", boqname="P.POISON")
    bench.qm.alter("QMGR", deadq="P.DEAD")
    with ledger.ledger(bench.qm):
        pass  # the queue is there
    choice = queues.QueueChoice

    def fit(pattern: str) -> list[str]:
        return queues.fitting(bench.qm, choice(None, pattern), "P.LETTERS")

    assert fit("P.*") == ["P.ONE"]
    assert fit("*") == ["A", "B", "IN", "OUT", "P.ONE"]
    assert ledger.QUEUE not in fit("SYSTEM.*") and "SYSTEM.DEFAULT.LOCAL.QUEUE" in fit("SYSTEM.*")
    reader = make(queuePattern="P.*")
    put(bench, "P.POISON", b"1")
    assert plan(reader, START) == START
    reader.stop()


def test_a_queue_that_becomes_the_boqname_of_another_is_left_out_from_then_on(
    bench: Bench, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(queues, "_LOOK_SHARE", 0.0)
    reader = make(queuePattern="?")
    reader.initialOffset()
    bench.qm.alter("QLOCAL", "A", boqname="B")
    put(bench, "B", b"1")
    assert plan(reader, START) == START
    reader.stop()


def test_a_planned_queue_that_was_deleted_has_no_rows_in_a_pattern_and_ends_a_named_one(
    bench: Bench, make: Make
) -> None:
    made = put(bench, "A", b"1")
    put(bench, "B", b"2")
    reader = make(queuePattern="?")
    end = plan(reader, START)
    named = {**end, "queue": "A,B"}
    del named["queuePattern"]
    reader.stop()
    bench.qm.clear("B")
    bench.qm.delete("QLOCAL", "B")
    by_name = make()
    with pytest.raises(SourceError, match=r"queue B: .*2085"):
        by_name.partitions(START, named)
    by_name.stop()
    again = make(queuePattern="?")
    assert rows(again, START, end) == made
    again.commit(end)
    assert bench.qm.recover() == []
    again.stop()


def test_available_now_takes_no_message_of_a_queue_that_is_defined_later(
    bench: Bench, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(queues, "_LOOK_SHARE", 0.0)
    made = put(bench, "A", b"1")
    reader = make(queuePattern="?")
    reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    put(bench, "A", b"2")
    put(bench, "B", b"3")
    define(bench, "C")
    put(bench, "C", b"4")
    end = plan(reader, START)
    assert rows(reader, START, end) == made
    assert plan(reader, end) == end
    reader.stop()


# ---- per queue: poison, bad bodies; options ----


def test_each_queue_has_its_own_threshold_and_backout_queue(bench: Bench, make: Make) -> None:
    define(bench, "POISON.A", "POISON.B")
    bench.qm.alter("QLOCAL", "A", bothresh=1, boqname="POISON.A")
    bench.qm.alter("QLOCAL", "B", bothresh=2, boqname="POISON.B")
    for name in ("A", "B"):
        put(bench, name, b"bad", priority=9)
        with bench.qm.open(name, input=True) as queue:
            queue.get(syncpoint=True)
            bench.qm.backout()
    made = put(bench, "A", b"good")
    reader = make()
    end = plan(reader, START)
    assert {name: rule[0] for name, rule in end["aside"].items()} == {"A": 1, "B": 2}
    with pytest.warns(RuntimeWarning, match="queue A, micro-batch 1 .* 1 messages have reached"):
        assert rows(reader, START, end) == [*made, ("B", b"bad")]
    again = make()
    assert rows(again, START, end) == [*made, ("B", b"bad")]
    again.stop()
    reader.commit(end)
    assert left(bench, "POISON.A") == [b"bad"] and left(bench, "POISON.B") == []
    assert bench.qm.recover() == []
    reader.stop()


def test_a_bad_body_goes_to_the_dead_letter_queue_with_the_name_of_its_queue(
    bench: Bench, make: Make
) -> None:
    define(bench, "LETTERS")
    put(bench, "A", b"\xff")
    put(bench, "B", b"\xfe")
    given = {"queue": "A,B", "onBadBody": "deadLetter", "deadLetterQueue": "LETTERS"}
    read = options.parse({**bench.base, **given}, options.STREAM)
    reader = StreamReader(read, struct_type({"queue": "string", "body": "string"}))
    end = plan(reader, START)
    with pytest.warns(RuntimeWarning, match="1 bodies could not be decoded"):
        assert rows(reader, START, end) == []
    reader.commit(end)
    found = []
    for data in left(bench, "LETTERS"):
        head = MQDLH().unpack(data[:172])
        assert head["Reason"] == ReasonCode.FORMAT_ERROR
        found.append((str(head["DestQName"]).strip(), data[172:]))
    assert found == [("A", b"\xff"), ("B", b"\xfe")]
    report = reader.reportLatestOffset()
    assert report is not None and report["badBodies"] == 2
    reader.stop()


def test_min_messages_counts_those_of_all_queues(bench: Bench, make: Make) -> None:
    reader = make(minMessages="5")
    put(bench, "A", *numbered(3))
    assert plan(reader, START) == START
    put(bench, "B", *numbered(2))
    assert plan(reader, START)["parts"] == {"A": 1, "B": 1}
    reader.stop()


def test_progress_names_the_queues_with_messages_the_deepest_first(
    bench: Bench, make: Make
) -> None:
    define(bench, "C")
    put(bench, "A", b"1")
    put(bench, "B", b"1", b"2", b"3")
    reader = make(queuePattern="?")
    report = reader.reportLatestOffset()
    assert report is not None and report["depth"] == 4 and report["queuePattern"] == "?"
    assert [(name, own["depth"]) for name, own in report["queues"].items()] == [("B", 3), ("A", 1)]
    assert all(own["oldestMessageAgeMs"] < 60_000 for own in report["queues"].values())
    assert report["commitAtEnd"]["queuePattern"] == "?"
    reader.stop()


def test_the_tasks_of_a_probe_open_the_queues(bench: Bench, make: Make) -> None:
    put(bench, "A", b"1")
    reader = make(probe="always")
    end = plan(reader, START)
    assert end == {"unit": 0, "queue": "A,B", "probe": 1}
    parts = reader.partitions(START, end)
    assert {tuple(part.queues) for part in parts} == {("A", "B")}  # type: ignore[attr-defined]
    assert [list(reader.read(part)) for part in parts] == [[]] * len(parts)
    reader.stop()


def test_a_queue_that_cannot_be_got_from_ends_the_stream_and_is_named(
    bench: Bench, make: Make
) -> None:
    put(bench, "A", b"1")
    bench.qm.define("QREMOTE", "FAR", rname="X", rqmname="QM2")
    for names in ("A,NONE", "A,FAR"):
        reader = make(queue=names)
        with pytest.raises(SourceError, match=f"queue {names[2:]}: "):
            reader.initialOffset()
        assert reader._qm is None and bench.qm.status().attached == 1
    bench.qm.alter("QLOCAL", "B", get="DISABLED")
    put(bench, "B", b"2")
    reader = make()
    with pytest.raises(SourceError, match=r"queue B: .*2016"):
        plan(reader, START)
    assert left(bench, "A") == [b"1"] and bench.qm.recover() == []
    reader.stop()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"queue": "A,,B"}, "option queue names '', which is no name"),
        ({"queue": "A B"}, "option queue names 'A B', which is no name"),
        ({"queuePattern": "A[B]"}, r"option queuePattern is 'A\[B\]'"),
        ({"queue": "A", "queuePattern": "B*"}, "only one of them chooses the queues"),
    ],
)
def test_what_names_no_queue_is_refused(bench: Bench, given: dict[str, str], text: str) -> None:
    with pytest.raises(OptionError, match=text):
        StreamReader(options.parse({**bench.base, **given}, options.STREAM), struct_type(MESSAGE))


def test_a_name_as_long_as_a_name_may_be_fits_into_the_name_of_a_unit(bench: Bench) -> None:
    part = units.Part("Q" * 48, 2046)
    xid = units.stream_unit(units.new_id(), 9_999_999_999, part)
    assert units.queue_of(xid) == part.queue
    found, _ = units.of_stream([xid], xid.gtrid.decode())
    assert found == {9_999_999_999: {part: xid}}
    tricky = units.stream_unit(xid.gtrid.decode(), 1, units.Part("aside.x", 0))
    assert units.queue_of(tricky) == "aside.x"
    assert units.asides([tricky], xid.gtrid.decode()) == {}
