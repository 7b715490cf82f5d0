"""Rules for the options of MQOPEN, MQPUT, MQPUT1, MQGET and MQCLOSE, as data.

A :class:`Rules` table lists for the options of one call the known bits, the mutually exclusive
groups, the requirements and exclusions between options, and the options that need a part of MQ that
is not implemented. None of these is ignored: each is refused with 2046 (MQRC_OPTIONS_ERROR), the
reason code that MQ documents for an invalid option. The table VALID lists the open options that are
valid for a kind of object: 2045 (MQRC_OPTION_NOT_VALID_FOR_TYPE).

Rules of "Rules for validating MQI options", "MQOPEN options", "MQGMO options" and "MQPMO options".

Accepted without effect, because a caller on a local connection cannot observe a difference:
READ_AHEAD and NO_READ_AHEAD (nothing is read ahead), ALTERNATE_USER_AUTHORITY (only the permissions
of the directory are checked), ASYNC_RESPONSE (a put returns its result at once, as "Asynchronous
put" allows), BIND_* on queues that are not cluster queues, MQOO_CO_OP (the browse marks that it
would share are refused).
"""

from __future__ import annotations

from .._mqi_constants import calls as mq
from .._mqi_constants.reason_codes import MQRC_OPTION_NOT_VALID_FOR_TYPE, MQRC_OPTIONS_ERROR

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Mapping

OPTIONS_ERROR = MQRC_OPTIONS_ERROR
OPTION_NOT_VALID_FOR_TYPE = MQRC_OPTION_NOT_VALID_FOR_TYPE


class Rules:
    """The rules for the options of one call.

    Attributes:
        known: every bit that MQ defines for the call.
        any_of: at least one of these must be given; 0 = none needed.
        exclusive: of each of these at most one bit.
        needs: (option, others): the option needs one of the others.
        excludes: (options, others): any of the options excludes all of the others.
        later: option -> the missing part of MQ that it needs.
    """

    __slots__ = ("any_of", "excludes", "exclusive", "known", "later", "needs")

    def __init__(
        self,
        known: int,
        *,
        any_of: int = 0,
        exclusive: tuple[int, ...] = (),
        needs: tuple[tuple[int, int], ...] = (),
        excludes: tuple[tuple[int, int], ...] = (),
        later: Mapping[int, str] | None = None,
    ) -> None:
        """Stores the table."""
        self.known = known
        self.any_of = any_of
        self.exclusive = exclusive
        self.needs = needs
        self.excludes = excludes
        self.later = later or {}

    def verdict(self, options: int) -> str:
        """The first rule that the options break (2046), an empty string when they are valid."""
        if options & ~self.known:
            return f"the options {options:#x} have unknown bits {options & ~self.known:#x}"
        if self.any_of and not options & self.any_of:
            return f"the options {options:#x} do not include any of {self.any_of:#x}"
        for option, text in self.later.items():
            if options & option:
                return f"the option {option:#x} is not available: {text}"
        for group in self.exclusive:
            if (options & group).bit_count() > 1:
                return f"the options {options & group:#x} exclude each other"
        for option, others in self.needs:
            if options & option and not options & others:
                return f"the option {options & option:#x} needs one of {others:#x}"
        for option, others in self.excludes:
            if options & option and options & others:
                return f"the option {options & option:#x} goes without {options & others:#x}"
        return ""


# ---- MQOPEN ----

_INPUT = mq.MQOO_INPUT_AS_Q_DEF | mq.MQOO_INPUT_SHARED | mq.MQOO_INPUT_EXCLUSIVE
_BROWSE, _OUTPUT, _INQUIRE, _SET = mq.MQOO_BROWSE, mq.MQOO_OUTPUT, mq.MQOO_INQUIRE, mq.MQOO_SET
_SAVE = mq.MQOO_SAVE_ALL_CONTEXT
CONTEXTS = (  # the same bits are MQPMO_*
    mq.MQOO_PASS_IDENTITY_CONTEXT
    | mq.MQOO_PASS_ALL_CONTEXT
    | mq.MQOO_SET_IDENTITY_CONTEXT
    | mq.MQOO_SET_ALL_CONTEXT
)
_BIND = mq.MQOO_BIND_ON_OPEN | mq.MQOO_BIND_NOT_FIXED | mq.MQOO_BIND_ON_GROUP
_READ_AHEAD = mq.MQOO_NO_READ_AHEAD | mq.MQOO_READ_AHEAD
_RESOLVE_LOCAL, _NO_MULTICAST = mq.MQOO_RESOLVE_LOCAL_Q, mq.MQOO_NO_MULTICAST
_ANY_OBJECT = mq.MQOO_ALTERNATE_USER_AUTHORITY | mq.MQOO_FAIL_IF_QUIESCING

OPEN = Rules(
    2 * mq.MQOO_BIND_ON_GROUP - 1,  # the highest option and all below
    any_of=_INPUT | _BROWSE | _OUTPUT | _INQUIRE | _SET | _BIND,
    exclusive=(_INPUT, _BIND, _READ_AHEAD),
    needs=(
        (_SAVE, _INPUT),
        (CONTEXTS, _OUTPUT),
        (mq.MQOO_CO_OP, _BROWSE),
        (_NO_MULTICAST, _OUTPUT),
    ),
)

# Kinds of objects, indexes of VALID.
LOCAL, REMOTE_DEFINITION, REMOTE, CLUSTER, LIST, OTHER = range(6)

_ALWAYS = _ANY_OBJECT | _BIND | _NO_MULTICAST
VALID: tuple[int, ...] = (
    OPEN.known,
    _ALWAYS | _OUTPUT | _INQUIRE | _SET | CONTEXTS | _RESOLVE_LOCAL,
    _ALWAYS | _OUTPUT | CONTEXTS | _RESOLVE_LOCAL,
    _ALWAYS | _OUTPUT | _INQUIRE | CONTEXTS | _RESOLVE_LOCAL,
    _ALWAYS | _OUTPUT | CONTEXTS,
    _ANY_OBJECT | _INQUIRE,
)

# ---- MQPUT, MQPUT1 ----

_SYNCPOINTS_PUT = mq.MQPMO_SYNCPOINT | mq.MQPMO_NO_SYNCPOINT
_PUT_CONTEXTS = mq.MQPMO_DEFAULT_CONTEXT | mq.MQPMO_NO_CONTEXT | CONTEXTS
_RESPONSES = mq.MQPMO_ASYNC_RESPONSE | mq.MQPMO_SYNC_RESPONSE
_TOPICS = (
    mq.MQPMO_RETAIN
    | mq.MQPMO_SCOPE_QMGR
    | mq.MQPMO_SUPPRESS_REPLYTO
    | mq.MQPMO_NOT_OWN_SUBS
    | mq.MQPMO_WARN_IF_NO_SUBS_MATCHED
)
_PUT_KNOWN = (
    _SYNCPOINTS_PUT
    | _PUT_CONTEXTS
    | _RESPONSES
    | _TOPICS
    | mq.MQPMO_NEW_MSG_ID
    | mq.MQPMO_NEW_CORREL_ID
    | mq.MQPMO_ALTERNATE_USER_AUTHORITY
    | mq.MQPMO_FAIL_IF_QUIESCING
    | mq.MQPMO_LOGICAL_ORDER
    | mq.MQPMO_RESOLVE_LOCAL_Q
    | mq.MQPMO_MD_FOR_OUTPUT_ONLY
)
_PUT_LATER = {
    mq.MQPMO_LOGICAL_ORDER: "MQPMO_LOGICAL_ORDER needs message groups kept by the queue manager",
    mq.MQPMO_MD_FOR_OUTPUT_ONLY: "MQPMO_MD_FOR_OUTPUT_ONLY needs a message handle",
    mq.MQPMO_RETAIN: "MQPMO_RETAIN is for topics",
    mq.MQPMO_SCOPE_QMGR: "MQPMO_SCOPE_QMGR is for topics",
    mq.MQPMO_SUPPRESS_REPLYTO: "MQPMO_SUPPRESS_REPLYTO is for topics",
    mq.MQPMO_NOT_OWN_SUBS: "MQPMO_NOT_OWN_SUBS is for topics",
    mq.MQPMO_WARN_IF_NO_SUBS_MATCHED: "MQPMO_WARN_IF_NO_SUBS_MATCHED is for topics",
}
_PUT_EXCLUSIVE = (_SYNCPOINTS_PUT, _PUT_CONTEXTS, _RESPONSES)

PUT = Rules(
    _PUT_KNOWN,
    exclusive=_PUT_EXCLUSIVE,
    later={
        **_PUT_LATER,
        mq.MQPMO_ALTERNATE_USER_AUTHORITY: "MQPMO_ALTERNATE_USER_AUTHORITY is for MQPUT1",
    },
)
PUT1 = Rules(_PUT_KNOWN, exclusive=_PUT_EXCLUSIVE, later=_PUT_LATER)

# ---- MQGET ----

_SYNCPOINT, _NO_SYNCPOINT = mq.MQGMO_SYNCPOINT, mq.MQGMO_NO_SYNCPOINT
_IF_PERSISTENT = mq.MQGMO_SYNCPOINT_IF_PERSISTENT
_BROWSE_ANY = mq.MQGMO_BROWSE_FIRST | mq.MQGMO_BROWSE_NEXT | mq.MQGMO_BROWSE_MSG_UNDER_CURSOR
_LOCK, _UNLOCK = mq.MQGMO_LOCK, mq.MQGMO_UNLOCK
_MARKS = (
    mq.MQGMO_MARK_BROWSE_HANDLE
    | mq.MQGMO_MARK_BROWSE_CO_OP
    | mq.MQGMO_UNMARK_BROWSE_CO_OP
    | mq.MQGMO_UNMARK_BROWSE_HANDLE
    | mq.MQGMO_UNMARKED_BROWSE_MSG
)
_PROPERTIES = (
    mq.MQGMO_PROPERTIES_FORCE_MQRFH2
    | mq.MQGMO_NO_PROPERTIES
    | mq.MQGMO_PROPERTIES_IN_HANDLE
    | mq.MQGMO_PROPERTIES_COMPATIBILITY
)
_GET_KNOWN = (2 * mq.MQGMO_ALL_SEGMENTS_AVAILABLE - 1) | _MARKS | _PROPERTIES  # all bits below

GET = Rules(
    _GET_KNOWN,
    exclusive=(
        _SYNCPOINT | _NO_SYNCPOINT | _IF_PERSISTENT,
        _BROWSE_ANY | mq.MQGMO_MSG_UNDER_CURSOR,
        _PROPERTIES,
    ),
    needs=((_LOCK, _BROWSE_ANY),),
    excludes=(
        (_SYNCPOINT, _BROWSE_ANY | _LOCK | _UNLOCK),
        (_IF_PERSISTENT, _BROWSE_ANY | _UNLOCK),
        (_UNLOCK, _GET_KNOWN & ~(_UNLOCK | _NO_SYNCPOINT)),
    ),
    later={
        mq.MQGMO_SET_SIGNAL: "MQGMO_SET_SIGNAL needs z/OS signals",
        mq.MQGMO_MARK_SKIP_BACKOUT: "MQGMO_MARK_SKIP_BACKOUT needs z/OS backout marks",
        mq.MQGMO_LOGICAL_ORDER: (
            "MQGMO_LOGICAL_ORDER needs message groups kept by the queue manager"
        ),
        mq.MQGMO_COMPLETE_MSG: "MQGMO_COMPLETE_MSG needs segmentation",
        mq.MQGMO_ALL_MSGS_AVAILABLE: (
            "MQGMO_ALL_MSGS_AVAILABLE needs message groups kept by the queue manager"
        ),
        mq.MQGMO_ALL_SEGMENTS_AVAILABLE: "MQGMO_ALL_SEGMENTS_AVAILABLE needs segmentation",
        mq.MQGMO_MARK_BROWSE_HANDLE: "MQGMO_MARK_BROWSE_HANDLE needs browse marks",
        mq.MQGMO_MARK_BROWSE_CO_OP: "MQGMO_MARK_BROWSE_CO_OP needs browse marks",
        mq.MQGMO_UNMARK_BROWSE_CO_OP: "MQGMO_UNMARK_BROWSE_CO_OP needs browse marks",
        mq.MQGMO_UNMARK_BROWSE_HANDLE: "MQGMO_UNMARK_BROWSE_HANDLE needs browse marks",
        mq.MQGMO_UNMARKED_BROWSE_MSG: "MQGMO_UNMARKED_BROWSE_MSG needs browse marks",
        mq.MQGMO_PROPERTIES_IN_HANDLE: "MQGMO_PROPERTIES_IN_HANDLE needs message handles",
    },
)

# ---- MQCLOSE ----

CLOSE_NONE, CLOSE_DELETE, CLOSE_PURGE = mq.MQCO_NONE, mq.MQCO_DELETE, mq.MQCO_DELETE_PURGE
CLOSE_KEEP_SUB, CLOSE_REMOVE_SUB = mq.MQCO_KEEP_SUB, mq.MQCO_REMOVE_SUB
CLOSE_QUIESCE = mq.MQCO_QUIESCE
CLOSE = frozenset(
    (CLOSE_NONE, CLOSE_DELETE, CLOSE_PURGE, CLOSE_KEEP_SUB, CLOSE_REMOVE_SUB, CLOSE_QUIESCE)
)
