"""An open queue. ``put`` and ``get``, the calls on the hot path, are in the engine."""

from __future__ import annotations

from .._engine import Message, QueueHandle, batch_get_quick, batch_put_quick, newest_number
from .._mqi_constants.calls import MQCO_DELETE_PURGE, MQOO_BROWSE
from ..constants import ReasonCode
from ..errors import NoMessageAvailable, OptionNotValidForType
from .interface import interface

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime
    from types import TracebackType
    from typing import Any, ClassVar

    from typing_extensions import Buffer

    from .._engine import Unit
    from ..batch import BatchResult, MessageBatch
    from .consume import Consumer
    from .retry import Retry
    from .status import QueueStatus

_OF_ENGINE = frozenset(("closed", "connection", "get", "name", "put"))
_BROWSE, _PURGE = MQOO_BROWSE, MQCO_DELETE_PURGE
_FIELDS = (  # of put_batch()
    "priority", "persistent", "msg_id", "correl_id", "expiry", "reply_to_q", "reply_to_qmgr",
    "group_id", "format", "msg_type", "report", "feedback", "encoding", "ccsid", "msg_seq_number",
    "msg_flags", "user_identifier", "appl_identity_data", "put_time_us", "delay", "at",
)  # fmt: skip


class Queue(QueueHandle):
    """A queue opened by ``qm.open()`` or ``qm.queue()``; a context manager. Thread-safe.

    As a collection it shows its messages and takes none: ``len(queue)`` is the depth, ``for message
    in queue`` is ``queue.browse()``. It is true also when it is empty.
    """

    __slots__ = ()
    __contains__: ClassVar[None] = None  # "in" would compare every message, and find none

    def __enter__(self) -> Queue:
        """The queue itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the handle."""
        self.close()

    def close(self, delete: bool = False, purge: bool = False) -> None:
        """Closes the handle; nothing when it is closed already. Units of work stay open.

        Closing the creating handle deletes a temporary dynamic queue with its messages. ``delete``
        deletes a permanent dynamic queue that is empty, ``purge`` one with its messages.

        Raises:
            OptionNotValidForType: 2045: the queue is not dynamic, or temporary and not this
                handle's; the handle stays open.
            QueueNotEmpty: 2055: messages, or uncommitted ones, are on it; the handle stays open.
        """
        if self.is_remote and (delete or purge):
            raise OptionNotValidForType(
                ReasonCode.OPTION_NOT_VALID_FOR_TYPE,
                f"{self.name} is a remote queue: a handle can close it, not delete it",
            )
        self.shut(_PURGE if purge else int(delete))

    @property
    def depth(self) -> int:
        """Messages present, with those put by open units of work, without those got by them."""
        return self.counts()["depth"]

    def __len__(self) -> int:
        """``depth``."""
        return self.depth

    def __bool__(self) -> bool:
        """True: a handle, whatever is on the queue."""
        return True

    def __iter__(self) -> Iterator[Message]:
        """``browse()``: copies of the messages that are there; get() takes them."""
        return self.browse()

    def status(self) -> QueueStatus:
        """Depth, open handles, waits and counts."""
        from .status import QueueStatus

        return QueueStatus(name=self.name, **self.counts(oldest=True))

    def browse(
        self,
        *,
        msg_id: bytes | None = None,
        correl_id: bytes | None = None,
        group_id: bytes | None = None,
        wait: float | None = 0,
        delayed: bool = False,
    ) -> Iterator[Message]:
        """Iterates over the matching messages without taking them, in the order of get().

        Each iterator has its own cursor. Messages that arrive behind the cursor are included. The
        iteration ends when no message came within ``wait`` seconds (None = no limit). ``delayed``:
        messages that are not due yet are shown, too, at their positions; ``message.due`` says when.

        Raises:
            ClosedHandle: 2019: the queue is closed.
        """
        self.check_open()
        return self._browse(msg_id, correl_id, group_id, wait, delayed)

    def _browse(
        self,
        msg_id: bytes | None,
        correl_id: bytes | None,
        group_id: bytes | None,
        wait: float | None,
        delayed: bool,
    ) -> Iterator[Message]:
        with Queue(self.connection, self.name, _BROWSE) as cursor:
            while True:
                try:
                    message = cursor.get(
                        wait, msg_id, correl_id, group_id=group_id, browse="next", delayed=delayed
                    )
                except NoMessageAvailable:
                    return
                yield message

    def cancel(self, msg_id: Buffer) -> bool:
        """Takes the message with that MsgId off the queue before anybody has got it, delayed or
        not, and says whether it was there.

        True: nobody gets it any more. False: somebody has got it, or has it in a unit of work; or
        it never was on the queue. Outside units of work, durable on return.

        Raises:
            MQError: 2037: the queue is not open for input; as of get().
        """
        return (
            self.cancel_delayed(msg_id)
            or self.get(0, msg_id, syncpoint=False, default=None) is not None
            or self.cancel_delayed(msg_id)  # backed out with a delay in between
        )

    def request(
        self,
        data: Buffer | str = ...,  # type: ignore[assignment]
        *,
        timeout: float | None,
        reply_to: Queue | None = None,
        json: Any = ...,
        **fields: Any,
    ) -> Message:
        """Puts a request, waits for the reply to it, and returns that.

        Request and reply are outside units of work. A request that nobody has got when its time is
        up expires, and so does a reply that comes later. ``qm.reply()`` and ``serve()`` answer.

        Args:
            data, json: as of put().
            timeout: seconds to wait; None = no limit, and the request does not expire.
            reply_to: a queue, open for input, that others may use too; None: a temporary one that
                the connection makes for its requests.
            fields: other arguments of put(). ``persistent`` is False when it is not given,
                ``expiry`` the timeout.

        Raises:
            WaitTimedOut: 2033: no reply came in time. Whether the request was worked on is unknown.
            PersistentNotAllowed: 2048: a persistent request without ``reply_to``.
            InvalidType, InvalidValue: 2090: a timeout that is none; 2046: a field of put() that
                request() chooses itself; as of put().
            MQError: as of put() and get().
        """
        from .request_reply import request

        body = {"data": data, "json": json}
        given = {name: value for name, value in body.items() if value is not ...}
        return request(self, timeout, reply_to, given, fields)

    def consume(
        self,
        *,
        wait: float | None = None,
        limit: int | None = None,
        retry: Retry | None = None,
        threads: int = 1,
        prefetch: int = 1,
    ) -> Consumer:
        """Takes messages one after the other, each in a unit of work: as an iterator, where asking
        for the next one commits the last one, and as a decorator for a handler.

        ::

            for message in queue.consume(wait=5):
                ...                         # an exception backs the message out, to be retried

            @queue.consume(threads=4, retry=penstock.Retry(1, factor=2, most=5))
            def work(message): ...
            work.run()                      # until SIGTERM; what the handler puts is in the unit

        A message that has failed waits as ``retry`` says, in no unit of work and no thread, through
        restarts, too; others are got before it. One that has failed too often goes to BOQNAME, or
        to the dead-letter queue with reason 2362.

        Args:
            wait: end when no message came within so many seconds; None = no limit.
            limit: end after so many messages; None = no limit.
            retry: None: waits of 1, 2, 4, ... to 300 s, and BOTHRESH of the queue.
            threads: of ``run()``; each has its own handle and unit of work.
            prefetch: messages, of a loop or thread, whose work need not be committed before the
                next one is handed out; 1: none. Commits of the others go on meanwhile and share
                flushes; what they raise comes with a later message, or at the end. Who is killed
                has up to so many messages again.

        Raises:
            InvalidType, InvalidValue: 2046: an argument that is none; 2090: such a wait. MQError:
                as of get().
        """
        from .consume import Consumer

        return Consumer(self, wait, limit, retry, threads, prefetch)

    def serve(
        self,
        handler: Callable[[Message], Buffer | str | None],
        *,
        wait: float | None = None,
        limit: int | None = None,
    ) -> int:
        """Answers requests until none came within ``wait`` seconds (None = no limit), or ``limit``
        of them were answered (None = no limit); returns how many.

        For each message the handler is called with it, and what it returns is put on the message's
        queue for replies (see :meth:`QueueManager.reply`). Get, reply, and what the handler itself
        puts and gets, are one unit of work. None is no reply; a message that names no queue for
        replies gets none, either, nor does one whose queue has gone with its sender. Any number of
        threads and processes may serve a queue.

        Raises:
            Whatever the handler raises: the unit is backed out, and the request is on the queue
                again until it expires.
            MQError: as of get() and ``qm.reply()``; the unit is backed out.
        """
        from .request_reply import serve

        return serve(self, handler, wait, limit)

    def put_batch(
        self,
        source: Any,
        *,
        priority: int | Sequence[int | None] | Any = None,
        persistent: bool | int | Sequence[bool | int | None] | Any = None,
        msg_id: bytes | Sequence[bytes | None] | Any = None,
        correl_id: bytes | Sequence[bytes | None] | Any = None,
        expiry: float | Sequence[float | None] | Any = None,
        syncpoint: bool | None = None,
        reply_to_q: str | Sequence[str | None] | Any = None,
        reply_to_qmgr: str | Sequence[str | None] | Any = None,
        group_id: bytes | Sequence[bytes | None] | Any = None,
        format: str | Sequence[str] | Any = None,
        msg_type: int | Sequence[int] | Any = None,
        report: int | Sequence[int] | Any = None,
        feedback: int | Sequence[int] | Any = None,
        encoding: int | Sequence[int] | Any = None,
        ccsid: int | Sequence[int] | Any = None,
        msg_seq_number: int | Sequence[int] | Any = None,
        msg_flags: int | Sequence[int] | Any = None,
        user_identifier: str | Sequence[str] | Any = None,
        appl_identity_data: str | Sequence[str] | Any = None,
        put_time_us: int | Sequence[int] | Any = None,
        delay: float | Sequence[float | None] | Any = None,
        at: datetime | Sequence[datetime | None] | None = None,
        unit: Unit | None = None,
    ) -> BatchResult:
        """Puts many messages, in their order, as put() would put each of them.

        source: a MessageBatch (its messages with everything but identity and origin context), a
        sequence of bytes-like bodies, a tuple of a buffer and int64 offsets, or an Arrow array of
        binary or large_binary. Fields are as those of put(): one value for all messages, or an
        array or sequence with one a message, in which None is what leaving it out would be.
        syncpoint, unit: as in put(), for all of them.

        Every message is checked before the first is put; a queue that has no room for all refuses
        all. Outside syncpoint a batch with persistent messages becomes visible as a whole, by one
        flush; one without becomes visible message by message. An error that comes up half way has
        ``count``, the messages that took effect, and ``index``, the one that did not. Priorities
        above 9 are counted in ``warnings`` of the result.

        Raises:
            MQError: as put() does; InvalidType and InvalidValue name the message and the value.
        """
        fields = (
            priority, persistent, msg_id, correl_id, expiry, reply_to_q, reply_to_qmgr, group_id,
            format, msg_type, report, feedback, encoding, ccsid, msg_seq_number, msg_flags,
            user_identifier, appl_identity_data, put_time_us,
        )  # fmt: skip
        if delay is None and at is None:
            result = batch_put_quick(self, source, syncpoint, fields, unit)
            if result is not None:
                return result
        from ..batch.put import put_batch

        given = dict(zip(_FIELDS, (*fields, delay, at), strict=True))
        return put_batch(self, source, syncpoint, given, unit)

    def get_batch(
        self,
        max_messages: int,
        wait: float | None = 0,
        *,
        max_bytes: int | None = None,
        syncpoint: bool | None = None,
        persistent_only: bool = False,
        up_to: int | None = None,
        bodies: bool = True,
        unit: Unit | None = None,
    ) -> MessageBatch:
        """Takes up to ``max_messages``, highest priority first, then in the order of arrival.

        wait: seconds to wait for the first one, None = no limit; an empty batch when none came.
        max_bytes: limit for all bodies together; one message is taken even if it is longer.
        syncpoint, unit: as in get(). persistent_only: leaves other messages on the queue. up_to:
        only messages whose message number is not greater. Outside syncpoint the persistent messages
        of a batch leave the queue together, when all of it has been copied. In a unit of work
        MAXUMSGS may end a batch early; a message that asks for a report on its delivery (COD) is a
        batch of its own.

        bodies: False: in a unit of work that prepare() will end, whose messages are read later with
        browse_prepared(): copies only descriptors (``length`` is the body's); the batch's bodies
        are empty, and max_bytes counts the bodies that are not copied.

        Raises:
            InvalidValue: 2046: ``bodies=False`` outside a unit of work, which would lose them.
            MQError: as get() does, except 2033 and 2080.
        """
        batch = batch_get_quick(
            self, max_messages, wait, max_bytes, syncpoint, persistent_only, up_to, bodies, unit
        )
        if batch is not None:
            return batch
        from ..batch.get import get_batch

        return get_batch(
            self, max_messages, wait, max_bytes, syncpoint, persistent_only, up_to, bodies, unit
        )

    def take_batch_uncopied(
        self,
        max_messages: int,
        *,
        max_bytes: int | None = None,
        persistent_only: bool = False,
        up_to: int | None = None,
        unit: Unit | None = None,
    ) -> tuple[int, int]:
        """Takes messages in the unit of work as get_batch(syncpoint=True) does, without copying.

        For a unit that prepare() will end, whose messages are read later with browse_prepared().

        Returns:
            The number of messages and the bytes of their bodies; (0, 0) when there are none.

        Raises:
            MQError: as get() does, except 2033 and 2080.
        """
        from ..batch.get import take_batch_uncopied

        return take_batch_uncopied(self, max_messages, max_bytes, persistent_only, up_to, unit)

    def browse_batch(
        self,
        max_messages: int,
        *,
        first: bool = False,
        max_bytes: int | None = None,
        persistent_only: bool = False,
        up_to: int | None = None,
        bodies: bool = True,
        delayed: bool = False,
    ) -> MessageBatch:
        """Copies up to ``max_messages`` behind the handle's browse cursor without taking them, in
        the order of get(), and moves the cursor behind them; an empty batch at the end.

        first: start at the first message. max_bytes: limit for all bodies together; one message is
        copied even if it is longer; None = 16 MiB. persistent_only, up_to: as in get_batch().
        bodies: False: copies only descriptors, the batch's bodies are empty; max_bytes counts the
        bodies that are not copied, and None = no limit. delayed: messages that are not due yet,
        too, at their positions.

        Raises:
            MQError: as get() does with ``browse``, except 2033 and 2080.
        """
        from ..batch.browse import browse_batch

        return browse_batch(
            self, max_messages, first, max_bytes, persistent_only, up_to, bodies, delayed
        )

    def split_points(self, parts: int) -> list[tuple[int, int]]:
        """Positions that split the queue into about ``parts`` ranges of equal size.

        A position is (placement priority, message number): directly behind that message in delivery
        order; the message need not exist. Positions stay valid over a restart. At most
        ``parts - 1`` are returned, in delivery order; (9, 0) is before all messages,
        (0, 2**64 - 1) behind them.

        Raises:
            InvalidValue: 2046: ``parts`` is not 1 to 100,000.
            QueueDeleted: 2052.
        """
        from ..batch.browse import split_points

        return split_points(self, parts)

    @property
    def newest_number(self) -> int:
        """A message number: those of messages put later are higher, those of others are not."""
        return newest_number(self)

    def __dir__(self) -> list[str]:
        """The interface."""
        return interface(self, _OF_ENGINE)

    def __repr__(self) -> str:
        """``<Queue ORDERS of QM1>``."""
        state = ", closed" if self.closed else ""
        return f"<Queue {self.name} of {self.connection.name}{state}>"
