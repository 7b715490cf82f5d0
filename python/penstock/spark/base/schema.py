"""The columns of queues and of the journal, as Spark sees them.

A read gives the columns of the schema that the user named, in that order, or all of them. So a
user's schema is what prunes: columns that are not named are not made. A written table may have the
columns of a read: those that a putter cannot choose are passed over.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .errors import SchemaError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

__all__ = [
    "MESSAGE",
    "PASSED_OVER",
    "WRITABLE",
    "arrow_schema",
    "check_read",
    "check_write",
    "struct_type",
]

MESSAGE: Mapping[str, str] = {
    "queue": "string",
    "msg_id": "binary",
    "correl_id": "binary",
    "group_id": "binary",
    "msg_seq_number": "int",
    "sequence": "bigint",
    "lsn": "bigint",
    "priority": "int",
    "persistent": "boolean",
    "put_time": "timestamp",
    "expiry": "double",
    "format": "string",
    "ccsid": "int",
    "encoding": "int",
    "msg_type": "int",
    "reply_to_q": "string",
    "reply_to_qmgr": "string",
    "user_identifier": "string",
    "put_appl_name": "string",
    "backout_count": "int",
    "properties": "map<string,string>",
    "body": "binary",
}
"""Column of a message -> its type.

sequence: the message number. lsn: of its PUT record in the journal; null for a message that is not
in it. expiry: seconds that it had left when it was taken; null: it does not expire. group_id: null
when it is in no group. properties: the contents of an MQRFH2 in front of the body, with the option
includeProperties; body, format, ccsid and encoding are then of the data behind it. Null for a
message without one, or with an invalid header, and without the option: then the header stays in the
body, as it is stored.
"""

_EITHER = {"body": ("binary", "string")}  # as a string: UTF-8
_OF_JSON = ("string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double")

WRITABLE: Mapping[str, tuple[str, ...]] = {
    "body": ("binary", "string"),
    "value": ("binary", "string"),
    "queue": ("string",),
    "msg_id": ("binary",),
    "correl_id": ("binary",),
    "group_id": ("binary",),
    "msg_seq_number": ("tinyint", "smallint", "int", "bigint"),
    "priority": ("tinyint", "smallint", "int", "bigint"),
    "persistent": ("boolean",),
    "expiry": ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal"),
    "format": ("string",),
    "ccsid": ("tinyint", "smallint", "int", "bigint"),
    "encoding": ("tinyint", "smallint", "int", "bigint"),
    "msg_type": ("tinyint", "smallint", "int", "bigint"),
    "reply_to_q": ("string",),
    "reply_to_qmgr": ("string",),
    "properties": ("map<string,string>",),
}
"""Column of a written table -> the types it may have. Exactly one of body and value is present.

properties: unless null or empty, put as an MQRFH2 in front of the body. expiry: seconds, rounded up
to tenths, so that 0 is one tenth; null: as the option expiry says. decimal: of any precision.
"""

PASSED_OVER = frozenset(
    ("sequence", "lsn", "put_time", "user_identifier", "put_appl_name", "backout_count")
)
"""Columns of a read that a putter cannot choose."""


def struct_type(columns: Mapping[str, str]) -> StructType:
    """The schema with all of these columns, each of which may be null."""
    from pyspark.sql.types import (
        BinaryType,
        BooleanType,
        DoubleType,
        IntegerType,
        LongType,
        MapType,
        StringType,
        StructField,
        StructType,
        TimestampType,
    )

    types: dict[str, DataType] = {
        "string": StringType(),
        "binary": BinaryType(),
        "int": IntegerType(),
        "bigint": LongType(),
        "double": DoubleType(),
        "boolean": BooleanType(),
        "timestamp": TimestampType(),
        "map<string,string>": MapType(StringType(), StringType()),
    }
    return StructType([StructField(name, types[kind]) for name, kind in columns.items()])


def check_read(schema: StructType, columns: Mapping[str, str]) -> None:
    """Raises SchemaError for a column that is unknown, repeated, or of a wrong type."""
    seen = set()
    for field in schema.fields:
        if field.name not in columns:
            raise SchemaError(_unknown(field.name, columns))
        if field.name in seen:
            raise SchemaError(f"column {field.name} is named twice")
        seen.add(field.name)
        kind = field.dataType.simpleString()
        allowed = _EITHER.get(field.name, (columns[field.name],))
        if field.name == "body" and kind.startswith(("struct", "array")):
            _check_json(field.dataType)
        elif kind not in allowed:
            raise SchemaError(f"column {field.name} is {' or '.join(allowed)}, not {kind}")


def _check_json(kind: DataType) -> None:
    """Raises SchemaError for a type that JSON has no value of."""
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(kind, StructType):
        for field in kind.fields:
            _check_json(field.dataType)
    elif isinstance(kind, ArrayType):
        _check_json(kind.elementType)
    elif kind.simpleString() not in _OF_JSON:
        raise SchemaError(
            f"column body is JSON where it is a struct or an array, whose values are "
            f"{', '.join(_OF_JSON)}, structs and arrays of these, not {kind.simpleString()}"
        )


def check_write(schema: StructType, queue: str | None) -> None:
    """Raises SchemaError for a table that cannot be put as messages.

    Args:
        schema: The table's.
        queue: The option; without it a column must name the queue.
    """
    seen = set()
    for field in schema.fields:
        if field.name in seen:
            raise SchemaError(f"column {field.name} is there twice")
        seen.add(field.name)
        if field.name in PASSED_OVER:
            continue
        if field.name not in WRITABLE:
            raise SchemaError(_unknown(field.name, WRITABLE))
        kind = field.dataType.simpleString()
        if kind.partition("(")[0] not in WRITABLE[field.name]:
            allowed = " or ".join(WRITABLE[field.name])
            raise SchemaError(f"column {field.name} must be {allowed} to be put, not {kind}")
    if ("body" in seen) == ("value" in seen):
        there = "both" if "body" in seen else "neither"
        raise SchemaError(f"the messages' bodies are in a column body, or value: {there} is there")
    if queue is None and "queue" not in seen:
        raise SchemaError("no queue is named: neither an option queue nor a column of that name")


def arrow_schema(schema: StructType) -> Any:
    """The Arrow schema that PySpark demands of record batches (a ``pyarrow.Schema``)."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if "timezone" in inspect.signature(to_arrow_schema).parameters:  # 4.3 requires it
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)


def _unknown(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name.lower(), list(known), 1)
    meant = f": {near[0]} is meant?" if near else f"; there are {', '.join(known)}"
    return f"column {name} is unknown{meant}"
