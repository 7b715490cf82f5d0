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
    """An MQSC command that is not implemented; the text names the missing part.

    Attributes:
        without_effect: whether the command would change nothing that there is.
        kind: type of the object that it names, "" for none; name: that name.
    """

    def __init__(
        self, text: str, without_effect: bool = False, kind: str = "", name: str = ""
    ) -> None:
        """Makes the exception."""
        super().__init__(text)
        self.without_effect, self.kind, self.name = without_effect, kind, name
