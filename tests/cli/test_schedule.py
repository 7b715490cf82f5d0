"""``penstock schedule``: set, list, run and delete."""

from __future__ import annotations

import json

import pytest
from command_process import Command


def listed(command: Command) -> list[dict[str, object]]:
    lines = command.ok("schedule", "list", "QM1", "--json").splitlines()
    return [json.loads(line) for line in lines]


def test_a_schedule_is_set_listed_changed_and_deleted(qm1: Command) -> None:
    zone = ("--cron", "0 2 * * *", "--zone", "Europe/Berlin", "--data", "vacuum")
    said = qm1.ok("schedule", "set", "QM1", "nightly", "Q", *zone, "--missed", "skip").decode()
    assert said.startswith("schedule nightly: 0 2 * * * Europe/Berlin, next ")
    (one,) = listed(qm1)
    assert (one["name"], one["queue"], one["missed"]) == ("nightly", "Q", "skip")
    assert one["put"] == {"data": "vacuum", "persistent": True} and one["due"]
    assert "nightly" in qm1.ok("schedule", "list", "QM1").decode()
    qm1.ok("schedule", "set", "QM1", "nightly", "Q", "--every", "3600", "--priority", "3")
    (one,) = listed(qm1)
    assert (one["every"], one["cron"], one["put"]) == (
        3600.0, None, {"data": "", "persistent": True, "priority": 3},
    )  # fmt: skip
    assert qm1.ok("schedule", "delete", "QM1", "nightly") == b"schedule nightly deleted\n"
    done = qm1.run("schedule", "list", "QM1")
    assert (done.returncode, done.stdout) == (1, b"")


def test_jobs_that_are_due_are_put_by_run(qm1: Command) -> None:
    qm1.ok("schedule", "set", "QM1", "s", "Q", "--every", "0.001", "--data", "x")
    qm1.ok("schedule", "run", "QM1", "--wait", "0")
    assert b"x" in qm1.run("get", "QM1", "Q").stdout.split()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("set", "QM1", "s", "Q"), "2046"),
        (("set", "QM1", "s", "Q", "--cron", "x"), "cron 'x'"),
        (("set", "QM1", "s", "Q", "--every", "5", "--start", "soon"), "--start 'soon'"),
        (("set", "QM1", "s", "NO", "--every", "5"), "2085"),
        (("delete", "QM1", "s"), "no schedule s"),
    ],
)
def test_what_cannot_be_is_one_line_and_status_2(
    qm1: Command, arguments: tuple[str, ...], text: str
) -> None:
    done = qm1.run("schedule", *arguments)
    assert done.returncode == 2 and text in done.stderr.decode()
