"""Messages as lines of JSON.

    {"penstock": "messages", "version": 1, "id": "...", "queue_manager": "QM1", ...}
    {"queue": "ORDERS", "msg_id": "414d51...", "put_time": "2026-...Z", ..., "text": "3 bolts"}
    {"queue": "ORDERS", ..., "base64": "AAEC"}
    {"end": {"messages": 2}}

The first line is the header, the last one the end line: a file without it is not complete, because
its unload was ended before. The body is ``text`` where its bytes are printable UTF-8 and the
format is MQSTR (or the program asks for text whatever the format), else ``base64``; both give back
the same bytes. A line has no character that a terminal would obey. The other fields:
descriptor_fields.py.

A position is {"bytes": n, "messages": n}: the length of the file behind the header and so many
messages. For a reader it has also "crc", the CRC-32C of all those bytes, which a reader that is
positioned there compares: a file that was changed is refused.

Order of writing: a file gets its name when its header is on the disk, so a named file always has
one. sync() returns when all that was written is on the disk.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from .. import _engine
from ..batch.message_batch import MessageBatch
from ..batch.row_layout import Rows
from .descriptor_fields import BY_NAME, WrongField, dicts_of, fill_rows
from .errors import MessageFileError
from .file_lock import begin_file

VERSION = 1
LINE_MAX = 160 << 20  # bytes: a body of 100 MiB in base64, and its fields
_READ = 1 << 20  # bytes of one read
_END_MAX = 200  # bytes of an end line and more
_STRING = b"MQSTR   "
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_encode_ascii = json.JSONEncoder(ensure_ascii=True, separators=(",", ":")).encode


def _line(data: dict[str, Any]) -> bytes:
    text = _encode(data)
    if not text.isprintable():  # something that a terminal obeys, or that UTF-8 has no bytes for
        text = _encode_ascii(data).replace("\x7f", "\\u007f")
    return text.encode() + b"\n"


def _is_text(text: str) -> bool:
    return text.isprintable() or text.translate({9: 32, 10: 32, 13: 32}).isprintable()


def _set_body(message: dict[str, Any], body: bytes, text_wanted: bool) -> None:
    if text_wanted or not body:
        try:
            text = body.decode()
        except UnicodeDecodeError:
            pass
        else:
            if _is_text(text):
                message["text"] = text
                return
    message["base64"] = binascii.b2a_base64(body, newline=False).decode("ascii")


def lines_of(batch: MessageBatch, queue: str, as_text: bool) -> list[bytes]:
    """A line for each message."""
    rows = batch.descriptors
    formats = rows["format"].tolist()
    lines = []
    for at, fields in enumerate(dicts_of(rows)):
        message = {"queue": queue, **fields}
        _set_body(message, batch.body(at), as_text or formats[at] == _STRING)
        lines.append(_line(message))
    return lines


def sync_folder(path: Path) -> None:
    """Returns when the names in the folder of ``path`` are on the disk."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_header(line: bytes, file: str) -> dict[str, Any]:
    """The header. Raises MessageFileError."""
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("penstock") != "messages":
        raise MessageFileError(f'{file}, line 1: no header {{"penstock": "messages", ...}}')
    if header.get("version") != VERSION:
        text = f"version {header.get('version')!r:.40} of the file, this program reads {VERSION}"
        raise MessageFileError(f"{file}, line 1: {text}")
    return header


def _first_line(file: BinaryIO, name: str) -> tuple[bytes, dict[str, Any]]:
    """The first line, and the header in it. Raises MessageFileError; the file is closed then."""
    try:
        line = file.readline(LINE_MAX)
        return line, read_header(line, name)
    except BaseException:
        file.close()
        raise


class JsonLinesWriter:
    """Writes a file, or to standard output (path "-")."""

    def __init__(self, path: str, header: dict[str, Any], as_text: bool = False) -> None:
        """A new file, locked. Raises FileExistsError: there is one of that name; MessageFileError:
        another process begins it.
        """
        self._as_text = as_text
        self._messages = 0
        self.header = header
        line = _line(header)
        self._start = len(line)
        self._path = None if path == "-" else Path(path)
        if self._path is None:
            self._file: BinaryIO = os.fdopen(os.dup(1), "wb", _READ)
            self._file.write(line)
            return
        fd, begun = begin_file(self._path)
        self._file = os.fdopen(fd, "r+b", _READ)
        try:
            self._file.write(line)
            self._sync_data()
            begun.rename(self._path)
            sync_folder(self._path)
        except BaseException:
            self._file.close()
            raise

    @classmethod
    def reopen(cls, path: str, as_text: bool = False) -> JsonLinesWriter:
        """An unfinished file. Raises FileNotFoundError, MessageFileError."""
        writer = cls.__new__(cls)
        writer._as_text = as_text
        writer._path = Path(path)
        writer._messages = 0
        writer._file = open(path, "r+b", _READ)  # noqa: SIM115  closed by close()
        line, writer.header = _first_line(writer._file, path)
        writer._start = len(line)
        return writer

    def finished(self) -> int | None:
        """The messages of the end line; None without one."""
        size = self._file.seek(0, os.SEEK_END)
        self._file.seek(max(self._start, size - _END_MAX))
        last = self._file.read()
        if not last.endswith(b"\n"):
            return None
        return _end_of(last[:-1].rpartition(b"\n")[2])

    def is_empty(self) -> bool:
        """Whether nothing stands behind the header."""
        return self._file.seek(0, os.SEEK_END) == self._start

    def start(self) -> dict[str, Any]:
        """The position behind the header."""
        return {"bytes": self._start, "messages": 0}

    def go_to(self, position: dict[str, Any]) -> None:
        """Continues at a position; what stands behind it is removed.

        Raises:
            MessageFileError: the file is shorter.
        """
        size = self._file.seek(0, os.SEEK_END)
        if size < position["bytes"]:
            text = f"has {size} bytes, {position['bytes']} were committed"
            raise MessageFileError(f"{self._path}: the file {text}")
        self._file.seek(position["bytes"])
        self._file.truncate()
        self._messages = position["messages"]

    def append(self, queue: str, batch: MessageBatch) -> None:
        """Writes the messages of a batch."""
        self._file.write(b"".join(lines_of(batch, queue, self._as_text)))
        self._messages += len(batch)

    def sync(self) -> dict[str, Any]:
        """The position behind all that was written, once it is on the disk."""
        self._sync_data()
        if self._path is None:
            return {"messages": self._messages}
        return {"bytes": self._file.tell(), "messages": self._messages}

    def finish(self) -> None:
        """Writes the end line; it is on the disk on return."""
        self._file.write(_line({"end": {"messages": self._messages}}))
        self._sync_data()

    def _sync_data(self) -> None:
        self._file.flush()
        if self._path is not None:
            os.fsync(self._file.fileno())

    def fileno(self) -> int:
        """The descriptor, for locks."""
        return self._file.fileno()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _end_of(line: bytes) -> int | None:
    """The messages that an end line counts; None when it is none."""
    if not line.startswith(b'{"end":'):
        return None
    try:
        found = json.loads(line)["end"]["messages"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, int) else None


class JsonPart:
    """Messages that were read, in the order of the file.

    Attributes:
        queues: the queue of each; "" when its line names none.
        bodies: their bodies.
    """

    def __init__(self, file: str, line: int) -> None:
        """The first one is to be that of this line."""
        self._file = file
        self._line = line
        self._fields: list[dict[str, Any]] = []
        self.queues: list[str] = []
        self.bodies: list[bytes] = []

    def __len__(self) -> int:
        """The number of messages."""
        return len(self.bodies)

    def add(self, fields: dict[str, Any], body: bytes) -> None:
        """Adds the message of the next line."""
        self.queues.append(fields.pop("queue", ""))
        self._fields.append(fields)
        self.bodies.append(body)

    def fill(self, rows: Rows, chosen: Sequence[int]) -> None:
        """Sets the fields of the chosen messages in as many rows. Raises MessageFileError."""
        try:
            fill_rows(rows, [self._fields[at] for at in chosen])
        except WrongField as error:
            raise MessageFileError(f"{self.where(chosen[error.index])}: {error}") from None

    def has_time(self, chosen: Sequence[int]) -> list[bool]:
        """Whether each of the chosen messages says when it was put."""
        return ["put_time" in self._fields[at] for at in chosen]

    def where(self, index: int) -> str:
        """File and line of a message, for errors."""
        return f"{self._file}, line {self._line + index}"


class JsonLinesReader:
    """Reads a file, or standard input (path "-"), line by line."""

    def __init__(self, path: str, partial: bool = False) -> None:
        """partial: accept a file without end line, up to its last whole line.

        Raises:
            MessageFileError: it has no header that this reader knows.
        """
        self.name = "standard input" if path == "-" else path
        self._partial = partial
        if os.path.isdir(path):
            raise MessageFileError(f"{path}: a directory; load one of Parquet files with --parquet")
        fd = os.dup(0) if path == "-" else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._file: BinaryIO = os.fdopen(fd, "rb", _READ)
        line, self.header = _first_line(self._file, self.name)
        self._line = 1
        self._bytes = len(line)
        self._crc = _engine.crc32c(line)
        self._messages = 0
        self._ended = False
        if path != "-" and not partial:
            self._check_whole()

    def _check_whole(self) -> None:
        """Refuses a file without end line before anything of it is loaded."""
        size = os.fstat(self._file.fileno()).st_size
        tail = os.pread(self._file.fileno(), _END_MAX, max(0, size - _END_MAX))
        lines = tail.split(b"\n")
        if not lines[-1] and len(lines) > 1 and _end_of(lines[-2]) is not None:
            return
        try:
            while line := self._file.readline(LINE_MAX):
                if not line.endswith(b"\n"):
                    break
                self._line += 1
            self._check_end(line)
        finally:
            self._file.close()

    def fileno(self) -> int:
        """The descriptor, for locks."""
        return self._file.fileno()

    def position(self) -> dict[str, Any]:
        """Behind the line that was read last."""
        return {
            "bytes": self._bytes,
            "messages": self._messages,
            "line": self._line,
            "crc": self._crc,
            "ended": self._ended,
        }

    def go_to(self, position: dict[str, Any]) -> None:
        """Continues at a position. Raises MessageFileError: the file has changed before it."""
        self._file.seek(0)
        left, crc = position["bytes"], 0
        while left:
            block = self._file.read(min(left, _READ))
            if not block:
                break
            crc = _engine.crc32c(block, crc)
            left -= len(block)
        if left or crc != position["crc"]:
            text = f"the first {position['bytes']} bytes, which are loaded, have changed since"
            raise MessageFileError(f"{self.name}: {text}")
        self._bytes, self._messages = position["bytes"], position["messages"]
        self._line, self._crc, self._ended = position["line"], crc, position["ended"]

    def read(self, most: int, most_bytes: int) -> JsonPart:
        """The next messages, at most so many, and so many bytes of lines (one may be longer); none
        at the end.

        Raises:
            MessageFileError: a line is no message, or cut off; or the end line is missing.
        """
        part = JsonPart(self.name, self._line + 1)
        stop = self._bytes + most_bytes
        while len(part) < most and self._bytes < stop:
            line = self._file.readline(LINE_MAX)
            if not line.endswith(b"\n"):
                self._check_end(line)
                break
            if self._ended:
                text = f"{self.name}, line {self._line + 1}: a line behind the end line"
                raise MessageFileError(text)
            ended = _end_of(line)
            if ended is not None:
                self._take(line)
                self._check_count(ended)
                continue
            part.add(*self._message(line))
            self._take(line)
            self._messages += 1
        return part

    def _take(self, line: bytes) -> None:
        self._line += 1
        self._bytes += len(line)
        self._crc = _engine.crc32c(line, self._crc)

    def _check_end(self, rest: bytes) -> None:
        """The file ends without an end line, or in a line."""
        if self._partial or (self._ended and not rest):
            return
        where = f"{self.name}, line {self._line + 1}"
        if len(rest) >= LINE_MAX:
            raise MessageFileError(f"{where}: the line is longer than {LINE_MAX} bytes")
        if rest:
            raise MessageFileError(f"{where}: the line is cut off after {len(rest)} bytes")
        raise MessageFileError(
            f"{where}: the end line is missing: the unload was not finished, and its last messages "
            "may still be on their queues; finish it with --resume, or load with --partial"
        )

    def _check_count(self, messages: int) -> None:
        self._ended = True
        if messages != self._messages:
            text = f"{self._messages} messages stand before the end line, which says {messages}"
            raise MessageFileError(f"{self.name}, line {self._line}: {text}")

    def _message(self, line: bytes) -> tuple[dict[str, Any], bytes]:
        try:
            fields = json.loads(line)
            if not isinstance(fields, dict):
                raise ValueError("no object")
            return fields, _take_body(fields)
        except (ValueError, RecursionError) as error:
            text = f"no message: {error}"
            raise MessageFileError(f"{self.name}, line {self._line + 1}: {text}") from None

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _take_body(fields: dict[str, Any]) -> bytes:
    """The body, removed from the fields, of which all others must be known. Raises ValueError."""
    text, coded = fields.pop("text", None), fields.pop("base64", None)
    unknown = fields.keys() - BY_NAME.keys() - {"queue"}
    if unknown:
        raise ValueError(f"unknown field {min(unknown)!r:.60}")
    if not isinstance(fields.get("queue", ""), str):
        raise ValueError("queue is no text")
    if (text is None) == (coded is None):
        raise ValueError("it needs either text or base64")
    value = coded if text is None else text
    if not isinstance(value, str):
        raise ValueError("the body is no text")
    if text is not None:
        return value.encode()
    try:
        return base64.b64decode(value.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(f"base64: {error}") from None
