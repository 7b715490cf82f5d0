/*
 * segment_pin.c - see segment_pin.h.
 */
#include "journal/segment_pin.h"

#include "base/error.h"
#include "journal/journal.h"
#include "region/damage.h"

#include <inttypes.h>

/* Is the segment part of the stream? Spares and reserved ones are not. */
static bool is_in_stream(const struct mqx_journal *journal, uint32_t index)
{
    const uint32_t state = mqx_load_relaxed(&journal->segment[index].state);
    MQX_ASSERT(journal->limit > 0);
    MQX_ASSERT(index < MQX_SEGMENT_MAX);
    return state == MQX_SEG_ACTIVE || state == MQX_SEG_FULL;
}

/* Roll lock held: the newest segment is the active one, and nothing that is durable lies behind
 * it. One in which nothing was written ends behind its header. */
static int find_pinned(struct mqx_region *region, struct mqx_pinned *out)
{
    const struct mqx_journal *journal = region->journal;
    const uint32_t active = journal->active - 1;
    MQX_ASSERT(mqx_lock_held(region, &journal->roll_lock));
    if (MQX_UNLIKELY(active >= MQX_SEGMENT_MAX || !mqx_segment_is_sound(journal, active))) {
        return mqx_region_damage(region, "journal's segment table", active);
    }
    const struct mqx_segment *newest = &journal->segment[active];
    const uint64_t durable = mqx_journal_durable(journal);
    const uint64_t start = newest->base_lsn + MQX_PAGE_SIZE;
    *out = (struct mqx_pinned){
        .first = newest->number,
        .last = newest->number,
        .last_generation = newest->generation,
        .end_lsn = durable > start ? durable : start,
    };
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX; i++) {
        if (is_in_stream(journal, i) && journal->segment[i].number < out->first) {
            out->first = journal->segment[i].number;
        }
    }
    MQX_ASSERT(out->first <= out->last);
    return MQX_OK;
}

int mqx_pin_begin(struct mqx_store *store, struct mqx_pinned *out)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(!mqx_lock_held(region, &journal->roll_lock));
    MQX_ASSERT(region->process < MQX_PROCESS_MAX);
    int status = mqx_lock_enter(region, &journal->roll_lock);
    if (status != MQX_OK) {
        return status;
    }
    const uint32_t owner = mqx_load_relaxed(&journal->pin.owner);
    if (owner != 0) {
        const int32_t pid =
            owner <= MQX_PROCESS_MAX ? mqx_process_slot(region, owner - 1)->pid : 0;
        status = mqx_fail(MQRC_OBJECT_IN_USE, "a backup is under way: process %" PRId32, pid);
    } else {
        status = find_pinned(region, out);
    }
    if (status == MQX_OK) {
        mqx_store_relaxed(&journal->pin.first, out->first);
        mqx_store_relaxed(&journal->pin.last, out->last);
        mqx_store_relaxed(&journal->pin.broken, 0);
        mqx_store_relaxed(&journal->slowest_flush_us, 0);
        mqx_store_release(&journal->pin.owner, region->process + 1);
    }
    mqx_lock_drop(region, &journal->roll_lock);
    return status;
}

int mqx_pin_advance(struct mqx_store *store, uint64_t first)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(first != 0);
    MQX_ASSERT(!mqx_lock_held(region, &journal->roll_lock));
    int status = mqx_lock_enter(region, &journal->roll_lock);
    if (status != MQX_OK) {
        return status;
    }
    if (mqx_load_relaxed(&journal->pin.owner) != region->process + 1 ||
        mqx_load_relaxed(&journal->pin.broken) != 0) {
        status = mqx_fail(MQRC_STORAGE_MEDIUM_FULL,
                          "the backup was broken off: the journal's files take %" PRIu64
                          " of %" PRIu64 " bytes, and at 80 %% nothing is kept for a backup; try "
                          "again when there is less traffic, or raise journal.limit",
                          journal->used_bytes, journal->limit);
    } else if (first > mqx_load_relaxed(&journal->pin.first)) {
        mqx_store_relaxed(&journal->pin.first, first);
    }
    mqx_lock_drop(region, &journal->roll_lock);
    return status;
}

/* The look without the lock is enough to see that it is not this process's: only the process
 * itself, or the reaper of a dead one, stores that. */
int mqx_pin_end(struct mqx_store *store, uint32_t process)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(process < MQX_PROCESS_MAX);
    MQX_ASSERT(!mqx_lock_held(region, &journal->roll_lock));
    if (mqx_load_relaxed(&journal->pin.owner) != process + 1) {
        return MQX_OK;
    }
    const int status = mqx_lock_take(region, &journal->roll_lock);
    if (status == MQX_OK) {
        mqx_store_release(&journal->pin.owner, 0);
        mqx_lock_drop(region, &journal->roll_lock);
    }
    return status;
}

bool mqx_pin_holds(const struct mqx_journal *journal, uint64_t number)
{
    MQX_ASSERT(number != 0);
    MQX_ASSERT(journal != NULL);
    return mqx_load_acquire(&journal->pin.owner) != 0 &&
           mqx_load_relaxed(&journal->pin.broken) == 0 &&
           number >= mqx_load_relaxed(&journal->pin.first) &&
           number <= mqx_load_relaxed(&journal->pin.last);
}

void mqx_pin_break_if_full(struct mqx_region *region)
{
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(mqx_lock_held(region, &journal->roll_lock));
    MQX_ASSERT(journal->limit > 0);
    if (mqx_load_relaxed(&journal->pin.owner) != 0 &&
        journal->used_bytes > journal->limit / 5 * 4) {
        mqx_store_release(&journal->pin.broken, 1);
    }
}

uint64_t mqx_pin_bytes(const struct mqx_journal *journal, uint32_t *out_process)
{
    uint64_t bytes = 0;
    const uint32_t owner = mqx_load_relaxed(&journal->pin.owner);
    MQX_ASSERT(out_process != NULL);
    MQX_ASSERT(journal->limit > 0);
    *out_process = owner != 0 && owner <= MQX_PROCESS_MAX ? owner - 1 : 0;
    for (uint32_t i = 0; i < MQX_SEGMENT_MAX && owner != 0; i++) {
        const struct mqx_segment *segment = &journal->segment[i];
        const bool held = is_in_stream(journal, i) && segment->number != 0 &&
                          mqx_pin_holds(journal, segment->number);
        bytes += held ? segment->size : 0;
    }
    return bytes;
}
