"""Messages as Parquet: a directory with a file for each unit of work, and one that says what it is.

    ORDERS.parquet/_penstock.json       the header; "messages" in it: the unload is complete
    ORDERS.parquet/part-000001.parquet  messages, one a row
    ORDERS.parquet/*.begun              half made; never read

Libraries that read directories of Parquet files pass over names that begin with "_". The columns
are those of a message batch (penstock.batch), ``body``, and ``queue``. PyArrow is needed.

A position is {"parts": n, "messages": n}, for a reader with "rows" read of the part behind those.

Order of writing: a part gets its name when it is on the disk. So a named part is whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from ..batch.message_batch import MessageBatch
from ..batch.row_layout import Rows
from .descriptor_fields import FIELDS, WrongField
from .errors import MessageFileError
from .file_lock import BEGUN, lock_file
from .json_lines import read_header, sync_folder
from .parquet_columns import WrongColumn, bytes_of, column_of, texts_of, values_of

_HEADER = "_penstock.json"
_ROW_GROUP = 100_000


def _arrow() -> tuple[Any, Any]:
    """pyarrow and pyarrow.parquet. Raises MessageFileError: they are not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        text = "Parquet files need PyArrow: pip install 'penstock[parquet]'"
        raise MessageFileError(f"{text} ({error})") from error
    return pyarrow, pyarrow.parquet


def _part(number: int) -> str:
    return f"part-{number:06d}.parquet"


def _write_named(path: Path, data: bytes) -> None:
    """Gives a file its name when it is on the disk."""
    begun = path.with_name(path.name + BEGUN)
    with open(begun, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    begun.rename(path)
    sync_folder(path)


class ParquetWriter:
    """Writes a directory of parts."""

    def __init__(self, path: str, header: dict[str, Any]) -> None:
        """A new directory, locked, which may exist when it is empty. Raises FileExistsError;
        MessageFileError: another process begins it.
        """
        _arrow()
        self._begin(path, header)
        self._path.mkdir(parents=False, exist_ok=True)
        self._fd = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            lock_file(self._fd, path)  # the look that follows holds until it is unlocked
            if any(not entry.name.endswith(BEGUN) for entry in self._path.iterdir()):
                raise FileExistsError(17, "there are files in that directory", path)
            sync_folder(self._path)
            self._write_header()
        except BaseException:
            os.close(self._fd)
            raise

    def _begin(self, path: str, header: dict[str, Any]) -> None:
        self._path = Path(path)
        self.header = header
        self._parts = self._messages = 0
        self._tables: list[Any] = []

    def _write_header(self) -> None:
        _write_named(self._path / _HEADER, json.dumps(self.header).encode() + b"\n")

    @classmethod
    def reopen(cls, path: str) -> ParquetWriter:
        """An unfinished directory. Raises FileNotFoundError, MessageFileError."""
        _arrow()
        writer = cls.__new__(cls)
        writer._begin(path, _directory_header(path))
        writer._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return writer

    def finished(self) -> int | None:
        """The messages of a complete directory; None when it is not complete."""
        messages: int | None = self.header.get("messages")
        return messages

    def is_empty(self) -> bool:
        """Whether there is no part."""
        return not (self._path / _part(1)).exists()

    def start(self) -> dict[str, Any]:
        """The position before the first part."""
        return {"parts": 0, "messages": 0}

    def go_to(self, position: dict[str, Any]) -> None:
        """Continues at a position; later parts are removed. Raises MessageFileError."""
        for number in range(1, position["parts"] + 1):
            if not (self._path / _part(number)).exists():
                raise MessageFileError(f"{self._path / _part(number)} is missing")
        self._parts, self._messages = position["parts"], position["messages"]
        for path in sorted(self._path.glob("part-*")):
            if path.name > _part(self._parts):
                path.unlink()
        sync_folder(self._path / _HEADER)

    def append(self, queue: str, batch: MessageBatch) -> None:
        """Adds the messages of a batch to the part."""
        pa, _ = _arrow()
        made = pa.record_batch(batch.arrow())
        names = pa.array([queue] * len(batch), pa.string())
        columns = [names, *made.columns]
        self._tables.append(
            pa.Table.from_batches([pa.record_batch(columns, ["queue", *made.schema.names])])
        )
        self._messages += len(batch)

    def sync(self) -> dict[str, Any]:
        """The position behind all that was appended, once it is on the disk."""
        pa, pq = _arrow()
        if self._tables:
            sink = pa.BufferOutputStream()
            pq.write_table(pa.concat_tables(self._tables), sink, row_group_size=_ROW_GROUP)
            self._tables.clear()
            _write_named(self._path / _part(self._parts + 1), sink.getvalue().to_pybytes())
            self._parts += 1
        return {"parts": self._parts, "messages": self._messages}

    def finish(self) -> None:
        """Says in the header that all is there; it is on the disk on return."""
        self.sync()
        self.header = {**self.header, "messages": self._messages}
        self._write_header()

    def fileno(self) -> int:
        """A descriptor, for locks."""
        return self._fd

    def close(self) -> None:
        """Closes the directory."""
        os.close(self._fd)


def _directory_header(path: str) -> dict[str, Any]:
    try:
        line = (Path(path) / _HEADER).read_bytes()
    except FileNotFoundError:
        raise MessageFileError(f"{path}: no file {_HEADER} in it") from None
    return read_header(line, str(Path(path) / _HEADER))


class ParquetPart:
    """Messages that were read, in the order of the file; as :class:`.json_lines.JsonPart`."""

    def __init__(self, file: str, first: int, batch: Any) -> None:
        """A record batch whose first row is the file's row ``first``, counted from 1."""
        self._file, self._first, self._batch = file, first, batch
        self.queues: list[str | None] = []
        self.bodies: list[bytes] = []
        if batch is None:
            return
        try:
            body, queue = column_of(batch, "body"), column_of(batch, "queue")
            if body is None:
                raise WrongColumn("there is no column 'body'")
            bodies = bytes_of("body", body)
            self.queues = [None] * len(bodies) if queue is None else texts_of("queue", queue)
        except WrongColumn as error:
            raise MessageFileError(f"{file}: {error}") from None
        if None in bodies:
            raise MessageFileError(f"{self.where(bodies.index(None))}: the body is null")
        self.bodies = cast("list[bytes]", bodies)

    def __len__(self) -> int:
        """The number of messages."""
        return len(self.bodies)

    def fill(self, rows: Rows, chosen: Sequence[int]) -> None:
        """Sets the fields of the chosen messages in as many rows. Raises MessageFileError."""
        pa, _ = _arrow()
        part = self._batch.take(pa.array(list(chosen), pa.int64()))
        try:
            for field in FIELDS:
                column = column_of(part, field.name) if field.loaded else None
                if column is None:
                    continue
                valid, values = values_of(field, column, rows.dtype[field.row])
                rows[field.row][valid] = values[valid]
                if field.extension:
                    rows["has_ext"] |= valid & (values != field.initial)
        except WrongColumn as error:
            raise MessageFileError(f"{self._file}: {error}") from None
        except WrongField as error:
            raise MessageFileError(f"{self.where(chosen[error.index])}: {error}") from None

    def has_time(self, chosen: Sequence[int]) -> list[bool]:
        """Whether each of the chosen messages says when it was put."""
        if "put_time" not in self._batch.schema.names:
            return [False] * len(chosen)
        valid = self._batch.column("put_time").is_valid().to_pylist()
        return [valid[at] for at in chosen]

    def where(self, index: int) -> str:
        """File and row of a message, for errors."""
        return f"{self._file}, row {self._first + index}"


class ParquetReader:
    """Reads a directory of parts, or one file of such a directory."""

    def __init__(self, path: str, partial: bool = False) -> None:
        """partial: accept a directory whose unload was not finished.

        Raises:
            MessageFileError: it is none, or not complete.
        """
        _, self._parquet = _arrow()
        self.name = path
        if os.path.isdir(path):
            self.header = _directory_header(path)
            self._files = sorted(str(part) for part in Path(path).glob("part-*.parquet"))
            if "messages" not in self.header and not partial:
                text = "the unload was not finished: finish it with --resume, or load with "
                raise MessageFileError(f"{path}: {text}--partial")
        else:
            self.header, self._files = {}, [path]
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._parts = self._rows = self._messages = 0
        self._file: Any = None
        self._left: Any = None

    def fileno(self) -> int:
        """A descriptor, for locks."""
        return self._fd

    def position(self) -> dict[str, Any]:
        """Behind the row that was read last."""
        return {"parts": self._parts, "rows": self._rows, "messages": self._messages}

    def go_to(self, position: dict[str, Any]) -> None:
        """Continues at a position."""
        self._parts, self._messages = position["parts"], position["messages"]
        self._rows, self._left, self._file = 0, None, None
        skip = position["rows"]
        while skip:
            batch = self._next_batch()
            if batch is None:
                raise MessageFileError(f"{self.name}: fewer rows than were loaded from it")
            taken = min(skip, batch.num_rows)
            self._left = batch.slice(taken) if taken < batch.num_rows else None
            self._rows += taken
            skip -= taken

    def _next_batch(self) -> Any:
        """Rows of the present part, from where it was left on; None at its end."""
        if self._left is not None:
            batch, self._left = self._left, None
            return batch
        if self._file is None:
            if self._parts == len(self._files):
                return None
            self._file = self._batches(self._files[self._parts])
        return next(self._file, None)

    def _batches(self, path: str) -> Any:
        pa, _ = _arrow()
        try:
            yield from self._parquet.ParquetFile(path).iter_batches(batch_size=1024)
        except (OSError, pa.ArrowException) as error:
            raise MessageFileError(f"{path}: {error}") from error

    def read(self, most: int, most_bytes: int) -> ParquetPart:
        """The next messages, at most so many, and so many bytes (one may be longer), of one part;
        none at the end. Raises MessageFileError.
        """
        batch = self._next_batch()
        while batch is None:
            if self._parts == len(self._files):
                return ParquetPart(self.name, 1, None)
            self._parts, self._rows, self._file = self._parts + 1, 0, None
            batch = self._next_batch()
        count = min(most, batch.num_rows)
        if batch.nbytes > most_bytes:
            count = max(1, min(count, count * most_bytes // batch.nbytes))
        self._left = batch.slice(count) if count < batch.num_rows else None
        part = ParquetPart(self._files[self._parts], self._rows + 1, batch.slice(0, count))
        self._rows += count
        self._messages += count
        return part

    def close(self) -> None:
        """Closes what is open."""
        os.close(self._fd)
