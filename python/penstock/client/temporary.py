"""``penstock.temporary()``; what it needs is imported by its first call."""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from typing import Any

    from ..admin.directory import Home
    from .temporary_manager import Temporary


def temporary(
    name: str = "TEMPORARY", *, home: Home = None, discard: bool = True, **settings: Any
) -> Temporary:
    """A queue manager for the time of a ``with`` block, which gets a connection to it::

        with penstock.temporary() as qm, qm.queue("ORDERS") as orders:
            orders.put("3 bolts")

    Its files are in memory: it is ready, and gone, in a few milliseconds. Other processes connect
    to it by its name and ``qm.path.parent`` as home. At the end of the block they are stopped:
    their calls fail with 2009. ``qm.clock.advance(3600)`` lets an hour pass for the expiry and the
    due times of its messages.

    Args:
        name: the queue manager's name.
        home: the directory in which its folder is made; None: /dev/shm. On a file system that is
            not a tmpfs its flushes are as slow as those of others.
        discard: False: at the end the queue manager is ended in order, what is not committed is
            backed out, and its files stay, in ``qm.path``.
        settings: those of :func:`penstock.create`.

    Raises:
        QueueManagerNameError: 2058: not a name.
        InvalidType, InvalidValue: 2046: a setting that is unknown or out of range.
        OSError: the folder cannot be made.
        ObjectInUse: 2042, at the end of the block: another process has not left it within ten
            seconds.
        MQError: as of :func:`penstock.connect`.
    """
    from .temporary_manager import Temporary

    return Temporary(name, home, discard, settings)
