"""Salvage of files that are damaged in every way, against the model of what was committed.

The model knows of each message its queue and body, where its records lie, and what decides that it
was put and got. A message whose record, chunks and decision are untouched must be salvaged; one
that was never committed never is; no number twice; one that was got comes back only if something of
its get was damaged, and then the list says that it may.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import writer as w
from reading import started

from penstock.journal import DamagedFile, MemoryFiles
from penstock.journal.records import record_length
from penstock.journal.salvage import Salvage
from thorough import one_in

Q1, Q2 = (1, 1), (2, 1)
NAMES = {Q1: "ORDERS", Q2: "OTHER"}
Extent = tuple[str, int, int]  # path, first byte, byte behind the last


@dataclass
class Fate:
    """A message: its body, the extents that prove it, and those that prove that it was got."""

    queue: str
    body: bytes
    proof: list[Extent]
    gone: list[Extent] | None = None
    in_checkpoint: bool = False


@dataclass
class World:
    """A store and its model."""

    store: w.Store = field(default_factory=started)
    fates: dict[int, Fate] = field(default_factory=dict)
    never: dict[int, bytes] = field(default_factory=dict)  # put by units that did not commit
    number: int = 0
    unit: int = 100

    def _batch(self, *records: bytes) -> tuple[list[int], Extent]:
        lsns = self.store.append(*records)
        start = self.store.starts[-1]
        length = 64 + sum(map(len, records))
        return lsns, (self.store.path, start, start + length)

    def put(self, count: int, queue: tuple[int, int] = Q1, size: int = 40) -> list[int]:
        """A unit of several messages with a COMMIT in a batch of its own."""
        self.unit += 1
        numbers = [self.number + at + 1 for at in range(count)]
        self.number += count
        bodies = [b"%d:" % n + bytes([n % 251]) * size for n in numbers]
        puts = [
            w.put(n, body, queue=queue, unit=self.unit, priority=n % 10)
            for n, body in zip(numbers, bodies, strict=True)
        ]
        lsns, extent = self._batch(*puts)
        _, decided = self._batch(w.commit(self.unit, lsns[0], puts))
        for n, body in zip(numbers, bodies, strict=True):
            self.fates[n] = Fate(NAMES[queue], body, [extent, decided])
        return numbers

    def put_alone(self, queue: tuple[int, int] = Q1) -> int:
        self.number += 1
        body = b"alone %d" % self.number
        _, extent = self._batch(w.put(self.number, body, queue=queue))
        self.fates[self.number] = Fate(NAMES[queue], body, [extent])
        return self.number

    def put_chunked(self, size: int) -> int:
        self.number += 1
        self.unit += 1
        body = bytes(range(256)) * (size // 256)
        before = len(self.store.starts)
        self.store.put_chunked(self.number, body, 3000, self.unit)
        first = self.store.starts[before]
        extent = (self.store.path, first, self.store.used)
        self.fates[self.number] = Fate("ORDERS", body, [extent])
        return self.number

    def put_without_commit(self) -> None:
        self.number += 1
        self.unit += 1
        self.never[self.number] = b"never"
        self._batch(w.put(self.number, b"never", unit=self.unit))

    def get(self, *numbers: int) -> None:
        self.unit += 1
        gets = [w.get(n, unit=self.unit) for n in numbers]
        lsns, extent = self._batch(*gets)
        _, decided = self._batch(w.commit(self.unit, lsns[0], gets))
        for n in numbers:
            self.fates[n].gone = [extent, decided]


def small_world() -> World:
    """Two segments, units, a torn unit, gets, a chunked message, marks."""
    world = World()
    first = world.put(4)
    world.put_alone(Q2)
    world.put_chunked(9216)
    world.put_without_commit()
    world.get(first[1])
    world.store.mark()
    world.store.roll()
    world.put(3, Q2)
    world.put_alone()
    world.get(first[2], first[3])
    world.store.mark()
    return world


def salvaged(files: dict[str, bytes]) -> tuple[dict[int, tuple[str, bytes]], Salvage] | None:
    """Messages by number with queue and body; None when nothing can be read."""
    try:
        found = Salvage(MemoryFiles(files)).run()
    except DamagedFile:
        return None
    made: dict[int, tuple[str, bytes]] = {}
    for message, queue in found.messages():
        assert message.identity not in made, message.identity
        made[message.identity] = (queue.name, message.body())
    return made, found


def touched(extents: list[Extent], damage: list[Extent]) -> bool:
    return any(
        path == other and first < stop and start < last
        for path, first, last in extents
        for other, start, stop in damage
    )


def check(world: World, files: dict[str, bytes], damage: list[Extent]) -> None:
    """The claims of this file's first paragraph."""
    result = salvaged(files)
    if result is None:
        assert all(touched(fate.proof, damage) for fate in world.fates.values())
        return
    made, found = result
    for number, (queue, body) in made.items():
        assert number not in world.never, number
        fate = world.fates[number]
        assert body == fate.body, number
        assert queue == fate.queue or queue.startswith("SALVAGED."), (number, queue)
        if fate.gone is not None:
            assert touched(fate.gone, damage), f"message {number} was got"
            newest_is_missing = all(loss.kind != "uncertain" for loss in found.losses)
            assert not newest_is_missing or lost_newest(damage), number
    for number, fate in world.fates.items():
        if fate.gone is None and not touched(fate.proof, damage):
            assert number in made, (number, found.losses)
    if damage:
        assert found.losses or len(made) == sum(f.gone is None for f in world.fates.values())


def lost_newest(damage: list[Extent]) -> bool:
    """Whether the newest segment's name is gone, or nothing of it is wrong but its end: without a
    checkpoint no file says that there was more.
    """
    return any(path == "journal/0000000002.psj" and stop == 1 << 40 for path, _, stop in damage)


def whole_segments(files: dict[str, bytes]) -> list[str]:
    return [path for path in files if path.startswith("journal/")]


def test_whole_files_give_all_messages_and_no_loss() -> None:
    world = small_world()
    result = salvaged(world.store.files)
    assert result is not None
    made, found = result
    assert made.keys() == {n for n, fate in world.fates.items() if fate.gone is None}
    kinds = {loss.kind for loss in found.losses}
    assert kinds == {"unit", "message", "file"}  # the unit without an end; there is no checkpoint
    assert [loss.number for loss in found.losses if loss.kind == "message"] == [*world.never]


PARTS = 3 // one_in(3)  # of a long test


def flips(
    files: dict[str, bytes], step: int, part: int = 0, parts: int = 1
) -> Iterator[tuple[str, int]]:
    """Every ``step``-th byte of the segments; of these the part that is asked for."""
    for path in whole_segments(files):
        used = len(files[path].rstrip(b"\0"))
        first = random.Random(path).randrange(step) + part * step
        for offset in range(first, used, parts * step):
            yield path, offset


def header_of_batch(world: World, files: dict[str, bytes], path: str, offset: int) -> Extent:
    """What a flip in this byte may cost: its record, or its batch when it steers it."""
    start = offset & -w.PAGE
    while start > w.PAGE and files[path][start : start + 4] != b"PSBT":
        start -= w.PAGE
    length = int.from_bytes(files[path][start + 4 : start + 8], "little")
    return (path, start, start + max(length, 64))


@pytest.mark.parametrize("part", range(PARTS))
def test_a_flipped_bit_anywhere_costs_no_more_than_its_batch(part: int) -> None:
    world = small_world()
    files = world.store.files
    count = 0
    for path, offset in flips(files, 37 * one_in(3), part, PARTS):
        data = bytearray(files[path])
        data[offset] ^= 1 << (offset % 8)
        damage = [] if offset < w.PAGE else [header_of_batch(world, files, path, offset)]
        check(world, {**files, path: bytes(data)}, damage)
        count += 1
    assert count > 200, count


def test_a_flipped_bit_in_a_body_costs_one_message() -> None:
    world = small_world()
    files = world.store.files
    for number, fate in world.fates.items():
        if fate.gone is not None or len(fate.body) > 1000:
            continue
        path, start, stop = fate.proof[0]
        at = files[path].index(fate.body, start, stop)
        data = bytearray(files[path])
        data[at + 1] ^= 16
        result = salvaged({**files, path: bytes(data)})
        assert result is not None
        alive = {n for n, f in world.fates.items() if f.gone is None}
        assert result[0].keys() == alive - {number}
        assert any(loss.kind == "range" and loss.file == path for loss in result[1].losses)


def test_each_file_missing_empty_and_cut_off_everywhere() -> None:
    world = small_world()
    files = world.store.files
    for path in files:
        rest = {name: data for name, data in files.items() if name != path}
        check(world, rest, [(path, 0, 1 << 40)])
        check(world, {**rest, path: b""}, [(path, 0, 1 << 40)])
        for size in range(0, len(files[path]), 1409):
            check(world, {**rest, path: files[path][:size]}, [(path, size, 1 << 40)])


def test_pages_that_are_zero_or_strange_cost_what_they_hold() -> None:
    world = small_world()
    files = world.store.files
    chance = random.Random(3)
    for path in whole_segments(files):
        for page in range(0, len(files[path].rstrip(b"\0")), w.PAGE):
            for content in (bytes(w.PAGE), chance.randbytes(w.PAGE)):
                data = files[path][:page] + content + files[path][page + w.PAGE :]
                damage = [header_of_batch(world, files, path, page)] if page else []
                check(world, {**files, path: data}, damage)


def test_all_files_at_once_with_random_damage() -> None:
    world = small_world()
    files = world.store.files
    for seed in range(150):
        chance = random.Random(seed)
        mutant, damage = dict(files), []
        for path in files:
            data = bytearray(files[path])
            for _ in range(chance.randrange(3)):
                at = chance.randrange(len(data.rstrip(b"\0")))
                data[at] ^= 1 << chance.randrange(8)
                if path.startswith("journal") and at >= w.PAGE:
                    damage.append(header_of_batch(world, files, path, at))
            mutant[path] = bytes(data)
        if mutant["qm.toml"] != files["qm.toml"] and all(
            mutant[path][: w.PAGE] != files[path][: w.PAGE] for path in whole_segments(files)
        ):
            continue  # nothing says any more whose files they are
        check(world, mutant, damage)


def checkpointed() -> tuple[World, dict[str, bytes]]:
    """A checkpoint of a part, traffic behind it."""
    world = World()
    numbers = world.put(3)
    lone = world.put_alone(Q2)
    world.store.mark()
    listed = []
    objects = [w.define(*Q1, "ORDERS", {15: 5000}), w.define(*Q2, "OTHER", {})]
    image = world.store.image
    for key, chosen in ((Q1, sorted(numbers, key=lambda n: -(n % 10))), (Q2, [lone])):
        for number in chosen:
            path, start, _ = world.fates[number].proof[0]
            at = start + 64
            while int.from_bytes(image[at + 24 : at + 32], "little") != number:
                at += record_length(image, at)
            record = bytes(image[at : at + record_length(image, at)])
            body = world.fates[number].body
            listed.append(
                world.store.listed(
                    number, world.store.base + at, record, len(body), queue=key,
                    priority=number % 10 if key == Q1 else 4,
                )
            )  # fmt: skip
            world.fates[number].proof = [(path, at, at + len(record))]
            world.fates[number].in_checkpoint = True
    world.store.checkpoint(world.store.lsn, objects=objects, messages=listed)
    world.put(2)
    world.get(numbers[0])
    world.store.mark()
    return world, world.store.files


def test_a_message_of_the_checkpoint_needs_only_its_record() -> None:
    world, files = checkpointed()
    for path, offset in flips(files, 31 * one_in(3)):
        data = bytearray(files[path])
        data[offset] ^= 2
        damage = [] if offset < w.PAGE else [header_of_batch(world, files, path, offset)]
        check_listed(world, {**files, path: bytes(data)}, damage, (path, offset, offset + 1))


def check_listed(world: World, files: dict[str, bytes], damage: list[Extent], flip: Extent) -> None:
    """check(), with what the checkpoint proves."""
    result = salvaged(files)
    assert result is not None
    made, found = result
    for number, fate in world.fates.items():
        if fate.gone is None:
            hit = touched(fate.proof, [flip] if fate.in_checkpoint else damage)
            assert number in made or hit, (number, flip, found.losses)
        elif number in made:
            assert touched(fate.gone, damage), number
    for number, (_, body) in made.items():
        assert body == world.fates[number].body


def test_a_damaged_checkpoint_still_lists_its_whole_blocks() -> None:
    world, files = checkpointed()
    (path,) = [path for path in files if path.startswith("checkpoint/")]
    alive = {n for n, fate in world.fates.items() if fate.gone is None}
    for offset in range(3, len(files[path]), 17):
        data = bytearray(files[path])
        data[offset] ^= 4
        result = salvaged({**files, path: bytes(data)})
        assert result is not None
        made, found = result
        assert made.keys() == alive, offset
        assert any(loss.file == path for loss in found.losses), offset


def test_what_the_checkpoint_lists_and_is_gone_is_in_the_list() -> None:
    world, files = checkpointed()
    (segment,) = whole_segments(files)
    del files[segment]
    result = salvaged(files)
    assert result is not None
    made, found = result
    assert made == {}
    listed = {n: f.queue for n, f in world.fates.items() if f.in_checkpoint}
    assert {loss.number: loss.queue for loss in found.losses if loss.kind == "message"} == listed


def test_a_torn_tail_and_what_follows_it_is_never_taken() -> None:
    world = World()
    world.put(2)
    store = world.store
    torn = store.copy()
    torn.append(w.put(900, b"x" * 5000))
    torn.append(w.put(901, b"not acknowledged"))
    tail = bytearray(torn.image[store.used : torn.used])
    tail[100] ^= 1
    store.restart(bytes(tail))
    world.put(1)
    check(world, store.files, [])
    alone = {path: data for path, data in store.files.items() if "0000000002" not in path}
    made = salvaged(alone)
    assert made is not None and made[0].keys() == {1, 2}


def test_a_body_that_looks_like_a_batch_is_a_body() -> None:
    world = World()
    world.put(1)
    store = world.store
    forger = store.copy()
    forger.used += w.PAGE  # where the forged batch will lie
    forged = forger.batch([w.put(900, b"forged")], durable=forger.lsn)
    lead = w.PAGE - 64 - len(w.put(50, b""))
    body = bytes(lead) + forged + bytes(w.PAGE)
    world.number = 49
    start = store.used
    record = w.put(50, body)
    shift = body.index(forged) + store.base + start + 64 + record.index(body) - forger.lsn
    body = body[shift:] if shift > 0 else bytes(-shift) + body
    record = w.put(50, body)
    world._batch(record)
    world.put(2)
    store.mark()
    files = store.files
    assert files[store.path][start + w.PAGE : start + w.PAGE + 4] == b"PSBT"
    for offset in (start + 200, start + w.PAGE - 1, start + w.PAGE + 2):
        data = bytearray(files[store.path])
        data[offset] ^= 8
        result = salvaged({**files, store.path: bytes(data)})
        assert result is not None
        assert 900 not in result[0] and {1, 50, 51} - result[0].keys() <= {50}


def test_a_queue_without_a_definition_gets_a_name() -> None:
    store = w.Store()
    store.append(w.put(1, b"whose", queue=(7, 3)))
    result = salvaged(store.files)
    assert result is not None
    assert result[0] == {1: ("SALVAGED.7.3", b"whose")}
    assert any(loss.kind == "definition" for loss in result[1].losses)


def test_a_prepared_unit_is_not_decided() -> None:
    world = World()
    numbers = world.put(2)
    records = [w.put(80, b"prepared", unit=70), w.get(numbers[0], unit=70)]
    lsns = world.store.append(*records)
    name = w.xid(5, b"g")
    world.store.append(w.prepare(70, name, lsns[0], records, puts=1, gets=1))
    result = salvaged(world.store.files)
    assert result is not None
    made, found = result
    assert made.keys() == set(numbers)
    assert {loss.number for loss in found.losses if loss.number} == {80, numbers[0]}


@pytest.mark.parametrize("keep", ["settings", "segments", "checkpoint"])
def test_the_queue_managers_id_comes_from_what_is_left(keep: str) -> None:
    world, files = checkpointed()
    if keep == "segments":
        files = {path: data for path, data in files.items() if path.startswith("journal")}
    elif keep == "checkpoint":
        files["qm.toml"] = b"name = 7"
    else:
        files["qm.toml"] = files["qm.toml"].replace(b"00", b"10", 1)
    result = salvaged(files)
    assert result is not None
    assert result[0].keys() == {n for n, fate in world.fates.items() if fate.gone is None}


def test_a_segment_without_its_salt_is_read_up_to_the_first_damage() -> None:
    world = small_world()
    files = world.store.files
    path = world.store.path
    alive = {n for n, fate in world.fates.items() if fate.gone is None}
    blank = bytes(w.PAGE) + files[path][w.PAGE :]
    result = salvaged({**files, path: blank})
    assert result is not None
    assert result[0].keys() == alive
    assert any(loss.kind == "uncertain" and loss.file == path for loss in result[1].losses)
    data = bytearray(blank)
    data[world.store.starts[2] + 100] ^= 1
    check(world, {**files, path: bytes(data)}, [(path, world.store.starts[2], 1 << 40)])


def test_head_says_that_the_newest_segment_is_missing() -> None:
    world = small_world()
    files = world.store.files
    rest = {name: data for name, data in files.items() if name != world.store.path}
    result = salvaged(rest)
    assert result is not None
    assert any(loss.file == "HEAD" and "newest" in loss.text for loss in result[1].losses)
    for bad in ({}, {"HEAD": b""}, {"HEAD": bytes(8192)}, {"HEAD": b"x" * 5000}):
        whole = {name: data for name, data in files.items() if name != "HEAD"} | bad
        result = salvaged(whole)
        assert result is not None
        assert result[0].keys() == {n for n, fate in world.fates.items() if fate.gone is None}
        assert any(loss.file == "HEAD" for loss in result[1].losses)


def test_a_moved_record_stands_for_a_put_that_is_lost() -> None:
    store = started()
    store.append(w.put(1, b"one"), w.put(2, b"two"))
    store.roll()
    store.append(w.moved(1, b"one"), w.moved(2, b"two"), w.get(2))
    store.append(w.define(*Q1, "ORDERS", {}))
    first = next(path for path in store.files if path.endswith("0001.psj"))
    rest = {path: data for path, data in store.files.items() if path != first}
    result = salvaged(rest)
    assert result is not None
    assert {n: body for n, (_, body) in result[0].items()} == {1: b"one"}
    assert any(loss.kind == "uncertain" and "MOVED" in loss.text for loss in result[1].losses)


@pytest.mark.parametrize("committed", [True, False])
def test_a_moved_record_of_a_unit_stands_for_a_put_if_the_unit_was_committed(
    committed: bool,
) -> None:
    store = started()
    put = w.put(1, b"one", unit=4)
    (first,) = store.append(put)
    store.roll()
    store.append(w.moved(1, b"one", unit=4))
    store.append(w.commit(4, first, [put]) if committed else w.backout(4, []))
    store.append(w.define(*Q1, "ORDERS", {}))
    lost = next(path for path in store.files if path.endswith("0001.psj"))
    result = salvaged({path: data for path, data in store.files.items() if path != lost})
    assert result is not None
    assert {n: body for n, (_, body) in result[0].items()} == ({1: b"one"} if committed else {})
