"""The model against the reference: its test vectors and tables, without the engine."""

from __future__ import annotations

from typing import Any

import pytest
from model_state import Answer
from mq_numbers import GMO, OO, PMO

from model import QueueManager

SURROUNDINGS = {
    "CodedCharSetId": 1208,
    "UserIdentifier": "me",
    "AccountingToken": bytes(32),
    "PutApplType": 6,
    "PutApplName": "program",
}
EVERYTHING = int(OO.INPUT_SHARED | OO.OUTPUT | OO.BROWSE | OO.INQUIRE)


class Bench:
    """A model with one connection and a queue Q, DEFPRTY(3)."""

    def __init__(self, zos: bool = False, **attrs: Any) -> None:
        self.qm = QueueManager("QM1", SURROUNDINGS, zos)
        self.qm.define("QLOCAL", "Q", {"DEFPRTY": 3, **attrs})
        self.qm.connect(1, 1)
        self.hobj = 0

    def call(self, verb: str, **arguments: Any) -> Answer:
        return self.qm.call(verb, 1, **arguments)

    def open(self, name: str = "Q", options: int = EVERYTHING, **od: Any) -> int:
        self.hobj += 1
        made = self.call("MQOPEN", hobj=self.hobj, od={"ObjectName": name, **od}, options=options)
        assert made.reasons == {0}, made
        return self.hobj

    def put(self, hobj: int, data: bytes = b"", options: int = 0, **md: Any) -> int:
        md = {"Version": 2, **md}
        done = self.call("MQPUT", hobj=hobj, md=md, pmo={"Options": options}, data=data)
        (reason,) = done.reasons
        return reason

    def get(self, hobj: int, options: int = 0, room: int | None = None) -> Answer:
        return self.call("MQGET", hobj=hobj, md={}, gmo={"Options": options}, room=room)

    def close(self, hobj: int, options: int = 0) -> int:
        (reason,) = self.call("MQCLOSE", hobj=hobj, options=options).reasons
        return reason


@pytest.mark.parametrize(
    ("fifo", "priority", "reason", "field", "queued_at"),
    [
        (0, -1, 0, 3, 3),
        (0, 0, 0, 0, 0),
        (0, 9, 0, 9, 9),
        (0, 12, 2049, 12, 9),
        (0, -2, 2050, None, None),
        (1, 7, 0, 7, 3),
        (1, 12, 2049, 12, 3),
    ],
)
def test_the_model_gives_the_priority_vectors(
    fifo: int, priority: int, reason: int, field: int | None, queued_at: int | None
) -> None:
    bench = Bench(MSGDLVSQ=fifo)
    assert bench.put(bench.open(), Priority=priority) == reason
    queued = [(m.md["Priority"], m.placement) for m in bench.qm.queues()[0].messages]
    assert queued == ([] if field is None else [(field, queued_at)])


def test_in_the_model_the_first_definition_in_the_path_supplies_the_defaults() -> None:
    bench = Bench()
    bench.qm.define("QALIAS", "A", {"TARGET": "Q", "DEFPRTY": 5, "DEFPSIST": 1})
    bench.put(bench.open("A", int(OO.OUTPUT)))
    (message,) = bench.qm.queues()[0].messages
    assert (message.md["Priority"], message.md["Persistence"]) == (5, 1)


def test_the_model_places_the_first_of_a_group_at_2_on_zos_with_a_group_index() -> None:
    placed = {}
    for zos, index, sequence in [(True, 5, 1), (True, 5, 2), (True, 0, 1), (False, 5, 1)]:
        bench = Bench(zos, INDXTYPE=index)
        bench.put(bench.open(), Priority=1, MsgSeqNumber=sequence)
        placed[zos, index, sequence] = bench.qm.queues()[0].messages[0].placement
    assert placed == {(True, 5, 1): 2, (True, 5, 2): 1, (True, 0, 1): 1, (False, 5, 1): 1}


# Kind of queue, closing handle, contents: reasons for NONE, DELETE, DELETE_PURGE; whether the queue
# exists afterwards.
TABLE_74 = [
    ("predefined", "other", "empty", (0, 2045, 2045), (True, True, True)),
    ("permanent", "other", "empty", (0, 0, 0), (True, False, False)),
    ("permanent", "other", "message", (0, 2055, 0), (True, True, False)),
    ("permanent", "other", "pending", (0, 2055, 2055), (True, True, True)),
    ("permanent", "creator", "empty", (0, 0, 0), (True, False, False)),
    ("temporary", "creator", "message", (0, 0, 0), (False, False, False)),
    ("temporary", "creator", "pending", (0, 0, 0), (False, False, False)),
    ("temporary", "other", "message", (0, 2045, 2045), (True, True, True)),
]


@pytest.mark.parametrize("option", [0, 1, 2])
@pytest.mark.parametrize(("kind", "closer", "content", "reasons", "stays"), TABLE_74)
def test_the_model_gives_table_74(
    kind: str,
    closer: str,
    content: str,
    reasons: tuple[int, ...],
    stays: tuple[bool, ...],
    option: int,
) -> None:
    bench = Bench()
    name = "Q"
    if kind != "predefined":
        name = "D"
        bench.qm.define(
            "QMODEL", "M", {"DEFTYPE": {"permanent": 2, "temporary": 3}[kind], "SHARE": 1}
        )
        handle = bench.open("M", DynamicQName="D")
    if kind == "predefined" or closer == "other":
        handle = bench.open(name)
    if content != "empty":
        bench.put(handle, options=int(PMO.SYNCPOINT) if content == "pending" else 0)
    assert bench.close(handle, option) == reasons[option]
    assert (name in bench.qm.objects) == stays[option]


def test_in_the_model_order_is_put_order_not_commit_order() -> None:
    bench = Bench()
    hobj = bench.open()
    bench.put(hobj, b"first", int(PMO.SYNCPOINT), Priority=5)
    bench.put(hobj, b"second", Priority=5)
    assert bench.get(hobj).values["data"] == b"second"
    bench.put(hobj, b"third", Priority=5)
    bench.call("MQCMIT")
    assert [bench.get(hobj).values["data"] for _ in range(2)] == [b"first", b"third"]


def test_in_the_model_a_backed_out_get_returns_to_its_position_with_a_higher_count() -> None:
    bench = Bench()
    hobj = bench.open()
    for data in (b"one", b"two"):
        bench.put(hobj, data)
    bench.get(hobj, int(GMO.SYNCPOINT))
    bench.call("MQBACK")
    again = bench.get(hobj)
    assert (again.values["data"], again.values["md"]["BackoutCount"]) == (b"one", 1)


@pytest.mark.parametrize(
    ("room", "option", "reason", "left"),
    [(5, 0, 0, 0), (4, 0, 2080, 1), (4, int(GMO.ACCEPT_TRUNCATED_MSG), 2079, 0), (0, 64, 2079, 0)],
)
def test_the_model_truncates_as_the_table_says(
    room: int, option: int, reason: int, left: int
) -> None:
    bench = Bench()
    hobj = bench.open()
    bench.put(hobj, b"12345")
    got = bench.get(hobj, option, room)
    assert got.reasons == {reason}
    assert (got.values["length"], got.values["data"]) == (5, b"12345"[:room])
    assert bench.qm.queues()[0].depth() == left


@pytest.mark.parametrize(
    ("orderly", "kept"), [(True, [b"persistent", b"high"]), (False, [b"persistent"])]
)
def test_in_the_model_restart_keeps_what_the_table_says(orderly: bool, kept: list[bytes]) -> None:
    bench = Bench()
    bench.qm.define("QLOCAL", "HIGH", {"NPMCLASS": 10})
    bench.put(bench.open(), b"persistent", Persistence=1)
    bench.put(1, b"normal", Persistence=0)
    bench.put(1, b"in flight", int(PMO.SYNCPOINT), Persistence=1)
    bench.put(bench.open("HIGH"), b"high", Persistence=0)
    bench.qm.restart(orderly)
    found = [m["data"] for picture in bench.qm.dump().values() for m in picture["messages"]]
    assert found == kept


def test_in_the_model_a_browse_misses_a_higher_priority_that_arrives_behind_its_cursor() -> None:
    bench = Bench()
    hobj = bench.open()
    bench.put(hobj, b"5", Priority=5)
    bench.get(hobj, int(GMO.BROWSE_FIRST))
    bench.put(hobj, b"9", Priority=9)
    bench.put(hobj, b"1", Priority=1)
    assert bench.get(hobj, int(GMO.BROWSE_NEXT)).values["data"] == b"1"
    assert bench.get(hobj, int(GMO.BROWSE_FIRST)).values["data"] == b"9"


def test_in_the_model_a_changed_alias_marks_its_handles() -> None:
    bench = Bench()
    bench.qm.define("QALIAS", "A", {"TARGET": "Q"})
    hobj = bench.open("A", int(OO.OUTPUT))
    bench.qm.alter("QALIAS", "A", {"DEFPRTY": 1})
    assert bench.put(hobj) == 0
    bench.qm.alter("QALIAS", "A", {"TARGET": "OTHER"})
    assert bench.put(hobj) == 2041
    assert bench.close(hobj) == 0
