/*
 * batch.c - mqe_put_batch and mqe_get_batch: many messages a call, made of the steps of single ones
 * (put.h, get.h).
 *
 * Terms
 *   group   what one lock hold does: at most 64 messages and GROUP_BYTES of bodies, each message a
 *           micro-transaction of its own. A death in between leaves whole messages.
 *   long    a body above MQX_LOCKED_COPY_MAX: never copied under a lock.
 *
 * Put. Everything that can be known is looked at before the first message is linked. Then
 *   open    outside syncpoint, nothing to be logged: messages are available group by group. What
 *           fails half way leaves those before it on the queue; count tells how many.
 *   unit    in the caller's unit: groups are linked as PUT, then their records enter the ring, up
 *           to 32 in a micro-transaction. What fails half way leaves those before it in the unit.
 *   whole   outside syncpoint with messages to be logged: the same in a unit of its own, in a
 *           context of the pool, which commits with one COMMIT record, or is backed out.
 *
 * Get. A group is taken in the lock hold of an attempt (get.h). As long as no context is needed,
 * messages are copied and removed at once. From the first one on that is logged or long, or in the
 * caller's unit, messages are claimed; near bodies are copied under the lock, others after it, then
 * the GET records enter the ring. Outside syncpoint that unit commits at the end, when every body
 * is in the caller's memory. What fails after the claim goes back uncounted, and is not in the
 * batch.
 */
#include "api/batch.h"

#include "api/get.h"
#include "api/put.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/block_hook.h"
#include "queue/browse_lock.h"
#include "region/message_body.h"

#include <string.h>

enum {
    GROUP_BYTES = 65536,
    WORK_LOGGED = 1,          /* item.work, from the first look at a put to its last step */
    WORK_NEW_MSG_ID = 2,
    WORK_NEW_CORREL_ID = 4,
    GET_FLAGS = MQE_GET_WAIT | MQE_GET_FAIL_IF_QUIESCING,
    GET_MATCH = MQE_MATCH_PERSISTENT | MQE_MATCH_UP_TO,
};

/* ---- put: what one message is ---- */

struct put_many {
    struct mqx_putting call;  /* aimed at one message after the other */
    struct mqe_batch *batch;  /* count: done so far */
    uint32_t total;
    uint32_t flags;
    uint32_t longest, persistent; /* messages to ask the queue about */
    bool logged;              /* some message is */
};

static uint64_t length_of(const struct mqe_batch *batch, uint32_t i)
{
    return (uint64_t)(batch->offsets[i + 1] - batch->offsets[i]);
}

static void aim(struct put_many *many, uint32_t i)
{
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
    struct mqe_item *item = &many->batch->items[i];
    item->number = many->call.put.number;
    item->length = (uint32_t)many->call.put.length;
    item->lsn = 0;
}

static void note_record(const struct put_many *many, uint32_t i, uint32_t slot)
{
    const struct mqx_message *message = mqx_message(&many->call.store->region, slot);
    mqx_check(message != NULL);
    many->batch->items[i].lsn = message->lsn;
}

/* ---- put: looking first ---- */

static int check_offsets(const struct mqe_batch *batch, uint32_t i)
{
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
    struct mqe_batch *batch = many->batch;
    struct mqe_item *item = &batch->items[i];
    int status = check_offsets(batch, i);
    item->work = 0;
    item->d.zero = 0;
    memset(item->ext.zero, 0, item->d.has_ext != 0 ? sizeof item->ext.zero : 0);
    if (status == MQX_OK) {
        aim(many, i);
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
    if (item->d.persistence != MQPER_NOT_PERSISTENT) {
        many->persistent = i;
    }
    return MQX_OK;
}

/* Would the queue take them all, as it is now? Lock held. */
static int check_queue(struct put_many *many)
{
    const struct mqx_region *region = &many->call.store->region;
    const struct mqx_object *queue = mqx_object(region, many->call.to->queue);
    const uint32_t asked[] = {many->longest, many->persistent};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(asked); i++) {
        aim(many, asked[i]);
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
    const struct mqx_region *region = &many->call.store->region;
    const struct mqx_context *context = mqx_context(region, unit->context);
    const uint32_t most = mqx_load_relaxed(&region->header->max_uncommitted);
    mqx_check(context != NULL);
    if (mqx_load_acquire(&context->must_back_out) != 0) {
        return mqx_fail(MQRC_BACKED_OUT, "the unit of work has been backed out; end it");
    }
    if (context->count < most && many->total <= most - context->count) {
        return MQX_OK;
    }
    many->batch->failed = context->count < most ? most - context->count : 0;
    return mqx_fail(MQRC_SYNCPOINT_LIMIT_REACHED,
                    "the unit of work has %u messages, the batch %u, MAXUMSGS is %u",
                    context->count, many->total, most);
}

/* What is wrong with any of them, before the first is put. */
static int check_all(struct put_many *many, const mqe_unit *unit)
{
    struct mqx_region *region = &many->call.store->region;
    struct mqx_stripe_guard guard;
    for (uint32_t i = 0; i < many->total; i++) {
        const int status = check_item(many, i);
        if (status != MQX_OK) {
            many->batch->failed = i;
            return status;
        }
    }
    int status = mqx_stripe_guard_take(region, many->call.to->queue, &guard);
    if (status != MQX_OK) {
        return status;
    }
    status = check_queue(many);
    mqx_stripe_guard_drop(&guard);
    return status == MQX_OK && unit != NULL ? check_unit(many, unit) : status;
}

/* ---- put: groups ---- */

struct group {
    uint32_t first, count;    /* messages linked */
    uint32_t slot[MQX_LOCKED_STEPS_MAX];
};

/* One lock hold. What is linked is in *group, whatever is returned. */
static int link_group(struct put_many *many, struct group *group)
{
    struct mqx_putting *call = &many->call;
    struct mqx_wakes wakes = {.count = 0};
    uint64_t bytes = 0;
    struct mqx_stripe_guard guard;
    *group = (struct group){.first = many->batch->count};
    int status = mqx_stripe_guard_take(&call->store->region, call->to->queue, &guard);
    if (status != MQX_OK) {
        return status;
    }
    for (uint32_t i = group->first; i < many->total && status == MQX_OK; i++) {
        aim(many, i);
        bytes += call->put.length;
        if (group->count == MQX_LOCKED_STEPS_MAX || call->put.length > MQX_LOCKED_COPY_MAX ||
            bytes > GROUP_BYTES || wakes.count >= MQX_LOCKED_STEPS_MAX) {
            break;
        }
        if (call->context != 0) {
            mqx_put_place(call);
        }
        status = mqx_put_link(call, &guard, &wakes);
        if (status == MQX_OK) {
            mqx_body_expect(&guard, mqx_body_payload(call->put.ext != NULL, call->put.length));
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
    int status = MQX_OK;
    for (uint32_t k = group->count; k > from && status == MQX_OK; k--) {
        status = mqx_unit_undo(many->call.store, many->call.context, group->slot[k - 1]);
    }
    return status;
}

/* Aims at the k-th message of the group, which is linked. */
static void aim_at(struct put_many *many, const struct group *group, uint32_t k)
{
    const uint32_t i = group->first + k;
    aim(many, i);
    many->call.put.slot = group->slot[k];
    many->call.put.number = many->batch->items[i].number;
}

/* The first message from the k-th on whose record is wanted and not in the ring. */
static uint32_t first_without(struct put_many *many, const struct group *group, uint32_t k)
{
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
    struct mqx_putting *call = &many->call;
    struct mqx_gather gather;
    uint32_t end = *k;
    int status = mqx_gather_begin(&gather, call->store, call->context, MQX_APPEND_PUT);
    for (; end < group->count && status == MQX_OK; end++) {
        aim_at(many, group, end);
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
    *k = first_without(many, group, *k);
    if (status == MQX_OK || status == MQRC_STORAGE_MEDIUM_FULL) { /* by itself */
        mqx_check(*k < group->count);
        aim_at(many, group, *k);
        status = mqx_put_append(call);
        *k += status == MQX_OK;
    }
    return status;
}

/* The records of the messages linked in a unit. */
static int log_group(struct put_many *many, const struct group *group)
{
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

/* A long one, or one for which the region had no room: with whatever its way takes. */
static int put_one(struct put_many *many)
{
    const uint32_t i = many->batch->count, context = many->call.context;
    struct mqx_putting *call = &many->call;
    aim(many, i);
    const int status = context != 0 ? mqx_put_in_context(call) : mqx_put_alone(call);
    call->context = context;
    call->single = false;
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
    const uint32_t context = many->call.context;
    int status = MQX_OK;
    if (context != 0) {
        mqx_inside(many->call.manager, 1);
        mqx_unit_begin(many->call.store, context);
    }
    while (status == MQX_OK && many->batch->count < many->total) {
        status = put_some(many);
    }
    if (context != 0) {
        mqx_inside(many->call.manager, -1);
    }
    return status;
}

/* Commits the unit of this call, or takes it back when the call has failed. */
static int end_whole(struct mqx_store *store, uint32_t context, int status)
{
    const struct mqx_context *unit = mqx_context(&store->region, context);
    mqx_check(unit != NULL);
    if (status == MQX_OK) {
        status = mqx_unit_commit(store, context);
    }
    if (status != MQX_OK && mqx_load_acquire(&unit->state) == MQX_CTX_ACTIVE) {
        const int undone = mqx_unit_backout(store, context);
        status = undone == MQX_OK ? status : undone;
    }
    return status;
}

/* All of them or none, in a unit of this call. */
static int put_whole(struct put_many *many)
{
    mqe_manager *manager = many->call.manager;
    int status = mqx_pool_take(manager, true, &many->call.context);
    if (status != MQX_OK) {
        return status;
    }
    status = put_rest(many);
    mqx_inside(manager, 1);
    status = end_whole(many->call.store, many->call.context, status);
    mqx_inside(manager, -1);
    mqx_pool_give(manager, many->call.context);
    if (status != MQX_OK) {
        many->batch->failed = many->batch->count;
        many->batch->count = 0;
    }
    return status;
}

int mqe_put_batch(mqe_manager *manager, mqe_unit *unit, const struct mqe_destination *to,
                  struct mqe_batch *batch, uint32_t flags)
{
    struct put_many many = {
        .call = {.manager = manager,
                 .store = &manager->store,
                 .to = to,
                 .now_us = mqx_clock_coarse_us()},
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
    status = check_all(&many, unit);
    if (status != MQX_OK) {
        return status;
    }
    if (unit == NULL && many.logged) {
        status = put_whole(&many);
    } else {
        many.call.context = unit == NULL ? 0 : unit->context;
        status = put_rest(&many);
        batch->failed = batch->count;
    }
    if (status != MQX_OK || batch->warnings == 0) {
        return status;
    }
    return mqx_fail(MQRC_PRIORITY_EXCEEDS_MAXIMUM,
                    "%u of %u priorities are above MaxPriority %d: queued at %d, fields kept",
                    batch->warnings, batch->count, MQX_MAX_PRIORITY, MQX_MAX_PRIORITY);
}

/* ---- get: what fits ---- */

struct get_many {
    struct mqx_getting call;  /* first: take_group() is handed it */
    struct mqe_batch *batch;
    uint32_t most;            /* messages */
    uint64_t room;            /* bytes of bodies beyond the first message */
    uint32_t context;         /* of the claims; 0: none was needed yet */
    uint32_t plain;           /* messages taken before it was */
    bool needs_context;
    bool ended;               /* no more: nothing there, or it does not fit */
    uint32_t claimed;         /* messages of the group that are claimed, the newest of the batch */
    uint32_t slot[MQX_LOCKED_STEPS_MAX];
    bool near[MQX_LOCKED_STEPS_MAX]; /* copied under the lock */
    bool logged[MQX_LOCKED_STEPS_MAX];
    struct mqx_cursor cursor; /* of a search that passes over messages */
};

static bool fits(struct get_many *many, const struct mqx_message *message)
{
    struct mqe_batch *batch = many->batch;
    if (batch->count >= many->most) {
        batch->needed = 0;
        many->ended = true;
    } else {
        many->ended = !mqx_msg_batch_fits(batch, many->room, message);
    }
    return !many->ended;
}

static int copy_to(struct get_many *many, uint32_t i, const struct mqx_message *message)
{
    return mqx_msg_batch_read(many->call.store, many->batch, i, message);
}

/* ---- get: one group, under the lock ---- */

/* On failure the lock has been dropped. */
static int find_next(struct get_many *many, struct mqx_stripe_guard *guard)
{
    struct mqx_getting *call = &many->call;
    const struct mqx_object *queue = mqx_object(guard->region, call->queue->object);
    const uint64_t now = queue->expiring != 0 ? mqx_clock_coarse_us() : 0;
    const struct mqx_cursor before = many->cursor;
    int status;
    if (call->match.bits == 0) {
        status = mqx_match_first(call->store, guard, call->queue->object, &call->match, now,
                                 &call->slot);
    } else {
        status = mqx_match_next(call->store, guard, call->queue->object, &call->match, now,
                                &many->cursor, &call->slot);
    }
    if (status == MQX_OK) {
        const uint32_t found = call->slot;
        mqx_get_own(call, guard, now);
        if (call->slot != found) {
            many->cursor = before; /* that one comes later */
        }
        status = mqx_get_check(call, queue); /* finding may have let go of the lock */
        if (status != MQX_OK) {
            mqx_stripe_guard_drop(guard);
        }
    }
    return status;
}

static int claim(struct get_many *many, struct mqx_stripe_guard *guard, struct mqx_object *queue,
                 const struct mqx_message *message)
{
    struct mqe_batch *batch = many->batch;
    const uint32_t k = many->claimed;
    const bool near = mqx_msg_batch_is_near(batch, message);
    const int status = near ? copy_to(many, batch->count, message) : MQX_OK;
    if (status == MQX_OK) {
        mqx_unit_begin(many->call.store, many->context);
        mqx_browse_lock_end(guard, queue, many->call.slot, many->call.queue->handle);
        mqx_queue_claim(guard, queue, many->call.slot, MQX_MSG_GOT, many->context);
        mqx_stripe_guard_commit(guard);
        many->slot[k] = many->call.slot;
        many->near[k] = near;
        many->logged[k] = (message->flags & MQX_MSGF_PERSISTENT) != 0;
        many->claimed += 1;
    }
    return status;
}

/* Takes the message found, or says why not: then many->ended or needs_context. */
static int take_one(struct get_many *many, struct mqx_stripe_guard *guard, struct mqx_object *queue)
{
    struct mqe_batch *batch = many->batch;
    const struct mqx_message *message = mqx_message(guard->region, many->call.slot);
    int status;
    if (message == NULL || !fits(many, message)) {
        many->ended = true;
        return MQX_OK;
    }
    const uint32_t length = message->length;
    if (many->context != 0) {
        status = claim(many, guard, queue, message);
    } else if ((message->flags & MQX_MSGF_PERSISTENT) != 0 ||
               !mqx_msg_batch_is_near(batch, message)) {
        many->needs_context = true;
        return MQX_OK;
    } else {
        status = copy_to(many, batch->count, message);
        if (status == MQX_OK) {
            if (MQX_UNLIKELY(message->state == MQX_MSG_LOCKED)) {
                mqx_browse_lock_end(guard, queue, many->call.slot, many->call.queue->handle);
            }
            mqx_get_remove(guard, queue, many->call.slot);
        }
    }
    if (status == MQX_OK) {
        mqx_msg_batch_count(batch, length);
    }
    return status;
}

/* At most 64 messages. *out_held: the lock is still held. */
static int take_some(struct get_many *many, struct mqx_stripe_guard *guard, bool *out_held)
{
    struct mqx_object *queue = mqx_object(guard->region, many->call.queue->object);
    const struct mqe_batch *batch = many->batch;
    const uint32_t first = batch->count;
    const uint64_t from = batch->bytes;
    int status = MQX_OK;
    *out_held = true;
    while (status == MQX_OK && !many->ended && !many->needs_context &&
           batch->count - first < MQX_LOCKED_STEPS_MAX &&
           (batch->bodies == NULL || batch->bytes - from < GROUP_BYTES)) {
        const struct mqx_cursor before = many->cursor;
        status = find_next(many, guard);
        if (status != MQX_OK) {
            *out_held = false;
            break;
        }
        status = take_one(many, guard, queue);
        if (many->needs_context) {
            many->cursor = before; /* it is looked at again */
        }
    }
    if (*out_held && batch->count != first) {
        queue->last_get_us = mqx_clock_coarse_us();
    }
    return status;
}

/* ---- get: after the lock ---- */

/* Claims from the k-th of the group on go back uncounted; the batch ends before them. */
static int give_back(struct get_many *many, uint32_t k, int why)
{
    const struct mqx_region *region = &many->call.store->region;
    int status = MQX_OK;
    many->ended = true;
    while (many->claimed > k && status == MQX_OK) {
        many->claimed -= 1;
        many->batch->count -= 1;
        many->batch->bytes -= mqx_message(region, many->slot[many->claimed])->length;
        status = mqx_unit_undo(many->call.store, many->context, many->slot[many->claimed]);
    }
    return status == MQX_OK ? why : status;
}

/* GET records from the k-th claim on; *k moves behind what is logged. */
static int log_gets(struct get_many *many, uint32_t *k)
{
    struct mqx_store *store = many->call.store;
    struct mqx_gather gather;
    uint32_t from[MQX_RUN_MAX]; /* of each record: its claim */
    uint32_t end = *k;
    int status = mqx_gather_begin(&gather, store, many->context, 0);
    for (; end < many->claimed && status == MQX_OK; end++) {
        unsigned char *to = mqx_gather_room(&gather, sizeof(struct psj_record));
        if (many->logged[end] && to == NULL) {
            break;
        }
        if (many->logged[end]) {
            from[gather.run.count] = end;
            mqx_gather_add(&gather, mqx_unit_encode_get(store, many->context, many->slot[end],
                                                        false, to), 0);
        }
    }
    if (status == MQX_OK) {
        status = mqx_gather_append(&gather);
        *k = status == MQX_OK ? end : from[gather.run.done];
    }
    return status;
}

/* Bodies that were not copied under the lock; *k moves behind them. */
static int copy_far(struct get_many *many, uint32_t *k)
{
    const struct mqx_region *region = &many->call.store->region;
    const uint32_t first = many->batch->count - many->claimed;
    int status = MQX_OK;
    for (; *k < many->claimed; *k += 1) {
        if (!many->near[*k]) {
            mqx_about_to_block();
            status = copy_to(many, first + *k, mqx_message(region, many->slot[*k]));
        }
        if (status != MQX_OK) {
            break;
        }
    }
    return status;
}

static int end_claims(struct get_many *many)
{
    uint32_t copied = 0, logged = 0;
    int status = copy_far(many, &copied);
    if (status != MQX_OK) {
        status = give_back(many, copied, status);
    }
    while (logged < many->claimed) {
        const int log = log_gets(many, &logged);
        if (log != MQX_OK) {
            return give_back(many, logged, log);
        }
    }
    many->claimed = 0;
    return status;
}

/* A unit for the claims: the caller's, or one in a context of the pool. */
static int begin_claims(struct get_many *many)
{
    int status = mqx_get_context(&many->call);
    if (status == MQX_OK) {
        many->context = many->call.pool;
        many->needs_context = false;
        many->plain = many->batch->count;
    }
    return status;
}

/* take_many() of get.h. */
static enum mqx_next_step take_group(struct mqx_getting *call, struct mqx_stripe_guard *guard,
                                     bool keep, int *status)
{
    struct get_many *many = (struct get_many *)(void *)call;
    const uint32_t before = many->batch->count;
    bool held;
    many->claimed = 0;
    if (before == 0) {
        many->cursor = (struct mqx_cursor){0};
        many->ended = false;
    }
    *status = take_some(many, guard, &held);
    if (held && *status == MQX_OK && call->slot == 0 && many->batch->count == 0) {
        if (!keep) {
            mqx_stripe_guard_drop(guard);
        }
        return STEP_NOTHING;
    }
    if (held) {
        mqx_stripe_guard_drop(guard);
    }
    if (many->claimed != 0) {
        mqx_inside(call->manager, 1);
        const int ended = end_claims(many);
        mqx_inside(call->manager, -1);
        *status = *status == MQX_OK ? ended : *status;
    }
    if (*status == MQX_OK && many->needs_context) {
        *status = begin_claims(many);
        return *status == MQX_OK && many->batch->count == 0 ? STEP_AGAIN : STEP_DONE;
    }
    return STEP_DONE;
}

/* ---- get: the call ---- */

static int start_get(struct get_many *many, mqe_unit *unit)
{
    struct mqx_getting *call = &many->call;
    struct mqe_batch *batch = many->batch;
    const struct mqe_get *get = call->get;
    int status = mqx_get_rights(call->queue, get->flags, false);
    if (status == MQX_OK && (get->flags & ~(uint32_t)GET_FLAGS) != 0) {
        status = mqx_fail(MQRC_OPTIONS_ERROR, "flags %#x are not for batches", get->flags);
    }
    if (status == MQX_OK && (get->match & ~(uint32_t)GET_MATCH) != 0) {
        status = mqx_fail(MQRC_MATCH_OPTIONS_ERROR, "match bits %#x are not for batches",
                          get->match);
    }
    if (status == MQX_OK && unit == NULL && (batch->bodies == NULL || batch->items == NULL)) {
        status = mqx_fail(MQRC_OPTIONS_ERROR, "a get outside syncpoint needs room for what it "
                                              "removes: descriptors and bodies");
    }
    mqx_match_init(&call->store->region, get, &call->match);
    many->most = batch->capacity;
    many->room = mqx_msg_batch_room(batch, get->max_bytes);
    if (status == MQX_OK && unit != NULL) {
        status = mqx_get_unit(call);
    }
    if (status == MQX_OK && unit != NULL) {
        const struct mqx_region *region = &call->store->region;
        const uint32_t left = mqx_load_relaxed(&region->header->max_uncommitted) -
                              mqx_context(region, unit->context)->count;
        many->most = left < many->most ? left : many->most;
        many->context = unit->context;
    }
    return status;
}

/* Group after group; what ends it after the first message is told by the next call. */
static int take_all(struct get_many *many)
{
    const struct mqe_batch *batch = many->batch;
    int status = mqx_get_or_wait(&many->call);
    while (status == MQX_OK && !many->ended && batch->count < many->most) {
        struct mqx_stripe_guard guard;
        (void)mqx_get_attempt(&many->call, &guard, false, &status);
    }
    return batch->count != 0 ? MQX_OK : status;
}

/* The unit of this call ends: its messages are the caller's now, or on the queue again. */
static int end_get(struct get_many *many, int status)
{
    struct mqe_batch *batch = many->batch;
    mqx_inside(many->call.manager, 1);
    status = end_whole(many->call.store, many->context, status);
    mqx_inside(many->call.manager, -1);
    if (status == MQX_OK) {
        return MQX_OK;
    }
    batch->count = many->plain;
    batch->bytes = (uint64_t)batch->offsets[batch->count];
    const bool running = mqx_region_stopped(&many->call.store->region) == MQX_RUNNING;
    return batch->count != 0 && running ? MQX_OK : status;
}

int mqe_get_batch(mqe_manager *manager, mqe_unit *unit, mqe_queue *queue, struct mqe_get *get,
                  struct mqe_batch *batch)
{
    struct get_many many = {
        .call = {.manager = manager, .store = &manager->store, .queue = queue, .get = get,
                 .unit = unit == NULL ? 0 : unit->context, .woken = true,
                 .take_many = take_group},
        .batch = batch,
    };
    mqx_msg_batch_begin(batch);
    get->length = 0;
    get->capacity = 0;
    int status = mqx_enter(manager, (get->flags & MQE_GET_FAIL_IF_QUIESCING) != 0);
    if (status == MQX_OK) {
        status = start_get(&many, unit);
    }
    if (status != MQX_OK || batch->capacity == 0) {
        return status;
    }
    many.call.wait_left_us = (get->flags & MQE_GET_WAIT) != 0 ? get->wait_us : 0;
    status = take_all(&many);
    if (unit == NULL && many.context != 0) {
        status = end_get(&many, status);
    }
    if (many.call.pool != 0) {
        mqx_pool_give(manager, many.call.pool);
    }
    get->wait_us = many.call.wait_left_us;
    if (status != MQX_OK || batch->count != 0) {
        return status;
    }
    return mqx_fail(MQRC_TRUNCATED_MSG_FAILED,
                    "the first message has %llu bytes, there is room for %llu; it stays there",
                    (unsigned long long)batch->needed, (unsigned long long)batch->body_capacity);
}
