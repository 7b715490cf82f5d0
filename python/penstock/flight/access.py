"""Who may do what: bearer tokens and their scopes.

A token file is TOML, readable by its owner alone, with the SHA-256 of each token, never the token:

    [[token]]
    name = "etl"                # in logs, and in front of the names of its units
    sha256 = "9f86d0..."
    managers = ["QM1"]          # * stands for any characters, ? for one
    queues = ["APP.*"]
    rights = ["browse", "get", "put"]

The rights are those of MQ's authorities: browse reads and takes nothing, get takes, put puts. Names
of units are those of one token: nobody can commit, back out or read the units of another one.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
import secrets
import stat
import sys
from collections import UserDict
from collections.abc import ItemsView, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..constants import ReasonCode
from ..errors import MQError
from ..names import fits

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["ANYBODY", "Access", "TokenFile", "TokenFileError", "access_of", "made", "read"]

_log = logging.getLogger("penstock.flight")

RIGHTS = ("browse", "get", "put")
_KEYS = ("name", "sha256", "managers", "queues", "rights")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,20}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_PATTERN = re.compile(r"[A-Za-z0-9./_%*?]{1,96}")
_TOKEN_BYTES = 32


class TokenFileError(ValueError):
    """A token file cannot be used; the text says why."""


@dataclass(frozen=True)
class Access:
    """What a client may do.

    Attributes:
        name: Of its token.
        managers, queues: Patterns.
        rights: Of RIGHTS.
    """

    name: str
    managers: tuple[str, ...]
    queues: tuple[str, ...]
    rights: tuple[str, ...]

    def check(self, manager: str, queue: str | None = None, right: str | None = None) -> None:
        """Raises MQError, 2035, unless it may use the queue so.

        Args:
            manager: The queue manager.
            queue: None: none in particular.
            right: Of RIGHTS; None: any.
        """
        if not _fits(self.managers, manager):
            raise _refused(f"{self.name} may not use queue manager {manager}")
        if queue is not None and not self.sees(queue):
            raise _refused(f"{self.name} may not use queue {queue}")
        if right is not None and right not in self.rights:
            raise _refused(f"{self.name} has no right to {right}")

    def sees(self, queue: str) -> bool:
        """Whether a queue is one of its own."""
        return _fits(self.queues, queue)

    def check_journal(self, manager: str, queues: Iterable[str], pattern: str = "*") -> None:
        """Raises MQError, 2035, unless it may browse these queues; without any, all of a pattern,
        which is one of its own, word for word.
        """
        self.check(manager, None, "browse")
        is_named = False
        for queue in queues:
            self.check(manager, queue, "browse")
            is_named = True
        if not is_named and {"*", pattern}.isdisjoint(self.queues):
            raise _refused(
                f"{self.name} may not read the journal of queues {pattern}: that, or *, must be "
                "among the queues of its token"
            )


ANYBODY = Access("anybody", ("*",), ("*",), RIGHTS)


def read(path: str) -> dict[str, Access]:
    """The tokens of a file: digest -> what it allows.

    Raises:
        TokenFileError: Others than its owner can read it, or it is none.
        OSError: It cannot be read.
    """
    with open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise TokenFileError(f"{path}: others can read or write it: chmod 600 {path}")
        try:
            content = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise TokenFileError(f"{path}: {error}") from None
    entries = content.pop("token", [])
    if content or not isinstance(entries, list) or not entries:
        raise TokenFileError(f"{path}: a token file has tables [[token]] and nothing else")
    found: dict[str, Access] = {}
    for number, entry in enumerate(entries, 1):
        digest, access = _entry(entry, f"{path}, token {number}")
        if digest in found or access.name in {other.name for other in found.values()}:
            raise TokenFileError(f"{path}, token {number}: its name or sha256 stands there before")
        found[digest] = access
    return found


class TokenFile(UserDict[str, Access]):
    """The tokens of a file, as it is now."""

    def __init__(self, path: str) -> None:
        """Raises TokenFileError, OSError."""
        self._path = path
        self._read = self._state()
        super().__init__()
        self.data = read(path)

    def items(self) -> ItemsView[str, Access]:
        """Those of one moment, whatever look() does meanwhile."""
        return self.data.items()

    def look(self) -> None:
        """Reads the file again when it has changed; tokens that are gone open no call from now on.
        A file that cannot be used is logged, and what was read before stays.
        """
        try:
            state = self._state()
            if state == self._read:
                return
            self._read = state
            self.data = read(self._path)
        except (TokenFileError, OSError) as error:
            _log.error("the tokens stay as they are: %s", error)
        else:
            _log.warning("%s was read again: %d tokens", self._path, len(self.data))

    def _state(self) -> tuple[int, ...]:
        found = os.stat(self._path)
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode


def access_of(tokens: Mapping[str, Access], header: str | None) -> Access | None:
    """What the value of a header ``authorization`` allows; None: nothing."""
    kind, _, token = (header or "").partition(" ")
    if kind.lower() != "bearer":
        return None
    own = hashlib.sha256(token.strip().encode()).hexdigest()
    found = None
    for digest, access in tokens.items():  # all of them, in constant time
        if hmac.compare_digest(digest, own):
            found = access
    return found


def made(name: str) -> tuple[str, str]:
    """A new token, and its entry for the file. Raises TokenFileError: the name is none."""
    if not _NAME.fullmatch(name):
        raise TokenFileError(f"the name {name!r} must match {_NAME.pattern}")
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    digest = hashlib.sha256(token.encode()).hexdigest()
    lines = (
        "[[token]]",
        f'name = "{name}"',
        f'sha256 = "{digest}"',
        'managers = ["*"]',
        'queues = ["*"]',
        'rights = ["browse", "get", "put"]',
    )
    return token, "\n".join(lines) + "\n"


def _entry(entry: Any, where: str) -> tuple[str, Access]:
    if not isinstance(entry, dict) or set(entry) != set(_KEYS):
        raise TokenFileError(f"{where}: it has the keys {', '.join(_KEYS)}, all of them")
    name, digest = entry["name"], entry["sha256"]
    for key, value, pattern in (("name", name, _NAME), ("sha256", digest, _DIGEST)):
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise TokenFileError(f"{where}: {key} must match {pattern.pattern}")
    lists: dict[str, tuple[str, ...]] = {}
    for key in ("managers", "queues", "rights"):
        values = entry[key]
        if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
            raise TokenFileError(f"{where}: {key} is a list of texts")
        lists[key] = tuple(values)
    for pattern_text in (*lists["managers"], *lists["queues"]):
        if not _PATTERN.fullmatch(pattern_text):
            raise TokenFileError(f"{where}: {pattern_text!r} is no name or pattern")
    wrong = sorted(set(lists["rights"]) - set(RIGHTS))
    if wrong:
        raise TokenFileError(f"{where}: the rights are {', '.join(RIGHTS)}, not {', '.join(wrong)}")
    return digest, Access(name, **lists)


def _fits(patterns: Iterable[str], name: str) -> bool:
    return any(fits(pattern, name) for pattern in patterns)


def _refused(text: str) -> MQError:
    return MQError(ReasonCode.NOT_AUTHORIZED, text)
