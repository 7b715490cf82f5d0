#!/bin/sh
# smoke_wheel.sh PYTHON FOLDER - installs the newest wheel of dist/ alone in a new environment, away from
# the sources, and uses library and command.
set -eu

python=$1
folder=$2
wheel=$(ls -t dist/penstock-*.whl | head -n 1)

rm -rf "$folder"
"$python" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
cd "$folder"
PENSTOCK_HOME=$(pwd)/home
export PENSTOCK_HOME
venv/bin/penstock create QM1
venv/bin/penstock mqsc QM1 "DEFINE QLOCAL(Q) DEFPSIST(YES)" >mqsc.out
printf 'one\ntwo\n' | venv/bin/penstock put QM1 Q --priority-map two=5
venv/bin/penstock get QM1 Q >got
printf 'two\none\n' | cmp - got
venv/bin/python -c '
import penstock
with penstock.connect("QM1") as qm:
    queue = qm.queue("R")
    queue.put(b"x", persistent=True)
    assert queue.get().data == b"x"
'
venv/bin/penstock verify QM1
venv/bin/penstock delete QM1
echo "smoke test of $wheel: passed"
