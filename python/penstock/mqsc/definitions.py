"""DEFINE, ALTER, DELETE and CLEAR: checked in full before anything is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import MQError
from ..objects import Attribute, ObjectType, object_type
from .faults import SyntaxFault
from .grammar import Parameter, Word
from .parser import Command
from .reply import Reply, done
from .words import BARE

if TYPE_CHECKING:
    from penstock import QueueManager

Action = Callable[[], Reply]
_FORCEABLE = ("QLOCAL", "QALIAS", "QREMOTE", "QMGR")
OPTIONS = ("REPLACE", "NOREPLACE", "FORCE", "NOFORCE", "PURGE", "NOPURGE", "LIKE", "ALL", "WHERE")


class Parameters:
    """The parameters of a command, removed one by one; the rest are attributes or errors."""

    def __init__(self, command: Command, platform: str) -> None:
        """Copies the command's parameters."""
        self.command = command
        self.platform = platform
        self.left = dict(command.parameters)

    def flag(self, word: str) -> bool:
        """Removes ``WORD`` or ``NOWORD``; whether it was ``WORD``. Raises SyntaxFault."""
        given = [self.left.pop(w) for w in (word, f"NO{word}") if w in self.left]
        if len(given) > 1:
            raise SyntaxFault(
                f"{given[0].keyword} and {given[1].keyword} exclude each other",
                max(given[0].at, given[1].at),
                max(given, key=lambda p: p.at).keyword,
            )
        if given and given[0].values is not None:
            raise SyntaxFault(f"{given[0].keyword} takes no value", given[0].at, given[0].keyword)
        return bool(given) and given[0].keyword == word

    def word(self, keyword: str) -> Word | None:
        """Removes ``KEYWORD(value)``. Raises SyntaxFault."""
        given = self.left.pop(keyword, None)
        return None if given is None else one_value(given)

    def nothing_left(self) -> None:
        """Raises SyntaxFault when there are parameters that the command does not know."""
        for parameter in self.left.values():
            raise SyntaxFault(
                f"{self.command.verb} {self.command.noun} has no such parameter",
                parameter.at,
                parameter.keyword,
            )

    def attributes(self, kind: ObjectType) -> dict[str, Any]:
        """The remaining parameters as attributes of the Python API. Raises SyntaxFault."""
        found: dict[str, Any] = {}
        for keyword in BARE:
            if keyword in kind.attributes and {keyword, f"NO{keyword}"} & self.left.keys():
                found[keyword.lower()] = self.flag(keyword)
        for parameter in self.left.values():
            row = self._attribute(kind, parameter)
            if row.keyword.lower() in found:
                raise SyntaxFault(f"{row.keyword} is given twice", parameter.at, parameter.keyword)
            found[row.keyword.lower()] = self._value(row, parameter)
        return found

    def _attribute(self, kind: ObjectType, parameter: Parameter) -> Attribute:
        """The attribute of a keyword. Raises SyntaxFault."""
        command = self.command
        if parameter.keyword in OPTIONS:
            raise SyntaxFault(
                f"{command.verb} {command.noun} has no such parameter",
                parameter.at,
                parameter.keyword,
            )
        try:
            row = kind.attribute(parameter.keyword)
        except MQError as error:
            raise SyntaxFault(error.text, parameter.at, parameter.keyword) from error
        rule = ""
        if row.display_only:
            rule = f"{row.keyword} is display-only and cannot be set"
        elif row.platform not in ("", self.platform):
            rule = f"{row.keyword} is an attribute of platform z/OS"
        elif row.keyword in BARE:
            rule = f"it is written {row.keyword} or NO{row.keyword}"
        if rule:
            raise SyntaxFault(rule, parameter.at, parameter.keyword)
        return row

    def _value(self, row: Attribute, parameter: Parameter) -> str | list[str]:
        """The value given for an attribute, checked. Raises SyntaxFault."""
        if row.many and parameter.values is not None:
            first = parameter.values[0] if parameter.values else Word("", parameter.at)
            names = [word.value for word in parameter.values]
            _check(row, names, self.platform, first)
            return names
        word = one_value(parameter)
        _check(row, word.value, self.platform, word)
        return word.value


def one_value(parameter: Parameter) -> Word:
    """The only value of a parameter; ``()`` is a blank one. Raises SyntaxFault."""
    values = parameter.values
    if values is None or len(values) > 1:
        location = (parameter.at, parameter.keyword) if values is None else (
            values[1].at, values[1].written
        )  # fmt: skip
        raise SyntaxFault(f"{parameter.keyword} needs one value in brackets", *location)
    return values[0] if values else Word("", parameter.at)


def _check(row: Attribute, value: object, platform: str, word: Word) -> None:
    try:
        row.parse(value, platform)
    except MQError as error:
        raise SyntaxFault(error.text, word.at, word.written or row.keyword) from error


def kind_of(command: Command, platform: str) -> ObjectType:
    """The type of object of the command's noun. Raises SyntaxFault when this platform lacks it."""
    try:
        return object_type(command.subject.kinds[0], platform)
    except MQError as error:
        raise SyntaxFault(error.text, command.noun_at, command.noun) from error


def name_of(kind: ObjectType, word: Word) -> str:
    """The name, generic or not, when an object of the type can have it. Raises SyntaxFault."""
    try:
        if word.value != "*":
            kind.check_name(word.value.removesuffix("*"))
        return word.value
    except MQError as error:
        raise SyntaxFault(error.text, word.at, word.written) from error


def prepare(manager: QueueManager, command: Command) -> Action:
    """Checks the command; the returned call does the work. Raises SyntaxFault."""
    kind = kind_of(command, manager.platform)
    name = name_of(kind, command.name) if command.name else ""
    given = Parameters(command, manager.platform)
    return _PREPARE[command.verb](manager, command, kind, name, given)


def _title(command: Command) -> str:
    return command.subject.title.capitalize()


def _define(
    manager: QueueManager, command: Command, kind: ObjectType, name: str, given: Parameters
) -> Action:
    replace = given.flag("REPLACE")
    like = given.word("LIKE")
    model = name_of(kind, like) if like is not None else None
    values = given.attributes(kind)

    def run() -> Reply:
        manager.define(kind.name, name, like=model, replace=replace, **values)
        return done(command.subject.created, f"{_title(command)} created.")

    return run


def _alter(
    manager: QueueManager, command: Command, kind: ObjectType, name: str, given: Parameters
) -> Action:
    force = kind.name in _FORCEABLE and given.flag("FORCE")
    values = given.attributes(kind)

    def run() -> Reply:
        manager.alter(kind.name, name or manager.name, force=force, **values)
        return done(command.subject.changed, f"{_title(command)} changed.")

    return run


def _delete(
    manager: QueueManager, command: Command, kind: ObjectType, name: str, given: Parameters
) -> Action:
    purge = kind.name == "QLOCAL" and given.flag("PURGE")
    given.nothing_left()

    def run() -> Reply:
        manager.delete(kind.name, name, purge=purge)
        return done(command.subject.deleted, f"{_title(command)} deleted.")

    return run


def _clear(
    manager: QueueManager, command: Command, kind: ObjectType, name: str, given: Parameters
) -> Action:
    given.nothing_left()

    def run() -> Reply:
        manager.clear(name)
        return done("AMQ8022", "Queue cleared.")

    return run


_PREPARE = {"DEFINE": _define, "ALTER": _alter, "DELETE": _delete, "CLEAR": _clear}
