"""Connections: ``connect()`` and the class that it returns."""

from __future__ import annotations

import atexit

from .. import _engine
from ..admin.create import create as create_manager
from ..admin.directory import Home, managers
from ..constants import MAX_DEPTH, OpenOption, ReasonCode
from ..errors import (
    InvalidValue,
    ObjectAlreadyExists,
    OptionNotValidForType,
    ResolutionError,
    UnknownObjectName,
)
from ..names import check_object_name
from .definitions import Definitions
from .prepared_units import PreparedUnits
from .queue import Queue
from .reports import Reports

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Buffer

    from .._engine import Message, PutResult

atexit.register(_engine.end_all)


def connect(
    name: str,
    home: Home = None,
    create: bool = False,
    *,
    keeper: bool = False,
    control: bool = False,
    keep_mapping: bool = False,
) -> QueueManager:
    """Connects this process to a queue manager; the first process to connect starts it.

    Args:
        name: the queue manager's name.
        home: where its directory lies; None: PENSTOCK_HOME, else the platform's data directory.
        create: make it when there is none.
        keeper: this connection only keeps the queue manager running (``penstock start``).
        control: this connection looks after the queue manager, as ``penstock status``, ``resolve``
            and ``end`` do: it is let in while the queue manager is quiescing, too.
        keep_mapping: for a program that connects again and again: when it leaves the queue manager,
            the mapping of the shared memory is kept for the next time, which saves thousands of
            page faults where much of it is used. It is memory alone, and holds nothing up; that of
            a queue manager that has ended goes when this process connects again, or ends.

    Raises:
        QueueManagerNameError: there is none of that name, or it is no name.
        QueueManagerQuiescing: it is to end (``penstock end``), and takes no new connections until
            the processes that are connected have left (2161).
        QueueManagerNotAvailable, WrongEnvironment, ObjectDamaged, StorageNotAvailable: it cannot be
            used; the text says why. Of one that has been stopped or ended at once (2059): until
            all processes have left it.
    """
    if create and name not in managers(home):
        try:
            create_manager(name, home)
        except ObjectAlreadyExists:
            pass  # another process was faster
    return QueueManager(name, home, keeper=keeper, control=control, keep_mapping=keep_mapping)


class QueueManager(Definitions, PreparedUnits, Reports):
    """A connection to a queue manager; a context manager. Thread-safe; each thread and each asyncio
    task has units of work of its own.
    """

    def open(
        self,
        name: str,
        *,
        input: bool | None = None,
        output: bool = True,
        browse: bool | None = None,
        exclusive: bool = False,
        fail_if_quiescing: bool = True,
        manager: str = "",
        dynamic_name: str = "AMQ.*",
    ) -> Queue:
        """Opens a queue: local, alias, remote, or a model, from which a dynamic queue is made.

        Args:
            name: its name.
            input, output, browse: what for; input and browse None: if it is a local queue.
            exclusive: nobody else may have it open for input.
            fail_if_quiescing: puts and gets fail with 2161 once the queue manager is ending.
            manager: the queue manager that has the queue, or the name of a transmission queue or a
                queue-manager alias; blank: this one.
            dynamic_name: of the queue made from a model: a name, or the beginning of one and ``*``;
                ``queue.name`` has the whole name.

        Raises:
            UnknownObjectName: there is none of that name.
            ResolutionError: a definition on the way is missing or unfit.
            ObjectInUse: it is open in a way that excludes this.
            OptionNotValidForType: a queue that is not here cannot be got from.
        """
        options = OpenOption.INPUT_EXCLUSIVE if exclusive else OpenOption(0)
        if input is not False and not exclusive:
            options |= OpenOption.INPUT_SHARED
        if output:
            options |= OpenOption.OUTPUT
        if browse is not False:
            options |= OpenOption.BROWSE
        try:
            return Queue(
                self,
                check_object_name(name),
                int(options),
                fail_if_quiescing,
                manager=manager,
                dynamic_name=dynamic_name,
            )
        except (OptionNotValidForType, ResolutionError):
            if input or browse or exclusive or not output:
                raise
        return Queue(self, name, int(OpenOption.OUTPUT), fail_if_quiescing, manager=manager)

    def reply(self, message: Message, data: Buffer, **fields: Any) -> PutResult:
        """Puts a reply to a message on its ReplyToQ at its ReplyToQMgr.

        Priority, persistence, ids and expiry are those that the sender asked for, see
        :meth:`Message.reply`; ``fields``: more arguments of ``put()``.

        Raises:
            InvalidValue: the message names no queue for replies (2027).
            PersistentNotAllowed: 2048: the message is persistent, the queue temporary.
        """
        name = message.reply_to_q
        if not name:
            raise InvalidValue(
                ReasonCode.MISSING_REPLY_TO_Q, "the message names no queue for replies"
            )
        there = message.reply_to_qmgr
        with self.open(name, input=False, browse=False, manager=there) as queue:
            return queue.put(**message.reply(data, **fields))

    def dead_letter(
        self, message: Message, reason: int, queue: str = "", manager: str = ""
    ) -> PutResult:
        """Puts a message that could not be delivered on the dead-letter queue (DEADQ), with a
        dead-letter header (MQDLH) that says why.

        Args:
            message: the message as it was got.
            reason: an MQ reason code (MQRC_*) or feedback code (MQFB_*).
            queue, manager: where it was to go.

        Raises:
            UnknownObjectName: no DEADQ is defined, or there is no queue of that name.
            MessageTooBig: with its header it does not fit.
        """
        from .dead_letters import put_dead_letter

        return put_dead_letter(self, message, reason, queue, manager)

    def queue(self, name: str, **attributes: Any) -> Queue:
        """Opens a queue, made when it is absent: durable (``defpsist=True``), as deep as can be,
        with these attributes. A queue that exists stays as it is.
        """
        try:
            return self.open(name)
        except UnknownObjectName:
            given: dict[str, Any] = {"defpsist": True, "maxdepth": MAX_DEPTH}
            given.update((key.lower(), value) for key, value in attributes.items())
        try:
            self.define("QLOCAL", name, **given)
        except ObjectAlreadyExists:
            pass  # another process was faster
        return self.open(name)
