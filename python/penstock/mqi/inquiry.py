"""MQINQ and MQSET: attributes of an open object, by selector.

Rules of "MQINQ, MQSET and attributes" and "MQINQ usage notes". Choices where the rules are silent:

* Character values are text without its padding; a selector that is not valid for the type of the
  object gives -1 (MQIAV_NOT_APPLICABLE) or asterisks, with the warning 2068.
* ``int_attr_count`` and ``char_attr_length`` are the sizes of the areas of the C call: values
  beyond them are omitted (2022) or truncated (2008). Without them there is no limit.
* MQSET changes all of its attributes or none, outside any unit of work.
"""

from __future__ import annotations

from collections.abc import Mapping

from .._engine import Hconn, Hobj
from ..errors import MQError, UnknownObjectName
from . import constants as mq

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..objects import ObjectType

_INQUIRE, _SET = mq.MQOO_INQUIRE, mq.MQOO_SET
_SELECTORS_MAX = 256
_CHARACTER = mq.MQIA_LAST  # selectors above are MQCA_*
_NOT_APPLICABLE = mq.MQIAV_NOT_APPLICABLE
# Warnings, in order of precedence.
_NOT_FOR_TYPE = mq.MQRC_SELECTOR_NOT_FOR_TYPE
_INTEGERS_SHORT = mq.MQRC_INT_ATTR_COUNT_TOO_SMALL
_CHARACTERS_SHORT = mq.MQRC_CHAR_ATTRS_TOO_SHORT
_TYPES_OF_QUEUE = {
    mq.MQQT_LOCAL: "QLOCAL",
    mq.MQQT_MODEL: "QLOCAL",
    mq.MQQT_ALIAS: "QALIAS",
    mq.MQQT_REMOTE: "QREMOTE",
    mq.MQQT_CLUSTER: "QCLUSTER",
}
_GET, _ATTEMPTS = mq.MQIA_INHIBIT_GET, 1000


def MQINQ(
    hconn: Any,
    hobj: Any,
    selectors: Sequence[int],
    int_attr_count: int | None = None,
    char_attr_length: int | None = None,
) -> tuple[dict[int, int | str], int, int]:
    """Attributes of an object opened with MQOO_INQUIRE.

    Args:
        hconn, hobj: from MQCONN and MQOPEN.
        selectors: MQIA_* and MQCA_*, at most 256.
        int_attr_count, char_attr_length: room for integers and characters; None: enough.

    Returns:
        values by selector, CompCode, Reason: 2038 without MQOO_INQUIRE, 2067 for an unknown
        selector, 2041 when the definition changed since the open; 2068, 2022 and 2008 are warnings.
    """
    found = _handle(hconn, hobj)
    if isinstance(found, int):
        return {}, 2, found
    try:
        return _inquire(found, selectors, int_attr_count, char_attr_length)
    except MQError as error:
        return {}, *found.hconn.refuse(error.reason, error.text)


def MQSET(hconn: Any, hobj: Any, values: Mapping[int, int | str]) -> tuple[int, int]:
    """Changes attributes of a queue opened with MQOO_SET, at once.

    Args:
        hconn, hobj: from MQCONN and MQOPEN.
        values: by selector, at most 256.

    Returns:
        CompCode, Reason: 2040 without MQOO_SET, 2067 for a selector that cannot be set, 2020 and
        2075 to 2078 for values.
    """
    found = _handle(hconn, hobj)
    if isinstance(found, int):
        return 2, found
    try:
        _set(found, values)
    except MQError as error:
        return found.hconn.refuse(error.reason, error.text)
    return 0, 0


def _handle(hconn: Any, hobj: Any) -> Hobj | int:
    """The open handle, else 2018, 2019 or the reason code of an unusable connection."""
    if type(hconn) is not Hconn or hconn.qm.closed:
        return mq.MQRC_HCONN_ERROR
    if isinstance(hobj, int) and not isinstance(hobj, bool):
        hobj = hconn.handles.get(hobj)
    if type(hobj) is not Hobj or hobj.hconn is not hconn or int(hobj) == -1:
        return hconn.refuse(mq.MQRC_HOBJ_ERROR, "the object handle is not open")[1]
    return hobj


def _definition(hobj: Hobj) -> tuple[ObjectType, int, int]:
    """Type, slot and generation of the handle's definition. Raises MQError: 2041, 2052."""
    from ..objects import TYPES

    if hobj.queue is None:
        if hobj.inquired is None:
            raise MQError(mq.MQRC_NOT_OPEN_FOR_INQUIRE, "a distribution list has no attributes")
        kind, slot, generation = hobj.inquired
        return kind, slot, generation
    hobj.queue.check_path()
    kind_number, slot, generation = hobj.queue.inquired
    return TYPES[_TYPES_OF_QUEUE[kind_number]], slot, generation


def _read(hobj: Hobj, slot: int, generation: int) -> tuple[Any, ...]:
    """The definition as stored: 2041, or 2052 for a queue, when it is gone."""
    try:
        found: tuple[Any, ...] = hobj.hconn.qm.read_stamped(slot, generation)
    except UnknownObjectName:
        reason = mq.MQRC_OBJECT_CHANGED if hobj.queue is None else mq.MQRC_Q_DELETED
        raise MQError(reason, "the object has been deleted") from None
    return found


# ---- MQINQ ----


def _inquire(
    hobj: Hobj,
    selectors: Sequence[int],
    int_attr_count: int | None,
    char_attr_length: int | None,
) -> tuple[dict[int, int | str], int, int]:
    from ..objects.codec import decode
    from ..objects.inquiry import inquire

    chosen = _check_inquiry(hobj, selectors, int_attr_count, char_attr_length)
    kind, slot, generation = _definition(hobj)
    _, name, attrs, *_ = _read(hobj, slot, generation)
    stored = {**kind.defaults, **decode(attrs)}
    status = _status(hobj, slot, generation)
    warnings: set[int] = set()
    area = _Area(int_attr_count, char_attr_length, warnings)
    values: dict[int, int | str] = {}
    for selector in chosen:
        value = inquire(kind, stored, selector, name, status)
        if value is None:
            warnings.add(_NOT_FOR_TYPE)
        value = area.place(kind, stored, selector, value)
        if value is not None:
            values[selector] = value
    for code in (_NOT_FOR_TYPE, _INTEGERS_SHORT, _CHARACTERS_SHORT):
        if code in warnings:
            return values, 1, code
    return values, 0, 0


def _check_inquiry(
    hobj: Hobj,
    selectors: Sequence[int],
    int_attr_count: int | None,
    char_attr_length: int | None,
) -> list[int]:
    """The selectors: 2038, 2065, 2066, 2067, 2021, 2006."""
    from ..objects.inquiry import is_selector

    if not hobj.options & _INQUIRE:
        raise MQError(mq.MQRC_NOT_OPEN_FOR_INQUIRE, "the object was not opened with MQOO_INQUIRE")
    try:
        chosen = list(selectors)
    except TypeError:
        raise MQError(
            mq.MQRC_SELECTOR_COUNT_ERROR, f"selectors {selectors!r}: a list of numbers"
        ) from None
    if len(chosen) > _SELECTORS_MAX:
        raise MQError(
            mq.MQRC_SELECTOR_LIMIT_EXCEEDED, f"{len(chosen)} selectors, at most {_SELECTORS_MAX}"
        )
    for selector in chosen:
        if isinstance(selector, bool) or not isinstance(selector, int) or not is_selector(selector):
            raise MQError(mq.MQRC_SELECTOR_ERROR, f"selector {selector!r} is not known")
    if int_attr_count is not None and int_attr_count < 0:
        raise MQError(mq.MQRC_INT_ATTR_COUNT_ERROR, f"IntAttrCount {int_attr_count} is negative")
    if char_attr_length is not None and char_attr_length < 0:
        raise MQError(
            mq.MQRC_CHAR_ATTR_LENGTH_ERROR, f"CharAttrLength {char_attr_length} is negative"
        )
    return chosen


def _status(hobj: Hobj, slot: int, generation: int) -> Callable[[], Mapping[str, int]]:
    return lambda: hobj.hconn.qm.queue_status(slot, generation)


class _Area:
    """The areas of the C call for the values."""

    def __init__(self, integers: int | None, characters: int | None, warnings: set[int]) -> None:
        self._integers = integers
        self._characters = characters
        self._warnings = warnings

    def place(
        self, kind: ObjectType, stored: Mapping[int, Any], selector: int, value: int | str | None
    ) -> int | str | None:
        """The value, truncated to the area; None when nothing fits."""
        from ..objects.inquiry import full_length

        if selector <= _CHARACTER:
            if self._integers is not None:
                if self._integers == 0:
                    self._warnings.add(_INTEGERS_SHORT)
                    return None
                self._integers -= 1
            return _NOT_APPLICABLE if value is None else value
        length = full_length(kind, stored, selector)
        text = "*" * length if value is None else str(value)
        if self._characters is not None:
            if self._characters < length:
                self._warnings.add(_CHARACTERS_SHORT)
                text = text.ljust(length)[: self._characters].rstrip(" ")
            self._characters = max(self._characters - length, 0)
        return text


# ---- MQSET ----


def _set(hobj: Hobj, values: Mapping[int, int | str]) -> None:
    from ..objects.codec import decode, encode, pruned
    from ..objects.inquiry import settable
    from ..objects.timestamps import current_times

    if not hobj.options & _SET:
        raise MQError(mq.MQRC_NOT_OPEN_FOR_SET, "the object was not opened with MQOO_SET")
    if not isinstance(values, Mapping):
        raise MQError(mq.MQRC_SELECTOR_COUNT_ERROR, f"values {values!r}: a mapping from selectors")
    if len(values) > _SELECTORS_MAX:
        raise MQError(
            mq.MQRC_SELECTOR_LIMIT_EXCEEDED, f"{len(values)} selectors, at most {_SELECTORS_MAX}"
        )
    kind, slot, generation = _definition(hobj)
    changed: dict[int, Any] = {}
    for selector, value in values.items():
        if isinstance(selector, bool) or not isinstance(selector, int):
            raise MQError(mq.MQRC_SELECTOR_ERROR, f"selector {selector!r} is no number")
        changed[selector] = settable(kind, selector, value)
    if not changed:
        return
    qm = hobj.hconn.qm
    for _ in range(_ATTEMPTS):
        number, name, attrs, version, name_space, instance = _read(hobj, slot, generation)
        stored = {**kind.defaults, **decode(attrs), **changed, **current_times()}
        done = qm.alter_object(
            slot, generation, number, name, encode(pruned(kind, stored)), version, False,
            name_space, instance,
        )  # fmt: skip
        if done:
            break
    else:
        raise MQError(mq.MQRC_RESOURCE_PROBLEM, "the attributes are altered by others all the time")
    if kind.name == "QLOCAL" and qm.trigger_version():
        from ..client.triggers import on_change

        on_change(qm, kind.name, name)
    if _GET in changed and hobj.queue is not None:
        qm.wake_object(hobj.queue.slot[0])
