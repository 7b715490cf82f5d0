"""Fixtures of tests of the MQI: one unix and, on demand, one z/OS queue manager a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qmgr_fixture import QmgrFixture, qmgrs


@pytest.fixture(scope="module")
def home_of_module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def environment() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def qmgr_of_module(home_of_module: Path, environment: pytest.MonkeyPatch) -> Iterator[QmgrFixture]:
    yield from qmgrs(home_of_module, environment, name="QM1")


@pytest.fixture(scope="module")
def zos_qmgr_of_module(
    home_of_module: Path, environment: pytest.MonkeyPatch
) -> Iterator[QmgrFixture]:
    yield from qmgrs(home_of_module, environment, name="QMZ", platform="zos")


@pytest.fixture
def qmgr(qmgr_of_module: QmgrFixture) -> Iterator[QmgrFixture]:
    yield qmgr_of_module
    qmgr_of_module.tidy()


@pytest.fixture
def zos_qmgr(zos_qmgr_of_module: QmgrFixture) -> Iterator[QmgrFixture]:
    yield zos_qmgr_of_module
    zos_qmgr_of_module.tidy()


@pytest.fixture
def ask_zos(request: pytest.FixtureRequest) -> Callable[[], QmgrFixture]:
    """The z/OS qmgr for tests that may not need it."""
    return lambda: request.getfixturevalue("zos_qmgr")
