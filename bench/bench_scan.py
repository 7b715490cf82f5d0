"""The journal as a table: records and bytes a second, with more segments, with two processes."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import penstock
import workloads as w
from conftest import Interleave
from penstock.journal.scan import COLUMNS, SegmentFile, list_segments, scan
from report import Aim

MESSAGES = 400_000
LARGE = 40_000
SMALL_BODY, LARGE_BODY = 256, 4096
EVENT_COLUMNS = ("event", "time", "queue", "sequence", "unit_id", "body_length")
DESCRIPTOR_COLUMNS = tuple(name for name in COLUMNS if name != "body")

Scale = Callable[[int], int]


def _write(home: Path, count: int, size: int) -> list[SegmentFile]:
    """A journal of `count` persistent messages, ended in order; its segments."""
    penstock.create(w.NAME, home=str(home))
    with penstock.connect(w.NAME, home=str(home)) as qm, w.define(qm, "SCAN", True) as queue:
        for start in range(0, count, w.UNIT):
            with qm.transaction():
                for number in range(start, min(start + w.UNIT, count)):
                    queue.put(w.body(number, size))
    return list_segments(home / w.NAME)


@pytest.fixture
def small(files: Path, scale: Scale) -> Iterator[list[SegmentFile]]:
    """A journal of small messages."""
    yield _write(files, scale(MESSAGES), SMALL_BODY)
    penstock.delete(w.NAME, home=str(files))


def _scan(segments: Sequence[SegmentFile], columns: Sequence[str], arrow: bool) -> tuple[int, int]:
    """PUT rows and bytes of bodies."""
    rows = size = 0
    for segment in segments:
        for batch in scan(segment, columns, events=("PUT",)):
            rows += len(batch)
            if arrow:
                w.expect(batch.to_arrow().num_rows == len(batch), "rows became lost in Arrow")
            if batch.offsets is not None:
                size += int(batch.offsets[-1])
            elif "body_length" in batch.columns:
                size += int(batch.columns["body_length"].sum(dtype=np.int64))
    return rows, size


def _a_record(
    segments: Sequence[SegmentFile], columns: Sequence[str], count: int, size: int, arrow: bool
) -> float:
    """Seconds of one core for a record."""
    start = time.process_time()
    rows, found = _scan(segments, columns, arrow)
    seconds = time.process_time() - start
    w.expect(rows == count, f"{rows} messages where {count} were put")
    w.expect(found == count * size, f"{found} bytes where {count * size} were put")
    return seconds / rows


def bench_scan_of_descriptors(
    interleave: Interleave, small: list[SegmentFile], scale: Scale
) -> None:
    """Some columns, all but the body, the same as Arrow; every checksum is compared."""
    count = scale(MESSAGES)

    def side(columns: Sequence[str], arrow: bool = False) -> Callable[[], float]:
        return lambda: _a_record(small, columns, count, SMALL_BODY, arrow)

    aim = 0.5e-6  # 2 M records a second
    every = f"all {len(DESCRIPTOR_COLUMNS)} columns"
    interleave(
        "scan of the journal, a record of 256 bytes, CPU time",
        {
            "six columns": side(EVENT_COLUMNS),
            every: side(DESCRIPTOR_COLUMNS),
            "six columns, Arrow": side(EVENT_COLUMNS, arrow=True),
            every + ", Arrow": side(DESCRIPTOR_COLUMNS, arrow=True),
        },
        [Aim("absolute", aim, side="six columns"), Aim("absolute", aim, side=every)],
        rounds=7,
    )


def bench_scan_with_bodies(interleave: Interleave, files: Path, scale: Scale) -> None:
    """Bodies of 4 KiB, against a copy of the same files' bytes."""
    count = scale(LARGE)
    segments = _write(files, count, LARGE_BODY)
    columns = ("lsn", "queue", "body", "body_length")

    def copy() -> float:
        start = time.process_time()
        for segment in segments:
            data = np.fromfile(Path(segment.directory, segment.file), dtype=np.uint8)
            w.expect(len(data) == segment.size, "a short read")
        return (time.process_time() - start) / count

    interleave(
        "scan of the journal, a body of 4 KiB, CPU time",
        {
            "penstock": lambda: _a_record(segments, columns, count, LARGE_BODY, arrow=False),
            "read() of the files": copy,
        },
        [Aim("absolute", LARGE_BODY / 1e9)],  # 1 GB/s
        rounds=7,
    )
    penstock.delete(w.NAME, home=str(files))


def bench_scan_grows_with_segments(interleave: Interleave, small: list[SegmentFile]) -> None:
    """A byte of the journal, of all whole segments and of half of them."""
    whole = [segment for segment in small if segment.closed]
    half = whole[: (len(whole) + 1) // 2]

    def side(segments: list[SegmentFile]) -> Callable[[], float]:
        size = sum(segment.end_lsn - segment.base_lsn for segment in segments)

        def run() -> float:
            start = time.process_time()
            rows, _ = _scan(segments, EVENT_COLUMNS, arrow=False)
            w.expect(rows > 0, "no rows")
            return (time.process_time() - start) / size * 1024

        return run

    interleave(
        "scan of the journal, a KiB of it, CPU time",
        {f"{len(whole)} segments": side(whole), f"{len(half)} segments": side(half)},
        [Aim("time", 1.2, f"{len(half)} segments", f"{len(whole)} segments")],
        rounds=7,
    )


def _share(segments: list[SegmentFile]) -> int:
    return _scan(segments, DESCRIPTOR_COLUMNS, arrow=False)[0]


def bench_scan_in_two_processes(
    interleave: Interleave, small: list[SegmentFile], scale: Scale
) -> None:
    """One process a share of the segments, as Spark does it; wall time."""
    count = scale(MESSAGES)
    shares = [small[0::2], small[1::2]]

    with multiprocessing.get_context("spawn").Pool(2) as pool:

        def run(parts: list[list[SegmentFile]]) -> float:
            start = time.perf_counter()
            rows = sum(pool.map(_share, parts, chunksize=1))
            seconds = time.perf_counter() - start
            w.expect(rows == count, f"{rows} messages where {count} were put")
            return seconds / count

        interleave(
            "scan of the journal by processes, a record of 256 bytes",
            {"two processes": lambda: run(shares), "one process": lambda: run([small])},
            [Aim("rate", 1.5, "one process", "two processes")],
            rounds=7,
        )
