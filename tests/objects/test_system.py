"""The SYSTEM objects of a new queue manager, and a first start that is cut short."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
from penstock import QueueManager
from penstock.admin import settings as qmdir
from penstock.objects import TYPES, system

SMALL = {"segment_size": 1 << 20, "journal_limit": 64 << 20, "ring_size": 1 << 20}
NAMES = {
    "QLOCAL": {
        "SYSTEM.DEFAULT.LOCAL.QUEUE",
        "SYSTEM.DEAD.LETTER.QUEUE",
        "SYSTEM.CLUSTER.TRANSMIT.QUEUE",
        "SYSTEM.ADMIN.COMMAND.QUEUE",
        "SYSTEM.ADMIN.PERFM.EVENT",
    },
    "QALIAS": {"SYSTEM.DEFAULT.ALIAS.QUEUE"},
    "QREMOTE": {"SYSTEM.DEFAULT.REMOTE.QUEUE"},
    "QMODEL": {"SYSTEM.DEFAULT.MODEL.QUEUE"},
    "PROCESS": {"SYSTEM.DEFAULT.PROCESS"},
    "NAMELIST": {"SYSTEM.DEFAULT.NAMELIST"},
    "TOPIC": {"SYSTEM.DEFAULT.TOPIC", "SYSTEM.BASE.TOPIC"},
    "CHANNEL": set(system.CHANNEL_DEFAULTS.values()),
    "QCLUSTER": set(),
}


def names(qm: QueueManager) -> dict[str, set[str]]:
    """The names of the objects of each type."""
    return {kind: {str(row["name"]) for row in qm.display(kind)} for kind in NAMES}


def test_a_new_queue_manager_has_the_system_objects(qm: QueueManager) -> None:
    assert names(qm) == NAMES
    (transmission,) = qm.display("QLOCAL", "SYSTEM.CLUSTER.TRANSMIT.QUEUE")
    assert transmission["usage"] == "XMITQ"
    (base,) = qm.display("TOPIC", "SYSTEM.BASE.TOPIC")
    assert not [k for k, v in base.items() if v == "ASPARENT"]
    for kind in ("SDR", "CLUSRCVR"):
        (row,) = qm.display("CHANNEL", system.CHANNEL_DEFAULTS[kind])
        assert row["chltype"] == kind


def test_default_objects_have_the_defaults_of_their_platform(home: Path) -> None:
    for name, platform, depth in (("QU", "unix", 5000), ("QZ", "zos", 999999999)):
        penstock.create(name, home, platform=platform, **SMALL)
        with penstock.connect(name, home) as qm:
            qm.define("QLOCAL", "A")
            for queue in ("SYSTEM.DEFAULT.LOCAL.QUEUE", "A"):
                assert qm.display("QLOCAL", queue)[0]["maxdepth"] == depth
            assert qm.display("QMGR")[0]["platform"] == {"unix": "UNIX", "zos": "MVS"}[platform]


def test_the_queue_manager_object_has_the_limits_that_it_was_created_with(home: Path) -> None:
    penstock.create("QM2", home, max_uncommitted_messages=7, max_message_length=40000, **SMALL)
    with penstock.connect("QM2", home) as qm:
        (row,) = qm.display("QMGR")
        assert (row["maxumsgs"], row["maxmsgl"]) == (7, 40000)
        qm.define("QLOCAL", "A")
        assert qm.display("QLOCAL", "A")[0]["maxmsgl"] == 40000


def test_what_was_changed_or_deleted_stays_so_at_the_next_start(home: Path) -> None:
    penstock.create("QM2", home, **SMALL)
    with penstock.connect("QM2", home) as qm:
        qm.delete("QALIAS", "SYSTEM.DEFAULT.ALIAS.QUEUE")
        qm.alter("QMGR", descr="changed")
    with penstock.connect("QM2", home) as qm:
        assert names(qm) == NAMES | {"QALIAS": set()}
        assert qm.display("QMGR")[0]["descr"] == "changed"


@pytest.mark.parametrize("made", [0, 1, 5, 15, -1])
def test_a_first_start_cut_short_is_completed_by_the_next(
    home: Path, monkeypatch: pytest.MonkeyPatch, made: int
) -> None:
    penstock.create("QM2", home, **SMALL)
    rows = list(system._rows(qmdir.read_settings(home / "QM2")))
    assert rows[-1][:3] == (TYPES["QMGR"].name_space, 5, "QM2")
    monkeypatch.setattr(QueueManager, "_make_system_objects", lambda self, settings: None)
    with penstock.connect("QM2", home) as qm:
        qm.define_objects(rows[:made])
        assert qm.display("QMGR") == []
    monkeypatch.undo()
    with penstock.connect("QM2", home) as qm:
        assert names(qm) == NAMES
        assert qm.display("QMGR")


def test_a_first_start_that_fails_leaves_no_connection_behind(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    penstock.create("QM2", home, **SMALL)

    def fail(*arguments: object) -> None:
        raise penstock.StorageMediumFull(2192, "full")

    monkeypatch.setattr(system, "make_missing", fail)
    with pytest.raises(penstock.StorageMediumFull):
        penstock.connect("QM2", home)
    monkeypatch.undo()
    penstock.delete("QM2", home)
