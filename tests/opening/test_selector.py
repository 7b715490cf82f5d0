"""The syntax of selection strings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.opening.selector import SelectorFault, check_selector

RIGHT = [
    "Root.MQMD.Priority < 5",
    "colour = 'red'",
    "colour='it''s' AND NOT (size > 3 or size<=-1.5e3)",
    "NOT NOT urgent",
    "size BETWEEN 1 AND 2*(3+4)",
    "size not between -1 and +1",
    "colour IN ('red', 'blue') OR colour NOT IN ('x')",
    "name LIKE 'a\\_%' ESCAPE '\\'",
    "name not like '%'",
    "name IS NULL and other is not null",
    "JMSPriority >= 0x1F",
    "$a <> _b$2",
    "flag = TRUE",
    ".5 < size",
    "(" * 64 + "a" + ")" * 64,
]
WRONG = [
    " ",
    "garbage garbage",
    "Root.MQMD.Priority <",
    "< 5",
    "a = 'open",
    "a == 1",
    "a = 1 AND",
    "(a = 1",
    "a = 1)",
    "a IN ()",
    "a IN (1)",
    "a IN ('x',)",
    "a BETWEEN 1",
    "a LIKE 5",
    "a LIKE 'x' ESCAPE",
    "a IS 5",
    "a NOT 5",
    "a = 5x",
    "a..b = 1",
    "a.5 = 1",
    "a = #",
    "NOT",
    "and",
    "a = NULL",
    "a = \udcff",
    "(" * 65 + "a" + ")" * 65,
]


@pytest.mark.parametrize("text", RIGHT)
def test_selectors_are_accepted(text: str) -> None:
    check_selector(text)
    check_selector(f"  {text}\n")


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(SelectorFault, match="is missing before"):
        check_selector(text)


@given(st.text("aA '()=<>,.0+*-\\NOTANDLIKEINBETWEEN", max_size=40))
def test_any_text_is_accepted_or_refused(text: str) -> None:
    try:
        check_selector(text)
    except SelectorFault:
        assert not any(text == right for right in RIGHT)
