"""A PID namespace of its own for a program that kills processes."""

from __future__ import annotations

import os
import sys

__all__ = ["inside_namespace"]


def inside_namespace() -> None:
    """Runs this program again in a new PID namespace."""
    if os.environ.get("STORM_INSIDE"):
        return
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    os.environ["STORM_INSIDE"] = "1"
    command = ["unshare", *user, "--pid", "--fork", "--kill-child", "--mount-proc"]
    os.execvp("unshare", [*command, sys.executable, *sys.argv])
