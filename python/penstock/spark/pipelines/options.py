"""Options of pipelines: declared once as a dataclass, given as a mapping or on a command line.

Names are those of the fields in camel case, as Spark's sources have them; upper and lower case are
the same. On a command line ``alertQueue`` is ``--alert-queue``.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

__all__ = [
    "AuditOptions",
    "IngestOptions",
    "OptionError",
    "ReplayOptions",
    "command_line",
    "option",
    "read_options",
]

ALERTS = ".ALERTS"  # ending of the alert queue's name, after that of the lines' queue

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


class OptionError(ValueError):
    """An option that is unknown, missing or of a wrong type; the text names it."""


def option(text: str, default: Any = None, *, needed: bool = False, kind: type = str) -> Any:
    """A field of an options class.

    Args:
        text: Its description in the help.
        default: Its value when it is not given.
        needed: Whether it is mandatory.
        kind: ``str``, ``int`` or ``bool``.
    """
    return dataclasses.field(
        default=default, metadata={"text": text, "needed": needed, "kind": kind}
    )


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def _value(name: str, kind: type, given: Any) -> Any:
    text = str(given).strip()
    if kind is bool:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise OptionError(f"option {name} is true or false, not {text!r}")
    if kind is int:
        try:
            return int(text)
        except ValueError:
            raise OptionError(f"option {name} is a whole number, not {text!r}") from None
    return str(given)


def read_options(options_class: type[T], given: Mapping[str, Any]) -> T:
    """An object of the class with the given values. Values None count as not given.

    Raises:
        OptionError: An option is unknown (a similar one is named), given twice, missing, or not
            of its type.
    """
    declared: Any = options_class  # a dataclass, which the type does not express
    fields = {_camel(f.name).lower(): f for f in dataclasses.fields(declared)}
    values: dict[str, Any] = {}
    for key, value in given.items():
        found = fields.get(key.lower())
        if found is None:
            names = {name: _camel(f.name) for name, f in fields.items()}
            near = difflib.get_close_matches(key.lower(), names, 1)
            hint = f"; did you mean {names[near[0]]}?" if near else f"; there are {_list(names)}"
            raise OptionError(f"there is no option {key}{hint}")
        if value is None:
            continue
        if found.name in values:
            raise OptionError(f"option {_camel(found.name)} is given twice")
        values[found.name] = _value(_camel(found.name), found.metadata["kind"], value)
    for f in fields.values():
        if f.metadata["needed"] and f.name not in values:
            raise OptionError(f"option {_camel(f.name)} is missing: {f.metadata['text']}")
    return options_class(**values)


def _list(names: Mapping[str, str]) -> str:
    return ", ".join(sorted(names.values()))


def command_line(options_class: type) -> Callable[[Command], Command]:
    """Decorates a click command with one option for each field; it is called with them all."""
    import click

    def decorate(command: Command) -> Command:
        for field in reversed(dataclasses.fields(options_class)):
            default = "" if field.default is None else f"  [default: {field.default}]"
            command = click.option(
                "--" + field.name.replace("_", "-"),
                _camel(field.name),
                metavar={int: "N", bool: "true|false"}.get(field.metadata["kind"], "TEXT"),
                required=field.metadata["needed"],
                help=field.metadata["text"] + default,
            )(command)
        return command

    return decorate


@dataclass(frozen=True)
class ManagerOptions:
    """The queue manager to be used."""

    queue_manager: str = option("name of the queue manager", needed=True)
    home: str | None = option("directory of the queue managers")

    @property
    def place(self) -> dict[str, str]:
        """The data source's options for the queue manager."""
        found = {"queueManager": self.queue_manager}
        return found if self.home is None else {**found, "home": self.home}


@dataclass(frozen=True)
class JournalOptions(ManagerOptions):
    """How to read the journal."""

    fail_on_data_loss: bool = option("fail when a segment was recycled", True, kind=bool)
    on_damage: str = option("refuse damaged segments, or skip what is damaged", "refuse")

    @property
    def source(self) -> dict[str, str]:
        """The data source's options for reading the journal."""
        return {
            **self.place,
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            "onDamage": self.on_damage,
        }


@dataclass(frozen=True)
class IngestOptions(ManagerOptions):
    """Options of ``ingest``."""

    queue: str = option("queue of the lines", "LOG.LINES")
    table: str = option("folder of the Parquet table", needed=True)
    checkpoint: str = option("folder of the streams' checkpoints", needed=True)
    alert_queue: str | None = option("queue of the alerts, default: the queue's name and .ALERTS")
    alert_level: str = option("the mildest level that is an alert", "ERROR")
    trigger: str = option("availableNow: what is there, then end; or an interval", "availableNow")
    max_messages_per_trigger: int = option("messages of a micro-batch", 10_000, kind=int)
    max_bytes_per_trigger: int | None = option("bytes of a micro-batch", kind=int)
    time_zone: str = option("zone of times that say none", "UTC")
    formats: str | None = option("TOML file of formats of lines, before the built-in ones")

    @property
    def alerts_to(self) -> str:
        """Name of the alert queue."""
        return self.alert_queue or self.queue + ALERTS


@dataclass(frozen=True)
class AuditOptions(JournalOptions):
    """Options of ``audit``."""

    queue: str | None = option("only this queue; default: all but SYSTEM.*")


@dataclass(frozen=True)
class ReplayOptions(JournalOptions):
    """Options of ``replay``. Intervals include their beginning and not their end."""

    queue: str = option("the queue whose messages are put again", needed=True)
    to: str | None = option("the queue that they are put on, default: the one they were on")
    starting_lsn: int | None = option("of the interval", kind=int)
    ending_lsn: int | None = option("of the interval", kind=int)
    starting_time: str | None = option("of the interval, ISO 8601")
    ending_time: str | None = option("of the interval, ISO 8601")
    name: str | None = option("of this replay: a second one of that name puts nothing")

    @property
    def interval(self) -> dict[str, str]:
        """The data source's options for reading only the interval."""
        found = {
            "startingLsn": self.starting_lsn,
            "endingLsn": self.ending_lsn,
            "startingTime": self.starting_time,
            "endingTime": self.ending_time,
        }
        return {name: str(value) for name, value in found.items() if value is not None}
