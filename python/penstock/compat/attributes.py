"""MQINQ and MQSET of the stand-ins: character attributes as bytes with MQ's padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..mqi import constants as mq
from ..mqi.inquiry import MQINQ, MQSET
from ..objects import TYPES
from . import _native

if TYPE_CHECKING:
    from collections.abc import Mapping

# Bytes that MQINQ returns where MQSC takes longer text.
_LENGTHS = {
    mq.MQCA_CHANNEL_AUTO_DEF_EXIT: mq.MQ_EXIT_NAME_LENGTH,
    mq.MQCA_CLUSTER_WORKLOAD_EXIT: mq.MQ_EXIT_NAME_LENGTH,
    mq.MQCA_CLUS_CHL_NAME: mq.MQ_OBJECT_NAME_LENGTH,
    mq.MQCA_SSL_KEY_REPO_PASSWORD: mq.MQ_SSL_ENCRYP_KEY_REPO_PWD_LEN,
}


def length_of(selector: int) -> int:
    """Bytes of a character attribute; 0 for a selector that is not known."""
    if selector in _LENGTHS:
        return _LENGTHS[selector]
    for kind in TYPES.values():
        row = kind.by_selector.get(selector)
        if row is not None and row.inquirable:
            return row.length
    return 0


def inquire(number: int, hobj: int, selectors: list[int]) -> tuple[list[int | bytes], int, int]:
    """The values in the order of their selectors, CompCode, Reason."""
    hconn = _native.connection(number)
    found, comp_code, reason = MQINQ(hconn, hobj, selectors)
    codes = _native.failed(hconn, comp_code, reason)
    if comp_code == mq.MQCC_FAILED:
        return [], *codes
    return [_padded(selector, found[selector]) for selector in selectors], *codes


def _padded(selector: int, value: int | str) -> int | bytes:
    if isinstance(value, int):
        return value
    text = value.encode()
    if selector == mq.MQCA_NAMES:  # as many names as there are
        return text
    return text[: length_of(selector)].ljust(length_of(selector))


def change(number: int, hobj: int, values: Mapping[int, int | bytes]) -> tuple[int, int]:
    """MQSET: CompCode, Reason."""
    hconn = _native.connection(number)
    texts = {
        selector: value.decode("utf-8", "replace").rstrip(" \0")
        if isinstance(value, bytes)
        else value
        for selector, value in values.items()
    }
    return _native.failed(hconn, *MQSET(hconn, hobj, texts))
