"""Connections: ``connect()`` and the class that it returns."""

from __future__ import annotations

import atexit

from .. import _engine
from ..admin.create import create as create_manager
from ..admin.create import ignored_settings
from ..admin.directory import Home, managers
from ..constants import MAX_DEPTH, OpenOption, ReasonCode
from ..errors import (
    InvalidType,
    InvalidValue,
    ObjectAlreadyExists,
    OptionNotValidForType,
    ResolutionError,
    UnknownObjectName,
)
from ..names import check_object_name
from .definitions import Definitions
from .interface import interface, warn_ignored
from .prepared_units import PreparedUnits
from .queue import Queue
from .reports import Reports
from .scheduling import Scheduling
from .transfers import Transfers

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable
    from typing import Any

    from typing_extensions import Buffer

    from .._engine import Message, PutResult, Unit
    from .backup import BackupReport
    from .notifier import Notifier

_OF_ENGINE = frozenset(("backout", "closed", "commit", "name", "transaction", "unit"))

atexit.register(_engine.end_all)


def connect(
    name: str,
    home: Home = None,
    create: bool = False,
    *,
    keeper: bool = False,
    control: bool = False,
    keep_mapping: bool = False,
    **settings: Any,
) -> QueueManager:
    """Connects this process to a queue manager; the first process to connect starts it.

    Args:
        name: the queue manager's name.
        home: the directory that contains its directory; None: PENSTOCK_HOME, else the platform's
            data directory.
        create: create the queue manager when it does not exist.
        keeper: this connection only keeps the queue manager running (``penstock start``).
        control: this connection administers the queue manager, as ``penstock status``, ``resolve``
            and ``end`` do: it is accepted also while the queue manager is quiescing.
        keep_mapping: for programs that connect repeatedly: after disconnecting, the mapping of the
            shared memory is kept for the next connection, which saves thousands of page faults
            where much of it is used. The mapping is memory only and blocks nothing; that of a
            queue manager that has ended is unmapped when this process connects again, or ends.
        settings: with ``create``: those of :func:`penstock.create`. A queue manager that exists
            keeps its own: a UserWarning names what was ignored.

    Raises:
        InvalidType, InvalidValue: 2046: a setting that is unknown or out of range, or one without
            ``create``.
        QueueManagerNameError: 2058: the name is invalid, or there is no such queue manager.
        QueueManagerQuiescing: 2161: it is ending (``penstock end``) and accepts no new connections
            until the connected processes have left.
        QueueManagerNotAvailable, WrongEnvironment, ObjectDamaged, StorageNotAvailable: it cannot be
            used; the text gives the reason. After a stop or an immediate end (2059): until all
            processes have left.
    """
    if settings and not create:
        raise InvalidType(
            ReasonCode.OPTIONS_ERROR,
            f"connect({name!r}): {', '.join(settings)}: settings are for create=True",
        )
    if create and name not in managers(home):
        try:
            create_manager(name, home, **settings)
            settings = {}
        except ObjectAlreadyExists:
            pass  # another process was faster
    if settings:
        warn_ignored(f"queue manager {name} exists", ignored_settings(name, home, settings))
    return QueueManager(name, home, keeper=keeper, control=control, keep_mapping=keep_mapping)


class QueueManager(Definitions, PreparedUnits, Reports, Scheduling, Transfers):
    """A connection to a queue manager; a context manager. Thread-safe; each thread and each asyncio
    task has its own units of work, besides those that :meth:`unit` makes.
    """

    _replies: Queue | None = None  # of Queue.request()

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
            name: the queue's name.
            input, output, browse: the intended use; input and browse None: if the queue is local.
                Puts to a local queue in a cluster may go to its other instances, as CLWLUSEQ says,
                when both are False.
            exclusive: open for input by this handle only.
            fail_if_quiescing: puts and gets fail with 2161 once the queue manager is ending.
            manager: the queue manager that has the queue, or the name of a transmission queue or a
                queue-manager alias; blank: this one.
            dynamic_name: for a model queue, the name of the queue to be made, or a prefix and
                ``*``; ``queue.name`` is the full name.

        Raises:
            UnknownObjectName: 2085: there is no such queue.
            ResolutionError: a definition needed for resolution is missing or unsuitable.
            ObjectInUse: 2042: the queue is open in a mode that excludes this one.
            OptionNotValidForType: 2045: input or browse of a queue that is not local.
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

    def reply(self, message: Message, data: Buffer | str = b"", **fields: Any) -> PutResult:
        """Puts a reply to a message on its ReplyToQ at its ReplyToQMgr.

        Priority, persistence, ids and expiry are those that the sender requested, see
        :meth:`Message.reply`; ``fields``: more arguments of ``put()``, such as ``json``.

        Raises:
            InvalidValue: 2027: the message names no queue for replies.
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
        self,
        message: Message,
        reason: int,
        queue: str = "",
        manager: str = "",
        *,
        unit: Unit | None = None,
    ) -> PutResult:
        """Puts a message that could not be delivered on the dead-letter queue (DEADQ), behind a
        dead-letter header (MQDLH) that states the reason.

        Args:
            message: the message as it was got.
            reason: an MQ reason code (MQRC_*) or feedback code (MQFB_*).
            queue, manager: the original destination.
            unit: the unit of work of the put, as for :meth:`Queue.put`.

        Raises:
            UnknownObjectName: 2085: no DEADQ is defined, or there is no queue of that name.
            MessageTooBig: 2030: header and message together are longer than MAXMSGL.
        """
        from .dead_letters import put_dead_letter

        return put_dead_letter(self, message, reason, queue, manager, unit)

    def backup(
        self,
        path: str | os.PathLike[str],
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> BackupReport:
        """Copies the queue manager's files into a new directory while processes work; the copy is
        verified, and holds everything that was committed before the call.

        The journal's segments are kept until they are copied; what that holds is in ``status()``.
        Copying is slowed down while flushes of the journal take long.

        Args:
            path: of the copy; it must not exist. What a killed backup left beside it
                (``<path>.backup-tmp``) is removed.
            progress: called with the bytes copied so far and in all.

        Raises:
            ObjectAlreadyExists: 2100: there is something at ``path``.
            ObjectInUse: 2042: another backup is under way.
            StorageMediumFull: 2192: the journal was 80 % full, and keeps nothing for a backup then.
            ObjectDamaged: 2101: the copy does not verify; it is removed.
            OSError: the copy cannot be written.
        """
        from .backup import backup

        return backup(self, path, progress)

    def queue(self, name: str, **attributes: Any) -> Queue:
        """Opens a queue; creates it when it does not exist: durable (``defpsist=True``), with the
        largest MAXDEPTH and these attributes. An existing queue is not changed: a UserWarning names
        the attributes that it does not have.

        Raises:
            AttributeNameError, InvalidValue, InvalidType: an attribute that no queue can have.
        """
        try:
            queue = self.open(name)
        except UnknownObjectName:
            given: dict[str, Any] = {"defpsist": True, "maxdepth": MAX_DEPTH}
            given.update((key.lower(), value) for key, value in attributes.items())
        else:
            if attributes:
                self._warn_of_ignored(queue, attributes)
            return queue
        try:
            self.define("QLOCAL", name, **given)
        except ObjectAlreadyExists:
            pass  # another process was faster
        return self.open(name)

    def notifier(self, queues: Iterable[Queue]) -> Notifier:
        """A descriptor that becomes readable when a message comes to one of these open queues, for
        event loops of any kind; see :class:`penstock.client.notifier.Notifier`.

        Raises:
            InvalidType: 2046: what is no open queue.
            WrongEnvironment: 2012: region_dir has too long a path.
        """
        from .notifier import Notifier

        return Notifier(self, queues)

    def _warn_of_ignored(self, queue: Queue, attributes: dict[str, Any]) -> None:
        """Warns of attributes that an open queue does not have; closes it when one is none."""
        from .object_commands import differences

        try:
            ignored = differences(self, queue.name, attributes)
            warn_ignored(f"queue {queue.name} exists", ignored, "alter() changes it", 4)
        except BaseException:
            queue.close()
            raise

    def __dir__(self) -> list[str]:
        """The interface."""
        return interface(self, _OF_ENGINE)
