"""Deleting queue managers."""

from __future__ import annotations

from ..constants import ReasonCode
from ..errors import ObjectInUse
from .connections import is_connected
from .directory import Home, directory_of, identity_of, settings_of
from .manager_files import (
    attached_pid,
    check_journal_belongs,
    remove_files,
    remove_region,
    sync_directory,
)


def delete(name: str, home: Home = None) -> None:
    """Deletes a queue manager with all its messages.

    Raises:
        QueueManagerNameError: 2058: there is none of that name.
        ObjectInUse: 2042: a process is connected to it.
        ObjectDamaged: 2101: the directory holds a journal of another queue manager.
    """
    path = directory_of(name, home)
    settings = settings_of(name, path)
    if is_connected(identity_of(path)):
        raise ObjectInUse(
            ReasonCode.OBJECT_IN_USE, f"queue manager {name}: this process is connected to it"
        )
    pid = attached_pid(path)
    if pid:
        raise ObjectInUse(
            ReasonCode.OBJECT_IN_USE, f"queue manager {name}: process {pid} is connected to it"
        )
    check_journal_belongs(path, settings.qm_id)
    remove_region(path)
    remove_files(path)
    sync_directory(path.parent)
