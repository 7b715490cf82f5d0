"""Log files into a queue: each line once, whatever is killed; the worst lines come out first."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import penstock
from penstock.spark.pipelines import feed as feeding
from penstock.spark.pipelines.alerts import serve
from penstock.spark.pipelines.feed import POSITIONS, Fed, LineTooLong, feed

WORST = b"26/03/01 20:10:40 FATAL a.B: gone"
WARNING = b"26/03/01 20:10:40 WARN a.B: slow"
PLAIN = b"26/03/01 20:10:40 INFO a.B: fine"


def taken(qm: penstock.QueueManager, queue: str = "LINES") -> list[tuple[int, bytes]]:
    found = []
    with qm.queue(queue) as lines:
        while True:
            try:
                message = lines.get()
            except penstock.NoMessageAvailable:
                return found
            assert message.persistent
            found.append((message.priority, message.data))


def test_the_worst_lines_come_out_first_and_blank_ones_are_no_messages(
    qm: penstock.QueueManager, tmp_path: Path
) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(PLAIN + b"\r\n\n" + WARNING + b"\n \r\n" + WORST + b"\n" + b"end \xff")
    assert feed(qm, "LINES", [file]) == Fed(4, sum(map(len, (PLAIN, WARNING, WORST))) + 6, 1)
    assert taken(qm) == [(9, WORST), (6, WARNING), (3, PLAIN + b"\r"), (3, b"end \xff")]


def test_a_second_run_puts_what_was_added_and_nothing_else(
    qm: penstock.QueueManager, tmp_path: Path
) -> None:
    one, two = tmp_path / "1.log", tmp_path / "2.log"
    one.write_bytes(b"a\nb\n")
    two.write_bytes(b"c\n")
    assert feed(qm, "LINES", [one, two]).messages == 3
    assert feed(qm, "LINES", [one, two]).messages == 0
    with one.open("ab") as file:
        file.write(b"d\n")
    assert feed(qm, "LINES", [tmp_path / "." / "1.log", two]).messages == 1
    assert [line for _, line in taken(qm)] == [b"a", b"b", b"c", b"d"]
    with qm.open("LINES" + POSITIONS) as positions:
        assert positions.depth == 2


def test_a_file_that_became_shorter_is_a_new_one(qm: penstock.QueueManager, tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b"a\nb\n")
    feed(qm, "LINES", [file])
    file.write_bytes(b"c\n")
    feed(qm, "LINES", [file])
    assert [line for _, line in taken(qm)] == [b"a", b"b", b"c"]


def test_a_unit_that_fails_leaves_neither_lines_nor_a_position(
    qm: penstock.QueueManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeding, "UNIT_LINES", 2)
    file = tmp_path / "a.log"
    file.write_bytes(b"a\nb\nc\nd\ne\n")
    qm.define("QLOCAL", "LINES", maxdepth=3, defpsist=True)
    with pytest.raises(penstock.QueueFull):
        feed(qm, "LINES", [file])
    assert [line for _, line in taken(qm)] == [b"a", b"b"]
    assert feed(qm, "LINES", [file]).messages == 3
    assert [line for _, line in taken(qm)] == [b"c", b"d", b"e"]


def test_a_unit_takes_no_more_bytes_than_it_should(
    qm: penstock.QueueManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeding, "UNIT_BYTES", 10)
    file = tmp_path / "a.log"
    file.write_bytes(b"123456\n" * 5)
    with file.open("rb") as opened:
        units = [(len(unit), opened.tell()) for unit in feeding._units(opened, 100)]
    assert units == [(2, 14), (2, 28), (1, 35)]


def test_a_line_that_no_message_can_hold_is_named_and_nothing_is_cut(
    qm: penstock.QueueManager, tmp_path: Path
) -> None:
    qm.define("QLOCAL", "LINES", maxmsgl=10, maxdepth=9, defpsist=True)
    file = tmp_path / "a.log"
    file.write_bytes(b"a\n0123456789\n0123456789A\nb\n")
    for left in (2, 0):  # the second time it continues at the same line
        with pytest.raises(LineTooLong, match=r"a\.log: the line at byte 13 .*\(MAXMSGL, 10 bytes"):
            feed(qm, "LINES", [file])
        assert len(taken(qm)) == left
    qm.alter("QLOCAL", "LINES", maxmsgl=11)
    assert feed(qm, "LINES", [file]).messages == 2
    assert [line for _, line in taken(qm)] == [b"0123456789A", b"b"]


def test_a_second_feeder_of_a_queue_is_refused(qm: penstock.QueueManager, tmp_path: Path) -> None:
    qm.queue("LINES" + POSITIONS).close()
    with (
        qm.open("LINES" + POSITIONS, input=True, exclusive=True),
        pytest.raises(penstock.MQError) as caught,
    ):
        feed(qm, "LINES", [])
    assert caught.value.reason == 2042


FEEDER = """
import sys, penstock
from penstock.spark.pipelines import feed as feeding
feeding.UNIT_LINES = 50
with penstock.connect("QM1", sys.argv[1]) as qm:
    print("begun", flush=True)
    feeding.feed(qm, "LINES", sys.argv[2:])
"""


@pytest.mark.timeout(300)
def test_a_feeder_that_is_killed_over_and_over_puts_each_line_once(
    qm: penstock.QueueManager, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "a.log"
    lines = [b"%06d INFO" % n for n in range(4_000)]
    file.write_bytes(b"\n".join(lines))
    qm.queue("LINES").close()
    kills = 0
    for delay in (0.02, 0.05, 0.1, 0.03, 0.07, None):
        process = subprocess.Popen(
            [sys.executable, "-c", FEEDER, str(home), str(file)], stdout=subprocess.PIPE
        )
        assert process.pid > 1 and process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
        process.stdout.close()
    assert kills and process.returncode == 0
    assert sorted(line for _, line in taken(qm)) == lines


# ---- the consumer of alerts ----


def alerts_in(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_the_service_writes_each_alert_as_a_line_the_worst_first(
    qm: penstock.QueueManager, tmp_path: Path
) -> None:
    with qm.queue("ALERTS") as alerts:
        alerts.put(b'{"message": "a"}', priority=7)
        alerts.put(b'{"message": "\xc3\xbc"}', priority=9)
        alerts.put(b"no json \xff", priority=1)
        alerts.put(b"[1]", priority=0)
    output = tmp_path / "alerts"
    assert serve(qm, "ALERTS", output, threading.Event(), leave_when_empty=True) == 4
    found = alerts_in(output)
    assert [{k: v for k, v in a.items() if k != "msg_id"} for a in found] == [
        {"message": "ü"}, {"message": "a"}, {"text": "no json \ufffd"}, {"text": "[1]"},
    ]  # fmt: skip
    assert len({alert["msg_id"] for alert in found}) == 4


def test_the_service_waits_for_later_messages_and_stops_on_request(
    qm: penstock.QueueManager, home: Path, tmp_path: Path
) -> None:
    stop = threading.Event()
    output = tmp_path / "alerts"
    written: list[int] = []

    def run() -> None:
        with penstock.connect("QM1", home) as own:
            written.append(serve(own, "ALERTS", output, stop))

    thread = threading.Thread(target=run)
    thread.start()
    with qm.queue("ALERTS") as alerts:
        for number in range(250):
            alerts.put(b'{"n": %d}' % number)
        while alerts.depth or not output.exists() or len(alerts_in(output)) < 250:
            stop.wait(0.01)
    stop.set()
    thread.join()
    assert written == [250]
    assert [alert["n"] for alert in alerts_in(output)] == list(range(250))


def test_an_alert_whose_unit_was_not_committed_is_not_written_again(
    qm: penstock.QueueManager, tmp_path: Path
) -> None:
    output = tmp_path / "alerts"
    with qm.queue("ALERTS") as alerts:
        for number in range(3):
            alerts.put(b'{"n": %d}' % number)
        # as a service leaves it that dies between its write and its commit, and one in its write
        first = next(iter(alerts.browse()))
        output.write_bytes(b'{"n": 0, "msg_id": "%s"}\n{"n": 1, "ms' % first.msg_id.hex().encode())
    assert serve(qm, "ALERTS", output, threading.Event(), leave_when_empty=True) == 2
    assert [alert["n"] for alert in alerts_in(output)] == [0, 1, 2]


def test_alerts_that_cannot_be_written_are_on_the_queue_again(
    qm: penstock.QueueManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with qm.queue("ALERTS") as alerts:
        alerts.put(b"{}")

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space"):
                serve(qm, "ALERTS", tmp_path / "alerts", threading.Event(), leave_when_empty=True)
        assert alerts.get().backout_count == 1
