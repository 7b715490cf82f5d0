"""Runs the benchmarks: builds the limits and the C programs, then pytest over this folder.

    python bench/run.py                 everything, a result file in bench/results
    python bench/run.py --quick         small counts, checks results only, no result file
    python bench/run.py bench_wait.py   some files
    python bench/run.py -k "ping_pong"  further options go to pytest

The exit status shows whether all results were right. A figure that misses its aim is printed as
missed and does not change the status.
"""

from __future__ import annotations

import argparse
import compileall
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent
PACKAGE = BENCH.parent / "python" / "penstock"


def main(arguments: list[str]) -> int:
    """Runs what the arguments name; 0 when every result was right."""
    parser = argparse.ArgumentParser(prog="bench/run.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small counts, no result file")
    parser.add_argument("--results", type=Path, default=BENCH / "results", metavar="DIRECTORY")
    known, others = parser.parse_known_args(arguments)
    for folder in (BENCH, PACKAGE):  # as pip does: short-lived processes must not compile it
        compileall.compile_dir(folder, quiet=1)
    files = [str(BENCH / name) for name in others if name.endswith(".py")]
    options = [text for text in others if not text.endswith(".py")]
    options += ["-c", str(BENCH / "pytest.ini"), "--rootdir", str(BENCH)]
    options += ["--quick"] if known.quick else ["--results", str(known.results)]
    return int(pytest.main([*options, *(files or [str(BENCH)])]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
