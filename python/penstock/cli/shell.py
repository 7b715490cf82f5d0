"""The interactive shell of ``penstock mqsc``: history, completion, help."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from penstock.mqsc.completion import suggest
from penstock.mqsc.guide import guide
from penstock.mqsc.source import is_skipped, mark_of
from penstock.mqsc.words import NOUNS

from .terminal import echo, echo_lines

if TYPE_CHECKING:
    from penstock import QueueManager
    from penstock.mqsc import Interpreter, Reply

_NAMES_LAST = 5.0  # seconds that names for completion are remembered
_NAMES_MAX = 200  # names that completion offers
_LEAVE = ("QUIT", "EXIT")
_HINT = "END leaves, HELP shows the kinds of objects, HELP QLOCAL their attributes, Tab completes."


def state_directory() -> Path:
    """The file of the user's history: in XDG_STATE_HOME, else .local/state in the home."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state") / "penstock"


def open_history() -> History:
    """The history on disk, readable by its user alone; in memory when it cannot be stored."""
    path = state_directory() / "mqsc_history"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except (OSError, RuntimeError):
        return InMemoryHistory()
    return FileHistory(path)


class MqscCompleter(Completer):
    """Completion of commands, with the names of a queue manager's objects."""

    def __init__(self, manager: QueueManager) -> None:
        self.manager = manager
        self.before = ""  # the lines of the command that are entered already
        self._known: dict[tuple[tuple[str, ...], str], tuple[float, list[str]]] = {}

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """The words that could stand at the cursor."""
        text = self.before + document.text_before_cursor
        length, found = suggest(text, self._names, self.manager.platform)
        for one in found[:_NAMES_MAX]:
            yield Completion(one.word, start_position=-length, display_meta=one.about)

    def _names(self, kinds: tuple[str, ...], prefix: str) -> list[str]:
        from penstock import MQError

        at, names = self._known.get((kinds, prefix), (0.0, []))
        if not at or time.monotonic() - at > _NAMES_LAST:
            try:
                names = [
                    str(row["name"])
                    for kind in kinds
                    for row in self.manager.display(kind, f"{prefix}*")
                ]
            except MQError:
                names = []  # such as structures on a platform without them
            self._known = {(kinds, prefix): (time.monotonic(), names)}
        return names


def _commands(session: PromptSession[str], completer: MqscCompleter, name: str) -> Iterator[str]:
    """The lines of each command; ends with the input."""
    lines: list[str] = []
    while True:
        try:
            line = session.prompt("...> " if lines else f"{name}> ")
        except KeyboardInterrupt:
            lines, completer.before = [], ""
            continue
        except EOFError:
            return
        lines.append(line)
        if mark_of(line) or (lines[:-1] and is_skipped(line)):
            completer.before = "".join(part.rstrip().rstrip("+-") for part in lines)
            continue
        yield "\n".join(lines)
        lines, completer.before = [], ""


def run_shell(manager: QueueManager, interpreter: Interpreter) -> None:
    """Reads commands from the terminal until END, QUIT, EXIT or the end of the input."""
    completer = MqscCompleter(manager)
    session: PromptSession[str] = PromptSession(
        history=open_history(), completer=completer, complete_while_typing=False
    )
    echo(_HINT)

    def show(reply: Reply) -> None:
        echo_lines(reply.lines)

    for text in _commands(session, completer, manager.name):
        first, *rest = text.strip().rstrip(";").upper().split() or [""]
        if first in _LEAVE:
            return
        if first in ("HELP", "?"):
            echo_lines(help_text(rest))
            continue
        interpreter.run(text.split("\n"), show)
        if interpreter.ended:
            return


def help_text(words: list[str]) -> list[str]:
    """The lines of HELP, HELP QLOCAL, HELP QLOCAL MAXDEPTH."""
    if words:
        return guide(*words[:2]) or [f"there is no help about {' '.join(words[:2])}"]
    rows = [f"  {noun:<10} {', '.join(row.verbs)}" for noun, row in NOUNS.items()]
    return ["HELP kind [attribute] shows attributes. Kinds, and what can be done with them:", *rows]
