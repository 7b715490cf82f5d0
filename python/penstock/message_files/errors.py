"""What is wrong with a file of messages."""

from __future__ import annotations


class MessageFileError(ValueError):
    """A file of messages cannot be read or written as asked; the text names file and line."""
