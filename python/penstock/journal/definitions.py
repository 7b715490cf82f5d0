"""Whether a stored definition is one that a start accepts.

A start checks the last definition of each slot before it loads it, and refuses the files when one
contradicts the rules for names and attributes. Earlier definitions of a slot are not examined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .._mqi_constants import selectors as S
from . import layout as L

ATTRIBUTES_MAX = 48 * 1024  # bytes of an attribute list
SLOTS_MAX = 1 << 28

_QUEUES, _CLUSTER, _MANAGER, _STRUCTURES = 1, 107, 105, 110  # name spaces
_LOCAL_QUEUE = 1  # MQQT_LOCAL
_TEMPORARY = 3  # MQQDT_TEMPORARY_DYNAMIC
_NPM_CLASS_HIGH = 10
_NAME_SIZE = 48
_BODY_MAX, _DEPTH_MAX = 104_857_600, 999_999_999

# (name space, selector) -> least and greatest value
_LIMITS = {
    (_QUEUES, S.MQIA_DEF_PERSISTENCE): (0, 1),
    (_QUEUES, S.MQIA_DEF_PRIORITY): (0, 9),
    (_QUEUES, S.MQIA_DEFINITION_TYPE): (1, 4),
    (_QUEUES, S.MQIA_INHIBIT_GET): (0, 1),
    (_QUEUES, S.MQIA_INHIBIT_PUT): (0, 1),
    (_QUEUES, S.MQIA_USAGE): (0, 1),
    (_QUEUES, S.MQIA_MAX_MSG_LENGTH): (0, _BODY_MAX),
    (_QUEUES, S.MQIA_MAX_Q_DEPTH): (0, _DEPTH_MAX),
    (_QUEUES, S.MQIA_MSG_DELIVERY_SEQUENCE): (0, 1),
    (_QUEUES, S.MQIA_INDEX_TYPE): (0, 5),
    (_QUEUES, S.MQIA_NPM_CLASS): (0, _NPM_CLASS_HIGH),
    (_MANAGER, S.MQIA_MAX_MSG_LENGTH): (32_768, _BODY_MAX),
    (_MANAGER, S.MQIA_MAX_UNCOMMITTED_MSGS): (1, _DEPTH_MAX),
    (_STRUCTURES, S.MQIA_CF_LEVEL): (1, 5),
    (_STRUCTURES, S.MQIA_CF_RECOVER): (0, 1),
}


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute as it stands in a list. kind: 1 integer, 2 string."""

    selector: int
    kind: int
    value: bytes


def attribute_list(data: memoryview) -> Iterator[Attribute]:
    """The attributes of a list whose lengths have been checked."""
    at, head = 0, L.size_of("ps_attr")
    while at < len(data):
        a = L.overlay("ps_attr", data, at)[0]
        size, start = int(a.length), at + head
        yield Attribute(int(a.selector), int(a.kind), bytes(data[start : start + size]))
        at = start + (size + 7 & ~7)


def definition_problem(slot: int, name: bytes, space: int, type_: int, data: memoryview) -> str:
    """Why a start refuses the definition; empty when it does not."""
    if not 0 < slot < SLOTS_MAX:
        return f"object slot {slot} is not possible"
    if name[:1] == b" " or b"\0" in name:
        return "the name begins with a blank or is not padded with blanks"
    if space != _QUEUES and type_ == _LOCAL_QUEUE:
        return f"in name space {space} nothing is a local queue"
    if len(data) > ATTRIBUTES_MAX:
        return f"an attribute list of {len(data)} bytes"
    seen: set[int] = set()
    for attribute in attribute_list(data):
        problem = _attribute_problem(attribute, space, type_)
        if attribute.selector in seen:
            problem = f"attribute {attribute.selector} occurs twice"
        if problem:
            return problem
        seen.add(attribute.selector)
    return ""


def _attribute_problem(a: Attribute, space: int, type_: int) -> str:
    local = space == _QUEUES and type_ == _LOCAL_QUEUE
    if a.kind == 2 and b"\0" in a.value:
        return f"attribute {a.selector} is a string with NUL"
    limits = _LIMITS.get((_QUEUES if space == _CLUSTER else space, a.selector))
    if limits is not None:
        if a.kind != 1:
            return f"attribute {a.selector} is not an integer"
        value = int.from_bytes(a.value, "little", signed=True)
        if not limits[0] <= value <= limits[1]:
            return f"attribute {a.selector} has the value {value}"
        if a.selector == S.MQIA_NPM_CLASS and value % _NPM_CLASS_HIGH:
            return f"attribute {a.selector} has the value {value}"
        if a.selector == S.MQIA_DEFINITION_TYPE and value == _TEMPORARY and local:
            return "a temporary dynamic queue is never stored"
    if a.selector == S.MQCA_CF_STRUC_NAME and local:
        text = a.value.rstrip(b" ")
        if a.kind != 2 or len(text) > _NAME_SIZE or text[:1] == b" ":
            return f"attribute {a.selector} is no name"
    return ""
