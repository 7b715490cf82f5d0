"""The pytest plugin: fixtures that are new for each test, loaded only when a test asks for one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import penstock

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, tests: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A run of pytest over these tests, with nothing of this project but the plugin."""
    (folder / "test_it.py").write_text(tests)
    command = [sys.executable, "-W", "error", "-m", "pytest", "-c", "/dev/null", "-p",
               "pytest_penstock", "-p", "no:cacheprovider", f"--basetemp={folder / 'base'}",
               *options, "test_it.py"]  # fmt: skip
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )


def test_each_test_has_a_queue_manager_and_a_queue_for_itself(tmp_path: Path) -> None:
    ended = run(
        tmp_path,
        """
import os, pytest, penstock
homes = []

@pytest.mark.parametrize("n", range(3))
def test_one(penstock_qm, penstock_queue, n):
    assert len(penstock_queue) == 0
    penstock_queue.put(f"{n}", syncpoint=n == 1)
    assert penstock_queue.connection is penstock_qm
    assert penstock_queue.status().name == "QUEUE"
    homes.append(penstock_qm.path.parent)
    assert os.environ["PENSTOCK_HOME"] == str(homes[-1])
    with penstock.connect("TEST") as code_under_test, code_under_test.open("QUEUE") as queue:
        assert len(queue) == 1

def test_they_have_gone():
    assert len(set(homes)) == 3 and not any(home.exists() for home in homes)
    assert os.environ.get("PENSTOCK_HOME") not in map(str, homes)

def test_may_close_all(penstock_qm, penstock_queue):
    penstock_qm.close()
""",
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "5 passed" in ended.stdout


def test_a_test_may_connect_in_its_event_loop_or_not(tmp_path: Path) -> None:
    ended = run(
        tmp_path,
        """
import asyncio

def test_it(penstock_qm, penstock_async_qm):
    async def main():
        async with penstock_async_qm as qm, await qm.queue("JOBS") as jobs:
            async with qm.transaction():
                await jobs.put("3 bolts")
            with penstock_qm.open("JOBS") as queue:
                assert queue.get().text == "3 bolts"
    asyncio.run(main())

def test_not_used(penstock_async_qm):
    pass
""",
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "2 passed" in ended.stdout


def test_the_plugin_loads_penstock_for_tests_that_ask_for_it_alone(tmp_path: Path) -> None:
    ended = run(
        tmp_path,
        """
import sys

def test_without():
    assert "pytest_penstock" in sys.modules and "penstock" not in sys.modules

def test_with(penstock_queue):
    assert "penstock" in sys.modules
""",
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


FAILING = """
import pytest

@pytest.fixture
def broken(penstock_queue):
    penstock_queue.put("before the fixture failed")
    raise LookupError

def test_passes(penstock_queue):
    penstock_queue.put("x")

def test_fails(penstock_queue):
    penstock_queue.put("committed")
    penstock_queue.put("not committed", syncpoint=True)
    assert not len(penstock_queue)

def test_is_not_reached(broken):
    pass

@pytest.mark.xfail
def test_fails_as_expected(penstock_queue):
    assert False
"""


def bodies(path: Path) -> list[str]:
    with penstock.connect("TEST", path.parent) as qm, qm.open("QUEUE") as queue:
        return [message.text for message in queue]


def test_the_files_of_failed_tests_are_kept_on_request_and_no_others(tmp_path: Path) -> None:
    ended = run(tmp_path, FAILING, "--penstock-keep")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    named = re.findall(r"^files of the queue manager: (.+)$", ended.stdout, re.MULTILINE)
    folders = [path for path in (tmp_path / "base").iterdir() if not path.is_symlink()]
    kept = sorted(str(path) for folder in folders for path in folder.glob("*/TEST"))
    assert sorted(named) == kept
    assert [Path(path).parts[-3] for path in kept] == [
        "penstock-test_fails0", "penstock-test_is_not_reached0",
    ]  # fmt: skip
    assert [bodies(Path(path)) for path in kept] == [["committed"], ["before the fixture failed"]]


def test_without_the_option_nothing_is_kept(tmp_path: Path) -> None:
    ended = run(tmp_path, FAILING)
    assert ended.returncode == 1
    assert "files of the queue manager" not in ended.stdout
    assert "1 failed, 1 passed, 1 xfailed, 1 error" in ended.stdout
    assert not list((tmp_path / "base").glob("penstock-*"))


def test_pytest_finds_the_plugin_by_the_name_of_its_module() -> None:
    """So that ``-p pytest_penstock`` and the entry point are one and the same plugin."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    entries = project["project"]["entry-points"]["pytest11"]
    assert entries == {"pytest_penstock": "pytest_penstock"}
    assert project["tool"]["setuptools"]["py-modules"] == ["pytest_penstock"]
    assert (ROOT / "python" / "pytest_penstock.py").is_file()


def test_the_option_explains_itself(tmp_path: Path) -> None:
    ended = run(tmp_path, "", "--help")
    assert re.search(r"--penstock-keep\s+keep the files of penstock_qm of failed", ended.stdout)
