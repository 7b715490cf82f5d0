"""Objects: define, alter, delete, display, clear, their names and attributes."""

from __future__ import annotations

import pytest

import penstock
from penstock import QueueManager


def test_a_definition_shows_mqs_defaults(qm: QueueManager) -> None:
    qm.define("QLOCAL", "A")
    (row,) = qm.display("QLOCAL", "A")
    expected = {
        "name": "A",
        "type": "QLOCAL",
        "maxdepth": 5000,
        "maxmsgl": 4194304,
        "defprty": 0,
        "defpsist": False,
        "msgdlvsq": "PRIORITY",
        "npmclass": "NORMAL",
        "put": "ENABLED",
        "get": "ENABLED",
        "descr": "",
        "curdepth": 0,
        "ipprocs": 0,
        "opprocs": 0,
    }
    assert {key: row[key] for key in expected} == expected
    assert row["MaxDepth"] == 5000 and "MAXDEPTH" in row and row.get("NONE") is None
    assert row["crdate"] == row["altdate"] and len(str(row["crdate"])) == 10


@pytest.mark.parametrize(
    ("keyword", "given", "shown"),
    [
        ("maxdepth", 0, 0),
        ("MAXDEPTH", "999999999", 999999999),
        ("maxmsgl", 104857600, 104857600),
        ("defprty", 9, 9),
        ("defpsist", "yes", True),
        ("defpsist", 1, True),
        ("msgdlvsq", "fifo", "FIFO"),
        ("npmclass", "HIGH", "HIGH"),
        ("npmclass", 10, "HIGH"),
        ("put", "DISABLED", "DISABLED"),
        ("get", False, "DISABLED"),
        ("descr", "Für Bestellungen", "Für Bestellungen"),
        ("bothresh", 3, 3),
        ("boqname", "BACKOUT", "BACKOUT"),
        ("trigger", True, True),
        ("qdpmaxev", "DISABLED", "DISABLED"),
    ],
)
def test_an_attribute_is_kept_as_given(
    qm: QueueManager, keyword: str, given: object, shown: object
) -> None:
    qm.define("qlocal", "A", **{keyword: given})
    assert qm.display("QLOCAL", "A")[0][keyword] == shown
    qm.define("QLOCAL", "B")
    qm.alter("QLOCAL", "B", **{keyword: given})
    assert qm.display("QLOCAL", "B")[0][keyword] == shown


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ({"maxdepht": 1}, penstock.AttributeNameError, "do you mean maxdepth"),
        ({"curdepth": 1}, penstock.AttributeNameError, "curdepth"),
        ({"maxdepth": -1}, penstock.InvalidValue, "-1 is not a number from 0 to 999999999"),
        ({"maxdepth": 1000000000}, penstock.InvalidValue, "1000000000"),
        ({"maxdepth": 1.5}, penstock.InvalidType, "1.5"),
        ({"maxdepth": True}, penstock.InvalidType, "True"),
        ({"maxmsgl": 104857601}, penstock.InvalidValue, "104857601"),
        ({"defprty": 10}, penstock.InvalidValue, "10"),
        ({"defpsist": "maybe"}, penstock.InvalidValue, "one of NO, YES"),
        ({"msgdlvsq": "PRIORTY"}, penstock.InvalidValue, "do you mean PRIORITY"),
        ({"npmclass": 5}, penstock.InvalidValue, "5"),
        ({"put": None}, penstock.InvalidType, "None"),
        ({"descr": "x" * 65}, penstock.InvalidValue, "64 bytes"),
        ({"descr": b"x"}, penstock.InvalidType, "text"),
        ({"maxdepth": 1, "MAXDEPTH": 2}, penstock.InvalidValue, "twice"),
    ],
)
def test_an_attribute_that_does_not_fit_is_refused_with_the_rule(
    qm: QueueManager, given: dict[str, object], kind: type[penstock.MQError], text: str
) -> None:
    with pytest.raises(kind, match=text.replace("(", r"\(")):
        qm.define("QLOCAL", "A", **given)
    assert qm.display("QLOCAL", "A") == []


def test_wrong_attributes_are_python_value_and_type_errors_too(qm: QueueManager) -> None:
    with pytest.raises(ValueError):
        qm.define("QLOCAL", "A", maxdepth=-1)
    with pytest.raises(TypeError):
        qm.define("QLOCAL", "A", maxdepth="many")


@pytest.mark.parametrize("name", ["A", "a", "%._/", "x" * 48, "SYSTEM.Default/1"])
def test_names_of_up_to_48_allowed_characters_work(qm: QueueManager, name: str) -> None:
    qm.define("QLOCAL", name)
    with qm.open(name) as q:
        q.put(b"x")
    assert qm.display("QLOCAL", name)[0]["name"] == name
    qm.delete("QLOCAL", name, purge=True)


@pytest.mark.parametrize("name", ["", "x" * 49, "a b", "a-b", "ä", "a\0", "a*", " a", "a\n"])
def test_other_names_are_refused_with_the_name(qm: QueueManager, name: str) -> None:
    for call in (
        lambda: qm.define("QLOCAL", name),
        lambda: qm.open(name),
        lambda: qm.queue(name),
        lambda: qm.alter("QLOCAL", name, maxdepth=1),
        lambda: qm.delete("QLOCAL", name),
        lambda: qm.clear(name),
    ):
        with pytest.raises(penstock.ObjectNameError) as caught:
            call()
        assert caught.value.reason == 2152 and repr(name) in str(caught.value)
        assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", [None, b"A", 1, ["A"]])
def test_a_name_that_is_no_str_is_a_type_error(qm: QueueManager, name: object) -> None:
    with pytest.raises(TypeError, match="str"):
        qm.open(name)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="str"):
        qm.define("QLOCAL", name)  # type: ignore[arg-type]


def test_names_differ_by_case(qm: QueueManager) -> None:
    qm.define("QLOCAL", "a")
    with pytest.raises(penstock.UnknownObjectName):
        qm.open("A")


def test_an_unknown_name_is_refused(qm: QueueManager) -> None:
    for call in (
        lambda: qm.open("NONE"),
        lambda: qm.alter("QLOCAL", "NONE", maxdepth=1),
        lambda: qm.delete("QLOCAL", "NONE"),
        lambda: qm.clear("NONE"),
    ):
        with pytest.raises(penstock.UnknownObjectName, match="NONE") as caught:
            call()
        assert caught.value.reason == 2085
    assert qm.display("QLOCAL", "NONE") == []


def test_a_name_can_be_defined_once_unless_replaced(qm: QueueManager) -> None:
    qm.define("QLOCAL", "A", maxdepth=7, defprty=5)
    with qm.open("A") as q:
        q.put(b"x")
    with pytest.raises(penstock.ObjectAlreadyExists):
        qm.define("QLOCAL", "A")
    qm.define("QLOCAL", "A", replace=True, maxdepth=8)
    (row,) = qm.display("QLOCAL", "A")
    assert (row["maxdepth"], row["defprty"], row["curdepth"]) == (8, 0, 1)


def test_alter_changes_only_the_given_attributes_and_open_handles_see_it(qm: QueueManager) -> None:
    qm.define("QLOCAL", "A", maxdepth=1, descr="kept")
    with qm.open("A") as q:
        q.put(b"1")
        qm.alter("QLOCAL", "A", maxdepth=2)
        q.put(b"2", priority=0)
        qm.alter("QLOCAL", "A", defprty=4, maxdepth=3)
        q.put(b"3")
        assert [m.priority for m in q.browse()] == [4, 0, 0]
    assert qm.display("QLOCAL", "A")[0]["descr"] == "kept"


def test_unknown_types_are_refused(qm: QueueManager) -> None:
    for call in (
        lambda: qm.define("QTOPIC", "A"),
        lambda: qm.display("QTOPIC"),
        lambda: qm.delete("", "A"),
    ):
        with pytest.raises(penstock.InvalidValue) as caught:
            call()
        assert caught.value.reason == 2043


def test_display_of_a_generic_name_is_sorted(qm: QueueManager) -> None:
    for name in ("B.2", "A.1", "B.1", "b.3"):
        qm.define("QLOCAL", name)
    assert [row["name"] for row in qm.display("QLOCAL", "B*")] == ["B.1", "B.2"]
    own = [row["name"] for row in qm.display("QLOCAL", "*") if "SYSTEM." not in str(row["name"])]
    assert own == ["A.1", "B.1", "B.2", "b.3"]
    assert qm.display("QLOCAL") == qm.display("QLOCAL", "*")
    assert qm.display("QLOCAL", "C*") == []


def test_delete_needs_a_closed_and_empty_queue_or_purge(qm: QueueManager) -> None:
    qm.define("QLOCAL", "A")
    with qm.open("A") as q:
        q.put(b"x")
        with pytest.raises(penstock.ObjectInUse):
            qm.delete("QLOCAL", "A", purge=True)
    with pytest.raises(penstock.QueueNotEmpty):
        qm.delete("QLOCAL", "A")
    qm.delete("QLOCAL", "A", purge=True)
    with pytest.raises(penstock.UnknownObjectName):
        qm.open("A")
    qm.define("QLOCAL", "A")
    with qm.open("A") as q:
        assert q.depth == 0


def test_clear_empties_a_queue_that_is_not_open(qm: QueueManager) -> None:
    qm.define("QLOCAL", "A")
    with qm.open("A") as q:
        for number in range(200):
            q.put(b"%d" % number, persistent=number % 2 == 0)
        with pytest.raises(penstock.ObjectInUse):
            qm.clear("A")
    qm.clear("A")
    with qm.open("A") as q:
        assert q.depth == 0
        q.put(b"x")


def test_clear_is_refused_while_a_unit_holds_messages(qm: QueueManager) -> None:
    qm.define("QLOCAL", "A")
    with qm.transaction():
        with qm.open("A") as q:
            q.put(b"x")
        with pytest.raises(penstock.QueueNotEmpty):
            qm.clear("A")
        with pytest.raises(penstock.QueueNotEmpty):
            qm.delete("QLOCAL", "A", purge=True)
    qm.clear("A")


def test_definitions_survive_a_restart(home: object) -> None:
    with penstock.connect("QM5", str(home), create=True) as qm:
        qm.define("QLOCAL", "A", maxdepth=3, descr="kept")
        qm.define("QLOCAL", "B")
        qm.delete("QLOCAL", "B")
        qm.alter("QLOCAL", "A", maxdepth=4)
        before = qm.display("QLOCAL")
        assert [row["name"] for row in qm.display("QLOCAL", "A*")] == ["A"]
        assert qm.display("QLOCAL", "B") == []
    with penstock.connect("QM5", str(home)) as qm:
        assert qm.display("QLOCAL") == before
