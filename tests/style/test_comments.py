"""Comments: every file opens with its specification, tables in comments keep their shape."""

from __future__ import annotations

import ast
import re

from c_source import C_FILES, SOURCES, comments, relative

_LINE = re.compile(r"^ \*( *)(\S.*)?$")
_FULL = 80  # columns: a line that a reflow has filled
_SHORT = 60  # and the rest that it left in a line of its own


def reflowed(comment: str) -> list[int]:
    """Lines (counted from 0) of a comment that a reflow has torn from an item of a table or list.

    The signs: behind a full line stands a short one that begins no deeper, ends no sentence, and
    behind which the text goes on deeper, where the item's text stood.
    """
    lines = comment.splitlines()
    found = []
    for number in range(1, len(lines) - 1):
        before, here, behind = (_LINE.match(lines[number + i]) for i in (-1, 0, 1))
        if before is None or here is None or behind is None or not (here[2] and behind[2]):
            continue
        full_before = len(lines[number - 1]) >= _FULL and not lines[number - 1].endswith((":", "."))
        short = len(lines[number]) <= _SHORT and not here[2].endswith((":", "."))
        deeper = len(behind[1]) >= len(here[1]) + 2 and len(here[1]) <= len(before[1])
        if full_before and short and deeper and "  " not in here[2]:
            found.append(number)
    return found


def test_a_torn_row_is_found_and_a_whole_one_is_not() -> None:
    row = (
        " *   area    a stretch of the region for items of one size, reserved in the address space"
    )
    whole = f"/* x\n{row}\n *           for the largest count\n *   slot    index\n */"
    torn = f"/* x\n{row}\n *   for\n *           the largest count\n *   slot    index\n */"
    assert reflowed(whole) == [] and reflowed(torn) == [2]


def test_no_table_in_a_comment_was_reflowed() -> None:
    bad = [
        f"{relative(path)}:{line + number}"
        for path in C_FILES
        for line, comment in comments(path.read_text())
        for number in reflowed(comment)
    ]
    assert not bad, bad


def test_every_source_file_opens_with_its_specification() -> None:
    bad = []
    for path in SOURCES:
        text = path.read_text()
        if path.suffix == ".py":
            opened = not text.strip() or ast.get_docstring(ast.parse(text)) is not None
        else:
            opened = text.startswith(("/*", "#", '"""'))
        if not opened:
            bad.append(relative(path))
    assert not bad, bad


def test_nothing_is_left_to_do_in_the_sources() -> None:
    word = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
    bad = [relative(p) for p in SOURCES if word.search(p.read_text())]
    assert not bad, bad
