"""The unmodified Python layers of the two public clients run on the stand-ins.

Their source distributions are fetched from the package index with pip. Where that is impossible,
the test says which client did not run, and what pip said.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import penstock

PROGRAM = Path(__file__).with_name("client_program.py")
FETCH_S = 90
# Folders of the unpacked distribution that are on sys.path: of ibmmq also the metadata's, and that
# of its modules, which import each other by their own names.
FOLDERS = {"pymqi": ("code",), "ibmmq": ("", "code", "code/ibmmq")}


def fetched(client: str, folder: Path) -> Path | str:
    """The unpacked source distribution, or why there is none."""
    headers = folder / "mq" / "inc"  # the distribution asks for MQ's headers before it is named
    headers.mkdir(parents=True)
    (headers / "cmqc.h").touch()
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:",
        "--no-build-isolation", "--disable-pip-version-check", "--dest", str(folder), client,
    ]  # fmt: skip
    environment = os.environ | {"MQ_FILE_PATH": str(headers.parent)}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=FETCH_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {FETCH_S} s"
    archives = sorted(folder.glob(f"{client}-*.tar.gz"))
    if done.returncode or not archives:
        return "".join(done.stderr.splitlines(keepends=True)[-1:]).strip() or "pip failed"
    with tarfile.open(archives[-1]) as archive:
        archive.extractall(folder, filter="data")
    return folder / archives[-1].name.removesuffix(".tar.gz")


@pytest.mark.timeout(300)
@pytest.mark.parametrize("client", FOLDERS)
def test_a_program_of_an_unmodified_client_runs(
    client: str, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layer = fetched(client, tmp_path)
    if isinstance(layer, str):
        with capsys.disabled():
            print(f"\n{client} was not tried: it could not be fetched: {layer}")
        return
    with penstock.connect("QM1", home, create=True) as qm:
        qm.define("QLOCAL", "WORK", descr="what is to be done")
        qm.define("QLOCAL", "OTHER")
        paths = [str(layer / folder) for folder in FOLDERS[client]]
        environment = os.environ | {
            "PENSTOCK_HOME": str(home),
            "PYTHONPATH": os.pathsep.join(paths),
        }
        done = subprocess.run(
            [sys.executable, "-m", "penstock.compat", str(PROGRAM), client],
            env=environment, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
        with qm.open("WORK") as queue:
            assert len(queue) == 0
