"""An audit of the journal: how many messages each queue got, without starting the queue manager.

    python examples/journal_audit.py

prints

    ORDERS: 3 puts, 1 gets
"""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import penstock
from penstock.journal.scan import list_segments, scan


def main() -> None:
    """Works on one queue, then reads the journal of the ended queue manager."""
    with tempfile.TemporaryDirectory() as home:
        with penstock.connect("AUDIT", home, create=True) as qm, qm.queue("ORDERS") as orders:
            for body in (b"bolts", b"nuts", b"washers"):
                orders.put(body)
            orders.get()
        counts: Counter[tuple[bytes, bytes]] = Counter()
        for segment in list_segments(Path(home) / "AUDIT"):
            for batch in scan(segment, ["event", "queue"]):
                columns = batch.columns
                counts.update(zip(columns["queue"], columns["event"], strict=True))
        puts, gets = counts[b"ORDERS", b"PUT"], counts[b"ORDERS", b"GET"]
        print(f"ORDERS: {puts} puts, {gets} gets")


if __name__ == "__main__":
    main()
