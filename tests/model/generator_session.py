"""Random calls at the Python interface: batches, prepared units of work."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from model_state import Handle
from mq_numbers import INPUT, NO_ID, OO

if TYPE_CHECKING:
    from model import QueueManager

Op = dict[str, Any]
BODIES = (b"", b"a", b"ten bytes.", b"x" * 40, b"y" * 300)
NAMES = (
    "L.PRTY", "L.PRTY", "L.FIFO", "L.FIFO", "L.HIGH", "L.HIGH", "L.SMALL", "L.ONE", "S.1", "A.PRTY",
    "A.SMALL", "D.FIXED", "D.OTHER", "XMIT.A", "R.ONE", "A.REMOTE", "NO.SUCH", "A.MISSING",
    "L.TRIG", "L.TRIG5", "INIT.Q",
)  # fmt: skip
XIDS = 40  # names of prepared units
# Calls that a process may be killed in.
IN_FLIGHT = ("put_batch", "get_batch", "py_end", "prepare", "end_prepared")


class SessionOps:
    """Draws calls of sessions for a model. A part of Generator."""

    rng: random.Random
    model: QueueManager
    workers: list[int]

    def number(self) -> int:
        raise NotImplementedError

    def session_calls(self) -> list[Any]:
        """(weight, call) for each."""
        return [
            (5, self.py_open),
            (1.5, self.py_close),
            (7, self.put_batch),
            (7, self.get_batch),
            (5, self.browse_batch),
            (0.7, self.mark),
            (1.5, self.py_end),
            (4, self.prepare),
            (3.5, self.end_prepared),
            (1.5, self.browse_prepared),
        ]

    def py_open(self) -> Op | None:
        at = self.rng.choice(self.workers)
        session = self.model.sessions.get(at)
        if session is not None and len(session.handles) > 7:
            return None
        name = self.rng.choice(NAMES)
        options = self.rng.choice((26, 26, 26, 26, 18, 24, 10, 16, 2, 8))
        return {
            "do": "py_open",
            "at": at,
            "hobj": self.number(),
            "name": name,
            "options": options,
        }

    def py_handle(self, right: int) -> tuple[Op, Handle] | None:
        """Arguments that name a handle of a session, mostly one with that right."""
        handles = [
            (at, hobj, handle)
            for at, session in self.model.sessions.items()
            if at in self.workers
            for hobj, handle in session.handles.items()
        ]
        if self.rng.random() < 0.95:
            handles = [row for row in handles if row[2].options & right]
        if not handles:
            return None
        at, hobj, handle = self.rng.choice(handles)
        return {"at": at, "hobj": hobj}, handle

    def py_close(self) -> Op | None:
        found = self.py_handle(-1)
        return None if found is None else {"do": "py_close", **found[0]}

    def put_batch(self) -> Op | None:
        found = self.py_handle(OO.OUTPUT)
        if found is None:
            return None
        rng = self.rng
        kinds: tuple[Any, ...] = rng.choice(((0,), (1,), (None,), (0, 1), (0, 1, None)))
        given = rng.random() < 0.2
        ids = [bytes([n]) * 24 for n in (1, 2, 3)]
        rows = [
            {
                "data": rng.choice(BODIES),
                "priority": rng.choice((None, *range(10), 3, 3, 12)),
                "persistent": rng.choice(kinds),
                "msg_id": rng.choice([None, *ids]) if given else None,
                "correl_id": rng.choice([NO_ID, *ids]),
            }
            for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 3, 4, 6, 9)))
        ]
        return {
            "do": "put_batch",
            **found[0],
            "rows": rows,
            "syncpoint": rng.random() < 0.5,
        }

    def get_batch(self) -> Op | None:
        found = self.py_handle(int(INPUT))
        if found is None:
            return None
        rng = self.rng
        known = self.model.sessions[found[0]["at"]].marks
        path = found[1].path
        marks = [mark for mark, (queue, _) in known.items() if path and queue is path.queue]
        return {
            "do": "get_batch",
            **found[0],
            "most": rng.choice((1, 1, 2, 3, 5, 8, 100)),
            "max_bytes": rng.choice((None, None, None, 1, 10, 60, 350)),
            "syncpoint": rng.random() < 0.6,
            "persistent_only": rng.random() < 0.2,
            "up_to": rng.choice(marks) if marks and rng.random() < 0.3 else None,
        }

    def browse_batch(self) -> Op | None:
        found = self.py_handle(OO.BROWSE)
        if found is None:
            return None
        rng = self.rng
        return {
            "do": "browse_batch",
            **found[0],
            "most": rng.choice((1, 2, 3, 8, 100)),
            "first": rng.random() < 0.3,
            "max_bytes": rng.choice((1 << 20, 1 << 20, 1, 10, 60, 350)),
            "persistent_only": rng.random() < 0.2,
        }

    def mark(self) -> Op | None:
        found = self.py_handle(-1)
        if found is None or found[1].path is None or found[1].path.remote is not None:
            return None
        return {"do": "mark", **found[0], "number": self.number()}

    def busy_session(self) -> int:
        """A process, mostly one whose session has work pending."""
        busy = [
            at
            for at, session in self.model.sessions.items()
            if session.unit.count and at in self.workers
        ]
        return self.rng.choice(busy if busy and self.rng.random() < 0.9 else self.workers)

    def py_end(self) -> Op:
        commit = self.rng.random() < 0.5
        return {"do": "py_end", "at": self.busy_session(), "commit": commit}

    def prepare(self) -> Op:
        rng = self.rng
        used = list(self.model.prepared)
        taken = used and rng.random() < 0.05
        return {
            "do": "prepare",
            "at": self.busy_session(),
            "xid": rng.choice(used) if taken else rng.randrange(XIDS),
            "allow_empty": rng.random() < 0.3,
        }

    def xids(self) -> list[int]:
        """Names of units that are prepared; now and then one that is not, or one twice."""
        rng = self.rng
        known = list(self.model.prepared)
        chosen = rng.sample(known, min(len(known), rng.choice((1, 1, 1, 2, 3))))
        if rng.random() < 0.05 or not chosen:
            chosen.append(rng.choice([*known, rng.randrange(XIDS)]))
        return chosen

    def end_prepared(self) -> Op:
        return {
            "do": "end_prepared",
            "at": self.rng.choice(self.workers),
            "xids": self.xids(),
            "commit": self.rng.random() < 0.5,
        }

    def browse_prepared(self) -> Op:
        first = self.rng.choice((0, 0, 1, 2, 5))
        return {
            "do": "browse_prepared",
            "at": self.rng.choice(self.workers),
            "xid": self.xids()[0],
            "first": first,
            "last": self.rng.choice((None, first, first + 1, first + 3)),
        }
