"""Servers in processes of their own, for the benchmarks of Arrow Flight: ``penstock serve``, and
one that has nothing to do but send the same record batch again and again, and drop what it gets.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import flight

import workloads as w

BATCH = 10_000  # rows of a record batch, as the server's


@contextmanager
def penstock_server(home: Path) -> Iterator[str]:
    """The address of ``penstock serve`` for the queue manager of the benchmarks."""
    command = [sys.executable, "-m", "penstock.cli", "serve", w.NAME, "--home", str(home)]
    with _running([*command, "--listen", "127.0.0.1:0", "--without-token"]) as address:
        yield address


@contextmanager
def constant_server(rows: int, sample: Path) -> Iterator[str]:
    """The address of the other one; ``sample``: an Arrow file with the record batch."""
    with _running([sys.executable, __file__, str(rows), str(sample)]) as address:
        yield address


@contextmanager
def _running(command: list[str]) -> Iterator[str]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().rpartition(" at ")[2].strip()
        finally:
            process.terminate()


class Constant(flight.FlightServerBase):  # type: ignore[misc]
    """Sends so many rows, and drops those that it gets."""

    def __init__(self, rows: int, batch: Any) -> None:
        super().__init__("grpc://127.0.0.1:0")
        self._rows, self._batch = rows, batch

    def do_get(self, context: Any, ticket: Any) -> Any:
        """Rows."""
        batches = self._rows // self._batch.num_rows
        reader = pa.RecordBatchReader.from_batches(
            self._batch.schema, (self._batch for _ in range(batches))
        )
        return flight.RecordBatchStream(reader)

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Counts rows."""
        rows = sum(chunk.data.num_rows for chunk in reader if chunk.data is not None)
        writer.write(json.dumps({"rows": rows}).encode())


def main(rows: int, sample: str) -> None:
    """Serves until it is ended."""
    with pa.ipc.open_file(sample) as file:
        server = Constant(rows, file.get_batch(0))
    print(f"serving at grpc://127.0.0.1:{server.port}", flush=True)
    server.serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
