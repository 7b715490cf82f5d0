#!/bin/sh
# smoke_aarch64.sh FOLDER - uses the aarch64 wheel for CPython 3.11 of dist/ on an x86-64 machine,
# under qemu-user and with Debian 12's libraries and Python for it, unpacked below FOLDER.
#
# Covered: one process with threads (tests/packaging/one_process.py), and that the pyconfig.h of the
# cross build is Debian's. Not covered: deaths of processes, as qemu-user does not give the kernel
# the list of robust locks; other versions of Python, which Debian 12 does not have.
#
# Needs apt-get, dpkg-deb and qemu-aarch64 (package qemu-user); changes nothing outside FOLDER.
set -eu

folder=$1
wheel=$(realpath "$(ls -t dist/penstock-*-cp311-*aarch64.whl | head -n 1)")
here=$(pwd)
rm -rf "$folder/home"
mkdir -p "$folder/state/lists/partial" "$folder/cache/archives/partial" "$folder/root"
mkdir "$folder/home"
chmod 700 "$folder/home"
cd "$folder"
folder=$(pwd)

apt() {
    apt-get -qq -o Dir::State="$folder/state" -o Dir::State::status="$folder/status" \
        -o Dir::Cache="$folder/cache" -o APT::Architecture=arm64 -o APT::Architectures=arm64 \
        -o APT::Sandbox::User="$(id -un)" -o APT::Install-Recommends=0 "$@"
}

if [ ! -e root/usr/bin/python3.11 ]; then
    : >status
    apt update
    apt --yes --download-only install python3.11-minimal libpython3.11-stdlib libpython3.11-dev
    for package in cache/archives/*.deb; do
        dpkg-deb -x "$package" root
    done
fi

# what tools/wheels.py makes of an x86-64 pyconfig.h is what Debian has for aarch64
mkdir -p x86
(cd x86 && apt-get -qq download libpython3.11-dev && dpkg-deb -x libpython3.11-dev_*.deb .)
python3 - "$here/tools" <<'CHECK'
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
from wheels import aarch64_pyconfig

x86 = Path("x86/usr/include/x86_64-linux-gnu/python3.11/pyconfig.h").read_text()
arm = Path("root/usr/include/aarch64-linux-gnu/python3.11/pyconfig.h").read_text()
assert aarch64_pyconfig(x86) == arm, "pyconfig.h for aarch64 differs from Debian's"
CHECK

rm -rf site
python3 -m pip install --quiet --disable-pip-version-check --target site --python-version 3.11 \
    --implementation cp --abi cp311 --only-binary=:all: \
    --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 \
    --platform manylinux_2_26_aarch64 \
    --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 "$wheel"
PYTHONPATH=$folder/site timeout 300 qemu-aarch64 -L root root/usr/bin/python3.11 \
    "$here/tests/packaging/one_process.py" "$folder/home"
echo "smoke test of $wheel: passed"
