"""Queue managers from the command line: create, start, end, list, delete, status, errors."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from command_process import Command

import penstock as library

XID = library.Xid(9, b"a unit")


def test_create_list_delete(penstock: Command) -> None:
    assert penstock.run("list").returncode == 1
    penstock.ok("create", "QM1")
    penstock.ok("create", "A.B/C")
    assert penstock.ok("list").split() == [b"A.B/C", b"ended", b"QM1", b"ended"]
    done = penstock.run("create", "QM1")
    assert done.returncode == 2 and b"exists" in done.stderr
    penstock.ok("delete", "A.B/C")
    assert penstock.ok("list").split() == [b"QM1", b"ended"]
    assert penstock.run("delete", "A.B/C").returncode == 2


def test_the_home_option_wins_over_the_environment(penstock: Command, tmp_path: Path) -> None:
    penstock.ok("create", "QM1", "--home", str(tmp_path / "other"))
    assert (tmp_path / "other" / "QM1" / "qm.toml").exists()
    assert penstock.run("list").returncode == 1
    assert penstock.ok("list", "--home", str(tmp_path / "other")).split() == [b"QM1", b"ended"]


def keeper_pid(command: Command) -> int:
    return int((command.home / "QM1" / "keeper.pid").read_text())


def test_a_started_queue_manager_keeps_non_persistent_messages_between_commands(
    qm1: Command,
) -> None:
    qm1.ok("start", "QM1")
    os.kill(keeper_pid(qm1), 0)
    assert qm1.ok("list").split() == [b"QM1", b"running"]
    done = qm1.run("put", "QM1", "Q", "--not-persistent", data=b"here\n")
    assert (done.returncode, done.stderr) == (0, b"")
    assert qm1.ok("get", "QM1", "Q") == b"here\n"
    qm1.ok("end", "-w", "QM1")
    assert qm1.ok("list").split() == [b"QM1", b"ended"]
    assert not (qm1.home / "QM1" / "keeper.pid").exists()


def test_starting_twice_leaves_one_keeper(qm1: Command) -> None:
    qm1.ok("start", "QM1")
    pid = keeper_pid(qm1)
    assert str(pid).encode() in qm1.ok("start", "QM1")
    assert keeper_pid(qm1) == pid
    processes = json.loads(qm1.ok("status", "QM1", "--json"))["processes"]
    assert [p["pid"] for p in processes if p["keeper"]] == [pid]


def test_a_keeper_leaves_in_order_on_sigterm(qm1: Command) -> None:
    qm1.ok("mqsc", "QM1", "DEFINE QLOCAL(H) NPMCLASS(HIGH)")
    qm1.ok("start", "QM1")
    qm1.ok("put", "QM1", "H", data=b"kept over an orderly end\n")
    os.kill(keeper_pid(qm1), signal.SIGTERM)
    while b"running" in qm1.ok("list"):
        pass
    assert qm1.ok("get", "QM1", "H") == b"kept over an orderly end\n"


def test_messages_of_npmclass_high_survive_end_i_and_not_end_p(qm1: Command) -> None:
    qm1.ok("mqsc", "QM1", "DEFINE QLOCAL(H) NPMCLASS(HIGH)", "DEFINE QLOCAL(N)")
    for mode, left in (("-c", 1), ("-i", 1), ("-p", 0)):
        qm1.ok("start", "QM1")
        qm1.run("get", "QM1", "H")
        qm1.ok("put", "QM1", "H", data=b"high\n")
        qm1.ok("put", "QM1", "N", data=b"normal\n")
        qm1.ok("end", mode, "QM1")
        while b"running" in qm1.ok("list"):
            pass
        qm1.ok("start", "QM1")
        assert (qm1.depth("H"), qm1.depth("N")) == (left, 0), mode
        qm1.ok("end", "-w", "QM1")


def test_while_it_is_quiescing_administrative_commands_work_and_all_others_are_2161(
    qm1: Command,
) -> None:
    qm1.ok("put", "QM1", "Q", data=b"1\n")
    with library.connect("QM1", qm1.home) as qm, qm.open("Q") as q:
        q.get(syncpoint=True)
        qm.prepare(XID)
        assert b"ends when process" in qm1.ok("end", "QM1")
        for refused in (["put"], ["get"], ["browse"]):
            done = qm1.run(*refused, "QM1", "Q", data=b"2\n")
            assert done.returncode == 2 and b"(2161): the queue manager QM1" in done.stderr, done
            assert f"when process {os.getpid()} has left".encode() in done.stderr
        assert b"(2161)" in qm1.run("start", "QM1").stderr
        with pytest.raises(library.QueueManagerQuiescing, match="takes no new connections"):
            library.connect("QM1", qm1.home)
        assert json.loads(qm1.ok("status", "QM1", "--json"))["manager"]["quiescing"] == 1
        assert b"QUIESCING" in qm1.ok("mqsc", "QM1", "DISPLAY QMSTATUS STATUS")
        assert b"backed out" in qm1.ok("resolve", "QM1", "--backout", str(XID))
        assert q.depth == 1
        with qm1.running("end", "-i", "QM1") as ends:  # it waits until we have left
            with pytest.raises(library.MQError) as caught:
                while True:
                    _ = q.depth
            assert caught.value.reason == 2162
            out, err = ends.communicate(timeout=60)
    assert b"has ended" in out, err
    assert qm1.ok("get", "QM1", "Q") == b"1\n"


def test_end_of_a_stopped_queue_manager_reports_it(qm1: Command) -> None:
    assert b"not running" in qm1.ok("end", "QM1")


def test_delete_of_a_running_queue_manager_is_refused(qm1: Command) -> None:
    qm1.ok("start", "QM1")
    done = qm1.run("delete", "QM1")
    assert done.returncode == 2 and str(keeper_pid(qm1)).encode() in done.stderr
    os.kill(keeper_pid(qm1), signal.SIGKILL)
    while b"running" in qm1.ok("list"):
        pass
    qm1.ok("delete", "QM1")
    assert qm1.run("list").returncode == 1


def test_status_never_starts_a_queue_manager(qm1: Command) -> None:
    before = sorted(p.name for p in (qm1.home / "QM1" / "checkpoint").iterdir())
    assert qm1.ok("status", "QM1") == b"QM1: not running\n"
    assert json.loads(qm1.ok("status", "QM1", "--json")) == {"name": "QM1", "running": False}
    assert sorted(p.name for p in (qm1.home / "QM1" / "checkpoint").iterdir()) == before


def test_status_shows_depths_handles_and_units(qm1: Command) -> None:
    qm1.ok("start", "QM1")
    qm1.ok("put", "QM1", "Q", data=b"a\nb\n")
    with qm1.running("get", "QM1", "Q", "--wait", "-1") as process:
        found = json.loads(qm1.ok("status", "QM1", "--json"))
        while not found["queues"][0]["waiters"]:
            found = json.loads(qm1.ok("status", "QM1", "--json"))
        process.kill()
    (queue,) = found["queues"]
    assert (queue["name"], queue["depth"], queue["maxdepth"]) == ("Q", 0, 999999)
    assert queue["put_count"] == 2 and queue["get_count"] == 2 and queue["open_input"] == 1
    assert process.pid in [p["pid"] for p in found["processes"]]
    text = qm1.ok("status", "QM1").decode()
    assert "QM1: running" in text and "journal:" in text and "keeper" in text
    manager = found["manager"]
    assert manager["region_huge"] == 0 and f"no huge pages: {manager['huge_refusal']}" in text


def test_errors_shows_the_log_with_amq_numbers(qm1: Command) -> None:
    qm1.run("put", "QM1", "Q", "--not-persistent", data=b"a\n")
    lines = qm1.ok("errors", "QM1").decode().splitlines()
    assert lines and all("AMQ" in line for line in lines)
    assert any("non-persistent" in line for line in lines)
    assert qm1.ok("errors", "QM1", "-n", "1").decode().splitlines() == lines[-1:]


def test_help_lists_every_command_and_its_module_exists(penstock: Command) -> None:
    text = penstock.ok("--help").decode()
    names = "create start end list delete mqsc cfstruct put get browse status journal verify errors"
    for name in (*names.split(), "archive", "backup", "restore", "resolve", "demo"):
        assert f"\n  {name} " in text
        assert penstock.ok(name, "--help").startswith(b"Usage: penstock " + name.encode())


def test_the_archive_of_linear_logging_is_shown_listed_and_pruned(penstock: Command) -> None:
    penstock.ok("create", "QM1", "--logging", "linear")
    text = (penstock.home / "QM1" / "qm.toml").read_text()
    (penstock.home / "QM1" / "qm.toml").write_text(
        text.replace("segment_size = 67108864", "segment_size = 131072").replace(
            "limit = 68719476736", "limit = 67108864"
        )
    )
    penstock.ok("mqsc", "QM1", "DEFINE QLOCAL(Q) DEFPSIST(YES) MAXDEPTH(999999)")
    lines = b"".join(b"%0900d\n" % i for i in range(4000))
    penstock.ok("put", "QM1", "Q", data=lines)
    penstock.ok("get", "QM1", "Q")
    penstock.ok("put", "QM1", "Q", data=b"one more\n")
    listed = json.loads(penstock.ok("archive", "QM1", "--json"))
    assert [row["segment"] for row in listed] == list(range(1, len(listed) + 1))
    assert listed[0]["file"].endswith("archive/0000000000-0000000001.psj")
    assert b"0000000001.psj" in penstock.ok("archive", "QM1")
    penstock.ok("start", "QM1")
    kept = json.loads(penstock.ok("status", "QM1", "--json"))["archive"]
    assert kept["segments"] >= len(listed) and kept["bytes"] > 0
    assert b"; archive: " in penstock.ok("status", "QM1")
    refused = penstock.run("archive", "QM1", "--prune-before", "yesterday")
    assert refused.returncode == 2 and b"'yesterday' is no date" in refused.stderr
    said = penstock.ok("archive", "QM1", "--prune-before", "2099-01-01")
    assert b"segments removed" in said and json.loads(penstock.ok("archive", "QM1", "--json")) == []
