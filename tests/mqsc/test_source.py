"""Lines to commands: continuation, comments, semicolons, and where each character came from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.mqsc.parser import parse
from penstock.mqsc.source import LINE_LENGTH_MAX, Location, read_commands


def texts(lines: list[str]) -> list[str]:
    return [source.text for source in read_commands(lines)]


def test_plus_continues_at_the_first_non_blank_and_minus_at_column_one() -> None:
    lines = ["DEFINE QLOCAL(A) +", "    MAXDEPTH(5)", "DEF -", "INE QLOCAL(B)", "AB-  ", " C"]
    assert texts(lines) == ["DEFINE QLOCAL(A) MAXDEPTH(5)", "DEF INE QLOCAL(B)", "AB C"]


@pytest.mark.parametrize("lines", [["X('Fr+", "   ed')"], ["X('Fr-", "ed')"]])
def test_a_quoted_value_may_be_continued_either_way(lines: list[str]) -> None:
    assert texts(lines) == ["X('Fred')"]


def test_blanks_before_a_continuation_mark_count_inside_quotes() -> None:
    assert texts(["X('a  -", "  b')"]) == ["X('a    b')"]
    assert texts(["X('a  +", "  b')"]) == ["X('a  b')"]


def test_only_blanks_and_tabs_are_blanks() -> None:
    assert texts(["X('a+", " \t\u00a0b\u2028')\u00a0"]) == ["X('a\u00a0b\u2028')\u00a0"]


def test_comments_and_blank_lines_are_left_out_even_within_a_command() -> None:
    lines = ["* a comment +", "", "ALTER +", "* in between", "   ", "QL(A)", "   * not in column 1"]
    assert texts(lines) == ["ALTER QL(A)", "* not in column 1"]


def test_a_semicolon_ends_a_command_but_not_inside_quotes() -> None:
    assert texts(["A(1); B('x;y'''); C ;;"]) == ["A(1)", "B('x;y''')", "C"]


def test_a_command_left_open_by_the_end_of_the_input_counts() -> None:
    assert texts(["DEFINE +"]) == ["DEFINE"]
    assert texts([]) == texts([" ", "* no command"]) == []


def test_a_line_above_2048_characters_is_marked_and_the_next_command_is_not() -> None:
    fits, long, after = read_commands(
        ["A" * LINE_LENGTH_MAX, "B +", "C" * (LINE_LENGTH_MAX + 1), "D"]
    )
    assert fits.too_long is None
    assert long.too_long == (3, LINE_LENGTH_MAX + 1)
    assert (after.text, after.too_long, after.line) == ("D", None, 4)


def test_a_command_is_there_as_soon_as_its_last_line_is_read() -> None:
    read: list[str] = []

    def lines() -> list[str]:
        for line in ("A +", "B", "C"):
            read.append(line)
            yield line

    commands = read_commands(lines())
    assert next(commands).text == "A B"
    assert read == ["A +", "B"]


def test_every_character_knows_its_line_and_column() -> None:
    one, two, three = read_commands(["* c", " AB +", "* c", "   CD -", " E; F('x')", "  G"])
    assert one.text == "AB CD  E"
    found = {character: one.location(one.text.index(character)) for character in "ABCDE"}
    assert found == {
        "A": Location(2, 2),
        "B": Location(2, 3),
        "C": Location(4, 4),
        "D": Location(4, 5),
        "E": Location(5, 2),
    }
    assert [two.location(0), two.location(2), three.location(0)] == [
        Location(5, 5),
        Location(5, 7),
        Location(6, 3),
    ]
    assert one.location(len(one.text)) == Location(5, 3)


@given(
    st.text("ab'*+-;() ,", max_size=30),
    st.lists(st.integers(0, 200), max_size=8),
    st.sampled_from(["+", "-"]),
)
def test_a_command_means_the_same_wherever_its_lines_end(
    value: str, cuts: list[int], mark: str
) -> None:
    quoted = value.replace("'", "''")
    text = f"DEFINE QLOCAL('a.b') DESCR('{quoted}')  MAXDEPTH(5), PUT(DISABLED)"
    pieces, start = [], 0
    for cut in sorted({c for c in cuts if 0 < c < len(text)}):
        after = text[cut:]
        if text[start:cut].strip() and not after.startswith((" ", "*")):
            pieces.append(text[start:cut] + mark)
            start = cut
    lines = [*pieces, text[start:]]
    first, *others = [line[:1] for line in lines]
    (source,) = read_commands(lines)
    assert first == "D" and "*" not in others
    assert source.text == text
    assert parse(source.text) == parse(text)


def test_twenty_thousand_continued_lines_of_commands_are_split_with_their_own_lines() -> None:
    """Each command has the pieces of its own line only, however many lines were joined."""
    count = 20_000
    found = list(read_commands(["DEFINE QLOCAL(A); +"] * count))
    assert [source.line for source in found] == list(range(1, count + 1))
    assert all(len(source.pieces) == 1 for source in found)


def test_a_long_line_that_is_empty_without_its_mark_is_no_command() -> None:
    assert not list(read_commands([" " * (LINE_LENGTH_MAX + 1) + "+"]))
    (one,) = read_commands([" " * (LINE_LENGTH_MAX + 1) + "+", "PING QMGR"])
    assert one.too_long == (1, LINE_LENGTH_MAX + 2) and one.text == "PING QMGR"
