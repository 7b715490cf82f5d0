"""The third witness of a kill storm: the independent reader on the copy that storm.c kept.

    python tests/crash/second_reader.py PREFIX

PREFIX-copy is the queue manager's directory, PREFIX-found.txt what the core's recovery found in it:
queue, id and length of each message in delivery order. Ends with status 1 when the reader sees
anything else, or damage.
"""

from __future__ import annotations

import struct
import sys
from pathlib import Path

from penstock.journal import QueueManagerFiles


def main(prefix: str) -> int:
    files = QueueManagerFiles(Path(prefix + "-copy"))
    found = Path(prefix + "-found.txt").read_text().splitlines()
    state = files.replay()
    seen = []
    for queue in ("A", "B"):
        for m in state.messages(queue):
            number = struct.unpack_from("<Q", m.descriptor().correl_id)[0]
            body = m.body()
            if struct.unpack_from("<Q", body)[0] != number:
                print(f"message {number} on {queue} has another message's body", file=sys.stderr)
                return 1
            seen.append(f"{queue} {number} {len(body)}")
    damage = [finding for finding in files.verify() if finding.severity == "damage"]
    if seen != found or damage:
        unseen, unknown = set(found) - set(seen), set(seen) - set(found)
        text = f"{len(unseen)} not seen, {len(unknown)} unknown, {len(damage)} findings of damage"
        print(f"T7 FAILED (second reader): {text}", file=sys.stderr)
        return 1
    print(f"second reader: {len(seen)} persistent messages, as recovered")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
