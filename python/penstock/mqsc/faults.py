"""Errors in the text of a command."""

from __future__ import annotations


class SyntaxFault(ValueError):
    """The text is not a command.

    Attributes:
        rule: the rule that it breaks, as text for users.
        at: offset in the command's text of the word that breaks it.
        word: that word, "" when the text ends too early.
    """

    def __init__(self, rule: str, at: int = 0, word: str = "") -> None:
        """Makes the fault."""
        super().__init__(rule)
        self.rule, self.at, self.word = rule, at, word


class NotYet(Exception):
    """An MQSC command that is not implemented; the text names the missing part."""
