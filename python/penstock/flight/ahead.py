"""Reading ahead: the next record batches of an answer are made while one is sent.

Making a row takes longer than sending it, and both can use a processor of their own. The first one
is made when it is asked for, so an answer of one batch has no thread; a client that takes no more
holds one batch besides the one that it is sent.

Locks: none. From the second batch on the thread alone touches the iterator, and closes it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

__all__ = ["Ahead"]

_MOST = 1  # batches that are ready or being made


class Ahead(Iterator[Any]):
    """The items of an iterator, made in a thread ahead of being asked for."""

    def __init__(self, made: Iterator[Any]) -> None:
        """Makes nothing yet."""
        self._made = made
        self._is_begun = self._is_ended = self._is_closed = False
        self._thread: threading.Thread | None = None
        self._room = threading.Semaphore(_MOST)
        self._ready: SimpleQueue[Any] = SimpleQueue()  # items; an exception: the last one

    def __next__(self) -> Any:
        """The next item. Raises what the iterator raised."""
        if not self._is_begun:
            self._is_begun = True
            return next(self._made)
        if self._is_ended:
            raise StopIteration
        if self._thread is None:
            self._thread = threading.Thread(target=self._make, daemon=True)
            self._thread.start()
        item = self._ready.get()
        self._is_ended = isinstance(item, BaseException)
        if self._is_ended:
            raise item
        self._room.release()
        return item

    def close(self) -> None:
        """Closes the iterator, if it can be: at once, or when it has made its present item."""
        self._is_closed = True
        if self._thread is None:
            self._close_made()
        else:
            self._room.release()

    def _make(self) -> None:
        item: Any = None
        while not isinstance(item, BaseException):
            self._room.acquire()
            if self._is_closed:
                break
            try:
                item = next(self._made)
            except BaseException as error:
                item = error
            self._ready.put(item)
        self._close_made()

    def _close_made(self) -> None:
        close = getattr(self._made, "close", None)
        if close is not None:
            close()
