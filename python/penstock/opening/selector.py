"""Selection strings: the syntax of MQOD.SelectionString.

Nothing selects by content here, so an open with a selection string fails. Which reason code it gets
depends on the text: 2459 for what is no selector, 2551 for one that a queue manager could use. The
grammar is that of SQL-92 conditions, as message selectors have it::

    condition  = conjunction {OR conjunction}
    conjunction = negation {AND negation}
    negation   = {NOT} predicate
    predicate  = sum [comparison sum | IS [NOT] NULL | [NOT] (BETWEEN sum AND sum
                 | IN "(" string {"," string} ")" | LIKE string [ESCAPE string])]
    sum        = product {("+" | "-") product}
    product    = factor {("*" | "/") factor}
    factor     = {"+" | "-"} (number | string | TRUE | FALSE | name | "(" condition ")")

Types are not checked: ``5`` is accepted where a condition should stand.

Source: "Message selector syntax", 8.3 of the MQI reference.
"""

from __future__ import annotations

import re

from .._mqi_constants.calls import (
    MQOO_BROWSE,
    MQOO_INPUT_AS_Q_DEF,
    MQOO_INPUT_EXCLUSIVE,
    MQOO_INPUT_SHARED,
)
from .._mqi_constants.reason_codes import (
    MQRC_SELECTION_NOT_AVAILABLE,
    MQRC_SELECTION_STRING_ERROR,
    MQRC_SELECTOR_INVALID_FOR_TYPE,
    MQRC_SELECTOR_SYNTAX_ERROR,
)

LENGTH_MAX = 10240  # characters, MQ_SELECTOR_LENGTH
_GETS = MQOO_INPUT_AS_Q_DEF | MQOO_INPUT_SHARED | MQOO_INPUT_EXCLUSIVE | MQOO_BROWSE
_DEPTH_MAX = 64  # nested parentheses
_WORDS = frozenset(
    ("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE")
)
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>'(?:[^']|'')*')
    | (?P<number>0[xX][0-9a-fA-F]+[lL]?|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[lLfFdD]?)(?![\w$.])
    | (?P<name>[^\W\d](?:[\w$])*(?:\.[^\W\d][\w$]*)*|\$[\w$]*)
    | (?P<sign><>|<=|>=|[=<>+\-*/(),])
    )""",
    re.VERBOSE,
)
_COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))


class SelectorFault(ValueError):
    """The text is no selector."""


def check_selector(text: str) -> None:
    """Checks the syntax of a selection string. Raises SelectorFault with the place."""
    parser = _Parser(text)
    parser.condition()
    if parser.kind != "end":
        raise parser.fault("the end")


def refused_selection(text: str, is_queue: bool, options: int) -> tuple[int, str]:
    """The reason code, with its text, of an open with a selection string.

    Args:
        text: the selection string, not empty.
        is_queue: whether the ObjectType is a queue.
        options: MQOO_* of the open.

    Returns:
        2519 for one that is too long, 2459 for what is no selector, 2516 when the open is not for
        getting messages of a queue, else 2551.
    """
    if len(text) > LENGTH_MAX:
        return (
            MQRC_SELECTION_STRING_ERROR,
            f"a selection string of {len(text)} characters, {LENGTH_MAX} at most",
        )
    try:
        check_selector(text)
    except SelectorFault as fault:
        return MQRC_SELECTOR_SYNTAX_ERROR, f"the selection string {text[:80]!r}: {fault}"
    if not is_queue or not options & _GETS:
        return (
            MQRC_SELECTOR_INVALID_FOR_TYPE,
            f"the selection string {text[:80]!r} needs a queue that is opened for input or browse",
        )
    return (
        MQRC_SELECTION_NOT_AVAILABLE,
        f"the selection string {text[:80]!r}: messages are not selected by content here",
    )


class _Parser:
    """One pass over a text; ``kind`` and ``token`` are what comes next."""

    def __init__(self, text: str) -> None:
        self.text = text.rstrip()
        self.at = self.next_at = 0
        self.depth = 0
        self.kind = self.token = ""
        self.advance()

    def advance(self) -> None:
        """Reads the next token: a string, a number, a name, a sign or an upper-case word."""
        self.at = self.next_at
        if self.at == len(self.text):
            self.kind = self.token = "end"
            return
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            raise self.fault("a name, a literal or a sign")
        self.next_at = found.end()
        self.kind = str(found.lastgroup)
        self.token = found[self.kind]
        if self.kind == "name" and self.token.upper() in _WORDS:
            self.kind, self.token = "word", self.token.upper()

    def fault(self, wanted: str) -> SelectorFault:
        """What is wrong here."""
        return SelectorFault(f"{wanted} is missing before {self.text[self.at : self.at + 20]!r}")

    def take(self, *tokens: str) -> bool:
        """Whether one of these words or signs comes next, which is then behind."""
        if self.kind not in ("word", "sign") or self.token not in tokens:
            return False
        self.advance()
        return True

    def need(self, token: str) -> None:
        """The word or sign that must come next."""
        if not self.take(token):
            raise self.fault(token)

    def string(self) -> None:
        """A literal string."""
        if self.kind != "string":
            raise self.fault("a string")
        self.advance()

    def condition(self) -> None:
        """OR, AND, NOT and the predicates between them."""
        while True:
            while self.take("NOT"):
                pass
            self.predicate()
            if not self.take("AND", "OR"):
                return

    def predicate(self) -> None:
        """A value and what is said about it."""
        self.sum()
        if self.take(*_COMPARISONS):
            self.sum()
        elif self.take("IS"):
            self.take("NOT")
            self.need("NULL")
        elif self.take("NOT"):
            if not self.membership():
                raise self.fault("BETWEEN, IN or LIKE")
        else:
            self.membership()

    def membership(self) -> bool:
        """BETWEEN, IN or LIKE, if one of them comes next."""
        if self.take("BETWEEN"):
            self.sum()
            self.need("AND")
            self.sum()
        elif self.take("IN"):
            self.need("(")
            self.string()
            while self.take(","):
                self.string()
            self.need(")")
        elif self.take("LIKE"):
            self.string()
            if self.take("ESCAPE"):
                self.string()
        else:
            return False
        return True

    def sum(self) -> None:
        """Sums and products; their precedence does not matter for the syntax."""
        self.factor()
        while self.take("+", "-", "*", "/"):
            self.factor()

    def factor(self) -> None:
        """A literal, a name, or a condition in parentheses."""
        while self.take("+", "-"):
            pass
        if self.take("("):
            self.depth += 1
            if self.depth > _DEPTH_MAX:
                raise self.fault(f"the end of {_DEPTH_MAX} parentheses")
            self.condition()
            self.need(")")
            self.depth -= 1
        elif self.kind in ("string", "number", "name") or self.token in ("TRUE", "FALSE"):
            self.advance()
        else:
            raise self.fault("a value")
