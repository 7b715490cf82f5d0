"""For whom a process does the work of the data source.

Usually for itself: for the Spark application above it, with the rights of its user. The server of
penstock.spark.remote does it for clients: what one may do, how its application is called and where
warnings go is different in each call, so it belongs to the context of the call (contextvars).
"""

from __future__ import annotations

import contextvars
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from . import host

__all__ = ["Acting", "acting_for", "application", "check", "inherited", "sees", "steps", "warn"]

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Acting:
    """A client.

    Attributes:
        application: The name of its Spark application.
        check: Raises MQError, 2035, unless it has a right (browse, get, put) on a queue.
        sees: Whether a queue is one of its own.
        warnings: What it is to be told.
    """

    application: str
    check: Callable[[str, str], None]
    sees: Callable[[str], bool]
    warnings: list[str] = field(default_factory=list)


_current: contextvars.ContextVar[Acting | None] = contextvars.ContextVar("acting", default=None)


@contextmanager
def acting_for(client: Acting) -> Iterator[None]:
    """In the block this thread works for a client."""
    token = _current.set(client)
    try:
        yield
    finally:
        _current.reset(token)


def application() -> str | None:
    """The name of the Spark application that is worked for; None: none."""
    client = _current.get()
    return client.application if client is not None else host.application()


def check(queue: str, right: str) -> None:
    """Raises MQError, 2035, unless a client has the right on the queue."""
    client = _current.get()
    if client is not None:
        client.check(queue, right)


def sees(queue: str) -> bool:
    """Whether a queue that fits a pattern is meant."""
    client = _current.get()
    return client is None or client.sees(queue)


def warn(text: str, stacklevel: int = 2) -> None:
    """Warns the user, wherever the driver is."""
    client = _current.get()
    if client is not None:
        client.warnings.append(text)
        return
    warnings.warn(text, RuntimeWarning, stacklevel=stacklevel + 1)


def inherited(work: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """The same for another thread, which then works for whom this one does now."""
    context = contextvars.copy_context()

    def run(*given: _Given.args, **named: _Given.kwargs) -> _Made:
        return context.run(work, *given, **named)

    return run


def steps(items: Iterator[_Made]) -> Iterator[_Made]:
    """The same items, each made for whom this thread works now, whichever thread asks for it."""
    context = contextvars.copy_context()
    try:
        while True:
            try:
                item = context.run(next, items)
            except StopIteration:
                return
            yield item
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            context.run(close)
