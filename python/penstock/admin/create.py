"""Creating queue managers."""

from __future__ import annotations

import os

from .. import _engine
from ..constants import ReasonCode
from ..errors import InvalidType, InvalidValue, MQError, ObjectAlreadyExists
from .directory import Home, directory_of, settings_of
from .manager_files import remove_files, sync_directory

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    from .settings import Settings


def create(name: str, home: Home = None, **settings: Any) -> None:
    """Creates a queue manager: a directory with its settings and an empty journal.

    Args:
        name: 1 to 48 characters out of A-Z a-z 0-9 . _ / %.
        home: the directory to create it in; None: PENSTOCK_HOME, else the platform's data
            directory.
        settings: fields of :class:`penstock.admin.settings.Settings`, such as ``journal_limit``;
            sizes in bytes, or as text: ``"64M"``, ``"1G"``; ``group``, the name of a group of this
            user: its members share the queue manager.

    Raises:
        ObjectAlreadyExists: 2100: there is a queue manager of that name.
        QueueManagerNameError: 2058: not a name.
        InvalidType, InvalidValue: 2046: a setting that is unknown or out of range.
        MQError: 2035: this user is not in the group.
    """
    make_files(directory_of(name, home), chosen_settings(name, settings))


def make_files(path: Path, chosen: Settings, tuning: Mapping[str, int] | None = None) -> None:
    """Makes the directory of a queue manager with its files. Raises what :func:`create` does.

    tuning: settings of the core beside those of qm.toml, for sizes that a restart may choose anew.
    """
    from .settings import SettingsError, for_engine, write_settings

    name = chosen.name
    try:
        options = for_engine(chosen) | dict(tuning or {})
    except SettingsError as error:
        raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"{name}: {error}") from error
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError as error:
        raise ObjectAlreadyExists(
            ReasonCode.OBJECT_ALREADY_EXISTS, f"queue manager {name}: {path} exists already"
        ) from error
    try:
        _give_access(path, chosen)
        write_settings(path, chosen)
        _engine.create_files(path, options)
        sync_directory(path.parent)
    except BaseException:
        remove_files(path)
        raise


def chosen_settings(name: str, given: Mapping[str, Any]) -> Settings:
    """The settings of a queue manager with these values, the others by default.

    Raises:
        InvalidType, InvalidValue: 2046: a setting that is unknown or out of range.
    """
    from .settings import SettingsError, SettingsNameError, new_settings

    try:
        return new_settings(name, given)
    except SettingsNameError as error:
        raise InvalidType(ReasonCode.OPTIONS_ERROR, f"{name}: {error}") from error
    except SettingsError as error:
        raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"{name}: {error}") from error


def ignored_settings(name: str, home: Home, given: Mapping[str, Any]) -> str:
    """What a queue manager that exists has instead of these values, "" when it has them."""
    there = settings_of(name, directory_of(name, home))
    wanted = chosen_settings(name, given)
    return ", ".join(
        f"{field}={value!r} (it has {getattr(there, field)!r})"
        for field, value in given.items()
        if getattr(there, field) != getattr(wanted, field)
    )


def _give_access(path: Path, settings: Settings) -> None:
    """The directory's mode, whatever the umask; what is made in a group's directory is the group's.

    Raises MQError 2035.
    """
    from .settings import group_id

    if not settings.group:
        os.chmod(path, 0o700)
        return
    group = group_id(settings.group)
    if group not in (os.getegid(), *os.getgroups()):  # root could give it away, and not use it
        raise MQError(
            ReasonCode.NOT_AUTHORIZED,
            f"queue manager {settings.name}: user {os.geteuid()} is not in group {settings.group}",
        )
    os.chown(path, -1, group)
    os.chmod(path, 0o2770)
