"""Which queues a read is about: some names, a pattern, or, of the journal, all."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.names import fits

from .errors import OptionError
from .options import Options

__all__ = ["QueueChoice"]

_NAME = re.compile(r"[A-Za-z0-9./_%]{1,48}")
_PATTERN = re.compile(r"[A-Za-z0-9./_%*?]{1,96}")


@dataclass(frozen=True)
class QueueChoice:
    """names: of queues; None: the pattern counts. pattern: ``*`` stands for any characters, ``?``
    for one; None: all queues. Both None: all."""

    names: tuple[str, ...] | None
    pattern: str | None

    @classmethod
    def of(cls, options: Options) -> QueueChoice:
        """From the options queue and queuePattern. Raises OptionError for what is no name."""
        given, pattern = options["queue"], options["queuePattern"]
        if pattern is not None and not _PATTERN.fullmatch(pattern):
            raise OptionError(
                f"option queuePattern is {pattern!r}; it takes a name of a queue in which * stands "
                "for any characters and ? for one"
            )
        if given is None:
            return cls(None, pattern)
        names = tuple(name.strip() for name in given.split(","))
        for name in names:
            if not _NAME.fullmatch(name):
                raise OptionError(f"option queue names {name!r}, which is no name of a queue")
        return cls(tuple(dict.fromkeys(names)), None)

    @property
    def given(self) -> str:
        """As it is given: ``A``, ``A,B``, ``APP.*``."""
        return ",".join(self.names) if self.names is not None else self.pattern or "*"

    @property
    def text(self) -> str:
        """For messages: ``queue A``, ``queues A,B``, ``queues APP.*``."""
        is_one = self.names is not None and len(self.names) == 1
        return f"queue{'' if is_one else 's'} {self.given}"

    @property
    def is_all(self) -> bool:
        """Whether nothing is chosen."""
        return self.names is None and self.pattern is None

    def __call__(self, name: str) -> bool:
        """Whether the queue of that name is chosen."""
        if self.names is not None:
            return name in self.names
        return self.pattern is None or fits(self.pattern, name)
