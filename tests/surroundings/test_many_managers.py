"""Many queue managers in one process."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import penstock as library

COUNT = 64


def test_a_process_is_connected_to_64_queue_managers_at_once(tmp_path: Path) -> None:
    names = [f"QM{number}" for number in range(COUNT)]
    with ExitStack() as all_of_them:
        queues = []
        for name in names:
            library.create(name, tmp_path, segment_size=131072, journal_limit=64 << 20)
            manager = all_of_them.enter_context(library.connect(name, tmp_path))
            queues.append(all_of_them.enter_context(manager.queue("Q")))
        for queue, name in zip(queues, names, strict=True):
            queue.put(name.encode(), persistent=True)
        pid = os.fork()
        if pid == 0:  # the child owns none of them, and none of them harms it
            refused = 0
            for queue in queues:
                try:
                    queue.put(b"of a child")
                except library.MQError as error:
                    refused += error.reason == 2012
            os._exit(refused)
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == COUNT
        assert [queue.get().data.decode() for queue in queues] == names
        assert all(queue.depth == 0 for queue in queues)
