"""The verbs of the MQI off the hot path: MQCONN to MQDISC, MQOPEN, MQPUT1, MQBEGIN.

MQPUT, MQGET, MQCLOSE, MQCMIT and MQBACK are in the engine (pyext/mqi), MQINQ and MQSET in
``inquiry``, distribution lists in ``lists``. A verb returns its results first, then completion and
reason code, and raises for no reason code; ``hconn.error`` has the text of the newest failure.

Choices where the rules leave one:

* A handle may be used by any thread; a second MQCONN of one thread is 2002 with the same handle.
* Handles that a thread leaves open are ended with it: its unit of work is backed out.
* The default queue manager, for a blank name, is the one that PENSTOCK_QMGR names; without it a
  blank name is 2058.
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
    QueueHandle,
    Structure,
    has_identity,
    open_local,
    opened,
    put1_known,
    put_one,
    register_structures,
    show_resolved,
)
from ..errors import MQError
from ..opening import option_rules as rules
from ..opening.resolution import check_name
from ..opening.selector import refused_selection
from . import constants as mq
from . import lists
from .handles import open_handle, open_output, structure_in
from .structures import MQGMO, MQMD, MQPMO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..admin.directory import Home

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

UNUSABLE = mq.MQHC_UNUSABLE_HCONN  # and MQHO_UNUSABLE_HOBJ
_QUEUE, _NAMELIST, _PROCESS = mq.MQOT_Q, mq.MQOT_NAMELIST, mq.MQOT_PROCESS
_QUEUE_MANAGER = mq.MQOT_Q_MGR
_TYPES = (_QUEUE, _NAMELIST, _PROCESS, _QUEUE_MANAGER)
_MAX_HANDLES, _MAX_HANDLES_DEFAULT = mq.MQIA_MAX_HANDLES, 256
_MODEL = mq.MQQT_MODEL
_WITH_SELECTION = mq.MQOD_VERSION_4
_FAIL_IF_QUIESCING, _RESOLVE_LOCAL = mq.MQOO_FAIL_IF_QUIESCING, mq.MQOO_RESOLVE_LOCAL_Q
_CONTEXTS = rules.CONTEXTS
_SHARE = mq.MQCNO_HANDLE_SHARE_NONE | mq.MQCNO_HANDLE_SHARE_BLOCK | mq.MQCNO_HANDLE_SHARE_NO_BLOCK
# For TCP/IP client connections only, "Options (MQLONG) for MQCNO" says.
_CONVERSATIONS = mq.MQCNO_NO_CONV_SHARING | mq.MQCNO_ALL_CONVS_SHARE
# They count when the queue manager allows an application to override it, which is not its default.
_ACCOUNTING_MQI = mq.MQCNO_ACCOUNTING_MQI_ENABLED | mq.MQCNO_ACCOUNTING_MQI_DISABLED
_ACCOUNTING_Q = mq.MQCNO_ACCOUNTING_Q_ENABLED | mq.MQCNO_ACCOUNTING_Q_DISABLED
_TRACING = mq.MQCNO_ACTIVITY_TRACE_ENABLED | mq.MQCNO_ACTIVITY_TRACE_DISABLED
_CONNECT_ONE_OF = (_SHARE, _CONVERSATIONS, _ACCOUNTING_MQI, _ACCOUNTING_Q, _TRACING)
_CONNECT_KNOWN = (
    _SHARE
    | _CONVERSATIONS
    | _ACCOUNTING_MQI
    | _ACCOUNTING_Q
    | _TRACING
    | mq.MQCNO_FASTPATH_BINDING
    | mq.MQCNO_SHARED_BINDING
    | mq.MQCNO_ISOLATED_BINDING
    | mq.MQCNO_LOCAL_BINDING
    | mq.MQCNO_RECONNECT_DISABLED
)
_DEFAULT_MANAGER = "PENSTOCK_QMGR"

_WITH_APPL_NAME, _WITH_CONNECTION_ID = mq.MQCNO_VERSION_7, mq.MQCNO_VERSION_5

_thread = threading.local()
register_structures(MQMD, MQPMO, MQGMO)
_verdicts: dict[int, str] = {}


# ---- MQCONN, MQCONNX, MQDISC ----


def MQCONN(name: str | bytes = "", *, home: Home = None) -> tuple[Any, int, int]:
    """Connects to a queue manager.

    Args:
        name: the queue manager's name; it must exist. Blank: the one that the environment variable
            PENSTOCK_QMGR names.
        home: the directory that contains its directory; None: as for :func:`penstock.connect`.

    Returns:
        hconn, CompCode, Reason: 2002 (a warning) with the handle there is, when this thread is
        connected already; 2058 for a name that is unknown, 2161 while it is quiescing, 2059,
        2009, 2162 as the case may be.
    """
    return _connect(name, 0, home)


def MQCONNX(name: str | bytes, cno: Any = None, *, home: Home = None) -> tuple[Any, int, int]:
    """Connects with options.

    Args:
        name, home: as for MQCONN.
        cno: MQCNO; with MQCNO_HANDLE_SHARE_BLOCK or _NO_BLOCK the handle is a new one. From version
            7 on, ApplName is the PutApplName of messages that a new connection puts; from version 5
            on, ConnectionId is returned: EXTCONN and CONN of DISPLAY CONN.

    Returns:
        hconn, CompCode, Reason: as MQCONN; 2139 for a wrong MQCNO; 2046 for options that exclude
        each other, that need a client, or connection tags.
    """
    if cno is None:
        return _connect(name, 0, home)
    cno = structure_in(cno)
    if not _is(cno, b"CNO ", 8):
        return UNUSABLE, mq.MQCC_FAILED, mq.MQRC_CNO_ERROR
    chosen: int = cno.Options
    if chosen & ~_CONNECT_KNOWN or any((chosen & one).bit_count() > 1 for one in _CONNECT_ONE_OF):
        return UNUSABLE, mq.MQCC_FAILED, mq.MQRC_OPTIONS_ERROR
    hconn, comp_code, reason = _connect(name, chosen & _SHARE, home)
    if comp_code == mq.MQCC_FAILED:
        return hconn, comp_code, reason
    if comp_code == mq.MQCC_OK and cno.Version >= _WITH_APPL_NAME and cno.ApplName:
        hconn.qm.name_program(cno.ApplName)
    if cno.Version >= _WITH_CONNECTION_ID:
        cno.ConnectionId = _own_id(hconn.qm)
    return hconn, comp_code, reason


def _own_id(qm: Any) -> bytes:
    """ConnectionId: of this process, as DISPLAY CONN shows it."""
    from ..client.identity_context import connection_id

    own = next(row for row in qm.process_list() if row.pid == os.getpid())
    return connection_id(qm.name, own.attached_us, own.pid)


def _connect(name: str | bytes, sharing: int, home: Home) -> tuple[Any, int, int]:
    from ..admin.settings import manager_directory
    from ..client.connection import QueueManager

    if isinstance(name, bytes):
        name = name.decode("utf-8", "replace")
    if not isinstance(name, str):
        return UNUSABLE, mq.MQCC_FAILED, mq.MQRC_Q_MGR_NAME_ERROR
    name = name.split("\0", 1)[0].rstrip(" ") or os.environ.get(_DEFAULT_MANAGER, "")
    try:
        path = manager_directory(name, home)
    except (ValueError, TypeError):
        return UNUSABLE, mq.MQCC_FAILED, mq.MQRC_Q_MGR_NAME_ERROR
    known: dict[tuple[str, int], Hconn] = _thread.__dict__.setdefault("known", {})
    key = os.fspath(path), os.getpid()
    own = bool(sharing & ~32)
    hconn = known.get(key)
    if hconn is not None and not own and not hconn.qm.closed:
        return hconn, mq.MQCC_WARNING, mq.MQRC_ALREADY_CONNECTED
    try:
        hconn = Hconn(QueueManager(name, home), sharing)
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
        return mq.MQCC_FAILED, mq.MQRC_HCONN_ERROR
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
    return mq.MQCC_WARNING if code == mq.MQRC_BACKED_OUT else mq.MQCC_FAILED, code


def MQBEGIN(hconn: Any, bo: Any = None) -> tuple[int, int]:
    """Begins a unit of work coordinated by the queue manager.

    Returns:
        CompCode, Reason: 2121 with a warning (there are no other resource managers); 2128 when
        a unit of work is open, 2134 for a wrong MQBO, 2012 on platform z/OS.
    """
    if type(hconn) is not Hconn or hconn.qm.closed:
        return mq.MQCC_FAILED, mq.MQRC_HCONN_ERROR
    bo = structure_in(bo)
    if bo is not None and not _is(bo, b"BO  ", 1):
        return mq.MQCC_FAILED, mq.MQRC_BO_ERROR
    if hconn.zos:
        return hconn.refuse(mq.MQRC_ENVIRONMENT_ERROR, "MQBEGIN is not for platform z/OS")
    if bo is not None and bo.Options != 0:
        return hconn.refuse(
            mq.MQRC_OPTIONS_ERROR, f"MQBO.Options {bo.Options:#x}: none are defined"
        )
    if hconn.begun or hconn.pending():
        return hconn.refuse(
            mq.MQRC_UOW_IN_PROGRESS, "a unit of work is under way: MQCMIT or MQBACK first"
        )
    hconn.begun = True
    return mq.MQCC_WARNING, mq.MQRC_NO_EXTERNAL_PARTICIPANTS


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
        return UNUSABLE, mq.MQCC_FAILED, mq.MQRC_HCONN_ERROR
    od = structure_in(od)
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
        return mq.MQRC_OD_ERROR, f"no MQOD: {od!r}"
    if isinstance(options, bool) or not isinstance(options, int) or options < 0:
        return mq.MQRC_OPTIONS_ERROR, f"MQOPEN options {options!r}: a sum of MQOO_*"
    text = _verdicts.get(options)
    if text is None:
        text = rules.OPEN.verdict(options)
        if len(_verdicts) < 4096:
            _verdicts[options] = text
    if text:
        return mq.MQRC_OPTIONS_ERROR, text
    if od.ObjectType not in _TYPES:
        return mq.MQRC_OBJECT_TYPE_ERROR, f"MQOD.ObjectType {od.ObjectType}: one of {_TYPES}"
    if od.Version >= _WITH_SELECTION and od.SelectionString:
        return refused_selection(od.SelectionString, od.ObjectType == _QUEUE, options)
    if _fails_if_quiescing(options) and hconn.qm.is_quiescing():
        return mq.MQRC_Q_MGR_QUIESCING, f"queue manager {hconn.qm.name} is ending"
    limit = hconn.qm.own_attribute(_MAX_HANDLES, _MAX_HANDLES_DEFAULT)
    if len(hconn.handles) >= limit:
        return (
            mq.MQRC_HANDLE_NOT_AVAILABLE,
            f"{len(hconn.handles)} handles are open, MAXHANDS is {limit}",
        )
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
            raise MQError(
                mq.MQRC_NAME_NOT_VALID_FOR_TYPE,
                f"MQOD.ObjectName {name!r} must be blank for the queue manager",
            )
        name = qm.name
    else:
        check_name(name, mq.MQRC_OBJECT_NAME_ERROR)
    if manager and manager != qm.name:
        check_name(manager, mq.MQRC_OBJECT_Q_MGR_NAME_ERROR)
        raise MQError(
            mq.MQRC_UNKNOWN_OBJECT_Q_MGR,
            f"a {kind} of queue manager {manager} cannot be opened here",
        )
    wrong = options & ~rules.VALID[rules.OTHER]
    if wrong:
        raise MQError(
            mq.MQRC_OPTION_NOT_VALID_FOR_TYPE, f"the options {wrong:#x} do not fit a {kind}"
        )
    found = qm.look_up(TYPES[kind].name_space, name)
    if found is None:
        raise MQError(mq.MQRC_UNKNOWN_OBJECT_NAME, f"there is no {kind} {name}")
    hobj = Hobj(hconn, options)
    hobj.inquired = TYPES[kind], found[0], found[1]
    if kind != "QMGR":
        hobj.held = QueueHandle.hold(qm, name, found)
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
        return mq.MQCC_FAILED, mq.MQRC_HCONN_ERROR
    done = put1_known(hconn, od, md, pmo, data)
    if done is not None:
        return done
    od = structure_in(od)
    if not _is(od, b"OD  ", 4):
        return hconn.refuse(mq.MQRC_OD_ERROR, f"no MQOD: {od!r}")
    if od.ObjectType != _QUEUE:
        return hconn.refuse(
            mq.MQRC_OBJECT_TYPE_ERROR, f"MQOD.ObjectType {od.ObjectType}: a queue is needed"
        )
    if od.Version >= _WITH_SELECTION and od.SelectionString:
        return hconn.refuse(*refused_selection(od.SelectionString, True, mq.MQOO_OUTPUT))
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
        if _is_asynchronous(pmo):
            hconn.count_async(code, queue)
        if od.Version >= 3:
            show_resolved(od, queue, False)
    finally:
        queue.shut()
    return hconn.refuse(code) if code else (0, 0)


def _is_asynchronous(pmo: Any) -> bool:
    pmo = structure_in(pmo)
    return isinstance(pmo, MQPMO) and bool(pmo.Options & mq.MQPMO_ASYNC_RESPONSE)


def _is(structure: Any, struc_id: bytes, newest: int) -> bool:
    """Whether StrucId and Version are those of a structure."""
    return isinstance(structure, Structure) and has_identity(structure, struc_id, newest)
