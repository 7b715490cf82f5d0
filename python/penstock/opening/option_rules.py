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

TYPE_CHECKING = False  # typing itself is not loaded: importing penstock is cheap
if TYPE_CHECKING:
    from collections.abc import Mapping

OPTIONS_ERROR = 2046
OPTION_NOT_VALID_FOR_TYPE = 2045


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

_INPUT = 1 | 2 | 4
_BROWSE, _OUTPUT, _INQUIRE, _SET, _SAVE = 8, 16, 32, 64, 128
_CONTEXT = 256 | 512 | 1024 | 2048
_BIND = 16384 | 32768 | 4194304
_READ_AHEAD = 524288 | 1048576
_RESOLVE_NAMES, _CO_OP, _RESOLVE_LOCAL, _NO_MULTICAST = 65536, 131072, 262144, 2097152

OPEN = Rules(
    0x7FFFFF,
    any_of=_INPUT | _BROWSE | _OUTPUT | _INQUIRE | _SET | _BIND,
    exclusive=(_INPUT, _BIND, _READ_AHEAD),
    needs=((_SAVE, _INPUT), (_CONTEXT, _OUTPUT), (_CO_OP, _BROWSE), (_NO_MULTICAST, _OUTPUT)),
)

# Kinds of objects, indexes of VALID.
LOCAL, REMOTE_DEFINITION, REMOTE, CLUSTER, LIST, OTHER = range(6)

_ALWAYS = 4096 | 8192 | _BIND | _NO_MULTICAST  # alternate user, fail-if-quiescing
VALID: tuple[int, ...] = (
    OPEN.known,
    _ALWAYS | _OUTPUT | _INQUIRE | _SET | _CONTEXT | _RESOLVE_LOCAL,
    _ALWAYS | _OUTPUT | _CONTEXT | _RESOLVE_LOCAL,
    _ALWAYS | _OUTPUT | _INQUIRE | _CONTEXT | _RESOLVE_LOCAL,
    _ALWAYS | _OUTPUT | _CONTEXT,
    4096 | 8192 | _INQUIRE,
)

# ---- MQPUT, MQPUT1 ----

_SYNCPOINTS_PUT = 2 | 4
_PUT_CONTEXTS = 32 | 16384 | 256 | 512 | 1024 | 2048
_RESPONSES = 65536 | 131072
_TOPICS = 2097152 | 67108864 | 134217728 | 268435456 | 524288
_PUT_KNOWN = (
    _SYNCPOINTS_PUT | _PUT_CONTEXTS | _RESPONSES | _TOPICS
    | 64 | 128 | 4096 | 8192 | 32768 | 262144 | 8388608
)  # fmt: skip
_PUT_LATER = {
    32768: "MQPMO_LOGICAL_ORDER needs message groups kept by the queue manager",
    8388608: "MQPMO_MD_FOR_OUTPUT_ONLY needs a message handle",
    2097152: "MQPMO_RETAIN is for topics",
    67108864: "MQPMO_SCOPE_QMGR is for topics",
    134217728: "MQPMO_SUPPRESS_REPLYTO is for topics",
    268435456: "MQPMO_NOT_OWN_SUBS is for topics",
    524288: "MQPMO_WARN_IF_NO_SUBS_MATCHED is for topics",
}
_PUT_EXCLUSIVE = (_SYNCPOINTS_PUT, _PUT_CONTEXTS, _RESPONSES)

PUT = Rules(
    _PUT_KNOWN,
    exclusive=_PUT_EXCLUSIVE,
    later={**_PUT_LATER, 4096: "MQPMO_ALTERNATE_USER_AUTHORITY is for MQPUT1"},
)
PUT1 = Rules(_PUT_KNOWN, exclusive=_PUT_EXCLUSIVE, later=_PUT_LATER)

# ---- MQGET ----

_WAIT, _SYNCPOINT, _NO_SYNCPOINT, _IF_PERSISTENT = 1, 2, 4, 4096
_BROWSE_ANY = 16 | 32 | 2048
_LOCK, _UNLOCK = 512, 1024
_MARKS = 0x100000 | 0x200000 | 0x400000 | 0x800000 | 0x1000000
_PROPERTIES = 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000
_GET_KNOWN = 0x7FFFF & ~0x80000 | _MARKS | _PROPERTIES

GET = Rules(
    _GET_KNOWN,
    exclusive=(
        _SYNCPOINT | _NO_SYNCPOINT | _IF_PERSISTENT,
        _BROWSE_ANY | 256,
    ),
    needs=((_LOCK, _BROWSE_ANY),),
    excludes=(
        (_SYNCPOINT, _BROWSE_ANY | _LOCK | _UNLOCK),
        (_IF_PERSISTENT, _BROWSE_ANY | _UNLOCK),
        (_UNLOCK, _GET_KNOWN & ~(_UNLOCK | _NO_SYNCPOINT)),
    ),
    later={
        8: "MQGMO_SET_SIGNAL needs z/OS signals",
        128: "MQGMO_MARK_SKIP_BACKOUT needs z/OS backout marks",
        16384: "MQGMO_CONVERT needs data conversion",
        32768: "MQGMO_LOGICAL_ORDER needs message groups kept by the queue manager",
        65536: "MQGMO_COMPLETE_MSG needs segmentation",
        131072: "MQGMO_ALL_MSGS_AVAILABLE needs message groups kept by the queue manager",
        262144: "MQGMO_ALL_SEGMENTS_AVAILABLE needs segmentation",
        0x100000: "MQGMO_MARK_BROWSE_HANDLE needs browse marks",
        0x200000: "MQGMO_MARK_BROWSE_CO_OP needs browse marks",
        0x400000: "MQGMO_UNMARK_BROWSE_CO_OP needs browse marks",
        0x800000: "MQGMO_UNMARK_BROWSE_HANDLE needs browse marks",
        0x1000000: "MQGMO_UNMARKED_BROWSE_MSG needs browse marks",
        0x2000000: "MQGMO_PROPERTIES_FORCE_MQRFH2 needs message properties",
        0x4000000: "MQGMO_NO_PROPERTIES needs message properties",
        0x8000000: "MQGMO_PROPERTIES_IN_HANDLE needs message handles",
        0x10000000: "MQGMO_PROPERTIES_COMPATIBILITY needs message properties",
    },
)

# ---- MQCLOSE ----

CLOSE_NONE, CLOSE_DELETE, CLOSE_PURGE, CLOSE_KEEP_SUB, CLOSE_REMOVE_SUB, CLOSE_QUIESCE = (
    0, 1, 2, 4, 8, 32,
)  # fmt: skip
CLOSE = frozenset(
    (CLOSE_NONE, CLOSE_DELETE, CLOSE_PURGE, CLOSE_KEEP_SUB, CLOSE_REMOVE_SUB, CLOSE_QUIESCE)
)
