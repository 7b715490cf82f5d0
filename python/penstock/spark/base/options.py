"""The options of ``format("penstock")``: their uses, values and defaults.

Names follow the Kafka source, in any case. Unknown ones are refused with the nearest name, and so
are those of another use. Spark adds options of its own, which are ignored.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import OptionError

__all__ = ["OPTIONS", "Option", "Options", "parse"]

_MOST = (1 << 63) - 1
READ, JOURNAL, STREAM, WRITE, SINK = (
    "batch read",
    "batch read of the journal",
    "streaming source",
    "batch sink",
    "streaming sink",
)
_READS = (READ, JOURNAL, STREAM)
_WRITES = (WRITE, SINK)
_ALL = (*_READS, *_WRITES)

# What users of other sources try first.
_ELSEWHERE = {
    "subscribe": "queue",
    "topic": "queue",
    "kafka.bootstrap.servers": "queueManager",
    "qmgr": "queueManager",
    "includeheaders": "includeProperties",
    "maxoffsetspertrigger": "maxMessagesPerTrigger",
    "maxfilespertrigger": "maxMessagesPerTrigger",
    "numpartitions": "minPartitions",
    "maxrecordsperbatch": "batchRows",
}
# Spark's own, which it passes on with those of the source.
_SPARKS = {
    "asyncprogresstrackingcheckpointintervalms",
    "asyncprogresstrackingenabled",
    "_asyncprogresstrackingoverridesinksupportcheck",
    "checkpointlocation",
    "queryname",
}

_NO_TABLE = (
    "Spark keeps a table's options from sources in Python; use CREATE TEMPORARY VIEW name USING "
    "penstock OPTIONS (queueManager 'QM1', queue 'Q')"
)


def _text(value: str) -> str:
    if not value:
        raise ValueError("a value that is not empty")
    return value


def _number(low: int, high: int) -> Callable[[str], int]:
    def read(value: str) -> int:
        expected = f"a whole number from {low} to {high}" if high < _MOST else (
            f"a whole number of at least {low}"
        )  # fmt: skip
        if not value.strip().isascii() or not value.strip().isdigit():
            raise ValueError(expected)
        number = int(value)
        if not low <= number <= high:
            raise ValueError(expected)
        return number

    return read


def _bytes(value: str) -> int:
    """``1048576``, ``64m``, ``2g``: as Spark writes sizes."""
    text = value.strip().lower().removesuffix("b")
    unit = {"k": 10, "m": 20, "g": 30}.get(text[-1:], 0)
    digits = text[:-1] if unit else text
    if not (digits.isascii() and digits.isdigit()) or not 0 < int(digits) << unit <= _MOST:
        raise ValueError("a size of at least 1 byte, such as 1048576, 64m or 2g")
    return int(digits) << unit


def _flag(value: str) -> bool:
    try:
        return {"true": True, "false": False}[value.strip().lower()]
    except KeyError:
        raise ValueError("true or false") from None


def _choice(*words: str) -> Callable[[str], str]:
    def read(value: str) -> str:
        word = value.strip().lower()
        if word not in words:
            raise ValueError(" or ".join(words))
        return word

    return read


@dataclass(frozen=True)
class Option:
    """An option: its name as it is shown, which uses it has, how it is read, what it is for."""

    name: str
    uses: tuple[str, ...]
    read: Callable[[str], Any]
    default: Any
    text: str


OPTIONS = (
    Option("queueManager", _ALL, _text, None, "name of the queue manager; needed"),
    Option("home", _ALL, _text, None, "directory of queue managers; else PENSTOCK_HOME"),
    Option("queue", _ALL, _text, None, "name of the queue; also the path of load() and save()"),
    Option("mode", (READ, JOURNAL), _choice("browse", "journal"), "browse", "what a read reads"),
    Option(
        "includeProperties",
        (READ, STREAM),
        _flag,
        False,
        "take an MQRFH2 off the bodies and fill the column properties with what it says",
    ),
    Option("batchRows", _READS, _number(1, 1_000_000), 10_000, "rows of an Arrow batch"),
    Option("batchBytes", _READS, _bytes, 32 << 20, "bytes of an Arrow batch, about"),
    Option("failOnDataLoss", (STREAM, JOURNAL), _flag, True, "end when something is missing"),
    Option("maxMessagesPerTrigger", (STREAM,), _number(1, _MOST), None, "of a micro-batch"),
    Option("maxBytesPerTrigger", (STREAM,), _bytes, None, "of a micro-batch's bodies, about"),
    Option(
        "nonPersistent",
        (STREAM,),
        _choice("include", "exclude"),
        "include",
        "what happens to non-persistent messages: part of the durable unit, or left on the queue",
    ),
    Option(
        "onAbandoned",
        (STREAM,),
        _choice("fail", "backout", "ignore"),
        "fail",
        "what a new stream does about prepared messages of its queue whose stream does not run: "
        "end, return them to the queue, or leave them",
    ),
    Option("messagesPerPartition", (STREAM,), _number(1, _MOST), 50_000, "at most"),
    Option("minPartitions", (READ, STREAM), _number(1, 100_000), None, "of a read, about"),
    Option(
        "eagerCommit",
        (STREAM,),
        _flag,
        True,
        "commit a micro-batch when the next one is asked for; false with "
        "asyncProgressTrackingEnabled",
    ),
    Option("startingLsn", (JOURNAL,), _number(0, _MOST), None, "first LSN"),
    Option("endingLsn", (JOURNAL,), _number(0, _MOST), None, "LSN behind the last"),
    Option("startingTime", (JOURNAL,), _text, None, "ISO 8601, of batches of the journal"),
    Option("endingTime", (JOURNAL,), _text, None, "ISO 8601, of batches of the journal"),
    Option("events", (JOURNAL,), _text, None, "PUT, GET, ...; with commas"),
    Option("onDamage", (JOURNAL,), _choice("refuse", "skip"), "refuse", "what damage does"),
    Option("verify", (JOURNAL,), _flag, False, "compare checksums of bodies that are not read"),
    Option(
        "persistence",
        _WRITES,
        _choice("persistent", "queue"),
        "persistent",
        "rows whose column persistent is null or missing: persistent, or as the queue's DEFPSIST",
    ),
    Option("txnAppId", (WRITE,), _text, None, "with txnVersion: a write that is done once"),
    Option("txnVersion", (WRITE,), _number(0, _MOST), None, "rises from write to write"),
)
_BY_NAME = {option.name.lower(): option for option in OPTIONS}


@dataclass(frozen=True)
class Options:
    """The options of one use, read and checked; ``options["queue"]`` by the name shown."""

    values: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        """The value, or its default."""
        return self.values[name]


def parse(given: Mapping[str, str], *uses: str) -> Options:
    """Reads the options given.

    Args:
        given: As Spark gives them: names in any case.
        uses: READ, STREAM, WRITE or SINK, or those that it may turn out to be; with mode=journal
            READ becomes JOURNAL.

    Raises:
        OptionError: One is unknown, unfit, or missing.
    """
    lower = {key.lower(): value for key, value in given.items() if key.lower() not in _SPARKS}
    if "owner" in lower:  # properties of the catalog, which Spark passes on for CREATE TABLE
        raise OptionError(f"a table cannot use penstock: {_NO_TABLE}")
    if not lower:
        raise OptionError(
            'option queueManager is missing: .option("queueManager", "QM1"); if this is a table of '
            f"the catalog: {_NO_TABLE}"
        )
    if "path" in lower:
        path = lower.pop("path")
        if "queue" in lower and lower["queue"] != path:
            raise OptionError(
                f"load() or save() names queue {path}, option queue names {lower['queue']}"
            )
        lower["queue"] = path
    if READ in uses and _value("mode", lower) == "journal":
        uses = (JOURNAL,)
    for key in lower:
        _check_known(key, uses)
    values = {
        option.name: _value(option.name.lower(), lower)
        for option in OPTIONS
        if not set(uses).isdisjoint(option.uses)
    }
    if values["queueManager"] is None:
        raise OptionError('option queueManager is missing: .option("queueManager", "QM1")')
    if values["queue"] is None and not {READ, STREAM}.isdisjoint(uses):
        raise OptionError(f"option queue is missing: a {uses[0]} reads one queue")
    if WRITE in uses and (values["txnAppId"] is None) != (values["txnVersion"] is None):
        raise OptionError("options txnAppId and txnVersion go together: one of them is missing")
    return Options(values)


def _value(key: str, lower: Mapping[str, str]) -> Any:
    option = _BY_NAME[key.lower()]
    if key.lower() not in lower:
        return option.default
    text = lower[key.lower()]
    try:
        return option.read(text)
    except ValueError as error:
        raise OptionError(f"option {option.name} is {text!r}; it takes {error}") from None


def _check_known(key: str, uses: tuple[str, ...]) -> None:
    option = _BY_NAME.get(key)
    if option is not None:
        if set(uses).isdisjoint(option.uses):
            raise OptionError(
                f"option {option.name} is one of a {' and a '.join(option.uses)}, "
                f"not of a {' or a '.join(uses)}"
            )
        return
    guess = _ELSEWHERE.get(key)
    if guess is None and "offsets" in key:
        raise OptionError(
            f"option {key} is unknown: a queue has no offsets, a stream takes what is there"
        )
    if guess is None:
        fit = [name for name, known in _BY_NAME.items() if not set(uses).isdisjoint(known.uses)]
        near = difflib.get_close_matches(key, fit, 1) or difflib.get_close_matches(key, _BY_NAME, 1)
        guess = _BY_NAME[near[0]].name if near else None
    meant = f": {guess} is meant?" if guess else ""
    raise OptionError(f"option {key} is unknown{meant}")
