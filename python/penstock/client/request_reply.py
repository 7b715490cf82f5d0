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

import threading

from .._mqi_constants.descriptor import MQMT_REQUEST, MQRO_PASS_DISCARD_AND_EXPIRY
from ..constants import ReasonCode
from ..errors import (
    InvalidType,
    InvalidValue,
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

    from .._engine import Message, QueueHandle

    Handler = Callable[[Message], "Buffer | str | None"]

_MODEL = "SYSTEM.DEFAULT.MODEL.QUEUE"
_OWN = ("msg_type", "report", "reply_to_q", "reply_to_qmgr", "syncpoint")  # fields of the request
_making = threading.Lock()


def request(
    queue: QueueHandle,
    timeout: float | None,
    reply_to: QueueHandle | None,
    body: dict[str, Any],
    fields: dict[str, Any],
) -> Message:
    """Puts a request and waits for its reply; see Queue.request()."""
    _check(timeout, fields)
    fields.setdefault("persistent", False)
    if reply_to is None and fields["persistent"]:
        raise PersistentNotAllowed(
            ReasonCode.PERSISTENT_NOT_ALLOWED,
            f"persistent={fields['persistent']!r}: the temporary queue for replies holds no "
            f"persistent ones; name one that does by reply_to",
        )
    if timeout is not None:
        fields.setdefault("expiry", timeout)
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


def serve(queue: QueueHandle, handler: Handler, wait: float | None, limit: int | None) -> int:
    """Answers requests; see Queue.serve()."""
    if not callable(handler):
        raise InvalidType(
            ReasonCode.OPTIONS_ERROR, f"handler is a callable, not {type(handler).__name__}"
        )
    answered = 0
    while limit is None or answered < limit:
        with queue.connection.transaction():
            message = queue.get(wait, default=None)
            if message is None:
                return answered
            _answer(queue.connection, message, handler(message))
        answered += 1
    return answered


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
    if not timeout > 0:
        raise InvalidValue(
            ReasonCode.WAIT_INTERVAL_ERROR, f"timeout {timeout!r} is not a time above 0"
        )


def _reply_queue(connection: Any) -> QueueHandle:
    """The connection's own queue for replies, made by its first request."""
    with _making:
        if connection._replies is None or connection._replies.closed:
            connection._replies = connection.open(
                _MODEL, input=True, output=False, browse=False, dynamic_name="REPLIES.*"
            )
        replies: QueueHandle = connection._replies
        return replies


def _answer(connection: Any, message: Message, data: Buffer | str | None) -> None:
    """Puts the reply, when there is one and somebody asked for it."""
    if data is None or not message.reply_to_q:
        return
    try:
        connection.reply(message, data)
    except (UnknownObjectName, QueueDeleted):
        pass  # the sender has gone with its queue
