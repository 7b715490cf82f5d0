"""Bad input: the documented reason code, and nothing changed. The tables are in `bad_input`; each
call is made between two full pictures of the queue manager, which must be equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import bad_input
import pytest

import penstock
from penstock import mqi

SMALL = {"segment_size": 1 << 20, "journal_limit": 64 << 20, "ring_size": 1 << 20}
QUEUES = ("Q", "OTHER")
SHARED = 64  # MQCNO_HANDLE_SHARE_BLOCK
STRUCTURES = [getattr(mqi, name) for name in bad_input.VERSIONS]
UNLIMITED = ("ObjectString", "SelectionString", "ResObjectString", "SubName")
WRONG: dict[type, tuple[Any, ...]] = {  # by the type of a field's value
    int: (None, 1.5, [], 2**63, -(2**63) - 1, "5", b"5"),
    str: (None, 1.5, [], 5, "x" * 200, b"x" * 200),
    bytes: (None, 1.5, [], 5, b"x" * 200),
}


class Bench:
    """A queue manager with messages, units of work under way, and handles of several kinds."""

    def __init__(self, home: Path) -> None:
        penstock.create("QM1", home, **SMALL)
        self.qm = penstock.connect("QM1", home)
        for name in QUEUES:
            self.qm.define("QLOCAL", name, defprty=3)
        self.qm.define("QMODEL", "M", deftype="PERMDYN")
        self.hconn, self.other, self.watcher, self.ended = (self._connect() for _ in range(4))
        mqi.MQDISC(self.ended)
        self.all = self.open(self.hconn, 2 | 8 | 16 | 32 | 64)
        self.output = self.open(self.hconn, 16)
        self.closed = self.open(self.hconn, 16)
        mqi.MQCLOSE(self.hconn, self.closed, 0)
        self.foreign = self.open(self.other, 2 | 8 | 16 | 32 | 64)
        for number in range(4):
            md = mqi.MQMD(Persistence=number % 2, Priority=number)
            self._put(self.foreign, md, 2 if number == 3 else 4)
        self._take()

    def _connect(self) -> Any:
        hconn, cc, rc = mqi.MQCONNX("QM1", mqi.MQCNO(Options=SHARED))
        assert (cc, rc) == (0, 0)
        return hconn

    def open(self, hconn: Any, options: int, name: str = "Q") -> Any:
        hobj, cc, rc = mqi.MQOPEN(hconn, mqi.MQOD(ObjectName=name), options)
        assert (cc, rc) == (0, 0)
        return hobj

    def _put(self, hobj: Any, md: Any, options: int) -> None:
        pmo = mqi.MQPMO(Options=options)
        assert mqi.MQPUT(self.other, hobj, md, pmo, b"body") == (0, 0)

    def _take(self) -> None:
        _, _, cc, _ = mqi.MQGET(self.other, self.foreign, mqi.MQMD(), mqi.MQGMO(Options=2))
        assert cc == 0

    def picture(self) -> dict[str, Any]:
        """All state of the queue manager that other processes can see."""
        units = [(row["pid"], row["count"]) for row in self.qm.unit_rows()]
        seen: dict[str, Any] = {"units": sorted(units), "handles": len(self.qm.handle_rows())}
        for definition in self.qm.display("QLOCAL", "*"):
            seen[str(definition["name"])] = dict(definition)
        for name in QUEUES:
            seen["on " + name] = self._messages(name)
        return seen

    def _messages(self, name: str) -> list[tuple[bytes, bytes]]:
        hobj = self.open(self.watcher, 8, name)
        found = []
        while True:
            md = mqi.MQMD(Version=2)
            gmo = mqi.MQGMO(Version=2, Options=32, MatchOptions=0)
            data, _, cc, rc = mqi.MQGET(self.watcher, hobj, md, gmo)
            if cc:
                break
            found.append((data, md.pack()))
        assert rc == 2033
        mqi.MQCLOSE(self.watcher, hobj, 0)
        return found

    @contextmanager
    def unchanged(self, *structures: Any) -> Iterator[None]:
        """Neither the queue manager nor the caller's structures change in the block."""
        before = self.picture()
        packed = [structure.pack() for structure in structures]
        yield
        assert self.picture() == before
        assert [structure.pack() for structure in structures] == packed


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_HOME", str(home))
        made = Bench(home)
        yield made
        for hconn in (made.hconn, made.other, made.watcher):
            mqi.MQDISC(hconn)
        made.qm.close()
        penstock.delete("QM1", home)


def name_of(row: Any) -> str:
    """The same in every process: no address of an object."""
    return "object" if type(row) is object else str(row)[:60]


def filled(make: Any, fields: dict[str, Any], **good: Any) -> Any:
    made = make(**good)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def structures(row: bad_input.Row, **good: dict[str, Any]) -> dict[str, Any]:
    """Good structures, the one of the row with its bad fields."""
    wrong, fields, _, _ = row
    makers = {"md": mqi.MQMD, "pmo": mqi.MQPMO, "gmo": mqi.MQGMO, "od": mqi.MQOD}
    return {
        name: filled(makers[name], fields if name == wrong else {}, **values)
        for name, values in good.items()
    }


# ---- fields ----


@pytest.mark.parametrize("row", [*bad_input.PUTS, *bad_input.PUT_ONLY], ids=name_of)
def test_mqput_refuses_a_bad_field(bench: Bench, row: bad_input.Row) -> None:
    made = structures(row, md={"Version": 2}, pmo={"Version": 2})
    with bench.unchanged(*made.values()):
        cc, rc = mqi.MQPUT(bench.hconn, bench.output, made["md"], made["pmo"], b"data")
    assert cc == 2 and rc in row[2], row


@pytest.mark.parametrize("row", [*bad_input.PUTS, *bad_input.OPENS], ids=name_of)
def test_mqput1_refuses_a_bad_field(bench: Bench, row: bad_input.Row) -> None:
    od = {"Version": 2, "ObjectName": "Q"}
    made = structures(row, od=od, md={"Version": 2}, pmo={"Version": 2})
    with bench.unchanged(*made.values()):
        cc, rc = mqi.MQPUT1(bench.hconn, made["od"], made["md"], made["pmo"], b"data")
    assert cc == 2 and rc in row[2], row


@pytest.mark.parametrize("row", bad_input.GETS, ids=name_of)
def test_mqget_refuses_a_bad_field(bench: Bench, row: bad_input.Row) -> None:
    made = structures(row, md={"Version": 2}, gmo={"Version": 4})
    with bench.unchanged(*made.values()):
        data, length, cc, rc = mqi.MQGET(bench.hconn, bench.all, made["md"], made["gmo"])
    assert (bytes(data), length, cc) == (b"", 0, 2) and rc in row[2], row


@pytest.mark.parametrize("row", [*bad_input.OPENS, *bad_input.DYNAMIC], ids=name_of)
def test_mqopen_refuses_a_bad_field(bench: Bench, row: bad_input.Row) -> None:
    made = structures(row, od={"Version": 2, "ObjectName": "Q"})
    with bench.unchanged(*made.values()):
        hobj, cc, rc = mqi.MQOPEN(bench.hconn, made["od"], 16)
    assert (hobj, cc) == (mqi.MQHO_UNUSABLE_HOBJ, 2) and rc in row[2], row


def test_mqput1_refuses_a_model_queue(bench: Bench) -> None:
    od = mqi.MQOD(ObjectName="M")
    with bench.unchanged(od):
        assert mqi.MQPUT1(bench.hconn, od, mqi.MQMD(), mqi.MQPMO(), b"") == (2, 2057)


@pytest.mark.parametrize("bit", [0x08, 0x10, 0x20, 0x20000000, 0x40000000, -(2**31)])
def test_an_unknown_report_bit_of_the_accept_mask_gives_2104_and_the_message(
    bench: Bench, bit: int
) -> None:
    md = mqi.MQMD(Report=bit)
    assert mqi.MQPUT1(bench.hconn, mqi.MQOD(ObjectName="Q"), md, mqi.MQPMO(), b"") == (1, 2104)
    got = mqi.MQMD(MsgId=md.MsgId)
    assert mqi.MQGET(bench.hconn, bench.all, got, mqi.MQGMO())[2:] == (0, 0)
    assert got.Report == bit


# ---- options, selectors, values ----


@pytest.mark.parametrize(("options", "reason", "section"), bad_input.OPEN_OPTIONS, ids=name_of)
def test_mqopen_refuses_bad_options(bench: Bench, options: Any, reason: int, section: str) -> None:
    od = mqi.MQOD(ObjectName="Q")
    with bench.unchanged(od):
        hobj, cc, rc = mqi.MQOPEN(bench.hconn, od, options)
    assert (hobj, cc, rc) == (mqi.MQHO_UNUSABLE_HOBJ, 2, reason), section


@pytest.mark.parametrize(("options", "reason", "section"), bad_input.CLOSE_OPTIONS, ids=name_of)
def test_mqclose_refuses_bad_options_and_the_handle_stays(
    bench: Bench, options: Any, reason: int, section: str
) -> None:
    with bench.unchanged():
        assert mqi.MQCLOSE(bench.hconn, bench.all, options) == (2, reason), section
    assert mqi.MQINQ(bench.hconn, bench.all, [3])[1:] == (0, 0)


@pytest.mark.parametrize(("selectors", "reasons", "section"), bad_input.INQUIRED, ids=name_of)
def test_mqinq_refuses_bad_selectors(
    bench: Bench, selectors: Any, reasons: frozenset[int], section: str
) -> None:
    with bench.unchanged():
        values, cc, rc = mqi.MQINQ(bench.hconn, bench.all, selectors)
    assert (values, cc) == ({}, 2) and rc in reasons, section


@pytest.mark.parametrize(("values", "reasons", "section"), bad_input.SET_VALUES, ids=name_of)
def test_mqset_refuses_bad_values_as_a_whole(
    bench: Bench, values: Any, reasons: frozenset[int], section: str
) -> None:
    with bench.unchanged():
        cc, rc = mqi.MQSET(bench.hconn, bench.all, values)
    assert cc == 2 and rc in reasons, section


@pytest.mark.parametrize("length", [-1, -5, bad_input.LOW, -(2**70), "5", 1.5, b""])
def test_mqget_refuses_a_bad_buffer_length(bench: Bench, length: Any) -> None:
    with bench.unchanged():
        result = mqi.MQGET(bench.hconn, bench.all, mqi.MQMD(), mqi.MQGMO(), length)
    assert result == (b"", 0, 2, 2005)


@pytest.mark.parametrize("data", ["text", 5, 1.5, object(), [1, 2]], ids=name_of)
def test_mqput_refuses_data_that_is_no_buffer(bench: Bench, data: Any) -> None:
    od = mqi.MQOD(ObjectName="Q")
    with bench.unchanged(od):
        put = mqi.MQPUT(bench.hconn, bench.output, mqi.MQMD(), mqi.MQPMO(), data)
        put1 = mqi.MQPUT1(bench.hconn, od, mqi.MQMD(), mqi.MQPMO(), data)
    assert (put, put1) == ((2, 2004), (2, 2004))


# ---- handles ----


def calls(bench: Bench, hconn: Any, hobj: Any) -> dict[str, tuple[int, int]]:
    """Every verb that takes an Hobj: completion and reason code."""
    md, pmo, gmo = mqi.MQMD(), mqi.MQPMO(), mqi.MQGMO()
    return {
        "MQPUT": mqi.MQPUT(hconn, hobj, md, pmo, b""),
        "MQGET": mqi.MQGET(hconn, hobj, md, gmo)[2:],
        "MQINQ": mqi.MQINQ(hconn, hobj, [3])[1:],
        "MQSET": mqi.MQSET(hconn, hobj, {10: 0}),
        "MQCLOSE": mqi.MQCLOSE(hconn, hobj, 0),
    }


@pytest.mark.parametrize("kind", bad_input.CONNECTIONS)
def test_an_invalid_hconn_gives_2018_from_every_verb(bench: Bench, kind: str) -> None:
    wrong: dict[str, Any] = {"None": None, "0": 0, "-1": -1, "7": 7, "text": "QM1"}
    hconn = {**wrong, "ended": bench.ended, "Hobj": bench.all}[kind]
    od = mqi.MQOD(ObjectName="Q")
    with bench.unchanged(od):
        results = calls(bench, hconn, bench.all)
        results["MQOPEN"] = mqi.MQOPEN(hconn, od, 16)[1:]
        results["MQPUT1"] = mqi.MQPUT1(hconn, od, mqi.MQMD(), mqi.MQPMO(), b"")
        results["MQCMIT"], results["MQBACK"] = mqi.MQCMIT(hconn), mqi.MQBACK(hconn)
        results["MQDISC"] = mqi.MQDISC(hconn)
    assert set(results.values()) == {(2, 2018)}, results


@pytest.mark.parametrize("kind", bad_input.HANDLES)
def test_an_hobj_of_no_open_object_gives_2019_from_every_verb(bench: Bench, kind: str) -> None:
    wrong: dict[str, Any] = {"None": None, "0": 0, "-1": -1, "7": 7, "large": 2**40, "text": "Q"}
    wrong |= {"closed": bench.closed, "of another connection": bench.foreign}
    hobj = {**wrong, "Hconn": bench.hconn}[kind]
    with bench.unchanged():
        results = calls(bench, bench.hconn, hobj)
    assert set(results.values()) == {(2, 2019)}, results


@pytest.mark.parametrize("wrong", [None, 5, "MD", b"MD  ", object(), {}], ids=name_of)
def test_a_wrong_type_of_structure_gives_the_structures_reason(bench: Bench, wrong: Any) -> None:
    md, pmo, gmo, od = mqi.MQMD(), mqi.MQPMO(), mqi.MQGMO(), mqi.MQOD(ObjectName="Q")
    with bench.unchanged(md, pmo, gmo, od):
        results = [
            mqi.MQPUT(bench.hconn, bench.output, wrong, pmo, b"")[1],
            mqi.MQPUT(bench.hconn, bench.output, md, wrong, b"")[1],
            mqi.MQPUT1(bench.hconn, wrong, md, pmo, b"")[1],
            mqi.MQPUT1(bench.hconn, od, wrong, pmo, b"")[1],
            mqi.MQPUT1(bench.hconn, od, md, wrong, b"")[1],
            mqi.MQGET(bench.hconn, bench.all, wrong, gmo)[3],
            mqi.MQGET(bench.hconn, bench.all, md, wrong)[3],
            mqi.MQOPEN(bench.hconn, wrong, 16)[2],
        ]
    assert results == [2026, 2173, 2044, 2026, 2173, 2026, 2186, 2044]


def test_a_structure_instead_of_another_gives_the_reason_of_the_missing_one(
    bench: Bench,
) -> None:
    md, pmo, gmo, od = mqi.MQMD(), mqi.MQPMO(), mqi.MQGMO(), mqi.MQOD(ObjectName="Q")
    with bench.unchanged(md, pmo, gmo, od):
        results = [
            mqi.MQPUT(bench.hconn, bench.output, pmo, md, b"")[1],
            mqi.MQPUT(bench.hconn, bench.output, md, gmo, b"")[1],
            mqi.MQGET(bench.hconn, bench.all, md, pmo)[3],
            mqi.MQOPEN(bench.hconn, md, 16)[2],
        ]
    assert results[0] in (2026, 2173) and results[1:] == [2173, 2186, 2044]


@pytest.mark.parametrize("name", ["", "NO.SUCH", "Q M", "qm1", None, 5, "x" * 49, "../QM1", "QM1/"])
def test_mqconn_refuses_a_name_that_is_no_queue_manager(bench: Bench, name: Any) -> None:
    with bench.unchanged():
        hconn, cc, rc = mqi.MQCONN(name)
    assert (hconn, cc, rc) == (mqi.MQHC_UNUSABLE_HCONN, 2, 2058)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"StrucId": "XX"}, 2139),
        ({"Version": 0}, 2139),
        ({"Version": 99}, 2139),
        ({"Options": 32 | 64}, 2046),
        ({"Options": 1 << 30}, 2046),
        ({"Options": bad_input.LOW}, 2046),
    ],
    ids=name_of,
)
def test_mqconnx_refuses_bad_options(bench: Bench, fields: dict[str, Any], reason: int) -> None:
    cno = filled(mqi.MQCNO, fields)
    with bench.unchanged(cno):
        assert mqi.MQCONNX("QM1", cno) == (mqi.MQHC_UNUSABLE_HCONN, 2, reason)


# ---- structures by themselves ----


@pytest.mark.parametrize("make", STRUCTURES, ids=lambda make: make.__name__)
def test_unpack_refuses_every_truncated_buffer(make: Any) -> None:
    for version in bad_input.VERSIONS[make.__name__]:
        good = make(Version=version) if version else make()
        packed = good.pack()
        assert make.unpack(packed) == good
        for length in range(len(packed)):
            with pytest.raises(penstock.MQError):
                make.unpack(packed[:length])


@pytest.mark.parametrize("make", STRUCTURES, ids=lambda make: make.__name__)
def test_unpack_refuses_objects_without_a_buffer(make: Any) -> None:
    for wrong in (None, 5, "text", object()):
        with pytest.raises((penstock.MQError, TypeError)):
            make.unpack(wrong)


@pytest.mark.parametrize("make", STRUCTURES, ids=lambda make: make.__name__)
def test_a_field_takes_nothing_that_does_not_fit_and_keeps_its_value(make: Any) -> None:
    made = make()
    before = made.pack()
    tried = 0
    for name in dir(make):
        value = None if name.startswith("_") or name == "length" else getattr(made, name)
        for bad in WRONG.get(type(value), ()):
            if name in UNLIMITED and isinstance(bad, (str, bytes)):
                continue
            with pytest.raises((penstock.MQError, TypeError)):
                setattr(made, name, bad)
            tried += 1
    assert made.pack() == before
    assert tried >= 10


def test_an_unknown_field_is_refused() -> None:
    for make in STRUCTURES:
        with pytest.raises(TypeError):
            make(NoSuchField=1)
