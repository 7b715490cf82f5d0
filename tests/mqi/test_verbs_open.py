"""MQOPEN: options and object types, other objects than queues, model queues, resolved names."""

from __future__ import annotations

from typing import Any

import pytest

import penstock
from penstock import mqi
from qmgr_fixture import FAILED, QmgrFixture

OUTPUT, INPUT, BROWSE, INQUIRE, SET = 16, 1, 8, 32, 64
XMIT_MANAGER = "QM2"


@pytest.fixture
def names(mq: Any) -> Any:
    """An alias, remote definitions, queue-manager aliases, transmission queues."""
    qm = mq.qm
    qm.define("QALIAS", "ALIAS", target="Q")
    qm.define("QLOCAL", "XQ", usage="XMITQ")
    qm.define("QLOCAL", XMIT_MANAGER, usage="XMITQ")
    qm.define("QREMOTE", "REMOTE", rname="THERE", rqmname="QM2", xmitq="XQ")
    qm.define("QREMOTE", "QMA", rname="", rqmname="QM9", xmitq="XQ")
    qm.define("QREMOTE", "HERE", rname="", rqmname="QM1")
    return mq


@pytest.mark.parametrize(
    "options",
    [
        0,
        1 | 2,
        2 | 4,
        1 | 2 | 4,
        16 | 16384 | 32768,
        16 | 32768 | 4194304,
        1 | 524288 | 1048576,
        128 | 16,
        256,
        512 | 1,
        1024 | 32,
        2048 | 8,
        131072 | 16,
        2097152 | 1,
        128,
        8192,
        65536,
        1 << 23,
        1 << 30,
        -1,
    ],
)
def test_open_options_that_do_not_go_together_are_2046(mq: Any, options: int) -> None:
    assert mq.open_code("Q", options) == 2046


@pytest.mark.parametrize("options", [None, "16", 16.0, True])
def test_open_options_that_are_no_number_are_2046(mq: Any, options: Any) -> None:
    assert mq.open_code("Q", options) == 2046


@pytest.mark.parametrize(
    "options",
    [1, 2, 4, 8, 16, 32, 64, 1 | 128, 16 | 256 | 512 | 1024 | 2048, 16 | 4096 | 8192, 8 | 131072,
     16 | 16384, 32768 | 1, 4194304 | 8, 1 | 524288, 1 | 1048576, 16 | 2097152, 16 | 65536,
     16 | 262144, 16384, 32768, 4194304, 2 | 8 | 16 | 32 | 64],
)  # fmt: skip
@pytest.mark.parametrize("name", ["Q", "ALIAS"])
def test_every_open_option_fits_a_local_queue_and_its_alias(
    names: Any, name: str, options: int
) -> None:
    assert names.open_code(name, options) == 0


@pytest.mark.parametrize("options", [INPUT, 2, 4, BROWSE, 1 | 128, 16 | 65536, 16 | 524288])
@pytest.mark.parametrize("name", ["REMOTE"])
def test_a_local_definition_of_a_remote_queue_is_for_output_inquire_and_set(
    names: Any, name: str, options: int
) -> None:
    assert names.open_code(name, options) == 2045


@pytest.mark.parametrize("options", [16, 32, 64, 16 | 32 | 64, 16 | 2048 | 8192, 16 | 262144])
def test_what_fits_a_local_definition_of_a_remote_queue(names: Any, options: int) -> None:
    assert names.open_code("REMOTE", options) == 0


@pytest.mark.parametrize("options", [1, 8, 32, 64, 16 | 32])
def test_a_queue_at_another_queue_manager_is_for_output_only(names: Any, options: int) -> None:
    for manager in ("QM2", "QMA", "XQ"):
        assert names.open_code("THERE", options, ObjectQMgrName=manager) == 2045
        assert names.open_code("THERE", 16, ObjectQMgrName=manager) == 0


@pytest.mark.parametrize("options", [1, 8, 32, 64])
def test_through_a_local_queue_manager_alias_only_output(names: Any, options: int) -> None:
    assert names.open_code("Q", options, ObjectQMgrName="HERE") == 2045
    assert names.open_code("Q", 16, ObjectQMgrName="HERE") == 0


def test_an_alias_of_a_remote_definition_is_for_output(names: Any) -> None:
    names.qm.define("QALIAS", "A2", target="REMOTE")
    assert names.open_code("A2", INPUT) == 2045
    assert names.open_code("A2", OUTPUT) == 0


RESOLVED = [
    ("Q", "", "Q", "QM1", 1),
    ("Q", "QM1", "Q", "QM1", 1),
    ("ALIAS", "", "Q", "QM1", 1),
    ("REMOTE", "", "THERE", "QM2", 0),
    ("X", "QM2", "X", "QM2", 0),
    ("X", "QMA", "X", "QM9", 0),
    ("Q", "HERE", "Q", "QM1", 1),
]


@pytest.mark.parametrize(("name", "manager", "queue", "there", "known"), RESOLVED)
def test_resolved_names_are_returned(
    names: Any, name: str, manager: str, queue: str, there: str, known: int
) -> None:
    od = mqi.MQOD(Version=4, ObjectName=name, ObjectQMgrName=manager)
    hobj, *result = mqi.MQOPEN(names.h, od, OUTPUT)
    assert result == [0, 0]
    assert (od.ResolvedQName, od.ResolvedQMgrName) == (queue, there)
    assert (od.KnownDestCount, od.UnknownDestCount, od.ResolvedType) == (known, 1 - known, 1)
    pmo = mqi.MQPMO()
    assert mqi.MQPUT(names.h, hobj, mqi.MQMD(), pmo, b"") == (0, 0)
    assert (pmo.ResolvedQName, pmo.ResolvedQMgrName) == (queue, there)
    assert (pmo.KnownDestCount, pmo.UnknownDestCount) == (known, 1 - known)


def test_older_descriptors_are_not_written_beyond_their_version(names: Any) -> None:
    for version in (1, 2):
        od = mqi.MQOD(Version=version, ObjectName="Q")
        mqi.MQCLOSE(names.h, mqi.MQOPEN(names.h, od, OUTPUT)[0], 0)
        assert (od.ResolvedQName, od.ResolvedType) == ("", 0)
    assert od.KnownDestCount == 1


def test_resolve_local_q_gives_the_transmission_queue(names: Any) -> None:
    od = mqi.MQOD(Version=3, ObjectName="REMOTE")
    mqi.MQOPEN(names.h, od, OUTPUT | mqi.MQOO_RESOLVE_LOCAL_Q)
    assert (od.ResolvedQName, od.ResolvedQMgrName) == ("XQ", "QM1")


@pytest.mark.parametrize("wrong", [None, "OD", b"OD  ", mqi.MQMD(), object()])
def test_a_wrong_type_of_object_descriptor_is_2044(mq: Any, wrong: Any) -> None:
    assert mqi.MQOPEN(mq.h, wrong, OUTPUT)[1:] == (2, 2044)
    assert mqi.MQPUT1(mq.h, wrong, mqi.MQMD(), mqi.MQPMO(), b"") == (2, 2044)


def test_wrong_eye_catcher_or_version_is_2044(mq: Any) -> None:
    for fields in ({"StrucId": "XX"}, {"Version": 0}, {"Version": 5}, {"Version": -1}):
        assert mq.open_code("Q", OUTPUT, **fields) == 2044


@pytest.mark.parametrize("kind", [0, 4, 6, 9, 1001, -1])
def test_an_object_type_that_cannot_be_opened_is_2043(mq: Any, kind: int) -> None:
    assert mq.open_code("Q", INQUIRE, ObjectType=kind) == 2043


@pytest.mark.parametrize("name", ["A B", " Q", "Q*", "Q-1", "é"])
def test_an_illegal_name_is_2152_or_2153(mq: Any, name: str) -> None:
    assert mq.open_code(name, OUTPUT) == 2152
    assert mq.open_code("Q", OUTPUT, ObjectQMgrName=name) == 2153


def test_other_objects_are_opened_for_inquire_only(mq: Any) -> None:
    mq.qm.define("PROCESS", "P")
    mq.qm.define("NAMELIST", "N")
    for kind, name in ((3, "P"), (2, "N"), (5, "")):
        assert mq.open_code(name, INQUIRE, ObjectType=kind) == 0
        assert mq.open_code(name, INQUIRE | 8192, ObjectType=kind, ObjectQMgrName="QM1") == 0
        for options in (OUTPUT, INPUT, BROWSE, SET, INQUIRE | OUTPUT):
            assert mq.open_code(name, options, ObjectType=kind) == 2045
        assert mq.open_code(name, INQUIRE, ObjectType=kind, ObjectQMgrName="QM7") == 2086
    assert mq.open_code("QM1", INQUIRE, ObjectType=5) == 2194
    assert mq.open_code("NONE", INQUIRE, ObjectType=3) == 2085


@pytest.mark.parametrize("options", [1, 2, 4, 8, 1 | 16])
def test_a_selection_string_is_refused_and_selects_no_other_message(mq: Any, options: int) -> None:
    mq.put(mq.open("Q", OUTPUT), Priority=9)
    fields = {"Version": 4, "SelectionString": "Root.MQMD.Priority < 5"}
    assert mq.open_code("Q", options, **fields) == 2551
    assert mq.open_code("Q", options, **{**fields, "SelectionString": "nonsense ="}) == 2459
    assert mq.open_code("Q", OUTPUT, **fields) == 2516
    assert mq.open_code("", INQUIRE, ObjectType=mqi.MQOT_Q_MGR, **fields) == 2516
    od = mqi.MQOD(ObjectName="Q", **fields)
    assert mqi.MQPUT1(mq.h, od, mqi.MQMD(), mqi.MQPMO(), b"") == (2, 2516)
    assert mq.open_code("Q", options, **{**fields, "Version": 3}) == 0  # no field of version 3
    assert mq.open_code("Q", options, **{**fields, "SelectionString": ""}) == 0
    assert mq.qm.display("QLOCAL", "Q")[0]["curdepth"] == 1


@pytest.mark.parametrize(("kind", "noun"), [("PROCESS", "PROCESS"), ("NAMELIST", "NAMELIST")])
def test_a_process_or_namelist_that_is_open_is_not_deleted(mq: Any, kind: str, noun: str) -> None:
    mq.qm.define(kind, "P")
    object_type = getattr(mqi, f"MQOT_{noun}")
    first = mq.open("P", INQUIRE, ObjectType=object_type)
    second = mq.open("P", INQUIRE, ObjectType=object_type)
    for handle in (first, second):
        with pytest.raises(penstock.ObjectInUse):
            mq.qm.delete(kind, "P")
        assert mqi.MQCLOSE(mq.h, handle, 1) == (2, 2045)
        assert mqi.MQCLOSE(mq.h, handle, 0) == (0, 0)
    assert not [row for row in mq.qm.handle_list() if row.queue == "P"]
    mq.qm.delete(kind, "P")
    assert mq.open_code("P", INQUIRE, ObjectType=object_type) == 2085


def test_the_handle_of_a_process_is_no_handle_of_a_queue_of_its_name(mq: Any) -> None:
    mq.qm.define("PROCESS", "Q")
    mq.open("Q", INQUIRE, ObjectType=mqi.MQOT_PROCESS)
    assert mq.qm.handle_list() == []


def test_handles_are_limited_by_maxhands(own: Any) -> None:
    own.qm.alter("QMGR", "", maxhands=2)
    first = own.open("Q")
    own.open("Q")
    assert own.open_code("Q") == 2017
    assert mqi.MQCLOSE(own.h, first, 0) == (0, 0)
    assert own.open_code("Q") == 0


def test_exclusive_input_excludes_other_input(mq: Any) -> None:
    one = mq.open("Q", 4)
    assert mq.open_code("Q", 2) == mq.open_code("Q", 1) == mq.open_code("Q", 4) == 2042
    assert mq.open_code("Q", BROWSE) == mq.open_code("Q", OUTPUT) == 0
    mqi.MQCLOSE(mq.h, one, 0)
    mq.open("Q", 2)
    assert mq.open_code("Q", 4) == 2042
    assert mq.open_code("Q", 2) == 0


def test_noshare_and_defsopt_decide_what_input_means(mq: Any) -> None:
    mq.qm.define("QLOCAL", "NOSHARE", share=False)
    mq.open("NOSHARE", 2)
    assert mq.open_code("NOSHARE", 2) == 2042
    mq.qm.define("QLOCAL", "EXCL", defsopt="EXCL")
    mq.open("EXCL", 1)
    assert mq.open_code("EXCL", 2) == 2042
    mq.qm.define("QALIAS", "A3", target="EXCL")
    assert mq.open_code("A3", 1) == 2042


# ---- model queues ----


@pytest.fixture
def model(mq: Any) -> Any:
    """MODEL makes temporary queues, PERM permanent ones."""
    mq.qm.define("QMODEL", "MODEL", deftype="TEMPDYN", maxdepth=7, defprty=4)
    mq.qm.define("QMODEL", "PERM", deftype="PERMDYN")
    return mq


@pytest.mark.parametrize("options", [INQUIRE, OUTPUT, INPUT, SET, 1 | 8 | 16])
@pytest.mark.parametrize("name", ["MODEL", "PERM"])
def test_opening_a_model_makes_a_queue_for_every_open_option(
    model: Any, name: str, options: int
) -> None:
    od = mqi.MQOD(Version=3, ObjectName=name)
    hobj, *result = mqi.MQOPEN(model.h, od, options)
    assert result == [0, 0]
    assert od.ObjectName.startswith("AMQ.") and len(od.ObjectName) == 20
    assert od.ObjectQMgrName == "QM1"
    assert model.qm.look_up(1, od.ObjectName) is not None
    assert mqi.MQCLOSE(model.h, hobj, 1) == (0, 0)
    assert model.qm.look_up(1, od.ObjectName) is None


@pytest.mark.parametrize(
    ("pattern", "start", "length"),
    [
        ("REPLY.*", "REPLY.", 22),
        ("*", "", 16),
        ("N" * 32 + "*", "N" * 32, 48),
        ("EXACT.NAME", "EXACT.NAME", 10),
        ("N" * 48, "N" * 48, 48),
    ],
)
def test_the_name_of_a_dynamic_queue(model: Any, pattern: str, start: str, length: int) -> None:
    od = mqi.MQOD(ObjectName="MODEL", DynamicQName=pattern)
    hobj, *result = mqi.MQOPEN(model.h, od, INPUT)
    assert result == [0, 0]
    assert od.ObjectName.startswith(start) and len(od.ObjectName) == length
    mqi.MQCLOSE(model.h, hobj, 0)


@pytest.mark.parametrize(
    "pattern", ["", "   ", "N" * 33 + "*", "A*B", "**", "A B*", " A*", "A-*", "A* B"]
)
def test_a_dynamic_name_that_is_none_is_2011(model: Any, pattern: str) -> None:
    assert model.open_code("MODEL", INPUT, DynamicQName=pattern) == 2011


def test_a_dynamic_name_that_exists_is_2100(model: Any) -> None:
    assert model.open_code("MODEL", INPUT, DynamicQName="Q") == 2100


def test_the_dynamic_name_is_checked_for_models_only(model: Any) -> None:
    assert model.open_code("Q", INPUT, DynamicQName="") == 0


def test_a_dynamic_queue_has_the_models_attributes_of_that_moment(model: Any) -> None:
    od = mqi.MQOD(ObjectName="MODEL")
    hobj = mqi.MQOPEN(model.h, od, INPUT | OUTPUT | INQUIRE)[0]
    model.qm.alter("QMODEL", "MODEL", maxdepth=9)
    values, *result = mqi.MQINQ(model.h, hobj, [15, 6, 7, 20, 2016])
    assert result == [0, 0]
    assert values == {15: 7, 6: 4, 7: 3, 20: 1, 2016: od.ObjectName}
    md = mqi.MQMD()
    assert mqi.MQPUT(model.h, hobj, md, mqi.MQPMO(), b"") == (0, 0)
    assert model.get(hobj)[1].Priority == 4


def test_names_are_unique(model: Any) -> None:
    found = set()
    for _ in range(50):
        od = mqi.MQOD(ObjectName="MODEL")
        mqi.MQOPEN(model.h, od, INPUT)
        found.add(od.ObjectName)
    assert len(found) == 50


def test_mqput1_to_a_model_is_2057(model: Any) -> None:
    od = mqi.MQOD(ObjectName="MODEL")
    assert mqi.MQPUT1(model.h, od, mqi.MQMD(), mqi.MQPMO(), b"") == (2, 2057)


def test_a_temporary_queue_holds_no_persistent_message(model: Any) -> None:
    q = model.open("MODEL")
    assert model.put_code(q, Persistence=1) == 2048
    model.put(q, Persistence=0)


def test_2048_is_checked_after_the_default_is_resolved(model: Any) -> None:
    od = mqi.MQOD(ObjectName="MODEL", DynamicQName="TEMP")
    mqi.MQOPEN(model.h, od, INPUT)
    model.qm.define("QALIAS", "A4", target="TEMP", defpsist=True)
    model.qm.define("QALIAS", "A5", target="TEMP", defpsist=False)
    assert model.put_code(model.open("A4", OUTPUT)) == 2048
    assert model.put_code(model.open("A5", OUTPUT)) == 0


# ---- handles whose definitions change ----


@pytest.mark.parametrize(
    "change",
    [
        ("QALIAS", "ALIAS", {"target": "QM2"}),
        ("QREMOTE", "REMOTE", {"rname": "ELSEWHERE"}),
        ("QREMOTE", "REMOTE", {"rqmname": "QM3"}),
        ("QREMOTE", "REMOTE", {"xmitq": "QM2"}),
    ],
)
def test_a_change_of_what_was_resolved_ends_the_handle_with_2041(
    names: Any, change: tuple[str, str, dict[str, Any]]
) -> None:
    kind, name, values = change
    q = names.open(name, OUTPUT | INQUIRE)
    names.put(q)
    names.qm.alter(kind, name, force=True, **values)
    assert names.put_code(q) == 2041
    assert mqi.MQINQ(names.h, q, [20])[1:] == (2, 2041)
    assert mqi.MQCLOSE(names.h, q, 0) == (0, 0)


def test_a_change_of_defxmitq_ends_handles_that_used_it(own: Any) -> None:
    for name in ("XQ", "QM2"):
        own.qm.define("QLOCAL", name, usage="XMITQ")
    own.qm.alter("QMGR", "", defxmitq="XQ")
    q = own.open("ANY", OUTPUT, ObjectQMgrName="QM55")
    other = own.open("ANY", OUTPUT, ObjectQMgrName="QM2")
    own.put(q)
    own.qm.alter("QMGR", "", force=True, defxmitq="QM2")
    assert own.put_code(q) == 2041
    assert own.put_code(other) == 0


def five_definitions(mq: Any) -> Any:
    """The handle of a path of a queue-manager alias, an alias, a remote queue, the queue manager
    and its default transmission queue.
    """
    mq.qm.define("QLOCAL", "LAST", usage="XMITQ")
    mq.qm.alter("QMGR", "", defxmitq="LAST")
    mq.qm.define("QREMOTE", "HERE", rname="", rqmname=mq.qm.name)
    mq.qm.define("QREMOTE", "THERE", rname="Q", rqmname="QM9")
    mq.qm.define("QALIAS", "FIRST", target="THERE")
    return mq.open("FIRST", OUTPUT, ObjectQMgrName="HERE")


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        ("QREMOTE", "HERE", {"rqmname": "QM8"}),
        ("QALIAS", "FIRST", {"target": "Q"}),
        ("QREMOTE", "THERE", {"rname": "OTHER"}),
        ("QMGR", "", {"defxmitq": "Q"}),
        ("QLOCAL", "LAST", {"usage": "NORMAL"}),
    ],
)
def test_each_of_five_definitions_on_a_path_ends_the_handle_when_it_changes(
    own: Any, kind: str, name: str, change: dict[str, Any]
) -> None:
    hobj = five_definitions(own)
    own.put(hobj)
    with pytest.raises(penstock.ObjectInUse):
        own.qm.alter(kind, name, **change)
    own.put(hobj)
    own.qm.alter(kind, name, force=True, **change)
    assert own.put_code(hobj) == 2041


def test_other_changes_take_effect_on_open_handles_at_once(names: Any) -> None:
    q = names.open("ALIAS")
    names.qm.alter("QALIAS", "ALIAS", put="DISABLED", defprty=6)
    assert names.put_code(q) == 2051
    names.qm.alter("QALIAS", "ALIAS", put="ENABLED", get="DISABLED")
    names.put(q)
    assert names.get_code(q) == 2016
    names.qm.alter("QALIAS", "ALIAS", get="ENABLED")
    assert names.get(q)[1].Priority == 6


@pytest.mark.parametrize("options", [mqi.MQOO_BROWSE, mqi.MQOO_INQUIRE])
@pytest.mark.parametrize("deftype", ["TEMPDYN", "PERMDYN"])
def test_an_open_whose_queue_cannot_be_made_leaves_no_open_count_to_the_next_queue(
    qmgr: QmgrFixture, options: int, deftype: str
) -> None:
    model, taken = qmgr.model(deftype), qmgr.local()
    for _ in range(3):
        assert qmgr.open(model, options, DynamicQName=taken)[1:] == (FAILED, 2100)
    name = qmgr.local()  # in the slot of the queue that was not made
    with qmgr.qm.queue(name) as queue:
        assert queue.status().open_other == 0
    qmgr.qm.delete("QLOCAL", name)
