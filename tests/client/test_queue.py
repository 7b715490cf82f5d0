"""Put and get: what the contract of names and the rules of the MQI promise of one queue."""

from __future__ import annotations

import datetime
import time

import pytest

import penstock
from penstock import Queue, QueueManager


def test_a_get_with_a_default_answers_an_empty_queue_without_an_exception(queue: Queue) -> None:
    default = object()
    assert queue.get(default=default) is default
    assert queue.get(default=None) is None
    assert queue.get(wait=0.01, default=7) == 7
    assert queue.get(msg_id=b"none", default=default) is default
    assert queue.get(browse="next", default=default) is default
    queue.put(b"there")
    message = queue.get(default=None)
    assert message is not None and message.data == b"there"


def test_a_default_replaces_no_other_reason_than_no_message(queue: Queue) -> None:
    queue.put(b"longer")
    with pytest.raises(penstock.TruncatedMessage):
        queue.get(max_length=2, default=None)
    with pytest.raises(penstock.MQError) as caught:
        queue.get(under_cursor=True, default=None)
    assert caught.value.reason == 2034
    queue.get()
    queue.close()
    with pytest.raises(penstock.ClosedHandle):
        queue.get(default=None)


def test_a_message_comes_back_as_it_was_put(queue: Queue) -> None:
    before = datetime.datetime.now(datetime.timezone.utc)
    result = queue.put(
        b"body",
        priority=3,
        persistent=True,
        msg_id=b"m1",
        correl_id=b"c1",
        expiry=100,
        group_id=b"g1",
        format="MQSTR",
        reply_to_q="REPLY",
        msg_type=1,
        feedback=7,
        report=64,
    )
    assert (result.comp_code, result.reason, result.reason_name) == (0, 0, "MQRC_NONE")
    m = queue.get()
    assert m.data == bytes(m) == b"body"
    assert (m.length, len(m), m.priority, m.persistent, m.backout_count) == (4, 4, 3, True, 0)
    assert m.msg_id == result.msg_id == b"m1".ljust(24, b"\0")
    assert m.correl_id == b"c1".ljust(24, b"\0")
    assert m.group_id == b"g1".ljust(24, b"\0")
    assert m.expiry is not None and 90 < m.expiry <= 100
    assert (m.format, m.reply_to_q, m.reply_to_qmgr) == ("MQSTR", "REPLY", "QM1")
    assert (m.msg_type, m.feedback, m.report) == (1, 7, 64)
    assert m.put_time.tzinfo is datetime.timezone.utc
    assert abs(m.put_time - before) < datetime.timedelta(seconds=60)
    assert (m.comp_code, m.reason) == (0, 0)


def test_an_unadorned_put_has_the_initial_values_of_mqmd(queue: Queue) -> None:
    queue.put(b"")
    m = queue.get()
    assert m.data == b""
    assert (m.priority, m.persistent, m.expiry, m.msg_type) == (0, False, None, 8)
    assert (m.encoding, m.ccsid, m.format, m.md_version) == (546, 1208, "", 2)
    assert (m.correl_id, m.group_id) == (bytes(24), bytes(24))
    assert (m.reply_to_q, m.reply_to_qmgr, m.report, m.feedback) == ("", "", 0, 0)
    assert (m.msg_seq_number, m.offset, m.msg_flags, m.original_length) == (1, 0, 0, -1)
    assert (m.put_appl_type, m.appl_origin_data, m.appl_identity_data) == (6, "", "")
    assert m.user_identifier and m.put_appl_name
    assert m.accounting_token[31] == 6


def test_generated_identifiers_are_unique_and_begin_with_the_product_and_the_manager(
    queue: Queue,
) -> None:
    ids = [queue.put(b"x").msg_id for _ in range(100)]
    assert len(set(ids)) == 100
    assert all(i[:16] == b"AMQ QM1         " for i in ids)


def test_messages_come_by_priority_then_in_put_order(queue: Queue) -> None:
    for number, priority in enumerate([1, 9, 0, 9, 5, 1, 0]):
        queue.put(b"%d" % number, priority=priority)
    assert b"".join(queue.get().data for _ in range(7)) == b"1340526"


def test_a_priority_above_nine_is_a_warning_and_stays_in_the_field(queue: Queue) -> None:
    queue.put(b"nine", priority=9)
    result = queue.put(b"twelve", 12)
    assert (result.comp_code, result.reason) == (1, 2049)
    assert result.reason_name == "MQRC_PRIORITY_EXCEEDS_MAXIMUM"
    assert queue.get().data == b"nine"
    m = queue.get()
    assert (m.priority, m.placement) == (12, 9)


def test_queue_defaults_apply_where_the_put_gives_no_value(qm: QueueManager) -> None:
    qm.define("QLOCAL", "D", defpsist=True, defprty=4)
    with qm.open("D") as q:
        q.put(b"as defined")
        q.put(b"said", priority=1, persistent=False)
        first, second = q.get(), q.get()
    assert (first.priority, first.persistent) == (4, True)
    assert (second.priority, second.persistent) == (1, False)


def test_a_fifo_queue_keeps_put_order_and_fields(qm: QueueManager) -> None:
    qm.define("QLOCAL", "F", msgdlvsq="FIFO", defprty=3)
    with qm.open("F") as q:
        for priority in (1, 9, 2147483647, 0):
            q.put(b"x", priority=priority)
        assert [q.get().priority for _ in range(4)] == [1, 9, 2147483647, 0]


def test_get_from_an_empty_queue_raises_at_once(queue: Queue) -> None:
    with pytest.raises(penstock.NoMessageAvailable) as caught:
        queue.get()
    error = caught.value
    assert (error.comp_code, error.reason, error.reason_name) == (2, 2033, "MQRC_NO_MSG_AVAILABLE")
    assert "Q" in str(error) and "2033" in str(error)


def test_get_by_identifiers_takes_the_first_that_matches_all(queue: Queue) -> None:
    for number in range(6):
        queue.put(
            b"%d" % number,
            msg_id=b"m%d" % (number % 3),
            correl_id=b"c%d" % (number % 2),
            group_id=b"g",
        )
    assert queue.get(msg_id=b"m2").data == b"2"
    assert queue.get(msg_id=b"m0", correl_id=b"c1").data == b"3"
    assert queue.get(correl_id=b"c1", group_id=b"g").data == b"1"
    with pytest.raises(penstock.NoMessageAvailable):
        queue.get(msg_id=b"m0", correl_id=b"c1")
    assert queue.get(msg_id=bytes(24)).data == b"0"
    assert queue.depth == 2


@pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
def test_bodies_and_identifiers_may_be_any_bytes_like_object(queue: Queue, make: type) -> None:
    queue.put(make(b"body"), msg_id=make(b"id"))
    assert queue.get(msg_id=make(b"id")).data == b"body"


@pytest.mark.parametrize(
    "size", [0, 1, 2, 255, 256, 257, 512, 4096, 16384, 16385, 65536, 1 << 20, 4194304]
)
@pytest.mark.parametrize("persistent", [False, True])
def test_bodies_of_every_size_come_back_whole(queue: Queue, size: int, persistent: bool) -> None:
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)
    queue.put(body, persistent=persistent)
    assert queue.get().data == body


def test_sizes_may_change_from_message_to_message(queue: Queue) -> None:
    sizes = [0, 100000, 3, 300, 70000, 1, 0, 257, 255, 5000]
    for size in sizes * 3:
        queue.put(b"z" * size)
    assert [len(queue.get().data) for _ in sizes * 3] == sizes * 3


def test_a_body_above_maxmsgl_is_refused_with_both_lengths(qm: QueueManager) -> None:
    qm.define("QLOCAL", "S", maxmsgl=10)
    with qm.open("S") as q:
        q.put(b"x" * 10)
        with pytest.raises(penstock.MessageTooBig, match=r"2030.*11") as caught:
            q.put(b"x" * 11)
        assert caught.value.reason == 2030
        assert q.depth == 1


def test_a_full_queue_refuses_and_keeps_what_it_has(qm: QueueManager) -> None:
    qm.define("QLOCAL", "S", maxdepth=2)
    with qm.open("S") as q:
        q.put(b"1")
        q.put(b"2")
        with pytest.raises(penstock.QueueFull) as caught:
            q.put(b"3")
        assert caught.value.reason == 2053
        assert q.get().data == b"1"
        q.put(b"3")
        assert q.depth == 2


def test_inhibited_puts_and_gets_are_refused_until_allowed(qm: QueueManager, queue: Queue) -> None:
    queue.put(b"x")
    qm.alter("QLOCAL", "Q", put="DISABLED", get=False)
    with pytest.raises(penstock.PutInhibited):
        queue.put(b"y")
    with pytest.raises(penstock.GetInhibited):
        queue.get()
    qm.alter("QLOCAL", "Q", PUT=True, GET="enabled")
    queue.put(b"y")
    assert [queue.get().data, queue.get().data] == [b"x", b"y"]


def test_a_message_longer_than_max_length_stays_and_the_error_has_its_length(queue: Queue) -> None:
    queue.put(b"0123456789")
    with pytest.raises(penstock.TruncatedMessage) as caught:
        queue.get(max_length=4)
    assert (caught.value.reason, caught.value.comp_code, caught.value.length) == (2080, 1, 10)
    assert queue.depth == 1
    m = queue.get(max_length=4, truncate=True)
    assert (m.data, m.length, m.reason, m.comp_code) == (b"0123", 10, 2079, 1)
    assert queue.depth == 0


def test_max_length_nought_with_truncate_removes_the_message(queue: Queue) -> None:
    queue.put(b"0123456789")
    assert queue.get(max_length=0, truncate=True).data == b""
    assert queue.depth == 0


def test_an_expired_message_is_not_given_out(queue: Queue) -> None:
    queue.put(b"short", expiry=0.1)
    queue.put(b"long", expiry=3600)
    time.sleep(0.3)
    assert queue.get().data == b"long"
    with pytest.raises(penstock.NoMessageAvailable):
        queue.get()


def test_browse_shows_every_message_in_order_and_takes_none(queue: Queue) -> None:
    for number in range(5):
        queue.put(b"%d" % number, priority=number)
    assert [m.data for m in queue.browse()] == [b"4", b"3", b"2", b"1", b"0"]
    assert next(queue.browse()).data == b"4"
    assert queue.depth == 5


def test_each_browse_has_its_own_cursor(queue: Queue) -> None:
    queue.put(b"1")
    queue.put(b"2")
    one, other = queue.browse(), queue.browse()
    assert next(one).data == b"1"
    assert next(other).data == b"1"
    assert next(one).data == b"2"
    one.close()  # type: ignore[attr-defined]
    assert next(other).data == b"2"
    assert list(other) == []


def test_browse_by_correl_id_shows_only_those(queue: Queue) -> None:
    for number in range(6):
        queue.put(b"%d" % number, correl_id=b"c%d" % (number % 2))
    assert [m.data for m in queue.browse(correl_id=b"c1")] == [b"1", b"3", b"5"]


def test_the_message_under_the_cursor_can_be_taken(queue: Queue) -> None:
    for number in range(3):
        queue.put(b"%d" % number)
    assert queue.get(browse="first").data == b"0"
    assert queue.get(browse="next").data == b"1"
    assert queue.get(browse="cursor").data == b"1"
    assert queue.get(under_cursor=True).data == b"1"
    with pytest.raises(penstock.NoMessageUnderCursor):
        queue.get(under_cursor=True)
    assert queue.get(browse="next").data == b"2"
    assert queue.depth == 2


def test_a_message_locked_by_a_browse_is_invisible_to_others_until_unlocked(
    qm: QueueManager, queue: Queue
) -> None:
    queue.put(b"1")
    queue.put(b"2")
    assert queue.get(browse="first", lock=True).data == b"1"
    with qm.open("Q") as other:
        assert other.get(browse="first").data == b"2"
        assert queue.get(under_cursor=True).data == b"1"
        assert other.get().data == b"2"


def test_a_handle_does_only_what_it_was_opened_for(qm: QueueManager, queue: Queue) -> None:
    queue.put(b"x")
    with qm.open("Q", input=False, browse=False) as q:
        with pytest.raises(penstock.NotOpenFor) as caught:
            q.get()
        assert caught.value.reason == 2037
        with pytest.raises(penstock.NotOpenFor) as caught:
            q.get(browse="first")
        assert caught.value.reason == 2036
    with qm.open("Q", output=False) as q:
        with pytest.raises(penstock.NotOpenFor) as caught:
            q.put(b"y")
        assert caught.value.reason == 2039
        assert q.get().data == b"x"


def test_exclusive_input_keeps_others_from_getting(qm: QueueManager) -> None:
    qm.define("QLOCAL", "X")
    with qm.open("X", exclusive=True) as q:
        with pytest.raises(penstock.ObjectInUse):
            qm.open("X")
        with qm.open("X", input=False) as producer:
            producer.put(b"x")
        assert q.get().data == b"x"
    with qm.open("X"), pytest.raises(penstock.ObjectInUse):
        qm.open("X", exclusive=True)


def test_close_with_delete_or_purge_is_refused_and_leaves_the_handle_open(queue: Queue) -> None:
    for options in ({"delete": True}, {"purge": True}, {"delete": True, "purge": True}):
        with pytest.raises(penstock.OptionNotValidForType) as caught:
            queue.close(**options)
        assert caught.value.reason == 2045
    queue.put(b"still open")
    assert queue.get().data == b"still open"
    queue.close()
    queue.close()


def test_a_queue_in_three_lines_is_durable_and_deep(qm: QueueManager) -> None:
    with qm.queue("ORDERS", maxmsgl=104857600) as q:
        q.put(b"x")
        assert q.get().persistent
    (row,) = qm.display("QLOCAL", "ORDERS")
    assert (row["defpsist"], row["maxdepth"], row["MAXMSGL"]) == (True, 999999999, 104857600)
    with pytest.warns(UserWarning, match="ignored defpsist=False"):
        again = qm.queue("ORDERS", defpsist=False)
    with again:
        assert qm.display("QLOCAL", "ORDERS")[0]["defpsist"] is True


def test_status_has_depth_handles_and_counts(qm: QueueManager, queue: Queue) -> None:
    queue.put(b"1")
    queue.put(b"2")
    queue.get()
    with qm.transaction():
        queue.put(b"3")
        status = queue.status()
        assert (status.name, status.depth, status.uncommitted) == ("Q", 2, 1)
        assert (status.open_input, status.open_output) == (1, 1)
        assert (status.put_count, status.get_count) == (3, 1)
    whole = qm.status()
    assert (whole.attached, whole.stopped, whole.woken_by_bound) == (1, 0, 0)
    assert qm.process_list()[0].pid > 0
    assert [h.queue for h in qm.handle_list()] == ["Q"]
