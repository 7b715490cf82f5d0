"""Bodies of messages as values of the declared type of the column ``body``.

==================  ===============================  ============================================
declared            a body is                        it cannot be decoded when
==================  ===============================  ============================================
binary              its bytes                        never
string              text                             it is not UTF-8
struct or array     a JSON document                  it is not JSON in UTF-8, or a value in it does
                                                     not fit its field
==================  ===============================  ============================================

Fields that a JSON object lacks are null, and others of it are passed over. A body that cannot be
decoded is *bad*; the option onBadBody says what becomes of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["decode"]

_UNFIT = (ValueError, RecursionError)  # of json
_Mask = npt.NDArray[np.bool_]


def decode(raw: Any, kind: Any) -> tuple[Any, _Mask | None]:
    """The bodies as an Arrow array of that type, null where they are bad.

    Args:
        raw: An Arrow array of binary.
        kind: The type.

    Returns:
        The array, and which are bad; None: none of them.
    """
    if pa.types.is_binary(kind):
        return raw, None
    if pa.types.is_string(kind):
        return _text(raw)
    return _json(raw, kind)


def _text(raw: Any) -> tuple[Any, _Mask | None]:
    text = raw.view(pa.string())
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        bad = np.array([not _is_text(body) for body in raw.to_pylist()], np.bool_)
        return pc.if_else(pa.array(bad), pa.scalar(None, pa.binary()), raw).cast(pa.string()), bad
    return text, None


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _json(raw: Any, kind: Any) -> tuple[Any, _Mask | None]:
    fits = _fit(kind)
    values: list[Any] = []
    bad = np.zeros(len(raw), np.bool_)
    for index, body in enumerate(raw.to_pylist()):
        value = None
        try:
            value = json.loads(body.decode())
            bad[index] = not fits(value)
        except _UNFIT:
            bad[index] = True
        values.append(None if bad[index] else value)
    return pa.array(values, kind), bad if bad.any() else None


def _fit(kind: Any) -> Callable[[Any], bool]:
    """Whether a value of JSON is one of the type, or null. pyarrow alone would cut 1.5 to 1, and
    take a text for the list of its letters.
    """
    if pa.types.is_struct(kind):
        fields = [(field.name, _fit(field.type)) for field in kind]
        return lambda v: (
            v is None or (isinstance(v, dict) and all(fit(v.get(name)) for name, fit in fields))
        )
    if pa.types.is_list(kind):
        item = _fit(kind.value_type)
        return lambda v: v is None or (isinstance(v, list) and all(map(item, v)))
    if pa.types.is_boolean(kind):
        return lambda v: v is None or isinstance(v, bool)
    if pa.types.is_integer(kind):
        most = 1 << (kind.bit_width - 1)
        return lambda v: v is None or (type(v) is int and -most <= v < most)
    if pa.types.is_floating(kind):
        return lambda v: v is None or type(v) is float or (type(v) is int and _is_double(v))
    return lambda v: v is None or (isinstance(v, str) and _is_unicode(v))


def _is_double(value: int) -> bool:
    return abs(value) < 1 << 1023


def _is_unicode(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value)
