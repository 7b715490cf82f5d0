"""Runs commands on a queue manager and says what happened, in numbered messages as MQ does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from .attributes import DEFAULTS, QLOCAL, Value
from .display import lay_out
from .lexer import SyntaxFault, split_commands
from .parser import Command, parse

# AMQ numbers of replies to reason codes
_REPLIES = {
    2042: "AMQ8143",  # open
    2055: "AMQ8143",  # not empty
    2085: "AMQ8147",  # not found
    2100: "AMQ8150",  # exists
    2037: "AMQ8143",
}
_STATES = {"AMQ8143": "in use or not empty", "AMQ8147": "not found", "AMQ8150": "already exists"}


class ManagerLike(Protocol):
    """What the interpreter needs of a queue manager."""

    def define(self, kind: str, name: str, /, **attributes: Any) -> Any: ...
    def alter(self, kind: str, name: str, /, **attributes: Any) -> Any: ...
    def delete(self, kind: str, name: str, /, **options: Any) -> Any: ...
    def display(self, kind: str, name: str, /) -> Any: ...
    def clear(self, name: str, /) -> Any: ...


@dataclass(slots=True)
class Reply:
    """What one command printed, and whether it was done. ``syntax``: it was no command at all."""

    lines: list[str]
    ok: bool = True
    syntax: bool = False


@dataclass(slots=True)
class Interpreter:
    """Runs MQSC text and counts. ``error``: the exception class by which the manager refuses."""

    manager: ManagerLike
    error: type[Exception]
    read: int = 0
    syntax_errors: int = 0
    failed: int = 0
    ended: bool = field(default=False)

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
            action = _Action(self.manager, command, self)
            prepared = action.prepare()
        except SyntaxFault as fault:
            return self._syntax(fault)
        try:
            return prepared()
        except self.error as error:
            self.failed += 1
            return _refusal(command, error)

    def summary(self) -> list[str]:
        """The counts, as printed at the end of the input."""
        bad = str(self.syntax_errors or "No")
        failed = str(self.failed) if self.failed else "No"
        return [
            f"{self.read} MQSC command{'' if self.read == 1 else 's'} read.",
            f"{bad} command{'s have' if bad != '1' else ' has'} a syntax error.",
            f"{failed} valid MQSC command{'s' if failed != '1' else ''} could not be processed.",
        ]

    def _syntax(self, fault: SyntaxFault) -> Reply:
        self.syntax_errors += 1
        return Reply([f"AMQ8405: Syntax error: {fault}."], ok=False, syntax=True)


def _refusal(command: Command, error: Exception) -> Reply:
    """The reply to a command that the queue manager refused."""
    reason = getattr(error, "reason", None)
    number = _REPLIES.get(reason, "AMQ8148") if isinstance(reason, int) else "AMQ8148"
    state = _STATES.get(number, "command failed")
    return Reply([f"{number}: Queue {command.name} {state}: {error}"], ok=False)


class _Action:
    """One checked command, ready to run."""

    def __init__(self, manager: ManagerLike, command: Command, counts: Interpreter) -> None:
        self.manager = manager
        self.command = command
        self.counts = counts

    def prepare(self) -> Callable[[], Reply]:
        """Checks the parameters; the returned call does the work. Raises SyntaxFault."""
        command = self.command
        if command.noun == "QUEUE" and command.verb != "DISPLAY":
            raise SyntaxFault(f"{command.verb} QUEUE is not a command; say QLOCAL")
        if command.name.rstrip("*") != command.name and command.verb != "DISPLAY":
            raise SyntaxFault(f"{command.verb} needs a full name, not {command.name}")
        work: dict[str, Callable[[], Callable[[], Reply]]] = {
            "DEFINE": self.define,
            "ALTER": self.alter,
            "DELETE": self.delete,
            "CLEAR": self.clear,
            "DISPLAY": self.display,
        }
        return work[command.verb]()

    def flag(self, *words: str) -> str:
        """Takes the one of these words that is given out of the parameters; "" for none."""
        given = [word for word in words if word in self.command.parameters]
        if len(given) > 1:
            raise SyntaxFault(f"{given[0]} and {given[1]} exclude each other")
        if not given:
            return ""
        if self.command.parameters.pop(given[0]) is not None:
            raise SyntaxFault(f"{given[0]} takes no value")
        return given[0]

    def values(self) -> dict[str, Value]:
        """The attributes given, as the Python interface names them. Raises SyntaxFault."""
        found: dict[str, Value] = {}
        for keyword, texts in self.command.parameters.items():
            attribute = QLOCAL.get(keyword)
            if attribute is None or not attribute.settable:
                raise SyntaxFault(f"{keyword} is not an attribute that {self.command.verb} can set")
            found[keyword.lower()] = attribute.parse(texts)
        return found

    def define(self) -> Callable[[], Reply]:
        replace = self.flag("REPLACE", "NOREPLACE") == "REPLACE"
        values = self.values()
        name = self.command.name

        def run() -> Reply:
            if replace and self.found(name):
                self.manager.alter("QLOCAL", name, **{**DEFAULTS, **values})
            else:
                self.manager.define("QLOCAL", name, **values)
            return Reply(["AMQ8006: Queue created."])

        return run

    def alter(self) -> Callable[[], Reply]:
        self.flag("FORCE", "NOFORCE")
        values = self.values()

        def run() -> Reply:
            self.manager.alter("QLOCAL", self.command.name, **values)
            return Reply(["AMQ8008: Queue changed."])

        return run

    def delete(self) -> Callable[[], Reply]:
        purge = self.flag("PURGE", "NOPURGE") == "PURGE"
        self.nothing_left()

        def run() -> Reply:
            self.manager.delete("QLOCAL", self.command.name, purge=purge)
            return Reply(["AMQ8007: Queue deleted."])

        return run

    def clear(self) -> Callable[[], Reply]:
        self.nothing_left()

        def run() -> Reply:
            self.manager.clear(self.command.name)
            return Reply(["AMQ8022: Queue cleared."])

        return run

    def display(self) -> Callable[[], Reply]:
        everything = self.flag("ALL") == "ALL" or not self.command.parameters
        for keyword, texts in self.command.parameters.items():
            if keyword not in QLOCAL or texts is not None:
                raise SyntaxFault(f"DISPLAY cannot show {keyword}")
        shown = [k for k in sorted(QLOCAL) if everything or k in self.command.parameters]
        if "*" in self.command.name[:-1]:
            raise SyntaxFault(f"{self.command.name}: * can only be the last character")

        def run() -> Reply:
            lines: list[str] = []
            for row in self.found(self.command.name):
                pairs = [("QUEUE", row["name"]), ("TYPE", "QLOCAL")]
                pairs += [(k, QLOCAL[k].text(row[k.lower()])) for k in shown]
                lines += ["AMQ8409: Display queue details.", *lay_out(pairs)]
            if not lines:
                self.counts.failed += 1
                return Reply([f"AMQ8147: Queue {self.command.name} not found."], ok=False)
            return Reply(lines)

        return run

    def found(self, name: str) -> list[dict[str, Any]]:
        """Local queues of a name or a generic name, by name."""
        rows = self.manager.display("QLOCAL", name)
        return sorted(rows, key=lambda row: str(row["name"]))

    def nothing_left(self) -> None:
        """Raises SyntaxFault when there are parameters that the command does not know."""
        for keyword in self.command.parameters:
            raise SyntaxFault(f"{self.command.verb} knows no parameter {keyword}")
