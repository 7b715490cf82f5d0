"""DEFINE, ALTER, DELETE, CLEAR, PING, and how a text of many commands runs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mqsc_fixture import done, refused

import penstock
from penstock.mqsc import Fault, Interpreter, Reply, read_commands, run


def test_define_folds_names_and_sets_the_given_attributes(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    text = "define ql(orders) defpsist(yes) maxdepth(7) descr('Mixed Case') noshare trigger"
    assert done(mqsc, text).startswith("AMQ8006")
    (shown,) = qm.display("QLOCAL", "ORDERS")
    assert (shown["maxdepth"], shown["defpsist"], shown["share"]) == (7, True, False)
    assert (shown["descr"], shown["msgdlvsq"], shown["trigger"]) == ("Mixed Case", "PRIORITY", True)


def test_define_of_an_existing_queue_needs_replace_which_resets_and_keeps_messages(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    done(mqsc, "DEFINE QLOCAL(Q) MAXDEPTH(7) DEFPSIST(YES)")
    with qm.open("Q") as queue:
        queue.put(b"stays")
    reply = refused(mqsc, "DEFINE QLOCAL(Q)")
    assert (reply.code, reply.reason, reply.syntax) == ("AMQ8150", 2100, False)
    assert refused(mqsc, "DEFINE QLOCAL(Q) NOREPLACE").code == "AMQ8150"
    done(mqsc, "DEFINE QLOCAL(Q) REPLACE DEFPRTY(3)")
    (shown,) = qm.display("QLOCAL", "Q")
    assert (shown["maxdepth"], shown["defpsist"], shown["defprty"]) == (5000, False, 3)
    assert shown["curdepth"] == 1


def test_all_types_of_queue_share_one_name_space(mqsc: Interpreter) -> None:
    done(mqsc, "DEFINE QLOCAL(Q)")
    assert refused(mqsc, "DEFINE QALIAS(Q) TARGET(X)").code == "AMQ8150"
    assert refused(mqsc, "DEFINE QREMOTE(Q) RNAME(X) REPLACE").code == "AMQ8150"
    done(mqsc, "DEFINE PROCESS(Q)")
    done(mqsc, "DEFINE NAMELIST(Q)")
    assert refused(mqsc, "ALTER QALIAS(Q) TARGET(X)").code == "AMQ8147"
    assert refused(mqsc, "DELETE QREMOTE(Q)").code == "AMQ8147"


def test_like_gives_the_values_that_are_not_given(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    done(mqsc, "DEFINE QLOCAL('one') MAXDEPTH(7) DEFPRTY(2)")
    done(mqsc, "DEFINE QLOCAL(TWO) LIKE('one') DEFPRTY(3)")
    (shown,) = qm.display("QLOCAL", "TWO")
    assert (shown["maxdepth"], shown["defprty"]) == (7, 3)
    assert refused(mqsc, "DEFINE QLOCAL(THREE) LIKE(ONE)").code == "AMQ8147"


def test_new_objects_start_from_the_system_default_object(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    done(mqsc, "ALTER QLOCAL(SYSTEM.DEFAULT.LOCAL.QUEUE) MAXDEPTH(11)")
    done(mqsc, "DEFINE QLOCAL(Q)")
    assert qm.display("QLOCAL", "Q")[0]["maxdepth"] == 11


def test_alter_changes_only_the_given_attributes(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    done(mqsc, "DEFINE QLOCAL(Q) MAXDEPTH(7) DEFPRTY(2)")
    assert done(mqsc, "ALTER QLOCAL(Q) PUT(DISABLED)").startswith("AMQ8008")
    (shown,) = qm.display("QLOCAL", "Q")
    assert (shown["put"], shown["maxdepth"], shown["defprty"]) == ("DISABLED", 7, 2)
    assert refused(mqsc, "ALTER QLOCAL(NONE) PUT(ENABLED)").code == "AMQ8147"


def test_alter_of_a_queue_in_use_needs_force_for_what_resolution_reads(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    done(mqsc, "DEFINE QLOCAL(Q)")
    with qm.open("Q"):
        assert refused(mqsc, "ALTER QLOCAL(Q) USAGE(XMITQ)").code == "AMQ8143"
        assert refused(mqsc, "ALTER QLOCAL(Q) USAGE(XMITQ) NOFORCE").reason == 2042
        done(mqsc, "ALTER QLOCAL(Q) MAXDEPTH(3)")
        done(mqsc, "ALTER QLOCAL(Q) USAGE(XMITQ) FORCE")
    assert qm.display("QLOCAL", "Q")[0]["usage"] == "XMITQ"


@pytest.mark.parametrize("kind", ["QALIAS", "QREMOTE"])
def test_delete_of_an_alias_or_remote_queue_that_is_open_is_refused(
    mqsc: Interpreter, qm: penstock.QueueManager, kind: str
) -> None:
    done(mqsc, "DEFINE QLOCAL(X) USAGE(XMITQ)")
    done(mqsc, "DEFINE QALIAS(N) TARGET(X)" if kind == "QALIAS" else
         "DEFINE QREMOTE(N) RNAME(Q) RQMNAME(QM9) XMITQ(X)")  # fmt: skip
    with qm.open("N", input=False, browse=False):
        reply = refused(mqsc, f"DELETE {kind}(N)")
        assert reply.lines[0].startswith("AMQ8143: Queue N in use") and reply.reason == 2042
    assert done(mqsc, f"DELETE {kind}(N)").startswith("AMQ8007")


def test_delete_needs_purge_for_messages(mqsc: Interpreter, qm: penstock.QueueManager) -> None:
    done(mqsc, "DEFINE QLOCAL(Q)")
    with qm.open("Q") as queue:
        queue.put(b"x")
        assert refused(mqsc, "DELETE QLOCAL(Q)").lines[0].startswith("AMQ8143: Queue Q in use")
    assert refused(mqsc, "DELETE QLOCAL(Q)").lines[0].startswith("AMQ8143: Queue Q not empty")
    assert refused(mqsc, "DELETE QLOCAL(Q) NOPURGE").reason == 2055
    assert done(mqsc, "DELETE QLOCAL(Q) PURGE").startswith("AMQ8007")
    assert qm.display("QLOCAL", "Q") == []


def test_clear_removes_messages_unless_the_queue_is_open(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    done(mqsc, "DEFINE QLOCAL(Q)")
    with qm.open("Q") as queue:
        queue.put(b"x")
        assert refused(mqsc, "CLEAR QLOCAL(Q)").code == "AMQ8143"
    assert done(mqsc, "CLEAR QLOCAL(Q)").startswith("AMQ8022")
    assert qm.display("QLOCAL", "Q")[0]["curdepth"] == 0


@pytest.mark.parametrize(
    ("define", "alter", "codes"),
    [
        ("QALIAS(X) TARGET(Q)", "TARGET(Q2)", "AMQ8006 AMQ8008 AMQ8007"),
        ("QREMOTE(X) RNAME(Q) RQMNAME(QM2)", "XMITQ(T)", "AMQ8006 AMQ8008 AMQ8007"),
        ("QMODEL(X) DEFTYPE(PERMDYN)", "DEFPSIST(YES)", "AMQ8006 AMQ8008 AMQ8007"),
        ("PROCESS(X) APPLICID('/bin/true')", "APPLTYPE(UNIX)", "AMQ8010 AMQ8012 AMQ8011"),
        ("NAMELIST(X) NAMES(A, 'b')", "NAMES()", "AMQ8552 AMQ8551 AMQ8553"),
        ("TOPIC(X) TOPICSTR('a/b')", "PUB(DISABLED)", "AMQ8690 AMQ8691 AMQ8692"),
        (
            "CHANNEL(X) CHLTYPE(SDR) CONNAME('h(1414)') XMITQ(T)",
            "BATCHSZ(9)",
            "AMQ8014 AMQ8016 AMQ8015",
        ),
    ],
)
def test_each_type_of_object_is_defined_altered_and_deleted_with_its_own_messages(
    shared: penstock.QueueManager, define: str, alter: str, codes: str
) -> None:
    mqsc = Interpreter(shared)
    subject = define.partition(" ")[0]
    commands = (f"DEFINE {define}", f"ALTER {subject} {alter}", f"DELETE {subject}")
    replies = [mqsc.execute(text) for text in commands]
    assert all(reply.ok for reply in replies), replies
    assert [reply.code for reply in replies] == codes.split()
    assert mqsc.execute(f"DISPLAY {subject}").code == "AMQ8147"


def test_alter_qmgr_takes_no_name_and_changes_the_queue_manager(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    assert done(mqsc, "ALTER QMGR DEADQ('dead') TRIGINT(1000)").startswith("AMQ8005")
    (shown,) = qm.display("QMGR")
    assert (shown["deadq"], shown["trigint"]) == ("dead", 1000)


def test_structures_are_of_platform_zos(mqsc: Interpreter, zos: Interpreter) -> None:
    reply = refused(mqsc, "DEFINE CFSTRUCT(S)")
    assert reply.syntax and "z/OS" in reply.lines[0]
    done(zos, "DEFINE CFSTRUCT(S) CFLEVEL(4) RECOVER(YES)")
    done(zos, "DEFINE QLOCAL(Q) QSGDISP(SHARED) CFSTRUCT(S)")
    (found,) = zos.execute("DISPLAY CFSTRUCT(S)").objects
    assert (found["cflevel"], found["recover"]) == (4, True)
    assert refused(zos, "DEFINE QLOCAL(Q2) QSGDISP(SHARED)").code == "AMQ8101"


def test_instances_of_cluster_queues_are_defined_by_an_extension_of_ours(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    for manager in ("QM2", "QM3"):
        text = f"DEFINE QCLUSTER(C.Q) CLUSQMGR({manager}) CLUSTER(CLUS1) DEFBIND(NOTFIXED)"
        assert done(mqsc, text).startswith("AMQ8006")
    assert refused(mqsc, "DEFINE QCLUSTER(C.Q) CLUSQMGR(QM3) CLUSTER(CLUS1)").code == "AMQ8150"
    assert "needs CLUSQMGR" in refused(mqsc, "DEFINE QCLUSTER(C.Q) CLUSTER(CLUS1)").lines[0]
    done(mqsc, "ALTER QCLUSTER(C.Q) CLUSQMGR(QM3) PUT(DISABLED)")
    assert [(row["clusqmgr"], row["put"]) for row in qm.display("QCLUSTER", "C.Q")] == [
        ("QM2", "ENABLED"), ("QM3", "DISABLED"),
    ]  # fmt: skip
    assert refused(mqsc, "DELETE QCLUSTER(C.Q)").syntax
    done(mqsc, "DELETE QCLUSTER(C.Q) CLUSQMGR(QM2)")
    assert [row["clusqmgr"] for row in qm.display("QCLUSTER", "C.Q")] == ["QM3"]
    assert refused(mqsc, "DELETE QCLUSTER(C.Q) CLUSQMGR(QM2)").code == "AMQ8147"


def test_ping_qmgr_is_answered(mqsc: Interpreter) -> None:
    assert done(mqsc, "PING QMGR").startswith("AMQ8415")


WRONG = [
    ("DEFINE QLOCAL(Q) MAXDEPTH(-1)", 26, "-1", "MAXDEPTH"),
    ("DEFINE QLOCAL(Q) MAXDEPTH(1000000000)", 26, "1000000000", "999999999"),
    ("DEFINE QLOCAL(Q) DEFPSIST(MAYBE)", 26, "MAYBE", "YES"),
    ("DEFINE QLOCAL(Q) MAXDEPTH", 17, "MAXDEPTH", "needs one value"),
    ("DEFINE QLOCAL(Q) MAXDEPTH()", 17, "MAXDEPTH", "a number"),
    ("DEFINE QLOCAL(Q) MAXDEPTH(5 6)", 28, "6", "needs one value"),
    ("DEFINE QLOCAL(Q) CURDEPTH(1)", 17, "CURDEPTH", "display-only"),
    ("DEFINE QLOCAL(Q) COLOUR(RED)", 17, "COLOUR", "COLOUR"),
    ("DEFINE QLOCAL(Q) TARGET(X)", 17, "TARGET", "TARGET"),
    ("DEFINE QALIAS(Q) TARGET(X) TARGQ(Y)", 27, "TARGQ", "twice"),
    ("DEFINE QLOCAL(Q) INDXTYPE(MSGID)", 17, "INDXTYPE", "z/OS"),
    ("DEFINE QLOCAL(Q) REPLACE NOREPLACE", 25, "NOREPLACE", "exclude"),
    ("DEFINE QLOCAL(Q) NOSHARE SHARE", 25, "SHARE", "exclude"),
    ("DEFINE QLOCAL(Q) SHARE(YES)", 17, "SHARE", "takes no value"),
    ("DEFINE QLOCAL(Q) REPLACE(YES)", 17, "REPLACE", "takes no value"),
    ("DEFINE QLOCAL(Q) FORCE", 17, "FORCE", "no such parameter"),
    ("DEFINE QLOCAL('a b')", 14, "'a b'", "character"),
    (f"DEFINE QLOCAL({'N' * 49})", 14, "N" * 49, "48"),
    (f"DEFINE CHANNEL({'N' * 21}) CHLTYPE(RCVR)", 15, "N" * 21, "20"),
    ("DEFINE QLOCAL(Q) BOQNAME('a b')", 25, "'a b'", "BOQNAME"),
    ("DEFINE QLOCAL(Q) LIKE('?')", 22, "'?'", "character"),
    (f"DEFINE QLOCAL(Q) DESCR('{'x' * 65}')", 23, f"'{'x' * 65}'", "64"),
    ("ALTER QMODEL(Q) DEFTYPE(PREDEFINED)", 24, "PREDEFINED", "DEFTYPE"),
    ("DELETE QLOCAL(Q) FORCE", 17, "FORCE", "no such parameter"),
    ("ALTER PROCESS(P) FORCE", 17, "FORCE", "no such parameter"),
    ("DELETE QALIAS(Q) PURGE", 17, "PURGE", "no such parameter"),
    ("CLEAR QLOCAL(Q) PURGE", 16, "PURGE", "no such parameter"),
    ("PING QMGR ALL", 10, "ALL", "no such parameter"),
]


@pytest.mark.parametrize(("text", "at", "word", "why"), WRONG, ids=[row[0][:40] for row in WRONG])
def test_a_wrong_parameter_is_a_syntax_error_with_its_position_and_changes_nothing(
    shared: penstock.QueueManager, text: str, at: int, word: str, why: str
) -> None:
    before = shared.display("QUEUE", "*")
    reply = refused(Interpreter(shared), text)
    assert reply.fault is not None and reply.code == "AMQ8405"
    assert (reply.fault.line, reply.fault.position, reply.fault.word) == (1, at + 1, word)
    assert why in reply.fault.rule and why in reply.lines[0]
    assert f"position {at + 1}" in reply.lines[0]
    assert shared.display("QUEUE", "*") == before


def test_an_error_in_line_7_is_reported_and_the_other_commands_are_executed(
    qm: penstock.QueueManager,
) -> None:
    text = """\
* seven lines
DEFINE QLOCAL(A) +
  MAXDEPTH(7)

DEFINE QLOCAL(B) +
  DESCR('good') +
  MAXDEPHT(8)
DEFINE QLOCAL(C) MAXDEPTH(9)
"""
    replies = run(qm, text)
    assert [reply.ok for reply in replies] == [True, False, True]
    assert [reply.line for reply in replies] == [2, 5, 8]
    bad = replies[1]
    assert bad.fault is not None
    assert bad.fault[:3] == (7, 3, "MAXDEPHT") and "MAXDEPTH".lower() in bad.fault.rule
    assert bad.lines[0].startswith("AMQ8405: Syntax error in line 7, position 3, at 'MAXDEPHT'")
    assert bad.lines[1] == "   DEFINE QLOCAL(B) DESCR('good') MAXDEPHT"
    assert [q["name"] for q in qm.display("QLOCAL", "*") if len(str(q["name"])) == 1] == ["A", "C"]


def test_a_line_that_is_too_long_is_a_syntax_error_of_its_command_alone(
    qm: penstock.QueueManager,
) -> None:
    long = "DEFINE QLOCAL(L) DESCR('" + "x" * 2048 + "')"
    replies = run(qm, f"DEFINE QLOCAL(A)\n{long}\nDEFINE QLOCAL(B)")
    assert [reply.ok for reply in replies] == [True, False, True]
    fault = replies[1].fault
    assert fault is not None and fault.line == 2 and "2048" in fault.rule


def test_run_counts_and_stops_at_end(mqsc: Interpreter) -> None:
    seen: list[Reply] = []
    text = ["DEFINE QLOCAL(A)", "FROB", "DEFINE QLOCAL(A); START CHANNEL(A)", "end", "CLEAR QL(A)"]
    mqsc.run(text, seen.append)
    assert [reply.command for reply in seen] == [
        "DEFINE QLOCAL(A)",
        "FROB",
        "DEFINE QLOCAL(A)",
        "START CHANNEL(A)",
        "end",
    ]
    assert [reply.line for reply in seen] == [1, 2, 3, 3, 4]
    assert [reply.code for reply in seen] == ["AMQ8006", "AMQ8405", "AMQ8150", "AMQ8147", ""]
    assert mqsc.summary() == [
        "5 MQSC commands read.",
        "1 command with a syntax error.",
        "2 valid commands could not be processed.",
    ]


def test_checking_alone_finds_syntax_errors_and_does_nothing(qm: penstock.QueueManager) -> None:
    checker = Interpreter(qm, check_only=True)
    seen: list[Reply] = []
    checker.run(["DEFINE QLOCAL(A)", "DEFINE QLOCAL(B) MAXDEPTH(X)"], seen.append)
    assert [reply.ok for reply in seen] == [True, False]
    assert qm.display("QLOCAL", "A") == []


HEADS = (
    "DEFINE QLOCAL(A)|ALTER ql('b')|DELETE QALIAS(C)|DISPLAY QUEUE(A*)|CLEAR QL(A)|ALTER QMGR|"
    "DIS QSTATUS(A)|DIS CONN|DEFINE NAMELIST(N)|DEFINE CHANNEL(C)|DEFINE|START CHANNEL(X)|"
)
PIECES = (
    "QLOCAL(A) ql('c*') NAMES(A,B) names('A''B' maxdepth() MAXDEPTH(5) MAXDEPTH(-1) DESCR('it''s') "
    "SHARE noshare REPLACE FORCE PURGE WHERE(MAXDEPTH,GT,5) WHERE(names,CT,'x') WHERE(X) LIKE(A) "
    "LIKE LIKE('a.b') TYPE(HANDLE) TYPE(QALIAS) ALL curdepth CHLTYPE(SDR) ( ) ' '' , ; x \u00e4 (("
)


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(HEADS.split("|")),
    st.lists(st.sampled_from(PIECES.split(" ")) | st.text("AB'(), *;\t", max_size=4), max_size=5),
)
def test_no_text_raises_and_every_fault_points_at_its_word(
    shared: penstock.QueueManager, head: str, pieces: list[str]
) -> None:
    checker = Interpreter(shared, check_only=True)
    for source in read_commands([" ".join([head, *pieces])]):
        reply = checker.execute(source)
        assert reply.ok or reply.code in ("AMQ8405", "AMQ8426"), reply
        if reply.fault is not None:
            at = reply.fault.position - source.pieces[0][2]
            there = source.text[at : at + len(reply.fault.word)]
            assert there.upper() == reply.fault.word.upper(), (source.text, reply.fault)


def test_a_reply_has_its_parts(qm: penstock.QueueManager) -> None:
    made, wrong, shown = run(qm, "DEF QL(A) MAXDEPTH(4)\nDEF QL(A) PUT(X)\nDIS QL(A) MAXDEPTH")
    assert (made.ok, made.code, made.lines) == (True, "AMQ8006", ["AMQ8006: Queue created."])
    assert wrong.fault == Fault(2, 15, "X", wrong.fault.rule if wrong.fault else "")
    assert (shown.ok, shown.code, shown.command) == (True, "AMQ8409", "DIS QL(A) MAXDEPTH")
    assert [(o["name"], o["maxdepth"]) for o in shown.objects] == [("A", 4)]
    assert shown.lines == [
        "AMQ8409: Display Queue details.",
        "   QUEUE(A)                                TYPE(QLOCAL)",
        "   MAXDEPTH(4)",
    ]
