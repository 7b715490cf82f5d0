"""MQSC text to commands and tokens."""

from __future__ import annotations

import pytest

from penstock.mqsc.lexer import LINE_LENGTH_MAX, SyntaxFault, split_commands, tokens


def test_plus_goes_on_at_the_first_non_blank_and_minus_at_column_one() -> None:
    text = ["DEFINE QLOCAL(A) +", "    MAXDEPTH(5)", "DEF -", "INE QLOCAL(B)"]
    assert list(split_commands(text)) == [
        "DEFINE QLOCAL(A) MAXDEPTH(5)",
        "DEF INE QLOCAL(B)",
    ]


def test_a_quoted_value_may_be_continued_either_way() -> None:
    for lines in (["X('Fr+", "   ed')"], ["X('Fr-", "ed')"]):
        assert list(split_commands(lines)) == ["X('Fred')"]


def test_comments_and_blank_lines_are_left_out_even_within_a_command() -> None:
    lines = ["* a comment", "", "ALTER +", "* in between", "QL(A)", "   * not in column 1"]
    assert list(split_commands(lines)) == ["ALTER QL(A)", "* not in column 1"]


def test_a_semicolon_ends_a_command_but_not_inside_quotes() -> None:
    assert list(split_commands(["A(1); B('x;y'''); C"])) == ["A(1)", "B('x;y''')", "C"]


def test_a_command_left_open_by_the_end_of_the_input_counts() -> None:
    assert list(split_commands(["DEFINE +"])) == ["DEFINE"]


def test_a_line_above_2048_characters_is_refused() -> None:
    assert list(split_commands(["A" * LINE_LENGTH_MAX])) == ["A" * LINE_LENGTH_MAX]
    with pytest.raises(SyntaxFault, match="2049 characters"):
        list(split_commands(["A" * (LINE_LENGTH_MAX + 1)]))


def test_blanks_and_commas_separate_and_quotes_keep_what_is_in_them() -> None:
    found = [(t.kind, t.value) for t in tokens("define,ql( 'a b''c' , x )")]
    assert found == [
        ("word", "define"),
        ("word", "ql"),
        ("(", "("),
        ("string", "a b'c"),
        ("word", "x"),
        (")", ")"),
    ]


def test_a_quote_without_its_end_is_named_with_its_column() -> None:
    with pytest.raises(SyntaxFault, match="column 3"):
        tokens("X('abc")
