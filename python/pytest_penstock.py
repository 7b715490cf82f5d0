"""pytest plugin of penstock: a fresh queue manager, and a queue, for each test that asks for one.

pytest loads this module through its entry point, in every project of an environment that has
penstock. So it stands beside the package and imports it in the first fixture that is used.
"""

from __future__ import annotations

import re

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from penstock import Queue, QueueManager
    from penstock.client.temporary_manager import Temporary

_KEEP = "--penstock-keep"
# Of a test, when files are to be kept.
_MADE: pytest.StashKey[tuple[Temporary, QueueManager]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option."""
    parser.getgroup("penstock").addoption(
        _KEEP,
        action="store_true",
        help="keep the files of penstock_qm of failed tests, in the directory of tmp_path",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keeps the queue manager of a test that fails, and says where."""
    report = yield
    made = item.stash.get(_MADE, None)
    if made is not None and report.failed:
        made[0].discard = False
        report.sections.append(("penstock", f"files of the queue manager: {made[1].path}"))
    return report


@pytest.fixture
def penstock_qm(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[QueueManager]:
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
            request.node.stash[_MADE] = made, qm
        monkeypatch.setenv("PENSTOCK_HOME", str(qm.path.parent))
        yield qm


@pytest.fixture
def penstock_queue(penstock_qm: QueueManager) -> Iterator[Queue]:
    """An empty queue, QUEUE, of ``penstock_qm``: durable and as deep as possible."""
    with penstock_qm.queue("QUEUE") as queue:
        yield queue
