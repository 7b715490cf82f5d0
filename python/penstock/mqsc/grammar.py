"""The grammar of one command, and the first step of its parsing: text to words and brackets.

``MQSC command syntax``: verb first, noun second, name third, then parameters in any order. Blanks
and commas separate, as many as one likes; one at least stands before each parameter. A quoted value
keeps its case and its blanks, a quote in it is doubled.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

from .faults import SyntaxFault

GRAMMAR = r"""
command: [SEPARATOR] parameter (SEPARATOR parameter)* [SEPARATOR]
parameter: KEYWORD [values]
values: OPEN [value (SEPARATOR value)*] CLOSE
value: KEYWORD | QUOTED

KEYWORD: /[^ \t\r\n,()']+/
QUOTED: /'(?:[^']|'')*'/
SEPARATOR: /[ \t\r\n,]+/
OPEN.2: /[ \t\r\n,]*\([ \t\r\n,]*/
CLOSE.2: /[ \t\r\n,]*\)/
"""
_SEPARATORS = " \t\r\n,"


class Word(NamedTuple):
    """A word as it was written, without its quotes. at: its offset in the text."""

    text: str
    at: int
    quoted: bool = False

    @property
    def value(self) -> str:
        """The value: folded to upper case unless it was quoted, without trailing blanks."""
        return self.text.rstrip() if self.quoted else self.text.upper()

    @property
    def written(self) -> str:
        """The word as written."""
        return "'" + self.text.replace("'", "''") + "'" if self.quoted else self.text


class Parameter(NamedTuple):
    """A keyword, in upper case, with the values in its brackets; None when it has no brackets."""

    keyword: str
    at: int
    values: tuple[Word, ...] | None = None


class _Build(Transformer[Token, list[Parameter]]):
    """Lark's rules to our tuples."""

    def command(self, children: list[Parameter | Token | None]) -> list[Parameter]:
        return [child for child in children if isinstance(child, Parameter)]

    def parameter(self, children: list[Token | tuple[Word, ...]]) -> Parameter:
        keyword, values = children
        assert isinstance(keyword, Token)
        given = values if isinstance(values, tuple) else None
        return Parameter(keyword.upper(), keyword.start_pos or 0, given)

    def values(self, children: list[Token | Word | None]) -> tuple[Word, ...]:
        return tuple(child for child in children if isinstance(child, Word))

    def value(self, children: list[Token]) -> Word:
        (token,) = children
        at = token.start_pos or 0
        if token.type == "QUOTED":
            return Word(token[1:-1].replace("''", "'"), at, True)
        return Word(str(token), at)


@cache
def _parser() -> Lark:
    return Lark(
        GRAMMAR,
        start="command",
        parser="lalr",
        lexer="basic",
        transformer=_Build(),
        maybe_placeholders=True,
    )


def parameters_of(text: str) -> list[Parameter]:
    """The words of a command: the verb, the noun with the name, and the parameters.

    Raises:
        SyntaxFault: with the location and the rule.
    """
    if not text.strip(_SEPARATORS):
        raise SyntaxFault("there is no command")
    try:
        found: list[Parameter] = _parser().parse(text)  # type: ignore[assignment]
    except UnexpectedCharacters as error:
        raise SyntaxFault(
            "the quote has no end", error.pos_in_stream or 0, text[error.pos_in_stream :]
        ) from None
    except UnexpectedToken as error:
        raise _fault(text, error.token) from None
    except UnexpectedEOF:
        raise _fault(text, Token("$END", "")) from None
    return found


def _fault(text: str, token: Token) -> SyntaxFault:
    """The rule that the token breaks, from the tokens before it."""
    opened, before = -1, ""
    end = len(text) if token.type == "$END" else token.start_pos or 0
    for other in _parser().lex(text):
        if (other.start_pos or 0) >= end:
            break
        before = other.type
        if before == "OPEN":
            opened = (other.start_pos or 0) + other.index("(")
        elif before == "CLOSE":
            opened = -1
    if token.type == "$END":
        return SyntaxFault("the ( has no end", max(opened, 0), "(")
    at = end + len(token) - len(token.lstrip(_SEPARATORS))
    word = token.strip(_SEPARATORS)
    if token.type == "OPEN":
        rule = "brackets inside brackets" if opened >= 0 else "( without a keyword before it"
    elif token.type == "CLOSE":
        rule = ") without ("
    elif before not in ("SEPARATOR", "") and opened < 0 and token.type == "KEYWORD":
        rule = "a blank is missing before it"
    elif opened >= 0:
        rule = "a blank or a comma is missing between two values"
    else:
        rule = "a quoted value outside brackets"
    return SyntaxFault(rule, at, word)
