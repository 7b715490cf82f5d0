"""Directories and settings of queue managers.

A queue manager's directory lies in a *home*: the one given, else ``PENSTOCK_HOME``, else
``penstock`` in the platform's data directory. Its name is the queue manager's with ``/`` written
``&`` and ``.`` written ``!``, as MQ does. ``qm.toml`` is written once, at create; it holds the
identity that the journal's checksums are bound to.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..names import nearest
from .sizes import parse_size

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SETTINGS_FILE = "qm.toml"
AUTOMATIC = "automatic"  # region_dir: the core chooses
_NAME = re.compile(r"[A-Za-z0-9./_%]{1,48}")
_DIRECTORY = re.compile(r"[A-Za-z0-9!&_%]{1,48}")
_GROUP = re.compile(r"[A-Za-z0-9_.@\\-]{1,256}\$?")
_PAGE = 4096
SEGMENTS_MAX = 4096  # files of a journal
_JOURNAL_LIMIT = 64 << 30
_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_Home = str | os.PathLike[str] | None


class ManagerNameError(ValueError):
    """A queue manager's name breaks the rules; the text names it and the rule."""


class SettingsError(ValueError):
    """qm.toml cannot be used; the text gives the reason."""


class SettingsNameError(SettingsError):
    """There is no setting of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The contents of qm.toml. Sizes in bytes.

    qm_id: 16 random bytes, fixed at create. platform: ``unix`` or ``zos``. group: name of the
    group whose members share the files, "" for one user's alone. region_bodies: bodies of
    persistent messages that the shared region may hold besides the journal; 0 means 1 GiB; never
    more than an eighth of region_dir's file system and a quarter of the control group's memory
    limit. region_dir: the folder of the region's file; ``automatic`` is /dev/shm, but where that
    has less than 512 MiB the file is in memory alone, within half of the machine's, unless the
    queue manager is a group's. logging: ``circular`` uses journal segments again, ``linear`` moves
    them to the folder ``archive``, where they count against no limit. max_unit_age: seconds, 0 for
    any: units that are open longer are backed out by whoever maintains the queue manager, unless
    their owner is inside a call just then. log_file_size, log_files: the
    error log and its rotation.
    """

    qm_id: bytes
    name: str
    platform: str = "unix"
    group: str = ""
    segment_size: int = 64 * _MIB
    journal_limit: int = _JOURNAL_LIMIT
    logging: str = "circular"
    ring_size: int = 4 * _MIB
    region_size: int = 64 * _GIB
    region_bodies: int = 0
    region_dir: str = AUTOMATIC
    max_uncommitted_messages: int = 10000
    max_message_length: int = 104857600
    max_unit_age: int = 0
    log_file_size: int = 2 * _MIB
    log_files: int = 3

    def __post_init__(self) -> None:
        """Raises SettingsError for a value that is out of range or contradicts another one."""
        check_name(self.name)
        if len(self.qm_id) != 16:
            raise SettingsError(f"qm_id has {len(self.qm_id)} bytes, not 16")
        if self.platform not in ("unix", "zos"):
            raise SettingsError(f"platform is 'unix' or 'zos', not {self.platform!r}")
        if self.group and not _GROUP.fullmatch(self.group):
            raise SettingsError(f"group is {self.group!r}, which is no name of a group")
        if self.logging not in ("circular", "linear"):
            text = f"journal.logging is 'circular' or 'linear', not {self.logging!r}"
            raise SettingsError(text)
        absolute = os.path.isabs(self.region_dir) and "\0" not in self.region_dir
        if not absolute and self.region_dir != AUTOMATIC:
            text = f"region.dir must be an absolute path or {AUTOMATIC!r}, not {self.region_dir!r}"
            raise SettingsError(text)
        for item in _ITEMS:
            value = getattr(self, item.field)
            if item.low is not None and not item.low <= value <= item.high:
                text = f"{item} is {value}, allowed are {item.low} to {item.high}"
                raise SettingsError(text)
            if item.page and value % _PAGE:
                raise SettingsError(f"{item} is {value}, not a multiple of {_PAGE}")
        if self.journal_limit < 4 * self.segment_size:
            text = f"journal.limit is {self.journal_limit}, less than four segments"
            raise SettingsError(text)
        most = SEGMENTS_MAX * self.segment_size
        if self.journal_limit > most:
            needed = -(-self.journal_limit // SEGMENTS_MAX // _PAGE) * _PAGE
            text = f"journal.limit is {self.journal_limit}, but a journal has at most "
            text += f"{SEGMENTS_MAX} segments, {most} bytes when journal.segment_size is "
            text += f"{self.segment_size}: raise that to {needed}, or lower the limit"
            raise SettingsError(text)


@dataclass(frozen=True)
class _Item:
    """One key of qm.toml: its table ("" for the top), key, field of Settings, type and range.

    size: in bytes, may be given as text. help: what it is for, for those who choose it at create.
    """

    table: str
    key: str
    field: str
    type: type = int
    low: int | None = None
    high: int = 0
    page: bool = False
    size: bool = False
    help: str = ""

    def __str__(self) -> str:
        return f"{self.table}.{self.key}" if self.table else self.key

    def read(self, value: Any) -> Any:
        """The value of the field; of a size also as text (``64M``). Raises SettingsError."""
        if self.size and isinstance(value, str):
            try:
                return parse_size(value)
            except ValueError as error:
                raise SettingsError(f"{self}: {error}") from None
        if type(value) is not self.type:
            wanted = "int, or text such as '64M'" if self.size else self.type.__name__
            raise SettingsError(f"{self} is {value!r}, not {wanted}")
        return value


_ITEMS = (
    _Item("", "qm_id", "qm_id", str),
    _Item("", "name", "name", str),
    _Item(
        "", "platform", "platform", str,
        help="unix or zos: whose rules hold where platforms differ; structures exist on zos.",
    ),
    _Item(
        "", "group", "group", str,
        help="A group of yours whose members share QM: its files belong to the group.",
    ),
    _Item(
        "journal", "segment_size", "segment_size", int, 32 * _KIB, 4 * _GIB, True, True,
        help="Size of a file of the journal.",
    ),
    _Item(
        "journal", "limit", "journal_limit", int, 128 * _KIB, 1 << 50, False, True,
        help="Size of the whole journal at most.",
    ),
    _Item(
        "journal", "logging", "logging", str,
        help="circular or linear: linear keeps journal segments that are no longer needed in the "
        "folder archive.",
    ),
    _Item(
        "journal", "ring_size", "ring_size", int, 256 * _KIB, _GIB, True, True,
        help="Size of the ring in memory before the journal.",
    ),
    _Item(
        "region", "size", "region_size", int, 16 * _MIB, 1 << 42, True, True,
        help="Size of the shared memory at most.",
    ),
    _Item(
        "region", "bodies", "region_bodies", int, 0, 1 << 42, False, True,
        help="Bytes of bodies in shared memory at most; 0: a share of what there is.",
    ),
    _Item(
        "region", "dir", "region_dir", str,
        help="Folder of the shared memory's file, on a tmpfs; automatic: /dev/shm, or memory "
        "alone where that is small.",
    ),
    _Item(
        "limits", "max_uncommitted_messages", "max_uncommitted_messages", int, 1, 999999999,
        help="Messages of a unit of work at most (MAXUMSGS).",
    ),
    _Item(
        "limits", "max_message_length", "max_message_length", int, 32768, 104857600, False, True,
        help="Size of a message at most (MAXMSGL).",
    ),
    _Item(
        "limits", "max_unit_age", "max_unit_age", int, 0, 999999999,
        help="Seconds after which an open unit of work is backed out (2003); 0: never for its age.",
    ),
    _Item(
        "logging", "file_size", "log_file_size", int, 4 * _KIB, _GIB, False, True,
        help="Size of a file of the error log.",
    ),
    _Item("logging", "files", "log_files", int, 1, 100, help="Files of the error log."),
)  # fmt: skip
_KEYS = tuple(map(str, _ITEMS))
CHOSEN = {item.field: item for item in _ITEMS if item.field not in ("qm_id", "name")}


def new_settings(name: str, given: Mapping[str, Any]) -> Settings:
    """The settings of a new queue manager, or those it would have: sizes may be text.

    Raises:
        SettingsNameError: there is no setting of a name; the text has the nearest.
        SettingsError: a value is out of range, of another type, or contradicts another one.
    """
    values = {}
    for field, value in given.items():
        if field not in CHOSEN:
            hint = nearest(field, CHOSEN) or f"; there are {', '.join(CHOSEN)}"
            raise SettingsNameError(f"there is no setting {field!r}{hint}")
        values[field] = CHOSEN[field].read(value)
    if "segment_size" in values and "journal_limit" not in values:  # as much as they can hold
        most = SEGMENTS_MAX * values["segment_size"]
        values["journal_limit"] = min(_JOURNAL_LIMIT, most)
    return Settings(qm_id=os.urandom(16), name=name, **values)


def check_name(name: str) -> str:
    """Returns a valid name. Raises ManagerNameError, or TypeError for other types than str."""
    if not isinstance(name, str):
        raise TypeError(f"a queue manager's name is a str, not {type(name).__name__}")
    if not name:
        raise ManagerNameError("a queue manager's name cannot be empty")
    if len(name) > 48:
        raise ManagerNameError(
            f"queue manager name {name!r} has {len(name)} characters, 48 are allowed"
        )
    if not _NAME.fullmatch(name):
        bad = next(c for c in name if not _NAME.fullmatch(c))
        text = f"queue manager name {name!r} has the character {bad!r}; A-Z a-z 0-9 . / _ % are "
        raise ManagerNameError(text + "allowed")
    return name


def directory_name(name: str) -> str:
    """The directory of a queue manager: ``A.B/C`` -> ``A!B&C``. Raises ManagerNameError."""
    return check_name(name).replace("/", "&").replace(".", "!")


def manager_name(directory: str) -> str | None:
    """The queue manager of a directory; None for names that no directory of one has."""
    if not _DIRECTORY.fullmatch(directory):
        return None
    return directory.replace("&", "/").replace("!", ".")


def home_directory(home: _Home = None) -> Path:
    """The home: ``home``, else PENSTOCK_HOME, else ``penstock`` in $XDG_DATA_HOME or
    ~/.local/share."""
    if home is not None:
        return Path(home)
    chosen = os.environ.get("PENSTOCK_HOME")
    if chosen:
        return Path(chosen)
    data = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(data):  # the XDG rules: relative paths are ignored
        return Path.home() / ".local" / "share" / "penstock"
    return Path(data) / "penstock"


def manager_directory(name: str, home: _Home = None) -> Path:
    """The directory of a queue manager, whether it exists or not. Raises ManagerNameError."""
    return home_directory(home) / directory_name(name)


def manager_names(home: _Home = None) -> list[str]:
    """Names of the queue managers in a home, sorted: directories that hold a qm.toml."""
    try:
        entries = list(os.scandir(home_directory(home)))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = []
    for entry in entries:
        name = manager_name(entry.name)
        if name is None or not entry.is_dir(follow_symlinks=False):
            continue
        if os.path.isfile(os.path.join(entry.path, SETTINGS_FILE)):
            found.append(name)
    return sorted(found)


def parse_settings(text: str) -> Settings:
    """Settings from the text of a qm.toml. Raises SettingsError naming the key."""
    try:
        document: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"not TOML: {error}") from error
    values: dict[str, Any] = {}
    for item in _ITEMS:
        table = document.get(item.table, {}) if item.table else document
        if not isinstance(table, dict):
            raise SettingsError(f"{item.table} is not a table")
        if item.key not in table:
            continue
        values[item.field] = item.read(table.pop(item.key))
    for table_name, rest in document.items():
        if not isinstance(rest, dict):
            raise SettingsError(f"unknown key {table_name}{nearest(table_name, _KEYS)}")
        for key in rest:
            word = f"{table_name}.{key}"
            raise SettingsError(f"unknown key {word}{nearest(word, _KEYS)}")
    for needed in ("qm_id", "name"):
        if needed not in values:
            raise SettingsError(f"{needed} is missing")
    if not re.fullmatch(r"[0-9a-f]{32}", values["qm_id"]):
        raise SettingsError(f"qm_id is {values['qm_id']!r}, not 32 lower-case hex digits")
    values["qm_id"] = bytes.fromhex(values["qm_id"])
    try:
        return Settings(**values)
    except ManagerNameError as error:
        raise SettingsError(str(error)) from error


def _toml_value(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        value = value.hex()
    escaped = "".join(
        f"\\u{ord(c):04x}" if c in '"\\' or ord(c) < 32 or ord(c) == 127 else c for c in value
    )
    return f'"{escaped}"'


def format_settings(settings: Settings) -> str:
    """The text of a qm.toml; parse_settings() gives the same Settings back."""
    lines = ["# Settings of a penstock queue manager, written when it was created."]
    table = ""
    for item in _ITEMS:
        if item.table != table:
            table = item.table
            lines += ["", f"[{table}]"]
        lines.append(f"{item.key} = {_toml_value(getattr(settings, item.field))}")
    return "\n".join(lines) + "\n"


def read_settings(directory: str | os.PathLike[str]) -> Settings:
    """Settings of the queue manager in ``directory``.

    Raises FileNotFoundError without a qm.toml, SettingsError when it cannot be used.
    """
    path = Path(directory) / SETTINGS_FILE
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise SettingsError(f"{path}: not a regular file")
        data = file.read(1 << 20)
    try:
        return parse_settings(data.decode("utf-8"))
    except (SettingsError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from error


def write_settings(directory: str | os.PathLike[str], settings: Settings) -> None:
    """Writes qm.toml atomically and durably, for its user or for the group of the settings.

    Raises OSError, SettingsError: the group does not exist.
    """
    mode = 0o660 if settings.group else 0o600
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    temporary = SETTINGS_FILE + ".tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)  # left by an interrupted create
        fd = os.open(temporary, flags, mode, dir_fd=folder)
        with open(fd, "wb") as file:
            if settings.group:
                os.fchown(fd, -1, group_id(settings.group))
            os.fchmod(fd, mode)
            file.write(format_settings(settings).encode())
            file.flush()
            os.fsync(fd)
        os.rename(temporary, SETTINGS_FILE, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    finally:
        os.close(folder)


def group_id(group: str) -> int:
    """The id of the group of that name. Raises SettingsError when there is none here."""
    import grp

    try:
        return grp.getgrnam(group).gr_gid
    except KeyError:
        raise SettingsError(f"group {group!r} does not exist on this machine") from None


def for_engine(settings: Settings) -> dict[str, Any]:
    """The settings under the names and in the units that the core takes.

    Raises SettingsError: the group does not exist.
    """
    chosen = settings.region_dir != AUTOMATIC
    return {
        "name": settings.name,
        "qm_id": settings.qm_id,
        "platform": ("unix", "zos").index(settings.platform),
        "group": group_id(settings.group) + 1 if settings.group else 0,
        "segment_size": settings.segment_size,
        "journal_limit": settings.journal_limit,
        "ring_size": settings.ring_size,
        "region_size": settings.region_size,
        "body_budget": settings.region_bodies,
        "max_uncommitted": settings.max_uncommitted_messages,
        "max_message": settings.max_message_length,
        "max_unit_age": settings.max_unit_age,
        "linear": int(settings.logging == "linear"),
        "region_dir": os.fsencode(settings.region_dir) if chosen else None,
    }


assert {item.field for item in _ITEMS} == {f.name for f in fields(Settings)}
