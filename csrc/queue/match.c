/*
 * match.c - see match.h.
 */
#include "queue/match.h"

#include "base/assert.h"
#include "base/checksum.h"
#include "base/error.h"
#include "penstock/engine.h"
#include "queue/expire.h"

#include <string.h>

enum {
    BY_ENTRY = MQE_MATCH_NUMBER | MQE_MATCH_PERSISTENT | MQE_MATCH_UP_TO | MQE_MATCH_DELAYED |
               MQE_MATCH_EXPIRED
};

static const uint8_t no_id[MQX_ID_SIZE];

void mqx_match_init(const struct mqx_region *region, const struct mqe_get *get,
                    struct mqx_match *out)
{
    const uint8_t *ids[MQX_INDEX_COUNT] = {get->msg_id, get->correl_id, get->group_id};
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(out != NULL);
    out->bits = get->match & (MQE_MATCH_SEQ_NUMBER | MQE_MATCH_OFFSET | BY_ENTRY);
    out->excluded = 0;
    out->ends_at_expired = (get->flags & MQE_GET_REPORT_EXPIRED) != 0;
    out->expired = 0;
    out->seq_number = get->seq_number;
    out->offset = get->offset;
    out->number = get->match_number;
    out->up_to = get->up_to;
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        if ((get->match >> k & 1u) != 0 && memcmp(ids[k], no_id, MQX_ID_SIZE) != 0) {
            out->bits |= 1u << k;
            out->tag[k] = mqx_hash64(ids[k], MQX_ID_SIZE, region->tag_key);
            memcpy(out->id[k], ids[k], MQX_ID_SIZE);
        }
    }
}

bool mqx_match_exact(const struct mqx_match *match, const struct ps_descriptor *d,
                     const struct ps_descriptor_ext *ext)
{
    MQX_ASSERT(d->has_ext == 0 || ext != NULL);
    const uint8_t *group = d->has_ext != 0 ? ext->group_id : no_id;
    const int32_t seq = d->has_ext != 0 ? ext->msg_seq_number : 1;
    const int32_t offset = d->has_ext != 0 ? ext->offset : 0;
    const uint8_t *ids[MQX_INDEX_COUNT] = {d->msg_id, d->correl_id, group};
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        if ((match->bits >> k & 1u) != 0 && memcmp(match->id[k], ids[k], MQX_ID_SIZE) != 0) {
            return false;
        }
    }
    return ((match->bits & MQE_MATCH_SEQ_NUMBER) == 0 || match->seq_number == seq) &&
           ((match->bits & MQE_MATCH_OFFSET) == 0 || match->offset == offset);
}

/* The options that the entry alone decides. */
static bool entry_matches(const struct mqx_match *match, const struct mqx_message *message)
{
    MQX_ASSERT((match->bits & BY_ENTRY) != 0);
    const bool persistent = (message->flags & (MQX_MSGF_PERSISTENT | MQX_MSGF_VOLATILE)) ==
                            MQX_MSGF_PERSISTENT;
    return ((match->bits & MQE_MATCH_NUMBER) == 0 || match->number == message->number) &&
           ((match->bits & MQE_MATCH_PERSISTENT) == 0 || persistent) &&
           ((match->bits & MQE_MATCH_UP_TO) == 0 || message->number <= match->up_to);
}

bool mqx_match_message(const struct mqx_region *region, const struct mqx_match *match,
                       const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
    MQX_ASSERT(match->excluded <= MQX_MATCH_EXCLUDE_MAX);
    if ((match->bits & BY_ENTRY) != 0 && !entry_matches(match, message)) {
        return false;
    }
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        if ((match->bits >> k & 1u) != 0 && match->tag[k] != message->tag[k]) {
            return false;
        }
    }
    for (uint32_t i = 0; i < match->excluded; i++) {
        if (match->exclude[i] == message->number) {
            return false;
        }
    }
    if (message->cells == 0 || (match->bits & ~(uint32_t)BY_ENTRY) == 0) {
        return true;
    }
    const struct ps_descriptor *d = mqx_body_descriptor(region, message);
    return d != NULL && mqx_match_exact(match, d, (const struct ps_descriptor_ext *)(d + 1));
}

/* The index to use for the match: the most selective one that is requested, or -1. */
static int index_for(const struct mqx_match *match)
{
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        if ((match->bits >> k & 1u) != 0) {
            return k;
        }
    }
    return -1;
}

/* Builds index k step by step; between steps others get the lock. */
static int build_index(struct mqx_store *store, struct mqx_stripe_guard *guard, uint32_t object,
                       int k)
{
    MQX_ASSERT(k >= 0);
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    bool done = mqx_id_index_ready(&store->region, mqx_object(&store->region, object), k);
    while (!done) {
        int status = mqx_id_index_build(guard, mqx_object(&store->region, object), k, &done);
        if (status == MQX_NEED_CELLS) {
            status = mqx_stripe_guard_supply(guard);
            if (status != MQX_OK) {
                return status;
            }
            continue;
        }
        mqx_stripe_guard_drop(guard);
        if (status == MQX_OK) {
            status = mqx_stripe_guard_take(&store->region, object, guard);
        }
        if (status != MQX_OK) {
            return status;
        }
    }
    return MQX_OK;
}

/* An expired message on the way: discarded, unless it is a reported one. */
enum on_expired { GONE, PASSED, WANTED, ENDS };

static enum on_expired meet_expired(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                                    uint32_t slot, const struct mqx_message *message,
                                    struct mqx_match *match)
{
    MQX_ASSERT(message->expiry != 0);
    if (!mqx_delayed_or_available(message)) {
        return PASSED;
    }
    if (!mqx_queue_reports_expiry(guard->region, message)) {
        (void)mqx_queue_expire(guard, queue, slot);
        return GONE;
    }
    if ((match->bits & MQE_MATCH_EXPIRED) != 0) {
        return message->state == MQX_MSG_AVAILABLE &&
                       mqx_match_message(guard->region, match, message)
                   ? WANTED
                   : PASSED;
    }
    if (match->ends_at_expired && message->state == MQX_MSG_AVAILABLE &&
        mqx_match_message(guard->region, match, message)) {
        match->expired = message->number;
        return ENDS;
    }
    return PASSED;
}

static uint32_t find_by_index(struct mqx_store *store, struct mqx_stripe_guard *guard,
                              struct mqx_object *queue, struct mqx_match *match, int k,
                              uint64_t now_us)
{
    MQX_ASSERT((match->bits >> k & 1u) != 0);
    MQX_ASSERT(mqx_lock_held(&store->region, &guard->stripe->lock));
    uint32_t slot = mqx_id_index_find(&store->region, queue, k, match->tag[k], 0);
    while (slot != 0) {
        const struct mqx_message *message = mqx_message(&store->region, slot);
        if (message == NULL) {
            return 0;
        }
        mqx_body_expect_read(&store->region, message); /* the two are nowhere near each other: */
        mqx_priority_index_expect(&store->region, queue, message); /* one wait, not two */
        if (!mqx_match_message(&store->region, match, message)) {
            slot = mqx_id_index_find(&store->region, queue, k, match->tag[k], slot);
        } else if (mqx_queue_expired(&store->region, message, now_us)) {
            const enum on_expired met = meet_expired(guard, queue, slot, message, match);
            if (met == ENDS) {
                return 0;
            }
            slot = mqx_id_index_find(&store->region, queue, k, match->tag[k],
                                     met == GONE ? 0 : slot);
        } else {
            return slot;
        }
    }
    return 0;
}

/* Lets other threads have the lock in the middle of a long walk. */
static int yield_lock(struct mqx_store *store, struct mqx_stripe_guard *guard, uint32_t object)
{
    MQX_ASSERT(mqx_lock_held(&store->region, &guard->stripe->lock));
    mqx_stripe_guard_drop(guard);
    return mqx_stripe_guard_take(&store->region, object, guard);
}

int mqx_match_next(struct mqx_store *store, struct mqx_stripe_guard *guard, uint32_t object,
                   struct mqx_match *match, uint64_t now_us, struct mqx_cursor *cursor,
                   uint32_t *out_slot)
{
    MQX_ASSERT(cursor != NULL);
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    const bool delayed = (match->bits & MQE_MATCH_DELAYED) != 0;
    for (uint32_t steps = 1;; steps++) {
        struct mqx_object *queue = mqx_object(&store->region, object);
        const uint32_t slot = mqx_priority_index_next(&store->region, queue, cursor, !delayed);
        const struct mqx_message *message = mqx_message(&store->region, slot);
        *out_slot = slot;
        if (message == NULL) {
            *out_slot = 0;
            return MQX_OK;
        }
        if (mqx_queue_expired(&store->region, message, now_us)) {
            const enum on_expired met = meet_expired(guard, queue, slot, message, match);
            if (met == WANTED || met == ENDS) {
                *out_slot = met == WANTED ? slot : 0;
                return MQX_OK;
            }
        } else if (mqx_delayed_or_available(message) && (match->bits & MQE_MATCH_EXPIRED) == 0 &&
                   mqx_match_message(&store->region, match, message)) {
            return MQX_OK;
        }
        if (steps % MQX_LOCKED_STEPS_MAX == 0) {
            int status = yield_lock(store, guard, object);
            if (status != MQX_OK) {
                return status;
            }
        }
    }
}

int mqx_match_first(struct mqx_store *store, struct mqx_stripe_guard *guard, uint32_t object,
                    struct mqx_match *match, uint64_t now_us, uint32_t *out_slot)
{
    struct mqx_object *queue = mqx_object(&store->region, object);
    struct mqx_cursor cursor = {0};
    MQX_ASSERT(queue != NULL); /* the caller has read its state under this lock */
    MQX_ASSERT(mqx_lock_held(&store->region, &guard->stripe->lock));
    if (MQX_LIKELY(match->bits == 0 && match->excluded == 0)) {
        const uint32_t slot = mqx_priority_index_first(&store->region, queue);
        const struct mqx_message *message = mqx_message(&store->region, slot);
        *out_slot = slot;
        if (message == NULL || MQX_LIKELY(message->expiry == 0)) {
            return MQX_OK;
        }
    }
    const int k = (match->bits & MQE_MATCH_EXPIRED) != 0 ? -1 : index_for(match);
    if (k >= 0 && queue->present > MQX_MATCH_SCAN_MAX) {
        int status = build_index(store, guard, object, k);
        if (status != MQX_OK) {
            return status;
        }
        *out_slot = find_by_index(store, guard, queue, match, k, now_us);
        return MQX_OK;
    }
    return mqx_match_next(store, guard, object, match, now_us, &cursor, out_slot);
}
