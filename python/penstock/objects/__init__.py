"""Objects and their attributes, as data: what DEFINE, DISPLAY, MQINQ, MQSET and MQSC know.

    TYPES["QLOCAL"].attributes["MAXDEPTH"]        an Attribute: selector, range, default, help, ...
    read(TYPES["QALIAS"], attrs)[2002]            every value of a definition, by selector
    inquire(kind, stored, selector, name, status) what MQINQ gives
    settable(kind, selector, value)               what MQSET may store

The types of queue share one table (``queue_tables``); a row there is declared once for all of them.
"""

from __future__ import annotations

from ..names import check_object_name, matcher
from .attribute import Attribute, Stored, Value
from .codec import decode, encode, pruned, read
from .definition import Definition, describe, names_of, parse_all
from .inquiry import dynamic_queue, full_length, inquire, is_selector, settable
from .types import BY_NUMBER, TYPES, ObjectType, object_type

__all__ = [
    "BY_NUMBER",
    "TYPES",
    "Attribute",
    "Definition",
    "ObjectType",
    "Stored",
    "Value",
    "check_object_name",
    "decode",
    "describe",
    "dynamic_queue",
    "encode",
    "full_length",
    "inquire",
    "is_selector",
    "matcher",
    "names_of",
    "object_type",
    "parse_all",
    "pruned",
    "read",
    "settable",
]
