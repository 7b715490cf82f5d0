"""Queue managers: create, delete, list, connect; and the connection with names instead of slots."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
from weakref import WeakSet

from .. import _engine
from ..constants import MAX_DEPTH, OpenOption, ReasonCode
from ..errors import (
    InvalidType,
    InvalidValue,
    MQError,
    ObjectAlreadyExists,
    ObjectDamaged,
    ObjectInUse,
    OptionNotValidForType,
    QueueManagerNameError,
    ResolutionError,
    UnknownObjectName,
)
from ..names import check_object_name
from .queue import Queue

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType
    from typing import Any

    from typing_extensions import Buffer

    from .._engine import Message, PutResult, Xid
    from ..admin.settings import Settings
    from ..batch.prepared import PreparedBatch
    from ..objects import Definition
    from .status import HandleStatus, ManagerStatus, PreparedStatus, ProcessStatus, UnitStatus

_Home = str | os.PathLike[str] | None
_MANAGERS = 105  # name space of queue managers' own objects
_END_MODES = ("controlled", "wait", "immediate", "preemptive")
_open: WeakSet[QueueManager] = WeakSet()

atexit.register(_engine.end_all)


# ---- queue managers ----


def create(name: str, home: _Home = None, **settings: Any) -> None:
    """Makes a queue manager: a directory with its settings and an empty journal.

    Args:
        name: 1 to 48 characters out of A-Z a-z 0-9 . _ / %.
        home: the directory to make it in; None: PENSTOCK_HOME, else the platform's data directory.
        settings: fields of :class:`penstock.admin.settings.Settings`, such as ``journal_limit``.

    Raises:
        ObjectAlreadyExists: there is one of that name.
        QueueManagerNameError: not a name.
    """
    from ..admin import settings as qmdir

    path = _directory(name, home)
    try:
        chosen = qmdir.Settings(qm_id=os.urandom(16), name=name, **settings)
    except TypeError as error:
        raise InvalidType(ReasonCode.OPTIONS_ERROR, f"{name}: {error}") from error
    except qmdir.SettingsError as error:
        raise InvalidValue(ReasonCode.OPTIONS_ERROR, f"{name}: {error}") from error
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError as error:
        raise ObjectAlreadyExists(
            ReasonCode.OBJECT_ALREADY_EXISTS, f"queue manager {name}: {path} exists already"
        ) from error
    os.chmod(path, 0o700)
    try:
        qmdir.write_settings(path, chosen)
        _engine.create_files(path, _engine_settings(chosen))
        _sync_directory(path.parent)
    except BaseException:
        _remove(path)
        raise


def delete(name: str, home: _Home = None) -> None:
    """Removes a queue manager with all its messages.

    Raises:
        QueueManagerNameError: there is none of that name.
        ObjectInUse: a process is connected to it.
        ObjectDamaged: the directory holds a journal of another queue manager.
    """
    path = _directory(name, home)
    settings = _read_settings(name, path)
    identity = _identity(path)
    if any(qm.directory_identity == identity and not qm.closed for qm in _open):
        raise ObjectInUse(
            ReasonCode.OBJECT_IN_USE, f"queue manager {name}: this process is connected to it"
        )
    pid = _holder(path)
    if pid:
        raise ObjectInUse(
            ReasonCode.OBJECT_IN_USE, f"queue manager {name}: process {pid} is connected to it"
        )
    _check_journal_belongs(path, settings.qm_id)
    _remove_region(path)
    _remove(path)
    _sync_directory(path.parent)


def managers(home: _Home = None) -> list[str]:
    """Names of the queue managers in a home, sorted."""
    from ..admin import settings as qmdir

    return qmdir.manager_names(home)


def connect(
    name: str,
    home: _Home = None,
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
            globals()["create"](name, home)
        except ObjectAlreadyExists:
            pass  # somebody else was faster
    return QueueManager(name, home, keeper=keeper, control=control, keep_mapping=keep_mapping)


# ---- the connection ----


class QueueManager(_engine.Connection):
    """A connection to a queue manager; a context manager. Thread-safe; each thread and each asyncio
    task has units of work of its own.
    """

    path: Path
    directory_identity: tuple[int, int]
    platform: str  # "unix" or "zos"

    def __init__(
        self,
        name: str,
        home: _Home = None,
        *,
        keeper: bool = False,
        control: bool = False,
        keep_mapping: bool = False,
    ) -> None:
        """Connects. See :func:`connect`."""
        from .identity_context import identity

        self.path = _directory(name, home)
        settings = _read_settings(name, self.path)
        for_engine = _engine_settings(settings)
        asked = {"keeper": keeper, "control": control, "keep_mapping": keep_mapping}
        for_engine.update({name: 1 for name, wanted in asked.items() if wanted})
        self.directory_identity = _identity(self.path)
        self.platform = settings.platform
        super().__init__(self.path, for_engine, identity())
        _open.add(self)
        self._make_system_objects(settings)
        if self.attach_info["np_discarded"]:
            from .._logging import discarded_at_restart

            discarded_at_restart(name, self.attach_info["np_discarded"])

    def _make_system_objects(self, settings: Settings) -> None:
        """At the first start: defines the SYSTEM objects; closes when that fails."""
        if self.look_up(_MANAGERS, self.name) is not None:
            return
        from ..objects.system import make_missing

        try:
            make_missing(self, settings)
        except BaseException:
            self.detach()
            raise

    def __enter__(self) -> QueueManager:
        """The connection itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes: commits what is pending, or backs it out when an exception leaves the block."""
        self.detach(commit=kind is None)

    def close(self) -> None:
        """Closes queues and connection; nothing when it is closed already.

        Commits the units of work begun with ``syncpoint=True``, as MQDISC does. Transactions of
        other threads and tasks, whose blocks have not ended, are backed out.
        """
        self.detach()

    # ---- queues ----

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
            pass  # somebody else was faster
        return self.open(name)

    # ---- objects ----

    def define(
        self,
        kind: str,
        name: str,
        /,
        *,
        like: str | None = None,
        replace: bool = False,
        **attributes: Any,
    ) -> None:
        """Defines an object. What is not given it has from ``like``, else from the SYSTEM.DEFAULT
        object of its type.

        Args:
            kind: "QLOCAL", "QALIAS", "QREMOTE", "QMODEL", "PROCESS", "NAMELIST", "TOPIC",
                "CHANNEL", "QCLUSTER" (an instance of a cluster queue), on z/OS also "CFSTRUCT".
            name: 1 to 48 characters out of A-Z a-z 0-9 . _ / %; channels 20, structures 12.
            like: an object of that type to start from.
            replace: an existing definition gets these attributes; its messages and its date of
                creation stay.
            attributes: keywords of MQSC in any case, such as ``maxdepth=10, put="DISABLED"``.

        Raises:
            ObjectAlreadyExists, ObjectNameError, AttributeNameError, InvalidValue, InvalidType.
            UnknownObjectName: ``like``, or a structure, is not there.
            ObjectInUse: the replacement changes what would need FORCE.
        """
        from ..objects import control

        control.define(self, kind, name, like, replace, attributes)

    def alter(
        self, kind: str, name: str = "", /, *, force: bool = False, **attributes: Any
    ) -> None:
        """Changes the given attributes of an object; the next put or get of any process sees them.

        Args:
            kind: as for ``define``, and "QMGR", whose name is ignored.
            name: its name.
            force: also what affects handles that have it open.
            attributes: keywords of MQSC in any case.

        Raises:
            UnknownObjectName, AttributeNameError, InvalidValue, InvalidType.
            ObjectInUse: it is in use, and the change needs ``force`` then.
        """
        from ..objects import control

        control.alter(self, kind, name, force, attributes)

    def delete(self, kind: str, name: str, /, *, purge: bool = False, clusqmgr: str = "") -> None:
        """Deletes an object that nobody has open.

        Args:
            kind: as for ``define``.
            name: its name.
            purge: with the messages on it.
            clusqmgr: which instance of a cluster queue.

        Raises:
            UnknownObjectName, ObjectInUse, QueueNotEmpty (also with ``purge``, when units of work
                hold some).
        """
        from ..objects import control

        control.delete(self, kind, name, purge, clusqmgr)

    def clear(self, name: str, /) -> None:
        """Removes every message of a local queue that nobody has open.

        Raises:
            UnknownObjectName, ObjectInUse, QueueNotEmpty when units of work hold some.
        """
        from ..objects import control

        control.clear(self, name)

    def display(self, kind: str, name: str = "*", /) -> list[Definition]:
        """Definitions of a name or a generic name (``ABC*``), by name; none when nothing fits.

        ``kind`` "QUEUE" is queues of every type. Each definition has ``name``, ``type`` and the
        attributes by keyword; local queues also ``curdepth``, ``ipprocs`` and ``opprocs``.
        """
        from ..objects import control

        return control.display(self, kind, name)

    # ---- prepared units of work ----

    def prepare(self, xid: Xid, *, allow_empty: bool = False, wait: bool = True) -> None:
        """Makes the unit of work that this thread or task has begun (with ``syncpoint=True``, or
        as a ``transaction()``) a prepared one: durable, of no process any more, and neither
        committed nor backed out until somebody says so by its name. This thread or task goes on
        with a new unit of work.

        Non-persistent messages that were got are written, too: a restart keeps them readable
        (:meth:`browse_prepared`), but can only discard them in a backout. Those that were put are
        lost by a restart, as in MQ.

        Args:
            xid: the name; no other prepared unit may have it.
            allow_empty: a unit without messages will do.
            wait: False: does not wait until it is durable. It is when :meth:`recover` or
                :meth:`prepared_list` have told of it, or a unit prepared later is; a crash before
                that backs it out. For several units, of which the last one waits.

        Raises:
            XidInUse: 2128: there is a prepared unit of that name; nothing has changed.
            UnitNotAvailable: 2255: nothing was put or got in the unit, without ``allow_empty``.
            BackedOut: 2003: the queue manager had backed it out.
            StorageMediumFull: 2192: it can still be committed or backed out.
            ConnectionBroken: 2009: whether it is prepared is known after the restart.
        """
        _engine.prepare(self, xid, allow_empty, wait)

    def recover(self) -> list[Xid]:
        """The names of all prepared units of work, oldest first, whoever has prepared them."""
        return [row["xid"] for row in _engine.prepared_rows(self)]

    def prepared_list(self) -> list[PreparedStatus]:
        """All prepared units of work, oldest first."""
        from .status import PreparedStatus

        return [PreparedStatus(**row) for row in _engine.prepared_rows(self)]

    def commit_prepared(self, *xids: Xid) -> None:
        """Commits prepared units of work: all of them, or, when it raises, none. Durable on return.

        Args:
            xids: 1 to 4,096 different names.

        Raises:
            UnknownXid: 2255: no prepared unit has one of the names, or somebody is ending it.
            InvalidValue: 2046: no name, too many, or one twice.
            ConnectionBroken: 2009: unknown until the restart, but the same for all.
        """
        _engine.commit_prepared(self, xids)

    def backout_prepared(self, *xids: Xid) -> int:
        """Backs prepared units of work out, all or none as in :meth:`commit_prepared`: what they
        got is back in its place, with a BackoutCount one higher.

        Returns:
            How many non-persistent messages were discarded, because there was a restart since.

        Raises:
            UnknownXid, InvalidValue, ConnectionBroken: as :meth:`commit_prepared`.
        """
        return _engine.backout_prepared(self, xids)

    def browse_prepared(self, xid: Xid, first: int = 0, last: int | None = None) -> PreparedBatch:
        """The messages that a prepared unit of work got and put, in the order of the calls. They
        stay what they are; after a restart the same messages are there, but for non-persistent
        ones that the unit put.

        Args:
            xid: its name.
            first, last: as in a slice: the messages from number ``first``, counted from 0, up to,
                but without, number ``last``; None: to the end.

        Returns:
            A MessageBatch whose ``is_put`` tells which messages the unit put.

        Raises:
            UnknownXid: 2255: there is no such unit, or it was ended meanwhile.
        """
        from ..batch.prepared import browse_prepared

        return browse_prepared(self, xid, first, last)

    # ---- status ----

    def status(self) -> ManagerStatus:
        """Counts of the queue manager."""
        from .status import ManagerStatus

        return ManagerStatus(**self.manager_status())

    def process_list(self) -> list[ProcessStatus]:
        """The attached processes."""
        from .status import ProcessStatus

        return [ProcessStatus(**row) for row in self.processes()]

    def unit_list(self) -> list[UnitStatus]:
        """The units of work under way."""
        from .status import UnitStatus

        return [UnitStatus(**row) for row in self.unit_rows()]

    def handle_list(self) -> list[HandleStatus]:
        """The open handles."""
        from .status import HandleStatus

        names = {}
        slot = 0
        while (found := self.next_object(slot)) is not None:
            slot = found[0]
            with contextlib.suppress(UnknownObjectName):  # deleted meanwhile
                names[slot] = self.read_object(*found)[1]
        return [
            HandleStatus(row["pid"], names.get(row["object"], ""), row["options"], row["opened_us"])
            for row in self.handle_rows()
        ]

    def end(self, mode: str = "controlled") -> None:
        """Asks every process to leave the queue manager; this one still has to close().

        Args:
            mode: "controlled" or "wait": new work fails with 2161; "immediate": every call fails
                with 2162; "preemptive": with 2009, and no non-persistent message is kept.
        """
        if mode not in _END_MODES:
            raise InvalidValue(
                ReasonCode.OPTIONS_ERROR, f"mode {mode!r} is not one of {', '.join(_END_MODES)}"
            )
        self.request_end(_END_MODES.index(mode))

    def __repr__(self) -> str:
        """``<QueueManager QM1>``."""
        return f"<QueueManager {self.name}{', closed' if self.closed else ''}>"


# ---- helpers ----


def _directory(name: str, home: _Home) -> Path:
    from ..admin import settings as qmdir

    try:
        return qmdir.manager_directory(name, home)
    except qmdir.ManagerNameError as error:
        raise QueueManagerNameError(ReasonCode.Q_MGR_NAME_ERROR, str(error)) from None
    except TypeError as error:
        raise InvalidType(ReasonCode.Q_MGR_NAME_ERROR, str(error)) from None


def _read_settings(name: str, path: Path) -> Settings:
    from ..admin import settings as qmdir

    try:
        settings = qmdir.read_settings(path)
    except (FileNotFoundError, NotADirectoryError):
        raise QueueManagerNameError(
            ReasonCode.Q_MGR_NAME_ERROR, f"there is no queue manager {name} in {path.parent}"
        ) from None
    except PermissionError as error:
        raise MQError(ReasonCode.NOT_AUTHORIZED, f"queue manager {name}: {error}") from error
    except (qmdir.SettingsError, OSError) as error:
        raise ObjectDamaged(ReasonCode.OBJECT_DAMAGED, f"queue manager {name}: {error}") from error
    if settings.name != name:
        raise ObjectDamaged(
            ReasonCode.OBJECT_DAMAGED,
            f"{path / qmdir.SETTINGS_FILE} belongs to queue manager {settings.name}, not {name}",
        )
    return settings


def _engine_settings(settings: Settings) -> dict[str, Any]:
    """The settings as the engine names them."""
    return {
        "name": settings.name,
        "qm_id": settings.qm_id,
        "platform": ("unix", "zos").index(settings.platform),
        "segment_size": settings.segment_size,
        "journal_limit": settings.journal_limit,
        "ring_size": settings.ring_size,
        "region_size": settings.region_size,
        "body_budget": settings.region_bodies,
        "max_uncommitted": settings.max_uncommitted_messages,
        "max_message": settings.max_message_length,
        "linear": int(settings.logging == "linear"),
        "region_dir": os.fsencode(settings.region_dir),
    }


def _identity(path: Path) -> tuple[int, int]:
    facts = os.stat(path)
    return facts.st_dev, facts.st_ino


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _holder(path: Path) -> int:
    """Pid of a process that has a record lock on the queue manager's lock file, 0 for none.

    Only for a queue manager this process is not attached to: closing the file would drop its locks.
    """
    import fcntl
    import struct

    try:
        fd = os.open(path / "lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return 0
    layout = "hhqqi4x"  # struct flock: type, whence, start, length, pid
    try:
        wanted = struct.pack(layout, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = struct.unpack(layout, fcntl.fcntl(fd, fcntl.F_GETLK, wanted))
    finally:
        os.close(fd)
    return int(answer[4]) if answer[0] != fcntl.F_UNLCK else 0


def _check_journal_belongs(path: Path, qm_id: bytes) -> None:
    """Raises ObjectDamaged when a journal segment carries another queue manager's identity."""
    for segment in sorted([*path.glob("journal/*.psj"), *path.glob("archive/*.psj")]):
        head = segment.read_bytes()[:48] if segment.stat().st_size < 4096 else _head(segment)
        if head[:8] == b"PSTKJRNL" and head[32:48] != qm_id:
            raise ObjectDamaged(
                ReasonCode.OBJECT_DAMAGED,
                f"{segment} belongs to another queue manager than {path / 'qm.toml'}",
            )


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(48)


def _remove_region(path: Path) -> None:
    """Removes the shared region that a killed last process left behind."""
    try:
        lines = (path / "lock").read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return
    facts = dict(line.split("=", 1) for line in lines if "=" in line)
    region = facts.get("region", "")
    if region.startswith("penstock-") and "/" not in region:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(facts.get("directory", "/dev/shm"), region))


def _remove_archive(folder: Path) -> None:
    """Removes archived segments, and their folder unless somebody keeps other files in it."""
    for file in folder.glob("[0-9]*.psj"):
        if re.fullmatch(r"[0-9]{10}\.psj", file.name):
            file.unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError:
        pass  # there was none, or it is named by whoever removes the directory


def _remove(path: Path) -> None:
    """Removes a queue manager's files, qm.toml last: a removal cut short can be repeated."""
    import shutil

    for name in ("journal", "checkpoint", "errors"):
        shutil.rmtree(path / name, ignore_errors=True)
    _remove_archive(path / "archive")
    for name in ("lock", "keeper.pid", "qm.toml.tmp", "qm.toml"):
        (path / name).unlink(missing_ok=True)
    try:
        path.rmdir()
    except OSError as error:
        rest = ", ".join(sorted(os.listdir(path)))
        raise ObjectInUse(
            ReasonCode.OBJECT_IN_USE, f"{path} was emptied of our files but holds {rest}"
        ) from error
