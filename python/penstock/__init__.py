"""penstock: persistent priority message queues with the semantics of IBM MQ, embedded.

A queue manager is a directory; every process that connects works on its queues directly::

    import penstock

    with penstock.connect("QM1", create=True) as qm:
        with qm.queue("ORDERS") as q:
            q.put("a message", priority=7)
            print(q.get().text)
"""

from __future__ import annotations

from . import _registration as _registration  # first: what follows may need the exceptions
from ._engine import Message, PutResult, Unit, Xid
from ._version import __version__
from .admin.create import create
from .admin.delete import delete
from .admin.directory import managers
from .client.connection import QueueManager, connect
from .client.queue import Queue
from .client.retry import Retry
from .client.temporary import temporary
from .errors import (
    AttributeNameError,
    BackedOut,
    CallInProgress,
    ClosedHandle,
    ConnectionBroken,
    GetInhibited,
    InvalidType,
    InvalidValue,
    MessageTooBig,
    MQError,
    NoMessageAvailable,
    NoMessageUnderCursor,
    NotOpenFor,
    ObjectAlreadyExists,
    ObjectChanged,
    ObjectDamaged,
    ObjectInUse,
    ObjectNameError,
    OptionNotValidForType,
    PersistentNotAllowed,
    PutInhibited,
    QueueDeleted,
    QueueFull,
    QueueManagerNameError,
    QueueManagerNotAvailable,
    QueueManagerQuiescing,
    QueueManagerStopping,
    QueueNotEmpty,
    ResolutionError,
    StorageMediumFull,
    StorageNotAvailable,
    TruncatedMessage,
    UnitInProgress,
    UnitLimitReached,
    UnitNotAvailable,
    UnknownObjectName,
    UnknownXid,
    WaitTimedOut,
    WrongEnvironment,
    XidInUse,
)

__all__ = [
    "AttributeNameError",
    "BackedOut",
    "CallInProgress",
    "ClosedHandle",
    "ConnectionBroken",
    "GetInhibited",
    "InvalidType",
    "InvalidValue",
    "MQError",
    "Message",
    "MessageTooBig",
    "NoMessageAvailable",
    "NoMessageUnderCursor",
    "NotOpenFor",
    "ObjectAlreadyExists",
    "ObjectChanged",
    "ObjectDamaged",
    "ObjectInUse",
    "ObjectNameError",
    "OptionNotValidForType",
    "PersistentNotAllowed",
    "PutInhibited",
    "PutResult",
    "Queue",
    "QueueDeleted",
    "QueueFull",
    "QueueManager",
    "QueueManagerNameError",
    "QueueManagerNotAvailable",
    "QueueManagerQuiescing",
    "QueueManagerStopping",
    "QueueNotEmpty",
    "ResolutionError",
    "Retry",
    "StorageMediumFull",
    "StorageNotAvailable",
    "TruncatedMessage",
    "Unit",
    "UnitInProgress",
    "UnitLimitReached",
    "UnitNotAvailable",
    "UnknownObjectName",
    "UnknownXid",
    "WaitTimedOut",
    "WrongEnvironment",
    "Xid",
    "XidInUse",
    "__version__",
    "connect",
    "create",
    "delete",
    "managers",
    "temporary",
]


def __dir__() -> list[str]:
    return [*__all__, "__all__", "__doc__", "__file__", "__name__", "__path__"]
