"""Log lines into columns, by Spark's own expressions: no row passes through Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .formats import DEFAULT_LEVEL, FORMATS, GENERIC, GENERIC_LEVELS, SEVERITY, SPELLINGS, Format

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["PARSED", "parse"]

PARSED = ("log_format", "event_time", "level", "severity", "component", "message")
"""The columns that parsing adds."""

_LINE, _TIME = "_line", "_time"  # on the way


def parse(
    lines: DataFrame, body: str = "body", seen: str = "put_time", zone: str = "UTC"
) -> DataFrame:
    """Adds the columns of a parsed line.

    Args:
        lines: Has a column of lines, and one with the time at which each was seen.
        body: Name of the first, binary or string. Bytes that are no UTF-8 are replaced.
        seen: Name of the second, a timestamp; it gives the year to times that have none.
        zone: Time zone of times that say none.

    Returns:
        ``lines`` with ``log_format``, ``event_time`` (timestamp; null where a line says none that
        can be read), ``level``, ``severity`` (int), ``component`` (may be null) and ``message``.
    """
    text = F.make_valid_utf8(F.col(body).cast("string"))
    return (
        lines.withColumn(_LINE, F.regexp_replace(text, r"[\r\n]+\z", ""))
        .withColumn("log_format", _format())
        .withColumn(_TIME, _by_format(lambda form: _group(form, form.groups[0])))
        .withColumn("event_time", _by_format(lambda form: _moment(form, F.col(seen), zone)))
        .withColumn("level", _lookup(F.upper(_by_format(_level)), SPELLINGS))
        .withColumn("severity", _lookup(F.col("level"), SEVERITY).cast("int"))
        .withColumn("component", _by_format(lambda form: _group(form, form.groups[2])))
        .withColumn("message", F.coalesce(_by_format(_message), F.lit("")))
        .drop(_LINE, _TIME)
    )


def _java(form: Format) -> str:
    """The pattern as Java reads it: on the whole line, a dot is any character."""
    return rf"(?s)\A(?:{form.pattern})\z"


def _format() -> Column:
    """Name of the first format that matches."""
    found = F.lit(GENERIC.name)
    for form in reversed(FORMATS):
        found = F.when(F.col(_LINE).rlike(_java(form)), form.name).otherwise(found)
    return found


def _by_format(expression: Callable[[Format], Column]) -> Column:
    """For each row what the expression is for its format."""
    found = expression(GENERIC)
    for form in FORMATS:
        found = F.when(F.col("log_format") == form.name, expression(form)).otherwise(found)
    return found


def _group(form: Format, number: int) -> Column:
    """A group of a format that matches; null where it is absent or empty."""
    if not number:
        return F.lit(None).cast("string")
    return F.nullif(F.regexp_extract(F.col(_LINE), _java(form), number), F.lit(""))


def _level(form: Format) -> Column:
    """What a line says, in the spelling of the line."""
    numbers = GENERIC_LEVELS if form is GENERIC else form.groups[1:2]
    return F.coalesce(*(_group(form, n) for n in numbers), F.lit(DEFAULT_LEVEL))


def _message(form: Format) -> Column:
    return F.col(_LINE) if form is GENERIC else _group(form, form.groups[3])


def _lookup(key: Column, table: Mapping[str, str] | Mapping[str, int]) -> Column:
    """The value of a key, which stands for itself where it has none."""
    found = key
    for name, value in table.items():
        found = F.when(key == name, F.lit(value).cast("string")).otherwise(found)
    return found


def _moment(form: Format, seen: Column, zone: str) -> Column:
    """The time of a line as a timestamp, null where it cannot be read."""
    text = F.col(_TIME)
    if form.time == "iso":
        plain = F.translate(text, "T,", " .")
        has_zone = plain.rlike(r"(Z|[+\-]\d\d:?\d\d)\z")
        return (
            F.when(has_zone, plain)
            .otherwise(F.concat(plain, F.lit(f" {zone}")))
            .try_cast("timestamp")
        )
    if form.time != "yearless":
        return _read(text, form.time, zone)
    # the newest year in which the line is not from the future; a day for clocks that differ
    tidy = F.regexp_replace(text, " +", " ")
    moments = [
        _read(
            F.concat_ws(" ", tidy, (F.year(seen) + n).cast("string")), "MMM d HH:mm:ss yyyy", zone
        )
        for n in (1, 0, -1, -2, -3, -4)
    ]
    latest = seen + F.expr("INTERVAL 1 DAY")
    return F.coalesce(*(F.when(moment <= latest, moment) for moment in moments))


def _read(text: Column, pattern: str, zone: str) -> Column:
    return F.try_to_timestamp(F.concat_ws(" ", text, F.lit(zone)), F.lit(f"{pattern} VV"))
