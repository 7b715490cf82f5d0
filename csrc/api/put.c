/*
 * put.c - mqe_put: one message onto one queue.
 *
 * Three ways, chosen when the defaults are resolved:
 *
 *   quick       non-persistent, outside a unit, short: one lock hold, one micro-transaction, no
 *               context.
 *   in a unit   any message: linked as PUT in the unit's context; the record of a persistent one
 *               enters the log ring.
 *   autocommit  persistent or long, outside a unit: the same in a context of the pool, then decided
 *               at once: the record itself commits (PS_FLAG_COMMITS), is flushed, and the message
 *               is shown.
 *
 * A body above MQX_LOCKED_COPY_MAX is copied outside the lock into a chain that is the context's
 * pending reference (RESERVED); linking it clears the reference in the same micro-transaction.
 * Nothing is linked before every check has passed, and a record that does not get into the ring
 * takes the message out again: a failed put leaves nothing.
 */
#include "api/put.h"

#include "api/context_pool.h"
#include "api/journal_holder.h"
#include "api/unit_handle.h"
#include "base/error.h"
#include "os/block_hook.h"
#include "os/interrupt.h"
#include "process/maintenance.h"
#include "queue/performance.h"
#include "queue/resolved_path.h"
#include "queue/trigger.h"
#include "recovery/checkpoint_round.h"
#include "region/damage.h"
#include "region/extents.h"
#include "region/queue_clock.h"

#include <string.h>

enum { /* values of the descriptor's fields, as in MQMD */
    PERSISTENT = 1,
    PERSISTENCE_AS_Q_DEF = 2,
    PRIORITY_AS_Q_DEF = -1,
    EXPIRY_UNLIMITED = -1,
    EXPIRY_MAX = 999999999, /* tenths of a second */
    TENTH_US = 100000,
    COARSE_LAG_US = 100000, /* above any tick */
};

/* The last microsecond of the year 9999: PutDate has four digits for the year. */
#define PUT_TIME_MAX 253402300799999999u

/* ---- the message: defaults, ranges, placement ---- */

static int resolve_persistence(const struct mqx_object *first, struct ps_descriptor *d)
{
    MQX_ASSERT(first != NULL);
    if (d->persistence == PERSISTENCE_AS_Q_DEF) { /* the value at the time of the put */
        d->persistence = mqx_load_relaxed(&first->def_persistence);
    }
    if (MQX_UNLIKELY(d->persistence > PERSISTENT)) {
        return mqx_fail(MQRC_PERSISTENCE_ERROR, "Persistence %u; it is 0, 1 or 2", d->persistence);
    }
    return MQX_OK;
}

static int resolve_priority(const struct mqx_object *first, const struct mqx_object *queue,
                            struct ps_descriptor *d, int *warning)
{
    MQX_ASSERT(warning != NULL);
    if (d->priority == PRIORITY_AS_Q_DEF) {
        d->priority = mqx_load_relaxed(&first->def_priority);
    }
    if (MQX_UNLIKELY(d->priority < 0)) {
        return mqx_fail(MQRC_PRIORITY_ERROR, "Priority %d; it is -1 or not negative", d->priority);
    }
    *warning = MQX_OK;
    d->placement = (uint8_t)d->priority;
    if (MQX_UNLIKELY(d->priority > MQX_MAX_PRIORITY)) {
        *warning = mqx_fail(MQRC_PRIORITY_EXCEEDS_MAXIMUM,
                            "Priority %d is above MaxPriority %d: queued at %d, field kept",
                            d->priority, MQX_MAX_PRIORITY, MQX_MAX_PRIORITY);
        d->placement = MQX_MAX_PRIORITY;
    }
    if (mqx_load_relaxed(&queue->fifo) != 0) {
        d->placement = mqx_load_relaxed(&queue->def_priority);
    }
    return MQX_OK;
}

/* Expiry with CAPEXPRY: the least of the queue and of the definitions on the way to it counts. */
static MQX_COLD int32_t cap_expiry(const struct mqx_region *region,
                                   const struct mqe_destination *to, int32_t expiry)
{
    const struct mqx_object *queue = mqx_object(region, to->queue);
    uint32_t least = queue == NULL ? 0 : mqx_load_relaxed(&queue->expiry_cap);
    MQX_ASSERT(to->step_count <= MQE_STEPS_MAX);
    for (uint32_t i = 0; i < to->step_count; i++) {
        const struct mqx_object *step = mqx_object(region, to->step[i].slot);
        const uint32_t cap = step == NULL ? 0 : mqx_load_relaxed(&step->expiry_cap);
        least = cap != 0 && (least == 0 || cap < least) ? cap : least;
    }
    const bool above = expiry == EXPIRY_UNLIMITED || (expiry > 0 && (uint32_t)expiry > least);
    return least != 0 && least <= EXPIRY_MAX && above ? (int32_t)least : expiry;
}

static int set_times(const struct mqx_region *region, struct ps_descriptor *d, int32_t expiry,
                     uint32_t flags, uint64_t now_us)
{
    MQX_ASSERT(d != NULL);
    if ((flags & MQE_PUT_KEEP_TIME) == 0) {
        d->put_time_us = now_us != 0 ? now_us : mqx_queue_coarse_us(region);
    } else if (d->put_time_us > PUT_TIME_MAX) {
        return mqx_fail(MQRC_MD_ERROR, "put time %llu us since 1970; the last is in the year 9999",
                        (unsigned long long)d->put_time_us);
    }
    if (MQX_LIKELY(expiry == EXPIRY_UNLIMITED)) {
        d->expiry_us = 0;
        return MQX_OK;
    }
    if (expiry < 1 || expiry > EXPIRY_MAX) {
        return mqx_fail(MQRC_EXPIRY_ERROR, "Expiry %d; it is -1 or 1 to 999999999 tenths", expiry);
    }
    d->expiry_us =
        (now_us != 0 ? now_us : mqx_queue_coarse_us(region)) + (uint64_t)expiry * TENTH_US;
    return MQX_OK;
}

/* The due time of a message that is to be delayed; 0 when it is not later than now. The kernel's
 * tick says that of times that are far off, and is read in a fifth of the time. */
static MQX_COLD int set_due(const struct mqx_region *region, struct ps_descriptor *d,
                            uint64_t coarse_us)
{
    const uint64_t now =
        d->due_us > coarse_us + COARSE_LAG_US ? coarse_us : mqx_queue_now_us(region);
    MQX_ASSERT(d->due_us != 0);
    if (d->due_us > PS_DUE_MAX) {
        return mqx_fail(MQRC_MD_ERROR, "due %llu us since 1970; the last due time is in the year "
                        "9999", (unsigned long long)d->due_us);
    }
    if (d->due_us <= now) {
        d->due_us = 0;
    } else if (d->expiry_us != 0 && d->expiry_us <= d->due_us) {
        return mqx_fail(MQRC_EXPIRY_ERROR,
                        "the message is due in %llu ms and would expire before, in %llu ms",
                        (unsigned long long)((d->due_us - now) / 1000),
                        (unsigned long long)((d->expiry_us > now ? d->expiry_us - now : 0) / 1000));
    }
    return MQX_OK;
}

static bool id_is_none(const uint8_t id[MQX_ID_SIZE])
{
    uint64_t words[3];
    memcpy(words, id, sizeof words);
    return (words[0] | words[1] | words[2]) == 0;
}

/* AS_Q_DEF by the path's first definition as it is now, then the placement by the queue's. */
static inline int resolve_defaults(const struct mqx_region *region, const struct mqx_object *queue,
                                   const struct mqe_destination *to, struct ps_descriptor *d,
                                   int *warning)
{
    MQX_ASSERT(to != NULL && d != NULL);
    const struct mqx_object *first =
        MQX_LIKELY(to->first == to->queue) ? queue : mqx_object(region, to->first);
    if (MQX_UNLIKELY(queue == NULL || first == NULL)) {
        return mqx_fail(MQRC_Q_DELETED, "there is no queue in slot %u", to->queue);
    }
    int status = MQX_LIKELY(mqx_resolved_path_is_direct(to, queue))
                     ? MQX_OK
                     : mqx_resolved_path_check(region, to, true);
    if (MQX_UNLIKELY(status == MQX_OK && mqx_load_relaxed(&queue->type) != MQX_LOCAL_QUEUE)) {
        status = mqx_fail(MQRC_OBJECT_TYPE_ERROR, "%.48s is no local queue: it holds no messages",
                          queue->name);
    }
    if (status == MQX_OK) {
        status = resolve_persistence(first, d);
    }
    if (status == MQX_OK) {
        status = resolve_priority(first, queue, d, warning);
    }
    return status;
}

/* On z/OS a queue indexed by group has first messages of the lowest priorities placed higher,
 * whether they are in a group or not. The field stays. */
static MQX_COLD void place_in_group(const struct mqx_region *region, const struct mqx_object *queue,
                                    const struct mqx_put *put)
{
    MQX_ASSERT(put->d != NULL);
    enum { LEAST_PLACEMENT = 2 };
    const int32_t number = put->ext != NULL ? put->ext->msg_seq_number : 1;
    if (region->header->platform == MQX_PLATFORM_ZOS && mqx_load_relaxed(&queue->fifo) == 0 &&
        number == 1 && put->d->placement < LEAST_PLACEMENT) {
        put->d->placement = LEAST_PLACEMENT;
    }
}

/* A queue that asks more of a put than to store the message. */
static MQX_COLD int resolve_special(const struct mqx_put_call *call,
                                    const struct mqx_object *queue, uint32_t flags)
{
    MQX_ASSERT(call->put.d != NULL);
    const uint32_t special = mqx_load_relaxed(&queue->special);
    if ((special & MQX_SPECIAL_GROUP_INDEX) != 0) {
        place_in_group(&call->store->region, queue, &call->put);
    }
    const bool streams = (special & MQX_SPECIAL_STREAM) != 0 && (flags & MQE_PUT_COPY) == 0;
    const bool attended = streams || (special & MQX_SPECIAL_TRIGGER) != 0;
    return attended && (flags & (MQE_PUT_ATTENDED | MQE_PUT_STAYS)) == 0 ? MQE_ATTENDED : MQX_OK;
}

int mqx_put_resolve(struct mqx_put_call *call, int32_t expiry, uint32_t flags)
{
    MQX_ASSERT(call->put.d != NULL);
    struct ps_descriptor *d = call->put.d;
    const struct mqx_region *region = &call->store->region;
    const struct mqx_object *queue = mqx_object(region, call->to->queue);
    int status = resolve_defaults(region, queue, call->to, d, &call->warning);
    if (MQX_UNLIKELY(call->to->step_count > 1 ||
                     (status == MQX_OK &&
                      (mqx_load_relaxed(&queue->special) & MQX_SPECIAL_EXPIRY) != 0)) &&
        (flags & MQE_PUT_NOT_CAPPED) == 0) {
        expiry = cap_expiry(region, call->to, expiry);
    }
    if (status == MQX_OK) {
        status = set_times(region, d, expiry, flags, call->now_us);
    }
    if (MQX_UNLIKELY(status == MQX_OK && d->due_us != 0)) {
        const bool is_put_now = (flags & MQE_PUT_KEEP_TIME) == 0;
        status = set_due(region, d, is_put_now ? d->put_time_us : mqx_queue_coarse_us(region));
    }
    if (MQX_UNLIKELY(status != MQX_OK)) {
        return status;
    }
    d->has_ext = call->put.ext != NULL;
    d->backout_count = 0;
    call->put.logged =
        d->persistence != MQPER_NOT_PERSISTENT ||
        mqx_load_relaxed(&queue->np_life) == MQX_NP_IN_STRUCTURE;
    if (MQX_UNLIKELY(mqx_load_relaxed(&queue->special) != 0)) {
        status = resolve_special(call, queue, flags);
    }
    call->put.make_correl_id = (flags & MQE_PUT_NEW_CORREL_ID) != 0;
    call->put.make_msg_id = (flags & MQE_PUT_NEW_MSG_ID) != 0 || id_is_none(d->msg_id);
    return status;
}

/* ---- linking ---- */

/* Would the body exceed the region's budget for persistent bodies? While the extents that hold
 * items are together smaller, nothing is counted. After that those present count: all at the newest
 * round of maintenance, and those of this stripe now. */
static bool over_budget(const struct mqx_region *region, uint32_t object, uint64_t payload)
{
    const struct mqx_header *header = region->header;
    const uint64_t used = mqx_extents_used_bytes(region, MQX_POOL_CELLS);
    MQX_ASSERT(payload > 0);
    if (MQX_LIKELY(used + payload <= header->body_budget)) {
        return false;
    }
    const uint64_t all = mqx_load_relaxed(&header->body_bytes);
    const uint64_t own = mqx_load_relaxed(&mqx_stripe_of(region, object)->body_bytes);
    return (all > own ? all : own) + payload > header->body_budget;
}

/* After the link, in the same lock hold: what the caller has asked about the arrival, and the mark
 * of a message that stays. */
static MQX_COLD void attend(const struct mqx_put_call *call, struct mqx_object *queue)
{
    struct mqx_message *message = mqx_message(&call->store->region, call->put.slot);
    MQX_ASSERT(call->put.context != 0);
    if (message == NULL) {
        return; /* damage; who rolls the unit says so */
    }
    if ((call->flags & MQE_PUT_STAYS) != 0 && !call->put.logged) {
        mqx_store_relaxed(&message->record_length, (uint32_t)MQX_RECORD_STAYS);
    }
    if (call->arrival != NULL) {
        const uint32_t special = mqx_load_relaxed(&queue->special);
        call->arrival->streams = (special & MQX_SPECIAL_STREAM) != 0;
        call->arrival->triggers = (special & MQX_SPECIAL_TRIGGER) != 0;
        if (call->arrival->triggers) {
            call->arrival->before = mqx_trigger_arrived(queue, message);
        }
    }
}

int mqx_put_link(struct mqx_put_call *call, struct mqx_stripe_guard *guard,
                 struct mqx_wakeups *wakes)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(call->put.context == 0 || call->put.context == call->context);
    struct mqx_region *region = &call->store->region;
    struct mqx_put *put = &call->put;
    struct mqx_object *queue = mqx_object(region, put->object);
    int status;
    for (;;) {
        status = mqx_queue_admit(region, queue, put);
        if (MQX_LIKELY(status == MQX_OK)) {
            status = mqx_queue_link(guard, queue, put);
        }
        if (MQX_LIKELY(status != MQX_NEED_CELLS)) {
            break;
        }
        status = mqx_stripe_guard_supply(guard);
        if (status != MQX_OK) {
            return status;
        }
    }
    if (MQX_UNLIKELY(status != MQX_OK)) {
        mqx_stripe_guard_rollback(guard);
        mqx_stripe_guard_drop(guard);
        return status;
    }
    if (put->reserved != 0) {
        mqx_guard_store32(guard, &mqx_context(region, call->context)->pending_kind,
                          MQX_PENDING_NONE);
    }
    mqx_stripe_guard_commit(guard);
    if (MQX_UNLIKELY((mqx_load_relaxed(&queue->special) & MQX_SPECIAL_EVENTS) != 0)) {
        mqx_performance_put(region, queue, put->object);
    }
    if (put->context != 0) {
        if (MQX_UNLIKELY((call->flags & (MQE_PUT_ATTENDED | MQE_PUT_STAYS)) != 0)) {
            attend(call, queue);
        }
    } else if (MQX_UNLIKELY(queue->waiters != 0)) {
        mqx_wait_list_pick(guard, put->object, put->slot, wakes);
    }
    return MQX_OK;
}

/* A message by itself: one lock hold. */
static int link_message(struct mqx_put_call *call)
{
    struct mqx_region *region = &call->store->region;
    struct mqx_wakeups wakes;
    struct mqx_stripe_guard guard;
    int status = mqx_stripe_guard_enter(region, call->put.object, &guard);
    if (MQX_UNLIKELY(status != MQX_OK)) {
        return status;
    }
    wakes.count = 0;
    status = mqx_put_link(call, &guard, &wakes);
    if (MQX_LIKELY(status == MQX_OK)) {
        mqx_stripe_guard_drop(&guard);
        if (MQX_UNLIKELY(wakes.count != 0)) {
            mqx_wait_list_wake(region, &wakes);
        }
    }
    return status;
}

/* Takes an entry, which becomes the context's pending reference. */
static int reserve_entry(struct mqx_put_call *call, struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(call->context != 0);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    struct mqx_context *context = mqx_context(&call->store->region, call->context);
    uint32_t slot = 0;
    int status = mqx_entry_take(guard, &slot);
    while (status == MQX_NEED_CELLS) {
        status = mqx_stripe_guard_supply(guard);
        if (status != MQX_OK) {
            return status;
        }
        status = mqx_entry_take(guard, &slot);
    }
    if (status != MQX_OK) {
        mqx_stripe_guard_rollback(guard);
        mqx_stripe_guard_drop(guard);
        return status;
    }
    mqx_guard_store32(guard, &mqx_message(guard->region, slot)->cells, 0);
    mqx_guard_store32(guard, &context->pending_ref, slot);
    mqx_guard_store32(guard, &context->pending_object, call->put.object);
    mqx_guard_store32(guard, &context->pending_kind, MQX_PENDING_RESERVED);
    mqx_stripe_guard_commit(guard);
    call->put.reserved = slot;
    return MQX_OK;
}

/* A chain for a long body: blocks are taken a few at a time, the copy runs with no lock held. */
static int reserve_chain(struct mqx_put_call *call)
{
    MQX_ASSERT(call->put.length > MQX_LOCKED_COPY_MAX);
    MQX_ASSERT(call->put.reserved == 0);
    struct mqx_region *region = &call->store->region;
    struct mqx_put *put = &call->put;
    const uint64_t payload = mqx_body_payload(put->ext != NULL, put->length);
    uint64_t have = 0;
    bool done = false;
    struct mqx_stripe_guard guard;
    int status = mqx_stripe_guard_enter(region, put->object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    status = reserve_entry(call, &guard); /* on failure the lock has been dropped */
    while (status == MQX_OK && !done) {
        const uint64_t before = have;
        status = mqx_body_extend(&guard, mqx_message(region, put->reserved), payload, &have, &done);
        if (status == MQX_NEED_CELLS) {
            have = before;
            status = mqx_stripe_guard_supply(&guard);
        } else if (status == MQX_OK) {
            mqx_stripe_guard_commit(&guard);
            mqx_stripe_guard_drop(&guard);
            status = done ? MQX_OK : mqx_stripe_guard_take(region, put->object, &guard);
        } else {
            mqx_stripe_guard_rollback(&guard);
            mqx_stripe_guard_drop(&guard);
        }
    }
    return status;
}

static int store_long_body(struct mqx_put_call *call)
{
    MQX_ASSERT(!call->put.journal_only);
    struct mqx_put *put = &call->put;
    int status = mqx_queue_admit(&call->store->region,
                                 mqx_object(&call->store->region, put->object), put);
    if (status == MQX_OK) {
        mqx_about_to_block();
        status = reserve_chain(call);
    }
    return status;
}

/* The chain is filled with no lock held: until it is linked, only this process can see it. */
static int fill_chain(struct mqx_put_call *call)
{
    MQX_ASSERT(call->put.reserved != 0);
    const struct mqx_put *put = &call->put;
    const struct mqx_message *message = mqx_message(&call->store->region, put->reserved);
    if (message == NULL) {
        return mqx_region_damage(&call->store->region, "a reserved message", put->reserved);
    }
    return mqx_body_write(&call->store->region, message->cells, put->d, put->ext, put->body,
                          put->length);
}

/* ---- records of a persistent message ---- */

static struct mqx_record_head head_of(struct mqx_put_call *call)
{
    MQX_ASSERT(call->put.logged);
    MQX_ASSERT(call->put.number != 0);
    const struct mqx_put *put = &call->put;
    return (struct mqx_record_head){
        .type = PS_REC_PUT,
        .flags = call->autocommit ? PS_FLAG_COMMITS : 0,
        .unit_id = mqx_unit_id(call->store, call->context),
        .object = put->object,
        .object_gen = put->generation,
        .number = put->number,
    };
}

/* The PUT record, and the CHUNK records of a long body before it. One outside a unit is written in
 * full: it is alone in its flush batch more often than not. */
static int append_once(struct mqx_put_call *call)
{
    MQX_ASSERT(call->put.slot != 0);
    const struct mqx_put *put = &call->put;
    const struct mqx_record_head head = head_of(call);
    const bool from_reserve = (call->flags & MQE_PUT_FROM_RESERVE) != 0;
    const uint32_t flags = (from_reserve ? 0u : (uint32_t)MQX_APPEND_PUT) |
                           (call->autocommit ? (uint32_t)MQX_APPEND_DECIDES : 0u);
    struct ps_chunked chunked;
    const bool is_chunked = put->length > mqx_piece_bytes(call->store);
    unsigned char *record = mqx_scratch(MQX_RING_RECORD_MAX);
    if (record == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a PUT record");
    }
    if (is_chunked) {
        int status = mqx_unit_append_pieces(call->store, call->context, &head, put->body,
                                            put->length, &chunked);
        if (status != MQX_OK) {
            return status;
        }
        mqx_message(&call->store->region, put->slot)->chunk_count = chunked.count;
    }
    struct mqx_common *common = NULL;
    if (!is_chunked && !call->autocommit) {
        common = mqx_common_for(mqx_journal_store_id(call->store), &head, put->d, false);
    }
    const uint32_t length =
        common != NULL
            ? mqx_encode_short_put(record, common, &head, put->d, put->ext, put->body,
                                   (uint32_t)put->length)
            : mqx_encode_put(record, &head, put->d, put->ext, is_chunked ? &chunked : NULL,
                             is_chunked ? NULL : put->body, is_chunked ? 0 : (uint32_t)put->length);
    return mqx_unit_append_short(call->store, call->context, common, record, length, flags,
                                 put->slot);
}

/* The journal is full because its checkpoints lag behind: makes room, so that the append is tried
 * once more. Chunks that were appended before stay unused; all pieces of the message are appended
 * again. */
static int force_checkpoint(struct mqx_store *store)
{
    MQX_ASSERT(store->region.base != NULL);
    uint32_t marked = 0;
    mqx_unit_mark_long(store, &marked);
    const int status = mqx_maintenance_back_out_units(store);
    return status == MQE_INTERRUPTED ? status : mqx_checkpoint_make_room(store);
}

static void ring_if_checkpoint_due(struct mqx_store *store)
{
    MQX_ASSERT(store->region.process != 0);
    if (MQX_UNLIKELY(mqx_checkpoint_due(store))) {
        mqx_maintenance_ring(&store->region, store->region.process);
    }
}

bool mqx_put_gather(struct mqx_put_call *call, struct mqx_gather *gather)
{
    MQX_ASSERT(call->put.logged);
    MQX_ASSERT(!call->autocommit);
    MQX_ASSERT(call->put.length <= MQX_LOCKED_COPY_MAX);
    const struct mqx_put *put = &call->put;
    const uint32_t length = mqx_put_record_length(put->ext != NULL, (uint32_t)put->length);
    unsigned char *to = mqx_gather_room(gather, length);
    if (to == NULL || put->length > mqx_piece_bytes(call->store)) {
        return false;
    }
    const struct mqx_record_head head = head_of(call);
    struct mqx_run *run = &gather->run;
    if (run->common == NULL) {
        run->common = mqx_common_for(mqx_journal_store_id(call->store), &head, put->d, true);
    }
    const bool fits = run->common != NULL && mqx_common_fits(run->common, &head, put->d);
    mqx_gather_add(gather,
                   fits ? mqx_encode_short_put(to, run->common, &head, put->d, put->ext, put->body,
                                               (uint32_t)put->length)
                        : mqx_encode_put(to, &head, put->d, put->ext, NULL, put->body,
                                         (uint32_t)put->length), put->slot);
    return true;
}

int mqx_put_append_gathered(struct mqx_gather *gather)
{
    MQX_ASSERT(gather->store != NULL);
    const int status = mqx_gather_append(gather);
    ring_if_checkpoint_due(gather->store);
    return status;
}

int mqx_put_append(struct mqx_put_call *call)
{
    MQX_ASSERT(call->put.logged);
    struct mqx_store *store = call->store;
    int status = append_once(call);
    if (MQX_UNLIKELY(status == MQRC_STORAGE_MEDIUM_FULL)) {
        const int forced = force_checkpoint(store);
        status = forced == MQX_OK            ? append_once(call)
                 : forced == MQE_INTERRUPTED ? forced
                                             : status;
        status = mqx_journal_full(store, status);
    }
    ring_if_checkpoint_due(store);
    return status;
}

/* ---- the ways ---- */

/* Undoes a put that was not linked, or linked without its record. `status`: why it failed. */
static int undo_put(struct mqx_put_call *call, int status)
{
    MQX_ASSERT(status != MQX_OK);
    MQX_ASSERT(call->context != 0);
    int undone = MQX_OK;
    if (call->put.slot != 0) {
        undone = mqx_unit_undo(call->store, call->context, call->put.slot);
    }
    if (undone == MQX_OK) {
        undone = mqx_pending_release(call->store, call->context);
    }
    if (undone == MQX_OK && call->autocommit) {
        undone = mqx_unit_backout(call->store, call->context);
    }
    return undone == MQX_OK ? status : undone;
}

static int store_and_link(struct mqx_put_call *call)
{
    MQX_ASSERT(call->put.reserved == 0);
    struct mqx_put *put = &call->put;
    int status = MQX_OK;
    if (put->length > MQX_LOCKED_COPY_MAX && !put->journal_only) {
        status = store_long_body(call);
        if (status == MQX_OK) {
            status = fill_chain(call);
        }
    }
    put->slot = 0;
    return status == MQX_OK ? link_message(call) : status;
}

void mqx_put_choose_storage(struct mqx_put_call *call)
{
    MQX_ASSERT(call->context != 0);
    struct mqx_put *put = &call->put;
    const uint64_t payload = mqx_body_payload(put->ext != NULL, put->length);
    const bool in_unit = call->put.logged || !call->autocommit;
    put->context = in_unit ? call->context : 0;
    put->journal_only = call->put.logged && over_budget(&call->store->region, put->object, payload);
}

int mqx_put_in_context(struct mqx_put_call *call)
{
    MQX_ASSERT(call->context != 0);
    struct mqx_put *put = &call->put;
    mqx_put_choose_storage(call);
    int status = store_and_link(call);
    if (MQX_UNLIKELY(status == MQRC_STORAGE_NOT_AVAILABLE && call->put.logged &&
                     !put->journal_only)) {
        status = mqx_pending_release(call->store, call->context);
        put->reserved = 0;
        put->journal_only = true; /* no room in the region: the journal has the body anyway */
        status = status == MQX_OK ? store_and_link(call) : status;
    }
    if (status != MQX_OK) {
        put->slot = 0;
        return undo_put(call, status);
    }
    if (!call->put.logged) {
        return MQX_OK;
    }
    status = mqx_put_append(call);
    if (status != MQX_OK) {
        return undo_put(call, status);
    }
    return call->autocommit ? mqx_unit_finish(call->store, call->context) : MQX_OK;
}

/* Other reasons to refuse the put go before the limit of its unit. */
static MQX_COLD int refuse_full_unit(struct mqx_put_call *call, uint32_t count)
{
    MQX_ASSERT(count > 0);
    struct mqx_region *region = &call->store->region;
    struct mqx_stripe_guard guard;
    int status = mqx_stripe_guard_take(region, call->put.object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_queue_admit(region, mqx_object(region, call->put.object), &call->put);
    mqx_stripe_guard_drop(&guard);
    return status != MQX_OK
               ? status
               : mqx_fail(MQRC_SYNCPOINT_LIMIT_REACHED,
                          "the unit of work has %u messages, MAXUMSGS is %u", count,
                          mqx_load_relaxed(&region->header->max_uncommitted));
}

static int put_in_entered_unit(struct mqx_put_call *call, const mqe_unit *unit, bool limited)
{
    MQX_ASSERT(unit->manager == call->manager);
    const struct mqx_context *context = mqx_context(&call->store->region, unit->context);
    const int status = mqx_unit_check_usable(&call->store->region, unit->context);
    if (status != MQX_OK) {
        return status;
    }
    if (limited &&
        context->count >= mqx_load_relaxed(&call->store->region.header->max_uncommitted)) {
        return refuse_full_unit(call, context->count);
    }
    call->context = unit->context;
    mqx_unit_begin(call->store, unit->context);
    return mqx_put_in_context(call);
}

static int put_in_unit(struct mqx_put_call *call, const mqe_unit *unit, bool limited)
{
    MQX_ASSERT(call->context == 0);
    int status = mqx_unit_handle_enter(unit);
    if (MQX_LIKELY(status == MQX_OK)) {
        status = put_in_entered_unit(call, unit, limited);
        mqx_unit_handle_leave(unit);
    }
    return status;
}

int mqx_put_autocommit(struct mqx_put_call *call)
{
    MQX_ASSERT(call->context == 0);
    int status = mqx_pool_take(call->manager, true, &call->context);
    if (status != MQX_OK) {
        return status;
    }
    call->autocommit = true;
    mqx_unit_begin(call->store, call->context);
    status = mqx_put_in_context(call);
    if (status == MQX_OK && !call->put.logged) {
        status = mqx_unit_backout(call->store, call->context); /* the unit is empty: back to IDLE */
    }
    mqx_pool_give(call->manager, call->context);
    return status;
}

/* mqe_put() and mqe_put_attended(). */
static inline int put_message(mqe_manager *manager, mqe_unit *unit,
                              const struct mqe_destination *to, struct ps_descriptor *d,
                              const struct ps_descriptor_ext *ext, const void *body,
                              uint64_t length, int32_t expiry, uint32_t flags,
                              struct mqe_arrival *arrival)
{
    MQX_ASSERT(to != NULL && d != NULL);
    MQX_ASSERT(body != NULL || length == 0);
    struct mqx_put_call call;
    int status = mqx_enter(manager, (flags & MQE_PUT_FAIL_IF_QUIESCING) != 0);
    if (MQX_UNLIKELY(status != MQX_OK)) {
        return status;
    }
    call.manager = manager;
    call.store = &manager->store;
    call.to = to;
    call.context = 0;
    call.autocommit = false;
    call.now_us = 0;
    call.flags = flags;
    call.arrival = arrival;
    call.put = (struct mqx_put){
        .object = to->queue,
        .generation = to->queue_generation,
        .d = d,
        .ext = ext,
        .body = body,
        .length = length,
    };
    status = mqx_put_resolve(&call, expiry, flags);
    if (MQX_UNLIKELY(status != MQX_OK)) {
        return status;
    }
    if (unit == NULL && !call.put.logged && length <= MQX_LOCKED_COPY_MAX) {
        status = link_message(&call);
    } else if (unit == NULL && call.put.logged && mqx_interrupt_take_at_once()) {
        status = MQE_INTERRUPTED; /* it would flush */
    } else {
        mqx_file_calls_begin(manager);
        status = unit != NULL ? put_in_unit(&call, unit, (flags & MQE_PUT_OWN_UNIT) == 0)
                              : mqx_put_autocommit(&call);
        mqx_file_calls_end(manager);
    }
    if (MQX_UNLIKELY(status == MQRC_Q_FULL)) {
        mqx_performance_full(&manager->store.region, to->queue);
    }
    return MQX_LIKELY(status == MQX_OK) ? call.warning : status;
}

int mqe_put(mqe_manager *manager, mqe_unit *unit, const struct mqe_destination *to,
            struct ps_descriptor *d, const struct ps_descriptor_ext *ext, const void *body,
            uint64_t length, int32_t expiry, uint32_t flags)
{
    MQX_ASSERT(manager != NULL);
    return put_message(manager, unit, to, d, ext, body, length, expiry, flags, NULL);
}

int mqe_put_attended(mqe_manager *manager, mqe_unit *unit, const struct mqe_destination *to,
                     struct ps_descriptor *d, const struct ps_descriptor_ext *ext,
                     const void *body, uint64_t length, int32_t expiry, uint32_t flags,
                     struct mqe_arrival *out)
{
    MQX_ASSERT(unit != NULL);
    MQX_ASSERT(out != NULL);
    *out = (struct mqe_arrival){.before = 0};
    return put_message(manager, unit, to, d, ext, body, length, expiry, flags | MQE_PUT_ATTENDED,
                       out);
}

int32_t mqe_cap_expiry(const mqe_manager *manager, const struct mqe_destination *to,
                       int32_t expiry)
{
    MQX_ASSERT(to != NULL);
    const struct mqx_region *region = &manager->store.region;
    return region->header == NULL ? expiry : cap_expiry(region, to, expiry);
}

int mqe_put_check(mqe_manager *manager, const struct mqe_destination *to,
                  const struct ps_descriptor *d, uint64_t length)
{
    MQX_ASSERT(to != NULL && d != NULL);
    struct ps_descriptor copy = *d;
    struct mqx_put_call call = {
        .manager = manager,
        .store = &manager->store,
        .to = to,
        .put = {.object = to->queue, .generation = to->queue_generation, .d = &copy,
                .length = length},
    };
    int status = mqx_enter(manager, false);
    if (status == MQX_OK) {
        status = mqx_put_resolve(&call, EXPIRY_UNLIMITED, MQE_PUT_ATTENDED);
    }
    return status != MQX_OK ? status
                            : mqx_queue_admit(&manager->store.region,
                                              mqx_object(&manager->store.region, to->queue),
                                              &call.put);
}

int mqe_resolve_defaults(mqe_manager *manager, const struct mqe_destination *to,
                         struct ps_descriptor *d, int *warning)
{
    MQX_ASSERT(to != NULL && d != NULL);
    *warning = MQX_OK;
    const struct mqx_region *region = &manager->store.region;
    const int status = mqx_enter(manager, false);
    if (status != MQX_OK) {
        return status;
    }
    const struct mqx_object *queue = mqx_object(region, to->queue);
    const uint32_t state = queue == NULL ? (uint32_t)MQX_OBJ_FREE : mqx_load_relaxed(&queue->state);
    if ((state != MQX_OBJ_ACTIVE && state != MQX_OBJ_LOGGED) ||
        queue->generation != to->queue_generation) {
        return mqx_fail(MQRC_Q_DELETED, "the queue (slot %u) has been deleted", to->queue);
    }
    return resolve_defaults(region, queue, to, d, warning);
}

int mqe_new_id(mqe_manager *manager, uint8_t out[24])
{
    MQX_ASSERT(out != NULL);
    const int status = mqx_enter(manager, false);
    if (status == MQX_OK) {
        struct mqx_region *region = &manager->store.region;
        mqx_queue_make_id(region, mqx_fetch_add(&region->journal->next_number, (uint64_t)1), out);
    }
    return status;
}
