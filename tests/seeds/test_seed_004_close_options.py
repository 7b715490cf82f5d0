"""Seed 004 (004_35fe940bebd7fb0d.txt): the options of MQCLOSE, and Table 74.

One test a sentence that states a rule, numbered in the order of the document, and one a cell of the
table. The lists after "must be specified for", "for a temporary dynamic queue" and "either of the
following" are lost in our copy; their items are known and are tests of their own.

Two sentences are not taken by letter. "In all other cases the call fails" with 2045 means the
wrong type or the wrong handle: a permanent dynamic queue that is busy or not empty gives 2055, so
each of the two has a test for 2045 and one for 2055. "Messages deleted; queue deleted if no pending
updates" is read as the text beside the table says it: no deletion, no purge.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import handles
import pytest
from handles import DELETE, DONE, NONE, NOT_EMPTY, NOT_VALID, PURGE, Handle

from penstock import mqi
from qmgr_fixture import FAILED, QmgrFixture

ALL = (NONE, DELETE, PURGE)
DELETED = mqi.MQRC_Q_DELETED


def kept_open(qmgr: QmgrFixture, handle: Handle, options: int, answer: tuple[int, int]) -> None:
    """The close fails so, the object is retained, and the handle can be closed with NONE."""
    assert qmgr.close(handle.hobj, options) == answer
    assert handle.retained(qmgr)
    assert qmgr.close(handle.hobj, NONE) == DONE


def gone_with_messages(qmgr: QmgrFixture, handle: Handle, options: int) -> None:
    """The close works and the queue is gone; one made under its name is empty."""
    assert qmgr.close(handle.hobj, options) == DONE
    assert not handle.retained(qmgr)
    qmgr.define("QLOCAL", handle.queue)
    assert qmgr.depth(handle.queue) == 0


# ---- what the parameter is ----


def test_01_the_option_decides_how_the_object_is_closed(qmgr: QmgrFixture) -> None:
    """Seed 004, 1: what the parameter controls."""
    for options, there in ((NONE, True), (DELETE, False), (PURGE, False)):
        handle = handles.permanent(qmgr)
        assert qmgr.close(handle.hobj, options) == DONE
        assert handle.hobj == mqi.MQHO_UNUSABLE_HOBJ
        assert handle.retained(qmgr) == there


def test_02_only_permanent_dynamic_queues_close_in_more_than_one_way(qmgr: QmgrFixture) -> None:
    """Seed 004, 2: only permanent dynamic queues may be retained or deleted."""

    def outcomes(make: Callable[[], Handle]) -> set[bool]:
        found = set()
        for options in ALL:
            handle = make()
            if qmgr.close(handle.hobj, options) == DONE:
                found.add(handle.retained(qmgr))
        return found

    assert outcomes(lambda: handles.permanent(qmgr)) == {True, False}
    assert outcomes(lambda: handles.predefined(qmgr)) == {True}
    assert outcomes(lambda: handles.temporary(qmgr)) == {False}
    assert outcomes(lambda: handles.temporary_of_others(qmgr)[0]) == {True}
    assert outcomes(lambda: handles.distribution_list(qmgr)[0]) == {True}


def test_03_their_definition_type_says_permanent_dynamic(qmgr: QmgrFixture) -> None:
    """Seed 004, 3: DefinitionType of the queues that can be closed in more than one way."""
    types = {
        handles.permanent(qmgr).queue: mqi.MQQDT_PERMANENT_DYNAMIC,
        handles.temporary(qmgr).queue: mqi.MQQDT_TEMPORARY_DYNAMIC,
        handles.predefined(qmgr).queue: mqi.MQQDT_PREDEFINED,
    }
    for name, expected in types.items():
        assert qmgr.attribute(name, mqi.MQIA_DEFINITION_TYPE) == expected, name


def test_05_exactly_one_option(qmgr: QmgrFixture) -> None:
    """Seed 004, 5: one option and only one."""
    wrong = [a | b for a, b in itertools.combinations((1, 2, 4, 8, 32), 2)]
    wrong += [7, 16, 64, 128, 1 << 30, -1, -(2**31)]
    for make in (handles.predefined, handles.permanent, handles.temporary):
        handle = make(qmgr)
        for options in wrong:
            assert qmgr.close(handle.hobj, options) == (FAILED, mqi.MQRC_OPTIONS_ERROR), options
        assert handle.retained(qmgr)
        assert qmgr.close(handle.hobj, NONE) == DONE


# ---- MQCO_NONE ----


def test_06_none_does_nothing_else(qmgr: QmgrFixture) -> None:
    """Seed 004, 6: MQCO_NONE needs no further processing."""
    handle = handles.predefined(qmgr)
    qmgr.send(handle.hobj, b"committed")
    qmgr.send(handle.hobj, b"pending", syncpoint=True)
    assert qmgr.close(handle.hobj, NONE) == DONE
    qmgr.commit()
    assert qmgr.bodies(handle.queue) == [b"committed", b"pending"]
    assert mqi.MQCO_NONE == mqi.MQCO_IMMEDIATE == 0


def test_07a_none_is_for_objects_that_are_no_queues(qmgr: QmgrFixture) -> None:
    """Seed 004, 7a: NONE must be given for objects other than queues."""
    for handle in handles.other_objects(qmgr):
        for options in (DELETE, PURGE):
            assert qmgr.close(handle.hobj, options) == NOT_VALID
        assert qmgr.close(handle.hobj, NONE) == DONE


def test_07b_none_is_for_predefined_queues(qmgr: QmgrFixture) -> None:
    """Seed 004, 7b: NONE must be given for predefined queues."""
    handle = handles.predefined(qmgr)
    for options in (DELETE, PURGE):
        assert qmgr.close(handle.hobj, options) == NOT_VALID
    assert qmgr.close(handle.hobj, NONE) == DONE


def test_07c_none_is_for_temporary_queues_of_others(qmgr: QmgrFixture) -> None:
    """Seed 004, 7c: NONE must be given for a temporary dynamic queue that another handle made."""
    for hconn in (qmgr.hconn, qmgr.other()):
        handle, _ = handles.temporary_of_others(qmgr, hconn)
        for options in (DELETE, PURGE):
            assert qmgr.close(handle.hobj, options, hconn) == NOT_VALID
        assert qmgr.close(handle.hobj, NONE, hconn) == DONE


def test_07d_none_is_for_distribution_lists(qmgr: QmgrFixture) -> None:
    """Seed 004, 7d: NONE must be given for distribution lists."""
    handle, _ = handles.distribution_list(qmgr)
    for options in (DELETE, PURGE):
        assert qmgr.close(handle.hobj, options) == NOT_VALID
    assert qmgr.close(handle.hobj, NONE) == DONE


def test_08_in_these_cases_the_object_is_retained(qmgr: QmgrFixture) -> None:
    """Seed 004, 8: in all these cases the object is retained."""
    found = [*handles.other_objects(qmgr), handles.predefined(qmgr)]
    found += [handles.temporary_of_others(qmgr)[0], handles.distribution_list(qmgr)[0]]
    for handle in found:
        if handle.queue:
            qmgr.send(handle.hobj, b"stays")
        assert qmgr.close(handle.hobj, NONE) == DONE
        assert handle.retained(qmgr)
        assert not handle.queue or qmgr.depth(handle.queue) == 1


def test_09a_none_by_its_creator_deletes_a_temporary_queue(qmgr: QmgrFixture) -> None:
    """Seed 004, 9a: NONE on a temporary dynamic queue by the handle that made it."""
    handle = handles.temporary(qmgr)
    qmgr.send(handle.hobj, b"purged")
    gone_with_messages(qmgr, handle, NONE)


def test_09b_none_by_another_keeps_a_temporary_queue(qmgr: QmgrFixture) -> None:
    """Seed 004, 9b: NONE on a temporary dynamic queue by any other handle."""
    for hconn in (qmgr.hconn, qmgr.other()):
        handle, _ = handles.temporary_of_others(qmgr, hconn)
        qmgr.send(handle.hobj, b"stays", hconn=hconn)
        assert qmgr.close(handle.hobj, NONE, hconn) == DONE
        assert qmgr.depth(handle.queue) == 1


def test_10_none_keeps_a_permanent_queue(qmgr: QmgrFixture) -> None:
    """Seed 004, 10: NONE on a permanent dynamic queue."""
    handle = handles.permanent(qmgr)
    qmgr.send(handle.hobj, b"stays", mqi.MQMD(Persistence=1))
    assert qmgr.close(handle.hobj, NONE) == DONE
    qmgr.failure()
    assert qmgr.bodies(handle.queue) == [b"stays"]


def last_handle_removes(zos: QmgrFixture, options: int) -> None:
    """A logically deleted queue keeps its name until its last handle is closed with the option."""
    model = zos.model("PERMDYN", share="YES")
    name = zos.new_name("LOGICAL")
    hobj, _ = zos.dynamic(model, handles.USE, name=name)
    second, third = zos.opened(name, handles.USE), zos.opened(name, handles.USE)
    assert zos.close(hobj, DELETE) == DONE  # logically deleted
    od = mqi.MQOD(ObjectName=model, DynamicQName=name)
    in_use = (FAILED, mqi.MQRC_NAME_IN_USE)
    assert mqi.MQOPEN(zos.hconn, od, handles.USE)[1:] == in_use
    assert zos.open(name, handles.USE)[1:] == (FAILED, DELETED)
    assert zos.put(name) == (FAILED, DELETED)
    assert zos.close(second, NONE) == DONE  # not the last one
    assert mqi.MQOPEN(zos.hconn, od, handles.USE)[1:] == in_use
    assert zos.put(third) == (FAILED, DELETED)
    assert zos.close(third, options) == DONE
    hobj, _ = zos.dynamic(model, handles.USE, name=name)
    assert zos.close(hobj, DELETE) == DONE


def test_11_on_zos_none_on_the_last_handle_removes_a_deleted_queue(zos_qmgr: QmgrFixture) -> None:
    """Seed 004, 11: z/OS, NONE on the last handle of a logically deleted queue."""
    last_handle_removes(zos_qmgr, NONE)


# ---- MQCO_DELETE ----


def test_12a_delete_deletes_an_empty_permanent_queue(qmgr: QmgrFixture) -> None:
    """Seed 004, 12a: DELETE of a permanent dynamic queue without messages and pending work."""
    for make in (handles.permanent, handles.permanent_of_others):
        handle = make(qmgr)
        qmgr.send(handle.hobj)
        qmgr.take(handle.hobj)
        gone_with_messages(qmgr, handle, DELETE)
    for options in (mqi.MQOO_INQUIRE, mqi.MQOO_OUTPUT, mqi.MQOO_BROWSE, mqi.MQOO_SET):
        gone_with_messages(qmgr, handles.permanent(qmgr, options), DELETE)


def test_12b_delete_by_its_creator_deletes_a_temporary_queue(qmgr: QmgrFixture) -> None:
    """Seed 004, 12b: DELETE of the temporary dynamic queue that the handle made."""
    handle = handles.temporary(qmgr)
    qmgr.send(handle.hobj, b"purged")
    qmgr.send(handle.hobj, b"pending", syncpoint=True)
    gone_with_messages(qmgr, handle, DELETE)
    qmgr.commit()


def test_13a_delete_of_the_wrong_type_is_2045(qmgr: QmgrFixture) -> None:
    """Seed 004, 13: DELETE in all other cases; the wrong type or handle is 2045."""
    wrong_types(qmgr, DELETE)


def wrong_types(qmgr: QmgrFixture, options: int) -> None:
    found = [*handles.other_objects(qmgr), handles.predefined(qmgr)]
    found += [handles.temporary_of_others(qmgr)[0], handles.distribution_list(qmgr)[0]]
    for handle in found:
        assert qmgr.close(handle.hobj, options) == NOT_VALID


def test_13b_delete_of_a_busy_permanent_queue_is_2055(qmgr: QmgrFixture) -> None:
    """Seed 004, 13, the other half: a permanent dynamic queue that is busy or not empty is 2055."""
    handle = handles.permanent(qmgr)
    qmgr.send(handle.hobj, b"committed")
    assert qmgr.close(handle.hobj, DELETE) == NOT_EMPTY
    assert qmgr.bodies(handle.hobj) == [b"committed"]
    busy(qmgr, handle, DELETE)


def busy(qmgr: QmgrFixture, handle: Handle, options: int) -> None:
    """Uncommitted puts and gets, one's own and of others: 2055, also when the depth reads 0."""
    for name, work, hconn in handles.pending_works(qmgr, handle.queue):
        work()
        assert qmgr.close(handle.hobj, options) == NOT_EMPTY, name
        if "get" in name:
            assert qmgr.depth(handle.queue) == 0, name
        qmgr.backout(hconn)
        qmgr.drain(handle.hobj)
    assert qmgr.close(handle.hobj, options) == DONE


def test_14_and_the_object_is_not_deleted(qmgr: QmgrFixture) -> None:
    """Seed 004, 14: DELETE that fails deletes nothing."""
    nothing_deleted(qmgr, DELETE)


def nothing_deleted(qmgr: QmgrFixture, options: int) -> None:
    found = [*handles.other_objects(qmgr), handles.predefined(qmgr)]
    found += [handles.temporary_of_others(qmgr)[0], handles.distribution_list(qmgr)[0]]
    for handle in found:
        if handle.queue:
            qmgr.send(handle.hobj, b"stays")
        kept_open(qmgr, handle, options, NOT_VALID)
        assert not handle.queue or qmgr.bodies(handle.queue) == [b"stays"]
    handle = handles.permanent(qmgr)
    qmgr.send(handle.hobj, b"committed")
    qmgr.send(handle.hobj, b"pending", syncpoint=True)
    kept_open(qmgr, handle, options, NOT_EMPTY)
    qmgr.commit()
    assert qmgr.bodies(handle.queue) == [b"committed", b"pending"]


def test_15_on_zos_delete_on_the_last_handle_removes_a_deleted_queue(zos_qmgr: QmgrFixture) -> None:
    """Seed 004, 15: z/OS, DELETE on the last handle of a logically deleted queue."""
    last_handle_removes(zos_qmgr, DELETE)
    last_handle_removes(zos_qmgr, PURGE)


# ---- MQCO_DELETE_PURGE ----


def test_16a_purge_deletes_a_permanent_queue_with_its_messages(qmgr: QmgrFixture) -> None:
    """Seed 004, 16a: DELETE_PURGE of a permanent dynamic queue without pending work."""
    for make in (handles.permanent, handles.permanent_of_others):
        handle = make(qmgr)
        for value in (0, 1):
            qmgr.send(handle.hobj, b"purged", mqi.MQMD(Persistence=value))
        gone_with_messages(qmgr, handle, PURGE)
        qmgr.failure()
        assert qmgr.depth(handle.queue) == 0


def test_16b_purge_by_its_creator_deletes_a_temporary_queue(qmgr: QmgrFixture) -> None:
    """Seed 004, 16b: DELETE_PURGE of the temporary dynamic queue that the handle made."""
    handle = handles.temporary(qmgr)
    qmgr.send(handle.hobj, b"purged")
    qmgr.send(handle.hobj, b"pending", syncpoint=True)
    gone_with_messages(qmgr, handle, PURGE)
    qmgr.commit()


def test_17a_purge_of_the_wrong_type_is_2045(qmgr: QmgrFixture) -> None:
    """Seed 004, 17: DELETE_PURGE in all other cases; the wrong type or handle is 2045."""
    wrong_types(qmgr, PURGE)


def test_17b_purge_of_a_busy_permanent_queue_is_2055(qmgr: QmgrFixture) -> None:
    """Seed 004, 17, the other half: a permanent dynamic queue with pending work is 2055."""
    busy(qmgr, handles.permanent(qmgr), PURGE)


def test_18_and_the_object_is_not_deleted(qmgr: QmgrFixture) -> None:
    """Seed 004, 18: DELETE_PURGE that fails deletes nothing and purges nothing."""
    nothing_deleted(qmgr, PURGE)


# ---- Table 74 ----

RETAINED, REFUSED, GONE = "retained", "not valid", "deleted"
COLUMNS = {"NONE": NONE, "DELETE": DELETE, "DELETE_PURGE": PURGE}
TABLE = {
    "object-other-than-a-queue": (RETAINED, REFUSED, REFUSED),
    "predefined-queue": (RETAINED, REFUSED, REFUSED),
    "temporary-dynamic-queue-by-creator": (GONE, GONE, GONE),
    "temporary-dynamic-queue-by-another": (RETAINED, REFUSED, REFUSED),
    "distribution-list": (RETAINED, REFUSED, REFUSED),
}
MAKERS: dict[str, Callable[[QmgrFixture], list[Handle]]] = {
    "object-other-than-a-queue": handles.other_objects,
    "predefined-queue": lambda qmgr: [handles.predefined(qmgr)],
    "temporary-dynamic-queue-by-creator": lambda qmgr: [handles.temporary(qmgr)],
    "temporary-dynamic-queue-by-another": lambda qmgr: [handles.temporary_of_others(qmgr)[0]],
    "distribution-list": lambda qmgr: [handles.distribution_list(qmgr)[0]],
}
CELLS = [
    pytest.param(row, COLUMNS[column], effect, id=f"{row}-{column}")
    for row, effects in TABLE.items()
    for column, effect in zip(COLUMNS, effects, strict=True)
]


@pytest.mark.parametrize(("row", "options", "effect"), CELLS)
def test_19_table_74(qmgr: QmgrFixture, row: str, options: int, effect: str) -> None:
    """Seed 004, 19: Table 74, every row and column."""
    for handle in MAKERS[row](qmgr):
        answer = qmgr.close(handle.hobj, options)
        assert answer == (NOT_VALID if effect == REFUSED else DONE)
        assert handle.retained(qmgr) == (effect != GONE)
        assert (handle.hobj == mqi.MQHO_UNUSABLE_HOBJ) == (answer == DONE)


@pytest.mark.parametrize("work", ["idle", *(f"pending-{n}" for n in range(4))])
@pytest.mark.parametrize("full", [False, True], ids=["empty", "full"])
@pytest.mark.parametrize("column", COLUMNS)
def test_19_table_74_permanent_dynamic_queue(
    qmgr: QmgrFixture, column: str, full: bool, work: str
) -> None:
    """Seed 004, 19: Table 74, permanent dynamic queue: empty or not, pending work of all kinds."""
    options = COLUMNS[column]
    handle = handles.permanent(qmgr)
    owner = None
    if work != "idle":
        _, start, owner = handles.pending_works(qmgr, handle.queue)[int(work[-1])]
        start()
    if full:
        qmgr.send(handle.hobj, b"committed")
    refused = options != NONE and (work != "idle" or (full and options == DELETE))
    if refused:
        kept_open(qmgr, handle, options, NOT_EMPTY)
    else:
        assert qmgr.close(handle.hobj, options) == DONE
        assert handle.retained(qmgr) == (options == NONE)
    if owner is not None:
        qmgr.backout(owner)
    if refused or options == NONE:
        got = "get" in ("", "", "get", "get")[int(work[-1])] if work != "idle" else False
        expected = [b"pending"] * got + [b"committed"] * full
        assert qmgr.bodies(handle.queue) == expected


@pytest.mark.parametrize("column", COLUMNS)
def test_19_table_74_temporary_queue_with_pending_work(qmgr: QmgrFixture, column: str) -> None:
    """Seed 004, 19: Table 74, temporary dynamic queue by its creator with pending work."""
    for number in range(4):
        handle = handles.temporary(qmgr)
        _, start, owner = handles.pending_works(qmgr, handle.queue)[number]
        qmgr.send(handle.hobj, b"committed")
        start()
        gone_with_messages(qmgr, handle, COLUMNS[column])
        qmgr.commit(owner)
        assert qmgr.depth(handle.queue) == 0


# ---- what deletion means to others (usage notes that the z/OS sentences refer to) ----


def test_20_other_handles_of_a_deleted_queue_get_2052(qmgr: QmgrFixture) -> None:
    """Seed 004, 20: logically deleted: other handles get 2052 and can be closed with any option."""
    for options in ALL:
        for make in (handles.permanent, handles.temporary):
            handle = make(qmgr)
            second = qmgr.other()
            other = qmgr.opened(handle.queue, handles.USE | mqi.MQOO_INQUIRE, second)
            assert qmgr.close(handle.hobj, DELETE) == DONE
            assert qmgr.put(other, hconn=second) == (FAILED, DELETED)
            got = qmgr.get(other, hconn=second)
            assert (got.cc, got.rc) == (FAILED, DELETED)
            assert mqi.MQINQ(second, other, [mqi.MQIA_Q_TYPE])[1:] == (FAILED, DELETED)
            assert qmgr.close(other, options, second) == DONE


def test_21_waiting_getters_of_a_deleted_queue_are_woken(qmgr: QmgrFixture) -> None:
    """Seed 004, 21: logically deleted: a waiting MQGET ends with 2052."""
    for make in (handles.permanent, handles.temporary):
        handle = make(qmgr)
        second = qmgr.other()
        other = qmgr.opened(handle.queue, handles.USE, second)
        answers: list[int] = []

        def wait(
            other: object = other, second: object = second, answers: list[int] = answers
        ) -> None:
            answers.append(qmgr.get(other, wait=20000, hconn=second).rc)

        waiter = threading.Thread(target=wait)
        waiter.start()
        qmgr.until(lambda handle=handle: qmgr.waiting(handle.queue))
        assert qmgr.close(handle.hobj, DELETE) == DONE
        waiter.join(20)
        assert answers == [DELETED]


def test_22_elsewhere_the_name_is_free_at_once(qmgr: QmgrFixture) -> None:
    """Seed 004, 22: elsewhere than on z/OS the name is free at once."""
    model = qmgr.model("PERMDYN", share="YES")
    name = qmgr.new_name("LOGICAL")
    hobj, _ = qmgr.dynamic(model, handles.USE, name=name)
    old = qmgr.opened(name, handles.USE)
    assert qmgr.close(hobj, DELETE) == DONE
    hobj, _ = qmgr.dynamic(model, handles.USE, name=name)
    qmgr.send(hobj, b"new")
    assert qmgr.put(old) == (FAILED, DELETED)
    assert qmgr.close(old, DELETE) == DONE
    assert qmgr.bodies(hobj) == [b"new"]
