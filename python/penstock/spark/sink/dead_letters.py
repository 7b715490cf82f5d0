"""Rows that a sink cannot put: with the option deadLetterQueue they become messages of that queue,
behind an MQDLH with the reason, in the unit of work in which they would have been put.

===========================================  =============================
a row                                        reason
===========================================  =============================
is longer than its queue, or the queue       2030, 2031
manager, takes
meets a full queue                           2053
meets a queue that takes no puts, is gone,   2051, 2052, 2085, 2152, 2057,
or has no valid name, or none                and those of aliases
has a field that no message can have         that of the field, such as 2013
has no body (null)                           2004
===========================================  =============================

Every other error, of storage or of the connection, fails the job as it does without the option; and
so does a row that the dead-letter queue does not take. Nothing of the batch is put then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import penstock
from penstock._mqi_constants.descriptor import MQAT_UNIX, MQFMT_DEAD_LETTER_HEADER
from penstock.client.dead_letters import header
from penstock.client.identity_context import identity
from penstock.constants import ReasonCode as RC

from ..base.errors import SourceError

if TYPE_CHECKING:
    from penstock import Queue

__all__ = ["DeadLetters", "is_of_queue", "is_of_rows"]

_OF_QUEUE = frozenset(
    (
        RC.PUT_INHIBITED, RC.Q_DELETED, RC.Q_TYPE_ERROR, RC.UNKNOWN_ALIAS_BASE_Q,
        RC.UNKNOWN_OBJECT_NAME, RC.OBJECT_NAME_ERROR, RC.ALIAS_BASE_Q_TYPE_ERROR,
        RC.UNKNOWN_REMOTE_Q_MGR, RC.UNKNOWN_OBJECT_Q_MGR, RC.UNKNOWN_XMIT_Q, RC.XMIT_Q_TYPE_ERROR,
    )
)  # fmt: skip
_OF_ROWS = frozenset((RC.MSG_TOO_BIG_FOR_Q, RC.MSG_TOO_BIG_FOR_Q_MGR, RC.Q_FULL))
_NAME = 48  # of DestQName


def is_of_queue(error: penstock.MQError) -> bool:
    """Whether no row can be put on the queue."""
    return error.reason in _OF_QUEUE


def is_of_rows(error: penstock.MQError) -> bool:
    """Whether the error is of one of the rows, or of their queue."""
    return is_of_queue(error) or error.reason in _OF_ROWS or error.index is not None


class DeadLetters:
    """The dead-letter queue of a task."""

    def __init__(self, queue: Queue, persistence: int, expiry: float | None) -> None:
        """Prepares it.

        Args:
            queue: Open for output.
            persistence, expiry: As of fields().
        """
        self._queue = queue
        self._defaults = persistence, expiry
        self.counts: dict[int, int] = {}  # reason -> rows

    def put(self, rows: Any, reason: int, name: str) -> None:
        """Puts rows in this thread's unit of work.

        Args:
            rows: A record batch without the column properties.
            reason: Why they could not be put.
            name: Of their queue.

        Raises:
            SourceError: One of them cannot be put there.
        """
        texts = self._texts(rows, reason, name)
        try:
            self._put(rows, texts, True)
        except penstock.MQError:
            for index, text in enumerate(texts):
                self._put_one(rows.slice(index, 1), text, reason)
        self.counts[reason] = self.counts.get(reason, 0) + rows.num_rows

    def _put_one(self, row: Any, text: bytes, reason: int) -> None:
        """A row, without its fields if they are wrong."""
        try:
            try:
                self._put(row, [text], True)
            except penstock.MQError as error:
                if error.reason in _OF_ROWS or is_of_queue(error):
                    raise
                self._put(row, [text], False)
        except penstock.MQError as error:
            raise SourceError(
                f"a row that cannot be put, reason {int(reason)}, is not taken by the dead-letter "
                f"queue {self._queue.name} either: {error}"
            ) from error

    def _put(self, rows: Any, texts: list[bytes], has_fields: bool) -> None:
        from penstock.arrow.messages_from_arrow import fields

        persistence, expiry = self._defaults
        given = fields(rows, persistence, expiry) if has_fields else {"persistent": persistence}
        for name in ("format", "ccsid", "encoding"):
            given.pop(name, None)
        self._queue.put_batch(texts, syncpoint=True, format=MQFMT_DEAD_LETTER_HEADER, **given)

    def _texts(self, rows: Any, reason: int, name: str) -> list[bytes]:
        """Headers and bodies."""
        from penstock.arrow.messages_from_arrow import bodies, data_fields

        to = name.encode("ascii", "replace").decode("ascii")[:_NAME], self._queue.connection.name
        origin = MQAT_UNIX, identity()[1]
        heads: dict[tuple[int, int, str], bytes] = {}
        texts = []
        for body, data in zip(bodies(rows).to_pylist(), data_fields(rows), strict=True):
            if data not in heads:
                try:
                    heads[data] = header(reason, to, data, origin)
                except (penstock.MQError, OverflowError, ValueError):  # they may be what is wrong
                    heads[data] = header(reason, to, (0, 0, ""), origin)
            texts.append(heads[data] + (body or b""))
        return texts
