"""Help about attributes, made from the tables: what each is, its values, its default."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import wrap

from ..objects import Attribute
from . import status
from .layout import pair_of
from .show import known_attributes
from .words import BARE, NOUN_OF, NOUNS

_WIDTH = 88
_STATUS: Mapping[str, Mapping[str, Attribute]] = {
    "QSTATUS": {**status.QUEUE, **status.HANDLE},
    "CONN": {**status.CONN, **status.CONN_HANDLE},
    "QMSTATUS": status.QMSTATUS,
}


def attributes_of(noun: str, platform: str = "zos") -> dict[str, Attribute]:
    """The attributes of a noun of MQSC, full or short, in any case; empty for no noun."""
    full = NOUN_OF.get(noun.upper(), "")
    if full in _STATUS:
        return dict(_STATUS[full])
    return known_attributes(NOUNS[full].kinds, platform) if full in NOUNS else {}


def guide(noun: str, keyword: str = "") -> list[str]:
    """Help lines on all attributes of a noun, or on one of them; empty when it is unknown.

    Args:
        noun: such as QLOCAL, full or short, in any case.
        keyword: one attribute, in any case; "" for all.
    """
    known = attributes_of(noun)
    rows = {row.keyword: row for row in known.values()}
    if keyword:
        row = known.get(keyword.upper())
        return _about(row) if row is not None else []
    if not rows:
        return []
    lines = [f"{NOUN_OF[noun.upper()]}: {len(rows)} attributes"]
    for word in sorted(rows):
        lines += _about(rows[word])
    return lines


def _about(row: Attribute) -> list[str]:
    """Two lines or more about one attribute."""
    names = " or ".join((row.keyword, *row.synonyms))
    about = f"  {names:<10} {row.help}"
    if row.selector == 0:
        return [about]
    facts = [f"{row.keyword} or NO{row.keyword}" if row.keyword in BARE else row.rule()]
    if row.display_only:
        facts = ["only shown"]
    elif not row.many:
        facts.append(f"default {_default(row)}")
    if row.platform:
        facts.append("z/OS only")
    if row.kinds:
        facts.append("of type " + ", ".join(row.kinds))
    if row.fixed:
        facts.append("set by DEFINE only")
    if row.force:
        facts.append("ALTER in use needs FORCE")
    if row.unbuilt:
        facts.append(f"kept only: this release has no {row.unbuilt}")
    if row.settable:
        facts.append("MQSET can set it")
    return [about, *(" " * 13 + line for line in wrap("; ".join(facts), _WIDTH))]


def _default(row: Attribute) -> str:
    if row.is_text:
        return f"'{row.default}'" if row.default else "blank"
    text = pair_of(row.keyword, row.show(row.default))
    return text.removeprefix(f"{row.keyword}(").removesuffix(")")
