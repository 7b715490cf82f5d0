"""Values that MQINQ reads and MQSET writes, and the attributes of a queue made from a model.

Rules: "MQINQ, MQSET and attributes" of the MQI reference.
"""

from __future__ import annotations

from .._mqi_constants import selectors as mq
from .._mqi_constants.values import MQQDT_SHARED_DYNAMIC, MQQSGD_SHARED
from ..constants import NAME_LENGTH, ReasonCode
from ..errors import MQError
from .codec import pruned
from .definition import names_of
from .types import TYPES

TYPE_CHECKING = False  # typing itself is not loaded: opening a queue needs this module
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .attribute import Stored
    from .types import ObjectType

_NAMES = mq.MQCA_NAMES
_DEFINITION_TYPE, _SHARING = mq.MQIA_DEFINITION_TYPE, mq.MQIA_QSG_DISP
_CREATION = mq.MQCA_CREATION_DATE, mq.MQCA_CREATION_TIME
_SHARED_DYNAMIC, _SHARED = MQQDT_SHARED_DYNAMIC, MQQSGD_SHARED
_NOT_INQUIRED = (
    "CHANNEL", "LISTENER", "SERVICE", "AUTHINFO", "COMMINFO", "SUB", "CHLAUTH", "AUTHREC",
)  # fmt: skip
_known: frozenset[int] = frozenset()
_set_somewhere: frozenset[int] = frozenset()


def is_selector(selector: int) -> bool:
    """Whether MQINQ knows the selector for any type of object; otherwise it is 2067."""
    global _known
    if not _known:
        _known = frozenset(
            row.selector
            for kind in TYPES.values()
            for row in kind.by_selector.values()
            if row.inquirable and kind.name not in _NOT_INQUIRED
        )
    return selector in _known


def inquire(
    kind: ObjectType,
    stored: Mapping[int, Stored],
    selector: int,
    name: str,
    status: Callable[[], Mapping[str, int]] | None = None,
) -> Stored | None:
    """The value that MQINQ returns: an int, or text without padding (see full_length).

    Args:
        kind: type of the object that is open.
        stored: its values by selector.
        selector: MQIA_* or MQCA_*.
        name: the object's name.
        status: gives the queue's status (``depth``, ``open_input``, ``open_output``); called only
            when the selector needs it.

    Returns:
        None when the selector is not for this type of object (MQRC_SELECTOR_NOT_FOR_TYPE).
    """
    row = kind.by_selector.get(selector)
    if row is None or not row.inquirable:
        return None
    if row.computed == "name":
        return name
    if row.computed == "type":
        return kind.number
    if row.computed == "count":
        return len(names_of(stored))
    if row.computed:
        return status()[row.computed] if status is not None else 0
    if row.many:
        return "".join(one.ljust(row.length) for one in names_of(stored))
    return stored.get(selector, row.default)


def full_length(kind: ObjectType, stored: Mapping[int, Stored], selector: int) -> int:
    """Bytes that the value of a character attribute has with its padding, 0 for an integer.

    A selector that is not for this type has the length that it has elsewhere.
    """
    row = kind.by_selector.get(selector)
    if row is None:
        rows = (other.by_selector.get(selector) for other in TYPES.values())
        return next((row.length for row in rows if row is not None and row.inquirable), NAME_LENGTH)
    return row.length * len(names_of(stored)) if selector == _NAMES else row.length


def settable(kind: ObjectType, selector: int, value: object) -> Stored:
    """The value that MQSET stores.

    Raises:
        MQError: 2067 when MQSET sets the selector for no type of object, 2068 when not for this
            one; 2020, 2075 to 2078, 2046 for an invalid value.
    """
    global _set_somewhere
    if not _set_somewhere:
        _set_somewhere = frozenset(
            row.selector
            for other in TYPES.values()
            for row in other.attributes.values()
            if row.settable
        )
    row = kind.by_selector.get(selector)
    if row is not None and row.settable:
        return row.parse(value)
    if selector in _set_somewhere:
        raise MQError(
            ReasonCode.SELECTOR_NOT_FOR_TYPE,
            f"selector {selector} cannot be set for a {kind.name}",
            comp_code=2,
        )
    raise MQError(ReasonCode.SELECTOR_ERROR, f"selector {selector} is none that MQSET can set")


def dynamic_queue(model: Mapping[int, Stored]) -> dict[int, Stored]:
    """Stored values of the local queue that opening a model makes, its creation stamped now.

    Everything that both types have comes from the model, DEFTYPE among it; a shared dynamic queue
    is shared (rule: "Dynamic queues from model queues").
    """
    from .timestamps import current_times

    kind = TYPES["QLOCAL"]
    whole = {**TYPES["QMODEL"].defaults, **model}
    stored = {selector: value for selector, value in whole.items() if selector in kind.by_selector}
    if stored.get(_DEFINITION_TYPE) == _SHARED_DYNAMIC:
        stored[_SHARING] = _SHARED
    return pruned(kind, stored | current_times(creation=True))
