"""Files of tests have names of their own: pytest refuses two of one name when it collects all."""

from __future__ import annotations

from collections import Counter

from c_source import ROOT


def test_no_two_files_of_tests_have_one_name() -> None:
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(names) > 100
    assert [name for name, count in names.items() if count > 1] == []
