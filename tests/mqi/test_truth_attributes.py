"""The table of truth of attributes (truth_attributes.toml): every attribute of every object type
works, is kept without effect as in MQ, or asks for what this release lacks, and MQSC says so.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import mqi, mqsc
from penstock.objects import TYPES, Attribute, ObjectType

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
COLUMNS = ("works", "accepted")


def table() -> list[dict[str, Any]]:
    with (HERE / "truth_attributes.toml").open("rb") as file:
        rows: list[dict[str, Any]] = tomllib.load(file)["row"]
    return rows


def in_table() -> Counter[tuple[str, str]]:
    return Counter((kind, name) for row in table() for kind in row["of"] for name in row["names"])


def warned() -> list[tuple[ObjectType, Attribute]]:
    """Attributes that ask for a function that there is not, of types that there are."""
    return [
        (kind, row)
        for kind in TYPES.values()
        if not kind.unbuilt
        for row in kind.attributes.values()
        if row.unbuilt
    ]


def keywords(kind: ObjectType) -> list[str]:
    return [row.keyword for row in kind.attributes.values()]


def kept_types() -> list[ObjectType]:
    return [kind for kind in TYPES.values() if kind.unbuilt]


def test_each_attribute_of_each_type_is_in_exactly_one_column() -> None:
    every = {
        (kind.name, row.keyword) for kind in TYPES.values() for row in kind.attributes.values()
    }
    told = in_table()
    assert [key for key, number in told.items() if number > 1] == []
    asking = {(kind.name, row.keyword) for kind, row in warned()}
    kept = {(kind.name, key) for kind in kept_types() for key in keywords(kind)}
    assert every - set(told) - asking - kept == set(), "in no column"
    assert set(told) - every == set(), "no attribute"
    assert set(told) & (asking | kept) == set(), "in two columns"
    columns = Counter(
        next(column for column in COLUMNS if column in row)
        for row in table()
        for _ in row["of"]
        for _ in row["names"]
    )
    print(f"{len(every)} attributes: {dict(columns)}, warned {len(asking)}, kept {len(kept)}")


def test_a_row_is_in_one_column_and_says_what_that_needs() -> None:
    for row in table():
        assert len([column for column in COLUMNS if column in row]) == 1, row
        assert ("source" in row) == ("accepted" in row), row
        assert len(row.get("accepted", "long enough")) > 10, row


def test_each_test_that_the_table_names_exists() -> None:
    for row in table():
        if "works" in row:
            file, _, function = row["works"].partition("::")
            tree = ast.parse((HERE.parent / file).read_text("utf-8"))
            names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
            assert function in names, row["works"]


# ---- what asks for what there is not ----


def asking(row: Attribute) -> str:
    """A value that asks for the function, as MQSC has it."""
    if row.choices:
        return row.choices[-1]
    if row.length:
        return "X"
    numbers = [*row.words.values(), *((row.high, row.low) if row.high >= row.low else ())]
    value = row.show(next(n for n in numbers if row.asks_for_unbuilt(n)))
    return ("NO", "YES")[value] if isinstance(value, bool) else str(value)


@pytest.fixture(scope="module")
def managers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A queue manager of each platform."""
    home = tmp_path_factory.mktemp("attributes")
    with (
        penstock.connect("QM1", home, create=True) as unix,
        penstock.connect("QM2", home, create=True, platform="zos") as zos,
    ):
        yield {"": unix, "unix": unix, "zos": zos}


@pytest.mark.parametrize(
    ("kind", "row"), warned(), ids=lambda one: getattr(one, "keyword", None) or one.name
)
def test_what_asks_for_what_there_is_not_is_kept_with_a_warning(
    managers: dict[str, Any], kind: ObjectType, row: Attribute
) -> None:
    qm = managers[kind.platform or row.platform]
    value = asking(row)
    head = "ALTER QMGR" if kind.name == "QMGR" else f"DEFINE {kind.name}({kind.name}.X) REPLACE"
    [reply] = mqsc.run(qm, f"{head} {row.keyword}({value})")
    assert reply.ok, reply
    assert any(line.startswith("AMQ8426: ") and row.keyword in line for line in reply.warnings)


@pytest.mark.parametrize("kind", kept_types(), ids=lambda kind: kind.name)
def test_a_type_that_is_kept_only_says_so(managers: dict[str, Any], kind: ObjectType) -> None:
    heads = {
        "CHANNEL": "DEFINE CHANNEL(X) CHLTYPE(SVRCONN)",
        "AUTHINFO": "DEFINE AUTHINFO(X) AUTHTYPE(IDPWOS)",
        "SUB": "DEFINE SUB(X) TOPICSTR('a')",
        "CHLAUTH": "SET CHLAUTH('X') TYPE(BLOCKUSER) USERLIST('a')",
        "AUTHREC": "SET AUTHREC PROFILE(X) OBJTYPE(QUEUE) GROUP('g') AUTHADD(GET)",
        "LISTENER": "DEFINE LISTENER(X) TRPTYPE(TCP)",
        "TOPIC": "DEFINE TOPIC(X) TOPICSTR('a')",
    }
    [reply] = mqsc.run(managers["unix"], heads.get(kind.name, f"DEFINE {kind.name}(X)"))
    assert reply.ok, reply
    assert any(kind.unbuilt in line for line in reply.warnings), reply


# ---- what has no test of its own elsewhere ----


def test_a_description_is_kept_and_an_alteration_is_timed(managers: dict[str, Any]) -> None:
    for kind in (
        "QLOCAL",
        "QALIAS",
        "QREMOTE",
        "QMODEL",
        "PROCESS",
        "NAMELIST",
        "QMGR",
        "CFSTRUCT",
    ):
        qm = managers[TYPES[kind].platform or "unix"]
        head = "ALTER QMGR" if kind == "QMGR" else f"DEFINE {kind}({kind})"
        [reply] = mqsc.run(qm, f"{head} DESCR('it''s described')")
        assert reply.ok, reply
        [found] = qm.display(kind, "*" if kind == "QMGR" else kind)
        assert found["descr"] == "it's described"
        assert len(found["altdate"]) == 10 and len(found["alttime"]) == 8
        if kind in ("QLOCAL", "QMGR"):
            assert found["crdate"] <= found["altdate"] and len(found["crtime"]) == 8


def test_what_a_queue_manager_says_of_itself(mq: Any) -> None:
    od = mqi.MQOD(ObjectType=mqi.MQOT_Q_MGR)
    hobj, *codes = mqi.MQOPEN(mq.h, od, mqi.MQOO_INQUIRE)
    assert codes == [0, 0]
    chosen = {
        mqi.MQCA_Q_MGR_NAME: "QM1", mqi.MQIA_COMMAND_LEVEL: 930, mqi.MQCA_VERSION: "09030000",
        mqi.MQIA_MAX_PRIORITY: 9,
        mqi.MQIA_SYNCPOINT: mqi.MQSP_AVAILABLE, mqi.MQIA_CODED_CHAR_SET_ID: 1208,
        mqi.MQCA_COMMAND_INPUT_Q_NAME: "SYSTEM.ADMIN.COMMAND.QUEUE",
        mqi.MQIA_PLATFORM: mqi.MQPL_UNIX,
    }  # fmt: skip
    values, *codes = mqi.MQINQ(mq.h, hobj, [*chosen, mqi.MQCA_Q_MGR_IDENTIFIER])
    assert codes == [0, 0]
    assert values.pop(mqi.MQCA_Q_MGR_IDENTIFIER).startswith("QM1")
    assert values == chosen
