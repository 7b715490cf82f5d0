"""Request and reply as one call: ``Queue.request()`` and ``Queue.serve()``.

A request is a message of type MQMT_REQUEST that names a queue for the reply. The reply's CorrelId
is the request's MsgId, so that one reply queue serves any number of requests at a time, from any
thread. A connection has a reply queue of its own, a temporary dynamic one, from its first request
until it is closed.

Late replies. The request expires when its sender gives up; with the report option
MQRO_PASS_DISCARD_AND_EXPIRY the reply expires, too: it has what was left of the request's time when
that was got. A reply queue that has gone with its connection is no error for the server.
"""

from __future__ import annotations

from .._engine import QueueHandle
from .._mqi_constants.calls import MQOO_INPUT_EXCLUSIVE, MQOO_INPUT_SHARED
from .._mqi_constants.descriptor import MQMT_REQUEST, MQRO_PASS_DISCARD_AND_EXPIRY
from ..constants import ReasonCode
from ..errors import (
    InvalidType,
    InvalidValue,
    NotOpenFor,
    PersistentNotAllowed,
    QueueDeleted,
    UnknownObjectName,
    WaitTimedOut,
)

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typing_extensions import Buffer

    from .._engine import Message

    Handler = Callable[[Message], "Buffer | str | None"]

MODEL = "SYSTEM.DEFAULT.MODEL.QUEUE"
_LONGEST = (2**31 - 1) / 10  # seconds of an expiry
_SHORTEST = 0.1
_OWN = ("msg_type", "report", "reply_to_q", "reply_to_qmgr", "syncpoint")  # fields of the request


def request(
    queue: QueueHandle,
    timeout: float | None,
    reply_to: QueueHandle | None,
    body: dict[str, Any],
    fields: dict[str, Any],
) -> Message:
    """Puts a request and waits for its reply; see Queue.request()."""
    check_request(queue, timeout, reply_to, fields)
    replies = reply_to if reply_to is not None else _reply_queue(queue.connection)
    replies.check_open()
    sent = queue.put(
        **body,
        msg_type=MQMT_REQUEST,
        report=MQRO_PASS_DISCARD_AND_EXPIRY,
        reply_to_q=replies.name,
        syncpoint=False,
        **fields,
    )
    reply = replies.get(timeout, correl_id=sent.msg_id, syncpoint=False, default=None)
    if reply is None:
        raise WaitTimedOut(
            ReasonCode.NO_MSG_AVAILABLE,
            f"queue {queue.name}: no reply came within {timeout} s; one that comes later expires",
        )
    return reply


def check_request(
    queue: QueueHandle,
    timeout: float | None,
    reply_to: QueueHandle | None,
    fields: dict[str, Any],
) -> None:
    """Refuses what no request can be, and fills in the fields that have a default."""
    _check(timeout, fields)
    fields.setdefault("persistent", False)
    if reply_to is None and fields["persistent"]:
        raise PersistentNotAllowed(
            ReasonCode.PERSISTENT_NOT_ALLOWED,
            f"persistent={fields['persistent']!r}: the temporary queue for replies holds no "
            f"persistent ones; name one that does by reply_to",
        )
    if timeout is not None:
        fields.setdefault("expiry", max(timeout, _SHORTEST))
    if reply_to is not None:
        _check_reply_to(queue, reply_to)


def serve(queue: QueueHandle, handler: Handler, wait: float | None, limit: int | None) -> int:
    """Answers requests; see Queue.serve()."""
    check_serve(handler, limit)
    answered = 0
    while limit is None or answered < limit:
        with queue.connection.transaction():
            message = queue.get(wait, default=None)
            if message is None:
                return answered
            _answer(queue.connection, message, handler(message))
        answered += 1
    return answered


def check_serve(handler: Any, limit: Any) -> None:
    """Raises InvalidType, InvalidValue: 2046: no handler, or no limit."""
    if not callable(handler):
        raise InvalidType(
            ReasonCode.OPTIONS_ERROR, f"handler is a callable, not {type(handler).__name__}"
        )
    if limit is not None and (type(limit) is not int or limit < 0):
        raise InvalidValue(
            ReasonCode.OPTIONS_ERROR, f"limit is a number of requests or None, not {limit!r}"
        )


def _check(timeout: float | None, fields: dict[str, Any]) -> None:
    """Refuses what request() cannot do; put() and get() look at the rest."""
    own = [name for name in _OWN if name in fields]
    if own:
        raise InvalidType(
            ReasonCode.OPTIONS_ERROR,
            f"request() chooses {', '.join(own)} itself; use put() and get()",
        )
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise InvalidType(
            ReasonCode.WAIT_INTERVAL_ERROR,
            f"timeout must be seconds or None, not {type(timeout).__name__}: {timeout!r}",
        )
    if not 0 < timeout <= _LONGEST:
        raise InvalidValue(
            ReasonCode.WAIT_INTERVAL_ERROR,
            f"timeout {timeout!r} is not a time above 0 and up to {_LONGEST} s; None "
            f"waits without limit",
        )


def _check_reply_to(queue: QueueHandle, reply_to: QueueHandle) -> None:
    """Before the request is put: would its reply come to this queue, and could it be got?"""
    if not isinstance(reply_to, QueueHandle):
        raise InvalidType(
            ReasonCode.OPTIONS_ERROR,
            f"reply_to is an open queue, not {type(reply_to).__name__}: {reply_to!r}",
        )
    own: Any = queue.connection
    others: Any = reply_to.connection
    if others.path.resolve() != own.path.resolve():
        raise InvalidValue(
            ReasonCode.OPTIONS_ERROR,
            f"reply_to {reply_to.name} is a queue of another queue manager: no reply comes there",
        )
    if not reply_to.options & (MQOO_INPUT_SHARED | MQOO_INPUT_EXCLUSIVE):
        raise NotOpenFor(
            ReasonCode.NOT_OPEN_FOR_INPUT,
            f"reply_to {reply_to.name} was not opened for input: its reply could not be got",
        )


def _reply_queue(connection: Any) -> QueueHandle:
    """The connection's own queue for replies, made by its first request. Without a lock, which a
    signal handler could wait for: of two first requests at once each makes a queue, and the second
    one is deleted.
    """
    kept: QueueHandle | None = connection._replies
    if kept is not None and not kept.closed:
        return kept
    made: QueueHandle = connection.open(
        MODEL, input=True, output=False, browse=False, dynamic_name="REPLIES.*"
    )
    kept = vars(connection).setdefault("_replies", made)
    if kept.closed:  # an earlier one
        kept = connection._replies = made
    if kept is not made:
        made.shut()
    return kept


def _answer(connection: Any, message: Message, data: Buffer | str | None) -> None:
    """Puts the reply, when there is one and somebody asked for it."""
    if data is None or not message.reply_to_q:
        return
    try:
        connection.reply(message, data)
    except (UnknownObjectName, QueueDeleted):
        pass  # the sender has gone with its queue
