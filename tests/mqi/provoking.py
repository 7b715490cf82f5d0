"""Shared by reason-code tests: the table of provocations, and the queue manager for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import mqi
from qmgr_fixture import FAILED, OK, WARNING, QmgrFixture

Answer = tuple[Any, ...]  # of a call: completion code and reason code stand last


class Bench:
    """Queue managers to provoke on: a shared one, one of platform z/OS, and some of one's own."""

    def __init__(self, qmgr: QmgrFixture, zos: Callable[[], QmgrFixture], home: Path) -> None:
        self.qmgr, self.zos, self.home = qmgr, zos, home
        self.own_desks: list[QmgrFixture] = []

    def own(self, **settings: Any) -> QmgrFixture:
        """A queue manager for this test alone, in the same home."""
        name = f"OWN{len(self.own_desks)}"
        self.own_desks.append(QmgrFixture(self.home, name, **settings))
        return self.own_desks[-1]


@dataclass
class Provocation:
    """A way to get a reason code."""

    reason: int
    cc: int
    call: Callable[[Bench], Answer]

    @property
    def name(self) -> str:
        return f"{self.reason}-{self.call.__name__}"


PROVOCATIONS: list[Provocation] = []


def provokes(reason: int, cc: int = FAILED) -> Callable[[Callable[[Bench], Answer]], Any]:
    """Enters a function as the way to get a reason code."""

    def enter(call: Callable[[Bench], Answer]) -> Callable[[Bench], Answer]:
        PROVOCATIONS.append(Provocation(reason, cc, call))
        return call

    return enter


def opening(bench: Bench, name: str, options: int, **od: Any) -> Answer:
    """The answer of an MQOPEN."""
    return bench.qmgr.open(name, options, **od)


def ended(answer: Answer) -> tuple[int, int]:
    """(completion code, reason code) of a call."""
    return int(answer[-2]), int(answer[-1])


__all__ = [
    "FAILED", "OK", "WARNING", "Answer", "Bench", "QmgrFixture", "Provocation", "PROVOCATIONS",
    "ended", "mqi", "opening", "provokes",
]  # fmt: skip
