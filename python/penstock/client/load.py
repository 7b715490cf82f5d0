"""Loading: the messages of a file onto queues.

Exactly once, whenever the process is killed and whenever the power fails, when the same command is
repeated with ``resume`` until it ends. The steps, P a position in the file:

    1  the ledger's entry is made: P = behind the header   durable
    2  messages behind P are read; a unit of work puts them,
       replaces the entry, P = behind them, and commits
       ... 2 until the file is at its end
    3  the entry says that all is loaded, and expires after a week

A kill before a commit backs the unit out, and ``resume`` continues at the entry's P. Without an
entry it begins, because that was killed before 1. A load that is not a ``resume`` begins anew, but
not while the entry says that the file is loaded in part. Files without an identity and standard
input have no entry.

What a put cannot set: the message number, and so the moment since which the message waits; the
BackoutCount, which is 0. Expiry runs on from what was left at the unload.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _engine
from .._engine import Unit
from .._mqi_constants.calls import MQOO_OUTPUT
from ..batch import DTYPE
from ..errors import MQError
from ..message_files import MessageFileError
from ..message_files.file_lock import lock_file
from ..message_files.json_lines import JsonLinesReader, JsonPart
from ..message_files.parquet_files import ParquetPart, ParquetReader
from ..message_files.selection import Selection
from .attachment import Attachment
from .queue import Queue
from .transfer_ledger import Ledger
from .unload import UNIT_BYTES, Progress, unit_limit

Reader = JsonLinesReader | ParquetReader
Part = JsonPart | ParquetPart


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What to load.

    Attributes:
        path: of the file; "-": standard input.
        queue: for all messages; None: the one that each of them names.
        selection: which messages.
        count: at most so many; None: all.
        parquet: Parquet files, not JSON lines.
        partial: accept a file whose unload was not finished.
        again: begin anew although the file is loaded in part.
    """

    path: str
    queue: str | None
    selection: Selection
    count: int | None
    parquet: bool
    partial: bool
    again: bool

    def options(self) -> dict[str, Any]:
        """What must be the same when it is continued."""
        return {
            "queue": self.queue,
            "selection": self.selection.as_json(),
            "count": self.count,
        }


def load(qm: Attachment, plan: LoadPlan, resume: bool, progress: Progress) -> int:
    """See QueueManager.load(). Returns the messages loaded, by earlier runs as well."""
    reader: Reader
    reader = (ParquetReader if plan.parquet else JsonLinesReader)(plan.path, plan.partial)
    try:
        file_id = reader.header.get("id")
        if plan.path == "-" or not isinstance(file_id, str):
            if resume:
                raise MessageFileError(f"{reader.name}: no identity, which resume needs")
            with qm.transaction() as unit:
                return _Loader(qm, plan, reader, None, unit).run(0, progress)
        lock_file(reader.fileno(), plan.path)
        ledger = Ledger(qm, "load", file_id, os.path.abspath(plan.path))
        with qm.transaction() as unit:
            loaded, finished = _begin(plan, reader, ledger, unit, resume)
            if finished:
                return loaded
            return _Loader(qm, plan, reader, ledger, unit).run(loaded, progress)
    finally:
        reader.close()


def _begin(
    plan: LoadPlan, reader: Reader, ledger: Ledger, unit: Unit, resume: bool
) -> tuple[int, bool]:
    """Step 1: the messages that earlier runs have loaded, and whether that is all of them."""
    entry = ledger.read(unit)
    expected = None if entry is None else entry["position"]["messages"]
    finished = entry is not None and entry.get("finished", False)
    if entry is None or finished or plan.again:
        if resume and finished:
            assert entry is not None
            return int(entry["position"]["loaded"]), True
        ledger.begin(unit, plan.options(), {**reader.position(), "loaded": 0}, expected)
        return 0, False
    position = entry["position"]
    if not resume:
        text = f"{position['loaded']} messages of it have been loaded already"
        raise MessageFileError(f"{plan.path}: {text}: --resume continues, --again begins anew")
    if entry["options"] != plan.options():
        text = "was begun with another queue, other conditions or another count"
        raise MessageFileError(f"{plan.path}: {text}: {entry['options']}")
    reader.go_to(position)
    ledger.begin(unit, plan.options(), position, expected)
    return int(position["loaded"]), False


class _Loader:
    """Puts parts of a file, a unit of work each."""

    def __init__(
        self, qm: Attachment, plan: LoadPlan, reader: Reader, ledger: Ledger | None, unit: Unit
    ) -> None:
        self._qm, self._plan, self._reader = qm, plan, reader
        self._ledger, self._unit = ledger, unit
        self._queues: dict[str, Queue] = {}

    def run(self, loaded: int, progress: Progress) -> int:
        """Steps 2 and 3; the number of messages loaded, by earlier runs as well."""
        most = unit_limit(self._qm)
        count = self._plan.count
        try:
            while count is None or loaded < count:
                part = self._reader.read(most, UNIT_BYTES)
                if not len(part):
                    break
                loaded += self._put(part, None if count is None else count - loaded)
                self._commit(loaded, False)
                progress(loaded)
            self._commit(loaded, True)
        finally:
            for queue in self._queues.values():
                queue.close()
        return loaded

    def _commit(self, loaded: int, finished: bool) -> None:
        if self._ledger is None:
            self._unit.commit()
        else:
            position = {**self._reader.position(), "loaded": loaded}
            self._ledger.commit(self._unit, position, finished)

    def _put(self, part: Part, most: int | None) -> int:
        """Puts what is wanted of a part in the unit: each queue's messages in their order."""
        by_queue: dict[str, list[int]] = {}
        for at, name in enumerate(part.queues):
            name = self._plan.queue or name or ""
            if not name:
                text = "the message names no queue; say which with --queue"
                raise MessageFileError(f"{part.where(at)}: {text}")
            by_queue.setdefault(name, []).append(at)
        done = 0
        for name, chosen in by_queue.items():
            left = None if most is None else most - done
            done += self._put_on(self._queue(name, part.where(chosen[0])), part, chosen, left)
        return done

    def _queue(self, name: str, where: str) -> Queue:
        if name not in self._queues:
            try:
                self._queues[name] = Queue(self._qm, name, MQOO_OUTPUT)
            except MQError as error:
                raise type(error)(error.reason, f"{where}: {error.text}") from None
        return self._queues[name]

    def _put_on(self, queue: Queue, part: Part, chosen: Sequence[int], most: int | None) -> int:
        rows = np.empty(len(chosen), DTYPE)
        _engine.batch_start(queue, rows)
        part.fill(rows, chosen)
        timeless = ~np.array(part.has_time(chosen), bool)
        rows["put_time"][timeless] = np.datetime64("now", "us")
        wanted = np.flatnonzero(self._plan.selection.mask(rows))[:most]
        rows = np.ascontiguousarray(rows[wanted])
        places = [chosen[at] for at in wanted.tolist()]
        bodies = [part.bodies[at] for at in places]
        offsets = np.zeros(len(bodies) + 1, np.int64)
        np.cumsum([len(body) for body in bodies], out=offsets[1:])
        if rows["due_us"].any():
            queue.check_delays()
        _engine.batch_complete_reply(queue, rows)
        reason, count, failed, _ = _engine.batch_put(
            queue, rows, b"".join(bodies), offsets, True, True
        )
        if reason:
            try:
                _engine.batch_fail(queue, reason, count, failed)
            except MQError as error:
                text = f"{part.where(places[failed])}: {error.text}"
                raise type(error)(error.reason, text) from None
        return len(bodies)
