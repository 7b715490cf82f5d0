/*
 * segment_reserve.c - segment files that a full disk cannot take away (rule 59). See journal.h for
 * terms, segment_pool.c for the states of the segment table.
 *
 * Purpose. A get that stands alone writes a page, whatever it removes: the bytes that are reserved
 * for each message (ring.c) are not enough for it, and a restart after a crash begins a segment. So
 * MQX_RESERVED_SEGMENTS whole files are made while there is room, and count as no room for puts:
 * they are not spares. A roll takes one when there is no spare and the disk refuses a new file.
 *
 * Why so few are enough. What is written into one while the disk is full are gets, ends of units
 * and marks: no message stays in it. Two checkpoints after it is full it is free again, and becomes
 * reserved again. So one is written, one is the checkpoint's (the record between two checkpoints
 * may have to begin a segment), and one is for a restart in the middle of that. Puts are refused
 * until all are back.
 *
 * What a death leaves. A spare becomes reserved by a store in the table, then the file gets its
 * name. In between it is a reserved segment with the name of a spare, which a roll finds, and which
 * a restart takes for a spare; then another one is made. The name says nothing else: neither kind
 * holds a byte that counts.
 *
 * Locks and errors as in segment_pool.c.
 */
#include "journal/journal_private.h"

#include "base/error.h"
#include "format/segment.h"
#include "region/damage.h"

#include <string.h>

#define SET32(at, value) mqx_undo_store32(region->base, &journal->ring_lock, (at), (value))
#define SET64(at, value) mqx_undo_store64(region->base, &journal->ring_lock, (at), (value))

/* The file has the name of a spare: from here on it says what it is. */
static int name_reserved(struct mqx_store *store, uint64_t number)
{
    struct mqx_io *io = store->io;
    char from[MQX_FILE_NAME_SIZE], to[MQX_FILE_NAME_SIZE];
    MQX_ASSERT(number != 0);
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.journal->roll_lock));
    mqx_file_name(from, MQX_FILE_SPARE, number);
    mqx_file_name(to, MQX_FILE_RESERVED, number);
    int err = io->ops->rename(io, store->journal_dir, from, to);
    if (err == 0) {
        err = io->ops->sync_dir(io, store->journal_dir);
    }
    return err == 0 ? MQX_OK : mqx_io_reason(err, "naming a reserved segment");
}

/* A new file. */
static int make_one(struct mqx_store *store)
{
    struct mqx_region *region = &store->region;
    const uint64_t size = mqx_journal_reserved_size(region->journal);
    uint64_t number = 0;
    MQX_ASSERT(!mqx_lock_held(region, &region->journal->roll_lock));
    MQX_ASSERT(size >= PS_MIN_SEGMENT);
    int status = mqx_pool_create(store, size, false, &number);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_lock_take(region, &region->journal->roll_lock);
    if (status != MQX_OK) {
        mqx_pool_remove(store, number);
        return status;
    }
    status = mqx_pool_register(store, number, size, MQX_SEG_RESERVED);
    if (status == MQX_OK) {
        status = name_reserved(store, number);
    } else {
        mqx_pool_remove(store, number);
    }
    mqx_lock_drop(region, &region->journal->roll_lock);
    return status;
}

/* Roll lock held: the table's part of it. */
static int set_reserved(struct mqx_region *region, uint32_t index)
{
    struct mqx_journal *journal = region->journal;
    struct mqx_segment *segment = &journal->segment[index];
    MQX_ASSERT(segment->state == MQX_SEG_SPARE);
    MQX_ASSERT(mqx_lock_held(region, &journal->roll_lock));
    if (MQX_UNLIKELY(!mqx_segment_is_sound(journal, index) ||
                     segment->size > journal->used_bytes)) {
        return mqx_region_damage(region, "journal's segment table", index);
    }
    const int status = mqx_ring_take(region);
    if (status == MQX_OK) {
        SET32(&segment->state, MQX_SEG_RESERVED);
        SET64(&journal->used_bytes, journal->used_bytes - segment->size);
        mqx_ring_sum_segment(region, segment);
        mqx_ring_sum(region);
        mqx_undo_commit(&journal->ring_lock);
        mqx_lock_drop(region, &journal->ring_lock);
    }
    return status;
}

/* A spare, where the disk has no room: puts would use it. *out_found false: there is none. */
static int take_spare(struct mqx_store *store, bool *out_found)
{
    struct mqx_region *region = &store->region;
    MQX_ASSERT(!mqx_lock_held(region, &region->journal->roll_lock));
    MQX_ASSERT(!mqx_lock_held(region, &region->journal->ring_lock));
    int status = mqx_lock_take(region, &region->journal->roll_lock);
    if (status != MQX_OK) {
        return status;
    }
    const int spare = mqx_pool_next(region, MQX_SEG_SPARE);
    *out_found = spare >= 0;
    if (spare >= 0) {
        status = set_reserved(region, (uint32_t)spare);
    }
    if (spare >= 0 && status == MQX_OK) {
        status = name_reserved(store, region->journal->segment[spare].number);
    }
    mqx_lock_drop(region, &region->journal->roll_lock);
    return status;
}

int mqx_journal_keep_reserved(struct mqx_store *store)
{
    const struct mqx_journal *journal = store->region.journal;
    int status = MQX_OK;
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    MQX_ASSERT(store->files != NULL);
    while (status == MQX_OK && mqx_journal_reserved_count(journal) < MQX_RESERVED_SEGMENTS) {
        bool found = false;
        status = make_one(store);
        if (status == MQRC_STORAGE_MEDIUM_FULL) {
            const int taken = take_spare(store, &found);
            status = taken != MQX_OK ? taken
                     : found         ? MQX_OK
                                     : mqx_pool_no_way_out(&store->region);
        }
    }
    return status;
}
