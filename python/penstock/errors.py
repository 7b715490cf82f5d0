"""Exceptions: :class:`MQError` with one subclass for each reason that programs act on.

A subclass names its reason codes in ``reasons``; the table from codes to classes follows from that.
Where Python has a fitting built-in exception the subclass derives from it too, so that
``except ValueError`` catches a name with a blank in it.
"""

from __future__ import annotations

from _queue import Empty  # queue.Empty: the module queue loads threading
from errno import ETIMEDOUT

from .constants import WARNINGS, CompCode, ReasonCode

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from typing import Any, ClassVar

_CLASSES: dict[int, type[MQError]] = {}


class MQError(Exception):
    """A call failed, or ended with a warning and an incomplete effect.

    Attributes:
        comp_code: 1 (warning) or 2 (failed).
        reason: the MQ reason code, such as 2053.
        reason_name: its name, such as ``MQRC_Q_FULL``.
        text: what happened: the offending value and the rule.
        count: of put_batch(): how many of its messages took effect.
        index: of put_batch(): the first of its messages that did not, or that has the value which
            is refused; else None.
    """

    reasons: ClassVar[tuple[int, ...]] = ()
    count: int = 0
    index: int | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Enters the class into the table of reason codes."""
        super().__init_subclass__(**options)
        for reason in cls.__dict__.get("reasons", ()):
            if reason in _CLASSES:
                raise TypeError(f"reason {reason} has two classes")
            _CLASSES[reason] = cls

    def __init__(self, reason: int, text: str = "", comp_code: int | None = None) -> None:
        """Makes the error for a reason code; the completion code follows from it."""
        super().__init__(reason, text, comp_code)
        self.reason = int(reason)
        self.text = text
        if comp_code is None:
            comp_code = CompCode.WARNING if reason in WARNINGS else CompCode.FAILED
        self.comp_code = int(comp_code)

    @property
    def reason_name(self) -> str:
        """Name of the reason code, such as ``MQRC_Q_FULL``."""
        try:
            return f"MQRC_{ReasonCode(self.reason).name}"
        except ValueError:
            return "MQRC_UNKNOWN"

    def __str__(self) -> str:
        """``MQRC_Q_FULL (2053): queue ORDERS holds 5000 messages, ...``."""
        return f"{self.reason_name} ({self.reason}): {self.text}"


class BackedOut(MQError):
    """The queue manager backed the unit of work out; nothing of it took effect."""

    reasons = (ReasonCode.BACKED_OUT,)


class ConnectionBroken(MQError):
    """The queue manager stopped; what the call did is unknown until its restart. Connect again."""

    reasons = (ReasonCode.CONNECTION_BROKEN,)


class WrongEnvironment(MQError):
    """Not possible here: in a forked child, on this file system, from another PID namespace."""

    reasons = (ReasonCode.ENVIRONMENT_ERROR,)


class GetInhibited(MQError):
    """The queue is defined GET(DISABLED)."""

    reasons = (ReasonCode.GET_INHIBITED,)


class PutInhibited(MQError):
    """The queue is defined PUT(DISABLED)."""

    reasons = (ReasonCode.PUT_INHIBITED,)


class ClosedHandle(MQError, ValueError):
    """The connection or the queue was closed before."""

    reasons = (ReasonCode.HCONN_ERROR, ReasonCode.HOBJ_ERROR)


class UnitLimitReached(MQError):
    """The unit of work holds as many messages as MAXUMSGS allows."""

    reasons = (ReasonCode.SYNCPOINT_LIMIT_REACHED,)


class MessageTooBig(MQError):
    """The body is longer than MAXMSGL of the queue or the queue manager."""

    reasons = (ReasonCode.MSG_TOO_BIG_FOR_Q, ReasonCode.MSG_TOO_BIG_FOR_Q_MGR)


class NoMessageAvailable(MQError, Empty):
    """There is no message, or none that matches. Also a ``queue.Empty``."""

    reasons = (ReasonCode.NO_MSG_AVAILABLE,)


class WaitTimedOut(NoMessageAvailable, TimeoutError):
    """A get waited, and no message came in that time. Also a ``TimeoutError``."""

    def __init__(self, reason: int, text: str = "", comp_code: int | None = None) -> None:
        """Sets what OSError would take from the arguments."""
        super().__init__(reason, text, comp_code)
        self.args = (reason, text, comp_code)
        self.errno, self.strerror, self.filename = ETIMEDOUT, text, None


class NoMessageUnderCursor(MQError):
    """The browse cursor is not on a message that can be got."""

    reasons = (ReasonCode.NO_MSG_UNDER_CURSOR,)


class NotOpenFor(MQError):
    """The queue was not opened for this use."""

    reasons = (
        ReasonCode.NOT_OPEN_FOR_BROWSE,
        ReasonCode.NOT_OPEN_FOR_INPUT,
        ReasonCode.NOT_OPEN_FOR_OUTPUT,
    )


class ObjectInUse(MQError):
    """The object is open in a mode that excludes this use."""

    reasons = (ReasonCode.OBJECT_IN_USE,)


class OptionNotValidForType(MQError):
    """The option is invalid for the object, such as deleting a predefined queue by close."""

    reasons = (ReasonCode.OPTION_NOT_VALID_FOR_TYPE,)


class PersistentNotAllowed(MQError):
    """The queue cannot hold persistent messages."""

    reasons = (ReasonCode.PERSISTENT_NOT_ALLOWED,)


class QueueDeleted(MQError):
    """The queue was deleted while it was open."""

    reasons = (ReasonCode.Q_DELETED,)


class QueueFull(MQError):
    """The queue holds as many messages as MAXDEPTH allows."""

    reasons = (ReasonCode.Q_FULL,)


class QueueNotEmpty(MQError):
    """The queue holds messages or has uncommitted changes."""

    reasons = (ReasonCode.Q_NOT_EMPTY,)


class QueueManagerNameError(MQError, ValueError):
    """There is no queue manager of that name, or the name is invalid."""

    reasons = (ReasonCode.Q_MGR_NAME_ERROR,)


class QueueManagerNotAvailable(MQError):
    """The queue manager cannot be used now; the text gives the reason."""

    reasons = (ReasonCode.Q_MGR_NOT_AVAILABLE,)


class StorageNotAvailable(MQError):
    """There is not enough memory: the text has the sizes."""

    reasons = (ReasonCode.STORAGE_NOT_AVAILABLE,)


class StorageMediumFull(MQError):
    """The disk, or the space allowed on it, is full. Gets and commits still work."""

    reasons = (ReasonCode.STORAGE_MEDIUM_FULL, ReasonCode.Q_SPACE_NOT_AVAILABLE)


class TruncatedMessage(MQError):
    """The message is longer than max_length and stays where it is.

    Attributes:
        length: its full length in bytes.
    """

    reasons = (ReasonCode.TRUNCATED_MSG_FAILED,)

    def __init__(
        self, reason: int, text: str = "", comp_code: int | None = None, length: int = 0
    ) -> None:
        """Adds the length."""
        super().__init__(reason, text, comp_code)
        self.args = (reason, text, comp_code, length)
        self.length = length


class UnknownObjectName(MQError, LookupError):
    """There is no object of that name."""

    reasons = (ReasonCode.UNKNOWN_OBJECT_NAME,)


class ResolutionError(MQError, LookupError):
    """Name resolution failed: the text names the definition that is missing or unsuitable."""

    reasons = (
        ReasonCode.ALIAS_BASE_Q_TYPE_ERROR,
        ReasonCode.UNKNOWN_ALIAS_BASE_Q,
        ReasonCode.UNKNOWN_OBJECT_Q_MGR,
        ReasonCode.UNKNOWN_REMOTE_Q_MGR,
        ReasonCode.XMIT_Q_TYPE_ERROR,
        ReasonCode.XMIT_Q_USAGE_ERROR,
        ReasonCode.REMOTE_Q_NAME_ERROR,
        ReasonCode.CLUSTER_RESOLUTION_ERROR,
        ReasonCode.UNKNOWN_XMIT_Q,
        ReasonCode.UNKNOWN_DEF_XMIT_Q,
        ReasonCode.DEF_XMIT_Q_TYPE_ERROR,
        ReasonCode.DEF_XMIT_Q_USAGE_ERROR,
        ReasonCode.NO_DESTINATIONS_AVAILABLE,
    )


class ObjectChanged(MQError):
    """A definition that the name was resolved through changed since the open: open it again."""

    reasons = (ReasonCode.OBJECT_CHANGED,)


class ObjectAlreadyExists(MQError):
    """An object, or a queue manager, of that name exists already."""

    reasons = (ReasonCode.OBJECT_ALREADY_EXISTS,)


class ObjectDamaged(MQError):
    """Stored data is damaged: the text names file and offset."""

    reasons = (ReasonCode.OBJECT_DAMAGED,)


class CallInProgress(MQError, RuntimeError):
    """Another call with the unit of work is in progress: a unit takes one call at a time."""

    reasons = (ReasonCode.CALL_IN_PROGRESS,)


class UnitInProgress(MQError, RuntimeError):
    """This thread or task has a unit of work already."""

    reasons = (ReasonCode.UOW_IN_PROGRESS,)


class UnitNotAvailable(MQError, RuntimeError):
    """The unit of work has ended, or belongs to another thread or task."""

    reasons = (ReasonCode.UOW_NOT_AVAILABLE,)


class UnknownXid(UnitNotAvailable, LookupError):
    """No prepared unit of work has that name, or it was resolved; the text has the name."""


class XidInUse(UnitInProgress):
    """There is a prepared unit of work of that name; the text has the name."""


class ObjectNameError(MQError, ValueError):
    """Invalid name of an object: 1 to 48 characters out of A-Z a-z 0-9 . _ / %."""

    reasons = (ReasonCode.OBJECT_NAME_ERROR,)


class QueueManagerQuiescing(MQError):
    """The queue manager is ending and accepts no new work: close."""

    reasons = (ReasonCode.Q_MGR_QUIESCING,)


class QueueManagerStopping(MQError):
    """The queue manager was ended."""

    reasons = (ReasonCode.Q_MGR_STOPPING,)


class AttributeNameError(MQError, ValueError):
    """There is no attribute of that name; the text suggests one."""

    reasons = (ReasonCode.SELECTOR_ERROR,)


class InvalidValue(MQError, ValueError):
    """A value is out of its range; the text has the value and the rule."""

    reasons = (
        ReasonCode.BUFFER_LENGTH_ERROR,
        ReasonCode.EXPIRY_ERROR,
        ReasonCode.FEEDBACK_ERROR,
        ReasonCode.MISSING_REPLY_TO_Q,
        ReasonCode.MSG_TYPE_ERROR,
        ReasonCode.OPTIONS_ERROR,
        ReasonCode.PERSISTENCE_ERROR,
        ReasonCode.PRIORITY_ERROR,
        ReasonCode.REPORT_OPTIONS_ERROR,
        ReasonCode.WAIT_INTERVAL_ERROR,
        ReasonCode.MSG_ID_ERROR,
        ReasonCode.CORREL_ID_ERROR,
        ReasonCode.MSG_FLAGS_ERROR,
        ReasonCode.MSG_SEQ_NUMBER_ERROR,
        ReasonCode.GROUP_ID_ERROR,
    )


class InvalidType(MQError, TypeError):
    """A value has the wrong Python type; ``reason`` is the one of the parameter concerned."""


def error_for(reason: int, text: str, **more: Any) -> MQError:
    """The exception for a reason code, of the class that the table gives."""
    return _CLASSES.get(reason, MQError)(reason, text, **more)
