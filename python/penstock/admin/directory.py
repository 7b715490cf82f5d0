"""Finds the directory and settings of a queue manager by its name; errors have reason codes.

:mod:`.settings` knows names, homes and ``qm.toml``, and raises its own exceptions; the functions
here are for calls of the API.
"""

from __future__ import annotations

import os

from ..constants import ReasonCode
from ..errors import InvalidType, MQError, ObjectDamaged, QueueManagerNameError

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from pathlib import Path

    from .settings import Settings

Home = str | os.PathLike[str] | None


def managers(home: Home = None) -> list[str]:
    """Names of the queue managers in a home, sorted."""
    from .settings import manager_names

    return manager_names(home)


def directory_of(name: str, home: Home) -> Path:
    """The directory of a queue manager, whether it exists or not.

    Raises:
        QueueManagerNameError: 2058: it is not a name.
        InvalidType: 2058: it is not a str.
    """
    from .settings import ManagerNameError, manager_directory

    try:
        return manager_directory(name, home)
    except ManagerNameError as error:
        raise QueueManagerNameError(ReasonCode.Q_MGR_NAME_ERROR, str(error)) from None
    except TypeError as error:
        raise InvalidType(ReasonCode.Q_MGR_NAME_ERROR, str(error)) from None


def settings_of(name: str, path: Path) -> Settings:
    """The settings of the queue manager of that name in a directory.

    Raises:
        QueueManagerNameError: 2058: there is no queue manager.
        MQError: 2035: qm.toml may not be read.
        ObjectDamaged: 2101: qm.toml cannot be used, or belongs to another queue manager.
    """
    from .settings import SETTINGS_FILE, SettingsError, read_settings

    try:
        settings = read_settings(path)
    except (FileNotFoundError, NotADirectoryError):
        raise QueueManagerNameError(
            ReasonCode.Q_MGR_NAME_ERROR, f"there is no queue manager {name} in {path.parent}"
        ) from None
    except PermissionError as error:
        raise MQError(
            ReasonCode.NOT_AUTHORIZED, f"queue manager {name}: {refusal(path)}"
        ) from error
    except (SettingsError, OSError) as error:
        raise ObjectDamaged(ReasonCode.OBJECT_DAMAGED, f"queue manager {name}: {error}") from error
    if settings.name != name:
        raise ObjectDamaged(
            ReasonCode.OBJECT_DAMAGED,
            f"{path / SETTINGS_FILE} belongs to queue manager {settings.name}, not {name}",
        )
    return settings


def refusal(path: Path) -> str:
    """Who may not use a directory, and whose it is."""
    import stat

    try:
        facts = os.stat(path)
    except OSError as error:
        return f"{_user(os.geteuid())} may not look into {path.parent}: {error.strerror}"
    return (
        f"{_user(os.geteuid())} may not use {path}, which belongs to {_user(facts.st_uid)} and "
        f"{_group(facts.st_gid)} (mode {stat.S_IMODE(facts.st_mode):o})"
    )


def _user(number: int) -> str:
    import pwd

    try:
        return f"user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"user {number}"


def _group(number: int) -> str:
    import grp

    try:
        return f"group {grp.getgrgid(number).gr_name}"
    except KeyError:
        return f"group {number}"
