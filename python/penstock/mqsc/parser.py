"""Tokens of one command to a :class:`Command`.

Grammar::

    command    := VERB NOUN [ "(" name ")" ] { parameter }
    parameter  := KEYWORD [ "(" [ value { value } ] ")" ]

Keywords in any case; an unquoted value is folded to upper case, a quoted one kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .lexer import SyntaxFault, Token, tokens

__all__ = ["Command", "SyntaxFault", "parse"]

VERBS = {
    "DEFINE": "DEFINE",
    "DEF": "DEFINE",
    "ALTER": "ALTER",
    "ALT": "ALTER",
    "DELETE": "DELETE",
    "DISPLAY": "DISPLAY",
    "DIS": "DISPLAY",
    "CLEAR": "CLEAR",
    "END": "END",
}
NOUNS = {"QLOCAL": "QLOCAL", "QL": "QLOCAL", "QUEUE": "QUEUE", "Q": "QUEUE"}


@dataclass(frozen=True, slots=True)
class Command:
    """One command, checked for form only. A parameter without brackets has the value None."""

    verb: str
    noun: str = ""
    name: str = ""
    parameters: dict[str, list[str] | None] = field(default_factory=dict)


def parse(text: str) -> Command:
    """Parses one command.

    Raises:
        SyntaxFault: with the column and what was expected.
    """
    stream = _Stream(tokens(text))
    verb = stream.keyword("a verb", VERBS)
    if verb == "END":
        stream.finish()
        return Command(verb)
    noun = stream.keyword("a kind of object", NOUNS)
    names = stream.values()
    if names is None or len(names) != 1 or not names[0]:
        raise SyntaxFault(f"{verb} {noun} needs one name in brackets")
    parameters: dict[str, list[str] | None] = {}
    while not stream.at_end():
        column = stream.next.column
        word = stream.keyword("a parameter", None)
        if word in parameters:
            raise SyntaxFault(f"parameter {word} at column {column} is given twice")
        parameters[word] = stream.values()
    return Command(verb, noun, names[0], parameters)


class _Stream:
    """The tokens from left to right."""

    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._at = 0

    def at_end(self) -> bool:
        """True when nothing is left."""
        return self._at == len(self._tokens)

    @property
    def next(self) -> Token:
        """The next token. Raises SyntaxFault at the end."""
        if self.at_end():
            raise SyntaxFault("the command is not complete")
        return self._tokens[self._at]

    def keyword(self, what: str, known: dict[str, str] | None) -> str:
        """Takes a keyword: the full form from ``known``, or any word in upper case."""
        token = self.next
        word = token.value.upper()
        if token.kind != "word" or (known is not None and word not in known):
            choice = "" if known is None else " (" + ", ".join(dict.fromkeys(known.values())) + ")"
            raise SyntaxFault(f"{token.value!r} at column {token.column} is not {what}{choice}")
        if not token.spaced:
            raise SyntaxFault(f"a blank is missing before {token.value!r} at column {token.column}")
        self._at += 1
        return known[word] if known is not None else word

    def values(self) -> list[str] | None:
        """Takes ``( value ... )``; None when no bracket comes next. ``()`` is one blank value."""
        if self.at_end() or self.next.kind != "(":
            return None
        opened = self.next.column
        self._at += 1
        found: list[str] = []
        while not self.at_end():
            token = self.next
            self._at += 1
            if token.kind == ")":
                return found or [""]
            if token.kind == "(":
                raise SyntaxFault(f"a second ( at column {token.column}")
            found.append(token.value.upper() if token.kind == "word" else token.value.rstrip())
        raise SyntaxFault(f"the ( at column {opened} has no end")

    def finish(self) -> None:
        """Raises SyntaxFault unless all is taken."""
        if not self.at_end():
            raise SyntaxFault(f"{self.next.value!r} at column {self.next.column} is too much")
