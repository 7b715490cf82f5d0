"""Reports of the reader: an exception that stops it, and findings that do not."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


class DamagedFile(Exception):
    """A file violates FORMAT.md. The only exception that the reader raises about contents.

    file: path inside the queue manager's directory, for example ``journal/0000000003.psj``.
    offset: byte in that file. rule: short name of the rule that is broken, as in FORMAT.md.
    """

    def __init__(self, file: str, offset: int, rule: str, text: str) -> None:
        super().__init__(f"{file} at offset {offset}: {text} [{rule}]")
        self.file = file
        self.offset = offset
        self.rule = rule
        self.text = text


class UnsupportedFile(DamagedFile):
    """The file is whole but uses something this reader does not know, which the text names."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of verify().

    severity: ``damage`` (recovery refuses such files), ``warning`` (they open, but something is
    unexpected) or ``note`` (normal after a crash).
    """

    file: str
    offset: int
    rule: str
    severity: str
    text: str

    def as_dict(self) -> dict[str, Any]:
        """The finding as JSON-able data."""
        return asdict(self)

    @classmethod
    def of(cls, error: DamagedFile) -> Finding:
        """The finding that corresponds to an exception."""
        return cls(error.file, error.offset, error.rule, "damage", error.text)
