"""A common corpus of damaged files: each mutant is given to a start and to the second reader.

A mutant is a change of a directory that holds a queue manager which ended in order. Checksums are
made right again, so that only the meaning is wrong.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

from writer import columns

from penstock.journal import checksum
from penstock.journal import layout as L
from penstock.journal.message_columns import messages_of

Change = Callable[[Path], None]


def newest_checkpoint(folder: Path) -> Path:
    return max((folder / "checkpoint").glob("*.psc"))


def newest_segment(folder: Path) -> Path:
    return max((folder / "journal").glob("[0-9]*.psj"))


def seal_header(data: bytearray) -> None:
    """The header page's CRC, which lies in its last four bytes."""
    data[L.PAGE - 4 : L.PAGE] = struct.pack("<I", checksum.crc32c(bytes(data[: L.PAGE - 4])))


def blocks(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Offset, type, count and payload length of each block."""
    at = L.PAGE
    while at < len(data):
        kind, count, length = struct.unpack_from("<IIQ", data, at + 8)
        yield at, kind, count, length
        at += 32 + (length + 7 & ~7)


def seal_blocks(data: bytearray) -> None:
    """The CRCs of OBJECT records and of all blocks."""
    qm_id, begin_lsn = bytes(data[32:48]), bytes(data[48:56])
    seed = checksum.crc32c(qm_id + begin_lsn)
    for at, kind, _, length in list(blocks(bytes(data))):
        start, stop = at + 32, at + 32 + length
        record = start
        while kind == L.BLOCK_OBJECTS and record < stop:
            size = struct.unpack_from("<H", data, record)[0] * 8
            if size < 8:
                break  # this length is the mutation: nothing can be found behind it
            body = bytes(data[record : record + size])
            crc = checksum.crc32c(body[8:], checksum.crc32c(body[:4]))
            struct.pack_into("<I", data, record + 4, crc)
            record += size
        crc = checksum.crc32c(bytes(data[at + 8 : stop]), seed)
        struct.pack_into("<I", data, at + 4, crc)


def in_checkpoint(offset: int, value: bytes) -> Change:
    """Bytes of the newest checkpoint, with all checksums right."""

    def change(folder: Path) -> None:
        path = newest_checkpoint(folder)
        data = bytearray(path.read_bytes())
        data[offset : offset + len(value)] = value
        seal_header(data)
        seal_blocks(data)
        path.write_bytes(data)

    return change


def in_header(folder: Path) -> Iterator[tuple[str, Change]]:
    """Each field of the checkpoint's header, with several values."""
    data = newest_checkpoint(folder).read_bytes()
    for name, _, offset in L.fields("psc_header"):
        if name in ("zero", "crc", "magic"):
            continue
        size = 4 if name in ("header_size", "clean", "has_image") else 8
        size = 2 if name in ("major", "minor") else size
        old = int.from_bytes(data[offset : offset + size], "little")
        for value in {0, old + 1, old - 1, 1 << (8 * size - 1), (1 << 8 * size) - 1} - {old}:
            text = (value % (1 << 8 * size)).to_bytes(size, "little")
            yield f"header {name} {value}", in_checkpoint(offset, text)


def with_line(at: int, lines: list[bytes]) -> Change:
    """The newest checkpoint with other messages in the block at that offset."""

    def change(folder: Path) -> None:
        path = newest_checkpoint(folder)
        data = path.read_bytes()
        kind, count, length, sequence = struct.unpack_from("<IIQQ", data, at + 8)
        payload = columns(lines)
        head = data[at : at + 8] + struct.pack("<IIQQ", kind, count, len(payload), sequence)
        behind = data[at + 32 + (length + 7 & ~7) :]
        changed = bytearray(data[:at] + head + payload + behind)
        seal_blocks(changed)
        path.write_bytes(changed)

    return change


def in_lines(folder: Path) -> Iterator[tuple[str, Change]]:
    """Each field of a message, with several values."""
    data = newest_checkpoint(folder).read_bytes()
    size = L.size_of("psc_message")
    for at, kind, count, length in blocks(data):
        if kind not in (L.BLOCK_MESSAGES, L.BLOCK_UNIT_PUTS):
            continue
        found = messages_of(data[at + 32 : at + 32 + length], count).tobytes()
        lines = [found[start : start + size] for start in range(0, len(found), size)]
        middle = lines[count // 2]
        for offset in range(0, size - 8, 4):  # the last eight bytes are in no column
            old = struct.unpack_from("<I", middle, offset)[0]
            for value in {0, old ^ 1, old + 8, 0xFFFFFFFF, old ^ 1 << 24} - {old}:
                text = struct.pack("<I", value % (1 << 32))
                line = middle[:offset] + text + middle[offset + 4 :]
                change = with_line(at, [*lines[: count // 2], line, *lines[count // 2 + 1 :]])
                yield f"line +{offset} {value:#x}", change


def in_columns(folder: Path) -> Iterator[tuple[str, Change]]:
    """Each base and width of the columns, with several values."""
    data = newest_checkpoint(folder).read_bytes()
    for at, kind, _, _ in blocks(data):
        if kind not in (L.BLOCK_MESSAGES, L.BLOCK_UNIT_PUTS):
            continue
        for column in range(17):
            base, width = at + 32 + 8 * column, at + 32 + 8 * 17 + column
            old = int.from_bytes(data[base : base + 8], "little")
            for value in {0, old ^ 1, old + 8, (1 << 64) - 1} - {old}:
                change = in_checkpoint(base, value.to_bytes(8, "little"))
                yield f"column {column} base {value:#x}", change
            for value in {0, 1, 2, 3, 4, 8, 16, 255} - {data[width]}:
                yield f"column {column} width {value}", in_checkpoint(width, bytes([value]))


def in_definitions(folder: Path) -> Iterator[tuple[str, Change]]:
    """Each word of a local queue's definition, from shortly before its name on."""
    data = newest_checkpoint(folder).read_bytes()
    start = data.index(b"MUTANT.Q".ljust(48)) - 16
    for offset in range(0, 300, 4):
        at = start + offset
        old = struct.unpack_from("<I", data, at)[0]
        for value in {0, old ^ 1, old ^ 1 << 16, 0xFFFFFFFF, 0x20202020} - {old}:
            yield f"definition +{offset} {value:#x}", in_checkpoint(at, struct.pack("<I", value))


def a_link(path: str) -> Change:
    """A second name of the file."""
    return lambda folder: os.link(folder / path, folder / "another-name")


def a_symlink(path: str) -> Change:
    def change(folder: Path) -> None:
        (folder / path).rename(folder / "elsewhere")
        (folder / path).symlink_to(folder / "elsewhere")

    return change


def a_fifo(path: str) -> Change:
    def change(folder: Path) -> None:
        (folder / path).unlink()
        os.mkfifo(folder / path)

    return change


def of_files(folder: Path) -> Iterator[tuple[str, Change]]:
    """What else may stand where a file should be."""
    segment = str(newest_segment(folder).relative_to(folder))
    checkpoint = str(newest_checkpoint(folder).relative_to(folder))
    for path in ("lock", "HEAD", segment, checkpoint):
        yield f"{path}: hard link", a_link(path)
        yield f"{path}: symbolic link", a_symlink(path)
        yield f"{path}: FIFO", a_fifo(path)
        yield f"{path}: missing", lambda folder, path=path: (folder / path).unlink()


def in_head(folder: Path) -> Iterator[tuple[str, Change]]:
    """Each field of HEAD's pages: of both, of the newer one; without checksums made right, too."""
    for name, _, offset in L.fields("psh_page"):
        if name in ("zero", "crc", "minor", "compatible"):
            continue
        for value in (0, 1, 2, 0xFFFF):
            for places in ((0, 1), (1,)):
                for seal in (True, False):
                    text = f"HEAD {name} {value} in {places} {'sealed' if seal else 'raw'}"
                    yield text, page_of_head(offset, struct.pack("<H", value), places, seal)


def page_of_head(offset: int, value: bytes, places: tuple[int, ...], seal: bool) -> Change:
    """Bytes of pages of HEAD."""

    def change(folder: Path) -> None:
        data = (folder / "HEAD").read_bytes()
        pages = [bytearray(data[: L.PAGE]), bytearray(data[L.PAGE :])]
        for place in places:
            pages[place][offset : offset + len(value)] = value
            if seal:
                seal_header(pages[place])
        (folder / "HEAD").write_bytes(b"".join(pages))

    return change


def corpus(folder: Path) -> Iterator[tuple[str, Change]]:
    """All mutants of the queue manager in that folder, each with its name."""
    yield from of_files(folder)
    yield from in_head(folder)
    yield from in_header(folder)
    yield from in_lines(folder)
    yield from in_columns(folder)
    yield from in_definitions(folder)
