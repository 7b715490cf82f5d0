"""Tokens to commands."""

from __future__ import annotations

import pytest

from penstock.mqsc.parser import Command, SyntaxFault, parse


def test_unquoted_names_and_values_are_folded_and_quoted_ones_kept() -> None:
    assert parse("define qlocal(a.b) descr('Mixed Case') put(disabled)") == Command(
        "DEFINE",
        "QLOCAL",
        "A.B",
        {"DESCR": ["Mixed Case"], "PUT": ["DISABLED"]},
    )
    assert parse("dis ql('lower.case')").name == "lower.case"


def test_synonyms_give_the_full_words() -> None:
    assert parse("DEF QL(A)") == parse("DEFINE QLOCAL(A)")
    assert parse("ALT QL(A)").verb == "ALTER"
    assert parse("DIS Q(A*)") == Command("DISPLAY", "QUEUE", "A*")


def test_parameters_come_in_any_order_with_or_without_values() -> None:
    command = parse("DEFINE QLOCAL(A) MAXDEPTH(9), REPLACE , DESCR(' ')")
    assert command.parameters == {"MAXDEPTH": ["9"], "REPLACE": None, "DESCR": [""]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not complete"),
        ("FROB QLOCAL(A)", "'FROB' at column 1 is not a verb"),
        ("DEFINE CHANNEL(A)", "'CHANNEL' at column 8 is not a kind of object"),
        ("DEFINE QLOCAL", "needs one name"),
        ("DEFINE QLOCAL()", "needs one name"),
        ("DEFINE QLOCAL(A B)", "needs one name"),
        ("DEFINE QLOCAL(A", "has no end"),
        ("DEFINE QLOCAL((A)", "a second"),
        ("DEFINE QLOCAL(A)MAXDEPTH(5)", "a blank is missing"),
        ("DEFINE QLOCAL(A) PUT(ENABLED) PUT(ENABLED)", "PUT at column 31 is given twice"),
        ("DEFINE QLOCAL(A) 'quoted'", "is not a parameter"),
        ("END NOW", "is too much"),
    ],
)
def test_what_is_no_command_is_refused_with_place_and_reason(text: str, why: str) -> None:
    with pytest.raises(SyntaxFault, match=why.replace("(", r"\(")):
        parse(text)
