"""MQINQ and MQSET of the model: section 7.1."""

from __future__ import annotations

from typing import Any

from model_state import TYPE_NUMBERS, Answer, Failure, Handle, LocalQueue, answer, refuse_if
from mq_numbers import (
    CURRENT_Q_DEPTH,
    INPUT,
    OO,
    OPEN_INPUT_COUNT,
    OPEN_OUTPUT_COUNT,
    Q_NAME,
    Q_TYPE,
    SELECTORS,
    R,
)

LETTERS = {"QLOCAL": "L", "QMODEL": "M", "QALIAS": "A", "QREMOTE": "R"}
NOT_APPLICABLE = -1
# Selectors that are not attributes of a definition; kinds that have them.
LIVE = {
    CURRENT_Q_DEPTH: "L",
    OPEN_INPUT_COUNT: "L",
    OPEN_OUTPUT_COUNT: "L",
    Q_TYPE: "LAR",
    Q_NAME: "LAR",
}
# MQSET: selector, allowed values, reason for others, kinds that have it.
SETTABLE: dict[int, tuple[range | None, R, str]] = {
    9: (range(2), R.INHIBIT_VALUE_ERROR, "LA"),
    10: (range(2), R.INHIBIT_VALUE_ERROR, "LAR"),
    24: (range(2), R.TRIGGER_CONTROL_ERROR, "L"),
    26: (range(10), R.TRIGGER_MSG_PRIORITY_ERR, "L"),
    28: (range(4), R.TRIGGER_TYPE_ERROR, "L"),
    29: (range(1, 1000000000), R.TRIGGER_DEPTH_ERROR, "L"),
    2023: (None, R.NONE, "L"),
}


def inquire(handle: Handle, selectors: list[int]) -> Answer:
    """MQINQ: attributes of the object that was opened; for an alias, of the alias."""
    refuse_if(
        *handle.spoilt(),
        (not handle.options & OO.INQUIRE, R.NOT_OPEN_FOR_INQUIRE),
        (len(selectors) > 256, R.SELECTOR_LIMIT_EXCEEDED),
        (any(s not in SELECTORS and s not in LIVE for s in selectors), R.SELECTOR_ERROR),
    )
    values = {selector: value_of(handle, selector) for selector in selectors}
    odd = any(not applies(handle, selector) for selector in selectors)
    return answer(R.SELECTOR_NOT_FOR_TYPE if odd else R.NONE, attributes=values)


def applies(handle: Handle, selector: int) -> bool:
    kinds = LIVE.get(selector) or SELECTORS[selector][1]
    return LETTERS[handle.definition.kind] in kinds


def value_of(handle: Handle, selector: int) -> Any:
    """An integer or a text; -1 and asterisks where the type of queue has no such attribute."""
    named = handle.definition
    if not applies(handle, selector):
        return NOT_APPLICABLE if selector <= 2000 else "*"
    if selector == Q_TYPE:
        return TYPE_NUMBERS[named.kind]
    if selector == Q_NAME:
        return named.name
    if selector in SELECTORS:
        return named[SELECTORS[selector][0]]
    assert isinstance(named, LocalQueue)
    if selector == CURRENT_Q_DEPTH:
        return named.depth()
    return named.open_count(INPUT if selector == OPEN_INPUT_COUNT else OO.OUTPUT)


def set_attributes(handle: Handle, values: dict[int, Any]) -> Answer:
    """MQSET: all or nothing, at once, in no unit of work."""
    letter = LETTERS.get(handle.definition.kind, "none")
    reasons = [reason for holds, reason in handle.spoilt() if holds]
    if not handle.options & OO.SET:
        raise Failure(R.NOT_OPEN_FOR_SET, *reasons)
    for selector, value in values.items():
        allowed, reason, kinds = SETTABLE.get(selector, (None, R.NONE, ""))
        if letter not in kinds:
            reasons += [R.SELECTOR_ERROR, R.SELECTOR_NOT_FOR_TYPE]
        elif allowed is not None and value not in allowed:
            reasons.append(reason)
    if reasons:
        raise Failure(*reasons)
    for selector, value in values.items():
        handle.definition.attrs[SELECTORS[selector][0]] = value
    return answer()
