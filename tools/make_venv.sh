#!/bin/sh
# make_venv.sh PYTHON VENV REQUIREMENTS - a virtual environment with the tools that building and
# testing need. Runs again safely: what is there is brought up to date.
set -eu

python=$1
venv=$2
requirements=$3

"$python" - <<'CHECK'
import sys
import sysconfig
from pathlib import Path

if sys.version_info < (3, 10):
    sys.exit(f"Python 3.10 or newer is needed, this is {sys.version.split()[0]}")
header = Path(sysconfig.get_path("include")) / "Python.h"
if not header.exists():
    sys.exit(f"{header} is missing: install Python's headers (package python3-dev)")
CHECK

if [ ! -x "$venv/bin/python" ]; then
    "$python" -m venv "$venv" || {
        echo "the venv module does not work: install it (package python3-venv)" >&2
        exit 1
    }
fi
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
