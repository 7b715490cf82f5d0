"""The raw limits in C (``bench/raw``): built on demand, loaded through cffi, typed here.

Every function runs the C workload once, has it check what it wrote or read, and returns seconds.
A check that fails is a :class:`WrongResult`: the figure would mean nothing.
"""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import cffi

BENCH = Path(__file__).resolve().parent
BUILD = BENCH.parent / "build" / "bench"
CORE = BENCH.parent / "csrc"

PAGE = 4096
RECORD_HEAD = 32  # csrc/FORMAT.md: record header,
DESCRIPTOR = 8 + 192  # descriptor section,
BODY_HEAD = 8  # head of the body section,
COMMIT_RECORD = RECORD_HEAD + 8 + 16  # a COMMIT with its section,
SHORT_HEAD = 24  # a record that shares the descriptor of a COMMON record,
SHORT_PUT = 8  # what a PUT has there beside its body,
BATCH_HEAD = 64  # and batch header

INCLUDES = [f"-I{CORE}", f"-I{CORE / 'include'}"]
C_FLAGS = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Wconversion", "-pthread", *INCLUDES]


class WrongResult(AssertionError):
    """A measured run gave a wrong result; its figure is worthless."""


def put_record_bytes(body: int) -> int:
    """Bytes of a PUT record with a body of `body` bytes and no extension, multiple of 8."""
    return RECORD_HEAD + DESCRIPTOR + BODY_HEAD + (body + 7) // 8 * 8


def put_unit_bytes(count: int, body: int) -> int:
    """Bytes of a batch that puts `count` messages of `body` bytes alike in one unit of work."""
    put = SHORT_HEAD + SHORT_PUT + (body + 7) // 8 * 8
    return BATCH_HEAD + RECORD_HEAD + DESCRIPTOR + count * put + COMMIT_RECORD


def get_unit_bytes(count: int) -> int:
    """Bytes of a batch that gets `count` messages in one unit of work."""
    return BATCH_HEAD + count * SHORT_HEAD + COMMIT_RECORD


def compiler() -> list[str]:
    """The C compiler's command: ``$CC``, else ``cc``."""
    return shlex.split(os.environ.get("CC", "cc"))


def compile_c(output: Path, sources: list[Path], flags: list[str], watched: list[Path]) -> Path:
    """Compiles `sources` to `output` unless it is newer than everything in `watched`."""
    newest = max(path.stat().st_mtime for path in [*sources, *watched, Path(__file__)])
    if output.exists() and output.stat().st_mtime > newest:
        return output
    output.parent.mkdir(parents=True, exist_ok=True)
    fresh = output.with_name(f"{output.name}.{os.getpid()}")
    command = [*compiler(), *C_FLAGS, *flags, "-o", str(fresh), *map(str, sources), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)} failed:\n{done.stderr}")
    fresh.replace(output)
    return output


def build_library() -> Path:
    """Builds the shared library of raw limits."""
    raw = BENCH / "raw"
    headers = [*raw.glob("*.h"), *CORE.glob("*.h")]
    return compile_c(
        BUILD / "libpenstock_raw.so", sorted(raw.glob("*.c")), ["-fPIC", "-shared"], headers
    )


class _Library:
    """The loaded library; made at first use."""

    def __init__(self) -> None:
        header = (BENCH / "raw" / "raw.h").read_text()
        declarations = header.partition("#include <stdint.h>")[2]
        self.ffi: Any = cffi.FFI()
        self.ffi.cdef(declarations)
        self.lib: Any = self.ffi.dlopen(str(build_library()))


_loaded: _Library | None = None


def _library() -> _Library:
    global _loaded
    if _loaded is None:
        _loaded = _Library()
    return _loaded


def _check(rc: int, what: str) -> None:
    if rc == -errno.EBADMSG:
        raise WrongResult(f"{what}: read back something else than was written")
    if rc != 0:
        raise OSError(-rc, f"{what}: {os.strerror(-rc)}")


class RawLog:
    """A whole file that is appended to and flushed, batch by batch."""

    def __init__(self, path: Path, size: int = 64 << 20) -> None:
        library = _library()
        out = library.ffi.new("struct raw_log **")
        _check(library.lib.raw_log_open(os.fsencode(path), size, out), "raw log")
        self._log = out[0]

    def __enter__(self) -> RawLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _library().lib.raw_log_close(self._log)

    @property
    def uses_dsync(self) -> bool:
        """True when flushes are pwritev2(RWF_DSYNC); known after the first append."""
        return bool(_library().lib.raw_log_uses_dsync(self._log))

    def append(self, payload: int, count: int) -> float:
        """Seconds for one of `count` batches of `payload` bytes, each flushed before the next."""
        library = _library()
        elapsed = library.ffi.new("uint64_t *")
        rc = library.lib.raw_log_append(self._log, payload, count, elapsed)
        _check(rc, "append and flush")
        return float(elapsed[0]) / 1e9 / count


@dataclass(frozen=True)
class Group:
    """A run of the raw group commit."""

    seconds: float  # for one record
    flushes: int
    records: int


def group_commit(path: Path, producers: int, processes: bool, each: int, record: int) -> Group:
    """`producers` threads or processes append `each` records of `record` bytes, sharing flushes."""
    library = _library()
    out = library.ffi.new("struct raw_group_result *")
    size = producers * each * ((record + BATCH_HEAD + PAGE - 1) // PAGE) * PAGE
    rc = library.lib.raw_group_commit(
        os.fsencode(path), size, producers, processes, each, record, out
    )
    _check(rc, "group commit")
    return Group(out.elapsed_ns / 1e9 / out.records, out.flushes, out.records)


def ping_pong(count: int, ask_on: int, answer_on: int) -> list[float]:
    """Seconds of each of `count` round trips between two processes on the given processors."""
    library = _library()
    times = library.ffi.new("uint64_t[]", count)
    _check(library.lib.raw_ping_pong(count, ask_on, answer_on, times), "futex ping-pong")
    return [value / 1e9 for value in times]


@dataclass(frozen=True)
class Restart:
    """A run of the restart limit."""

    seconds: float
    checkpoint_bytes: int
    journal_bytes: int


def restart(directory: Path, region: Path, region_bytes: int, index_bytes: int) -> Restart:
    """Reads what a restart reads, allocates `region_bytes` and writes `index_bytes` of them."""
    library = _library()
    out = library.ffi.new("struct raw_restart_result *")
    rc = library.lib.raw_restart(
        os.fsencode(directory), os.fsencode(region), region_bytes, index_bytes, out
    )
    _check(rc, "restart limit")
    return Restart(out.elapsed_ns / 1e9, out.checkpoint_bytes, out.journal_bytes)


def count_batches(directory: Path) -> int:
    """Flush batches with records in the journal of a queue manager's directory."""
    library = _library()
    out = library.ffi.new("struct raw_journal_count *")
    _check(library.lib.raw_journal_count(os.fsencode(directory), out), "counting flushes")
    return int(out.batches)


def create(directory: Path, region: Path, segment_bytes: int, region_bytes: int) -> float:
    """Seconds to make the files that a new queue manager cannot do without."""
    library = _library()
    elapsed = library.ffi.new("uint64_t *")
    rc = library.lib.raw_create(
        os.fsencode(directory), os.fsencode(region), segment_bytes, region_bytes, elapsed
    )
    _check(rc, "create limit")
    return float(elapsed[0]) / 1e9


def copy_pairs(size: int, count: int) -> float:
    """Seconds for two robust lock holds and two copies of `size` bytes."""
    library = _library()
    elapsed = library.ffi.new("uint64_t *")
    _check(library.lib.raw_copy_pairs(size, count, elapsed), "copy pairs")
    return float(elapsed[0]) / 1e9 / count


def copy_records(row: int, size: int, count: int) -> tuple[float, float]:
    """Seconds to copy a record of a row and a body in, and out, by a memcpy loop over `count`."""
    library = _library()
    into, out = library.ffi.new("uint64_t *"), library.ffi.new("uint64_t *")
    _check(library.lib.raw_copy_records(row, size, count, into, out), "copy records")
    return float(into[0]) / 1e9 / count, float(out[0]) / 1e9 / count


def binary_heap(depth: int, count: int) -> dict[str, float]:
    """Seconds of each operation on a binary heap of `depth` messages, by name."""
    library = _library()
    out = library.ffi.new("struct raw_index_result *")
    _check(library.lib.raw_binary_heap(depth, count, out), "binary heap")
    names = ("insert", "pop_insert", "remove_any", "back_out")
    return {name: float(getattr(out, name)) / 1e9 for name in names}
