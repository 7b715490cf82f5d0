"""The verbs of the MQI: puts and gets against the Python calls, and opens by kind of name."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import penstock
import workloads as w
from conftest import Interleave
from penstock import mqi
from report import Aim

BODY = 256
PAIRS = 20_000
OPENS = 5_000
BACKLOG = 100
ROUNDS = 31

Scale = Callable[[int], int]


@contextmanager
def connected(files: Path) -> Iterator[tuple[penstock.QueueManager, Any]]:
    """A new queue manager, and a connection handle to it."""
    before = os.environ.get("PENSTOCK_HOME")
    os.environ["PENSTOCK_HOME"] = str(files)
    try:
        with w.manager(files) as qm:
            hconn, _, reason = mqi.MQCONN(w.NAME)
            w.expect(reason == 0, f"MQCONN: {reason}")
            yield qm, hconn
            w.expect(mqi.MQDISC(hconn) == (0, 0), "MQDISC")
    finally:
        os.environ.pop("PENSTOCK_HOME")
        if before is not None:
            os.environ["PENSTOCK_HOME"] = before


def opened(hconn: Any, name: str, options: int) -> Any:
    """The handle of a queue."""
    hobj, _, reason = mqi.MQOPEN(hconn, mqi.MQOD(ObjectName=name), options)
    w.expect(reason == 0, f"MQOPEN {name}: {reason}")
    return hobj


def pairs_mqi(hconn: Any, hobj: Any, count: int) -> float:
    """`count` times an MQPUT and an MQGET."""
    data = w.body(1, BODY)
    put, get = mqi.MQPUT, mqi.MQGET
    out, put_options = mqi.MQMD(), mqi.MQPMO()
    into, get_options = mqi.MQMD(), mqi.MQGMO(Version=2, MatchOptions=mqi.MQMO_NONE)
    begun = time.perf_counter()
    for _ in range(count):
        put(hconn, hobj, out, put_options, data)
        got = get(hconn, hobj, into, get_options)
    elapsed = time.perf_counter() - begun
    w.expect(got == (data, BODY, 0, 0), f"got {got[1:]}")
    return elapsed / count


def pairs_python(queue: penstock.Queue, count: int) -> float:
    """The same by put() and get()."""
    data = w.body(1, BODY)
    put, get = queue.put, queue.get
    begun = time.perf_counter()
    for _ in range(count):
        put(data)
        message = get()
    elapsed = time.perf_counter() - begun
    w.expect(message.data == data, "got another body")
    return elapsed / count


def bench_mqput_mqget(interleave: Interleave, files: Path, scale: Scale) -> None:
    """MQPUT and MQGET of 256 bytes, against put() and get()."""
    count = scale(PAIRS)
    with connected(files) as (qm, hconn):
        queue = w.define(qm, "PAIRS", persistent=False)
        for number in range(BACKLOG):
            queue.put(w.body(number, BODY))
        hobj = opened(hconn, "PAIRS", mqi.MQOO_INPUT_SHARED | mqi.MQOO_OUTPUT)
        interleave(
            "MQPUT+MQGET in process, non-persistent, 256 bytes",
            {
                "penstock": lambda: pairs_mqi(hconn, hobj, count),
                "put() and get()": lambda: pairs_python(queue, count),
            },
            [Aim("time", 1.3, "put() and get()")],
            rounds=ROUNDS,
        )
        queue.close()


def puts(hconn: Any, hobj: Any, qm: penstock.QueueManager, count: int) -> float:
    """An MQPUT of 256 bytes through an open handle."""
    data, md, pmo, put = w.body(1, BODY), mqi.MQMD(), mqi.MQPMO(), mqi.MQPUT
    begun = time.perf_counter()
    for _ in range(count):
        result = put(hconn, hobj, md, pmo, data)
    elapsed = time.perf_counter() - begun
    w.expect(result == (0, 0), f"MQPUT: {result}")
    with qm.open("LOCAL") as queue:
        w.expect(w.drain(qm, queue, count)[-1] == data, "another body was put")
    return elapsed / count


def puts1(hconn: Any, name: str, qm: penstock.QueueManager, count: int) -> float:
    """An MQPUT1 of 256 bytes to a name."""
    od, data, md, pmo = mqi.MQOD(ObjectName=name), w.body(1, BODY), mqi.MQMD(), mqi.MQPMO()
    put1 = mqi.MQPUT1
    begun = time.perf_counter()
    for _ in range(count):
        result = put1(hconn, od, md, pmo, data)
    elapsed = time.perf_counter() - begun
    w.expect(result == (0, 0), f"MQPUT1 to {name}: {result}")
    with qm.open("LOCAL") as queue:
        w.expect(w.drain(qm, queue, count)[-1] == data, "another body was put")
    return elapsed / count


def bench_mqput1(interleave: Interleave, files: Path, scale: Scale) -> None:
    """MQPUT1 of 256 bytes to a local queue and through an alias, against MQPUT."""
    count = scale(OPENS)
    with connected(files) as (qm, hconn):
        w.define(qm, "LOCAL", persistent=False).close()
        qm.define("QALIAS", "ALIAS", target="LOCAL")
        hobj = opened(hconn, "LOCAL", mqi.MQOO_OUTPUT)
        interleave(
            "MQPUT1, non-persistent, 256 bytes",
            {
                "penstock": lambda: puts1(hconn, "LOCAL", qm, count),
                "alias": lambda: puts1(hconn, "ALIAS", qm, count),
                "MQPUT": lambda: puts(hconn, hobj, qm, count),
            },
            [Aim("absolute", 3e-6), Aim("absolute", 5e-6, side="alias")],
            rounds=ROUNDS,
        )


def opens(hconn: Any, name: str, count: int) -> float:
    """An MQOPEN for output and its MQCLOSE."""
    od = mqi.MQOD(ObjectName=name)
    open_, close = mqi.MQOPEN, mqi.MQCLOSE
    begun = time.perf_counter()
    for _ in range(count):
        hobj, _, reason = open_(hconn, od, mqi.MQOO_OUTPUT)
        close(hconn, hobj, mqi.MQCO_NONE)
    elapsed = time.perf_counter() - begun
    w.expect(reason == 0, f"MQOPEN {name}: {reason}")
    return elapsed / count


def bench_mqopen_mqclose(interleave: Interleave, files: Path, scale: Scale) -> None:
    """MQOPEN+MQCLOSE of a local queue, through an alias, and of a remote queue."""
    count = scale(OPENS)
    with connected(files) as (qm, hconn):
        w.define(qm, "LOCAL", persistent=False).close()
        qm.define("QALIAS", "ALIAS", target="LOCAL")
        qm.define("QLOCAL", "XMIT", usage="XMITQ")
        qm.define("QREMOTE", "REMOTE", rname="THERE", rqmname="QM2", xmitq="XMIT")
        interleave(
            "MQOPEN+MQCLOSE",
            {
                "penstock": lambda: opens(hconn, "LOCAL", count),
                "alias": lambda: opens(hconn, "ALIAS", count),
                "remote": lambda: opens(hconn, "REMOTE", count),
            },
            [
                Aim("absolute", 10e-6),
                Aim("absolute", 20e-6, side="alias"),
                Aim("absolute", 20e-6, side="remote"),
            ],
            rounds=ROUNDS,
        )
