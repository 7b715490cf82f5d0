"""Every reason code of the reference's table is provoked, or listed as impossible in
tests/README.md.

The provocations are data: a reason code, its completion code, and a function that causes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import provoke_messages
import provoke_names
import pytest
from provoking import PROVOCATIONS, Bench, Provocation, ended

import penstock
from penstock import mqi
from qmgr_fixture import FAILED, OK, WARNING, QmgrFixture

assert provoke_messages and provoke_names  # they fill the table
README = Path(__file__).resolve().parent.parent / "README.md"
pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")

# Every code of "Completion and reason codes" of the MQI reference, ranges as there.
CODES = """
2001-2014 2016-2022 2024-2027 2029-2031 2033-2053 2055-2059 2061-2063 2065-2072 2075-2080 2082
2085-2087 2090-2098 2100-2102 2104 2109-2124 2128 2134-2137 2139 2141 2142 2148 2149 2152-2156
2158 2159 2161 2162 2173 2184-2186 2188-2190 2192 2194-2203 2206 2207 2209 2218 2219 2224-2227
2241-2253 2255-2260 2268-2270 2331 2343 2345-2349 2362 2365 2366 2373 2374 2377 2394 2424-2426
2428 2429 2432 2434-2438 2440-2446 2448 2457-2466 2469 2471-2473 2478 2479 2481-2490 2494
2499-2503 2513 2516-2519 2521 2525 2526 2528 2550 2551 2554
"""


def codes(text: str) -> set[int]:
    """Numbers and ranges of numbers."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d{4})(?:-(\d{4}))?", text):
        found |= set(range(int(first), int(last or first) + 1))
    return found


SECTION = codes(CODES)
PROVOKED = {provocation.reason for provocation in PROVOCATIONS}


def excused() -> dict[int, str]:
    """Reason codes that cannot be provoked now, with the reason, from tests/README.md."""
    text = README.read_text("utf-8").split("## Reason codes that no test provokes")[1]
    rows = re.findall(r"^\| ([\d, -]+) \| (.+) \|$", text.split("\n## ")[0], re.MULTILINE)
    return {code: why for numbers, why in rows for code in codes(numbers)}


@pytest.fixture
def bench(qmgr: QmgrFixture, ask_zos: Callable[[], QmgrFixture]) -> Iterator[Bench]:
    made = Bench(qmgr, ask_zos, qmgr.home)
    yield made
    for own in made.own_desks:
        own.stop()
        penstock.delete(own.name, own.home)


@pytest.mark.parametrize("provocation", PROVOCATIONS, ids=lambda p: p.name)
def test_a_call_ends_in_the_reason_code(bench: Bench, provocation: Provocation) -> None:
    assert ended(provocation.call(bench)) == (provocation.cc, provocation.reason)


def test_every_code_is_provoked_or_excused() -> None:
    excuses = excused()
    missing = SECTION - PROVOKED - set(excuses)
    assert not missing, sorted(missing)
    assert not PROVOKED & set(excuses), "provoked and excused"
    assert PROVOKED | set(excuses) == SECTION
    print(f"{len(PROVOKED)} reason codes provoked, {len(excuses)} excused of {len(SECTION)}")


def test_every_code_has_a_name_and_a_meaning() -> None:
    for code in SECTION:
        name, meaning = mqi.REASONS[code][:2]
        assert name and meaning, code


def test_every_reason_code_without_a_test_has_an_explanation() -> None:
    assert all(len(why) > 10 for why in excused().values())


def test_completion_codes_have_mqs_values() -> None:
    assert (mqi.MQCC_OK, mqi.MQCC_WARNING, mqi.MQCC_FAILED) == (OK, WARNING, FAILED) == (0, 1, 2)
