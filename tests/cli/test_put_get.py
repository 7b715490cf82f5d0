"""Lines to messages and back: put, get, browse."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command_process import Command

from penstock.cli.lines import PriorityMap

LOGHUB = Path(__file__).resolve().parents[3] / "shared" / "data" / "loghub"
SEVERITY = "ERROR=9,error=9,Failed=8,WARN=6,notice=4,INFO=3"


def rows(text: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    "data",
    [
        b"one\ntwo\n",
        b"no newline at the end",
        b"\n\n\n",
        b"nul \0 inside\n\xff\xfe not utf-8\r\n\ttab \n",
        b"x" * (3 << 20) + b"\nshort\n",
    ],
    ids=["lines", "open end", "empty lines", "binary", "long"],
)
def test_every_line_comes_back_once_with_its_bytes(qm1: Command, data: bytes) -> None:
    qm1.ok("put", "QM1", "Q", data=data)
    assert qm1.ok("get", "QM1", "Q") == data + (b"" if data.endswith(b"\n") else b"\n")
    assert qm1.depth("Q") == 0


def test_files_are_put_in_the_order_given_and_a_dash_is_stdin(qm1: Command, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a1\na2")
    (tmp_path / "b").write_bytes(b"b1\n")
    qm1.ok("put", "QM1", "Q", str(tmp_path / "b"), "-", str(tmp_path / "a"), data=b"s1\ns2\n")
    assert qm1.ok("get", "QM1", "Q") == b"b1\ns1\ns2\na1\na2\n"


def test_the_map_gives_priorities_else_the_option_else_defprty(qm1: Command) -> None:
    qm1.ok("mqsc", "QM1", "ALTER QLOCAL(Q) DEFPRTY(5)")
    lines = b"INFO and ERROR\nplain\nWARN\nINFO\n"
    rules = ("--priority-map", "ERROR=9,WARN=6,INFO=3")
    qm1.ok("put", "QM1", "Q", *rules, data=lines)
    assert qm1.ok("get", "QM1", "Q") == b"INFO and ERROR\nWARN\nplain\nINFO\n"
    qm1.ok("put", "QM1", "Q", *rules, "--priority", "1", data=lines)
    assert qm1.ok("get", "QM1", "Q") == b"INFO and ERROR\nWARN\nINFO\nplain\n"


def test_a_priority_above_the_maximum_is_kept_in_the_field_and_reported_once(qm1: Command) -> None:
    done = qm1.run("put", "QM1", "Q", "--priority", "12", data=b"a\nb\n")
    assert done.returncode == 0
    assert done.stderr.count(b"2049") == 1 and b"2 lines" in done.stderr
    assert [row["priority"] for row in rows(qm1.ok("get", "QM1", "Q", "--json"))] == [12, 12]


def test_put_stops_at_the_first_line_that_fails_and_reports_the_number_put(
    penstock: Command, tmp_path: Path
) -> None:
    penstock.ok("create", "QM1")
    penstock.ok("mqsc", "QM1", "DEFINE QLOCAL(Q) DEFPSIST(YES) MAXDEPTH(5)")
    path = tmp_path / "f"
    path.write_bytes(b"1\n2\n3\n4\n5\n6\n7\n")
    for unit in ((), ("--unit", "2")):
        done = penstock.run("put", "QM1", "Q", *unit, str(path))
        assert done.returncode == 2
        assert f"line 6 of {path}: MQRC_Q_FULL (2053)".encode() in done.stderr
        assert b"; 5 lines put" in done.stderr
        assert penstock.ok("get", "QM1", "Q") == b"1\n2\n3\n4\n5\n"


def test_a_unit_above_maxumsgs_stops_at_its_limit_and_keeps_the_lines_before(
    qm1: Command,
) -> None:
    lines = b"".join(b"%d\n" % n for n in range(10050))
    done = qm1.run("put", "QM1", "Q", "--unit", "20000", data=lines)
    assert done.returncode == 2
    assert b"line 10001 of stdin: MQRC_SYNCPOINT_LIMIT_REACHED (2024)" in done.stderr
    assert b"; 10000 lines put" in done.stderr
    assert qm1.depth("Q") == 10000


def test_a_line_above_maxmsgl_is_refused_with_its_number(qm1: Command) -> None:
    qm1.ok("mqsc", "QM1", "ALTER QLOCAL(Q) MAXMSGL(10)")
    done = qm1.run("put", "QM1", "Q", data=b"fits\n" + b"x" * 11 + b"\n")
    assert done.returncode == 2
    assert b"line 2 of stdin" in done.stderr and b"(2030)" in done.stderr
    assert b"1 line put" in done.stderr


def test_lines_are_visible_while_the_input_pauses(qm1: Command) -> None:
    with qm1.running("put", "QM1", "Q") as process:
        assert process.stdin is not None
        process.stdin.write(b"first\n")
        process.stdin.flush()
        assert qm1.ok("get", "QM1", "Q", "--wait", "30", "--count", "1") == b"first\n"
        process.stdin.close()
        assert process.wait(30) == 0


def test_get_from_an_empty_queue_has_status_1_and_prints_nothing(qm1: Command) -> None:
    done = qm1.run("get", "QM1", "Q")
    assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def test_get_waits_for_a_message_and_count_ends_it(qm1: Command) -> None:
    with qm1.running("get", "QM1", "Q", "--wait", "-1", "--count", "2") as process:
        qm1.ok("put", "QM1", "Q", data=b"one\ntwo\nthree\n")
        out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, b"one\ntwo\n")
    assert qm1.ok("get", "QM1", "Q") == b"three\n"


def test_json_has_the_fields_and_bytes_that_are_no_text_in_base64(qm1: Command) -> None:
    qm1.ok("put", "QM1", "Q", "--priority", "3", data="grün\n".encode() + b"\xff\n")
    text, binary = rows(qm1.ok("get", "QM1", "Q", "--json"))
    assert text["data"] == "grün" and text["priority"] == 3 and text["persistent"] is True
    assert len(str(text["msg_id"])) == 48 and str(text["put_time"]).endswith("+00:00")
    assert base64.b64decode(str(binary["data_base64"])) == b"\xff" and "data" not in binary


def test_browse_shows_all_in_order_and_takes_nothing(qm1: Command) -> None:
    qm1.ok("put", "QM1", "Q", "--priority-map", "b=9", data=b"a\nb\nc\n")
    assert qm1.ok("browse", "QM1", "Q") == b"b\na\nc\n"
    assert qm1.ok("browse", "QM1", "Q", "--count", "1") == b"b\n"
    assert qm1.depth("Q") == 3
    qm1.ok("get", "QM1", "Q")
    assert qm1.run("browse", "QM1", "Q").returncode == 1


def test_a_broken_pipe_puts_the_unit_back(qm1: Command) -> None:
    qm1.ok("put", "QM1", "Q", data=b"one\ntwo\n")
    reader, writer = os.pipe()
    os.close(reader)
    with qm1.running("get", "QM1", "Q", stdout=writer) as process:
        os.close(writer)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 2 and b"backed out" in err
    left = rows(qm1.ok("browse", "QM1", "Q", "--json"))
    assert [(row["data"], row["backout_count"]) for row in left] == [("one", 1), ("two", 1)]


def test_what_stdout_took_stays_taken_when_the_pipe_breaks_later(qm1: Command) -> None:
    lines = [b"%06d " % n + b"x" * 1000 for n in range(2000)]
    qm1.ok("put", "QM1", "Q", data=b"\n".join(lines))
    with qm1.running("get", "QM1", "Q") as process:
        assert process.stdout is not None
        seen = b"".join(process.stdout.readline() for _ in range(600))
        process.stdout.close()
        assert process.wait(30) == 2
    assert seen.splitlines() == lines[:600]
    left = qm1.ok("get", "QM1", "Q").splitlines()
    assert 0 < len(left) <= 1500 and left == lines[-len(left) :]


def test_ctrl_c_puts_the_unit_back_that_stdout_did_not_take(qm1: Command) -> None:
    lines = b"".join(b"x" * 1000 + b"\n" for _ in range(300))  # more than a pipe holds
    qm1.ok("put", "QM1", "Q", data=lines)
    with qm1.running("get", "QM1", "Q") as process:
        assert process.stdout is not None
        assert process.stdout.read(1) == b"x"  # it is writing, and stuck
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
        process.stdout.close()
    assert qm1.depth("Q") == 300


def test_ctrl_c_ends_an_unlimited_wait(qm1: Command) -> None:
    with qm1.running("get", "QM1", "Q", "--wait", "-1") as process:
        while b'"waiters": 1' not in qm1.ok("status", "QM1", "--json"):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_a_put_that_leaves_as_the_last_process_reports_the_lost_messages(
    qm1: Command,
) -> None:
    done = qm1.run("put", "QM1", "Q", "--not-persistent", data=b"a\nb\nc\n")
    assert done.returncode == 3
    assert b"warning" in done.stderr and b"3 non-persistent messages" in done.stderr
    assert qm1.run("get", "QM1", "Q").returncode == 1


def test_without_a_flag_defpsist_decides(qm1: Command) -> None:
    qm1.ok("put", "QM1", "Q", data=b"kept\n")
    qm1.ok("mqsc", "QM1", "ALTER QLOCAL(Q) DEFPSIST(NO)")
    assert b"1 non-persistent message" in qm1.run("put", "QM1", "Q", data=b"lost\n").stderr
    qm1.ok("put", "QM1", "Q", "--persistent", data=b"kept too\n")
    assert qm1.ok("get", "QM1", "Q") == b"kept\nkept too\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("put", "NONE", "Q"), b"NONE"),
        (("put", "QM1", "NONE"), b"MQRC_UNKNOWN_OBJECT_NAME (2085)"),
        (("put", "QM1", "Q", "/no/such/file"), b"/no/such/file"),
        (("put", "QM1", "Q", "--priority-map", "WARN"), b"WORD=PRIORITY"),
        (("put", "QM1", "Q", "--unit", "0"), b"--unit"),
        (("get", "QM1", "no blanks"), b"no blanks"),
        (("get", "QM1", "Q", "--count", "x"), b"--count"),
        (("frobnicate",), b"frobnicate"),
    ],
)
def test_bad_arguments_have_status_2_and_are_named(
    qm1: Command, arguments: tuple[str, ...], text: bytes
) -> None:
    done = qm1.run(*arguments)
    assert done.returncode == 2 and text in done.stderr and b"Traceback" not in done.stderr


def generated_logs() -> list[bytes]:
    """Lines like those of a log, for machines without the sample files."""
    words = [b"INFO", b"WARN", b"ERROR", b"notice", b"Failed password", b""]
    return [b"2015-10-%02d %s line %d\0 of many" % (n % 28, words[n % 6], n) for n in range(10000)]


def test_five_logs_come_back_every_line_once_in_priority_order(
    penstock: Command, tmp_path: Path
) -> None:
    files = sorted(LOGHUB.glob("*.log"))
    if not files:
        files = [tmp_path / f"{n}.log" for n in range(5)]
        for number, path in enumerate(files):
            path.write_bytes(b"\n".join(generated_logs()[number::5]))
    penstock.ok("create", "QM1")
    penstock.ok("mqsc", "QM1", "DEFINE QLOCAL(LINES) MAXDEPTH(999999)")
    names = [str(path) for path in files]
    penstock.ok("put", "QM1", "LINES", *names, "--priority-map", SEVERITY, "--persistent")
    lines: list[bytes] = []
    for path in files:
        data = path.read_bytes()
        lines += data.removesuffix(b"\n").split(b"\n")
    rules = PriorityMap.parse(SEVERITY)
    expected = sorted(lines, key=lambda line: -(rules.priority_of(line) or 0))
    assert penstock.ok("get", "QM1", "LINES") == b"\n".join(expected) + b"\n"
    assert len(files) == 5 and len(lines) >= 10000
    assert penstock.depth("LINES") == 0


def test_the_command_is_installed_and_prints_its_version() -> None:
    path = Path(sys.executable).with_name("penstock")
    done = subprocess.run([path, "--version"], capture_output=True, check=True)
    assert done.stdout.startswith(b"penstock")


@pytest.mark.parametrize(
    ("arguments", "closed", "text"),
    [
        ("get QM1 Q", ">&-", "standard output is closed"),
        ("browse QM1 Q", ">&-", "standard output is closed"),
        ("mqsc QM1 --dump", ">&-", "standard output is closed"),
        ("put QM1 Q", "<&-", "standard input is closed"),
        ("mqsc QM1", "<&-", "standard input is closed"),
        ("unload QM1 Q --to -", ">&-", "Bad file descriptor"),
        ("load QM1 -", "<&-", "Bad file descriptor"),
    ],
)
def test_a_closed_standard_stream_is_said_in_one_line_and_nothing_is_taken(
    qm1: Command, arguments: str, closed: str, text: str
) -> None:
    qm1.ok("put", "QM1", "Q", data=b"stays\n")
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m penstock.cli {arguments} {closed}"],
        env=qm1.environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2 and text.encode() in done.stderr, done
    assert done.stderr.count(b"\n") == 1
    assert qm1.ok("get", "QM1", "Q") == b"stays\n"
