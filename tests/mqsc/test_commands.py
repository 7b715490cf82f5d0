"""Commands on a queue manager, and what they reply."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.mqsc import Interpreter, Reply
from penstock.mqsc.display import lay_out


@pytest.fixture
def qm(tmp_path: Path) -> Iterator[penstock.QueueManager]:
    with penstock.connect("QM1", home=tmp_path, create=True) as manager:
        yield manager


@pytest.fixture
def mqsc(qm: penstock.QueueManager) -> Interpreter:
    return Interpreter(qm)


def done(mqsc: Interpreter, text: str) -> str:
    reply = mqsc.execute(text)
    assert reply.ok, reply
    return "\n".join(reply.lines)


def refused(mqsc: Interpreter, text: str) -> Reply:
    reply = mqsc.execute(text)
    assert not reply.ok
    return reply


def test_define_folds_names_and_sets_what_is_given(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    text = "define ql(orders) defpsist(yes) maxdepth(7) descr('Mixed Case') noshare"
    assert done(mqsc, text).startswith("AMQ8006")
    (shown,) = qm.display("QLOCAL", "ORDERS")
    assert (shown["maxdepth"], shown["defpsist"], shown["share"]) == (7, True, False)
    assert (shown["descr"], shown["msgdlvsq"]) == ("Mixed Case", "PRIORITY")


def test_define_of_an_existing_queue_needs_replace_which_resets_and_keeps_messages(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    done(mqsc, "DEFINE QLOCAL(Q) MAXDEPTH(7) DEFPSIST(YES)")
    with qm.open("Q") as queue:
        queue.put(b"stays")
    assert refused(mqsc, "DEFINE QLOCAL(Q)").lines[0].startswith("AMQ8150")
    done(mqsc, "DEFINE QLOCAL(Q) REPLACE DEFPRTY(3)")
    (shown,) = qm.display("QLOCAL", "Q")
    assert (shown["maxdepth"], shown["defpsist"], shown["defprty"]) == (5000, False, 3)
    assert shown["curdepth"] == 1


def test_alter_changes_only_what_is_given(mqsc: Interpreter, qm: penstock.QueueManager) -> None:
    done(mqsc, "DEFINE QLOCAL(Q) MAXDEPTH(7) DEFPRTY(2)")
    assert done(mqsc, "ALTER QLOCAL(Q) PUT(DISABLED)").startswith("AMQ8008")
    (shown,) = qm.display("QLOCAL", "Q")
    assert (shown["put"], shown["maxdepth"], shown["defprty"]) == ("DISABLED", 7, 2)
    assert refused(mqsc, "ALTER QLOCAL(NONE) PUT(ENABLED)").lines[0].startswith("AMQ8147")


def test_delete_needs_purge_for_messages(mqsc: Interpreter, qm: penstock.QueueManager) -> None:
    done(mqsc, "DEFINE QLOCAL(Q)")
    with qm.open("Q") as queue:
        queue.put(b"x")
        assert refused(mqsc, "DELETE QLOCAL(Q)").lines[0].startswith("AMQ8143: Queue Q in use")
    assert refused(mqsc, "DELETE QLOCAL(Q)").lines[0].startswith("AMQ8143: Queue Q not empty")
    assert done(mqsc, "DELETE QLOCAL(Q) PURGE").startswith("AMQ8007")
    assert qm.display("QLOCAL", "Q") == []


def test_clear_removes_messages_unless_the_queue_is_open(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    done(mqsc, "DEFINE QLOCAL(Q)")
    with qm.open("Q") as queue:
        queue.put(b"x")
        assert refused(mqsc, "CLEAR QLOCAL(Q)").lines[0].startswith("AMQ8143")
    assert done(mqsc, "CLEAR QLOCAL(Q)").startswith("AMQ8022")
    assert qm.display("QLOCAL", "Q")[0]["curdepth"] == 0


def test_display_takes_generic_names_and_chosen_attributes(mqsc: Interpreter) -> None:
    for name in ("A.ONE", "A.TWO", "B.ONE"):
        done(mqsc, f"DEFINE QLOCAL({name}) MAXDEPTH(7) NOSHARE")
    text = done(mqsc, "DISPLAY QLOCAL(A*) MAXDEPTH SHARE CURDEPTH")
    assert text.count("AMQ8409") == 2
    assert "QUEUE(A.ONE)" in text and "QUEUE(A.TWO)" in text and "B.ONE" not in text
    assert "MAXDEPTH(7)" in text and "NOSHARE" in text and "CURDEPTH(0)" in text
    assert "DEFPRTY" not in text
    everything = done(mqsc, "DISPLAY QUEUE(B.ONE) ALL")
    for part in ("DEFPSIST(NO)", "MSGDLVSQ(PRIORITY)", "DESCR( )", "CRDATE(20", "IPPROCS(0)"):
        assert part in everything
    assert done(mqsc, "DISPLAY QL(B.ONE)") == everything
    assert refused(mqsc, "DISPLAY QLOCAL(C*)").lines == ["AMQ8147: Queue C* not found."]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("DEFINE QLOCAL(Q) MAXDEPTH(-1)", "MAXDEPTH"),
        ("DEFINE QLOCAL(Q) MAXDEPTH(1000000000)", "999999999"),
        ("DEFINE QLOCAL(Q) DEFPSIST(MAYBE)", "YES"),
        ("DEFINE QLOCAL(Q) MAXDEPTH", "needs one value"),
        ("DEFINE QLOCAL(Q) CURDEPTH(1)", "CURDEPTH"),
        ("DEFINE QLOCAL(Q) COLOUR(RED)", "COLOUR"),
        ("DEFINE QLOCAL(Q) REPLACE NOREPLACE", "exclude"),
        ("DEFINE QLOCAL(Q) REPLACE(YES)", "takes no value"),
        ("DEFINE QLOCAL(A*)", "full name"),
        ("DEFINE QUEUE(Q)", "QLOCAL"),
        ("DELETE QLOCAL(Q) FORCE", "FORCE"),
        ("DISPLAY QLOCAL(*A)", "last character"),
        ("DISPLAY QLOCAL(A) COLOUR", "COLOUR"),
    ],
)
def test_a_wrong_parameter_is_a_syntax_error_and_changes_nothing(
    mqsc: Interpreter, qm: penstock.QueueManager, text: str, why: str
) -> None:
    reply = refused(mqsc, text)
    assert reply.syntax and reply.lines[0].startswith("AMQ8405") and why in reply.lines[0]
    assert all("SYSTEM." in str(row["name"]) for row in qm.display("QLOCAL", "*"))


def test_run_counts_and_stops_at_end(mqsc: Interpreter) -> None:
    seen: list[str] = []
    text = ["DEFINE QLOCAL(A)", "FROB", "DEFINE QLOCAL(A)", "END", "DEFINE QLOCAL(B)"]
    mqsc.run(text, lambda command, reply: seen.append(command))
    assert seen == text[:4]
    assert mqsc.summary() == [
        "4 MQSC commands read.",
        "1 command with a syntax error.",
        "1 valid command could not be processed.",
    ]


def test_pairs_are_laid_out_in_two_columns_and_long_ones_alone() -> None:
    long = "DESCR(" + "x" * 60 + ")"
    assert lay_out(["A(1)", "B(2)", long, "C(3)", "D(4)"]) == [
        "   " + "A(1)".ljust(40) + "B(2)",
        "   " + long,
        "   " + "C(3)".ljust(40) + "D(4)",
    ]
