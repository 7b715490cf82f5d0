"""The clock of a temporary queue manager's queues, which tests advance."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from ..constants import ReasonCode
from ..errors import InvalidType, InvalidValue

if TYPE_CHECKING:
    from .attachment import Attachment

_LONGEST = 3_155_760_000  # seconds: a hundred years


class Clock:
    """The clock by which messages are put, expire and become due, in all processes that are
    connected: the wall clock, unless it was advanced. Waits, and the clocks of the programs
    themselves, do not follow it.
    """

    def __init__(self, qm: Attachment) -> None:
        """That of the queue manager of this connection."""
        self._qm = qm

    def advance(self, seconds: float) -> None:
        """Lets so much time pass: what has expired is not found any more, what is due is available,
        and gets that wait for it return.

        Raises:
            InvalidType, InvalidValue: 2046: not a number from 0 to a hundred years, in all.
        """
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise InvalidType(
                ReasonCode.OPTIONS_ERROR,
                f"seconds is a number, not {type(seconds).__name__}: {seconds!r}",
            )
        if not 0 <= seconds <= _LONGEST:
            raise InvalidValue(
                ReasonCode.OPTIONS_ERROR, f"seconds {seconds!r} is not 0 to {_LONGEST}"
            )
        self._qm.advance_us(round(seconds * 1e6))

    def now(self) -> datetime:
        """The time of the clock, with the zone UTC; for ``at=`` of a put."""
        return datetime.now(timezone.utc) + timedelta(microseconds=self._qm.advanced_us())

    def __repr__(self) -> str:
        """``<Clock at 2026-11-28 07:00:00+00:00>``."""
        return f"<Clock at {self.now():%Y-%m-%d %H:%M:%S%z}>"
