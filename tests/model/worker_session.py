"""A worker's calls at the Python interface: batches and prepared units of work."""

from __future__ import annotations

from typing import Any

import penstock
from penstock import Xid
from penstock.batch import MessageBatch

SAME = (  # fields of an MQMD that are columns of a row, under their Python names
    ("Report", "report"),
    ("MsgType", "msg_type"),
    ("Expiry", "expiry"),
    ("Feedback", "feedback"),
    ("Encoding", "encoding"),
    ("CodedCharSetId", "ccsid"),
    ("Priority", "priority"),
    ("Persistence", "persistence"),
    ("BackoutCount", "backout_count"),
    ("PutApplType", "put_appl_type"),
    ("MsgSeqNumber", "msg_seq_number"),
    ("Offset", "offset"),
    ("MsgFlags", "msg_flags"),
    ("OriginalLength", "original_length"),
)
IDS = (
    ("MsgId", "msg_id", 24),
    ("CorrelId", "correl_id", 24),
    ("GroupId", "group_id", 24),
    ("AccountingToken", "accounting_token", 32),
)
TEXTS = (
    ("Format", "format"),
    ("ReplyToQ", "reply_to_q"),
    ("ReplyToQMgr", "reply_to_qmgr"),
    ("UserIdentifier", "user_identifier"),
    ("ApplIdentityData", "appl_identity_data"),
    ("PutApplName", "put_appl_name"),
    ("ApplOriginData", "appl_origin_data"),
)


def xid_of(number: int) -> Xid:
    return Xid(0x4D4F444C, b"model", str(number).encode())


def put_moment(row: Any) -> dict[str, str]:
    """PutDate and PutTime as MQMD has them; blank when the putter left them out."""
    stamp = int(row["put_time"].astype("int64"))
    if stamp <= 0:
        return {"PutDate": "", "PutTime": ""}
    whole, left = divmod(stamp, 1_000_000)
    text = str(row["put_time"].astype("M8[s]"))
    assert whole >= 0
    date, clock = text.split("T")
    hundredths = f"{left // 10_000:02}"
    return {"PutDate": date.replace("-", ""), "PutTime": clock.replace(":", "") + hundredths}


def describe_row(row: Any) -> dict[str, Any]:
    """The MQMD of a row."""
    md: dict[str, Any] = {field: int(row[name]) for field, name in SAME}
    md |= {field: bytes(row[name]).ljust(size, b"\0") for field, name, size in IDS}
    md |= {field: bytes(row[name]).decode("latin-1").rstrip(" \0") for field, name in TEXTS}
    return md | put_moment(row)


def describe(batch: MessageBatch) -> list[dict[str, Any]]:
    return [
        {"md": describe_row(batch.descriptors[index]), "data": batch.body(index)}
        for index in range(len(batch))
    ]


class SessionWorker:
    """The Python interface of one process; handles by the numbers that the caller chose."""

    def __init__(self, manager: penstock.QueueManager) -> None:
        self.manager = manager
        self.queues: dict[int, penstock.Queue] = {}
        self.marks: dict[int | None, tuple[tuple[int, int], int]] = {}

    def run(self, do: str, arguments: dict[str, Any]) -> Any:
        """One call: (completion code, reason code, values)."""
        try:
            return 0, 0, getattr(self, "do_" + do)(**arguments) or {}
        except penstock.MQError as error:
            values = {"text": str(error)}
            count = getattr(error, "count", None)
            return 2, int(error.reason), values | ({} if count is None else {"count": count})

    def _queue(self, hobj: int) -> penstock.Queue:
        if hobj not in self.queues:
            raise penstock.MQError(2019, "no such handle")
        return self.queues[hobj]

    def do_py_open(self, hobj: int, name: str, options: int) -> None:
        self.queues[hobj] = self.manager.open(
            name,
            input=bool(options & 2),
            output=bool(options & 16),
            browse=bool(options & 8),
        )

    def do_py_close(self, hobj: int) -> None:
        self._queue(hobj)
        self.queues.pop(hobj).close()

    def do_put_batch(self, hobj: int, rows: list[dict[str, Any]], syncpoint: bool) -> Any:
        columns: dict[str, Any] = {}
        if rows:
            columns = {key: [row[key] for row in rows] for key in rows[0] if key != "data"}
        queue = self._queue(hobj)
        result = queue.put_batch([row["data"] for row in rows], syncpoint=syncpoint, **columns)
        numbers = result.numbers.tolist()
        singly = queue.is_remote or not any(numbers)
        assert singly or numbers == sorted(set(numbers)), "message numbers do not rise"
        return {"count": len(result), "warnings": result.warnings, "msg_ids": result.msg_ids}

    def do_get_batch(
        self, hobj: int, most: int, max_bytes: int | None, syncpoint: bool,
        persistent_only: bool, up_to: int | None,
    ) -> Any:  # fmt: skip
        queue = self._queue(hobj)
        slot, bound = self.marks.get(up_to, ((0, 0), 0))
        batch = queue.get_batch(
            most,
            max_bytes=max_bytes,
            syncpoint=syncpoint,
            persistent_only=persistent_only,
            up_to=None if up_to is None else bound if slot == queue.slot else 0,
        )
        return {"rows": describe(batch)}

    def do_browse_batch(
        self, hobj: int, most: int, first: bool, max_bytes: int, persistent_only: bool
    ) -> Any:
        batch = self._queue(hobj).browse_batch(
            most, first=first, max_bytes=max_bytes, persistent_only=persistent_only
        )
        return {"rows": describe(batch)}

    def do_mark(self, hobj: int, number: int) -> None:
        queue = self._queue(hobj)
        self.marks[number] = queue.slot, queue.newest_number

    def do_py_end(self, commit: bool) -> None:
        if commit:
            self.manager.commit()
        else:
            self.manager.backout()

    def do_prepare(self, xid: int, allow_empty: bool) -> None:
        self.manager.prepare(xid_of(xid), allow_empty=allow_empty)

    def do_end_prepared(self, xids: list[int], commit: bool) -> Any:
        names = [xid_of(xid) for xid in xids]
        if commit:
            self.manager.commit_prepared(*names)
            return {"discarded": 0}
        return {"discarded": self.manager.backout_prepared(*names)}

    def do_browse_prepared(self, xid: int, first: int, last: int | None) -> Any:
        return {"rows": self._prepared(xid_of(xid), first, last)}

    def _prepared(self, xid: Xid, first: int, last: int | None) -> list[dict[str, Any]]:
        batch = self.manager.browse_prepared(xid, first, last)
        return [
            {"put": put, **row}
            for put, row in zip(batch.is_put.tolist(), describe(batch), strict=True)
        ]

    def do_recover(self) -> Any:
        listed = self.manager.prepared_list()
        assert self.manager.recover() == [unit.xid for unit in listed]
        return {
            "units": [
                {
                    "xid": int(unit.xid.bqual),
                    "puts": unit.puts,
                    "gets": unit.gets,
                    "nonpersistent": unit.nonpersistent,
                    "bytes": unit.bytes,
                    "rows": self._prepared(unit.xid, 0, None),
                }
                for unit in listed
            ]
        }
