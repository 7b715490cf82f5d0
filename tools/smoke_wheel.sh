#!/bin/sh
# smoke_wheel.sh PYTHON FOLDER [WHEEL] - installs a wheel (default: the newest of dist/ for this
# interpreter) alone in a new environment, away from the sources and with no compiler on PATH, and
# uses library and command.
set -eu

python=$1
folder=$2
tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
wheel=${3:-$(ls -t dist/penstock-*-"$tag"-*"$(uname -m)".whl | head -n 1)}
wheel=$(realpath "$wheel")
program=$(realpath tests/packaging/one_process.py)

rm -rf "$folder"
"$python" -m venv "$folder/venv"
cd "$folder"
mkdir bin home one
chmod 700 one
for tool in cmp sh; do
    ln -s "$(command -v $tool)" bin/
done
PATH=$(pwd)/venv/bin:$(pwd)/bin
export PATH
python -m pip install --quiet --disable-pip-version-check --only-binary=:all: "$wheel"

PENSTOCK_HOME=$(pwd)/home
export PENSTOCK_HOME
penstock create QM1
penstock mqsc QM1 "DEFINE QLOCAL(Q) DEFPSIST(YES)" >mqsc.out
printf 'one\ntwo\n' | penstock put QM1 Q --priority-map two=5
penstock get QM1 Q >got
printf 'two\none\n' | cmp - got
python -c '
import penstock
with penstock.connect("QM1") as qm:
    queue = qm.queue("R")
    queue.put(b"x", persistent=True)
    assert queue.get().data == b"x"
'
penstock verify QM1
penstock delete QM1
python "$program" "$(pwd)/one"
echo "smoke test of $wheel: passed"
