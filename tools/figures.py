"""Writes the figures of the documents from the result files of ``make bench``.

A document holds generated blocks between ``<!-- figures: NAME -->`` and ``<!-- figures end -->``.
Every number in them comes from one of the result files named below, by one rounding rule, so the
same measurement reads the same in every document.

    python tools/figures.py           # compare; status 1 on a difference
    python tools/figures.py --write   # write the blocks again
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"

# The result files that the documents show. A new run of `make bench` replaces the name here.
COMPLETE = "2026-11-28T094931Z"
SPARK = ("2026-11-30T030808Z", "2026-11-30T031315Z")
OTHER_MACHINE = "2026-11-29T073717Z"

BLOCK = re.compile(r"<!-- figures: ([\w-]+) -->\n(.*?)<!-- figures end -->", re.DOTALL)
SPARK_WORKLOAD = re.compile(r"Spark (batch|stream)")

# (workload, what README calls it)
README_ROWS = (
    ("durable put of 1 KiB, one producer", "durable put of 1 KiB"),
    ("durable put of 1 KiB, 8 producers, Python processes", "the same, 8 Python processes"),
    ("put+get in process, non-persistent, 256 bytes", "put and get, not persistent, in Python"),
    (
        "restart with 1,000,000 persistent messages after a kill",
        "restart, 1,000,000 persistent messages, after a kill",
    ),
    ("Spark stream of 256 bytes, a row", "Spark stream of 256 bytes, a row"),
)
Figure = dict[str, Any]


def load(name: str) -> dict[str, Any]:
    """The result file of that name."""
    contents: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    if contents.get("failed", 0):
        raise ValueError(f"{name}: {contents['failed']} workloads had wrong results")
    return contents


def figures_of(name: str) -> list[Figure]:
    """The figures of a result file."""
    found: list[Figure] = load(name)["figures"]
    return found


def duration(seconds: float, *, signed: bool = False) -> str:
    """Three digits and a unit: ``138 µs``; with a sign if asked: ``+360 ns``."""
    sign = "+" if signed and seconds >= 0 else ""
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if abs(seconds) >= factor or unit == "ns":
            return f"{sign}{seconds / factor:.3g} {unit}"
    raise AssertionError("unreachable")


def amount(figure: Figure, value: float, *, signed: bool = False) -> str:
    """A time of the figure, or its bytes."""
    bytes_ = figure.get("unit", "s") == "B"
    return f"{value / 1e6:.3g} MB" if bytes_ else duration(value, signed=signed)


def aim_cells(figure: Figure, aim: dict[str, Any]) -> tuple[str, str, str]:
    """(limit, what was reached, aim) of one aim, as the tables show them."""
    medians = figure["medians"]
    limit = f"{amount(figure, medians[aim['limit']])} {aim['limit']}" if aim["limit"] else ""
    kind, value, bound = aim["kind"], aim["value"], aim["bound"]
    if kind in ("rate", "time"):
        reached = f"{value:.2f} x its {kind}"
        wanted = f"{'≥' if kind == 'rate' else '≤'} {bound:g}"
    else:
        reached = amount(figure, value, signed=kind == "extra")
        wanted = f"≤ {amount(figure, bound, signed=kind == 'extra')}"
    return limit, reached, wanted if aim["met"] else f"{wanted}, **missed**"


def rows_with_aims(figures: list[Figure]) -> list[str]:
    """A table row for each aim of each figure."""
    rows = []
    for figure in figures:
        for aim in figure["aims"]:
            limit, reached, wanted = aim_cells(figure, aim)
            side = "" if aim["side"] == "penstock" else f" ({aim['side']})"
            ours = amount(figure, figure["medians"][aim["side"]])
            rows.append(f"| {figure['workload']}{side} | {ours} | {limit} | {reached} | {wanted} |")
    return rows


def aims_table(figures: list[Figure]) -> str:
    """Every figure that has an aim."""
    head = "| workload | median | limit, same run | reached | aim |\n|---|---|---|---|---|\n"
    return head + "\n".join(rows_with_aims(figures)) + "\n"


def beside_table(figures: list[Figure]) -> str:
    """All sides of the figures that have no aim, the heaps of C aside."""
    lines = ["| workload | medians |", "|---|---|"]
    for figure in figures:
        if not figure["aims"] and "binary heap" not in figure["medians"]:
            medians = figure["medians"].items()
            sides = (f"{name}: {amount(figure, value)}" for name, value in medians)
            lines.append(f"| {figure['workload']} | {' · '.join(sides)} |")
    return "\n".join(lines) + "\n"


def environment(name: str) -> str:
    """One line: the file, its machine, its warnings."""
    contents = load(name)
    e = contents["environment"]
    path = f"[`{name}.json`](../bench/results/{name}.json)"
    text = (
        f"{path}: {e['processor']}, {e['memory']}, {e['kernel']}, {e['libc']}, {e['python']}, "
        f"journal on {e['journal on'].split(' ')[0]}, load {e['load']}."
    )
    return text + "".join(f" Warning: {warning}." for warning in contents["warnings"]) + "\n"


def with_spark(name: str) -> list[Figure]:
    """The figures of Spark jobs of a result file."""
    return [f for f in figures_of(name) if SPARK_WORKLOAD.match(f["workload"])]


def without_spark(name: str) -> list[Figure]:
    """All other figures of a result file."""
    return [f for f in figures_of(name) if not SPARK_WORKLOAD.match(f["workload"])]


def complete_block() -> str:
    """The complete run, but for the Spark jobs, which have runs of more rounds."""
    figures = without_spark(COMPLETE)
    return "\n".join((environment(COMPLETE), aims_table(figures), beside_table(figures)))


def spark_block() -> str:
    """The runs of the Spark jobs."""
    return "\n".join(environment(name) + "\n" + aims_table(with_spark(name)) for name in SPARK)


def other_machine_block() -> str:
    """The run on another machine."""
    return environment(OTHER_MACHINE) + "\n" + aims_table(figures_of(OTHER_MACHINE))


def heap_block() -> str:
    """The priority index of the engine and a binary heap, operation by operation."""
    lines = ["| operation | depth | priority index | binary heap |", "|---|---|---|---|"]
    for figure in figures_of(COMPLETE):
        if "binary heap" not in figure["medians"]:
            continue
        depth = re.findall(r"[\d,]+", figure["workload"])[0]
        for note in figure["notes"]:
            operation, tree, binary = re.findall(r"^\w+|[\d.]+ [µn]s", note)
            lines.append(f"| {operation} | {depth} | {tree} | {binary} |")
    return "\n".join(lines) + "\n"


def worst(workload: str) -> Figure:
    """The figure of that workload; of the Spark runs the one with the lowest rate."""
    names = SPARK if SPARK_WORKLOAD.match(workload) else (COMPLETE,)
    found = [f for name in names for f in figures_of(name) if f["workload"] == workload]
    return min(found, key=lambda f: float(f["aims"][0]["value"]))


def readme_block() -> str:
    """Five figures."""
    lines = ["| operation | time | limit, same run | ratio | aim |", "|---|---|---|---|---|"]
    for workload, label in README_ROWS:
        figure = worst(workload)
        cells = " | ".join(aim_cells(figure, figure["aims"][0]))
        lines.append(f"| {label} | {duration(figure['medians']['penstock'])} | {cells} |")
    return "\n".join(lines) + "\n"


def missed_block() -> str:
    """Every aim that a shown run missed; an aim that one of two runs missed is there once a run."""
    figures = without_spark(COMPLETE)
    missed = [row for row in rows_with_aims(figures) if "**missed**" in row]
    for name in SPARK:
        missed += [row for row in rows_with_aims(with_spark(name)) if "**missed**" in row]
    head = "| workload | median | limit, same run | reached | aim |\n|---|---|---|---|---|\n"
    return head + "\n".join(row.replace(", **missed**", "") for row in missed) + "\n"


BLOCKS = {
    "readme": readme_block,
    "complete": complete_block,
    "spark": spark_block,
    "other-machine": other_machine_block,
    "heap": heap_block,
    "missed": missed_block,
}


def renewed(text: str) -> str:
    """The document with every block written again."""
    return BLOCK.sub(
        lambda found: f"<!-- figures: {found[1]} -->\n\n{BLOCKS[found[1]]()}\n<!-- figures end -->",
        text,
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
        print(f"{name}: {'written' if arguments else 'stale, run tools/figures.py --write'}")
    return 1 if stale and not arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
