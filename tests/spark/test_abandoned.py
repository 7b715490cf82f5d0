"""Messages that a stream took which does not run any more.

Steps are taken as in test_steps.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from spark_steps import START, Bench, plan, rows

import penstock
from penstock.spark.base import units
from penstock.spark.base.errors import SourceError
from penstock.spark.source import abandoned


def taken(bench: Bench, reader: Any) -> dict[str, Any]:
    """The offset of a micro-batch of three of five messages, which is prepared."""
    bench.fill(0, 5)
    end = plan(reader, START)
    assert len(rows(reader, START, end)) == 3
    return end


def left_by_a_stream(bench: Bench) -> dict[str, Any]:
    """The same, and the stream has ended."""
    reader = bench.reader(maxMessagesPerTrigger="3")
    end = taken(bench, reader)
    reader.stop()
    return end


def test_a_new_stream_beside_abandoned_messages_ends_and_says_what_to_do(bench: Bench) -> None:
    end = left_by_a_stream(bench)
    new = bench.reader()
    with pytest.raises(SourceError) as caught:
        plan(new, START)
    assert str(caught.value) == (
        "queue manager QM1, queue IN: 3 messages are prepared for streams that do not run "
        f"({end['stream']}): continue these from their checkpoints, return the messages with "
        f"`penstock resolve QM1 --stream {end['stream']} --backout`, or set option onAbandoned to "
        "backout or ignore"
    )
    assert bench.left() == [b"0003", b"0004"] and len(bench.qm.recover()) == 1
    new.stop()
    own = bench.reader()
    assert own.initialOffset() == START  # Spark asks for it when the first one is planned again
    assert rows(own, START, end) == [b"0000", b"0001", b"0002"]
    assert plan(own, end)["unit"] == 2
    own.stop()


def test_abandoned_messages_are_returned_when_the_option_says_so(bench: Bench) -> None:
    left_by_a_stream(bench)
    new = bench.reader(onAbandoned="backout")
    with pytest.warns(RuntimeWarning, match="3 messages are prepared .* are back on the queue"):
        end = plan(new, START)
    assert bench.qm.recover() == []
    assert rows(new, START, end) == [b"%04d" % number for number in range(5)]
    new.stop()


def test_abandoned_messages_are_left_and_counted_when_the_option_says_so(bench: Bench) -> None:
    left_by_a_stream(bench)
    new = bench.reader(onAbandoned="ignore")
    with pytest.warns(RuntimeWarning, match="3 messages are prepared .* does not see them"):
        end = plan(new, START)
    told = new.reportLatestOffset()
    assert told is not None and (told["depth"], told["inDoubt"], told["abandoned"]) == (2, 0, 3)
    assert plan(new, START)["unit"] == 1  # and says so once
    assert rows(new, START, end) == [b"0003", b"0004"]
    new.stop()


def test_messages_of_a_stream_that_runs_are_not_abandoned(bench: Bench) -> None:
    one = bench.reader(maxMessagesPerTrigger="3")
    end = taken(bench, one)
    two = bench.reader()
    assert plan(two, START)["unit"] == 1
    told = two.reportLatestOffset()
    assert told is not None and told["abandoned"] == 0
    one.stop()
    told = two.reportLatestOffset()
    assert told is not None and told["abandoned"] == 3
    again = bench.reader()
    assert plan(again, end)["unit"] == 2  # it runs again
    told = two.reportLatestOffset()
    assert told is not None and told["abandoned"] == 0
    again.stop()
    two.stop()


def test_messages_of_another_queue_and_other_units_are_not_abandoned_ones(bench: Bench) -> None:
    left_by_a_stream(bench)
    bench.source.get(syncpoint=True)
    bench.qm.prepare(penstock.Xid(1, b"an application's"))
    other = bench.reader(queue="OUT")
    assert plan(other, START) == START
    other.stop()
    new = bench.reader()
    with pytest.raises(SourceError, match="3 messages are prepared"):
        plan(new, START)
    new.stop()


def test_they_are_found_where_the_stream_was_killed_in_its_first_or_a_later_commit(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    reader = bench.reader(maxMessagesPerTrigger="3")
    first = taken(bench, reader)
    second = {**first, "unit": 2}
    for end in (first, second):
        with monkeypatch.context() as patch:
            patch.setattr(penstock.QueueManager, "commit_prepared", die)
            with pytest.raises(KeyboardInterrupt):
                reader.commit(end)
        reader.stop()
        assert len(bench.qm.recover()) == 2  # the second one has the entry of the ledger
        new = bench.reader()
        with pytest.raises(SourceError, match=f"[23] messages are prepared.*{end['stream']}"):
            plan(new, START)
        new.stop()
        reader = bench.reader(maxMessagesPerTrigger="2", eagerCommit="false")
        if end is first:
            reader.commit(first)
            assert len(rows(reader, first, second)) == 2
    reader.stop()


def test_a_stream_runs_until_its_process_has_ended(qm: penstock.QueueManager) -> None:
    name = units.new_id()
    code = f"""
from pathlib import Path
from penstock.spark.source import abandoned
abandoned.mark(Path({str(qm.path)!r}), {name!r})
print(flush=True)
input()
"""
    assert not abandoned.is_running(qm.path, name)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"\n"
        assert abandoned.is_running(qm.path, name)
        assert not abandoned.is_running(qm.path, units.new_id())
        process.kill()
    assert not abandoned.is_running(qm.path, name)


def test_a_lock_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        abandoned.mark(tmp_path, "s")
