/*
 * get_attempt.c - see get_attempt.h.
 *
 * Functions that take or browse a message under the lock return with it dropped, and say what is
 * left to do (enum mqx_next_step). A message in the journal about which something must be known
 * before it is taken is read with no lock held; then another attempt is made.
 *
 * The message that the handle has locked is one of those that its destructive gets find; a call
 * that takes it ends the lock, no other destructive get does.
 *
 * With MQE_GET_CONFIRM a message that asks for a confirmation of its delivery is described and not
 * taken: the get belongs into one unit with the report, and only the descriptor tells.
 */
#include "api/get_attempt.h"

#include "api/context_pool.h"
#include "api/message_copy.h"
#include "api/unit_handle.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/block_hook.h"
#include "os/interrupt.h"
#include "queue/browse_lock.h"
#include "queue/due_release.h"
#include "queue/expiry_time.h"
#include "queue/performance.h"
#include "region/damage.h"
#include "region/extents.h"
#include "region/queue_clock.h"

#include <string.h>

enum { UNDER_CURSOR_FLAGS = MQE_GET_UNDER_CURSOR | MQE_GET_BROWSE_UNDER_CURSOR };

int mqx_get_take_context(struct mqx_get_call *call)
{
    MQX_ASSERT(call->manager != NULL);
    return call->pool != 0 ? MQX_OK : mqx_pool_take(call->manager, true, &call->pool);
}

bool mqx_get_has_context(struct mqx_get_call *call)
{
    MQX_ASSERT(call->manager != NULL);
    return call->pool != 0 || mqx_pool_take_idle(call->manager, true, &call->pool);
}

/* Drops the lock and takes a context; the message is searched again then. */
static enum mqx_next_step drop_and_take_context(struct mqx_get_call *call,
                                                struct mqx_stripe_guard *guard, int *status)
{
    MQX_ASSERT(call->pool == 0);
    mqx_stripe_guard_drop(guard);
    *status = mqx_get_take_context(call);
    return *status == MQX_OK ? MQX_STEP_AGAIN : MQX_STEP_DONE;
}

/* ---- copying out ---- */

/* Has the message values that an MQMD of version 1 has no fields for? */
static bool has_version_2(const struct ps_descriptor *d, const struct ps_descriptor_ext *ext)
{
    MQX_ASSERT(d != NULL && ext != NULL);
    static const uint8_t no_group[MQX_ID_SIZE];
    return d->has_ext != 0 && (ext->msg_seq_number != 1 || ext->offset != 0 ||
                               ext->msg_flags != 0 || ext->original_length != -1 ||
                               memcmp(ext->group_id, no_group, sizeof no_group) != 0);
}

static bool may_have_mde(const struct mqx_get_call *call, const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
    return (call->get->flags & MQE_GET_ROOM_FOR_MDE) != 0 &&
           (message->flags & MQX_MSGF_HAS_EXT) != 0;
}

/* Bytes of the MQMDE that the caller puts before the body. A message in the journal of which it is
 * not known has room for both. */
static uint32_t mde_bytes(const struct mqx_get_call *call, const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
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

static uint64_t wanted_bytes(const struct mqx_get_call *call, const struct mqx_message *message)
{
    const uint64_t capacity = call->get->capacity;
    const uint32_t header = mde_bytes(call, message);
    const uint64_t room = capacity > header ? capacity - header : 0;
    return message->length < room ? message->length : room;
}

/* In the region and short: copied under the lock. */
static bool is_near(const struct mqx_get_call *call, const struct mqx_message *message)
{
    MQX_ASSERT(message->state != MQX_MSG_FREE);
    return message->cells != 0 && wanted_bytes(call, message) <= MQX_LOCKED_COPY_MAX;
}

static int copy_bytes(struct mqx_get_call *call, const struct mqx_message *message, uint64_t bytes)
{
    MQX_ASSERT(bytes <= call->get->capacity);
    struct mqe_get *get = call->get;
    get->length = message->length;
    get->number = message->number;
    const int status =
        mqx_message_copy(call->store, message, &get->d, &get->ext, get->buffer, bytes);
    if (MQX_UNLIKELY(may_have_mde(call, message))) {
        get->header = has_version_2(&get->d, &get->ext) ? MQE_MDE_SIZE : 0;
    }
    return status;
}

static int copy_message(struct mqx_get_call *call, const struct mqx_message *message)
{
    return copy_bytes(call, message, wanted_bytes(call, message));
}

/* The same of a message that fits, without an MQMDE. */
static int copy_whole(struct mqx_get_call *call, const struct mqx_message *message)
{
    MQX_ASSERT(message->length <= call->get->capacity && !may_have_mde(call, message));
    struct mqe_get *get = call->get;
    get->length = message->length;
    get->number = message->number;
    return mqx_message_copy(call->store, message, &get->d, &get->ext, get->buffer, message->length);
}

/* Equal tags are no proof: a message from the journal is verified by its full identifiers (rule
 * 47). */
static bool is_false_match(const struct mqx_get_call *call)
{
    MQX_ASSERT(call->get != NULL);
    return call->match.bits != 0 &&
           !mqx_match_exact(&call->match, &call->get->d, &call->get->ext);
}

/* Excludes a false match from further attempts of this call. */
static bool skip_false_match(struct mqx_get_call *call)
{
    MQX_ASSERT(call->match.excluded <= MQX_MATCH_EXCLUDE_MAX);
    const bool false_match = is_false_match(call);
    if (false_match) {
        call->passed = call->browse ? call->cursor : call->found;
    }
    if (false_match && call->match.excluded < MQX_MATCH_EXCLUDE_MAX) {
        call->match.exclude[call->match.excluded++] = call->number;
    }
    return false_match;
}

/* The message that has been copied is the one meant, and its confirmation is the caller's. */
static MQX_COLD bool is_to_confirm(const struct mqx_get_call *call)
{
    MQX_ASSERT(!call->browse);
    return (call->get->flags & MQE_GET_CONFIRM) != 0 && !is_false_match(call);
}

/* The status of the copy of a message that is to be taken: MQE_CONFIRM, and it is not, when it asks
 * for a confirmation that the caller makes. */
static inline int or_confirm(const struct mqx_get_call *call, int status)
{
    MQX_ASSERT(call->get != NULL);
    if (MQX_UNLIKELY(status == MQX_OK && (call->get->d.report & MQRO_COD) != 0)) {
        return is_to_confirm(call) ? MQE_CONFIRM : MQX_OK;
    }
    return status;
}

/* ---- one message under the lock; each returns with the lock dropped, but mqx_get_remove() ---- */

void mqx_get_remove(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(slot != 0);
    bool pinned = false;
    (void)mqx_queue_remove(guard, queue, slot, 0, &pinned);
    queue->get_count += 1;
    mqx_stripe_guard_commit(guard);
}

/* Removes a message that is not worth a context: non-persistent, one block, outside a unit.
 * `status`: of its copy. */
static inline int remove_copied(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                                struct mqx_object *queue, const struct mqx_message *message,
                                int status)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(message == mqx_message(guard->region, call->slot));
    status = or_confirm(call, status);
    if (MQX_LIKELY(status == MQX_OK)) {
        queue->last_get_us = call->get->d.put_time_us;
        if (MQX_UNLIKELY(message->state == MQX_MSG_LOCKED)) {
            mqx_browse_lock_end(guard, queue, call->slot, call->queue->handle);
        }
        mqx_get_remove(guard, queue, call->slot);
        if (MQX_UNLIKELY((mqx_load_relaxed(&queue->special) & MQX_SPECIAL_EVENTS) != 0)) {
            mqx_performance_get(guard->region, queue, call->queue->object);
        }
    }
    mqx_stripe_guard_drop(guard);
    return status;
}

/* Claims the message for the context; MQX_STEP_COPY when it is claimed, whatever the copy
 * returned. */
static enum mqx_next_step claim_found(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                                      struct mqx_object *queue, uint32_t context, int *status)
{
    MQX_ASSERT(context != 0);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    const struct mqx_message *message = mqx_message(guard->region, call->slot);
    const bool near = is_near(call, message);
    *status = near ? or_confirm(call, copy_message(call, message)) : MQX_OK;
    if (*status == MQX_OK) {
        mqx_unit_begin(call->store, context);
        mqx_browse_lock_end(guard, queue, call->slot, call->queue->handle);
        mqx_queue_claim(guard, queue, call->slot, MQX_MSG_GOT, context);
        mqx_stripe_guard_commit(guard);
        queue->last_get_us = mqx_clock_coarse_us();
        if (MQX_UNLIKELY((mqx_load_relaxed(&queue->special) & MQX_SPECIAL_EVENTS) != 0) &&
            (call->get->match & MQE_MATCH_EXPIRED) == 0) {
            mqx_performance_get(guard->region, queue, call->queue->object);
        }
    }
    mqx_stripe_guard_drop(guard);
    if (*status != MQX_OK) {
        return MQX_STEP_DONE;
    }
    if (!near) {
        mqx_about_to_block();
        *status = or_confirm(call, copy_message(call, message));
    }
    return MQX_STEP_COPY;
}

/* Copies so many bytes with the message pinned and no lock held. MQX_STEP_AGAIN: it is gone. */
static enum mqx_next_step copy_pinned(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                                      uint64_t bytes, int *status)
{
    MQX_ASSERT(call->pool != 0);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    struct mqx_message *message = mqx_message(guard->region, call->slot);
    if (message->pins == UINT8_MAX) { /* 255 copies of one message in progress: try again */
        mqx_stripe_guard_drop(guard);
        return MQX_STEP_AGAIN;
    }
    mqx_pending_pin(guard, call->pool, call->queue->object, call->slot);
    mqx_stripe_guard_drop(guard);
    mqx_about_to_block();
    *status = copy_bytes(call, message, bytes);
    const bool gone = *(volatile uint8_t *)&message->state == MQX_MSG_GONE;
    int released = mqx_pending_release(call->store, call->pool);
    if (released != MQX_OK) {
        *status = released;
        return MQX_STEP_DONE;
    }
    return gone ? MQX_STEP_AGAIN : MQX_STEP_DONE;
}

/* The message stays; long ones are pinned while they are copied. */
static enum mqx_next_step browse_found(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                                       int *status)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    const struct mqx_message *message = mqx_message(guard->region, call->slot);
    if (is_near(call, message)) {
        *status = copy_message(call, message);
        mqx_stripe_guard_drop(guard);
        return MQX_STEP_DONE;
    }
    const enum mqx_next_step next = copy_pinned(call, guard, wanted_bytes(call, message), status);
    const bool copied = next == MQX_STEP_DONE && *status == MQX_OK;
    return copied && skip_false_match(call) ? MQX_STEP_AGAIN : next;
}

static bool unit_is_full(const struct mqx_get_call *call)
{
    MQX_ASSERT(call->unit != 0);
    const struct mqx_context *context = mqx_context(&call->store->region, call->unit);
    if (context == NULL) {
        mqx_ignore(mqx_region_damage(&call->store->region, "the context of a unit", call->unit));
        return true;
    }
    return context->count >= mqx_load_relaxed(&call->store->region.header->max_uncommitted);
}

/* Must a message in the journal be read before it is served? To know whether its identifiers match,
 * when it is the one that this handle has locked (a claim would end the lock) or there is no room
 * for it in the unit; or whether the buffer must have room for an MQMDE. */
static bool must_read_journal(const struct mqx_get_call *call, const struct mqx_message *message)
{
    MQX_ASSERT(message->number == call->number);
    if (MQX_LIKELY(message->cells != 0) || call->known == message->number) {
        return false;
    }
    const bool limited = !call->browse && call->unit != 0 && unit_is_full(call);
    return ((message->state == MQX_MSG_LOCKED || limited) && call->match.bits != 0) ||
           (may_have_mde(call, message) &&
            (uint64_t)message->length + MQE_MDE_SIZE > call->get->capacity);
}

/* Reads, with no lock held, what must be known of a message in the journal. */
static enum mqx_next_step read_from_journal(struct mqx_get_call *call,
                                            struct mqx_stripe_guard *guard, int *status)
{
    MQX_ASSERT(call->known != call->number);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    if (!mqx_get_has_context(call)) {
        return drop_and_take_context(call, guard, status);
    }
    const uint64_t number = call->number;
    const bool own = mqx_message(guard->region, call->slot)->state == MQX_MSG_LOCKED;
    const enum mqx_next_step next = copy_pinned(call, guard, 0, status);
    if (next == MQX_STEP_AGAIN || *status != MQX_OK) {
        return next;
    }
    MQX_ASSERT(call->get->number == number);
    call->known = number;
    call->known_matches = !is_false_match(call);
    call->known_heads = has_version_2(&call->get->d, &call->get->ext);
    if (!own) {
        (void)skip_false_match(call);
    }
    return MQX_STEP_AGAIN;
}

/* Browse with LOCK: the message is hidden from other handles until unlocked. It is pinned all the
 * same while it is copied without the lock: the failure of its structure takes locked messages,
 * too. */
static enum mqx_next_step lock_message(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                                       struct mqx_object *queue, int *status)
{
    MQX_ASSERT(call->browse);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    const struct mqx_message *message = mqx_message(guard->region, call->slot);
    const bool near = is_near(call, message);
    enum mqx_next_step next = MQX_STEP_DONE;
    if (!near && !mqx_get_has_context(call)) {
        return drop_and_take_context(call, guard, status);
    }
    mqx_browse_lock_set(guard, queue, call->slot, call->queue->handle);
    if (near) {
        *status = copy_message(call, message);
        mqx_stripe_guard_drop(guard);
    } else {
        next = copy_pinned(call, guard, wanted_bytes(call, message), status);
    }
    const bool again =
        next == MQX_STEP_AGAIN || (*status == MQX_OK && skip_false_match(call));
    if (*status != MQX_OK || again) {
        (void)mqx_handle_unlock(&call->store->region, call->queue->handle);
    }
    return again ? MQX_STEP_AGAIN : MQX_STEP_DONE;
}

/* ---- after the lock ---- */

/* The claimed message has been copied: logs the get and ends an autocommit unit, or undoes the
 * claim. */
static enum mqx_next_step log_and_finish(struct mqx_get_call *call, uint32_t context, int *status)
{
    MQX_ASSERT(context == call->unit || context == call->pool);
    MQX_ASSERT(context != 0);
    const bool autocommit = call->unit == 0 || context != call->unit;
    struct mqx_context *unit = mqx_context(&call->store->region, context);
    if (*status == MQX_OK && skip_false_match(call)) {
        *status = mqx_unit_undo(call->store, context, call->slot);
        return *status == MQX_OK ? MQX_STEP_AGAIN : MQX_STEP_DONE;
    }
    if (*status == MQX_OK && call->logged) {
        *status = mqx_unit_log_get(call->store, context, call->slot, autocommit);
    } else if (*status == MQX_OK && autocommit) {
        mqx_store_release(&unit->state, MQX_CTX_DECIDED);
    }
    if (*status != MQX_OK) {
        int undone = mqx_unit_undo(call->store, context, call->slot);
        if (undone == MQX_OK && autocommit) {
            undone = mqx_unit_backout(call->store, context);
        }
        *status = undone == MQX_OK ? *status : undone;
    } else if (autocommit) {
        *status = mqx_unit_finish(call->store, context);
    }
    return MQX_STEP_DONE;
}

static enum mqx_next_step complete_claim(struct mqx_get_call *call, uint32_t context, int *status)
{
    MQX_ASSERT(call->slot != 0);
    mqx_file_calls_begin(call->manager);
    const enum mqx_next_step next = log_and_finish(call, context, status);
    mqx_file_calls_end(call->manager);
    return next;
}

/* ---- one attempt ---- */

/* The message under the cursor, when it is still the same one and free or locked by this handle. */
static void find_under_cursor(struct mqx_get_call *call, const struct mqx_stripe_guard *guard,
                              uint64_t now)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    const uint32_t slot = call->cursor.message;
    const struct mqx_message *message = mqx_message_peek(guard->region, slot);
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

void mqx_get_prefer_locked(struct mqx_get_call *call, const struct mqx_stripe_guard *guard,
                           uint64_t now)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    if (MQX_LIKELY(!mqx_get_may_have_locked(call))) {
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
static int find(struct mqx_get_call *call, struct mqx_stripe_guard *guard, struct mqx_object *queue)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    const uint32_t flags = call->get->flags;
    const uint32_t object = call->queue->object;
    const uint64_t now = queue->expiring != 0 ? mqx_queue_coarse_us(guard->region) : 0;
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
        call->found = call->passed; /* no index has these, and there may be many false matches */
        status = mqx_match_next(call->store, guard, object, &call->match, now, &call->found,
                                &call->slot);
    } else {
        status = mqx_match_first(call->store, guard, object, &call->match, now, &call->slot);
    }
    if (MQX_LIKELY(status == MQX_OK)) {
        mqx_get_prefer_locked(call, guard, now);
    }
    return status;
}

MQX_COLD int mqx_get_stop_at_expired(struct mqx_get_call *call, struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(call->match.ends_at_expired);
    mqx_stripe_guard_drop(guard);
    call->get->number = call->match.expired;
    call->match.expired = 0;
    return MQE_EXPIRED;
}

int mqx_get_refusal(const struct mqx_get_call *call, const struct mqx_object *queue)
{
    MQX_ASSERT(call->queue != NULL);
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
static int check_limit(const struct mqx_get_call *call)
{
    MQX_ASSERT(call->unit != 0);
    return unit_is_full(call)
               ? mqx_fail(MQRC_SYNCPOINT_LIMIT_REACHED,
                          "the unit of work has %u messages, MAXUMSGS is %u",
                          mqx_context(&call->store->region, call->unit)->count,
                          mqx_load_relaxed(&call->store->region.header->max_uncommitted))
               : MQX_OK;
}

/* Is the message part of the caller's unit? With MQE_GET_IF_PERSISTENT only a persistent one is. */
static bool takes_part(const struct mqx_get_call *call, const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
    return call->unit != 0 && ((call->get->flags & MQE_GET_IF_PERSISTENT) == 0 ||
                               (message->flags & (MQX_MSGF_PERSISTENT | MQX_MSGF_VOLATILE)) ==
                                   MQX_MSGF_PERSISTENT);
}

/* Browses the message, or describes one for which there is no room; returns with the lock
 * dropped. */
static enum mqx_next_step browse_or_describe(struct mqx_get_call *call,
                                             struct mqx_stripe_guard *guard,
                                             struct mqx_object *queue, int *status)
{
    MQX_ASSERT(call->browse || call->short_of_room);
    const struct mqx_message *message = mqx_message(guard->region, call->slot);
    if (!call->short_of_room && (call->get->flags & MQE_GET_LOCK) != 0 &&
        message->state == MQX_MSG_AVAILABLE) {
        return lock_message(call, guard, queue, status);
    }
    if (!is_near(call, message) && !mqx_get_has_context(call)) {
        return drop_and_take_context(call, guard, status);
    }
    return browse_found(call, guard, status);
}

/* Takes the message, in one hold when it may be; returns with the lock dropped. */
static enum mqx_next_step take_found(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                                     struct mqx_object *queue, int *status)
{
    MQX_ASSERT(!call->browse && !call->short_of_room);
    const struct mqx_message *message = mqx_message(guard->region, call->slot);
    const bool in_unit = takes_part(call, message);
    if (!in_unit && !call->logged && is_near(call, message) &&
        mqx_body_is_single(mqx_body_payload(true, message->length))) {
        *status = remove_copied(call, guard, queue, message, copy_message(call, message));
        return MQX_STEP_DONE;
    }
    if (!in_unit && call->logged && mqx_interrupt_take_at_once()) {
        mqx_stripe_guard_drop(guard);
        *status = MQE_INTERRUPTED; /* it would flush */
        return MQX_STEP_DONE;
    }
    if (!in_unit && !mqx_get_has_context(call)) {
        return drop_and_take_context(call, guard, status);
    }
    if (in_unit && (call->get->flags & MQE_GET_IF_PERSISTENT) != 0) {
        *status = check_limit(call); /* only now is it known that the message counts */
        if (*status != MQX_OK) {
            mqx_stripe_guard_drop(guard);
            return MQX_STEP_DONE;
        }
    }
    const uint32_t context = in_unit ? call->unit : call->pool;
    const enum mqx_next_step next = claim_found(call, guard, queue, context, status);
    return next == MQX_STEP_COPY ? complete_claim(call, context, status) : next;
}

/* Serves the call with the message that was found; returns with the lock dropped. */
static enum mqx_next_step serve_found(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                                      struct mqx_object *queue, int *status)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(call->slot != 0);
    const struct mqx_message *message = mqx_message(guard->region, call->slot);
    if (MQX_UNLIKELY(message == NULL)) {
        mqx_stripe_guard_drop(guard);
        *status = mqx_region_damage(guard->region, "a message found in a queue", call->slot);
        return MQX_STEP_DONE;
    }
    call->number = message->number;
    call->logged = (message->flags & MQX_MSGF_PERSISTENT) != 0;
    if (MQX_UNLIKELY(must_read_journal(call, message))) {
        return read_from_journal(call, guard, status);
    }
    call->short_of_room =
        (uint64_t)message->length + mde_bytes(call, message) > call->get->capacity &&
        !call->truncate;
    return call->browse || call->short_of_room ? browse_or_describe(call, guard, queue, status)
                                               : take_found(call, guard, queue, status);
}

/* Takes the lock, unless the call has it from its quick path. On failure the lock is not held. */
static int enter_queue(struct mqx_get_call *call, struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(!call->held || !call->listed);
    MQX_ASSERT(!call->listed || call->pool != 0);
    if (call->held) {
        call->held = false;
        return MQX_OK;
    }
    struct mqx_region *region = &call->store->region;
    int status = call->listed && call->posted == NULL
                     ? mqx_stripe_guard_take(region, call->queue->object, guard)
                     : mqx_stripe_guard_enter(region, call->queue->object, guard);
    if (MQX_UNLIKELY(status != MQX_OK)) {
        return status;
    }
    if (call->listed) {
        call->woken = mqx_wait_list_remove(guard, call->pool) != MQX_WAIT_LISTED;
        call->listed = false;
    }
    status = mqx_get_check_queue(call, mqx_object(guard->region, call->queue->object));
    if (MQX_UNLIKELY(status != MQX_OK)) {
        mqx_stripe_guard_drop(guard);
    }
    return status;
}

enum mqx_next_step mqx_get_attempt(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                                   bool keep, int *status)
{
    MQX_ASSERT(!call->held || call->take_many == NULL);
    *status = call->held ? MQX_OK : mqx_due_release(call->store, call->queue->object);
    if (MQX_LIKELY(*status == MQX_OK)) {
        *status = enter_queue(call, guard);
    }
    if (MQX_UNLIKELY(*status != MQX_OK)) {
        return MQX_STEP_DONE;
    }
    if (MQX_UNLIKELY(call->take_many != NULL)) {
        return call->take_many(call, guard, keep, status);
    }
    struct mqx_object *queue = mqx_object(guard->region, call->queue->object);
    *status = find(call, guard, queue);
    if (MQX_UNLIKELY(*status == MQX_OK && call->match.expired != 0)) {
        *status = mqx_get_stop_at_expired(call, guard);
    }
    if (MQX_UNLIKELY(*status != MQX_OK)) {
        return MQX_STEP_DONE;
    }
    *status = mqx_get_check_queue(call, queue); /* the search may have dropped the lock */
    if (MQX_UNLIKELY(*status != MQX_OK)) {
        mqx_stripe_guard_drop(guard);
        return MQX_STEP_DONE;
    }
    if (call->slot == 0) {
        if (!keep) {
            mqx_stripe_guard_drop(guard);
        }
        return MQX_STEP_NOTHING;
    }
    return serve_found(call, guard, queue, status);
}

enum mqx_next_step mqx_get_fast_path(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                                     int *status)
{
    MQX_ASSERT(call->match.bits == 0);
    MQX_ASSERT(!call->browse);
    struct mqx_region *region = &call->store->region;
    struct mqx_object *queue = mqx_object(region, call->queue->object);
    *status = mqx_due_release(call->store, call->queue->object);
    if (MQX_LIKELY(*status == MQX_OK)) {
        *status = mqx_stripe_guard_enter(region, call->queue->object, guard);
    }
    if (MQX_UNLIKELY(*status != MQX_OK)) {
        return MQX_STEP_DONE;
    }
    *status = mqx_get_check_queue(call, queue);
    if (MQX_UNLIKELY(*status != MQX_OK)) {
        mqx_stripe_guard_drop(guard);
        return MQX_STEP_DONE;
    }
    call->slot = mqx_priority_index_first_of_many(region, queue);
    const struct mqx_message *message = mqx_message(region, call->slot);
    if (MQX_LIKELY(message != NULL && (message->flags & MQX_MSGF_PERSISTENT) == 0 &&
                   message->expiry == 0 && message->length <= call->get->capacity &&
                   message->length <= MQX_LOCKED_COPY_MAX && !may_have_mde(call, message))) {
        *status = remove_copied(call, guard, queue, message, copy_whole(call, message));
        return MQX_STEP_DONE;
    }
    if (message == NULL && call->wait_left_us == 0) {
        mqx_stripe_guard_drop(guard);
        return MQX_STEP_NOTHING;
    }
    return MQX_STEP_AGAIN;
}

int mqx_get_check_rights(const mqe_queue *queue, uint32_t flags, bool browse)
{
    MQX_ASSERT(queue != NULL);
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

int mqx_get_check_unit(const struct mqx_get_call *call)
{
    MQX_ASSERT(call->unit != 0);
    const int status = mqx_unit_check_usable(&call->store->region, call->unit);
    const bool counts = !call->browse && (call->get->flags & MQE_GET_IF_PERSISTENT) == 0;
    return status == MQX_OK && counts ? check_limit(call) : status;
}
