"""Commands on objects of every type: define, alter, delete, display, and their rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import QueueManager, objects
from penstock.client.cluster_instances import instances
from penstock.objects import TYPES, Attribute
from penstock.objects.channel_tables import CHANNEL_TYPES
from penstock.objects.types import ObjectType

SMALL = {"segment_size": 1 << 20, "journal_limit": 64 << 20, "ring_size": 1 << 20}

# What a definition of each type needs.
NEEDED: dict[str, dict[str, Any]] = {
    "QCLUSTER": {"clusqmgr": "QM2", "cluster": "C1"},
    "TOPIC": {"topicstr": "a/b"},
    "SDR": {"conname": "host(1414)", "xmitq": "X"},
    "SVR": {"xmitq": "X"},
    "RQSTR": {"conname": "host(1414)"},
    "CLUSSDR": {"conname": "host(1414)"},
    "CLNTCONN": {"conname": "host(1414)"},
    "CRLLDAP": {"conname": "host"},
    "IDPWLDAP": {"conname": "host"},
    "OCSP": {"ocspurl": "http://host"},
    "ADDRESSMAP": {"address": "*"},
    "USERMAP": {"clntuser": "u"},
    "QMGRMAP": {"qmname": "QM2"},
    "SSLPEERMAP": {"sslpeer": "CN=*"},
    "SUB": {"topicstr": "a/b"},
    "AUTHREC": {"objtype": "QUEUE", "enttype": "GROUP", "entity": "g"},
}
# Values that only go with others: (type, keyword, stored) -> the others.
TOGETHER: dict[tuple[str, str], dict[str, Any]] = {
    ("QLOCAL", "QSGDISP"): {"cfstruct": "STRUC"},
    ("QLOCAL", "CFSTRUCT"): {"qsgdisp": "SHARED"},
    ("QMODEL", "DEFPSIST"): {"deftype": "PERMDYN"},
    ("QMODEL", "DEFTYPE"): {"cfstruct": "STRUC"},
    ("CFSTRUCT", "CFLEVEL"): {"recover": "NO"},
}


@pytest.fixture
def zos(home: Path) -> Iterator[QueueManager]:
    """A queue manager of platform z/OS with the structure STRUC."""
    penstock.create("QMZ", home, platform="zos", **SMALL)
    with penstock.connect("QMZ", home) as manager:
        manager.define("CFSTRUCT", "STRUC")
        yield manager


def another(row: Attribute) -> object:
    """A value that is not the default."""
    if row.choices:
        return list(row.choices[1:])
    if row.many:
        return ["A", "B"]
    if row.hexadecimal:
        return "0A"
    if row.keyword == "CFSTRUCT":
        return "STRUC"
    if row.length:
        return "OTHER"[: row.length]
    if row.words and row.high < row.low:
        return next((w for w, n in row.words.items() if n != row.default), next(iter(row.words)))
    return row.high if row.high != row.default else row.low


def others_for(kind: ObjectType, row: Attribute) -> dict[str, Any]:
    """The attributes that are required together with a value of an attribute."""
    given = dict(NEEDED.get(kind.name, {}))
    if kind.subtype is not None:
        words = [str(another(row))] if row is kind.subtype else row.kinds or [*kind.subtype.words]
        given |= {kind.subtype.keyword.lower(): words[0], **NEEDED.get(words[0], {})}
    return given | TOGETHER.get((kind.name, row.keyword), {})


def settable_rows() -> list[tuple[ObjectType, Attribute]]:
    """Every attribute that DEFINE can set."""
    return [
        (kind, row)
        for kind in TYPES.values()
        for row in kind.attributes.values()
        if not (row.display_only or row.secret)
    ]


def test_every_attribute_of_every_type_is_kept_through_define_alter_and_restart(
    zos: QueueManager, home: Path
) -> None:
    expected: dict[tuple[str, str], dict[str, Any]] = {}
    for number, (kind, row) in enumerate(settable_rows()):
        value = another(row)
        shown = row.show(row.parse(value))
        others = others_for(kind, row)
        if row.keyword == "CLUSNL":
            others.pop("cluster", None)
        if kind.name == "QMGR":
            zos.alter("QMGR", **{row.keyword: value})
            expected["QMGR", "QMZ"] = expected.get(("QMGR", "QMZ"), {}) | {row.keyword: shown}
            continue
        name = f"N{number}"
        zos.define(kind.name, name, **others | {row.keyword.lower(): value})
        expected[kind.name, name] = {row.keyword: shown}
        if row.fixed or row.keyword == "CFSTRUCT":
            continue
        zos.define(kind.name, name + "A", **others)
        which = {"clusqmgr": "QM2"} if kind.name == "QCLUSTER" else {}
        which |= {k: v for k, v in others.items() if kind.attribute(k) in kind.identity}
        if kind.separate:
            which["chltype"] = others["chltype"]
        zos.alter(kind.name, name + "A", **{row.keyword: value} | which)
        expected[kind.name, name + "A"] = {row.keyword: shown}
    before = {key: zos.display(*key)[0] for key in expected}
    for key, values in expected.items():
        assert {k: before[key][k] for k in values} == values, key
    zos.close()
    with penstock.connect("QMZ", home) as again:
        assert {key: again.display(*key)[0] for key in expected} == before


def test_an_object_of_each_type_shows_the_shipped_defaults(zos: QueueManager) -> None:
    for kind in TYPES.values():
        if kind.name == "QMGR" or kind.subtype is not None:
            continue
        given = NEEDED.get(kind.name, {})
        zos.define(kind.name, "OBJ", **given)
        (shown,) = zos.display(kind.name, "OBJ")
        assert (shown["name"], shown["type"]) == ("OBJ", kind.name)
        for row in kind.attributes.values():
            if row.keyword.lower() not in given and not row.display_only:
                assert shown[row.keyword] == row.show(row.default_zos), row
        if kind.is_queue:
            zos.delete(kind.name, "OBJ")


@pytest.mark.parametrize("channel", CHANNEL_TYPES)
def test_a_channel_has_the_attributes_of_its_type_and_no_others(
    qm: QueueManager, channel: str
) -> None:
    qm.define("CHANNEL", "CH", chltype=channel, **NEEDED.get(channel, {}))
    (shown,) = qm.display("CHANNEL", "CH")
    for row in TYPES["CHANNEL"].attributes.values():
        applies = row.applies("unix", channel)
        assert (row.keyword in shown) == applies
        if not applies and not row.platform:
            with pytest.raises(penstock.InvalidValue, match=f"has no {row.keyword}"):
                qm.alter("CHANNEL", "CH", **{row.keyword: row.show(row.default)})
    refusal: type[penstock.MQError] = penstock.InvalidValue
    if channel == "CLNTCONN":  # the names of client channels are apart from those of the others
        refusal = penstock.UnknownObjectName
    with pytest.raises(refusal, match=r"cannot be changed|no channel CH"):
        qm.alter("CHANNEL", "CH", chltype="SDR" if channel != "SDR" else "SVR")


def test_a_client_channel_may_have_the_name_of_another_channel(qm: QueueManager) -> None:
    qm.define("CHANNEL", "CH", chltype="SVRCONN", descr="server")
    qm.define("CHANNEL", "CH", chltype="CLNTCONN", conname="h(1414)", descr="client")
    with pytest.raises(penstock.ObjectAlreadyExists):
        qm.define("CHANNEL", "CH", chltype="CLNTCONN", conname="h(1415)")
    assert [(row["chltype"], row["descr"]) for row in qm.display("CHANNEL", "CH")] == [
        ("SVRCONN", "server"), ("CLNTCONN", "client"),
    ]  # fmt: skip
    qm.alter("CHANNEL", "CH", chltype="CLNTCONN", descr="changed")
    qm.delete("CHANNEL", "CH")
    assert [row["descr"] for row in qm.display("CHANNEL", "C*")] == ["changed"]
    qm.alter("CHANNEL", "CH", descr="again")
    qm.delete("CHANNEL", "CH", chltype="CLNTCONN")
    assert qm.display("CHANNEL", "CH") == []


def test_records_of_one_profile_are_told_apart_by_what_identifies_them(qm: QueueManager) -> None:
    key = {"objtype": "QUEUE", "enttype": "GROUP"}
    for entity in ("app", "ops"):
        qm.define("AUTHREC", "APP.**", entity=entity, authlist=["GET"], **key)
    with pytest.raises(penstock.ObjectAlreadyExists):
        qm.define("AUTHREC", "APP.**", entity="app", **key)
    qm.alter("AUTHREC", "APP.**", entity="ops", authlist=["get", "PUT"], **key)
    (ops,) = qm.display("AUTHREC", "APP.**", entity="ops", **key)
    assert ops["authlist"] == ["GET", "PUT"]
    qm.delete("AUTHREC", "APP.**", entity="app", **key)
    assert qm.display("AUTHREC") == [ops]
    with pytest.raises(penstock.UnknownObjectName):
        qm.delete("AUTHREC", "APP.**", entity="app", **key)
    with pytest.raises(penstock.AttributeNameError, match="does not identify"):
        qm.delete("AUTHREC", "APP.**", authlist=["GET"])


def test_the_name_of_a_subscription_is_a_text_of_10240_bytes(qm: QueueManager) -> None:
    names = ["a name with blanks, \u00e4 and 'quotes'", "n" * 10240]
    for name in names:
        qm.define("SUB", name, topicstr="a/b", dest="Q")
        qm.alter("SUB", name, userdata="u")
    assert [row["name"] for row in qm.display("SUB")] == names
    assert [qm.display("SUB", name)[0]["userdata"] for name in names] == ["u", "u"]
    for wrong in ("n" * 10241, "", "a\nb", 3):
        with pytest.raises(penstock.MQError, match="name"):
            qm.define("SUB", wrong, topicstr="a/b")  # type: ignore[arg-type]
    with pytest.raises(penstock.InvalidValue, match="TOPICSTR or TOPICOBJ"):
        qm.define("SUB", "S")


def test_a_channel_needs_its_type_and_what_the_type_needs(qm: QueueManager) -> None:
    for given, text in (
        ({}, "needs CHLTYPE"),
        ({"chltype": "SDR", "conname": "h"}, "needs XMITQ"),
        ({"chltype": "SDR", "xmitq": "X"}, "needs CONNAME"),
        ({"chltype": "RCVR", "xmitq": "X"}, "has no XMITQ"),
    ):
        with pytest.raises(penstock.InvalidValue, match=text):
            qm.define("CHANNEL", "CH", **given)
    with pytest.raises(penstock.ObjectNameError, match="1 to 20"):
        qm.define("CHANNEL", "C" * 21, chltype="RCVR")
    assert qm.display("CHANNEL", "CH") == []


def test_a_process_a_namelist_and_a_queue_may_have_one_name(qm: QueueManager) -> None:
    for kind in ("QLOCAL", "PROCESS", "NAMELIST", "TOPIC"):
        qm.define(kind, "SAME", **NEEDED.get(kind, {}))
    qm.define("CHANNEL", "SAME", chltype="RCVR")
    for kind in ("QLOCAL", "PROCESS", "NAMELIST", "TOPIC", "CHANNEL"):
        assert [row["type"] for row in qm.display(kind, "SAME")] == [kind]
        qm.delete(kind, "SAME")
        assert qm.display(kind, "SAME") == []


def test_queues_of_all_types_share_one_name_space(qm: QueueManager) -> None:
    kinds = ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL")
    for kind in kinds:
        qm.define(kind, "Q")
        for other in kinds:
            for replace in (False, True):
                if other == kind and replace:
                    continue
                with pytest.raises(penstock.ObjectAlreadyExists) as caught:
                    qm.define(other, "Q", replace=replace)
                assert kind in str(caught.value) or other == kind
            if other != kind:
                with pytest.raises(penstock.UnknownObjectName, match=f"it is a {kind}"):
                    qm.alter(other, "Q", descr="x")
                with pytest.raises(penstock.UnknownObjectName, match=f"it is a {kind}"):
                    qm.delete(other, "Q")
        assert [row["type"] for row in qm.display("QUEUE", "Q")] == [kind]
        qm.delete(kind, "Q")


def test_like_copies_a_definition_but_not_its_moments(qm: QueueManager) -> None:
    qm.define("QLOCAL", "A", maxdepth=7, descr="of A", usage="XMITQ")
    qm.define("QLOCAL", "B", like="A", descr="of B")
    (b,) = qm.display("QLOCAL", "B")
    assert (b["maxdepth"], b["descr"], b["usage"]) == (7, "of B", "XMITQ")
    with pytest.raises(penstock.UnknownObjectName, match="LIKE"):
        qm.define("QLOCAL", "C", like="NONE")
    with pytest.raises(penstock.UnknownObjectName, match="LIKE"):
        qm.define("QALIAS", "C", like="A")
    qm.define("CHANNEL", "S", chltype="SDR", conname="h", xmitq="X", batchsz=9)
    qm.define("CHANNEL", "S2", like="S")
    assert qm.display("CHANNEL", "S2")[0]["batchsz"] == 9


def test_new_objects_start_from_the_default_object_of_their_type(qm: QueueManager) -> None:
    qm.alter("QLOCAL", "SYSTEM.DEFAULT.LOCAL.QUEUE", maxdepth=11, defpsist=True)
    qm.alter("CHANNEL", "SYSTEM.DEF.RECEIVER", mrrty=3)
    qm.define("QLOCAL", "A", defpsist=False)
    qm.define("CHANNEL", "R", chltype="RCVR")
    qm.define("CHANNEL", "Q", chltype="RQSTR", conname="h")
    (a,) = qm.display("QLOCAL", "A")
    assert (a["maxdepth"], a["defpsist"]) == (11, False)
    assert [qm.display("CHANNEL", n)[0]["mrrty"] for n in ("R", "Q")] == [3, 10]
    qm.delete("QLOCAL", "SYSTEM.DEFAULT.LOCAL.QUEUE")
    qm.define("QLOCAL", "B")
    assert qm.display("QLOCAL", "B")[0]["maxdepth"] == 5000


def test_a_replaced_default_object_is_as_shipped(qm: QueueManager) -> None:
    qm.alter("QLOCAL", "SYSTEM.DEFAULT.LOCAL.QUEUE", maxdepth=11)
    qm.define("QLOCAL", "SYSTEM.DEFAULT.LOCAL.QUEUE", replace=True)
    assert qm.display("QLOCAL", "SYSTEM.DEFAULT.LOCAL.QUEUE")[0]["maxdepth"] == 5000


def test_a_replaced_model_makes_dynamic_queues_of_the_new_definition(
    qm: QueueManager,
) -> None:
    qm.define("QMODEL", "M", deftype="PERMDYN")
    qm.define("QMODEL", "M", replace=True)
    assert qm.display("QMODEL", "M")[0]["deftype"] == "TEMPDYN"


def test_a_queue_like_a_dynamic_one_is_predefined_and_a_replaced_one_stays_dynamic(
    qm: QueueManager,
) -> None:
    attrs = objects.encode(objects.dynamic_queue({7: 2, 15: 9}))
    qm.define_object(1, "DYNAMIC", attrs)
    qm.define("QLOCAL", "A", like="DYNAMIC")
    qm.define("QLOCAL", "DYNAMIC", replace=True, descr="new")
    (a,), (dynamic,) = qm.display("QLOCAL", "A"), qm.display("QLOCAL", "DYNAMIC")
    assert (a["deftype"], a["maxdepth"]) == ("PREDEFINED", 9)
    assert (dynamic["deftype"], dynamic["descr"], dynamic["maxdepth"]) == ("PERMDYN", "new", 5000)


def test_replace_starts_from_defaults_but_keeps_messages_and_creation(qm: QueueManager) -> None:
    qm.define("QLOCAL", "A", maxdepth=7, bothresh=2)
    slot, generation = qm.find_object("A")
    stored = objects.decode(qm.read_object(slot, generation)[2]) | {2004: "1999-12-31"}
    qm.alter_object(slot, generation, 1, "A", objects.encode(stored))
    with qm.open("A") as queue:
        queue.put(b"stays")
    qm.define("QLOCAL", "A", replace=True, descr="new")
    (a,) = qm.display("QLOCAL", "A")
    assert (a["maxdepth"], a["bothresh"], a["descr"]) == (5000, 0, "new")
    assert (a["curdepth"], a["crdate"]) == (1, "1999-12-31") and a["altdate"] != "1999-12-31"


@pytest.mark.parametrize(
    ("kind", "given", "text"),
    [
        ("QMODEL", {"defpsist": True}, "TEMPDYN"),
        ("QMODEL", {"defpsist": True, "deftype": "TEMPDYN"}, "TEMPDYN"),
        ("QMODEL", {"deftype": "SHAREDYN"}, "needs CFSTRUCT"),
        ("QMODEL", {"deftype": "PREDEFINED"}, "one of PERMDYN"),
        ("QLOCAL", {"qsgdisp": "SHARED"}, "needs CFSTRUCT"),
        ("QLOCAL", {"cfstruct": "STRUC"}, "needs QSGDISP"),
        ("QLOCAL", {"qsgdisp": "SHARED", "cfstruct": "NONE"}, "no structure NONE"),
        ("QLOCAL", {"cluster": "A", "clusnl": "B"}, "exclude"),
        ("QREMOTE", {"cluster": "A", "clusnl": "B"}, "exclude"),
        ("QLOCAL", {"deftype": "PERMDYN"}, "display-only"),
        ("CFSTRUCT", {"cflevel": 2, "recover": True}, "CFLEVEL"),
        ("TOPIC", {}, "TOPICSTR"),
        ("QCLUSTER", {"cluster": "C"}, "CLUSQMGR"),
        ("QCLUSTER", {"clusqmgr": "Q"}, "CLUSTER"),
        ("QMGR", {}, "create"),
    ],
)
def test_attributes_that_do_not_go_together_are_refused(
    zos: QueueManager, kind: str, given: dict[str, Any], text: str
) -> None:
    with pytest.raises(penstock.MQError, match=text):
        zos.define(kind, "OBJ", **given)
    assert zos.display(kind, "OBJ") == [] or kind == "QMGR"


def test_alter_of_a_model_to_the_forbidden_pair_is_refused(qm: QueueManager) -> None:
    qm.define("QMODEL", "M", deftype="PERMDYN", defpsist=True)
    with pytest.raises(penstock.InvalidValue, match="TEMPDYN") as caught:
        qm.alter("QMODEL", "M", deftype="TEMPDYN")
    assert caught.value.reason == 2047
    qm.alter("QMODEL", "M", deftype="TEMPDYN", defpsist=False)


def test_zos_types_and_attributes_are_refused_on_unix(qm: QueueManager) -> None:
    with pytest.raises(penstock.InvalidValue, match="platform z/OS"):
        qm.define("CFSTRUCT", "STRUC")
    for given in ({"qsgdisp": "SHARED"}, {"cfstruct": "S"}, {"indxtype": "GROUPID"}):
        with pytest.raises(penstock.AttributeNameError, match="platform z/OS"):
            qm.define("QLOCAL", "Q", **given)
    assert "indxtype" not in qm.display("QLOCAL", "SYSTEM.DEFAULT.LOCAL.QUEUE")[0]


@pytest.mark.parametrize("name", ["", "1A", "a", "A.B", "A" * 13, "A_B"])
def test_a_name_that_no_structure_can_have_is_refused(zos: QueueManager, name: str) -> None:
    with pytest.raises(penstock.ObjectNameError):
        zos.define("CFSTRUCT", name)


def test_a_structure_in_use_is_not_deleted_and_its_level_not_lowered(zos: QueueManager) -> None:
    zos.define("QLOCAL", "Q", qsgdisp="SHARED", cfstruct="STRUC")
    with pytest.raises(penstock.ObjectInUse, match="Q"):
        zos.delete("CFSTRUCT", "STRUC")
    with zos.open("Q"), pytest.raises(penstock.ObjectInUse, match="Q is open"):
        zos.alter("CFSTRUCT", "STRUC", cflevel=2)
    zos.alter("CFSTRUCT", "STRUC", cflevel=5)
    with zos.open("Q") as queue:
        queue.put(b"x", persistent=False)
    with pytest.raises(penstock.ObjectInUse, match="holds 1 messages"):
        zos.alter("CFSTRUCT", "STRUC", cflevel=4)
    assert zos.display("CFSTRUCT", "STRUC")[0]["cflevel"] == 5
    zos.clear("Q")
    zos.alter("CFSTRUCT", "STRUC", cflevel=1)
    zos.delete("QLOCAL", "Q")
    zos.delete("CFSTRUCT", "STRUC")


def test_the_structure_of_a_shared_queue_stays(zos: QueueManager) -> None:
    zos.define("CFSTRUCT", "OTHER")
    zos.define("QLOCAL", "Q", qsgdisp="SHARED", cfstruct="STRUC")
    for given in ({"cfstruct": "OTHER"}, {"qsgdisp": "QMGR", "cfstruct": ""}):
        with pytest.raises(penstock.InvalidValue, match="cannot be changed"):
            zos.alter("QLOCAL", "Q", **given)
    zos.alter("QLOCAL", "Q", descr="x")


def test_a_queue_takes_no_longer_messages_than_its_queue_manager(qm: QueueManager) -> None:
    qm.alter("QMGR", maxmsgl=104857600)
    qm.define("QLOCAL", "BIG", maxmsgl=104857600)
    with pytest.raises(penstock.InvalidValue, match="less than that of QLOCAL"):
        qm.alter("QMGR", maxmsgl=5000000)
    for row in qm.display("QUEUE", "*"):
        if row.get("maxmsgl", 0) > 5000000:
            qm.alter(str(row["type"]), str(row["name"]), maxmsgl=4194304)
    qm.alter("QMGR", maxmsgl=5000000)
    for call in (qm.define, qm.alter):
        with pytest.raises(penstock.InvalidValue, match="5000000"):
            call("QLOCAL", "BIG" if call == qm.alter else "NEW", maxmsgl=5000001)


FOLLOWERS = ("SYSTEM.DEAD.LETTER.QUEUE", "SYSTEM.CLUSTER.TRANSMIT.QUEUE")


def test_maxmsgl_of_a_new_queue_manager_can_be_lowered_and_raised_again(qm: QueueManager) -> None:
    for limit in (4194304, 104857600):
        qm.alter("QMGR", maxmsgl=limit)
        assert [qm.display("QLOCAL", name)[0]["maxmsgl"] for name in FOLLOWERS] == [limit, limit]
        assert qm.display("QMGR", "")[0]["maxmsgl"] == limit
    assert qm.display("QLOCAL", "SYSTEM.DEFAULT.LOCAL.QUEUE")[0]["maxmsgl"] == 4194304


def test_a_maxmsgl_that_was_given_to_the_dead_letter_queue_stays(qm: QueueManager) -> None:
    qm.alter("QLOCAL", FOLLOWERS[0], maxmsgl=5000000)
    with pytest.raises(penstock.InvalidValue, match="less than that of QLOCAL SYSTEM"):
        qm.alter("QMGR", maxmsgl=4194304)
    assert qm.display("QLOCAL", FOLLOWERS[1])[0]["maxmsgl"] == 104857600
    qm.alter("QMGR", maxmsgl=5000001)
    assert qm.display("QLOCAL", FOLLOWERS[0])[0]["maxmsgl"] == 5000000
    qm.alter("QMGR", maxmsgl=6000000)
    assert [qm.display("QLOCAL", name)[0]["maxmsgl"] for name in FOLLOWERS] == [5000000, 6000000]


def test_share_is_taken_away_only_with_force_while_two_have_it_open_for_input(
    qm: QueueManager,
) -> None:
    qm.define("QLOCAL", "Q")
    with qm.open("Q"):
        with qm.open("Q"):
            with pytest.raises(penstock.ObjectInUse, match="FORCE"):
                qm.alter("QLOCAL", "Q", share=False)
            with pytest.raises(penstock.ObjectInUse, match="FORCE"):
                qm.define("QLOCAL", "Q", replace=True, share=False)
            qm.alter("QLOCAL", "Q", share=False, force=True)
            qm.alter("QLOCAL", "Q", share=True)
        qm.alter("QLOCAL", "Q", share=False)


def test_usage_changes_only_with_force_while_open_or_not_empty(qm: QueueManager) -> None:
    qm.define("QLOCAL", "Q")
    with qm.open("Q") as queue:
        with pytest.raises(penstock.ObjectInUse, match="FORCE"):
            qm.alter("QLOCAL", "Q", usage="XMITQ")
        queue.put(b"x")
    with pytest.raises(penstock.ObjectInUse, match="1 messages"):
        qm.alter("QLOCAL", "Q", usage="XMITQ")
    qm.alter("QLOCAL", "Q", usage="XMITQ", force=True)
    qm.alter("QLOCAL", "Q", usage="XMITQ", descr="unchanged usage needs none")


def test_instances_of_a_cluster_queue_are_distinguished_by_queue_manager(qm: QueueManager) -> None:
    for number in range(4):
        qm.define("QCLUSTER", "CQ", clusqmgr=f"QM{number}", cluster="C", defprty=number)
    with pytest.raises(penstock.ObjectAlreadyExists):
        qm.define("QCLUSTER", "CQ", clusqmgr="QM2", cluster="C")
    qm.alter("QCLUSTER", "CQ", clusqmgr="QM2", defpsist=True)
    qm.delete("QCLUSTER", "CQ", clusqmgr="QM1")
    with pytest.raises(penstock.UnknownObjectName, match="QM1"):
        qm.delete("QCLUSTER", "CQ", clusqmgr="QM1")
    with pytest.raises(penstock.UnknownObjectName, match="QM1"):
        qm.alter("QCLUSTER", "CQ", clusqmgr="QM1", defprty=3)
    shown = [(r["clusqmgr"], r["defprty"], r["defpsist"]) for r in qm.display("QCLUSTER", "C*")]
    assert shown == [("QM0", 0, False), ("QM2", 2, True), ("QM3", 3, False)]
    qm.define("QCLUSTER", "CQ", clusqmgr="QM9", cluster="C")
    assert [number for _, number, _ in instances(qm, "CQ")] == [1, 2, 3, 4]
    qm.define("QCLUSTER", "CQ", replace=True, clusqmgr="QM9", cluster="D")
    assert [r["cluster"] for r in qm.display("QCLUSTER", "CQ")] == ["C", "C", "C", "D"]


def test_the_queue_manager_is_altered_and_shown_by_its_name(qm: QueueManager) -> None:
    qm.alter("QMGR", deadq="SYSTEM.DEAD.LETTER.QUEUE", descr="a text", trigint=5)
    (shown,) = qm.display("QMGR")
    assert (shown["qmname"], shown["deadq"]) == ("QM1", "SYSTEM.DEAD.LETTER.QUEUE")
    assert (shown["trigint"], shown["maxprty"], shown["platform"]) == (5, 9, "UNIX")
    assert str(shown["qmid"]).startswith("QM1_")
    for wrong in ({"maxprty": 8}, {"qmid": "x"}, {"platform": "MVS"}):
        with pytest.raises(penstock.AttributeNameError, match="display-only"):
            qm.alter("QMGR", **wrong)
    with pytest.raises(penstock.InvalidValue, match="DEFXMITQ"):
        qm.alter("QMGR", defxmitq="SYSTEM.CLUSTER.TRANSMIT.QUEUE")
    with pytest.raises(penstock.InvalidValue, match="delete"):
        qm.delete("QMGR", "QM1")


def test_limits_of_the_queue_manager_hold_for_the_next_call(qm: QueueManager) -> None:
    qm.define("QLOCAL", "Q", maxmsgl=104857600)
    with qm.open("Q") as queue:
        qm.alter("QMGR", maxumsgs=2)
        with pytest.raises(penstock.UnitLimitReached), qm.transaction():
            for _ in range(3):
                queue.put(b"x")
        qm.alter("QMGR", maxumsgs=3)
        with qm.transaction():
            for _ in range(3):
                queue.put(b"x")


def test_mqset_values_are_stored_without_touching_others(qm: QueueManager) -> None:
    from penstock.client import object_commands

    qm.define("QLOCAL", "Q", maxdepth=7)
    slot, generation = qm.find_object("Q")
    object_commands.set_values(qm, slot, generation, "Q", {10: 1, 2023: "data"})
    (shown,) = qm.display("QLOCAL", "Q")
    assert (shown["put"], shown["trigdata"], shown["maxdepth"]) == ("DISABLED", "data", 7)
    with qm.open("Q") as queue, pytest.raises(penstock.PutInhibited):
        queue.put(b"x")


class Watched(QueueManager):
    """Notes which changes invalidate handles, and which queues' waiters are woken."""

    def __init__(self, *arguments: Any) -> None:
        self.resolutions: list[bool] = []
        self.woken: list[int] = []
        super().__init__(*arguments)

    def alter_object(self, *given: Any) -> bool:
        self.resolutions.append(given[6])
        return super().alter_object(*given)

    def wake_object(self, slot: int) -> None:
        self.woken.append(slot)
        super().wake_object(slot)


@pytest.mark.parametrize(
    ("kind", "given", "invalidates"),
    [
        ("QALIAS", {"target": "B"}, True),
        ("QALIAS", {"targq": "B", "put": "DISABLED"}, True),
        ("QALIAS", {"target": "A", "targtype": "QUEUE"}, False),
        ("QALIAS", {"defprty": 3, "put": "DISABLED", "descr": "x"}, False),
        ("QREMOTE", {"rname": "B"}, True),
        ("QREMOTE", {"rqmname": "B"}, True),
        ("QREMOTE", {"xmitq": "B"}, True),
        ("QREMOTE", {"rname": "", "defpsist": True}, False),
        ("QLOCAL", {"usage": "XMITQ"}, True),
        ("QLOCAL", {"usage": "NORMAL", "maxdepth": 3, "get": "DISABLED"}, False),
        ("QMODEL", {"usage": "XMITQ"}, False),
        ("QMGR", {"defxmitq": "B"}, True),
        ("QMGR", {"defxmitq": "", "deadq": "B"}, False),
    ],
)
def test_only_a_change_that_name_resolution_reads_invalidates_handles(
    qm: QueueManager, home: Path, kind: str, given: dict[str, Any], invalidates: bool
) -> None:
    if kind != "QMGR":
        qm.define(kind, "OBJ", **({"target": "A"} if kind == "QALIAS" else {}))
    with Watched("QM1", home) as watched:
        watched.alter(kind, "OBJ", **given)
        assert watched.resolutions == [invalidates]


def test_waiters_on_the_base_of_an_alias_are_woken_when_the_alias_changes(
    qm: QueueManager, home: Path
) -> None:
    qm.define("QLOCAL", "BASE")
    qm.define("QALIAS", "ALIAS", target="BASE")
    qm.define("QALIAS", "LOOSE", target="NONE")
    slot, _ = qm.find_object("BASE")
    with Watched("QM1", home) as watched:
        watched.alter("QALIAS", "ALIAS", get="DISABLED")
        watched.alter("QALIAS", "LOOSE", get="DISABLED")
        watched.alter("QLOCAL", "BASE", descr="x")
        assert watched.woken == [slot]
        watched.delete("QALIAS", "ALIAS")
        assert watched.woken == [slot, slot]


def test_an_alias_may_name_a_missing_queue_or_another_alias(qm: QueueManager) -> None:
    qm.define("QALIAS", "A", target="B")
    qm.define("QALIAS", "B", targq="A")
    assert [qm.display("QALIAS", name)[0]["target"] for name in "AB"] == ["B", "A"]


@pytest.mark.parametrize(
    ("kind", "name", "given"),
    [
        ("QALIAS", "A", {"target": "OTHER"}),
        ("QALIAS", "A", {"targtype": "TOPIC"}),
        ("QREMOTE", "R", {"rname": "OTHER"}),
        ("QREMOTE", "R", {"rqmname": "OTHER"}),
        ("QREMOTE", "R", {"xmitq": "OTHER"}),
        ("QMGR", "QM1", {"defxmitq": "OTHER"}),
    ],
)
def test_what_a_handle_went_through_is_changed_only_with_force_and_ends_the_handle(
    qm: QueueManager, home: Path, kind: str, name: str, given: dict[str, Any]
) -> None:
    qm.define("QLOCAL", "X", usage="XMITQ")
    qm.define("QLOCAL", "OTHER", usage="XMITQ")
    qm.alter("QMGR", defxmitq="X")
    qm.define("QALIAS", "A", target="X")
    qm.define("QREMOTE", "R", rname="Q", rqmname="QM9")
    (before,) = qm.display(kind, name)
    with qm.open("A" if kind == "QALIAS" else "R", input=False, browse=False) as opened:
        with penstock.connect("QM1", home) as admin:
            admin.alter(kind, name, descr="text", **{key: before[key] for key in given})
            opened.put(b"x")
            with pytest.raises(penstock.ObjectInUse, match="FORCE"):
                admin.alter(kind, name, **given)
            assert {key: qm.display(kind, name)[0][key] for key in given} == {
                key: before[key] for key in given
            }
            opened.put(b"x")
            admin.alter(kind, name, force=True, **given)
        with pytest.raises(penstock.MQError) as caught:
            opened.put(b"x")
        assert caught.value.reason == 2041
    assert {key: qm.display(kind, name)[0][key] for key in given} == given


@pytest.mark.parametrize(("kind", "name"), [("QALIAS", "A"), ("QREMOTE", "R"), ("QREMOTE", "M")])
def test_what_a_handle_went_through_is_deleted_only_when_the_handle_is_closed(
    qm: QueueManager, home: Path, kind: str, name: str
) -> None:
    qm.define("QLOCAL", "X", usage="XMITQ")
    qm.define("QALIAS", "A", target="R")
    qm.define("QREMOTE", "R", rname="Q", rqmname="QM9", xmitq="X")
    qm.define("QREMOTE", "M", rname="", rqmname="QM1")
    with (
        qm.open("A", manager="M", input=False, browse=False) as opened,
        penstock.connect("QM1", home) as admin,
    ):
        with pytest.raises(penstock.ObjectInUse, match="1 handles went through it"):
            admin.delete(kind, name)
        opened.put(b"x")
    qm.delete(kind, name)
    assert qm.display(kind, name) == []
