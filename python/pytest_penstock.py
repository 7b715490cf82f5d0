"""pytest plugin of penstock: a fresh queue manager, and a queue, for each test that asks for one.

pytest loads this module through its entry point, in every project of an environment that has
penstock. So it stands beside the package, imports it in the first fixture that is used, and needs
nothing that older versions of pytest (6.2) do not have.
"""

from __future__ import annotations

import re

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    from penstock import Queue, QueueManager, asyncio
    from penstock.client.clock import Clock
    from penstock.client.temporary_manager import Temporary, TemporaryQueueManager

_KEEP = "--penstock-keep"
# Of the tests under way whose files are to be kept, by their node id.
_made: dict[str, tuple[Temporary, QueueManager]] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option."""
    parser.getgroup("penstock").addoption(
        _KEEP,
        action="store_true",
        help="keep the files of penstock_qm of failed tests, in the directory of tmp_path",
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    """Keeps the queue manager of a test that fails, and says where."""
    report = (yield).get_result()
    if report.failed and item.nodeid in _made:
        made, qm = _made[item.nodeid]
        made.discard = False
        report.sections.append(("penstock", f"files of the queue manager: {qm.path}"))


@pytest.fixture
def penstock_qm(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TemporaryQueueManager]:
    """A connection to a new queue manager, TEST, that the test has for itself and that is gone
    afterwards. PENSTOCK_HOME is its home: the program under test connects by the name alone.
    """
    from penstock import temporary

    home = None
    if request.config.getoption(_KEEP):
        folder = re.sub(r"\W", "_", request.node.name)[:30]
        home = request.getfixturevalue("tmp_path_factory").mktemp(f"penstock-{folder}")
    made = temporary("TEST", home=home)
    with made as qm:
        if home is not None:
            _made[request.node.nodeid] = made, qm
        monkeypatch.setenv("PENSTOCK_HOME", str(qm.path.parent))
        yield qm
        _made.pop(request.node.nodeid, None)


@pytest.fixture
def penstock_queue(penstock_qm: QueueManager) -> Iterator[Queue]:
    """An empty queue, QUEUE, of ``penstock_qm``: durable and as deep as possible."""
    with penstock_qm.queue("QUEUE") as queue:
        yield queue


@pytest.fixture
def penstock_clock(penstock_qm: TemporaryQueueManager) -> Clock:
    """The clock of ``penstock_qm``: ``penstock_clock.advance(3600)`` lets an hour pass for the
    expiry and the due times of its messages, in all processes.
    """
    return penstock_qm.clock


@pytest.fixture
def penstock_async_qm(penstock_qm: QueueManager) -> asyncio.QueueManager:
    """A connection of ``penstock.asyncio`` to ``penstock_qm``, which the test makes in its event
    loop: ``async with penstock_async_qm as qm:``. It needs no other plugin.
    """
    import penstock.asyncio

    return penstock.asyncio.connect(penstock_qm.name, penstock_qm.path.parent)
