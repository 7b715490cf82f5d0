"""Reason codes of connecting, opening, closing, inquiring and setting, each provoked."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from typing import Any

from provoking import FAILED, OK, WARNING, Answer, Bench, mqi, opening, provokes

import penstock
from qmgr_fixture import killed

OUTPUT, INPUT, BROWSE, INQUIRE = (
    mqi.MQOO_OUTPUT, mqi.MQOO_INPUT_SHARED, mqi.MQOO_BROWSE, mqi.MQOO_INQUIRE,
)  # fmt: skip


# ---- connecting ----


@provokes(2002, WARNING)
def connect_twice(bench: Bench) -> Answer:
    first = bench.qmgr.hconn
    hconn, cc, rc = mqi.MQCONN(bench.qmgr.name)
    assert hconn == first
    return cc, rc


@provokes(2009)
def call_after_a_preemptive_end(bench: Bench) -> Answer:
    qmgr = bench.own()
    hobj = qmgr.opened(qmgr.local(), OUTPUT)
    qmgr.qm.end("preemptive")
    return qmgr.put(hobj)


@provokes(2012)
def call_in_a_forked_child(bench: Bench) -> Answer:
    qmgr = bench.qmgr
    hobj = qmgr.opened(qmgr.local(), OUTPUT)
    return elsewhere(lambda: qmgr.put(hobj))


@provokes(2018)
def no_connection_handle(bench: Bench) -> Answer:
    return mqi.MQOPEN(None, mqi.MQOD(ObjectName="Q"), OUTPUT)


@provokes(2018)
def ended_connection_handle(bench: Bench) -> Answer:
    hconn = bench.qmgr.other()
    assert mqi.MQDISC(hconn) == (OK, 0)
    return mqi.MQCMIT(hconn)


@provokes(2058)
def unknown_queue_manager(bench: Bench) -> Answer:
    return mqi.MQCONN("NOT.THERE")


@provokes(2059)
def connect_while_a_stopped_process_is_in_the_way(bench: Bench) -> Answer:
    qmgr = bench.own()
    hobj = qmgr.opened(qmgr.local(), OUTPUT)

    def hold() -> None:
        qmgr.start()
        qmgr.local()
        os.kill(os.getpid(), signal.SIGSTOP)

    def end() -> None:
        penstock.connect(qmgr.name, qmgr.home).end("immediate")

    processes = [in_process(hold)]
    try:
        os.waitpid(processes[0], os.WUNTRACED)
        processes.append(in_process(end))
        qmgr.until(lambda: qmgr.put(hobj)[1] == 2162)
        return mqi.MQCONNX(qmgr.name, mqi.MQCNO(Options=mqi.MQCNO_HANDLE_SHARE_BLOCK))
    finally:
        for pid in processes:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def in_process(work: Callable[[], object]) -> int:
    """A forked process that does the work and dies."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    return pid


@provokes(2101)
def connect_to_damaged_files(bench: Bench) -> Answer:
    qmgr = bench.own()
    queue = qmgr.local()
    for _ in range(20):
        qmgr.send(queue, b"x" * 4000, mqi.MQMD(Persistence=1))
    qmgr.failure()
    qmgr.stop()
    settings = qmgr.directory() / "qm.toml"
    text = settings.read_text()
    settings.write_text("no settings at all")
    try:
        return mqi.MQCONN(qmgr.name)
    finally:
        settings.write_text(text)
        qmgr.start()


@provokes(2139)
def wrong_connect_options(bench: Bench) -> Answer:
    return mqi.MQCONNX(bench.qmgr.name, mqi.MQCNO(StrucId="XXXX"))


@provokes(2161)
def open_while_quiescing(bench: Bench) -> Answer:
    qmgr = bench.own()
    queue = qmgr.local()
    qmgr.qm.end("controlled")
    return qmgr.open(queue, OUTPUT | mqi.MQOO_FAIL_IF_QUIESCING)


@provokes(2162)
def put_after_an_immediate_end(bench: Bench) -> Answer:
    qmgr = bench.own()
    hobj = qmgr.opened(qmgr.local(), OUTPUT)

    def end() -> None:
        with penstock.connect(qmgr.name, qmgr.home) as qm:
            qm.end("immediate")

    killed(end)
    return qmgr.put(hobj)


# ---- opening: name resolution ----


@provokes(2001)
def alias_of_an_alias(bench: Bench) -> Answer:
    first = bench.qmgr.define("QALIAS", target=bench.qmgr.local())
    return opening(bench, bench.qmgr.define("QALIAS", target=first), OUTPUT)


@provokes(2082)
def alias_of_nothing(bench: Bench) -> Answer:
    return opening(bench, bench.qmgr.define("QALIAS", target="NOTHING"), OUTPUT)


@provokes(2085)
def unknown_name(bench: Bench) -> Answer:
    return opening(bench, "NOT.THERE", OUTPUT)


@provokes(2086)
def input_from_an_unknown_queue_manager(bench: Bench) -> Answer:
    return opening(bench, bench.qmgr.local(), INPUT, ObjectQMgrName="NOT.THERE")


@provokes(2087)
def no_route(bench: Bench) -> Answer:
    return opening(bench, bench.qmgr.define("QREMOTE", rname="Q", rqmname="FAR"), OUTPUT)


@provokes(2091)
def transmission_queue_of_the_wrong_type(bench: Bench) -> Answer:
    wrong = bench.qmgr.define("QALIAS", target=bench.qmgr.local())
    return opening(bench, remote(bench, wrong), OUTPUT)


@provokes(2092)
def transmission_queue_for_other_use(bench: Bench) -> Answer:
    return opening(bench, remote(bench, bench.qmgr.local()), OUTPUT)


@provokes(2196)
def unknown_transmission_queue(bench: Bench) -> Answer:
    return opening(bench, remote(bench, "NOT.THERE"), OUTPUT)


def remote(bench: Bench, xmitq: str) -> str:
    return bench.qmgr.define("QREMOTE", rname="THERE", rqmname="FAR", xmitq=xmitq)


@provokes(2184)
def manager_alias_opened_as_a_queue(bench: Bench) -> Answer:
    route = bench.qmgr.local(usage="XMITQ")
    return opening(
        bench, bench.qmgr.define("QREMOTE", rname="", rqmname="FAR", xmitq=route), OUTPUT
    )


@provokes(2197)
def unknown_default_transmission_queue(bench: Bench) -> Answer:
    return by_default(bench, "NOT.THERE")


@provokes(2198)
def default_transmission_queue_of_the_wrong_type(bench: Bench) -> Answer:
    return by_default(bench, bench.qmgr.define("QALIAS", target=bench.qmgr.local()))


@provokes(2199)
def default_transmission_queue_for_other_use(bench: Bench) -> Answer:
    return by_default(bench, bench.qmgr.local())


def by_default(bench: Bench, queue: str) -> Answer:
    bench.qmgr.qm.alter("QMGR", "", defxmitq=queue)
    try:
        return opening(bench, "Q", OUTPUT, ObjectQMgrName="NOBODY")
    finally:
        bench.qmgr.qm.alter("QMGR", "", defxmitq="")


@provokes(2268)
def cluster_queue_with_all_instances_inhibited(bench: Bench) -> Answer:
    name = bench.qmgr.new_name("CLUSTERED")
    for manager in ("NORTH", "SOUTH"):
        bench.qmgr.define("QCLUSTER", name, cluster="C", clusqmgr=manager, put="DISABLED")
    hobj, cc, rc = bench.qmgr.open(name, OUTPUT | mqi.MQOO_BIND_NOT_FIXED)
    return (cc, rc) if cc == FAILED else bench.qmgr.put(hobj)


# ---- opening: the rest ----


@provokes(2011)
def dynamic_name_with_a_star_in_the_middle(bench: Bench) -> Answer:
    return opening(bench, bench.qmgr.model("TEMPDYN"), INPUT, DynamicQName="A*B")


@provokes(2100)
def dynamic_name_that_exists(bench: Bench) -> Answer:
    queue = bench.qmgr.local()
    return opening(bench, bench.qmgr.model("TEMPDYN"), INPUT, DynamicQName=queue)


@provokes(2201)
def name_of_a_logically_deleted_queue_on_zos(bench: Bench) -> Answer:
    zos = bench.zos()
    model, name = zos.model("PERMDYN", share="YES"), zos.new_name("D")
    hobj, _ = zos.dynamic(model, INPUT, name=name)
    held = zos.opened(name, INPUT)
    zos.closed(hobj, mqi.MQCO_DELETE)
    answer = zos.open(model, INPUT, DynamicQName=name)
    zos.closed(held)
    return answer


@provokes(2017)
def more_handles_than_allowed(bench: Bench) -> Answer:
    qmgr = bench.own()
    queue = qmgr.local()
    qmgr.qm.alter("QMGR", "", maxhands=3)
    for _ in range(3):
        qmgr.opened(queue, OUTPUT)
    return qmgr.open(queue, OUTPUT)


@provokes(2042)
def exclusive_and_shared(bench: Bench) -> Answer:
    queue = bench.qmgr.local()
    bench.qmgr.opened(queue, mqi.MQOO_INPUT_EXCLUSIVE)
    return opening(bench, queue, INPUT)


@provokes(2043)
def unknown_object_type(bench: Bench) -> Answer:
    return opening(bench, bench.qmgr.local(), OUTPUT, ObjectType=99)


@provokes(2044)
def wrong_object_descriptor(bench: Bench) -> Answer:
    return opening(bench, bench.qmgr.local(), OUTPUT, StrucId="XXXX")


@provokes(2045)
def input_from_a_remote_queue(bench: Bench) -> Answer:
    route = bench.qmgr.local(usage="XMITQ")
    return opening(bench, remote(bench, route), INPUT)


@provokes(2045)
def delete_of_a_predefined_queue(bench: Bench) -> Answer:
    hobj = bench.qmgr.opened(bench.qmgr.local(), INPUT)
    return bench.qmgr.close(hobj, mqi.MQCO_DELETE)


@provokes(2046)
def open_for_nothing(bench: Bench) -> Answer:
    return opening(bench, bench.qmgr.local(), 0)


@provokes(2046)
def unknown_close_option(bench: Bench) -> Answer:
    return bench.qmgr.close(bench.qmgr.opened(bench.qmgr.local(), INPUT), 64)


@provokes(2152)
def name_with_a_blank_in_it(bench: Bench) -> Answer:
    return opening(bench, "NO NAME", OUTPUT)


@provokes(2153)
def queue_manager_name_with_a_wrong_character(bench: Bench) -> Answer:
    return opening(bench, "Q", OUTPUT, ObjectQMgrName="NO-NAME")


@provokes(2194)
def name_for_the_queue_manager(bench: Bench) -> Answer:
    return opening(bench, "OTHER", INQUIRE, ObjectType=mqi.MQOT_Q_MGR)


@provokes(2019)
def closed_handle(bench: Bench) -> Answer:
    hobj = bench.qmgr.opened(bench.qmgr.local(), OUTPUT)
    bench.qmgr.closed(hobj)
    return bench.qmgr.put(hobj)


@provokes(2019)
def handle_of_another_connection(bench: Bench) -> Answer:
    hobj = bench.qmgr.opened(bench.qmgr.local(), OUTPUT)
    return bench.qmgr.put(hobj, hconn=bench.qmgr.other())


@provokes(2052)
def handle_of_a_deleted_queue(bench: Bench) -> Answer:
    qmgr = bench.qmgr
    hobj, name = qmgr.dynamic(qmgr.model("PERMDYN", share="YES"), INPUT)
    other = qmgr.opened(name, OUTPUT)
    qmgr.closed(hobj, mqi.MQCO_DELETE)
    return qmgr.put(other)


@provokes(2041)
def handle_of_a_changed_alias(bench: Bench) -> Answer:
    qmgr = bench.qmgr
    alias = qmgr.define("QALIAS", target=qmgr.local())
    hobj = qmgr.opened(alias, OUTPUT)
    qmgr.qm.alter("QALIAS", alias, target=qmgr.local(), force=True)
    return qmgr.put(hobj)


@provokes(2055)
def delete_of_a_queue_with_messages(bench: Bench) -> Answer:
    hobj, name = bench.qmgr.dynamic(bench.qmgr.model("PERMDYN"), INPUT)
    bench.qmgr.send(name)
    return bench.qmgr.close(hobj, mqi.MQCO_DELETE)


# ---- distribution lists ----


def a_list(bench: Bench, *names: str, **od: Any) -> tuple[Any, Answer]:
    descriptor = mqi.MQOD(
        Version=mqi.MQOD_VERSION_2,
        RecsPresent=len(names),
        ObjectRecs=[mqi.MQOR(ObjectName=name) for name in names],
        ResponseRecs=[mqi.MQRR() for _ in names],
        **od,
    )
    return descriptor, mqi.MQOPEN(bench.qmgr.hconn, descriptor, OUTPUT)


@provokes(2136, WARNING)
def list_with_one_good_queue(bench: Bench) -> Answer:
    descriptor, answer = a_list(bench, bench.qmgr.local(), "NOT.THERE")
    assert [record.Reason for record in descriptor.ResponseRecs] == [0, 2085]
    return answer


@provokes(2136, FAILED)
def list_that_fails_for_different_reasons(bench: Bench) -> Answer:
    alias = bench.qmgr.define("QALIAS", target="NOTHING")
    descriptor, answer = a_list(bench, alias, "NOT.THERE")
    assert [record.Reason for record in descriptor.ResponseRecs] == [2082, 2085]
    return answer


@provokes(2137)
def put_to_a_list_whose_open_failed_in_part(bench: Bench) -> Answer:
    _, (hobj, cc, rc) = a_list(bench, bench.qmgr.local(), "NOT.THERE")
    assert (cc, rc) == (WARNING, 2136)
    records = [mqi.MQRR(), mqi.MQRR()]
    pmo = mqi.MQPMO(
        Version=mqi.MQPMO_VERSION_2,
        Options=mqi.MQPMO_NO_SYNCPOINT,
        RecsPresent=2,
        ResponseRecs=records,
    )
    cc, rc = mqi.MQPUT(bench.qmgr.hconn, hobj, mqi.MQMD(), pmo, b"x")
    assert (cc, rc, records[0].Reason) == (WARNING, 2136, 0)
    return records[1].CompCode, records[1].Reason


@provokes(2152)
def list_with_an_object_name(bench: Bench) -> Answer:
    return a_list(bench, bench.qmgr.local(), ObjectName="Q")[1]


@provokes(2154)
def list_of_less_than_none(bench: Bench) -> Answer:
    od = mqi.MQOD(Version=mqi.MQOD_VERSION_2, RecsPresent=-1)
    return mqi.MQOPEN(bench.qmgr.hconn, od, OUTPUT)


@provokes(2155)
def list_without_object_records(bench: Bench) -> Answer:
    od = mqi.MQOD(Version=mqi.MQOD_VERSION_2, RecsPresent=2)
    return mqi.MQOPEN(bench.qmgr.hconn, od, OUTPUT)


@provokes(2156)
def list_with_too_few_response_records(bench: Bench) -> Answer:
    od = mqi.MQOD(
        Version=mqi.MQOD_VERSION_2,
        ObjectRecs=[mqi.MQOR(ObjectName=bench.qmgr.local()) for _ in range(2)],
        ResponseRecs=[mqi.MQRR()],
    )
    return mqi.MQOPEN(bench.qmgr.hconn, od, OUTPUT)


# ---- inquiring and setting ----


def inquiring(bench: Bench, selectors: list[int], **attributes: Any) -> Answer:
    hobj = bench.qmgr.opened(bench.qmgr.local(**attributes), INQUIRE)
    return mqi.MQINQ(bench.qmgr.hconn, hobj, selectors)


def setting(bench: Bench, selector: int, value: int) -> Answer:
    hobj = bench.qmgr.opened(bench.qmgr.local(), mqi.MQOO_SET)
    return mqi.MQSET(bench.qmgr.hconn, hobj, {selector: value})


@provokes(2038)
def inquire_without_the_option(bench: Bench) -> Answer:
    hobj = bench.qmgr.opened(bench.qmgr.local(), OUTPUT)
    return mqi.MQINQ(bench.qmgr.hconn, hobj, [mqi.MQIA_Q_TYPE])


@provokes(2040)
def set_without_the_option(bench: Bench) -> Answer:
    hobj = bench.qmgr.opened(bench.qmgr.local(), INQUIRE)
    return mqi.MQSET(bench.qmgr.hconn, hobj, {mqi.MQIA_INHIBIT_PUT: 0})


@provokes(2066)
def more_than_256_selectors(bench: Bench) -> Answer:
    return inquiring(bench, [mqi.MQIA_Q_TYPE] * 257)


@provokes(2067)
def unknown_selector(bench: Bench) -> Answer:
    return inquiring(bench, [1999])


@provokes(2068, WARNING)
def selector_of_another_type(bench: Bench) -> Answer:
    return inquiring(bench, [mqi.MQCA_BASE_Q_NAME])


def provoked_by_setting(reason: int, name: str, selector: int, value: int) -> None:
    """Enters an MQSET of a value that the attribute does not take."""

    def call(bench: Bench) -> Answer:
        return setting(bench, selector, value)

    call.__name__ = name
    provokes(reason)(call)


provoked_by_setting(2020, "wrong_inhibit_value", mqi.MQIA_INHIBIT_PUT, 2)
provoked_by_setting(2075, "wrong_trigger_control", mqi.MQIA_TRIGGER_CONTROL, 2)
provoked_by_setting(2076, "wrong_trigger_depth", mqi.MQIA_TRIGGER_DEPTH, 0)
provoked_by_setting(2077, "wrong_trigger_priority", mqi.MQIA_TRIGGER_MSG_PRIORITY, 10)
provoked_by_setting(2078, "wrong_trigger_type", mqi.MQIA_TRIGGER_TYPE, 9)


@provokes(2065)
def selectors_that_are_no_list(bench: Bench) -> Answer:
    hobj = bench.qmgr.opened(bench.qmgr.local(), INQUIRE)
    return mqi.MQINQ(bench.qmgr.hconn, hobj, 5)


TWO_OF_EACH = [mqi.MQIA_Q_TYPE, mqi.MQIA_MAX_Q_DEPTH, mqi.MQCA_Q_NAME, mqi.MQCA_Q_DESC]


def inquiring_into(bench: Bench, **areas: int) -> Answer:
    hobj = bench.qmgr.opened(bench.qmgr.local(), INQUIRE)
    return mqi.MQINQ(bench.qmgr.hconn, hobj, TWO_OF_EACH, **areas)


@provokes(2022, WARNING)
def area_for_one_integer_of_two(bench: Bench) -> Answer:
    return inquiring_into(bench, int_attr_count=1)


@provokes(2021)
def area_for_less_than_no_integers(bench: Bench) -> Answer:
    return inquiring_into(bench, int_attr_count=-1)


@provokes(2008, WARNING)
def area_for_less_than_all_characters(bench: Bench) -> Answer:
    return inquiring_into(bench, char_attr_length=50)


@provokes(2006)
def area_for_less_than_no_characters(bench: Bench) -> Answer:
    return inquiring_into(bench, char_attr_length=-1)


@provokes(2270)
def cluster_queue_whose_last_instance_went(bench: Bench) -> Answer:
    name = bench.qmgr.define("QCLUSTER", cluster="C", clusqmgr="NORTH")
    hobj = bench.qmgr.opened(name, OUTPUT | mqi.MQOO_BIND_NOT_FIXED)
    bench.qmgr.qm.delete("QCLUSTER", name, clusqmgr="NORTH")
    return bench.qmgr.put(hobj)


@provokes(2102)
def connect_without_file_descriptors(bench: Bench) -> Answer:
    qmgr = bench.own()
    qmgr.stop()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    probe = os.open("/dev/null", os.O_RDONLY)
    os.close(probe)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe + 1, before[1]))
    try:
        return mqi.MQCONN(qmgr.name)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        qmgr.start()


@provokes(2035)
def connect_without_permission(bench: Bench) -> Answer:
    qmgr = bench.own()
    qmgr.stop()
    settings = qmgr.directory() / "qm.toml"
    mode = settings.stat().st_mode
    try:
        settings.chmod(0)
        return elsewhere(lambda: mqi.MQCONN(qmgr.name), without_rights=True)
    finally:
        settings.chmod(mode)
        qmgr.start()


def elsewhere(call: Callable[[], Answer], without_rights: bool = False) -> Answer:
    """The answer of a call in a forked process, optionally with an unknown user."""
    reader, writer = os.pipe()

    def work() -> None:
        if without_rights and os.geteuid() == 0:
            os.setegid(65534)
            os.seteuid(65534)
        os.write(writer, b"%d %d" % call()[-2:])

    pid = in_process(work)
    os.close(writer)
    with open(reader, "rb") as pipe:
        answer = pipe.read().split()
    os.waitpid(pid, 0)
    return int(answer[0]), int(answer[1])


# ---- selection strings ----


def selecting(bench: Bench, text: str, options: int = INPUT) -> Answer:
    """The answer of an open with a selection string."""
    return opening(
        bench, bench.qmgr.local(), options, Version=mqi.MQOD_VERSION_4, SelectionString=text
    )


@provokes(2459)
def selection_string_that_is_none(bench: Bench) -> Answer:
    return selecting(bench, "Root.MQMD.Priority < < 5")


@provokes(2516)
def selection_at_an_open_for_output(bench: Bench) -> Answer:
    return selecting(bench, "Root.MQMD.Priority < 5", OUTPUT)


@provokes(2519)
def selection_string_that_is_too_long(bench: Bench) -> Answer:
    return selecting(bench, "a = 1" + " OR a = 1" * 2000)


@provokes(2551)
def selection_of_messages(bench: Bench) -> Answer:
    return selecting(bench, "Root.MQMD.Priority < 5")
