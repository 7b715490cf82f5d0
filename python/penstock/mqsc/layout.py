"""Values as text: the two columns of DISPLAY, and definitions as commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..objects import TYPES, Attribute, Definition
from .words import BARE

_INDENT = "   "
_COLUMN = 40  # characters
_PIECE = 1900  # characters of a long value in one line of a command
_CACHED_MAX = 4096


def lay_out(pairs: Sequence[str]) -> list[str]:
    """Lines of one or two pairs each; a long pair is alone on its line."""
    lines: list[str] = []
    left = ""
    for pair in pairs:
        if left and len(left) < _COLUMN and len(pair) <= _COLUMN:
            lines.append(f"{_INDENT}{left:<{_COLUMN}}{pair}")
            left = ""
            continue
        if left:
            lines.append(_INDENT + left)
        left = pair
    if left:
        lines.append(_INDENT + left)
    return lines


def pair_of(keyword: str, value: object) -> str:
    """``KEYWORD(value)``, or the bare keyword."""
    if keyword in BARE:
        return keyword if value else f"NO{keyword}"
    return f"{keyword}({_shown(value)})"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, (list, tuple)):
        value = ",".join(value)
    return str(value) or " "


class Layout(NamedTuple):
    """The layout of DISPLAY output.

    title: the message before each object. head: (keyword, key of the definition) of the pairs that
    come first; the first one is the name. shown: keywords after them.
    """

    title: str
    head: tuple[tuple[str, str], ...]
    shown: tuple[str, ...]

    def lines(self, found: Iterable[Definition]) -> list[str]:
        """All lines. Objects differ in few values, so the laid-out rest of each is remembered."""
        first_word, first_key = self.head[0]
        keys = [*(key for _, key in self.head[1:]), *(word.lower() for word in self.shown)]
        get: Callable[[Definition, str], Any] = dict.get  # Definition's own would fold the case
        known: dict[Any, tuple[str, list[str]]] = {}
        lines: list[str] = []
        for row in found:
            name = f"{first_word}({get(row, first_key)})"
            values = [get(row, key) for key in keys]
            alone = len(name) >= _COLUMN
            case = (alone, *(tuple(v) if isinstance(v, list) else v for v in values))
            rest = known.get(case)
            if rest is None:
                if len(known) >= _CACHED_MAX:
                    known.clear()
                rest = known[case] = self._rest(alone, values)
            beside, below = rest
            lines.append(self.title)
            lines.append(f"{_INDENT}{name:<{_COLUMN}}{beside}" if beside else _INDENT + name)
            lines += below
        return lines

    def _rest(self, alone: bool, values: Sequence[object]) -> tuple[str, list[str]]:
        """The text beside the name, and the lines below it. Attributes are in the order shown."""
        heads = len(self.head) - 1
        words = [*(word for word, _ in self.head[1:]), *self.shown]
        shown = [
            (at >= heads, pair_of(word, value))
            for at, (word, value) in enumerate(zip(words, values, strict=True))
            if value is not None
        ]
        pairs = [text for after, text in shown if not after]
        pairs += sorted(text for after, text in shown if after)
        beside = ""
        if pairs and not alone and len(pairs[0]) <= _COLUMN:
            beside = pairs.pop(0)
        return beside, lay_out(pairs)


# ---- definitions as commands ----


def quoted(text: str) -> str:
    """A value in quotes."""
    return "'" + text.replace("'", "''") + "'"


def as_commands(found: Iterable[Definition]) -> Iterator[str]:
    """The commands that define these objects, each of several lines joined by newlines.

    Objects that cannot be defined are left out: dynamic queues, instances of cluster queues.
    """
    for definition in found:
        kind = str(definition["type"])
        made = definition.get("deftype", "PREDEFINED") if kind == "QLOCAL" else "PREDEFINED"
        if kind != "QCLUSTER" and made == "PREDEFINED":
            yield as_command(definition)


def as_command(definition: Mapping[str, Any]) -> str:
    """The DEFINE with REPLACE, the SET or the ALTER QMGR that gives this definition."""
    kind = TYPES[str(definition["type"])]
    name = _in_lines(quoted(str(definition["name"])))
    if kind.name == "AUTHREC":
        entity = f"{definition['enttype']}({_in_lines(quoted(str(definition['entity'])))})"
        parts = ["SET AUTHREC", f"PROFILE({name})", entity, f"OBJTYPE({definition['objtype']})"]
        return _joined([*parts, f"AUTHADD({','.join(definition['authlist'])})"])
    head, end = _ENDS.get(kind.name, (f"DEFINE {kind.name}({name})", "REPLACE"))
    parts = [head.format(name)]
    rows = sorted(kind.attributes.values(), key=lambda row: (not row.fixed, row.keyword))
    for row in rows:
        value = definition.get(row.keyword.lower())
        if value is not None and not (row.display_only or row.secret):
            keyword = "TYPE" if row.keyword == "CHLAUTYP" else row.keyword
            parts.append(_assigned(row, value).replace(row.keyword, keyword, 1))
    return _joined([*parts, end] if end else parts)


# How the commands of types that DEFINE does not make begin and end.
_ENDS = {"QMGR": ("ALTER QMGR", ""), "CHLAUTH": ("SET CHLAUTH({})", "ACTION(REPLACE)")}


def _joined(parts: list[str]) -> str:
    return " +\n   ".join(parts)


def _assigned(row: Attribute, value: object) -> str:
    """``KEYWORD(value)`` as a command takes it."""
    if row.many:
        names = [str(name) for name in value] if isinstance(value, list) else []
        lines = "".join(("," if at % 30 else ", +\n   ") + quoted(n) for at, n in enumerate(names))
        return f"{row.keyword}({lines.lstrip(', +').lstrip() or quoted(' ')})"
    if row.is_text:
        return f"{row.keyword}({_in_lines(quoted(str(value) or ' '))})"
    return pair_of(row.keyword, value)


def _in_lines(text: str) -> str:
    """A long quoted value over several lines, so that none of them is a comment or blank."""
    parts = [text[:_PIECE]]
    for at in range(_PIECE, len(text), _PIECE):
        piece = text[at : at + _PIECE]
        if piece.startswith("*"):
            parts.append("+\n   " + piece)
        else:
            parts.append("-\n" + piece)
    return "".join(parts)
