"""Lines in, lines out, and the rule that gives a line its priority. Bytes are never decoded."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType

READ_SIZE = 1 << 20  # bytes of one read(2)
LINE_MAX = 104857600  # bytes, the largest MAXMSGL; no queue takes a longer line


class LineTooLong(ValueError):
    """A line that no queue could take; reading stops there, so memory stays bounded."""

    def __init__(self) -> None:
        super().__init__(f"the line is longer than {LINE_MAX} bytes")


class WaitForInput:
    """Waits until a descriptor can be read; every signal handler runs meanwhile, whenever it comes.

    A read that waits by itself sleeps on when the signal arrives between the interpreter's last
    look and the system call: the handler in C has only set a flag. It also writes to the wakeup
    descriptor, which this waits for as well. A context manager; in the main thread, which handles
    signals, else it waits for the input alone.
    """

    def __init__(self) -> None:
        self._signals: int | None = None
        self._end = ExitStack()

    def __enter__(self) -> WaitForInput:
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._end.callback(os.close, writer)
        self._end.callback(os.close, reader)
        try:
            before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        except ValueError:  # not the main thread
            return self
        self._end.callback(signal.set_wakeup_fd, before)
        self._signals = reader
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.close()

    def __call__(self, fd: int) -> None:
        """Returns when the descriptor can be read, or is at its end."""
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if self._signals is not None:
            poll.register(self._signals, select.POLLIN)
        while not any(ready == fd for ready, _ in poll.poll()):
            assert self._signals is not None
            os.read(self._signals, 512)  # the handlers have run before the next wait


def read_lines(
    fd: int,
    *,
    idle: Callable[[], None] | None = None,
    wait: Callable[[int], None] = lambda fd: None,
    limit: int = LINE_MAX,
) -> Iterator[bytes]:
    """Yields the lines of a descriptor without their newline, every other byte unchanged.

    A last line without a newline counts; an empty line is ``b""``. Before a read that would block,
    ``idle`` is called, so that the lines read so far can be processed without delay; before each
    read ``wait``, see :class:`WaitForInput`.

    Raises:
        LineTooLong: after the lines before it were yielded.
        OSError: from read(2).
    """
    pieces: list[bytes] = []
    length = 0
    while True:
        if idle is not None and not select.select([fd], [], [], 0)[0]:
            idle()
        wait(fd)
        block = os.read(fd, READ_SIZE)
        if not block:
            break
        first, *rest = block.split(b"\n")
        pieces.append(first)
        length += len(first)
        if length > limit:
            raise LineTooLong
        if not rest:
            continue
        yield b"".join(pieces) if len(pieces) > 1 else first
        last = rest.pop()
        for line in rest:
            if len(line) > limit:
                raise LineTooLong
            yield line
        pieces = [last]
        length = len(last)
    if length:
        yield b"".join(pieces)


def write_all(fd: int, data: bytes) -> None:
    """Returns when the descriptor has taken every byte.

    Raises OSError (BrokenPipeError) otherwise.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


@dataclass(frozen=True, slots=True)
class PriorityMap:
    """Words and priorities; the first word of the map that occurs in a line decides."""

    rules: tuple[tuple[bytes, int], ...]

    @classmethod
    def parse(cls, text: str) -> PriorityMap:
        """Reads ``ERROR=9,WARN=6``. The word is all before the last ``=`` of its item.

        Raises:
            ValueError: names the item that is wrong.
        """
        rules = []
        for item in text.split(","):
            word, equals, number = item.rpartition("=")
            if not equals or not word or not (number.isascii() and number.isdigit()):
                raise ValueError(f"{item!r} is not WORD=PRIORITY")
            if int(number) > 0x7FFFFFFF:
                raise ValueError(f"priority {number} of {word!r} does not fit 32 bits")
            rules.append((os.fsencode(word), int(number)))
        return cls(tuple(rules))

    def priority_of(self, line: bytes, default: int | None = None) -> int | None:
        """The priority of a line; ``default`` when no word of the map occurs in it."""
        for word, priority in self.rules:
            if word in line:
                return priority
        return default

    def __str__(self) -> str:
        return ",".join(f"{os.fsdecode(word)}={priority}" for word, priority in self.rules)
