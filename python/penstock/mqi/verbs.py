"""The verbs of the MQI off the hot path: MQCONN to MQDISC, MQOPEN, MQPUT1, MQBEGIN.

MQPUT, MQGET, MQCLOSE, MQCMIT and MQBACK are in the engine (pyext/mqi), MQINQ and MQSET in
``inquiry``, distribution lists in ``lists``. A verb returns its results first, then completion and
reason code, and raises for no reason code; ``hconn.error`` has the text of the newest failure.

Choices where the rules leave one:

* A handle may be used by any thread; a second MQCONN of one thread is 2002 with the same handle.
* Handles that a thread leaves open are ended with it: its unit of work is backed out.
* MQCONN knows no default queue manager: a blank name is 2058.
* MQBEGIN has no external participants: warning 2121, the unit of work is the queue manager's own.
* The rules of MQPUT1 come in the order open, MQPMO and its options, context, MQMD, buffer.
"""

from __future__ import annotations

import os
import threading

from .._engine import (
    MQBACK,
    MQCLOSE,
    MQCMIT,
    MQGET,
    MQPUT,
    Hconn,
    Hobj,
    Structure,
    has_identity,
    open_local,
    opened,
    put_one,
    register_structures,
    show_resolved,
)
from ..errors import MQError
from ..opening import option_rules as rules
from ..opening.resolution import check_name
from . import lists
from .handles import open_handle, open_output
from .structures import MQGMO, MQMD, MQPMO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "MQBACK",
    "MQBEGIN",
    "MQCLOSE",
    "MQCMIT",
    "MQCONN",
    "MQCONNX",
    "MQDISC",
    "MQGET",
    "MQOPEN",
    "MQPUT",
    "MQPUT1",
    "Hconn",
    "Hobj",
]

UNUSABLE = -1  # MQHC_UNUSABLE_HCONN, MQHO_UNUSABLE_HOBJ
_QUEUE, _NAMELIST, _PROCESS, _QUEUE_MANAGER = 1, 2, 3, 5
_TYPES = (_QUEUE, _NAMELIST, _PROCESS, _QUEUE_MANAGER)
_MAX_HANDLES, _MAX_HANDLES_DEFAULT = 11, 256
_MODEL = 2
_FAIL_IF_QUIESCING, _RESOLVE_LOCAL = 8192, 262144
_CONTEXTS = 256 | 512 | 1024 | 2048
_SHARE = 32 | 64 | 128
_CONNECT_KNOWN = _SHARE | 1 | 256 | 512 | 1024 | 33554432  # bindings, RECONNECT_DISABLED

_thread = threading.local()
register_structures(MQMD, MQPMO, MQGMO)
_verdicts: dict[int, str] = {}


# ---- MQCONN, MQCONNX, MQDISC ----


def MQCONN(name: str | bytes) -> tuple[Any, int, int]:
    """Connects to a queue manager of the home PENSTOCK_HOME.

    Args:
        name: the queue manager's name; it must exist.

    Returns:
        hconn, CompCode, Reason: 2002 (a warning) with the handle there is, when this thread is
        connected already; 2058 for a name that is unknown, 2161 while it is quiescing, 2059,
        2009, 2162 as the case may be.
    """
    return _connect(name, 0)


def MQCONNX(name: str | bytes, cno: Any = None) -> tuple[Any, int, int]:
    """Connects with options.

    Args:
        name: the queue manager's name.
        cno: MQCNO; with MQCNO_HANDLE_SHARE_BLOCK or _NO_BLOCK the handle is a new one.

    Returns:
        hconn, CompCode, Reason: as MQCONN; 2139 for a wrong MQCNO, 2046 for its options.
    """
    if cno is None:
        return _connect(name, 0)
    if not _is(cno, b"CNO ", 8):
        return UNUSABLE, 2, 2139
    chosen: int = cno.Options
    if chosen & ~_CONNECT_KNOWN or (chosen & _SHARE).bit_count() > 1:
        return UNUSABLE, 2, 2046
    return _connect(name, chosen & _SHARE)


def _connect(name: str | bytes, sharing: int) -> tuple[Any, int, int]:
    from ..admin.settings import manager_directory
    from ..client.connection import QueueManager

    if isinstance(name, bytes):
        name = name.decode("utf-8", "replace")
    if not isinstance(name, str):
        return UNUSABLE, 2, 2058
    name = name.split("\0", 1)[0].rstrip(" ")
    try:
        path = manager_directory(name, None)
    except (ValueError, TypeError):
        return UNUSABLE, 2, 2058
    known: dict[tuple[str, int], Hconn] = _thread.__dict__.setdefault("known", {})
    key = os.fspath(path), os.getpid()
    own = bool(sharing & ~32)
    hconn = known.get(key)
    if hconn is not None and not own and not hconn.qm.closed:
        return hconn, 1, 2002
    try:
        hconn = Hconn(QueueManager(name), sharing)
    except MQError as error:
        return UNUSABLE, 2, error.reason
    if own:
        _thread.__dict__.setdefault("shared", []).append(hconn)
    else:
        known[key] = hconn
    return hconn, 0, 0


def MQDISC(hconn: Any) -> tuple[int, int]:
    """Ends a connection: commits its unit of work and closes its handles with MQCO_NONE.

    Returns:
        CompCode, Reason: 2003 with a warning when the unit of work could only be backed out.
    """
    if type(hconn) is not Hconn or hconn.qm.closed:
        return 2, 2018
    handles = list(hconn.handles.values())
    code = 0
    try:
        hconn.qm.detach(True)
    except MQError as error:
        code = error.reason
        hconn.error = error.text
    for hobj in handles:
        hobj.leave()
    shared = _thread.__dict__.get("shared", [])
    if hconn in shared:
        shared.remove(hconn)
    if code == 0:
        return 0, 0
    return 1 if code == 2003 else 2, code


def MQBEGIN(hconn: Any, bo: Any = None) -> tuple[int, int]:
    """Begins a unit of work coordinated by the queue manager.

    Returns:
        CompCode, Reason: 2121 with a warning (there are no other resource managers); 2128 when
        a unit of work is open, 2134 for a wrong MQBO, 2012 on platform z/OS.
    """
    if type(hconn) is not Hconn or hconn.qm.closed:
        return 2, 2018
    if bo is not None and not _is(bo, b"BO  ", 1):
        return 2, 2134
    if hconn.zos:
        return hconn.refuse(2012, "MQBEGIN is not for platform z/OS")
    if bo is not None and bo.Options != 0:
        return hconn.refuse(2046, f"MQBO.Options {bo.Options:#x}: none are defined")
    if hconn.begun or hconn.pending():
        return hconn.refuse(2128, "a unit of work is under way: MQCMIT or MQBACK first")
    hconn.begun = True
    return 1, 2121


# ---- MQOPEN ----


def MQOPEN(hconn: Any, od: Any, options: int) -> tuple[Any, int, int]:
    """Opens an object.

    Args:
        hconn: from MQCONN.
        od: MQOD; resolved names and the name of a dynamic queue are returned in it.
        options: MQOO_*.

    Returns:
        hobj, CompCode, Reason. A distribution list with some destinations that could not be opened
        gives a handle and the warning 2136, with one MQRR for each in ``od.ResponseRecs``.
    """
    if type(hconn) is not Hconn or hconn.qm.closed:
        return UNUSABLE, 2, 2018
    try:
        code, text = _check_open(hconn, od, options)
        if code:
            return UNUSABLE, *hconn.refuse(code, text, _fails_if_quiescing(options))
        hobj = open_local(hconn, od, options)
        if hobj is not None:
            return hobj, 0, 0
        if od.ObjectType != _QUEUE:
            return _open_other(hconn, od, options), 0, 0
        if od.Version >= 2 and od.RecsPresent != 0:
            return lists.open_list(hconn, od, options)
        return _open_queue(hconn, od, options), 0, 0
    except MQError as error:
        return UNUSABLE, *hconn.refuse(error.reason, error.text, _fails_if_quiescing(options))


def _fails_if_quiescing(options: object) -> bool:
    return isinstance(options, int) and bool(options & _FAIL_IF_QUIESCING)


def _check_open(hconn: Hconn, od: Any, options: object) -> tuple[int, str]:
    """Structure, options and the number of handles."""
    if not _is(od, b"OD  ", 4):
        return 2044, f"no MQOD: {od!r}"
    if isinstance(options, bool) or not isinstance(options, int) or options < 0:
        return 2046, f"MQOPEN options {options!r}: a sum of MQOO_*"
    text = _verdicts.get(options)
    if text is None:
        text = rules.OPEN.verdict(options)
        if len(_verdicts) < 4096:
            _verdicts[options] = text
    if text:
        return 2046, text
    if od.ObjectType not in _TYPES:
        return 2043, f"MQOD.ObjectType {od.ObjectType}: one of {_TYPES}"
    if _fails_if_quiescing(options) and hconn.qm.is_quiescing():
        return 2161, f"queue manager {hconn.qm.name} is ending"
    limit = hconn.qm.own_attribute(_MAX_HANDLES, _MAX_HANDLES_DEFAULT)
    if len(hconn.handles) >= limit:
        return 2017, f"{len(hconn.handles)} handles are open, MAXHANDS is {limit}"
    return 0, ""


def _open_queue(hconn: Hconn, od: Any, options: int) -> Hobj:
    """Anything but a local queue by its own name."""
    queue = open_handle(hconn, od, options, od.ObjectName, od.ObjectQMgrName)
    hobj = opened(hconn, queue, od, options)
    if queue.route is not None and queue.route.opened == _MODEL:
        od.ObjectName = queue.name
        od.ObjectQMgrName = hconn.qm.name
    if options & _RESOLVE_LOCAL and od.Version >= 3:
        show_resolved(od, queue, True)
    return hobj


def _open_other(hconn: Hconn, od: Any, options: int) -> Hobj:
    """A process, a namelist or the queue manager: for MQINQ only."""
    from ..objects import TYPES

    kind = {_NAMELIST: "NAMELIST", _PROCESS: "PROCESS", _QUEUE_MANAGER: "QMGR"}[od.ObjectType]
    qm = hconn.qm
    name, manager = od.ObjectName, od.ObjectQMgrName
    if kind == "QMGR":
        if name:
            raise MQError(2194, f"MQOD.ObjectName {name!r} must be blank for the queue manager")
        name = qm.name
    else:
        check_name(name, 2152)
    if manager and manager != qm.name:
        check_name(manager, 2153)
        raise MQError(2086, f"a {kind} of queue manager {manager} cannot be opened here")
    wrong = options & ~rules.VALID[rules.OTHER]
    if wrong:
        raise MQError(2045, f"the options {wrong:#x} do not fit a {kind}")
    found = qm.look_up(TYPES[kind].name_space, name)
    if found is None:
        raise MQError(2085, f"there is no {kind} {name}")
    hobj = Hobj(hconn, options)
    hobj.inquired = TYPES[kind], found[0], found[1]
    return hconn.enter(hobj)


# ---- MQPUT1 ----


def MQPUT1(hconn: Any, od: Any, md: Any, pmo: Any, data: Any) -> tuple[int, int]:
    """Opens a queue for output, puts one message and closes the queue.

    Args:
        hconn: from MQCONN.
        od: MQOD of a queue or a distribution list.
        md: MQMD. pmo: MQPMO. data: any bytes-like object; None = no bytes.

    Returns:
        CompCode, Reason: 2057 for a model queue.
    """
    if type(hconn) is not Hconn or hconn.qm.closed:
        return 2, 2018
    if not _is(od, b"OD  ", 4):
        return hconn.refuse(2044, f"no MQOD: {od!r}")
    if od.ObjectType != _QUEUE:
        return hconn.refuse(2043, f"MQOD.ObjectType {od.ObjectType}: a queue is needed")
    try:
        if od.Version >= 2 and od.RecsPresent != 0:
            return lists.put1_list(hconn, od, md, pmo, data)
        return _put1(hconn, od, md, pmo, data)
    except MQError as error:
        return hconn.refuse(error.reason, error.text)


def _put1(hconn: Hconn, od: Any, md: Any, pmo: Any, data: Any) -> tuple[int, int]:
    queue = open_output(hconn, od, od.ObjectName, od.ObjectQMgrName)
    try:
        code = put_one(hconn, queue, md, pmo, data, _CONTEXTS, True)
        if od.Version >= 3:
            show_resolved(od, queue, False)
    finally:
        queue.shut()
    return hconn.refuse(code) if code else (0, 0)


def _is(structure: Any, struc_id: bytes, newest: int) -> bool:
    """Whether StrucId and Version are those of a structure."""
    return isinstance(structure, Structure) and has_identity(structure, struc_id, newest)
