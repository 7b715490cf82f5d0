"""When a schedule's jobs are due: every so many seconds, or by a cron expression in a time zone.

Times are whole microseconds since 1970 UTC. ``every`` counts from the schedule's start, so that
nothing drifts. A cron expression has five fields and is read by the package cronsim (extra
``schedule``), as Debian's cron does where clocks change: a job of a time that a zone leaves out
comes when the clock has been put forward, one of a time that comes twice comes the first time, and
jobs of every hour or minute follow the time that passes.

Missed: an occurrence that another one has followed before anybody handled it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, NamedTuple, get_args

from ..constants import ReasonCode
from ..errors import InvalidType, InvalidValue

Missed = Literal["one", "all", "skip"]
MISSED: tuple[str, ...] = get_args(Missed)
AT_ONCE = 500  # jobs of one unit of work, at most
_SECOND = 1_000_000
_SHORTEST, _LONGEST = 1_000, 3_155_760_000 * _SECOND  # of every: a millisecond, 100 years
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Times(NamedTuple):
    """every: microseconds; 0: cron and zone count. start: where ``every`` counts from."""

    every: int
    cron: str
    zone: str
    start: int

    def first(self, now: int, has_start: bool) -> int:
        """The first occurrence of a new schedule."""
        if has_start:
            return self.after(max(self.start, now) - 1)
        return self.after(self.start)

    def after(self, moment: int) -> int:
        """The first occurrence later than the moment."""
        if self.every:
            past = max(-1, (moment - self.start) // self.every)
            return self.start + (past + 1) * self.every
        there = _EPOCH + timedelta(microseconds=moment)
        following = next(_cron(self.cron, there.astimezone(_zone(self.zone))), None)
        if following is None:
            raise _wrong(f"cron {self.cron!r} never comes")
        return microseconds(following)

    def up_to(self, first: int, now: int, most: int) -> list[int]:
        """Occurrences from ``first``, which is one, up to now; at most so many."""
        found: list[int] = []
        at = first
        while at <= now and len(found) < most:
            found.append(at)
            at = self.after(at)
        return found


def times_of(every: Any, cron: Any, zone: Any, start: Any) -> Times:
    """The arguments of ``QueueManager.schedule()``. Raises InvalidType, InvalidValue: 2046."""
    if (every is None) == (cron is None):
        raise _wrong("a schedule has either every= or cron=")
    begin = microseconds(datetime.now(timezone.utc) if start is None else _moment(start))
    if every is not None:
        if zone is not None:
            raise _wrong("zone= is for cron=")
        return Times(_interval(every), "", "", begin)
    if not isinstance(cron, str):
        raise InvalidType(ReasonCode.OPTIONS_ERROR, f"cron is a text, not {cron!r:.60}")
    name = "UTC" if zone is None else zone
    times = Times(0, " ".join(cron.split()), name, begin)
    times.after(begin)  # refuses what is wrong
    return times


def due_jobs(times: Times, missed: str, grace: int, first: int, now: int) -> tuple[list[int], int]:
    """What is to be put now, and the occurrence that follows.

    Args:
        times, missed, grace: of the schedule; grace in microseconds.
        first: the earliest occurrence that nobody has handled; it is due.
        now: the present moment.
    """
    if missed == "all":
        found = times.up_to(first, now, AT_ONCE)
        return found, times.after(found[-1])
    following = times.after(now)
    last = _last_before(times, first, following)
    return ([] if missed == "skip" and now - last > grace else [last]), following


def _last_before(times: Times, first: int, following: int) -> int:
    """The latest occurrence before ``following``, which is not before ``first``. The search goes
    back in growing steps: after a year of absence it looks at a few occurrences, not at all.
    """
    at, span = first, 60 * _SECOND
    while following - span > first:
        near = times.after(following - span - 1)
        if near < following:
            at = near
            break
        span *= 2
    while (after := times.after(at)) < following:
        at = after
    return at


def microseconds(moment: datetime) -> int:
    """Since 1970 UTC."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment_of(time: int) -> datetime:
    """The same back, in UTC."""
    return _EPOCH + timedelta(microseconds=time)


def slack_of(grace: Any) -> int:
    """The argument grace, in microseconds. Raises InvalidType, InvalidValue: 2046."""
    if not isinstance(grace, (int, float)) or isinstance(grace, bool):
        raise InvalidType(ReasonCode.OPTIONS_ERROR, f"grace is a number of seconds, not {grace!r}")
    if not 0 <= grace <= _LONGEST / _SECOND:
        raise _wrong(f"grace is {grace!r}; it takes from 0 seconds to 100 years")
    return int(grace * _SECOND)


def _wrong(text: str) -> InvalidValue:
    return InvalidValue(ReasonCode.OPTIONS_ERROR, text)


def _moment(start: Any) -> datetime:
    if not isinstance(start, datetime) or start.tzinfo is None:
        raise InvalidType(
            ReasonCode.OPTIONS_ERROR, f"start is a datetime with a time zone, not {start!r:.60}"
        )
    return start


def _interval(every: Any) -> int:
    if isinstance(every, timedelta):
        interval = every // timedelta(microseconds=1)
    elif isinstance(every, (int, float)) and not isinstance(every, bool):
        interval = int(every * _SECOND) if abs(every) < _LONGEST else _LONGEST + 1
    else:
        raise InvalidType(
            ReasonCode.OPTIONS_ERROR, f"every is a number of seconds or a timedelta, not {every!r}"
        )
    if not _SHORTEST <= interval <= _LONGEST:
        raise _wrong(f"every is {every!r}; it takes from a millisecond to 100 years")
    return interval


def _zone(name: Any) -> Any:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if not isinstance(name, str):
        raise InvalidType(ReasonCode.OPTIONS_ERROR, f"zone is a name, not {name!r:.60}")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise _wrong(
            f"zone {name!r} is not known here: it takes a name such as Europe/Berlin; where the "
            "system has no time zones, install the package tzdata"
        ) from None


def _cron(text: str, moment: datetime) -> Any:
    try:
        module: Any = __import__("cronsim")
    except ModuleNotFoundError:
        raise _wrong("cron= needs the package cronsim: pip install 'penstock[schedule]'") from None
    make: Callable[[str, datetime], Any] = module.CronSim
    try:
        return make(text, moment)
    except module.CronSimError as error:
        raise _wrong(f"cron {text!r}: {error}") from None
