"""Dynamic queues through the engine's handles: MQCLOSE Options, Table 74, as Python meets it."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

import penstock
from penstock import QueueManager, errors
from penstock.objects.codec import encode

DEFTYPE = 7
PERMANENT, TEMPORARY = encode({DEFTYPE: 2}), encode({DEFTYPE: 3})
ALL = 2 | 8 | 16  # input, browse, output
DELETE, PURGE = 1, 2

Run = Callable[..., "CompletedProcess[str]"]


def exists(qm: QueueManager, name: str) -> bool:
    return qm.look_up(1, name) is not None


def test_a_temporary_queue_lives_as_long_as_the_handle_that_made_it(qm: QueueManager) -> None:
    for how in (0, DELETE, PURGE):
        made = qm.open_new("T", TEMPORARY, ALL)
        other = qm.open("T")
        made.put(b"hello")
        assert other.get().data == b"hello"
        for refused in (DELETE, PURGE):
            with pytest.raises(errors.MQError) as failure:
                other.shut(refused)
            assert failure.value.reason == 2045 and not other.closed
        made.shut(how)
        assert made.closed and not exists(qm, "T")
        with pytest.raises(errors.MQError) as failure:
            other.get()
        assert failure.value.reason == 2052
        other.close()


def test_a_refused_deletion_leaves_the_handle_open_and_usable(qm: QueueManager) -> None:
    made = qm.open_new("P", PERMANENT, ALL)
    made.put(b"stays", persistent=True)
    for _ in range(2):
        with pytest.raises(errors.MQError) as failure:
            made.shut(DELETE)
        assert failure.value.reason == 2055 and not made.closed
    assert made.get().data == b"stays"
    made.put(b"purged")
    made.shut(PURGE)
    made.shut(DELETE)  # closing a closed handle does nothing
    assert made.closed and not exists(qm, "P")


def test_an_unknown_option_is_refused_and_the_handle_stays_open(qm: QueueManager) -> None:
    made = qm.open_new("P", PERMANENT, ALL)
    with pytest.raises(errors.MQError) as failure:
        made.shut(7)
    assert failure.value.reason == 2046
    made.put(b"x")
    made.shut(PURGE)


def test_a_name_that_exists_and_a_definition_that_is_not_dynamic_are_refused(
    qm: QueueManager,
) -> None:
    qm.define("QLOCAL", "Q")
    for name, definition, reason in (("Q", TEMPORARY, 2100), ("R", b"", 2068)):
        with pytest.raises(errors.MQError) as failure:
            qm.open_new(name, definition, ALL)
        assert failure.value.reason == reason
    assert not exists(qm, "R")


def test_closing_the_connection_deletes_its_temporary_queues_alone(
    qm: QueueManager, home: object
) -> None:
    second = penstock.connect("QM1", qm.path.parent)
    handles = [second.open_new("T", TEMPORARY, ALL), second.open_new("P", PERMANENT, ALL)]
    handles[1].put(b"kept")
    handles[0].put(b"gone")
    second.close()
    # one process has one attachment: the handles were nevertheless closed with their connection
    assert not exists(qm, "T") and exists(qm, "P")
    with qm.open("P") as queue:
        assert queue.get().data == b"kept"


def test_a_handle_that_is_forgotten_takes_its_temporary_queue_with_it(qm: QueueManager) -> None:
    made = qm.open_new("T", TEMPORARY, ALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del made
        gc.collect()
    assert not exists(qm, "T")


DIES = """
import os, signal, sys
import penstock
from penstock.objects.codec import encode
qm = penstock.connect("QM1", sys.argv[1])
handles = [qm.open_new("T", encode({7: 3}), 18), qm.open_new("P", encode({7: 2}), 18)]
if sys.argv[2] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("how", ["exit", "kill"])
def test_temporary_queues_of_a_process_end_with_it(
    qm: QueueManager, run_python: Run, how: str
) -> None:
    run_python(DIES, how)
    qm.maintain()
    assert not exists(qm, "T") and exists(qm, "P")
