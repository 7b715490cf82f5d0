"""SET, DELETE and DISPLAY of authority records and channel authentication records."""

from __future__ import annotations

import pytest
from mqsc_fixture import done, refused

import penstock
from penstock.mqsc import Interpreter


def authorities(qm: penstock.QueueManager) -> dict[tuple[str, ...], list[str]]:
    """The authorities by profile, type of object, type of entity and entity."""
    found = {}
    for row in qm.display("AUTHREC"):
        key = tuple(str(row[word]) for word in ("name", "objtype", "enttype", "entity"))
        assert isinstance(row["authlist"], list)
        found[key] = row["authlist"]
    return found


def test_set_authrec_adds_and_removes_authorities_of_each_entity(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    head = "SET AUTHREC PROFILE('APP.**') OBJTYPE(QUEUE)"
    assert done(mqsc, f"{head} GROUP('app','ops') AUTHADD(PUT,GET,BROWSE)").startswith("AMQ8862")
    done(mqsc, f"{head} GROUP('app') AUTHADD(INQ) AUTHRMV(PUT)")
    done(mqsc, f"{head} GROUP('ops') AUTHRMV(ALL)")
    done(mqsc, f"{head} PRINCIPAL('app') AUTHADD(NONE)")
    assert authorities(qm) == {
        ("APP.**", "QUEUE", "GROUP", "app"): ["BROWSE", "GET", "INQ"],
        ("APP.**", "QUEUE", "GROUP", "ops"): ["NONE"],
        ("APP.**", "QUEUE", "PRINCIPAL", "app"): ["NONE"],
    }


@pytest.mark.parametrize(
    ("objtype", "group", "listed"),
    [
        ("QUEUE", "ALLMQI", "BROWSE GET INQ PASSALL PASSID PUT SET SETALL SETID"),
        ("QUEUE", "ALLADM", "CHG CLR CRT DLT DSP"),
        ("TOPIC", "ALLMQI", "PASSALL PASSID PUB RESUME SETALL SETID SUB"),
        ("CHANNEL", "ALLADM", "CHG CRT CTRL CTRLX DLT DSP"),
        ("NAMELIST", "ALL", "CHG CRT DLT DSP INQ"),
    ],
)
def test_groups_of_authorities_are_those_of_the_type_of_object(
    mqsc: Interpreter, qm: penstock.QueueManager, objtype: str, group: str, listed: str
) -> None:
    done(mqsc, f"SET AUTHREC PROFILE(X) OBJTYPE({objtype}) GROUP(g) AUTHADD({group})")
    assert authorities(qm) == {("X", objtype, "GROUP", "G"): listed.split()}


def test_the_profile_of_the_queue_manager_is_itself(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    done(mqsc, "SET AUTHREC OBJTYPE(QMGR) PRINCIPAL('u') AUTHADD(CONNECT)")
    done(mqsc, "SET AUTHREC PROFILE('self') OBJTYPE(QMGR) PRINCIPAL('u') AUTHADD(INQ)")
    assert authorities(qm) == {("self", "QMGR", "PRINCIPAL", "u"): ["CONNECT", "INQ"]}


def test_delete_authrec_removes_one_record(mqsc: Interpreter, qm: penstock.QueueManager) -> None:
    done(mqsc, "SET AUTHREC PROFILE(Q) OBJTYPE(QUEUE) GROUP('a','b') AUTHADD(GET)")
    done(mqsc, "DELETE AUTHREC PROFILE(Q) OBJTYPE(QUEUE) GROUP('a')")
    assert [key[3] for key in authorities(qm)] == ["b"]
    again = "DELETE AUTHREC PROFILE(Q) OBJTYPE(QUEUE) GROUP('a')"
    assert refused(mqsc, again).code == "AMQ8147"
    done(mqsc, f"{again} IGNSTATE(YES)")


def test_display_authrec_selects_by_profile_type_and_entity(mqsc: Interpreter) -> None:
    done(mqsc, "SET AUTHREC PROFILE('A.*') OBJTYPE(QUEUE) GROUP('g') AUTHADD(GET,PUT)")
    done(mqsc, "SET AUTHREC PROFILE('B') OBJTYPE(TOPIC) PRINCIPAL('u') AUTHADD(PUB)")
    shown = done(mqsc, "DISPLAY AUTHREC PROFILE('A.*')")
    assert "PROFILE(A.*)" in shown and "AUTHLIST(GET,PUT)" in shown and "PUB" not in shown
    for text, names in (
        ("DISPLAY AUTHREC", ["A.*", "B"]),
        ("DISPLAY AUTHREC OBJTYPE(TOPIC)", ["B"]),
        ("DISPLAY AUTHREC GROUP('g')", ["A.*"]),
        ("DISPLAY AUTHREC WHERE(AUTHLIST CT PUB)", ["B"]),
        ("DISPLAY AUTHREC GROUP('u')", []),
    ):
        assert [row["name"] for row in mqsc.execute(text).objects] == names, text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("SET AUTHREC PROFILE(Q) GROUP(g) AUTHADD(GET)", "needs OBJTYPE"),
        ("SET AUTHREC OBJTYPE(QUEUE) GROUP(g) AUTHADD(GET)", "needs PROFILE"),
        ("SET AUTHREC PROFILE(Q) OBJTYPE(QUEUE) AUTHADD(GET)", "needs PRINCIPAL or GROUP"),
        ("SET AUTHREC PROFILE(Q) OBJTYPE(QUEUE) GROUP(g) AUTHADD(FLY)", "no such authority"),
        ("SET AUTHREC PROFILE(Q) OBJTYPE(BIRD) GROUP(g) AUTHADD(GET)", "OBJTYPE is one of"),
        ("SET AUTHREC PROFILE(Q) OBJTYPE(QUEUE) GROUP AUTHADD(GET)", "needs a value"),
        ("SET CHLAUTH('*') USERLIST('x')", "needs TYPE"),
        ("SET CHLAUTH('*') TYPE(BLOCK)", "TYPE is one of"),
        ("SET CHLAUTH('*') TYPE(BLOCKUSER) ACTION(FLY)", "ACTION is one of"),
    ],
)
def test_a_wrong_set_is_a_syntax_error(shared: penstock.QueueManager, text: str, why: str) -> None:
    reply = refused(Interpreter(shared), text)
    assert reply.code == "AMQ8405" and why in reply.lines[0]


# ---- channel authentication records ----


def test_set_chlauth_adds_replaces_and_removes_maps(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    text = "SET CHLAUTH('TO.*') TYPE(ADDRESSMAP) ADDRESS('10.*')"
    assert done(mqsc, f"{text} USERSRC(NOACCESS)").startswith("AMQ8877")
    assert refused(mqsc, f"{text} USERSRC(CHANNEL)").code == "AMQ8150"
    done(mqsc, f"{text} USERSRC(CHANNEL) ACTION(REPLACE)")
    done(mqsc, "SET CHLAUTH('TO.*') TYPE(ADDRESSMAP) ADDRESS('11.*') ACTION(ADD)")
    assert [(row["address"], row["usersrc"]) for row in qm.display("CHLAUTH")] == [
        ("10.*", "CHANNEL"), ("11.*", "MAP"),
    ]  # fmt: skip
    done(mqsc, f"{text} ACTION(REMOVE)")
    assert refused(mqsc, f"{text} ACTION(REMOVE)").code == "AMQ8147"
    done(mqsc, "SET CHLAUTH('TO.*') TYPE(USERMAP) CLNTUSER('u') MCAUSER('v')")
    done(mqsc, "SET CHLAUTH('TO.*') TYPE(ADDRESSMAP) ACTION(REMOVEALL)")
    assert [row["chlautyp"] for row in qm.display("CHLAUTH")] == ["USERMAP"]
    done(mqsc, "SET CHLAUTH('TO.*') TYPE(ADDRESSMAP) ACTION(REMOVEALL)")


def test_set_chlauth_changes_the_list_of_blocked_users(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    head = "SET CHLAUTH('*') TYPE(BLOCKUSER)"

    def listed() -> object:
        return [row["userlist"] for row in qm.display("CHLAUTH")]

    done(mqsc, f"{head} USERLIST('*MQADMIN') DESCR('no one') ACTION(ADD)")
    done(mqsc, f"{head} USERLIST('b','a') ACTION(ADD)")
    assert listed() == [["*MQADMIN", "b", "a"]]
    assert qm.display("CHLAUTH")[0]["descr"] == "no one"
    done(mqsc, f"{head} USERLIST('b') ACTION(REMOVE)")
    assert listed() == [["*MQADMIN", "a"]]
    done(mqsc, f"{head} USERLIST('nobody') ACTION(REPLACE)")
    assert listed() == [["nobody"]]
    done(mqsc, f"{head} USERLIST('nobody') ACTION(REMOVE)")
    assert listed() == []
    assert refused(mqsc, f"{head} USERLIST('nobody') ACTION(REMOVE)").code == "AMQ8147"


def test_display_chlauth_selects_by_name_type_and_match(mqsc: Interpreter) -> None:
    done(mqsc, "SET CHLAUTH('*') TYPE(BLOCKUSER) USERLIST('x')")
    done(mqsc, "SET CHLAUTH('A.*') TYPE(ADDRESSMAP) ADDRESS('*') USERSRC(NOACCESS)")
    shown = done(mqsc, "DISPLAY CHLAUTH('*')")
    assert "CHLAUTH(A.*)" in shown and "TYPE(BLOCKUSER)" in shown and "USERLIST(x)" in shown
    for text, names in (
        ("DISPLAY CHLAUTH('*') TYPE(ADDRESSMAP)", ["A.*"]),
        ("DISPLAY CHLAUTH('*') MATCH(EXACT)", ["*"]),
        ("DISPLAY CHLAUTH('A.*') ALL", ["A.*"]),
        ("DISPLAY CHLAUTH('B.*')", []),
        ("DISPLAY CHLAUTH('*') WHERE(USERSRC EQ NOACCESS)", ["A.*"]),
    ):
        assert [row["name"] for row in mqsc.execute(text).objects] == names, text
    assert refused(mqsc, "DISPLAY CHLAUTH('A') MATCH(RUNCHECK) ADDRESS('1')").code == "AMQ8426"


def test_a_map_needs_the_partner_that_it_is_for(mqsc: Interpreter) -> None:
    for kind, keyword in (
        ("ADDRESSMAP", "ADDRESS"), ("USERMAP", "CLNTUSER"), ("QMGRMAP", "QMNAME"),
        ("SSLPEERMAP", "SSLPEER"),
    ):  # fmt: skip
        reply = refused(mqsc, f"SET CHLAUTH(C) TYPE({kind}) MCAUSER('u')")
        assert reply.code == "AMQ8101" and f"needs {keyword}" in reply.lines[0]
