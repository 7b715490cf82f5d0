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
        """Makes the unit of work that this thread or task has begun (with ``syncpoint=True``, or
        as a ``transaction()``) a prepared one: durable, of no process any more, and neither
        committed nor backed out until somebody says so by its name. This thread or task goes on
        with a new unit of work.

        Non-persistent messages that were got are written, too: a restart keeps them readable
        (:meth:`browse_prepared`), but can only discard them in a backout. Those that were put are
        lost by a restart, as in MQ.

        Args:
            xid: the name; no other prepared unit may have it.
            allow_empty: a unit without messages will do.
            wait: False: does not wait until it is durable. It is when :meth:`recover` or
                :meth:`prepared_list` have told of it, or a unit prepared later is; a crash before
                that backs it out. For several units, of which the last one waits.

        Raises:
            XidInUse: 2128: there is a prepared unit of that name; nothing has changed.
            UnitNotAvailable: 2255: nothing was put or got in the unit, without ``allow_empty``.
            BackedOut: 2003: the queue manager had backed it out.
            StorageMediumFull: 2192: it can still be committed or backed out.
            ConnectionBroken: 2009: whether it is prepared is known after the restart.
        """
        _engine.prepare(self, xid, allow_empty, wait)

    def recover(self) -> list[Xid]:
        """The names of all prepared units of work, oldest first, whoever has prepared them."""
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
            UnknownXid: 2255: no prepared unit has one of the names, or somebody is ending it.
            InvalidValue: 2046: no name, too many, or one twice.
            ConnectionBroken: 2009: unknown until the restart, but the same for all.
        """
        _engine.commit_prepared(self, xids)

    def backout_prepared(self, *xids: Xid) -> int:
        """Backs prepared units of work out, all or none as in :meth:`commit_prepared`: what they
        got is back in its place, with a BackoutCount one higher.

        Returns:
            How many non-persistent messages were discarded, because there was a restart since.

        Raises:
            UnknownXid, InvalidValue, ConnectionBroken: as :meth:`commit_prepared`.
        """
        return _engine.backout_prepared(self, xids)

    def browse_prepared(self, xid: Xid, first: int = 0, last: int | None = None) -> PreparedBatch:
        """The messages that a prepared unit of work got and put, in the order of the calls. They
        stay what they are; after a restart the same messages are there, but for non-persistent
        ones that the unit put.

        Args:
            xid: its name.
            first, last: as in a slice: the messages from number ``first``, counted from 0, up to,
                but without, number ``last``; None: to the end.

        Returns:
            A MessageBatch whose ``is_put`` tells which messages the unit put.

        Raises:
            UnknownXid: 2255: there is no such unit, or it was ended meanwhile.
        """
        from ..batch.prepared import browse_prepared

        return browse_prepared(self, xid, first, last)
