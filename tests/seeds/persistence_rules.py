"""Requirements of the three documents about MQMD Persistence, as behaviour of a queue manager.

The documents share most sentences; each has its own tests, which call the rules here in its own
naming (C or RPG names).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paths
from clusters import ROUTE, Cluster

from penstock import mqi
from qmgr_fixture import FAILED, OK, QmgrFixture, embedded, transmission

HOWS = ("restart", "failure")
NO, YES = {"defpsist": "NO"}, {"defpsist": "YES"}
WORD = {0: NO, 1: YES}
REFUSED = (FAILED, mqi.MQRC_PERSISTENT_NOT_ALLOWED)
WRONG = (-(2**31), -2, -1, 3, 4, 255, 2**31 - 1)


class PersistenceRules:
    """Rules about the field, in one naming, on a unix and a z/OS queue manager."""

    def __init__(self, qmgr: QmgrFixture, zos: Callable[[], QmgrFixture], naming: Any) -> None:
        self.qmgr, self.naming = qmgr, naming
        self._zos = zos

    @property
    def zos(self) -> QmgrFixture:
        """A z/OS queue manager, created on demand."""
        return self._zos()

    # ---- what survives ----

    def field_says_what_survives(self) -> None:
        """Persistent messages survive failures and restarts, others don't."""
        for how in HOWS:
            queue = self.qmgr.local()
            self.qmgr.after(how, lambda queue=queue: self.put_both(queue))
            assert self.qmgr.bodies(queue) == [b"persistent"], how

    def put_both(self, queue: str) -> None:
        md, naming = self.naming.md, self.naming
        self.qmgr.send(queue, b"not", md(naming.NOT_PERSISTENT))
        self.qmgr.send(queue, b"persistent", md(naming.PERSISTENT))

    def put_takes_three_values(self) -> None:
        """MQPUT and MQPUT1 take 0, 1 and 2; anything else is 2047 and puts nothing."""
        queue = self.qmgr.local()
        hobj = self.qmgr.opened(queue, mqi.MQOO_OUTPUT)
        naming = self.naming
        assert sorted((naming.NOT_PERSISTENT, naming.PERSISTENT, naming.AS_Q_DEF)) == [0, 1, 2]
        for where in (hobj, queue):
            for value in (0, 1, 2):
                self.qmgr.send(where, md=naming.md(value))
        for where in (hobj, queue):
            for value in WRONG:
                answer = self.qmgr.put(where, md=naming.md(value))
                assert answer == (FAILED, mqi.MQRC_PERSISTENCE_ERROR), value
        assert self.qmgr.depth(queue) == 6

    def persistent_survives(self) -> None:
        """A persistent message survives orderly restarts and failures, several in a row."""
        queue = self.qmgr.local()
        self.qmgr.send(queue, b"kept", self.naming.md(self.naming.PERSISTENT))
        for how in ("restart", "failure", "failure", "restart"):
            self.qmgr.after(how, lambda: None)
            assert self.qmgr.depth(queue) == 1, how
        got = self.qmgr.take(queue)
        assert (got.data, self.naming.persistence(got.md)) == (b"kept", 1)

    def stored_from_commit_of_the_put(self) -> None:
        """Inside a unit of work it is the commit that preserves; outside it the put itself."""
        queue = self.qmgr.local()
        qmgr = self.qmgr

        def put(data: bytes, syncpoint: bool) -> None:
            qmgr.send(queue, data, self.naming.md(self.naming.PERSISTENT), syncpoint=syncpoint)

        qmgr.failure(lambda: put(b"alone", False))
        qmgr.failure(lambda: (put(b"committed", True), qmgr.commit()))
        qmgr.failure(lambda: put(b"in flight", True))
        qmgr.failure(lambda: (put(b"backed out", True), qmgr.backout()))
        assert qmgr.stored(b"alone", "journal") and qmgr.stored(b"committed", "journal")
        assert qmgr.bodies(queue) == [b"alone", b"committed"]

    def kept_until_commit_of_the_get(self) -> None:
        """A get in a unit of work removes at its commit; a failure before gives it back."""
        queue = self.qmgr.local()
        qmgr = self.qmgr
        qmgr.send(queue, b"kept", self.naming.md(self.naming.PERSISTENT))
        qmgr.failure(lambda: qmgr.take(queue, syncpoint=True))
        assert qmgr.depth(queue) == 1
        got = qmgr.take(queue, syncpoint=True)
        assert (got.data, got.md.BackoutCount) == (b"kept", 1)
        qmgr.backout()
        qmgr.failure(lambda: (qmgr.take(queue, syncpoint=True), qmgr.commit()))
        assert qmgr.depth(queue) == 0
        qmgr.send(queue, b"kept", self.naming.md(self.naming.PERSISTENT))
        qmgr.failure(lambda: qmgr.take(queue))
        assert qmgr.depth(queue) == 0

    def first_hop_keeps(self) -> None:
        """To a remote queue: this queue manager keeps it on the transmission queue."""
        qmgr = self.qmgr
        for build in paths.REMOTE:
            with paths.way(qmgr, build, NO, YES) as way:
                md = self.naming.md(self.naming.PERSISTENT)
                qmgr.failure(lambda way=way, md=md: self.same(way.send(qmgr, md), (OK, 0)))
                got = qmgr.take(way.landing)
                assert got.persistence == embedded(got.data)[1] == 1
                assert transmission(got.data)[0] == "THERE"

    @staticmethod
    def same(left: object, right: object) -> None:
        assert left == right

    # ---- where a persistent message may go ----

    def temporary_dynamic_refuses(self) -> None:
        """2048, nothing put; judged after AS_Q_DEF is resolved."""
        qmgr, naming = self.qmgr, self.naming
        options = mqi.MQOO_OUTPUT | mqi.MQOO_INPUT_EXCLUSIVE
        hobj, name = qmgr.dynamic(qmgr.model("TEMPDYN"), options)
        alias = qmgr.define("QALIAS", target=name, **YES)
        for where in (hobj, name, alias):
            assert qmgr.put(where, md=naming.md(naming.PERSISTENT)) == REFUSED
        assert qmgr.put(alias, md=naming.md(naming.AS_Q_DEF)) == REFUSED
        assert qmgr.depth(name) == 0
        qmgr.send(hobj, b"1", naming.md(naming.NOT_PERSISTENT))
        qmgr.send(hobj, b"2", naming.md(naming.AS_Q_DEF))
        assert [(g.data, g.persistence) for g in qmgr.drain(hobj)] == [(b"1", 0), (b"2", 0)]

    def structure_refuses(self, **attributes: Any) -> None:
        """A shared queue in such a structure: 2048, explicit or as resolved, nothing put."""
        qmgr, naming = self.zos, self.naming
        structure = qmgr.structure(**attributes)
        queue = qmgr.shared(structure, **YES)
        for value in (naming.PERSISTENT, naming.AS_Q_DEF):
            assert qmgr.put(queue, md=naming.md(value)) == REFUSED, (attributes, value)
        assert qmgr.depth(queue) == 0
        qmgr.send(queue, b"1", naming.md(naming.NOT_PERSISTENT))
        assert qmgr.bodies(queue) == [b"1"]

    def structures_of_low_level_refuse(self) -> None:
        """CFLEVEL 1 and 2."""
        for level in (1, 2):
            self.structure_refuses(cflevel=level)

    def structures_without_recovery_refuse(self) -> None:
        """RECOVER(NO) at whatever level, and by default."""
        for level in (3, 4, 5):
            self.structure_refuses(cflevel=level, recover="NO")
        self.structure_refuses()

    def recoverable_structures_take(self) -> None:
        """CFLEVEL 3 and above with RECOVER(YES): accepted, and kept over a failure."""
        qmgr, naming = self.zos, self.naming
        for level in (3, 4, 5):
            queue = qmgr.shared(qmgr.structure(cflevel=level, recover="YES"))
            qmgr.failure(lambda queue=queue: qmgr.send(queue, b"1", naming.md(naming.PERSISTENT)))
            assert qmgr.bodies(queue) == [b"1"], level

    def permanent_dynamic_takes(self) -> None:
        """A permanent dynamic queue takes and keeps it."""
        qmgr, naming = self.qmgr, self.naming
        source = qmgr.model("PERMDYN")
        hobj, name = qmgr.dynamic(source, mqi.MQOO_OUTPUT)
        qmgr.closed(hobj)
        qmgr.failure(lambda: qmgr.send(name, b"1", naming.md(naming.PERSISTENT)))
        assert qmgr.bodies(name) == [b"1"]

    def predefined_takes(self) -> None:
        """A predefined queue takes and keeps it."""
        qmgr, naming = self.qmgr, self.naming
        queue = qmgr.local()
        qmgr.failure(lambda: qmgr.send(queue, b"1", naming.md(naming.PERSISTENT)))
        assert qmgr.bodies(queue) == [b"1"]

    # ---- what does not survive ----

    def not_persistent_is_lost(self) -> None:
        """A restart and a failure both discard it."""
        for how in HOWS:
            queue = self.qmgr.local()
            md = self.naming.md(self.naming.NOT_PERSISTENT)
            self.qmgr.after(how, lambda queue=queue, md=md: self.qmgr.send(queue, md=md))
            assert self.qmgr.depth(queue) == 0, how

    def discarded_though_intact_on_storage(self) -> None:
        """After a failure it is discarded even where its bytes stand whole in a file."""
        qmgr = self.qmgr
        queue = qmgr.local(npmclass="HIGH")
        qmgr.send(queue, b"an intact copy of it", self.naming.md(self.naming.NOT_PERSISTENT))
        qmgr.stop()
        assert qmgr.stored(b"an intact copy of it", "checkpoint")
        qmgr.start()
        assert qmgr.depth(queue) == 1
        qmgr.failure()
        assert qmgr.depth(queue) == 0

    def high_class_survives_an_orderly_end(self) -> None:
        """NPMCLASS(HIGH): an orderly restart keeps it, a failure does not; NORMAL keeps nothing."""
        qmgr = self.qmgr
        high, normal = qmgr.local(npmclass="HIGH"), qmgr.local(npmclass="NORMAL")
        for queue in (high, normal):
            qmgr.send(queue, b"1", self.naming.md(self.naming.NOT_PERSISTENT))
        qmgr.restart()
        qmgr.restart()
        assert (qmgr.depth(high), qmgr.depth(normal)) == (1, 0)
        qmgr.failure()
        assert qmgr.depth(high) == 0

    def shared_survives_restarts(self) -> None:
        """On a shared queue a non-persistent message survives restart and failure alike."""
        qmgr = self.zos
        queue = qmgr.shared(qmgr.structure(cflevel=2))
        qmgr.send(queue, b"1", self.naming.md(self.naming.NOT_PERSISTENT))
        for how in HOWS:
            qmgr.after(how, lambda: None)
            assert qmgr.depth(queue) == 1, how
        got = qmgr.take(queue)
        assert (got.data, self.naming.persistence(got.md)) == (b"1", 0)

    def shared_is_lost_with_its_structure(self) -> None:
        """The failure of the structure loses it, and only it; persistent ones come back."""
        qmgr, naming = self.zos, self.naming
        failing = qmgr.structure(cflevel=4, recover="YES")
        sound = qmgr.structure(cflevel=4, recover="YES")
        queues = qmgr.shared(failing), qmgr.shared(failing), qmgr.shared(sound)
        for queue in queues:
            qmgr.send(queue, b"not", naming.md(naming.NOT_PERSISTENT))
            qmgr.send(queue, b"persistent", naming.md(naming.PERSISTENT))
        assert qmgr.fail_structure(failing) == 2
        rest = [qmgr.bodies(queue) for queue in queues]
        assert rest == [[b"persistent"], [b"persistent"], [b"not", b"persistent"]]

    # ---- AS_Q_DEF of a cluster queue ----

    def cluster_takes_the_instances_value(self) -> None:
        """The instance's DEFPSIST counts, not that of the cluster transmission queue."""
        qmgr, naming = self.qmgr, self.naming
        before = qmgr.attribute(ROUTE, mqi.MQIA_DEF_PERSISTENCE)
        for value in (0, 1):
            qmgr.qm.alter("QLOCAL", ROUTE, **WORD[1 - value])
            try:
                sent = Cluster(qmgr, FAR=WORD[value]).put(naming.md(naming.AS_Q_DEF))
            finally:
                qmgr.qm.alter("QLOCAL", ROUTE, **WORD[before])
            assert sent.separate[1] == value
            assert sent.application[1] == naming.AS_Q_DEF

    def cluster_instances_agree_usually(self) -> None:
        """Instances may have one value (no log entry) or differ (the put works)."""
        naming = self.naming
        for values in ((YES, YES), (NO, NO), (YES, NO)):
            cluster = Cluster(self.qmgr, NORTH=values[0], SOUTH=values[1])
            sent = [cluster.put(naming.md(naming.AS_Q_DEF)) for _ in range(4)]
            allowed = {int(value == YES) for value in values}
            assert {one.separate[1] for one in sent} <= allowed
            assert (cluster.complaints() > 0) == (len(allowed) == 2), values

    def cluster_differing_is_unpredictable(self) -> None:
        """Each put takes the value of one of the instances, whichever; never anything else."""
        naming = self.naming
        values = {"NORTH": 1, "SOUTH": 0, "EAST": 1}
        cluster = Cluster(self.qmgr, **{name: WORD[value] for name, value in values.items()})
        for _ in range(6):
            sent = cluster.put(naming.md(naming.AS_Q_DEF))
            assert sent.separate[1] in values.values() and sent.manager in values

    def cluster_should_agree(self) -> None:
        """Instances that agree leave no message in the error log."""
        cluster = Cluster(self.qmgr, NORTH=YES, SOUTH=YES)
        for _ in range(3):
            assert cluster.put().separate[1] == 1
        assert cluster.complaints() == 0

    def cluster_conflict_is_logged(self) -> None:
        """Instances that differ: AMQ9407 stands in the queue manager's error log."""
        cluster = Cluster(self.qmgr, NORTH=YES, SOUTH=NO)
        assert cluster.complaints() == 0
        cluster.put()
        assert cluster.complaints() >= 1

    def cluster_copies_when_placed(self) -> None:
        """The destination resolves the embedded descriptor from its own queue, when it places."""
        qmgr, naming = self.qmgr, self.naming
        for value in (0, 1):
            sent = Cluster(qmgr, FAR=WORD[1 - value]).put(naming.md(naming.AS_Q_DEF))
            there = qmgr.local(**WORD[value])
            sent.place(qmgr, there)
            assert naming.persistence(qmgr.take(there).md) == value

    def cluster_later_change_is_without_effect(self) -> None:
        """A message on the destination queue keeps its value when DEFPSIST changes there."""
        qmgr, naming = self.qmgr, self.naming
        sent = Cluster(qmgr, FAR=YES).put(naming.md(naming.AS_Q_DEF))
        there = qmgr.local(**YES)
        sent.place(qmgr, there)
        qmgr.qm.alter("QLOCAL", there, **NO)
        assert naming.persistence(qmgr.take(there).md) == 1

    # ---- AS_Q_DEF of any other queue ----

    def local_definition_counts_for_remote_queues(self) -> None:
        """However far the message goes: the definition of this queue manager resolves it."""
        for build in paths.REMOTE:
            self.first_decides(build)

    def first_definition_decides(self) -> None:
        """Of several definitions the first one supplies the value, none behind it."""
        for build in paths.BEHIND:
            self.first_decides(build)

    def kind_decides(self, *kinds: str) -> None:
        """The first definition is of this kind."""
        for kind in kinds:
            for build in paths.KINDS[kind]:
                self.first_decides(build)

    def first_decides(self, build: Any) -> None:
        for value in (0, 1):
            with paths.way(self.qmgr, build, WORD[value], WORD[1 - value]) as way:
                md = self.naming.md(self.naming.AS_Q_DEF)
                assert way.send(self.qmgr, md) == (OK, 0)
                landed = [descriptor[1] for descriptor in way.landed(self.qmgr)]
                assert set(landed) == {value}, (build.__name__, value, landed)

    def copied_when_put(self) -> None:
        """The value of that moment goes into the message, not into the application's MQMD."""
        qmgr, naming = self.qmgr, self.naming
        for build in paths.ALL:
            with paths.way(qmgr, build, NO, NO) as way:
                hobj = qmgr.opened(way.name, mqi.MQOO_OUTPUT, ObjectQMgrName=way.manager)
                for value in (1, 0):  # opened before: the value is read at the put, not at the open
                    qmgr.qm.alter(way.kind, way.first, **WORD[value])
                    md = qmgr.send(hobj, md=naming.md(naming.AS_Q_DEF))
                    assert naming.persistence(md) == naming.AS_Q_DEF
                    found = {descriptor[1] for descriptor in way.landed(qmgr)}
                    assert found == {value}, (build.__name__, value)

    def later_change_is_without_effect(self) -> None:
        """A message put as persistent stays so when the attribute changes, over a failure too."""
        qmgr, naming = self.qmgr, self.naming
        ways = [build(qmgr, YES, NO) for build in paths.ALL if build in (paths.alias, paths.local)]
        for way in ways:
            assert way.send(qmgr, naming.md(naming.AS_Q_DEF)) == (OK, 0)
            qmgr.qm.alter(way.kind, way.first, **NO)
        qmgr.failure()
        for way in ways:
            assert [value for _, value in way.landed(qmgr)] == [1]
            assert way.send(qmgr, naming.md(naming.AS_Q_DEF)) == (OK, 0)
            qmgr.qm.alter(way.kind, way.first, **YES)
            assert [value for _, value in way.landed(qmgr)] == [0]

    # ---- the rest ----

    def both_kinds_share_a_queue(self) -> None:
        """Both kinds lie on one queue, in one order."""
        queue = self.qmgr.local()
        for data, value in ((b"1", 0), (b"2", 1), (b"3", 0), (b"4", 1)):
            self.qmgr.send(queue, data, self.naming.md(value))
        found = [(g.data, self.naming.persistence(g.md)) for g in self.qmgr.drain(queue)]
        assert found == [(b"1", 0), (b"2", 1), (b"3", 0), (b"4", 1)]

    def reply_takes_the_requests(self) -> None:
        """message.reply() gives the reply the persistence of the request, whatever the queue's."""
        qmgr, naming = self.qmgr, self.naming
        for value in (0, 1):
            queue = qmgr.local(**WORD[value])
            answers = qmgr.local(**WORD[1 - value])
            qmgr.send(queue, b"?", naming.md(naming.AS_Q_DEF, ReplyToQ=answers, MsgType=1))
            with qmgr.qm.open(queue) as opened:
                qmgr.qm.reply(opened.get(), b"!")
            got = qmgr.take(answers)
            assert (got.data, naming.persistence(got.md)) == (b"!", value)

    def get_returns_one_of_two(self) -> None:
        """MQGET, browsing too, never returns AS_Q_DEF."""
        qmgr, naming = self.qmgr, self.naming
        for queue in (qmgr.local(**NO), qmgr.local(**YES)):
            for value in (None, 0, 1, 2):
                qmgr.send(queue, md=naming.md(value))
            hobj = qmgr.opened(queue, mqi.MQOO_BROWSE | mqi.MQOO_INPUT_SHARED)
            seen = [g.persistence for g in qmgr.drain(hobj, options=mqi.MQGMO_BROWSE_NEXT)]
            got = [naming.persistence(g.md) for g in qmgr.drain(hobj)]
            default = qmgr.attribute(queue, mqi.MQIA_DEF_PERSISTENCE)
            assert seen == got == [default, 0, 1, default]
            assert set(got) <= {naming.NOT_PERSISTENT, naming.PERSISTENT}

    def output_of_get_input_of_put(self) -> None:
        """MQGET sets it whatever it was; MQPUT and MQPUT1 read it and leave it."""
        qmgr, naming = self.qmgr, self.naming
        queue = qmgr.local(**YES)
        hobj = qmgr.opened(queue, mqi.MQOO_OUTPUT | mqi.MQOO_INPUT_SHARED)
        for where in (hobj, queue):
            for value in (0, 1, 2):
                md = qmgr.send(where, md=naming.md(value))
                assert naming.persistence(md) == value
                got = qmgr.take(hobj, md=naming.md(77))
                assert naming.persistence(got.md) == (value if value < 2 else 1)

    def initial_value(self) -> None:
        """A new MQMD has AS_Q_DEF, so a put with it follows the queue."""
        naming = self.naming
        md = naming.md()
        assert naming.persistence(md) == naming.AS_Q_DEF == 2
        assert md.pack()[44:48] == (2).to_bytes(4, "little")
        for value in (0, 1):
            queue = self.qmgr.local(**WORD[value])
            self.qmgr.send(queue, md=naming.md())
            assert naming.persistence(self.qmgr.take(queue).md) == value
