"""Calls every callable of the package with objects whose methods call back: a program of its own.

``python reentrant.py NAME SECONDS [ONE_IN]``: for one target (see TARGETS) each callable, each of
its parameters, each kind of hostile object and each action: the object's methods (``__index__``,
``__eq__``, ``__len__``, ``__arrow_c_array__``, ...) do the action in the middle of the call, once.
What a callable is called with otherwise is found by the name of the parameter, so that a new
callable is covered without a change here.

Before each call its description goes into the file that the environment names (REENTRANT_LOG), so
that whoever runs the program knows the call that ended the interpreter. The last line of its output
is the number of calls whose object was asked for something.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import inspect
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import penstock
from penstock import _engine, mqi
from penstock.batch import DTYPE, MessageBatch

Action = Callable[[], object]
XID = penstock.Xid(77, b"gtrid")
METHODS = [
    f"__{name}__"
    for name in (
        "index", "int", "float", "bool", "len", "iter", "next", "getitem", "contains", "eq", "ne",
        "lt", "le", "gt", "ge", "hash", "repr", "str", "bytes", "format", "fspath", "buffer",
        "release_buffer", "arrow_c_array", "arrow_c_schema", "array", "enter", "exit", "call",
        "add", "radd", "and", "rand", "mod", "get", "copy",
    )
] + [
    "encode", "decode", "lower", "upper", "strip", "split", "startswith", "removeprefix",
    "isascii", "keys", "items", "get", "index", "copy", "read", "fileno", "tobytes", "tolist",
    "astype",
]  # fmt: skip


class Hostile:
    """What the methods of a hostile object do: the action, once a call, and then as their base."""

    def __init__(self) -> None:
        self.action: Action = int
        self.asked = 0
        self.armed = False

    def act(self) -> None:
        """Called by the methods."""
        self.asked += 1
        if self.armed:
            self.armed = False
            self.action()


HOSTILE = Hostile()


def _method(name: str, base: type) -> Callable[..., Any]:
    found = getattr(base, name, None)

    def method(self: Any, *arguments: Any, **fields: Any) -> Any:
        HOSTILE.act()
        if found is not None and (base is not object or name in ("__eq__", "__ne__", "__hash__")):
            return found(self, *arguments, **fields)
        answer = ANSWERS.get(name)
        return answer(self) if answer is not None else NotImplemented

    return method


def _array(self: object) -> Any:
    """An Arrow array of one binary, as a producer would hand it over."""
    return MessageBatch(
        np.zeros(1, DTYPE), np.zeros(1, np.uint8), np.array([0, 1], np.int64)
    ).__arrow_c_array__()


ANSWERS: dict[str, Callable[[Any], Any]] = {
    "__index__": lambda it: 1,
    "__int__": lambda it: 1,
    "__float__": lambda it: 1.0,
    "__bool__": lambda it: True,
    "__len__": lambda it: 1,
    "__iter__": lambda it: iter([b"x"]),
    "__getitem__": lambda it: b"x",
    "__repr__": lambda it: "<hostile>",
    "__str__": lambda it: "Q",
    "__bytes__": lambda it: b"x",
    "__format__": lambda it: "Q",
    "__fspath__": lambda it: "/nowhere",
    "__buffer__": lambda it: memoryview(b"x"),
    "__arrow_c_array__": _array,
    "__array__": lambda it: np.zeros(1, np.int64),
    "encode": lambda it: b"Q",
    "keys": lambda it: ["x"],
    "items": lambda it: [("x", 1)],
}


def hostile_class(base: type) -> type:
    """A subclass whose methods do the action first."""
    names = [name for name in METHODS if base is object or hasattr(base, name)]
    space: dict[str, Any] = {name: _method(name, base) for name in names}
    return type(f"Hostile{base.__name__.title()}", (base,), space)


KINDS: dict[str, Callable[[str], Any]] = {}
for _base, _values in (
    (int, {"wait": 0, "number": 1, "options": 16, "persistent": 1, "kind": 1, "mode": 77}),
    (float, {"wait": 0.0, "": 0.5}),
    (str, {"": "Q", "browse": "first", "kind": "QLOCAL", "mode": "none", "severity": "I"}),
    (bytes, {"": b"x"}),
    (bytearray, {"": b"x"}),
    (list, {"": [b"x"], "offsets": [0, 1]}),
    (tuple, {"": (b"x", b"y")}),
    (dict, {"": {"name": "QM9"}}),
):
    _class = hostile_class(_base)

    def _make(name: str, kind: type = _class, values: Any = _values) -> Any:
        return kind(values.get(name, values.get("", 1)))

    KINDS[_base.__name__] = _make
_plain = hostile_class(object)
KINDS["object"] = lambda name: _plain()


class Posing:
    """An object that says it is an int, when asked for its class."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # type: ignore[override]
        HOSTILE.act()
        return int


KINDS["posing"] = lambda name: Posing()


class World:
    """A connection with everything that calls are made with; a new one for each call."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self.keeper: Any = None
        self.home = folder
        self.closed = True

    def start(self) -> None:
        """A queue manager that is kept running, in a new home."""
        self.count += 1
        self.home = self.folder / f"home{self.count}"
        os.environ["PENSTOCK_HOME"] = str(self.home)
        penstock.create("QM1", self.home, segment_size=1 << 20, journal_limit=16 << 20)
        self.keeper = penstock.connect("QM1", self.home)
        with self.keeper.queue("Q") as queue:
            queue.put(b"first")

    def open(self) -> None:
        """Connects, opens, begins a transaction."""
        if self.keeper is None or self.keeper.closed:
            self.start()
        try:
            self.qm = penstock.connect("QM1", self.home)
            self.queue = self.qm.open("Q")
        except penstock.MQError:  # a call has ended or deleted it, or the queue
            with contextlib.suppress(penstock.MQError):
                self.keeper.close()
            self.start()
            self.qm = penstock.connect("QM1", self.home)
            self.queue = self.qm.open("Q")
        if self.queue.depth == 0:
            self.queue.put_batch([b"body"] * 20, correl_id=b"c")
        self.unit = self.qm.transaction()
        self.unit.__enter__()
        self.hconn = _engine.Hconn(self.qm)
        self.hobj = _engine.opened(self.hconn, self.qm.open("Q"), mqi.MQOD(), 2 | 8 | 16)
        self.closed = False

    def close(self) -> None:
        """Ends what is open."""
        with contextlib.suppress(penstock.MQError):
            self.unit.__exit__(KeyError, None, None)
        with contextlib.suppress(penstock.MQError):
            self.qm.close()

    def message(self) -> Any:
        """A message that was browsed."""
        return self.queue.get(browse="first")

    def batch(self) -> MessageBatch:
        """A batch of two messages."""
        return MessageBatch(
            np.zeros(2, DTYPE), np.zeros(4, np.uint8), np.array([0, 2, 4], np.int64)
        )


# Arguments by the name of their parameter, when they are not the hostile one.
ARGUMENTS: dict[str, Callable[[World], Any]] = {
    "data": lambda w: b"x",
    "timeout": lambda w: 0.001,
    "source": lambda w: [b"x", b"y"],
    "name": lambda w: "Q",
    "home": lambda w: w.home,
    "path": lambda w: w.home / "QM1",
    "kind": lambda w: "QLOCAL",
    "message": lambda w: w.message(),
    "reason": lambda w: 2053,
    "xid": lambda w: XID,
    "xids": lambda w: (XID,),
    "hconn": lambda w: w.hconn,
    "hobj": lambda w: w.hobj,
    "md": lambda w: mqi.MQMD(),
    "pmo": lambda w: mqi.MQPMO(),
    "gmo": lambda w: mqi.MQGMO(),
    "od": lambda w: mqi.MQOD(ObjectName="Q"),
    "structure": lambda w: mqi.MQMD(),
    "struc_id": lambda w: b"MD  ",
    "newest": lambda w: 2,
    "options": lambda w: 16,
    "queue": lambda w: w.queue,
    "connection": lambda w: w.qm,
    "qm": lambda w: w.qm,
    "rows": lambda w: np.zeros(2, DTYPE),
    "descriptors": lambda w: np.zeros(2, DTYPE),
    "bodies": lambda w: np.zeros(64, np.uint8),
    "offsets": lambda w: np.array([0, 1, 2], np.int64),
    "max_messages": lambda w: 2,
    "most": lambda w: 2,
    "capacity": lambda w: 2,
    "parts": lambda w: 3,
    "wait": lambda w: 0,
    "max_bytes": lambda w: None,
    "up_to": lambda w: None,
    "syncpoint": lambda w: None,
    "persistent_only": lambda w: False,
    "with_bodies": lambda w: True,
    "fields": lambda w: (),
    "cursor": lambda w: bytearray(_engine.PREPARED_CURSOR),
    "columns": lambda w: [("priority", "i", 0, 0, 4)],
    "memory": lambda w: bytearray(4096),
    "length": lambda w: 1,
    "count": lambda w: 1,
    "warnings": lambda w: 0,
    "index": lambda w: 0,
    "body": lambda w: b"x",
    "settings": lambda w: {"name": "QM9"},
    "format": lambda w: "MQSTR",
    "rights": lambda w: 16,
    "put1": lambda w: True,
    "local": lambda w: False,
    "slot": lambda w: w.queue.slot[0],
    "generation": lambda w: w.queue.slot[1],
    "selectors": lambda w: [1, 3] if w.closed else (1, 3),
    "selector": lambda w: 1,
    "default": lambda w: 0,
    "name_space": lambda w: 1,
    "instance": lambda w: 0,
    "attrs": lambda w: b"",
    "values": lambda w: {9: 1},
    "mode": lambda w: "none",
    "amq": lambda w: 9999,
    "severity": lambda w: "I",
    "text": lambda w: "text",
    "version": lambda w: 1,
    "number": lambda w: 1,
    "format_id": lambda w: 5,
    "gtrid": lambda w: b"g",
    "priority": lambda w: 5,
    "identity": lambda w: ("user", "program", b"token"),
    "purge": lambda w: False,
    "commit": lambda w: True,
    "kind_": lambda w: None,
    "error": lambda w: None,
    "trace": lambda w: None,
    "rest": lambda w: None,
}
NEVER = {  # end or replace what the program itself relies on
    "end_all", "_not_registered", "register_errors", "register_services", "register_list_verbs",
    "register_structures", "register_batch_classes",
}  # fmt: skip


def actions(w: World, again: Action) -> dict[str, Action]:
    """What hostile methods do."""

    def leave_unit() -> None:
        w.unit.__exit__(None, None, None)

    def twice() -> None:
        w.qm.close()
        gc.collect()
        penstock.connect("QM1", w.home).close()

    return {
        "close the connection": lambda: w.qm.close(),
        "close the queue": lambda: (w.queue.close(), w.hobj.queue.shut()),
        "end the unit": leave_unit,
        "call again": again,
        "close, collect and connect": twice,
    }


def callables(holder: object, names: list[str]) -> Iterator[tuple[str, Callable[[World], Any]]]:
    """Functions of a module or a class by name."""
    for name in names:
        if name in NEVER:
            continue
        if callable(getattr(holder, name, None)):
            yield name, lambda w, n=name: getattr(holder, n)  # type: ignore[misc]


def methods(make: Callable[[World], Any], w: World) -> Iterator[tuple[str, Callable[[World], Any]]]:
    """Methods and settable properties of an object."""
    w.open()
    kind = type(make(w))
    w.close()
    ignored = set(dir(object)) | {"__class_getitem__", "__setstate_cython__", "__reduce_cython__"}
    for name in dir(kind):
        if name in ignored - {"__init__", "__eq__", "__lt__", "__setattr__"}:
            continue
        found = inspect.getattr_static(kind, name)
        if callable(getattr(kind, name)) and name != "__setattr__":
            yield name, lambda w, n=name: getattr(make(w), n)  # type: ignore[misc]
        elif hasattr(type(found), "__set__"):
            yield (
                f"{name} =",
                lambda w, n=name: lambda value: setattr(make(w), n, value),  # type: ignore[misc]
            )


def public(module: Any) -> list[str]:
    """Names of a module that it exports, exceptions excepted."""
    names = getattr(module, "__all__", [n for n in dir(module) if not n.startswith("_")])
    return [
        name
        for name in names
        if not (
            isinstance(getattr(module, name), type)
            and issubclass(getattr(module, name), BaseException)
        )
    ]


def verbs() -> list[str]:
    """The functions of the MQI."""
    return [name for name in dir(mqi) if name.startswith("MQ") and callable(getattr(mqi, name))]


def _unit(w: World) -> Any:
    return w.unit


def _held_unit(w: World) -> Any:
    unit = w.qm.unit()
    w.queue.put(b"x", unit=unit)
    return unit


def _batch_result(w: World) -> Any:
    return w.queue.put_batch([b"x"], syncpoint=False)


def _scan(w: World) -> Any:
    for segment in (w.home / "QM1" / "journal").glob("0*.psj"):  # spares come and go
        with segment.open("rb") as file:
            data = file.read()
        if data.startswith(b"PSTKJRNL"):
            return _engine.SegmentScan(data)
    raise AssertionError("no segment of the journal has a header")


OBJECTS: dict[str, Callable[[World], Any]] = {
    "QueueManager": lambda w: w.qm,
    "Queue": lambda w: w.queue,
    "Unit": _unit,
    "HeldUnit": _held_unit,
    "Message": lambda w: w.message(),
    "Xid": lambda w: XID,
    "MessageBatch": lambda w: w.batch(),
    "BatchResult": _batch_result,
    "ArrowColumns": lambda w: w.batch().arrow(),
    "Hconn": lambda w: w.hconn,
    "Hobj": lambda w: w.hobj,
    "MQMD": lambda w: mqi.MQMD(),
    "MQPMO": lambda w: mqi.MQPMO(),
    "MQOD": lambda w: mqi.MQOD(),
    "MQXQH": lambda w: mqi.MQXQH(),
    "SegmentScan": _scan,
}
MODULES: dict[str, Callable[[], tuple[Any, list[str]]]] = {
    "penstock": lambda: (penstock, public(penstock)),
    "mqi": lambda: (mqi, verbs()),
    "_engine": lambda: (_engine, public(_engine)),
}
TARGETS = (*MODULES, *OBJECTS)


def parameters(function: Any) -> list[inspect.Parameter]:
    """Its parameters; one unnamed positional one when it does not say."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return [inspect.Parameter("value", inspect.Parameter.POSITIONAL_ONLY)]


def arguments(
    w: World, given: list[inspect.Parameter], which: str, hostile: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments, `hostile` for the one called `which`."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for it in given:
        if it.kind is it.VAR_POSITIONAL:
            if it.name == which:
                positional.append(hostile)
            elif it.name in ARGUMENTS:
                value = ARGUMENTS[it.name](w)
                positional += list(value) if isinstance(value, (tuple, list)) else []
            continue
        if it.kind is it.VAR_KEYWORD:
            if it.name == which:
                named["maxdepth"] = hostile
            continue
        if it.name == which:
            value = hostile
        elif it.default is ... and it.name in ARGUMENTS and which != "json":
            value = ARGUMENTS[it.name](w)  # data of put(), or json
        elif it.name == "wait" and it.default is None:
            value = 0  # what waits without a limit would not end
        elif it.default is not it.empty:
            continue
        else:
            value = ARGUMENTS[it.name](w) if it.name in ARGUMENTS else None
        if it.kind is it.KEYWORD_ONLY or len(named):
            named[it.name] = value
        else:
            positional.append(value)
            if it.name == which and it.default is not it.empty:
                positional.pop()
                named[it.name] = value
    return positional, named


class Log:
    """The description of the call under way, where it outlives the process."""

    def __init__(self) -> None:
        self.path = os.environ.get("REENTRANT_LOG", os.devnull)
        self.file = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)

    def write(self, text: str) -> None:
        """Replaces it."""
        os.pwrite(self.file, text[:250].ljust(250).encode("utf-8", "replace") + b"\n", 0)


def one_call(w: World, get: Callable[[World], Any], which: str, kind: str, action: str) -> bool:
    """Whether the hostile object was asked for anything. SystemError is not caught: it says that
    the binding raised without an exception or returned with one.
    """
    w.open()
    HOSTILE.armed = False
    try:
        function = get(w)
        given = parameters(function)

        def again() -> None:
            positional, named = arguments(w, given, "", None)
            function(*positional, **named)

        hostile = KINDS[kind](which)
        positional, named = arguments(w, given, which, hostile)
        HOSTILE.action = actions(w, again)[action]
        HOSTILE.asked, HOSTILE.armed = 0, True
        with contextlib.suppress(
            penstock.MQError, TypeError, ValueError, AttributeError, LookupError, OverflowError,
            NotImplementedError, RuntimeError, OSError, MemoryError, AssertionError, BufferError,
        ):  # fmt: skip
            result = function(*positional, **named)
            if inspect.isgenerator(result):
                next(result, None)
        return HOSTILE.asked > 0
    finally:
        HOSTILE.armed = False
        w.close()


def finalizer_call(w: World, get: Callable[[World], Any], action: str) -> None:
    """The same with ordinary arguments, while the collector runs finalizers that do the action."""

    class Garbage:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            HOSTILE.act()

    w.open()
    try:
        function = get(w)
        given = parameters(function)
        positional, named = arguments(w, given, "", None)
        HOSTILE.action = actions(w, int)[action]
        HOSTILE.armed = True
        gc.collect()
        Garbage()
        gc.set_threshold(1, 1, 1)
        with contextlib.suppress(Exception):
            function(*positional, **named)
    finally:
        gc.set_threshold(700, 10, 10)
        HOSTILE.armed = False
        w.close()


def run(target: str, w: World, log: Log, one_in: int) -> int:
    """All calls of a target, or one in so many; how many objects were asked."""
    asked, chosen = 0, Random(target)
    if target in MODULES:
        found = list(callables(*MODULES[target]()))
    else:
        found = list(methods(OBJECTS[target], w))
    for name, get in found:
        w.open()
        try:
            given = parameters(get(w))
        finally:
            w.close()
        for action in actions(w, int):
            if not chosen.randrange(one_in):
                log.write(f"{target}.{name}(): finalizers: {action}")
                finalizer_call(w, get, action)
            for it in given:
                for kind in KINDS:
                    if chosen.randrange(one_in):
                        continue
                    log.write(f"{target}.{name}({it.name}: {kind}): {action}")
                    asked += one_call(w, get, it.name, kind, action)
    return asked


def main() -> None:
    """Runs one target, checks that the queue manager is whole, prints the count."""
    if sys.argv[1] == "--targets":
        print(*TARGETS)
        return
    target, seconds = sys.argv[1], float(sys.argv[2])
    one_in = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    faulthandler.enable()
    faulthandler.dump_traceback_later(seconds, exit=True)
    warnings.simplefilter("ignore")
    folder = Path(tempfile.mkdtemp(prefix="penstock-reentrant-", dir="/dev/shm"))
    w, log = World(folder), Log()
    os.chdir(folder)  # relative paths are given, too
    try:
        asked = run(target, w, log, one_in)
        w.open()
        w.keeper.check()
        w.queue.put(b"last", syncpoint=False)
        w.close()
        w.keeper.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(asked)


if __name__ == "__main__":
    main()
