"""Parsing log lines: in Python for their priority, in Spark for the table's columns."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.spark.pipelines.formats import (
    DEFAULT_LEVEL,
    FORMATS,
    LEVELS,
    SEVERITY,
    Parsed,
    parse_line,
    severity_of,
)
from pipeline_proof.generate import generate

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

SEEN = datetime(2026, 3, 4, 12, 0, tzinfo=timezone.utc)

# a line, its parts, its time as a timestamp
LINES: list[tuple[bytes, Parsed, datetime | None]] = [
    (
        b"2026-03-01 17:41:44,747 - WARN  [Peer[id=1]/0:0:2181:Election@774] - Time - out: 3200\r",
        Parsed("zookeeper", "2026-03-01 17:41:44,747", "WARN", "Peer[id=1]/0:0:2181:Election@774",
               "Time - out: 3200"),
        datetime(2026, 3, 1, 17, 41, 44, 747000),
    ),
    (
        b"api.log.1 2026-03-01 00:00:00.008 25746 WARNING app.osapi.wsgi-server [req-1 -] GET 404",
        Parsed("openstack", "2026-03-01 00:00:00.008", "WARN", "app.osapi.wsgi-server",
               "[req-1 -] GET 404"),
        datetime(2026, 3, 1, 0, 0, 0, 8000),
    ),
    (
        b"26/03/01 20:10:40 FATAL executor.Backend: lost: [TERM]",
        Parsed("spark", "26/03/01 20:10:40", "FATAL", "executor.Backend", "lost: [TERM]"),
        datetime(2026, 3, 1, 20, 10, 40),
    ),
    (
        b"[Sun Mar 01 04:47:44 2026] [notice] workers ok",
        Parsed("apache", "Mar 01 04:47:44 2026", "NOTICE", None, "workers ok"),
        datetime(2026, 3, 1, 4, 47, 44),
    ),
    (
        b"[Sun Mar 01 04:47:44.123456 2026] [core:crit] [pid 7] gone",
        Parsed("apache", "Mar 01 04:47:44.123456 2026", "FATAL", "core", "[pid 7] gone"),
        datetime(2026, 3, 1, 4, 47, 44, 123456),
    ),
    (
        b"[Sun Mar 01 04:47:44.123456 2026] [proxy:trace3] on",
        Parsed("apache", "Mar 01 04:47:44.123456 2026", "TRACE", "proxy", "on"),
        datetime(2026, 3, 1, 4, 47, 44, 123456),
    ),
    (
        b"Mar  1 06:55:46 host sshd[24200]: error: no route",
        Parsed("syslog", "Mar  1 06:55:46", "ERROR", "sshd", "error: no route"),
        datetime(2026, 3, 1, 6, 55, 46),
    ),
    (  # no level, and a time that would be in the future this year
        b"Dec 10 06:55:46 host cron: an error: none",
        Parsed("syslog", "Dec 10 06:55:46", "INFO", "cron", "an error: none"),
        datetime(2025, 12, 10, 6, 55, 46),
    ),
    (  # a day that only the last leap year had
        b"Feb 29 23:00:00 host cron[1]: x",
        Parsed("syslog", "Feb 29 23:00:00", "INFO", "cron", "x"),
        datetime(2024, 2, 29, 23, 0),
    ),
    (
        b"2026-03-01T10:00:00.5Z level=warning x",
        Parsed("generic", "2026-03-01T10:00:00.5Z", "WARN", None,
               "2026-03-01T10:00:00.5Z level=warning x"),
        datetime(2026, 3, 1, 10, 0, 0, 500000),
    ),
    (
        b"[2026-03-01 10:00:00,25+02:00] a [critical] b ERROR",
        Parsed("generic", "2026-03-01 10:00:00,25+02:00", "FATAL", None,
               "[2026-03-01 10:00:00,25+02:00] a [critical] b ERROR"),
        datetime(2026, 3, 1, 8, 0, 0, 250000),
    ),
    (  # a moment that does not exist, a level that is only part of a word
        b"2026-02-30 10:00:00 TERRORS and errors",
        Parsed("generic", "2026-02-30 10:00:00", "INFO", None,
               "2026-02-30 10:00:00 TERRORS and errors"),
        None,
    ),
    (  # an unknown level is not of the format
        b"26/03/01 20:10:40 LOUD executor.Backend: DEBUG",
        Parsed("generic", None, "DEBUG", None, "26/03/01 20:10:40 LOUD executor.Backend: DEBUG"),
        None,
    ),
    (
        b"2026-03-01 18:01:47,978 WARN [IPC Server handler 0] org.hadoop.MRAppMaster: a: b",
        Parsed("hadoop", "2026-03-01 18:01:47,978", "WARN", "org.hadoop.MRAppMaster",
               "a: b"),
        datetime(2026, 3, 1, 18, 1, 47, 978000),
    ),
    (
        b"03-01 16:13:38.811  1702  2395 D WindowManager: ready=true, app: x",
        Parsed("android", "03-01 16:13:38.811", "DEBUG", "WindowManager", "ready=true, app: x"),
        datetime(2026, 3, 1, 16, 13, 38, 811000),
    ),
    (
        b"12-17 16:13:38.811  1702 12395 E Zygote  : ",
        Parsed("android", "12-17 16:13:38.811", "ERROR", "Zygote", ""),
        datetime(2025, 12, 17, 16, 13, 38, 811000),
    ),
    (
        b"- 1117838570 2005.06.03 R02-M1-N0-C:J12-U11 2005-06-03-15.42.50.675872 "
        b"R02-M1-N0-C:J12-U11 RAS KERNEL INFO instruction cache parity error corrected",
        Parsed("bgl", "2005-06-03-15.42.50.675872", "INFO", "KERNEL",
               "instruction cache parity error corrected"),
        datetime(2005, 6, 3, 15, 42, 50, 675872),
    ),
    (
        b"APPREAD 1118765360 2005.06.14 NULL 2005-06-14-09.09.20.459609 NULL RAS BGLMASTER FAILURE "
        b"exited normally with exit code 13",
        Parsed("bgl", "2005-06-14-09.09.20.459609", "FATAL", "BGLMASTER",
               "exited normally with exit code 13"),
        datetime(2005, 6, 14, 9, 9, 20, 459609),
    ),
    (
        b"- 1131566461 2005.11.09 dn228 Nov 9 12:01:01 dn228/dn228 crond(pam_unix)[2915]: closed",
        Parsed("thunderbird", "1131566461", "INFO", "crond(pam_unix)", "closed"),
        datetime(2005, 11, 9, 20, 1, 1),
    ),
    (
        b"- 1131566479 2005.11.09 dn3 Nov 9 12:01:19 dn3/dn3 kernel: error: no sense",
        Parsed("thunderbird", "1131566479", "ERROR", "kernel", "error: no sense"),
        datetime(2005, 11, 9, 20, 1, 19),
    ),
    (b"", Parsed("generic", None, "INFO", None, ""), None),
    (b"\xff\xfe \xc3\xbc\xe2\x82\xac\r\n",
     Parsed("generic", None, "INFO", None, "\ufffd\ufffd \u00fc\u20ac"), None),
    (  # what Java calls ends of lines
        "26/03/01 20:10:40 ERROR a.B: x\u2028y\u0085z\rw".encode(),
        Parsed("spark", "26/03/01 20:10:40", "ERROR", "a.B", "x\u2028y\u0085z\rw"),
        datetime(2026, 3, 1, 20, 10, 40),
    ),
]  # fmt: skip


def parsed_by_spark(spark: SparkSession, lines: list[bytes], zone: str = "UTC") -> list[Row]:
    from penstock.spark.pipelines.parse import parse

    rows = [(n, line, SEEN) for n, line in enumerate(lines)]
    frame = spark.createDataFrame(rows, "n int, body binary, put_time timestamp")
    return parse(frame, zone=zone).orderBy("n").collect()


@pytest.mark.parametrize(("line", "parts", "moment"), LINES)
def test_each_format_gives_its_parts(line: bytes, parts: Parsed, moment: datetime | None) -> None:
    assert parse_line(line) == parts
    assert severity_of(line) == SEVERITY[parts.level]


def test_spark_takes_lines_apart_as_python_does_and_reads_their_times(spark: SparkSession) -> None:
    rows = parsed_by_spark(spark, [line for line, _, _ in LINES])
    for row, (line, parts, moment) in zip(rows, LINES, strict=True):
        found = Parsed(row.log_format, parts.time, row.level, row.component, row.message)
        assert found == parts, line
        assert row.severity == SEVERITY[parts.level]
        assert (row.event_time and row.event_time.astimezone(timezone.utc)) == (
            moment and moment.replace(tzinfo=timezone.utc)
        ), line


def test_times_without_a_zone_are_of_the_zone_that_is_given(spark: SparkSession) -> None:
    lines = [b"26/03/01 20:10:40 INFO a: b", b"2026-03-01 20:10:40 x", b"Mar  1 20:10:40 h p: x",
             b"2026-03-01 20:10:40Z x"]  # fmt: skip
    rows = parsed_by_spark(spark, lines, "Asia/Kolkata")
    assert [row.event_time.astimezone(timezone.utc).strftime("%H:%M") for row in rows] == [
        "14:40", "14:40", "14:40", "20:10",
    ]  # fmt: skip


def test_both_agree_on_all_lines_that_the_project_makes(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = [
        line for path in generate(tmp_path, 300, seed=7) for line in path.read_bytes().split(b"\n")
    ]
    rows = parsed_by_spark(spark, lines)
    assert len(rows) == len(lines) == 1500
    for row, line in zip(rows, lines, strict=True):
        parts = parse_line(line)
        assert (row.log_format, row.level, row.component, row.message) == (
            parts.format, parts.level, parts.component, parts.message,
        )  # fmt: skip
        assert row.event_time is not None, line
    assert {row.log_format for row in rows} == {form.name for form in FORMATS[:5]}


def test_every_spelling_of_a_level_is_found_by_every_format_with_levels() -> None:
    for word in LEVELS:
        for line in (
            f"2026-03-01 17:41:44,747 - {word} [c] - m",
            f"2026-03-01 17:41:44.7 1 {word} c m",
            f"26/03/01 20:10:40 {word} c: m",
            f"[Sun Mar 01 04:47:44 2026] [{word.lower()}] m",
            f"Mar  1 06:55:46 h c: {word.lower()}: m",
            f"something {word}, then",
        ):
            level = parse_line(line).level
            assert level in SEVERITY and (level == word or word not in SEVERITY), line
    assert parse_line("nothing").level == DEFAULT_LEVEL


def test_generated_files_are_the_same_for_the_same_seed_and_hold_every_level(
    tmp_path: Path,
) -> None:
    for folder, seed in (("a", 3), ("b", 3), ("c", 4)):
        (tmp_path / folder).mkdir()
        generate(tmp_path / folder, 400, seed)
    texts = {
        folder: [p.read_bytes() for p in sorted((tmp_path / folder).iterdir())] for folder in "abc"
    }
    assert texts["a"] == texts["b"] != texts["c"]
    assert len(texts["a"]) == 5 and all(text.count(b"\n") == 399 for text in texts["a"])
    levels = {parse_line(line).level for text in texts["a"] for line in text.split(b"\n")}
    assert {"FATAL", "ERROR", "WARN", "INFO", "DEBUG"} <= levels
