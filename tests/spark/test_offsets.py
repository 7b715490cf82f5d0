"""The offsets of a stream belong to its queue.

Steps are taken as in test_steps.py.
"""

from __future__ import annotations

import pytest
from spark_steps import START, Bench, plan, rows

from penstock.spark.base.errors import SourceError


def test_a_checkpoint_of_another_queue_is_refused_and_nothing_is_taken(bench: Bench) -> None:
    reader = bench.reader()
    made = bench.fill(0, 3)
    bench.target.put(b"other", persistent=True)
    first = plan(reader, START)
    assert first["queue"] == "IN"
    rows(reader, START, first)
    reader.stop()
    other = bench.reader(queue="OUT")
    text = (
        "the checkpoint belongs to a stream over queue IN, this one is over queue OUT: a stream "
        "over other queues needs a checkpoint of its own"
    )
    for step in (
        lambda: plan(other, first),
        lambda: other.partitions(START, first),
        lambda: other.partitions(first, {**first, "unit": 2}),
        lambda: other.commit(first),
    ):
        with pytest.raises(SourceError) as caught:
            step()
        assert str(caught.value) == text
    assert bench.target.depth == 1 and len(bench.qm.recover()) == 1
    other.stop()
    own = bench.reader()
    assert rows(own, START, first) == made
    own.stop()
