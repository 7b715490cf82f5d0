"""T11: the second reader finds in sampled disk states what the core's recovery found in them.

    python tests/crash/t11.py RUN_T3 [--images 10000] [--seed 1]

RUN_T3 is the built program of layer T3, which writes images of disk states after power cuts (torn,
zeroed and missing sectors, lost directory entries) with what the core found in each. They are read
in batches here. Ends with status 1 at the first disagreement, whose image is kept.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from penstock.journal import QueueManagerFiles

BATCH_STATES = 20_000  # of T3, one batch
EVERY = 20  # states a sampled one


def seen_by_reader(image: Path) -> list[str]:
    """The lines that run_t3 writes, from the second reader."""
    state = QueueManagerFiles(image).replay()
    lines = []
    for queue in sorted(state.queue_names()):
        for m in state.messages(queue):
            d = m.descriptor()
            length = len(m.body())
            lines.append(f"{queue} {d.report} {m.priority} {m.placement} {length}")
    for unit in sorted(state.prepared, key=lambda unit: unit.xid.bqual):
        number = unit.xid.bqual[0]
        lines.append(f"prepared {number} {int.from_bytes(unit.xid.gtrid, 'little')}")
        for call, m in state.prepared_messages(unit):
            d = m.descriptor()
            how = "PUT" if call == "PUT" else "GET"
            row = f"{m.queue} {d.report} {m.priority} {m.placement} {len(m.body())}"
            lines.append(f"prepared {number} {how} {row}")
    return lines


def compare(folder: Path) -> int:
    """The number of images that agree; SystemExit with the image's path at a disagreement."""
    count = 0
    for found in folder.glob("*.txt"):
        core = found.read_text().splitlines()
        by_queue = sorted(core, key=lambda line: line.split()[0])
        reader = seen_by_reader(found.with_suffix(""))
        if reader != by_queue:
            print(f"T11 FAILED: {found.with_suffix('')}", file=sys.stderr)
            print("core:   ", by_queue, "\nreader: ", reader, file=sys.stderr)
            raise SystemExit(1)
        count += 1
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    done, seed = 0, options.seed
    while done < options.images:
        folder = Path(tempfile.mkdtemp(prefix="penstock-t11-"))
        command = [str(options.program), "--count", str(BATCH_STATES), "--seed", str(seed)]
        command += ["--sample", str(folder), "--every", str(EVERY)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        done += compare(folder)
        shutil.rmtree(folder)
        seed += 1
    print(f"T11: {done} images read alike by the core and the second reader, seed {options.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
