"""The open connections of this process, for calls that need a queue manager at rest.

A record lock does not conflict with locks of its own process, so the lock file shows other
processes only (see :mod:`.manager_files`); this registry shows the rest.
"""

from __future__ import annotations

from weakref import WeakSet

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Protocol

    class Connected(Protocol):
        """A connection in the registry."""

        path: Path
        directory_identity: tuple[int, int]

        @property
        def closed(self) -> bool:
            """Whether it has left the queue manager."""


_opened: WeakSet[Connected] = WeakSet()


def register(connection: Connected) -> None:
    """Enters a connection; it leaves the registry when it is closed or no longer referenced."""
    _opened.add(connection)


def is_connected(identity: tuple[int, int]) -> bool:
    """Whether this process has an open connection to the queue manager in a directory.

    Args:
        identity: device and inode of the directory (:func:`.directory.identity_of`).
    """
    return any(it.directory_identity == identity and not it.closed for it in _opened)
