"""What a number of messages a second needs: the plan of docs/scale.md, from measured costs.

    python tools/scale.py            # print its tables
    python tools/scale.py --write    # write them into docs/scale.md

A *plan* divides costs by what a processor, a queue manager and a link carry. A *simulation* lets
messages come evenly while a stream takes micro-batches from its queue managers, one after the
other, and one of their hosts is away for a minute: a micro-batch is all or nothing, so the stream
waits, and catches up afterwards.
"""

from __future__ import annotations

import sys
from math import ceil
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parents[1] / "docs" / "scale.md"
BEGIN, END = "<!-- generated: {} -->\n", "<!-- end: {} -->\n"


class Costs(NamedTuple):
    """Of a persistent message of 256 bytes; microseconds of a processor."""

    put: float = 1.1  # the server receives it and puts it, durable
    tls: float = 0.5  # more, of the server, for each direction
    out: float = 0.64  # the server reads and sends it, with all columns
    spark: float = 4.7  # a stream's task, sink and share of the driver
    write_path: float = 1.34  # that two puts into one queue manager cannot do at the same time
    wire: int = 500  # bytes, all columns
    journal: int = 330  # bytes, put and get
    region: int = 664  # bytes while it waits
    trigger: float = 0.4  # seconds of a micro-batch beside its rows


class Shape(NamedTuple):
    """What it runs on."""

    processors: int = 8  # of a host
    link: float = 1.25e9  # bytes a second, each direction
    memory: float = 64 * 2.0**30  # of a host, for regions
    load: float = 0.6  # of what is possible, at most
    managers: int = 10  # of a stream, at most


def plan(rate: float, cost: Costs, shape: Shape) -> list[tuple[str, str]]:
    """What so many messages a second need."""
    one = shape.load * 1e6 / cost.write_path  # messages a second of a queue manager
    managers = ceil(rate / one)
    server = cost.put + cost.out + 2 * cost.tls
    by_processors = shape.load * shape.processors * 1e6 / server
    by_link = shape.load * shape.link / cost.wire
    of_host = min(by_processors, by_link)
    limit = "processors" if by_processors < by_link else "network"
    hosts = max(ceil(rate / of_host), ceil(managers / max(1, int(of_host / one))))
    spark = ceil(rate * cost.spark / 1e6 / shape.load)
    each = rate / hosts
    return [
        ("queue managers", f"{managers:,}, of {one:,.0f} messages a second each"),
        ("their hosts", f"{hosts:,}, of {shape.processors} processors; {limit} limits first"),
        ("processors of a host that are busy", f"{each * server / 1e6:.1f}"),
        ("network of a host, each direction", f"{each * cost.wire * 8 / 1e9:.1f} Gbit/s"),
        ("journal of a host", f"{each * cost.journal / 1e6:,.0f} MB/s"),
        ("processors of Spark", f"{spark:,}"),
        ("streams", f"{ceil(managers / shape.managers):,}, over up to {shape.managers} each"),
        (
            f"until {shape.memory / 2**30:.0f} GiB of regions on each host are full without Spark",
            f"{shape.memory / cost.region / each:.0f} s",
        ),
    ]


class Seen(NamedTuple):
    """What a simulation has seen."""

    usual: float  # seconds from a message's put to the end of its micro-batch, median
    longest: float
    backlog: int  # messages of one queue manager, most
    caught_up: float  # seconds behind the return of the host


def simulate(
    rate: float, managers: int, processors: float, cost: Costs, away: tuple[float, float]
) -> Seen:
    """A stream over so many queue managers, of which one is away for a while.

    Args:
        rate: Messages a second of all of them.
        managers: Their number.
        processors: Of Spark.
        cost: The costs.
        away: From when to when, in seconds, one of them cannot be reached.
    """
    now, taken = 0.0, 0.0  # taken: all messages that came before this moment
    ages: list[float] = []
    backlog, caught_up = 0.0, 0.0
    usual = cost.trigger / (1 - rate * cost.spark / 1e6 / processors)
    while now < away[1] + 600:
        if away[0] <= now < away[1]:
            now = away[1]
        rows = rate * (now - taken)
        backlog = max(backlog, rows / managers)
        end = now + cost.trigger + rows * cost.spark / 1e6 / processors
        if rows:
            ages.append(end - taken)  # of its oldest row
        if now >= away[1] and not caught_up and now - taken < 2 * usual:
            caught_up = now - away[1]
        taken, now = now, end
    return Seen(sorted(ages)[len(ages) // 2], max(ages), int(backlog), caught_up)


def failure(rate: float, cost: Costs, shape: Shape) -> list[tuple[str, str]]:
    """One stream at its size, and one of its hosts away for a minute."""
    managers = min(shape.managers, ceil(rate * cost.write_path / 1e6 / shape.load))
    own = managers * shape.load * 1e6 / cost.write_path
    own = min(own, rate)
    processors = own * cost.spark / 1e6 / shape.load
    seen = simulate(own, managers, processors, cost, (300.0, 360.0))
    return [
        ("stream", f"{managers} queue managers, {own:,.0f} messages a second"),
        ("the oldest row of a micro-batch at its end, usually", f"{seen.usual:.1f} s"),
        ("the same, at most", f"{seen.longest:.0f} s"),
        ("messages that waited on one queue manager, at most", f"{seen.backlog:,}"),
        ("back in its usual rhythm after", f"{seen.caught_up:.0f} s"),
    ]


def tables() -> dict[str, str]:
    """The generated blocks of the page."""
    cost, shape = Costs(), Shape()
    found = {}
    for name, rate in (("1M", 1e6), ("100M", 1e8)):
        rows = plan(rate, cost, shape)
        found[f"plan {name}"] = _table(rows)
    found["failure"] = _table(failure(1e8, cost, shape))
    return found


def _table(rows: list[tuple[str, str]]) -> str:
    lines = ["| what | how much |", "|---|---|", *(f"| {what} | {much} |" for what, much in rows)]
    return "\n".join(lines) + "\n"


def written(page: str) -> str:
    """The page with the blocks as they are now."""
    for name, text in tables().items():
        begin, end = BEGIN.format(name), END.format(name)
        before, _, rest = page.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise SystemExit(f"{PAGE}: no block {name}")
        page = f"{before}{begin}\n{text}\n{end}{after}"
    return page


def main() -> None:
    """Prints or writes the tables."""
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
        return
    for name, text in tables().items():
        print(f"{name}\n\n{text}")


if __name__ == "__main__":
    main()
