"""A queue manager is made whole or not at all, with settings that can work together."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock
import surroundings as s
from penstock.admin import settings


def test_limits_that_cannot_work_together_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with pytest.raises(penstock.InvalidValue, match="at most 4096 segments") as refused:
        penstock.create("QM", home, segment_size="32k", journal_limit="1G")
    assert "raise that to 262144" in str(refused.value)
    assert not home.exists()
    penstock.create("QM", home, segment_size="256k", journal_limit="1G")
    penstock.create("QM2", home, segment_size="32k")
    assert settings.read_settings(home / "QM2").journal_limit == 4096 * 32768


def test_a_create_that_fails_half_way_leaves_no_file() -> None:
    with s.tmpfs(1 << 20) as folder:
        with pytest.raises(penstock.MQError) as refused:
            penstock.create("QM", folder)
        assert refused.value.reason == 2192
        assert list(folder.iterdir()) == []
