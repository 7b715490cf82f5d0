"""Request and reply for asyncio: see client/request_reply.py for the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._mqi_constants.descriptor import MQMT_REQUEST, MQRO_PASS_DISCARD_AND_EXPIRY
from ..client import request_reply as rules
from ..constants import ReasonCode
from ..errors import WaitTimedOut

if TYPE_CHECKING:
    from typing import Any

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
