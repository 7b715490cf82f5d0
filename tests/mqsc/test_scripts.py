"""Scripts written for MQ run as they are, and a dump makes what it was made of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mqsc_fixture import done

import penstock
from penstock.mqsc import Command, Interpreter, Reply, dump, parse, read_commands
from penstock.mqsc.dump import KINDS
from penstock.objects import TYPES

SCRIPTS = Path(__file__).parent / "scripts"
SMALL = {"segment_size": 1 << 20, "journal_limit": 64 << 20, "ring_size": 1 << 20}
SPELLED = {"ACTION", "FORCE", "REPLACE", "TYPE"}  # how it is done, or the only value there is


@pytest.fixture
def other(home: Path) -> Iterator[penstock.QueueManager]:
    """A second queue manager."""
    with penstock.connect("QM2", home, create=True, **SMALL) as manager:
        yield manager


def load(manager: penstock.QueueManager, lines: list[str]) -> list[Reply]:
    """Runs a script in which every command has to work."""
    replies: list[Reply] = []
    interpreter = Interpreter(manager)
    interpreter.run(lines, replies.append)
    failed = [(reply.command, reply.lines) for reply in replies if not reply.ok]
    assert not failed, failed
    assert (interpreter.failed, interpreter.syntax_errors) == (0, 0)
    return replies


def script(name: str) -> list[str]:
    return (SCRIPTS / name).read_text("utf-8").splitlines()


def key_of(command: Command) -> tuple[str, ...]:
    """What a command is about: its noun, its name, and what tells objects of the name apart."""
    words = ("PROFILE", "OBJTYPE", "GROUP", "PRINCIPAL", "CHLTYPE")
    if command.noun == "CHLAUTH":
        words = ("TYPE", "ADDRESS", "CLNTUSER", "QMNAME", "SSLPEER", "SSLCERTI")
    given = {word: values_of(command)[word] for word in words if word in command.parameters}
    about = [f"{word}={given[word]}" for word in sorted(given) if any(given[word] or ())]
    return command.noun, command.name.value if command.name else "", *about


def values_of(command: Command) -> dict[str, tuple[str, ...] | None]:
    """The values of the parameters; a blank one counts as none."""
    return {
        keyword: None if given.values is None else tuple(w.value for w in given.values if w.value)
        for keyword, given in command.parameters.items()
    }


def commands(lines: list[str]) -> dict[tuple[str, ...], Command]:
    """The commands of a script by what they are about."""
    found = [parse(source.text) for source in read_commands(lines)]
    return {key_of(command): command for command in found}


def test_the_development_script_of_a_container_runs_with_no_failed_command(
    qm: penstock.QueueManager,
) -> None:
    replies = load(qm, script("developer.mqsc"))
    assert len(replies) == 27
    warned = [reply for reply in replies if reply.warnings]
    assert all(line.startswith("AMQ8426: Warning: ") for r in warned for line in r.warnings)
    assert {"REFRESH", "START", "SET"} <= {reply.command.split()[0] for reply in warned}
    load(qm, script("developer.mqsc"))  # a second time too, as at each start of a container
    shown = done(Interpreter(qm), "DISPLAY CHANNEL(DEV.APP.SVRCONN) MCAUSER SSLCAUTH")
    assert "MCAUSER(app)" in shown and "SSLCAUTH(OPTIONAL)" in shown


def test_the_full_dump_has_every_type_and_every_attribute_that_can_be_set() -> None:
    given = commands(script("full_dump.mqsc"))
    unset = {"DEFTYPE", "CHLAUTYP", "ENTITY", "ENTTYPE", "AUTHLIST"}
    unset |= {"ADAPTER", "COMMANDS", "LOCLNAME", "NTBNAMES", "SESSIONS", "SOCKET"}  # not of TCP
    for kind in KINDS:
        if TYPES[kind].platform:
            continue
        words = {word.removeprefix("NO") for key, command in given.items() if key[0] == kind
                 for word in command.parameters}  # fmt: skip
        words |= {word for key, command in given.items() if key[0] == kind
                  for word in command.parameters}  # fmt: skip
        for row in TYPES[kind].attributes.values():
            wanted = not (row.display_only or row.platform or row.keyword in unset)
            optional = kind == "QMODEL" and row.keyword in ("CLCHNAME", "OTELTRAC", "OTELPCTL")
            optional |= kind == "LISTENER" and row.keyword == "TPNAME"
            assert row.keyword in words or optional or not wanted, (kind, row.keyword)


def test_a_full_dump_loads_and_dumps_back_equal(
    qm: penstock.QueueManager, other: penstock.QueueManager
) -> None:
    lines = script("full_dump.mqsc")
    load(qm, lines)
    first = list(dump(qm))
    wanted, found = commands(lines), commands("\n".join(first).splitlines())
    assert wanted.keys() == found.keys()
    for key, command in wanted.items():
        there = values_of(found[key])
        for keyword, value in values_of(command).items():
            if keyword not in SPELLED and (value or keyword in there):
                assert there.get(keyword, "missing") == value, (key, keyword)
    load(other, "\n".join(first).splitlines())
    assert list(dump(other)) == first
    load(other, "\n".join(first).splitlines())
    assert list(dump(other)) == first


def test_a_dump_with_system_objects_loads_too(
    qm: penstock.QueueManager, other: penstock.QueueManager
) -> None:
    qm.alter("QMODEL", "SYSTEM.DEFAULT.MODEL.QUEUE", maxdepth=7)
    load(qm, script("developer.mqsc"))
    first = list(dump(qm, system=True))
    load(other, "\n".join(first).splitlines())
    assert list(dump(other, system=True)) == first


def test_a_dump_is_limited_to_names_and_types(qm: penstock.QueueManager) -> None:
    load(qm, script("developer.mqsc"))
    heads = [text.split(" +")[0] for text in dump(qm, "DEV.Q*")]
    assert heads == [f"DEFINE QLOCAL('DEV.QUEUE.{n}')" for n in (1, 2, 3)]
    heads = [text.split(" +")[0] for text in dump(qm, kinds=("listener", "qmgr"))]
    assert heads == ["ALTER QMGR", "DEFINE LISTENER('DEV.LISTENER.TCP')"]


def test_a_dump_of_platform_zos_loads_in_its_order(home: Path) -> None:
    penstock.create("ZOS1", home, platform="zos", **SMALL)
    penstock.create("ZOS2", home, platform="zos", **SMALL)
    with penstock.connect("ZOS1", home) as one, penstock.connect("ZOS2", home) as two:
        load(one, [
            "DEFINE CFSTRUCT(S) CFLEVEL(5) RECOVER(YES) OFFLOAD(DB2) CFCONLOS(TOLERATE)",
            "DEFINE QLOCAL(Q) QSGDISP(SHARED) CFSTRUCT(S) INDXTYPE(MSGID)",
            "ALTER QMGR CHIADAPS(9) EXPRYINT(60) TCPNAME(TCP1) IGQ(ENABLED)",
        ])  # fmt: skip
        first = list(dump(one))
        load(two, "\n".join(first).splitlines())
        assert list(dump(two)) == first
