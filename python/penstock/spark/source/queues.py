"""The queues of a stream: those that the option queue names, or those that fit queuePattern.

A pattern means local queues, those that are defined later, too. It leaves out what nobody means by
it: queues of the system (unless the pattern begins with SYSTEM.), transmission queues, and those to
which messages are put aside, which would come again as rows: the dead-letter queues and each
BOQNAME of a queue that fits.

A queue that is named must be there. One that fitted a pattern and is deleted is forgotten.

Fair shares. Where a micro-batch is limited, no queue keeps the others waiting: the limit is divided
by the number of the queues that have messages, and what one does not need is for the others. Where
there are more queues than messages allowed, they take turns, by the number of the micro-batch.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import penstock

from ..base import acting
from ..base.connection import open_queue, reported
from ..base.errors import SourceError
from ..base.ledger import QUEUE as LEDGER
from ..base.queue_choice import QueueChoice

if TYPE_CHECKING:
    from penstock import Queue, QueueManager

    from ..base.options import Options

__all__ = ["Queues", "fitting", "shares", "turns"]

_LOOK_SECONDS = 1.0  # between two looks for queues that fit a pattern, at least
_LOOK_SHARE = 20  # a look may take this part of the time between two of them
_SYSTEM = "SYSTEM."


class Queues:
    """The queues of a stream, open for input and browse."""

    def __init__(self, options: Options) -> None:
        """Opens none. Raises OptionError for what is no name or pattern."""
        self._options = options
        self.choice = QueueChoice.of(options)
        self._open: dict[str, Queue] = {}
        self._next_look = 0.0  # monotonic
        self._bounds: Mapping[str, int] | None = None

    def __iter__(self) -> Iterator[Queue]:
        """Those that are open, by name."""
        return iter(self._open.values())

    @property
    def is_bound(self) -> bool:
        """Whether later messages are not taken: Trigger.AvailableNow."""
        return self._bounds is not None

    def look(self, qm: QueueManager) -> None:
        """Opens the queues that are named; finds those that fit the pattern, now and then.

        Raises:
            SourceError: One cannot be got from.
        """
        names = self.choice.names
        if names is not None:
            missing = [name for name in names if name not in self._open]
        elif time.monotonic() < self._next_look:
            return
        else:
            missing = self._look_for_new(qm)
        for name in missing:
            self._open[name] = self._opened(qm, name)
        if missing:
            self._open = dict(sorted(self._open.items()))

    def queue(self, qm: QueueManager, name: str) -> Queue | None:
        """The queue of that name, which an offset may have named; None: it was deleted.

        Raises:
            SourceError: It cannot be got from; it is named and not there.
        """
        if name not in self._open:
            try:
                self._open[name] = self._opened(qm, name)
            except SourceError as error:
                is_gone = isinstance(error.__cause__, penstock.UnknownObjectName)
                if not is_gone or self.choice.names is not None:
                    raise
                return None
        return self._open[name]

    def bind(self, newest: Mapping[str, int] | None = None) -> Mapping[str, int]:
        """From now on later messages, and those of later queues, are not taken.

        newest: The newest message of each queue, by number; None: now. Returned.
        """
        if newest is None:
            newest = self.each(lambda queue: queue.newest_number)
        self._bounds = newest
        return newest

    def bound(self, name: str) -> int | None:
        """The newest message number that is taken; None: all are."""
        return None if self._bounds is None else self._bounds.get(name, 0)

    def each(self, ask: Callable[[Queue], int]) -> dict[str, int]:
        """What is asked of each queue, by name; those that fitted the pattern and are deleted are
        forgotten. Raises SourceError.
        """
        found = {}
        for name, queue in list(self._open.items()):
            try:
                with reported(self._options, name):
                    found[name] = ask(queue)
            except SourceError as error:
                is_gone = isinstance(error.__cause__, penstock.QueueDeleted)
                if not is_gone or self.choice.names is not None:
                    raise
                self._open.pop(name).close()
        return found

    def close(self) -> None:
        """Closes the queues."""
        for queue in self._open.values():
            queue.close()
        self._open = {}

    def check(self, *offsets: Mapping[str, object]) -> None:
        """Raises SourceError for an offset of a stream over queues of which some are not chosen."""
        for offset in offsets:
            names, pattern = offset.get("queue"), offset.get("queuePattern")
            if pattern is None and names is None:
                continue  # before the first micro-batch
            own = self.choice
            if pattern is not None:
                is_ours = own.pattern == pattern
            else:
                is_ours = all(own(name) for name in str(names).split(","))
            if not is_ours:
                before = QueueChoice(None, str(pattern)) if pattern else QueueChoice(
                    tuple(str(names).split(",")), None
                )  # fmt: skip
                raise SourceError(
                    f"the checkpoint belongs to a stream over {before.text}, this one is over "
                    f"{own.text}: a stream over other queues needs a checkpoint of its own"
                )

    def noted(self) -> dict[str, str]:
        """What an offset, the ledger and reports say of the choice."""
        if self.choice.names is None:
            return {"queuePattern": self.choice.given}
        return {"queue": self.choice.given}

    def _opened(self, qm: QueueManager, name: str) -> Queue:
        with reported(self._options, name):
            acting.check(name, "get")
            with open_queue(qm, name, "browse"):  # refuses an alias
                return qm.open(name, input=True, browse=True, output=False)

    def _look_for_new(self, qm: QueueManager) -> list[str]:
        """Names that fit the pattern and are not open; closes queues that fit no more."""
        start = time.monotonic()
        with reported(self._options, self.choice.pattern):
            names = fitting(qm, self.choice, self._options["deadLetterQueue"])
        for name in set(self._open) - set(names):
            self._open.pop(name).close()
        end = time.monotonic()
        self._next_look = end + max(_LOOK_SECONDS, _LOOK_SHARE * (end - start))
        return [name for name in names if name not in self._open]


def fitting(qm: QueueManager, choice: QueueChoice, dead_letters: str | None = None) -> list[str]:
    """The names of the queues that are chosen: as given, or those that fit the pattern.

    Args:
        qm: The connection.
        choice: The names, or the pattern.
        dead_letters: A queue that a pattern leaves out.
    """
    if choice.names is not None:
        return list(choice.names)
    pattern = choice.pattern or "*"
    found = qm.display("QLOCAL", re.split(r"[*?]", pattern)[0] + "*")
    fit = [own for own in found if choice(str(own["name"])) and own["usage"] == "NORMAL"]
    fit = [own for own in fit if acting.sees(str(own["name"]))]
    left_out = {str(own["boqname"]).strip() for own in fit}
    left_out |= {str(qm.display("QMGR")[0]["deadq"]).strip(), dead_letters or "", LEDGER}
    names = {str(own["name"]) for own in fit} - left_out
    is_system = pattern.startswith(_SYSTEM)
    return sorted(name for name in names if is_system or not name.startswith(_SYSTEM))


def shares(wanted: Mapping[str, int], limit: int) -> dict[str, int]:
    """Divides a limit: each name gets what it wants, or an equal share and what others leave.

    Args:
        wanted: Of each name, above 0. Their number is at most the limit.
        limit: The sum of the shares, at most.
    """
    found = {}
    left = limit
    for done, (name, want) in enumerate(sorted(wanted.items(), key=lambda item: item[1])):
        found[name] = min(want, left // (len(wanted) - done))
        left -= found[name]
    return found


def turns(names: list[str], most: int, turn: int) -> list[str]:
    """``most`` of the names: in the next turn those behind them."""
    if len(names) <= most:
        return names
    first = turn * most % len(names)
    return (names + names)[first : first + most]
