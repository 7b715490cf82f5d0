"""When jobs are due: intervals without drift, cron in zones, what was missed."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from penstock import InvalidType, InvalidValue
from penstock.client.occurrences import AT_ONCE, due_jobs, microseconds, moment_of, times_of

UTC = timezone.utc
START = datetime(2026, 3, 1, tzinfo=UTC)
MINUTE, HOUR = 60_000_000, 3_600_000_000


def at(*given: int) -> int:
    return microseconds(datetime(*given, tzinfo=UTC))


def following(cron: str, zone: str, moment: int, count: int) -> list[str]:
    times = times_of(None, cron, zone, None)
    found = []
    for _ in range(count):
        moment = times.after(moment)
        found.append(f"{moment_of(moment):%d %H:%M}")
    return found


def test_an_interval_counts_from_its_start_whatever_was_late() -> None:
    times = times_of(timedelta(seconds=7), None, None, START)
    start = microseconds(START)
    assert times.after(start - 1) == start == times.after(start - 100 * HOUR)
    assert times.after(start) == start + 7_000_000 == times.after(start + 6_999_999)
    assert times.after(start + 700 * 7_000_000 + 1) == start + 701 * 7_000_000
    assert times.first(start + 1, True) == start + 7_000_000 == times.first(start, False)


def test_a_job_of_an_hour_that_a_zone_leaves_out_comes_when_the_clock_is_put_forward() -> None:
    found = following("30 2 * * *", "Europe/Berlin", at(2026, 3, 28, 12), 2)
    assert found == ["29 01:00", "30 00:30"]


def test_a_daily_job_of_an_hour_that_comes_twice_comes_once_and_others_follow_time() -> None:
    assert following("30 2 * * *", "Europe/Berlin", at(2026, 10, 24, 12), 2) == [
        "25 00:30", "26 01:30",
    ]  # fmt: skip
    assert following("*/30 * * * *", "Europe/Berlin", at(2026, 10, 25, 0), 4) == [
        "25 00:30", "25 01:00", "25 01:30", "25 02:00",
    ]  # fmt: skip


@pytest.mark.parametrize("given", [(60.0, None), (None, "* * * * *")], ids=["every", "cron"])
def test_what_was_missed_is_one_job_all_or_none(given: tuple[Any, Any]) -> None:
    times = times_of(*given, None, None if given[1] else START)
    first = at(2026, 3, 1, 10)
    now = first + 4 * MINUTE + 10_000_000  # ten seconds after the fifth
    next_one = first + 5 * MINUTE
    last = first + 4 * MINUTE
    assert due_jobs(times, "one", MINUTE, first, now) == ([last], next_one)
    assert due_jobs(times, "all", MINUTE, first, now) == (
        [first + n * MINUTE for n in range(5)], next_one,
    )  # fmt: skip
    assert due_jobs(times, "skip", 10_000_000, first, now) == ([last], next_one)
    assert due_jobs(times, "skip", 9_999_999, first, now) == ([], next_one)
    assert due_jobs(times, "one", MINUTE, first, first) == ([first], first + MINUTE)


def test_all_of_a_long_absence_come_in_portions() -> None:
    times = times_of(1.0, None, None, START)
    first, now = microseconds(START), microseconds(START) + 1200 * 1_000_000
    counts = []
    while first <= now:
        jobs, first = due_jobs(times, "all", 0, first, now)
        counts.append(len(jobs))
    assert counts == [AT_ONCE, AT_ONCE, 1201 - 2 * AT_ONCE]


def test_after_years_of_absence_few_occurrences_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = times_of(None, "*/5 * * * *", None, None)
    asked = 0
    real = type(times).after

    def counting(self: Any, moment: int) -> int:
        nonlocal asked
        asked += 1
        return real(self, moment)

    monkeypatch.setattr(type(times), "after", counting)
    found = due_jobs(times, "one", 0, at(2020, 1, 1), at(2026, 1, 1, 0, 1))
    assert found == ([at(2026, 1, 1)], at(2026, 1, 1, 0, 5))
    assert asked < 30


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ((None, None, None, None), "either every= or cron="),
        ((1, "* * * * *", None, None), "either every= or cron="),
        ((0, None, None, None), "every is 0"),
        ((1e300, None, None, None), "100 years"),
        ((float("nan"), None, None, None), "nan"),
        ((1, None, "UTC", None), "zone= is for cron="),
        ((None, "61 * * * *", None, None), "cron '61 [*] [*] [*] [*]'"),
        ((None, "0 0 30 2 *", None, None), "30 2"),
        ((None, "* * * * *", "Mars/Olympus", None), "Mars/Olympus"),
        ((None, "* * * * *", "../etc", None), "../etc"),
    ],
)
def test_what_is_no_time_is_refused_with_its_value(given: tuple[Any, ...], text: str) -> None:
    with pytest.raises(InvalidValue, match=f"2046.*{text}"):
        times_of(*given)


@pytest.mark.parametrize(
    "given",
    [(True, None, None, None), ("5", None, None, None), (None, 5, None, None),
     (None, "* * * * *", 5, None), (5, None, None, datetime(2026, 1, 1))],
)  # fmt: skip
def test_what_is_of_a_wrong_type_is_refused(given: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidType, match="2046"):
        times_of(*given)
