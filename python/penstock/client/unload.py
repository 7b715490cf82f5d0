"""Unloading: messages of queues to a file, and off the queues when that is wanted.

Removing is exactly once, whenever the process is killed and whenever the power fails, when the same
command is repeated with ``resume`` until it ends. The steps, P a position in the file:

    1  the file gets its name with its header           nothing is removed
    2  the ledger's entry is made: P = behind header    durable
    3  a unit of work gets messages; they are appended to the file, which is synced
    4  the unit replaces the entry, P = behind them, and commits: the messages are gone
       ... 3 and 4 until no message is left
    5  the file gets its end line, and is synced
    6  the entry is removed

A kill before 4 backs the unit out: the messages return to their queues, and ``resume`` cuts the
file off at the entry's P. Which of the two it was is said by the entry alone, so it matters neither
what other programs did with the messages that came back, nor what of the file the disk has. A file
with an end line is complete: ``resume`` only removes the entry. A file with a header and nothing
else and no entry was killed between 1 and 2. A longer file without an entry is refused: somebody
removed the entry.

Delayed messages are left on their queues, too, as no get takes them; a copy without removing has
them with their due times.

Messages that arrive after the beginning are left on the queues: the entry has the newest message
number of each queue. A unit has at most UNIT_MESSAGES messages and about UNIT_BYTES of bodies.

With conditions, a browse of the descriptors selects the messages, and each is got from under the
browse cursor, which is positioned by placement and message number. One that somebody else has got
meanwhile is passed over.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np

from .. import _engine
from .._engine import Unit
from .._mqi_constants.calls import MQOO_BROWSE, MQOO_INPUT_SHARED
from .._mqi_constants.selectors import MQIA_MAX_UNCOMMITTED_MSGS
from ..batch import DTYPE, MessageBatch
from ..constants import ReasonCode
from ..errors import InvalidValue, NoMessageAvailable, NoMessageUnderCursor, UnitLimitReached
from ..message_files import MessageFileError
from ..message_files.file_lock import BEGUN, lock_file
from ..message_files.json_lines import VERSION, JsonLinesWriter
from ..message_files.parquet_files import ParquetWriter
from ..message_files.selection import Selection
from .attachment import Attachment
from .queue import Queue
from .transfer_ledger import QUEUE, Ledger

UNIT_MESSAGES = 5000
UNIT_BYTES = 16 << 20
LEDGERS_SHARE = 2  # messages of a unit that are the ledger's
_LOOK_AHEAD = 4096  # descriptors of a browse that selects
_RETURN_SECONDS = 5.0  # within which what a killed process had got is back on its queue
_PAUSE_SECONDS = 0.01
Writer = JsonLinesWriter | ParquetWriter
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class UnloadPlan:
    """What to unload, where to.

    Attributes:
        path: of the file; "-": standard output.
        queues: in this order.
        remove: take the messages off their queues.
        selection: which messages.
        count: at most so many; None: all.
        parquet: a directory of Parquet files, not JSON lines.
        as_text: bodies as text whatever the format says.
    """

    path: str
    queues: Sequence[str]
    remove: bool
    selection: Selection
    count: int | None
    parquet: bool
    as_text: bool

    def options(self) -> dict[str, Any]:
        """What must be the same when it is continued."""
        return {
            "queues": list(self.queues),
            "selection": self.selection.as_json(),
            "count": self.count,
            "as_text": self.as_text,
        }


def check_plan(plan: UnloadPlan, resume: bool) -> None:
    """Raises InvalidValue: 2046: arguments that do not go together."""
    text = ""
    if not plan.queues:
        text = "unload needs a queue"
    elif len(set(plan.queues)) < len(plan.queues):
        text = "a queue is named twice"
    elif plan.path == "-" and (plan.remove or plan.parquet):
        text = "standard output takes JSON lines, without remove"
    elif plan.remove and QUEUE in plan.queues:
        text = f"{QUEUE}, where unload notes how far it has come, is unloaded without remove"
    elif resume and not plan.remove:
        text = "resume continues an unload with remove; one without is begun anew"
    if text:
        raise InvalidValue(ReasonCode.OPTIONS_ERROR, text)


def unload(qm: Attachment, plan: UnloadPlan, resume: bool, progress: Progress) -> int:
    """See QueueManager.unload(). Returns the messages in the file."""
    if not plan.remove:
        return _copy(qm, plan, progress)
    writer = None
    if resume:
        writer = _reopen(plan)
    if writer is None:
        writer = _new_writer(qm, plan)
    try:
        lock_file(writer.fileno(), plan.path)
        return _move(qm, plan, writer, resume, progress)
    finally:
        writer.close()


def _header(qm: Attachment, plan: UnloadPlan) -> dict[str, Any]:
    return {
        "penstock": "messages",
        "version": VERSION,
        "id": os.urandom(16).hex(),
        "queue_manager": qm.name,
        "queues": list(plan.queues),
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def _new_writer(qm: Attachment, plan: UnloadPlan) -> Writer:
    """A new file, made when every queue can be opened: a name that is wrong leaves no file."""
    for name in plan.queues:
        Queue(qm, name, MQOO_BROWSE | (MQOO_INPUT_SHARED if plan.remove else 0)).close()
    if plan.parquet:
        return ParquetWriter(plan.path, _header(qm, plan))
    return JsonLinesWriter(plan.path, _header(qm, plan), plan.as_text)


def _reopen(plan: UnloadPlan) -> Writer | None:
    """The unfinished file; None: it was killed before the file had its name."""
    if plan.parquet:
        named = os.path.isdir(plan.path) and any(
            not name.endswith(BEGUN) for name in os.listdir(plan.path)
        )
        return ParquetWriter.reopen(plan.path) if named else None
    if not os.path.exists(plan.path):
        return None
    return JsonLinesWriter.reopen(plan.path, plan.as_text)


# ---- with removing ----


def _move(
    qm: Attachment, plan: UnloadPlan, writer: Writer, resume: bool, progress: Progress
) -> int:
    file_id = writer.header.get("id")
    if not isinstance(file_id, str):
        raise MessageFileError(f"{plan.path}: the header has no id")
    ledger = Ledger(qm, "unload", file_id, os.path.abspath(plan.path))
    with qm.transaction() as unit:
        if resume:
            done = writer.finished()
            if done is not None:
                ledger.remove_finished(unit)
                return done
        bounds, position = _begin(qm, plan, writer, ledger, unit, resume)
        for name in plan.queues:
            position = _move_queue(
                qm, plan, writer, ledger, unit, name, bounds[name], position, progress
            )
        writer.finish()
        ledger.remove(unit)
        done = position["messages"]
        return int(done)


def _begin(
    qm: Attachment, plan: UnloadPlan, writer: Writer, ledger: Ledger, unit: Unit, resume: bool
) -> tuple[dict[str, int], dict[str, Any]]:
    """Steps 1 and 2, or what they are for a file that is continued: the newest message number of
    each queue, and the position of the file.
    """
    entry = ledger.read(unit)
    if entry is None:
        if not writer.is_empty():
            text = f"{plan.path}: not finished, and {qm.name} has no record of it"
            raise MessageFileError(f"{text}: it was unloaded elsewhere, or the record was removed")
        bounds = {name: _newest(qm, name) for name in plan.queues}
        position = writer.start()
        ledger.begin(unit, {**plan.options(), "up_to": bounds}, position, None)
        return bounds, position
    assert resume  # else the file is new, and its identity
    bounds, position = entry["options"].pop("up_to"), entry["position"]
    if entry["options"] != plan.options():
        text = "was begun with other queues, conditions or options"
        raise MessageFileError(f"{plan.path}: {text}: {entry['options']}")
    writer.go_to(position)
    ledger.begin(unit, {**plan.options(), "up_to": bounds}, position, position["messages"])
    _await_returns(qm, plan.queues)
    return bounds, position


def _newest(qm: Attachment, name: str) -> int:
    with Queue(qm, name, MQOO_INPUT_SHARED | MQOO_BROWSE) as queue:
        return queue.newest_number


def _await_returns(qm: Attachment, names: Sequence[str]) -> None:
    """Waits until what a killed process had got is back; units of living ones are not waited for
    any longer.
    """
    end = time.monotonic() + _RETURN_SECONDS
    for name in names:
        with Queue(qm, name, MQOO_INPUT_SHARED | MQOO_BROWSE) as queue:
            while queue.counts()["got"] and time.monotonic() < end:
                time.sleep(_PAUSE_SECONDS)


def unit_limit(qm: Attachment) -> int:
    """Messages of a unit of work, beside the ledger's. Raises UnitLimitReached."""
    most = qm.own_attribute(MQIA_MAX_UNCOMMITTED_MSGS, UNIT_MESSAGES + LEDGERS_SHARE)
    if most <= LEDGERS_SHARE:
        raise UnitLimitReached(
            ReasonCode.SYNCPOINT_LIMIT_REACHED,
            f"MAXUMSGS is {most}; unload and load need {LEDGERS_SHARE + 1} messages a unit of work",
        )
    return min(UNIT_MESSAGES, most - LEDGERS_SHARE)


def _move_queue(
    qm: Attachment, plan: UnloadPlan, writer: Writer, ledger: Ledger, unit: Unit, name: str,
    up_to: int, position: dict[str, Any], progress: Progress,
) -> dict[str, Any]:  # fmt: skip
    """Steps 3 and 4 for a queue, until it has no message that is wanted."""
    most = unit_limit(qm)
    with Queue(qm, name, MQOO_INPUT_SHARED | MQOO_BROWSE) as queue:
        take = _taker(queue, plan.selection, up_to)
        while True:
            left = most
            if plan.count is not None:
                left = min(left, plan.count - position["messages"])
            batch = take(left) if left > 0 else None
            if batch is None or not len(batch):
                return position
            writer.append(name, batch)
            position = writer.sync()
            ledger.commit(unit, position)
            progress(position["messages"])


def _taker(queue: Queue, selection: Selection, up_to: int) -> Callable[[int], MessageBatch]:
    """Gets the next messages of a unit, at most so many; none at the end."""
    if not selection:
        return lambda most: queue.get_batch(most, max_bytes=UNIT_BYTES, up_to=up_to)
    chosen = _selected(queue, selection, up_to)

    def take(most: int) -> MessageBatch:
        rows: list[Any] = []
        bodies: list[bytes] = []
        size = 0
        for row in chosen:
            message = _get_at(queue, row)
            if message is not None:
                rows.append(message)
                bodies.append(message.data)
                size += len(message.data)
                if len(rows) == most or size >= UNIT_BYTES:
                    break
        return _batch_of(queue, rows, bodies)

    return take


def _selected(queue: Queue, selection: Selection, up_to: int) -> Iterator[np.void]:
    """The rows of the messages that meet the conditions, in the order of delivery."""
    with Queue(queue.connection, queue.name, MQOO_BROWSE) as browser:
        first = True
        while True:
            rows = browser.browse_batch(
                _LOOK_AHEAD, first=first, up_to=up_to, bodies=False
            ).descriptors
            first = False
            if not len(rows):
                return
            yield from rows[selection.mask(rows)]


def _get_at(queue: Queue, row: np.void) -> _engine.Message | None:
    """Gets the message of a row in the unit of work; None: it is not there any more."""
    placement, number = int(row["placement"]), int(row["number"])
    one = np.empty(1, DTYPE)
    ends = ((placement, number - 1), (placement, number))
    count, _ = _engine.batch_browse(queue, one, None, None, True, 0, False, None, ends)
    if not count:
        return None
    try:
        return queue.get(under_cursor=True)
    except (NoMessageUnderCursor, NoMessageAvailable):
        return None


def _batch_of(
    queue: Queue, messages: Sequence[_engine.Message], bodies: Sequence[bytes]
) -> MessageBatch:
    """Single messages as a batch."""
    rows = np.empty(len(messages), DTYPE)
    _engine.batch_start(queue, rows)  # an extension for messages that have none
    raw = rows.view(np.uint8).reshape(-1, DTYPE.itemsize)
    for at, message in enumerate(messages):
        state: Any = message.__reduce__()[1]
        _, descriptor, extension, expiry, length, number, _ = state
        raw[at, : len(descriptor)] = np.frombuffer(descriptor, np.uint8)
        if extension is not None:
            end = len(descriptor) + len(extension)
            raw[at, len(descriptor) : end] = np.frombuffer(extension, np.uint8)
        rows["expiry"][at], rows["length"][at], rows["number"][at] = expiry, length, number
    offsets = np.zeros(len(bodies) + 1, np.int64)
    np.cumsum([len(body) for body in bodies], out=offsets[1:])
    return MessageBatch(rows, np.frombuffer(b"".join(bodies), np.uint8), offsets)


# ---- without removing ----


def _copy(qm: Attachment, plan: UnloadPlan, progress: Progress) -> int:
    """Browses the queues. Not exactly once: messages that come back behind the cursor are missed,
    and a file that was left unfinished is begun anew.
    """
    writer = _new_writer(qm, plan)
    try:
        done = 0
        for name in plan.queues:
            done = _copy_queue(qm, plan, writer, name, done, progress)
        writer.finish()
        return done
    finally:
        writer.close()


def _copy_queue(
    qm: Attachment, plan: UnloadPlan, writer: Writer, name: str, done: int, progress: Progress
) -> int:
    with Queue(qm, name, MQOO_BROWSE) as queue:
        up_to = queue.newest_number
        first = True
        while plan.count is None or done < plan.count:
            most = UNIT_MESSAGES
            if plan.count is not None and not plan.selection:
                most = min(most, plan.count - done)
            batch = queue.browse_batch(
                most, first=first, up_to=up_to, max_bytes=UNIT_BYTES, delayed=True
            )
            first = False
            if not len(batch):
                break
            if plan.selection:
                limit = None if plan.count is None else plan.count - done
                batch = _chosen(
                    batch, np.flatnonzero(plan.selection.mask(batch.descriptors))[:limit]
                )
            if len(batch):
                writer.append(name, batch)
                if isinstance(writer, ParquetWriter):
                    writer.sync()
            done += len(batch)
            progress(done)
    return done


def _chosen(batch: MessageBatch, chosen: Any) -> MessageBatch:
    """Some messages of a batch."""
    bodies = [batch.body(at) for at in chosen.tolist()]
    offsets = np.zeros(len(bodies) + 1, np.int64)
    np.cumsum([len(body) for body in bodies], out=offsets[1:])
    rows = np.ascontiguousarray(batch.descriptors[chosen])
    return MessageBatch(rows, np.frombuffer(b"".join(bodies), np.uint8), offsets)
