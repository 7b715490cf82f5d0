"""Runs MQSC text on a queue manager: command after command, with the counts of runmqsc."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..constants import ReasonCode
from ..errors import MQError
from ..objects import TYPES
from . import definitions, records, show, status
from .faults import NotYet, SyntaxFault
from .parser import Command, parse
from .reply import NOT_HERE, Reply, done, refusal, refused, syntax_error, without_effect
from .source import LINE_LENGTH_MAX, Source, read_commands
from .words import NOUNS

if TYPE_CHECKING:
    from penstock import QueueManager

Show = Callable[[Reply], None]


def run(manager: QueueManager, text: str) -> list[Reply]:
    """Runs every command of a text up to END. A command that fails does not stop the others.

    Args:
        manager: a connected queue manager.
        text: lines of MQSC.

    Returns:
        one reply for each command.
    """
    replies: list[Reply] = []
    Interpreter(manager).run(text.split("\n"), replies.append)
    return replies


@dataclass(slots=True)
class Interpreter:
    """Runs MQSC text on a queue manager and counts. check_only: checks the syntax only."""

    manager: QueueManager
    check_only: bool = False
    read: int = 0
    syntax_errors: int = 0
    failed: int = 0
    warned: int = 0
    ended: bool = False

    def run(self, lines: Iterable[str], show: Show, first: int = 1) -> None:
        """Runs every command of these lines, up to END; ``show`` gets each reply at once.

        Args:
            lines: the text; a command is run as soon as its last line is read.
            show: called with each reply.
            first: number of the first line.
        """
        for source in read_commands(lines, first):
            show(self.execute(source))
            if self.ended:
                return

    def execute(self, source: Source | str) -> Reply:
        """Runs one command. Errors of the command are in the reply; nothing is raised for them."""
        if isinstance(source, str):
            source = Source(source, ((0, 1, 1),))
        self.read += 1
        try:
            reply = self._reply(source)
        except SyntaxFault as fault:
            self.syntax_errors += 1
            reply = syntax_error(source, fault)
        else:
            self.failed += not reply.ok
            self.warned += bool(reply.warnings)
        reply.command, reply.line = source.text, source.line
        return reply

    def summary(self) -> list[str]:
        """The counts, as printed at the end of the input."""

        def number(count: int) -> str:
            return str(count) if count else "No"

        lines = [
            f"{number(self.read)} MQSC {_commands(self.read)} read.",
            f"{number(self.syntax_errors)} {_commands(self.syntax_errors)} with a syntax error.",
            f"{number(self.failed)} valid {_commands(self.failed)} could not be processed.",
        ]
        if self.warned:
            lines.append(f"{number(self.warned)} {_commands(self.warned)} with a warning.")
        return lines

    def _reply(self, source: Source) -> Reply:
        """Runs one command. Raises SyntaxFault."""
        if source.too_long:
            line, length = source.too_long
            at = next(offset for offset, number, _ in source.pieces if number == line)
            raise SyntaxFault(f"line {line} has {length} characters, {LINE_LENGTH_MAX} at most", at)
        try:
            command = parse(source.text)
            if command.verb == "END":
                self.ended = True
                return Reply()
            action = self._prepare(command)
        except NotYet as lacking:
            return self._answer(lacking)
        if self.check_only:
            return Reply()
        try:
            return action()
        except MQError as error:
            return refusal(command, error)

    def _answer(self, lacking: NotYet) -> Reply:
        """The reply to a command that is not implemented."""
        if not lacking.without_effect:
            return refused(NOT_HERE, f"{lacking}.")
        if lacking.kind and lacking.name and not self.check_only:
            kind = TYPES[lacking.kind]
            try:
                known = bool(self.manager.display(kind.name, kind.check_name(lacking.name)))
            except MQError:
                known = False
            if not known:
                what = f"{kind.noun.capitalize()} {lacking.name} not found."
                return refused("AMQ8147", what, ReasonCode.UNKNOWN_OBJECT_NAME)
        return without_effect(str(lacking))

    def _prepare(self, command: Command) -> definitions.Action:
        """Checks the command; the returned call does the work. Raises SyntaxFault."""
        if command.verb == "PING":
            definitions.Parameters(command, self.manager.platform).nothing_left()
            return self._ping
        if command.noun in records.NOUNS:
            return records.prepare(self.manager, command)
        if command.verb == "RESET":
            return status.prepare(self.manager, command)
        if command.verb != "DISPLAY":
            return definitions.prepare(self.manager, command)
        if NOUNS[command.noun].kinds:
            return show.prepare(self.manager, command)
        return status.prepare(self.manager, command)

    def _ping(self) -> Reply:
        self.manager.status()
        return done("AMQ8415", "Queue manager answers.")


def _commands(count: int) -> str:
    return "command" if count == 1 else "commands"
