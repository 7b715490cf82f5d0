"""Measurements as rows of NumPy arrays, between processes: no Python object for each message.

Sensors put structured rows, many in a call; each row is a message. Two workers take batches of
them, look at all bodies of a batch as one array, and put one summary a batch, in the unit of work
that takes the rows. One worker is killed in the middle: what it had taken goes to the other one,
and the sums are exact.

    python examples/numpy_batches.py

prints

    20000 rows of 4 sensors, each counted once; mean of sensor 3: 30.0
"""

from __future__ import annotations

import multiprocessing
import os
import signal

import numpy as np

import penstock

ROW = np.dtype([("sensor", "<u4"), ("step", "<u4"), ("value", "<f8")])
SENSORS, ROWS = 4, 5_000  # rows of each sensor
BATCH = 500


def measure(queue: penstock.Queue, sensor: int) -> None:
    """Puts the rows of a sensor."""
    rows = np.zeros(ROWS, ROW)
    rows["sensor"] = sensor
    rows["step"] = np.arange(ROWS)
    rows["value"] = 10.0 * sensor + np.where(rows["step"] % 2 == 0, 0.5, -0.5)
    offsets = np.arange(ROWS + 1, dtype=np.int64) * ROW.itemsize
    queue.put_batch((rows.view(np.uint8), offsets))


def worker(name: str, dies: bool) -> None:
    """Sums up batches until none comes for three seconds; what a killed one had is back then."""
    with (
        penstock.connect(name) as qm,
        qm.open("ROWS") as source,
        qm.open("SUMS") as sums,
    ):
        while True:
            with qm.transaction():
                batch = source.get_batch(BATCH, wait=3)
                if len(batch) == 0:
                    return
                rows = batch.bodies.view(ROW)
                summary = np.zeros((SENSORS, 2))
                np.add.at(summary[:, 0], rows["sensor"], 1)
                np.add.at(summary[:, 1], rows["sensor"], rows["value"])
                sums.put(summary.tobytes())
                if dies and sums.depth > 3:
                    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Puts all rows, starts the workers, adds up what they found."""
    with (
        penstock.connect("ROWS", create=True, max_uncommitted_messages=BATCH + 1) as qm,
        qm.queue("ROWS", maxdepth=SENSORS * ROWS, defpsist=True) as rows,
        qm.queue("SUMS", defpsist=True) as sums,
    ):
        for sensor in range(SENSORS):
            measure(rows, sensor)
        context = multiprocessing.get_context("spawn")
        workers = [context.Process(target=worker, args=("ROWS", dies)) for dies in (True, False)]
        for process in workers:
            process.start()
        for process in workers:
            process.join()
        total = np.zeros((SENSORS, 2))
        for message in sums.get_batch(SENSORS * ROWS):
            total += np.frombuffer(message.data).reshape(SENSORS, 2)
        counts, mean = total[:, 0].astype(int).tolist(), total[3, 1] / total[3, 0]
        assert counts == [ROWS] * SENSORS, counts
        print(
            f"{sum(counts)} rows of {SENSORS} sensors, each counted once; mean of sensor 3: {mean}"
        )


if __name__ == "__main__":
    main()
