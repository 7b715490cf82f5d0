"""Runs commands on a queue manager and says what happened, in numbered messages as MQ does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import MQError
from ..objects import TYPES, Attribute, Definition
from .display import lay_out
from .lexer import SyntaxFault, split_commands
from .parser import Command, parse

if TYPE_CHECKING:
    from penstock import QueueManager

# reason code -> the number and the words of the reply
_REFUSALS = {
    2042: ("AMQ8143", "in use"),
    2055: ("AMQ8143", "not empty"),
    2085: ("AMQ8147", "not found"),
    2100: ("AMQ8150", "already exists"),
}
# Attributes that MQSC writes without a value: KEYWORD or NOKEYWORD.
_BARE = ("SHARE", "TRIGGER", "HARDENBO")
QLOCAL = TYPES["QLOCAL"].attributes


@dataclass(slots=True)
class Reply:
    """What one command printed, and whether it was done. ``syntax``: it was no command at all."""

    lines: list[str]
    ok: bool = True
    syntax: bool = False


@dataclass(slots=True)
class Interpreter:
    """Runs MQSC text on a queue manager and counts."""

    manager: QueueManager
    read: int = 0
    syntax_errors: int = 0
    failed: int = 0
    ended: bool = False

    def run(self, lines: Iterable[str], show: Callable[[str, Reply], None]) -> None:
        """Runs every command of the text, up to END; ``show`` gets each one with its reply."""
        try:
            for text in split_commands(lines):
                show(text, self.execute(text))
                if self.ended:
                    return
        except SyntaxFault as fault:  # the text itself: a line that is too long
            self.read += 1
            show("", self._syntax(fault))

    def execute(self, text: str) -> Reply:
        """Runs one command. Never raises for what is wrong with the command."""
        self.read += 1
        try:
            command = parse(text)
            if command.verb == "END":
                self.ended = True
                return Reply([])
            action = _Action(self.manager, command).prepare()
        except SyntaxFault as fault:
            return self._syntax(fault)
        try:
            reply = action()
        except MQError as error:
            reply = _refusal(command, error)
        self.failed += not reply.ok
        return reply

    def summary(self) -> list[str]:
        """The counts, as printed at the end of the input."""

        def number(count: int) -> str:
            return str(count) if count else "No"

        return [
            f"{number(self.read)} MQSC {_commands(self.read)} read.",
            f"{number(self.syntax_errors)} {_commands(self.syntax_errors)} with a syntax error.",
            f"{number(self.failed)} valid {_commands(self.failed)} could not be processed.",
        ]

    def _syntax(self, fault: SyntaxFault) -> Reply:
        self.syntax_errors += 1
        return Reply([f"AMQ8405: Syntax error: {fault}."], ok=False, syntax=True)


def _commands(count: int) -> str:
    return "command" if count == 1 else "commands"


def _refusal(command: Command, error: MQError) -> Reply:
    """The reply to a command that the queue manager refused."""
    number, state = _REFUSALS.get(error.reason, ("AMQ8148", "command failed"))
    return Reply([f"{number}: Queue {command.name} {state}: {error}"], ok=False)


def _value_text(attribute: Attribute, value: object) -> str:
    """How DISPLAY writes a value."""
    if attribute.flag:
        return "YES" if value else "NO"
    return str(value) or " "


def _pair(keyword: str, row: Definition) -> str:
    """``KEYWORD(value)``, or the bare keyword."""
    if keyword in _BARE:
        return keyword if row[keyword] else f"NO{keyword}"
    if keyword in QLOCAL:
        return f"{keyword}({_value_text(QLOCAL[keyword], row[keyword])})"
    return f"{keyword}({row[keyword]})"


class _Action:
    """One parsed command, to be checked and run."""

    def __init__(self, manager: QueueManager, command: Command) -> None:
        self.manager = manager
        self.command = command
        self.name = command.name

    def prepare(self) -> Callable[[], Reply]:
        """Checks the parameters; the returned call does the work. Raises SyntaxFault."""
        verb = self.command.verb
        if self.command.noun == "QUEUE" and verb != "DISPLAY":
            raise SyntaxFault(f"{verb} QUEUE is not a command; say QLOCAL")
        if "*" in self.name and verb != "DISPLAY":
            raise SyntaxFault(f"{verb} needs a full name, not {self.name}")
        prepare: dict[str, Callable[[], Callable[[], Reply]]] = {
            "DEFINE": self.define,
            "ALTER": self.alter,
            "DELETE": self.delete,
            "CLEAR": self.clear,
            "DISPLAY": self.display,
        }
        return prepare[verb]()

    def take_flag(self, *words: str) -> str:
        """Takes the one of these words that is given out of the parameters; "" for none."""
        given = [word for word in words if word in self.command.parameters]
        if len(given) > 1:
            raise SyntaxFault(f"{given[0]} and {given[1]} exclude each other")
        if not given:
            return ""
        if self.command.parameters.pop(given[0]) is not None:
            raise SyntaxFault(f"{given[0]} takes no value")
        return given[0]

    def values(self) -> dict[str, Any]:
        """The attributes given, as the Python interface takes them. Raises SyntaxFault."""
        found: dict[str, Any] = {}
        for bare in _BARE:
            flag = self.take_flag(bare, f"NO{bare}")
            if flag:
                found[bare.lower()] = flag == bare
        for keyword, texts in self.command.parameters.items():
            attribute = QLOCAL.get(keyword)
            if attribute is None:
                raise SyntaxFault(f"{keyword} is not an attribute that {self.command.verb} can set")
            if texts is None or len(texts) != 1:
                raise SyntaxFault(f"{keyword} needs one value in brackets")
            try:
                attribute.parse(texts[0])
            except MQError as error:
                raise SyntaxFault(error.text) from error
            found[keyword.lower()] = texts[0]
        return found

    def define(self) -> Callable[[], Reply]:
        replace = self.take_flag("REPLACE", "NOREPLACE") == "REPLACE"
        values = self.values()

        def run() -> Reply:
            self.manager.define("QLOCAL", self.name, replace=replace, **values)
            return Reply(["AMQ8006: Queue created."])

        return run

    def alter(self) -> Callable[[], Reply]:
        self.take_flag("FORCE", "NOFORCE")
        values = self.values()

        def run() -> Reply:
            self.manager.alter("QLOCAL", self.name, **values)
            return Reply(["AMQ8008: Queue changed."])

        return run

    def delete(self) -> Callable[[], Reply]:
        purge = self.take_flag("PURGE", "NOPURGE") == "PURGE"
        self.nothing_left()

        def run() -> Reply:
            self.manager.delete("QLOCAL", self.name, purge=purge)
            return Reply(["AMQ8007: Queue deleted."])

        return run

    def clear(self) -> Callable[[], Reply]:
        self.nothing_left()

        def run() -> Reply:
            self.manager.clear(self.name)
            return Reply(["AMQ8022: Queue cleared."])

        return run

    def display(self) -> Callable[[], Reply]:
        everything = self.take_flag("ALL") == "ALL" or not self.command.parameters
        known = [k for k, row in QLOCAL.items() if row.applies(self.manager.platform)]
        for keyword, texts in self.command.parameters.items():
            if keyword not in known or texts is not None:
                raise SyntaxFault(f"DISPLAY cannot show {keyword}")
        if "*" in self.name[:-1]:
            raise SyntaxFault(f"{self.name}: * can only be the last character")
        shown = [k for k in sorted(known) if everything or k in self.command.parameters]

        def run() -> Reply:
            lines: list[str] = []
            for row in self.manager.display("QLOCAL", self.name):
                pairs = [f"QUEUE({row['name']})", "TYPE(QLOCAL)"]
                pairs += [_pair(keyword, row) for keyword in shown]
                lines += ["AMQ8409: Display queue details.", *lay_out(pairs)]
            if not lines:
                return Reply([f"AMQ8147: Queue {self.name} not found."], ok=False)
            return Reply(lines)

        return run

    def nothing_left(self) -> None:
        """Raises SyntaxFault when there are parameters that the command does not know."""
        for keyword in self.command.parameters:
            raise SyntaxFault(f"{self.command.verb} knows no parameter {keyword}")
