"""Bad input: every field of every structure takes values out of range, in every verb that reads it.

A verb never raises, its reason code is one of MQ's, completion and reason code go together; a call
that fails has changed nothing: definitions, messages and counts are what they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock import mqi
from qmgr_fixture import FAILED, OK, WARNING, QmgrFixture

OUTPUT, INPUT, BROWSE = mqi.MQOO_OUTPUT, mqi.MQOO_INPUT_SHARED, mqi.MQOO_BROWSE
BITS = [1 << n for n in range(31)] + [-(2**31)]
NUMBERS = sorted({-(2**31) + 1, -100, -4, -3, -2, -1, 0, 3, 5, 6, 9, 99, 12345, 2**31 - 1, *BITS})
TEXTS = ["", "X", "\0", "*", "A*B", "no name", "ä", "-", "X" * 48, "\x7f\x01"]
OUTCOMES = {OK, WARNING, FAILED}


def fields(structure: type) -> list[tuple[str, Any]]:
    """Name and kind of each field of a class of structures."""
    found = [(name, kind) for name, kind in vars(structure).items() if hasattr(kind, "offset")]
    return sorted(found, key=lambda field: int(field[1].offset))


def values(kind: Any) -> list[Any]:
    """Values for a field: numbers, texts, bytes, by its kind."""
    name = type(kind).__name__
    if name in ("LongField", "Int64Field"):
        return list(NUMBERS)
    if name == "CharField":
        return [text for text in TEXTS if len(text.encode()) <= kind.size]
    if name == "ByteField":
        return [bytes(kind.size), b"\xff" * kind.size, b"x"]
    return []


def spoilt(structure: type, **start: Any) -> Iterator[tuple[str, Any]]:
    """(what, structure) for each field and each value; each structure is a new one."""
    for name, kind in fields(structure):
        for value in values(kind):
            made = structure(**start)
            setattr(made, name, value)
            yield f"{structure.__name__}.{name}={value!r}", made


def dump(qmgr: QmgrFixture, queues: list[str]) -> list[Any]:
    """Everything that a failed call must not change."""
    found: list[Any] = []
    for name in queues:
        with qmgr.qm.open(name, input=False, output=False) as opened:
            found += [(m.number, m.data, m.backout_count) for m in opened.browse()]
        slot, generation = qmgr.qm.find_object(name)
        status = qmgr.qm.queue_status(slot, generation, name)
        found.append({key: status[key] for key in ("depth", "uncommitted", "got")})
    for name in queues:
        (shown,) = qmgr.qm.display("QLOCAL", name)
        found.append({k: v for k, v in shown.items() if k not in ("ipprocs", "opprocs")})
    found.append(len(qmgr.qm.display("QLOCAL", "*")))
    return found


def judge(what: str, answer: tuple[Any, ...]) -> int:
    """The completion code of an answer that is one of MQ's."""
    cc, rc = answer[-2:]
    assert cc in OUTCOMES and rc in mqi.REASONS, (what, cc, rc)
    assert (cc == OK) == (rc == 0), (what, cc, rc)
    return int(cc)


class Case:
    """One queue manager's queues, and a check after each call that failed."""

    def __init__(self, qmgr: QmgrFixture) -> None:
        self.qmgr = qmgr
        self.queue = qmgr.local()
        self.failures = 0
        self.before: list[Any] = []
        self.reset()

    def reset(self) -> None:
        """Two messages on the queue, and nothing else."""
        self.qmgr.drain(self.queue)
        self.qmgr.send(self.queue, b"one")
        self.qmgr.send(self.queue, b"two")
        self.before = dump(self.qmgr, [self.queue])

    def check(self, what: str, answer: tuple[Any, ...]) -> int:
        """Judges an answer; after a failure everything is as before."""
        cc = judge(what, answer)
        if cc == FAILED:
            self.failures += 1
            assert dump(self.qmgr, [self.queue]) == self.before, what
        else:
            self.before = dump(self.qmgr, [self.queue])
        return cc


@pytest.fixture
def case(qmgr: QmgrFixture) -> Iterator[Case]:
    made = Case(qmgr)
    yield made
    qmgr.drain(made.queue)


PUTS: dict[str, Callable[[Case, Any, Any, Any], tuple[Any, ...]]] = {
    "MQPUT": lambda case, hobj, md, pmo: mqi.MQPUT(case.qmgr.hconn, hobj, md, pmo, b"new"),
    "MQPUT1": lambda case, _, md, pmo: mqi.MQPUT1(
        case.qmgr.hconn, mqi.MQOD(ObjectName=case.queue), md, pmo, b"new"
    ),
}


@pytest.mark.parametrize("verb", PUTS)
@pytest.mark.parametrize("structure", [mqi.MQMD, mqi.MQPMO])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_put_with_a_spoilt_field(case: Case, verb: str, structure: type, version: int) -> None:
    hobj = case.qmgr.opened(case.queue, OUTPUT)
    if structure is mqi.MQMD and version == 3:
        version = 2
    for what, spoiled in spoilt(structure, Version=version):
        if structure is mqi.MQMD:
            md, pmo = spoiled, mqi.MQPMO(Options=mqi.MQPMO_NO_SYNCPOINT)
        else:
            md, pmo = mqi.MQMD(), spoiled
        cc = case.check(what, PUTS[verb](case, hobj, md, pmo))
        case.qmgr.backout()
        if cc != FAILED:
            case.reset()
    assert case.failures > 50


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_an_open_with_a_spoilt_field(case: Case, version: int) -> None:
    qmgr = case.qmgr
    for what, od in spoilt(mqi.MQOD, Version=version, ObjectName=case.queue):
        for options in (OUTPUT, INPUT, mqi.MQOO_INQUIRE):
            hobj, cc, rc = mqi.MQOPEN(qmgr.hconn, od, options)
            if case.check(what, (cc, rc)) != FAILED:
                assert qmgr.close(hobj) == (OK, 0), what
            else:
                assert hobj == mqi.MQHO_UNUSABLE_HOBJ, what
    assert case.failures > 50


@pytest.mark.parametrize("structure", [mqi.MQMD, mqi.MQGMO])
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_get_with_a_spoilt_field(case: Case, structure: type, version: int) -> None:
    qmgr = case.qmgr
    hobj = qmgr.opened(case.queue, INPUT | BROWSE)
    if structure is mqi.MQMD:
        version = min(version, 2)
    for what, spoiled in spoilt(structure, Version=version):
        if "WaitInterval" in what or what in ("MQGMO.Options=1", "MQGMO.Options=3"):
            continue  # a wait is no bad input
        if structure is mqi.MQMD:
            md, gmo = spoiled, mqi.MQGMO(Options=mqi.MQGMO_SYNCPOINT)
        else:
            md, gmo = mqi.MQMD(), spoiled
        answer = mqi.MQGET(qmgr.hconn, hobj, md, gmo)
        cc = case.check(what, answer)
        qmgr.backout()
        if cc != FAILED:
            mqi.MQGET(qmgr.hconn, hobj, mqi.MQMD(), mqi.MQGMO(Options=mqi.MQGMO_UNLOCK))
            case.reset()
    assert case.failures > 10


@pytest.mark.parametrize("options", [*NUMBERS, 2**31, 2**40, None, "1", 1.0, True])
def test_open_close_and_get_options_of_any_value(case: Case, options: Any) -> None:
    qmgr = case.qmgr
    hobj, cc, rc = mqi.MQOPEN(qmgr.hconn, mqi.MQOD(ObjectName=case.queue), options)
    if case.check(f"open {options!r}", (cc, rc)) != FAILED:
        qmgr.closed(hobj)
    hobj = qmgr.opened(case.queue, INPUT)
    answer = mqi.MQCLOSE(qmgr.hconn, hobj, options)
    if case.check(f"close {options!r}", answer) == FAILED:
        qmgr.closed(hobj)


@pytest.mark.parametrize("selector", [*NUMBERS, 2016, 2013, 4001, 2**31, None, "5"])
def test_selectors_of_any_value(case: Case, selector: Any) -> None:
    qmgr = case.qmgr
    hobj = qmgr.opened(case.queue, mqi.MQOO_INQUIRE | mqi.MQOO_SET)
    values, cc, rc = mqi.MQINQ(qmgr.hconn, hobj, [selector])
    assert isinstance(values, dict)
    case.check(f"inquire {selector!r}", (cc, rc))
    for value in (-1, 99, 2**31 - 1, None, "text", b"x" * 100, 2**40):
        case.check(f"set {selector!r} {value!r}", mqi.MQSET(qmgr.hconn, hobj, {selector: value}))


@pytest.mark.parametrize("junk", [None, 5, "text", b"bytes", object(), [], mqi.MQRR()])
def test_a_wrong_type_of_structure(case: Case, junk: Any) -> None:
    qmgr = case.qmgr
    writer, reader = qmgr.opened(case.queue, OUTPUT), qmgr.opened(case.queue, INPUT)
    md, pmo = mqi.MQMD(), mqi.MQPMO(Options=mqi.MQPMO_NO_SYNCPOINT)
    expected: list[tuple[int, tuple[Any, ...]]] = [
        (2018, mqi.MQPUT(junk, writer, md, pmo, b"")),
        (2019, mqi.MQPUT(qmgr.hconn, junk, md, pmo, b"")),
        (2026, mqi.MQPUT(qmgr.hconn, writer, junk, pmo, b"")),
        (2173, mqi.MQPUT(qmgr.hconn, writer, md, junk, b"")),
        (2044, mqi.MQOPEN(qmgr.hconn, junk, OUTPUT)),
        (2026, mqi.MQGET(qmgr.hconn, reader, junk, mqi.MQGMO())),
        (2186, mqi.MQGET(qmgr.hconn, reader, md, junk)),
        (2019, mqi.MQCLOSE(qmgr.hconn, junk, 0)),
        (2018, mqi.MQCMIT(junk)),
        (2018, mqi.MQBACK(junk)),
        (2018, mqi.MQDISC(junk)),
        (2018, mqi.MQINQ(junk, reader, [1])),
        (2018, mqi.MQSET(junk, reader, {})),
        (2044, mqi.MQPUT1(qmgr.hconn, junk, md, pmo, b"")),
    ]
    for reason, answer in expected:
        assert answer[-2:] == (FAILED, reason)
        case.check(f"{reason}", answer)
