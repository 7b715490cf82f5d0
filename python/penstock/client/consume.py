"""Consuming a queue: ``Queue.consume()``, as an iterator and around a handler.

A message is got in a unit of work. That the next one is asked for, or that the handler returns,
commits it; an exception, or the end of the loop, backs it out with the delay that the retry policy
says. The delay is the message's own (Unit.backout()): it holds no unit of work and no thread, and
others are got before it. It survives restarts.

Prefetch. With ``prefetch`` n the consumer has up to n messages at a time whose work is not
committed: the one in progress, and those that a second thread commits meanwhile (commits.py). A
message that failed is backed out alone, as each has a unit of work of its own.

Set aside. Before a message is handed out its BackoutCount is compared with the policy's ``most``,
or with BOTHRESH of the queue. One that has failed too often goes, in one unit with its get, to the
queue that BOQNAME names, as it was put, or to the dead-letter queue with the reason 2362. When
there is neither, or both refuse it, it stays, is tried again after the longest wait, and a warning
says so: a poisonous message is never lost and never stops the others.

Signals. ``run()`` in the main thread takes SIGTERM and SIGINT: the first one ends it when the
handlers in progress have returned, the second one has the effect that it has without penstock. A
loop in the main thread takes SIGTERM, where the program has no handler of its own for it: the loop
ends when the message in progress is done, and is committed. A Ctrl-C is for the body of the loop.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from .._engine import QueueHandle
from .._mqi_constants.calls import MQOO_INPUT_SHARED, MQOO_OUTPUT
from .._mqi_constants.selectors import MQCA_BACKOUT_REQ_Q_NAME, MQIA_BACKOUT_THRESHOLD
from ..constants import ReasonCode
from ..errors import InvalidType, InvalidValue, MQError
from .commits import CommitThread
from .retry import Retry

if TYPE_CHECKING:
    from .._engine import Message, Unit

WORKERS_MOST = 1000  # threads, or tasks
PREFETCH_MOST = 10_000  # messages whose work is not committed
_SLICE = 0.2  # seconds of a wait, after which a thread looks whether it is to stop
_STANDARD = Retry(1.0, factor=2.0, longest=300.0, jitter=0.1)
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_log = logging.getLogger("penstock")


class Consumer:
    """What ``queue.consume()`` returns: an iterator over messages, and a decorator for handlers.

    As an iterator it has one message in progress at a time. ``stop()``, from any thread, ends it
    when that one is done.
    """

    def __init__(
        self,
        queue: QueueHandle,
        wait: float | None,
        limit: int | None,
        retry: Retry | None,
        threads: int,
        prefetch: int = 1,
    ) -> None:
        self.retry = checked(wait, limit, retry)
        check_workers("threads", threads)
        check_prefetch(prefetch)
        queue.check_open()
        self.queue = queue
        self.wait = wait
        self.limit = limit
        self.threads = threads
        self.prefetch = prefetch
        self.handler: Callable[[Message], Any] | None = None
        self._ended = False  # read by all threads between two messages
        self._lock = threading.Lock()
        self._taken = 0  # of the limit
        self._iterator: Iterator[Message] | None = None

    # ---- an iterator ----

    def __iter__(self) -> Iterator[Message]:
        """The messages, each committed when the next one is asked for."""
        return self._messages(self.queue)

    def __next__(self) -> Message:
        if self._iterator is None:
            self._iterator = self._messages(self.queue)
        return next(self._iterator)

    @contextmanager
    def _ended_by_sigterm(self) -> Iterator[None]:
        """In the main thread, where nobody else takes that signal."""
        main = threading.current_thread() is threading.main_thread()
        if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            yield
            return
        end = self._on_signal({signal.SIGTERM: signal.SIG_DFL})
        signal.signal(signal.SIGTERM, end)
        try:
            yield
        finally:
            if signal.getsignal(signal.SIGTERM) is end:  # it has not come
                with suppress(ValueError):  # an abandoned loop that another thread clears away
                    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _messages(self, queue: QueueHandle) -> Iterator[Message]:
        get, limit = queue.get, self.limit
        behind = CommitThread(self.prefetch - 1) if self.prefetch > 1 else None
        with (
            self._ended_by_sigterm(),
            behind or nullcontext(),
            queue.connection.transaction() as unit,
        ):
            commit = unit.commit if behind is None else partial(behind.commit, unit)
            while not self._ended and (limit is None or self._take_one()):
                message: Message | None = get(0, default=None)
                if message is None:
                    message = self._next_message(queue)
                    if message is None:
                        return
                if message.backout_count and self._is_set_aside(queue, message, unit):
                    continue
                try:
                    yield message
                except BaseException:
                    if unit.is_open:  # close() ends it, too, as at the exit of the interpreter
                        unit.backout(wait_of(self.retry, message))
                    raise
                commit()

    def _is_set_aside(self, queue: QueueHandle, message: Message, unit: Unit) -> bool:
        fate = set_aside(queue, message, unit, self.retry)
        if fate is Fate.TRY:
            return False
        with self._lock:
            self._taken -= 1
        if fate is Fate.MOVED:
            unit.commit()
        return True

    def _take_one(self) -> bool:
        """False: the limit is reached."""
        assert self.limit is not None
        with self._lock:
            self._taken += 1
            return self._taken <= self.limit

    def _next_message(self, queue: QueueHandle) -> Message | None:
        """None: none came in time, or stop() was called."""
        left = self.wait
        while not self._ended:
            part = _SLICE if left is None else min(left, _SLICE)
            message: Message | None = queue.get(part, default=None)
            if message is not None:
                return message
            if left is not None:
                left -= part
                if left <= 0:
                    return None
        return None

    # ---- around a handler ----

    def __call__(self, handler: Callable[[Message], Any]) -> Consumer:
        """Decorates a handler: ``run()`` calls it with each message."""
        if not callable(handler):
            raise InvalidType(
                ReasonCode.OPTIONS_ERROR, f"handler is a callable, not {type(handler).__name__}"
            )
        self.handler = handler
        return self

    def stop(self) -> None:
        """Ends the consumer when the handlers in progress have returned."""
        self._ended = True

    def run(self) -> None:
        """Calls the handler with messages, in ``threads`` threads, until none came within ``wait``
        seconds, ``limit`` messages are done, or ``stop()`` or a signal ends it. What a handler
        raises is logged (logger ``penstock``), and its message is tried again.

        Raises:
            MQError: of a get or a commit, when the handlers in progress have returned.
        """
        if self.handler is None:
            raise InvalidValue(ReasonCode.OPTIONS_ERROR, "consume() has decorated no handler yet")
        main = threading.current_thread() is threading.main_thread()
        before = {number: signal.getsignal(number) for number in _SIGNALS} if main else {}
        for number in before:
            signal.signal(number, self._on_signal(before))
        failures: list[BaseException] = []
        others = [
            threading.Thread(target=self._work, args=(failures,), daemon=True)
            for _ in range(self.threads)
        ]
        try:
            for thread in others:
                thread.start()
            for thread in others:
                while thread.is_alive():
                    thread.join(_SLICE)
        finally:
            self._ended = True
            for number, handler in before.items():
                signal.signal(number, handler)
        if failures:
            raise failures[0]

    def _on_signal(self, before: dict[signal.Signals, Any]) -> Callable[[int, Any], None]:
        def end(number: int, frame: Any) -> None:
            del frame
            self._ended = True
            for other, handler in before.items():  # the second one has its usual effect
                signal.signal(other, handler if handler is not None else signal.SIG_DFL)

        return end

    def _work(self, failures: list[BaseException]) -> None:
        """One thread, with a handle of its own."""
        handler = self.handler
        assert handler is not None
        try:
            with _open_another(self.queue, self.queue.name, MQOO_INPUT_SHARED) as queue:
                self._handle_all(queue, handler)
        except BaseException as error:
            failures.append(error)
            self._ended = True

    def _handle_all(self, queue: QueueHandle, handler: Callable[[Message], Any]) -> None:
        while not self._ended:
            messages = self._messages(queue)
            for message in messages:
                try:
                    handler(message)
                except Exception as error:
                    _log.warning("queue %s: the handler of %s failed: %r", queue.name, message,
                                 error, exc_info=True)  # fmt: skip
                    _fail(messages, error)
                    break
            else:
                return


def checked(wait: Any, limit: Any, retry: Any) -> Retry:
    """The policy; raises InvalidType, InvalidValue: 2046, 2090 for arguments that are none."""
    if retry is not None and not isinstance(retry, Retry):
        raise InvalidType(
            ReasonCode.OPTIONS_ERROR, f"retry is a penstock.Retry, not {type(retry).__name__}"
        )
    if limit is not None and (type(limit) is not int or limit < 0):
        raise InvalidValue(
            ReasonCode.OPTIONS_ERROR, f"limit is a number of messages or None, not {limit!r}"
        )
    if wait is not None:
        if isinstance(wait, bool) or not isinstance(wait, (int, float)):
            raise InvalidType(
                ReasonCode.WAIT_INTERVAL_ERROR,
                f"wait is a number of seconds or None, not {type(wait).__name__}: {wait!r}",
            )
        if not wait >= 0:
            raise InvalidValue(
                ReasonCode.WAIT_INTERVAL_ERROR, f"wait {wait!r} is negative or no number"
            )
    return _STANDARD if retry is None else retry


def check_workers(name: str, count: Any) -> None:
    """Raises InvalidValue: 2046."""
    if type(count) is not int or not 1 <= count <= WORKERS_MOST:
        raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"{name} {count!r} is not 1 to {WORKERS_MOST}")


def check_prefetch(count: Any) -> None:
    """Raises InvalidValue: 2046."""
    if type(count) is not int or not 1 <= count <= PREFETCH_MOST:
        raise InvalidValue(
            ReasonCode.OPTIONS_ERROR, f"prefetch {count!r} is not 1 to {PREFETCH_MOST}"
        )


def wait_of(retry: Retry, message: Message) -> float:
    """Seconds that the message waits which has failed now."""
    failures = message.backout_count + 1
    return 0.0 if retry.most is not None and failures > retry.most else retry.wait(failures)


# ---- messages that have failed too often ----


class Fate(Enum):
    """Of a message that was got: to be worked on; put on another queue, which the caller commits;
    or back on its queue, where it waits.
    """

    TRY = 0
    MOVED = 1
    WAITS = 2


def set_aside(queue: QueueHandle, message: Message, unit: Unit, retry: Retry) -> Fate:
    """Whether the message, which the unit of this thread or task has got, has failed too often."""
    if not message.backout_count:
        return Fate.TRY
    threshold, target = queue.connection.values(
        *queue.slot, (MQIA_BACKOUT_THRESHOLD, MQCA_BACKOUT_REQ_Q_NAME)
    )
    if retry.most is not None:
        spent = message.backout_count > retry.most
    else:
        spent = bool(threshold) and message.backout_count >= int(threshold or 0)
    if not spent:
        return Fate.TRY
    for put in (_to_backout_queue, _to_dead_letters):
        try:
            if put(queue, message, str(target or "").strip()):
                return Fate.MOVED
        except MQError as error:
            _log.warning("queue %s: %s, which has failed too often: %s", queue.name, message,
                         error)  # fmt: skip
    _log.warning(
        "queue %s: %s has failed %d times, and neither BOQNAME nor DEADQ takes it; it is tried "
        "again in %s s", queue.name, message, message.backout_count, retry.longest,
    )  # fmt: skip
    unit.backout(retry.longest)
    return Fate.WAITS


def _to_backout_queue(queue: QueueHandle, message: Message, name: str) -> bool:
    if not name:
        return False
    with _open_another(queue, name, MQOO_OUTPUT) as target:
        target.put_again(message, message.data, None)
    return True


def _to_dead_letters(queue: QueueHandle, message: Message, name: str) -> bool:
    del name
    manager: Any = queue.connection  # a QueueManager
    manager.dead_letter(message, int(ReasonCode.BACKOUT_THRESHOLD_REACHED), queue=queue.name)
    return True


@contextmanager
def _open_another(queue: QueueHandle, name: str, options: int) -> Iterator[QueueHandle]:
    """Another handle of the connection of ``queue``, closed at the end of the block."""
    handle = QueueHandle(queue.connection, name, options)
    try:
        yield handle
    finally:
        handle.shut()


def _fail(messages: Iterator[Message], error: Exception) -> None:
    """The message in progress is backed out, as if the loop had raised."""
    try:
        messages.throw(error)  # type: ignore[attr-defined]
    except Exception as raised:
        if raised is not error:
            raise
