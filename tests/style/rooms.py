"""The rooms of the core: folders of csrc, lowest first, and the ties between them and inside them.

The order is that of the table in csrc/README.md, nothing else. A folder may use those above it in
the table. Ties are looked for in two ways: includes in the sources, and symbols that one object
file defines and another one does not (``nm``), so that a call without an include is seen, too.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from c_source import includes

Graph = dict[str, dict[str, set[str]]]  # from -> to -> by which names

_ROW = re.compile(r"^\| *`(?:csrc/)?([\w/]+?)/?` *\|", re.MULTILINE)


def order(readme: str) -> list[str]:
    """The rooms, lowest first, as the table of csrc/README.md lists them."""
    return _ROW.findall(readme)


@dataclass(frozen=True)
class Core:
    """A tree of sources with its rooms."""

    root: Path
    rooms: list[str]

    def room(self, path: str) -> str:
        """The room of a path below the root, or of a header as it is included."""
        folder = path.rpartition("/")[0]
        return f"include/{folder}" if f"include/{folder}" in self.rooms else folder

    def files(self) -> list[str]:
        """Paths of all sources below the root."""
        found = [p for p in self.root.rglob("*") if p.suffix in (".c", ".h", ".def")]
        return sorted(str(p.relative_to(self.root)) for p in found)

    def include_graph(self) -> Graph:
        """Which file includes which."""
        graph: Graph = defaultdict(lambda: defaultdict(set))
        for name in self.files():
            for header in includes((self.root / name).read_text()):
                there = header if (self.root / header).exists() else f"include/{header}"
                graph[name][there].add(header)
        return graph

    def upward(self, graph: Graph) -> list[str]:
        """Ties from a room to one that stands above it."""
        rank = {room: i for i, room in enumerate(self.rooms)}
        return [
            f"{name} -> {other} ({', '.join(sorted(by))})"
            for name, others in sorted(graph.items())
            for other, by in sorted(others.items())
            if rank.get(self.room(other), len(rank)) > rank.get(self.room(name), -1)
        ]


def symbol_graph(objects: Path, names: list[str]) -> Graph:
    """Which object file uses symbols of which; names are those of the sources without ending."""
    defined: dict[str, str] = {}
    used: dict[str, set[str]] = {}
    for name in names:
        listing = subprocess.run(
            ["nm", str(objects / f"{name}.o")], capture_output=True, text=True, check=True
        ).stdout
        rows = [line.split() for line in listing.splitlines()]
        defined.update({row[-1]: name for row in rows if row[-2] in "TDBRCVW"})
        used[name] = {row[-1] for row in rows if row[-2] == "U"}
    graph: Graph = defaultdict(lambda: defaultdict(set))
    for name, symbols in used.items():
        for symbol in symbols:
            if symbol in defined and defined[symbol] != name:
                graph[name][defined[symbol]].add(symbol)
    return graph


def circles(graph: Graph) -> list[str]:
    """Groups of files each of which reaches all others of its group, with what ties them."""
    reach = {name: _reachable(graph, name) for name in list(graph)}
    groups = {
        frozenset([name, *(o for o in others if name in reach.get(o, ()))])
        for name, others in reach.items()
    }
    found = []
    for group in groups:
        if len(group) > 1:
            ties = [
                f"{a} -> {b} ({', '.join(sorted(graph[a][b])[:3])})"
                for a in sorted(group)
                for b in sorted(graph.get(a, ()))
                if b in group
            ]
            found.append("; ".join(ties))
    return sorted(found)


def _reachable(graph: Graph, start: str) -> set[str]:
    seen: set[str] = set()
    rest = [start]
    while rest:
        for other in graph.get(rest.pop(), ()):
            if other not in seen:
                seen.add(other)
                rest.append(other)
    return seen
