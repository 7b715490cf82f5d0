"""Stands in for ``pymqe``, the compiled half of ``pymqi``: its 18 functions.

Structures are native bytes; a result has what the call returns first, CompCode and Reason last.
What an attribute's value is: an int, or bytes with MQ's padding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import MQError
from ..mqi import absent
from ..mqi import constants as mq
from ..mqi.structures import MQCNO
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
    "MQCLOSE",
    "MQCMIT",
    "MQCONN",
    "MQCONNX",
    "MQCRTMH",
    "MQDISC",
    "MQGET",
    "MQINQ",
    "MQINQMP",
    "MQOPEN",
    "MQPUT",
    "MQPUT1",
    "MQSET",
    "MQSETMP",
    "MQSUB",
    "mqaiExecute",
    "pymqeError",
]

__mqlevels__ = ("5.0", "5.1", "5.2", "5.3", "6.0", "7.0", "7.1", "8.0.0", "9.0.0", "9.1.0")
__mqbuild__ = "server"
__doc__ = __doc__ or ""


class pymqeError(Exception):
    """For programs that name it; nothing here raises it."""


def MQCONNX(
    name: bytes, options: int, cd: bytes | None, user_password: dict[str, bytes], sco: bytes
) -> tuple[int, int, int]:
    """Handle, CompCode, Reason. `cd`: an MQCD for a client connection; user, password and TLS
    options of the client are not looked at.
    """
    return _native.connect_with(name, MQCNO(Options=options), cd is not None)


def MQINQ(hconn: int, hobj: int, selector: int) -> tuple[Any, int, int]:
    """The value of one attribute, CompCode, Reason."""
    found, comp_code, reason = attributes.inquire(hconn, hobj, [selector])
    return (found[0] if found else None), comp_code, reason


def MQSET(hconn: int, hobj: int, selector: int, value: int | bytes) -> tuple[int, int]:
    """Sets one attribute: CompCode, Reason."""
    return attributes.change(hconn, hobj, {selector: value})


def MQSUB(hconn: int, sd: bytes, hobj: int) -> tuple[bytes, int, int, int, int]:
    """There is no publish/subscribe: MQSD, handles, 2, 2298."""
    _, _, comp_code, reason = absent.MQSUB(_native.connection(hconn))
    return sd, mq.MQHO_NONE, mq.MQHO_NONE, *_native.failed(None, comp_code, reason)


def MQCRTMH(hconn: int, cmho: bytes) -> tuple[int, int, int]:
    """There are no message handles: -1, 2, 2298."""
    handle, comp_code, reason = absent.MQCRTMH(_native.connection(hconn))
    return handle, *_native.failed(None, comp_code, reason)


def MQSETMP(hconn: int, *_: Any) -> tuple[int, int]:
    """There are no message handles: 2, 2298."""
    return _native.failed(None, *absent.MQSETMP(_native.connection(hconn)))


def MQINQMP(hconn: int, *_: Any) -> tuple[Any, int, int, int]:
    """There are no message handles: value, length, 2, 2298."""
    value, comp_code, reason = absent.MQINQMP(_native.connection(hconn))
    return value, 0, *_native.failed(None, comp_code, reason)


def mqaiExecute(hconn: int, *_: Any) -> Any:
    """There is no command server: raises MQError 2322."""
    raise MQError(mq.MQRC_CMD_SERVER_NOT_AVAILABLE, _native.NO_COMMANDS)
