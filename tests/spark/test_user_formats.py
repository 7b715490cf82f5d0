"""Formats of log lines from a TOML file, lines without a time, and the report of lines that no
format matches.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.spark.pipelines.feed import feed
from penstock.spark.pipelines.formats import FORMATS, Parsed, parse_line
from penstock.spark.pipelines.options import OptionError
from penstock.spark.pipelines.user_formats import all_formats, load_formats

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from spark_fixture import SparkFixture

WHOLE_SECONDS = 900  # of a test that runs several streams or jobs, on a busy machine
# real logs, where there are any
LOGHUB = Path(__file__).resolve().parents[3] / "shared" / "data" / "loghub"

OWN = r"""
[[format]]
name = "billing"
pattern = '(?<time>\S+ \S+) (?P<level>\w+) (?:\[(?<component>.*?)\] )?\((?:a|\(b)\) (?<message>.*)'
time = "dd.MM.yyyy HH:mm:ss"
[format.levels]
i = "INFO"
X = "FATAL"

[[format]]
name = "counter"
pattern = 'count=(?<time>[\d.]+)'
time = "epoch"

[[format]]
name = "yearless"
pattern = '@(?<time>\d+/\d+ \d+h\d+) (?<message>.*)'
time = "d/M H'h'mm"

[[format]]
name = "timeless"
pattern = '(?<level>\w+)! (?<message>.*)'
"""
LINES: list[tuple[bytes, Parsed, datetime | None]] = [
    (b"01.03.2026 10:00:00 X [core] (a) it: is", Parsed(
        "billing", "01.03.2026 10:00:00", "FATAL", "core", "it: is"),
     datetime(2026, 3, 1, 10)),
    (b"01.03.2026 10:00:00 warning ((b) x", Parsed(
        "billing", "01.03.2026 10:00:00", "WARN", None, "x"), datetime(2026, 3, 1, 10)),
    (b"31.02.2026 10:00:00 LOUD (a) x", Parsed(
        "billing", "31.02.2026 10:00:00", "INFO", None, "x"), None),
    (b"count=1772359200.25", Parsed(
        "counter", "1772359200.25", "INFO", None, "count=1772359200.25"),
     datetime(2026, 3, 1, 10, 0, 0, 250000)),
    (b"count=1.2.3", Parsed("counter", "1.2.3", "INFO", None, "count=1.2.3"), None),
    (b"count=99999999999999999999999999999999999999999999", Parsed(
        "counter", "9" * 44, "INFO", None, "count=" + "9" * 44), None),
    (b"@24/12 7h05 x", Parsed("yearless", "24/12 7h05", "INFO", None, "x"),
     datetime(2025, 12, 24, 7, 5)),
    (b"error! x", Parsed("timeless", None, "ERROR", None, "x"), None),
    (b"Mar  1 06:55:46 host cron: x", Parsed("syslog", "Mar  1 06:55:46", "INFO", "cron", "x"),
     datetime(2026, 3, 1, 6, 55, 46)),
]  # fmt: skip


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "formats.toml"
    path.write_text(OWN)
    return path


def test_python_takes_lines_of_the_users_formats_apart(own: Path) -> None:
    formats = all_formats(own)
    assert formats[-len(FORMATS) :] == FORMATS and all_formats(None) == FORMATS
    for line, parts, _ in LINES:
        assert parse_line(line, formats) == parts


def test_spark_takes_lines_of_the_users_formats_apart_as_python_does(
    spark: SparkSession, own: Path
) -> None:
    from penstock.spark.pipelines.parse import check_formats, parse

    seen = datetime(2026, 3, 4, 12, 0, tzinfo=timezone.utc)
    formats = all_formats(own)
    check_formats(spark, load_formats(own))
    rows = [(n, line, seen) for n, (line, _, _) in enumerate(LINES)]
    frame = spark.createDataFrame(rows, "n int, body binary, put_time timestamp")
    found = parse(frame, formats=formats).orderBy("n").collect()
    for row, (line, parts, moment) in zip(found, LINES, strict=True):
        time = parts.time
        assert Parsed(row.log_format, time, row.level, row.component, row.message) == parts, line
        taken = row.event_time and row.event_time.astimezone(timezone.utc)
        assert taken == (moment and moment.replace(tzinfo=timezone.utc)), line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "a file of formats is a list of tables"),
        ("x = 1", "a file of formats is a list of tables"),
        ("[[format", "Expected"),
        ('[[format]]\nname = "a"', "format a: key pattern is missing"),
        ('[[format]]\npattern = "a"', "format 1: key name is missing"),
        ('[[format]]\nname = "a/b"\npattern = "x"', "format a/b: a name has 1 to 64 letters"),
        ('[[format]]\nname = "a"\npattern = "("', "the pattern is no regular expression"),
        ('[[format]]\nname = "a"\npattern = "(?<who>x)"', "group who is unknown; there are time"),
        ('[[format]]\nname = "a"\npattern = "(?<time>x)"', "a group time and a key time"),
        ('[[format]]\nname = "a"\npattern = "x"\ntime = "iso"', "a group time and a key time"),
        ('[[format]]\nname = "a"\npattern = "(?<time>x)"\ntime = "posix"', "is none of iso"),
        ('[[format]]\nname = "a"\npattern = "x"\nlevel = "y"', "key level is unknown; there are"),
        ('[[format]]\nname = "a"\npattern = "x"\nlevels = {y = "LOUD"}', "level y is one of FATAL"),
        ('[[format]]\nname = "syslog"\npattern = "x"', "there is a format of that name already"),
        ('[[format]]\nname = "a"\npattern = "(?<level>x)(?P=level)"', "no references"),
    ],
)
def test_a_file_of_formats_with_an_error_is_refused_with_format_and_rule(
    tmp_path: Path, text: str, expected: str
) -> None:
    path = tmp_path / "formats.toml"
    path.write_text(text)
    with pytest.raises(OptionError, match=re.escape(expected)) as caught:
        load_formats(path)
    assert str(path) in str(caught.value)
    with pytest.raises(OptionError, match="No such file"):
        load_formats(tmp_path / "none")


@pytest.mark.parametrize(
    ("pattern", "time", "key"),
    [("(?<time>x)(?i:y)(?(1)z|w)", "iso", "pattern"), ("(?<time>x)", "HH:mm {", "time")],
)
def test_what_java_does_not_take_is_refused_before_the_stream_starts(
    spark: SparkSession, tmp_path: Path, pattern: str, time: str, key: str
) -> None:
    from penstock.spark.pipelines.parse import check_formats

    path = tmp_path / "formats.toml"
    path.write_text(f"[[format]]\nname = 'a'\npattern = '{pattern}'\ntime = '{time}'\n")
    with pytest.raises(OptionError, match=f"format a: Spark does not take {key} "):
        check_formats(spark, load_formats(path))


@pytest.mark.timeout(WHOLE_SECONDS)
def test_an_ingest_has_lines_without_a_time_on_the_day_unknown_and_reports_what_matches_nothing(
    spark_qm: SparkFixture, own: Path, tmp_path: Path
) -> None:
    from penstock.spark.pipelines.ingest import Lines, counted, ingest, unmatched

    strange = [b"user %d said hello" % n for n in range(3)] + [
        b"2026-03-01 10:00:00 x",
        b"error! y",
    ]
    log = tmp_path / "log"
    log.write_bytes(b"\n".join([line for line, _, _ in LINES] + strange))
    feed(spark_qm.qm, "L", [log], all_formats(own))
    with spark_qm.qm.open("L", input=False, browse=True) as queue:
        assert next(queue.browse()).data == LINES[0][0]  # X is FATAL in the user's formats
    table = str(tmp_path / "table")
    ingest(spark_qm.spark, {
        "queueManager": "QM1", "home": str(spark_qm.home), "queue": "L", "table": table,
        "checkpoint": str(tmp_path / "marks"), "formats": str(own),
    })  # fmt: skip
    rows = spark_qm.spark.read.parquet(table).collect()
    days = Counter((row.log_format, str(row.day)) for row in rows)
    assert days == {
        ("billing", "2026-03-01"): 2, ("billing", "unknown"): 1, ("counter", "2026-03-01"): 1,
        ("counter", "unknown"): 2, ("timeless", "unknown"): 2, ("generic", "unknown"): 3,
        ("generic", "2026-03-01"): 1,
        **{key: 1 for key in days if key[0] in ("syslog", "yearless")},
    }  # fmt: skip
    assert all((row.event_time is None) == (row.day == "unknown") for row in rows)
    assert counted(spark_qm.spark, table) == Lines(len(LINES) + len(strange), 4, 8)
    report = [tuple(row)[:4] for row in unmatched(spark_qm.spark, table).collect()]
    assert report[0] == (3, "generic", 3, "a 0 a")
    assert (1, "generic", 0, "0-0-0 0:0:0 a") in report
    assert sum(row[0] for row in report) == 9 and sum(row[2] for row in report) == 8


def test_the_built_in_formats_match_every_line_of_real_logs() -> None:
    expected = {"Apache": "apache", "OpenSSH": "syslog", "OpenStack": "openstack",
                "Spark": "spark", "Zookeeper": "zookeeper", "Hadoop": "hadoop", "BGL": "bgl",
                "Android": "android", "Thunderbird": "thunderbird"}  # fmt: skip
    found: dict[str, Any] = {}
    for name in expected:
        for file in LOGHUB.glob(f"{name}_2k.log"):
            lines = file.read_bytes().splitlines()
            found[name] = Counter(parse_line(line).format for line in lines).most_common(1)[0]
            assert found[name] == (expected[name], len(lines)), name
