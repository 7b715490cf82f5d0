"""The data source through the server: what is said, who may say it, and who attaches directly.

No Spark runs here: what Spark would call is called (spark_steps.py). The tests of the whole folder
run through a server with ``make spark-remote``.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from remote_fixture import RIGHTS, Allowed, Remote
from spark_fixture import NOWHERE, wait_until
from spark_steps import START, Bench, Put, plan, rows

import penstock
from penstock.flight.server import Limits, Server
from penstock.flight.service import Service
from penstock.flight.without_spark import WithoutSpark
from penstock.spark.base import host, options, units
from penstock.spark.base.errors import (
    DataLoss,
    OptionError,
    SchemaError,
    SourceError,
)
from penstock.spark.base.schema import MESSAGE, struct_type
from penstock.spark.remote import place, protocol, service
from penstock.spark.remote import session as remote_session
from penstock.spark.remote.browse import RemoteBrowseReader
from penstock.spark.source import abandoned
from ports import free_port


def browsed(reader: RemoteBrowseReader) -> list[bytes]:
    found: list[bytes] = []
    for part in reader.partitions():
        task = pickle.loads(pickle.dumps(reader))  # as Spark sends it
        for batch in task.read(pickle.loads(pickle.dumps(part))):
            found += batch.column("body").to_pylist()
    return found


# ---- what goes through it ----


def test_a_queue_is_browsed_and_nothing_is_taken(bench: Bench, remote: Remote) -> None:
    made = bench.fill(0, 5)
    assert browsed(remote.browser()) == made == bench.left()
    assert browsed(remote.browser(order="arrival", minPartitions="3")) == made


def test_what_a_client_asks_for_at_a_time_is_limited(
    bench: Bench, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_MOST", {"batchRows": 3, "batchBytes": 1 << 20})
    made = bench.fill(0, 10)
    reader = remote.browser(batchRows="1000000", batchBytes="1g", minPartitions="1")
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert [body for batch in batches for body in batch.column("body").to_pylist()] == made
    assert [batch.num_rows for batch in batches] == [3, 3, 3, 1]


def test_a_stream_takes_and_commits_each_message_once(bench: Bench, remote: Remote) -> None:
    made = bench.fill(0, 5)
    reader = remote.reader()
    assert reader.initialOffset() == START
    end = plan(reader, START)
    assert rows(reader, START, end) == made == rows(reader, START, end)
    assert bench.left() == []
    reader.commit(end)
    assert bench.qm.recover() == [] and plan(reader, end) == end
    reader.stop()


def test_a_driver_that_dies_finds_its_micro_batch_through_another_server(
    bench: Bench, remote: Remote
) -> None:
    made = bench.fill(0, 5)
    first = remote.reader()
    end = plan(first, START)
    assert rows(first, START, end) == made
    remote.end()
    remote.start()
    bench.fill(5, 9)
    again = remote.reader()
    assert rows(again, START, end) == made
    again.commit(end)
    assert len(bench.left()) == 4
    again.stop()


def test_a_server_that_is_started_anew_continues_a_stream(bench: Bench, remote: Remote) -> None:
    made = bench.fill(0, 5)
    reader = remote.reader()
    end = plan(reader, START)
    assert rows(reader, START, end) == made
    remote.end()
    remote.start()
    more = bench.fill(5, 8)
    later = plan(reader, end)
    assert rows(reader, end, later) == more
    reader.commit(later)
    assert bench.qm.recover() == []
    reader.stop()


def test_available_now_takes_nothing_later_also_behind_a_restart(
    bench: Bench, remote: Remote
) -> None:
    made = bench.fill(0, 5)
    reader = remote.reader(maxMessagesPerTrigger="3")
    reader.prepareForTriggerAvailableNow()
    end = plan(reader, START)
    assert rows(reader, START, end) == made[:3]
    bench.fill(5, 9)
    remote.end()
    remote.start()
    later = plan(reader, end)
    assert rows(reader, end, later) == made[3:]
    assert plan(reader, later) == later
    reader.stop()


def test_a_sink_puts_all_or_nothing(bench: Bench, remote: Remote, put: Put) -> None:
    writer = remote.batch_writer(queue="OUT")
    told = [
        put(writer, pa.table({"value": ["a", "b"]})),
        put(writer, pa.table({"value": ["c"]}), 1),
    ]
    assert list(bench.target.browse()) == []
    writer.commit(told)
    assert [message.data for message in bench.target.browse()] == [b"a", b"b", b"c"]
    other = remote.batch_writer(queue="OUT")
    other.abort([put(other, pa.table({"value": ["d"]}))])
    assert bench.target.depth == 3 and bench.qm.recover() == []


def test_a_commit_that_is_repeated_is_done_once_and_one_that_was_dropped_is_refused(
    bench: Bench, remote: Remote, put: Put
) -> None:
    writer = remote.batch_writer(queue="OUT")
    told = [put(writer, pa.table({"value": ["a", "b"]}))]
    writer.commit(told)
    writer.commit(told)  # as when the answer was lost
    assert bench.target.depth == 2 and bench.qm.recover() == []
    dropped = remote.batch_writer(queue="OUT")
    told = [put(dropped, pa.table({"value": ["c"]}))]
    dropped.abort(told)
    dropped.abort(told)
    with pytest.raises(SourceError, match="the write was dropped before its commit"):
        dropped.commit(told)
    assert bench.target.depth == 2 and bench.qm.recover() == []


def test_a_write_that_failed_is_dropped_or_the_driver_is_warned(
    bench: Bench, remote: Remote, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "_RETRY_SECONDS", 0.1)
    writer = remote.batch_writer(queue="OUT")
    told = [put(writer, pa.table({"value": ["a"]}))]
    remote.end()
    with pytest.warns(RuntimeWarning, match=r"may be left prepared.*2009"):
        writer.abort(told)  # Spark would hide why the batch failed
    remote.start()
    assert len(bench.qm.recover()) == 1
    writer.abort(told)
    assert bench.qm.recover() == []


def test_rows_of_a_task_go_in_pieces_and_keep_their_order(
    bench: Bench, remote: Remote, put: Put
) -> None:
    bench.qm.alter("QLOCAL", "OUT", maxdepth=10_000)
    values = [f"{number:04d}" + "x" * 30_000 for number in range(1_000)]
    writer = remote.batch_writer(queue="OUT")
    told = put(writer, pa.table({"value": values}))
    assert len(told.counts) >= 4 and told.messages == 1_000
    writer.commit([told])
    assert [message.data[:4].decode() for message in bench.target.browse()] == [
        value[:4] for value in values
    ]


def test_an_error_names_the_row_of_the_task_not_of_the_piece(
    bench: Bench, remote: Remote, put: Put
) -> None:
    bench.qm.alter("QLOCAL", "OUT", maxdepth=10_000)
    columns = {"value": "string", "priority": "int"}
    table = pa.table({
        "value": ["x" * 30_000] * 500, "priority": pa.array([0] * 450 + [-2] + [0] * 49, pa.int32())
    })  # fmt: skip
    writer = remote.batch_writer(columns, queue="OUT")
    with pytest.raises(SourceError, match="row 450 of partition 0"):
        put(writer, table)
    assert bench.qm.recover() != []  # of earlier pieces
    writer.abort([])
    assert bench.qm.recover() == []


def test_a_micro_batch_is_written_once(bench: Bench, remote: Remote, put: Put) -> None:
    for _ in range(2):
        writer = remote.stream_writer()
        writer.commit([put(writer, pa.table({"value": ["a"]}))], 0)
    assert bench.target.depth == 1 and bench.qm.recover() == []


def test_what_the_server_warns_of_is_a_warning_of_the_driver(
    bench: Bench, remote: Remote, put: Put
) -> None:
    writer = remote.batch_writer({"value": "string", "priority": "int"}, queue="OUT")
    told = put(writer, pa.table({"value": ["a"], "priority": pa.array([77], pa.int32())}))
    with pytest.warns(RuntimeWarning, match=r"1 of 1 messages .* \(2049\)"):
        writer.commit([told])


def test_errors_are_those_of_the_data_source(bench: Bench, remote: Remote) -> None:
    with pytest.raises(SourceError, match="2085"):
        remote.browser(queue="NONE").partitions()
    with pytest.raises(SourceError, match="2085"):
        remote.reader(queue="NONE").initialOffset()
    with pytest.raises(SourceError, match="this server has no queue manager QM2"):
        remote.browser(queueManager="QM2").partitions()
    with pytest.raises(OptionError, match="fromTime"):
        remote.browser(fromTime="yesterday")
    reader = remote.reader()
    bench.fill(0, 1)
    end = plan(reader, START)
    reader.partitions(START, end)
    bench.qm.backout_prepared(*bench.qm.recover())
    with pytest.raises(DataLoss, match="neither prepared nor committed"):
        reader.partitions(end, {**end, "unit": 2})
    reader.stop()


def test_messages_name_the_application_of_the_driver(
    bench: Bench, remote: Remote, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "application", lambda: "nightly load")
    writer = remote.batch_writer(queue="OUT")
    writer.commit([put(writer, pa.table({"value": ["a"]}))])
    (message,) = bench.target.browse()
    assert message.put_appl_name.strip() == "nightly load"


# ---- who attaches ----


def test_a_task_on_the_queue_managers_host_attaches_directly(
    bench: Bench, remote: Remote, home: Path, put: Put
) -> None:
    made = bench.fill(0, 5)
    reader = remote.browser(home=str(home))
    parts = reader.partitions()
    writer = remote.batch_writer(queue="OUT", home=str(home))
    remote.end()  # tasks go on without the server
    found = [value for part in parts for batch in reader.read(part)
             for value in batch.column("body").to_pylist()]  # fmt: skip
    assert found == made
    told = put(writer, pa.table({"value": ["a"]}))
    remote.start()
    writer.commit([told])
    assert bench.target.depth == 1


def test_another_queue_manager_of_that_name_is_not_attached_to(
    bench: Bench, remote: Remote, tmp_path: Path
) -> None:
    made = bench.fill(0, 5)
    other = tmp_path / "other"
    other.mkdir()
    penstock.create("QM1", other)
    with penstock.connect("QM1", other) as qm:
        qm.define("QLOCAL", "IN")
        with qm.queue("IN") as queue:
            queue.put(b"of the other one")
        assert browsed(remote.browser(home=str(other))) == made


def test_a_task_on_another_host_asks_the_server(
    bench: Bench, remote: Remote, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "_RETRY_SECONDS", 0.1)
    made = bench.fill(0, 5)
    reader = remote.browser(home=str(home))
    (part,) = reader.partitions()
    reader._place.where = host.Host("elsewhere", "another boot", "another machine")
    remote.end()
    with pytest.raises(SourceError, match="2009"):
        list(reader.read(part))
    remote.start()
    assert [b for batch in reader.read(part) for b in batch.column("body").to_pylist()] == made


# ---- drivers that are gone ----


def test_a_session_whose_driver_is_gone_is_closed(
    bench: Bench, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.fill(0, 1)
    reader = remote.reader()
    end = plan(reader, START)
    assert rows(reader, START, end) == [b"0000"]
    assert abandoned.is_running(bench.qm.path, end["stream"])
    assert reader._ended is not None
    reader._ended.set()  # it says no more that it is there
    monkeypatch.setattr(service, "IDLE_SECONDS", 0.5)
    wait_until(lambda: not abandoned.is_running(bench.qm.path, end["stream"]))
    assert len(bench.qm.recover()) == 1  # for the next start from the checkpoint
    new = remote.reader()
    bench.fill(1, 2)
    with pytest.raises(SourceError, match="prepared for streams that do not run"):
        plan(new, START)
    new.stop()


def test_a_driver_that_waits_keeps_its_session(
    bench: Bench, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "IDLE_SECONDS", 1.5)
    monkeypatch.setattr(remote_session, "_ALIVE_SECONDS", 0.2)
    bench.fill(0, 1)
    reader = remote.reader()
    end = plan(reader, START)
    reader.partitions(START, end)
    (session,) = remote.spark._sessions.values()
    before = session.used
    wait_until(lambda: session.used > before + 2.5)
    assert list(remote.spark._sessions.values()) == [session]
    reader.stop()
    assert remote.spark._sessions == {}


def test_a_server_without_pyspark_says_so(bench: Bench, home: Path) -> None:
    address = f"grpc://127.0.0.1:{free_port()}"
    server = Server(address, Service({}, 60, 60), None, Limits(), [WithoutSpark()])
    given = {"queueManager": "QM1", "queue": "IN", "home": str(NOWHERE), "endpoint": address}
    reader = RemoteBrowseReader(options.parse(given, options.READ), given, struct_type(MESSAGE))
    with pytest.raises(SourceError, match="the server has no PySpark"):
        reader.partitions()
    server.shutdown()


# ---- rights ----


def test_without_a_token_nothing_is_done(bench: Bench, allowed: Allowed) -> None:
    remote = allowed()
    remote.base["token"] = "another one"
    with pytest.raises(SourceError, match="2035"):
        remote.browser().partitions()


@pytest.mark.parametrize(
    ("queues", "rights"), [(("OUT",), RIGHTS), (("*",), ("put",))], ids=["queue", "right"]
)
def test_what_the_token_does_not_allow_is_refused(
    bench: Bench, allowed: Allowed, put: Put, queues: tuple[str, ...], rights: tuple[str, ...]
) -> None:
    bench.fill(0, 5)
    remote = allowed(queues, rights)
    with pytest.raises(SourceError, match="2035"):
        remote.browser().partitions()
    with pytest.raises(SourceError, match="2035"):
        remote.reader().initialOffset()
    assert len(bench.left()) == 5


def test_a_sink_needs_the_right_on_each_queue_of_its_rows(
    bench: Bench, allowed: Allowed, put: Put
) -> None:
    columns = {"value": "string", "queue": "string"}
    remote = allowed(("OUT",), ("put",))
    writer = remote.batch_writer(columns)
    with pytest.raises(SourceError, match=r"queue IN of a row: .*2035"):
        put(writer, pa.table({"value": ["a", "b"], "queue": ["OUT", "IN"]}))
    assert bench.qm.recover() == [] and bench.left() == []
    with pytest.raises(SourceError, match="2035"):
        remote.batch_writer(queue="IN")
    with pytest.raises(SourceError, match="2035"):
        allowed(("OUT",), ("get",)).batch_writer(queue="OUT")


def test_a_right_to_get_is_enough_for_a_stream(bench: Bench, allowed: Allowed) -> None:
    made = bench.fill(0, 3)
    reader = allowed(("IN",), ("get",)).reader()
    end = plan(reader, START)
    assert rows(reader, START, end) == made
    reader.commit(end)
    reader.stop()


def test_a_pattern_has_the_queues_that_the_token_allows(bench: Bench, allowed: Allowed) -> None:
    bench.fill(0, 3)
    bench.target.put(b"mine")
    reader = allowed(("OUT",)).reader(queuePattern="*")
    end = plan(reader, START)
    assert end["parts"] == {"OUT": 1} and rows(reader, START, end) == [b"mine"]
    reader.stop()
    assert browsed(allowed(("OUT",)).browser(queuePattern="*")) == []
    assert len(bench.left()) == 3


def test_a_stream_of_others_is_neither_read_nor_committed(bench: Bench, allowed: Allowed) -> None:
    bench.fill(0, 3)
    theirs = bench.reader()
    end = plan(theirs, START)
    parts = theirs.partitions(START, end)
    bench.target.put(b"mine")
    mine = allowed(("OUT",)).reader(queue="OUT")
    forged = {"queue": "OUT", "stream": end["stream"], "unit": 1, "parts": {"OUT": 1}}
    for call in (
        lambda: mine.commit(forged),
        lambda: mine.partitions(START, forged),
        lambda: plan(mine, forged),
        lambda: list(mine.read(parts[0])),
    ):
        with pytest.raises(SourceError, match="2035"):
            call()
    assert len(bench.qm.recover()) == 1
    theirs.stop()
    mine.stop()


def test_a_client_does_not_choose_the_servers_home(
    bench: Bench, remote: Remote, tmp_path: Path
) -> None:
    made = bench.fill(0, 2)
    reader = remote.browser()
    reader._place.given |= {"home": str(tmp_path), "HOME": str(tmp_path), "QueueManager": "QM2"}
    assert browsed(reader) == made
    remote.spark._homes["QM1"] = None  # PENSTOCK_HOME, which is not set here
    with pytest.raises(SourceError, match="2058") as caught:
        reader.partitions()
    assert str(tmp_path) not in str(caught.value)


def test_an_offset_that_names_a_queue_of_others_takes_nothing(
    bench: Bench, allowed: Allowed
) -> None:
    bench.fill(0, 3)
    mine = allowed(("OUT",)).reader(queue="OUT")
    forged = {"queue": "OUT", "stream": units.new_id(), "unit": 1, "parts": {"IN": 1}}
    with pytest.raises(SourceError, match="2035"):
        mine.partitions(START, forged)
    assert len(bench.left()) == 3
    mine.stop()


# ---- requests ----

CALL = {
    "op": "spark", "manager": "QM1", "use": "read", "call": "plan", "application": "a",
    "options": {"queue": "IN"}, "schema": struct_type({"body": "binary"}).json(),
}  # fmt: skip
EVIL = {"type": "struct", "fields": [
    {"name": "body", "nullable": True, "metadata": {},
     "type": {"type": "udt", "class": "os.system", "pyClass": "os.system", "sqlType": "string"}},
]}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"op": "other"}, "none of Spark"),
        ({"use": "drop"}, "call 'plan' of use 'drop'"),
        ({"call": "commit"}, "call 'commit' of use 'read'"),
        ({"call": "__init__"}, "is not one of these"),
        ({"more": 1}, "call plan has the fields of every call"),
        ({"options": {"queue": 7}}, "option 'queue' is 7"),
        ({"schema": "{}"}, "schema is no struct"),
        ({"schema": "["}, "schema is not JSON"),
        ({"schema": json.dumps(EVIL)}, "schema has {'type': 'udt'"),
        ({"schema": '{"type":"struct","fields":[{"name":"a","type":"os.system"}]}'}, "os.system"),
        ({"application": None}, "application is None"),
    ],
)
def test_what_is_no_request_is_refused(change: dict[str, Any], text: str) -> None:
    with pytest.raises(protocol.WrongRequest, match=text.replace("{", r"\{")):
        protocol.parse(json.dumps({**CALL, **change}).encode(), ("plan", "commit"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*CALL, "session", "start"]), JSON))
@settings(deadline=None, max_examples=100)
def test_any_values_of_a_request_are_refused_or_read(change: dict[str, Any]) -> None:
    text = json.dumps({**CALL, **change}).encode()
    try:
        read = protocol.parse(text, ("plan", "rows"))
    except SourceError:
        return
    assert read.use in protocol.USES and read.call == "plan"


@given(JSON | st.fixed_dictionaries({
    "kind": st.sampled_from(["slice", "ranges", "probe"]), "groups": JSON, "rules": JSON,
    "ranges": JSON, "queues": JSON, "number": JSON,
}))  # fmt: skip
@settings(deadline=None, max_examples=100)
def test_any_partition_is_refused_or_read(found: Any) -> None:
    if not isinstance(found, dict):
        return
    try:
        made = protocol.partition_from(found, host.here())
    except SourceError:
        return
    assert protocol.partition_from(protocol.partition_json(made), host.here())


def test_partitions_are_read_back_as_they_are_sent(bench: Bench) -> None:
    bench.fill(0, 5)
    reader = bench.reader(order="arrival", onBadBody="null")
    end = plan(reader, START)
    for part in reader.partitions(START, end):
        sent = json.loads(json.dumps(protocol.partition_json(part)))
        back = protocol.partition_from(sent, host.here())
        assert pickle.dumps(back) == pickle.dumps(part) and protocol.queues_of(back) == {"IN"}
    reader.stop()


@pytest.mark.parametrize("kind", ["start", "limit", "task", "run", "written"])
def test_values_that_do_not_fit_are_refused(
    bench: Bench, remote: Remote, put: Put, kind: str
) -> None:
    bench.fill(0, 1)
    reader, writer = remote.reader(), remote.batch_writer(queue="OUT")
    told = put(writer, pa.table({"value": ["a"]}))
    xid = next(iter(told.counts))
    foreign = {**protocol.written_json(told), "counts": {xid.replace("PSNK", "XXXX"): 1}}
    other = {**protocol.written_json(told), "version": 9}
    run = list(writer._run)
    table = pa.table({"value": ["b"]})
    calls: dict[str, Callable[[], Any]] = {
        "start": lambda: reader._call("latest", start={"unit": []}, limit=["all"], newest=None),
        "limit": lambda: reader._call("latest", start=START, limit=["some"], newest=None),
        "task": lambda: writer._sink.place.write(table, run=run, task=[1, -1, 0, 0]),
        "run": lambda: writer._sink.place.write(table, run=["../x", 0, ""], task=[0, 0, 0, 0]),
        "written": lambda: [
            writer._sink.place.call("end", written=[one], once=False, run=run)
            for one in (other, foreign)
        ],
    }
    with pytest.raises(SourceError, match=r"is \[|wrong|do not fit"):
        calls[kind]()
    assert len(bench.qm.recover()) == 1
    writer.abort([told])
    reader.stop()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"token": "t"}, "option token goes with endpoint"),
        ({"endpoint": "grpc://h:1", "token": "t", "tokenFile": "f"}, "only one of them"),
        ({"endpoint": "grpc://h:1", "keyFile": "f"}, "certificateFile and keyFile go together"),
    ],
)
def test_options_of_a_server_that_contradict_each_other_are_refused(
    given: dict[str, str], text: str
) -> None:
    with pytest.raises(OptionError, match=text):
        options.parse({"queueManager": "QM1", "queue": "IN", **given}, options.READ)


def test_a_wrong_endpoint_or_a_file_that_is_not_there_is_one_sentence(
    bench: Bench, remote: Remote
) -> None:
    with pytest.raises(SourceError, match="2046"):
        remote.browser(endpoint="nonsense").partitions()
    with pytest.raises(OptionError, match="/nowhere/token: No such file"):
        remote.browser(tokenFile="/nowhere/token").partitions()
    with pytest.raises(SchemaError, match="column none"):
        own = remote.parsed(options.READ, queue="IN")
        RemoteBrowseReader(*own, struct_type({"none": "int"}))
