"""Exactly once through Arrow Flight: servers and clients killed, links cut, then all is counted.

    python tests/crash/flight_storm.py [--kills 60] [--seed 1] [--keep]

Producers put batches through a server (penstock serve), each a unit with a name, and consumers take
batches in units, write their rows to files, and commit. Each client is a process behind a proxy of
its own. Again and again one of them, or the server, is killed with SIGKILL, or a link is cut, in
the middle of whatever it does; a killed one is started again and repeats its last unit by its name.
Now and then there is no kill until a producer has finished a unit, so that on a slow machine, too,
work is done between the kills.
The server is the only process that is attached, so that its death is one of the queue manager, too.

At the end each message of each unit that a producer has finished is in the files of the consumers,
once and whole, and no unit of work is left prepared.

Runs in a new PID namespace. Kills only processes that it started; never a pid of 1 or less.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "flight")]

from flight_proxy import Proxy  # noqa: E402
from pid_namespace import inside_namespace  # noqa: E402

import penstock  # noqa: E402
from penstock import flight  # noqa: E402
from ports import free_port  # noqa: E402

MANAGER, QUEUE = "FLIGHTSTORM", "Q"
PRODUCERS = CONSUMERS = 2
MOST = 400  # messages of a unit
PART = 50  # of these that one unit of work of the queue manager holds
END_SECONDS = 90
PAUSES = (0.05, 0.6)  # seconds between two kills
CALM = 3  # kills from one unit that is waited for to the next
ID = struct.Struct("<IQI")  # checksum, id, length of the filling


def body_of(number: int) -> bytes:
    """The body that belongs to an id."""
    filling = random.Random(number).randbytes(9_000 if number % 97 == 0 else 20 + number % 200)
    rest = ID.pack(0, number, len(filling))[4:] + filling
    return struct.pack("<I", zlib.crc32(rest)) + rest


def number_of(body: bytes) -> int:
    """The id of a body that is whole; AssertionError otherwise."""
    number: int = ID.unpack_from(body)[1]
    assert body == body_of(number), f"message {number} is not whole"
    return number


def numbers_of(client: int, unit: int) -> range:
    """The ids of a producer's unit."""
    first = (client << 40) + unit * MOST
    return range(first, first + 1 + random.Random(f"{client} {unit}").randrange(MOST))


# ---- what a client does ----


def produce(address: str, client: int, folder: Path) -> None:
    """Puts unit after unit; a file has the number of those that are done."""
    done = folder / f"producer.{client}"
    remote = flight.connect(address, MANAGER, retry_seconds=END_SECONDS, call_seconds=10)
    is_last = False
    while not is_last:  # a unit that was begun is ended
        is_last = (folder / "stop").exists()
        unit = int(done.read_text()) if done.exists() else 0
        bodies = [body_of(number) for number in numbers_of(client, unit)]
        found = remote.put_batch(QUEUE, bodies, unit=f"p{client}.{unit}")
        assert found.messages == len(bodies), found
        replace(done, str(unit + 1))


def consume(address: str, client: int, folder: Path) -> None:
    """Takes unit after unit; a file for each has its ids before it is committed."""
    remote = flight.connect(address, MANAGER, retry_seconds=END_SECONDS, call_seconds=10)
    unit, is_last = 0, False
    while not is_last:  # a unit that was begun is ended
        is_drained = (folder / "drained").exists()
        rows = folder / f"taken.{client}.{unit}"
        is_last = is_drained and not rows.exists()
        name = f"c{client}.{unit}"
        if not rows.exists():
            taken = remote.take(QUEUE, unit=name, max_messages=MOST)
            assert not taken.is_committed, f"{name} is committed, and its rows were not written"
            bodies = taken.read_all().column("body").to_pylist()
            assert len(bodies) == len(taken), f"{name}: {len(bodies)} of {len(taken)} came"
            replace(rows, json.dumps([number_of(body) for body in bodies]))
            if not bodies:
                time.sleep(0.05)
        remote.commit(name)
        unit += 1


def replace(path: Path, text: str) -> None:
    """Writes a file, whole or not at all."""
    whole = path.with_name(f"{path.name}.tmp")
    whole.write_text(text)
    whole.rename(path)


# ---- the supervisor ----


class Child:
    """A process that is started again when it was killed."""

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        self.name, self.command, self.log = name, command, log
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)

    def check(self) -> None:
        """AssertionError when it has ended by itself with an error."""
        assert self.process is not None
        if self.process.poll() not in (None, 0):
            text = self.log.read_text(errors="replace")[-3_000:]
            raise AssertionError(f"{self.name} ended:\n{text}")

    def has_ended(self) -> bool:
        """In order."""
        assert self.process is not None
        return self.process.poll() == 0

    def kill(self) -> None:
        assert self.process is not None and self.process.pid > 1
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)


class Storm:
    """A queue manager, its server, the clients and their proxies."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.rng = folder, random.Random(seed)
        self.home = folder / "home"
        penstock.create(MANAGER, self.home, segment_size=4 << 20, journal_limit=256 << 20)
        with penstock.connect(MANAGER, self.home) as qm:
            qm.define("QLOCAL", QUEUE, maxdepth=999_999_999)
            qm.alter("QMGR", maxumsgs=PART)
        port = free_port()
        self.server = Child("server", [
            sys.executable, "-m", "penstock.cli", "serve", MANAGER, "--home", str(self.home),
            "--listen", f"127.0.0.1:{port}", "--without-token", "--stall", "5",
        ], folder / "server.log")  # fmt: skip
        self.proxies = []
        self.clients = []
        for kind, count in (("produce", PRODUCERS), ("consume", CONSUMERS)):
            for client in range(count):
                proxy = Proxy(f"grpc://127.0.0.1:{port}")
                self.proxies.append(proxy)
                command = [sys.executable, __file__, "--client", kind, proxy.address, str(client)]
                name = f"{kind}.{client}"
                self.clients.append(Child(name, [*command, str(folder)], folder / f"{name}.log"))
        self.kills = Counter[str]()

    def run(self, kills: int) -> None:
        while self.kills.total() < kills:
            time.sleep(self.rng.uniform(*PAUSES))
            for child in (self.server, *self.clients):
                child.check()
            if self.kills.total() % CALM == 0:
                self.wait_for_a_unit()
            victim = self.rng.choice(("server", "client", "client", "link", "link"))
            self.kills[victim] += 1
            if victim == "link":
                self.rng.choice(self.proxies).cut()
                continue
            child = self.server if victim == "server" else self.rng.choice(self.clients)
            child.kill()
            child.start()

    def finish(self) -> None:
        """Lets the producers end their units, and the consumers take what is there."""
        (self.folder / "stop").touch()
        self.wait(lambda: all(client.has_ended() for client in self.clients[:PRODUCERS]))
        with penstock.connect(MANAGER, self.home) as qm, qm.open(QUEUE, input=False) as queue:
            self.wait(lambda: queue.depth == 0 and not any(s.gets for s in qm.prepared_list()))
            (self.folder / "drained").touch()
            self.wait(lambda: all(client.has_ended() for client in self.clients))

    def done(self, client: int) -> int:
        """Units that a producer has finished."""
        path = self.folder / f"producer.{client}"
        return int(path.read_text()) if path.exists() else 0

    def wait_for_a_unit(self) -> None:
        """Until a producer has finished one more."""
        before = list(map(self.done, range(PRODUCERS)))
        self.wait(lambda: list(map(self.done, range(PRODUCERS))) != before)

    def wait(self, done: Callable[[], bool]) -> None:
        end = time.monotonic() + END_SECONDS
        while not done():
            for child in (self.server, *self.clients):
                child.check()
            if time.monotonic() > end:
                running = [c.name for c in self.clients if not c.has_ended()]
                with penstock.connect(MANAGER, self.home) as qm:
                    left = [(str(one.xid), one.puts, one.gets) for one in qm.prepared_list()]
                raise AssertionError(f"it does not end: {running} run, {left} are prepared")
            time.sleep(0.05)

    def check(self) -> str:
        """Compares what was put with what was taken; what there was."""
        put = Counter[int]()
        units = 0
        for client in range(PRODUCERS):
            done = self.done(client)
            units += done
            for unit in range(done):
                put.update(numbers_of(client, unit))
        taken = Counter[int]()
        for path in self.folder.glob("taken.*"):
            if path.suffix != ".tmp":
                taken.update(json.loads(path.read_text()))
        lost, more = put - taken, taken - put
        assert not lost and not more, f"{lost.total()} lost, {more.total()} too often"
        with penstock.connect(MANAGER, self.home) as qm:
            left = [str(xid) for xid in qm.recover()]
            assert not left, f"prepared at the end: {left}"
            qm.check()
        return f"{put.total()} messages in {units} units"

    def end(self) -> None:
        for child in (*self.clients, self.server):
            if child.process is not None and child.process.poll() is None:
                child.kill()
        for proxy in self.proxies:
            proxy.close()


def main() -> None:
    """One storm; raises AssertionError when something is lost, doubled or left."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the files where they are")
    parser.add_argument("--client", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.client:
        kind, address, client, folder = arguments.client
        {"produce": produce, "consume": consume}[kind](address, int(client), Path(folder))
        return
    inside_namespace()
    folder = Path(tempfile.mkdtemp(prefix="penstock-flight-storm-"))
    begin = time.monotonic()
    try:
        storm = Storm(folder, arguments.seed)
        try:
            storm.run(arguments.kills)
            storm.finish()
        finally:
            storm.end()
        counted = storm.check()
    finally:
        if arguments.keep:
            print(f"kept {folder}")
        else:
            shutil.rmtree(folder)
    by = ", ".join(f"{count} of a {kind}" for kind, count in sorted(storm.kills.items()))
    print(
        f"flight storm: {storm.kills.total()} kills ({by}), {counted}: 0 lost, 0 twice, "
        f"0 prepared, in {time.monotonic() - begin:.0f} s, seed {arguments.seed}"
    )


if __name__ == "__main__":
    main()
