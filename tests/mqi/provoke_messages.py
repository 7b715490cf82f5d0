"""Reason codes of putting, getting and units of work, each provoked."""

from __future__ import annotations

import threading
from typing import Any

from provoking import FAILED, OK, WARNING, Answer, Bench, ended, mqi, provokes

OUTPUT, INPUT, BROWSE = mqi.MQOO_OUTPUT, mqi.MQOO_INPUT_SHARED, mqi.MQOO_BROWSE


def putting(bench: Bench, *, options: int = 0, **fields: Any) -> Answer:
    """The answer of an MQPUT with these fields of MQMD to a new queue; nothing may arrive."""
    queue = bench.qmgr.local()
    hobj = bench.qmgr.opened(queue, OUTPUT)
    answer = bench.qmgr.put(hobj, md=mqi.MQMD(**fields), options=options)
    assert bench.qmgr.depth(queue) == (answer[0] != FAILED)
    return answer


def getting(bench: Bench, rights: int = INPUT, *messages: bytes, **more: Any) -> Answer:
    """The answer of an MQGET from a new queue with these messages, opened with these rights."""
    queue = bench.qmgr.local()
    for data in messages:
        bench.qmgr.send(queue, data)
    got = bench.qmgr.get(bench.qmgr.opened(queue, rights), **more)
    return got.cc, got.rc


# ---- fields of MQMD ----


@provokes(2013)
def expiry_of_zero(bench: Bench) -> Answer:
    return putting(bench, Expiry=0)


@provokes(2014)
def feedback_out_of_range(bench: Bench) -> Answer:
    return putting(bench, Feedback=-1, MsgType=4)


@provokes(2026)
def wrong_message_descriptor(bench: Bench) -> Answer:
    return putting(bench, StrucId="XXXX")


@provokes(2026)
def version_3_of_the_descriptor(bench: Bench) -> Answer:
    return putting(bench, Version=3)


@provokes(2027)
def request_without_reply_queue(bench: Bench) -> Answer:
    return putting(bench, MsgType=mqi.MQMT_REQUEST)


@provokes(2029)
def message_type_zero(bench: Bench) -> Answer:
    return putting(bench, MsgType=0)


@provokes(2047)
def persistence_three(bench: Bench) -> Answer:
    return putting(bench, Persistence=3)


@provokes(2048)
def persistent_to_a_temporary_dynamic_queue(bench: Bench) -> Answer:
    hobj, _ = bench.qmgr.dynamic(bench.qmgr.model("TEMPDYN"), OUTPUT)
    return bench.qmgr.put(hobj, md=mqi.MQMD(Persistence=1))


@provokes(2049, WARNING)
def priority_ten(bench: Bench) -> Answer:
    return putting(bench, Priority=10)


@provokes(2050)
def priority_below_minus_one(bench: Bench) -> Answer:
    return putting(bench, Priority=-2)


@provokes(2061)
def report_bit_to_reject(bench: Bench) -> Answer:
    return putting(bench, Report=0x00100000)


@provokes(2104, WARNING)
def report_bit_to_accept(bench: Bench) -> Answer:
    return putting(bench, Report=0x20)


@provokes(2249)
def wrong_message_flags(bench: Bench) -> Answer:
    return putting(bench, Version=2, MsgFlags=0x00100000)


@provokes(2250)
def sequence_number_zero(bench: Bench) -> Answer:
    return putting(
        bench, Version=2, MsgSeqNumber=0, MsgFlags=mqi.MQMF_MSG_IN_GROUP, GroupId=b"g" * 24
    )


@provokes(2251)
def negative_offset(bench: Bench) -> Answer:
    return putting(bench, Version=2, Offset=-1)


@provokes(2252)
def wrong_original_length(bench: Bench) -> Answer:
    return putting(bench, Version=2, OriginalLength=-2)


# ---- puts ----


@provokes(2030)
def longer_than_the_queue_takes(bench: Bench) -> Answer:
    return bench.qmgr.put(bench.qmgr.local(maxmsgl=10), b"x" * 11)


@provokes(2039)
def put_without_the_option(bench: Bench) -> Answer:
    return bench.qmgr.put(bench.qmgr.opened(bench.qmgr.local(), INPUT))


@provokes(2046)
def in_and_out_of_syncpoint(bench: Bench) -> Answer:
    return putting(bench, options=mqi.MQPMO_SYNCPOINT | mqi.MQPMO_NO_SYNCPOINT)


@provokes(2051)
def put_to_an_inhibited_queue(bench: Bench) -> Answer:
    return bench.qmgr.put(bench.qmgr.local(put="DISABLED"))


@provokes(2051)
def put_through_an_inhibited_alias(bench: Bench) -> Answer:
    alias = bench.qmgr.define("QALIAS", target=bench.qmgr.local(), put="DISABLED")
    return bench.qmgr.put(bench.qmgr.opened(alias, OUTPUT))


@provokes(2053)
def put_to_a_full_queue(bench: Bench) -> Answer:
    queue = bench.qmgr.local(maxdepth=1)
    bench.qmgr.send(queue)
    return bench.qmgr.put(queue)


@provokes(2057)
def mqput1_to_a_model_queue(bench: Bench) -> Answer:
    return bench.qmgr.put(bench.qmgr.model("TEMPDYN"))


@provokes(2173)
def wrong_put_options(bench: Bench) -> Answer:
    hobj = bench.qmgr.opened(bench.qmgr.local(), OUTPUT)
    return mqi.MQPUT(bench.qmgr.hconn, hobj, mqi.MQMD(), mqi.MQPMO(StrucId="XXXX"), b"")


@provokes(2093)
def pass_all_without_the_open_option(bench: Bench) -> Answer:
    return passing(bench, OUTPUT, mqi.MQPMO_PASS_ALL_CONTEXT)


@provokes(2094)
def pass_identity_without_the_open_option(bench: Bench) -> Answer:
    return passing(bench, OUTPUT, mqi.MQPMO_PASS_IDENTITY_CONTEXT)


@provokes(2095)
def set_all_without_the_open_option(bench: Bench) -> Answer:
    return putting(bench, options=mqi.MQPMO_SET_ALL_CONTEXT)


@provokes(2096)
def set_identity_without_the_open_option(bench: Bench) -> Answer:
    return putting(bench, options=mqi.MQPMO_SET_IDENTITY_CONTEXT)


@provokes(2097)
def pass_from_a_handle_that_saves_nothing(bench: Bench) -> Answer:
    return passing(bench, OUTPUT | mqi.MQOO_PASS_ALL_CONTEXT, mqi.MQPMO_PASS_ALL_CONTEXT)


@provokes(2098)
def pass_before_anything_was_got(bench: Bench) -> Answer:
    return passing(
        bench,
        OUTPUT | mqi.MQOO_PASS_ALL_CONTEXT,
        mqi.MQPMO_PASS_ALL_CONTEXT,
        mqi.MQOO_SAVE_ALL_CONTEXT,
    )


def passing(bench: Bench, to: int, option: int, source: int = 0) -> Answer:
    qmgr = bench.qmgr
    pmo = mqi.MQPMO(Options=option | mqi.MQPMO_NO_SYNCPOINT)
    pmo.Context = qmgr.opened(qmgr.local(), INPUT | source)
    return mqi.MQPUT(qmgr.hconn, qmgr.opened(qmgr.local(), to), mqi.MQMD(), pmo, b"")


@provokes(2158)
def unknown_fields_of_put_records(bench: Bench) -> Answer:
    return to_a_list(bench, PutMsgRecFields=64, PutMsgRecs=[mqi.MQPMR(), mqi.MQPMR()])


@provokes(2159)
def put_records_missing(bench: Bench) -> Answer:
    return to_a_list(bench, PutMsgRecFields=mqi.MQPMRF_MSG_ID)


def to_a_list(bench: Bench, **fields: Any) -> Answer:
    qmgr = bench.qmgr
    od = mqi.MQOD(
        Version=mqi.MQOD_VERSION_2,
        RecsPresent=2,
        ObjectRecs=[mqi.MQOR(ObjectName=qmgr.local()) for _ in range(2)],
    )
    hobj, cc, rc = mqi.MQOPEN(qmgr.hconn, od, OUTPUT)
    assert (cc, rc) == (OK, 0)
    pmo = mqi.MQPMO(
        Version=mqi.MQPMO_VERSION_2,
        Options=mqi.MQPMO_NO_SYNCPOINT,
        **{"RecsPresent": 2, **fields},
    )
    return mqi.MQPUT(qmgr.hconn, hobj, mqi.MQMD(), pmo, b"")


@provokes(2071)
def more_than_the_region_holds(bench: Bench) -> Answer:
    qmgr = bench.own(region_size=16 << 20)
    return fill(qmgr, qmgr.local(maxdepth=999999999), b"x" * 65536, 0)


@provokes(2192)
def more_than_the_journal_holds(bench: Bench) -> Answer:
    qmgr = bench.own(segment_size=1 << 18, journal_limit=1 << 20)
    return fill(qmgr, qmgr.local(maxdepth=999999999), b"x" * 32768, 1)


def fill(qmgr: Any, queue: str, data: bytes, persistence: int) -> Answer:
    hobj = qmgr.opened(queue, OUTPUT)
    for _ in range(2000):
        answer = qmgr.put(hobj, data, mqi.MQMD(Persistence=persistence))
        if answer[0] == FAILED:
            break
    return ended(answer)


@provokes(2260)
def no_transmission_header_where_one_is_said(bench: Bench) -> Answer:
    route = bench.qmgr.local(usage="XMITQ")
    return bench.qmgr.put(route, b"no header", mqi.MQMD(Format="MQXMIT"))


@provokes(2248)
def no_extension_where_one_is_said(bench: Bench) -> Answer:
    return putting(bench, Format="MQHMDE")


# ---- gets ----


@provokes(2005)
def negative_buffer_length(bench: Bench) -> Answer:
    return getting(bench, INPUT, b"x", length=-1)


@provokes(2016)
def get_from_an_inhibited_queue(bench: Bench) -> Answer:
    queue = bench.qmgr.local(get="DISABLED")
    got = bench.qmgr.get(bench.qmgr.opened(queue, INPUT))
    return got.cc, got.rc


@provokes(2033)
def get_from_an_empty_queue(bench: Bench) -> Answer:
    return getting(bench)


@provokes(2034)
def nothing_browsed_yet(bench: Bench) -> Answer:
    return getting(bench, INPUT | BROWSE, b"x", options=mqi.MQGMO_MSG_UNDER_CURSOR)


@provokes(2036)
def browse_without_the_option(bench: Bench) -> Answer:
    return getting(bench, INPUT, b"x", options=mqi.MQGMO_BROWSE_FIRST)


@provokes(2037)
def get_without_the_option(bench: Bench) -> Answer:
    return getting(bench, BROWSE, b"x")


@provokes(2046)
def two_ways_of_browsing(bench: Bench) -> Answer:
    both = mqi.MQGMO_BROWSE_FIRST | mqi.MQGMO_BROWSE_NEXT
    return getting(bench, INPUT | BROWSE, b"x", options=both)


@provokes(2079, WARNING)
def truncation_accepted(bench: Bench) -> Answer:
    return getting(bench, INPUT, b"xyz", length=2, options=mqi.MQGMO_ACCEPT_TRUNCATED_MSG)


@provokes(2080, WARNING)
def truncation_not_accepted(bench: Bench) -> Answer:
    return getting(bench, INPUT, b"xyz", length=2)


@provokes(2090)
def negative_wait_interval(bench: Bench) -> Answer:
    return getting(bench, INPUT, b"x", options=mqi.MQGMO_WAIT, WaitInterval=-2)


@provokes(2186)
def wrong_get_options(bench: Bench) -> Answer:
    return getting(bench, INPUT, b"x", StrucId="XXXX")


@provokes(2209, WARNING)
def unlock_of_nothing(bench: Bench) -> Answer:
    return getting(bench, INPUT | BROWSE, b"x", options=mqi.MQGMO_UNLOCK)


@provokes(2256)
def option_of_a_newer_version(bench: Bench) -> Answer:
    return getting(bench, INPUT, b"x", options=mqi.MQGMO_ALL_MSGS_AVAILABLE)


# ---- units of work ----


@provokes(2024)
def more_than_a_unit_of_work_may_hold(bench: Bench) -> Answer:
    qmgr = bench.own()
    queue = qmgr.local()
    qmgr.qm.alter("QMGR", "", maxumsgs=2)
    for _ in range(2):
        qmgr.send(queue, syncpoint=True)
    answer = qmgr.put(queue, syncpoint=True)
    qmgr.commit()
    assert qmgr.depth(queue) == 2
    return answer


@provokes(2003, WARNING)
def commit_of_a_unit_that_pinned_the_journal(bench: Bench) -> Answer:
    qmgr = bench.own(segment_size=1 << 18, journal_limit=1 << 20)
    queue, other = qmgr.local(), qmgr.local()
    second = qmgr.other()
    qmgr.send(queue, b"x" * 300000, mqi.MQMD(Persistence=1), syncpoint=True)
    for _ in range(400):
        qmgr.put(other, b"x" * 32768, mqi.MQMD(Persistence=1), hconn=second)
        qmgr.get(other, hconn=second)
        qmgr.qm.maintain()
    answer = mqi.MQCMIT(qmgr.hconn)
    assert qmgr.depth(queue) == 0
    return answer


@provokes(2121, WARNING)
def begin_without_participants(bench: Bench) -> Answer:
    return mqi.MQBEGIN(bench.qmgr.hconn)


@provokes(2128)
def begin_in_a_unit_of_work(bench: Bench) -> Answer:
    bench.qmgr.send(bench.qmgr.local(), syncpoint=True)
    return mqi.MQBEGIN(bench.qmgr.hconn)


@provokes(2134)
def wrong_begin_options(bench: Bench) -> Answer:
    return mqi.MQBEGIN(bench.qmgr.hconn, mqi.MQBO(StrucId="XXXX"))


# ---- the rest ----


@provokes(2004)
def data_that_is_no_buffer(bench: Bench) -> Answer:
    return bench.qmgr.put(bench.qmgr.opened(bench.qmgr.local(), OUTPUT), 5)


@provokes(2443)
def segment_of_a_message(bench: Bench) -> Answer:
    return putting(bench, Version=2, MsgFlags=mqi.MQMF_SEGMENT, GroupId=b"g" * 24)


@provokes(2365)
def segment_of_a_message_that_may_be_segmented(bench: Bench) -> Answer:
    return putting(bench, Version=2, MsgFlags=mqi.MQMF_SEGMENTATION_ALLOWED | mqi.MQMF_SEGMENT)


@provokes(2247)
def unknown_match_option(bench: Bench) -> Answer:
    return getting(bench, INPUT, b"x", Version=2, MatchOptions=64)


@provokes(2257)
def match_by_a_field_of_version_2(bench: Bench) -> Answer:
    by_group = {"Version": 2, "MatchOptions": mqi.MQMO_MATCH_GROUP_ID}
    return getting(bench, INPUT, b"x", md=mqi.MQMD(Version=1), **by_group)


@provokes(2331)
def match_by_no_token(bench: Bench) -> Answer:
    by_token = {"Version": 3, "MatchOptions": mqi.MQMO_MATCH_MSG_TOKEN}
    return getting(bench, INPUT, b"x", **by_token)


@provokes(2460)
def put_with_a_message_handle(bench: Bench) -> Answer:
    hobj = bench.qmgr.opened(bench.qmgr.local(), OUTPUT)
    pmo = mqi.MQPMO(Version=mqi.MQPMO_VERSION_3, OriginalMsgHandle=5)
    return mqi.MQPUT(bench.qmgr.hconn, hobj, mqi.MQMD(), pmo, b"")


@provokes(2219)
def call_while_another_thread_calls(bench: Bench) -> Answer:
    qmgr = bench.qmgr
    cno = mqi.MQCNO(Options=mqi.MQCNO_HANDLE_SHARE_NO_BLOCK)
    hconn, cc, rc = mqi.MQCONNX(qmgr.name, cno)
    assert (cc, rc) == (OK, 0)
    qmgr.others.append(hconn)
    name = qmgr.local()
    hobj = qmgr.opened(name, INPUT, hconn)
    waiter = threading.Thread(
        target=lambda: qmgr.get(hobj, syncpoint=True, wait=20000, hconn=hconn)
    )
    waiter.start()
    qmgr.until(lambda: qmgr.waiting(name))
    answer = mqi.MQCMIT(hconn)
    qmgr.send(name)
    waiter.join(30)
    return answer


# ---- conversion ----


def converting(
    bench: Bench,
    data: bytes,
    ccsid: int,
    *,
    length: int | None = None,
    encoding: int = 546,
    **fields: Any,
) -> Answer:
    """The answer of an MQGET with conversion of a message with these fields of MQMD."""
    queue = bench.qmgr.local()
    bench.qmgr.send(queue, data, mqi.MQMD(**fields))
    md = mqi.MQMD(CodedCharSetId=ccsid, Encoding=encoding)
    hobj = bench.qmgr.opened(queue, INPUT)
    gmo = mqi.MQGMO(Options=mqi.MQGMO_CONVERT)
    answer = mqi.MQGET(bench.qmgr.hconn, hobj, md, gmo, length)
    assert answer[0] == data
    return answer


@provokes(2110, WARNING)
def conversion_of_data_without_a_format(bench: Bench) -> Answer:
    return converting(bench, b"x", 819)


@provokes(2111, WARNING)
def conversion_from_an_unknown_character_set(bench: Bench) -> Answer:
    return converting(bench, b"x", 819, Format="MQSTR", CodedCharSetId=99999)


@provokes(2112, WARNING)
def conversion_of_utf_16_without_a_byte_order(bench: Bench) -> Answer:
    return converting(bench, b"xx", 819, Format="MQSTR", CodedCharSetId=1200, Encoding=0)


@provokes(2115, WARNING)
def conversion_into_an_unknown_character_set(bench: Bench) -> Answer:
    return converting(bench, b"x", 99999, Format="MQSTR")


@provokes(2116, WARNING)
def conversion_into_utf_16_without_a_byte_order(bench: Bench) -> Answer:
    return converting(bench, b"x", 1200, encoding=0, Format="MQSTR")


@provokes(2119, WARNING)
def conversion_of_what_is_no_text(bench: Bench) -> Answer:
    return converting(bench, b"\xff", 819, Format="MQSTR", CodedCharSetId=1208)


@provokes(2120, WARNING)
def conversion_into_more_than_the_buffer(bench: Bench) -> Answer:
    return converting(bench, b"\xe4", 1208, length=1, Format="MQSTR", CodedCharSetId=819)


@provokes(2190, WARNING)
def conversion_of_a_header_whose_field_is_too_short(bench: Bench) -> Answer:
    header = bytearray(mqi.MQDLH().pack())
    header[12:60] = b"\xe4" * 48
    return converting(bench, bytes(header), 1208, Format="MQDEAD", CodedCharSetId=819)


@provokes(2426)
def wrong_status_structure(bench: Bench) -> Answer:
    return mqi.MQSTAT(bench.qmgr.hconn, mqi.MQSTAT_TYPE_ASYNC_ERROR, mqi.MQSTS(Version=3))
