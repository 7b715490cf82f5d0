"""Compares two checkouts: their benchmarks run in turn, A B A B ..., figure by figure.

    python bench/compare.py BASE NEW --rounds 9 bench_put_get.py bench_commit.py -- --at-most 9

Each checkout runs its own benchmarks against its own build, which must stand in its python folder
(``python setup.py build_ext --inplace``). What follows ``--`` goes to ``bench/run.py`` of both. For
each workload the median time of penstock's side is compared round by round; the table has the
median of the ratios NEW / BASE, the least and the greatest. A ratio above the bound is marked and
makes the exit status 1.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

Medians = dict[str, float]  # workload -> seconds for one operation


def run(checkout: Path, arguments: list[str]) -> Medians:
    """One run of a checkout's benchmarks."""
    with tempfile.TemporaryDirectory() as results:
        command = [sys.executable, str(checkout / "bench" / "run.py"), "--results", results]
        environment = os.environ | {"PYTHONPATH": str(checkout / "python")}
        done = subprocess.run(
            [*command, *arguments],
            cwd=checkout,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        files = list(Path(results).glob("*.json"))
        if done.returncode != 0 or len(files) != 1:
            raise SystemExit(f"{checkout}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
        figures = json.loads(files[0].read_text())["figures"]
    return {f["workload"]: f["medians"]["penstock"] for f in figures if "penstock" in f["medians"]}


def ratios(base: list[Medians], new: list[Medians]) -> dict[str, list[float]]:
    """NEW / BASE of each workload that both have, a value a round."""
    common = [name for name in base[0] if name in new[0]]
    return {name: [n[name] / b[name] for b, n in zip(base, new, strict=True)] for name in common}


def table(found: dict[str, list[float]], bound: float) -> str:
    """The ratios as text, those above the bound marked."""
    lines = [f"{'workload':<60} {'median':>7} {'least':>7} {'most':>7}"]
    for name, values in found.items():
        middle = statistics.median(values)
        mark = "  ABOVE THE BOUND" if middle > bound else ""
        lines.append(f"{name:<60} {middle:7.3f} {min(values):7.3f} {max(values):7.3f}{mark}")
    return "\n".join(lines)


def main() -> int:
    """Runs both in turn and prints the table; 1 when a median is above the bound."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("base", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--bound", type=float, default=1.03, help="of the median of the ratios")
    known, arguments = parser.parse_known_args()
    arguments = [text for text in arguments if text != "--"]
    base, new = [], []
    for number in range(1, known.rounds + 1):
        base.append(run(known.base.resolve(), arguments))
        new.append(run(known.new.resolve(), arguments))
        print(f"round {number} of {known.rounds}", file=sys.stderr, flush=True)
    found = ratios(base, new)
    print(table(found, known.bound))
    return int(any(statistics.median(values) > known.bound for values in found.values()))


if __name__ == "__main__":
    sys.exit(main())
