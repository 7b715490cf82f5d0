"""Identities: user, program and accounting token that a put stores, and the connection's id."""

from __future__ import annotations

import os
import sys

from .._mqi_constants.descriptor import MQACTT_UNIX_NUMERIC_ID

_known: tuple[str, str, bytes] | None = None


def identity() -> tuple[str, str, bytes]:
    """User name (at most 12 bytes), program (the last 28), accounting token (32 bytes)."""
    global _known
    if _known is None:
        uid = os.geteuid()
        text = str(uid).encode()
        token = bytes((len(text),)) + text
        token = token.ljust(31, b"\0") + MQACTT_UNIX_NUMERIC_ID
        _known = (_fit(_user_name(uid)[:12], 12), _fit(_program()[-28:], 28), token)
    return _known


def connection_id(manager: str, attached_us: int, pid: int) -> bytes:
    """ConnectionId (24 bytes) of a process: EXTCONN and CONN of DISPLAY CONN."""
    number = (attached_us << 22 | pid) & 0xFFFFFFFFFFFFFFFF
    return ("AMQC" + manager[:12].ljust(12)).encode() + number.to_bytes(8, "big")


def _user_name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _program() -> str:
    script = sys.argv[0] if sys.argv else ""
    return script if script and script != "-c" else sys.executable or "python"


def _fit(text: str, size: int) -> str:
    """Converts text to ASCII, other characters to ``?``; keeps the last ``size`` characters."""
    return text.encode("ascii", "replace").decode("ascii")[-size:]
