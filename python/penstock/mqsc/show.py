"""DISPLAY of definitions, and what it shares with DISPLAY of status: names, choice, WHERE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..objects import TYPES, Attribute, Definition
from .definitions import Action, Parameters, kind_of, name_of
from .faults import SyntaxFault
from .layout import Layout
from .parser import Command, near
from .reply import Reply, not_found
from .where import Condition, condition

if TYPE_CHECKING:
    from penstock import QueueManager

# What stands first, by noun: (keyword, key of the definition).
_QUEUE = (("QUEUE", "name"), ("TYPE", "type"))
HEADS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "PROCESS": (("PROCESS", "name"),),
    "NAMELIST": (("NAMELIST", "name"),),
    "TOPIC": (("TOPIC", "name"),),
    "CHANNEL": (("CHANNEL", "name"), ("CHLTYPE", "chltype")),
    "CFSTRUCT": (("CFSTRUCT", "name"),),
    "QMGR": (("QMNAME", "name"),),
    "LISTENER": (("LISTENER", "name"), ("CONTROL", "control")),
    "SERVICE": (("SERVICE", "name"), ("CONTROL", "control")),
    "AUTHINFO": (("AUTHINFO", "name"), ("AUTHTYPE", "authtype")),
    "COMMINFO": (("COMMINFO", "name"),),
    "SUB": (("SUB", "name"),),
    "CHLAUTH": (("CHLAUTH", "name"), ("TYPE", "chlautyp")),
    "AUTHREC": (
        ("PROFILE", "name"),
        ("ENTITY", "entity"),
        ("ENTTYPE", "enttype"),
        ("OBJTYPE", "objtype"),
    ),
}
_TYPE_WORDS = ("TYPE", "QTYPE")


class Choice:
    """The attributes and objects that a DISPLAY selects."""

    def __init__(self, given: Parameters, known: Mapping[str, Attribute], generic: bool) -> None:
        """Removes ALL, WHERE and the attributes from the parameters. Raises SyntaxFault."""
        everything = given.flag("ALL")
        self.test: Condition | None = None
        asked: set[str] = set()
        filter_given = given.left.pop("WHERE", None)
        if filter_given is not None:
            keyword, self.test = condition(filter_given, known)
            asked.add(keyword)
        for parameter in given.left.values():
            row = known.get(parameter.keyword)
            if row is None:
                raise SyntaxFault(
                    f"DISPLAY {given.command.noun} cannot show it{near(parameter.keyword, known)}",
                    parameter.at,
                    parameter.keyword,
                )
            if parameter.values is not None:
                raise SyntaxFault(
                    f"DISPLAY takes {parameter.keyword} without a value; "
                    f"say WHERE({parameter.keyword} EQ value)",
                    parameter.at,
                    parameter.keyword,
                )
            asked.add(row.keyword)
        if everything or not (asked or generic):
            asked = {row.keyword for row in known.values()}
        self.shown = asked

    def layout(self, command: Command, head: tuple[tuple[str, str], ...]) -> Layout:
        """The layout of the output."""
        subject = command.subject
        first = {key for _, key in head}
        if head[0][0] == "QMNAME":
            first.add("qmname")  # the queue manager's own name
        shown = tuple(word for word in sorted(self.shown) if word.lower() not in first)
        return Layout(f"{subject.details}: Display {subject.heading} details.", head, shown)

    def reply(
        self, command: Command, head: tuple[tuple[str, str], ...], found: list[Definition]
    ) -> Reply:
        """The objects that fulfil the condition, or that there is none."""
        if self.test is not None:
            found = [row for row in found if self.test(row)]
        if not found:
            return not_found(command)
        return Reply(code=command.subject.details, objects=found, layout=self.layout(command, head))


def known_attributes(kinds: tuple[str, ...], platform: str) -> dict[str, Attribute]:
    """The attributes that objects of these types have, by keyword and synonym."""
    known: dict[str, Attribute] = {}
    for kind in kinds:
        for row in TYPES[kind].attributes.values():
            if row.platform in ("", platform):
                for word in (row.keyword, *row.synonyms):
                    known.setdefault(word, row)
    return known


def prepare(manager: QueueManager, command: Command) -> Action:
    """Checks DISPLAY of definitions; the returned call does it. Raises SyntaxFault."""
    subject = command.subject
    kind = kind_of(command, manager.platform)
    name = _pattern(command, kind.name)
    given = Parameters(command, manager.platform)
    kinds = list(subject.kinds)
    keep: Callable[[Definition], bool] | None = None
    if kind.is_queue or kind.name == "QCLUSTER":
        if given.flag("CLUSINFO") and kind.is_queue:
            kinds.append("QCLUSTER")
        kinds = _of_type(given, _TYPE_WORDS, kinds)
    elif kind.subtype is not None:
        keyword = kind.subtype.keyword
        types = list(kind.subtype.words)
        wanted = _of_type(given, ("TYPE", keyword), types)
        if wanted != types:
            keep = lambda row: row[keyword] in wanted  # noqa: E731
    choice = Choice(given, known_attributes(tuple(kinds), manager.platform), name.endswith("*"))
    head = HEADS.get(command.noun, _QUEUE)

    def run() -> Reply:
        found = _find(manager, tuple(kinds), name)
        if keep is not None:
            found = [row for row in found if keep(row)]
        return choice.reply(command, head, found)

    return run


def _pattern(command: Command, kind: str) -> str:
    """The name, generic or not. Raises SyntaxFault."""
    word = command.name
    if word is None:
        return "*" if command.subject.named else ""
    return name_of(TYPES[kind], word)


def _of_type(given: Parameters, words: tuple[str, ...], types: list[str]) -> list[str]:
    """Removes ``TYPE(word)``; a bare TYPE is shown in any case. Raises SyntaxFault."""
    for keyword in words:
        parameter = given.left.get(keyword)
        if parameter is None:
            continue
        if parameter.values is None:
            if keyword in _TYPE_WORDS:
                del given.left[keyword]
            continue
        value = given.word(keyword)
        assert value is not None
        if value.value == "ALL":
            continue
        if value.value not in types:
            raise SyntaxFault(f"{keyword} is one of {', '.join(types)}", value.at, value.written)
        types = [value.value]
    return types


def _find(manager: QueueManager, kinds: tuple[str, ...], name: str) -> list[Definition]:
    """The definitions, sorted by name."""
    if kinds[:4] == ("QLOCAL", "QALIAS", "QREMOTE", "QMODEL"):
        found = manager.display("QUEUE", name)
        kinds = kinds[4:]
    elif len(kinds) == 1:
        return manager.display(kinds[0], name)
    else:
        found = []
    for kind in kinds:
        found += manager.display(kind, name)
    return sorted(found, key=lambda row: str(dict.get(row, "name")))
