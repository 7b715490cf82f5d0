"""Shared by the tests of the three editions of MQMD Persistence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from persistence_rules import PersistenceRules

from qmgr_fixture import QmgrFixture


@pytest.fixture
def rules(
    request: pytest.FixtureRequest, qmgr: QmgrFixture, ask_zos: Callable[[], QmgrFixture]
) -> PersistenceRules:
    """The rules, with the names of the module's edition (NAMING)."""
    return PersistenceRules(qmgr, ask_zos, request.module.NAMING)
