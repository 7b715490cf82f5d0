"""Checks that a task runs on the queue manager's host.

A queue manager is memory shared by processes of one running kernel. The host is identified by the
kernel's boot id, which containers of one host share and no two hosts do, and by the machine id,
which messages show.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from .errors import WrongHost

__all__ = ["Host", "cores", "here"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MACHINE_ID = Path("/etc/machine-id")


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
                f"{self.name}: executors must run on the queue manager's host, remote access is "
                "not there yet"
            )


def here() -> Host:
    """The machine that this process runs on."""
    return Host(platform.node() or "this host", _read(_BOOT_ID), _read(_MACHINE_ID))


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0))


def _read(path: Path) -> str:
    """The file's text; "" where there is none, as on a machine without a machine id."""
    try:
        return path.read_text("ascii", "replace").strip()
    except OSError:
        return ""
