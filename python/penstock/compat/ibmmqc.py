"""Stands in for ``ibmmqc``, the compiled half of ``ibmmq``: its 25 functions.

Structures are native bytes; a result has what the call returns first, CompCode and Reason last.
``__version__`` is that of the Python layer, which refuses another one.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from ..errors import MQError
from ..mqi import absent
from ..mqi import constants as mq
from ..mqi.status import MQSTAT as _status
from ..mqi.structures import MQCNO, MQSTS
from . import _native, attributes
from ._native import back as MQBACK
from ._native import begin as MQBEGIN
from ._native import close_object as MQCLOSE
from ._native import commit as MQCMIT
from ._native import connect as MQCONN
from ._native import disconnect as MQDISC
from ._native import get as MQGET
from ._native import open_object as MQOPEN
from ._native import put as MQPUT
from ._native import put1 as MQPUT1

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "MQBACK",
    "MQBEGIN",
    "MQCB",
    "MQCBINIT",
    "MQCLOSE",
    "MQCMIT",
    "MQCONN",
    "MQCONNX",
    "MQCRTMH",
    "MQCTL",
    "MQDISC",
    "MQDLTMH",
    "MQDLTMP",
    "MQGET",
    "MQINQ",
    "MQINQMP",
    "MQLOGCF",
    "MQOPEN",
    "MQPUT",
    "MQPUT1",
    "MQSET",
    "MQSETMP",
    "MQSTAT",
    "MQSUB",
    "MQSUBRQ",
]

__cmdlevel__ = "9.4.0.0"
__mqbuild__ = "server"
__strucversions__ = {
    "cd": 12, "cno": 8, "csp": 3, "gmo": 4, "od": 4, "pmo": 3, "sco": 7, "sts": 2,
}  # fmt: skip


def __getattr__(name: str) -> str:
    """``__version__``: asked for when the layer is imported, which then can be found."""
    if name == "__version__":
        return version("ibmmq")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---- connections ----


def MQCONNX(
    name: bytes,
    cno: bytes | None,
    cd: bytes | None,
    csp: bytes | None,
    sco: bytes | None,
    bno: bytes | None = None,
) -> tuple[int, int, int]:
    """Handle, CompCode, Reason. `cd`: an MQCD for a client connection; user and password, TLS
    and balancing of the client are not looked at.
    """
    try:
        made = MQCNO() if cno is None else _native.structure_in(MQCNO, cno)
    except MQError as error:
        codes = _native.refused(error.comp_code, error.reason, error.text)
        return _native.NO_HANDLE, *codes
    return _native.connect_with(name, made, cd is not None)


def MQSTAT(hconn: int, kind: int, sts: bytes) -> tuple[bytes, int, int]:
    """MQSTS, CompCode, Reason."""
    found = _native.connection(hconn)
    try:
        made = _native.structure_in(MQSTS, sts)
    except MQError as error:
        return sts, *_native.refused(error.comp_code, error.reason, error.text)
    codes = _native.failed(found, *_status(found, kind, made))
    return _native.structure_out(made, sts), *codes


# ---- attributes ----


def MQINQ(
    hconn: int,
    hobj: int,
    selectors: list[int],
    integers: list[int],
    integer_count: int,
    character_count: int,
    character_length: int,
) -> tuple[list[int], bytes, int, int]:
    """Integers, characters of all selectors in a row, CompCode, Reason."""
    found, comp_code, reason = attributes.inquire(hconn, hobj, list(selectors))
    numbers = [value for value in found if isinstance(value, int)]
    characters = b"".join(value for value in found if isinstance(value, bytes))
    if comp_code == mq.MQCC_OK and len(characters) > character_length:
        codes = mq.MQCC_WARNING, mq.MQRC_CHAR_ATTRS_TOO_SHORT
        text = f"characters of {len(characters)} bytes, there is room for {character_length}"
        return numbers, characters[:character_length], *_native.refused(*codes, text)
    return numbers, characters, comp_code, reason


def MQSET(
    hconn: int, hobj: int, selectors: list[int], integers: list[int], characters: bytes
) -> tuple[int, int]:
    """CompCode, Reason. `characters`: the values of the selectors for characters in a row."""
    values: dict[int, int | bytes] = {}
    numbers = iter(integers)
    at = 0
    for selector in selectors:
        if selector <= mq.MQIA_LAST:
            values[selector] = next(numbers, mq.MQIAV_UNDEFINED)
            continue
        length = attributes.length_of(selector)
        values[selector] = characters[at : at + length]
        at += length
    return attributes.change(hconn, hobj, values)


# ---- what there is not ----


def MQSUB(hconn: int, sd: bytes, hobj: int) -> tuple[bytes, int, int, int, int]:
    """There is no publish/subscribe: MQSD, handles, 2, 2298."""
    _, _, comp_code, reason = absent.MQSUB(_native.connection(hconn))
    return sd, mq.MQHO_NONE, mq.MQHO_NONE, *_native.failed(None, comp_code, reason)


def MQSUBRQ(hconn: int, hsub: int, action: int, sro: bytes) -> tuple[bytes, int, int]:
    """There is no publish/subscribe: MQSRO, 2, 2298."""
    return sro, *_native.failed(None, *absent.MQSUBRQ(_native.connection(hconn)))


def MQCRTMH(hconn: int, cmho: bytes) -> tuple[int, int, int]:
    """There are no message handles: -1, 2, 2298."""
    handle, comp_code, reason = absent.MQCRTMH(_native.connection(hconn))
    return handle, *_native.failed(None, comp_code, reason)


def MQDLTMH(hconn: int, *_: Any) -> tuple[int, int]:
    """There are no message handles: 2, 2298."""
    return _native.failed(None, *absent.MQDLTMH(_native.connection(hconn)))


def MQSETMP(hconn: int, *_: Any) -> tuple[int, int]:
    """There are no message handles: 2, 2298."""
    return _native.failed(None, *absent.MQSETMP(_native.connection(hconn)))


def MQDLTMP(hconn: int, *_: Any) -> tuple[int, int]:
    """There are no message handles: 2, 2298."""
    return _native.failed(None, *absent.MQDLTMP(_native.connection(hconn)))


def MQINQMP(hconn: int, *_: Any) -> tuple[Any, int, bytes, int, int]:
    """There are no message handles: value, length, name, 2, 2298."""
    value, comp_code, reason = absent.MQINQMP(_native.connection(hconn))
    return value, 0, b"", *_native.failed(None, comp_code, reason)


def MQCB(hconn: int, *_: Any) -> tuple[int, int]:
    """Nothing is consumed asynchronously: 2, 2298."""
    return _native.failed(None, *absent.MQCB(_native.connection(hconn)))


def MQCTL(hconn: int, *_: Any) -> tuple[int, int]:
    """Nothing is consumed asynchronously: 2, 2298."""
    return _native.failed(None, *absent.MQCTL(_native.connection(hconn)))


def MQCBINIT(callback: Any) -> None:
    """The layer's dispatcher of callbacks; MQCB refuses them all."""


def MQLOGCF(level: int, filename: str | None = None) -> None:
    """The layer's level of tracing; there is no compiled code to trace."""
