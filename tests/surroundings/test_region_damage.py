"""Stray words in the shared region harm no program and no message that was acknowledged (item 22).

Each claim about one word is a C test (`tests/c/region/test_area.c`, `test_mutex_words.c`,
`tests/c/recovery/test_rehearsal.c`); the layers `make region-fuzz` and `make region-damage` try
words at random, of which a few rounds are run here.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import penstock

PROGRAM = Path(__file__).parents[1] / "crash" / "region_damage.py"
SECONDS = 300.0


def test_random_damage_ends_no_program_refuses_no_start_and_loses_nothing() -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "--rounds", "12", "--seed", "7"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "12 rounds" in done.stdout


def test_checkpoints_of_a_healthy_queue_manager_are_never_refused(tmp_path: Path) -> None:
    with penstock.connect("QM", tmp_path, create=True) as qm:
        qm.define("qlocal", "EMPTY", descr="no message")
        qm.define("qalias", "ALIAS", target="EMPTY")
        queue = qm.queue("Q")
        for round_ in range(30):
            queue.put(b"x" * (100 + 4000 * (round_ % 3)), persistent=True, priority=round_ % 10)
            queue.put(b"expires", persistent=True, expiry=0.1)
            queue.put_batch([b"batch"] * 5)
            with qm.transaction():
                queue.put(b"unit", persistent=True)
                queue.get(wait=0)
            if round_ % 5 == 0:
                qm.alter("qlocal", "EMPTY", descr=f"{round_}")
                queue.put(b"prepared", persistent=True, syncpoint=True)
                qm.prepare(penstock.Xid(1, b"%d" % round_, b"x"))
            qm.checkpoint()
            qm.maintain()
        time.sleep(0.2)  # what expires has expired, removed or not
        present = [message.msg_id for message in queue.browse()]
    with penstock.connect("QM", tmp_path) as qm:
        assert len(qm.prepared_list()) == 6
        with qm.queue("Q") as queue:
            assert [message.msg_id for message in queue.browse()] == present
        for unit in qm.prepared_list():
            qm.commit_prepared(unit.xid)
        qm.checkpoint()
