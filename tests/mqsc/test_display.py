"""DISPLAY of definitions: names, choice of attributes, WHERE, and the two columns."""

from __future__ import annotations

import pytest
from mqsc_fixture import done, names, refused

import penstock
from penstock.mqsc import Interpreter
from penstock.mqsc.layout import Layout, lay_out
from penstock.objects import Definition


@pytest.fixture(scope="module")
def queues(shared: penstock.QueueManager) -> Interpreter:
    """With A.ONE (3 deep at most), A.TWO (7), B.ONE and one of each other type."""
    mqsc = Interpreter(shared)
    for text in (
        "DEFINE QLOCAL(A.ONE) MAXDEPTH(3) NOSHARE DESCR('first one') DEFPSIST(YES)",
        "DEFINE QLOCAL(A.TWO) MAXDEPTH(7) DESCR('second one') CLUSTER(C1)",
        "DEFINE QLOCAL(B.ONE) MAXDEPTH(9) CAPEXPRY(50)",
        "DEFINE QALIAS(A.ALIAS) TARGET(A.ONE)",
        "DEFINE QREMOTE(A.REMOTE) RNAME(X) RQMNAME(QM2) DEFPSIST(YES)",
        "DEFINE QMODEL(A.MODEL) MAXDEPTH(3)",
        "DEFINE QLOCAL('a.lower')",
        "DEFINE NAMELIST(N1) NAMES(A, B)",
        "DEFINE NAMELIST(N2) NAMES(B, C)",
        "DEFINE CHANNEL(TO.QM2) CHLTYPE(SDR) CONNAME('h') XMITQ(X)",
        "DEFINE CHANNEL(FROM.QM2) CHLTYPE(RCVR)",
    ):
        done(mqsc, text)
    return mqsc


def test_a_full_name_without_attributes_shows_all_of_them(queues: Interpreter) -> None:
    text = done(queues, "DISPLAY QUEUE(A.ONE)")
    for part in ("DEFPSIST(YES)", "MSGDLVSQ(PRIORITY)", "BOQNAME( )", "CRDATE(20", "IPPROCS(0)"):
        assert part in text
    assert "NOSHARE" in text and "INDXTYPE" not in text
    assert done(queues, "DIS QL(A.ONE) ALL") == text


def test_a_generic_name_without_attributes_shows_names_and_types(queues: Interpreter) -> None:
    assert done(queues, "DISPLAY QLOCAL(A*)").splitlines() == [
        "AMQ8409: Display Queue details.",
        "   QUEUE(A.ONE)                            TYPE(QLOCAL)",
        "AMQ8409: Display Queue details.",
        "   QUEUE(A.TWO)                            TYPE(QLOCAL)",
    ]


def test_generic_names_are_prefixes_in_their_own_case(queues: Interpreter) -> None:
    assert names(queues, "DISPLAY QUEUE(A*)") == [
        "A.ALIAS", "A.MODEL", "A.ONE", "A.REMOTE", "A.TWO",
    ]  # fmt: skip
    assert names(queues, "DISPLAY QUEUE('a*')") == ["a.lower"]
    assert "A.ONE" in names(queues, "DISPLAY QLOCAL(*)")
    assert names(queues, "DISPLAY QLOCAL(A.O)") == []


def test_nothing_found_is_not_found(queues: Interpreter) -> None:
    reply = refused(queues, "DISPLAY QLOCAL(C*)")
    assert (reply.lines, reply.reason) == (["AMQ8147: Queue C* not found."], 2085)
    assert refused(queues, "DISPLAY QALIAS(A.ONE)").code == "AMQ8147"


def test_a_type_chooses_among_the_queues(queues: Interpreter) -> None:
    assert names(queues, "DIS Q(A*) TYPE(QALIAS)") == ["A.ALIAS"]
    assert names(queues, "DIS QREMOTE(A*)") == ["A.REMOTE"]
    assert names(queues, "DIS Q(A.MODEL) QTYPE(QMODEL)") == ["A.MODEL"]
    assert refused(queues, "DIS Q(*) TYPE(PROCESS)").syntax
    assert names(queues, "DIS CHL(T*) TYPE(SDR)") == ["TO.QM2"]
    assert names(queues, "DIS CHL(T*) CHLTYPE(RCVR)") == []


def test_an_attribute_is_shown_where_the_object_has_it(queues: Interpreter) -> None:
    assert done(queues, "DISPLAY QUEUE(A*) MAXDEPTH TARGQ").splitlines() == [
        "AMQ8409: Display Queue details.",
        "   QUEUE(A.ALIAS)                          TYPE(QALIAS)",
        "   TARGET(A.ONE)",
        "AMQ8409: Display Queue details.",
        "   QUEUE(A.MODEL)                          TYPE(QMODEL)",
        "   MAXDEPTH(3)",
        "AMQ8409: Display Queue details.",
        "   QUEUE(A.ONE)                            TYPE(QLOCAL)",
        "   MAXDEPTH(3)",
        "AMQ8409: Display Queue details.",
        "   QUEUE(A.REMOTE)                         TYPE(QREMOTE)",
        "AMQ8409: Display Queue details.",
        "   QUEUE(A.TWO)                            TYPE(QLOCAL)",
        "   MAXDEPTH(7)",
    ]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("MAXDEPTH LT 7", "A.MODEL A.ONE"),
        ("MAXDEPTH LE 7", "A.MODEL A.ONE A.TWO"),
        ("MAXDEPTH EQ 7", "A.TWO"),
        ("MAXDEPTH NE 7", "A.MODEL A.ONE"),
        ("MAXDEPTH GE 7", "A.TWO"),
        ("MAXDEPTH GT 7", ""),
        ("DEFPSIST EQ YES", "A.ONE A.REMOTE"),
        ("DEFPSIST NE YES", "A.ALIAS A.MODEL A.TWO"),
        ("SHARE EQ NO", "A.MODEL A.ONE"),
        ("SHARE EQ NOSHARE", "A.MODEL A.ONE"),
        ("DESCR EQ 'first one'", "A.ONE"),
        ("DESCR LK 'sec*'", "A.TWO"),
        ("DESCR NL 'sec*'", "A.ALIAS A.MODEL A.ONE A.REMOTE"),
        ("DESCR EQ ' '", "A.ALIAS A.MODEL A.REMOTE"),
        ("DESCR GE 'g'", "A.TWO"),
        ("TARGET EQ A.ONE", "A.ALIAS"),
        ("targq eq a.one", "A.ALIAS"),
        ("CLUSTER NE ' '", "A.TWO"),
    ],
)
def test_where_compares_by_the_kind_of_the_attribute(
    queues: Interpreter, condition: str, found: str
) -> None:
    assert names(queues, f"DISPLAY QUEUE(A*) WHERE({condition})") == found.split()


def test_where_shows_the_attribute_that_it_compares(queues: Interpreter) -> None:
    assert done(queues, "DIS QL(*) WHERE(MAXDEPTH LT 5) DESCR").splitlines()[1:] == [
        "   QUEUE(A.ONE)                            TYPE(QLOCAL)",
        "   DESCR(first one)                        MAXDEPTH(3)",
    ]


def test_where_knows_words_that_stand_for_numbers(queues: Interpreter) -> None:
    assert names(queues, "DIS QL(*) WHERE(CAPEXPRY LT 100)") == ["B.ONE"]
    assert names(queues, "DIS QL(B*) WHERE(CAPEXPRY EQ NOLIMIT)") == []
    assert "A.ONE" in names(queues, "DIS QL(*) WHERE(CAPEXPRY NE 50)")


def test_where_compares_the_members_of_lists(queues: Interpreter) -> None:
    assert names(queues, "DIS NL(N*) WHERE(NAMES CT A)") == ["N1"]
    assert names(queues, "DIS NL(N*) WHERE(NAMES EX A)") == ["N2"]
    assert names(queues, "DIS NL(N*) WHERE(NAMES CT B)") == ["N1", "N2"]
    assert names(queues, "DIS NL(N*) WHERE(NAMCOUNT EQ 2)") == ["N1", "N2"]


@pytest.mark.parametrize(
    ("text", "word", "why"),
    [
        ("DISPLAY QLOCAL(A) COLOUR", "COLOUR", "cannot show"),
        ("DISPLAY QLOCAL(A) MAXDEPT", "MAXDEPT", "do you mean MAXDEPTH?"),
        ("DISPLAY QLOCAL(A) MAXDEPTH(5)", "MAXDEPTH", "WHERE(MAXDEPTH EQ value)"),
        ("DISPLAY QLOCAL(A) TARGET", "TARGET", "cannot show"),
        ("DISPLAY QLOCAL(A) ALL(YES)", "ALL", "takes no value"),
        ("DISPLAY QLOCAL(A) INDXTYPE", "INDXTYPE", "cannot show"),
        ("DISPLAY QLOCAL('a?*')", "'a?*'", "character"),
        ("DISPLAY QLOCAL(A) WHERE", "WHERE", "needs an attribute"),
        ("DISPLAY QLOCAL(A) WHERE(MAXDEPTH GT)", "WHERE", "needs an attribute"),
        ("DISPLAY QLOCAL(A) WHERE(COLOUR EQ RED)", "COLOUR", "cannot compare"),
        ("DISPLAY QLOCAL(A) WHERE(MAXDEPTH IS 5)", "IS", "LT, GT"),
        ("DISPLAY QLOCAL(A) WHERE(MAXDEPTH LK 5)", "LK", "compared with"),
        ("DISPLAY QLOCAL(A) WHERE(DEFPSIST GT NO)", "GT", "EQ, NE"),
        ("DISPLAY QLOCAL(A) WHERE(DEFPSIST EQ MAYBE)", "MAYBE", "YES"),
        ("DISPLAY QLOCAL(A) WHERE(MAXDEPTH EQ MANY)", "MANY", "number"),
        ("DISPLAY QLOCAL(A) WHERE(CURDEPTH EQ MANY)", "MANY", "number"),
        ("DISPLAY QLOCAL(A) WHERE(DESCR LK '*a')", "'*a'", "last character"),
        ("DISPLAY NAMELIST(A) WHERE(NAMES EQ B)", "EQ", "CT, EX"),
    ],
)
def test_a_wrong_choice_is_a_syntax_error(
    queues: Interpreter, text: str, word: str, why: str
) -> None:
    reply = refused(queues, text)
    assert reply.fault is not None
    assert reply.fault.word == word and why in reply.fault.rule
    assert reply.fault.position == text.rindex(word) + 1


def test_each_kind_of_object_has_its_message_and_its_head(queues: Interpreter) -> None:
    expected = {
        "NAMELIST(N1) NAMES": ["AMQ8550", "NAMELIST(N1)", "NAMES(A,B)"],
        "CHANNEL(TO.QM2) CONNAME": ["AMQ8414", "CHANNEL(TO.QM2)", "CHLTYPE(SDR)", "CONNAME(h)"],
        "QMGR MAXPRTY": ["AMQ8408", "QMNAME(QM1)", "MAXPRTY(9)"],
        "PROCESS(SYSTEM.DEFAULT.PROCESS) APPLICID": ["AMQ8407", "PROCESS(", "APPLICID( )"],
        "TOPIC(SYSTEM.DEFAULT.TOPIC) PUB": ["AMQ8633", "TOPIC(", "PUB("],
        "QALIAS(A.ALIAS) TARGET": ["AMQ8409", "QUEUE(A.ALIAS)", "TYPE(QALIAS)", "TARGET(A.ONE)"],
    }
    for text, parts in expected.items():
        shown = done(queues, f"DISPLAY {text}")
        assert shown.startswith(parts[0])
        assert all(part in shown for part in parts), (text, shown)


def test_pairs_are_laid_out_in_two_columns_and_long_ones_alone() -> None:
    long = "DESCR(" + "x" * 60 + ")"
    assert lay_out(["A(1)", "B(2)", long, "C(3)", "D(4)"]) == [
        "   " + "A(1)".ljust(40) + "B(2)",
        "   " + long,
        "   " + "C(3)".ljust(40) + "D(4)",
    ]


def test_a_long_name_stands_alone_and_attributes_are_sorted_as_they_are_written() -> None:
    layout = Layout("T", (("QUEUE", "name"), ("TYPE", "type")), ("MAXDEPTH", "PUT", "SHARE"))
    rows = [
        Definition(name="N" * 48, type="QLOCAL", share=False, put="ENABLED", maxdepth=1),
        Definition(name="SHORT", type="QLOCAL", share=False, put="ENABLED", maxdepth=1),
        Definition(name="ALIAS", type="QALIAS", put="DISABLED"),
    ]
    assert layout.lines(rows) == [
        "T",
        f"   QUEUE({'N' * 48})",
        "   " + "TYPE(QLOCAL)".ljust(40) + "MAXDEPTH(1)",
        "   " + "NOSHARE".ljust(40) + "PUT(ENABLED)",
        "T",
        "   " + "QUEUE(SHORT)".ljust(40) + "TYPE(QLOCAL)",
        "   " + "MAXDEPTH(1)".ljust(40) + "NOSHARE",
        "   PUT(ENABLED)",
        "T",
        "   " + "QUEUE(ALIAS)".ljust(40) + "TYPE(QALIAS)",
        "   PUT(DISABLED)",
    ]
