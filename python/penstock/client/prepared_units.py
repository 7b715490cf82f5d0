"""Prepared units of work: prepare, list, read, resolve."""

from __future__ import annotations

from .. import _engine
from .attachment import Attachment

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from .._engine import Xid
    from ..batch.prepared import PreparedBatch
    from .status import PreparedStatus


class PreparedUnits(Attachment):
    """The part of :class:`penstock.QueueManager` for units of work of two-phase commit."""

    def prepare(self, xid: Xid, *, allow_empty: bool = False, wait: bool = True) -> None:
        """Prepares the unit of work that this thread or task has begun (with ``syncpoint=True``, or
        as a ``transaction()``). The unit becomes durable and independent of its process, and stays
        until it is committed or backed out by its name. This thread or task continues with a new
        unit of work.

        Non-persistent messages that the unit got are logged, too: after a restart they can be read
        (:meth:`browse_prepared`), but a backout discards them. Non-persistent messages that the
        unit put are lost at a restart, as in MQ.

        Args:
            xid: the name; no other prepared unit may have it.
            allow_empty: accept a unit without messages.
            wait: False: return before the unit is durable. It becomes durable when :meth:`recover`
                or :meth:`prepared_list` has returned it, or a later unit is prepared with a wait; a
                crash before that backs it out. For several units, of which the last one waits.

        Raises:
            XidInUse: 2128: there is a prepared unit of that name; nothing has changed.
            UnitNotAvailable: 2255: the unit is empty, without ``allow_empty``.
            BackedOut: 2003: the queue manager had backed it out.
            StorageMediumFull: 2192: it can still be committed or backed out.
            ConnectionBroken: 2009: the outcome is known after the restart.
        """
        _engine.prepare(self, xid, allow_empty, wait)

    def recover(self) -> list[Xid]:
        """The names of all prepared units of work of the queue manager, oldest first."""
        return [row["xid"] for row in _engine.prepared_rows(self)]

    def prepared_list(self) -> list[PreparedStatus]:
        """All prepared units of work, oldest first."""
        from .status import PreparedStatus

        return [PreparedStatus(**row) for row in _engine.prepared_rows(self)]

    def commit_prepared(self, *xids: Xid) -> None:
        """Commits prepared units of work: all of them, or, when it raises, none. Durable on return.

        Args:
            xids: 1 to 4,096 different names.

        Raises:
            UnknownXid: 2255: no prepared unit has one of the names, or it is being resolved.
            InvalidValue: 2046: no name, more than 4,096, or a duplicate.
            ConnectionBroken: 2009: the outcome is known after the restart; it is the same for all.
        """
        _engine.commit_prepared(self, xids)

    def backout_prepared(self, *xids: Xid) -> int:
        """Backs out prepared units of work, all or none as in :meth:`commit_prepared`: the messages
        that they got return to their queues at their old positions, BackoutCount increased by one.

        Returns:
            The number of non-persistent messages that were discarded because of a restart since.

        Raises:
            UnknownXid, InvalidValue, ConnectionBroken: as :meth:`commit_prepared`.
        """
        return _engine.backout_prepared(self, xids)

    def browse_prepared(self, xid: Xid, first: int = 0, last: int | None = None) -> PreparedBatch:
        """The messages that a prepared unit of work got and put, in the order of the calls. The
        unit is not changed. After a restart the non-persistent messages that it put are missing.

        Args:
            xid: its name.
            first, last: as in a slice: the messages from index ``first``, counted from 0, up to,
                but without, index ``last``; None: to the end.

        Returns:
            A MessageBatch; its ``is_put`` is True for the messages that the unit put.

        Raises:
            UnknownXid: 2255: there is no such unit, or it was resolved during the call.
        """
        from ..batch.prepared import browse_prepared

        return browse_prepared(self, xid, first, last)
