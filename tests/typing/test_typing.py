"""The stubs say what the module is, and a user's program type-checks against them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

pytestmark = pytest.mark.timeout(600)  # mypy from nothing, on a slow and busy machine too

HERE = Path(__file__).resolve().parent
SOURCE = Path(penstock.__file__).resolve().parent.parent


def run(*arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", *arguments],
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
        env={**os.environ, "MYPYPATH": str(SOURCE), "MYPY_CACHE_DIR": os.devnull},
    )
    return "" if ended.returncode == 0 else ended.stdout + ended.stderr


@pytest.mark.parametrize("program", ["program.py", "async_program.py"])
def test_a_users_program_type_checks(program: str) -> None:
    assert run("mypy", "--strict", "--no-incremental", str(HERE / program)) == ""


def test_the_stub_of_the_engine_agrees_with_the_module() -> None:
    assert run("mypy.stubtest", "penstock._engine", "--ignore-missing-stub") == ""
