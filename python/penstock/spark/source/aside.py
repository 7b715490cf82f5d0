"""Messages that a stream puts aside: they are no rows of its micro-batch.

========================================  =========================================================
message                                   goes to
========================================  =========================================================
its BackoutCount has reached BOTHRESH     BOQNAME; where that is blank (2362) or its put fails
                                          (that reason), the dead-letter queue
its body is bad (bodies.py), and          the dead-letter queue, with 2110
onBadBody is deadLetter
========================================  =========================================================

The dead-letter queue is that of the option deadLetterQueue, else DEADQ; messages there are behind
an MQDLH. When a message cannot be put there either, the query ends and nothing has been moved.

When a micro-batch is planned, its units are searched, and copies of such messages are put in units
of their own, the *aside units*, which are prepared before any row is read and committed in the
atomic call that removes the micro-batch from the queue. So a message is either a row or put aside,
once, whichever process is killed. Tasks leave the same messages out: their rule is carried in the
partition.

Each queue of a stream has its own rule, as BOTHRESH and BOQNAME are a queue's. It must not change
once rows of the micro-batch may have been written. It is, in this order:

1. that in the names of its aside units, if they are all there,
2. the present one, if messages of the micro-batch were taken just now: nobody has read a row,
3. that in its offset; but where it says that a bad body ends the query, the present option: no
   micro-batch with a bad body has been written then. So a query that a bad body has ended continues
   when it is started with another onBadBody.

The rest of an aside unit's qualifier is ``<queue>.<n>.<of>.<threshold>.<onBadBody>.<type>.<backed
out>.<bad>``: the place of the queue among those of the micro-batch; the unit is one of several
(MAXUMSGS limits each); the rule; a hash of the type of the column body; and the messages that the
unit counts, which go into the stream's entry of the ledger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import penstock
from penstock.client.dead_letters import dead_letter_queue, header
from penstock.client.identity_context import identity
from penstock.constants import ReasonCode

from ..base import acting, units
from ..base.connection import open_queue
from ..base.errors import SourceError
from .rules import DEAD_LETTER, FAIL, KEEP_ALL, NULL, Rules

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from penstock import Message, Queue, QueueManager, Xid
    from penstock.batch import MessageBatch
    from penstock.client.status import PreparedStatus

    from ..base.options import Options

__all__ = ["Aside", "Batch", "Counts", "counted", "counts_in"]

_AT_A_TIME = 1_000  # messages that are read to be put aside
_ROWS, _ROOM = 10_000, 8 << 20  # of a chunk that is searched
_LETTERS = {FAIL: "f", NULL: "n", DEAD_LETTER: "d"}
_MOST = 50_000  # messages of an aside unit, so that its name is short enough
_UNIX = 6  # MQAT_UNIX


class Counts(NamedTuple):
    """Messages that had reached BOTHRESH, and bad bodies."""

    backed_out: int = 0
    bad: int = 0

    def plus(self, other: Counts) -> Counts:
        """The sums."""
        return Counts(self.backed_out + other.backed_out, self.bad + other.bad)

    def entry(self) -> dict[str, int]:
        """As a part of a stream's entry in the ledger."""
        return {"backedOut": self.backed_out, "badBodies": self.bad} if any(self) else {}


def counts_in(entry: Mapping[str, Any] | None) -> Counts:
    """The sums in a stream's entry in the ledger."""
    found = entry or {}
    return Counts(found.get("backedOut", 0), found.get("badBodies", 0))


def counted(rests: Iterable[str]) -> Counts:
    """The sums of aside units, of which these are the rests of the qualifiers."""
    sums = Counts()
    for rest in rests:
        sums = sums.plus(_Name.parse(rest).counts)
    return sums


class Batch(NamedTuple):
    """The part of a micro-batch that is of one queue: its stream and number, and the place of the
    queue among those of the micro-batch, by name.
    """

    stream: str
    number: int
    queue: int


class _Name(NamedTuple):
    """The rest of an aside unit's qualifier."""

    queue: int
    nth: int
    of: int
    rules: Rules
    kind: str
    counts: Counts

    def __str__(self) -> str:
        rule = (self.rules.threshold, _LETTERS[self.rules.on_bad], self.kind)
        return ".".join(map(str, (self.queue, self.nth, self.of, *rule, *self.counts)))

    @classmethod
    def parse(cls, rest: str) -> _Name:
        queue, nth, of, threshold, letter, kind, backed_out, bad = rest.split(".")
        on_bad = next(word for word, own in _LETTERS.items() if own == letter)
        rules, counts = Rules(int(threshold), on_bad), Counts(int(backed_out), int(bad))
        return cls(int(queue), int(nth), int(of), rules, kind, counts)

    @property
    def puts(self) -> int:
        """Messages that the unit puts."""
        return self.counts.backed_out + (self.counts.bad if self.rules.on_bad == DEAD_LETTER else 0)


class _Found(NamedTuple):
    """A message to be put aside, or only counted: its place in a unit."""

    xid: Xid
    place: int
    is_bad: bool


class Aside:
    """The rule of a stream for one of its queues, and what it puts aside."""

    def __init__(self, options: Options, schema: StructType, queue: str) -> None:
        """Prepares it. ``schema``: of the rows."""
        self._options = options
        self._schema = schema
        self._queue = queue
        kinds = [f.dataType.simpleString() for f in schema.fields if f.name == "body"]
        self._kind = _digest(kinds[0] if kinds else "binary")
        has_bad = bool(kinds) and kinds[0] != "binary"
        self._on_bad = options["onBadBody"] if has_bad else FAIL

    def rules(self, qm: QueueManager) -> Rules:
        """The present rule."""
        for own in qm.display("QLOCAL", self._queue):
            return Rules(int(str(own["bothresh"])), self._on_bad)
        return Rules(0, self._on_bad)  # the queue was deleted

    def noted(self, rules: Rules) -> list[Any]:
        """What an offset says of a rule; nothing of the one that keeps all."""
        return [] if rules == KEEP_ALL else [*rules, self._kind]

    def settle(
        self,
        qm: QueueManager,
        batch: Batch,
        there: Mapping[Xid, str],
        noted: list[Any],
        taken: list[PreparedStatus],
        is_new: bool,
    ) -> Rules:
        """Prepares the aside units of a micro-batch, unless they are there; returns its rule.

        Args:
            qm: The connection.
            batch: The micro-batch.
            there: Its aside units, of all queues, as units.asides() has them.
            noted: What its offset says of the rule.
            taken: Its units with messages of the queue, in order.
            is_new: Whether messages of it were taken just now.

        Raises:
            SourceError: The query declares another type of body than when it began the micro-batch.
            MQError: A message can be put nowhere.
        """
        parsed = {xid: _Name.parse(rest) for xid, rest in there.items()}
        names = {xid: name for xid, name in parsed.items() if name.queue == batch.queue}
        noted = noted or [*KEEP_ALL, self._kind]
        if names and self._is_whole(qm, names):
            first = next(iter(names.values()))
            self._check_kind(batch, first.kind)
            return first.rules
        units.back_out(qm, names)
        if names:
            rules = next(iter(names.values())).rules
        elif is_new:
            rules = self.rules(qm)
        else:
            self._check_kind(batch, noted[2])
            rules = Rules(noted[0], self._on_bad if noted[1] == FAIL else noted[1])
        if rules == KEEP_ALL:
            return rules
        found = self._search(qm, taken, rules)
        if found or [*rules, self._kind] != noted:
            self._prepare(qm, batch, rules, found)
        return rules

    def _is_whole(self, qm: QueueManager, names: Mapping[Xid, _Name]) -> bool:
        """Whether all units are there, with all messages: a restart loses those that are not
        persistent.
        """
        puts = {status.xid: status.puts for status in qm.prepared_list()}
        first = next(iter(names.values()))
        same = all((n.of, n.rules, n.kind) == (first.of, first.rules, first.kind)
                   for n in names.values())  # fmt: skip
        there = all(puts.get(xid, 0) == name.puts for xid, name in names.items())
        return same and there and len(names) == first.of

    def _check_kind(self, batch: Batch, kind: str) -> None:
        if kind != self._kind:
            raise SourceError(
                f"micro-batch {batch.number} was begun with another type of the column body: start "
                "the query with that one until it is done"
            )

    # ---- searching ----

    def _search(self, qm: QueueManager, taken: list[PreparedStatus], rules: Rules) -> list[_Found]:
        from penstock.batch.prepared import prepared_chunks

        from ..base.schema import arrow_schema
        from .arrow_from_messages import Rows

        schema = arrow_schema(self._schema)
        names = [name for name in schema.names if name == "body"]
        own = schema.empty_table().select(names).schema
        build = Rows("", own, self._options["includeProperties"], rules)
        found = []
        for status in taken:
            at = 0
            parts = prepared_chunks(qm, status.xid, 0, status.gets, build.fill, _ROWS, _ROOM)
            for part in parts:
                poison, bad = build.marks(part)
                if rules.on_bad == FAIL:
                    bad[:] = False
                for index in (poison | bad).nonzero()[0].tolist():
                    found.append(_Found(status.xid, at + index, bool(bad[index])))
                at += len(part)
        return found

    # ---- putting ----

    def _prepare(self, qm: QueueManager, batch: Batch, rules: Rules, found: list[_Found]) -> None:
        """Puts copies, and prepares them."""
        most = min(_MOST, int(str(qm.display("QMGR")[0]["maxumsgs"])))
        groups = [found[at : at + most] for at in range(0, len(found), most)] or [[]]
        made: list[Xid] = []
        counts = Counts()
        with _Target(qm, self._options, self._queue) as target:
            try:
                for nth, group in enumerate(groups):
                    bad = sum(one.is_bad for one in group)
                    own = Counts(len(group) - bad, bad)
                    name = _Name(batch.queue, nth, len(groups), rules, self._kind, own)
                    if rules.on_bad != DEAD_LETTER:
                        group = [one for one in group if not one.is_bad]
                    target.put_all(group)
                    xid = units.aside_unit(batch.stream, batch.number, str(name))
                    target.prepare(xid)
                    made.append(xid)
                    counts = counts.plus(own)
            except penstock.XidInUse:  # another driver was faster, by the same rule
                return
            except BaseException:
                units.back_out(qm, made)
                raise
        qm.prepared_list()  # makes them durable
        if any(counts):
            became = "null" if rules.on_bad == NULL else "moved to the dead-letter queue"
            acting.warn(
                f"queue manager {qm.name}, queue {self._queue}, micro-batch {batch.number} of "
                f"stream {batch.stream}: {counts.backed_out} messages have reached BOTHRESH and "
                f"were moved, {counts.bad} bodies could not be decoded and were {became}",
                stacklevel=4,
            )


class _Target:
    """The queues for messages that are put aside; opened when they are needed."""

    def __init__(self, qm: QueueManager, options: Options, source: str) -> None:
        self._qm = qm
        self._options = options
        self._source = source
        self._open: dict[str, Queue] = {}
        self.unit = qm.unit()

    def __enter__(self) -> _Target:
        return self

    def __exit__(self, *_: object) -> None:
        self.unit.backout()
        for queue in self._open.values():
            queue.close()

    def put_all(self, found: list[_Found]) -> None:
        """Puts the messages in the open unit of work."""
        at = 0
        while at < len(found):
            xid, first, _ = found[at]
            batch = self._qm.browse_prepared(xid, first, first + _AT_A_TIME)
            while at < len(found) and found[at].xid == xid:
                index = found[at].place - first
                if index >= len(batch):
                    break
                self._put(batch[index : index + 1], batch[index], found[at].is_bad)
                at += 1

    def prepare(self, xid: Xid) -> None:
        """Prepares the unit of work, and begins the next one."""
        self.unit.prepare(xid, allow_empty=True, wait=False)
        self.unit = self._qm.unit()

    def _put(self, one: MessageBatch, message: Message, is_bad: bool) -> None:
        if is_bad:
            self._dead_letter(message, ReasonCode.FORMAT_ERROR)
            return
        own = self._qm.display("QLOCAL", self._source)
        name = str(own[0]["boqname"]).strip() if own else ""
        if not name:
            self._dead_letter(message, ReasonCode.BACKOUT_THRESHOLD_REACHED)
            return
        rows = one.descriptors
        try:
            self._queue(name).put_batch(
                one,
                unit=self.unit,
                user_identifier=rows["user_identifier"],
                put_time_us=rows["put_time"].astype("M8[us]").astype("i8"),
            )
        except penstock.MQError as error:
            self._dead_letter(message, error.reason)

    def _dead_letter(self, message: Message, reason: int) -> None:
        try:
            name = self._options["deadLetterQueue"] or dead_letter_queue(self._qm)
            text = header(
                reason,
                (self._source, self._qm.name),
                (message.encoding, message.ccsid, message.format),
                (_UNIX, identity()[1]),
            )
            self._queue(name).put_again(message, text + message.data, "MQDEAD", self.unit)
        except penstock.MQError as error:
            raise SourceError(
                f"message {message.number} (msg_id {message.msg_id.hex()}) of queue {self._source} "
                f"is to be put aside with reason {int(reason)}, and there is no queue that takes "
                f"it: {error}"
            ) from error

    def _queue(self, name: str) -> Queue:
        if name not in self._open:
            self._open[name] = open_queue(self._qm, name, "output")
        return self._open[name]


def _digest(kind: str) -> str:
    return hashlib.sha256(kind.encode()).hexdigest()[:6]
