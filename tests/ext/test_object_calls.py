"""Object methods of the engine's connection: name spaces, versions, several definitions at once."""

from __future__ import annotations

import pytest

from penstock import QueueManager, errors

PROCESS = 103  # name space of processes, 100 + MQOT_PROCESS


def test_objects_of_other_types_live_beside_queues_of_the_same_name(qm: QueueManager) -> None:
    qm.define_object(1, "SAME", b"")
    qm.define_object(3, "SAME", b"", name_space=PROCESS)
    queue, process = qm.look_up(1, "SAME"), qm.look_up(PROCESS, "SAME")
    assert queue is not None and process is not None and queue[0] != process[0]
    assert (queue[2], process[2]) == (1, 3)
    assert qm.read_stamped(*process[:2])[4:] == (PROCESS, 0)
    assert qm.look_up(PROCESS, "OTHER") is None


def test_instances_of_one_name_are_objects_of_their_own(qm: QueueManager) -> None:
    for instance in (1, 2):
        qm.define_object(7, "CLUSTERED", b"", name_space=107, instance=instance)
    found = [qm.look_up(107, "CLUSTERED", instance) for instance in (0, 1, 2)]
    assert found[0] is None and found[1] and found[2] and found[1][0] != found[2][0]
    assert qm.read_stamped(*found[2][:2])[5] == 2


def test_an_alter_with_an_old_version_is_refused_and_changes_nothing(qm: QueueManager) -> None:
    slot, generation = qm.define_object(1, "Q", b"")
    stamp = qm.read_stamped(slot, generation)[3]
    assert qm.alter_object(slot, generation, 1, "Q", b"", stamp)
    assert not qm.alter_object(slot, generation, 1, "Q", b"", stamp)
    before = qm.look_up(1, "Q")
    assert qm.alter_object(slot, generation, 1, "Q", b"", resolution=True)
    after = qm.look_up(1, "Q")
    assert before is not None and after is not None and after[3] == before[3] + 1
    qm.wake_object(slot)


def test_a_handle_ends_with_2041_when_its_queue_is_redefined_in_what_resolves_names(
    qm: QueueManager,
) -> None:
    slot, generation = qm.define_object(1, "Q", b"")
    with qm.open("Q") as opened:
        opened.put(b"x")
        qm.alter_object(slot, generation, 1, "Q", b"", resolution=True)
        with pytest.raises(errors.MQError) as failure:
            opened.put(b"y")
    assert failure.value.reason == 2041


def test_several_definitions_at_once_stop_at_the_first_that_cannot_be(qm: QueueManager) -> None:
    rows = [(1, 1, f"N{i}", 0, b"") for i in range(5)]
    assert qm.define_objects(rows) == 5
    assert qm.define_objects([]) == 0
    with pytest.raises(errors.MQError) as failure:
        qm.define_objects([(1, 1, "NEW", 0, b""), rows[2], (1, 1, "LAST", 0, b"")])
    assert failure.value.reason == 2100 and "N2" in str(failure.value)
    assert qm.look_up(1, "NEW") is not None and qm.look_up(1, "LAST") is None


def test_new_ids_differ_and_have_the_engine_s_form(qm: QueueManager) -> None:
    first, second = qm.new_id(), qm.new_id()
    assert first != second and len(first) == 24 and first.startswith(b"AMQ QM1 ")
