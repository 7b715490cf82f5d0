"""The reply to a command, as data and as lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ..constants import ReasonCode
from ..errors import MQError
from ..objects import Definition
from .faults import SyntaxFault

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .layout import Layout
    from .parser import Command
    from .source import Source

# reason code -> the number and the words of the reply
_REFUSALS: dict[int, tuple[str, str]] = {
    ReasonCode.CONNECTION_BROKEN: ("AMQ8146", "queue manager not available"),
    ReasonCode.OBJECT_IN_USE: ("AMQ8143", "in use"),
    ReasonCode.Q_NOT_EMPTY: ("AMQ8143", "not empty"),
    ReasonCode.Q_MGR_NOT_AVAILABLE: ("AMQ8146", "queue manager not available"),
    ReasonCode.UNKNOWN_OBJECT_NAME: ("AMQ8147", "not found"),
    ReasonCode.OBJECT_ALREADY_EXISTS: ("AMQ8150", "already exists"),
    ReasonCode.Q_MGR_QUIESCING: ("AMQ8146", "queue manager not available"),
    ReasonCode.Q_MGR_STOPPING: ("AMQ8146", "queue manager not available"),
}
SYNTAX_ERROR = "AMQ8405"
NOT_HERE = "AMQ8426"
_SEGMENT = 60  # characters of a command that its syntax error shows


class Fault(NamedTuple):
    """A syntax error in the text of a command. Lines and positions count from 1.

    word: the wrong word, "" at the end of the command. rule: the rule that it breaks.
    """

    line: int
    position: int
    word: str
    rule: str


@dataclass(slots=True)
class Reply:
    """The reply to one command.

    Attributes:
        command: its text, continuation lines joined; line: its first line.
        ok: whether it was executed.
        code: number of the message, such as "AMQ8006"; "" for none.
        text: the messages; those of a successful DISPLAY precede each of its objects.
        warnings: messages about what a command that was executed asks for in vain.
        objects: the definitions that DISPLAY found, complete whatever it shows of them.
        reason: MQ reason code of a failure, else 0.
        fault: the syntax error, None when there is none.
    """

    text: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list, kw_only=True)
    ok: bool = True
    code: str = ""
    objects: list[Definition] = field(default_factory=list)
    reason: int = 0
    fault: Fault | None = None
    command: str = ""
    line: int = 1
    layout: Layout | None = field(default=None, repr=False)

    @property
    def syntax(self) -> bool:
        """True when the text is no command."""
        return self.fault is not None

    @property
    def lines(self) -> list[str]:
        """The reply as it is printed."""
        shown = self.layout.lines(self.objects) if self.layout else ()
        return [*self.text, *shown, *self.warnings]


def done(code: str, what: str, notes: Iterable[str] = ()) -> Reply:
    """``AMQ8006: Queue created.``; ``notes``: what its warnings say."""
    return Reply([f"{code}: {what}"], code=code, warnings=[_warning(note) for note in notes])


def without_effect(what: str) -> Reply:
    """The reply to a command that was accepted and changes nothing."""
    return Reply(code=NOT_HERE, warnings=[_warning(f"{what}; the command has no effect")])


def _warning(note: str) -> str:
    return f"{NOT_HERE}: Warning: {note}."


def refused(code: str, what: str, reason: int = 0) -> Reply:
    """A command that was not executed."""
    return Reply([f"{code}: {what}"], ok=False, code=code, reason=reason)


def refusal(command: Command, error: MQError) -> Reply:
    """The reply to a command that the queue manager refused."""
    number, state = _REFUSALS.get(error.reason, ("AMQ8101", "command failed"))
    name = f" {command.name.value}" if command.name else ""
    what = f"{command.subject.title.capitalize()}{name} {state}: {error}"
    return refused(number, what, error.reason)


def not_found(command: Command) -> Reply:
    """The reply to a DISPLAY that found nothing."""
    name = command.name.value if command.name else ""
    title = command.subject.title.capitalize()
    return refused("AMQ8147", f"{title} {name} not found.", ReasonCode.UNKNOWN_OBJECT_NAME)


def syntax_error(source: Source, error: SyntaxFault) -> Reply:
    """The reply to an invalid command: location, word, rule, and the text before the error."""
    line, position = source.location(error.at)
    fault = Fault(line, position, error.word, error.rule)
    at = f"at {error.word!r}" if error.word else "at the end"
    end = "" if error.rule.endswith("?") else "."
    segment = source.text[: error.at + len(error.word)][-_SEGMENT:]
    return Reply(
        [
            f"{SYNTAX_ERROR}: Syntax error in line {line}, position {position}, {at}: "
            f"{error.rule}{end}",
            f"   {segment}",
        ],
        ok=False,
        code=SYNTAX_ERROR,
        fault=fault,
    )
