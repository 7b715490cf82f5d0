"""A program of an MQ client, as its users write it: the Python layer's name is the argument.

Everything that the stand-ins promise, in order; it ends with "done" when all of it was so.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

client: Any = importlib.import_module(sys.argv[1])
CMQC = client.CMQC
LONG = bytes(range(256)) * 64


def refused(reason: int, call: Any, *arguments: Any) -> Any:
    """The exception of a call that must fail with a reason code."""
    try:
        call(*arguments)
    except client.MQMIError as error:
        assert error.reason == reason, error
        return error
    raise AssertionError(f"not refused with {reason}")


def text(value: bytes) -> str:
    return value.rstrip(b" \0").decode()


def put_and_get(qmgr: Any) -> None:
    queue = client.Queue(qmgr, "WORK")  # opened for output by the first put
    md = client.MD(Priority=7, CorrelId=b"c" * 24)
    queue.put("Grüße", md)
    assert any(md.MsgId) and text(md.PutApplName)
    queue.close()
    queue = client.Queue(qmgr, "WORK")
    found = client.MD()
    assert queue.get(None, found) == "Grüße".encode()
    assert (found.MsgId, found.CorrelId, found.Priority) == (md.MsgId, b"c" * 24, 7)
    assert (text(found.Format), found.CodedCharSetId) == ("MQSTR", 1208)
    refused(2033, queue.get)
    refused(2039, queue.put, b"not open for output")
    queue.close()


def truncation(queue: Any) -> None:
    queue.put(LONG)  # longer than what the layer asks for at first
    assert queue.get() == LONG
    queue.put(LONG)
    error = refused(2080, queue.get, 100)
    assert (error.message, error.original_length) == (LONG[:100], len(LONG))
    accept = client.GMO(Options=CMQC.MQGMO_ACCEPT_TRUNCATED_MSG)
    error = refused(2079, queue.get, 100, client.MD(), accept)
    assert (error.message, error.original_length) == (LONG[:100], len(LONG))
    refused(2033, queue.get)


def units(qmgr: Any, queue: Any) -> None:
    inside = client.PMO(Options=CMQC.MQPMO_SYNCPOINT)
    queue.put(b"backed out", client.MD(), inside)
    qmgr.backout()
    refused(2033, queue.get)
    queue.put(b"committed", client.MD(), inside)
    refused(2033, client.Queue(qmgr, "OTHER").get)
    qmgr.commit()
    got = client.GMO(Options=CMQC.MQGMO_SYNCPOINT)
    assert queue.get(None, client.MD(), got) == b"committed"
    qmgr.backout()
    md = client.MD()
    assert queue.get(None, md) == b"committed"
    assert md.BackoutCount == 1


def browse(queue: Any) -> None:
    for number in range(3):
        queue.put(b"%d" % number)
    seen = []
    gmo = client.GMO(Options=CMQC.MQGMO_BROWSE_FIRST)
    try:
        while True:
            seen.append(queue.get(None, client.MD(), gmo))
            gmo.Options = CMQC.MQGMO_BROWSE_NEXT
    except client.MQMIError as error:
        assert error.reason == CMQC.MQRC_NO_MSG_AVAILABLE
    assert seen == [b"0", b"1", b"2"]
    gmo.Options = CMQC.MQGMO_MSG_UNDER_CURSOR
    assert queue.get(None, client.MD(), gmo) == b"2"
    refused(2034, queue.get, None, client.MD(), gmo)
    assert [queue.get() for _ in range(2)] == seen[:2]


def request_and_reply(qmgr: Any, queue: Any) -> None:
    model = client.OD(ObjectName=b"SYSTEM.DEFAULT.MODEL.QUEUE", DynamicQName=b"REPLIES.*")
    replies = client.Queue(qmgr, model, CMQC.MQOO_INPUT_EXCLUSIVE)
    name = model.ObjectName
    assert text(name).startswith("REPLIES.")
    asked = client.MD(MsgType=CMQC.MQMT_REQUEST, ReplyToQ=name)
    queue.put(b"question", asked)

    request = client.MD()
    assert queue.get(None, request) == b"question"
    assert text(request.ReplyToQ) == text(name)
    answer = client.MD(MsgType=CMQC.MQMT_REPLY, CorrelId=request.MsgId)
    qmgr.put1(client.OD(ObjectName=request.ReplyToQ), b"answer", answer)

    wait = client.GMO(Options=CMQC.MQGMO_WAIT, WaitInterval=5000)
    assert replies.get(None, client.MD(CorrelId=asked.MsgId), wait) == b"answer"
    replies.close()
    refused(2085, client.Queue, qmgr, text(name), CMQC.MQOO_OUTPUT)


def attributes(qmgr: Any, queue: Any) -> None:
    assert text(qmgr.inquire(CMQC.MQCA_Q_MGR_NAME)) == "QM1"
    queue.put(b"counted")
    assert queue.inquire(CMQC.MQIA_CURRENT_Q_DEPTH) == 1
    described = queue.inquire(CMQC.MQCA_Q_DESC)
    assert (text(described), len(described)) == ("what is to be done", CMQC.MQ_Q_DESC_LENGTH)
    queue.set(CMQC.MQIA_INHIBIT_PUT, CMQC.MQQA_PUT_INHIBITED)
    refused(2051, queue.put, b"x")
    queue.set(CMQC.MQIA_INHIBIT_PUT, CMQC.MQQA_PUT_ALLOWED)
    refused(2067, queue.inquire, 1999)
    assert queue.get() == b"counted"


def lengths_of_attributes(compiled: Any) -> None:
    """The layer cuts characters in a row by its own table: the stand-in's must be the same."""
    if client.__name__ == "pymqi":
        return
    own = importlib.import_module("penstock.compat.attributes").length_of
    table = importlib.import_module("mqinq").mqAttrLength
    differing = {each: own(each) for each, length in table.items() if own(each) not in (0, length)}
    assert differing == {CMQC.MQCA_NAMES: 48}, differing
    assert compiled.__name__ == "penstock.compat.ibmmqc"


def properties(queue: Any) -> None:
    header = client.RFH2(Format=CMQC.MQFMT_STRING, CodedCharSetId=1208, NameValueCCSID=1208)
    header.add_folder(b"<usr><colour>red</colour></usr>")
    for _ in range(2):
        md = client.MD(Format=CMQC.MQFMT_RF_HEADER_2)
        queue.put_rfh2(b"painted", md, client.PMO(), [header])
    found: list[Any] = []
    assert queue.get_rfh2(None, client.MD(), client.GMO(), found) == b"painted"
    assert b"<colour>red</colour>" in found[0]["usr"]
    md = client.MD()
    without = client.GMO(Options=CMQC.MQGMO_NO_PROPERTIES)
    assert queue.get(None, md, without) == b"painted"
    assert (text(md.Format), md.CodedCharSetId) == ("MQSTR", 1208)


def conversion(queue: Any) -> None:
    queue.put("Grüße")
    md = client.MD(CodedCharSetId=819)
    convert = client.GMO(Options=CMQC.MQGMO_CONVERT)
    assert queue.get(100, md, convert) == "Grüße".encode("latin-1")
    assert md.CodedCharSetId == 819


def what_there_is_not(qmgr: Any) -> None:
    refused(2298, client.MessageHandle, qmgr)
    refused(2298, client.Subscription(qmgr, topic_string="a/b").sub)
    refused(2043, client.Topic(qmgr, topic_string="a/b").open, "T", "a/b", None, CMQC.MQOO_OUTPUT)
    refused(2322, client.PCFExecute(qmgr).MQCMD_PING_Q_MGR)
    selecting = client.OD(ObjectName=b"WORK", Version=CMQC.MQOD_VERSION_4)
    selecting.set_vs("SelectionString", b"colour = 'red'")
    refused(2551, client.Queue, qmgr, selecting, CMQC.MQOO_INPUT_SHARED)
    selecting["SelectionStringVSPtr"] = 16  # leads nowhere
    refused(2519, client.Queue, qmgr, selecting, CMQC.MQOO_INPUT_SHARED)
    refused(2540, client.connect, "QM1", "TO.QM1", "example.invalid(1414)")


def main() -> None:
    refused(2058, client.QueueManager, "NOBODY")
    qmgr = client.QueueManager("QM1")
    put_and_get(qmgr)
    options = (
        CMQC.MQOO_INPUT_SHARED | CMQC.MQOO_OUTPUT | CMQC.MQOO_BROWSE | CMQC.MQOO_INQUIRE
        | CMQC.MQOO_SET
    )  # fmt: skip
    queue = client.Queue(qmgr, "WORK", options)
    truncation(queue)
    units(qmgr, queue)
    browse(queue)
    request_and_reply(qmgr, queue)
    attributes(qmgr, queue)
    lengths_of_attributes(sys.modules.get("ibmmqc"))
    properties(queue)
    conversion(queue)
    what_there_is_not(qmgr)
    queue.close()
    qmgr.disconnect()
    refused(2018, queue_of(qmgr))
    print("done")


def queue_of(qmgr: Any) -> Any:
    """A call with a handle that was given back."""
    number = client.QueueManager("QM1")
    stale = number.get_handle()
    number.disconnect()

    def call() -> None:
        compiled = sys.modules["pymqe" if client.__name__ == "pymqi" else "ibmmqc"]
        _, _, comp_code, reason = compiled.MQOPEN(stale, client.OD().pack(), CMQC.MQOO_OUTPUT)
        raise client.MQMIError(comp_code, reason)

    return call


if __name__ == "__main__":
    main()
