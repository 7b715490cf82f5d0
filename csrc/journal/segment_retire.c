/*
 * segment_retire.c - segments that no checkpoint needs any more: they become spares or reserved,
 * are unlinked, or move to the archive. And spares that the orderly end leaves to nobody. See
 * journal.h for terms, segment_pool.c for the states of the segment table.
 *
 * A retirement with linear logging, under the roll lock:
 *   1. The file moves to the archive, in one step of the file system: it is in one place or in the
 *      other, whole. No file there is ever replaced: a name that is taken is left alone
 *      (move_to_archive). After a death before the table knows: the next retirement finds the name
 *      gone and continues with step 2. After a power cut that undoes the move: the restart finds
 *      the segment where it was, and the checkpoint after it retires it again.
 *   2. Archive and journal directory are flushed, the archive first: the name appears on the
 *      medium before it is seen to be gone.
 *   3. One ring micro-transaction frees the table's entry.
 *
 * Locks and errors as in segment_pool.c.
 */
#include "journal/journal_private.h"

#include "base/error.h"
#include "format/segment.h"
#include "journal/segment_pin.h"
#include "region/damage.h"

#include <errno.h>

#define SET32(at, value) mqx_undo_store32(region->base, &journal->ring_lock, (at), (value))
#define SET64(at, value) mqx_undo_store64(region->base, &journal->ring_lock, (at), (value))

enum {
    SPARES_KEPT_MIN = 2,   /* full-size files that retiring keeps */
    SPARES_KEPT_MAX = 8,
};

/* ---- what becomes of files ----
 *
 * They are kept as spares rather than removed, up to what the journal uses between two checkpoints:
 * a busy queue manager then writes over the same files again and again.
 */

/* 256 MiB, or a quarter of a small limit. */
uint64_t mqx_journal_interval(const struct mqx_journal *journal)
{
    const uint64_t usual = 256ull << 20;
    MQX_ASSERT(journal != NULL);
    MQX_ASSERT(journal->limit > 0);
    return journal->limit / 4 < usual ? journal->limit / 4 : usual;
}

/* What is used from one checkpoint to the next: a file that is written over need not be made,
 * filled with zeroes and flushed while others want the disk. */
static uint32_t spares_kept(const struct mqx_journal *journal)
{
    const uint64_t used = mqx_journal_interval(journal) / mqx_journal_largest_segment(journal) + 1;
    MQX_ASSERT(used >= 1);
    return used < SPARES_KEPT_MIN   ? SPARES_KEPT_MIN
           : used > SPARES_KEPT_MAX ? SPARES_KEPT_MAX
                                    : (uint32_t)used;
}

/* The oldest segment of those in which nothing is needed any more; -1: there is none. The begin
 * segment stays even when all its batches lie below the begin LSN: a restart begins there. */
static int next_retired(const struct mqx_region *region, uint64_t begin_segment, uint64_t begin_lsn,
                        const uint32_t *live)
{
    const struct mqx_journal *journal = region->journal;
    int found = -1;
    MQX_ASSERT(mqx_lock_held(region, &journal->roll_lock));
    MQX_ASSERT(live != NULL);
    for (int i = 0; i < MQX_SEGMENT_MAX; i++) {
        const struct mqx_segment *segment = &journal->segment[i];
        if (segment->state == MQX_SEG_FULL && segment->number < begin_segment && live[i] == 0 &&
            (uint32_t)i + 1 != journal->active && !mqx_pin_holds(journal, segment->number) &&
            (found < 0 || segment->number < journal->segment[found].number)) {
            found = i;
        }
    }
    if (found >= 0 && MQX_UNLIKELY(journal->segment[found].end_lsn > begin_lsn ||
                                   !mqx_segment_is_sound(journal, (uint32_t)found))) {
        (void)mqx_region_damage(region, "state of a journal segment", (uint64_t)found);
        return -1;
    }
    return found;
}

/* After the file has its new name, or none (new_state FREE). The new generation makes cached
 * mappings of the old use invalid. */
static int set_retired(struct mqx_store *store, uint32_t index, uint32_t new_state, uint64_t number)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    struct mqx_segment *segment = &journal->segment[index];
    MQX_ASSERT(new_state != MQX_SEG_ACTIVE && new_state != MQX_SEG_FULL);
    MQX_ASSERT((new_state == MQX_SEG_FREE) == (number == 0));
    MQX_ASSERT(index + 1 != journal->active);
    int status = mqx_ring_take(region);
    if (status == MQX_OK) {
        SET32(&segment->state, new_state);
        SET64(&segment->number, number);
        SET64(&segment->generation, journal->next_generation);
        SET64(&journal->next_generation, journal->next_generation + 1);
        if (new_state != MQX_SEG_SPARE) {
            SET64(&journal->used_bytes, journal->used_bytes - segment->size);
        }
        mqx_ring_sum_segment(region, segment);
        mqx_ring_sum(region);
        mqx_undo_commit(&journal->ring_lock);
        mqx_lock_drop(region, &journal->ring_lock);
    }
    return status;
}

/* Has the retired segment's file other names (cp -al)? It is not used again then: the copy keeps
 * what it has. */
static bool is_linked(struct mqx_store *store, uint32_t index)
{
    struct mqx_io *io = store->io;
    struct mqx_io_stat facts = {.links = 1};
    char name[MQX_FILE_NAME_SIZE];
    MQX_ASSERT(index < MQX_SEGMENT_MAX);
    MQX_ASSERT(store->journal_dir >= 0);
    mqx_file_name(name, MQX_FILE_SEGMENT, store->region.journal->segment[index].number);
    const int fd = io->ops->open(io, store->journal_dir, name, MQX_IO_LINKED, 0);
    if (fd >= 0) {
        mqx_ignore(io->ops->stat(io, fd, &facts));
        (void)io->ops->close(io, fd);
    }
    return facts.links > 1;
}

/* `keep`: what its file becomes; FREE: nothing. A file that is already gone (a process died between
 * name and table) only leaves the table. */
static int retire_one(struct mqx_store *store, uint32_t index, uint32_t keep)
{
    struct mqx_io *io = store->io;
    const struct mqx_segment *segment = &store->region.journal->segment[index];
    char name[MQX_FILE_NAME_SIZE], spare[MQX_FILE_NAME_SIZE];
    MQX_ASSERT(segment->state == MQX_SEG_FULL);
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.journal->roll_lock));
    mqx_file_name(name, MQX_FILE_SEGMENT, segment->number);
    if (keep != MQX_SEG_FREE) {
        const uint64_t number = mqx_journal_unit_id(store);
        mqx_file_name(spare, keep == MQX_SEG_SPARE ? MQX_FILE_SPARE : MQX_FILE_RESERVED, number);
        int err = io->ops->rename(io, store->journal_dir, name, spare);
        if (err == 0) { /* the old name must not come back once the header has another one */
            err = io->ops->sync_dir(io, store->journal_dir);
            return err == 0 ? set_retired(store, index, keep, number)
                            : mqx_journal_write_failed(store, err,
                                                       "flushing the journal directory");
        }
        if (err != -ENOENT) {
            return mqx_io_reason(err, "renaming a retired segment");
        }
    }
    const int err = io->ops->unlink(io, store->journal_dir, name);
    if (err != 0 && err != -ENOENT) {
        return mqx_io_reason(err, "removing a retired segment");
    }
    return set_retired(store, index, MQX_SEG_FREE, 0);
}

/* Linear logging, step 1. A name that is taken belongs to another history of this directory: an
 * older copy of its journal was put back beside a newer archive. That file stays as it is, and the
 * segment gets the next name that is free, since a segment that waited in the journal for somebody
 * to look would fill it up. The highest copy is this history's (FORMAT.md, section 1). */
static int move_to_archive(struct mqx_store *store, uint64_t number)
{
    char from[MQX_FILE_NAME_SIZE], to[MQX_FILE_NAME_SIZE];
    int err = -EEXIST;
    MQX_ASSERT(number != 0);
    MQX_ASSERT(store->archive_dir >= 0);
    mqx_file_name(from, MQX_FILE_SEGMENT, number);
    for (uint32_t copy = 0; copy < MQX_ARCHIVE_COPIES && err == -EEXIST; copy++) {
        mqx_archive_name(to, store->region.journal->timeline, number, copy);
        err = store->io->ops->move(store->io, store->journal_dir, from, store->archive_dir, to);
    }
    return err;
}

/* Linear logging, steps 1 and 2. ENOENT: a process died between the move and the table; the
 * flushes are repeated, since it may not have got to them. */
static int archive_one(struct mqx_store *store, uint32_t index)
{
    struct mqx_io *io = store->io;
    const uint64_t number = store->region.journal->segment[index].number;
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.journal->roll_lock));
    MQX_ASSERT(index + 1 != store->region.journal->active);
    int err = move_to_archive(store, number);
    if (err != 0 && err != -ENOENT) {
        return mqx_io_reason(err, "moving a segment to the archive");
    }
    err = io->ops->sync_dir(io, store->archive_dir);
    if (err == 0) {
        err = io->ops->sync_dir(io, store->journal_dir);
    }
    return err == 0 ? set_retired(store, index, MQX_SEG_FREE, 0)
                    : mqx_journal_write_failed(store, err, "flushing the journal's directories");
}

/* What becomes of the file: on a full disk first what is lacking of the reserve. */
static uint32_t use_of_retired(struct mqx_store *store, uint32_t index)
{
    const struct mqx_journal *journal = store->region.journal;
    MQX_ASSERT(mqx_lock_held(&store->region, &journal->roll_lock));
    MQX_ASSERT(journal->segment[index].state == MQX_SEG_FULL);
    const bool reserve = mqx_load_relaxed(&journal->disk_full) != 0 &&
                         mqx_journal_reserved_count(journal) < MQX_RESERVED_SEGMENTS;
    const bool spare = journal->segment[index].size == mqx_journal_largest_segment(journal) &&
                       mqx_journal_spare_count(store) < spares_kept(journal) &&
                       journal->used_bytes <= journal->limit;
    if ((!reserve && !spare) || is_linked(store, index)) {
        return MQX_SEG_FREE;
    }
    return reserve ? MQX_SEG_RESERVED : MQX_SEG_SPARE;
}

/* `live` was counted by a checkpoint that is whole and flushed, so nothing that a restart needs,
 * from it or from the one before, lies in what is retired. */
int mqx_journal_retire(struct mqx_store *store, uint64_t begin_segment, uint64_t begin_lsn,
                       const uint32_t *live)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(live != NULL);
    int status = mqx_lock_take(region, &journal->roll_lock);
    if (status != MQX_OK) {
        return status;
    }
    MQX_ASSERT(begin_lsn <= mqx_journal_durable(journal)); /* a restart finds its begin */
    MQX_ASSERT(begin_segment != 0);
    mqx_pin_break_if_full(region);
    status = mqx_store_check(store);
    int i = next_retired(region, begin_segment, begin_lsn, live);
    MQX_ASSERT(i < MQX_SEGMENT_MAX);
    while (i >= 0 && status == MQX_OK) { /* each turn leaves one segment fewer */
        const uint32_t keep = use_of_retired(store, (uint32_t)i);
        status = store->plan.linear != 0 ? archive_one(store, (uint32_t)i)
                                         : retire_one(store, (uint32_t)i, keep);
        i = next_retired(region, begin_segment, begin_lsn, live);
    }
    mqx_lock_drop(region, &journal->roll_lock);
    return status;
}

/* ---- the orderly end ---- */

/* The table first: an entry is SPARE only while its file is there. A file that a death in between
 * leaves, or that cannot be removed, is a spare of the next start. */
static int drop_spare(struct mqx_store *store, uint32_t index)
{
    const struct mqx_journal *journal = store->region.journal;
    char name[MQX_FILE_NAME_SIZE];
    MQX_ASSERT(journal->segment[index].state == MQX_SEG_SPARE);
    MQX_ASSERT(mqx_lock_held(&store->region, &journal->roll_lock));
    mqx_file_name(name, MQX_FILE_SPARE, journal->segment[index].number);
    const int status = set_retired(store, index, MQX_SEG_FREE, 0);
    if (status == MQX_OK) {
        mqx_ignore(store->io->ops->unlink(store->io, store->journal_dir, name));
    }
    return status;
}

int mqx_journal_end_spares(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    int status = mqx_lock_take(region, &journal->roll_lock);
    if (status != MQX_OK) {
        return status;
    }
    MQX_ASSERT(journal->active != 0);
    MQX_ASSERT(journal->active <= MQX_SEGMENT_MAX);
    const bool keep = mqx_pool_is_in_use(journal, &journal->segment[journal->active - 1]);
    for (uint32_t left = mqx_journal_spare_count(store); left > keep && status == MQX_OK; left--) {
        status = drop_spare(store, (uint32_t)mqx_pool_next(region, MQX_SEG_SPARE));
    }
    mqx_lock_drop(region, &journal->roll_lock);
    return status;
}
