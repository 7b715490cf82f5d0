"""Each row and each failure of name resolution, on a dictionary of definitions."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import MQError
from penstock.errors import UnknownObjectName
from penstock.opening.resolution import (
    CLUSTER_TRANSMIT_QUEUE,
    Destination,
    choose_instance,
    differing,
    reply_alias,
    resolve,
)

OUTPUT, INPUT, BROWSE, INQUIRE, SET = 16, 1, 8, 32, 64
LOCAL, MODEL, ALIAS, REMOTE, CLUSTER, Q_MGR = 1, 2, 3, 6, 7, 5


class Book:
    """Definitions by (name space, name, instance): the source of name resolution."""

    name = "QM1"

    def __init__(self) -> None:
        self.rows: dict[tuple[int, str, int], tuple[int, int, dict[int, Any]]] = {}
        self.slots: dict[int, dict[int, Any]] = {}

    def add(self, kind: int, name: str, space: int = 1, instance: int = 0, **values: Any) -> int:
        """Enters a definition; values by keyword. Returns its slot."""
        selectors = {
            "target": 2002, "targtype": 193, "rname": 2018, "rqmname": 2017, "xmitq": 2024,
            "usage": 12, "defxmitq": 2025, "clusqmgr": 2031, "put": 10, "defpsist": 5, "defprty": 6,
            "clwlrank": 95, "clwlprty": 96,
        }  # fmt: skip
        stored: dict[int, Any] = {2018: "", 2017: "", 2024: "", 12: 0}
        stored.update({selectors[key]: value for key, value in values.items()})
        slot = len(self.rows) + 1
        self.rows[space, name, instance] = (slot, kind, stored)
        self.slots[slot] = stored
        return slot

    def remove(self, slot: int) -> None:
        """Forgets a definition."""
        del self.slots[slot]

    def look_up(
        self, name_space: int, name: str, instance: int = 0
    ) -> tuple[int, int, int, int] | None:
        """The definition of that name."""
        row = self.rows.get((name_space, name, instance))
        return None if row is None else (row[0], 7, row[1], 100 + row[0])

    def values(
        self, slot: int, generation: int, selectors: tuple[int, ...]
    ) -> tuple[int | str | None, ...]:
        """Stored values."""
        assert generation == 7
        if slot not in self.slots:
            raise UnknownObjectName(2085, "deleted")
        return tuple(self.slots[slot].get(selector) for selector in selectors)


@pytest.fixture
def book() -> Book:
    """LOCAL.Q, XQ (a transmission queue) and the queue manager without DEFXMITQ."""
    made = Book()
    made.add(LOCAL, "LOCAL.Q")
    made.add(LOCAL, "XQ", usage=1)
    made.add(Q_MGR, "QM1", space=105)
    return made


def slots(destination: Destination) -> list[int]:
    """Slots of the definitions the name went through."""
    return [step[0] for step in destination.steps]


def slot_of(book: Book, name: str, space: int = 1, instance: int = 0) -> int:
    return book.rows[space, name, instance][0]


def reason(book: Book, name: str, manager: str = "", options: int = OUTPUT) -> int:
    """The reason code that resolving ends with."""
    with pytest.raises(MQError) as caught:
        resolve(book, name, manager, options)
    return caught.value.reason


@pytest.mark.parametrize("manager", ["", "QM1"])
def test_a_local_queue_is_its_own_first_definition(book: Book, manager: str) -> None:
    destination = resolve(book, "LOCAL.Q", manager)
    here = slot_of(book, "LOCAL.Q")
    assert (destination.opened, destination.queue, destination.first) == (
        LOCAL,
        (here, 7),
        (here, 7),
    )
    assert destination.steps == [(here, 7, 100 + here)]
    assert (destination.resolved_name, destination.resolved_manager) == ("LOCAL.Q", "QM1")
    assert destination.remote is None and destination.inquired == (here, 7)


@pytest.mark.parametrize("manager", ["", "QM1"])
def test_an_alias_is_the_first_definition_and_its_base_the_target(book: Book, manager: str) -> None:
    alias = book.add(ALIAS, "A", target="LOCAL.Q")
    destination = resolve(book, "A", manager, INPUT | OUTPUT | INQUIRE)
    base = slot_of(book, "LOCAL.Q")
    assert (destination.opened, destination.first, destination.queue) == (
        ALIAS,
        (alias, 7),
        (base, 7),
    )
    assert slots(destination) == [alias, base]
    assert destination.inquired == (alias, 7)
    assert (destination.resolved_name, destination.resolved_manager) == ("LOCAL.Q", "QM1")


def test_a_model_queue_is_found_as_one(book: Book) -> None:
    book.add(MODEL, "M")
    assert resolve(book, "M").opened == MODEL


def test_a_remote_definition_goes_by_its_xmitq(book: Book) -> None:
    remote = book.add(REMOTE, "R", rname="THERE", rqmname="QM2", xmitq="XQ")
    destination = resolve(book, "R")
    transmission = slot_of(book, "XQ")
    assert (destination.opened, destination.first, destination.queue) == (
        REMOTE,
        (remote, 7),
        (transmission, 7),
    )
    assert slots(destination) == [remote, transmission]
    assert (
        destination.remote
        == ("THERE", "QM2")
        == (destination.resolved_name, destination.resolved_manager)
    )


def test_without_xmitq_it_goes_by_the_queue_named_like_the_queue_manager(book: Book) -> None:
    book.add(REMOTE, "R", rname="THERE", rqmname="QM2")
    named = book.add(LOCAL, "QM2", usage=1)
    assert resolve(book, "R").queue == (named, 7)


def test_else_by_defxmitq_and_the_queue_manager_is_a_step(book: Book) -> None:
    remote = book.add(REMOTE, "R", rname="THERE", rqmname="QM2")
    book.slots[slot_of(book, "QM1", 105)][2025] = "XQ"
    destination = resolve(book, "R")
    assert slots(destination) == [remote, slot_of(book, "QM1", 105), slot_of(book, "XQ")]
    assert destination.first == (remote, 7)


def test_the_name_of_a_transmission_queue_as_queue_manager(book: Book) -> None:
    destination = resolve(book, "NOT.LOOKED.UP", "XQ")
    transmission = slot_of(book, "XQ")
    assert destination.queue == destination.first == (transmission, 7)
    assert destination.remote == ("NOT.LOOKED.UP", "XQ") and destination.inquired is None


def test_a_queue_manager_alias_is_the_first_definition(book: Book) -> None:
    alias = book.add(REMOTE, "QMA", rqmname="QM9", xmitq="XQ")
    destination = resolve(book, "THERE", "QMA")
    assert destination.first == (alias, 7) and destination.queue == (slot_of(book, "XQ"), 7)
    assert destination.remote == ("THERE", "QM9")


def test_a_queue_manager_alias_for_the_local_one_leads_to_the_local_queue(book: Book) -> None:
    alias = book.add(REMOTE, "QMA", rqmname="QM1", xmitq="NOT.THERE")
    destination = resolve(book, "LOCAL.Q", "QMA")
    assert destination.first == (alias, 7) and destination.queue == (slot_of(book, "LOCAL.Q"), 7)
    assert destination.output_only and destination.remote is None


@pytest.mark.parametrize("option", [INPUT, 2, 4, BROWSE, INQUIRE, SET])
def test_through_a_local_queue_manager_alias_only_output(book: Book, option: int) -> None:
    book.add(REMOTE, "QMA", rqmname="QM1")
    assert reason(book, "LOCAL.Q", "QMA", OUTPUT | option) == 2045


def test_anything_else_goes_by_defxmitq_which_is_the_first_definition(book: Book) -> None:
    book.slots[slot_of(book, "QM1", 105)][2025] = "XQ"
    destination = resolve(book, "THERE", "QM7")
    assert destination.first == destination.queue == (slot_of(book, "XQ"), 7)
    assert slots(destination) == [slot_of(book, "QM1", 105), slot_of(book, "XQ")]
    assert destination.remote == ("THERE", "QM7")


def test_an_alias_of_a_remote_definition_keeps_the_alias_as_first(book: Book) -> None:
    remote = book.add(REMOTE, "R", rname="THERE", rqmname="QM2", xmitq="XQ")
    alias = book.add(ALIAS, "A", target="R")
    destination = resolve(book, "A")
    assert destination.first == (alias, 7) and slots(destination) == [
        alias,
        remote,
        slot_of(book, "XQ"),
    ]


def test_a_remote_definition_opened_for_inquire_needs_no_route(book: Book) -> None:
    remote = book.add(REMOTE, "R")
    destination = resolve(book, "R", "", INQUIRE)
    assert destination.queue == destination.inquired == (remote, 7)


FAILURES: list[tuple[int, list[tuple[Any, ...]], str, str]] = [
    (2085, [], "NONE", ""),
    (2085, [], "NONE", "QM1"),
    (2085, [], "", ""),
    (2082, [(ALIAS, "A", {"target": "NONE"})], "A", ""),
    (2082, [(ALIAS, "A", {"target": ""})], "A", ""),
    (2001, [(ALIAS, "A", {"target": "B"}), (ALIAS, "B", {"target": "LOCAL.Q"})], "A", ""),
    (2001, [(ALIAS, "A", {"target": "M"}), (MODEL, "M", {})], "A", ""),
    (2001, [(ALIAS, "A", {"target": "LOCAL.Q", "targtype": 8})], "A", ""),
    (2087, [], "THERE", "QM7"),
    (2087, [(REMOTE, "R", {"rname": "THERE"})], "R", ""),
    (2087, [(REMOTE, "R", {"rname": "THERE", "rqmname": "QM1"})], "R", ""),
    (2087, [(REMOTE, "R", {"rname": "THERE", "rqmname": "QM1", "xmitq": "XQ"})], "R", ""),
    (2087, [(REMOTE, "R", {"rname": "THERE", "rqmname": "QM2"})], "R", ""),
    (2087, [(REMOTE, "QMA", {"rname": "X", "rqmname": "QM2"})], "THERE", "QMA"),
    (2087, [(REMOTE, "A1", {"rqmname": "A2"}), (REMOTE, "A2", {"rqmname": "Q"})], "T", "A1"),
    (2196, [(REMOTE, "R", {"rname": "T", "rqmname": "QM2", "xmitq": "NO"})], "R", ""),
    (2091, [(REMOTE, "R", {"rname": "T", "rqmname": "QM2", "xmitq": "A"}),
            (ALIAS, "A", {"target": "XQ"})], "R", ""),
    (2092, [(REMOTE, "R", {"rname": "T", "rqmname": "QM2", "xmitq": "LOCAL.Q"})], "R", ""),
    (2091, [(REMOTE, "R", {"rname": "T", "rqmname": "QM2"}), (MODEL, "QM2", {})], "R", ""),
    (2092, [(REMOTE, "R", {"rname": "T", "rqmname": "QM2"}), (LOCAL, "QM2", {})], "R", ""),
    (2092, [], "THERE", "LOCAL.Q"),
    (2184, [(REMOTE, "R", {"rqmname": "QM2", "xmitq": "XQ"})], "R", ""),
    (2184, [(REMOTE, "R", {"rqmname": "QM2"}), (ALIAS, "A", {"target": "R"})], "A", ""),
    (2152, [], "A B", ""),
    (2152, [], " LOCAL.Q", ""),
    (2152, [], "N" * 49, ""),
    (2153, [], "LOCAL.Q", "QM-1"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "rows", "name", "manager"), FAILURES)
def test_a_name_that_leads_nowhere_has_its_reason_code(
    book: Book, code: int, rows: list[tuple[int, str, dict[str, Any]]], name: str, manager: str
) -> None:
    for kind, defined, values in rows:
        book.add(kind, defined, **values)
    assert reason(book, name, manager) == code


@pytest.mark.parametrize(
    ("code", "rows"),
    [
        (2197, []),
        (2198, [(ALIAS, "DX", {"target": "XQ"})]),
        (2199, [(LOCAL, "DX", {})]),
    ],
)
def test_an_unfit_defxmitq_has_its_reason_code(
    book: Book, code: int, rows: list[tuple[int, str, dict[str, Any]]]
) -> None:
    book.slots[slot_of(book, "QM1", 105)][2025] = "DX"
    for kind, defined, values in rows:
        book.add(kind, defined, **values)
    assert reason(book, "THERE", "QM7") == code


@pytest.mark.parametrize("option", [INPUT, BROWSE, INQUIRE, SET])
def test_an_unknown_queue_manager_is_2086_for_options_that_need_a_local_object(
    book: Book, option: int
) -> None:
    book.slots[slot_of(book, "QM1", 105)][2025] = "XQ"
    assert reason(book, "Q", "QM7", option) == 2086


# ---- clusters ----


def add_cluster(book: Book, *managers: str, **values: Any) -> list[int]:
    """Instances of CQ at those queue managers, and the cluster's transmission queue."""
    book.add(LOCAL, CLUSTER_TRANSMIT_QUEUE, usage=1)
    return [
        book.add(CLUSTER, "CQ", space=107, instance=n, clusqmgr=name, **values)
        for n, name in enumerate(managers, 1)
    ]


def test_a_cluster_queue_goes_to_the_clusters_transmission_queue(book: Book) -> None:
    instances = add_cluster(book, "QM2", "QM3")
    destination = resolve(book, "CQ")
    assert destination.opened == CLUSTER
    assert destination.queue == (slot_of(book, CLUSTER_TRANSMIT_QUEUE), 7)
    assert [each.slot for each in destination.instances] == instances
    assert [each.queue_manager for each in destination.instances] == ["QM2", "QM3"]


def test_an_alias_of_a_cluster_queue_is_itself_the_first_definition(book: Book) -> None:
    add_cluster(book, "QM2")
    alias = book.add(ALIAS, "A", target="CQ")
    destination = resolve(book, "A")
    assert destination.opened == ALIAS and destination.first == (alias, 7) and destination.instances


def test_a_local_queue_wins_over_cluster_instances_of_its_name(book: Book) -> None:
    add_cluster(book, "QM2")
    local = book.add(LOCAL, "CQ")
    assert resolve(book, "CQ").queue == (local, 7)


def test_the_local_queue_managers_name_means_no_cluster_queue(book: Book) -> None:
    add_cluster(book, "QM2")
    assert reason(book, "CQ", "QM1") == 2085


def test_a_cluster_queue_managers_name_selects_its_instance(book: Book) -> None:
    instances = add_cluster(book, "QM2", "QM3")
    destination = resolve(book, "CQ", "QM3")
    assert [each.slot for each in destination.instances] == instances[1:]


def test_without_the_clusters_transmission_queue_it_is_2189(book: Book) -> None:
    book.add(CLUSTER, "CQ", space=107, instance=1, clusqmgr="QM2")
    assert reason(book, "CQ") == 2189


def test_instances_take_turns_and_inhibited_ones_are_left_out(book: Book) -> None:
    instances = add_cluster(book, "QM2", "QM3", "QM4")
    book.slots[instances[1]][10] = 1
    destination = resolve(book, "CQ")
    chosen = [choose_instance(book, destination).slot for _ in range(4)]
    assert set(chosen) == {instances[0], instances[2]}
    assert chosen[:2] == chosen[2:]


def chosen_managers(book: Book) -> set[str]:
    """The queue managers that twelve choices go to."""
    destination = resolve(book, "CQ")
    return {choose_instance(book, destination).queue_manager for _ in range(12)}


def test_only_instances_of_the_highest_rank_then_priority_are_chosen(book: Book) -> None:
    one, two, three, four = add_cluster(book, "QM2", "QM3", "QM4", "QM5")
    book.slots[one][96] = 9
    assert chosen_managers(book) == {"QM2"}
    for slot in (two, three, four):
        book.slots[slot][95] = 3
    assert chosen_managers(book) == {"QM3", "QM4", "QM5"}
    book.slots[three][96] = book.slots[four][96] = 2
    assert chosen_managers(book) == {"QM4", "QM5"}
    book.slots[three][10] = 1
    assert chosen_managers(book) == {"QM5"}
    book.slots[four][10] = 1
    assert chosen_managers(book) == {"QM3"}


def test_a_lower_rank_is_not_chosen_when_the_highest_is_inhibited(book: Book) -> None:
    high, _ = add_cluster(book, "QM2", "QM3")
    book.slots[high][95] = book.slots[high][10] = 1
    with pytest.raises(MQError) as caught:
        choose_instance(book, resolve(book, "CQ"))
    assert caught.value.reason == 2268


def test_a_remote_definition_leads_to_a_cluster_queue_manager(book: Book) -> None:
    add_cluster(book, "QM2", "QM3")
    remote = book.add(REMOTE, "R", rname="CQ", rqmname="QM3")
    destination = resolve(book, "R")
    assert [each.queue_manager for each in destination.instances] == ["QM3"]
    assert (destination.opened, destination.first) == (REMOTE, (remote, 7))
    assert destination.inquired == (remote, 7) and destination.remote == ("CQ", "")
    assert destination.queue_name == CLUSTER_TRANSMIT_QUEUE
    book.add(REMOTE, "R.XQ", rname="CQ", rqmname="QM3", xmitq="XQ")
    assert resolve(book, "R.XQ").queue_name == "XQ"
    book.add(REMOTE, "R.NONE", rname="CQ", rqmname="QM4")
    assert reason(book, "R.NONE") == 2087
    book.add(LOCAL, "QM3", usage=1)
    assert resolve(book, "R").queue_name == "QM3"


def test_2268_when_all_are_inhibited_and_2270_when_none_is_left(book: Book) -> None:
    instances = add_cluster(book, "QM2", "QM3", put=1)
    destination = resolve(book, "CQ")
    with pytest.raises(MQError) as caught:
        choose_instance(book, destination)
    assert caught.value.reason == 2268
    for slot in instances:
        book.remove(slot)
    with pytest.raises(MQError) as caught:
        choose_instance(book, destination)
    assert caught.value.reason == 2270


def test_instances_that_differ_in_a_default_are_noticed(book: Book) -> None:
    instances = add_cluster(book, "QM2", "QM3", defpsist=0, defprty=4)
    destination = resolve(book, "CQ")
    assert not differing(book, destination.instances)
    book.slots[instances[0]][5] = 1
    assert differing(book, destination.instances)


# ---- reply-to queues ----


def test_a_reply_queue_alias_gives_both_names(book: Book) -> None:
    book.add(REMOTE, "REPLY", rname="ANSWERS", rqmname="QM5")
    assert reply_alias(book, "REPLY") == ("ANSWERS", "QM5")
    assert reply_alias(book, "LOCAL.Q") == ("LOCAL.Q", "QM1")
    assert reply_alias(book, "") == ("", "QM1")
