"""The file HEAD: which segment is the newest, on two pages that are written alternately."""

from __future__ import annotations

import os
from dataclasses import dataclass

from . import layout as L
from .errors import DamagedFile
from .files import DirectoryFiles, FileSet
from .segment import Segment, check_header_page

NAME = "HEAD"
_PAGES = 2


@dataclass(frozen=True, slots=True)
class Head:
    """The newest good page. damaged: what is wrong with the other one, None when it is good."""

    qm_id: bytes
    sequence: int
    segment_no: int
    generation: int
    timeline: int
    damaged: DamagedFile | None = None


def read_head(files: FileSet, qm_id: bytes | None) -> Head:
    """The newest good page of HEAD. Raises DamagedFile when there is none.

    qm_id: the queue manager's; None accepts any.
    """
    try:
        size = files.size(NAME)
    except FileNotFoundError as error:
        text = "is missing: it is not known whether the newest segments are there"
        raise DamagedFile(NAME, 0, "file", text) from error
    good: list[Head] = []
    bad: list[DamagedFile] = []
    for place in range(_PAGES):
        try:
            page = files.read(NAME, place * L.PAGE, L.PAGE) if place * L.PAGE < size else b""
            good.append(_read_page(page, place, qm_id))
        except DamagedFile as error:
            bad.append(error)
    if not good:
        raise bad[-1]
    newest = max(good, key=lambda head: head.sequence)
    return Head(
        newest.qm_id,
        newest.sequence,
        newest.segment_no,
        newest.generation,
        newest.timeline,
        bad[0] if bad else None,
    )


def history_of(directory: str | os.PathLike[str]) -> str:
    """Which history of which queue manager the journal in a directory is of: what LSNs are about.

    Raises DamagedFile.
    """
    head = read_head(DirectoryFiles(directory), None)
    return f"{head.qm_id.hex()} {head.timeline}"


def _read_page(page: bytes, place: int, qm_id: bytes | None) -> Head:
    start = place * L.PAGE
    try:
        check_header_page(NAME, page, "psh_page", L.HEAD_MAGIC)
    except DamagedFile as error:
        raise DamagedFile(NAME, start + error.offset, error.rule, error.text) from error
    h = L.overlay("psh_page", page)[0]
    own_id = L.raw(h.qm_id)
    if qm_id is not None and own_id != qm_id:
        raise DamagedFile(NAME, start + 32, "foreign", "belongs to another queue manager")
    sequence = int(h.sequence)
    if not sequence or sequence % _PAGES != place or not h.segment_no or not h.generation:
        raise DamagedFile(NAME, start + 48, "header", "the page contradicts itself")
    return Head(own_id, sequence, int(h.segment_no), int(h.generation), int(h.timeline))


def check_head(head: Head, newest: Segment) -> None:
    """Checks that the newest segment is the one that HEAD names, or a newer one, in which nothing
    was acknowledged. Raises DamagedFile."""
    if newest.number < head.segment_no:
        text = f"names segment {head.segment_no} as the newest, {newest.number} is the last there"
        raise DamagedFile(NAME, 56, "head", text)
    if newest.number == head.segment_no and newest.generation < head.generation:
        text = f"generation {newest.generation}, HEAD says {head.generation}: an older file"
        raise DamagedFile(newest.file, 56, "head", text)
