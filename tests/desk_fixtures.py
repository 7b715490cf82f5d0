"""Fixtures of tests of the MQI: one unix and, when asked for, one z/OS queue manager a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from desk import Desk, desks


@pytest.fixture(scope="module")
def home_of_module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def environment() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def desk_of_module(home_of_module: Path, environment: pytest.MonkeyPatch) -> Iterator[Desk]:
    yield from desks(home_of_module, environment, name="QM1")


@pytest.fixture(scope="module")
def zos_desk_of_module(home_of_module: Path, environment: pytest.MonkeyPatch) -> Iterator[Desk]:
    yield from desks(home_of_module, environment, name="QMZ", platform="zos")


@pytest.fixture
def desk(desk_of_module: Desk) -> Iterator[Desk]:
    yield desk_of_module
    desk_of_module.tidy()


@pytest.fixture
def zos_desk(zos_desk_of_module: Desk) -> Iterator[Desk]:
    yield zos_desk_of_module
    zos_desk_of_module.tidy()


@pytest.fixture
def ask_zos(request: pytest.FixtureRequest) -> Callable[[], Desk]:
    """The z/OS desk for tests that may not need it."""
    return lambda: request.getfixturevalue("zos_desk")
