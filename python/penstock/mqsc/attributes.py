"""The attributes of a local queue as MQSC writes them: keyword, value forms, and the Python value.

One row a keyword; parsing, checking and printing follow from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .lexer import SyntaxFault

Value = str | int | bool


@dataclass(frozen=True, slots=True)
class Attribute:
    """One keyword. ``words``: allowed words and the Python values they stand for; else a number
    from ``low`` to ``high``, or text of at most ``length`` characters when ``length`` is set.
    Without a ``default`` it cannot be set."""

    keyword: str
    default: Value | None = None
    words: Mapping[str, Value] = field(default_factory=dict)
    low: int = 0
    high: int = 0
    length: int = 0

    @property
    def settable(self) -> bool:
        """True when DEFINE and ALTER take it."""
        return self.default is not None

    def parse(self, values: list[str] | None) -> Value:
        """The Python value of ``KEYWORD(values)``. Raises SyntaxFault with the rule."""
        if values is None or len(values) != 1:
            raise SyntaxFault(f"{self.keyword} needs one value in brackets")
        text = values[0]
        if self.words:
            if text.upper() not in self.words:
                raise SyntaxFault(f"{self.keyword}({text}): one of {', '.join(self.words)}")
            return self.words[text.upper()]
        if self.length:
            if len(text) > self.length:
                raise SyntaxFault(f"{self.keyword}: {len(text)} characters, {self.length} at most")
            return text
        if not (text.isascii() and text.isdigit() and self.low <= int(text) <= self.high):
            raise SyntaxFault(f"{self.keyword}({text}): a number from {self.low} to {self.high}")
        return int(text)

    def text(self, value: Value) -> str:
        """How DISPLAY writes a Python value."""
        for word, meaning in self.words.items():
            if value in (meaning, word):
                return word
        return str(value) or " "


QLOCAL = {
    a.keyword: a
    for a in (
        Attribute("DESCR", "", length=64),
        Attribute("PUT", "ENABLED", {"ENABLED": "ENABLED", "DISABLED": "DISABLED"}),
        Attribute("GET", "ENABLED", {"ENABLED": "ENABLED", "DISABLED": "DISABLED"}),
        Attribute("DEFPRTY", 0, low=0, high=9),
        Attribute("DEFPSIST", False, {"NO": False, "YES": True}),
        Attribute("MAXDEPTH", 5000, low=0, high=999999999),
        Attribute("MAXMSGL", 4194304, low=0, high=104857600),
        Attribute("MSGDLVSQ", "PRIORITY", {"PRIORITY": "PRIORITY", "FIFO": "FIFO"}),
        Attribute("NPMCLASS", "NORMAL", {"NORMAL": "NORMAL", "HIGH": "HIGH"}),
        Attribute("CURDEPTH", high=999999999),
        Attribute("IPPROCS", high=999999999),
        Attribute("OPPROCS", high=999999999),
    )
}

DEFAULTS: dict[str, Value] = {
    a.keyword.lower(): a.default for a in QLOCAL.values() if a.default is not None
}
