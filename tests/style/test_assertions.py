"""Assertions: how dense they are, that releases have none, that nothing else aborts the host."""

from __future__ import annotations

import re

import pytest
from c_source import CORE, CSRC, ROOT, assertions, calls, functions, relative
from counts import folder_counts, modules_without_a_test
from test_rooms import ROOMS

ALL_OVER = 1.0  # assertions a function over the core
STORAGE = 2.0  # and in each of the folders on which durability rests
STORAGE_ROOMS = ("journal", "recovery", "region", "unit")
COMMENTED_ROOMS = ("journal", "recovery", "region")
COMMENT_SHARE = (0.20, 0.35)


def test_the_core_has_an_assertion_a_function() -> None:
    texts = [path.read_text() for path in CORE]
    total = sum(map(assertions, texts)), sum(len(functions(text)) for text in texts)
    assert total[0] >= ALL_OVER * total[1], total


@pytest.mark.parametrize("room", STORAGE_ROOMS)
def test_storage_folders_have_two_assertions_a_function(room: str) -> None:
    counts = folder_counts(CSRC / room)
    assert counts.assertions >= STORAGE * counts.functions, counts


@pytest.mark.parametrize("room", COMMENTED_ROOMS)
def test_a_fifth_to_a_third_of_the_storage_code_is_comments(room: str) -> None:
    least, most = COMMENT_SHARE
    share = folder_counts(CSRC / room).comment_share
    assert least <= share <= most, f"{room}: {share:.2f}"


def test_an_assertion_has_no_effect_of_its_own() -> None:
    effect = re.compile(r"(\+\+|--|(?<![=!<>])=(?!=)|mqx_(undo|guard)_store|_take\(|_add\()")
    bad = [
        f"{relative(path)}: {condition}"
        for path in CORE
        if path.name != "assert.h"
        for condition in re.findall(r"\bMQX_ASSERT\((.*?)\);", path.read_text(), re.DOTALL)
        if effect.search(condition)
    ]
    assert not bad, bad


def test_nothing_but_a_failed_assertion_ends_the_host_process() -> None:
    ends = {"abort", "exit", "_exit", "_Exit", "assert", "__builtin_trap", "raise"}
    bad = [
        f"{relative(path)}:{line}: {name}()"
        for path in CORE
        if path.suffix == ".c" and path.name != "assert.c"
        for line, name in calls(path.read_text())
        if name in ends
    ]
    assert not bad, bad


def test_every_module_of_the_core_has_a_unit_test_file_of_its_name() -> None:
    assert modules_without_a_test() == []


def test_the_rooms_of_the_rules_exist() -> None:
    assert set(STORAGE_ROOMS) | set(COMMENTED_ROOMS) <= set(ROOMS)
    assert (ROOT / "tests" / "c").is_dir()
