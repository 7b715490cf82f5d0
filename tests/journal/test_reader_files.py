"""The second reader on files that are torn, damaged, of other versions, hostile or in use."""

from __future__ import annotations

import json
import os
import random
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import writer as w
from reading import (
    Q1,
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
    QueueManagerFiles,
    State,
    UnsupportedFile,
    checksum,
    describe_checkpoints,
    describe_segments,
    iter_record_dicts,
    verify,
)
from penstock.journal import layout as L

# ---- the end of the journal ----


def test_torn_batch_is_dropped_and_shown() -> None:
    store = started()
    store.append(w.put(1))
    whole = store.batch([w.put(2, b"x" * 6000)])
    for size in (64, 512, 4096, len(whole) - 1):
        files = patched(store, store.used, whole[:size])
        state = replay(files)
        assert numbers(state) == [1] and state.end_lsn == store.lsn
        assert state.torn_tail is not None and state.torn_tail.offset == store.used
        assert severities(files) == {("note", "torn-tail")}
    assert numbers(replay(patched(store, store.used, whole))) == [1, 2]


def test_second_and_third_crash_do_not_take_an_old_torn_tail_for_damage() -> None:
    store = started()
    expected = []
    for number in range(1, 7):
        store.append(w.put(number))
        expected.append(number)
        torn = store.batch([w.put(100 + number, bytes(5000))])
        store.restart(torn[: 4096 if number % 2 else 700], gap=4096 * number)
        assert numbers(store) == expected
        assert severities(store) == set()


def test_bytes_beyond_the_successors_word_are_not_read_even_if_they_are_a_batch() -> None:
    store = started()
    store.append(w.put(1))
    store.restart(torn=store.batch([w.put(2)]))
    assert numbers(store) == [1]


def test_bad_batch_below_a_mark_is_damage_and_names_file_and_offset() -> None:
    store = started()
    store.append(w.put(1))
    at = store.used
    store.append(w.put(2))
    assert numbers(replay(flipped(store, at + 100))) == [1]
    store.mark()
    with pytest.raises(DamagedFile, match="was durable") as caught:
        replay(flipped(store, at + 100))
    assert (caught.value.file, caught.value.offset) == (store.path, at + 64)


def test_checkpoints_end_lsn_is_a_mark() -> None:
    store = started()
    at = store.used
    store.append(w.put(1))
    store.checkpoint(4096, begin_segment=1)
    with pytest.raises(DamagedFile, match="the checkpoint says"):
        replay(flipped(store, at + 100))


def test_successors_header_is_a_mark() -> None:
    store = started()
    at, path = store.used, store.path
    store.append(w.put(1))
    store.roll()
    with pytest.raises(DamagedFile, match="were there"):
        replay(flipped(store, at + 100, path))


def test_unflushed_batches_below_a_torn_one_are_no_damage() -> None:
    """Batches written without a flush carry an older mark; any of them may be lost."""
    store = started()
    quiet = store.lsn
    first = store.used
    store.append(w.put(1, unit=3), durable=quiet)
    store.append(w.put(2, unit=3), durable=quiet)
    assert numbers(replay(patched(store, first, bytes(512)))) == []


@pytest.mark.parametrize("field", ["number", "generation", "qm_id"])
def test_batch_of_another_use_of_a_file_is_none_even_with_this_uses_salt(field: str) -> None:
    store = started()
    store.append(w.put(1))
    other = store.copy()
    other.drawn = store.salt
    setattr(other, field, bytes(16) if field == "qm_id" else 7)
    data = other.batch([w.put(2)])
    assert numbers(replay(patched(store, store.used, data))) == [1]


def forged(store: w.Store, salt: bytes) -> bytes:
    """A body with headers of batches to come, one for each 8 bytes at which a sector may begin.

    All that they say is right, and their mark is above everything; their hashes are made with
    ``salt``.
    """
    copy = store.copy()
    copy.drawn = salt
    copy.used += 8 * w.PAGE
    head = copy.batch([], durable=copy.lsn)
    assert len(head) == 64
    return b"".join(bytes(shift) + head * 64 for shift in range(0, 64, 8))


def test_a_body_that_holds_headers_of_batches_to_come_is_no_mark() -> None:
    """Whoever puts a message knows everything but the salt."""
    for salt in (bytes(16), w.Store(generation=40).salt):
        store = started()
        store.append(w.put(1))
        torn = store.batch([w.put(2, forged(store, salt))])
        files = patched(store, store.used, torn[:4096] + bytes(512) + torn[4608:])
        assert numbers(replay(files)) == [1]
        assert [f.rule for f in QueueManagerFiles(MemoryFiles(files)).verify()] == ["torn-tail"]


def test_the_same_headers_made_with_the_salt_are_marks() -> None:
    """What the test above would do if the salt were known, so that it proves something."""
    store = started()
    store.append(w.put(1))
    torn = store.batch([w.put(2, forged(store, store.salt))])
    files = patched(store, store.used, torn[:4096] + bytes(512) + torn[4608:])
    with pytest.raises(DamagedFile, match="was durable"):
        replay(files)


def test_stale_batches_of_an_earlier_use_of_the_file_are_nothing() -> None:
    store = started()
    for number in range(1, 5):
        store.append(w.put(number))
    old = bytes(store.image)
    store.roll()
    store.append(w.put(9))
    stale = patched(store, store.used, old[store.used :])
    assert numbers(replay(stale)) == [1, 2, 3, 4, 9]
    assert replay(stale).torn_tail is None


def test_segment_filled_to_its_last_page_continues_in_the_next() -> None:
    store = w.Store(size=32768)
    store.append(w.define(*Q1, "ORDERS", {}))
    for number in range(1, 30):
        store.append(w.put(number))
    assert store.number > 4
    assert numbers(store) == list(range(1, 30))


# ---- chain, names, versions ----


def three_segments() -> w.Store:
    store = started()
    store.append(w.put(1))
    store.roll()
    store.append(w.put(2))
    store.roll()
    store.append(w.put(3))
    return store


def rewritten(store: w.Store, number: int, offset: int, value: int) -> dict[str, bytes]:
    """A header field changed and the header's CRC made good again."""
    path = segment_path(number)
    page = bytearray(store.files[path][:4096])
    struct.pack_into("<Q", page, offset, value)
    struct.pack_into("<I", page, 4092, checksum.crc32c(page[:4092]))
    return patched(store, 0, bytes(page), path)


@pytest.mark.parametrize(
    ("offset", "value", "said"),
    [
        (8, 3, "format version 3"),
        (24, 4, "incompatible features 0x4"),
        (32, 99, "another queue manager"),
        (48, 5, "the name says segment 2"),
        (56, 1, "generation"),
        (56, 3, "generation"),
        (64, 0, "epoch"),
        (72, 0, "previous segment ends"),
        (72, 65536 - 4096, "begins inside the segment before it"),
        (72, 65536 + 8, "base LSN"),
        (72, (1 << 64) - 4096, "base LSN"),
        (80, 32768, "its header says 32768"),
        (88, 0, "segment number 2"),
        (88, 8192 + 8, "previous segment ends"),
        (88, 8192, "were there"),
        (200, 1, "reserved bytes"),
    ],
)
def test_header_that_contradicts_its_surroundings_is_refused(
    offset: int, value: int, said: str
) -> None:
    store = three_segments()
    if said == "were there":  # an end inside the stretch that the batches do not reach
        value = 20480
    with pytest.raises(DamagedFile, match=said):
        replay(rewritten(store, 2, offset, value))
    assert any(
        severity == "damage" for severity, _ in severities(rewritten(store, 2, offset, value))
    )


def test_compatible_features_and_minor_versions_are_ignored() -> None:
    store = three_segments()
    assert numbers(replay(rewritten(store, 2, 16, 1 << 63))) == [1, 2, 3]
    assert numbers(replay(rewritten(store, 2, 8, 2 | 7 << 16 | 4096 << 32))) == [1, 2, 3]


@pytest.mark.parametrize("missing", [1, 2])
def test_missing_segment_is_named(missing: int) -> None:
    files = three_segments().files
    del files[segment_path(missing)]
    with pytest.raises(DamagedFile, match=f"segment {missing} is missing"):
        replay(files)


def test_newest_segment_cannot_vanish_behind_a_checkpoint() -> None:
    store = three_segments()
    store.checkpoint(12288, begin_segment=1, end=12288)
    files = store.files
    del files[segment_path(3)]
    with pytest.raises(DamagedFile, match="names segment 3"):
        replay(files)


def test_spares_and_half_made_files_are_ignored_and_strangers_reported() -> None:
    files = started().files
    files["journal/spare-0000000002.psj"] = bytes(65536)
    files["journal/reserve-0000000003.psj"] = bytes(65536)
    files["checkpoint/checkpoint.reserve"] = bytes(65536)
    assert severities(files) == set()
    files["journal/0000000002.psj.tmp"] = b"half"
    files["checkpoint/0000000000001000.psc.tmp"] = b"half"
    files["journal/notes.txt"] = b"mine"
    assert severities(files) == {("note", "file"), ("warning", "file")}
    assert numbers(replay(files)) == []


def test_unknown_optional_record_is_skipped_and_noted() -> None:
    store = started()
    store.append(w.put(1), w.record(77, must=0), w.record(11, must=0), w.put(2))
    assert numbers(store) == [1, 2]
    assert severities(store) == {("note", "unknown")}


@pytest.mark.parametrize(
    ("kind", "said"),
    [(77, "type 77"), *((n, L.RECORD_TYPES[n]) for n in L.NOT_UNDERSTOOD - {L.MARK})],
)
def test_unknown_record_that_must_be_understood_is_refused_by_name(kind: int, said: str) -> None:
    store = started()
    store.append(w.record(kind))
    with pytest.raises(UnsupportedFile, match=f"{said} record is not known"):
        replay(store)
    assert ("damage", "unsupported") in severities(store)


def test_unknown_flag_is_refused() -> None:
    store = started()
    store.append(w.record(w.GET, flags=4))
    with pytest.raises(UnsupportedFile, match="unknown flags 0x4"):
        replay(store)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (w.section(6, b"x") + w.section(6, b"x"), "twice|follows the body"),
        (w.section(1, w.descriptor(1)), "twice"),
        (w.section(6, b"x") + w.section(10, b""), "follows the body"),
        (w.section(99, b"12345")[:-1] + b"x", "not zero"),
        (struct.pack("<HHI", 99, 1, 0), "not zero"),
        (struct.pack("<HHI", 99, 0, 9) + bytes(8), "exceeds the record"),
        (w.section(2, w.extension()), "has_ext"),
        (w.section(2, w.extension()[:-8]), "has 184 bytes, not 192"),
        (w.section(7, bytes(32)) + w.section(6, b"x"), "a body and chunks"),
    ],
)
def test_sections_that_contradict_their_record_are_damage(parts: bytes, said: str) -> None:
    store = started()
    parts = w.section(1, w.descriptor(1)) + parts
    store.append(w.record(w.PUT, parts, queue=Q1, number=1))
    with pytest.raises(DamagedFile, match=said):
        replay(store)
    assert "damage" in {severity for severity, _ in severities(store)}


def test_record_without_its_section_is_damage() -> None:
    for kind in (w.PUT, w.COMMIT, w.CHUNK, w.OBJECT, w.IMAGE_CONSUMED):
        store = started()
        store.append(w.record(kind, unit=1, queue=Q1))
        with pytest.raises(DamagedFile, match=r"no [A-Z_]+ section"):
            replay(store)


@pytest.mark.parametrize("tag", sorted(L.SECTIONS.keys() - L.SECTIONS_UNDERSTOOD))
def test_reserved_section_is_refused_by_name(tag: int) -> None:
    store = started()
    parts = w.section(1, w.descriptor(1)) + w.section(tag, b"later") + w.section(6, b"body")
    store.append(w.record(w.PUT, parts, queue=Q1, number=1))
    with pytest.raises(UnsupportedFile, match=f"section {L.SECTIONS[tag]}"):
        replay(store)


def test_unknown_section_is_skipped() -> None:
    store = started()
    parts = w.section(99, b"later") + w.section(1, w.descriptor(1)) + w.section(6, b"body")
    store.append(w.record(w.PUT, parts, queue=Q1, number=1))
    assert [message.body() for message in replay(store).messages()] == [b"body"]


# ---- verify ----


def test_verify_names_every_bad_offset_of_a_file() -> None:
    store = three_segments()
    store.done = dict(store.files.items())
    path = segment_path(1)
    for offset in (4096 + 90, 8192 + 90):
        data = bytearray(store.done[path])
        data[offset] ^= 1
        store.done[path] = bytes(data)
    found = files_of(store.done).verify()
    assert [(f.severity, f.rule, f.file) for f in found] == [("damage", "batch", path)] * 2
    assert [finding.offset for finding in found] == [4096 + 64, 8192 + 64]
    for number in (2, 3):
        data = bytearray(store.done[segment_path(number)])
        data[9] ^= 1
        store.done[segment_path(number)] = bytes(data)
    named = {finding.file for finding in files_of(store.done).verify()}
    assert {segment_path(2), segment_path(3)} <= named


def test_verify_reports_bytes_in_the_padding() -> None:
    store = started()
    store.append(w.put(1))
    assert severities(patched(store, store.used - 1, b"x")) == {("note", "padding")}
    assert numbers(replay(patched(store, store.used - 1, b"x"))) == [1]


def test_verify_reports_unusable_settings() -> None:
    assert severities(started().files | {"qm.toml": b"qm_id = 1"}) == {("damage", "settings")}
    without = started().files
    del without["qm.toml"]
    assert severities(without) == set()


def test_lists_for_the_command_are_json() -> None:
    store, _ = checkpointed(clean=True, image=True)
    store.append(w.put(60, unit=2), w.backout(2, [(1, 1, 5)]), w.get(60, kind=w.EXPIRE))
    files = MemoryFiles(store.files)
    rows = [json.loads(json.dumps(row)) for row in iter_record_dicts(files)]
    assert [row["lsn"] for row in rows] == sorted(row["lsn"] for row in rows)
    puts = [row for row in rows if row["type"] == "PUT"]
    assert puts[0]["queue"] == "ORDERS" and puts[0]["descriptor"]["format"] == "MQSTR"
    (segment,) = json.loads(json.dumps(describe_segments(files)))
    assert segment["records"] == len(rows) and segment["durable_lsn"] == store.lsn - 4096
    (checkpoint,) = json.loads(json.dumps(describe_checkpoints(files)))
    assert checkpoint["clean"] and checkpoint["messages"] == 3
    (finding,) = json.loads(json.dumps(verify(files)))
    assert (finding["rule"], finding["severity"]) == ("message", "warning")


# ---- hostile files ----


def drain(files: dict[str, bytes]) -> None:
    """Everything the reader can do; only DamagedFile may come out."""
    reader = files_of(files)
    for action in (reader.replay, lambda: list(iter_record_dicts(reader.files))):
        try:
            state = action()
            if isinstance(state, State):
                for message in state.messages():
                    message.descriptor()
                    message.body()
        except DamagedFile:
            pass
    reader.verify()


def hostile(rng: random.Random, data: bytes) -> bytes:
    """A record with random changes in header and sections, its CRC made good again."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.choice((rng.randrange(8, len(data)), rng.randrange(8, min(80, len(data)))))
        changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    crc = checksum.crc32c(changed[8:], checksum.crc32c(changed[:4]))
    return bytes(changed[:4]) + struct.pack("<I", crc) + bytes(changed[8:])


@pytest.mark.parametrize("seed", range(8))
def test_hostile_records_with_good_checksums_raise_nothing_but_damage(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        store = started()
        records: list[bytes] = [
            w.put(1, b"abc", ext=True),
            w.put(2, chunked=(8256, 8256, 10, 1)),
            w.chunk(3, b"abc", 0, 0, 3, 0),
            w.commit(4, 100, []),
            w.backout(5, [(1, 1, 1)]),
            w.define(1, 2, "NEW", {15: 1, 2013: "text"}),
            w.image_consumed(5),
            w.get(1),
        ]
        for record in rng.sample(records, 5):
            store.append(hostile(rng, record))
        store.checkpoint(
            4096,
            objects=[hostile(rng, w.define(1, 1, "ORDERS", {15: 1}))],
            messages=[rng.randbytes(96), store.listed(1, 8256, records[0], 3)],
            image=[hostile(rng, w.put(8, b"x", persistence=0))],
            clean=True,
            begin_segment=1,
        )
        drain(store.files)


@pytest.mark.parametrize("seed", range(4))
def test_hostile_bytes_anywhere_raise_nothing_but_damage(seed: int) -> None:
    rng = random.Random(seed)
    store, _ = checkpointed(clean=True, image=True)
    for _ in range(60):
        files = store.files
        for path in rng.sample(sorted(files), 2):
            data = bytearray(files[path])
            for _ in range(rng.randint(1, 4)):
                at = rng.choice((rng.randrange(len(data)), rng.randrange(min(200, len(data)))))
                data[at : at + 8] = rng.randbytes(rng.randint(1, 8))
            files[path] = bytes(data[: rng.choice((len(data), rng.randrange(len(data) + 1)))])
        drain(files)


def test_lengths_that_claim_more_than_the_files_hold_allocate_nothing() -> None:
    for total, count in ((100 << 20, 1707), (100 << 20, 0xFFFFFFFF), (1 << 63, 1)):
        store = started()
        (lsn,) = store.append(w.chunk(5, b"x", 0, 0, 100 << 20, 0, unit=3))
        store.append(w.put(5, chunked=(lsn, lsn, total, count)))
        with pytest.raises(DamagedFile):
            for message in replay(store).messages():
                message.body()


# ---- directories ----


def on_disk(store: w.Store, root: Path) -> Path:
    for path, data in store.files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    return root


def test_directory_reads_as_memory_does(tmp_path: Path) -> None:
    store, _ = checkpointed(clean=True, image=True)
    reader = QueueManagerFiles(on_disk(store, tmp_path))
    assert contents(reader.replay()) == contents(replay(store))
    assert reader.verify() == []
    assert [b.lsn for b in reader.batches()] == [b.lsn for b in files_of(store).batches()]
    assert [r.lsn for r in reader.records()] == [r.lsn for r in files_of(store).records()]
    assert reader.torn_tail() is None


def test_absent_or_empty_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedFile, match="not a directory"):
        QueueManagerFiles(tmp_path / "absent")
    with pytest.raises(DamagedFile, match="segment 1 is missing"):
        QueueManagerFiles(tmp_path).replay()


def test_link_directory_and_pipe_instead_of_a_segment_are_refused(tmp_path: Path) -> None:
    on_disk(started(), tmp_path)
    path = tmp_path / segment_path(1)
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    makers: list[Callable[[], None]] = [
        lambda: path.symlink_to(elsewhere),
        lambda: os.mkfifo(path),
        lambda: path.mkdir(),
    ]
    for make in makers:
        make()
        with pytest.raises(DamagedFile, match=r"symbolic link|not a regular file"):
            QueueManagerFiles(tmp_path).replay()
        path.rmdir() if path.is_dir() else path.unlink()


class RecyclingFiles(MemoryFiles):
    """Recycles segment 1 in the middle of the reading, just after its bytes were copied."""

    patience = 1

    def __init__(self, before: dict[str, bytes], after: dict[str, bytes]) -> None:
        super().__init__(before)
        self.after = after

    def read(self, path: str, offset: int, size: int) -> bytes:
        data = super().read(path, offset, size)
        if path == segment_path(1) and size > L.PAGE:
            self.files = self.after
            # half of the copy is already the new use of the file
            return data[:32768] + self.after["journal/spare"][32768:]
        return data


def test_segment_recycled_while_it_is_copied_is_read_again() -> None:
    store = started()
    store.append(*(w.put(n, bytes(900)) for n in range(1, 40)))
    before = store.files
    store.roll()
    put = w.put(50, b"later")
    (lsn,) = store.append(put)
    store.checkpoint(
        store.lsn,
        objects=[w.define(*Q1, "ORDERS", {})],
        messages=[store.listed(50, lsn, put, 5)],
        oldest=2,
    )
    after = store.files
    after["journal/spare"] = after.pop(segment_path(1))[:4096] + b"\xff" * 61440
    reader = QueueManagerFiles(RecyclingFiles(before, after))
    assert [message.body() for message in reader.replay().messages()] == [b"later"]


def test_message_whose_segment_was_recycled_since_is_not_served_from_other_bytes() -> None:
    store = started()
    store.append(w.put(1, b"first"))
    files = MemoryFiles(store.files)
    (message,) = QueueManagerFiles(files).replay().messages()
    page = bytearray(store.files[store.path][:4096])
    struct.pack_into("<Q", page, 56, 9)
    files.files[store.path] = bytes(page) + files.files[store.path][4096:]
    with pytest.raises(DamagedFile, match="recycled"):
        message.body()


class LiveStore:
    """Writes into a directory as a queue manager does: appends, rolls, checkpoints, recycles.

    Each batch puts the next message and gets the one before, so there is always exactly one.
    ``known`` is the newest number whose batch was written.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = w.Store(size=32768)
        self.store.append(w.define(*Q1, "ORDERS", {}))
        self.listed = b""
        self.segment = 1
        self.known = 0
        self.put(1)
        self.known = 1
        on_disk(self.store, root)
        self.recycled = 0
        self.stop = False
        self.failed: BaseException | None = None

    def run(self) -> None:
        try:
            for number in range(2, 100_000):
                if self.stop:
                    return
                self.write(number)
                if number % 5 == 0:
                    self.checkpoint()
        except BaseException as error:
            self.failed = error

    def put(self, number: int) -> None:
        record = w.put(number, number.to_bytes(8, "little"))
        more = [w.get(number - 1)] if self.known else []
        lsn = self.store.append(record, *more)[0]
        self.listed = self.store.listed(number, lsn, record, 8)
        self.segment = self.store.number

    def write(self, number: int) -> None:
        store, path, used = self.store, self.store.path, self.store.used
        self.put(number)
        if store.path != path:
            self.roll()
            used = 4096
        data = bytes(store.image[used : store.used])
        fd = os.open(self.root / store.path, os.O_WRONLY)
        os.pwrite(fd, data[:300], used)  # a reader may come between the two
        os.pwrite(fd, data[300:], used + 300)
        os.close(fd)
        self.known = number

    def roll(self) -> None:
        """A spare if there is one, else a new file, with its header before it gets its name."""
        folder = self.root / "journal"
        source = next(iter(sorted(folder.glob("spare-*.psj"))), folder / "new.tmp")
        if source.suffix == ".tmp":
            source.write_bytes(bytes(32768))
        else:
            self.recycled += 1
        fd = os.open(source, os.O_WRONLY)
        os.pwrite(fd, bytes(self.store.image[:4096]), 0)
        os.close(fd)
        source.rename(self.root / self.store.path)

    def checkpoint(self) -> None:
        store, folder = self.store, self.root / "checkpoint"
        path = store.checkpoint(
            store.lsn,
            objects=[w.define(*Q1, "ORDERS", {})],
            messages=[self.listed],
            oldest=self.segment,
        )
        folder.mkdir(exist_ok=True)
        temporary = folder / "new.tmp"
        temporary.write_bytes(store.done.pop(path))
        temporary.rename(self.root / path)
        for old in sorted(folder.glob("*.psc"))[:-1]:
            old.unlink()
        for old in sorted((self.root / "journal").glob("[0-9]*.psj")):
            if int(old.stem) < self.segment:
                old.rename(old.with_name(f"spare-{int(old.stem):010d}.psj"))
                store.done.pop(f"journal/{old.name}", None)


def test_reading_beside_a_writer_that_recycles_never_finds_damage(tmp_path: Path) -> None:
    live = LiveStore(tmp_path)
    thread = threading.Thread(target=live.run)
    thread.start()
    looks = 0
    try:
        while (looks < 60 or live.recycled < 5) and live.failed is None and looks < 2000:
            before = live.known
            (message,) = QueueManagerFiles(tmp_path).replay().messages()
            assert message.identity >= before
            found = QueueManagerFiles(tmp_path).verify()
            assert not [finding for finding in found if finding.severity == "damage"], found
            looks += 1
    finally:
        live.stop = True
        thread.join(60)
    assert live.failed is None and live.recycled >= 5
    print(f"{looks} looks, {live.known} batches, {live.recycled} segments recycled")
