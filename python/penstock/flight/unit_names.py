"""Names of the prepared units of work that remote clients make, and how they are found again.

A client's unit is as many units of work as its messages need (MAXUMSGS), its *parts*, and an empty
one, the *end*, which is prepared last: what has no end was interrupted and is backed out. A run of
parts has a random word, so that two calls for one attempt, of which the first one is believed lost,
do not meet.

======  ==========================  ============================================================
format  global id                   qualifier
======  ==========================  ============================================================
PFLT    ``<client>/<unit>``         ``<attempt>.<word>.<number>``: a part;
                                    ``<attempt>.<word>.end.<kind>.<parts>.<messages>.<sum>``: the
                                    end, of a put or a get; ``ledger``
======  ==========================  ============================================================
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from .._engine import Xid

__all__ = ["FORMAT", "GET", "PUT", "End", "Run", "Unit", "new_word", "owner_of"]

FORMAT = int.from_bytes(b"PFLT", "big")
PUT, GET = "put", "get"
_LEDGER = b"ledger"
_END = "end"


class End(NamedTuple):
    """What the end of a run says.

    Attributes:
        kind: PUT or GET.
        parts, messages: Of the run.
        sum: Of the bodies that were put, hexadecimal; of a get: the bytes of the bodies.
    """

    kind: str
    parts: int
    messages: int
    sum: str


@dataclass
class Run:
    """The prepared units of one run: its parts by number, and its end."""

    attempt: int
    word: str
    parts: dict[int, Xid] = field(default_factory=dict)
    end: End | None = None
    end_xid: Xid | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is complete, and nothing of it is gone."""
        return self.end is not None and sorted(self.parts) == list(range(self.end.parts))

    def xids(self) -> list[Xid]:
        """All its units, parts first, in order."""
        found = [self.parts[number] for number in sorted(self.parts)]
        return [*found, self.end_xid] if self.end_xid is not None else found


class Unit(NamedTuple):
    """A client's unit."""

    client: str
    name: str

    @property
    def owner(self) -> str:
        """In the ledger, and as global id."""
        return f"{self.client}/{self.name}"

    def part(self, attempt: int, word: str, number: int) -> Xid:
        """The name of a part."""
        return self._xid(f"{attempt}.{word}.{number}")

    def end(self, attempt: int, word: str, end: End) -> Xid:
        """The name of the end of a run."""
        return self._xid(".".join(map(str, (attempt, word, _END, *end))))

    @property
    def ledger(self) -> Xid:
        """The name of the replacement of its entry in the ledger."""
        return Xid(FORMAT, self.owner.encode(), _LEDGER)

    def runs(self, xids: Iterable[Xid]) -> list[Run]:
        """Its runs among those units, by attempt."""
        found: dict[tuple[int, str], Run] = {}
        for xid in xids:
            if xid.format_id != FORMAT or xid.gtrid != self.owner.encode() or xid.bqual == _LEDGER:
                continue
            attempt, word, *rest = xid.bqual.decode("ascii").split(".")
            run = found.setdefault((int(attempt), word), Run(int(attempt), word))
            if rest[0] == _END:
                kind, parts, messages, checksum = rest[1:]
                run.end = End(kind, int(parts), int(messages), checksum)
                run.end_xid = xid
            else:
                run.parts[int(rest[0])] = xid
        return [found[key] for key in sorted(found)]

    def _xid(self, qualifier: str) -> Xid:
        return Xid(FORMAT, self.owner.encode(), qualifier.encode())


def new_word() -> str:
    """Of a run."""
    return os.urandom(4).hex()


def owner_of(xid: Xid) -> Unit | None:
    """The client's unit that a unit of work belongs to; None: to none."""
    if xid.format_id != FORMAT:
        return None
    client, _, name = xid.gtrid.decode("ascii").partition("/")
    return Unit(client, name)
