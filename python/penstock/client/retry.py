"""When a message is tried again whose handler has failed."""

from __future__ import annotations

from ..constants import ReasonCode
from ..errors import InvalidType, InvalidValue

_LONGEST = 3_155_760_000.0  # seconds: what put(delay=) takes


class Retry:
    """How long a message waits after its handler has failed, and how often it is tried again.

    The n-th wait is ``delay * factor ** (n - 1)`` seconds, ``longest`` at most; ``jitter`` is the
    part of it, 0 to 1, that is drawn at random, so that messages that failed together do not come
    back together. ``Retry(5)`` waits 5 s each time, ``Retry(1, factor=2)`` 1, 2, 4, ... s.

    Args:
        delay: seconds before the first retry; 0: at once.
        factor: what each further wait is longer by; 1: all are the same.
        longest: seconds that no wait exceeds.
        jitter: 0.1: each wait is between 90 and 100 % of what it would be.
        most: retries; a message that fails once more is set aside. None: BOTHRESH of the queue
            decides, and without that a message is retried for ever.

    Raises:
        InvalidType, InvalidValue: 2046: an argument that is none.
    """

    __slots__ = ("delay", "factor", "jitter", "longest", "most")

    def __init__(
        self,
        delay: float = 1.0,
        *,
        factor: float = 1.0,
        longest: float = 3600.0,
        jitter: float = 0.0,
        most: int | None = None,
    ) -> None:
        _number("delay", delay, 0, _LONGEST)
        _number("factor", factor, 1, 1000)
        _number("longest", longest, 0, _LONGEST)
        _number("jitter", jitter, 0, 1)
        if most is not None and (type(most) is not int or most < 0):
            raise InvalidValue(
                ReasonCode.OPTIONS_ERROR, f"most is a number of retries or None, not {most!r}"
            )
        self.delay, self.factor, self.longest = delay, factor, longest
        self.jitter, self.most = jitter, most

    def __repr__(self) -> str:
        named = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"Retry({named})"

    def wait(self, failures: int) -> float:
        """Seconds to wait after so many failures, from 1 on."""
        try:
            wait = min(self.delay * self.factor ** (failures - 1), self.longest)
        except OverflowError:
            wait = self.longest
        if self.jitter:
            from random import random

            wait *= 1 - self.jitter * random()
        return wait


def _number(name: str, value: float, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidType(
            ReasonCode.OPTIONS_ERROR, f"{name} is a number, not {type(value).__name__}: {value!r}"
        )
    if not least <= value <= most:
        raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"{name} {value!r} is not {least} to {most}")
