"""File systems that can be filled: a mount namespace of the program's own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile


def inside_namespace() -> None:
    """Runs this program again in a new mount namespace."""
    if os.environ.get("FULL_INSIDE"):
        return
    os.environ["FULL_INSIDE"] = "1"
    for user in ([], ["--user", "--map-root-user"]):
        command = ["unshare", *user, "--mount"]
        tried = subprocess.run(
            [*command, "mount", "-t", "tmpfs", "full", tempfile.gettempdir()],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if tried.returncode == 0:
            os.execvp("unshare", [*command, sys.executable, *sys.argv])
    raise SystemExit(
        "a file system that can be filled needs the right to mount one, as root or by "
        f"unprivileged user namespaces; neither is allowed here: {tried.stderr.strip()}"
    )
