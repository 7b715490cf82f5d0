"""Queues through Arrow Flight, on one machine: both ends share its processors.

Rows read from ``penstock serve`` against the same number of equal rows from a server that sends one
record batch of that shape again and again. Rows put, durable, against that server dropping them.
Spark jobs through the server against the same jobs attached directly: the tasks are told a home in
which there is no queue manager, as on another host.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

import penstock.flight
import workloads as w
from bench_spark import PARTITIONS, Job
from conftest import Interleave
from flight_servers import BATCH, constant_server, penstock_server
from report import Aim

ROWS = 500_000
SPARK_ROWS = 300_000
SIZE = 256
ROUNDS = 5
Scale = Callable[[int], int]


class Ends:
    """A queue manager with rows on BENCH, its server, and the other one."""

    def __init__(self, qm: Any, files: Path, rows: int, address: str) -> None:
        self.qm, self.files, self.rows = qm, files, rows
        self.remote = penstock.flight.connect(address, w.NAME)

    def fill(self) -> None:
        """Puts the rows."""
        bodies = [w.body(number, SIZE) for number in range(BATCH)]
        with self.qm.open("BENCH") as queue:
            for _ in range(self.rows // BATCH):
                queue.put_batch(bodies, persistent=True)

    def sample(self) -> Path:
        """The first record batch, as the other server is to send it."""
        path = self.files / "sample.arrow"
        batch = next(self.remote.browse("BENCH"))
        with pa.ipc.new_file(path, batch.schema) as file:
            file.write(batch)
        return path

    def check(self, rows: int) -> None:
        """Raises WrongResult unless all rows came."""
        w.expect(rows == self.rows, f"{rows} rows, not {self.rows}")


@pytest.fixture
def ends(files: Path, scale: Scale) -> Iterator[Ends]:
    """Both ends, with rows on the queue."""
    with w.manager(files) as qm:
        w.define(qm, "BENCH", persistent=True).close()
        with penstock_server(files) as address:
            made = Ends(qm, files, scale(ROWS) // BATCH * BATCH, address)
            made.fill()
            yield made
            made.remote.close()
        w.wait_until_alone(qm)


def seconds_of(rows: int, call: Callable[[], None]) -> float:
    """Of a row of those that the call moves."""
    begun = time.perf_counter()
    call()
    return (time.perf_counter() - begun) / rows


@pytest.mark.parametrize("kind", ["browse", "read"])
def bench_rows_out(interleave: Interleave, ends: Ends, kind: str) -> None:
    """A queue is browsed, and what a unit has taken is read."""
    with constant_server(ends.rows, ends.sample()) as address, flight.connect(address) as other:

        def browsed() -> None:
            ends.check(sum(batch.num_rows for batch in ends.remote.browse("BENCH")))

        def constant() -> None:
            reader = other.do_get(flight.Ticket(b""))
            ends.check(sum(chunk.data.num_rows for chunk in reader))

        def taken() -> float:
            unit = ends.remote.take("BENCH", unit=uuid.uuid4().hex)
            seconds = seconds_of(
                ends.rows, lambda: ends.check(sum(b.num_rows for b in unit.read()))
            )
            unit.backout()
            return seconds

        def by_browse() -> float:
            return seconds_of(ends.rows, browsed)

        interleave(
            f"Flight {kind} of {SIZE} bytes, a row",
            {
                "penstock": by_browse if kind == "browse" else taken,
                "constant": lambda: seconds_of(ends.rows, constant),
            },
            [Aim("rate", 0.9, "constant")],
            ROUNDS,
        )


def bench_rows_in(interleave: Interleave, ends: Ends) -> None:
    """Durable puts of one unit of work."""
    bodies = pa.array([w.body(number, SIZE) for number in range(BATCH)], pa.large_binary())
    table = pa.table({"body": pa.chunked_array([bodies] * (ends.rows // BATCH))})
    with constant_server(ends.rows, ends.sample()) as address, flight.connect(address) as other:

        def put() -> None:
            ends.check(ends.remote.put_batch("BENCH", table).messages)

        def dropped() -> None:
            descriptor = flight.FlightDescriptor.for_command(b"")
            writer, answer = other.do_put(descriptor, table.schema)
            with writer:
                writer.write_table(table)
                writer.done_writing()
                w.expect(answer.read() is not None, "no answer")

        def durable() -> float:
            seconds = seconds_of(ends.rows, put)
            with ends.qm.open("BENCH") as queue:
                while len(queue.get_batch(BATCH)):
                    pass
            return seconds

        durable()  # takes the rows of the fixture away, too
        interleave(
            f"Flight put of {SIZE} bytes, durable, a row",
            {"penstock": durable, "dropped": lambda: seconds_of(ends.rows, dropped)},
            [],
            ROUNDS,
        )


@pytest.mark.parametrize("kind", ["batch read", "stream", "batch sink", "stream sink"])
def bench_spark_through_a_server(
    interleave: Interleave, spark: Any, files: Path, scale: Scale, kind: str
) -> None:
    """A Spark job whose tasks reach the queue manager through the server alone."""
    with w.manager(files) as qm:
        w.define(qm, "BENCH", persistent=True).close()
        job = Job(spark, qm, files, SIZE, scale(SPARK_ROWS))
        with penstock_server(files) as address:
            place = {"endpoint": address, "home": "/nowhere"}

            def run(**given: str) -> float:
                if kind == "batch read":
                    return job.batch_read("penstock", {**job.split, **given})
                if kind == "stream":
                    job.fill()
                    seconds = job.stream_read("penstock", {**job.stream, **given})
                else:
                    write = job.batch_sink if kind == "batch sink" else job.stream_sink
                    seconds = write("penstock", {**job.penstock, **given})
                job.empty(0 if kind == "stream" else job.rows)
                return seconds

            if kind == "batch read":
                job.fill()
            interleave(
                f"Spark {kind} of {SIZE} bytes through a server, a row, {PARTITIONS} tasks",
                {"penstock": lambda: run(**place), "attached": run},
                [Aim("rate", 0.75, "attached")],
                ROUNDS,
            )
            if kind == "batch read":
                job.empty(job.rows)
        w.wait_until_alone(qm)
