"""``python -m penstock.compat [--clients-are-local] program.py [arguments]``: runs a program of an
MQ client on embedded queue managers.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from . import install

_USAGE = "usage: python -m penstock.compat [--clients-are-local] program.py [arguments]"


def main(arguments: list[str]) -> int:
    """Runs the program as ``python program.py arguments`` would, with the stand-ins in place."""
    local = arguments[:1] == ["--clients-are-local"]
    program = arguments[local:]
    if not program or program[0].startswith("-"):
        print(_USAGE, file=sys.stderr)
        return 2
    if not Path(program[0]).is_file():
        print(f"{program[0]}: there is no such file\n{_USAGE}", file=sys.stderr)
        return 2
    install(clients_are_local=local)
    sys.argv = program
    sys.path[0] = str(Path(program[0]).resolve().parent)
    runpy.run_path(program[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
