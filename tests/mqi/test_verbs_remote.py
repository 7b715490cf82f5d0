"""Puts to other queue managers: transmission header, two descriptors, clusters, dead letters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import mqi

OUTPUT, INPUT, SET_ALL = 16, 1, 2048


@pytest.fixture
def there(mq: Any) -> Any:
    """Transmission queues XQ and QM2, a remote definition, queue-manager aliases."""
    for name in ("XQ", "QM2"):
        mq.qm.define("QLOCAL", name, usage="XMITQ", defprty=1)
    mq.qm.define("QREMOTE", "R", rname="THERE", rqmname="QM2", defprty=4, defpsist=True)
    mq.qm.define("QREMOTE", "QMA", rname="", rqmname="QM9", xmitq="XQ", defprty=6)
    mq.qm.define("QREMOTE", "HERE", rname="", rqmname="QM1", defprty=7, defpsist=True)
    mq.qm.define("QALIAS", "A", target="R", defprty=3)
    return mq


def unwrap(mq: Any, queue: str) -> tuple[Any, Any, bytes]:
    """Separate descriptor, transmission header and data of the next message."""
    data, md = mq.get(mq.open(queue, INPUT))
    assert md.Format == "MQXMIT"
    return md, mqi.MQXQH.unpack(data[:428]), data[428:]


def test_a_message_for_another_queue_manager_gets_a_transmission_header(there: Any) -> None:
    q = there.open("R", OUTPUT)
    md = there.put(q, b"hello", Format="MQSTR", CorrelId=b"c", Expiry=5000, ReplyToQ="ANS")
    outer, header, data = unwrap(there, "QM2")
    assert (header.RemoteQName, header.RemoteQMgrName, data) == ("THERE", "QM2", b"hello")
    inner = header.MsgDesc
    assert (inner.StrucId, inner.Version) == ("MD", 1)
    assert (inner.Format, inner.CorrelId[:1], inner.Expiry) == ("MQSTR", b"c", 5000)
    assert (inner.MsgId, inner.ReplyToQ, inner.ReplyToQMgr) == (md.MsgId, "ANS", "QM1")
    assert (inner.Priority, inner.Persistence) == (4, 1)
    assert (outer.Priority, outer.Persistence, outer.MsgType, outer.Report) == (4, 1, 8, 0)
    assert outer.MsgId != md.MsgId and outer.Expiry == -1
    assert (outer.UserIdentifier, inner.UserIdentifier) == (md.UserIdentifier,) * 2
    assert inner.PutDate == md.PutDate and inner.PutTime == md.PutTime


FIRST_DEFINITIONS = [
    ("R", "", "QM2", 4, 1),
    ("A", "", "QM2", 3, 0),
    ("ANY", "QMA", "XQ", 6, 0),
    ("ANY", "QM2", "QM2", 1, 0),
]


@pytest.mark.parametrize(("name", "manager", "queue", "priority", "persistence"), FIRST_DEFINITIONS)
def test_defaults_come_from_the_first_definition_at_the_time_of_the_put(
    there: Any, name: str, manager: str, queue: str, priority: int, persistence: int
) -> None:
    q = there.open(name, OUTPUT, ObjectQMgrName=manager)
    there.put(q)
    outer, header, _ = unwrap(there, queue)
    inner = header.MsgDesc
    assert (inner.Priority, inner.Persistence) == (priority, persistence)
    assert (outer.Priority, outer.Persistence) == (priority, persistence)
    kind = {"A": "QALIAS", "R": "QREMOTE"}.get(name)
    if kind:
        there.qm.alter(kind, name, defprty=8)
        there.put(q)
        assert unwrap(there, queue)[1].MsgDesc.Priority == 8


def test_a_queue_manager_alias_for_the_local_one_still_supplies_the_defaults(there: Any) -> None:
    q = there.open("Q", OUTPUT, ObjectQMgrName="HERE")
    there.put(q)
    _, md = there.get(there.open("Q"))
    assert (md.Priority, md.Persistence) == (7, 1)


def test_a_priority_above_the_maximum_is_kept_in_both_descriptors(there: Any) -> None:
    q = there.open("R", OUTPUT)
    assert there.put_code(q, Priority=12) == 2049
    outer, header, _ = unwrap(there, "QM2")
    assert outer.Priority == header.MsgDesc.Priority == 12


def test_fields_of_version_2_follow_the_header_in_an_mqmde(there: Any) -> None:
    q = there.open("R", OUTPUT)
    there.put(q, b"body", Version=2, Format="MQSTR", GroupId=b"g", MsgSeqNumber=4, MsgFlags=8)
    _, header, data = unwrap(there, "QM2")
    mde = mqi.MQMDE.unpack(data[:72])
    assert header.MsgDesc.Format == "MQHMDE"
    assert (mde.Format, mde.GroupId[:1], mde.MsgSeqNumber, mde.MsgFlags) == ("MQSTR", b"g", 4, 8)
    assert data[72:] == b"body"


def test_the_limits_are_those_of_the_transmission_queue(there: Any) -> None:
    q = there.open("R", OUTPUT)
    there.qm.alter("QLOCAL", "QM2", maxmsgl=428 + 10, maxdepth=1)
    assert there.put_code(q, b"x" * 11) == 2030
    assert there.put_code(q, b"x" * 10) == 0
    assert there.put_code(q, b"") == 2053
    there.qm.alter("QLOCAL", "QM2", put="DISABLED")
    assert there.put_code(q, b"") == 2051
    there.qm.alter("QLOCAL", "QM2", put="ENABLED", maxdepth=5)
    there.qm.alter("QREMOTE", "R", put="DISABLED")
    assert there.put_code(q, b"") == 2051


def test_a_remote_put_belongs_to_the_unit_of_work(there: Any) -> None:
    q = there.open("R", OUTPUT)
    there.put(q, options=mqi.MQPMO_SYNCPOINT)
    assert there.get_code(there.open("QM2", INPUT)) == 2033
    assert mqi.MQBACK(there.h) == (0, 0)
    there.put(q, b"two", options=mqi.MQPMO_SYNCPOINT)
    assert mqi.MQCMIT(there.h) == (0, 0)
    assert unwrap(there, "QM2")[2] == b"two"


def test_an_application_may_put_its_own_header(there: Any) -> None:
    q = there.open("XQ", INPUT | OUTPUT)
    header = mqi.MQXQH(RemoteQName="T", RemoteQMgrName="QM3").pack() + b"data"
    there.put(q, header, Format="MQXMIT")
    assert there.get(q)[0] == header
    for wrong in (b"", header[:427], b"x" * 500, header.replace(b"MD  ", b"XX  ")):
        assert there.put_code(q, wrong, Format="MQXMIT") == 2260
    there.put(q, b"no header", Format="MQSTR")


def test_the_python_interface_puts_to_remote_queues_too(there: Any) -> None:
    with there.qm.open("R") as queue:
        result = queue.put(b"from python", priority=2)
    outer, header, data = unwrap(there, "QM2")
    assert (data, outer.Priority, header.MsgDesc.MsgId) == (b"from python", 2, result.msg_id)
    with there.qm.open("THERE", manager="QM2") as queue:
        queue.put(b"by name")
    assert unwrap(there, "QM2")[2] == b"by name"


# What is put is for the queue XQ of another queue manager, although a queue XQ is here.
NAMED_LIKE_ITS_TRANSMISSION_QUEUE = [
    pytest.param("XQ", "XQ", "XQ", id="ObjectQMgrName is the transmission queue"),
    pytest.param("XQ", "QMA", "QM9", id="a queue-manager alias has it as XMITQ"),
    pytest.param("QM2", "ALIAS2", "QM2", id="the queue manager of the alias has its name"),
    pytest.param("XQ", "ELSEWHERE", "ELSEWHERE", id="DEFXMITQ"),
]


@pytest.mark.parametrize("face", ["MQPUT", "MQPUT1", "python"])
@pytest.mark.parametrize(("name", "manager", "far"), NAMED_LIKE_ITS_TRANSMISSION_QUEUE)
def test_a_remote_queue_named_like_its_transmission_queue_gets_a_header(
    there: Any, name: str, manager: str, far: str, face: str
) -> None:
    qm = there.qm
    qm.define("QREMOTE", "ALIAS2", rname="", rqmname="QM2")
    qm.alter("QMGR", qm.name, defxmitq="XQ")
    od = mqi.MQOD(ObjectName=name, ObjectQMgrName=manager, Version=3)
    if face == "python":
        with qm.open(name, manager=manager) as queue:
            assert queue.is_remote
            queue.put(b"far away")
    elif face == "MQPUT":
        hobj, *codes = mqi.MQOPEN(there.h, od, OUTPUT)
        assert (codes, od.KnownDestCount, od.UnknownDestCount) == ([0, 0], 0, 1)
        there.put(hobj, b"far away")
    else:
        result = mqi.MQPUT1(there.h, od, mqi.MQMD(), mqi.MQPMO(), b"far away")
        assert result == (0, 0)
    qm.alter("QMGR", qm.name, defxmitq="", force=True)
    if face != "python":
        assert (od.ResolvedQName, od.ResolvedQMgrName) == (name, far)
    _, header, data = unwrap(there, name)
    assert (header.RemoteQName, header.RemoteQMgrName, data) == (name, far, b"far away")


def test_a_transmission_queue_opened_as_a_queue_takes_the_message_as_it_is(there: Any) -> None:
    for manager in ("", "QM1"):
        there.put(there.open("XQ", OUTPUT, ObjectQMgrName=manager), b"as it is")
        assert there.get(there.open("XQ", INPUT))[0] == b"as it is"


@pytest.mark.parametrize("name", ["R", "A"])
def test_a_remote_definition_opened_for_its_attributes_is_no_destination(
    there: Any, name: str
) -> None:
    hobj = there.open(name, 32)
    assert not hobj.queue.is_remote
    assert there.put_code(hobj) == 2039
    assert mqi.MQCLOSE(there.h, hobj, 1) == (2, 2045)
    assert mqi.MQCLOSE(there.h, hobj, 0) == (0, 0)


# ---- clusters ----


@pytest.fixture
def cluster(mq: Any) -> Any:
    """CQ at QM2 and QM3."""
    for manager, priority in (("QM2", 2), ("QM3", 2)):
        mq.qm.define(
            "QCLUSTER", "CQ", clusqmgr=manager, cluster="C", defprty=priority, defpsist=True
        )
    return mq


def sent(mq: Any) -> tuple[Any, Any, bytes]:
    return unwrap(mq, "SYSTEM.CLUSTER.TRANSMIT.QUEUE")


def test_a_cluster_put_has_two_descriptors(cluster: Any) -> None:
    q = cluster.open("CQ", OUTPUT)
    cluster.put(q, b"x")
    outer, header, data = sent(cluster)
    assert (outer.Priority, outer.Persistence) == (2, 1)
    assert (header.MsgDesc.Priority, header.MsgDesc.Persistence) == (-1, 2)
    assert (header.RemoteQName, data) == ("CQ", b"x")
    cluster.put(q, Priority=5, Persistence=0)
    outer, header, _ = sent(cluster)
    assert (outer.Priority, outer.Persistence) == (5, 0)
    assert (header.MsgDesc.Priority, header.MsgDesc.Persistence) == (5, 0)


def test_an_alias_of_a_cluster_queue_supplies_the_defaults(cluster: Any) -> None:
    cluster.qm.define("QALIAS", "CA", target="CQ", defprty=8)
    cluster.put(cluster.open("CA", OUTPUT))
    outer, header, _ = sent(cluster)
    assert outer.Priority == header.MsgDesc.Priority == 8
    assert header.MsgDesc.Persistence == 0


def test_bind_on_open_keeps_the_instance_and_not_fixed_takes_turns(cluster: Any) -> None:
    fixed = cluster.open("CQ", OUTPUT | mqi.MQOO_BIND_ON_OPEN)
    for _ in range(3):
        cluster.put(fixed)
    assert len({sent(cluster)[1].RemoteQMgrName for _ in range(3)}) == 1
    free = cluster.open("CQ", OUTPUT | mqi.MQOO_BIND_NOT_FIXED)
    for _ in range(4):
        cluster.put(free)
    chosen = [sent(cluster)[1].RemoteQMgrName for _ in range(4)]
    assert set(chosen) == {"QM2", "QM3"} and chosen[:2] == chosen[2:]


def test_puts_go_to_the_instances_of_the_highest_rank_and_priority(cluster: Any) -> None:
    def managers() -> set[str]:
        for _ in range(4):
            od = mqi.MQOD(ObjectName="CQ")
            assert mqi.MQPUT1(cluster.h, od, mqi.MQMD(), mqi.MQPMO(), b"") == (0, 0)
        return {sent(cluster)[1].RemoteQMgrName for _ in range(4)}

    assert managers() == {"QM2", "QM3"}
    cluster.qm.define("QCLUSTER", "CQ", clusqmgr="QM2", cluster="C", clwlprty=1, replace=True)
    assert managers() == {"QM2"}
    cluster.qm.define("QCLUSTER", "CQ", clusqmgr="QM3", cluster="C", clwlrank=1, replace=True)
    assert managers() == {"QM3"}


def test_a_remote_definition_of_a_queue_at_a_cluster_queue_manager(cluster: Any) -> None:
    cluster.qm.define("QREMOTE", "R", rname="CQ", rqmname="QM3", defprty=4)
    cluster.qm.define("QALIAS", "A", target="R", defprty=5)
    for name, priority in (("R", 4), ("A", 5)):
        for bind in (mqi.MQOO_BIND_ON_OPEN, mqi.MQOO_BIND_NOT_FIXED):
            cluster.put(cluster.open(name, OUTPUT | bind), b"x")
            outer, header, data = sent(cluster)
            assert (header.RemoteQName, header.RemoteQMgrName, data) == ("CQ", "QM3", b"x")
            assert outer.Priority == header.MsgDesc.Priority == priority
    assert cluster.open_code("R", OUTPUT | mqi.MQOO_INQUIRE) == 0


def test_inhibited_instances_are_left_out_and_all_inhibited_is_2268(cluster: Any) -> None:
    free = cluster.open("CQ", OUTPUT | mqi.MQOO_BIND_NOT_FIXED)
    cluster.qm.define("QCLUSTER", "CQ", clusqmgr="QM2", cluster="C", put="DISABLED", replace=True)
    for _ in range(3):
        cluster.put(free)
        assert sent(cluster)[1].RemoteQMgrName == "QM3"
    cluster.qm.define("QCLUSTER", "CQ", clusqmgr="QM3", cluster="C", put="DISABLED", replace=True)
    assert cluster.put_code(free) == 2268
    assert cluster.open_code("CQ", OUTPUT) == 2268
    assert mqi.MQPUT1(cluster.h, mqi.MQOD(ObjectName="CQ"), mqi.MQMD(), mqi.MQPMO(), b"") == (
        2,
        2268,
    )


def logged(shared: Any) -> int:
    """Records AMQ9407 in the error log of QM1."""
    files = Path(shared[0], "QM1", "errors").glob("*")
    return sum(path.read_text().count("AMQ9407") for path in files)


def test_instances_that_differ_are_logged_as_amq9407(cluster: Any, shared: Any) -> None:
    before = logged(shared)
    cluster.open("CQ", OUTPUT)
    assert logged(shared) == before
    cluster.qm.define("QCLUSTER", "CQ", clusqmgr="QM3", cluster="C", defprty=9, replace=True)
    cluster.put(cluster.open("CQ", OUTPUT))
    assert logged(shared) == before + 1
    assert sent(cluster)[0].Priority in (2, 9)


def test_amq9407_is_logged_once_for_a_state_of_the_definitions_and_hour(
    cluster: Any, shared: Any
) -> None:
    cluster.qm.define("QCLUSTER", "CQ", clusqmgr="QM3", cluster="C", defprty=9, replace=True)
    before = logged(shared)
    for _ in range(20):
        cluster.open("CQ", OUTPUT)
        od = mqi.MQOD(ObjectName="CQ")
        assert mqi.MQPUT1(cluster.h, od, mqi.MQMD(), mqi.MQPMO(), b"") == (0, 0)
    assert logged(shared) == before + 1
    cluster.qm.define("QCLUSTER", "CQ", clusqmgr="QM3", cluster="C", defprty=8, replace=True)
    cluster.open("CQ", OUTPUT)
    cluster.open("CQ", OUTPUT)
    assert logged(shared) == before + 2


def test_amq9407_is_logged_once_for_all_processes(cluster: Any, shared: Any) -> None:
    cluster.qm.define("QCLUSTER", "CQ", clusqmgr="QM3", cluster="C", defprty=7, replace=True)
    before = logged(shared)
    program = (
        "import sys, penstock\n"
        "with penstock.connect('QM1', sys.argv[1]) as qm, qm.open('CQ', output=True): pass\n"
    )
    for _ in range(3):
        subprocess.run([sys.executable, "-c", program, str(shared[0])], check=True, timeout=60)
    cluster.open("CQ", OUTPUT)
    assert logged(shared) == before + 1


@pytest.mark.parametrize("options", [1, 8, 64, 16 | 64])
def test_a_cluster_queue_that_is_not_here_is_for_output_and_inquire(
    cluster: Any, options: int
) -> None:
    assert cluster.open_code("CQ", options) == 2045
    q = cluster.open("CQ", OUTPUT | 32)
    assert mqi.MQINQ(cluster.h, q, [20, 6, 5, 2016]) == ({20: 7, 6: 2, 5: 1, 2016: "CQ"}, 0, 0)


# ---- dead letters ----


def test_a_dead_letter_has_its_header(own: Any) -> None:
    own.qm.define("QLOCAL", "DLQ")
    own.qm.alter("QMGR", "", deadq="DLQ")
    q = own.open("Q", OUTPUT | SET_ALL)
    own.put(
        q, b"body", mqi.MQPMO_SET_ALL_CONTEXT, Format="MQSTR", CodedCharSetId=37, Encoding=273,
        Priority=6, Persistence=1, CorrelId=b"c", UserIdentifier="PUTTER", Report=0, Expiry=900,
    )  # fmt: skip
    with own.qm.open("Q") as queue:
        own.qm.dead_letter(queue.get(), 2053, "TARGET", "QM7")
    data, md = own.get(own.open("DLQ"))
    header = mqi.MQDLH.unpack(data[:172])
    assert (header.Reason, header.DestQName, header.DestQMgrName) == (2053, "TARGET", "QM7")
    assert (header.Format, header.CodedCharSetId, header.Encoding) == ("MQSTR", 37, 273)
    assert header.PutApplName and len(header.PutDate + header.PutTime) == 16
    assert (md.Format, md.CodedCharSetId, data[172:]) == ("MQDEAD", 1208, b"body")
    assert (md.Priority, md.Persistence, md.CorrelId[:1]) == (6, 1, b"c")
    assert md.UserIdentifier == "PUTTER" and 0 < md.Expiry <= 900


def test_without_a_dead_letter_queue_there_is_an_error(mq: Any) -> None:
    with mq.qm.open("Q") as queue:
        queue.put(b"x")
        with pytest.raises(penstock.UnknownObjectName, match="DEADQ"):
            mq.qm.dead_letter(queue.get(), 2053)


# ---- replies ----


@pytest.mark.parametrize(
    ("report", "msg_id", "correl_id"),
    [(0, None, b"m"), (128, b"m", b"m"), (64, None, b"c"), (192, b"m", b"c")],
)
def test_a_reply_has_the_ids_that_the_report_options_request(
    mq: Any, report: int, msg_id: bytes | None, correl_id: bytes
) -> None:
    mq.qm.define("QLOCAL", "ANS")
    with mq.qm.open("Q") as queue, mq.qm.open("ANS") as answers:
        queue.put(
            b"?", priority=7, persistent=True, msg_id=b"m", correl_id=b"c", msg_type=1,
            reply_to_q="ANS", report=report,
        )  # fmt: skip
        request = queue.get()
        mq.qm.reply(request, b"!")
        answers.put(**request.reply(b"!!", priority=1))
        first, second = answers.get(), answers.get()
    assert (first.data, first.priority, first.persistent, first.msg_type) == (b"!", 7, True, 2)
    assert first.correl_id == correl_id.ljust(24, b"\0")
    assert (first.msg_id == b"m".ljust(24, b"\0")) == (msg_id is not None)
    assert (second.data, second.priority) == (b"!!", 1)


def test_a_reply_inherits_discard_and_expiry_on_request(mq: Any) -> None:
    with mq.qm.open("Q") as queue:
        queue.put(b"?", expiry=60, report=16384 | 0x08000000)
        reply = queue.get().reply()
        queue.put(b"?", expiry=60)
        plain = queue.get().reply()
    assert 50 < reply["expiry"] <= 60 and reply["report"] == 0x08000000
    assert "expiry" not in plain and "report" not in plain


def test_replies_keep_odd_priorities_and_meet_temporary_queues(mq: Any) -> None:
    mq.qm.define("QMODEL", "M", deftype="TEMPDYN", share=True, defsopt="SHARED")
    with mq.qm.open("M", dynamic_name="REPLY.*") as answers, mq.qm.open("Q") as queue:
        assert answers.name.startswith("REPLY.")
        queue.put(b"?", priority=12, persistent=False, reply_to_q=answers.name)
        assert mq.qm.reply(queue.get(), b"!").reason == 2049
        assert answers.get().priority == 12
        queue.put(b"?", persistent=True, reply_to_q=answers.name)
        with pytest.raises(penstock.PersistentNotAllowed):
            mq.qm.reply(queue.get(), b"!")
        queue.put(b"?")
        with pytest.raises(penstock.InvalidValue):
            mq.qm.reply(queue.get(), b"!")
    assert mq.qm.look_up(1, answers.name) is None


def test_permanent_dynamic_queues_are_deleted_by_close(mq: Any) -> None:
    mq.qm.define("QMODEL", "M", deftype="PERMDYN")
    queue = mq.qm.open("M", dynamic_name="D")
    queue.put(b"x")
    with pytest.raises(penstock.QueueNotEmpty):
        queue.close(delete=True)
    queue.close(purge=True)
    assert mq.qm.look_up(1, "D") is None
    with mq.qm.open("Q") as predefined, pytest.raises(penstock.OptionNotValidForType):
        predefined.close(delete=True)
