"""The second reader: what it makes of messages, units, objects and checkpoints."""

from __future__ import annotations

import random
import struct
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import writer as w
from reading import (
    Q1,
    Q2,
    checkpointed,
    contents,
    files_of,
    flipped,
    numbers,
    patched,
    replay,
    segment_path,
    severities,
    started,
)

from penstock.journal import (
    DamagedFile,
    MemoryFiles,
    checksum,
    describe_checkpoints,
)
from penstock.journal import layout as L
from thorough import one_in

# ---- checksums ----


def slow_crc(data: bytes, value: int = 0) -> int:
    register = ~value & 0xFFFFFFFF
    for octet in data:
        register ^= octet
        for _ in range(8):
            register = (register >> 1) ^ (0x82F63B78 if register & 1 else 0)
    return ~register & 0xFFFFFFFF


def test_crc_of_the_check_string() -> None:
    assert checksum.crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 255, 16384, 16385, 16400, 70003])
def test_crc_agrees_with_the_definition_at_every_path(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert checksum.crc32c(data, size) == slow_crc(data, size)


@pytest.mark.parametrize("total", [10_000, 400_000, 3_000_000])
def test_crcs_of_many_records_agree_with_those_of_one_by_one(total: int) -> None:
    rng = random.Random(total)
    data = bytearray(rng.randbytes(total))
    starts, lengths, at = [], [], 64
    while at + 70000 < total or not starts:
        length = rng.choice((24, 56, 264, 1032, 60000 if total > 100_000 else 480))
        short = bool(starts) and rng.random() < 0.5
        struct.pack_into("<HBB", data, at, length // 8, 0, L.FLAG_SHORT if short else 0)
        struct.pack_into("<I", data, at + 8, at - starts[-1] if short else 0)
        starts.append(at)
        lengths.append(length)
        at += length + rng.choice((0, 0, 64, 4096 + 64))
    found = checksum.record_crcs(bytes(data), starts, lengths)
    for start, length, crc in zip(starts, lengths, found, strict=True):
        short = data[start + 3] & L.FLAG_SHORT
        common = start - int.from_bytes(data[start + 8 : start + 12], "little")
        seed = int.from_bytes(data[common + 4 : common + 8], "little") if short else 0
        head = checksum.crc32c(data[start : start + 4], seed)
        assert crc == checksum.crc32c(data[start + (12 if short else 8) : start + length], head)


# ---- messages ----


def test_delivery_order_is_placement_priority_then_arrival() -> None:
    store = started()
    store.append(*(w.put(n, priority=p) for n, p in ((1, 4), (2, 9), (3, 4), (4, 0), (5, 9))))
    assert numbers(store) == [2, 5, 1, 3, 4]


def test_priority_field_keeps_its_full_value_beside_the_placement() -> None:
    store = started()
    store.append(w.put(1, priority=12), w.put(2, priority=2147483647, placement=3))
    first, second = replay(store).messages("ORDERS")
    assert (first.priority, first.placement) == (12, 9)
    assert (second.descriptor().priority, second.descriptor().placement) == (2147483647, 3)


def test_descriptor_comes_back_field_by_field() -> None:
    store = started()
    store.append(w.put(7, b"body", ext=True, expiry=w.TIME + 5))
    (message,) = replay(store).messages()
    found = message.descriptor()
    assert found.msg_id == b"AMQ GOLD" + (7).to_bytes(16, "big")
    assert found.correl_id == bytes(16) + (7).to_bytes(8, "little")
    assert (found.format, found.ccsid, found.encoding) == ("MQSTR", 1208, 546)
    assert (found.reply_to_q, found.reply_to_qmgr) == ("REPLY.QUEUE", "GOLD")
    assert found.group_id == b"group".ljust(24, b"\0")
    assert (found.original_length, found.expiry_us) == (-1, w.TIME + 5)
    assert found.put_time is not None and found.put_time.isoformat().startswith("2023-11-14T22:13")
    assert message.queue == "ORDERS" and message.persistent and message.body() == b"body"


@pytest.mark.parametrize("kind", [w.GET, w.EXPIRE])
def test_got_or_expired_message_is_gone(kind: int) -> None:
    store = started()
    store.append(w.put(1), w.put(2), w.get(1, kind=kind))
    assert numbers(store) == [2]


def test_clear_removes_what_arrived_before_its_bound_on_that_queue_only() -> None:
    store = started()
    store.append(w.put(1), w.put(2, queue=Q2), w.put(3), w.record(w.CLEAR, queue=Q1, number=3))
    assert (numbers(store), numbers(store, "OTHER")) == ([3], [2])


def test_body_in_chunks_is_gathered() -> None:
    store = started()
    body = random.Random(1).randbytes(30001)
    store.put_chunked(5, body, 7000, unit=3)
    (message,) = replay(store).messages()
    assert message.length == 30001 and message.body() == body
    assert files_of(store).verify() == []


def test_body_in_chunks_may_span_segments() -> None:
    store = started()
    body = random.Random(2).randbytes(200_000)
    store.put_chunked(5, body, 50_000, unit=3)
    assert store.number > 2
    assert [message.body() for message in replay(store).messages()] == [body]


@pytest.mark.parametrize("field", range(4))
def test_broken_chunk_chain_is_named(field: int) -> None:
    store = started()
    (lsn,) = store.append(w.chunk(5, b"x" * 100, 0, 0, 100, 0, unit=3))
    listed = [lsn, lsn, 100, 1]
    listed[field] += 8
    chunked = (listed[0], listed[1], listed[2], listed[3])
    store.append(w.put(5, unit=3, flags=w.COMMITS, chunked=chunked))
    with pytest.raises(DamagedFile):
        for message in replay(store).messages():
            message.body()
    assert {severity for severity, _ in severities(store)} == {"damage"}


def test_chunk_of_another_unit_or_with_a_predecessor_too_many_is_named() -> None:
    for unit_id, prev in ((4, 0), (3, 4160)):
        store = started()
        (lsn,) = store.append(w.chunk(5, b"x" * 100, prev, 0, 100, 0, unit=unit_id))
        store.append(w.put(5, unit=3, flags=w.COMMITS, chunked=(lsn, lsn, 100, 1)))
        (message,) = replay(store).messages()
        with pytest.raises(DamagedFile, match=r"belongs to unit 4|does not end at its first"):
            message.body()


# ---- units of work ----


def unit(store: w.Store, number: int, *records: bytes) -> None:
    lsns = [store.append(record)[0] for record in records]
    store.append(w.commit(number, lsns[0], list(records)))


def test_unit_takes_effect_only_with_its_commit() -> None:
    store = started()
    store.append(w.put(1))
    store.append(w.put(2, unit=7), w.get(1, unit=7))
    assert numbers(store) == [1]
    assert [(u.unit_id, u.record_count) for u in replay(store).units] == [(7, 2)]
    assert severities(store) == {("note", "unit")}


def test_committed_units_interleave_and_span_segments() -> None:
    store = started()
    one = [w.put(1, bytes(9000), unit=7), w.put(3, bytes(9000), unit=7)]
    two = [w.put(2, bytes(30000), unit=8), w.put(4, bytes(9000), unit=8)]
    first = store.append(one[0])[0]
    second = store.append(two[0])[0]
    store.append(one[1])
    store.append(two[1])
    store.append(w.commit(8, second, two))
    store.append(w.commit(7, first, one))
    assert store.number > 1
    assert numbers(store) == [1, 2, 3, 4]
    assert files_of(store).verify() == []


def test_record_with_commits_flag_commits_its_unit() -> None:
    store = started()
    store.append(w.put(1, unit=5), w.put(2, unit=5, flags=w.COMMITS))
    assert numbers(store) == [1, 2]


def test_backout_drops_the_unit_and_raises_counts_but_never_lowers_them() -> None:
    store = started()
    store.append(w.put(1), w.get(1, unit=7), w.put(2, unit=7), w.backout(7, [(1, 1, 3)]))
    store.append(w.backout(0, [(1, 1, 2), (99, 1, 1)]))
    (message,) = replay(store).messages()
    assert (message.identity, message.backout_count) == (1, 3)


def test_restart_drops_units_that_were_open() -> None:
    store = started()
    record = w.put(1, unit=7)
    first = store.append(record)[0]
    store.restart()
    assert numbers(store) == [] and replay(store).units == []
    store.append(w.commit(7, first, [record]))
    with pytest.raises(DamagedFile, match="unit 7 has first LSN") as caught:
        replay(store)
    assert caught.value.rule == "unit"


@pytest.mark.parametrize("lie", ["first", "count", "crc"])
def test_commit_that_disagrees_with_its_unit_is_damage(lie: str) -> None:
    store = started()
    records = [w.put(1, unit=7), w.put(2, unit=7)]
    first = store.append(*records)[0]
    said = {"first": records, "count": records[:1], "crc": records[::-1]}[lie]
    store.append(w.commit(7, first + 8 * (lie == "first"), said))
    with pytest.raises(DamagedFile) as caught:
        replay(store)
    assert (caught.value.rule, caught.value.file) == ("unit", store.path)
    assert ("damage", "unit") in severities(store)


# ---- objects ----


def test_object_definition_is_replaced_deleted_and_its_slot_used_again() -> None:
    store = started()
    store.append(w.put(1), w.define(*Q1, "ORDERS", {15: 7, 2013: "grün"}))
    assert replay(store).objects[Q1].attributes == {15: 7, 2013: "grün"}
    store.append(w.record(w.OBJECT_DELETE, queue=Q1), w.define(1, 2, "ORDERS", {}))
    store.append(w.put(2, queue=(1, 2)))
    assert numbers(store) == [2]
    assert replay(store).queue_names() == ["ORDERS", "OTHER"]
    assert replay(store).depths() == {"ORDERS": 1, "OTHER": 0}


def test_tail_may_contain_an_earlier_generation_of_a_slot_than_the_checkpoint() -> None:
    store = started()
    begin = store.lsn
    store.append(w.define(3, 1, "OLD", {}), w.put(1, queue=(3, 1)))
    store.append(w.record(w.OBJECT_DELETE, queue=(3, 1)), w.define(3, 2, "NEW", {15: 1}))
    put = w.put(2, b"kept", queue=(3, 2))
    (lsn,) = store.append(put)
    store.checkpoint(
        begin,
        objects=[w.define(3, 2, "NEW", {15: 1})],
        messages=[store.listed(2, lsn, put, 4, queue=(3, 2))],
    )
    state = replay(store)
    assert state.queue_names() == ["NEW"] and numbers(state, "NEW") == [2]
    assert severities(store) == set()


def test_messages_of_an_object_that_is_not_defined_at_the_end_are_dropped_with_a_warning() -> None:
    store = started()
    put = w.put(1)
    (lsn,) = store.append(put)
    store.checkpoint(store.lsn, messages=[store.listed(1, lsn, put, 0)])
    assert list(replay(store).messages()) == []
    assert severities(store) == {("warning", "object")}


def test_put_to_an_undefined_object_is_damage() -> None:
    store = started()
    store.append(w.put(1, queue=(9, 1)))
    with pytest.raises(DamagedFile, match="not defined"):
        replay(store)


def test_second_put_of_an_identity_changes_nothing_and_is_reported() -> None:
    store = started()
    store.append(w.put(1, b"first"), w.put(1, b"second"), w.put(2), w.get(2), w.put(2))
    assert [message.body() for message in replay(store).messages()] == [b"first"]
    assert severities(store) == {("warning", "duplicate")}


# ---- checkpoints ----


def test_checkpoint_and_tail_give_the_present_messages() -> None:
    store, _ = checkpointed()
    assert numbers(store) == [3, 2, 1]
    store.append(w.get(2), w.put(10, priority=9))
    state = replay(store)
    assert numbers(state) == [10, 3, 1]
    assert state.records_replayed == 2 and state.next_number == 1000
    assert {m.identity: len(m.body()) for m in state.messages()} == {10: 0, 3: 20000, 1: 3}
    assert files_of(store).verify() == []


def test_checkpoint_reads_without_the_journal_that_it_replaces() -> None:
    """Segments older than needed may be gone, or partly gone, or unreadable."""
    store = started()
    store.roll()
    store.roll()
    put = w.put(1, b"kept")
    (lsn,) = store.append(put)
    store.checkpoint(
        store.lsn,
        objects=[w.define(*Q1, "ORDERS", {})],
        messages=[store.listed(1, lsn, put, 4)],
        oldest=3,
    )
    for drop in ([], [1], [2], [1, 2]):
        files = {p: b for p, b in store.files.items() if p not in map(segment_path, drop)}
        assert [m.body() for m in replay(files).messages()] == [b"kept"]
    ruined = store.files | {segment_path(2): b"x" * 65536}
    assert [m.body() for m in replay(ruined).messages()] == [b"kept"]
    with pytest.raises(DamagedFile, match="segment 3 is missing"):
        replay({p: b for p, b in store.files.items() if p != segment_path(3)})


def test_records_below_the_begin_lsn_are_left_out() -> None:
    store = started()
    lsns = store.append(w.put(1), w.put(2), w.put(3))
    store.checkpoint(lsns[2], objects=[w.define(*Q1, "ORDERS", {})], end=store.lsn)
    assert numbers(store) == [3]


def test_unit_that_begins_below_the_begin_lsn_takes_back_what_it_got_above_it() -> None:
    """An open unit holds the begin LSN low, in the middle of another that was soon over."""
    store = started()
    before = [w.put(1, unit=7)]
    (first,) = store.append(*before)
    (begin,) = store.append(w.put(9, unit=8))  # the open unit
    (lsn,) = store.append(w.put(2))
    store.append(w.get(2, unit=7))
    store.append(w.commit(7, first, [*before, w.get(2, unit=7)]))
    store.checkpoint(
        begin,
        objects=[w.define(*Q1, "ORDERS", {})],
        messages=[store.listed(1, first, before[0], 0)],
    )
    assert lsn > begin
    assert numbers(store) == [1]
    assert [unit.unit_id for unit in replay(store).units] == [8]
    assert severities(store) == {("note", "unit")}


def test_image_is_loaded_until_it_was_consumed() -> None:
    store, _ = checkpointed(clean=True, image=True)
    state = replay(store)
    assert numbers(state) == [51, 3, 50, 2, 1] and state.image_loaded
    bodies = {m.identity: (m.body(), m.persistent, m.backout_count) for m in state.messages()}
    assert bodies[50] == (b"abcd", False, 2) and bodies[51] == (b"small", False, 0)
    assert files_of(store).verify() == []
    begin = describe_checkpoints(MemoryFiles(store.files))[0]["begin_lsn"]
    store.append(w.image_consumed(begin - 4096))
    assert len(numbers(store)) == 5
    store.append(w.image_consumed(begin))
    assert numbers(store) == [3, 2, 1]


def test_newest_whole_checkpoint_counts_and_a_damaged_one_is_a_warning() -> None:
    store, _ = checkpointed()
    store.append(w.get(1))
    old = next(path for path in store.files if path.endswith(".psc"))
    store.checkpoint(store.lsn, objects=[w.define(*Q1, "ORDERS", {})])
    files = store.files | {old: store.files[old][:-1]}
    assert numbers(replay(files)) == []
    assert severities(files) == {("warning", "block")}
    newest = max(path for path in store.files if path.endswith(".psc"))
    damaged = flipped(store, 20, newest)
    assert numbers(replay(damaged)) == [3, 2]
    assert {(f.severity, f.file) for f in files_of(damaged).verify()} == {("warning", newest)}
    both = damaged | {old: store.files[old][:-1]}
    assert numbers(replay(both)) == [3, 2]  # the journal is there from its beginning on
    del both[segment_path(1)]
    with pytest.raises(DamagedFile, match=newest):
        replay(both)


def test_the_checkpoint_made_at_create_is_not_needed() -> None:
    store = w.Store()
    store.checkpoint(4096, clean=True, begin_segment=1)
    store.append(w.define(*Q1, "ORDERS", {}), w.put(1, b"one"))
    (path,) = (path for path in store.files if path.endswith(".psc"))
    assert path == "checkpoint/0000000000001000.psc"
    damaged = flipped(store, 500, path)
    assert numbers(replay(damaged)) == [1]
    assert severities(damaged) == {("warning", "header")}


def test_checkpoint_that_lists_what_the_record_does_not_say_is_damage() -> None:
    good, lsn = checkpointed()
    assert files_of(good).verify() == []
    put = w.put(1, b"one", priority=1)
    right = good.listed(1, lsn, put, 3, priority=1)
    for at, name in ((32, "tag_msg_id"), (64, "length"), (72, "priority"), (24, "expiry_us")):
        wrong = right[:at] + bytes([right[at] ^ 1]) + right[at + 1 :]
        good.checkpoint(good.lsn, objects=[w.define(*Q1, "ORDERS", {})], messages=[wrong])
        (finding,) = files_of(good).verify()
        assert finding.severity == "damage" and name in finding.text
    for at in (8, 0):  # LSN and identity: another record, or none, is at that position
        wrong = right[:at] + bytes([right[at] ^ 8]) + right[at + 1 :]
        good.checkpoint(good.lsn, objects=[w.define(*Q1, "ORDERS", {})], messages=[wrong])
        (finding,) = files_of(good).verify()
        assert (finding.severity, finding.rule) == ("damage", "message")


def passed_over(files: dict[str, bytes]) -> DamagedFile:
    """What is wrong with the checkpoint, without which the journal leads to the same."""
    assert numbers(replay(files)) == [3, 2, 1]
    (error,) = files_of(files).view().passed_over
    return error


def test_every_flipped_byte_of_a_checkpoint_is_noticed() -> None:
    store, _ = checkpointed(clean=True, image=True)
    path = next(path for path in store.files if path.endswith(".psc"))
    for at in [*range(136), *range(4080, len(store.files[path]), one_in(3))]:
        assert passed_over(flipped(store, at, path)).file == path


@pytest.mark.parametrize("lie", range(9))
def test_checkpoint_whose_end_block_disagrees_is_refused(lie: int) -> None:
    store, _ = checkpointed(clean=True, image=True)
    path = next(path for path in store.files if path.endswith(".psc"))
    data = store.files[path]
    totals = list(struct.unpack("<9Q", data[-72:]))
    totals[lie] += 1
    begin = int(path[-20:-4], 16)
    end = store.block(begin, 4, 1, totals[0] if lie else totals[0] - 1, struct.pack("<9Q", *totals))
    with pytest.raises(DamagedFile) as caught:
        replay(store.files | {path: data[:-104] + end})
    assert caught.value.rule == "totals"


def test_checkpoint_block_out_of_sequence_is_noticed() -> None:
    store, _ = checkpointed()
    path = next(path for path in store.files if path.endswith(".psc"))
    data = store.files[path]
    again = data[4096:-104] + data[4096:-104] + data[-104:]
    error = passed_over(store.files | {path: data[:4096] + again})
    assert "block 0 where block 2 should be" in error.text


def test_every_truncation_of_a_checkpoint_is_noticed() -> None:
    store, _ = checkpointed(clean=True, image=True)
    path = next(path for path in store.files if path.endswith(".psc"))
    for size in range(0, len(store.files[path]), 5 * one_in(3)):
        assert passed_over(store.files | {path: store.files[path][:size]}).file == path
    error = passed_over(store.files | {path: store.files[path] + bytes(8)})
    assert "after the END block" in error.text


def test_replay_from_any_checkpoint_equals_the_replay_from_the_start() -> None:
    """Random histories; the checkpoint has the state of any moment between begin LSN and end."""
    for seed in range(40):
        rng = random.Random(seed)
        store, states = history(rng)
        expected = contents(replay(store))
        for _ in range(4):
            begin, end = sorted(rng.sample(range(len(states)), 2))
            later = store.copy()
            lsn, state = states[begin][0], states[rng.randint(begin, end)][1]
            listed = []
            for number, (record_lsn, data, backouts) in sorted(state["messages"].items()):
                listed.append(store.listed(number, record_lsn, data, 8, backouts=backouts))
            later.checkpoint(
                lsn,
                objects=[w.define(*Q1, "ORDERS", {15: state["depth"]})],
                messages=listed,
                end=states[end][0],
                begin_segment=1 + lsn // store.size,
            )
            assert contents(replay(later)) == expected, seed


def history(rng: random.Random) -> tuple[w.Store, list[tuple[int, dict]]]:  # type: ignore[type-arg]
    """A store after random work, and at each quiet moment (LSN, messages present)."""
    store = w.Store(size=32768)
    state: dict = {"messages": {}, "depth": 1}  # type: ignore[type-arg]
    store.append(w.define(*Q1, "ORDERS", {15: 1}))
    states = []
    for step in range(2, 40):
        states.append((store.lsn, {**state, "messages": dict(state["messages"])}))
        present, choice = state["messages"], rng.random()
        if choice < 0.5 or not present:
            record = w.put(step, step.to_bytes(8, "little"))
            (lsn,) = store.append(record)
            present[step] = (lsn, record, 0)
        elif choice < 0.7:
            number = rng.choice(list(present))
            store.append(w.get(number))
            del present[number]
        elif choice < 0.8:
            number = rng.choice(list(present))
            lsn, record, backouts = present[number]
            store.append(w.backout(0, [(number, 1, backouts + 1)]))
            present[number] = (lsn, record, backouts + 1)
        elif choice < 0.9:
            number = rng.choice(list(present))
            records = [w.get(number, unit=step), w.put(step, b"in unit ", unit=step)]
            lsns = store.append(*records)
            store.append(w.commit(step, lsns[0], records))
            del present[number]
            present[step] = (lsns[1], records[1], 0)
        else:
            store.append(w.define(*Q1, "ORDERS", {15: step}))
            state["depth"] = step
    return store, states


def test_counters_that_would_come_to_0_are_damage_with_their_offset() -> None:
    for offset, rule in ((72, "next message number"), (80, "next unit id")):
        for value in (0, 1 << 63, (1 << 64) - 1):
            store, _ = checkpointed()
            path = next(path for path in store.files if path.endswith(".psc"))
            page = bytearray(store.files[path][:4096])
            page[offset : offset + 8] = value.to_bytes(8, "little")
            page[4092:] = w.crc32c(bytes(page[:4092])).to_bytes(4, "little")
            with pytest.raises(DamagedFile) as caught:
                replay(patched(store, 0, bytes(page), path))
            assert caught.value.offset == offset and rule in caught.value.text


def test_records_with_numbers_that_are_never_given_out_do_not_move_the_counters() -> None:
    store = started()
    store.append(w.put(1), w.get((1 << 64) - 1), w.get(1, unit=(1 << 64) - 1))
    state = replay(store)
    assert (state.next_number, state.next_unit_id) == (2, 1)
