"""Exactly once through Spark on another host: driver, workers and server killed, links cut.

    python tests/crash/spark_remote_storm.py [--random 12] [--only POINT] [--seed 1] [--keep]

The job and the checks are those of spark_storm.py. But the job runs on a "host" of its own: another
network, PID and mount namespace, with its own /dev/shm and another boot id, so that its tasks can
attach to nothing; it reaches the queue manager through ``penstock serve``, with TLS and a token,
over a link of the kernel that has a limited bandwidth, and a proxy.

At each point of spark_dying.py, and ``--random`` times at any moment, one of these meets with an
accident:

========  =========================================================================
driver    is killed with its process group, and started again on its checkpoints
worker    one Python process of Spark is killed
server    is killed, and started again on its port
cut       the proxy resets the connections that there are
down      the link is down for some seconds: nobody is told
========  =========================================================================

Besides what spark_storm.py compares at the end, only the supervisor, the server and what it starts
were ever attached to the queue manager.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import trustme

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "flight")]

from flight_proxy import Proxy  # noqa: E402
from pid_namespace import inside_namespace  # noqa: E402
from spark_dying import IN_WORKERS, REMOTE_POINTS  # noqa: E402
from spark_storm import MANAGER, Driver, Storm  # noqa: E402

from penstock.flight import access  # noqa: E402

AT_RANDOM = ("cut", "down", "worker", "server", "driver", "cut")
NEAR, FAR = "10.9.0.1", "10.9.0.2"
RATE = "200mbit"
DOWN_SECONDS = (0.5, 4.0)
SETTLE_SECONDS = 120
START_SECONDS = 60


def call(*command: object) -> None:
    """Runs a program; AssertionError with what it says."""
    done = subprocess.run(
        [str(one) for one in command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"


class Link:
    """Another network, and a link to it."""

    def __init__(self) -> None:
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        own = os.readlink("/proc/self/ns/net")
        self.place = f"/proc/{self.holder.pid}/ns/net"
        while os.readlink(self.place) == own:
            time.sleep(0.01)
        inside = ("nsenter", f"--net={self.place}")
        call("ip", "link", "set", "lo", "up")
        call("ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns",
             self.holder.pid)  # fmt: skip
        call("ip", "addr", "add", f"{NEAR}/24", "dev", "near")
        call("ip", "link", "set", "near", "up")
        call("tc", "qdisc", "add", "dev", "near", "root", "tbf", "rate", RATE, "burst", "256kbit",
             "latency", "100ms")  # fmt: skip
        for command in ("addr add {}/24 dev far", "link set far up", "link set lo up"):
            call(*inside, "ip", *command.format(FAR).split())

    def set(self, state: str) -> None:
        call("ip", "link", "set", "near", state)

    def close(self) -> None:
        self.holder.kill()
        self.holder.wait()


class Server:
    """``penstock serve`` on one port, started again when it was killed."""

    def __init__(self, folder: Path, home: Path) -> None:
        authority, self.folder = trustme.CA(), folder
        pair = authority.issue_cert(NEAR)
        authority.cert_pem.write_to_path(str(folder / "ca.pem"))
        pair.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
        pair.private_key_pem.write_to_path(str(folder / "key.pem"))
        token, entry = access.made("storm")
        (folder / "tokens.toml").write_text(entry)
        (folder / "token").write_text(token)
        for name in ("key.pem", "tokens.toml"):
            (folder / name).chmod(0o600)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.command = [
            sys.executable, "-m", "penstock.cli", "serve", MANAGER, "--home", str(home),
            "--listen", f"127.0.0.1:{self.port}", "--tls", str(folder / "cert.pem"),
            str(folder / "key.pem"), "--token-file", str(folder / "tokens.toml"),
        ]  # fmt: skip
        self.start()

    def start(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)
        end = time.monotonic() + START_SECONDS
        while True:
            assert self.process.poll() is None and time.monotonic() < end, self.log()
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                time.sleep(0.05)
            else:
                return

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")[-3_000:]

    def kill(self) -> None:
        assert self.process.pid > 1
        self.process.kill()
        self.process.wait(60)


class RemoteDriver(Driver):
    """The job's processes on the other host."""

    def __init__(self, folder: Path, home: Path, link: Link, endpoint: str) -> None:
        super().__init__(folder, home)
        (folder / "boot").write_text("another boot of another machine\n")
        place = {"endpoint": endpoint, "home": "/nowhere", "tokenFile": str(folder / "token"),
                 "caFile": str(folder / "ca.pem")}  # fmt: skip
        os.environ["STORM_PLACE"] = json.dumps(place)
        mounts = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && '
        mounts += 'mount -t tmpfs none /dev/shm && exec "$@"'
        self.before = [
            "nsenter", f"--net={link.place}", "unshare", "--mount", "--pid", "--fork",
            "--kill-child", "--mount-proc", "sh", "-c", mounts, str(folder / "boot"),
        ]  # fmt: skip


class RemoteStorm(Storm):
    """The same with a server, and the job behind a link."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self.accidents = {
            "driver": self.kill_driver,
            "worker": self.kill_worker,
            "server": self.kill_server,
            "cut": self.cut,
            "down": self.let_down,
        }

    def driver_of(self, folder: Path, home: Path) -> Driver:
        self.link = Link()
        self.server = Server(folder, home)
        self.proxy = Proxy(f"127.0.0.1:{self.server.port}", NEAR)
        endpoint = self.proxy.address.replace("grpc://", "grpc+tls://")
        return RemoteDriver(folder, home, self.link, endpoint)

    def run_accidents(self, points: list[str], randomly: int) -> None:
        orders = [(point, victim) for point in points for victim in ("driver", "server")]
        orders += [(point, "worker") for point in points if point.split(".")[0] in IN_WORKERS]
        orders += [("", AT_RANDOM[number % len(AT_RANDOM)]) for number in range(randomly)]
        self.rng.shuffle(orders)
        self.programs.start()
        self.driver.start()
        for number, (point, victim) in enumerate(orders):
            if point:
                self.kill_at(point, victim, number)
            else:
                time.sleep(self.rng.uniform(0.2, 3))
                self.accidents[victim]()
            self.kills[victim] += 1
            self.check_attached()
            if self.programs.failed:
                raise self.programs.failed[0]
        self.end()

    def kill_at(self, point: str, victim: str, number: int) -> None:
        super().kill_at(point, victim, number)
        if victim == "server":
            self.server.kill()
            (self.folder / f"go.{number}").touch()
            self.server.start()
            self.survive()

    def kill_worker(self) -> None:
        workers = self.driver.workers()
        if workers:
            try:
                os.kill(self.rng.choice(workers), 9)
            except ProcessLookupError:
                pass
        self.survive()

    def kill_server(self) -> None:
        self.server.kill()
        time.sleep(self.rng.uniform(0, 2))
        self.server.start()
        self.survive()

    def cut(self) -> None:
        self.proxy.cut()
        self.survive()

    def let_down(self) -> None:
        self.link.set("down")
        time.sleep(self.rng.uniform(*DOWN_SECONDS))
        self.link.set("up")
        self.survive()

    def kill_driver(self) -> None:
        self.driver.kill()
        self.driver.start()

    def check_attached(self) -> None:
        """AssertionError when the job has attached by itself."""
        for one in self.qm.process_list():
            try:
                command = Path(f"/proc/{one.pid}/cmdline").read_bytes()
            except OSError:
                continue  # it has ended
            is_ours = one.pid == os.getpid() or b"serve" in command or b"keeper" in command
            assert is_ours, f"{one.pid} is attached: {command!r}"

    def end(self) -> None:
        """As Storm does, telling the job when nothing is prepared any more."""
        (self.folder / "order").unlink(missing_ok=True)
        self.programs.end("producer")
        self.programs.end("consumer")
        (self.folder / "stop").touch()
        until = time.monotonic() + 2 * SETTLE_SECONDS
        quiet = 0
        while quiet < 20:  # two seconds: between two micro-batches nothing is prepared either
            assert time.monotonic() < until, f"it does not settle:\n{self.driver.log()}"
            if not self.driver.alive():
                self.start_again()
            empty = all(self.qm.queue(name).depth == 0 for name in ("IN", "IN.TOO", "HOP"))
            quiet = quiet + 1 if empty and not self.qm.recover() else 0
            time.sleep(0.1)
        (self.folder / "settled").touch()
        assert self.driver.process is not None
        self.driver.process.wait(SETTLE_SECONDS)
        assert self.driver.process.returncode == 0, self.driver.log()

    def close(self) -> None:
        if self.driver.alive():
            self.driver.kill()
        self.server.kill()
        self.proxy.close()
        self.link.close()
        self.qm.close()


def main() -> None:
    """One storm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--random", type=int, default=12, help="accidents at any moment")
    parser.add_argument("--only", action="append", choices=REMOTE_POINTS, help="of these points")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the files where they are")
    arguments = parser.parse_args()
    inside_namespace(network=True)
    folder = Path(tempfile.mkdtemp(prefix="penstock-spark-remote-storm-"))
    begin = time.monotonic()
    try:
        storm = RemoteStorm(folder, arguments.seed)
        try:
            storm.run_accidents(arguments.only or list(REMOTE_POINTS), arguments.random)
            counted = storm.check()
        finally:
            storm.close()
    finally:
        if arguments.keep:
            print(f"kept {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    kills = ", ".join(f"{count} {victim}" for victim, count in sorted(storm.kills.items()))
    print(
        f"spark remote storm: {storm.kills.total()} accidents ({kills}), {storm.driver.starts} "
        f"drivers ({storm.ends} ended by themselves), {counted}: 0 lost, 0 twice, 0 prepared, "
        f"nobody attached, in {time.monotonic() - begin:.0f} s, seed {arguments.seed}"
    )


if __name__ == "__main__":
    main()
