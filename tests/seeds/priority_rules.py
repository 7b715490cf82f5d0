"""Requirements of the document about MQMD Priority, as behaviour of a queue manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paths
from clusters import ROUTE, Cluster

from penstock import mqi
from qmgr_fixture import FAILED, OK, WARNING, QmgrFixture

FIRST, REST = {"defprty": 5}, {"defprty": 3}
AS_Q_DEF = mqi.MQPRI_PRIORITY_AS_Q_DEF
EXCEEDS = (WARNING, mqi.MQRC_PRIORITY_EXCEEDS_MAXIMUM)
WRONG = (-(2**31), -100, -3, -2)
MAXIMUM = 9


def md(priority: int = AS_Q_DEF, **fields: Any) -> Any:
    return mqi.MQMD(Priority=priority, **fields)


class PriorityRules:
    """Rules about the field on a unix and, on demand, a z/OS queue manager."""

    def __init__(self, qmgr: QmgrFixture, zos: Callable[[], QmgrFixture]) -> None:
        self.qmgr = qmgr
        self._zos = zos

    @property
    def zos(self) -> QmgrFixture:
        """A z/OS queue manager, created on demand."""
        return self._zos()

    # ---- the values of a put ----

    def zero_and_above(self) -> None:
        """MQPUT and MQPUT1 take 0 and above; other negatives than -1 are 2050 and put nothing."""
        queue = self.qmgr.local()
        hobj = self.qmgr.opened(queue, mqi.MQOO_OUTPUT)
        for where in (hobj, queue):
            for value in range(MAXIMUM + 1):
                assert self.qmgr.put(where, md=md(value)) == (OK, 0), value
        for where in (hobj, queue):
            for value in WRONG:
                answer = self.qmgr.put(where, md=md(value))
                assert answer == (FAILED, mqi.MQRC_PRIORITY_ERROR), value
        assert self.qmgr.depth(queue) == 2 * (MAXIMUM + 1)

    def zero_is_lowest(self) -> None:
        """0 is delivered after everything else."""
        queue = self.qmgr.local()
        order = [0, 3, 9, 1, 0, 5, 2, 8, 4, 7, 6]
        for value in order:
            self.qmgr.send(queue, md=md(value))
        assert [g.priority for g in self.qmgr.drain(queue)] == sorted(order, reverse=True)

    def default_is_a_value_too(self) -> None:
        """-1 is taken by MQPUT and MQPUT1 and stands for the queue's default."""
        queue = self.qmgr.local(**FIRST)
        hobj = self.qmgr.opened(queue, mqi.MQOO_OUTPUT)
        for where in (hobj, queue):
            self.qmgr.send(where, md=md(-1))
        assert [g.priority for g in self.qmgr.drain(queue)] == [5, 5]
        assert AS_Q_DEF == -1

    # ---- AS_Q_DEF of a cluster queue ----

    def cluster_takes_the_instances_value(self) -> None:
        """The instance's DEFPRTY counts, not that of the cluster transmission queue."""
        qmgr = self.qmgr
        before = qmgr.attribute(ROUTE, mqi.MQIA_DEF_PRIORITY)
        qmgr.qm.alter("QLOCAL", ROUTE, **REST)
        try:
            sent = Cluster(qmgr, FAR=FIRST).put(md())
        finally:
            qmgr.qm.alter("QLOCAL", ROUTE, defprty=before)
        assert (sent.separate[0], sent.application[0]) == (5, AS_Q_DEF)

    def cluster_differing_is_unpredictable(self) -> None:
        """Each put takes the value of one of the instances, whichever; never anything else."""
        cluster = Cluster(
            self.qmgr, NORTH={"defprty": 2}, SOUTH={"defprty": 7}, EAST={"defprty": 4}
        )
        assert {cluster.put(md()).separate[0] for _ in range(6)} <= {2, 7, 4}

    def cluster_should_agree(self) -> None:
        """Instances that agree leave no message in the error log."""
        cluster = Cluster(self.qmgr, NORTH=FIRST, SOUTH=FIRST)
        assert {cluster.put(md()).separate[0] for _ in range(3)} == {5}
        assert cluster.complaints() == 0

    def cluster_conflict_is_logged(self) -> None:
        """Instances that differ: AMQ9407 stands in the queue manager's error log."""
        cluster = Cluster(self.qmgr, NORTH=FIRST, SOUTH=REST)
        assert cluster.complaints() == 0
        cluster.put(md())
        assert cluster.complaints() >= 1

    def cluster_copies_when_placed(self) -> None:
        """The destination resolves the embedded descriptor from its own queue, when it places."""
        sent = Cluster(self.qmgr, FAR=REST).put(md())
        there = self.qmgr.local(**FIRST)
        sent.place(self.qmgr, there)
        assert self.qmgr.take(there).priority == 5

    def cluster_later_change_is_without_effect(self) -> None:
        """A message on the destination queue keeps its value and its position."""
        sent = Cluster(self.qmgr, FAR=REST).put(md())
        there = self.qmgr.local(**FIRST)
        sent.place(self.qmgr, there)
        self.qmgr.qm.alter("QLOCAL", there, defprty=0)
        self.qmgr.send(there, md=md(4))
        assert [g.priority for g in self.qmgr.drain(there)] == [5, 4]

    # ---- AS_Q_DEF of any other queue ----

    def local_definition_counts_for_remote_queues(self) -> None:
        for build in paths.REMOTE:
            self.first_decides(build)

    def first_definition_decides(self) -> None:
        for build in paths.BEHIND:
            self.first_decides(build)

    def kind_decides(self, kind: str) -> None:
        for build in paths.KINDS[kind]:
            self.first_decides(build)

    def first_decides(self, build: Any) -> None:
        with paths.way(self.qmgr, build, FIRST, REST) as way:
            assert way.send(self.qmgr, md()) == (OK, 0)
            landed = [descriptor[0] for descriptor in way.landed(self.qmgr)]
            assert set(landed) == {5}, (build.__name__, landed)

    def copied_when_put(self) -> None:
        """The value of that moment goes into the message, not into the application's MQMD."""
        qmgr = self.qmgr
        for build in paths.ALL:
            with paths.way(qmgr, build, REST, REST) as way:
                hobj = qmgr.opened(way.name, mqi.MQOO_OUTPUT, ObjectQMgrName=way.manager)
                for value in (8, 1):  # opened before: the value is read at the put, not at the open
                    qmgr.qm.alter(way.kind, way.first, defprty=value)
                    sent = qmgr.send(hobj, md=md())
                    assert sent.Priority == AS_Q_DEF
                    found = {descriptor[0] for descriptor in way.landed(qmgr)}
                    assert found == {value}, (build.__name__, value)

    def later_change_is_without_effect(self) -> None:
        """Field and position of a message put before stay, over a failure too."""
        qmgr = self.qmgr
        for how in ("restart", "failure"):
            queue = qmgr.local(defprty=5, defpsist="YES")
            qmgr.send(queue, b"default", md())
            qmgr.qm.alter("QLOCAL", queue, defprty=0)
            qmgr.after(how, lambda queue=queue: qmgr.send(queue, b"four", md(4)))
            qmgr.send(queue, b"new default", md())
            found = [(g.data, g.priority) for g in qmgr.drain(queue)]
            assert found == [(b"default", 5), (b"four", 4), (b"new default", 0)]

    # ---- what MQGET returns ----

    def get_returns_zero_or_more(self) -> None:
        """Whatever was put, browsing too."""
        queue = self.qmgr.local(**REST)
        for value in (-1, 0, 9):
            self.qmgr.send(queue, md=md(value))
        hobj = self.qmgr.opened(queue, mqi.MQOO_BROWSE | mqi.MQOO_INPUT_SHARED)
        seen = [g.priority for g in self.qmgr.drain(hobj, options=mqi.MQGMO_BROWSE_NEXT)]
        assert seen == [g.priority for g in self.qmgr.drain(hobj)] == [9, 3, 0]

    def get_never_returns_the_default(self) -> None:
        """-1 is never returned: local, through an alias, in both descriptors of a remote put."""
        for build in paths.ALL:
            with paths.way(self.qmgr, build, {}, REST) as way:
                assert way.send(self.qmgr, md()) == (OK, 0)
                assert all(found[0] >= 0 for found in way.landed(self.qmgr)), build.__name__

    # ---- above the maximum ----

    def above_the_maximum_is_accepted(self) -> None:
        """10 and above: the message is put, by MQPUT and MQPUT1."""
        queue = self.qmgr.local()
        hobj = self.qmgr.opened(queue, mqi.MQOO_OUTPUT)
        for where in (hobj, queue):
            for value in (10, 12, 2**31 - 1):
                assert self.qmgr.put(where, md=md(value))[0] == WARNING
        assert self.qmgr.depth(queue) == 6

    def maximum_is_inquired(self) -> None:
        """MaxPriority of the queue manager: the first value above it is the first warned of."""
        od = mqi.MQOD(ObjectType=mqi.MQOT_Q_MGR)
        hobj, cc, rc = mqi.MQOPEN(self.qmgr.hconn, od, mqi.MQOO_INQUIRE)
        assert (cc, rc) == (OK, 0)
        values, cc, rc = mqi.MQINQ(self.qmgr.hconn, hobj, [mqi.MQIA_MAX_PRIORITY])
        assert (cc, rc) == (OK, 0)
        maximum = values[mqi.MQIA_MAX_PRIORITY]
        assert maximum == MAXIMUM
        queue = self.qmgr.local()
        assert self.qmgr.put(queue, md=md(maximum)) == (OK, 0)
        assert self.qmgr.put(queue, md=md(maximum + 1)) == EXCEEDS

    def placed_at_the_maximum(self) -> None:
        """Behind earlier nines, before everything lower; also after a failure."""
        queue = self.qmgr.local()

        def put(data: bytes, value: int) -> None:
            assert self.qmgr.put(queue, data, md(value, Persistence=1))[0] < 2

        def all_of_them() -> None:
            for data, value in ((b"9 a", 9), (b"8", 8), (b"12", 12), (b"9 b", 9), (b"99", 99)):
                put(data, value)

        self.qmgr.failure(all_of_them)
        assert self.qmgr.bodies(queue) == [b"9 a", b"12", b"9 b", b"99", b"8"]

    def warned_of(self) -> None:
        """MQCC_WARNING and 2049, by MQPUT, MQPUT1, in a unit of work and on every way."""
        for build in paths.ALL:
            with paths.way(self.qmgr, build, FIRST, REST) as way:
                assert way.send(self.qmgr, md(12)) == EXCEEDS, build.__name__
                put1 = self.qmgr.put(way.name, md=md(12), to=way.manager)
                unit = self.qmgr.put(way.name, md=md(12), to=way.manager, syncpoint=True)
                assert put1 == unit == EXCEEDS, build.__name__
                self.qmgr.commit()

    def field_is_kept(self) -> None:
        """MQGET returns the number the application gave; both descriptors of a remote put too."""
        queue = self.qmgr.local()
        for value in (10, 12, 2**31 - 1):
            self.qmgr.put(queue, md=md(value, Persistence=1))
        self.qmgr.failure()
        assert [g.priority for g in self.qmgr.drain(queue)] == [10, 12, 2**31 - 1]
        for build in paths.ALL:
            with paths.way(self.qmgr, build, FIRST, REST) as way:
                way.send(self.qmgr, md(12))
                assert {found[0] for found in way.landed(self.qmgr)} == {12}, build.__name__

    # ---- z/OS: groups ----

    def order(
        self, qmgr: QmgrFixture, queue: str, *messages: tuple[int, int]
    ) -> list[tuple[int, int]]:
        """Puts (priority, MsgSeqNumber) in this order; the order in which they are got."""
        hobj = qmgr.opened(queue, mqi.MQOO_OUTPUT)
        for priority, number in messages:
            fields: dict[str, Any] = {}
            if number > 1:
                fields = {"MsgFlags": mqi.MQMF_MSG_IN_GROUP, "GroupId": b"g" * 24}
            qmgr.send(hobj, md=md(priority, Version=2, MsgSeqNumber=number, **fields))
        qmgr.closed(hobj)
        return [(g.priority, g.md.MsgSeqNumber) for g in qmgr.drain(queue)]

    def first_of_group_is_treated_differently(self) -> None:
        """On a queue by priority with INDXTYPE(GROUPID), MsgSeqNumber 1: before those of 1."""
        queue = self.zos.local(indxtype="GROUPID", msgdlvsq="PRIORITY")
        found = self.order(self.zos, queue, (1, 2), (0, 1), (2, 2))
        assert found == [(0, 1), (2, 2), (1, 2)]

    def group_conditions(self) -> None:
        """Each condition alone missing: no other treatment."""
        qmgr = self.zos
        put, plain = ((1, 2), (0, 1)), [(1, 2), (0, 1)]
        for name, attributes in (
            ("index by MsgId", {"indxtype": "MSGID"}),
            ("index by CorrelId", {"indxtype": "CORRELID"}),
            ("no index", {"indxtype": "NONE"}),
        ):
            queue = qmgr.local(msgdlvsq="PRIORITY", **attributes)
            assert self.order(qmgr, queue, *put) == plain, name
        fifo = qmgr.local(msgdlvsq="FIFO", indxtype="GROUPID")
        assert self.order(qmgr, fifo, *put) == plain
        unix = self.qmgr.local(msgdlvsq="PRIORITY")
        assert self.order(self.qmgr, unix, *put) == plain
        grouped = qmgr.local(msgdlvsq="PRIORITY", indxtype="GROUPID")
        assert self.order(qmgr, grouped, (1, 2), (0, 3)) == [(1, 2), (0, 3)]

    def low_priorities_count_as_two(self) -> None:
        """0 and 1, resolved ones too, are placed as 2, in order of arrival; the field stays."""
        qmgr = self.zos
        for default in (0, 1):
            queue = qmgr.local(indxtype="GROUPID", defprty=default)
            put = ((0, 1), (2, 2), (1, 1), (-1, 1), (3, 1), (2, 1))
            got = [(3, 1), (0, 1), (2, 2), (1, 1), (default, 1), (2, 1)]
            assert self.order(qmgr, queue, *put) == got

    # ---- the rest ----

    def reply_takes_the_requests(self) -> None:
        """message.reply() copies the field as it is: 12 is 12 again, and warned of again."""
        qmgr = self.qmgr
        for value, expected in ((0, 0), (7, 7), (-1, 5), (12, 12)):
            queue = qmgr.local(**FIRST)
            answers = qmgr.local(**REST)
            qmgr.put(queue, b"?", md(value, ReplyToQ=answers, MsgType=1))
            with qmgr.qm.open(queue) as opened:
                result = qmgr.qm.reply(opened.get(), b"!")
            assert result.reason == (2049 if value == 12 else 0)
            assert qmgr.take(answers).priority == expected

    def default_allows_tuning(self) -> None:
        """The same put gets another priority when the administrator changes the queue."""
        queue = self.qmgr.local(defprty=1)
        hobj = self.qmgr.opened(queue, mqi.MQOO_OUTPUT)
        for value in (1, 6, 2):
            self.qmgr.qm.alter("QLOCAL", queue, defprty=value)
            self.qmgr.send(hobj, b"%d" % value)
        assert self.qmgr.bodies(queue) == [b"6", b"2", b"1"]

    def output_of_get_input_of_put(self) -> None:
        """MQGET sets it whatever it was; MQPUT and MQPUT1 read it and leave it."""
        queue = self.qmgr.local(**FIRST)
        hobj = self.qmgr.opened(queue, mqi.MQOO_OUTPUT | mqi.MQOO_INPUT_SHARED)
        for where in (hobj, queue):
            for value in (-1, 0, 9):
                sent = self.qmgr.send(where, md=md(value))
                assert sent.Priority == value
                got = self.qmgr.take(hobj, md=md(-77))
                assert got.priority == (5 if value == -1 else value)

    def initial_value(self) -> None:
        """A new MQMD has AS_Q_DEF, so a put with it follows the queue, whose default is 0."""
        fresh = mqi.MQMD()
        assert fresh.Priority == AS_Q_DEF == -1
        assert fresh.pack()[40:44] == (-1).to_bytes(4, "little", signed=True)
        for attributes, expected in (({}, 0), (FIRST, 5)):
            queue = self.qmgr.local(**attributes)
            self.qmgr.send(queue)
            assert self.qmgr.take(queue).priority == expected
