"""Request and reply for asyncio: see client/request_reply.py for the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._mqi_constants.descriptor import MQMT_REQUEST, MQRO_PASS_DISCARD_AND_EXPIRY
from ..client import request_reply as rules
from ..constants import ReasonCode
from ..errors import QueueDeleted, UnknownObjectName, WaitTimedOut

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from typing_extensions import Buffer

    from .._engine import Message


async def request(
    queue: Any,
    timeout: float | None,
    reply_to: Any,
    body: dict[str, Any],
    fields: dict[str, Any],
) -> Message:
    """Puts a request and waits for its reply; see Queue.request()."""
    handle = None if reply_to is None else reply_to.handle
    rules.check_request(queue.handle, timeout, handle, fields)
    replies = reply_to if reply_to is not None else await queue.connection.reply_queue()
    replies.handle.check_open()
    sent = await queue.put(
        **body,
        msg_type=MQMT_REQUEST,
        report=MQRO_PASS_DISCARD_AND_EXPIRY,
        reply_to_q=replies.name,
        syncpoint=False,
        **fields,
    )
    reply: Message | None = await replies.get(
        timeout, correl_id=sent.msg_id, syncpoint=False, default=None
    )
    if reply is None:
        raise WaitTimedOut(
            ReasonCode.NO_MSG_AVAILABLE,
            f"queue {queue.name}: no reply came within {timeout} s; one that comes later expires",
        )
    return reply


async def serve(
    queue: Any,
    handler: Callable[[Message], Awaitable[Buffer | str | None]],
    wait: float | None,
    limit: int | None,
) -> int:
    """Answers requests; see Queue.serve()."""
    rules.check_serve(handler, limit)
    answered = 0
    while limit is None or answered < limit:
        async with queue.connection.transaction():
            message = await queue.get(wait, default=None)
            if message is None:
                return answered
            await _answer(queue.connection, message, await handler(message))
        answered += 1
    return answered


async def _answer(connection: Any, message: Message, data: Buffer | str | None) -> None:
    """Puts the reply, when there is one and somebody asked for it."""
    if data is None or not message.reply_to_q:
        return
    try:
        await connection.reply(message, data)
    except (UnknownObjectName, QueueDeleted):
        pass  # the sender has gone with its queue
