"""penstock.flight.connect() against a server: calls, errors, tokens, TLS, what is lost or cut."""

from __future__ import annotations

import contextlib
import multiprocessing
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import trustme
from flight_process import serving
from flight_proxy import Proxy

import penstock
from penstock import flight
from penstock.errors import MQError
from penstock.flight.access import Access
from penstock.flight.client import RemoteQueueManager
from penstock.flight.server import Limits
from penstock.flight.service import Service

Serve = Callable[..., str]

RIGHTS = ("browse", "get", "put")


@contextlib.contextmanager
def connected(address: str, **given: Any) -> Iterator[RemoteQueueManager]:
    with flight.connect(address, "QM1", **{"retry_seconds": 10, **given}) as remote:
        yield remote


def left(qm: penstock.QueueManager, name: str = "Q") -> list[bytes]:
    with qm.open(name, input=False, browse=True, output=False) as queue:
        return [message.data for message in queue.browse()]


# ---- calls ----


def test_messages_go_there_and_back(serve: Serve, qm: penstock.QueueManager) -> None:
    with connected(serve()) as remote:
        assert repr(remote).startswith("<RemoteQueueManager QM1 at grpc://")
        assert remote.put_batch("Q", [b"bolts", b"nuts"]).messages == 2
        assert remote.put_batch("Q", ["text"], unit="u").state == "committed"
        table = pa.table({"body": [b"high"], "priority": [9], "correl_id": [b"c" * 24]})
        remote.put_batch("Q", table)
        assert remote.queues() == {"Q": 4}
        seen = remote.browse("Q").read_all()
        assert seen.column("body").to_pylist() == [b"high", b"bolts", b"nuts", b"text"]
        assert seen.column("priority").to_pylist() == [9, 0, 0, 0]
        assert seen.column("persistent").to_pylist() == [True] * 4
        assert seen.column("correl_id")[0].as_py() == b"c" * 24
        with remote.take("Q", unit="t", max_messages=3) as taken:
            assert len(taken) == 3 and remote.units()[0].unit == "t"
            assert taken.read_all().column("body").to_pylist() == [b"high", b"bolts", b"nuts"]
            taken.commit()
        assert remote.take("Q", unit="t").is_committed
    assert left(qm) == [b"text"] and qm.recover() == []


def test_an_exception_in_the_block_of_a_take_returns_the_messages(
    serve: Serve, qm: penstock.QueueManager
) -> None:
    with connected(serve()) as remote:
        remote.put_batch("Q", [b"1", b"2"])
        with pytest.raises(ZeroDivisionError), remote.take("Q", unit="t") as taken:
            assert left(qm) == []
            raise ZeroDivisionError
        assert taken.result.state == "backed out"
    assert left(qm) == [b"1", b"2"] and qm.recover() == []


def test_a_hundred_thousand_messages_come_whole_and_in_order(
    serve: Serve, qm: penstock.QueueManager
) -> None:
    bodies = [b"%06d" % n * (n % 9) for n in range(100_000)]
    with connected(serve()) as remote:
        assert remote.put_batch("Q", pa.table({"body": bodies}), unit="u").messages == 100_000
        assert remote.browse("Q").read_all().column("body").to_pylist() == bodies
        taken = remote.take("Q", unit="t")
        assert taken.read_all().column("body").to_pylist() == bodies
        taken.commit()
    assert left(qm) == [] and qm.recover() == []


def test_a_large_put_that_is_answered_before_its_end_is_no_lost_connection(
    serve: Serve, qm: penstock.QueueManager
) -> None:
    table = pa.table({"body": [b"x" * 200] * 100_000})
    with connected(serve()) as remote:
        remote.put_batch("Q", table, unit="u")
        for _ in range(3):
            assert remote.put_batch("Q", table, unit="u").state == "committed"
        with pytest.raises(penstock.UnknownObjectName):
            remote.put_batch("NONE", table)
        qm.alter("QLOCAL", "Q", maxdepth=100_001)
        with pytest.raises(penstock.QueueFull):
            remote.put_batch("Q", table)
        assert remote.queues() == {"Q": 100_000}
    assert qm.recover() == []


def test_errors_are_those_of_mq(serve: Serve, qm: penstock.QueueManager) -> None:
    with connected(serve()) as remote:
        for call in (
            lambda: remote.put_batch("NONE", [b"x"]),
            lambda: remote.browse("NONE").read_all(),
            lambda: remote.take("NONE", unit="t"),
        ):
            with pytest.raises(penstock.UnknownObjectName, match="there is no queue NONE"):
                call()
        with pytest.raises(penstock.errors.UnitNotAvailable, match="is not prepared"):
            remote.commit("never")
        qm.alter("QLOCAL", "Q", maxdepth=2)
        with pytest.raises(penstock.QueueFull):
            remote.put_batch("Q", [b"1", b"2", b"3"])
        for wrong in (7, b"body", [1, 2], ["a", b"b"]):
            with pytest.raises(penstock.errors.InvalidType, match=r"rows are a pyarrow\.Table"):
                remote.put_batch("Q", wrong)
        with pytest.raises(penstock.InvalidValue, match="unit is 'a b', which must match"):
            remote.put_batch("Q", [b"1"], unit="a b")
        with pytest.raises(penstock.InvalidValue, match="attempt is 0, not a whole number"):
            remote.take("Q", unit="a", attempt=0)
    assert left(qm) == [] and qm.recover() == []
    with pytest.raises(penstock.QueueManagerNameError, match="no queue manager QM2"):
        flight.connect(remote.endpoint, "QM2")


def test_too_many_calls_are_tried_again(serve: Serve, qm: penstock.QueueManager) -> None:
    address = serve(limits=Limits(calls=1))
    with connected(address) as remote:
        threads = [
            threading.Thread(target=remote.put_batch, args=("Q", [b"%d" % n])) for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert sorted(left(qm)) == [b"%d" % n for n in range(8)]


def test_a_server_whose_certificate_is_of_others_is_refused_at_once(
    serve: Serve, tmp_path: Path
) -> None:
    pair = trustme.CA().issue_cert("localhost")
    chain = b"".join(pem.bytes() for pem in pair.cert_chain_pems)
    address = serve(tls_certificates=[(chain, pair.private_key_pem.bytes())])
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    begin = time.monotonic()
    with pytest.raises(MQError, match="certificate verify failed"):
        flight.connect(address, "QM1", ca=str(tmp_path / "other.pem"), retry_seconds=60)
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize(
    ("endpoint", "token"), [("http://host:1", None), ("host", None), ("grpc://127.0.0.1:1", "grün")]
)
def test_what_is_no_endpoint_or_token_is_refused(endpoint: str, token: str | None) -> None:
    with pytest.raises(MQError, match="2046") as caught:
        flight.connect(endpoint, "QM1", token=token)
    assert "grün" not in str(caught.value)


@pytest.mark.parametrize("leaves", [False, True], ids=["reads", "leaves"])
def test_rows_count_as_a_call_until_they_are_read_or_the_client_has_gone(
    serve: Serve, qm: penstock.QueueManager, leaves: bool
) -> None:
    with qm.queue("Q") as queue:
        for _ in range(20):  # more than the buffers between the two hold
            queue.put_batch([b"x" * 100_000] * 40)
    address = serve(limits=Limits(calls=1))
    reading = penstock.flight.connect(address, "QM1")
    with connected(address, retry_seconds=0.3) as other:
        batches = reading.browse("Q")
        rows = next(batches).num_rows
        with pytest.raises(MQError, match="2009"):
            other.queues()
        if leaves:
            reading.close()
            del batches
        else:
            assert rows + sum(batch.num_rows for batch in batches) == 800
        end = time.monotonic() + 30
        while True:
            try:
                assert other.queues() == {"Q": 800}
                break
            except MQError:
                assert time.monotonic() < end
    reading.close()


# ---- who may ----


def test_a_token_is_wanted_and_its_scope_is_kept(
    serve: Serve, qm: penstock.QueueManager, caplog: pytest.LogCaptureFixture
) -> None:
    import hashlib

    tokens = {
        hashlib.sha256(b"reader").hexdigest(): Access("r", ("QM1",), ("Q",), ("browse",)),
        hashlib.sha256(b"writer").hexdigest(): Access("w", ("QM1",), ("Q",), RIGHTS),
    }
    address = serve(tokens)
    for token in (None, "", "wrong"):
        with pytest.raises(MQError, match="a bearer token of this server is needed") as caught:
            flight.connect(address, "QM1", token=token)
        assert caught.value.reason == 2035
    assert "refused: no token, or a wrong one" in caplog.text and "127.0.0.1:" in caplog.text
    with connected(address, token="writer") as remote:
        remote.put_batch("Q", [b"1"])
    with connected(address, token="reader") as remote:
        assert remote.browse("Q").read_all().num_rows == 1
        for call in (
            lambda: remote.put_batch("Q", [b"2"]),
            lambda: remote.take("Q", unit="t"),
            lambda: remote.browse("OTHER"),
        ):
            with pytest.raises(MQError) as caught:
                call()
            assert caught.value.reason == 2035
    assert left(qm) == [b"1"]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def files_of(cert: Any, folder: Path, name: str) -> tuple[str, str]:
    chain, key = folder / f"{name}.pem", folder / f"{name}.key"
    chain.write_bytes(b"".join(blob.bytes() for blob in cert.cert_chain_pems))
    key.write_bytes(cert.private_key_pem.bytes())
    key.chmod(0o600)
    return str(chain), str(key)


def test_tls_is_checked_on_both_sides(
    serve: Serve, authority: trustme.CA, tmp_path: Path, qm: penstock.QueueManager
) -> None:
    own = authority.issue_cert("localhost")
    pair = (b"".join(b.bytes() for b in own.cert_chain_pems), own.private_key_pem.bytes())
    roots = authority.cert_pem.bytes()
    address = serve(tls_certificates=[pair], verify_client=True, root_certificates=roots)
    ca = tmp_path / "ca.pem"
    ca.write_bytes(roots)
    mine = files_of(authority.issue_cert("client@example.org"), tmp_path, "client")
    with connected(address, ca=str(ca), certificate=mine) as remote:
        assert remote.put_batch("Q", [b"1"]).messages == 1
    stranger = trustme.CA()
    other = files_of(stranger.issue_cert("client@example.org"), tmp_path, "other")
    strange_ca = tmp_path / "strange.pem"
    strange_ca.write_bytes(stranger.cert_pem.bytes())
    for given in (
        {"ca": str(ca)},
        {"ca": str(ca), "certificate": other},
        {"ca": str(strange_ca), "certificate": mine},
    ):
        with pytest.raises(penstock.errors.ConnectionBroken):
            flight.connect(address, "QM1", retry_seconds=0.2, **given)
    assert left(qm) == [b"1"]


def test_a_connection_is_refused_behind_a_fork(serve: Serve) -> None:
    with connected(serve()) as remote:
        context = multiprocessing.get_context("fork")
        answers = context.SimpleQueue()

        def child() -> None:
            try:
                remote.queues()
            except MQError as error:
                answers.put((error.reason, error.text))

        process = context.Process(target=child)
        process.start()
        process.join(60)
        assert not answers.empty()
        reason, text = answers.get()
        assert reason == 2012 and "made before a fork" in text


# ---- servers and links that go ----


def test_no_server_is_an_error_in_time() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"grpc://127.0.0.1:{unused.getsockname()[1]}"
        begin = time.monotonic()
        with pytest.raises(penstock.errors.ConnectionBroken, match="the server is not reached"):
            flight.connect(address, "QM1", retry_seconds=0.5)
        assert time.monotonic() - begin < 30


def test_a_server_that_is_killed_and_comes_back_is_asked_again(
    qm: penstock.QueueManager, home: Path
) -> None:
    qm.define("QLOCAL", "Q")
    with serving(home, "--without-token") as first:
        remote = flight.connect(first.address, "QM1", retry_seconds=60)
        remote.prepare_put("Q", [b"1", b"2"], unit="u")
        first.kill()
        answers: list[Any] = []
        thread = threading.Thread(target=lambda: answers.append(remote.commit("u")))
        thread.start()
        time.sleep(0.3)
        listen = first.address.removeprefix("grpc://")
        with serving(home, "--without-token", listen=listen):
            thread.join(60)
            assert [one.state for one in answers] == ["committed"]
            remote.close()
    assert left(qm) == [b"1", b"2"] and qm.recover() == []


@pytest.mark.parametrize("most", [1_000, 20_000, 300_000, 900_000])
def test_a_link_that_is_cut_in_a_put_changes_nothing(
    serve: Serve, qm: penstock.QueueManager, most: int
) -> None:
    bodies = [b"%04d" % n * 100 for n in range(2_500)]
    proxy = Proxy(serve())
    try:
        with connected(proxy.address, retry_seconds=60) as remote:
            proxy.most = most
            assert remote.put_batch("Q", bodies, unit="u").messages == len(bodies)
            assert proxy.cuts == 1
            assert remote.put_batch("Q", bodies, unit="u").state == "committed"
    finally:
        proxy.close()
    assert left(qm) == bodies and qm.recover() == []


def test_a_link_that_is_cut_while_rows_are_read_is_an_error_and_they_are_read_again(
    serve: Serve, qm: penstock.QueueManager
) -> None:
    bodies = [b"%04d" % n * 1_000 for n in range(2_500)]
    address = serve()
    with connected(address) as direct:
        direct.put_batch("Q", bodies)
    proxy = Proxy(address)
    try:
        with connected(proxy.address, retry_seconds=60) as remote:
            taken = remote.take("Q", unit="t")
            reader = taken.read()
            proxy.cut()
            with pytest.raises(penstock.errors.ConnectionBroken):
                reader.read_all()
            assert taken.read_all().column("body").to_pylist() == bodies
            taken.commit()
    finally:
        proxy.close()
    assert left(qm) == [] and qm.recover() == []


def test_a_call_that_takes_long_is_not_given_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    real, times = Service.queues, []

    def slow(*given: Any) -> Any:
        times.append(time.monotonic())
        time.sleep(8)  # servers of gRPC end a connection with pings after some seconds
        return real(*given)

    monkeypatch.setattr(Service, "queues", slow)
    with connected(serve()) as remote:
        assert remote.queues() == {"Q": 0}
    assert len(times) == 1 and "pings" not in capfd.readouterr().err


@pytest.mark.parametrize("call", ["put", "take", "read"])
def test_a_link_that_is_silent_is_given_up_after_call_seconds(
    serve: Serve, qm: penstock.QueueManager, call: str
) -> None:
    bodies = [b"%04d" % n * 100 for n in range(2_500)]
    address = serve()
    with connected(address) as direct:
        if call != "put":
            direct.put_batch("Q", bodies, unit="before")
    proxy = Proxy(address)
    try:
        with connected(proxy.address, retry_seconds=60, call_seconds=1) as remote:
            taken = remote.take("Q", unit="t") if call == "read" else None
            proxy.silence()
            begin = time.monotonic()
            if call == "put":
                assert remote.put_batch("Q", bodies, unit="u").messages == len(bodies)
            elif taken is None:
                assert len(remote.take("Q", unit="t")) == len(bodies)
            else:
                assert taken.read_all().num_rows == len(bodies)
            assert time.monotonic() - begin < 30
    finally:
        proxy.cut()  # else the server's end waits for what was silenced
        proxy.close()
    assert left(qm) == (bodies if call == "put" else [])
