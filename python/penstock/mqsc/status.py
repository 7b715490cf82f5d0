"""DISPLAY QSTATUS, CONN and QMSTATUS, RESET QSTATS: current state, as far as the engine knows it.

The fields are declared like attributes, so that WHERE and the choice of fields work on them too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from .._mqi_constants import calls as mq
from ..client.identity_context import connection_id
from ..errors import UnknownObjectName
from ..objects import TYPES, Attribute, Definition
from .definitions import Action, Parameters, name_of
from .faults import SyntaxFault
from .parser import Command
from .reply import Reply, refused
from .show import Choice

if TYPE_CHECKING:
    from penstock import QueueManager
    from penstock.client.status import HandleStatus, ProcessStatus, UnitStatus

_YES_NO = {"NO": 0, "YES": 1}
_INPUT_EXCLUSIVE = mq.MQOO_INPUT_EXCLUSIVE
_EXTCONN = 32  # hexadecimal digits of EXTCONN at the start of a ConnectionId
_AGE_MAX = 999_999_999
_OPEN_OPTIONS: Mapping[int, str] = {
    mq.MQOO_INPUT_AS_Q_DEF: "MQOO_INPUT_AS_Q_DEF",
    mq.MQOO_INPUT_SHARED: "MQOO_INPUT_SHARED",
    mq.MQOO_INPUT_EXCLUSIVE: "MQOO_INPUT_EXCLUSIVE",
    mq.MQOO_BROWSE: "MQOO_BROWSE",
    mq.MQOO_OUTPUT: "MQOO_OUTPUT",
    mq.MQOO_INQUIRE: "MQOO_INQUIRE",
    mq.MQOO_SET: "MQOO_SET",
}


def _number(keyword: str, help: str) -> Attribute:
    return Attribute(keyword, 0, help, display_only=True)


def _text(keyword: str, help: str) -> Attribute:
    return Attribute(keyword, 0, help, "", length=48, display_only=True)


def _words(keyword: str, help: str, *words: str) -> Attribute:
    numbers = {word: at for at, word in enumerate(words)} if words else _YES_NO
    return Attribute(keyword, 0, help, words=numbers, display_only=True)


def _table(*rows: Attribute) -> Mapping[str, Attribute]:
    return {row.keyword: row for row in rows}


QUEUE = _table(
    _number("CURDEPTH", "Messages on the queue now"),
    _number("IPPROCS", "Handles open for input"),
    _number("OPPROCS", "Handles open for output"),
    _words("UNCOM", "Whether units of work under way have put or got messages", "NO", "YES"),
    _number(
        "MSGAGE",
        "Seconds since the oldest message was put: 0 of an empty queue, blank when not known",
    ),
    _text("LGETDATE", "Date of the last get (UTC)"),
    _text("LGETTIME", "Time of the last get (UTC)"),
    _text("LPUTDATE", "Date of the last put (UTC)"),
    _text("LPUTTIME", "Time of the last put (UTC)"),
    _text("MEDIALOG", "Blank: there are no media images"),
    _text("QTIME", "Blank: the time that messages stay is not monitored"),
)
HANDLE = _table(
    _text("APPLTAG", "Program that has the queue open"),
    _words("APPLTYPE", "Type of program", "USER", "SYSTEM"),
    _number("PID", "Its process"),
    _words("INPUT", "How it is open for input", "NO", "SHARED", "EXCL"),
    _words("OUTPUT", "Whether it is open for output", "NO", "YES"),
    _words("BROWSE", "Whether it is open for browse", "NO", "YES"),
    _words("INQUIRE", "Whether it is open for inquiry", "NO", "YES"),
    _words("SET", "Whether it is open for setting attributes", "NO", "YES"),
    _text("HSTATE", "Blank: whether a call is in progress is not recorded"),
    _text("CHANNEL", "Channel of the program, blank for none"),
    _text("CONNAME", "Connection of the channel, blank for none"),
)
CONN = _table(
    _text("APPLTAG", "Program that is connected"),
    _words(
        "APPLTYPE", "USER, or SYSTEM for what keeps the queue manager running", "USER", "SYSTEM"
    ),
    _number("PID", "Its process"),
    _words("UOWSTATE", "Whether it has a unit of work under way", "NONE", "ACTIVE"),
    _text("UOWSTDA", "Date when the oldest one began (UTC)"),
    _text("UOWSTTI", "Time when the oldest one began (UTC)"),
    _words("URTYPE", "Who coordinates its units of work", "QMGR"),
    _text("CHANNEL", "Channel of the program, blank for none"),
    _text("CONNAME", "Connection of the channel, blank for none"),
)
CONN_HANDLE = _table(
    _text("OBJNAME", "Object that is open"),
    _words("OBJTYPE", "Its type", "QUEUE"),
    _text("OPENOPTS", "How it was opened"),
)
QMSTATUS = _table(
    _words("STATUS", "What the queue manager does", "RUNNING", "QUIESCING", "STOPPED"),
    _number("CONNS", "Processes that are connected"),
    _words("CHINIT", "Whether channels can be started", "STOPPED"),
    _words("CMDSERV", "Whether a command server runs", "STOPPED"),
    _number("LOGINUSE", "Megabytes of the journal in use"),
    _number("LOGUTIL", "Journal in use, in percent of what is allowed"),
)
STATISTICS = _table(
    _number("HIQDEPTH", "Most messages since the reset before"),
    _number("MSGSIN", "Messages put since then"),
    _number("MSGSOUT", "Messages got since then"),
    _number("RESETINT", "Seconds since then"),
)
_QUEUE_HEAD = (("QUEUE", "name"), ("TYPE", "type"))
_CONN_HEAD = (("CONN", "name"), ("EXTCONN", "extconn"), ("TYPE", "type"))


def prepare(manager: QueueManager, command: Command) -> Action:
    """Checks DISPLAY or RESET of status; the returned call does it. Raises SyntaxFault."""
    given = Parameters(command, manager.platform)
    return _PREPARE[command.noun](manager, command, given)


def moment(us: int) -> tuple[str, str]:
    """Date and time of microseconds since 1970, blank for never."""
    if not us:
        return "", ""
    parts = time.gmtime(us / 1e6)
    return time.strftime("%Y-%m-%d", parts), time.strftime("%H.%M.%S", parts)


def _take_type(given: Parameters, words: tuple[str, ...]) -> str:
    """Removes TYPE(word); the first word is the default. Raises SyntaxFault."""
    if "TYPE" in given.left and given.left["TYPE"].values is None:
        del given.left["TYPE"]
    word = given.word("TYPE")
    if word is None:
        return words[0]
    if word.value not in words:
        raise SyntaxFault(f"TYPE is one of {', '.join(words)}", word.at, word.written)
    return word.value


# ---- queues ----


def _queue_status(manager: QueueManager, command: Command, given: Parameters) -> Action:
    word = command.name
    assert word is not None
    name = name_of(TYPES["QLOCAL"], word)
    kind = _take_type(given, ("QUEUE", "HANDLE"))
    choice = Choice(given, QUEUE if kind == "QUEUE" else HANDLE, name.endswith("*"))

    def run() -> Reply:
        queues = [str(row["name"]) for row in manager.display("QLOCAL", name)]
        if kind == "QUEUE":
            rows = list(_queue_rows(manager, queues))
            return choice.reply(command, _QUEUE_HEAD, rows)
        rows = list(_handle_rows(manager, set(queues)))
        if queues and not rows:
            return refused("AMQ8565", f"Queue status not found: {name} is not open.")
        return choice.reply(command, _QUEUE_HEAD, rows)

    return run


def _age(counts: dict[str, int], now: float) -> int | str:
    """Seconds since the oldest message was put: 0 of an empty queue, blank when it is not known."""
    oldest = counts["oldest_us"]
    if oldest == 0:
        return "" if counts["depth"] else 0
    return min(max(0, int(now - oldest / 1e6)), _AGE_MAX)


def _queue_rows(manager: QueueManager, names: Iterable[str]) -> Iterable[Definition]:
    now = time.time()
    for name in names:
        try:
            counts = manager.queue_status(*manager.find_object(name), name, oldest=True)
        except UnknownObjectName:
            continue  # deleted concurrently
        got, put = moment(counts["last_get_us"]), moment(counts["last_put_us"])
        yield Definition(
            name=name,
            type="QUEUE",
            curdepth=counts["depth"],
            ipprocs=counts["open_input"],
            opprocs=counts["open_output"],
            uncom="YES" if counts["uncommitted"] or counts["got"] else "NO",
            msgage=_age(counts, now),
            lgetdate=got[0],
            lgettime=got[1],
            lputdate=put[0],
            lputtime=put[1],
            medialog="",
            qtime=" , ",
        )


def _handle_rows(manager: QueueManager, names: set[str]) -> Iterable[Definition]:
    processes = {row.pid: row for row in manager.process_list()}
    handles = [row for row in manager.handle_list() if row.queue in names]
    for handle in sorted(handles, key=lambda row: (row.queue, row.pid)):
        options = handle.options
        yield Definition(
            name=handle.queue,
            type="HANDLE",
            input=_input(options),
            output=_yes(options & 16),
            browse=_yes(options & 8),
            inquire=_yes(options & 32),
            set=_yes(options & 64),
            hstate="",
            **_program(processes.get(handle.pid), handle.pid),
        )


def _input(options: int) -> str:
    if options & _INPUT_EXCLUSIVE:
        return "EXCL"
    return "SHARED" if options & 3 else "NO"


def _yes(bits: int) -> str:
    return "YES" if bits else "NO"


def _program(process: ProcessStatus | None, pid: int) -> dict[str, str | int]:
    """The fields of the program that a process runs."""
    return {
        "appltag": process.program if process else "",
        "appltype": "SYSTEM" if process and process.keeper else "USER",
        "pid": pid,
        "channel": "",
        "conname": "",
    }


def _reset_statistics(manager: QueueManager, command: Command, given: Parameters) -> Action:
    word = command.name
    assert word is not None
    name = name_of(TYPES["QLOCAL"], word)
    choice = Choice(given, STATISTICS, False)

    def run() -> Reply:
        rows = []
        for queue in manager.display("QLOCAL", name):
            found = manager.reset_queue_statistics(str(queue["name"]))
            rows.append(
                Definition(
                    name=found.name,
                    hiqdepth=found.high_depth,
                    msgsin=found.put_count,
                    msgsout=found.get_count,
                    resetint=found.seconds,
                )
            )
        return choice.reply(command, (("QSTATS", "name"),), rows)

    return run


# ---- connections ----


def _connections(manager: QueueManager, command: Command, given: Parameters) -> Action:
    pattern = command.name.value if command.name else "*"
    kind = _take_type(given, ("CONN", "HANDLE", "ALL", "*"))
    rows = {"CONN": CONN, "HANDLE": CONN_HANDLE}.get(kind, {**CONN, **CONN_HANDLE})
    choice = Choice(given, rows, pattern.endswith("*"))

    def run() -> Reply:
        found: list[Definition] = []
        handles = manager.handle_list() if kind != "CONN" else []
        units = manager.unit_list()
        for process in manager.process_list():
            row = _connection(manager.name, process, units)
            if not _fits(pattern, str(row["name"])):
                continue
            if kind != "HANDLE":
                found.append(row)
            found += _open_objects(row, [h for h in handles if h.pid == process.pid])
        return choice.reply(command, _CONN_HEAD, found)

    return run


def _fits(pattern: str, name: str) -> bool:
    prefix = pattern.removesuffix("*")
    return name.startswith(prefix) if pattern.endswith("*") else name == pattern


def _connection(manager: str, process: ProcessStatus, units: list[UnitStatus]) -> Definition:
    started = min((unit.started_us for unit in units if unit.pid == process.pid), default=0)
    date, clock = moment(started)
    identifier = connection_id(manager, process.attached_us, process.pid).hex().upper()
    return Definition(
        name=identifier[_EXTCONN:],
        extconn=identifier[:_EXTCONN],
        type="CONN",
        uowstate="ACTIVE" if started else "NONE",
        uowstda=date,
        uowstti=clock,
        urtype="QMGR",
        **_program(process, process.pid),
    )


def _open_objects(connection: Definition, handles: list[HandleStatus]) -> list[Definition]:
    return [
        Definition(
            name=connection["name"],
            extconn=connection["extconn"],
            type="HANDLE",
            objname=handle.queue,
            objtype="QUEUE",
            openopts=_options(handle.options),
        )
        for handle in handles
    ]


def _options(options: int) -> str:
    return ",".join(name for bit, name in _OPEN_OPTIONS.items() if options & bit)


# ---- the queue manager ----


def _manager_status(manager: QueueManager, command: Command, given: Parameters) -> Action:
    choice = Choice(given, QMSTATUS, False)

    def run() -> Reply:
        facts = manager.status()
        state = "STOPPED" if facts.stopped else "QUIESCING" if facts.quiescing else "RUNNING"
        row = Definition(
            name=manager.name,
            type="QMSTATUS",
            status=state,
            conns=facts.attached,
            chinit="STOPPED",
            cmdserv="STOPPED",
            loginuse=facts.journal_bytes >> 20,
            logutil=100 * facts.journal_bytes // max(facts.journal_limit, 1),
        )
        return choice.reply(command, (("QMNAME", "name"),), [row])

    return run


_PREPARE = {
    "QSTATUS": _queue_status,
    "QSTATS": _reset_statistics,
    "CONN": _connections,
    "QMSTATUS": _manager_status,
}
