"""A queue manager and a connection handle for the tests of the verbs, and short calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import mqi
from qmgr_fixture import QmgrFixture

SMALL = {"segment_size": 1 << 20, "journal_limit": 64 << 20, "ring_size": 1 << 20}
OUTPUT, INPUT, BROWSE, INQUIRE, SET = 16, 1, 8, 32, 64


class MQ:
    """One connection handle, and the queue manager for definitions."""

    def __init__(self, qm: penstock.QueueManager) -> None:
        self.qm = qm
        self.h, comp_code, reason = mqi.MQCONN(qm.name)
        assert (comp_code, reason) == (0, 0)

    def open(self, name: str, options: int = INPUT | OUTPUT | BROWSE, **fields: Any) -> Any:
        """The handle of a queue that opens without a warning."""
        od = mqi.MQOD(ObjectName=name, **fields)
        hobj, comp_code, reason = mqi.MQOPEN(self.h, od, options)
        assert (comp_code, reason) == (0, 0), (comp_code, reason, self.h.error)
        return hobj

    def open_code(self, name: str, options: int = INPUT | OUTPUT, **fields: Any) -> int:
        """The reason code of an open; what opens is closed."""
        hobj, comp_code, reason = mqi.MQOPEN(self.h, mqi.MQOD(ObjectName=name, **fields), options)
        if comp_code != 2:
            assert mqi.MQCLOSE(self.h, hobj, 0) == (0, 0)
        else:
            assert hobj == mqi.MQHO_UNUSABLE_HOBJ
        return int(reason)

    def put(self, hobj: Any, data: bytes = b"data", options: int = 0, **fields: Any) -> Any:
        """The MQMD after a put that succeeds."""
        md = mqi.MQMD(**fields)
        result = mqi.MQPUT(self.h, hobj, md, mqi.MQPMO(Options=options), data)
        assert result == (0, 0), (result, self.h.error)
        return md

    def put_code(self, hobj: Any, data: Any = b"data", options: int = 0, **fields: Any) -> int:
        """The reason code of a put."""
        md = mqi.MQMD(**fields)
        return int(mqi.MQPUT(self.h, hobj, md, mqi.MQPMO(Options=options), data)[1])

    def get(self, hobj: Any, options: int = 0, md: Any = None, **fields: Any) -> tuple[bytes, Any]:
        """Data and MQMD (version 2) of a get that succeeds."""
        md = md or mqi.MQMD(Version=2)
        gmo = mqi.MQGMO(Options=options, **fields)
        data, length, comp_code, reason = mqi.MQGET(self.h, hobj, md, gmo)
        assert (comp_code, reason, length) == (0, 0, len(data)), (reason, self.h.error)
        return data, md

    def get_code(self, hobj: Any, options: int = 0, md: Any = None, **fields: Any) -> int:
        """The reason code of a get."""
        md = md or mqi.MQMD(Version=2)
        return int(mqi.MQGET(self.h, hobj, md, mqi.MQGMO(Options=options, **fields))[3])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A home for the queue managers of one module, created on demand."""
    home = tmp_path_factory.mktemp("mqi")
    open_ones: dict[str, Any] = {}
    yield home, open_ones
    for name, qm in open_ones.items():
        qm.check()
        qm.close()
        penstock.delete(name, home)


@pytest.fixture
def mq(shared: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[MQ]:
    """Queue manager QM1 with the local queue Q and nothing else, connected."""
    yield from session(shared, monkeypatch, "QM1")


@pytest.fixture
def zos(shared: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[MQ]:
    """Queue manager CSQ1 of platform z/OS, the same."""
    yield from session(shared, monkeypatch, "CSQ1", platform="zos")


@pytest.fixture
def own(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MQ]:
    """A queue manager QM1 for this test alone: to alter or end it."""
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    penstock.create("QM1", home, **SMALL)
    with penstock.connect("QM1", home) as qm:
        qm.define("QLOCAL", "Q")
        made = MQ(qm)
        yield made
        mqi.MQDISC(made.h)
    penstock.delete("QM1", home)


@pytest.fixture
def replies(qmgr: QmgrFixture) -> str:
    """A queue for reports."""
    return qmgr.local()


@pytest.fixture
def dead(qmgr: QmgrFixture) -> Iterator[str]:
    """The name of a dead-letter queue."""
    name = qmgr.local()
    qmgr.qm.alter("QMGR", deadq=name)
    yield name
    qmgr.qm.alter("QMGR", deadq="")


def session(
    shared: Any, monkeypatch: pytest.MonkeyPatch, name: str, **settings: Any
) -> Iterator[MQ]:
    """A connection to a queue manager of the module; what the test made is removed."""
    home, open_ones = shared
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    if name not in open_ones:
        penstock.create(name, home, **SMALL, **settings)
        open_ones[name] = penstock.connect(name, home)
    qm = open_ones[name]
    qm.define("QLOCAL", "Q")
    made = MQ(qm)
    yield made
    if made.h != mqi.MQHC_UNUSABLE_HCONN:
        assert mqi.MQBACK(made.h) == mqi.MQDISC(made.h) == (0, 0)
    clean(qm)


def clean(qm: penstock.QueueManager) -> None:
    """Deletes every object that is not the queue manager's own."""
    for kind in ("QALIAS", "QREMOTE", "QMODEL", "QLOCAL", "PROCESS", "NAMELIST"):
        for row in qm.display(kind, "*"):
            name = str(row["name"])
            if not name.startswith("SYSTEM."):
                qm.delete(kind, name, **({"purge": True} if kind == "QLOCAL" else {}))
    for row in qm.display("QCLUSTER", "*"):
        qm.delete("QCLUSTER", str(row["name"]), clusqmgr=str(row["clusqmgr"]))
