"""``penstock serve``: what it refuses, how it ends, what an ordinary machine does to it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme
from flight_process import WAIT_SECONDS, serving

import penstock
from penstock import flight
from penstock.flight.access import made

SLOW, MOST_EACH = 25, 9 << 20  # clients, and bytes of the server for one of them
PROGRAM = Path(sys.executable).with_name("penstock")


def refused(home: Path, *arguments: str) -> str:
    done = subprocess.run(
        [PROGRAM, "serve", "--home", home, *arguments],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and done.stdout == "", done
    return done.stderr


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    cert = trustme.CA().issue_cert("localhost")
    paths = {"cert": tmp_path / "cert.pem", "key": tmp_path / "key.pem", "token": tmp_path / "t"}
    paths["cert"].write_bytes(cert.cert_chain_pems[0].bytes())
    paths["key"].write_bytes(cert.private_key_pem.bytes())
    paths["token"].write_text("")
    for path in paths.values():
        path.chmod(0o600)
    return {name: str(path) for name, path in paths.items()}


def test_what_would_leave_queues_open_is_refused(
    qm: penstock.QueueManager, home: Path, files: dict[str, str]
) -> None:
    tls = ("--tls", files["cert"], files["key"])
    token = ("--token-file", files["token"])
    for arguments, text in (
        ((), "who may connect?"),
        (("--listen", "0.0.0.0:0", *token), "there it needs --tls CERT KEY"),
        (("--listen", "example.org:0", *token), "there it needs --tls CERT KEY"),
        (("--listen", "0.0.0.0:0", *tls, "--without-token"), "on this machine's own addresses"),
        (("--without-token", *token), "goes without --token-file"),
        (("--client-ca", files["cert"]), "--client-ca goes with --tls"),
        (("--listen", "8815", *token), "it takes HOST:PORT"),
        (("--listen", "127.0.0.1:99999", *token), "it takes HOST:PORT"),
        (token, "a token file has tables [[token]] and nothing else"),
    ):
        assert text in refused(home, "QM1", *arguments), arguments
    for name in ("key", "token"):
        Path(files[name]).chmod(0o644)
        said = refused(home, "QM1", *tls, *token)
        assert f"{files[name]}: others can read or write it: chmod 600" in said
        Path(files[name]).chmod(0o600)
    assert "there is no queue manager QM9" in refused(home, "QM9", "--without-token")
    assert "name the queue managers" in refused(home)


def test_a_port_that_is_taken_is_named(qm: penstock.QueueManager, home: Path) -> None:
    with serving(home, "--without-token") as first:
        listen = first.address.removeprefix("grpc://")
        assert f"--listen {listen}" in refused(home, "QM1", "--without-token", "--listen", listen)


def test_a_new_token_is_printed_and_opens_the_server(
    qm: penstock.QueueManager, home: Path, tmp_path: Path
) -> None:
    qm.define("QLOCAL", "Q")
    done = subprocess.run(
        [PROGRAM, "serve", "--new-token", "me"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    token = done.stderr.strip().rpartition(" ")[2]
    assert token not in done.stdout
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    tokens.write_text(done.stdout)
    with serving(home, "--token-file", str(tokens)) as server:
        with flight.connect(server.address, "QM1", token=token) as remote:
            assert remote.put_batch("Q", [b"1"]).messages == 1
        with pytest.raises(penstock.MQError, match="bearer token"):
            flight.connect(server.address, "QM1", token="wrong")
        said = server.end()
    assert "refused: no token, or a wrong one" in said and token not in said


def test_a_token_that_is_taken_out_of_the_file_opens_no_call_a_moment_later(
    qm: penstock.QueueManager, home: Path, tmp_path: Path
) -> None:
    qm.define("QLOCAL", "Q")
    (first, one), (second, two) = made("first"), made("second")
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    tokens.write_text(one + two)
    with serving(home, "--token-file", str(tokens)) as server:
        with flight.connect(server.address, "QM1", token=first, retry_seconds=1) as remote:
            tokens.write_text(two)
            end = time.monotonic() + WAIT_SECONDS
            with pytest.raises(penstock.MQError, match="bearer token"):
                while time.monotonic() < end:
                    remote.units()
                    time.sleep(0.05)
        with flight.connect(server.address, "QM1", token=second) as remote:
            assert remote.units() == []
        assert f"{tokens} was read again: 1 tokens" in server.end()


def test_it_ends_in_order_and_leaves_what_was_prepared(
    qm: penstock.QueueManager, home: Path
) -> None:
    qm.define("QLOCAL", "Q")
    with serving(home, "--without-token") as server:
        with flight.connect(server.address, "QM1") as remote:
            remote.prepare_put("Q", [b"1"], unit="u")
        assert qm.status().attached == 2
        server.end()
    assert qm.status().attached == 1 and len(qm.recover()) == 2
    with (
        serving(home, "--without-token") as server,
        flight.connect(server.address, "QM1") as remote,
    ):
        assert remote.commit("u").state == "committed"


def test_a_queue_manager_can_be_ended_and_started_again_under_it(home: Path) -> None:
    penstock.create("QM1", home)
    with penstock.connect("QM1", home) as qm:
        qm.define("QLOCAL", "Q")
    with serving(home, "--without-token") as server:
        with flight.connect(server.address, "QM1", retry_seconds=0.2) as remote:
            remote.put_batch("Q", [b"1"])
            done = subprocess.run(
                [PROGRAM, "end", "QM1", "--home", home, "-w"],
                capture_output=True, text=True, check=False, timeout=60,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            until = time.monotonic() + 60
            while True:  # the first connection after the end starts it again
                try:
                    assert remote.put_batch("Q", [b"2"], unit="again").messages == 1
                    break
                except penstock.MQError:
                    assert time.monotonic() < until
                    time.sleep(0.1)
            assert remote.queues() == {"Q": 2}
        server.end()
    penstock.delete("QM1", home)


def test_it_ends_soon_though_a_client_does_not_read_its_rows(
    qm: penstock.QueueManager, home: Path
) -> None:
    qm.define("QLOCAL", "LARGE", maxdepth=10_000)
    with qm.queue("LARGE") as queue:
        for _ in range(20):  # more than the buffers between the two hold
            queue.put_batch([b"x" * 100_000] * 40)
    with serving(home, "--without-token") as server:
        remote = penstock.flight.connect(server.address, "QM1")
        rows = remote.browse("LARGE")
        assert next(rows).num_rows
        begin = time.monotonic()
        assert server.end().endswith("ended\n")
        assert time.monotonic() - begin < 30
        remote.close()


def test_it_ends_also_when_another_of_its_threads_receives_the_signal(
    qm: penstock.QueueManager, home: Path
) -> None:
    with serving(home, "--without-token") as server:
        pid = server.process.pid
        others = [int(name) for name in os.listdir(f"/proc/{pid}/task") if int(name) != pid]
        open_ones = [thread for thread in others if not blocks(pid, thread, signal.SIGTERM)]
        assert ctypes.CDLL(None).tgkill(pid, open_ones[0], signal.SIGTERM) == 0
        assert server.process.wait(WAIT_SECONDS) == 0


def blocks(pid: int, thread: int, number: signal.Signals) -> bool:
    """Whether the thread would not receive the signal."""
    status = Path(f"/proc/{pid}/task/{thread}/status").read_text()
    return bool(int(status.partition("SigBlk:")[2].split()[0], 16) >> (number - 1) & 1)


def test_clients_that_do_not_read_hold_a_few_megabytes_each(
    qm: penstock.QueueManager, home: Path
) -> None:
    qm.define("QLOCAL", "Q", maxdepth=1_000_000)
    with qm.open("Q") as queue:
        for _ in range(20):
            queue.put_batch([b"x" * 256] * 10_000)

    def memory(pid: int) -> int:
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) << 10

    with serving(home, "--without-token") as server, ExitStack() as open_ones:
        before = memory(server.process.pid)
        for _ in range(SLOW):
            remote = open_ones.enter_context(flight.connect(server.address, "QM1"))
            reading = remote.browse("Q")
            reading.read_next_batch()
            open_ones.callback(reading.close)
        time.sleep(1)  # what they do not read is made, and waits
        assert memory(server.process.pid) - before < SLOW * MOST_EACH
        with flight.connect(server.address, "QM1") as remote:
            assert remote.units() == []
