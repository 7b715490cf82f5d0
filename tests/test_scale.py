"""The plan of docs/scale.md is what tools/scale.py makes of its constants."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def scale() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scale", ROOT / "tools" / "scale.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_page_has_the_tables_of_the_tool(scale: ModuleType) -> None:
    page = scale.PAGE.read_text("utf-8")
    assert scale.written(page) == page


def test_a_failure_is_caught_up_only_by_processors_to_spare(scale: ModuleType) -> None:
    cost, away = scale.Costs(), (300.0, 360.0)
    busy = 1e6 * cost.spark / 1e6
    spare = scale.simulate(1e6, 2, 2 * busy, cost, away)
    scarce = scale.simulate(1e6, 2, 1.1 * busy, cost, away)
    assert spare.caught_up < scarce.caught_up or not scarce.caught_up
    assert spare.longest >= 60 and spare.backlog >= 60 * 1e6 / 2
