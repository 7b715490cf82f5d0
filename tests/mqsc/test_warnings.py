"""What a script asks for that this release lacks: kept and answered with a warning, never mute."""

from __future__ import annotations

import pytest
from mqsc_fixture import done, refused

import penstock
from penstock.mqsc import Interpreter, Reply
from penstock.mqsc.words import LATER_NOUNS, LATER_VERBS, NOUNS, WITHOUT_EFFECT
from penstock.objects import TYPES, Attribute, ObjectType

LACKING = [
    (kind, row)
    for kind in TYPES.values()
    for row in kind.attributes.values()
    if row.unbuilt and not row.display_only
]


def notes(reply: Reply) -> list[str]:
    """The texts of the warnings."""
    assert reply.ok, reply
    head = "AMQ8426: Warning: "
    assert all(line.startswith(head) and line in reply.lines for line in reply.warnings)
    return [line.removeprefix(head).removesuffix(".") for line in reply.warnings]


def asking(row: Attribute) -> object:
    """A value that asks for the function."""
    if row.choices:
        return [row.choices[-1]]
    if row.length:
        return "X"
    values = [*row.words.values(), *((row.high, row.low) if row.high >= row.low else ())]
    return row.show(next(n for n in values if row.asks_for_unbuilt(n)))


@pytest.mark.parametrize(
    ("kind", "row"), LACKING, ids=lambda one: getattr(one, "name", None) or one.keyword
)
def test_no_default_asks_for_what_this_release_lacks(kind: ObjectType, row: Attribute) -> None:
    for platform in ("unix", "zos"):
        assert not row.asks_for_unbuilt(row.default_on(platform))
    assert row.asks_for_unbuilt(row.parse(asking(row)))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("ACCTQ(ON)", "ACCTQ(ON) is kept only: this release has no accounting"),
        ("MONQ(LOW)", "MONQ(LOW) is kept only: this release has no online monitoring"),
        ("STATQ(ON)", "STATQ(ON) is kept only: this release has no statistics messages"),
        ("SCOPE(CELL)", "SCOPE(CELL) is kept only: this release has no cell directories"),
        ("CUSTOM('A(1)')", "CUSTOM(A(1)) is kept only: this release has no custom attributes"),
        ("CLCHNAME('TO.*')", "CLCHNAME(TO.*) is kept only: this release has no clusters"),
        ("IMGRCOVQ(YES)", "IMGRCOVQ(YES) is kept only: this release has no media images"),
    ],
)
def test_a_value_that_asks_for_an_unbuilt_function_is_kept_with_a_warning(
    shared: penstock.QueueManager, text: str, what: str
) -> None:
    mqsc = Interpreter(shared)
    for command in (f"DEFINE QLOCAL(ASKS) {text}", f"ALTER QLOCAL(ASKS) {text}"):
        (note,) = notes(mqsc.execute(command))
        assert note.startswith(what)
    assert mqsc.summary()[-1] == "2 commands with a warning."
    shown = done(mqsc, "DISPLAY QLOCAL(ASKS) ALL")
    assert text.replace("'", "") in shown
    shared.delete("QLOCAL", "ASKS")


def test_values_that_ask_for_nothing_give_no_warning(mqsc: Interpreter) -> None:
    text = (
        "DEFINE QLOCAL(Q) NOTRIGGER STREAMQ(' ') QDPMAXEV(ENABLED) QDPHIEV(DISABLED) ACCTQ(OFF) "
        "MONQ(QMGR) STATQ(QMGR) SCOPE(QMGR) CUSTOM(' ') IMGRCOVQ(NO) TRIGTYPE(EVERY) INITQ(I)"
    )
    assert notes(mqsc.execute(text)) == []
    assert len(mqsc.summary()) == 3


def test_what_like_copies_is_warned_of_too(mqsc: Interpreter) -> None:
    done(mqsc, "DEFINE QLOCAL(A) SCOPE(CELL) STREAMQ(S)")
    copied = notes(mqsc.execute("DEFINE QLOCAL(B) LIKE(A) STREAMQ(' ')"))
    assert copied == ["SCOPE(CELL) is kept only: this release has no cell directories"]


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ("CHANNEL(X) CHLTYPE(RCVR)", "running channels"),
        ("LISTENER(X) TRPTYPE(TCP) CONTROL(QMGR)", "listeners"),
        ("SERVICE(X) STARTCMD('/bin/true')", "services"),
        ("AUTHINFO(X) AUTHTYPE(IDPWOS)", "authentication"),
        ("COMMINFO(X) TYPE(MULTICAST)", "multicast"),
        ("TOPIC(X) TYPE(LOCAL) TOPICSTR('a/b')", "publish/subscribe"),
        ("SUB('x y') TOPICSTR('a/b') DEST(Q)", "publish/subscribe"),
    ],
)
def test_a_type_that_is_only_kept_says_so_at_define_and_alter(
    shared: penstock.QueueManager, text: str, lacking: str
) -> None:
    mqsc = Interpreter(shared)
    subject = text.partition(")")[0] + ")"
    for command in (f"DEFINE {text}", f"DEFINE {text} REPLACE", f"ALTER {subject}"):
        (note,) = notes(mqsc.execute(command))
        assert note.endswith(f"is kept only: this release has no {lacking}")
    assert notes(mqsc.execute(f"DELETE {subject}")) == []


def test_a_secret_is_not_kept_and_the_rest_of_its_command_is_done(
    mqsc: Interpreter, qm: penstock.QueueManager
) -> None:
    text = "DEFINE CHANNEL(C) CHLTYPE(CLNTCONN) CONNAME('h') USERID(u) PASSWORD('hidden')"
    assert "PASSWORD is not kept: secrets are not stored" in notes(mqsc.execute(text))
    assert notes(mqsc.execute("ALTER QMGR INITKEY('hidden') KEYRPWD(' ')")) == [
        "INITKEY is not kept: secrets are not stored"
    ]
    (shown,) = qm.display("CHANNEL", "C")
    assert (shown["userid"], shown["password"]) == ("U", "")
    with pytest.raises(penstock.InvalidValue, match="not stored") as caught:
        qm.alter("CHANNEL", "C", chltype="CLNTCONN", password="hidden")
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(("verb", "noun"), list(WITHOUT_EFFECT))
def test_a_command_that_would_change_nothing_is_answered_with_a_warning(
    shared: penstock.QueueManager, verb: str, noun: str
) -> None:
    kind = WITHOUT_EFFECT[verb, noun]
    assert verb in LATER_VERBS and (noun in NOUNS or noun in LATER_NOUNS)
    mqsc = Interpreter(shared)
    default = {"CHANNEL": "SYSTEM.DEF.SENDER"}.get(kind, TYPES[kind].default_object if kind else "")
    text = f"{verb} {noun}" + (f"({default})" if kind else "")
    (note,) = notes(mqsc.execute(text))
    assert note.startswith(f"{verb} {noun}: ") and note.endswith("the command has no effect")
    assert (mqsc.failed, mqsc.syntax_errors, mqsc.warned) == (0, 0, 1)


@pytest.mark.parametrize("noun", ["CHANNEL", "LISTENER", "SERVICE"])
def test_starting_what_is_not_defined_fails(mqsc: Interpreter, noun: str) -> None:
    reply = refused(mqsc, f"START {noun}(NONE)")
    assert (reply.code, reply.reason) == ("AMQ8147", 2085)


def test_a_command_whose_effect_would_be_missed_still_fails(mqsc: Interpreter) -> None:
    for text in (
        "PING CHANNEL(SYSTEM.DEF.SENDER)",
        "RESOLVE CHANNEL(C) ACTION(COMMIT)",
        "MOVE QLOCAL(A)",
        "STOP QMGR",
        "DISPLAY CHSTATUS(*)",
        "SET POLICY(Q) SIGNALG(SHA256)",
        "DISPLAY POLICY(*)",
        "DISPLAY ENTAUTH PRINCIPAL('me') OBJTYPE(QMGR)",
        "DISPLAY TCLUSTER(*)",
        "DISPLAY APSTATUS(*)",
        "CLEAR TOPICSTR('a/b') CLRTYPE(RETAINED)",
        "DEFINE PSID(00) BUFFPOOL(0)",
        "ALTER SMDS(*) CFSTRUCT(C)",
    ):
        assert refused(mqsc, text).code == "AMQ8426", text


def test_delete_ignores_a_missing_object_on_request(mqsc: Interpreter) -> None:
    assert refused(mqsc, "DELETE QLOCAL(NONE)").code == "AMQ8147"
    assert refused(mqsc, "DELETE QLOCAL(NONE) IGNSTATE(NO)").code == "AMQ8147"
    done(mqsc, "DELETE QLOCAL(NONE) IGNSTATE(YES)")
    assert refused(mqsc, "DELETE QLOCAL(NONE) IGNSTATE(MAYBE)").syntax


def test_delete_says_that_authority_records_stay(mqsc: Interpreter) -> None:
    done(mqsc, "DEFINE QLOCAL(A)")
    done(mqsc, "DEFINE QLOCAL(B)")
    assert notes(mqsc.execute("DELETE QLOCAL(A) AUTHREC(NO)")) == []
    assert "authority records stay" in notes(mqsc.execute("DELETE QLOCAL(B) AUTHREC(YES)"))[0]


def test_parameters_with_one_possible_value_are_accepted(
    mqsc: Interpreter, zos: Interpreter
) -> None:
    done(mqsc, "DEFINE TOPIC(T) TYPE(LOCAL) TOPICSTR('a')")
    assert "TYPE is LOCAL" in refused(mqsc, "ALTER TOPIC(T) TYPE(CLUSTER)").lines[0]
    done(zos, "DEFINE PROCESS(P) QSGDISP(QMGR) CMDSCOPE(' ')")
    assert refused(zos, "ALTER PROCESS(P) QSGDISP(GROUP)").syntax
    assert refused(mqsc, "ALTER PROCESS(P) CMDSCOPE(' ')").syntax
