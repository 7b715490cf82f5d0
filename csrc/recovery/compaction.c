/*
 * compaction.c - see compaction.h. In order: the goal; choosing victims; moving one batch; the walk
 * over all queues.
 *
 * Why a segment nearly full of live bytes is no victim. Moving 90 % of a segment to free 10 % would
 * write nine bytes for one. The goal leaves 2.5 times the live bytes, so on average segments are
 * less than half full when it is exceeded, and emptier ones exist.
 *
 * Why it comes before a checkpoint. That one lists what was emptied no longer; it is freed with the
 * checkpoint after it, because the older one of the two lists it still. Segments in which nothing
 * was live at the last checkpoint are freed by the next one and are not moved for. Those that were
 * emptied since look like victims: the walk finds nothing in them, and they cost nothing.
 */
#include "recovery/compaction.h"

#include "base/clock.h"
#include "base/error.h"
#include "catalog/catalog.h"
#include "journal/group_commit.h"
#include "queue/stored.h"
#include "region/damage.h"

#include <stdlib.h>
#include <string.h>

enum {
    STEP_BYTES = 1 << 20,    /* appended between two flushes */
    PAUSE_US = 2 * 1000,     /* so that commits get at the disk in between (rule 11) */
    HOOK_EVERY_US = 250000,  /* store->maintenance_hook at most so often */
    FULL_PERCENT = 90,       /* a fuller segment is no victim */
};

struct victim { /* a segment, by LSN once all are chosen */
    uint64_t base_lsn;
    uint64_t size;
    uint64_t live_bytes;
};

struct compaction {
    struct mqx_store *store;
    struct victim *victims;
    uint32_t victim_count;
    /* the batch under way: messages of one queue */
    uint32_t object, generation;
    struct mqx_stored moving[MQX_LOCKED_STEPS_MAX];
    uint64_t lsns[MQX_LOCKED_STEPS_MAX];
    uint32_t moving_count;
    uint64_t end_lsn;        /* of what was appended last */
    uint64_t bytes;          /* appended since the last flush */
    /* the message under way */
    uint16_t flags;           /* PS_FLAG_UNDECIDED, or none */
    struct ps_chunked chunked;
    struct mqx_common common; /* of the last short one */
    uint64_t last_lsn;       /* of the record appended last */
    uint64_t hook_us;        /* when the hook was last called */
};

/* ---- the goal ---- */

uint64_t mqx_compaction_goal(const struct mqx_journal *journal, uint64_t live_bytes)
{
    const uint64_t most = journal->limit / 4 * 3;
    MQX_ASSERT(journal->segment_size > 0);
    MQX_ASSERT(live_bytes < UINT64_MAX / 4);
    const uint64_t wanted = live_bytes * 2 + live_bytes / 2 + mqx_journal_interval(journal) +
                            2 * mqx_journal_largest_segment(journal);
    return wanted < most ? wanted : most;
}

/* ---- victims ---- */

/* For qsort: the fewest live bytes for its size first. */
static int by_live(const void *a, const void *b)
{
    const struct victim *first = a, *second = b;
    MQX_ASSERT(first->size > 0 && second->size > 0);
    MQX_ASSERT(a != NULL && b != NULL);
    const uint64_t left = first->live_bytes * 1024 / first->size;
    const uint64_t right = second->live_bytes * 1024 / second->size;
    return left != right ? (left < right ? -1 : 1)
                         : (first->base_lsn < second->base_lsn ? -1 : 1);
}

/* For qsort and bsearch. */
static int by_base(const void *a, const void *b)
{
    const struct victim *first = a, *second = b;
    MQX_ASSERT(a != NULL);
    MQX_ASSERT(b != NULL);
    return first->base_lsn < second->base_lsn ? -1 : first->base_lsn > second->base_lsn;
}

/* Segments that hold nothing but what the last checkpoint counted, and are not nearly full of it.
 * Returns the bytes of the stream's files without those in which nothing was live: the next
 * checkpoint frees them as they are. Roll lock held. */
static uint64_t list_candidates(struct compaction *c)
{
    const struct mqx_journal *journal = c->store->region.journal;
    uint64_t files = 0;
    MQX_ASSERT(mqx_lock_held(&c->store->region, &journal->roll_lock));
    MQX_ASSERT(c->victim_count == 0);
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        const struct mqx_segment segment = journal->segment[i]; /* read once: nobody is trusted */
        if (segment.state != MQX_SEG_FULL && segment.state != MQX_SEG_ACTIVE) {
            continue;
        }
        const bool is_counted = segment.state == MQX_SEG_FULL && i + 1 != journal->active &&
                                segment.size > 0 && segment.end_lsn <= journal->checkpoint_begin;
        const bool is_empty = segment.live_bytes == 0 && segment.live_messages == 0;
        files += is_counted && is_empty ? 0 : segment.size;
        if (is_counted && !is_empty && segment.live_bytes < segment.size / 100 * FULL_PERCENT) {
            c->victims[c->victim_count++] =
                (struct victim){segment.base_lsn, segment.size, segment.live_bytes};
        }
    }
    return files;
}

/* Chooses what brings the files down to the goal; sorts it by LSN. */
static int choose_victims(struct compaction *c, uint64_t goal)
{
    struct mqx_region *region = &c->store->region;
    uint64_t gained = 0;
    uint32_t chosen = 0;
    MQX_ASSERT(c->victims != NULL);
    const int status = mqx_lock_take(region, &region->journal->roll_lock);
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t files = list_candidates(c);
    mqx_lock_drop(region, &region->journal->roll_lock);
    if (c->victim_count > 1) {
        qsort(c->victims, c->victim_count, sizeof *c->victims, by_live);
    }
    while (chosen < c->victim_count && files > goal && gained < files - goal) {
        MQX_ASSERT(c->victims[chosen].live_bytes < c->victims[chosen].size);
        gained += c->victims[chosen].size - c->victims[chosen].live_bytes;
        chosen += 1;
    }
    c->victim_count = chosen;
    if (chosen > 1) {
        qsort(c->victims, chosen, sizeof *c->victims, by_base);
    }
    return MQX_OK;
}

/* Does any byte from `first` to `last` lie in a victim? */
static bool is_in_victim(const struct compaction *c, uint64_t first, uint64_t last)
{
    uint32_t low = 0, high = c->victim_count;
    MQX_ASSERT(first <= last);
    MQX_ASSERT(c->victim_count > 0);
    while (low < high) { /* the first victim that ends behind `first` */
        const uint32_t middle = (low + high) / 2;
        if (c->victims[middle].base_lsn + c->victims[middle].size <= first) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < c->victim_count && c->victims[low].base_lsn <= last;
}

/* ---- moving ---- */

/* Appends a finished record of the message under way. */
static int append(struct compaction *c, const unsigned char *record, uint32_t length)
{
    struct mqx_append append = {.record = record,
                                .common = mqx_record_is_short(record) ? &c->common : NULL,
                                .length = length,
                                .flags = MQX_APPEND_MOVES};
    MQX_ASSERT(length <= MQX_RING_RECORD_MAX);
    MQX_ASSERT(record != NULL);
    const int status = mqx_journal_append(c->store, &append);
    if (status == MQX_OK) {
        c->last_lsn = append.lsn;
        c->end_lsn = append.end_lsn;
        c->bytes += length;
    }
    return status;
}

/* A record of the message, from its old place: a piece as a CHUNK that stands alone and names its
 * new predecessor, the PUT as a MOVED that names the new pieces. */
static int write_anew(void *arg, const void *at, const struct mqx_decoded *old)
{
    struct compaction *c = arg;
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    const struct mqx_record_head head = {
        .type = old->chunk != NULL ? PS_REC_CHUNK : PS_REC_MOVED,
        .flags = old->chunk != NULL ? 0 : c->flags,
        .unit_id = old->chunk != NULL || c->flags == 0 ? 0 : old->head->unit_id,
        .object = old->head->object,
        .object_gen = old->head->object_gen,
        .number = old->head->number,
    };
    MQX_ASSERT(old->chunk != NULL || old->descriptor != NULL);
    MQX_ASSERT(head.number != 0);
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a MOVED record");
    }
    if (mqx_record_is_short(at)) {
        mqx_common_take(&c->common, mqx_journal_store_id(c->store), mqx_record_common(at));
        return append(c, record, mqx_encode_short_moved(record, &c->common, at, c->flags));
    }
    if (old->chunk == NULL) {
        if (old->chunked != NULL) {
            c->chunked.total = old->chunked->total;
        }
        return append(c, record,
                      mqx_encode_put(record, &head, old->descriptor, old->ext,
                                     old->chunked != NULL ? &c->chunked : NULL, old->body,
                                     old->body_length));
    }
    struct ps_chunk piece = *old->chunk;
    piece.prev_lsn = c->chunked.last_lsn;
    const int status =
        append(c, record, mqx_encode_chunk(record, &head, &piece, old->body, old->body_length));
    if (status == MQX_OK) {
        c->chunked.first_lsn = c->chunked.count == 0 ? c->last_lsn : c->chunked.first_lsn;
        c->chunked.last_lsn = c->last_lsn;
        c->chunked.count += 1;
    }
    return status;
}

/* What was appended becomes durable, then the entries get their new LSNs. */
static int end_batch(struct compaction *c)
{
    struct mqx_journal *journal = c->store->region.journal;
    uint32_t moved = 0;
    MQX_ASSERT(c->moving_count <= MQX_LOCKED_STEPS_MAX);
    if (c->moving_count == 0) {
        return MQX_OK;
    }
    int status = mqx_flush_to(c->store, c->end_lsn);
    if (status == MQX_OK) {
        MQX_ASSERT(mqx_journal_durable(journal) >= c->end_lsn);
        status = mqx_stored_move(c->store, c->object, c->moving, c->lsns, c->moving_count, &moved);
    }
    if (status == MQX_OK) {
        mqx_add_relaxed(&journal->moved_messages, (uint64_t)moved);
        mqx_add_relaxed(&journal->moved_bytes, c->bytes);
        c->moving_count = 0;
    }
    if (status == MQX_OK && c->bytes >= STEP_BYTES) {
        mqx_clock_sleep_us(PAUSE_US);
    }
    c->bytes = 0;
    return status;
}

/* Is it a reason to leave the message where it is, and go on? */
static bool is_of_message(int status)
{
    MQX_ASSERT(status != MQX_OK);
    MQX_STATIC_ASSERT(MQRC_OBJECT_DAMAGED != MQRC_RESOURCE_PROBLEM, "two reasons");
    return status == MQRC_OBJECT_DAMAGED || status == MQRC_RESOURCE_PROBLEM;
}

/* Moves the message if it lies in a victim: for one with pieces its PUT says where these lie. */
static int move_message(struct compaction *c, const struct mqx_stored *stored)
{
    uint64_t first_lsn = stored->lsn;
    int status = MQX_OK;
    MQX_ASSERT(c->moving_count < MQX_LOCKED_STEPS_MAX);
    MQX_ASSERT(stored->lsn != 0);
    if (stored->chunk_count > 0 && stored->lsn >= c->victims[0].base_lsn) {
        status = mqx_journal_first_lsn(c->store, stored->lsn, stored->record_length, &first_lsn);
    }
    if (status == MQX_OK && (first_lsn > stored->lsn || !is_in_victim(c, first_lsn, stored->lsn))) {
        return MQX_OK;
    }
    if (status == MQX_OK) {
        const struct mqx_record_walk walk = {.number = stored->number,
                                             .lsn = stored->lsn,
                                             .record_length = stored->record_length,
                                             .visit = write_anew,
                                             .arg = c};
        c->chunked = (struct ps_chunked){.count = 0};
        c->flags = stored->undecided ? PS_FLAG_UNDECIDED : 0;
        status = mqx_journal_walk(c->store, &walk);
    }
    if (status == MQX_OK) {
        c->moving[c->moving_count] = *stored;
        c->lsns[c->moving_count++] = c->last_lsn;
    } else if (is_of_message(status) && mqx_region_stopped(&c->store->region) == MQX_RUNNING) {
        mqx_error_clear();
        return MQX_OK;
    }
    return status == MQX_OK &&
                   (c->moving_count == MQX_LOCKED_STEPS_MAX || c->bytes >= STEP_BYTES)
               ? end_batch(c)
               : status;
}

/* ---- the walk ---- */

/* As in a checkpoint: maintenance continues beside a long walk. */
static int call_maintenance_hook(struct compaction *c)
{
    struct mqx_store *store = c->store;
    const uint64_t now = store->io->ops->now_us(store->io);
    MQX_ASSERT(c->moving_count <= MQX_LOCKED_STEPS_MAX);
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    if (store->maintenance_hook == NULL || now - c->hook_us < HOOK_EVERY_US) {
        return MQX_OK;
    }
    c->hook_us = now;
    return store->maintenance_hook(store);
}

/* The messages of one queue; each batch ends with the queue, so that its entries are moved under
 * one stripe lock. */
static int walk_queue(struct compaction *c)
{
    struct mqx_stored stored[MQX_LOCKED_STEPS_MAX];
    struct mqx_cursor cursor = {0};
    bool done = false;
    int status = MQX_OK;
    MQX_ASSERT(c->object != 0);
    MQX_ASSERT(c->moving_count == 0);
    while (!done && status == MQX_OK) { /* each turn moves the cursor by up to 64 messages */
        uint32_t count = 0;
        status = mqx_stored_list(c->store, c->object, &cursor, stored, &count, &done);
        for (uint32_t i = 0; i < count && status == MQX_OK; i++) {
            status = move_message(c, &stored[i]);
        }
        if (status == MQX_OK) {
            status = call_maintenance_hook(c);
        }
    }
    const int ended = end_batch(c); /* without room for more, too */
    return status == MQX_OK ? ended : status;
}

static int walk(struct compaction *c)
{
    int status = MQX_OK;
    MQX_ASSERT(c->object == 0);
    MQX_ASSERT(c->victim_count > 0);
    while (status == MQX_OK) { /* slots rise */
        const uint32_t before = c->object;
        status = mqx_catalog_next(c->store, &c->object, &c->generation);
        MQX_ASSERT(status != MQX_OK || c->object > before);
        if (status == MQRC_UNKNOWN_OBJECT_NAME) {
            return MQX_OK;
        }
        if (status == MQX_OK && mqx_catalog_is_journalled(c->store, c->object, c->generation)) {
            status = walk_queue(c);
        }
    }
    return status;
}

/* One cleanup path. */
int mqx_compact_to(struct mqx_store *store, uint64_t goal)
{
    const uint64_t files = mqx_journal_stream_bytes(store->region.journal);
    MQX_ASSERT(goal < UINT64_MAX);
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    if (files <= goal) {
        return MQX_OK;
    }
    struct compaction *c = calloc(1, sizeof *c);
    struct victim *victims = calloc(MQX_SEGMENT_MAX, sizeof *victims);
    int status = c != NULL && victims != NULL
                     ? MQX_OK
                     : mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a compaction");
    if (status == MQX_OK) {
        c->store = store;
        c->victims = victims;
        status = choose_victims(c, goal);
    }
    if (status == MQX_OK && c->victim_count > 0) {
        status = walk(c);
    }
    free(victims);
    free(c);
    if (status == MQRC_STORAGE_MEDIUM_FULL) { /* the checkpoint after it frees what it can */
        mqx_error_clear();
        return MQX_OK;
    }
    return status;
}

int mqx_compact(struct mqx_store *store)
{
    struct mqx_journal *journal = store->region.journal;
    const uint64_t counted = mqx_load_relaxed(&journal->checkpoint_begin);
    const uint64_t goal = mqx_compaction_goal(journal, mqx_store_live_bytes(&store->region));
    MQX_ASSERT(journal->limit > 0);
    MQX_ASSERT(mqx_lock_held(&store->region, &store->region.header->maintenance_lock));
    if (mqx_journal_stream_bytes(journal) <= goal || counted == journal->compacted) {
        return MQX_OK; /* no checkpoint since the last one: a unit of work holds its begin LSN */
    }
    const int status = mqx_compact_to(store, goal);
    if (status == MQX_OK) {
        journal->compacted = counted;
    }
    return status;
}
