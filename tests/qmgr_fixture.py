"""A queue manager for tests of the MQI, with calls that restart it and kill its processes.

A fixture holds one home with a queue manager of platform unix (`QmgrFixture("QM1")`) or z/OS, a
connection handle of the MQI (`hconn`) and an administrator's connection (`qm`). Names of objects
are new for every test, so that many tests share one queue manager.

A restart (`restart()`) is orderly: all connections are closed and made again. A failure
(`failure()`) is a forked process, the only one attached, that does some work and is killed by
SIGKILL.
"""

from __future__ import annotations

import itertools
import os
import signal
import struct
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import penstock
from penstock import mqi

SMALL = {  # bytes: quick to make, large enough for the tests
    "segment_size": 1 << 20,
    "journal_limit": 64 << 20,
    "ring_size": 1 << 20,
}
OK, WARNING, FAILED = 0, 1, 2
MANAGER_NAME = 48
EMBEDDED = 104  # where the application's MQMD begins in an MQXQH
HEADER = 428  # bytes of an MQXQH
_numbers = itertools.count(1)


@dataclass
class Got:
    """The result of an MQGET."""

    data: bytes
    md: Any
    cc: int
    rc: int
    length: int = 0

    @property
    def priority(self) -> int:
        return int(self.md.Priority)

    @property
    def persistence(self) -> int:
        return int(self.md.Persistence)


class QmgrFixture:
    """One queue manager, connected."""

    def __init__(self, home: Path, name: str = "QM1", **settings: Any) -> None:
        self.home, self.name = home, name
        self.platform = settings.get("platform", "unix")
        penstock.create(name, home, **{**SMALL, **settings})
        self.others: list[Any] = []
        self.start()

    # ---- life of the queue manager ----

    def start(self) -> None:
        self.qm = penstock.connect(self.name, self.home)
        self.hconn = self.connect()

    def connect(self) -> Any:
        hconn, cc, rc = mqi.MQCONN(self.name)
        assert (cc, rc) == (OK, 0), (cc, rc)
        return hconn

    def stop(self) -> None:
        for hconn in [*self.others, self.hconn]:
            mqi.MQDISC(hconn)
        self.others.clear()
        self.qm.close()

    def restart(self) -> None:
        """An orderly end and a new start: no process is attached in between."""
        self.stop()
        self.start()

    def failure(self, work: Callable[[], object] = lambda: None) -> None:
        """Does the work in a process that is alone attached and is killed right after it."""
        self.stop()
        try:
            killed(lambda: (self.start(), work()))
        finally:
            self.start()

    def after(self, how: str, work: Callable[[], object]) -> None:
        """The work, then an orderly restart ("restart") or SIGKILL of all ("failure")."""
        if how == "restart":
            work()
            self.restart()
        else:
            assert how == "failure", how
            self.failure(work)

    def other(self) -> Any:
        """A second connection handle: its own units of work, its own handles."""
        cno = mqi.MQCNO(Options=mqi.MQCNO_HANDLE_SHARE_BLOCK)
        hconn, cc, rc = mqi.MQCONNX(self.name, cno)
        assert (cc, rc) == (OK, 0), (cc, rc)
        self.others.append(hconn)
        return hconn

    def tidy(self) -> None:
        """Ends what a test left: units of work, handles, other connections."""
        for hconn in [*self.others, self.hconn]:
            mqi.MQBACK(hconn)
            mqi.MQDISC(hconn)
        self.others.clear()
        self.hconn = self.connect()

    def directory(self) -> Path:
        return self.home / self.name

    def log(self) -> str:
        """The error log."""
        files = sorted((self.directory() / "errors").iterdir())
        return "".join(path.read_text("utf-8") for path in files)

    def stored(self, data: bytes, folder: str) -> bool:
        """Whether a file of the journal or of a checkpoint contains these bytes."""
        return any(data in path.read_bytes() for path in (self.directory() / folder).iterdir())

    # ---- objects ----

    def new_name(self, what: str = "Q") -> str:
        return f"{what}.{next(_numbers)}"

    def define(self, kind: str, name: str | None = None, **attributes: Any) -> str:
        """Defines an object with a new name; returns it."""
        name = name or self.new_name(kind[:6])
        self.qm.define(kind, name, **attributes)
        return name

    def local(self, **attributes: Any) -> str:
        return self.define("QLOCAL", **attributes)

    def structure(self, **attributes: Any) -> str:
        """A coupling-facility structure with a new name."""
        return self.define("CFSTRUCT", f"CF{next(_numbers)}", **attributes)

    def shared(self, structure: str, **attributes: Any) -> str:
        return self.local(qsgdisp="SHARED", cfstruct=structure, **attributes)

    def fail_structure(self, name: str) -> int:
        """Simulates the failure of a structure; how many messages it cost."""
        found = self.qm.look_up(110, name)
        assert found is not None, name
        return int(self.qm.fail_structure(found[0], found[1]))

    def model(self, deftype: str, **attributes: Any) -> str:
        return self.define("QMODEL", deftype=deftype, **attributes)

    def attribute(self, name: str, selector: int, options: int = 0) -> Any:
        """One attribute of a queue by MQINQ."""
        hobj = self.opened(name, mqi.MQOO_INQUIRE | options)
        values, cc, rc = mqi.MQINQ(self.hconn, hobj, [selector])
        assert (cc, rc) == (OK, 0), (cc, rc)
        self.closed(hobj)
        return values[selector]

    def depth(self, name: str) -> int:
        return int(self.attribute(name, mqi.MQIA_CURRENT_Q_DEPTH))

    def waiting(self, name: str) -> int:
        """The number of gets that wait on a queue."""
        slot, generation = self.qm.find_object(name)
        return int(self.qm.queue_status(slot, generation, name)["waiters"])

    def until(self, condition: Callable[[], object]) -> None:
        """Waits until the condition holds; fails after 30 seconds."""
        deadline = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline, "it never happened"
            time.sleep(0.001)

    def exists(self, name: str) -> bool:
        """Whether an application can open a queue by its name."""
        hobj, cc, rc = self.open(name, mqi.MQOO_INQUIRE)
        if cc == OK:
            self.closed(hobj)
            return True
        assert rc in (mqi.MQRC_UNKNOWN_OBJECT_NAME, mqi.MQRC_Q_DELETED), rc
        return False

    # ---- calls ----

    def open(self, name: str, options: int, hconn: Any = None, **od: Any) -> tuple[Any, int, int]:
        """MQOPEN of a queue."""
        descriptor = mqi.MQOD(ObjectName=name, **od)
        answer = mqi.MQOPEN(hconn or self.hconn, descriptor, options)
        return answer[0], answer[1], answer[2]

    def opened(self, name: str, options: int, hconn: Any = None, **od: Any) -> Any:
        """A handle; the open must have worked."""
        hobj, cc, rc = self.open(name, options, hconn, **od)
        assert (cc, rc) == (OK, 0), (name, cc, rc)
        return hobj

    def dynamic(self, model: str, options: int, hconn: Any = None, name: str = "") -> Any:
        """Opens a model queue; (handle of the creator, name of the queue)."""
        od = mqi.MQOD(ObjectName=model, DynamicQName=name or f"DYN.{next(_numbers)}.*")
        hobj, cc, rc = mqi.MQOPEN(hconn or self.hconn, od, options)
        assert (cc, rc) == (OK, 0), (model, cc, rc)
        return hobj, str(od.ObjectName)

    def close(self, hobj: Any, options: int = 0, hconn: Any = None) -> tuple[int, int]:
        cc, rc = mqi.MQCLOSE(hconn or self.hconn, hobj, options)
        return cc, rc

    def closed(self, hobj: Any, options: int = 0, hconn: Any = None) -> None:
        assert self.close(hobj, options, hconn) == (OK, 0)

    def put(
        self,
        where: Any,
        data: bytes = b"x",
        md: Any = None,
        *,
        syncpoint: bool = False,
        options: int = 0,
        hconn: Any = None,
        to: str = "",
    ) -> tuple[int, int]:
        """MQPUT on a handle, MQPUT1 on a name (of a queue of the queue manager `to`)."""
        md = mqi.MQMD() if md is None else md
        unit = mqi.MQPMO_SYNCPOINT if syncpoint else mqi.MQPMO_NO_SYNCPOINT
        pmo = mqi.MQPMO(Options=unit | options)
        if isinstance(where, str):
            od = mqi.MQOD(ObjectName=where, ObjectQMgrName=to)
            cc, rc = mqi.MQPUT1(hconn or self.hconn, od, md, pmo, data)
        else:
            cc, rc = mqi.MQPUT(hconn or self.hconn, where, md, pmo, data)
        return cc, rc

    def send(self, where: Any, data: bytes = b"x", md: Any = None, **more: Any) -> Any:
        """A put that must work; the descriptor as the call left it."""
        md = mqi.MQMD() if md is None else md
        answer = self.put(where, data, md, **more)
        assert answer == (OK, 0), (where, answer)
        return md

    def get(
        self,
        where: Any,
        md: Any = None,
        *,
        syncpoint: bool = False,
        options: int = 0,
        wait: int = 0,
        length: int | None = None,
        hconn: Any = None,
        **gmo: Any,
    ) -> Got:
        """MQGET on a handle, or on a name (opened for it); `wait` in milliseconds."""
        md = mqi.MQMD(Version=mqi.MQMD_VERSION_2) if md is None else md
        hobj = where
        if isinstance(where, str):
            hobj = self.opened(where, mqi.MQOO_INPUT_SHARED, hconn)
        if not options & mqi.MQGMO_SYNCPOINT_IF_PERSISTENT:
            options |= mqi.MQGMO_SYNCPOINT if syncpoint else mqi.MQGMO_NO_SYNCPOINT
        if wait:
            options |= mqi.MQGMO_WAIT
        got = mqi.MQGET(
            hconn or self.hconn,
            hobj,
            md,
            mqi.MQGMO(**{"Options": options, "WaitInterval": wait, **gmo}),
            length,
        )
        if isinstance(where, str):
            self.closed(hobj, 0, hconn)
        data, full, cc, rc = got
        return Got(bytes(data or b""), md, cc, rc, full)

    def take(self, where: Any, **more: Any) -> Got:
        """A get that must work."""
        got = self.get(where, **more)
        assert (got.cc, got.rc) == (OK, 0), (where, got.cc, got.rc)
        return got

    def drain(self, where: Any, **more: Any) -> list[Got]:
        """All messages that can be got, in the order of delivery."""
        found = []
        for _ in range(10000):
            got = self.get(where, **more)
            if got.rc == mqi.MQRC_NO_MSG_AVAILABLE:
                return found
            assert (got.cc, got.rc) == (OK, 0), (got.cc, got.rc)
            found.append(got)
        raise AssertionError(f"{where} never ends")

    def bodies(self, where: Any, **more: Any) -> list[bytes]:
        return [got.data for got in self.drain(where, **more)]

    def commit(self, hconn: Any = None) -> None:
        assert mqi.MQCMIT(hconn or self.hconn) == (OK, 0)

    def backout(self, hconn: Any = None) -> None:
        assert mqi.MQBACK(hconn or self.hconn) == (OK, 0)


def embedded(message: bytes) -> tuple[int, int]:
    """(Priority, Persistence) of the application's MQMD in a message of a transmission queue."""
    assert message[:4] == b"XQH "
    found: tuple[int, int] = struct.unpack_from("=ii", message, EMBEDDED + 40)
    return found


def transmission(message: bytes) -> tuple[str, str]:
    """(queue, queue manager) that the header of a transmission queue's message names."""
    return message[8:56].decode().strip(), message[56:104].decode().strip()


def killed(work: Callable[[], object]) -> None:
    """Runs the work in a forked process that is killed by SIGKILL when it is done."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads of a fixture
        pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        try:
            work()
        except BaseException:
            os.write(writer, traceback.format_exc().encode()[-60000:])
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.close(writer)
    with open(reader, "rb") as pipe:
        report = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    assert not report, report
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status


def qmgrs(home: Path, monkeypatch: Any, **settings: Any) -> Iterator[QmgrFixture]:
    """For fixtures: a queue manager in a new home, closed and removed afterwards."""
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    qmgr = QmgrFixture(home, **settings)
    yield qmgr
    qmgr.qm.check()
    qmgr.stop()
    penstock.delete(qmgr.name, home)


def names(rows: Iterable[tuple[str, object]]) -> list[str]:
    """Ids of parametrised tests."""
    return [name for name, _ in rows]
