"""The pipelines on a queue manager: what they find is what was done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock.spark.journal import columns
from penstock.spark.pipelines.audit import COLUMNS, audit
from penstock.spark.pipelines.journal import RECORD
from penstock.spark.pipelines.replay import KEPT

if TYPE_CHECKING:
    from spark_desk import Desk


def test_the_columns_that_are_read_have_the_types_that_the_journal_gives_them() -> None:
    known = columns()
    for wanted in (COLUMNS, RECORD, KEPT):
        assert {name: known[name] for name in wanted} == dict(wanted)


def place(desk: Desk, **more: Any) -> dict[str, Any]:
    return {"queueManager": "QM1", "home": str(desk.home), **more}


def test_an_audit_of_a_queue_manager_finds_what_was_done(desk: Desk) -> None:
    qm = desk.qm
    with qm.queue("A") as a, qm.queue("B") as b:
        for number in range(10):
            a.put(b"%d" % number, priority=number)
        a.put(b"not in the journal", persistent=False, priority=9)
        for _ in range(4):  # 9 comes before the one that is not persistent
            a.get()
        with pytest.raises(ZeroDivisionError), qm.transaction():
            a.get()
            b.put(b"never")
            raise ZeroDivisionError
        xids = [penstock.Xid(1, b"audit", bytes([n])) for n in range(3)]
        for xid in xids:
            a.get(syncpoint=True)
            b.put(b"prepared", syncpoint=True)
            qm.prepare(xid)
        qm.commit_prepared(xids[0], xids[1])
        qm.backout_prepared(xids[2])
        found = audit(desk.spark, place(desk))
        rows = {row.queue: row for row in found.queues.collect()}
        assert (rows["A"].puts, rows["A"].gets, rows["A"].never_got, rows["A"].bytes) == (
            10,
            5,
            5,
            10,
        )
        assert (rows["B"].puts, rows["B"].gets, rows["B"].never_got) == (2, 0, 2)
        assert rows["A"].backed_out == rows["B"].backed_out == 2
        assert 0 <= rows["A"].p50 <= rows["A"].p99 <= rows["A"].longest < 3600
        left = [(row.queue, row.priority) for row in found.never_got.collect()]
        assert sorted(left) == [("A", n) for n in range(5)] + [("B", 0)] * 2
        assert [(row.puts, row.gets) for row in found.backed_out.collect()] == [(1, 1), (1, 1)]
        [putter] = found.putters.collect()
        assert putter.messages == 12 and "python" in putter.put_appl_name
        assert found.gaps.collect() == []
