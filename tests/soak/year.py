"""A year of traffic, scaled: files, memory and restarts stay within their bounds.

    python tests/soak/year.py [--days 365] [--messages 1000000] [--home DIRECTORY] [--seed 1]

A year of 1e9 messages of 256 bytes in segments of 64 MiB is scaled by 1,000: 1,000,000 messages in
segments of 64 KiB and a journal of at most 32 MiB, so that everything rolls, is checkpointed,
compacted and freed as often. Each day is a process. It connects after the death of the one before
(every 30th day after an orderly end), checks what is there, works, and kills itself:

    FAST        messages are put in units of 100 and got in units of 100
    SLOW        its consumer takes eight of ten, at random priorities, until 2,000 wait; then all
                but 100
    FORGOTTEN   one message a day that nobody gets
    prepared    every fifth day a unit of a get and a put of SLOW is prepared, and committed 30 days
                later, so that some are always in doubt
    open        a unit with a put to FORGOTTEN, from the morning on, that nobody ends

Bounds, each day
    files       sizes of all journal files, spares included, twenty times a day: 2.5 x the bytes of
                live messages and units, two intervals between checkpoints, four segments, and the
                segment that each unit keeps which has put something (rule 58)
    restart     0.5 s + 2 x the time of the last connect after an orderly end
    memory      private memory that the restart leaves behind: 64 MiB

Prints a plot of each and its largest share of the bound; status 0 when all is within, 1 when not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import penstock

MANAGER = "YEAR"
SEGMENT, LIMIT = 64 << 10, 32 << 20  # bytes
INTERVAL = LIMIT // 4  # between two checkpoints, at most
UNIT, BODY = 100, 256
SLOW_MOST, SLOW_LEAST = 2_000, 100
PREPARE_EVERY, DOUBT_DAYS, ORDERLY_EVERY = 5, 30, 30
SAMPLES_A_DAY = 20
RESTART_S, MEMORY = 0.5, 64 << 20
PATIENCE_S = 300.0
PLOT = " ▁▂▃▄▅▆▇█"
Account = dict[str, Any]  # what must be there in the morning


def body(number: int) -> bytes:
    """Of a message: its number, and bytes up to the length."""
    return struct.pack("<Q", number) + bytes(BODY - 8)


def number_of(data: bytes) -> int:
    """Which message it is."""
    return int(struct.unpack_from("<Q", data)[0])


def xid_of(day: int) -> penstock.Xid:
    """The name of the unit that is prepared on that day."""
    return penstock.Xid(1, struct.pack("<Q", day), b"year")


def private_bytes() -> int:
    """Anonymous memory of this process."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon in /proc/self/status")


def journal_bytes(path: Path) -> int:
    """Sizes of the journal's files; one that goes at this moment does not count."""
    total = 0
    for file in (path / "journal").iterdir():
        try:
            total += file.stat().st_size
        except FileNotFoundError:
            pass
    return total


class Day:
    """One process: a morning, the work, and the death."""

    def __init__(self, home: Path, day: int, messages: int, account: Account, seed: int) -> None:
        self.day, self.messages, self.account = day, messages, account
        self.random = random.Random(seed * 100_000 + day)
        before, begin = private_bytes(), time.perf_counter()
        self.qm = penstock.connect(MANAGER, home)
        self.restart_s = time.perf_counter() - begin
        self.memory = private_bytes() - before
        self.share = 0.0  # of the bound of the files, the largest of the day
        self.files = 0

    def check(self) -> None:
        """What the day before has acknowledged is there, and nothing else."""
        with self.qm.open("FORGOTTEN") as queue:
            assert queue.depth == self.account["forgotten"], (self.day, queue.depth, self.account)
        with self.qm.open("SLOW") as queue:
            doubted = len(self.account["doubts"])  # the depth counts what each has put
            assert queue.depth == len(self.account["slow"]) + doubted, (self.day, queue.depth)
        with self.qm.open("FAST") as queue:
            assert queue.depth == 0, (self.day, queue.depth)
        assert len(self.qm.recover()) == len(self.account["doubts"]), self.day

    def leave_open(self) -> None:
        """A unit of another thread, which sleeps until the process dies."""
        begun = threading.Event()

        def forget() -> None:
            with self.qm.open("FORGOTTEN") as queue:
                queue.put(body(self.day), syncpoint=True)
                begun.set()
                threading.Event().wait()

        threading.Thread(target=forget, daemon=True).start()
        assert begun.wait(PATIENCE_S)

    def sample(self) -> None:
        """How much of their bound the files take now."""
        files, status = journal_bytes(self.qm.path), self.qm.status()
        units = len(self.account["doubts"]) + 1
        bound = 2.5 * status.live_bytes + 2 * INTERVAL + (4 + units) * SEGMENT
        self.share, self.files = max(self.share, files / bound), max(self.files, files)

    def traffic(self, part: int) -> None:
        """A unit onto FAST and from it, and so many of SLOW that a tenth goes there."""
        with self.qm.open("FAST") as fast, self.qm.open("SLOW") as slow:
            fast.put_batch([body(part)] * UNIT, persistent=True)
            got = fast.get_batch(UNIT)
            assert len(got) == UNIT
            self.qm.maintain()  # time is scaled, too: an interval is written in milliseconds
            if part % 10 == 0:
                self.slow_in(slow)
                waiting = len(self.account["slow"])
                over = waiting > SLOW_MOST
                self.slow_out(slow, waiting - SLOW_LEAST if over else UNIT * 8 // 10)

    def slow_in(self, slow: Any) -> None:
        """A unit of messages at random priorities."""
        first = self.account["next"]
        with self.qm.transaction():
            for number in range(first, first + UNIT):
                slow.put(body(number), priority=self.random.randrange(10), persistent=True)
        self.account["slow"].extend(range(first, first + UNIT))
        self.account["next"] += UNIT

    def slow_out(self, slow: Any, count: int) -> None:
        """So many, each of which must be there."""
        waiting = set(self.account["slow"])
        while count > 0:
            got = [number_of(message.data) for message in slow.get_batch(min(count, UNIT))]
            assert got and waiting.issuperset(got), self.day
            waiting.difference_update(got)
            count -= len(got)
        self.account["slow"] = sorted(waiting)

    def doubt(self) -> None:
        """Prepares one, commits an old one."""
        with self.qm.open("SLOW") as slow:
            got = number_of(slow.get(syncpoint=True).data)
            put = self.account["next"]
            slow.put(body(put), syncpoint=True, persistent=True)
            self.qm.prepare(xid_of(self.day))
        self.account["next"] += 1
        self.account["slow"].remove(got)
        self.account["doubts"].append([self.day, put])
        while self.account["doubts"][0][0] <= self.day - DOUBT_DAYS:
            day, put = self.account["doubts"].pop(0)
            self.qm.commit_prepared(xid_of(day))
            self.account["slow"].append(put)

    def work(self) -> None:
        """A day's part of the year."""
        self.leave_open()
        with self.qm.open("FORGOTTEN") as queue:
            queue.put(body(self.day), persistent=True)
        self.account["forgotten"] += 1
        units = max(1, self.messages // UNIT)
        for part in range(units):
            self.traffic(part)
            if part % max(1, units // SAMPLES_A_DAY) == 0:
                self.sample()
        if self.day % PREPARE_EVERY == 0:
            self.doubt()
        self.sample()

    def report(self) -> Account:
        """What the supervisor and the next day want to know."""
        return {
            "account": self.account,
            "restart": self.restart_s,
            "memory": self.memory,
            "files": self.files,
            "share": self.share,
        }


def live_a_day(home: Path, day: int, messages: int, seed: int) -> None:
    """The main function of a day's process; the account comes from standard input."""
    today = Day(home, day, messages, json.load(sys.stdin), seed)
    today.check()
    orderly = day % ORDERLY_EVERY == ORDERLY_EVERY - 1
    if not orderly:
        today.work()
    print(json.dumps(today.report()), flush=True)
    if orderly:
        today.qm.close()
    else:
        os.kill(os.getpid(), signal.SIGKILL)


# ---- the year ----


def next_day(home: Path, day: int, messages: int, seed: int, account: Account) -> Account:
    """A process for that day; what it has reported."""
    command = [sys.executable, __file__, "--day", str(day), "--messages", str(messages)]
    ended = subprocess.run(
        [*command, "--home", str(home), "--seed", str(seed)],
        input=json.dumps(account),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    if not ended.stdout.endswith("\n") or ended.returncode not in (0, -signal.SIGKILL):
        raise SystemExit(f"day {day}, seed {seed}: status {ended.returncode}\n{ended.stderr}")
    report: Account = json.loads(ended.stdout)
    return report


def plotted(values: list[float], width: int = 73) -> str:
    """One character for so many days: the largest of them against the largest of all."""
    step = max(1, -(-len(values) // width))
    columns = [max(values[at : at + step]) for at in range(0, len(values), step)]
    top = max(columns) or 1.0
    return "".join(PLOT[round(value / top * (len(PLOT) - 1))] for value in columns)


def run(home: Path, days: int, messages: int, seed: int) -> int:
    """All days; the status."""
    penstock.create(MANAGER, home, segment_size=SEGMENT, journal_limit=LIMIT, ring_size=1 << 20)
    with penstock.connect(MANAGER, home) as qm:
        for name in ("FAST", "SLOW", "FORGOTTEN"):
            qm.define("QLOCAL", name, MAXDEPTH=999_999)
    account: Account = {"forgotten": 0, "slow": [], "next": 1, "doubts": []}
    reports, shares, loading = [], [], RESTART_S / 4
    for day in range(days):
        reports.append(next_day(home, day, messages // days, seed, account))
        account = reports[-1]["account"]
        if day % ORDERLY_EVERY == 0 and day != 0:  # the day before ended in order
            loading = reports[-1]["restart"]
        shares.append(reports[-1]["restart"] / (RESTART_S + 2 * loading))
    rows = {
        "files": ([report["files"] for report in reports], "bytes"),
        "share of their bound": ([report["share"] for report in reports], ""),
        "restart": ([report["restart"] for report in reports], "s"),
        "share of its bound": (shares, ""),
        "memory left by it": ([float(report["memory"]) for report in reports], "bytes"),
    }
    for name, (values, unit) in rows.items():
        print(f"{name:22} {plotted(values)} at most {max(values):,.3f} {unit}")
    worst = max(*rows["share of their bound"][0], *shares)
    within = worst <= 1.0 and max(rows["memory left by it"][0]) <= MEMORY
    print(
        f"year: {days} days, {messages:,} messages, {account['forgotten']} forgotten, "
        f"{len(account['doubts'])} in doubt, seed {seed}: verdict "
        f"{'within the bounds' if within else 'NOT WITHIN THE BOUNDS'}"
    )
    return 0 if within else 1


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--messages", type=int, default=1_000_000, help="of all days")
    parser.add_argument("--home", type=Path, default=None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--day", type=int, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.day is not None:
        live_a_day(given.home, given.day, given.messages, given.seed)
        return 0
    home = Path(tempfile.mkdtemp(prefix="penstock-year-", dir=given.home))
    try:
        return run(home, given.days, given.messages, given.seed)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
