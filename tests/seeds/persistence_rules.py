"""What the three documents about MQMD Persistence demand, as behaviour of a queue manager.

The documents share most sentences; each has its own tests, which call the rules here in its own
tongue (C or RPG names).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paths
from clusters import ROUTE, Cluster

from desk import FAILED, OK, Desk, embedded, transmission
from penstock import mqi

HOWS = ("restart", "failure")
NO, YES = {"defpsist": "NO"}, {"defpsist": "YES"}
WORD = {0: NO, 1: YES}
REFUSED = (FAILED, mqi.MQRC_PERSISTENT_NOT_ALLOWED)
WRONG = (-(2**31), -2, -1, 3, 4, 255, 2**31 - 1)


class PersistenceRules:
    """Rules about the field, told in one tongue on a unix and a z/OS desk."""

    def __init__(self, desk: Desk, zos: Callable[[], Desk], tongue: Any) -> None:
        self.desk, self.tongue = desk, tongue
        self._zos = zos

    @property
    def zos(self) -> Desk:
        """A z/OS queue manager, made when it is asked for."""
        return self._zos()

    # ---- what survives ----

    def field_says_what_survives(self) -> None:
        """Persistent messages survive failures and restarts, others don't."""
        for how in HOWS:
            queue = self.desk.local()
            self.desk.after(how, lambda queue=queue: self.put_both(queue))
            assert self.desk.bodies(queue) == [b"persistent"], how

    def put_both(self, queue: str) -> None:
        md, tongue = self.tongue.md, self.tongue
        self.desk.send(queue, b"not", md(tongue.NOT_PERSISTENT))
        self.desk.send(queue, b"persistent", md(tongue.PERSISTENT))

    def put_takes_three_values(self) -> None:
        """MQPUT and MQPUT1 take 0, 1 and 2; anything else is 2047 and puts nothing."""
        queue = self.desk.local()
        hobj = self.desk.opened(queue, mqi.MQOO_OUTPUT)
        tongue = self.tongue
        assert sorted((tongue.NOT_PERSISTENT, tongue.PERSISTENT, tongue.AS_Q_DEF)) == [0, 1, 2]
        for where in (hobj, queue):
            for value in (0, 1, 2):
                self.desk.send(where, md=tongue.md(value))
        for where in (hobj, queue):
            for value in WRONG:
                answer = self.desk.put(where, md=tongue.md(value))
                assert answer == (FAILED, mqi.MQRC_PERSISTENCE_ERROR), value
        assert self.desk.depth(queue) == 6

    def persistent_survives(self) -> None:
        """A persistent message is there after orderly restarts and failures, several in a row."""
        queue = self.desk.local()
        self.desk.send(queue, b"kept", self.tongue.md(self.tongue.PERSISTENT))
        for how in ("restart", "failure", "failure", "restart"):
            self.desk.after(how, lambda: None)
            assert self.desk.depth(queue) == 1, how
        got = self.desk.take(queue)
        assert (got.data, self.tongue.persistence(got.md)) == (b"kept", 1)

    def stored_from_commit_of_the_put(self) -> None:
        """Inside a unit of work it is the commit that preserves; outside it the put itself."""
        queue = self.desk.local()
        desk = self.desk

        def put(data: bytes, syncpoint: bool) -> None:
            desk.send(queue, data, self.tongue.md(self.tongue.PERSISTENT), syncpoint=syncpoint)

        desk.failure(lambda: put(b"alone", False))
        desk.failure(lambda: (put(b"committed", True), desk.commit()))
        desk.failure(lambda: put(b"in flight", True))
        desk.failure(lambda: (put(b"backed out", True), desk.backout()))
        assert desk.stored(b"alone", "journal") and desk.stored(b"committed", "journal")
        assert desk.bodies(queue) == [b"alone", b"committed"]

    def kept_until_commit_of_the_get(self) -> None:
        """A get in a unit of work removes at its commit; a failure before gives it back."""
        queue = self.desk.local()
        desk = self.desk
        desk.send(queue, b"kept", self.tongue.md(self.tongue.PERSISTENT))
        desk.failure(lambda: desk.take(queue, syncpoint=True))
        assert desk.depth(queue) == 1
        got = desk.take(queue, syncpoint=True)
        assert (got.data, got.md.BackoutCount) == (b"kept", 1)
        desk.backout()
        desk.failure(lambda: (desk.take(queue, syncpoint=True), desk.commit()))
        assert desk.depth(queue) == 0
        desk.send(queue, b"kept", self.tongue.md(self.tongue.PERSISTENT))
        desk.failure(lambda: desk.take(queue))
        assert desk.depth(queue) == 0

    def first_hop_keeps(self) -> None:
        """To a remote queue: this queue manager keeps it on the transmission queue."""
        desk = self.desk
        for build in paths.REMOTE:
            with paths.way(desk, build, NO, YES) as way:
                md = self.tongue.md(self.tongue.PERSISTENT)
                desk.failure(lambda way=way, md=md: self.same(way.send(desk, md), (OK, 0)))
                got = desk.take(way.landing)
                assert got.persistence == embedded(got.data)[1] == 1
                assert transmission(got.data)[0] == "THERE"

    @staticmethod
    def same(left: object, right: object) -> None:
        assert left == right

    # ---- where a persistent message may go ----

    def temporary_dynamic_refuses(self) -> None:
        """2048, nothing put; judged after AS_Q_DEF is resolved."""
        desk, tongue = self.desk, self.tongue
        options = mqi.MQOO_OUTPUT | mqi.MQOO_INPUT_EXCLUSIVE
        hobj, name = desk.dynamic(desk.model("TEMPDYN"), options)
        alias = desk.define("QALIAS", target=name, **YES)
        for where in (hobj, name, alias):
            assert desk.put(where, md=tongue.md(tongue.PERSISTENT)) == REFUSED
        assert desk.put(alias, md=tongue.md(tongue.AS_Q_DEF)) == REFUSED
        assert desk.depth(name) == 0
        desk.send(hobj, b"1", tongue.md(tongue.NOT_PERSISTENT))
        desk.send(hobj, b"2", tongue.md(tongue.AS_Q_DEF))
        assert [(g.data, g.persistence) for g in desk.drain(hobj)] == [(b"1", 0), (b"2", 0)]

    def structure_refuses(self, **attributes: Any) -> None:
        """A shared queue in such a structure: 2048, explicit or as resolved, nothing put."""
        desk, tongue = self.zos, self.tongue
        structure = desk.structure(**attributes)
        queue = desk.shared(structure, **YES)
        for value in (tongue.PERSISTENT, tongue.AS_Q_DEF):
            assert desk.put(queue, md=tongue.md(value)) == REFUSED, (attributes, value)
        assert desk.depth(queue) == 0
        desk.send(queue, b"1", tongue.md(tongue.NOT_PERSISTENT))
        assert desk.bodies(queue) == [b"1"]

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
        desk, tongue = self.zos, self.tongue
        for level in (3, 4, 5):
            queue = desk.shared(desk.structure(cflevel=level, recover="YES"))
            desk.failure(lambda queue=queue: desk.send(queue, b"1", tongue.md(tongue.PERSISTENT)))
            assert desk.bodies(queue) == [b"1"], level

    def permanent_dynamic_takes(self) -> None:
        """A permanent dynamic queue takes and keeps it."""
        desk, tongue = self.desk, self.tongue
        source = desk.model("PERMDYN")
        hobj, name = desk.dynamic(source, mqi.MQOO_OUTPUT)
        desk.closed(hobj)
        desk.failure(lambda: desk.send(name, b"1", tongue.md(tongue.PERSISTENT)))
        assert desk.bodies(name) == [b"1"]

    def predefined_takes(self) -> None:
        """A predefined queue takes and keeps it."""
        desk, tongue = self.desk, self.tongue
        queue = desk.local()
        desk.failure(lambda: desk.send(queue, b"1", tongue.md(tongue.PERSISTENT)))
        assert desk.bodies(queue) == [b"1"]

    # ---- what does not survive ----

    def not_persistent_is_lost(self) -> None:
        """A restart and a failure both discard it."""
        for how in HOWS:
            queue = self.desk.local()
            md = self.tongue.md(self.tongue.NOT_PERSISTENT)
            self.desk.after(how, lambda queue=queue, md=md: self.desk.send(queue, md=md))
            assert self.desk.depth(queue) == 0, how

    def discarded_though_intact_on_storage(self) -> None:
        """After a failure it is discarded even where its bytes stand whole in a file."""
        desk = self.desk
        queue = desk.local(npmclass="HIGH")
        desk.send(queue, b"an intact copy of it", self.tongue.md(self.tongue.NOT_PERSISTENT))
        desk.stop()
        assert desk.stored(b"an intact copy of it", "checkpoint")
        desk.start()
        assert desk.depth(queue) == 1
        desk.failure()
        assert desk.depth(queue) == 0

    def high_class_survives_an_orderly_end(self) -> None:
        """NPMCLASS(HIGH): an orderly restart keeps it, a failure does not; NORMAL keeps nothing."""
        desk = self.desk
        high, normal = desk.local(npmclass="HIGH"), desk.local(npmclass="NORMAL")
        for queue in (high, normal):
            desk.send(queue, b"1", self.tongue.md(self.tongue.NOT_PERSISTENT))
        desk.restart()
        desk.restart()
        assert (desk.depth(high), desk.depth(normal)) == (1, 0)
        desk.failure()
        assert desk.depth(high) == 0

    def shared_survives_restarts(self) -> None:
        """On a shared queue a non-persistent message survives restart and failure alike."""
        desk = self.zos
        queue = desk.shared(desk.structure(cflevel=2))
        desk.send(queue, b"1", self.tongue.md(self.tongue.NOT_PERSISTENT))
        for how in HOWS:
            desk.after(how, lambda: None)
            assert desk.depth(queue) == 1, how
        got = desk.take(queue)
        assert (got.data, self.tongue.persistence(got.md)) == (b"1", 0)

    def shared_is_lost_with_its_structure(self) -> None:
        """The failure of the structure loses it, and only it; persistent ones come back."""
        desk, tongue = self.zos, self.tongue
        failing = desk.structure(cflevel=4, recover="YES")
        sound = desk.structure(cflevel=4, recover="YES")
        queues = desk.shared(failing), desk.shared(failing), desk.shared(sound)
        for queue in queues:
            desk.send(queue, b"not", tongue.md(tongue.NOT_PERSISTENT))
            desk.send(queue, b"persistent", tongue.md(tongue.PERSISTENT))
        assert desk.fail_structure(failing) == 2
        rest = [desk.bodies(queue) for queue in queues]
        assert rest == [[b"persistent"], [b"persistent"], [b"not", b"persistent"]]

    # ---- AS_Q_DEF of a cluster queue ----

    def cluster_takes_the_instances_value(self) -> None:
        """The instance's DEFPSIST counts, not that of the cluster transmission queue."""
        desk, tongue = self.desk, self.tongue
        before = desk.attribute(ROUTE, mqi.MQIA_DEF_PERSISTENCE)
        for value in (0, 1):
            desk.qm.alter("QLOCAL", ROUTE, **WORD[1 - value])
            try:
                sent = Cluster(desk, FAR=WORD[value]).put(tongue.md(tongue.AS_Q_DEF))
            finally:
                desk.qm.alter("QLOCAL", ROUTE, **WORD[before])
            assert sent.separate[1] == value
            assert sent.application[1] == tongue.AS_Q_DEF

    def cluster_instances_agree_usually(self) -> None:
        """Instances may have one value (nothing is said) or differ (the put works)."""
        tongue = self.tongue
        for values in ((YES, YES), (NO, NO), (YES, NO)):
            cluster = Cluster(self.desk, NORTH=values[0], SOUTH=values[1])
            sent = [cluster.put(tongue.md(tongue.AS_Q_DEF)) for _ in range(4)]
            allowed = {int(value == YES) for value in values}
            assert {one.separate[1] for one in sent} <= allowed
            assert (cluster.complaints() > 0) == (len(allowed) == 2), values

    def cluster_differing_is_unpredictable(self) -> None:
        """Each put takes the value of one of the instances, whichever; never anything else."""
        tongue = self.tongue
        values = {"NORTH": 1, "SOUTH": 0, "EAST": 1}
        cluster = Cluster(self.desk, **{name: WORD[value] for name, value in values.items()})
        for _ in range(6):
            sent = cluster.put(tongue.md(tongue.AS_Q_DEF))
            assert sent.separate[1] in values.values() and sent.manager in values

    def cluster_should_agree(self) -> None:
        """Instances that agree leave no message in the error log."""
        cluster = Cluster(self.desk, NORTH=YES, SOUTH=YES)
        for _ in range(3):
            assert cluster.put().separate[1] == 1
        assert cluster.complaints() == 0

    def cluster_conflict_is_logged(self) -> None:
        """Instances that differ: AMQ9407 stands in the queue manager's error log."""
        cluster = Cluster(self.desk, NORTH=YES, SOUTH=NO)
        assert cluster.complaints() == 0
        cluster.put()
        assert cluster.complaints() >= 1

    def cluster_copies_when_placed(self) -> None:
        """The destination resolves the embedded descriptor from its own queue, when it places."""
        desk, tongue = self.desk, self.tongue
        for value in (0, 1):
            sent = Cluster(desk, FAR=WORD[1 - value]).put(tongue.md(tongue.AS_Q_DEF))
            there = desk.local(**WORD[value])
            sent.place(desk, there)
            assert tongue.persistence(desk.take(there).md) == value

    def cluster_later_change_is_without_effect(self) -> None:
        """What lies on the destination queue keeps its value when DEFPSIST changes there."""
        desk, tongue = self.desk, self.tongue
        sent = Cluster(desk, FAR=YES).put(tongue.md(tongue.AS_Q_DEF))
        there = desk.local(**YES)
        sent.place(desk, there)
        desk.qm.alter("QLOCAL", there, **NO)
        assert tongue.persistence(desk.take(there).md) == 1

    # ---- AS_Q_DEF of any other queue ----

    def local_definition_counts_for_remote_queues(self) -> None:
        """However far the message goes: the definition of this queue manager resolves it."""
        for build in paths.REMOTE:
            self.first_decides(build)

    def first_definition_decides(self) -> None:
        """With several definitions on the way the first one is asked, none behind it."""
        for build in paths.BEHIND:
            self.first_decides(build)

    def kind_decides(self, *kinds: str) -> None:
        """The first definition is of this kind."""
        for kind in kinds:
            for build in paths.KINDS[kind]:
                self.first_decides(build)

    def first_decides(self, build: Any) -> None:
        for value in (0, 1):
            with paths.way(self.desk, build, WORD[value], WORD[1 - value]) as way:
                md = self.tongue.md(self.tongue.AS_Q_DEF)
                assert way.send(self.desk, md) == (OK, 0)
                landed = [descriptor[1] for descriptor in way.landed(self.desk)]
                assert set(landed) == {value}, (build.__name__, value, landed)

    def copied_when_put(self) -> None:
        """The value of that moment goes into the message, not into the application's MQMD."""
        desk, tongue = self.desk, self.tongue
        for build in paths.ALL:
            with paths.way(desk, build, NO, NO) as way:
                hobj = desk.opened(way.name, mqi.MQOO_OUTPUT, ObjectQMgrName=way.manager)
                for value in (1, 0):  # the handle was opened before: the put asks, not the open
                    desk.qm.alter(way.kind, way.first, **WORD[value])
                    md = desk.send(hobj, md=tongue.md(tongue.AS_Q_DEF))
                    assert tongue.persistence(md) == tongue.AS_Q_DEF
                    found = {descriptor[1] for descriptor in way.landed(desk)}
                    assert found == {value}, (build.__name__, value)

    def later_change_is_without_effect(self) -> None:
        """A message put as persistent stays so when the attribute changes, over a failure too."""
        desk, tongue = self.desk, self.tongue
        ways = [build(desk, YES, NO) for build in paths.ALL if build in (paths.alias, paths.local)]
        for way in ways:
            assert way.send(desk, tongue.md(tongue.AS_Q_DEF)) == (OK, 0)
            desk.qm.alter(way.kind, way.first, **NO)
        desk.failure()
        for way in ways:
            assert [value for _, value in way.landed(desk)] == [1]
            assert way.send(desk, tongue.md(tongue.AS_Q_DEF)) == (OK, 0)
            desk.qm.alter(way.kind, way.first, **YES)
            assert [value for _, value in way.landed(desk)] == [0]

    # ---- the rest ----

    def both_kinds_share_a_queue(self) -> None:
        """Both kinds lie on one queue, in one order."""
        queue = self.desk.local()
        for data, value in ((b"1", 0), (b"2", 1), (b"3", 0), (b"4", 1)):
            self.desk.send(queue, data, self.tongue.md(value))
        found = [(g.data, self.tongue.persistence(g.md)) for g in self.desk.drain(queue)]
        assert found == [(b"1", 0), (b"2", 1), (b"3", 0), (b"4", 1)]

    def reply_takes_the_requests(self) -> None:
        """message.reply() gives the reply the persistence of the request, whatever the queue's."""
        desk, tongue = self.desk, self.tongue
        for value in (0, 1):
            queue = desk.local(**WORD[value])
            answers = desk.local(**WORD[1 - value])
            desk.send(queue, b"?", tongue.md(tongue.AS_Q_DEF, ReplyToQ=answers, MsgType=1))
            with desk.qm.open(queue) as opened:
                desk.qm.reply(opened.get(), b"!")
            got = desk.take(answers)
            assert (got.data, tongue.persistence(got.md)) == (b"!", value)

    def get_returns_one_of_two(self) -> None:
        """MQGET, browsing too, never returns AS_Q_DEF."""
        desk, tongue = self.desk, self.tongue
        for queue in (desk.local(**NO), desk.local(**YES)):
            for value in (None, 0, 1, 2):
                desk.send(queue, md=tongue.md(value))
            hobj = desk.opened(queue, mqi.MQOO_BROWSE | mqi.MQOO_INPUT_SHARED)
            seen = [g.persistence for g in desk.drain(hobj, options=mqi.MQGMO_BROWSE_NEXT)]
            got = [tongue.persistence(g.md) for g in desk.drain(hobj)]
            default = desk.attribute(queue, mqi.MQIA_DEF_PERSISTENCE)
            assert seen == got == [default, 0, 1, default]
            assert set(got) <= {tongue.NOT_PERSISTENT, tongue.PERSISTENT}

    def output_of_get_input_of_put(self) -> None:
        """MQGET sets it whatever it was; MQPUT and MQPUT1 read it and leave it."""
        desk, tongue = self.desk, self.tongue
        queue = desk.local(**YES)
        hobj = desk.opened(queue, mqi.MQOO_OUTPUT | mqi.MQOO_INPUT_SHARED)
        for where in (hobj, queue):
            for value in (0, 1, 2):
                md = desk.send(where, md=tongue.md(value))
                assert tongue.persistence(md) == value
                got = desk.take(hobj, md=tongue.md(77))
                assert tongue.persistence(got.md) == (value if value < 2 else 1)

    def initial_value(self) -> None:
        """A new MQMD says AS_Q_DEF, and so a put with it follows the queue."""
        tongue = self.tongue
        md = tongue.md()
        assert tongue.persistence(md) == tongue.AS_Q_DEF == 2
        assert md.pack()[44:48] == (2).to_bytes(4, "little")
        for value in (0, 1):
            queue = self.desk.local(**WORD[value])
            self.desk.send(queue, md=tongue.md())
            assert tongue.persistence(self.desk.take(queue).md) == value
