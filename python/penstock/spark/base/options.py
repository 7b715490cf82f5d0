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

MOST_SECONDS = 99_999_999.9  # of an expiry
_MOST = (1 << 63) - 1
_IDENTIFIER = 24  # bytes of MsgId, CorrelId, GroupId
READ, JOURNAL, STREAM, JOURNAL_STREAM, WRITE, SINK = (
    "batch read",
    "batch read of the journal",
    "streaming source",
    "stream over the journal",
    "batch sink",
    "streaming sink",
)
_OF_JOURNAL = (JOURNAL, JOURNAL_STREAM)
_READS = (READ, JOURNAL, STREAM, JOURNAL_STREAM)
_WRITES = (WRITE, SINK)
_ALL = (*_READS, *_WRITES)
_OF_ENDPOINT = ("token", "tokenFile", "caFile", "certificateFile", "keyFile")

# What users of other sources try first.
_ELSEWHERE = {
    "subscribe": "queue",
    "topic": "queue",
    "kafka.bootstrap.servers": "queueManager",
    "qmgr": "queueManager",
    "includeheaders": "includeProperties",
    "maxoffsetspertrigger": "maxMessagesPerTrigger",
    "minoffsetspertrigger": "minMessages",
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


def _identifier(value: str) -> bytes:
    """24 bytes as hexadecimal digits; a shorter one is filled up with zeros, as MQ does."""
    try:
        read = bytes.fromhex(value.strip())
    except ValueError:
        read = b""
    if not 1 <= len(read) <= _IDENTIFIER:
        raise ValueError(f"hexadecimal digits of 1 to {_IDENTIFIER} bytes")
    return read.ljust(_IDENTIFIER, b"\0")


def _duration(value: str) -> float:
    """``30s``, ``15m``: seconds."""
    text = value.strip().lower()
    for ending, unit in (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)):
        digits = text.removesuffix(ending)
        if digits != text and digits.isascii() and digits.isdigit() and len(digits) < 10:
            return int(digits) * unit
    raise ValueError("a time such as 500ms, 30s, 15m or 1h")


def _flag(value: str) -> bool:
    try:
        return {"true": True, "false": False}[value.strip().lower()]
    except KeyError:
        raise ValueError("true or false") from None


def _seconds(value: str) -> float:
    expected = f"seconds from 0 to {MOST_SECONDS}, such as 60 or 0.5"
    try:
        number = float(value)
    except ValueError:
        raise ValueError(expected) from None
    if not 0 <= number <= MOST_SECONDS:  # NaN is neither
        raise ValueError(expected)
    return number


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
    Option(
        "queueManager",
        _ALL,
        _text,
        None,
        "name of the queue manager; needed; of a read or a stream of queues several, with commas",
    ),
    Option("home", _ALL, _text, None, "directory of queue managers; else PENSTOCK_HOME"),
    Option(
        "endpoint",
        _ALL,
        _text,
        None,
        "the server of `penstock serve` through which driver and tasks on other hosts reach the "
        "queue manager, grpc+tls://host:port; of several queue managers one of each, with commas, "
        "or one for all",
    ),
    Option(
        "relay",
        _ALL,
        _flag,
        False,
        "true: rows go through the driver, which runs on the queue manager's host, to and from "
        "executors on others: small batches, without a server",
    ),
    Option("token", _ALL, _text, None, "with endpoint: the bearer token"),
    Option("tokenFile", _ALL, _text, None, "instead of token: a file on each host with it"),
    Option(
        "caFile",
        _ALL,
        _text,
        None,
        "with endpoint: a file on each host with the certificates that the server's is checked "
        "against; else the system's",
    ),
    Option(
        "certificateFile",
        _ALL,
        _text,
        None,
        "with endpoint: a file on each host with the client's own certificate, for mutual TLS",
    ),
    Option("keyFile", _ALL, _text, None, "with certificateFile: its key"),
    Option(
        "queue",
        _ALL,
        _text,
        None,
        "name of the queue, or, of a read or a stream, of several, with commas; also the path of "
        "load() and save()",
    ),
    Option(
        "queuePattern",
        _READS,
        _text,
        None,
        "instead of queue: all queues with such names, * for any characters, ? for one",
    ),
    Option(
        "mode",
        _READS,
        _choice("browse", "journal"),
        None,
        "journal: the journal instead of a queue, which a batch read browses",
    ),
    Option(
        "isolation",
        _OF_JOURNAL,
        _choice("committed", "none"),
        None,
        "rows of the journal: committed, the events of decided units of work in the order of the "
        "decisions (the default of a stream); none, all records (that of a batch read)",
    ),
    Option(
        "includeProperties",
        (READ, STREAM),
        _flag,
        False,
        "take an MQRFH2 off the bodies and fill the column properties with what it says",
    ),
    Option("priority", (READ,), _number(0, 9), None, "only messages of that priority"),
    Option(
        "correlId",
        (READ,),
        _identifier,
        None,
        "only messages with that correlation identifier, in hexadecimal digits",
    ),
    Option("fromTime", (READ,), _text, None, "only messages that were put from then on, ISO 8601"),
    Option("batchRows", _READS, _number(1, 1_000_000), 10_000, "rows of an Arrow batch"),
    Option("batchBytes", _READS, _bytes, 32 << 20, "bytes of an Arrow batch, about"),
    Option("failOnDataLoss", (STREAM, *_OF_JOURNAL), _flag, True, "end when something is missing"),
    Option("maxMessagesPerTrigger", (STREAM,), _number(1, _MOST), None, "of a micro-batch"),
    Option(
        "minMessages",
        (STREAM,),
        _number(1, _MOST),
        None,
        "a micro-batch waits until so many messages are on the queue; void under once and "
        "availableNow",
    ),
    Option("maxTriggerDelay", (STREAM,), _duration, 900.0, "how long minMessages waits at most"),
    Option(
        "maxBytesPerTrigger",
        (STREAM, JOURNAL_STREAM),
        _bytes,
        None,
        "of a micro-batch's bodies, about",
    ),
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
    Option(
        "probe",
        (STREAM,),
        _choice("auto", "always", "never"),
        "auto",
        "whether an empty micro-batch finds out, before the first message is taken, that executors "
        "reach the queue manager; auto: unless the master is local",
    ),
    Option(
        "order",
        (READ, STREAM),
        _choice("priority", "arrival"),
        "priority",
        "of the rows, and of what a micro-batch takes: highest priority first, as a queue gives "
        "them, or in the order in which they were put",
    ),
    Option(
        "onBadBody",
        (READ, STREAM),
        _choice("fail", "null", "deadletter"),
        "fail",
        "what a body does that cannot be decoded to the type of the column body (text, JSON): end, "
        "be null, or, in a stream, move its message to the dead-letter queue (deadLetter)",
    ),
    Option(
        "deadLetterQueue",
        (STREAM, *_WRITES),
        _text,
        None,
        "of a stream: for messages with bad bodies, and for those that BOQNAME does not take; else "
        "DEADQ. Of a sink: for rows that cannot be put; else they fail the job",
    ),
    Option("messagesPerPartition", (STREAM,), _number(1, _MOST), 50_000, "at most"),
    Option(
        "minPartitions",
        (READ, STREAM, JOURNAL_STREAM),
        _number(1, 100_000),
        None,
        "of a read, about",
    ),
    Option(
        "eagerCommit",
        (STREAM,),
        _flag,
        True,
        "commit a micro-batch when the next one is asked for; false with "
        "asyncProgressTrackingEnabled",
    ),
    Option(
        "startingOffsets",
        (JOURNAL_STREAM,),
        _choice("earliest", "latest", "time", "lsn"),
        None,
        "where a new stream begins: at the oldest record, behind the newest (the default), at "
        "startingTime, at startingLsn",
    ),
    Option("startingLsn", _OF_JOURNAL, _number(0, _MOST), None, "first LSN"),
    Option("endingLsn", (JOURNAL,), _number(0, _MOST), None, "LSN behind the last"),
    Option("startingTime", _OF_JOURNAL, _text, None, "ISO 8601, of batches of the journal"),
    Option("endingTime", (JOURNAL,), _text, None, "ISO 8601, of batches of the journal"),
    Option("events", _OF_JOURNAL, _text, None, "PUT, GET, ...; with commas"),
    Option("onDamage", (JOURNAL,), _choice("refuse", "skip"), "refuse", "what damage does"),
    Option("verify", (JOURNAL,), _flag, False, "compare checksums of bodies that are not read"),
    Option(
        "persistence",
        _WRITES,
        _choice("persistent", "queue"),
        "persistent",
        "rows whose column persistent is null or missing: persistent, or as the queue's DEFPSIST",
    ),
    Option(
        "expiry",
        _WRITES,
        _seconds,
        None,
        "seconds, decimals included, of rows whose column expiry is null or missing; default: "
        "they do not expire",
    ),
    Option("txnAppId", (WRITE,), _text, None, "with txnVersion: a write that is done once"),
    Option("txnVersion", (WRITE,), _number(0, _MOST), None, "rises from write to write"),
)
_JOURNAL_OF = {READ: JOURNAL, STREAM: JOURNAL_STREAM}
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
            READ becomes JOURNAL, and STREAM JOURNAL_STREAM.

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
    if _value("mode", lower) == "journal":
        uses = tuple(_JOURNAL_OF.get(use, use) for use in uses)
    for key in lower:
        _check_known(key, uses)
    values = {
        option.name: _value(option.name.lower(), lower)
        for option in OPTIONS
        if not set(uses).isdisjoint(option.uses)
    }
    if values["queueManager"] is None:
        raise OptionError('option queueManager is missing: .option("queueManager", "QM1")')
    if not {READ, STREAM}.isdisjoint(uses) and not (values["queue"] or values["queuePattern"]):
        raise OptionError(f"option queue is missing: a {uses[0]} reads queues")
    if "," in values["queueManager"] and {READ, STREAM}.isdisjoint(uses):
        raise OptionError(
            f"option queueManager is {values['queueManager']!r}: a {uses[0]} has one queue manager"
        )
    if values["queue"] is not None and values.get("queuePattern") is not None:
        raise OptionError("options queue and queuePattern: only one of them chooses the queues")
    if not set(_OF_JOURNAL).isdisjoint(uses):
        _check_journal(values, uses)
    elif READ not in uses and values.get("mode") == "browse":
        raise OptionError("a stream takes the messages of a queue: mode=browse is of a batch read")
    if STREAM in uses:
        _check_stream(values, lower)
    _check_endpoint(values)
    if WRITE in uses and (values["txnAppId"] is None) != (values["txnVersion"] is None):
        raise OptionError("options txnAppId and txnVersion go together: one of them is missing")
    return Options(values)


def _check_endpoint(values: Mapping[str, Any]) -> None:
    """Raises OptionError for options of a server that contradict each other."""
    given = [name for name in _OF_ENDPOINT if values.get(name) is not None]
    if values["relay"] and values["endpoint"] is not None:
        raise OptionError("options relay and endpoint: rows go through the driver or the server")
    if given and values.get("endpoint") is None:
        raise OptionError(f"option {given[0]} goes with endpoint, which is missing")
    if "token" in given and "tokenFile" in given:
        raise OptionError("options token and tokenFile: only one of them has the token")
    if ("certificateFile" in given) != ("keyFile" in given):
        raise OptionError("options certificateFile and keyFile go together: one is missing")


def _check_stream(values: Mapping[str, Any], given: Mapping[str, str]) -> None:
    """Raises OptionError for options of a stream that contradict each other."""
    fewest, most = values["minMessages"], values["maxMessagesPerTrigger"]
    if fewest is None and "maxtriggerdelay" in given:
        raise OptionError("option maxTriggerDelay goes with minMessages, which is missing")
    if fewest is not None and most is not None and fewest > most:
        raise OptionError(
            f"option minMessages is {fewest}, more than maxMessagesPerTrigger, which is {most}"
        )


def _check_journal(values: Mapping[str, Any], uses: tuple[str, ...]) -> None:
    """Raises OptionError for options of the journal that contradict each other."""
    given = [name for name in ("startingLsn", "startingTime") if values[name] is not None]
    if uses != (JOURNAL_STREAM,):
        return
    wanted = {"lsn": ["startingLsn"], "time": ["startingTime"]}
    kind = values["startingOffsets"]
    if kind is None and len(given) < 2:
        return
    if given != wanted.get(kind, []):
        needed = " and ".join(wanted.get(kind, [])) or "neither startingLsn nor startingTime"
        raise OptionError(f"option startingOffsets={kind or 'lsn or time'} goes with {needed}")


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
