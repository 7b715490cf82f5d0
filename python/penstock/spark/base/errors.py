"""Errors of the data source, one sentence each.

Spark shows an error with the trace of its worker; the sentence is the last line before the trace.
"""

from __future__ import annotations

__all__ = [
    "CannotServe",
    "DataLoss",
    "OptionError",
    "SchemaError",
    "SourceError",
    "TooManyUnits",
    "VersionError",
    "WrongHost",
    "sentence_in",
]

_HERE = f"{__name__}."


class SourceError(Exception):
    """An operation of the data source ``penstock`` failed; the text is one sentence."""


class OptionError(SourceError, ValueError):
    """An option is unknown, missing, has a wrong value, or is for another use."""


class SchemaError(SourceError, TypeError):
    """A column is unknown, or not of the type that it has; a value is null that must not be."""


class VersionError(SourceError):
    """This PySpark is too old for the operation."""


class WrongHost(SourceError):
    """A task runs on another machine than the queue manager."""


class CannotServe(SourceError):
    """A task on the queue manager's machine cannot attach to it."""


class DataLoss(SourceError):
    """Messages that belong to a micro-batch, or records of the journal, are not there any more."""


class TooManyUnits(SourceError):
    """A batch consists of more units of work than one commit takes."""


def sentence_in(error: BaseException) -> str | None:
    """The data source's sentence in the text of a Spark error; None when there is none."""
    lines = (line.strip() for line in str(error).splitlines())
    own = [line for line in lines if line.startswith(_HERE) and ": " in line]
    if isinstance(error, SourceError):
        return str(error)
    return own[-1].partition(": ")[2] if own else None
