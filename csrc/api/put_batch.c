/*
 * put_batch.c - mqe_put_batch: many messages a call, made of the steps of single puts (put.h).
 *
 * Terms
 *   group   what one lock hold does: at most 64 messages and MQX_GROUP_BYTES of bodies, each
 *           message a micro-transaction of its own. A death in between leaves whole messages.
 *   long    a body above MQX_LOCKED_COPY_MAX: never copied under a lock.
 *
 * Everything that can be known is checked before the first message is linked. Then, by the call:
 *   open        outside syncpoint, nothing to be logged: messages are available group by group. A
 *               failure half way leaves those before it on the queue; count is their number.
 *   unit        in the caller's unit: groups are linked as PUT, then their records enter the ring,
 *               up to 32 in a micro-transaction. A failure half way leaves those before it in the
 *               unit.
 *   autocommit  outside syncpoint with messages to be logged: the same in a context of the pool,
 *               which commits with one COMMIT record, or is backed out.
 */
#include "api/context_pool.h"
#include "api/message_rows.h"
#include "api/put.h"
#include "api/unit_handle.h"
#include "base/error.h"
#include "queue/performance.h"
#include "queue/queue.h"
#include "region/message_body.h"
#include "region/queue_clock.h"

#include <string.h>

enum { /* item.work, from the first check of a put to its last step */
    WORK_LOGGED = 1,
    WORK_NEW_MSG_ID = 2,
    WORK_NEW_CORREL_ID = 4,
};

/* ---- one message of the batch ---- */

struct put_many {
    struct mqx_put_call call;  /* one message after the other */
    struct mqe_batch *batch;  /* count: done so far */
    uint32_t total;
    uint32_t flags;
    uint32_t longest, persistent; /* messages to ask the queue about */
    bool logged;              /* some message is */
};

static uint64_t length_of(const struct mqe_batch *batch, uint32_t i)
{
    MQX_ASSERT(i < batch->capacity);
    return (uint64_t)(batch->offsets[i + 1] - batch->offsets[i]);
}

static void select_message(struct put_many *many, uint32_t i)
{
    MQX_ASSERT(i < many->total);
    const struct mqe_batch *batch = many->batch;
    struct mqe_item *item = &batch->items[i];
    many->call.put = (struct mqx_put){
        .object = many->call.to->queue,
        .generation = many->call.to->queue_generation,
        .d = &item->d,
        .ext = item->d.has_ext != 0 ? &item->ext : NULL,
        .body = batch->bodies + batch->offsets[i],
        .length = length_of(batch, i),
        .logged = (item->work & WORK_LOGGED) != 0,
        .make_msg_id = (item->work & WORK_NEW_MSG_ID) != 0,
        .make_correl_id = (item->work & WORK_NEW_CORREL_ID) != 0,
    };
}

static void note_result(const struct put_many *many, uint32_t i)
{
    MQX_ASSERT(i < many->total);
    MQX_ASSERT(many->call.put.slot != 0);
    struct mqe_item *item = &many->batch->items[i];
    item->number = many->call.put.number;
    item->length = (uint32_t)many->call.put.length;
    item->lsn = 0;
}

static void note_record(const struct put_many *many, uint32_t i, uint32_t slot)
{
    MQX_ASSERT(slot != 0);
    const struct mqx_message *message = mqx_message(&many->call.store->region, slot);
    MQX_ASSERT(message != NULL); /* linked, and not yet shown to others */
    many->batch->items[i].lsn = message == NULL ? 0 : message->lsn;
}

/* ---- checks before the first message is linked ---- */

static int check_offsets(const struct mqe_batch *batch, uint32_t i)
{
    MQX_ASSERT(batch->offsets != NULL);
    const int64_t from = batch->offsets[i], to = batch->offsets[i + 1];
    if (from >= 0 && to >= from && (uint64_t)to <= batch->body_capacity) {
        return MQX_OK;
    }
    return mqx_fail(MQRC_BUFFER_LENGTH_ERROR,
                    "offsets %lld to %lld are not in order within %llu bytes of bodies",
                    (long long)from, (long long)to, (unsigned long long)batch->body_capacity);
}

static int check_item(struct put_many *many, uint32_t i)
{
    MQX_ASSERT(i < many->total);
    struct mqe_batch *batch = many->batch;
    struct mqe_item *item = &batch->items[i];
    int status = check_offsets(batch, i);
    item->work = 0;
    memset(item->ext.zero, 0, item->d.has_ext != 0 ? sizeof item->ext.zero : 0);
    if (status == MQX_OK) {
        select_message(many, i);
        status = mqx_put_resolve(&many->call, item->expiry, many->flags);
    }
    if (status != MQX_OK) {
        return status;
    }
    const struct mqx_put *put = &many->call.put;
    item->work = (put->logged ? (uint32_t)WORK_LOGGED : 0u) |
                 (put->make_msg_id ? (uint32_t)WORK_NEW_MSG_ID : 0u) |
                 (put->make_correl_id ? (uint32_t)WORK_NEW_CORREL_ID : 0u);
    item->reason = many->call.warning;
    batch->warnings += many->call.warning != 0;
    many->logged = many->logged || put->logged;
    if (put->length > length_of(batch, many->longest)) {
        many->longest = i;
    }
    if (item->d.persistence != 0) {
        many->persistent = i;
    }
    return MQX_OK;
}

/* Would the queue take them all, as it is now? Lock held. */
static int check_queue(struct put_many *many)
{
    MQX_ASSERT(many->longest < many->total);
    MQX_ASSERT(many->persistent < many->total);
    const struct mqx_region *region = &many->call.store->region;
    const struct mqx_object *queue = mqx_object(region, many->call.to->queue);
    const uint32_t asked[] = {many->longest, many->persistent};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(asked); i++) {
        select_message(many, asked[i]);
        const int status = mqx_queue_admit(region, queue, &many->call.put);
        if (status != MQX_OK) {
            many->batch->failed = asked[i];
            return status;
        }
    }
    const uint32_t most = mqx_load_relaxed(&queue->max_depth);
    if (many->total > most - queue->present) { /* admitted: there is room for one */
        many->batch->failed = most - queue->present;
        return mqx_fail(MQRC_Q_FULL, "%.48s holds %u messages, MAXDEPTH is %u, the batch has %u",
                        queue->name, queue->present, most, many->total);
    }
    return MQX_OK;
}

static int check_unit(const struct put_many *many, const mqe_unit *unit)
{
    MQX_ASSERT(unit->context != 0);
    const struct mqx_region *region = &many->call.store->region;
    const struct mqx_context *context = mqx_context(region, unit->context);
    const uint32_t most = mqx_load_relaxed(&region->header->max_uncommitted);
    const int status = mqx_unit_check_usable(region, unit->context);
    if (status != MQX_OK) {
        return status;
    }
    if (context->count < most && many->total <= most - context->count) {
        return MQX_OK;
    }
    many->batch->failed = context->count < most ? most - context->count : 0;
    return mqx_fail(MQRC_SYNCPOINT_LIMIT_REACHED,
                    "the unit of work has %u messages, the batch %u, MAXUMSGS is %u",
                    context->count, many->total, most);
}

/* Refuses the batch when one of its messages would be refused. */
static int check_all(struct put_many *many, const mqe_unit *unit)
{
    MQX_ASSERT(many->batch->count == 0);
    struct mqx_region *region = &many->call.store->region;
    struct mqx_stripe_guard guard;
    for (uint32_t i = 0; i < many->total; i++) {
        const int status = check_item(many, i);
        if (status != MQX_OK) {
            many->batch->failed = i;
            return status;
        }
    }
    int status = mqx_stripe_guard_enter(region, many->call.to->queue, &guard);
    if (status != MQX_OK) {
        return status;
    }
    status = check_queue(many);
    mqx_stripe_guard_drop(&guard);
    return status == MQX_OK && unit != NULL ? check_unit(many, unit) : status;
}

/* ---- groups ---- */

struct group {
    uint32_t first, count;    /* messages linked */
    uint32_t slot[MQX_LOCKED_STEPS_MAX];
};

/* One lock hold. *group has the messages that were linked, also after a failure. */
static int link_group(struct put_many *many, struct group *group)
{
    MQX_ASSERT(many->batch->count < many->total);
    struct mqx_put_call *call = &many->call;
    struct mqx_wakeups wakes = {.count = 0};
    uint64_t bytes = 0;
    struct mqx_stripe_guard guard;
    *group = (struct group){.first = many->batch->count};
    int status = mqx_stripe_guard_enter(&call->store->region, call->to->queue, &guard);
    if (status != MQX_OK) {
        return status;
    }
    for (uint32_t i = group->first; i < many->total && status == MQX_OK; i++) {
        select_message(many, i);
        bytes += call->put.length;
        if (group->count == MQX_LOCKED_STEPS_MAX || call->put.length > MQX_LOCKED_COPY_MAX ||
            bytes > MQX_GROUP_BYTES || wakes.count >= MQX_LOCKED_STEPS_MAX) {
            break;
        }
        if (call->context != 0) {
            mqx_put_choose_storage(call);
        }
        status = mqx_put_link(call, &guard, &wakes);
        if (status == MQX_OK) {
            mqx_body_expect(&guard, mqx_body_payload(call->put.ext != NULL, call->put.length));
            MQX_ASSERT(group->count < MQX_LOCKED_STEPS_MAX);
            group->slot[group->count++] = call->put.slot;
            note_result(many, i);
        }
    }
    if (status == MQX_OK) {
        mqx_stripe_guard_drop(&guard);
    }
    mqx_wait_list_wake(&call->store->region, &wakes);
    return status;
}

/* The messages of the group from `from` on leave the unit again, newest first. */
static int unlink_group(struct put_many *many, const struct group *group, uint32_t from)
{
    MQX_ASSERT(from <= group->count);
    int status = MQX_OK;
    for (uint32_t k = group->count; k > from && status == MQX_OK; k--) {
        status = mqx_unit_undo(many->call.store, many->call.context, group->slot[k - 1]);
    }
    return status;
}

/* Selects the k-th message of the group, which is linked. */
static void select_linked(struct put_many *many, const struct group *group, uint32_t k)
{
    MQX_ASSERT(k < group->count);
    MQX_ASSERT(group->slot[k] != 0);
    const uint32_t i = group->first + k;
    select_message(many, i);
    many->call.put.slot = group->slot[k];
    many->call.put.number = many->batch->items[i].number;
}

/* The first message from the k-th on whose record is wanted and not in the ring. */
static uint32_t first_unlogged(struct put_many *many, const struct group *group, uint32_t k)
{
    MQX_ASSERT(k <= group->count);
    const struct mqx_region *region = &many->call.store->region;
    while (k < group->count && ((many->batch->items[group->first + k].work & WORK_LOGGED) == 0 ||
                                mqx_message(region, group->slot[k])->lsn != 0)) {
        k += 1;
    }
    return k;
}

/* Records from the k-th message on, as many as are gathered at once; *k moves behind them, or stays
 * on the one that could not be logged. */
static int log_some(struct put_many *many, const struct group *group, uint32_t *k)
{
    MQX_ASSERT(*k < group->count);
    MQX_ASSERT(many->call.context != 0);
    struct mqx_put_call *call = &many->call;
    struct mqx_gather gather;
    uint32_t end = *k;
    int status = mqx_gather_begin(&gather, call->store, call->context, MQX_APPEND_PUT);
    for (; end < group->count && status == MQX_OK; end++) {
        select_linked(many, group, end);
        if (call->put.logged && !mqx_put_gather(call, &gather)) {
            break;
        }
    }
    if (status == MQX_OK) {
        status = mqx_put_append_gathered(&gather);
    }
    if (status == MQX_OK && end > *k) {
        *k = end;
        return MQX_OK;
    }
    *k = first_unlogged(many, group, *k);
    if (status == MQX_OK || status == MQRC_STORAGE_MEDIUM_FULL) { /* by itself */
        MQX_ASSERT(*k < group->count);
        select_linked(many, group, *k);
        status = mqx_put_append(call);
        *k += status == MQX_OK;
    }
    return status;
}

/* The records of the messages linked in a unit. */
static int log_group(struct put_many *many, const struct group *group)
{
    MQX_ASSERT(many->call.context != 0);
    uint32_t k = 0;
    int status = MQX_OK;
    while (k < group->count && status == MQX_OK) {
        status = log_some(many, group, &k);
    }
    if (status != MQX_OK) {
        const int undone = unlink_group(many, group, k);
        status = undone == MQX_OK ? status : undone;
    }
    for (uint32_t i = 0; i < k; i++) {
        note_record(many, group->first + i, group->slot[i]);
    }
    many->batch->count += k;
    return status;
}

/* A long message, or one for which the region had no room: as a single put. */
static int put_one(struct put_many *many)
{
    MQX_ASSERT(many->batch->count < many->total);
    const uint32_t i = many->batch->count, context = many->call.context;
    struct mqx_put_call *call = &many->call;
    select_message(many, i);
    const int status = context != 0 ? mqx_put_in_context(call) : mqx_put_autocommit(call);
    call->context = context;
    call->autocommit = false;
    if (status == MQX_OK) {
        note_result(many, i);
        many->batch->count += 1;
    }
    if (status == MQX_OK && call->put.logged) {
        note_record(many, i, call->put.slot);
    }
    return status;
}

static int put_some(struct put_many *many)
{
    MQX_ASSERT(many->batch->count < many->total);
    struct group group;
    int status = MQX_OK, logged = MQX_OK;
    if (length_of(many->batch, many->batch->count) > MQX_LOCKED_COPY_MAX) {
        return put_one(many);
    }
    status = link_group(many, &group);
    if (many->call.context != 0) {
        logged = log_group(many, &group);
    } else {
        many->batch->count += group.count;
    }
    if (logged != MQX_OK || status != MQRC_STORAGE_NOT_AVAILABLE) {
        return logged != MQX_OK ? logged : status;
    }
    return put_one(many); /* the journal may have room for the body */
}

static int put_rest(struct put_many *many)
{
    MQX_ASSERT(many->total > 0);
    const uint32_t context = many->call.context;
    int status = MQX_OK;
    if (context != 0) {
        mqx_file_calls_begin(many->call.manager);
        mqx_unit_begin(many->call.store, context);
    }
    while (status == MQX_OK && many->batch->count < many->total) {
        status = put_some(many);
    }
    if (context != 0) {
        mqx_file_calls_end(many->call.manager);
    }
    return status;
}

/* All of them or none, in a unit of this call. */
static int put_autocommit(struct put_many *many)
{
    MQX_ASSERT(many->logged);
    MQX_ASSERT(many->call.context == 0);
    mqe_manager *manager = many->call.manager;
    int status = mqx_pool_take(manager, true, &many->call.context);
    if (status != MQX_OK) {
        return status;
    }
    status = put_rest(many);
    mqx_file_calls_begin(manager);
    status = mqx_unit_end_autocommit(many->call.store, many->call.context, status);
    mqx_file_calls_end(manager);
    mqx_pool_give(manager, many->call.context);
    if (status != MQX_OK) {
        many->batch->failed = many->batch->count;
        many->batch->count = 0;
    }
    return status;
}

static int put_all(struct put_many *many, const mqe_unit *unit)
{
    MQX_ASSERT(many->total > 0);
    int status = check_all(many, unit);
    if (status != MQX_OK) {
        return status;
    }
    if (unit == NULL && many->logged) {
        return put_autocommit(many);
    }
    many->call.context = unit == NULL ? 0 : unit->context;
    status = put_rest(many);
    many->batch->failed = many->batch->count;
    return status;
}

int mqe_put_batch(mqe_manager *manager, mqe_unit *unit, const struct mqe_destination *to,
                  struct mqe_batch *batch, uint32_t flags)
{
    MQX_ASSERT(to != NULL);
    MQX_ASSERT(batch != NULL);
    struct put_many many = {
        .call = {.manager = manager,
                 .store = &manager->store,
                 .to = to,
                 .now_us = mqx_queue_coarse_us(&manager->store.region)},
        .batch = batch,
        .total = batch->count,
        .flags = flags,
    };
    int status = mqx_enter(manager, (flags & MQE_PUT_FAIL_IF_QUIESCING) != 0);
    batch->count = 0;
    batch->failed = 0;
    batch->warnings = 0;
    batch->needed = 0;
    if (status != MQX_OK || many.total == 0) {
        return status;
    }
    status = unit == NULL ? MQX_OK : mqx_unit_handle_enter(unit);
    if (status == MQX_OK) {
        status = put_all(&many, unit);
        if (unit != NULL) {
            mqx_unit_handle_leave(unit);
        }
    }
    if (MQX_UNLIKELY(status == MQRC_Q_FULL)) {
        mqx_performance_full(&manager->store.region, to->queue);
    }
    if (status != MQX_OK || batch->warnings == 0) {
        return status;
    }
    return mqx_fail(MQRC_PRIORITY_EXCEEDS_MAXIMUM,
                    "%u of %u priorities are above MaxPriority %d: queued at %d, fields kept",
                    batch->warnings, batch->count, MQX_MAX_PRIORITY, MQX_MAX_PRIORITY);
}
