"""Log lines into columns, by Spark's own expressions: no row passes through Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .formats import DEFAULT_LEVEL, FORMATS, GENERIC, GENERIC_LEVELS, SEVERITY, SPELLINGS, Format
from .options import OptionError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["PARSED", "check_formats", "parse"]

PARSED = ("log_format", "event_time", "level", "severity", "component", "message")
"""The columns that parsing adds."""

_LINE, _PARTS = "_line", "_parts"  # on the way
_NAME, _TIME, _LEVEL, _COMPONENT, _MESSAGE = range(5)  # of the parts
_QUOTED, _YEAR = re.compile(r"'[^']*'"), re.compile("[yu]")  # in a pattern of Spark
_LAST_SECOND = 253_402_300_800  # year 10000
_BETWEEN = "\x1f\x00\x1f"  # the parts of a line


def parse(
    lines: DataFrame,
    body: str = "body",
    seen: str = "put_time",
    zone: str = "UTC",
    formats: Sequence[Format] = FORMATS,
) -> DataFrame:
    """Adds the columns of a parsed line.

    Args:
        lines: Has a column of lines, and one with the time at which each was received.
        body: Name of the first, binary or string. Bytes that are not UTF-8 are replaced.
        seen: Name of the second, a timestamp; it supplies the year of times without one.
        zone: Time zone of times without one.
        formats: Formats of the lines, the first of which comes first.

    Returns:
        ``lines`` with ``log_format``, ``event_time`` (timestamp; null for lines without a readable
        time), ``level``, ``severity`` (int), ``component`` (may be null) and ``message``.
    """
    text = F.make_valid_utf8(F.col(body).cast("string"))
    said = F.upper(_part(_LEVEL))
    level = F.coalesce(
        *(
            F.when(_part(_NAME) == form.name, F.try_element_at(_table(form.levels), said))
            for form in formats
            if form.levels
        ),
        F.try_element_at(_table({name: name for name in SEVERITY} | SPELLINGS), said),
        F.lit(DEFAULT_LEVEL),
    )
    return (
        lines.withColumn(_LINE, F.regexp_replace(text, r"[\r\n]+\z", ""))
        .withColumn(_PARTS, F.split(_taken_apart(formats), _BETWEEN, _MESSAGE + 1))
        .withColumn("log_format", _part(_NAME))
        .withColumn("event_time", _moment(F.col(seen), zone, (*formats, GENERIC)))
        .withColumn("level", level)
        .withColumn("severity", F.element_at(_table(SEVERITY), F.col("level")))
        .withColumn("component", F.nullif(_part(_COMPONENT), F.lit("")))
        .withColumn("message", _part(_MESSAGE))
        .drop(_LINE, _PARTS)
    )


def check_formats(spark: SparkSession, formats: Sequence[Format]) -> None:
    """Raises OptionError for a pattern or a time that Java or Spark does not take."""
    one = spark.range(1)
    for form in formats:
        line, text = F.lit("x"), F.lit("2026-01-02 03:04:05")
        checks = {"pattern": (form.pattern, line.rlike(_java(form)))}
        if form.time:
            moment = _read_as(form.time, text, F.current_timestamp(), "UTC")
            checks["time"] = (form.time, moment)
        for key, (value, found) in checks.items():
            try:
                one.select(found).collect()
            except Exception as error:
                why = str(error).strip().splitlines()[0]
                raise OptionError(
                    f"format {form.name}: Spark does not take {key} {value!r}: {why}"
                ) from error


def _taken_apart(formats: Sequence[Format]) -> Column:
    """Name of the first format that matches, and the parts of the line, in one text.

    Spark evaluates an expression wherever it is mentioned, and generates code for each mention: so
    a pattern is mentioned twice and no more, and all its groups are taken by one replacement.
    """
    found = F.regexp_replace(F.col(_LINE), _java(GENERIC), _replacement(GENERIC))
    for form in reversed(formats):
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
    parts = [f"${n}" if n else "" for n in form.groups[:3]]
    return _BETWEEN.join((form.name, *parts, f"${form.groups[3]}"))


def _part(number: int) -> Column:
    return F.col(_PARTS).getItem(number)


def _table(values: Mapping[str, str] | Mapping[str, int]) -> Column:
    return F.create_map(*(F.lit(item) for pair in values.items() for item in pair))


def _moment(seen: Column, zone: str, formats: Sequence[Format]) -> Column:
    """The time of a line as a timestamp, null where it cannot be read."""
    text = _part(_TIME)
    found = F.lit(None).cast("timestamp")
    for kind in {form.time for form in formats if form.time}:
        names = [form.name for form in formats if form.time == kind]
        found = F.when(_part(_NAME).isin(names), _read_as(kind, text, seen, zone)).otherwise(found)
    return found


def _read_as(kind: str, text: Column, seen: Column, zone: str) -> Column:
    """The time in a notation of Format.time."""
    if kind == "iso":
        return _iso(text, zone)
    if kind in ("epoch", "epoch_ms"):
        seconds = text.try_cast("decimal(38, 9)") / (1 if kind == "epoch" else 1000)
        return F.when(seconds < _LAST_SECOND, F.timestamp_seconds(seconds))
    if kind == "yearless":
        return _yearless(text, "MMM d HH:mm:ss", seen, zone)
    if not _YEAR.search(_QUOTED.sub("", kind)):
        return _yearless(text, kind, seen, zone)
    return _read(text, kind, zone)


def _iso(text: Column, zone: str) -> Column:
    plain = F.translate(text, "T,", " .")
    whole = F.regexp_replace(plain, r"(?<!Z|[+\-]\d\d:?\d\d)\z", f" {zone}")
    return whole.try_cast("timestamp")


def _yearless(text: Column, pattern: str, seen: Column, zone: str) -> Column:
    """In the newest year in which the line is not from the future; a day for clocks that differ."""
    tidy = F.regexp_replace(text, " +", " ")
    years = F.array(*(F.year(seen) + n for n in (1, 0, -1, -2, -3, -4)))
    moments = F.transform(
        years,
        lambda year: _read(F.concat_ws(" ", tidy, year.cast("string")), f"{pattern} yyyy", zone),
    )
    latest = seen + F.expr("INTERVAL 1 DAY")
    return F.get(F.filter(moments, lambda moment: moment <= latest), F.lit(0))


def _read(text: Column, pattern: str, zone: str) -> Column:
    return F.try_to_timestamp(F.concat_ws(" ", text, F.lit(zone)), F.lit(f"{pattern} VV"))
