"""``penstock trigger-monitor``: starts the programs that trigger messages name, as runmqtrm does.

A trigger message is taken in a unit of work that is committed when its program has been started: a
monitor that is killed in between leaves it on the initiation queue.

The program is started by the shell as ``APPLICID "MQTMC2" ENVRDATA``: APPLICID may have arguments
of its own, the MQTMC2 is one argument whatever is in it, and ENVRDATA may be ``&``, so that the
monitor does not wait for the program's end.

Rules: "Trigger monitors", "MQTMC2 - Trigger message 2 (character format)".
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from penstock._mqi_constants.descriptor import (
    MQAT_UNIX,
    MQFB_APPL_CANNOT_BE_STARTED,
    MQFB_APPL_TYPE_ERROR,
    MQFB_TM_ERROR,
    MQFMT_TRIGGER,
)

from .common import manager_argument, say
from .terminal import printable

if TYPE_CHECKING:
    import penstock
    from penstock import Message

MQTM_LENGTH = 684
LOOK_SECONDS = 1.0  # between two looks at whether the queue manager is ending
CANNOT_EXECUTE, NOT_FOUND = 126, 127  # statuses of the shell
NOT_STARTED = 7930  # number of the line in the error log; ours


class Trigger(NamedTuple):
    """The fields of a trigger message, texts without padding."""

    name: str
    process: str
    data: str
    kind: int
    program: str
    environment: str
    user: str


class _Ended(Exception):
    """SIGTERM has come."""


def parse(data: bytes) -> Trigger | None:
    """The fields of an MQTM, None when it is none."""
    if len(data) != MQTM_LENGTH or data[:4] != b"TM  ":
        return None

    def text(at: int, size: int) -> str:
        return data[at : at + size].decode("utf-8", "replace").rstrip(" \0")

    kind = int.from_bytes(data[168:172], sys.byteorder, signed=True)
    return Trigger(
        text(8, 48), text(56, 48), text(104, 64), kind, text(172, 256), text(428, 128),
        text(556, 128),
    )  # fmt: skip


def command_data(trigger: Trigger, manager: str) -> str:
    """The MQTMC2: 732 characters, of which the program gets one argument."""
    return (
        "TMC    2"
        f"{trigger.name:48}{trigger.process:48}{trigger.data:64}{'':4}{trigger.program:256}"
        f"{trigger.environment:128}{trigger.user:128}{manager:48}"
    )


def refusal(trigger: Trigger) -> tuple[int, str]:
    """The feedback code, and in words, why nothing can be started; 0 when it can."""
    if trigger.kind != MQAT_UNIX:
        return MQFB_APPL_TYPE_ERROR, (
            f"the program of queue {trigger.name} has application type {trigger.kind}; only UNIX "
            f"programs are started"
        )
    if not trigger.program:
        return MQFB_APPL_CANNOT_BE_STARTED, (
            f"process {trigger.process} names no program (APPLICID)"
        )
    return 0, ""


def start(trigger: Trigger, manager: str) -> subprocess.Popen[bytes]:
    """Starts the shell with the program."""
    line = f'{trigger.program} "$1" {trigger.environment}'
    return subprocess.Popen(
        ["/bin/sh", "-c", line, "penstock", command_data(trigger, manager)],
        stdin=subprocess.DEVNULL,
    )


class Monitor:
    """Takes trigger messages from one initiation queue until it is told to end."""

    def __init__(self, manager: penstock.QueueManager, name: str) -> None:
        self._manager = manager
        self._name = name
        self._serving = False  # a message has been got, and its unit has not ended
        self._stopped = False

    def stop(self, number: int, frame: object) -> None:
        """SIGTERM: ends at once, or when the program that is being started has been."""
        self._stopped = True
        if not self._serving:
            raise _Ended

    def run(self) -> None:
        """Returns when the queue manager ends. Raises _Ended."""
        import penstock

        with self._manager.open(self._name, input=True, output=False, browse=False) as queue:
            say(f"waits for trigger messages on {self._name}, process {os.getpid()}")
            while not self._stopped:
                try:
                    with self._manager.transaction() as unit:
                        message = queue.get(wait=LOOK_SECONDS, default=None, unit=unit)
                        self._serving = message is not None
                        program = None if message is None else self._serve(message, unit)
                    self._serving = False
                except (penstock.QueueManagerQuiescing, penstock.QueueManagerStopping):
                    return
                if program is not None and not self._stopped:
                    self._await(*program)

    def _serve(
        self, message: Message, unit: penstock.Unit
    ) -> tuple[Trigger, subprocess.Popen[bytes]] | None:
        """Starts what the message names; a message that starts nothing becomes a dead letter."""
        trigger = parse(message.data) if message.format == MQFMT_TRIGGER else None
        reason, text = (MQFB_TM_ERROR, "this is no trigger message")
        program = None
        if trigger is not None:
            reason, text = refusal(trigger)
            try:
                program = None if reason else start(trigger, self._manager.name)
            except (OSError, ValueError) as error:
                reason = MQFB_APPL_CANNOT_BE_STARTED
                text = f"the program of queue {trigger.name} was not started: {error}"
        if trigger is None or program is None:
            self._refuse(message, unit, reason, text)
            return None
        say(f"queue {trigger.name}: started {printable(trigger.program)}, process {program.pid}")
        return trigger, program

    def _refuse(self, message: Message, unit: penstock.Unit, reason: int, text: str) -> None:
        """Logs a message that starts nothing, and puts it on the dead-letter queue, if any."""
        import penstock

        self._log(text)
        try:
            self._manager.dead_letter(message, reason, self._name, unit=unit)
        except penstock.MQError as error:
            self._log(f"a trigger message of {self._name} was discarded: {error}")

    def _await(self, trigger: Trigger, program: subprocess.Popen[bytes]) -> None:
        """Waits for the end of the program, or of the shell that has put it into the background."""
        status = program.wait()
        if status == 0:
            return
        how = f"ended with status {status}" if status > 0 else f"was ended by signal {-status}"
        if status in (CANNOT_EXECUTE, NOT_FOUND):
            how = f"was not started (status {status} of the shell)"
        self._log(f"queue {trigger.name}: {printable(trigger.program)} {how}")

    def _log(self, text: str) -> None:
        """A warning to the terminal and to the error log."""
        say(printable(text))
        self._manager.log(NOT_STARTED, "W", f"trigger monitor of {self._name}: {text}")


@click.command("trigger-monitor")
@manager_argument
@click.option("--initq", required=True, metavar="NAME", help="The initiation queue.")
def command(qm: str, home: Path | None, initq: str) -> None:
    """Start the programs that trigger messages on an initiation queue of QM name.

    Runs until SIGTERM, or until QM ends. Each program is started as `APPLICID "MQTMC2" ENVRDATA` by
    the shell; the next one when it has ended, unless ENVRDATA is `&`. One that cannot be started is
    logged, and the monitor goes on.
    """
    import penstock

    with penstock.connect(qm, home=home) as manager:
        monitor = Monitor(manager, initq)
        try:
            signal.signal(signal.SIGTERM, monitor.stop)
            monitor.run()
        except _Ended:
            pass
    say("ended")
