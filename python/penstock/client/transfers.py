"""Unloading messages to files and loading them."""

from __future__ import annotations

from ..constants import ReasonCode
from ..errors import ClosedHandle
from .attachment import Attachment

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from datetime import datetime


def _nothing(messages: int) -> None:
    """No progress is shown."""


class Transfers(Attachment):
    """The part of :class:`penstock.QueueManager` that moves messages to and from files."""

    def unload(
        self,
        path: str | os.PathLike[str],
        *queues: str,
        remove: bool = False,
        resume: bool = False,
        parquet: bool = False,
        as_text: bool = False,
        priority: int | tuple[int, int] | None = None,
        msg_id: bytes | None = None,
        correl_id: bytes | None = None,
        format: str | None = None,
        put_from: datetime | None = None,
        put_before: datetime | None = None,
        count: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Writes the messages of queues to a new file, in the order of get(), with all fields of
        their descriptors. Messages that arrive during the call, and delayed ones that are not due,
        are left out.

        With ``remove`` the messages leave their queues, in units of work, each committed when the
        file is on the disk. After a kill or a failure the same call with ``resume`` continues, and
        each message is in the file or on its queue, once; until it has ended, the last messages of
        the file may be on both. How far it has come stands in the queue SYSTEM.TRANSFER.LEDGER.

        Args:
            path: the file, which must not exist without ``resume``; "-": standard output, without
                ``remove``.
            queues: local queues.
            remove: take the messages off their queues.
            resume: continue what an earlier call with ``remove`` has begun, or begin it.
            parquet: a directory of Parquet files instead of JSON lines; needs PyArrow.
            as_text: in JSON lines, bodies of every format as text where they are printable UTF-8;
                else those of MQSTR alone.
            priority: only messages of this Priority, or from the lowest to the highest.
            msg_id, correl_id, format: only messages with this value.
            put_from, put_before: only messages put from, or before, this moment.
            count: at most so many messages.
            progress: called after each unit of work with the messages written.

        Returns:
            The messages in the file.

        Raises:
            penstock.message_files.MessageFileError: the file cannot be continued, and why.
            FileExistsError: there is a file of that name.
            InvalidType, InvalidValue: 2046: an argument.
            UnitInProgress: 2128: this thread or task has a unit of work open.
            MQError: as get(). OSError: as write(2).
        """
        from ..message_files.selection import check_count, selection
        from .unload import UnloadPlan, check_plan, unload

        _check_open(self)
        chosen = selection(priority, msg_id, correl_id, format, put_from, put_before)
        plan = UnloadPlan(str(path), queues, remove, chosen, check_count(count), parquet, as_text)
        check_plan(plan, resume)
        return unload(self, plan, resume, progress or _nothing)

    def load(
        self,
        path: str | os.PathLike[str],
        *,
        queue: str | None = None,
        resume: bool = False,
        again: bool = False,
        parquet: bool = False,
        partial: bool = False,
        priority: int | tuple[int, int] | None = None,
        msg_id: bytes | None = None,
        correl_id: bytes | None = None,
        format: str | None = None,
        put_from: datetime | None = None,
        put_before: datetime | None = None,
        count: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Puts the messages of a file that :meth:`unload` has written, in their order, in units of
        work. After a kill or a failure the same call with ``resume`` continues, and each message is
        put once. How far it has come stands in the queue SYSTEM.TRANSFER.LEDGER.

        MsgId, CorrelId, put time, identity and origin context, priority, persistence and all other
        fields are those of the file; expiry is what was left of it at the unload. BackoutCount is
        0.

        Args:
            path: the file; "-": standard input, which cannot be continued.
            queue: the queue for all messages; None: the one that each message names.
            resume: continue what an earlier call has begun, or begin it.
            again: begin anew although a part of the file has been loaded.
            parquet: a directory of Parquet files, or one of them; needs PyArrow.
            partial: accept a file whose unload was not finished.
            priority, msg_id, correl_id, format, put_from, put_before, count, progress: as of
                unload().

        Returns:
            The messages loaded, by earlier calls that were continued as well.

        Raises:
            penstock.message_files.MessageFileError: file and line of what is no message; the file
                is not complete, or has changed since; a part of it has been loaded.
            UnknownObjectName: 2085: there is no queue of that name.
            MQError: as put(), with file and line. InvalidType, InvalidValue, UnitInProgress,
                OSError: as unload().
        """
        from ..message_files.selection import check_count, selection
        from .load import LoadPlan, load

        _check_open(self)
        chosen = selection(priority, msg_id, correl_id, format, put_from, put_before)
        plan = LoadPlan(str(path), queue, chosen, check_count(count), parquet, partial, again)
        return load(self, plan, resume, progress or _nothing)


def _check_open(qm: Attachment) -> None:
    """Before any file is opened."""
    if qm.closed:
        raise ClosedHandle(
            ReasonCode.HCONN_ERROR, f"the connection to queue manager {qm.name} is closed"
        )
