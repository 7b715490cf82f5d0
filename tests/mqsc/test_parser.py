"""The text of one command to verb, noun, name and parameters."""

from __future__ import annotations

import pytest

from penstock.mqsc import NotYet, SyntaxFault, parse
from penstock.mqsc.parser import Command
from penstock.mqsc.words import NOUNS, VERBS


def values(command: Command) -> dict[str, list[str] | None]:
    return {
        keyword: None if given.values is None else [word.value for word in given.values]
        for keyword, given in command.parameters.items()
    }


def name(command: Command) -> str:
    assert command.name is not None
    return command.name.value


def test_unquoted_names_and_values_are_folded_and_quoted_ones_kept() -> None:
    command = parse("define qlocal(a.b) descr('Mixed Case') put(disabled) boqname('b')")
    assert (command.verb, command.noun, name(command)) == ("DEFINE", "QLOCAL", "A.B")
    assert values(command) == {
        "DESCR": ["Mixed Case"],
        "PUT": ["DISABLED"],
        "BOQNAME": ["b"],
    }
    assert name(parse("dis ql('lower.case')")) == "lower.case"
    assert name(parse("dis ql('lower*')")) == "lower*"


def test_a_quote_inside_quotes_is_doubled_and_blanks_in_front_count() -> None:
    command = parse("DEFINE QLOCAL(A) DESCR('  it''s ''quoted''  ')")
    assert values(command) == {"DESCR": ["  it's 'quoted'"]}


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("DEF QL(A)", "DEFINE QLOCAL(A)"),
        ("DEF QA(A)", "DEFINE QALIAS(A)"),
        ("DEF QR(A)", "DEFINE QREMOTE(A)"),
        ("DEF QM(A)", "DEFINE QMODEL(A)"),
        ("DEF PRO(A)", "DEFINE PROCESS(A)"),
        ("DEF NL(A)", "DEFINE NAMELIST(A)"),
        ("DEF CHL(A)", "DEFINE CHANNEL(A)"),
        ("ALT QL(A)", "ALTER QLOCAL(A)"),
        ("DIS Q(A)", "DISPLAY QUEUE(A)"),
        ("DIS QS(A)", "DISPLAY QSTATUS(A)"),
        ("DIS QC(A)", "DISPLAY QCLUSTER(A)"),
    ],
)
def test_synonyms_give_the_full_words(short: str, full: str) -> None:
    one, other = parse(short), parse(full)
    assert (one.verb, one.noun, name(one)) == (other.verb, other.noun, name(other))


def test_parameters_come_in_any_order_with_or_without_values() -> None:
    command = parse("DEFINE QLOCAL(A) MAXDEPTH(9), REPLACE , DESCR(' ') TRIGDATA()")
    assert values(command) == {
        "MAXDEPTH": ["9"],
        "REPLACE": None,
        "DESCR": [""],
        "TRIGDATA": [],
    }


def test_blanks_and_commas_separate_as_many_as_one_likes() -> None:
    for text in (
        "DEFINE NAMELIST(N) NAMES(A,B,C)",
        "DEFINE,NAMELIST ( N ) , NAMES ( A B  ,, C ) , ",
        " DEFINE\tNAMELIST(N),NAMES(,A,B,C,)",
    ):
        command = parse(text)
        assert (name(command), values(command)) == ("N", {"NAMES": ["A", "B", "C"]})


@pytest.mark.parametrize(
    ("text", "at", "word", "why"),
    [
        ("", 0, "", "no command"),
        (" , ,", 0, "", "no command"),
        ("FROB QLOCAL(A)", 0, "FROB", "not a verb"),
        ("DEFIN QLOCAL(A)", 0, "DEFIN", "do you mean DEFINE?"),
        ("DEFINE", 6, "", "needs a kind of object"),
        ("DEFINE(QLOCAL)", 0, "DEFINE", "needs a kind of object first"),
        ("DEFINE QLOKAL(A)", 7, "QLOKAL", "do you mean QLOCAL?"),
        ("DEFINE QUEUE(A)", 7, "QUEUE", "say QLOCAL"),
        ("CLEAR QALIAS(A)", 6, "QALIAS", "CLEAR QALIAS is not a command"),
        ("DELETE QMGR", 7, "QMGR", "is not a command"),
        ("DEFINE QLOCAL", 7, "QLOCAL", "needs a name"),
        ("DEFINE QLOCAL()", 7, "QLOCAL", "needs one name"),
        ("DEFINE QLOCAL(' ')", 7, "QLOCAL", "needs one name"),
        ("DEFINE QLOCAL(A B)", 7, "QLOCAL", "needs one name"),
        ("ALTER QMGR(A) DEADQ(X)", 6, "QMGR", "takes no name"),
        ("DEFINE QLOCAL(A", 13, "(", "has no end"),
        ("DEFINE QLOCAL(A) DESCR('x'", 22, "(", "has no end"),
        ("DEFINE QLOCAL((A)", 14, "(", "brackets inside"),
        ("DEFINE QLOCAL(A))", 16, ")", "without"),
        ("DEFINE QLOCAL(A) (B)", 17, "(", "without a keyword"),
        ("DEFINE QLOCAL(A)MAXDEPTH(5)", 16, "MAXDEPTH", "a blank is missing"),
        ("DEFINE QLOCAL(A) PUT(ENABLED) put(ENABLED)", 30, "put", "given twice"),
        ("DEFINE QLOCAL(A) 'quoted'", 17, "'quoted'", "outside brackets"),
        ("DEFINE QLOCAL(A) DESCR('a'b)", 26, "b", "is missing between"),
        ("DEFINE QLOCAL(A) DESCR('it's)", 27, "s", "is missing between"),
        ("DEFINE QLOCAL(A) DESCR('abc)", 23, "'abc)", "quote has no end"),
        ("DEFINE QLOCAL(A*)", 14, "A*", "full name"),
        ("DELETE QLOCAL(*)", 14, "*", "full name"),
        ("DISPLAY QLOCAL(*A)", 15, "*A", "last character"),
        ("END NOW", 4, "NOW", "stands alone"),
    ],
)
def test_an_invalid_command_is_refused_with_position_word_and_rule(
    text: str, at: int, word: str, why: str
) -> None:
    with pytest.raises(SyntaxFault) as caught:
        parse(text)
    assert (caught.value.at, caught.value.word) == (at, word)
    assert why in caught.value.rule


@pytest.mark.parametrize(
    "text",
    [
        "START CHANNEL(TO.QM2)",
        "STOP LISTENER(L)",
        "DISPLAY CHSTATUS(*)",
        "DIS CLUSQMGR(*)",
        "DEFINE STGCLASS(S)",
        "RESOLVE INDOUBT(X)",
        "PING CHANNEL(C)",
        "REFRESH QMGR",
        "SUSPEND QMGR",
        "RECOVER CFSTRUCT(S)",
        "MOVE QLOCAL(A)",
        "DELETE LOG(S)",
    ],
)
def test_a_command_that_is_not_implemented_is_refused_as_such(text: str) -> None:
    with pytest.raises(NotYet, match="in this release"):
        parse(text)


def test_every_verb_and_noun_of_the_tables_parses() -> None:
    pairs = [(verb, noun) for noun, row in NOUNS.items() for verb in row.verbs]
    assert len(pairs) > 40
    for verb, noun in pairs:
        text = f"{verb} {noun}" + ("(A)" if NOUNS[noun].named else "")
        assert (parse(text).verb, parse(text).noun) == (verb, noun)
    assert VERBS.keys() >= {verb for verb, _ in pairs}
