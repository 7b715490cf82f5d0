/*
 * get.c - mqe_get: destructive gets, browses, waiting.
 *
 * One attempt (mqx_get_attempt) runs under the stripe lock: find the message, then one of
 *
 *   quick      non-persistent, outside a unit, short: copied and removed in one lock hold.
 *   claimed    it becomes GOT in a context (the unit's, or one of the pool: "single"); what is long
 *   or lies in the
 *              journal is copied with no lock held; a persistent one's GET record enters the ring;
 *              a single call then decides, flushes, and removes it.
 *   browsed    copied under the lock when short; else pinned (or LOCKED) while it is copied.
 *   too long   2080: described, not taken.
 *   unknown    what must be known of a message in the journal before it can be dealt with is read
 *              from there, with no lock held; then the attempt is made again.
 *
 * The message that the handle has locked is one of those that its destructive gets find; a call
 * that takes it ends the lock, no other destructive get does.
 *
 * and tells what is left to do after the lock (struct outcome). Nothing runs between the removal of
 * a message outside syncpoint and the return but memory copies: the buffer was the caller's all
 * along (rule 34).
 *
 * Waiting: list self, sleep at most 1 s at a time on the context's own word, try again (wait_list.h).
 */
#include "api/get.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/block_hook.h"
#include "os/futex.h"
#include "queue/browse_lock.h"
#include "unit/unit.h"

#include <string.h>

enum {
    WAIT_BOUND_US = 1000000,
    ZOS_BACKOUT_MAX = 255,    /* what BackoutCount counts to on z/OS */
    QUICK_FLAGS = MQE_GET_WAIT | MQE_GET_ACCEPT_TRUNCATED | MQE_GET_IF_PERSISTENT |
                  MQE_GET_FAIL_IF_QUIESCING | MQE_GET_ROOM_FOR_MDE,
    UNDER_CURSOR_FLAGS = MQE_GET_UNDER_CURSOR | MQE_GET_BROWSE_UNDER_CURSOR,
};

/* ---- contexts ---- */

int mqx_get_context(struct mqx_getting *call)
{
    return call->pool != 0 ? MQX_OK : mqx_pool_take(call->manager, true, &call->pool);
}

/* ---- copying out ---- */

/* Has the message values that an MQMD of version 1 has no fields for? */
static bool has_version_2(const struct ps_descriptor *d, const struct ps_descriptor_ext *ext)
{
    static const uint8_t no_group[MQX_ID_SIZE];
    return d->has_ext != 0 && (ext->msg_seq_number != 1 || ext->offset != 0 ||
                               ext->msg_flags != 0 || ext->original_length != -1 ||
                               memcmp(ext->group_id, no_group, sizeof no_group) != 0);
}

static bool may_have_mde(const struct mqx_getting *call, const struct mqx_message *message)
{
    return (call->get->flags & MQE_GET_ROOM_FOR_MDE) != 0 &&
           (message->flags & MQX_MSGF_HAS_EXT) != 0;
}

/* Bytes of the MQMDE that the caller puts before the body. A message in the journal of which it is
 * not known has room for both. */
static uint32_t header_of(const struct mqx_getting *call, const struct mqx_message *message)
{
    if (MQX_LIKELY(!may_have_mde(call, message))) {
        return 0;
    }
    bool heads = call->known == message->number && call->known_heads;
    if (message->cells != 0) {
        const struct ps_descriptor *d = mqx_body_descriptor(&call->store->region, message);
        heads = d != NULL && has_version_2(d, (const struct ps_descriptor_ext *)(d + 1));
    }
    return heads ? MQE_MDE_SIZE : 0;
}

static uint64_t wanted_bytes(const struct mqx_getting *call, const struct mqx_message *message)
{
    const uint64_t capacity = call->get->capacity;
    const uint32_t header = header_of(call, message);
    const uint64_t room = capacity > header ? capacity - header : 0;
    return message->length < room ? message->length : room;
}

/* In the region and short: copied under the lock. */
static bool is_near(const struct mqx_getting *call, const struct mqx_message *message)
{
    return message->cells != 0 && wanted_bytes(call, message) <= MQX_LOCKED_COPY_MAX;
}

static MQX_COLD void cap_backout_count(const struct mqx_store *store, struct ps_descriptor *d)
{
    if (store->region.header->platform == MQX_PLATFORM_ZOS) {
        d->backout_count = ZOS_BACKOUT_MAX;
    }
}

int mqx_get_copy(struct mqx_store *store, const struct mqx_message *message,
                 struct ps_descriptor *d, struct ps_descriptor_ext *ext, void *buffer,
                 uint64_t bytes)
{
    const int status = message->cells != 0
                           ? mqx_body_read(&store->region, message, d, ext, buffer, bytes)
                           : mqx_journal_fetch(store, message, d, ext, buffer, bytes);
    d->backout_count = message->backout_count;
    if (MQX_UNLIKELY(message->backout_count > ZOS_BACKOUT_MAX)) {
        cap_backout_count(store, d);
    }
    return status;
}

static int copy_bytes(struct mqx_getting *call, const struct mqx_message *message, uint64_t bytes)
{
    struct mqe_get *get = call->get;
    get->length = message->length;
    get->number = message->number;
    const int status =
        mqx_get_copy(call->store, message, &get->d, &get->ext, get->buffer, bytes);
    if (MQX_UNLIKELY(may_have_mde(call, message))) {
        get->header = has_version_2(&get->d, &get->ext) ? MQE_MDE_SIZE : 0;
    }
    return status;
}

static int copy_message(struct mqx_getting *call, const struct mqx_message *message)
{
    return copy_bytes(call, message, wanted_bytes(call, message));
}

/* Tenths of a second left, at least 1: an expired message is never returned. */
int32_t mqx_expiry_left(const struct ps_descriptor *d)
{
    if (d->expiry_us == 0) {
        return -1;
    }
    const uint64_t now = mqx_clock_coarse_us();
    const uint64_t left = d->expiry_us > now ? (d->expiry_us - now) / 100000u : 0;
    return left < 1 ? 1 : left > 999999999 ? 999999999 : (int32_t)left;
}

static int result_of(const struct mqx_getting *call)
{
    const uint64_t length = call->get->length + call->get->header;
    if (MQX_UNLIKELY(call->short_of_room)) {
        return mqx_fail(MQRC_TRUNCATED_MSG_FAILED,
                        "the message has %llu bytes, the buffer %llu; it stays on the queue",
                        (unsigned long long)length, (unsigned long long)call->get->capacity);
    }
    if (MQX_UNLIKELY(length > call->get->capacity)) {
        return mqx_fail(MQRC_TRUNCATED_MSG_ACCEPTED, "%llu of %llu bytes were delivered",
                        (unsigned long long)call->get->capacity, (unsigned long long)length);
    }
    return MQX_OK;
}

/* A tag that matched is no proof; what came from the journal is verified by its full ids (rule
 * 47). */
static bool is_impostor(const struct mqx_getting *call)
{
    return call->match.bits != 0 &&
           !mqx_match_exact(&call->match, &call->get->d, &call->get->ext);
}

/* Such a message is not looked at again by this call. */
static bool pass_over_impostor(struct mqx_getting *call)
{
    const bool impostor = is_impostor(call);
    if (impostor) {
        call->passed = call->browse ? call->cursor : call->found;
    }
    if (impostor && call->match.excluded < MQX_MATCH_EXCLUDE_MAX) {
        call->match.exclude[call->match.excluded++] = call->number;
    }
    return impostor;
}

/* Without a lock: may a get through the handle find a message that others do not see? */
static bool may_have_locked(const struct mqx_getting *call)
{
    return MQX_UNLIKELY((call->queue->options & MQE_BROWSE) != 0) &&
           mqx_browse_lock_maybe(&call->store->region, call->queue->handle);
}

/* ---- what happens to the message under the lock; each returns with the lock dropped ---- */

void mqx_get_remove(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot)
{
    const struct mqx_message *message = mqx_message(guard->region, slot);
    const bool has_ext = (message->flags & MQX_MSGF_HAS_EXT) != 0;
    const uint64_t payload = mqx_body_payload(has_ext, message->length);
    const uint32_t class_no = mqx_class_for((uint32_t)(payload + sizeof(struct mqx_block)));
    bool pinned = false;
    (void)mqx_queue_remove(guard, queue, slot, 0, &pinned);
    queue->get_count += 1;
    mqx_stripe_guard_commit(guard);
    mqx_stripe_guard_trim(guard, class_no);
}

/* Removes a message that is not worth a context: non-persistent, one block, outside a unit. */
static enum mqx_next_step take_quick(struct mqx_getting *call, struct mqx_stripe_guard *guard,
                                     struct mqx_object *queue, int *status)
{
    const struct mqx_message *message = mqx_message(guard->region, call->slot);
    *status = copy_message(call, message);
    if (MQX_LIKELY(*status == MQX_OK)) {
        queue->last_get_us = call->get->d.put_time_us;
        if (MQX_UNLIKELY(message->state == MQX_MSG_LOCKED)) {
            mqx_browse_lock_end(guard, queue, call->slot, call->queue->handle);
        }
        mqx_get_remove(guard, queue, call->slot);
    }
    mqx_stripe_guard_drop(guard);
    return STEP_DONE;
}

static enum mqx_next_step take_claimed(struct mqx_getting *call, struct mqx_stripe_guard *guard,
                                       struct mqx_object *queue, uint32_t context, int *status)
{
    const struct mqx_message *message = mqx_message(guard->region, call->slot);
    const bool near = is_near(call, message);
    *status = near ? copy_message(call, message) : MQX_OK;
    if (*status == MQX_OK) {
        mqx_unit_begin(call->store, context);
        mqx_browse_lock_end(guard, queue, call->slot, call->queue->handle);
        mqx_queue_claim(guard, queue, call->slot, MQX_MSG_GOT, context);
        mqx_stripe_guard_commit(guard);
        queue->last_get_us = mqx_clock_coarse_us();
    }
    mqx_stripe_guard_drop(guard);
    if (*status != MQX_OK) {
        return STEP_DONE;
    }
    if (!near) {
        mqx_about_to_block();
        *status = copy_message(call, message);
    }
    return STEP_COPY;
}

/* Copies so many bytes with the message pinned and no lock held. STEP_AGAIN: it is gone. */
static enum mqx_next_step copy_pinned(struct mqx_getting *call, struct mqx_stripe_guard *guard,
                                      uint64_t bytes, int *status)
{
    struct mqx_message *message = mqx_message(guard->region, call->slot);
    if (message->pins == UINT8_MAX) { /* 255 copies of one message under way: come back later */
        mqx_stripe_guard_drop(guard);
        return STEP_AGAIN;
    }
    mqx_pending_pin(guard, call->pool, call->queue->object, call->slot);
    mqx_stripe_guard_drop(guard);
    mqx_about_to_block();
    *status = copy_bytes(call, message, bytes);
    const bool gone = *(volatile uint8_t *)&message->state == MQX_MSG_GONE;
    int released = mqx_pending_release(call->store, call->pool);
    if (released != MQX_OK) {
        *status = released;
        return STEP_DONE;
    }
    return gone ? STEP_AGAIN : STEP_DONE;
}

/* The message stays; long ones are pinned while they are copied. */
static enum mqx_next_step look_at(struct mqx_getting *call, struct mqx_stripe_guard *guard,
                                  int *status)
{
    const struct mqx_message *message = mqx_message(guard->region, call->slot);
    if (is_near(call, message)) {
        *status = copy_message(call, message);
        mqx_stripe_guard_drop(guard);
        return STEP_DONE;
    }
    const enum mqx_next_step next = copy_pinned(call, guard, wanted_bytes(call, message), status);
    return next == STEP_DONE && *status == MQX_OK && pass_over_impostor(call) ? STEP_AGAIN : next;
}

static bool unit_is_full(const struct mqx_getting *call)
{
    const struct mqx_context *context = mqx_context(&call->store->region, call->unit);
    mqx_check(context != NULL);
    return context->count >= mqx_load_relaxed(&call->store->region.header->max_uncommitted);
}

/* What decides about the message stands in the journal, and is not known yet: whether the one that
 * this handle has locked is meant at all (a claim would end the lock), or the one for which there
 * is no room in the unit; or what the room for an MQMDE is needed for. */
static bool must_learn(const struct mqx_getting *call, const struct mqx_message *message)
{
    if (MQX_LIKELY(message->cells != 0) || call->known == message->number) {
        return false;
    }
    const bool limited = !call->browse && call->unit != 0 && unit_is_full(call);
    return ((message->state == MQX_MSG_LOCKED || limited) && call->match.bits != 0) ||
           (may_have_mde(call, message) &&
            (uint64_t)message->length + MQE_MDE_SIZE > call->get->capacity);
}

static enum mqx_next_step learn(struct mqx_getting *call, struct mqx_stripe_guard *guard,
                                int *status)
{
    if (call->pool == 0) {
        mqx_stripe_guard_drop(guard);
        *status = mqx_get_context(call);
        return *status == MQX_OK ? STEP_AGAIN : STEP_DONE;
    }
    const uint64_t number = call->number;
    const bool own = mqx_message(guard->region, call->slot)->state == MQX_MSG_LOCKED;
    const enum mqx_next_step next = copy_pinned(call, guard, 0, status);
    if (next == STEP_AGAIN || *status != MQX_OK) {
        return next;
    }
    mqx_check(call->get->number == number);
    call->known = number;
    call->known_matches = !is_impostor(call);
    call->known_heads = has_version_2(&call->get->d, &call->get->ext);
    if (!own) {
        (void)pass_over_impostor(call);
    }
    return STEP_AGAIN;
}

/* Browse with LOCK: hidden from everybody until unlocked; no pin is needed, nobody else can remove
 * it. */
static enum mqx_next_step lock_message(struct mqx_getting *call, struct mqx_stripe_guard *guard,
                                       struct mqx_object *queue, int *status)
{
    const struct mqx_message *message = mqx_message(guard->region, call->slot);
    mqx_browse_lock_set(guard, queue, call->slot, call->queue->handle);
    mqx_stripe_guard_drop(guard);
    *status = copy_message(call, message);
    const bool again = *status == MQX_OK && pass_over_impostor(call);
    if (*status != MQX_OK || again) {
        (void)mqx_handle_unlock(&call->store->region, call->queue->handle);
    }
    return again ? STEP_AGAIN : STEP_DONE;
}

/* ---- after the lock ---- */

/* The claimed message has been copied: make it ours, or give it back. */
static enum mqx_next_step end_claim(struct mqx_getting *call, uint32_t context, int *status)
{
    const bool single = call->unit == 0 || context != call->unit;
    struct mqx_context *unit = mqx_context(&call->store->region, context);
    if (*status == MQX_OK && pass_over_impostor(call)) {
        *status = mqx_unit_undo(call->store, context, call->slot);
        return *status == MQX_OK ? STEP_AGAIN : STEP_DONE;
    }
    if (*status == MQX_OK && call->logged) {
        *status = mqx_unit_log_get(call->store, context, call->slot, single);
    } else if (*status == MQX_OK && single) {
        mqx_store_release(&unit->state, MQX_CTX_DECIDED);
    }
    if (*status != MQX_OK) {
        int undone = mqx_unit_undo(call->store, context, call->slot);
        if (undone == MQX_OK && single) {
            undone = mqx_unit_backout(call->store, context);
        }
        *status = undone == MQX_OK ? *status : undone;
    } else if (single) {
        *status = mqx_unit_finish(call->store, context);
    }
    return STEP_DONE;
}

static enum mqx_next_step finish_claim(struct mqx_getting *call, uint32_t context, int *status)
{
    mqx_inside(call->manager, 1);
    const enum mqx_next_step next = end_claim(call, context, status);
    mqx_inside(call->manager, -1);
    return next;
}

/* ---- one attempt ---- */

/* The message under the cursor, when it is still the same one and free or locked by this handle. */
static void find_under_cursor(struct mqx_getting *call, const struct mqx_stripe_guard *guard,
                              uint64_t now)
{
    const uint32_t slot = call->cursor.message;
    const struct mqx_message *message = mqx_message(guard->region, slot);
    call->slot = 0;
    if (message == NULL || call->cursor.started == 0 || message->number != call->cursor.number ||
        message->object != call->queue->object) {
        return;
    }
    const uint32_t own = mqx_browse_lock_find(guard, call->queue->object, call->queue->handle);
    if ((message->state == MQX_MSG_AVAILABLE || own == slot) &&
        !mqx_queue_expired(guard->region, message, now)) {
        call->slot = slot;
    }
}

void mqx_get_own(struct mqx_getting *call, const struct mqx_stripe_guard *guard, uint64_t now)
{
    if (MQX_LIKELY(!may_have_locked(call))) {
        return;
    }
    const uint32_t slot = mqx_browse_lock_find(guard, call->queue->object, call->queue->handle);
    const struct mqx_message *own = mqx_message(guard->region, slot);
    const struct mqx_message *found = mqx_message(guard->region, call->slot);
    if (own == NULL || mqx_queue_expired(guard->region, own, now) ||
        !mqx_match_message(guard->region, &call->match, own) ||
        (call->known == own->number && !call->known_matches)) {
        return;
    }
    if (found == NULL || own->placement > found->placement ||
        (own->placement == found->placement && own->position < found->position)) {
        call->slot = slot;
    }
}

/* Which message, under the lock. On failure the lock has been dropped. */
static int find(struct mqx_getting *call, struct mqx_stripe_guard *guard, struct mqx_object *queue)
{
    const uint32_t flags = call->get->flags;
    const uint32_t object = call->queue->object;
    const uint64_t now = queue->expiring != 0 ? mqx_clock_coarse_us() : 0;
    int status;
    if ((flags & UNDER_CURSOR_FLAGS) != 0) {
        find_under_cursor(call, guard, now);
        return MQX_OK;
    }
    if (call->browse) {
        return mqx_match_next(call->store, guard, object, &call->match, now, &call->cursor,
                              &call->slot);
    }
    if ((call->match.bits & (MQE_MATCH_SEQ_NUMBER | MQE_MATCH_OFFSET)) != 0) {
        call->found = call->passed; /* no index has these, and there may be many impostors */
        status = mqx_match_next(call->store, guard, object, &call->match, now, &call->found,
                                &call->slot);
    } else {
        status = mqx_match_first(call->store, guard, object, &call->match, now, &call->slot);
    }
    if (MQX_LIKELY(status == MQX_OK)) {
        mqx_get_own(call, guard, now);
    }
    return status;
}

/* Says why nothing can be got from the queue; 0 when it can after all: it is in a structure that
 * has not failed. */
int mqx_get_refuse(const struct mqx_getting *call, const struct mqx_object *queue)
{
    const uint32_t state = queue == NULL ? (uint32_t)MQX_OBJ_FREE : mqx_load_relaxed(&queue->state);
    if ((state != MQX_OBJ_ACTIVE && state != MQX_OBJ_LOGGED) ||
        queue->generation != call->queue->generation) {
        return mqx_fail(MQRC_Q_DELETED, "the queue (slot %u) has been deleted",
                        call->queue->object);
    }
    const int status = mqx_resolved_path_check(&call->store->region, &call->queue->path, false);
    if (status != MQX_OK) {
        return status; /* 2041 goes before the queue's own 2016 */
    }
    if (mqx_load_relaxed(&queue->get_inhibited) != 0) {
        return mqx_fail(MQRC_GET_INHIBITED, "%.48s has GET(DISABLED)", queue->name);
    }
    return mqx_load_relaxed(&queue->np_life) == MQX_NP_IN_STRUCTURE
               ? mqx_queue_failing(&call->store->region, queue)
               : MQX_OK;
}

/* MAXUMSGS of the caller's unit. */
static int check_limit(const struct mqx_getting *call)
{
    return unit_is_full(call)
               ? mqx_fail(MQRC_SYNCPOINT_LIMIT_REACHED,
                          "the unit of work has %u messages, MAXUMSGS is %u",
                          mqx_context(&call->store->region, call->unit)->count,
                          mqx_load_relaxed(&call->store->region.header->max_uncommitted))
               : MQX_OK;
}

/* Deals with the message that was found; returns with the lock dropped. */
static enum mqx_next_step deal_with(struct mqx_getting *call, struct mqx_stripe_guard *guard,
                                    struct mqx_object *queue, int *status)
{
    const struct mqx_message *message = mqx_message(guard->region, call->slot);
    const uint32_t flags = call->get->flags;
    call->number = message->number;
    call->logged = (message->flags & MQX_MSGF_PERSISTENT) != 0;
    if (MQX_UNLIKELY(must_learn(call, message))) {
        return learn(call, guard, status);
    }
    call->short_of_room =
        (uint64_t)message->length + header_of(call, message) > call->get->capacity &&
        !call->truncate;
    if (call->browse || call->short_of_room) {
        if (!call->short_of_room && (flags & MQE_GET_LOCK) != 0 &&
            message->state == MQX_MSG_AVAILABLE) {
            return lock_message(call, guard, queue, status);
        }
        if (!is_near(call, message) && call->pool == 0) {
            mqx_stripe_guard_drop(guard);
            *status = mqx_get_context(call);
            return *status == MQX_OK ? STEP_AGAIN : STEP_DONE;
        }
        return look_at(call, guard, status);
    }
    const bool in_unit = call->unit != 0 &&
                         ((flags & MQE_GET_IF_PERSISTENT) == 0 ||
                          (message->flags & (MQX_MSGF_PERSISTENT | MQX_MSGF_VOLATILE)) ==
                              MQX_MSGF_PERSISTENT);
    if (!in_unit && !call->logged && is_near(call, message) &&
        mqx_body_is_single(mqx_body_payload(true, message->length))) {
        return take_quick(call, guard, queue, status);
    }
    if (!in_unit && call->pool == 0) {
        mqx_stripe_guard_drop(guard);
        *status = mqx_get_context(call);
        return *status == MQX_OK ? STEP_AGAIN : STEP_DONE;
    }
    if (in_unit && (flags & MQE_GET_IF_PERSISTENT) != 0) {
        *status = check_limit(call); /* only now is it known that the message counts */
        if (*status != MQX_OK) {
            mqx_stripe_guard_drop(guard);
            return STEP_DONE;
        }
    }
    const uint32_t context = in_unit ? call->unit : call->pool;
    const enum mqx_next_step next = take_claimed(call, guard, queue, context, status);
    return next == STEP_COPY ? finish_claim(call, context, status) : next;
}

/* Lists this call's context as a waiter, under the lock. */
static void list_as_waiter(struct mqx_getting *call, struct mqx_stripe_guard *guard,
                           uint32_t *out_seen)
{
    struct mqx_context *context = mqx_context(guard->region, call->pool);
    mqx_check(context != NULL);
    context->wait_match = call->match.bits & 7u;
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        context->wait_tag[k] = (call->match.bits >> k & 1u) != 0 ? call->match.tag[k] : 0;
    }
    context->wait_browse = (call->browse && (call->get->flags & MQE_GET_LOCK) == 0) ||
                           call->match.bits >> MQX_INDEX_COUNT != 0;
    mqx_wait_list_add(guard, call->queue->object, call->pool);
    *out_seen = mqx_load_acquire(&context->wait_word);
}

/* One attempt. STEP_NOTHING leaves the lock held only when `keep` is set. A waiter leaves its list
 * under the lock hold in which it looks, so whoever puts its message meets it listed or is seen. */
enum mqx_next_step mqx_get_attempt(struct mqx_getting *call, struct mqx_stripe_guard *guard,
                                   bool keep, int *status)
{
    *status = mqx_stripe_guard_take(&call->store->region, call->queue->object, guard);
    if (MQX_UNLIKELY(*status != MQX_OK)) {
        return STEP_DONE;
    }
    if (call->listed) {
        call->woken = mqx_wait_list_remove(guard, call->pool) != MQX_WAIT_LISTED;
        call->listed = false;
    }
    struct mqx_object *queue = mqx_object(&call->store->region, call->queue->object);
    *status = mqx_get_check(call, queue);
    if (MQX_UNLIKELY(*status != MQX_OK)) {
        mqx_stripe_guard_drop(guard);
        return STEP_DONE;
    }
    if (MQX_UNLIKELY(call->take_many != NULL)) {
        return call->take_many(call, guard, keep, status);
    }
    *status = find(call, guard, queue);
    if (MQX_UNLIKELY(*status != MQX_OK)) {
        return STEP_DONE;
    }
    *status = mqx_get_check(call, queue); /* finding may have let go of the lock meanwhile */
    if (MQX_UNLIKELY(*status != MQX_OK)) {
        mqx_stripe_guard_drop(guard);
        return STEP_DONE;
    }
    if (call->slot == 0) {
        if (!keep) {
            mqx_stripe_guard_drop(guard);
        }
        return STEP_NOTHING;
    }
    return deal_with(call, guard, queue, status);
}

/* ---- waiting ---- */

/* Off the list for good; a wake-up that was given already goes to the next waiter. */
static int leave_list(struct mqx_getting *call)
{
    struct mqx_wakes wakes = {.count = 0};
    struct mqx_stripe_guard guard;
    int status = mqx_stripe_guard_take(&call->store->region, call->queue->object, &guard);
    if (status == MQX_OK) {
        if (mqx_wait_list_remove(&guard, call->pool) == MQX_WAIT_WOKEN) {
            mqx_wait_list_hand_on(&guard, call->queue->object, &wakes);
        }
        mqx_stripe_guard_drop(&guard);
        mqx_wait_list_wake(&call->store->region, &wakes);
        call->listed = false;
    }
    return status;
}

/* Sleeps once and stays listed. MQE_INTERRUPTED or a reason that ends the wait: not listed. */
static int sleep_once(struct mqx_getting *call, uint32_t seen)
{
    struct mqx_context *context = mqx_context(&call->store->region, call->pool);
    const uint64_t start = mqx_clock_monotonic_us();
    const uint64_t bound = call->wait_left_us >= 0 && call->wait_left_us < WAIT_BOUND_US
                               ? (uint64_t)call->wait_left_us
                               : (uint64_t)WAIT_BOUND_US;
    mqx_check(context != NULL && call->listed);
    mqx_about_to_block();
    const int slept = mqx_futex_wait(&context->wait_word, seen, bound);
    if (call->wait_left_us >= 0) {
        const int64_t spent = (int64_t)(mqx_clock_monotonic_us() - start);
        call->wait_left_us = spent < call->wait_left_us ? call->wait_left_us - spent : 0;
    }
    int status = mqx_enter(call->manager, (call->get->flags & MQE_GET_FAIL_IF_QUIESCING) != 0);
    if (status == MQX_OK && slept == -EINTR) {
        status = MQE_INTERRUPTED;
    }
    if (status == MQX_OK) {
        return MQX_OK;
    }
    const int left = leave_list(call);
    return left != MQX_OK ? left : status;
}

static MQX_COLD int no_message(const struct mqx_getting *call)
{
    if ((call->get->flags & UNDER_CURSOR_FLAGS) != 0) {
        return mqx_fail(MQRC_NO_MSG_UNDER_CURSOR, "the browse cursor is on no retrievable message");
    }
    return mqx_fail(MQRC_NO_MSG_AVAILABLE, "no message that matches");
}

/* Attempts until there is a message, the time is up, or something ends the wait. */
int mqx_get_or_wait(struct mqx_getting *call)
{
    const struct mqx_cursor start = call->cursor;
    for (;;) {
        const bool wait = call->wait_left_us != 0;
        struct mqx_stripe_guard guard;
        int status = wait ? mqx_get_context(call) : MQX_OK;
        if (status != MQX_OK) {
            return status;
        }
        const enum mqx_next_step next = mqx_get_attempt(call, &guard, wait, &status);
        if (next == STEP_AGAIN) {
            call->cursor = call->passed.started != 0 ? call->passed : start;
            continue;
        }
        if (next == STEP_DONE) {
            if (!call->woken && status == MQX_OK) {
                mqx_add_relaxed(&call->store->region.header->woken_by_bound, 1u);
            }
            return status != MQX_OK ? status : result_of(call);
        }
        if (!wait) {
            return no_message(call);
        }
        uint32_t seen;
        list_as_waiter(call, &guard, &seen);
        call->listed = true;
        mqx_stripe_guard_drop(&guard);
        call->passed = (struct mqx_cursor){0};
        status = sleep_once(call, seen);
        if (status != MQX_OK) {
            return status;
        }
    }
}

/* The common case by itself: outside a unit, no wait needed, whatever comes first, and that is
 * non-persistent, short and does not expire. False when the message wants more care; nothing has
 * been touched then. */
static bool get_at_once(struct mqx_getting *call, int *status)
{
    struct mqx_region *region = &call->store->region;
    struct mqx_stripe_guard guard;
    *status = mqx_stripe_guard_take(region, call->queue->object, &guard);
    if (MQX_UNLIKELY(*status != MQX_OK)) {
        return true;
    }
    struct mqx_object *queue = mqx_object(region, call->queue->object);
    *status = mqx_get_check(call, queue);
    if (MQX_UNLIKELY(*status != MQX_OK)) {
        mqx_stripe_guard_drop(&guard);
        return true;
    }
    call->slot = mqx_priority_index_first(region, queue);
    const struct mqx_message *message = mqx_message(region, call->slot);
    if (MQX_LIKELY(message != NULL && (message->flags & MQX_MSGF_PERSISTENT) == 0 &&
                   message->expiry == 0 && message->length <= call->get->capacity &&
                   message->length <= MQX_LOCKED_COPY_MAX && !may_have_mde(call, message))) {
        (void)take_quick(call, &guard, queue, status);
        return true;
    }
    mqx_stripe_guard_drop(&guard);
    if (message == NULL && call->wait_left_us == 0) {
        *status = no_message(call);
        return true;
    }
    return false;
}

static bool unlock(mqe_queue *queue)
{
    return mqx_handle_unlock(&queue->manager->store.region, queue->handle);
}

/* ---- the call ---- */

int mqx_get_rights(const mqe_queue *queue, uint32_t flags, bool browse)
{
    const bool needs_browse = browse || (flags & (MQE_GET_UNDER_CURSOR | MQE_GET_UNLOCK)) != 0;
    const bool needs_input = !browse && (flags & MQE_GET_UNLOCK) == 0;
    if (MQX_UNLIKELY(needs_browse && (queue->options & MQE_BROWSE) == 0)) {
        return mqx_fail(MQRC_NOT_OPEN_FOR_BROWSE, "the handle was not opened for browse");
    }
    if (MQX_UNLIKELY(needs_input && (queue->options & MQE_INPUT) == 0)) {
        return mqx_fail(MQRC_NOT_OPEN_FOR_INPUT, "the handle was not opened for input");
    }
    return MQX_OK;
}

int mqx_get_unit(const struct mqx_getting *call)
{
    const struct mqx_context *context = mqx_context(&call->store->region, call->unit);
    mqx_check(context != NULL);
    if (mqx_load_acquire(&context->must_back_out) != 0) {
        return mqx_fail(MQRC_BACKED_OUT, "the unit of work has been backed out; end it");
    }
    const bool takes_part = !call->browse && (call->get->flags & MQE_GET_IF_PERSISTENT) == 0;
    return takes_part ? check_limit(call) : MQX_OK;
}

/* Browses and gets under the cursor move or read the cursor of the handle: one at a time. */
static int get_with_cursor(struct mqx_getting *call)
{
    mqe_queue *queue = call->queue;
    const uint32_t flags = call->get->flags;
    int status;
    if (pthread_mutex_trylock(&queue->cursor_mutex) != 0) {
        mqx_about_to_block();
        (void)pthread_mutex_lock(&queue->cursor_mutex);
    }
    call->cursor = queue->cursor;
    if ((flags & MQE_GET_BROWSE_FIRST) != 0) {
        call->cursor = (struct mqx_cursor){0};
    }
    if ((flags & UNDER_CURSOR_FLAGS) == 0) {
        (void)unlock(queue); /* one lock a handle; the next browse ends it */
        status = mqx_get_or_wait(call);
    } else {
        call->wait_left_us = 0;
        call->match.bits = 0;
        status = mqx_get_or_wait(call);
    }
    if (status == MQX_OK || status == MQRC_TRUNCATED_MSG_ACCEPTED) {
        if ((flags & (MQE_GET_BROWSE_FIRST | MQE_GET_BROWSE_NEXT)) != 0) {
            queue->cursor = call->cursor;
        }
    } else if ((flags & MQE_GET_BROWSE_FIRST) != 0) {
        queue->cursor = (struct mqx_cursor){0};
    }
    (void)pthread_mutex_unlock(&queue->cursor_mutex);
    return status;
}

static int unlock_call(mqe_queue *queue)
{
    const struct mqx_object *object = mqx_object(&queue->manager->store.region, queue->object);
    if (object == NULL || mqx_load_acquire(&object->state) == MQX_OBJ_DELETING) {
        return mqx_fail(MQRC_Q_DELETED, "the queue (slot %u) has been deleted", queue->object);
    }
    const int status = mqx_resolved_path_check(&queue->manager->store.region, &queue->path, false);
    if (status != MQX_OK && status != MQRC_GET_INHIBITED) {
        return status;
    }
    mqx_error_clear(); /* a lock ends on an inhibited queue too */
    return unlock(queue)
               ? MQX_OK
               : mqx_fail(MQRC_NO_MSG_LOCKED, "the handle has no message locked");
}

int mqe_get(mqe_manager *manager, mqe_unit *unit, mqe_queue *queue, struct mqe_get *get)
{
    const uint32_t browse_flags =
        MQE_GET_BROWSE_FIRST | MQE_GET_BROWSE_NEXT | MQE_GET_BROWSE_UNDER_CURSOR;
    const uint32_t cursor_flags = browse_flags | MQE_GET_UNDER_CURSOR;
    struct mqx_getting call;
    call.browse = (get->flags & browse_flags) != 0;
    int status = mqx_enter(manager, (get->flags & MQE_GET_FAIL_IF_QUIESCING) != 0);
    if (MQX_LIKELY(status == MQX_OK)) {
        status = mqx_get_rights(queue, get->flags, call.browse);
    }
    if (MQX_UNLIKELY(status != MQX_OK)) {
        return status;
    }
    if (MQX_UNLIKELY((get->flags & MQE_GET_UNLOCK) != 0)) {
        return unlock_call(queue);
    }
    call.manager = manager;
    call.store = &manager->store;
    call.queue = queue;
    call.get = get;
    call.pool = 0;
    get->header = 0;
    call.wait_left_us = (get->flags & MQE_GET_WAIT) != 0 ? get->wait_us : 0;
    call.match.bits = 0;
    if (get->match != 0) {
        mqx_match_init(&manager->store.region, get, &call.match);
    }
    if (unit == NULL && (get->flags & ~(uint32_t)QUICK_FLAGS) == 0 && call.match.bits == 0 &&
        !may_have_locked(&call) && get_at_once(&call, &status)) {
        get->expiry = -1;
        return status;
    }
    call.unit = unit == NULL ? 0 : unit->context;
    call.match.excluded = 0;
    call.cursor = (struct mqx_cursor){0};
    call.found = (struct mqx_cursor){0};
    call.passed = (struct mqx_cursor){0};
    call.listed = false;
    call.woken = true;
    call.known = 0;
    call.take_many = NULL;
    call.truncate = (get->flags & MQE_GET_ACCEPT_TRUNCATED) != 0;
    if (unit != NULL) {
        status = mqx_get_unit(&call);
    }
    if (MQX_LIKELY(status == MQX_OK)) {
        status = (get->flags & cursor_flags) != 0 ? get_with_cursor(&call) : mqx_get_or_wait(&call);
    }
    if (call.pool != 0) {
        mqx_pool_give(manager, call.pool);
    }
    get->wait_us = call.wait_left_us;
    if (status == MQX_OK || mqx_comp_code(status) == MQCC_WARNING) {
        get->expiry = mqx_expiry_left(&get->d);
    }
    return status;
}
