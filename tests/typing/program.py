"""A user's program, checked by mypy --strict and never run."""

from __future__ import annotations

from datetime import datetime

import penstock


def work(home: str) -> list[bytes]:
    penstock.create("QM1", home=home, journal_limit=1 << 30)
    names: list[str] = penstock.managers(home)
    with penstock.connect(names[0], home=home, create=False) as qm:
        qm.define("QLOCAL", "ORDERS", defpsist=True, defprty=4, maxdepth=10)
        with qm.open("ORDERS") as q:
            result: penstock.PutResult = q.put(b"x", priority=5, persistent=None, expiry=1.5)
            code: int = result.comp_code
            q.put(bytearray(b"x"), msg_id=result.msg_id, syncpoint=True)
            qm.commit()
            m: penstock.Message = q.get(wait=None, correl_id=bytes(24))
            when: datetime = m.put_time
            left: float | None = m.expiry
            bodies = [found.data for found in q.browse()]
            q.put("text")
            q.put(json={"order": [4711, None]}, priority=3)
            said: list[str] = [found.text for found in q]
            value: object = q.get(default=m).json()
            answered: int = q.serve(lambda asked: asked.text.upper(), wait=0, limit=2)
            reply: penstock.Message = q.request("?", timeout=1.5, priority=3)
            depth: int = q.depth + len(q) + answered + len(reply)
            q.close(delete=False, purge=False)
        with qm.transaction() as unit, qm.queue("OTHER", maxmsgl=100) as other:
            other.put(str((code, when, left, depth, unit.count, said, value)))
        held: penstock.Unit = qm.unit()
        with held, qm.open("OTHER") as other:
            taken: penstock.Message | None = other.get(default=None, unit=held)
            other.put(b"" if taken is None else taken.data, unit=held)
            other.put_batch([b"x"], unit=held)
            print(len(other.get_batch(1, unit=held)), other.take_batch_uncopied(1, unit=held))
        try:
            held.commit()
        except (penstock.CallInProgress, penstock.UnitNotAvailable) as ended:
            print(ended.reason)
        for row in qm.display("QLOCAL", "O*"):
            print(row["name"], row["curdepth"], qm.status().journal_bytes)
        try:
            qm.open("NONE")
        except penstock.UnknownObjectName as error:
            print(error.comp_code, error.reason, error.reason_name)
    with penstock.temporary(discard=False, journal_limit="1G") as made:
        made.queue("Q").close()
    penstock.delete("QM1", home=home)
    return bodies


def structures() -> tuple[int, str, bytes]:
    from penstock import mqi

    md = mqi.MQMD(Persistence=1, Format="MQSTR")
    md.Priority = 4
    md.ReplyToQ = b"REPLY"
    od = mqi.MQOD(Version=2, ObjectRecs=[mqi.MQOR(ObjectName="Q")])
    records: list[mqi.MQOR] = od.ObjectRecs
    inner: mqi.MQMD = mqi.MQXQH.unpack(mqi.MQXQH().pack()).MsgDesc
    return inner.Priority + mqi.MQMD.Priority.offset, records[0].ObjectName, md.copy().MsgId
