"""Planted faults: the core with one thing wrong at a time, and the layer that must notice.

    python tests/crash/mutations.py --root . --objects build/crash/plain [--only WORD] [--seed S]

Each mutation is a change of text in a copy of one or more core files (below build/). It must apply
exactly once, compile, and make the named layer fail with status 1 (a promise was broken) or by an
assertion of the core; anything else means that the layer is blind. A layer is t3, t4, t12, a
scenario of the store points (t2/NAME), a pair of operations of the schedules (t9/FIRST+SECOND) or
the C test of a module (c/NAME). The unchanged programs must have been built before (make programs,
t2, t9, and the C tests): the objects of unchanged files are taken from there. Prints a line a
mutation; status 0 when every one was caught.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

from mutations_compaction import COMPACTION
from mutations_disk import DISK
from mutations_files import FILES
from mutations_leader import LEADER
from mutations_long_units import LONG_UNITS
from mutations_recovery import RECOVERY
from mutations_units import UNITS, Mutation

FLAGS = ["-std=gnu11", "-O2", "-g", "-w", "-DMQX_ASSERTIONS"]
C_TEST_FLAGS: list[str] = []
T2_FLAGS = ["-O1", "-DMQX_ASSERTIONS", "-fsanitize=thread", "-fno-builtin-memcpy"]
T2_WRAPPED = (
    "memcpy",
    "mmap",
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_mutex_unlock",
    "pthread_mutex_consistent",
)
T2_TESTS = ("store_points", "store_hook", "crash_fixture", "audit", "dynamic")
T9_WRAPPED = (*T2_WRAPPED, "syscall", "pthread_mutex_timedlock", "mqx_clock_sleep_us")
T9_TESTS = ("schedules", "operations", "turns", *T2_TESTS[1:])
WRAPPED = (
    "mqx_host_info_read",
    "mqx_random_bytes",
    "mqx_clock_coarse_us",
    "mqx_life_thread_start",
    "mqx_life_thread_id",
    "mqx_life_thread_end",
    "mqx_thread_exists",
    "mqx_thread_has_ended",
    "mqx_life_thread_start_time",
    "mqx_life_table_write",
)
ARGUMENTS = {"t3": ["--count", "250000"], "t4": ["--count", "12000"], "t12": ["--count", "29"]}
TIMEOUT_S = 400
TIMEOUT_C_TEST_S = 120


MUTATIONS = (
    Mutation(
        "the flush is left out (no data sync)",
        "t3",
        (("journal/group_commit.c", "sync ? MQX_IO_DSYNC : 0);", "0);"),),
    ),
    Mutation(
        "acknowledged before the flush",
        "t3",
        (
            (
                "unit/unit.c",
                "    if (unit->decided_lsn != 0) {\n        status = mqx_flush_to(",
                "    if (unit->decided_lsn == 1) {\n        status = mqx_flush_to(",
            ),
        ),
    ),
    Mutation(
        "no checksum in recovery",
        "t3",
        (
            (
                "format/segment.c",
                "    return records == header->record_count &&\n           header->records ==",
                "    return records == header->record_count ||\n           header->records ==",
            ),
            (
                "format/segment.c",
                "           header->hash == mqx_flush_batch_hash(position, header);",
                "           (mqx_flush_batch_hash(position, header) | 1) != 0;",
            ),
            (
                "format/record_codec.c",
                "return record_crc(at, length) == record->crc ? MQX_OK : MQX_TORN;",
                "return record_crc(at, length) != 0 ? MQX_OK : MQX_OK;",
            ),
        ),
    ),
    Mutation(
        "a new commit shares a sector with an old one",
        "t3",
        (
            (
                "journal/ring.c",
                "const uint64_t end = mqx_round_up(journal->tail, MQX_PAGE_SIZE);",
                "const uint64_t end = mqx_round_up(journal->tail, 64);",
            ),
            (
                "journal/group_commit.c",
                "return mqx_round_up(sealed->start + sealed->length, MQX_PAGE_SIZE);",
                "return mqx_round_up(sealed->start + sealed->length, 64);",
            ),
            (
                "recovery/tail_scan.c",
                "mqx_round_up(header->length, MQX_PAGE_SIZE) > scan->limit_lsn - lsn",
                "mqx_round_up(header->length, 64) > scan->limit_lsn - lsn",
            ),
            (
                "recovery/tail_scan.c",
                "const uint64_t end = mqx_round_up(scan->end_lsn + batch->length, MQX_PAGE_SIZE);",
                "const uint64_t end = mqx_round_up(scan->end_lsn + batch->length, 64);",
            ),
            (
                "recovery/tail_scan.c",
                "if (lsn + MQX_PAGE_SIZE > scan->limit_lsn) {",
                "if (lsn + 64 > scan->limit_lsn) {",
            ),
            (
                "recovery/tail_scan.c",
                "batch->lsn % MQX_PAGE_SIZE == 0",
                "batch->lsn % 64 == 0",
            ),
            (
                "recovery/tail_scan.c",
                "for (uint64_t offset = from; offset < scan->segment->size; offset += SECTOR) {",
                "for (uint64_t offset = from; offset + SECTOR <= scan->segment->size;\n"
                "         offset += SECTOR) {",
            ),
            (
                "format/segment.c",
                "header->prev_end_lsn % MQX_PAGE_SIZE != 0",
                "header->prev_end_lsn % 64 != 0",
            ),
        ),
    ),
    Mutation(
        "no directory flush after a segment's rename",
        "t3",
        (
            (
                "journal/segment_pool.c",
                "        err = io->ops->sync_dir(io, journal_dir);\n",
                "        err = 0;\n",
            ),
        ),
    ),
    Mutation(
        "no directory flush after a checkpoint's rename",
        "t3",
        (
            (
                "recovery/checkpoint_file.c",
                "        err = io->ops->sync_dir(io, writer->dir);",
                "        err = 0;",
            ),
        ),
    ),
    Mutation(
        "a checkpoint is not flushed before its rename",
        "t3",
        (
            (
                "recovery/checkpoint_file.c",
                "    if (err == 0) {\n"
                "        err = io->ops->sync(io, writer->fd);\n    }\n    if (err",
                "    if (err",
            ),
        ),
    ),
    Mutation(
        "a segment's header is not flushed before its rename",
        "t3",
        (
            (
                "journal/segment_pool.c",
                "header, sizeof *header, 0, MQX_IO_DSYNC);",
                "header, sizeof *header, 0, 0);",
            ),
        ),
    ),
    Mutation(
        "the old journal is freed before the new checkpoint is whole",
        "t3",
        (
            (
                "recovery/checkpoint.c",
                "    status = mqx_checkpoint_file_finish(",
                "    mqx_ignore(mqx_journal_retire(store, ckpt->begin_segment, "
                "ckpt->begin_lsn, ckpt->use.live));\n"
                "    status = mqx_checkpoint_file_finish(",
            ),
        ),
    ),
    Mutation(
        "prev_end_lsn is ignored: a second crash takes the old torn tail for damage",
        "t3",
        (
            (
                "recovery/restart_read.c",
                "const uint64_t limit = has_next ? found->entry.end_lsn",
                "const uint64_t limit = has_next && index > 4096 ? found->entry.end_lsn",
            ),
        ),
    ),
    Mutation(
        "a restart believes bytes that were never flushed",
        "t3",
        (
            (
                "recovery/restart_read.c",
                "const int err = restart->store->io->ops->sync(restart->store->io, fd);",
                "const int err = 0;",
            ),
        ),
    ),
    Mutation(
        "a unit without its COMMIT takes effect",
        "t3",
        (
            (
                "recovery/replay_units.c",
                "end_unit(replay, unit, false); /* dropping",
                "end_unit(replay, unit, true); /* dropping",
            ),
        ),
    ),
    Mutation(
        "chunks are not flushed before their COMMIT",
        "t3",
        (
            (
                "journal/group_commit.c",
                "const bool sync = (durably && journal->unsynced == 0) || first;",
                "const bool sync = durably || first;",
            ),
            (
                "journal/group_commit.c",
                "const int err = store->io->ops->sync(store->io, fd);",
                "const int err = 0;",
            ),
        ),
    ),
    Mutation(
        "a checkpoint of a damaged region replaces the older one unrehearsed",
        "c/rehearsal",
        (
            (
                "recovery/checkpoint.c",
                "= mqx_rehearsal_compare(ckpt->rehearsal, name);",
                "= end_lsn == 1 ? mqx_rehearsal_compare(ckpt->rehearsal, name) : MQX_OK;",
            ),
        ),
    ),
    Mutation(
        "the consumed image is not marked",
        "t3",
        (
            (
                "recovery/restart.c",
                "if (restart->report.image_messages > 0) {",
                "if (restart->report.image_messages == UINT64_MAX) {",
            ),
        ),
    ),
    Mutation(
        "the checkpoint's begin LSN passes over units that are decided and not shown",
        "c/checkpoint_begin",
        (
            (
                "recovery/checkpoint_begin.c",
                "return context->state == MQX_CTX_DECIDED ? context->decided_lsn : 0;",
                "return context->state == MQX_CTX_DECIDED ? context->resolver : 0;",
            ),
        ),
    ),
    Mutation(
        "non-persistent messages of NPMCLASS(NORMAL) come back",
        "t3",
        (
            (
                "queue/queue.c",
                "if (mqx_load_relaxed(&queue->np_life) == MQX_NP_TO_RESTART) {",
                "if (mqx_load_relaxed(&queue->np_life) == 77) {",
            ),
        ),
    ),
    Mutation(
        "a failed flush is believed",
        "t4",
        (
            (
                "journal/group_commit.c",
                ": mqx_journal_write_failed(store, err,\n"
                "                                                                       "
                '"writing the journal");',
                ": MQX_OK;",
            ),
        ),
    ),
    Mutation(
        "the queue manager goes on after a failed flush",
        "t4",
        (
            (
                "journal/segment_pool.c",
                "    MQX_ASSERT(what != NULL);\n"
                "    mqx_region_stop_because(&store->region, what, -negated_errno);\n",
                "    (void)store;\n",
            ),
        ),
    ),
    Mutation(
        "a failed flush is tried again in another place",
        "t4",
        (
            (
                "journal/group_commit.c",
                ": mqx_journal_write_failed(store, err,\n"
                "                                                                       "
                '"writing the journal");',
                ': mqx_fail(MQRC_OBJECT_DAMAGED, "try again");',
            ),
        ),
    ),
    Mutation(
        "the page cache is believed after a failed flush",
        "t4",
        (
            (
                "process/attach.c",
                "orphan->broken ? mqx_recover",
                "orphan->broken && 0 ? mqx_recover",
            ),
        ),
    ),
    Mutation(
        "a limit of one process stops all",
        "t4",
        (
            (
                "journal/group_commit.c",
                ": mqx_io_write_is_own_fault(err) ? own_write_failed(store, err)",
                ": mqx_io_write_is_own_fault(err) && !store ? own_write_failed(store, err)",
            ),
        ),
    ),
    Mutation(
        "a commit that could not be written is reported as refused",
        "t4",
        (
            (
                "journal/group_commit.c",
                "? mqx_leadership_stop(store) : status;",
                "? mqx_leadership_reason(store) : status;",
            ),
        ),
    ),
    Mutation(
        "a put that is refused stays on the queue",
        "t4",
        (
            (
                "api/put.c",
                "    status = mqx_put_append(call);\n    if (status != MQX_OK) {\n"
                "        return undo_put(call, status);",
                "    status = mqx_put_append(call);\n    if (status != MQX_OK) {\n"
                "        return status;",
            ),
        ),
    ),
    Mutation(
        "a descriptor is lost when a header cannot be written",
        "t4",
        (
            (
                "journal/segment_pool.c",
                "    const int closed = io->ops->close(io, fd);\n    return err",
                "    const int closed = err != 0 ? 0 : io->ops->close(io, fd);\n    return err",
            ),
        ),
    ),
    Mutation(
        "a prepared unit whose flush failed is reported as not prepared",
        "t4",
        (
            (
                "api/prepare.c",
                "    unit->context = next_context; /* the old one belongs to no process now */\n"
                "    return (flags & MQE_PREPARE_LAZY) != 0 ? MQX_OK"
                " : mqx_flush_decided(store, lsn);",
                "    unit->context = next_context; /* the old one belongs to no process now */\n"
                "    status = mqx_flush_decided(store, lsn);\n"
                "    return status == MQX_OK ? MQX_OK : MQRC_STORAGE_MEDIUM_FULL;",
            ),
        ),
    ),
    Mutation(
        "damage in the middle is cut off like a torn tail",
        "t12",
        (
            (
                "recovery/tail_scan.c",
                "{'C', 0, 0, 1, -1, -1, MQX_TAIL_DAMAGE,",
                "{'C', 0, 0, 1, -1, -1, MQX_TAIL_TORN,",
            ),
        ),
    ),
    Mutation(
        "durable marks are not looked for",
        "t12",
        (
            (
                "recovery/tail_scan.c",
                "*mark = batch->durable_lsn > *mark ? batch->durable_lsn : *mark;",
                "*mark = 0;",
            ),
        ),
    ),
    Mutation(
        "a segment header's checksum is ignored",
        "t12",
        (
            (
                "format/segment.c",
                "header->crc != mqx_crc32c(0, header, offsetof(struct psj_segment, crc))",
                "header->crc == 1 && header->size == 1",
            ),
        ),
    ),
    Mutation(
        "a checkpoint block's checksum is ignored",
        "t12",
        (
            (
                "recovery/checkpoint_file.c",
                "out_block->crc != block_crc(reader->seed, out_block, payload)",
                "(out_block->crc == 1 && block_crc(reader->seed, out_block, payload) == 2)",
            ),
        ),
    ),
    Mutation(
        "a close that deletes returns before its flush",
        "t3",
        (
            (
                "catalog/catalog_delete.c",
                "        status = mqx_flush_decided(store, end_lsn);",
                "        status = end_lsn == 1 ? mqx_flush_decided(store, end_lsn) : MQX_OK;",
            ),
        ),
    ),
    Mutation(
        "a queue is open before its definition is flushed",
        "t3",
        (
            (
                "catalog/catalog.c",
                "    status = mqx_flush_decided(store, out->end_lsn);\n    return status",
                "    status = MQX_OK;\n    return status",
            ),
        ),
    ),
    Mutation(
        "temporary queues stand in the checkpoint",
        "t3",
        (
            (
                "catalog/catalog_find.c",
                "is_stored(object) &&\n                     !mqx_object_is_temporary(object);",
                "is_stored(object);",
            ),
        ),
    ),
    Mutation(
        "a preparation is acknowledged before its flush",
        "t3",
        (
            (
                "api/prepare.c",
                "    unit->context = next_context; /* the old one belongs to no process now */\n"
                "    return (flags & MQE_PREPARE_LAZY) != 0 ? MQX_OK"
                " : mqx_flush_decided(store, lsn);",
                "    unit->context = next_context; /* the old one belongs to no process now */\n"
                "    return lsn == 1 ? mqx_flush_decided(store, lsn) : MQX_OK;",
            ),
        ),
    ),
    Mutation(
        "the end of prepared units is acknowledged before its flush",
        "t3",
        (
            (
                "unit/prepared.c",
                "    status = mqx_flush_decided(resolution->store, leader->decided_lsn);\n",
                "    status = MQX_OK;\n",
            ),
        ),
    ),
    Mutation(
        "of several prepared units that were committed together a replay commits one",
        "t3",
        (
            (
                "recovery/replay_prepared.c",
                "    for (uint32_t i = 0; i < record->unit_count && status == MQX_OK; i++) {",
                "    for (uint32_t i = 0; i < 1 && status == MQX_OK; i++) {",
            ),
        ),
    ),
    Mutation(
        "a restart forgets prepared units",
        "t3",
        (("recovery/restart.c", "status = mqx_load_prepared(restart);", "status = MQX_OK;"),),
    ),
    Mutation(
        "a checkpoint carries no prepared units",
        "t3",
        (
            (
                "recovery/units_in_flight.c",
                "        if (replay->prepared[i].unit.id != 0) {",
                "        if (replay->prepared[i].unit.id == UINT64_MAX) {",
            ),
        ),
    ),
    Mutation(
        "the image of a message stands at the wrong place of its prepared unit",
        "t3",
        (("recovery/replay_prepared.c", "image->before <= passed", "image->before < passed"),),
    ),
    Mutation(
        "a backout gives back non-persistent messages that a restart has taken",
        "t3",
        (
            (
                "recovery/load.c",
                ".taken = pending != NULL && pending->taken};",
                ".taken = pending != NULL && pending->taken && 0};",
            ),
        ),
    ),
    Mutation(
        "a consumed image of an older checkpoint passes for the newest one's",
        "t3",
        (("recovery/replay.c", "lsn >= replay->checkpoint_end;", "lsn >= 0;"),),
    ),
    Mutation(
        "records are not verified when the journal is read",
        "t12",
        (
            (
                "format/record_codec.c",
                "return record_crc(at, length) == record->crc ? MQX_OK : MQX_TORN;",
                "return record_crc(at, length) != 0 ? MQX_OK : MQX_OK;",
            ),
        ),
    ),
    Mutation(
        "the leader publishes a page more than it wrote",
        "t3",
        (
            (
                "journal/group_commit.c",
                "        mqx_journal_set_durable(journal, flight->end);",
                "        mqx_journal_set_durable(journal, flight->end + MQX_PAGE_SIZE);",
            ),
        ),
    ),
    Mutation(
        "the leader does not move `written` behind its flight",
        "t3",
        (
            (
                "journal/group_commit.c",
                "    remove_written(region, flight->end);",
                "    remove_written(region, flight->start);",
            ),
        ),
    ),
    Mutation(
        "the leader goes on as if the file had not been synced",
        "c/group_commit",
        (("journal/group_commit.c", "    mqx_store_release(&journal->unsynced, 0);\n", ""),),
    ),
    Mutation(
        "a roll gives the segment an old generation",
        "t3",
        (
            (
                "journal/segment_pool.c",
                ".generation = journal->next_generation,\n        .restart_epoch",
                ".generation = closed->generation,\n        .restart_epoch",
            ),
        ),
    ),
    Mutation(
        "a restart gives the generation of the newest segment again",
        "t3",
        (
            (
                "recovery/restart.c",
                "(newest->entry.generation > known ? newest->entry.generation : known) + 1;",
                "(newest->entry.generation > known ? newest->entry.generation : known);",
            ),
        ),
    ),
    Mutation(
        "units of the last epoch are not dropped at the end of the tail",
        "t3",
        (
            (
                "recovery/restart_read.c",
                "    if (status == MQX_OK) {\n        mqx_replay_end_epoch(&restart->replay);\n",
                "    if (status == MQX_OK) {\n",
            ),
        ),
    ),
    Mutation(
        "a checkpoint's block is written again with the next one",
        "t3",
        (
            (
                "recovery/checkpoint_file.c",
                "    writer->type = 0;\n    writer->count = 0;\n    writer->used = 0;\n    return",
                "    writer->count = 0;\n    writer->used = 0;\n    return",
            ),
        ),
    ),
    Mutation(
        "a unit that ends cuts off those behind it in the replay's table",
        "c/replay_units",
        (
            (
                "recovery/replay_units.c",
                "        if (((at - home) & mask) >= ((at - hole) & mask)) {",
                "        if (((at - home) & mask) > mask) {",
            ),
        ),
    ),
    Mutation(
        "every process makes each round of maintenance",
        "c/maintenance",
        (("process/maintenance.c", "return now_us < last_us || now", "return true || now"),),
    ),
    Mutation(
        "an idle process keeps the mappings of retired segments",
        "c/journal_reader",
        (
            (
                "journal/journal_reader.c",
                "        if (file->at != NULL && file->views == 0 && !is_current(store, file)) {",
                "        if (file->at != NULL && file->views > 1 && !is_current(store, file)) {",
            ),
        ),
    ),
    Mutation(
        "a body that leaves the region stays in the count of its budget",
        "c/message_body",
        (("queue/queue.c", "stripe->body_bytes + one * payload", "stripe->body_bytes + payload"),),
    ),
    Mutation(
        "a process takes a lock over memory that it has not mapped",
        "c/reach",
        (("region/lock.c", "    if (mqx_reach_all(region)) {", "    if (true) {"),),
    ),
)


class Workshop:
    """The folder where mutated programs are built."""

    def __init__(self, root: Path, objects: Path) -> None:
        self.root = root
        self.objects = objects
        self.folder = root / "build" / "crash" / "mutation"
        self.core = self.folder / "csrc"
        shutil.rmtree(self.core, ignore_errors=True)
        shutil.copytree(root / "csrc", self.core)

    def change(self, mutation: Mutation) -> set[str]:
        """Changes the copies; the names of the files. ValueError when one does not apply."""
        texts: dict[str, str] = {}
        for name, old, new in mutation.changes:
            text = texts.get(name) or (self.root / "csrc" / name).read_text()
            if text.count(old) != 1:
                raise ValueError(f"{name}: {text.count(old)} places for {old!r}")
            texts[name] = text.replace(old, new)
        for name, text in texts.items():
            (self.core / name).write_text(text)
        return set(texts)

    def restore(self, names: set[str]) -> None:
        for name in names:
            (self.core / name).write_bytes((self.root / "csrc" / name).read_bytes())

    def compile(self, names: set[str], flags: list[str]) -> list[str]:
        """The objects of the changed files."""
        changed = []
        for name in names:
            to = self.folder / f"{Path(name).stem}.o"
            include = [f"-I{self.core}", f"-I{self.core / 'include'}"]
            run(["gcc", *FLAGS, *flags, *include, "-c", str(self.core / name), "-o", str(to)])
            changed.append(str(to))
        return changed

    def build(self, names: set[str], layer: str) -> list[str]:
        """The command of the layer: its program, linked with the changed files and the unchanged
        objects of all others, and its arguments.
        """
        kind, _, name = layer.partition("/")
        if kind == "c":
            return [str(self.build_c_test(names, name))]
        if kind == "t2":
            program = self.build_hooked(names, T2_TESTS, T2_WRAPPED)
            return [str(program), "--scenario", name, "--count", "1000000", "--pairs", "0"]
        if kind == "t9":
            program = self.build_hooked(names, T9_TESTS, T9_WRAPPED)
            first, _, second = name.partition("+")
            return [str(program), "--first", first, "--second", second, "--count", "20000"]
        return [str(self.build_layer(names, layer)), *ARGUMENTS[layer]]

    def build_c_test(self, names: set[str], module: str) -> Path:
        objects = self.root / "build" / "c" / "plain"
        changed, stems = self.compile(names, C_TEST_FLAGS), {Path(name).stem for name in names}
        rest = [str(o) for o in sorted((objects / "core").rglob("*.o")) if o.stem not in stems]
        found = sorted((objects / "tests").glob(f"*/test_{module}.o"))
        test = [*map(str, found), *changed, *rest]
        program = self.folder / f"test_{module}"
        run(["gcc", "-o", str(program), *test, str(objects / "libfixtures.a"), "-lpthread"])
        return program

    def build_hooked(
        self, names: set[str], parts: tuple[str, ...], wrapped: tuple[str, ...]
    ) -> Path:
        """A program of calls at each store; the first of its parts has the main function."""
        objects = self.root / "build" / "crash" / "t2"
        changed, stems = self.compile(names, T2_FLAGS), {Path(name).stem for name in names}
        rest = [str(o) for o in sorted((objects / "core").rglob("*.o")) if o.stem not in stems]
        tests = [str(objects / "tests" / f"{part}.o") for part in parts]
        wrap = ",".join(f"--wrap={name}" for name in wrapped)
        program = self.folder / parts[0]
        run(["gcc", f"-Wl,{wrap}", "-o", str(program), *changed, *rest, *tests, "-lpthread"])
        return program

    def build_layer(self, names: set[str], layer: str) -> Path:
        changed, stems = self.compile(names, []), {Path(name).stem for name in names}
        core = self.root / "build" / "c" / "plain" / "core"
        rest = [str(o) for o in sorted(core.rglob("*.o")) if o.stem not in stems]
        crash = sorted((self.objects / "crash").glob("*.o"))
        other = {"no_memory", "failing_alloc"}  # of the layer T5, which is built in the same folder
        common = [str(o) for o in crash if not o.stem.startswith("run_") and o.stem not in other]
        helpers = [str(o) for o in sorted((self.objects / "c").rglob("*.o"))]
        program = self.folder / f"run_{layer}"
        wrap = ",".join(f"--wrap={name}" for name in WRAPPED)
        main_object = str(self.objects / "crash" / f"run_{layer}.o")
        objects = [main_object, *common, *helpers, *changed, *rest]
        run(["gcc", *FLAGS, f"-Wl,{wrap}", "-o", str(program), *objects, "-lpthread"])
        return program


def run(command: list[str]) -> None:
    """Runs a compiler; raises with its output."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:6])} ...: {result.stderr[-2000:]}")


def verdict_of(command: list[str], layer: str, seed: int) -> tuple[bool, str]:
    """(caught, how): the first violation that is reported, or what happened instead."""
    arguments = [] if layer.startswith("c/") else ["--seed", str(seed)]
    most = TIMEOUT_C_TEST_S if layer.startswith("c/") else TIMEOUT_S
    try:
        result = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, check=False, timeout=most
        )
    except subprocess.TimeoutExpired as late:  # it may have reported a violation before it hung
        said = late.stdout or b""
        found = complaints(layer, said if isinstance(said, str) else said.decode(), "")
        return bool(found), (found or [f"still running after {most} s"])[0][:160]
    found = complaints(layer, result.stdout, result.stderr)
    refusals = (1, 3) if layer.startswith(("t2/", "t9/")) else (1,)  # 3: fixture_die()
    if result.returncode in refusals and found:
        return True, found[0][:160]
    if layer.startswith("c/") and result.returncode == -11:
        return True, "a step outside the memory that there is"
    if result.returncode == -6:  # SIGABRT: mqx_check
        lines = [line for line in result.stderr.splitlines() if line]
        return True, ("stopped by an assertion: " + (lines[0] if lines else ""))[:160]
    return False, f"status {result.returncode}: not noticed"


def complaints(layer: str, output: str, errors: str) -> list[str]:
    """The line with which a layer reports a violation."""
    lines = output.splitlines()
    if layer.startswith("c/"):
        return [before for before, line in pairwise(lines) if "FAILED" in line]
    if layer.startswith("t2/"):
        return [line for line in errors.splitlines() + lines if line.strip()][-1:]
    if layer.startswith("t9/"):
        return [line for line in errors.splitlines() if line.startswith("FAILED")]
    return [line for line in lines if line.startswith("VIOLATION")]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--root", type=Path, default=Path())
    parser.add_argument("--objects", type=Path, required=True)
    parser.add_argument("--only", default="", help="a word of the mutations to try")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    workshop = Workshop(options.root.resolve(), options.objects.resolve())
    every = (*MUTATIONS, *UNITS, *LONG_UNITS, *FILES, *DISK, *COMPACTION, *RECOVERY, *LEADER)
    wanted = [p for p in every if options.only in f"{p.what} {p.layer}"]
    missed = 0
    for number, mutation in enumerate(wanted, 1):
        start = time.monotonic()
        names: set[str] = set()
        try:
            names = workshop.change(mutation)
            caught, how = verdict_of(
                workshop.build(names, mutation.layer), mutation.layer, options.seed
            )
        except (ValueError, RuntimeError) as error:
            caught, how = False, f"does not apply: {error}"
        workshop.restore(names or {name for name, _, _ in mutation.changes})
        missed += not caught
        mark = "caught" if caught else "MISSED"
        seconds = time.monotonic() - start
        print(
            f"{number:2} {mark} {mutation.layer:16} {seconds:5.1f} s  {mutation.what}: {how}",
            flush=True,
        )
    print(f"planted faults: {len(wanted) - missed} of {len(wanted)} caught, seed {options.seed}")
    return 1 if missed or not wanted else 0


if __name__ == "__main__":
    sys.exit(main())
