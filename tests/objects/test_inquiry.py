"""Values that MQINQ reads and MQSET writes, by selector; and models that become queues."""

from __future__ import annotations

import pytest

from penstock import MQError, objects
from penstock.objects import TYPES, full_length, inquire, is_selector, settable

LOCAL = TYPES["QLOCAL"]


def test_inquiry_gives_stored_and_default_values_name_and_type() -> None:
    stored = {15: 7, 2013: "text"}
    assert inquire(LOCAL, stored, 15, "Q") == 7
    assert inquire(LOCAL, stored, 13, "Q") == 4194304
    assert (inquire(LOCAL, stored, 2013, "Q"), full_length(LOCAL, stored, 2013)) == ("text", 64)
    assert (inquire(LOCAL, stored, 2016, "Q"), full_length(LOCAL, stored, 2016)) == ("Q", 48)
    for kind, number in (("QLOCAL", 1), ("QMODEL", 2), ("QALIAS", 3), ("QREMOTE", 6)):
        assert inquire(TYPES[kind], {}, 20, "Q") == number
    assert inquire(TYPES["QMGR"], {}, 2015, "QM1") == "QM1"
    assert inquire(TYPES["QMGR"], {}, 14, "QM1") == 9
    assert inquire(TYPES["PROCESS"], {}, 2012, "P") == "P"


def test_counts_come_from_the_status_which_is_read_only_when_needed() -> None:
    asked = []

    def status() -> dict[str, int]:
        asked.append(1)
        return {"depth": 3, "open_input": 4, "open_output": 5}

    assert inquire(LOCAL, {}, 15, "Q", status) == 5000 and not asked
    assert [inquire(LOCAL, {}, selector, "Q", status) for selector in (3, 17, 18)] == [3, 4, 5]
    assert len(asked) == 3


def test_a_namelist_gives_count_and_names_padded() -> None:
    kind = TYPES["NAMELIST"]
    stored = {2020: "A,BB"}
    assert inquire(kind, stored, 19, "N") == 2
    assert inquire(kind, stored, 2020, "N") == "A".ljust(48) + "BB".ljust(48)
    assert full_length(kind, stored, 2020) == 96


@pytest.mark.parametrize(
    ("kind", "selector"), [("QALIAS", 15), ("QREMOTE", 9), ("QLOCAL", 2002), ("QMGR", 10)]
)
def test_a_selector_of_another_type_is_known_but_gives_none(kind: str, selector: int) -> None:
    assert is_selector(selector)
    assert inquire(TYPES[kind], {}, selector, "Q") is None
    assert full_length(TYPES[kind], {}, 2018) in (48, 0)


@pytest.mark.parametrize("selector", [0, -1, 1502, 2000, 3506, 4001, 999999])
def test_a_selector_that_no_type_has_is_unknown(selector: int) -> None:
    assert not is_selector(selector)


def test_mqset_may_store_what_the_reference_lists_for_each_type() -> None:
    every = {row.selector for kind in TYPES.values() for row in kind.attributes.values()}
    allowed = {
        "QLOCAL": {9, 10, 24, 2023, 29, 26, 28, 34},
        "QALIAS": {9, 10},
        "QREMOTE": {10},
        "QMODEL": set(),
        "QMGR": set(),
    }
    for kind, selectors in allowed.items():
        assert {s for s in every if _taken(kind, s)} == selectors


def _taken(kind: str, selector: int) -> bool:
    row = TYPES[kind].by_selector.get(selector)
    try:
        settable(TYPES[kind], selector, "" if row and row.length else 1)
    except MQError as error:
        assert error.comp_code == 2 and error.reason in (2067, 2068)
        return False
    return True


@pytest.mark.parametrize(
    ("selector", "value", "reason"),
    [(10, 2, 2020), (9, -1, 2020), (24, 2, 2075), (29, 0, 2076), (26, 10, 2077), (28, 4, 2078)],
)
def test_mqset_refuses_a_bad_value_with_its_reason(selector: int, value: int, reason: int) -> None:
    with pytest.raises(MQError) as caught:
        settable(LOCAL, selector, value)
    assert caught.value.reason == reason
    assert settable(LOCAL, 28, 3) == 3 and settable(LOCAL, 2023, "x") == "x"


def test_a_dynamic_queue_has_its_models_attributes_and_its_own_timestamps() -> None:
    model = {7: 2, 15: 9, 2013: "of the model", 2027: "1999-01-01", 2028: "00.00.00"}
    made = objects.dynamic_queue(model)
    assert (made[7], made[15], made[2013]) == (2, 9, "of the model")
    assert (made[23], made[4]) == (0, 4)  # NOSHARE and EXCL, which a local queue has not of itself
    assert made[2027] == made[2004] != "1999-01-01" and len(str(made[2005])) == 8


def test_a_shared_dynamic_queue_is_shared() -> None:
    assert objects.dynamic_queue({7: 4, 2039: "STRUC"})[63] == 2
