"""The machine that a process runs on, and the JVM and Spark application that it belongs to.

A task must run on the queue manager's host: a queue manager is memory shared by processes of one
running kernel. The host is identified by the kernel's boot id, which containers of one host share
and no two hosts do, and by the machine id, which messages show.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from .errors import WrongHost

__all__ = ["Host", "application", "cores", "here", "jvm", "runs_tasks"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")
_LOCAL = re.compile(r"local(\[[^\]]*\])?\Z")  # a master that runs tasks in the driver's JVM


@dataclass(frozen=True)
class Host:
    """A running machine. Carried from the driver to its tasks."""

    name: str
    boot_id: str
    machine_id: str

    def check(self, queue_manager: str) -> None:
        """Raises WrongHost unless this process runs there."""
        now = here()
        if (now.boot_id, now.machine_id) != (self.boot_id, self.machine_id):
            raise WrongHost(
                f"this task runs on {now.name}, but queue manager {queue_manager} lives on "
                f"{self.name}: executors on other hosts reach it through penstock serve (option "
                "endpoint), or, with small batches, through the driver (option relay)"
            )


def here() -> Host:
    """The machine that this process runs on."""
    return Host(platform.node() or "this host", _read(_BOOT_ID), _read(_MACHINE_ID))


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


def jvm() -> int | None:
    """The process id of the JVM above this process; None: there is none."""
    pid = os.getpid()
    while pid > 1:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        name, _, fields = stat.partition("(")[2].rpartition(")")
        if name == "java":
            return pid
        pid = int(fields.split()[1])
    return None


@cache
def application() -> str | None:
    """The name of the Spark application that this process works for; None: for none."""
    arguments = _arguments()
    return None if arguments is None else application_of(arguments)


def runs_tasks() -> bool:
    """Whether tasks are processes of the same JVM as this one, or there is no JVM at all; False
    where its command line does not say so.
    """
    arguments = _arguments()
    return arguments is None or runs_tasks_of(arguments)


def runs_tasks_of(arguments: Sequence[str]) -> bool:
    """Whether the command line of a JVM names a master ``local`` or ``local[...]``."""
    for option, value in pairwise(arguments):
        if option == "--conf" and value.startswith("spark.master="):
            return _LOCAL.match(value.partition("=")[2]) is not None
    return any(o == "--master" and _LOCAL.match(value) for o, value in pairwise(arguments))


def _arguments() -> list[str] | None:
    """The command line of the JVM above this process; None: there is none."""
    pid = jvm()
    if pid is None:
        return None
    return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")


def application_of(arguments: Sequence[str]) -> str | None:
    """The name as the command line of a JVM has it: spark.app.name, else the option --name, else
    the program's file, as Spark names it; of an executor the application's id.
    """
    given = list(pairwise(arguments))
    for option, value in given:
        if option == "--conf" and value.startswith("spark.app.name="):
            return value.partition("=")[2]
    for option, value in given:
        if option in ("--name", "--app-id"):
            return value
    return next((Path(one).name for one in arguments if one.endswith(".py")), None)


def _read(path: Path) -> str:
    """The file's text; "" where there is none, as on a machine without a machine id."""
    try:
        return path.read_text("ascii", "replace").strip()
    except OSError:
        return ""
