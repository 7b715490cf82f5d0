/*
 * checkpoint_begin.c - see checkpoint_begin.h.
 */
#include "recovery/checkpoint_begin.h"

#include "region/damage.h"

/* Where the replay must begin for the unit, 0: anywhere. One that is decided may not have been
 * shown when its queue is copied, so its decision is replayed; of one that is not the checkpoint
 * carries everything. */
static uint64_t bound_of(const struct mqx_checkpoint_begin *begin,
                         const struct mqx_context *context)
{
    MQX_ASSERT(begin->segment != 0);
    MQX_ASSERT(context != NULL);
    if (begin->bounded) {
        return context->first_lsn;
    }
    return context->state == MQX_CTX_DECIDED ? context->decided_lsn : 0;
}

/* The lowest LSN at which a unit that must be replayed is decided, or (bounded) begins, or `bound`;
 * notes whether one is not prepared. */
static uint64_t lowest_in_flight(struct mqx_region *region, struct mqx_checkpoint_begin *begin,
                                 uint64_t bound, int *status)
{
    struct mqx_lock *ring_lock = &region->journal->ring_lock;
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    MQX_ASSERT(!mqx_lock_held(region, ring_lock));
    MQX_ASSERT(*status == MQX_OK);
    for (uint64_t slot = 1; slot < used && *status == MQX_OK;) {
        *status = mqx_lock_take(region, ring_lock);
        if (*status != MQX_OK) {
            return bound;
        }
        for (int i = 0; i < MQX_LOCKED_STEPS_MAX && slot < used; i++, slot++) {
            const struct mqx_context *context = mqx_context(region, (uint32_t)slot);
            const uint64_t lsn = context != NULL ? bound_of(begin, context) : 0;
            bound = lsn != 0 && lsn < bound ? lsn : bound;
            begin->in_flight |= context != NULL && context->first_lsn != 0 &&
                                context->state != MQX_CTX_PREPARED;
        }
        mqx_lock_drop(region, ring_lock);
    }
    return bound;
}

/* Two checkpoints that one unit bounds must not have one name: the second one would not move the
 * older one on, and what that keeps could not be freed before the unit ends. So the first one
 * begins inside of what lies in front of the unit's first record, a batch header or another record:
 * the replay finds no record in between. The second one begins with the record. */
static uint64_t begin_at_unit(uint64_t first_lsn, uint64_t newest)
{
    MQX_ASSERT(first_lsn % PS_ALIGN == 0);
    MQX_ASSERT(first_lsn > MQX_PAGE_SIZE); /* of its segment's first */
    const uint64_t before = first_lsn - PS_ALIGN;
    return newest < before ? before : first_lsn;
}

/* At or below the record that ends at `decided_lsn`, in its segment. It is at most so long, and
 * lies above the begin LSN of every checkpoint before. */
static uint64_t begin_before_decision(const struct mqx_located_segment *located,
                                      uint64_t decided_lsn, uint64_t newest)
{
    const uint64_t first = located->base_lsn + MQX_PAGE_SIZE + sizeof(struct psj_batch);
    uint64_t lsn = decided_lsn > MQX_RING_RECORD_MAX ? decided_lsn - MQX_RING_RECORD_MAX : 0;
    MQX_ASSERT(decided_lsn % PS_ALIGN == 0);
    MQX_ASSERT(decided_lsn > first);
    lsn = lsn > first ? lsn : first;
    return lsn > newest ? lsn : newest;
}

/* A unit in flight keeps the begin LSN below the tail. */
static int begin_below_tail(struct mqx_region *region, struct mqx_segment_use *use,
                            struct mqx_checkpoint_begin *begin)
{
    const uint64_t newest = region->journal->checkpoint_begin;
    const uint64_t lsn = begin->lsn - (begin->bounded ? 0 : PS_ALIGN); /* in the record */
    const struct mqx_located_segment *located = mqx_segment_use_locate(use, lsn);
    MQX_ASSERT(begin->lsn < begin->tail || !begin->bounded);
    if (MQX_UNLIKELY(located == NULL || lsn % PS_ALIGN != 0 ||
                     lsn - located->base_lsn < MQX_PAGE_SIZE + sizeof(struct psj_batch))) {
        return mqx_region_damage(region, "LSN of a unit in flight", begin->lsn);
    }
    begin->segment = located->number;
    begin->lsn = begin->bounded ? begin_at_unit(begin->lsn, newest)
                                    : begin_before_decision(located, begin->lsn, newest);
    MQX_ASSERT(begin->lsn <= begin->tail);
    return MQX_OK;
}

int mqx_checkpoint_begin(struct mqx_store *store, struct mqx_checkpoint_begin *begin,
                         struct mqx_segment_use *use)
{
    struct mqx_region *region = &store->region;
    struct mqx_journal *journal = region->journal;
    MQX_ASSERT(!mqx_lock_held(region, &journal->ring_lock));
    int status = mqx_lock_take(region, &journal->ring_lock);
    if (status != MQX_OK) {
        return status;
    }
    const uint64_t tail = journal->batch_records != 0 ? journal->tail : journal->batch_start;
    const uint32_t active = journal->active;
    const bool sound = active >= 1 && active <= MQX_SEGMENT_MAX &&
                       journal->control_sum == mqx_journal_control_sum(journal) &&
                       mqx_segment_is_sound(journal, active - 1);
    begin->tail = tail;
    begin->segment = sound ? journal->segment[active - 1].number : 0;
    mqx_lock_drop(region, &journal->ring_lock);
    if (MQX_UNLIKELY(!sound)) {
        return mqx_region_damage(region, "journal's control words", active);
    }
    /* the bound: one that is decided last ends at the tail */
    begin->lsn = lowest_in_flight(region, begin, tail + 1, &status);
    if (status == MQX_OK) { /* after the tail: the table has every segment below it */
        status = mqx_segment_use_begin(use, store);
    }
    if (status == MQX_OK && begin->lsn <= tail) {
        status = begin_below_tail(region, use, begin);
    } else {
        begin->lsn = tail;
    }
    MQX_ASSERT(status != MQX_OK || begin->lsn <= begin->tail);
    return status;
}
