"""The table of truth (truth.toml): every verb, option and field works, is refused, or is accepted
without effect as in MQ; what the table says of a call is what the call does.
"""

from __future__ import annotations

import ast
import pydoc
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock import mqi
from penstock._engine import ByteField, CharField, ListField, Structure

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
COLUMNS = ("works", "refused", "accepted")
INPUT, OUTPUT, BROWSE = 1, 16, 8

# Of what a prefix of constants is; object types are those of the reference.
PREFIXES = {
    "MQOPEN": "MQOO_", "MQPUT": "MQPMO_", "MQGET": "MQGMO_", "MQCLOSE": "MQCO_",
    "MQCONNX": "MQCNO_", "match options": "MQMO_", "MQXCNVC": "MQDCC_", "MQSTAT": "MQSTAT_",
    "message flags": "MQMF_", "record fields": "MQPMRF_", "report options": "MQRO_",
}  # fmt: skip
OBJECT_TYPES = {"MQOT_Q", "MQOT_NAMELIST", "MQOT_PROCESS", "MQOT_Q_MGR", "MQOT_TOPIC"}
NO_OPTION = re.compile(r"_(VERSION|LENGTH)_\d$|_STRUC_ID$|_(MASK|FACTOR)$")


class Row(NamedTuple):
    """One name of the table, with what the table says of it."""

    of: str
    name: str
    says: dict[str, Any]

    @property
    def column(self) -> str:
        return next(column for column in COLUMNS if column in self.says)


def table() -> list[Row]:
    with (HERE / "truth.toml").open("rb") as file:
        rows = tomllib.load(file)["row"]
    return [Row(row["of"], name, row) for row in rows for name in row["names"]]


ROWS = table()
STRUCTURES = [
    kind for kind in vars(mqi).values() if isinstance(kind, type) and issubclass(kind, Structure)
]


def expected() -> Iterator[tuple[str, str]]:
    """(of, name) of everything that the MQI has."""
    for name, value in vars(mqi).items():
        verb = name.startswith("MQ") and name.isupper() and callable(value)
        if verb and not isinstance(value, type):
            yield "verbs", name
        for of, prefix in PREFIXES.items():
            if name.startswith(prefix) and not NO_OPTION.search(name):
                yield of, name
    for name in OBJECT_TYPES:
        yield "object types", name
    for kind in STRUCTURES:
        lists = [name for name, value in vars(kind).items() if isinstance(value, ListField)]
        for name in {*kind.layout.fields, *lists}:
            yield kind.__name__, name


def rows_of(*columns: str) -> list[Any]:
    found = [row for row in ROWS if row.column in columns]
    return [pytest.param(row, id=f"{row.of}-{row.name}") for row in found]


# ---- the table itself ----


def test_nothing_of_the_mqi_is_in_no_row_or_in_two() -> None:
    counted = Counter((row.of, row.name) for row in ROWS)
    assert {key for key, number in counted.items() if number > 1} == set()
    wanted = set(expected())
    assert wanted - set(counted) == set(), "in no row"
    assert set(counted) - wanted == set(), "not of the MQI"
    columns = Counter(row.column for row in ROWS)
    print(f"{len(ROWS)} names: {dict(columns)}")


def test_a_row_is_in_one_column_and_says_what_that_needs() -> None:
    for row in ROWS:
        given = [column for column in COLUMNS if column in row.says]
        assert len(given) == 1, row
        assert ("source" in row.says) == (row.column == "accepted"), row
        if row.column == "accepted":
            assert len(row.says[row.column]) > 15, row


def test_each_test_that_the_table_names_exists() -> None:
    functions: dict[str, set[str]] = {}
    for row in ROWS:
        if row.column != "works":
            continue
        file, _, function = row.says["works"].partition("::")
        if file not in functions:
            tree = ast.parse((HERE.parent / file).read_text("utf-8"))
            functions[file] = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert function in functions[file], row.says["works"]


def test_help_lists_what_is_refused_with_its_reason_code() -> None:
    told = pydoc.plain(pydoc.render_doc(mqi))
    blocks = re.findall(r"^ {4}(\d{4})  (.*?)(?=^ {4}\d{4}  |\n\s*\n)", told, re.M | re.S)
    refused = [row for row in ROWS if row.column == "refused"]
    assert refused
    for row in refused:
        code = str(row.says["refused"])
        name = row.name if row.name.startswith("MQ") else f"{row.of}.{row.name}"
        # a line may have a second code behind a semicolon
        found = [head for head, text in blocks if re.search(rf"\b{re.escape(name)}\b", text)]
        assert code in found or re.search(rf"\b{code} {re.escape(name)}\b", told), (code, name)


# ---- the calls ----


def bits(row: Row) -> int:
    """The value of an option, with those that it needs besides."""
    value = int(getattr(mqi, row.name))
    for name in row.says.get("with", ()):
        value |= int(getattr(mqi, name))
    return value


def call_verb(mq: Any, row: Row) -> tuple[int, int]:
    answer = getattr(mqi, row.name)(mq.h)
    return int(answer[-2]), int(answer[-1])


def call_open(mq: Any, row: Row) -> tuple[int, int]:
    result: tuple[int, int] = mqi.MQOPEN(mq.h, mqi.MQOD(ObjectName="Q"), bits(row))[1:]
    return result


def call_object_type(mq: Any, row: Row) -> tuple[int, int]:
    od = mqi.MQOD(ObjectName="Q", ObjectType=getattr(mqi, row.name))
    result: tuple[int, int] = mqi.MQOPEN(mq.h, od, OUTPUT)[1:]
    return result


def call_put(mq: Any, row: Row) -> tuple[int, int]:
    pmo = mqi.MQPMO(Options=bits(row))
    return mqi.MQPUT(mq.h, mq.open("Q", OUTPUT), mqi.MQMD(), pmo, b"")


def call_get(mq: Any, row: Row) -> tuple[int, int]:
    q = mq.open("Q")
    mq.put(q)
    gmo = mqi.MQGMO(Version=4, Options=bits(row))
    result: tuple[int, int] = mqi.MQGET(mq.h, q, mqi.MQMD(Version=2), gmo)[2:]
    return result


def call_close(mq: Any, row: Row) -> tuple[int, int]:
    return mqi.MQCLOSE(mq.h, mq.open("Q"), bits(row))


def connected(cno: Any) -> tuple[int, int]:
    hconn, *result = mqi.MQCONNX("QM1", cno)
    if result[0] != 2:
        mqi.MQDISC(hconn)
    return result[0], result[1]


def call_connect(mq: Any, row: Row) -> tuple[int, int]:
    return connected(mqi.MQCNO(Options=bits(row) | mqi.MQCNO_HANDLE_SHARE_BLOCK))


def call_convert(mq: Any, row: Row) -> tuple[int, int]:
    result: tuple[int, int] = mqi.MQXCNVC(mq.h, bits(row), 819, b"x", 37)[2:]
    return result


def call_status(mq: Any, row: Row) -> tuple[int, int]:
    return mqi.MQSTAT(mq.h, getattr(mqi, row.name), mqi.MQSTS())


def call_flags(mq: Any, row: Row) -> tuple[int, int]:
    md = mqi.MQMD(Version=2, MsgFlags=bits(row), GroupId=b"g" * 24)
    return mqi.MQPUT(mq.h, mq.open("Q", OUTPUT), md, mqi.MQPMO(), b"x")


def changed(kind: type[Structure], row: Row) -> Any:
    """A structure of the newest version whose field is not as it was."""
    made: Any = kind(Version=max(kind.layout.lengths))
    field = getattr(kind, row.name)
    value = row.says.get("value")
    if "values" in row.says:  # of several kinds of field
        text = isinstance(field, (CharField, ByteField))
        value = row.says["values"][: field.size] if text else int(row.says["values"])
        value = value.encode() if isinstance(field, ByteField) else value
    before = getattr(made, row.name)
    setattr(made, row.name, value)
    assert getattr(made, row.name) != before, "the value is the initial one"
    return made


def call_field(mq: Any, row: Row) -> tuple[int, int]:
    """A call with a structure that has a value in this field."""
    made = changed(getattr(mqi, row.of), row)
    if row.of == "MQOD":
        made.ObjectName = "Q"
        return int((answer := mqi.MQOPEN(mq.h, made, INPUT))[1]), int(answer[2])
    if row.of == "MQPMO":
        return mqi.MQPUT(mq.h, mq.open("Q", OUTPUT), mqi.MQMD(), made, b"")
    if row.of == "MQGMO":
        q = mq.open("Q")
        mq.put(q)
        result: tuple[int, int] = mqi.MQGET(mq.h, q, mqi.MQMD(), made)[2:]
        return result
    assert row.of == "MQCNO", row.of
    made.Options = mqi.MQCNO_HANDLE_SHARE_BLOCK
    return connected(made)


def call_report(mq: Any, row: Row) -> tuple[int, int]:
    md = mqi.MQMD(Report=bits(row), ReplyToQ="Q")
    return mqi.MQPUT(mq.h, mq.open("Q", OUTPUT), md, mqi.MQPMO(), b"x")


CALLS: dict[str, Callable[[Any, Row], tuple[int, int]]] = {
    "verbs": call_verb, "MQOPEN": call_open, "object types": call_object_type,
    "MQPUT": call_put, "MQGET": call_get, "MQCLOSE": call_close, "MQCONNX": call_connect,
    "MQXCNVC": call_convert, "MQSTAT": call_status, "message flags": call_flags,
    "report options": call_report,
}  # fmt: skip


@pytest.mark.parametrize("row", rows_of("refused"))
def test_what_is_refused_is_refused_with_its_reason_code(mq: Any, row: Row) -> None:
    assert CALLS.get(row.of, call_field)(mq, row) == (2, row.says["refused"])


@pytest.mark.parametrize("row", rows_of("accepted"))
def test_what_is_accepted_is_accepted(mq: Any, row: Row) -> None:
    assert CALLS.get(row.of, call_field)(mq, row) == (0, 0)


# ---- what has no test of its own elsewhere ----


def test_segmentation_allowed_is_no_request_and_a_message_too_long_is_2030(mq: Any) -> None:
    mq.qm.alter("QLOCAL", "Q", maxmsgl=10)
    q = mq.open("Q")
    allowed = {"Version": 2, "MsgFlags": mqi.MQMF_SEGMENTATION_ALLOWED}
    mq.put(q, b"ten bytes.", **allowed)
    assert mq.put_code(q, b"eleven byte", **allowed) == 2030
    data, md = mq.get(q)
    assert (data, md.MsgFlags) == (b"ten bytes.", mqi.MQMF_SEGMENTATION_ALLOWED)
    mq.qm.alter("QLOCAL", "Q", maxmsgl=4194304)
