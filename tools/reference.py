"""Writes the tables of the documents that describe what the code accepts.

A document holds generated blocks, ``<!-- generated: NAME -->`` to ``<!-- generated end -->``.
Each block is made from the tables by which the code itself decides: options, structures, reason
codes, settings. So a document cannot say something else than the code.

    python tools/reference.py           # compare; status 1 on a difference
    python tools/reference.py --write   # write the blocks again
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import penstock
from penstock import mqi
from penstock.admin import settings as qm_settings
from penstock.constants import ReasonCode
from penstock.mqi import constants
from penstock.mqi.character_sets import known_ccsids
from penstock.objects import TYPES, Attribute
from penstock.opening import option_rules
from penstock.spark.base import options as spark_options

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"<!-- generated: ([\w-]+) -->\n(.*?)<!-- generated end -->", re.DOTALL)

STRUCTURES = ("MQMD", "MQOD", "MQOR", "MQPMO", "MQPMR", "MQRR", "MQGMO", "MQCNO", "MQBO", "MQSTS",
              "MQDLH", "MQXQH", "MQMDE")  # fmt: skip
# Names that stand for several bits or for none, and are no option.
_NO_OPTION = re.compile(r"_(VERSION|CURRENT|LENGTH|DEFAULT|MASK)")


# ---- tables ----


def table(head: str, rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; ``head`` has its columns separated by ``|``."""
    columns = head.split("|")
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def option_names(prefix: str) -> dict[int, str]:
    """bit -> name of the options with that prefix, such as ``MQGMO_``."""
    found: dict[int, str] = {}
    for name, value in vars(constants).items():
        single = isinstance(value, int) and value > 0 and value & (value - 1) == 0
        if name.startswith(prefix) and single and not _NO_OPTION.search(name):
            found.setdefault(value, name)
    return dict(sorted(found.items()))


def names_of(bits: int, names: Mapping[int, str]) -> str:
    """The names of the bits that are set."""
    return ", ".join(f"`{name}`" for bit, name in names.items() if bits & bit)


def verb_options(rules: option_rules.Rules, prefix: str) -> str:
    """Every option of a verb: accepted, or refused and for want of what."""
    names = option_names(prefix)
    later = 0
    for bit in rules.later:
        later |= bit
    lines = [f"Accepted: {names_of(rules.known & ~later, names)}.\n"]
    if later:
        rows = (
            (f"`{names[bit]}`", text.removeprefix(names[bit]).strip())
            for bit, text in sorted(rules.later.items())
        )
        lines.append(table("refused with 2046|because it", rows))
    return "\n".join((*lines, combinations(rules, names)))


def combinations(rules: option_rules.Rules, names: Mapping[int, str]) -> str:
    """Which options go together; anything else is 2046."""
    lines = []
    if rules.any_of:
        lines.append(f"* At least one of {names_of(rules.any_of, names)}.")
    lines += [f"* At most one of {names_of(group, names)}." for group in rules.exclusive]
    for option, others in rules.needs:
        lines.append(f"* {names_of(option, names)}: only with {names_of(others, names)}.")
    for option, others in rules.excludes:
        allowed = rules.known & ~others & ~option
        if allowed.bit_count() < others.bit_count():
            lines.append(f"* {names_of(option, names)}: alone or with {names_of(allowed, names)}.")
        else:
            lines.append(f"* {names_of(option, names)}: not with {names_of(others, names)}.")
    return "\n".join(lines) + "\n"


def open_types() -> str:
    """Which open options fit which kind of object."""
    kinds = ("local queue", "remote queue definition", "queue of another queue manager",
             "cluster queue", "distribution list", "other object")  # fmt: skip
    names = option_names("MQOO_")
    return table(
        "opened|valid options",
        (
            (kind, names_of(valid, names))
            for kind, valid in zip(kinds, option_rules.VALID, strict=True)
        ),
    )


def close_options() -> str:
    """What MQCLOSE takes."""
    names = {value: name for name, value in vars(constants).items() if name.startswith("MQCO_")}
    return ", ".join(f"`{names[value]}`" for value in sorted(option_rules.CLOSE)) + "\n"


def character_sets() -> str:
    """CCSIDs that are converted."""
    return ", ".join(map(str, known_ccsids())) + "\n"


def structures() -> str:
    """Each structure: versions and lengths, the reason code of a wrong one, fields, defaults."""
    parts = []
    for name in STRUCTURES:
        kind = getattr(mqi, name)
        text = re.sub(r":\w+:`(\w+)`", r"`\1`", inspect.getdoc(kind) or "").replace("``", "`")
        parts.append(f"### {name}\n\n{text}\n\n{fields_of(kind)}")
    return "\n".join(parts)


def fields_of(kind: type) -> str:
    """The fields of a structure in the order of their offsets."""
    initial = kind()
    fields = [
        name
        for name, value in vars(kind).items()
        if not name.startswith("_") and type(value).__name__.endswith("Field")
    ]
    rows = ((f"`{name}`", initial_value(getattr(initial, name))) for name in fields)
    return table("field|initial value", rows)


def initial_value(value: object) -> str:
    """The initial value of a field, to be read by people."""
    if isinstance(value, bytes) and not any(value):
        return f"{len(value)} zero bytes"
    if isinstance(value, str):
        return f"`{value}`" if value.strip() else "blank"
    if isinstance(value, list):
        return "empty"
    return f"`{type(value).__name__}`" if isinstance(value, mqi.MQMD) else f"`{value!r}`"


def reason_codes() -> str:
    """The reason codes that a call can give here, with what they mean."""
    absent = unprovoked()
    given = {int(code) for code in ReasonCode} - absent
    words = ("OK", "warning", "failed")
    rows = (
        (code, f"`{reason.name}`", words[reason.comp_code], reason.meaning)
        for code, reason in mqi.REASONS.items()
        if code in given
    )
    return table("code|name|completion|meaning", rows)


def unprovoked() -> set[int]:
    """Codes that no test provokes, from the table of tests/README.md."""
    text = (ROOT / "tests/README.md").read_text("utf-8")
    section = text.split("## Reason codes that no test provokes")[1].split("\n## ")[0]
    found: set[int] = set()
    for row in re.findall(r"^\| ([\d, -]+) \|", section, re.MULTILINE):
        for part in row.split(","):
            low, _, high = part.strip().partition("-")
            found |= set(range(int(low), int(high or low) + 1))
    return found


def attributes() -> str:
    """The attributes of every type of object."""
    parts = []
    for name, kind in TYPES.items():
        rows = (
            (f"`{row.keyword}`", row.selector, values_of(row), effects_of(row), row.help)
            for row in sorted(kind.attributes.values(), key=lambda row: row.keyword)
        )
        kept = f"Kept only: this release has no {kind.unbuilt}.\n\n" if kind.unbuilt else ""
        parts.append(f"## {name}\n\n{kept}{table('attribute|selector|values|notes|meaning', rows)}")
    return "\n".join(parts)


def values_of(row: Attribute) -> str:
    """The values of an attribute and its default."""
    if row.display_only:
        return "only displayed"
    default = row.show(row.default)
    return row.rule() + ("" if row.many else f"; default `{default}`" if default != "" else "")


def effects_of(row: Attribute) -> str:
    """What else the table says about an attribute."""
    notes = []
    if row.platform:
        notes.append("z/OS only")
    if row.kinds:
        notes.append("of type " + ", ".join(row.kinds))
    if row.fixed:
        notes.append("set by DEFINE only")
    if row.resolution:
        notes.append("a change gives open handles 2041")
    if row.force:
        notes.append("ALTER in use needs FORCE")
    if row.settable:
        notes.append("MQSET")
    if row.unbuilt:
        notes.append(f"kept only: no {row.unbuilt}")
    return "; ".join(notes)


def exceptions() -> str:
    """The exceptions of the Python interface and their reason codes."""
    found = {
        value.__name__: value.reasons
        for value in vars(penstock).values()
        if isinstance(value, type) and issubclass(value, penstock.MQError) and value.reasons
    }
    rows = (
        (f"`{name}`", ", ".join(f"{int(code)} `{mqi.reason_name(code)}`" for code in codes))
        for name, codes in sorted(found.items())
    )
    return table("exception|reason codes", rows)


def settings() -> str:
    """The keys of qm.toml with defaults and ranges."""
    initial = qm_settings.Settings(qm_id=bytes(16), name="QM1")
    rows = []
    for item in qm_settings._ITEMS:
        if item.field in ("qm_id", "name"):
            continue
        span = f"{size(item.low)} to {size(item.high)}" if item.low is not None else ""
        value = size(getattr(initial, item.field))
        rows.append((f"`{item}`", value, span, f"`{item.field}`"))
    return table("key|default|range|argument of `create`", rows)


def size(value: object) -> str:
    """A number of bytes, or another value, to be read by people."""
    if not isinstance(value, int):
        return f"`{value}`" if value else ""
    for unit, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if value and value % (1 << shift) == 0:
            return f"{value >> shift} {unit}"
    return f"{value:,}"


def spark_table() -> str:
    """The options of the Spark data source."""
    short = {"batch read": "read", "batch read of the journal": "journal",
             "streaming source": "stream", "stream over the journal": "journal stream",
             "batch sink": "batch sink", "streaming sink": "stream sink"}  # fmt: skip
    rows = []
    for option in spark_options.OPTIONS:
        uses = "all" if len(option.uses) == len(short) else ", ".join(short[u] for u in option.uses)
        default = "" if option.default is None else f"`{str(option.default).lower()}`"
        rows.append((f"`{option.name}`", uses, default, option.text))
    return table("option|for|default|meaning", rows)


def log_messages() -> str:
    """The messages of the error log, from the core's table."""
    table_file = next((ROOT / "csrc").rglob("amq*.h"))
    lines = re.findall(r"MQX_AMQ_\w+ = (\d+),\s+/\* ([IWE ]+) (.+?) \*/", table_file.read_text())
    words = {"I": "information", "W": "warning", "E": "error"}
    rows = (
        (f"AMQ{number}", " or ".join(words[k] for k in kinds.split()), text)
        for number, kinds, text in sorted(lines)
    )
    return table("message|severity|", rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "open-options": lambda: verb_options(option_rules.OPEN, "MQOO_"),
    "open-types": open_types,
    "put-options": lambda: verb_options(option_rules.PUT, "MQPMO_"),
    "put1-options": lambda: combinations(option_rules.PUT1, option_names("MQPMO_")),
    "get-options": lambda: verb_options(option_rules.GET, "MQGMO_"),
    "close-options": close_options,
    "character-sets": character_sets,
    "structures": structures,
    "reason-codes": reason_codes,
    "attributes": attributes,
    "exceptions": exceptions,
    "settings": settings,
    "spark-options": spark_table,
    "log-messages": log_messages,
}


# ---- the program ----


def renewed(text: str) -> str:
    """The document with every block written again."""
    return BLOCK.sub(
        lambda m: f"<!-- generated: {m[1]} -->\n\n{BLOCKS[m[1]]()}\n<!-- generated end -->", text
    )


def documents() -> list[Path]:
    """The documents that have generated blocks."""
    paths = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    return sorted(path for path in paths if BLOCK.search(path.read_text("utf-8")))


def main(arguments: list[str]) -> int:
    """Compares, or with ``--write`` writes, the blocks of all documents."""
    stale = []
    for path in documents():
        text = path.read_text("utf-8")
        if (new := renewed(text)) != text:
            stale.append(path.relative_to(ROOT))
            if arguments == ["--write"]:
                path.write_text(new, "utf-8")
    for name in stale:
        print(f"{name}: {'written' if arguments else 'stale, run tools/reference.py --write'}")
    return 1 if stale and not arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
