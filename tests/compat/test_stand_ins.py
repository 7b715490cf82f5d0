"""The stand-ins by themselves: their functions, native structures, pointers, handles, threads."""

from __future__ import annotations

import ctypes
import gc
import importlib
import inspect
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import penstock
from penstock import compat, mqi
from penstock.compat import ibmmqc, pymqe

OUTPUT, INPUT = mqi.MQOO_OUTPUT, mqi.MQOO_INPUT_SHARED
MD, PMO, GMO = mqi.MQMD().pack(), mqi.MQPMO().pack(), mqi.MQGMO().pack()


@pytest.fixture(autouse=True)
def qm(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[penstock.QueueManager]:
    """A queue manager with a queue."""
    monkeypatch.setenv("PENSTOCK_HOME", str(home))
    with penstock.connect("QM1", home, create=True) as manager:
        manager.define("QLOCAL", "Q", descr="of the test")
        yield manager


@pytest.fixture
def h() -> Iterator[int]:
    """A connection handle."""
    number, comp_code, reason = pymqe.MQCONN(b"QM1")
    assert (comp_code, reason) == (0, 0)
    yield number
    pymqe.MQDISC(number)


def opened(h: int, options: int, **fields: Any) -> Any:
    return pymqe.MQOPEN(h, mqi.MQOD(ObjectName="Q", **fields).pack(), options)


def functions(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and not name.startswith("_")
        and (name.startswith("MQ") or name == "mqaiExecute")
    ]  # fmt: skip


def test_a_stand_in_has_all_functions_of_the_compiled_module() -> None:
    assert (len(functions(pymqe)), len(functions(ibmmqc))) == (18, 25)
    assert set(functions(pymqe)) <= set(pymqe.__all__)
    assert set(functions(ibmmqc)) == set(ibmmqc.__all__)


def test_native_structures_come_back_with_their_length_and_their_pointers(h: int) -> None:
    od = bytearray(mqi.MQOD(ObjectName="Q", Version=4).pack())
    at = mqi.MQOD.ObjectString.offset
    text = ctypes.create_string_buffer(b"a/topic")
    address = ctypes.addressof(text)
    od[at : at + 8] = address.to_bytes(8, "little")
    od[at + 16 : at + 20] = (-1).to_bytes(4, "little", signed=True)  # ends with its NUL
    given = bytes(od) + b"tail"
    hobj, found, comp_code, reason = pymqe.MQOPEN(h, given, OUTPUT)
    assert (comp_code, reason) == (0, 0)
    assert len(found) == len(given) and found.endswith(b"tail")
    assert found[at : at + 24] == given[at : at + 24]
    assert mqi.MQOD.unpack(found[:344] + bytes(80)).ResolvedQName == "Q"
    assert pymqe.MQCLOSE(h, hobj) == (0, 0)


@pytest.mark.parametrize(
    ("address", "length"),
    [(8, 5), ((1 << 63) + 8, 5), ((1 << 64) - 1, -1), (4096, -1), (4096, 20_000), (4096, -7)],
)
def test_a_pointer_that_leads_nowhere_is_a_reason_code(h: int, address: int, length: int) -> None:
    for field, reason in ((mqi.MQOD.SelectionString, 2519), (mqi.MQOD.ObjectString, 2441)):
        od = bytearray(mqi.MQOD(ObjectName="Q", Version=4).pack())
        at = field.offset
        od[at : at + 8] = address.to_bytes(8, "little")
        od[at + 16 : at + 20] = length.to_bytes(4, "little", signed=True)
        assert pymqe.MQOPEN(h, bytes(od), INPUT)[2:] == (2, reason)
        assert "String" in compat.last_error()


def test_a_selection_string_is_read_and_refused(h: int) -> None:
    text = ctypes.create_string_buffer(b"colour = 'red'")
    for length in (14, -1):
        od = bytearray(mqi.MQOD(ObjectName="Q", Version=4).pack())
        at = mqi.MQOD.SelectionString.offset
        od[at : at + 8] = ctypes.addressof(text).to_bytes(8, "little")
        od[at + 16 : at + 20] = length.to_bytes(4, "little", signed=True)
        assert pymqe.MQOPEN(h, bytes(od), INPUT)[2:] == (2, 2551)


def test_bytes_that_are_no_structure_are_refused_and_other_types_raise(h: int) -> None:
    hobj = opened(h, OUTPUT | INPUT)[0]
    assert pymqe.MQOPEN(h, b"OD  ", OUTPUT)[2:] == (2, 2044)
    assert pymqe.MQPUT(h, hobj, b"XX" + MD[2:], PMO, b"x")[2:] == (2, 2026)
    assert pymqe.MQPUT(h, hobj, MD, PMO[:20], b"x")[2:] == (2, 2173)
    assert pymqe.MQGET(h, hobj, MD, b"", 10)[4:] == (2, 2186)
    assert pymqe.MQPUT1(h, b"", MD, PMO, b"x")[2:] == (2, 2044)
    assert ibmmqc.MQCONNX(b"QM1", b"CNO ", None, None, None, None)[1:] == (2, 2139)
    assert ibmmqc.MQSTAT(h, 0, b"")[1:] == (2, 2426)
    for call in (
        lambda: pymqe.MQOPEN(h, "no bytes", OUTPUT),  # type: ignore[arg-type]
        lambda: pymqe.MQCMIT("no number"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError):
            call()


def test_a_handle_that_is_none_is_2018_or_2019(h: int) -> None:
    for stale in (0, -1, h + 1000):
        assert pymqe.MQOPEN(stale, mqi.MQOD(ObjectName="Q").pack(), OUTPUT)[2:] == (2, 2018)
        assert pymqe.MQCMIT(stale) == (2, 2018)
        assert pymqe.MQINQ(stale, 1, mqi.MQCA_Q_NAME)[1:] == (2, 2018)
    for stale in (0, -1, 77):
        assert pymqe.MQPUT(h, stale, MD, PMO, b"x")[2:] == (2, 2019)
        assert pymqe.MQCLOSE(h, stale) == (2, 2019)


def test_a_second_connect_of_a_thread_is_a_warning_with_the_same_handle(h: int) -> None:
    assert pymqe.MQCONN(b"QM1") == (h, 1, 2002)
    assert pymqe.MQDISC(h) == (0, 0)
    again, *codes = pymqe.MQCONN(b"QM1")
    assert codes == [0, 0] and again != h
    assert pymqe.MQDISC(h) == (2, 2018)
    assert pymqe.MQDISC(again) == (0, 0)


@pytest.mark.parametrize(("shared", "codes"), [(32, (2, 2018)), (64, (0, 0)), (128, (0, 0))])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it was left open
def test_a_handle_ends_with_its_thread_unless_it_is_shared(
    shared: int, codes: tuple[int, int]
) -> None:
    made: list[int] = []

    def work() -> None:
        made.append(pymqe.MQCONNX(b"QM1", shared, None, {}, b"")[0])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    gc.collect()
    assert pymqe.MQOPEN(made[0], mqi.MQOD(ObjectName="Q").pack(), OUTPUT)[2:] == codes
    assert pymqe.MQDISC(made[0]) == codes


def test_a_client_connection_is_refused_unless_it_is_asked_to_be_local() -> None:
    client = mqi.MQCNO_CLIENT_BINDING
    table = bytearray(mqi.MQCNO(Version=6).pack())
    table[200:208] = (4096).to_bytes(8, "little")  # CCDTUrlPtr

    def connects() -> Iterator[tuple[int, int, int]]:
        yield pymqe.MQCONNX(b"QM1", 0, b"an MQCD", {}, b"")
        yield pymqe.MQCONNX(b"QM1", client, None, {}, b"")
        yield ibmmqc.MQCONNX(b"QM1", bytes(table), None, None, None, None)
        yield ibmmqc.MQCONNX(b"QM1", None, b"an MQCD", None, None, None)

    assert [answer[1:] for answer in connects()] == [(2, 2540)] * 4
    assert "clients_are_local" in compat.last_error()
    compat.install(clients_are_local=True)
    try:
        for number, comp_code, reason in connects():
            assert (comp_code, reason) == (0, 0)
            pymqe.MQDISC(number)
    finally:
        compat.uninstall()


def test_character_attributes_have_mqs_padding_and_lists_come_in_order(h: int) -> None:
    hobj = opened(h, mqi.MQOO_INQUIRE | mqi.MQOO_SET)[0]
    assert pymqe.MQINQ(h, hobj, mqi.MQCA_Q_DESC) == (b"of the test".ljust(64), 0, 0)
    assert pymqe.MQSET(h, hobj, mqi.MQIA_INHIBIT_PUT, 1) == (0, 0)
    asked = [mqi.MQCA_Q_NAME, mqi.MQIA_INHIBIT_PUT, mqi.MQCA_Q_DESC, mqi.MQIA_CURRENT_Q_DEPTH]
    numbers, characters, *codes = ibmmqc.MQINQ(h, hobj, asked, [], 2, 2, 112)
    assert (numbers, codes) == ([1, 0], [0, 0])
    assert characters == b"Q".ljust(48) + b"of the test".ljust(64)
    assert ibmmqc.MQINQ(h, hobj, asked, [], 2, 2, 50)[1:] == (characters[:50], 1, 2008)
    assert pymqe.MQINQ(h, hobj, 1999) == (None, 2, 2067)
    values = [mqi.MQIA_INHIBIT_PUT, mqi.MQCA_TRIGGER_DATA]
    assert ibmmqc.MQSET(h, hobj, values, [0], b"text".ljust(64, b"\0")) == (0, 0)
    assert pymqe.MQINQ(h, hobj, mqi.MQCA_TRIGGER_DATA)[0] == b"text".ljust(64)
    assert ibmmqc.MQSET(h, hobj, [mqi.MQIA_INHIBIT_PUT], [], b"")[0] == 2


def test_what_there_is_not_answers_with_its_reason_code(h: int) -> None:
    absent = (2, 2298)
    assert pymqe.MQSUB(h, b"sd", 0)[3:] == ibmmqc.MQSUB(h, b"sd", 0)[3:] == absent
    assert pymqe.MQCRTMH(h, b"")[1:] == ibmmqc.MQCRTMH(h, b"")[1:] == absent
    assert pymqe.MQINQMP(h, 1)[2:] == ibmmqc.MQINQMP(h, 1)[3:] == absent
    assert pymqe.MQSETMP(h, 1) == ibmmqc.MQSETMP(h, 1) == ibmmqc.MQDLTMP(h, 1) == absent
    assert ibmmqc.MQDLTMH(h, 1) == ibmmqc.MQCB(h, 1) == ibmmqc.MQCTL(h, 1) == absent
    assert ibmmqc.MQSUBRQ(h, 1, 1, b"")[1:] == absent
    commands = mqi.MQOD(ObjectName="SYSTEM.ADMIN.COMMAND.QUEUE").pack()
    assert pymqe.MQOPEN(h, commands, OUTPUT)[2:] == (2, 2322)
    assert pymqe.MQPUT1(h, commands, MD, PMO, b"")[2:] == (2, 2322)
    with pytest.raises(penstock.MQError) as raised:
        pymqe.mqaiExecute(h)
    assert raised.value.reason == 2322
    md = mqi.MQGMO(Version=4, MsgHandle=1).pack()
    hobj = opened(h, INPUT)[0]
    assert pymqe.MQGET(h, hobj, MD, md, 10)[4:] == (2, 2460)


def test_asynchronous_puts_are_counted_for_mqstat(h: int) -> None:
    pmo = mqi.MQPMO(Options=mqi.MQPMO_ASYNC_RESPONSE).pack()
    hobj = opened(h, OUTPUT)[0]
    assert pymqe.MQPUT(h, hobj, MD, pmo, b"x")[2:] == (0, 0)
    sts, *codes = ibmmqc.MQSTAT(h, mqi.MQSTAT_TYPE_ASYNC_ERROR, mqi.MQSTS().pack())
    assert (codes, mqi.MQSTS.unpack(sts).PutSuccessCount) == ([0, 0], 1)


def test_the_text_of_a_failure_is_there(h: int) -> None:
    assert pymqe.MQOPEN(h, mqi.MQOD(ObjectName="NO.SUCH").pack(), OUTPUT)[2:] == (2, 2085)
    assert "NO.SUCH" in compat.last_error()


def test_a_client_that_is_there_with_its_own_module_is_an_error() -> None:
    program = (
        "import sys, types, penstock.compat as compat\n"
        "client = sys.modules['pymqi'] = types.ModuleType('pymqi')\n"
        "client.pymqe = types.ModuleType('pymqi.pymqe')\n"
        "try: compat.install()\n"
        "except ImportError as error: print(error)\n"
        "print('pymqe' in sys.modules, 'ibmmqc' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == (
        "pymqi has been imported with its own pymqe: install() goes first\nFalse False\n"
    )


def test_the_tracing_of_ibmmq_which_goes_by_message_handles_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mqotel.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    compat.install()
    try:
        with pytest.raises(ImportError):
            importlib.import_module("mqotel")
    finally:
        compat.uninstall()
    assert importlib.import_module("mqotel").__file__ == str(tmp_path / "mqotel.py")
    del sys.modules["mqotel"]


@pytest.mark.parametrize("arguments", [[], ["--what"], ["no_such_file.py"]])
def test_the_command_needs_a_program(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock.compat", *arguments],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "usage: python -m penstock.compat" in done.stderr
