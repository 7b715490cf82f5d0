"""What both stand-ins share: handles as numbers, structures as bytes, memory that is pointed to.

Terms
  native     the bytes of a structure as a C program has it: MQ's layout, pointers into the memory
             of this process.
  connection number   what stands for a connection handle: 1 and up, unique in the process.

Invariants
  1. A pointer is read through the kernel: one that leads nowhere gives a reason code, no signal.
  2. Native bytes that come back have the length of those that came, and their pointers.
  3. A connection handle that is not shared lives as long as its thread, as in MQ: this module
     keeps a shared one, and the thread that made it one that is not.

Errors. Reason codes; arguments of a wrong type raise TypeError, as a compiled module does.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from typing import TYPE_CHECKING

from ..errors import MQError
from ..mqi import constants as mq
from ..mqi.structures import MQCNO, MQGMO, MQMD, MQOD, MQPMO
from ..mqi.verbs import (
    MQBACK,
    MQBEGIN,
    MQCLOSE,
    MQCMIT,
    MQCONN,
    MQCONNX,
    MQDISC,
    MQGET,
    MQOPEN,
    MQPUT,
    MQPUT1,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .._engine import Hconn, Structure

FAILED, OK = mq.MQCC_FAILED, mq.MQCC_OK
NO_HANDLE = mq.MQHC_UNUSABLE_HCONN
_SHARED = mq.MQCNO_HANDLE_SHARE_BLOCK | mq.MQCNO_HANDLE_SHARE_NO_BLOCK
_CLIENT = mq.MQCNO_CLIENT_BINDING
_CHARV = 24  # bytes of an MQCHARV: pointer, offset, size of the buffer, length, CCSID
_CHARV_LENGTH_AT = 16
_NULL_TERMINATED = mq.MQVS_NULL_TERMINATED
_LONGEST_STRING = 10240  # MQ_SELECTOR_LENGTH, and that of topic strings
_PIECE = 256  # bytes of a string without a length that are read at once
_WITH_STRINGS = mq.MQOD_VERSION_4
_STRINGS = {
    "ObjectString": mq.MQRC_OBJECT_STRING_ERROR,
    "SelectionString": mq.MQRC_SELECTION_STRING_ERROR,
}
_WITH_CCDT = mq.MQCNO_VERSION_6
_COMMANDS = "SYSTEM.ADMIN.COMMAND.QUEUE"
NO_COMMANDS = "there is no command server: PCF commands are not executed, penstock.mqsc is there"


class _Options:
    """What install() sets."""

    clients_are_local = False


options = _Options()
_thread = threading.local()


def last_error() -> str:
    """The text of the newest call of this thread that failed: the value, the rule."""
    return str(getattr(_thread, "error", ""))


# ---- connections ----


class _Held:
    """A connection handle, with its number."""

    __slots__ = ("__weakref__", "hconn", "number")

    def __init__(self, hconn: Hconn, number: int) -> None:
        self.hconn, self.number = hconn, number


_numbers: Iterator[int] = itertools.count(1)
_by_number: weakref.WeakValueDictionary[int, _Held] = weakref.WeakValueDictionary()
_kept: dict[int, _Held] = {}  # the shared ones


def connection(number: int) -> Any:
    """The connection handle of a number; None, which every verb answers with 2018, if there is
    none.
    """
    if not isinstance(number, int):
        raise TypeError(f"a connection handle is a number, not {number!r}")
    held = _by_number.get(number)
    return None if held is None else held.hconn


def _number_of(hconn: Hconn, shared: bool) -> int:
    """The number of a connection handle, which may have one."""
    mine: dict[int, _Held] = _thread.__dict__.setdefault("held", {})
    for held in mine.values():
        if held.hconn is hconn:
            return held.number
    held = _Held(hconn, next(_numbers))
    _by_number[held.number] = held
    (_kept if shared else mine)[held.number] = held
    return held.number


def _connected(answer: tuple[Any, int, int], shared: bool) -> tuple[int, int, int]:
    hconn, comp_code, reason = answer
    if comp_code == FAILED:
        _thread.error = f"MQCONNX: reason code {reason}"
        return NO_HANDLE, comp_code, reason
    return _number_of(hconn, shared), comp_code, reason


def connect(name: str | bytes) -> tuple[int, int, int]:
    """MQCONN: number, CompCode, Reason."""
    return _connected(MQCONN(name), False)


def connect_with(name: str | bytes, cno: MQCNO, client: bool) -> tuple[int, int, int]:
    """MQCONNX: number, CompCode, Reason. `client`: there are a channel's definition or a table."""
    client = client or bool(cno.Options & _CLIENT)
    if cno.Version >= _WITH_CCDT and cno.CCDTUrlPtr:
        client = True
    if client and not options.clients_are_local:
        _thread.error = (
            "a client connection is asked for, and there are no channels: see "
            "penstock.compat.install(clients_are_local=True)"
        )
        return NO_HANDLE, FAILED, mq.MQRC_UNKNOWN_CHANNEL_NAME
    if client:
        cno.Options &= ~_CLIENT
    return _connected(MQCONNX(name, cno), bool(cno.Options & _SHARED))


def disconnect(number: int) -> tuple[int, int]:
    """MQDISC."""
    result = failed(connection(number), *MQDISC(connection(number)))
    if result[0] != FAILED:
        _kept.pop(number, None)
        _thread.__dict__.setdefault("held", {}).pop(number, None)
        _by_number.pop(number, None)
    return result


def failed(hconn: Any, comp_code: int, reason: int) -> tuple[int, int]:
    """The codes of a call; keeps the text of a failure."""
    if comp_code != OK:
        _thread.error = getattr(hconn, "error", "") or f"reason code {reason}"
    return comp_code, reason


def refused(comp_code: int, reason: int, text: str) -> tuple[int, int]:
    """The codes of a call that is refused here."""
    _thread.error = text
    return comp_code, reason


# ---- structures ----


def _memory(address: int, length: int) -> bytes:
    """Bytes of this process. Raises OSError or OverflowError when there are none."""
    with open("/proc/self/mem", "rb", buffering=0) as memory:
        return os.pread(memory.fileno(), length, address)


def _pointed(address: int, length: int) -> bytes:
    """A string of that length, or up to its NUL. Raises as _memory, ValueError for its length."""
    if length != _NULL_TERMINATED:
        if not 0 <= length <= _LONGEST_STRING:
            raise ValueError(f"a string of {length} bytes, 0 to {_LONGEST_STRING} can be")
        found = _memory(address, length)
        if len(found) != length:
            raise ValueError(f"of {length} bytes {len(found)} are there")
        return found
    found = b""
    while len(found) <= _LONGEST_STRING:
        here = address + len(found)
        piece = _memory(here, _PIECE - here % _PIECE)  # never across a page that is needed
        end = piece.find(b"\0")
        if end >= 0:
            return found + piece[:end]
        found += piece
    raise ValueError(f"a string of more than {_LONGEST_STRING} bytes")


def structure_in(kind: type[Structure], native: bytes) -> Any:
    """The structure. Raises MQError with its reason code for bytes that are none, 2441 or 2519 for
    strings of an MQOD that cannot be read.
    """
    if not isinstance(native, bytes):
        raise TypeError(f"an {kind.__name__} is bytes, not {native!r}")
    made: Any = kind.unpack(native)
    if kind is MQOD and made.Version >= _WITH_STRINGS:
        for name, reason in _STRINGS.items():
            at = getattr(MQOD, name).offset
            address = int.from_bytes(native[at : at + 8], "little")
            [length] = memoryview(native)[at + _CHARV_LENGTH_AT :][:4].cast("i")
            if address == 0 or length == 0:
                continue
            try:
                setattr(made, name, _pointed(address, length))
            except (OSError, OverflowError, ValueError) as error:
                raise MQError(reason, f"MQOD.{name}: {error}") from None
    return made


def structure_out(made: Structure, native: bytes) -> bytes:
    """The structure in the bytes that it came as."""
    result = bytearray(native)
    length = min(made.length, len(native))
    result[:length] = made.pack()[:length]
    if type(made) is MQOD:
        for name in ("ObjectString", "SelectionString", "ResObjectString"):
            at = getattr(MQOD, name).offset
            result[at : at + _CHARV] = native[at : at + _CHARV]
    return bytes(result)


# ---- the verbs of messages and objects ----


def _check_commands(hconn: Any, od: Any, chosen: object) -> None:
    """Raises MQError 2322 for an open that would send PCF commands: nobody answers them."""
    if (
        hconn is not None
        and isinstance(chosen, int)
        and chosen & mq.MQOO_OUTPUT
        and (od.ObjectType, od.ObjectName) == (mq.MQOT_Q, _COMMANDS)
    ):
        raise MQError(mq.MQRC_CMD_SERVER_NOT_AVAILABLE, NO_COMMANDS)


def open_object(number: int, native_od: bytes, chosen: int) -> tuple[int, bytes, int, int]:
    """MQOPEN: number of the object, MQOD, CompCode, Reason."""
    hconn = connection(number)
    try:
        od = structure_in(MQOD, native_od)
        _check_commands(hconn, od, chosen)
    except MQError as error:
        return NO_HANDLE, native_od, *refused(error.comp_code, error.reason, error.text)
    hobj, comp_code, reason = MQOPEN(hconn, od, chosen)
    return int(hobj), structure_out(od, native_od), *failed(hconn, comp_code, reason)


def close_object(number: int, hobj: int, chosen: int = mq.MQCO_NONE) -> tuple[int, int]:
    """MQCLOSE: CompCode, Reason."""
    hconn = connection(number)
    return failed(hconn, *MQCLOSE(hconn, hobj, chosen))


def put(
    number: int, hobj: int, native_md: bytes, native_pmo: bytes, data: bytes
) -> tuple[bytes, bytes, int, int]:
    """MQPUT: MQMD, MQPMO, CompCode, Reason."""
    hconn = connection(number)
    return _put(hconn, native_md, native_pmo, lambda md, pmo: MQPUT(hconn, hobj, md, pmo, data))


def put1(
    number: int, native_od: bytes, native_md: bytes, native_pmo: bytes, data: bytes
) -> tuple[bytes, bytes, int, int]:
    """MQPUT1: MQMD, MQPMO, CompCode, Reason."""
    hconn = connection(number)

    def call(md: Any, pmo: Any) -> tuple[int, int]:
        od = structure_in(MQOD, native_od)
        _check_commands(hconn, od, mq.MQOO_OUTPUT)
        return MQPUT1(hconn, od, md, pmo, data)

    return _put(hconn, native_md, native_pmo, call)


def _put(
    hconn: Any,
    native_md: bytes,
    native_pmo: bytes,
    call: Callable[[Any, Any], tuple[int, int]],
) -> tuple[bytes, bytes, int, int]:
    try:
        md, pmo = structure_in(MQMD, native_md), structure_in(MQPMO, native_pmo)
        comp_code, reason = call(md, pmo)
    except MQError as error:
        return native_md, native_pmo, *refused(error.comp_code, error.reason, error.text)
    codes = failed(hconn, comp_code, reason)
    return structure_out(md, native_md), structure_out(pmo, native_pmo), *codes


def get(
    number: int, hobj: int, native_md: bytes, native_gmo: bytes, length: int
) -> tuple[bytes, bytes, bytes, int, int, int]:
    """MQGET: data, MQMD, MQGMO, DataLength, CompCode, Reason."""
    hconn = connection(number)
    try:
        md, gmo = structure_in(MQMD, native_md), structure_in(MQGMO, native_gmo)
    except MQError as error:
        codes = refused(error.comp_code, error.reason, error.text)
        return b"", native_md, native_gmo, 0, *codes
    data, whole, comp_code, reason = MQGET(hconn, hobj, md, gmo, length)
    codes = failed(hconn, comp_code, reason)
    return data, structure_out(md, native_md), structure_out(gmo, native_gmo), whole, *codes


# ---- units of work ----


def begin(number: int) -> tuple[int, int]:
    """MQBEGIN: CompCode, Reason."""
    return failed(connection(number), *MQBEGIN(connection(number)))


def commit(number: int) -> tuple[int, int]:
    """MQCMIT: CompCode, Reason."""
    return failed(connection(number), *MQCMIT(connection(number)))


def back(number: int) -> tuple[int, int]:
    """MQBACK: CompCode, Reason."""
    return failed(connection(number), *MQBACK(connection(number)))
