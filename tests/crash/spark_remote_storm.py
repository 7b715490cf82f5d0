"""Exactly once through Spark on another host: driver, workers and server killed, links cut.

    python tests/crash/spark_remote_storm.py [--random 12] [--tasks 0] [--only POINT | --part 1/3]
        [--seed 1] [--short] [--keep]

The job and the checks are those of spark_storm.py. But three "hosts" are at work, each with a
network, PID and mount namespace of its own, its own /dev/shm and another boot id: one has the queue
manager and ``penstock serve``, one the driver, and one a standalone cluster of Spark, master,
worker and executors. So tasks can attach to nothing; driver and tasks reach the queue manager
through the server, with TLS and a token, over links of the kernel that have a limited bandwidth,
and a proxy. Files, checkpoints among them, are on storage that the hosts share.

At each point of spark_dying.py, and ``--random`` times at any moment, one of these meets with an
accident, and ``--tasks`` times a worker at the points of tasks in turn; with ``--short`` at each
point one of driver and server, not both:

========  =========================================================================
driver    is killed with its host, and started again on its checkpoints
executor  its JVM is killed
worker    one Python process of an executor, or of the driver, is killed
server    is killed, and started again on its port
cut       the proxy resets the connections that there are
slow      the proxy lets bytes wait for some time
stall     the proxy carries nothing for some seconds, and resets the connections then
down      the links are down for some seconds: nobody is told
========  =========================================================================

Besides what spark_storm.py compares at the end, only the supervisor, the server and what it starts
were ever attached to the queue manager.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import trustme

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "flight")]

from flight_proxy import Proxy  # noqa: E402
from pid_namespace import inside_namespace  # noqa: E402
from spark_dying import REMOTE_POINTS  # noqa: E402
from spark_storm import (  # noqa: E402
    MANAGER,
    Driver,
    Storm,
    chosen,
    chosen_in_tasks,
    storm_parser,
)

from penstock.flight import access  # noqa: E402
from penstock.spark.java import prepare  # noqa: E402
from ports import free_port  # noqa: E402

AT_RANDOM = ("cut", "down", "worker", "server", "executor", "driver", "slow", "stall")
NEAR, DRIVERS, EXECUTORS = "10.9.0.1", "10.9.0.2", "10.9.0.3"
MASTER = f"spark://{EXECUTORS}:7077"
RATE = "200mbit"
DOWN_SECONDS = (0.5, 4.0)
DELAY_SECONDS = (0.02, 0.3)  # of each piece of bytes
SETTLE_SECONDS = 120
START_SECONDS = 60


def call(*command: object) -> None:
    """Runs a program; AssertionError with what it says."""
    done = subprocess.run(
        [str(one) for one in command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"


class Host:
    """Another host: a network that is linked to the bridge, and how processes are started there."""

    def __init__(self, folder: Path, address: str) -> None:
        self.address, self.port = address, f"near{address[-1]}"
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        own = os.readlink("/proc/self/ns/net")
        place = f"/proc/{self.holder.pid}/ns/net"
        while os.readlink(place) == own:
            time.sleep(0.01)
        call("ip", "link", "add", self.port, "type", "veth", "peer", "name", "far", "netns",
             self.holder.pid)  # fmt: skip
        call("ip", "link", "set", self.port, "master", "bridge")
        call("ip", "link", "set", self.port, "up")
        call("tc", "qdisc", "add", "dev", self.port, "root", "tbf", "rate", RATE, "burst",
             "256kbit", "latency", "100ms")  # fmt: skip
        for command in ("addr add {}/24 dev far", "link set far up", "link set lo up"):
            call("nsenter", f"--net={place}", "ip", *command.format(address).split())
        boot = folder / f"boot.{address}"
        boot.write_text(f"a boot of {address}\n")
        mounts = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && '
        mounts += 'mount -t tmpfs none /dev/shm && exec "$@"'
        self.before = [
            "nsenter", f"--net={place}", "unshare", "--mount", "--pid", "--fork",
            "--kill-child", "--mount-proc", "sh", "-c", mounts, str(boot),
        ]  # fmt: skip

    def set(self, state: str) -> None:
        call("ip", "link", "set", self.port, state)

    def close(self) -> None:
        self.holder.kill()
        self.holder.wait()


def bridge() -> None:
    """What the hosts are linked to; this one is on it, too."""
    call("ip", "link", "set", "lo", "up")
    call("ip", "link", "add", "bridge", "type", "bridge")
    call("ip", "addr", "add", f"{NEAR}/24", "dev", "bridge")
    call("ip", "link", "set", "bridge", "up")


class Cluster:
    """Spark's master and one worker on a host."""

    def __init__(self, folder: Path, host: Host) -> None:
        self.log = folder / "cluster.log"
        prepare()  # finds a Java
        environment = {
            **os.environ, "STORM_FOLDER": str(folder), "PYTHONPATH": str(HERE),
            "SPARK_HOME": str(folder / "spark"), "SPARK_LOCAL_IP": host.address,
            "SPARK_DAEMON_MEMORY": "256m", "PYSPARK_PYTHON": sys.executable,
        }  # fmt: skip
        spark = f"{folder}/spark/bin/spark-class org.apache.spark.deploy"
        ours = f"--host {host.address} --webui-port 0"
        both = f"{spark}.master.Master {ours} --port {MASTER.rpartition(':')[2]} & exec {spark}"
        both += f".worker.Worker {ours} --cores 2 --memory 1g --work-dir {folder}/work {MASTER}"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*host.before, "sh", "-c", both], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, env=environment,
            )  # fmt: skip
        end = time.monotonic() + START_SECONDS
        while b"Successfully registered with master" not in self.log.read_bytes():
            assert self.process.poll() is None and time.monotonic() < end, self.log.read_text()
            time.sleep(0.1)

    def executors(self) -> list[int]:
        """Their processes."""
        return [pid for pid, command in commands() if b"CoarseGrainedExecutorBackend" in command]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def commands() -> Iterator[tuple[int, bytes]]:
    """The processes of this namespace and those in it."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) > 1:
            try:
                yield int(entry.name), (entry / "cmdline").read_bytes()
            except OSError:
                continue  # it has ended


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
        self.port = free_port()
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
    """The driver on its host."""

    def __init__(self, folder: Path, home: Path, host: Host, endpoint: str) -> None:
        super().__init__(folder, home)
        place = {"endpoint": endpoint, "home": "/nowhere", "tokenFile": str(folder / "token"),
                 "caFile": str(folder / "ca.pem")}  # fmt: skip
        os.environ["STORM_PLACE"] = json.dumps(place)
        os.environ["STORM_CLUSTER"] = f"{MASTER} {host.address}"
        self.before, self.address = host.before, host.address


class RemoteStorm(Storm):
    """The same with a server, and the job on other hosts."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(folder, seed)
        self.accidents = {
            "driver": self.kill_driver,
            "executor": self.kill_executor,
            "worker": self.kill_worker,
            "server": self.kill_server,
            "cut": self.cut,
            "slow": self.slow_down,
            "stall": self.stall,
            "down": self.let_down,
        }

    def driver_of(self, folder: Path, home: Path) -> Driver:
        bridge()
        self.hosts = [Host(folder, DRIVERS), Host(folder, EXECUTORS)]
        self.server = Server(folder, home)
        self.proxy = Proxy(f"127.0.0.1:{self.server.port}", NEAR)
        endpoint = self.proxy.address.replace("grpc://", "grpc+tls://")
        made = RemoteDriver(folder, home, self.hosts[0], endpoint)
        self.cluster = Cluster(folder, self.hosts[1])
        return made

    def run_accidents(
        self, points: list[str], in_tasks: list[str], randomly: int, is_short: bool
    ) -> None:
        both = ("driver", "server")
        orders = [
            (point, victim)
            for point in points
            for victim in ((self.rng.choice(both),) if is_short else both)
        ]
        orders += [(point, "worker") for point in in_tasks]
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

    def slow_down(self) -> None:
        self.proxy.delay = self.rng.uniform(*DELAY_SECONDS)
        time.sleep(self.rng.uniform(*DOWN_SECONDS))
        self.proxy.delay = 0.0
        self.survive()

    def stall(self) -> None:
        self.proxy.silent.update(self.proxy.open)
        time.sleep(self.rng.uniform(*DOWN_SECONDS))
        self.proxy.cut()
        self.survive()

    def let_down(self) -> None:
        for host in self.hosts:
            host.set("down")
        time.sleep(self.rng.uniform(*DOWN_SECONDS))
        for host in self.hosts:
            host.set("up")
        self.survive()

    def kill_executor(self) -> None:
        for pid in self.cluster.executors():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
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
        self.cluster.close()
        for host in self.hosts:
            host.close()
        self.qm.close()


def main() -> None:
    """One storm."""
    parser = storm_parser(__doc__, REMOTE_POINTS, 12)
    parser.add_argument("--short", action="store_true", help="driver or server at each point")
    arguments = parser.parse_args()
    inside_namespace(network=True)
    folder = Path(tempfile.mkdtemp(prefix="penstock-spark-remote-storm-"))
    begin = time.monotonic()
    try:
        storm = RemoteStorm(folder, arguments.seed)
        try:
            points = chosen(arguments, REMOTE_POINTS)
            in_tasks = chosen_in_tasks(arguments, REMOTE_POINTS)
            storm.run_accidents(points, in_tasks, arguments.random, arguments.short)
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
