"""Shared by the tests of the second reader: small stores, and helpers to read them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import writer as w

from penstock.journal import MemoryFiles, QueueManagerFiles, State

Q1, Q2 = (1, 1), (2, 1)


def started() -> w.Store:
    store = w.Store()
    store.append(w.define(*Q1, "ORDERS", {15: 5000}), w.define(*Q2, "OTHER", {2013: "for you"}))
    return store


def files_of(source: w.Store | dict[str, bytes]) -> QueueManagerFiles:
    return QueueManagerFiles(MemoryFiles(source.files if isinstance(source, w.Store) else source))


def replay(source: w.Store | dict[str, bytes]) -> State:
    return files_of(source).replay()


def numbers(source: w.Store | State, queue: str = "ORDERS") -> list[int]:
    state = source if isinstance(source, State) else replay(source)
    return [message.identity for message in state.messages(queue)]


def severities(source: w.Store | dict[str, bytes]) -> set[tuple[str, str]]:
    return {(finding.severity, finding.rule) for finding in files_of(source).verify()}


def patched(store: w.Store, offset: int, data: bytes, path: str | None = None) -> dict[str, bytes]:
    files = store.files
    path = path or store.path
    files[path] = files[path][:offset] + data + files[path][offset + len(data) :]
    return files


def flipped(store: w.Store, offset: int, path: str | None = None) -> dict[str, bytes]:
    return patched(store, offset, bytes([store.files[path or store.path][offset] ^ 1]), path)


def segment_path(number: int) -> str:
    return f"journal/{number:010d}.psj"


def checkpointed(clean: bool = False, image: bool = False) -> tuple[w.Store, int]:
    """Messages 1, 2 and 3 (chunked), message 2 backed out once; then a checkpoint of them."""
    store = started()
    bodies = {1: b"one", 2: b"two"}
    puts = {n: w.put(n, body, priority=n, ext=n == 2) for n, body in bodies.items()}
    lsns = {n: store.append(record)[0] for n, record in puts.items()}
    chunks = store.put_chunked(3, bytes(20000), 9000, unit=4)
    at = store.lsn - 4096 + 64
    first = at - 5 * 4096 - 2 * 4096
    while store.image[first - store.base + 2] != w.CHUNK | w.MUST:
        first += 4096
    listed = [  # in delivery order
        store.listed(3, at, chunks[-1], 20000, first_lsn=first, chunks=3),
        store.listed(2, lsns[2], puts[2], 3, priority=2, backouts=1, ext=True),
        store.listed(1, lsns[1], puts[1], 3, priority=1),
    ]
    kept = []
    if image:
        kept = [
            w.chunk(50, b"ab", 0, 0, 4, 0),
            w.chunk(50, b"cd", 0, 2, 4, 1),
            w.put(50, chunked=(0, 0, 4, 2), persistence=0, backout=2),
            w.put(51, b"small", persistence=0, priority=9),
        ]
    store.mark()
    store.checkpoint(
        store.lsn,
        objects=[w.define(*Q1, "ORDERS", {15: 5000}), w.define(*Q2, "OTHER", {})],
        messages=listed,
        image=kept,
        clean=clean,
    )
    return store, lsns[1]


def contents(state: State) -> object:
    messages = [(m.identity, m.body(), m.backout_count) for m in state.messages()]
    return messages, {key: o.attributes for key, o in state.objects.items()}, len(state.units)
