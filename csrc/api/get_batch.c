/*
 * get_batch.c - mqe_get_batch: many messages a call, made of the attempts of single gets
 * (get_attempt.h).
 *
 * A group, at most 64 messages and MQX_GROUP_BYTES of bodies, is taken in the lock hold of an
 * attempt. As long as no context is needed, messages are copied and removed at once. From the first
 * one on that is logged or long, or in the caller's unit, messages are claimed; near bodies are
 * copied under the lock, others after it, then the GET records enter the ring. Outside syncpoint
 * that unit commits at the end, when every body is in the caller's memory. A claim that fails goes
 * back uncounted, and is not in the batch.
 */
#include "api/context_pool.h"
#include "api/get_wait.h"
#include "api/message_rows.h"
#include "api/unit_handle.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/block_hook.h"
#include "queue/browse_lock.h"
#include "queue/performance.h"
#include "region/queue_clock.h"
#include "unit/unit_records.h"

enum {
    GET_FLAGS = MQE_GET_WAIT | MQE_GET_FAIL_IF_QUIESCING | MQE_GET_CONFIRM |
                MQE_GET_REPORT_EXPIRED,
    GET_MATCH = MQE_MATCH_PERSISTENT | MQE_MATCH_UP_TO | MQE_MATCH_NUMBER,
};

/* ---- the call ---- */

struct get_many {
    struct mqx_get_call call;  /* first: take_group() is passed it */
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
    MQX_ASSERT(message != NULL);
    struct mqe_batch *batch = many->batch;
    if (batch->count >= many->most) {
        batch->needed = 0;
        many->ended = true;
    } else {
        many->ended = !mqx_msg_batch_fits(batch, many->room, message);
    }
    return !many->ended;
}

/* MQE_CONFIRM: the message asks for a confirmation that the caller would make, and the batch ends
 * before it. */
static int copy_to(struct get_many *many, uint32_t i, const struct mqx_message *message)
{
    MQX_ASSERT(i < many->batch->capacity);
    struct mqe_batch *batch = many->batch;
    const int status = mqx_msg_batch_read(many->call.store, batch, i, message);
    if (status == MQX_OK && batch->items != NULL &&
        MQX_UNLIKELY((batch->items[i].d.report & MQRO_COD) != 0) &&
        (many->call.get->flags & MQE_GET_CONFIRM) != 0) {
        batch->confirm = message->number;
        return MQE_CONFIRM;
    }
    return status;
}

/* ---- one group, under the lock ---- */

/* On failure the lock has been dropped. */
static int find_next(struct get_many *many, struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    struct mqx_get_call *call = &many->call;
    const struct mqx_object *queue = mqx_object(guard->region, call->queue->object);
    const uint64_t now = queue->expiring != 0 ? mqx_queue_coarse_us(guard->region) : 0;
    const struct mqx_cursor before = many->cursor;
    int status;
    if (call->match.bits == 0) {
        status = mqx_match_first(call->store, guard, call->queue->object, &call->match, now,
                                 &call->slot);
    } else {
        status = mqx_match_next(call->store, guard, call->queue->object, &call->match, now,
                                &many->cursor, &call->slot);
    }
    if (MQX_UNLIKELY(status == MQX_OK && call->match.expired != 0)) {
        return mqx_get_stop_at_expired(call, guard);
    }
    if (status == MQX_OK) {
        const uint32_t found = call->slot;
        mqx_get_prefer_locked(call, guard, now);
        if (call->slot != found) {
            many->cursor = before; /* that one comes later */
        }
        status = mqx_get_check_queue(call, queue); /* finding may have released the lock */
        if (status != MQX_OK) {
            mqx_stripe_guard_drop(guard);
        }
    }
    return status;
}

static int claim(struct get_many *many, struct mqx_stripe_guard *guard, struct mqx_object *queue,
                 const struct mqx_message *message)
{
    MQX_ASSERT(many->context != 0);
    MQX_ASSERT(many->claimed < MQX_LOCKED_STEPS_MAX);
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

/* Takes the message found, or sets many->ended or many->needs_context. */
static int take_one(struct get_many *many, struct mqx_stripe_guard *guard, struct mqx_object *queue)
{
    MQX_ASSERT(!many->needs_context);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
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
        if (MQX_UNLIKELY((mqx_load_relaxed(&queue->special) & MQX_SPECIAL_EVENTS) != 0)) {
            mqx_performance_get(guard->region, queue, many->call.queue->object);
        }
    }
    return status;
}

/* At most 64 messages. *out_held: the lock is still held. */
static int take_some(struct get_many *many, struct mqx_stripe_guard *guard, bool *out_held)
{
    MQX_ASSERT(!many->needs_context);
    struct mqx_object *queue = mqx_object(guard->region, many->call.queue->object);
    const struct mqe_batch *batch = many->batch;
    const uint32_t first = batch->count;
    const uint64_t from = batch->bytes;
    int status = MQX_OK;
    *out_held = true;
    while (status == MQX_OK && !many->ended && !many->needs_context &&
           batch->count - first < MQX_LOCKED_STEPS_MAX &&
           (batch->bodies == NULL || batch->bytes - from < MQX_GROUP_BYTES)) {
        const struct mqx_cursor before = many->cursor;
        status = find_next(many, guard);
        if (status != MQX_OK) {
            *out_held = false;
            break;
        }
        status = take_one(many, guard, queue);
        if (many->needs_context) {
            many->cursor = before; /* the message is visited again */
        }
    }
    if (*out_held && batch->count != first) {
        queue->last_get_us = mqx_clock_coarse_us();
    }
    return status;
}

/* ---- after the lock ---- */

/* Claims from the k-th of the group on go back uncounted; the batch ends before them. */
static int undo_claims(struct get_many *many, uint32_t k, int why)
{
    MQX_ASSERT(k <= many->claimed);
    MQX_ASSERT(many->claimed <= many->batch->count);
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
    MQX_ASSERT(*k < many->claimed);
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
                                                        MQX_GET_ONE_OF_MANY, &gather.run.common,
                                                        to), 0);
        }
    }
    if (status == MQX_OK) {
        status = mqx_gather_append(&gather);
        *k = status == MQX_OK ? end : from[gather.run.done];
    }
    return status;
}

/* Bodies that were not copied under the lock; *k moves behind them. */
static int copy_rest(struct get_many *many, uint32_t *k)
{
    MQX_ASSERT(*k <= many->claimed);
    MQX_ASSERT(many->claimed <= many->batch->count);
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

static int complete_claims(struct get_many *many)
{
    MQX_ASSERT(many->context != 0);
    uint32_t copied = 0, logged = 0;
    int status = copy_rest(many, &copied);
    if (status != MQX_OK) {
        status = undo_claims(many, copied, status);
    }
    while (logged < many->claimed) {
        const int log = log_gets(many, &logged);
        if (log != MQX_OK) {
            return undo_claims(many, logged, log);
        }
    }
    many->claimed = 0;
    return status;
}

/* A unit for the claims: the caller's, or one in a context of the pool. */
static int begin_claims(struct get_many *many)
{
    MQX_ASSERT(many->needs_context);
    MQX_ASSERT(many->context == 0);
    int status = mqx_get_take_context(&many->call);
    if (status == MQX_OK) {
        many->context = many->call.pool;
        many->needs_context = false;
        many->plain = many->batch->count;
    }
    return status;
}

/* take_many() of get_attempt.h. */
static enum mqx_next_step take_group(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                                     bool keep, int *status)
{
    MQX_ASSERT(call->take_many != NULL);
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
        return MQX_STEP_NOTHING;
    }
    if (held) {
        mqx_stripe_guard_drop(guard);
    }
    if (many->claimed != 0) {
        mqx_file_calls_begin(call->manager);
        const int ended = complete_claims(many);
        mqx_file_calls_end(call->manager);
        *status = *status == MQX_OK ? ended : *status;
    }
    if (*status == MQX_OK && many->needs_context) {
        *status = begin_claims(many);
        return *status == MQX_OK && many->batch->count == 0 ? MQX_STEP_AGAIN : MQX_STEP_DONE;
    }
    return MQX_STEP_DONE;
}

/* ---- the call from begin to end ---- */

static int start_get(struct get_many *many, const mqe_unit *unit)
{
    MQX_ASSERT(many->context == 0);
    struct mqx_get_call *call = &many->call;
    struct mqe_batch *batch = many->batch;
    const struct mqe_get *get = call->get;
    int status = mqx_get_check_rights(call->queue, get->flags, false);
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
        status = mqx_get_check_unit(call);
    }
    if (status == MQX_OK && unit != NULL) {
        const struct mqx_region *region = &call->store->region;
        const uint32_t limit = mqx_load_relaxed(&region->header->max_uncommitted);
        const uint32_t count = mqx_context(region, unit->context)->count;
        const uint32_t left = limit > count ? limit - count : 0; /* MAXUMSGS may have fallen */
        many->most = left < many->most ? left : many->most;
        many->context = unit->context;
    }
    return status;
}

/* Group after group. A failure after the first message ends the batch and is left to the next
 * call. */
static int take_groups(struct get_many *many)
{
    MQX_ASSERT(many->batch->count == 0);
    const struct mqe_batch *batch = many->batch;
    struct mqx_stripe_guard guard;
    int status = mqx_get_or_wait(&many->call, &guard);
    while (status == MQX_OK && !many->ended && batch->count < many->most) {
        (void)mqx_get_attempt(&many->call, &guard, false, &status);
    }
    return batch->count != 0 ? MQX_OK : status;
}

/* The unit of this call ends: its messages are the caller's now, or on the queue again. */
static int end_autocommit(struct get_many *many, int status)
{
    MQX_ASSERT(many->call.unit == 0);
    MQX_ASSERT(many->plain <= many->batch->count || status != MQX_OK);
    struct mqe_batch *batch = many->batch;
    mqx_file_calls_begin(many->call.manager);
    status = mqx_unit_end_autocommit(many->call.store, many->context, status);
    mqx_file_calls_end(many->call.manager);
    if (status == MQX_OK) {
        return MQX_OK;
    }
    batch->count = many->plain;
    batch->bytes = (uint64_t)batch->offsets[batch->count];
    const bool running = mqx_region_stopped(&many->call.store->region) == MQX_RUNNING;
    return batch->count != 0 && running ? MQX_OK : status;
}

/* The unit, if there is one, has been entered. */
static int get_all(struct get_many *many, const mqe_unit *unit)
{
    MQX_ASSERT(many->call.pool == 0);
    struct mqe_get *get = many->call.get;
    const struct mqe_batch *batch = many->batch;
    int status = start_get(many, unit);
    if (status != MQX_OK || batch->capacity == 0) {
        return status;
    }
    many->call.wait_left_us = (get->flags & MQE_GET_WAIT) != 0 ? get->wait_us : 0;
    status = take_groups(many);
    if (unit == NULL && many->context != 0) {
        status = end_autocommit(many, status);
    }
    if (many->call.pool != 0) {
        mqx_pool_give(many->call.manager, many->call.pool);
    }
    get->wait_us = many->call.wait_left_us;
    if (status != MQX_OK || batch->count != 0) {
        return status;
    }
    return mqx_fail(MQRC_TRUNCATED_MSG_FAILED,
                    "the first message has %llu bytes, there is room for %llu; it stays there",
                    (unsigned long long)batch->needed, (unsigned long long)batch->body_capacity);
}

int mqe_get_batch(mqe_manager *manager, mqe_unit *unit, mqe_queue *queue, struct mqe_get *get,
                  struct mqe_batch *batch)
{
    MQX_ASSERT(queue->manager == manager);
    MQX_ASSERT(batch != NULL);
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
    if (status == MQX_OK && unit != NULL) {
        status = mqx_unit_handle_enter(unit);
    }
    if (status == MQX_OK) {
        status = get_all(&many, unit);
        if (unit != NULL) {
            mqx_unit_handle_leave(unit);
        }
    }
    return status;
}
