"""``penstock mqsc`` and ``penstock cfstruct`` as processes: files, statuses, the shell."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_process import Command

COMMANDS = 2000
SCRIPTS = Path(__file__).parents[1] / "mqsc" / "scripts"
LIMIT = 30.0  # seconds that the shell may take to answer


def test_a_file_with_an_error_in_line_7_does_the_rest_and_ends_with_status_10(
    qm1: Command, tmp_path: Path
) -> None:
    file = tmp_path / "definitions.mqsc"
    file.write_text(
        "* queues\nDEFINE QLOCAL(A) +\n  MAXDEPTH(5)\n\nDEFINE QLOCAL(B)\n"
        "DEFINE QLOCAL(C) +\n  COLOUR(RED)\nDEFINE QLOCAL(D)\nDEFINE QLOCAL(A)\nEND\n"
        "DEFINE QLOCAL(E)\n"
    )
    done = qm1.run("mqsc", "QM1", str(file))
    text = done.stdout.decode()
    assert done.returncode == 10
    assert "AMQ8405: Syntax error in line 7, position 3, at 'COLOUR'" in text
    assert text.count("AMQ8006: Queue created.") == 3 and "AMQ8150" in text
    assert "     1 : DEFINE QLOCAL(A) MAXDEPTH(5)\n" in text
    assert text.splitlines()[-3:] == [
        "6 MQSC commands read.",
        "1 command with a syntax error.",
        "1 valid command could not be processed.",
    ]
    shown = qm1.run("mqsc", "QM1", "DISPLAY QLOCAL(*)").stdout.decode()
    assert [name for name in "ABCDE" if f"QUEUE({name})" in shown] == ["A", "B", "D"]
    again = qm1.run("mqsc", "QM1", data=file.read_bytes())
    assert again.returncode == 10 and b"line 7, position 3" in again.stdout


def test_a_file_that_is_no_text_in_utf_8_is_refused_before_anything_is_done(
    qm1: Command, tmp_path: Path
) -> None:
    file = tmp_path / "latin.mqsc"
    file.write_bytes(b"DEFINE QLOCAL(A)\nDEFINE QLOCAL(B) DESCR('\xe4')\n")
    done = qm1.run("mqsc", "QM1", str(file))
    assert done.returncode == 2 and b"latin.mqsc" in done.stderr
    assert qm1.run("mqsc", "QM1", "-e", "DISPLAY QLOCAL(A)").returncode == 10
    file.write_bytes(b"\xef\xbb\xbfDEFINE QLOCAL(A) DESCR('\xc3\xa4')\n")
    qm1.ok("mqsc", "QM1", str(file))


def test_commands_are_arguments_or_options_and_run_without_an_echo(qm1: Command) -> None:
    text = qm1.ok("mqsc", "QM1", "-e", "DEFINE QLOCAL(A)", "-e", "DIS QL(A) MAXDEPTH").decode()
    assert text.splitlines() == [
        "AMQ8006: Queue created.",
        "AMQ8409: Display Queue details.",
        "   QUEUE(A)                                TYPE(QLOCAL)",
        "   MAXDEPTH(5000)",
    ]
    assert qm1.ok("mqsc", "QM1", "DEFINE QLOCAL(B)", "PING QMGR").count(b"AMQ8") == 2
    assert qm1.run("mqsc", "QM1", "-e", "FROB").returncode == 10
    assert qm1.run("mqsc", "QM1", "-e", "PING QMGR", "PING QMGR").returncode == 2
    missing = qm1.run("mqsc", "QM1", "missing.mqsc")
    assert missing.returncode == 2 and b"missing.mqsc" in missing.stderr
    assert qm1.run("mqsc", "NONE", "-e", "PING QMGR").returncode == 2


def queues(count: int) -> str:
    """As many commands, of two lines each."""
    return "".join(
        f"DEFINE QLOCAL('q.{n}') +\n   MAXDEPTH({n}) DESCR('it''s number {n}; - +')\n"
        for n in range(count)
    )


def test_a_file_of_2000_commands_runs(penstock: Command, tmp_path: Path) -> None:
    file = tmp_path / "many.mqsc"
    file.write_text(queues(COMMANDS))
    penstock.ok("create", "QM1")
    text = penstock.ok("mqsc", "QM1", str(file)).decode()
    assert text.splitlines()[-3] == f"{COMMANDS} MQSC commands read."
    assert text.count("AMQ8006") == COMMANDS


def test_a_dump_makes_the_same_objects_again(penstock: Command) -> None:
    penstock.ok("create", "QM1")
    penstock.ok("mqsc", "QM1", data=queues(50).encode())
    penstock.ok("mqsc", "QM1", "-e", "DEF QA(A) TARGET('q.1')", "-e", "DEF NL(N) NAMES(A,'b')")
    dump = penstock.ok("mqsc", "QM1", "--dump")
    assert dump.count(b"DEFINE QLOCAL(") == 50
    penstock.ok("create", "QM2")
    assert b"\nNo commands with a syntax error.\nNo valid commands could not" in penstock.ok(
        "mqsc", "QM2", data=dump
    )
    assert penstock.ok("mqsc", "QM2", "--dump").splitlines()[1:] == dump.splitlines()[1:]


def test_a_script_of_a_container_has_status_0_and_its_warnings_are_counted(
    penstock: Command,
) -> None:
    penstock.ok("create", "QM1")
    done = penstock.run("mqsc", "QM1", data=(SCRIPTS / "developer.mqsc").read_bytes())
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0 and "AMQ8862: Authority record set." in lines
    assert lines[-4:-1] == [
        "27 MQSC commands read.",
        "No commands with a syntax error.",
        "No valid commands could not be processed.",
    ]
    warned = sum(line.startswith("AMQ8426: Warning: ") for line in lines)
    assert warned >= 15 and lines[-1].endswith(" commands with a warning.")


def test_a_full_dump_of_mq_loads_and_the_dump_command_gives_it_back(penstock: Command) -> None:
    dumps = []
    for name in ("QM1", "QM2"):
        penstock.ok("create", name)
        penstock.ok("mqsc", name, str(SCRIPTS / "full_dump.mqsc"))
        dumps.append(penstock.ok("dump", name).splitlines())
    assert dumps[0][0] == b"* Definitions of queue manager QM1" and len(dumps[0]) > 700
    assert dumps[0][1:] == dumps[1][1:]
    penstock.ok("create", "QM3")
    penstock.ok("mqsc", "QM3", data=b"\n".join(dumps[0]) + b"\n")
    assert penstock.ok("dump", "QM3").splitlines()[1:] == dumps[0][1:]
    assert penstock.ok("mqsc", "QM3", "--dump").splitlines()[1:] == dumps[0][1:]


def test_the_dump_is_of_names_and_types_on_request(qm1: Command) -> None:
    assert qm1.ok("dump", "QM1", "-n", "Q").splitlines()[1] == b"DEFINE QLOCAL('Q') +"
    assert b"SYSTEM.DEFAULT.PROCESS" in qm1.ok("dump", "QM1", "--system", "-t", "process")
    assert qm1.run("dump", "QM1", "-t", "process").returncode == 1
    wrong = qm1.run("dump", "QM1", "-t", "frob")
    assert wrong.returncode == 2 and b"frob is no type of object" in wrong.stderr


def test_verify_changes_nothing(qm1: Command) -> None:
    done = qm1.run("mqsc", "QM1", "-v", data=b"DEFINE QLOCAL(A)\nDEFINE QLOCAL(B) MAXDEPTH(X)\n")
    assert done.returncode == 10 and b"line 2, position 27" in done.stdout
    assert qm1.run("mqsc", "QM1", "-e", "DISPLAY QLOCAL(A)").returncode == 10


def test_attributes_are_explained_without_a_queue_manager(penstock: Command) -> None:
    text = penstock.ok("mqsc", "--attributes", "ql").decode()
    assert "  MAXDEPTH   Most messages on the queue" in text
    assert penstock.ok("mqsc", "--attributes", "QLOCAL.MAXDEPTH").decode() in text
    assert penstock.run("mqsc", "--attributes", "FROB").returncode == 2


# ---- structures ----


def test_a_structure_fails_on_request_after_confirmation(penstock: Command) -> None:
    penstock.ok("create", "ZOS1", "--platform", "zos")
    penstock.ok(
        "mqsc",
        "ZOS1",
        "DEFINE CFSTRUCT(S) RECOVER(YES)",
        "DEFINE QLOCAL(Q) QSGDISP(SHARED) CFSTRUCT(S)",
    )
    penstock.ok("start", "ZOS1")
    penstock.ok("put", "ZOS1", "Q", "--not-persistent", data=b"lost\nlost too\n")
    penstock.ok("put", "ZOS1", "Q", "--persistent", data=b"kept\n")
    row = penstock.ok("cfstruct", "list", "ZOS1").decode().splitlines()[-2]
    assert row.replace("│", " ").split() == ["S", "3", "YES", "1", "3"]
    asked = penstock.run("cfstruct", "fail", "ZOS1", "S", data=b"n\n")
    assert asked.returncode == 130 and b"structure S?" in asked.stdout
    assert penstock.run("cfstruct", "fail", "ZOS1", "NONE", "--yes").returncode == 2
    lost = penstock.ok("cfstruct", "fail", "ZOS1", "S", "--yes")
    assert lost == b"structure S failed and is back: 2 non-persistent messages lost\n"
    assert penstock.ok("get", "ZOS1", "Q") == b"kept\n"
    penstock.ok("end", "-w", "ZOS1")


def test_a_queue_manager_of_another_platform_has_no_structures(qm1: Command) -> None:
    for arguments in (("list", "QM1"), ("fail", "QM1", "S", "--yes")):
        done = qm1.run("cfstruct", *arguments)
        assert done.returncode == 2 and b"z/OS" in done.stderr


# ---- the shell ----


_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Shell:
    """``penstock mqsc QM1`` on a terminal."""

    def __init__(self, command: Command, state: Path) -> None:
        self.master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "penstock.cli", "mqsc", "QM1"],
            env={**command.environment, "XDG_STATE_HOME": str(state), "TERM": "xterm"},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
        )
        os.close(terminal)
        self.text = ""

    def write(self, text: str) -> None:
        os.write(self.master, text.encode())

    def read_until(self, wanted: str) -> None:
        """Reads until the text follows the output read before; fails when it does not come.

        Terminal sequences do not count: a slow shell draws a word in several pieces.
        """
        end = time.monotonic() + LIMIT
        start = len(self.text)
        while wanted not in _SEQUENCE.sub("", self.text[start:]):
            assert time.monotonic() < end, (wanted, self.text)
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    got = os.read(self.master, 65536)
                except OSError:
                    got = b""
                assert got, (wanted, self.text)
                if b"\x1b[6n" in got:  # where is the cursor?
                    os.write(self.master, b"\x1b[1;1R")
                self.text += got.decode("utf-8", "replace")


@contextmanager
def shell(command: Command, state: Path) -> Iterator[Shell]:
    opened = Shell(command, state)
    try:
        yield opened
    finally:
        if opened.process.poll() is None:
            opened.process.kill()
        opened.process.wait()
        os.close(opened.master)


def test_the_shell_runs_completes_and_remembers(qm1: Command, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with shell(qm1, state) as opened:
        opened.read_until("QM1>")
        opened.write("define qlocal(ORDERS) +\r")
        opened.read_until("...>")
        opened.write("maxdepth(7)\r")
        opened.read_until("AMQ8006")
        opened.write("dis ql(OR\t")
        opened.read_until("DERS")
        opened.write(") MAXDEPT\t")
        opened.read_until("MAXDEPTH")
        opened.write("\r")
        opened.read_until("MAXDEPTH(7)")
        opened.write("frob\r")
        opened.read_until("AMQ8405")
        opened.write("help qlocal maxdepth\r")
        opened.read_until("a number from 0")
        opened.write("half a comm\x03")
        opened.read_until("QM1>")
        opened.write("end\r")
        assert opened.process.wait(LIMIT) == 10
    history = state / "penstock" / "mqsc_history"
    assert "maxdepth(7)" in history.read_text()
    assert history.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("leave", ["\x04", "quit\r", "EXIT\r"])
def test_the_shell_ends_with_the_input_and_by_its_words(
    qm1: Command, tmp_path: Path, leave: str
) -> None:
    with shell(qm1, tmp_path) as opened:
        opened.read_until("QM1>")
        opened.write(leave)
        assert opened.process.wait(LIMIT) == 0


def test_mqsc_from_a_pipe_is_no_shell_and_runs_each_command_when_its_line_is_there(
    qm1: Command,
) -> None:
    with qm1.running("mqsc", "QM1") as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"DEFINE QLOCAL(A)\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"     1 : DEFINE QLOCAL(A)\n"
        assert process.stdout.readline() == b"AMQ8006: Queue created.\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == 130
