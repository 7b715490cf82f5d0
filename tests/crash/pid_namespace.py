"""Namespaces of its own for a program that kills processes: PID, and network where it is to have
links that it cuts."""

from __future__ import annotations

import os
import sys

__all__ = ["inside_namespace"]


def inside_namespace(network: bool = False) -> None:
    """Runs this program again in a new PID namespace, and in a new network."""
    if os.environ.get("STORM_INSIDE"):
        return
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    os.environ["STORM_INSIDE"] = "1"
    net = ["--net"] if network else []
    command = ["unshare", *user, *net, "--pid", "--fork", "--kill-child", "--mount-proc"]
    os.execvp("unshare", [*command, sys.executable, *sys.argv])
