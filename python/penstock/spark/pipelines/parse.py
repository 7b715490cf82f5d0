"""Log lines into columns, by Spark's own expressions: no row passes through Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .formats import DEFAULT_LEVEL, FORMATS, GENERIC, GENERIC_LEVELS, SEVERITY, SPELLINGS, Format

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["PARSED", "parse"]

PARSED = ("log_format", "event_time", "level", "severity", "component", "message")
"""The columns that parsing adds."""

_LINE, _PARTS = "_line", "_parts"  # on the way
_NAME, _TIME, _LEVEL, _COMPONENT, _MESSAGE = range(5)  # of the parts
_BETWEEN = "\x1f\x00\x1f"  # the parts of a line


def parse(
    lines: DataFrame, body: str = "body", seen: str = "put_time", zone: str = "UTC"
) -> DataFrame:
    """Adds the columns of a parsed line.

    Args:
        lines: Has a column of lines, and one with the time at which each was received.
        body: Name of the first, binary or string. Bytes that are not UTF-8 are replaced.
        seen: Name of the second, a timestamp; it supplies the year of times without one.
        zone: Time zone of times without one.

    Returns:
        ``lines`` with ``log_format``, ``event_time`` (timestamp; null for lines without a readable
        time), ``level``, ``severity`` (int), ``component`` (may be null) and ``message``.
    """
    text = F.make_valid_utf8(F.col(body).cast("string"))
    level = F.try_element_at(
        _table({name: name for name in SEVERITY} | SPELLINGS), F.upper(_part(_LEVEL))
    )
    return (
        lines.withColumn(_LINE, F.regexp_replace(text, r"[\r\n]+\z", ""))
        .withColumn(_PARTS, F.split(_taken_apart(), _BETWEEN, _MESSAGE + 1))
        .withColumn("log_format", _part(_NAME))
        .withColumn("event_time", _moment(F.col(seen), zone))
        .withColumn("level", F.coalesce(level, F.lit(DEFAULT_LEVEL)))
        .withColumn("severity", F.element_at(_table(SEVERITY), F.col("level")))
        .withColumn("component", F.nullif(_part(_COMPONENT), F.lit("")))
        .withColumn("message", _part(_MESSAGE))
        .drop(_LINE, _PARTS)
    )


def _taken_apart() -> Column:
    """Name of the first format that matches, and the parts of the line, in one text.

    Spark evaluates an expression wherever it is mentioned, and generates code for each mention: so
    a pattern is mentioned twice and no more, and all its groups are taken by one replacement.
    """
    found = F.regexp_replace(F.col(_LINE), _java(GENERIC), _replacement(GENERIC))
    for form in reversed(FORMATS):
        parts = F.regexp_replace(F.col(_LINE), _java(form), _replacement(form))
        found = F.when(F.col(_LINE).rlike(_java(form)), parts).otherwise(found)
    return found


def _java(form: Format) -> str:
    """The pattern as Java reads it: on the whole line, a dot is any character."""
    return rf"(?s)\A(?:{form.pattern})\z"


def _replacement(form: Format) -> str:
    """The replacement of a matching line: name, time, level, component, message."""
    if form is GENERIC:
        level = "".join(f"${n}" for n in GENERIC_LEVELS)  # at most one of them has matched
        return _BETWEEN.join((form.name, f"${form.groups[0]}", level, "", "$0"))
    return _BETWEEN.join((form.name, *(f"${n}" if n else "" for n in form.groups)))


def _part(number: int) -> Column:
    return F.col(_PARTS).getItem(number)


def _table(values: Mapping[str, str] | Mapping[str, int]) -> Column:
    return F.create_map(*(F.lit(item) for pair in values.items() for item in pair))


def _moment(seen: Column, zone: str) -> Column:
    """The time of a line as a timestamp, null where it cannot be read."""
    text = _part(_TIME)
    found = F.lit(None).cast("timestamp")
    for kind in {form.time for form in (*FORMATS, GENERIC)}:
        names = [form.name for form in (*FORMATS, GENERIC) if form.time == kind]
        if kind == "iso":
            moment = _iso(text, zone)
        elif kind == "yearless":
            moment = _yearless(text, seen, zone)
        else:
            moment = _read(text, kind, zone)
        found = F.when(_part(_NAME).isin(names), moment).otherwise(found)
    return found


def _iso(text: Column, zone: str) -> Column:
    plain = F.translate(text, "T,", " .")
    whole = F.regexp_replace(plain, r"(?<!Z|[+\-]\d\d:?\d\d)\z", f" {zone}")
    return whole.try_cast("timestamp")


def _yearless(text: Column, seen: Column, zone: str) -> Column:
    """In the newest year in which the line is not from the future; a day for clocks that differ."""
    tidy = F.regexp_replace(text, " +", " ")
    years = F.array(*(F.year(seen) + n for n in (1, 0, -1, -2, -3, -4)))
    moments = F.transform(
        years,
        lambda year: _read(
            F.concat_ws(" ", tidy, year.cast("string")), "MMM d HH:mm:ss yyyy", zone
        ),
    )
    latest = seen + F.expr("INTERVAL 1 DAY")
    return F.get(F.filter(moments, lambda moment: moment <= latest), F.lit(0))


def _read(text: Column, pattern: str, zone: str) -> Column:
    return F.try_to_timestamp(F.concat_ws(" ", text, F.lit(zone)), F.lit(f"{pattern} VV"))
