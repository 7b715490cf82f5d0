"""Rules of MQGET in the MQI reference: matching, cursor and locks, waits, backout.

The number in a test's name is the section's. Test vectors and traps are in separate files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from penstock import mqi
from qmgr_fixture import FAILED, OK, WARNING, QmgrFixture

OUTPUT, INPUT, BROWSE = mqi.MQOO_OUTPUT, mqi.MQOO_INPUT_SHARED, mqi.MQOO_BROWSE
FIRST, NEXT, CURSOR = mqi.MQGMO_BROWSE_FIRST, mqi.MQGMO_BROWSE_NEXT, 2048
UNDER = mqi.MQGMO_MSG_UNDER_CURSOR
LOCK, UNLOCK = mqi.MQGMO_LOCK, mqi.MQGMO_UNLOCK


def md(**fields: Any) -> Any:
    return mqi.MQMD(**fields)


def filled(qmgr: QmgrFixture, *bodies: bytes, **attributes: Any) -> tuple[str, Any]:
    """A queue with these messages, and a handle to browse and get."""
    queue = qmgr.local(**attributes)
    for data in bodies:
        qmgr.send(queue, data)
    return queue, qmgr.opened(queue, INPUT | BROWSE)


# ---- 5.2: match options ----


@pytest.mark.parametrize(
    ("option", "field", "value"),
    [
        (mqi.MQMO_MATCH_MSG_ID, "MsgId", b"m" * 24),
        (mqi.MQMO_MATCH_CORREL_ID, "CorrelId", b"c" * 24),
        (mqi.MQMO_MATCH_GROUP_ID, "GroupId", b"g" * 24),
        (mqi.MQMO_MATCH_MSG_SEQ_NUMBER, "MsgSeqNumber", 3),
    ],
)
def test_5_2_each_match_option_finds_its_message(
    qmgr: QmgrFixture, option: int, field: str, value: object
) -> None:
    queue = qmgr.local()
    group = {"MsgFlags": mqi.MQMF_MSG_IN_GROUP, "GroupId": b"o" * 24, "Version": 2}
    qmgr.send(queue, b"other", md(**{**group, "MsgSeqNumber": 1}))
    qmgr.send(queue, b"wanted", md(**{**group, "MsgSeqNumber": 2, field: value}))
    wanted = md(Version=2, **{field: value})
    got = qmgr.take(queue, md=wanted, Version=2, MatchOptions=option)
    assert got.data == b"wanted"
    none = md(Version=2, **{field: value})
    assert qmgr.get(queue, md=none, Version=2, MatchOptions=option).rc == 2033
    any_of_them = qmgr.take(queue, md=none, Version=2, MatchOptions=mqi.MQMO_NONE)
    assert any_of_them.data == b"other"


def test_5_2_ids_of_nuls_match_anything(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    qmgr.send(queue, b"1", md(MsgId=b"m" * 24, CorrelId=b"c" * 24))
    both = mqi.MQMO_MATCH_MSG_ID | mqi.MQMO_MATCH_CORREL_ID
    assert qmgr.take(queue, Version=2, MatchOptions=both).data == b"1"


def test_5_2_options_combine_with_and(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    for number, (message, correl) in enumerate(((b"a", b"x"), (b"a", b"y"), (b"b", b"y"))):
        qmgr.send(queue, b"%d" % number, md(MsgId=message * 24, CorrelId=correl * 24))
    wanted = md(MsgId=b"a" * 24, CorrelId=b"y" * 24)
    assert qmgr.take(queue, md=wanted).data == b"1"


def test_5_2_the_token_of_a_browse_gets_that_very_message(qmgr: QmgrFixture) -> None:
    queue, hobj = filled(qmgr, b"1", b"2", b"3")
    gmo = mqi.MQGMO(Version=3, Options=FIRST | mqi.MQGMO_NO_SYNCPOINT, MatchOptions=0)
    tokens = []
    for options in (FIRST, NEXT, NEXT):
        gmo.Options = options | mqi.MQGMO_NO_SYNCPOINT
        assert mqi.MQGET(qmgr.hconn, hobj, md(), gmo)[2:] == (OK, 0)
        tokens.append(bytes(gmo.MsgToken))
    assert len(set(tokens)) == 3
    by_token = {"Version": 3, "MatchOptions": mqi.MQMO_MATCH_MSG_TOKEN, "MsgToken": tokens[1]}
    assert qmgr.take(hobj, **by_token).data == b"2"
    assert qmgr.get(hobj, **by_token).rc == 2033
    assert qmgr.bodies(queue) == [b"1", b"3"]


# ---- 5.4: cursor and locks ----


def test_5_4_browse_next_begins_at_the_first_message(qmgr: QmgrFixture) -> None:
    _, hobj = filled(qmgr, b"1", b"2")
    assert qmgr.bodies(hobj, options=NEXT) == [b"1", b"2"]
    assert qmgr.get(hobj, options=NEXT).rc == 2033
    assert qmgr.take(hobj, options=CURSOR).data == b"2"


def test_5_4_each_handle_has_its_own_cursor(qmgr: QmgrFixture) -> None:
    queue, hobj = filled(qmgr, b"1", b"2")
    other = qmgr.opened(queue, BROWSE)
    assert qmgr.take(hobj, options=NEXT).data == b"1"
    assert qmgr.take(hobj, options=NEXT).data == b"2"
    assert qmgr.take(other, options=NEXT).data == b"1"


def test_5_4_a_cursor_keeps_its_position_when_its_message_is_removed(qmgr: QmgrFixture) -> None:
    queue, hobj = filled(qmgr, b"1", b"2", b"3")
    for expected in (b"1", b"2"):
        assert qmgr.take(hobj, options=NEXT).data == expected
    assert [qmgr.take(queue).data, qmgr.take(queue).data] == [b"1", b"2"]
    assert qmgr.get(hobj, options=CURSOR).rc == 2034
    assert qmgr.get(hobj, options=UNDER).rc == 2034
    assert qmgr.take(hobj, options=NEXT).data == b"3"


def test_5_4_a_message_is_got_under_the_cursor(qmgr: QmgrFixture) -> None:
    queue, hobj = filled(qmgr, b"1", b"2", b"3")
    assert qmgr.take(hobj, options=NEXT).data == b"1"
    assert qmgr.take(hobj, options=NEXT).data == b"2"
    assert qmgr.take(hobj, options=UNDER).data == b"2"
    assert qmgr.bodies(queue) == [b"1", b"3"]


def test_5_4_the_match_options_do_not_count_under_the_cursor(qmgr: QmgrFixture) -> None:
    _, hobj = filled(qmgr, b"1")
    qmgr.take(hobj, options=NEXT)
    wanted = md(MsgId=b"z" * 24)
    assert qmgr.take(hobj, md=wanted, options=CURSOR).data == b"1"
    wanted = md(MsgId=b"z" * 24)
    assert qmgr.take(hobj, md=wanted, options=UNDER).data == b"1"


def test_5_4_uncommitted_messages_are_not_browsed(qmgr: QmgrFixture) -> None:
    queue, hobj = filled(qmgr)
    second = qmgr.other()
    qmgr.send(queue, b"1", syncpoint=True, hconn=second)
    qmgr.send(queue, b"2")
    assert qmgr.bodies(hobj, options=NEXT) == [b"2"]
    qmgr.commit(second)
    assert qmgr.get(hobj, options=NEXT).rc == 2033  # it lies before the cursor
    assert qmgr.take(hobj, options=FIRST).data == b"1"


def test_5_4_a_locked_message_is_invisible_to_others(qmgr: QmgrFixture) -> None:
    queue, hobj = filled(qmgr, b"1", b"2")
    second = qmgr.other()
    other = qmgr.opened(queue, INPUT | BROWSE, second)
    assert qmgr.take(hobj, options=FIRST | LOCK).data == b"1"
    assert qmgr.bodies(other, options=NEXT, hconn=second) == [b"2"]
    assert qmgr.take(other, hconn=second).data == b"2"
    assert qmgr.get(other, hconn=second).rc == 2033
    assert qmgr.take(hobj, options=CURSOR).data == b"1"  # to its own handle it is visible
    assert qmgr.take(hobj, options=UNLOCK).data == b""
    assert qmgr.take(other, hconn=second).data == b"1"


@pytest.mark.parametrize("how", ["unlock", "browse", "close", "get"])
def test_5_4_what_ends_a_lock(qmgr: QmgrFixture, how: str) -> None:
    queue, hobj = filled(qmgr, b"1", b"2")
    qmgr.take(hobj, options=FIRST | LOCK)
    if how == "unlock":
        qmgr.take(hobj, options=UNLOCK)
    elif how == "browse":
        assert qmgr.take(hobj, options=NEXT).data == b"2"
    elif how == "close":
        qmgr.closed(hobj)
    else:
        assert qmgr.take(hobj, options=UNDER).data == b"1"
    rest = [b"2"] if how == "get" else [b"1", b"2"]
    assert qmgr.bodies(queue) == rest


def test_5_4_a_handle_has_one_lock(qmgr: QmgrFixture) -> None:
    queue, hobj = filled(qmgr, b"1", b"2")
    qmgr.take(hobj, options=NEXT | LOCK)
    assert qmgr.take(hobj, options=NEXT | LOCK).data == b"2"
    assert qmgr.take(queue).data == b"1"
    assert qmgr.get(queue).rc == 2033


def test_5_4_unlock_without_a_lock_warns(qmgr: QmgrFixture) -> None:
    _, hobj = filled(qmgr, b"1")
    got = qmgr.get(hobj, options=UNLOCK)
    assert (got.cc, got.rc) == (WARNING, 2209)


def test_5_4_browsing_counts_no_backouts(qmgr: QmgrFixture) -> None:
    _, hobj = filled(qmgr, b"1")
    for _ in range(3):
        assert qmgr.take(hobj, options=FIRST).md.BackoutCount == 0


def test_5_4_a_browse_in_syncpoint_is_2046(qmgr: QmgrFixture) -> None:
    _, hobj = filled(qmgr, b"1")
    for options in (FIRST, NEXT, CURSOR, LOCK | FIRST):
        got = qmgr.get(hobj, options=options, syncpoint=True)
        assert (got.cc, got.rc) == (FAILED, 2046), options


# ---- 5.5: waits ----


def waiting(qmgr: QmgrFixture, queue: str, **more: Any) -> tuple[threading.Thread, list[Any]]:
    """A get of another thread that waits on the queue, and the list for its answer."""
    second = qmgr.other()
    hobj = qmgr.opened(more.pop("name", queue), INPUT | BROWSE, second)
    answers: list[Any] = []
    before = qmgr.waiting(queue)
    thread = threading.Thread(
        target=lambda: answers.append(qmgr.get(hobj, wait=20000, hconn=second, **more))
    )
    thread.start()
    qmgr.until(lambda: qmgr.waiting(queue) > before)
    return thread, answers


def answer(waiter: tuple[threading.Thread, list[Any]]) -> Any:
    waiter[0].join(30)
    return waiter[1][0]


def test_5_5_a_put_wakes_a_waiting_get(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    waiter = waiting(qmgr, queue)
    qmgr.send(queue, b"1")
    assert answer(waiter).data == b"1"


def test_5_5_a_put_in_a_unit_of_work_wakes_at_its_commit(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    waiter = waiting(qmgr, queue)
    qmgr.send(queue, b"1", syncpoint=True)
    assert qmgr.waiting(queue) == 1
    qmgr.commit()
    assert answer(waiter).data == b"1"


def test_5_5_a_specific_wait_comes_before_a_general_one(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    general = waiting(qmgr, queue)
    specific = waiting(qmgr, queue, md=md(CorrelId=b"c" * 24))
    qmgr.send(queue, b"specific", md(CorrelId=b"c" * 24))
    assert answer(specific).data == b"specific"
    assert qmgr.waiting(queue) == 1
    qmgr.send(queue, b"general")
    assert answer(general).data == b"general"


ENDINGS: list[tuple[str, int, Callable[[QmgrFixture, str, str], object]]] = [
    ("get-disabled", 2016, lambda qmgr, queue, _: qmgr.qm.alter("QLOCAL", queue, get="DISABLED")),
    ("alias-disabled", 2016, lambda qmgr, _, a: qmgr.qm.alter("QALIAS", a, get="DISABLED")),
    (
        "alias-changed",
        2041,
        lambda qmgr, _, alias: qmgr.qm.alter("QALIAS", alias, target=qmgr.local(), force=True),
    ),
]


@pytest.mark.parametrize(("reason", "end"), [e[1:] for e in ENDINGS], ids=[e[0] for e in ENDINGS])
def test_5_5_what_ends_a_wait(
    qmgr: QmgrFixture, reason: int, end: Callable[[QmgrFixture, str, str], object]
) -> None:
    queue = qmgr.local()
    alias = qmgr.define("QALIAS", target=queue)
    waiter = waiting(qmgr, queue, name=alias)
    end(qmgr, queue, alias)
    assert answer(waiter).rc == reason


def test_5_5_get_disabled_counts_even_when_messages_are_there(qmgr: QmgrFixture) -> None:
    queue, hobj = filled(qmgr, b"1")
    qmgr.qm.alter("QLOCAL", queue, get="DISABLED")
    got = qmgr.get(hobj, wait=20000)
    assert (got.cc, got.rc) == (FAILED, 2016)
    assert qmgr.get(hobj, options=FIRST).rc == 2016


def test_5_5_all_browsers_are_woken(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    waiters = [waiting(qmgr, queue, options=NEXT) for _ in range(3)]
    qmgr.send(queue, b"1")
    assert [answer(waiter).data for waiter in waiters] == [b"1"] * 3
    assert qmgr.depth(queue) == 1


# ---- 5.8, 5.9 and syncpoint-if-persistent ----


def test_5_8_a_backout_counts_what_was_got(qmgr: QmgrFixture) -> None:
    queue, hobj = filled(qmgr, b"1")
    qmgr.take(hobj, options=FIRST)
    for count in (0, 1, 2):
        assert qmgr.take(hobj, syncpoint=True).md.BackoutCount == count
        qmgr.backout()
    qmgr.send(queue, b"2", syncpoint=True)
    qmgr.backout()
    assert qmgr.take(hobj).md.BackoutCount == 3


def test_5_8_a_persistent_messages_backout_count_survives_a_failure(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    qmgr.send(queue, b"1", md(Persistence=1))
    qmgr.take(queue, syncpoint=True)
    qmgr.backout()
    qmgr.failure()
    assert qmgr.take(queue).md.BackoutCount == 1


def test_5_9_syncpoint_if_persistent_follows_the_message(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    for data, persistence in ((b"not", 0), (b"persistent", 1)):
        qmgr.send(queue, data, md(Persistence=persistence))
    option = mqi.MQGMO_SYNCPOINT_IF_PERSISTENT
    got = [qmgr.take(queue, options=option).data for _ in range(2)]
    assert got == [b"not", b"persistent"]
    qmgr.backout()
    assert qmgr.bodies(queue) == [b"persistent"]


def test_5_1_outputs_of_the_options(qmgr: QmgrFixture) -> None:
    queue = qmgr.local()
    qmgr.send(queue, b"12345")
    alias = qmgr.define("QALIAS", target=queue)
    hobj = qmgr.opened(alias, INPUT)
    gmo = mqi.MQGMO(
        Version=3, Options=mqi.MQGMO_ACCEPT_TRUNCATED_MSG | mqi.MQGMO_NO_SYNCPOINT, MatchOptions=0
    )
    data, length, cc, rc = mqi.MQGET(qmgr.hconn, hobj, md(), gmo, 3)
    assert (bytes(data), length, cc, rc) == (b"123", 5, WARNING, 2079)
    assert (gmo.ResolvedQName, gmo.ReturnedLength) == (queue, 3)
