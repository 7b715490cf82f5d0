"""Deleting queue managers."""

from __future__ import annotations

from .. import _engine
from .directory import Home, directory_of, settings_of
from .manager_files import check_journal_belongs, remove_files, sync_directory

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from pathlib import Path

    from .settings import Settings


def delete(name: str, home: Home = None) -> None:
    """Deletes a queue manager with all its messages.

    No process can connect to it from the moment at which nobody was found connected.

    Raises:
        QueueManagerNameError: 2058: there is none of that name.
        ObjectInUse: 2042: a process is connected to it, or the directory holds other files.
        QueueManagerNotAvailable: 2059: it is not certain that nobody is connected; the processes
            are named.
        ObjectDamaged: 2101: the directory holds a journal of another queue manager.
    """
    path = directory_of(name, home)
    remove_manager(path, settings_of(name, path))


def remove_manager(path: Path, settings: Settings) -> None:
    """Deletes the queue manager in a directory, which has these settings. Raises what
    :func:`delete` does, except 2058.
    """
    from .settings import for_engine

    exclusion = _engine.Exclusion(path, for_engine(settings))
    try:
        check_journal_belongs(path, settings.qm_id)
        remove_files(path)
    finally:
        exclusion.end()
    sync_directory(path.parent)
