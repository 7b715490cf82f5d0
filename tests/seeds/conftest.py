"""What the tests of the three editions of MQMD Persistence share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from persistence_rules import PersistenceRules

from desk import Desk


@pytest.fixture
def rules(
    request: pytest.FixtureRequest, desk: Desk, ask_zos: Callable[[], Desk]
) -> PersistenceRules:
    """The rules, said in the language of the module's edition (TONGUE)."""
    return PersistenceRules(desk, ask_zos, request.module.TONGUE)
