"""The state of a queue manager and its queues as records."""

from __future__ import annotations

from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._engine import Xid


@dataclass(frozen=True, slots=True)
class ManagerStatus:
    """The state of a queue manager. Sizes in bytes, LSNs are offsets in the journal's stream.

    attached: processes. deleted: objects that are deleted, but still open or in use. contexts:
    slots of units, single calls and waits. np_discarded: non-persistent messages that the last
    restart discarded. repairs: locks taken over from dead owners. woken_by_bound: waits that found
    a message only because their bound had passed. region_used: bytes of memory of the region.
    region_in_memory: 1 when its file is in memory, not in the directory of the setting region_dir.
    region_huge: bytes of region_used that came as huge pages; huge_refusal: why there are none.
    message_entries, body_bytes: index entries, and bytes for bodies and indexes, in the stretches
    of memory that hold any. checkpoint_damaged: LSN of the newest checkpoint when the restart found
    it damaged and used the one before, until the next checkpoint replaces it; else 0. backup_pid:
    the process that makes a backup, 0 = none; backup_bytes: of journal that is kept until it is
    copied.
    """

    attached: int
    quiescing: int
    stopped: int
    contexts: int
    units: int
    handles: int
    objects: int
    deleted: int
    region_in_memory: int
    region_bytes: int
    region_used: int
    message_entries: int
    body_bytes: int
    durable_lsn: int
    tail_lsn: int
    checkpoint_lsn: int
    journal_bytes: int
    journal_limit: int
    segments: int
    spare_segments: int
    flushes: int
    flushed_bytes: int
    flushed_records: int
    woken_by_bound: int
    np_discarded: int
    repairs: int
    checkpoint_damaged: int
    live_bytes: int
    live_limit: int
    moved_messages: int
    moved_bytes: int
    held_bytes: int
    held_us: int
    held_pid: int
    backup_pid: int
    backup_bytes: int
    region_huge: int
    huge_refusal: str


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """The state of a queue. Times are microseconds since 1970 UTC, 0 = never.

    depth: messages present, those put by open units of work included, those got by them not.
    delayed: those of them that are not due yet.
    oldest_us: when the oldest message was put that a get could have now: not one of a unit of work,
    not one that a browse has locked; 0 = there is none, or its putter gave it no time.
    """

    name: str
    depth: int
    uncommitted: int
    got: int
    delayed: int
    open_input: int
    open_output: int
    open_other: int
    waiters: int
    put_count: int
    get_count: int
    last_put_us: int
    last_get_us: int
    oldest_us: int


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """What has happened on a queue since its statistics were last reset.

    seconds: since then. high_depth: the most messages on the queue. put_count, get_count: messages
    put and got, those of open units of work included.
    """

    name: str
    seconds: int
    high_depth: int
    put_count: int
    get_count: int


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """An attached process. keeper: it is `penstock start`."""

    pid: int
    keeper: bool
    attached_us: int
    program: str


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock of the shared region for which processes have waited a second or longer.

    lock: its name (csrc/LOCKING.md). pid and program: who has it, probably stopped; pid 0: a
    process that is attaching. seconds: since that was noticed.
    """

    lock: str
    pid: int
    program: str
    seconds: int


@dataclass(frozen=True, slots=True)
class UnitStatus:
    """A unit of work under way. count: messages put and got in it."""

    pid: int
    thread: int
    state: int
    count: int
    unit_id: int
    started_us: int


@dataclass(frozen=True, slots=True)
class PreparedStatus:
    """A prepared unit of work: complete and durable, until commit_prepared() or backout_prepared()
    from any process.

    puts, gets: messages that it put and got; nonpersistent: how many of them are not persistent;
    bytes: of all their bodies. Messages that a restart has discarded are not counted. prepared_us:
    microseconds since 1970 UTC.
    """

    xid: Xid
    unit_id: int
    prepared_us: int
    puts: int
    gets: int
    nonpersistent: int
    bytes: int


@dataclass(frozen=True, slots=True)
class HandleStatus:
    """An open handle. options: what it was opened for (MQOO_*)."""

    pid: int
    queue: str
    options: int
    opened_us: int
