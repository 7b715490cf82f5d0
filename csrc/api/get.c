/*
 * get.c - mqe_get: one message from one queue.
 *
 * The call first tries the common case in one lock hold (mqx_get_fast_path). When that finds a
 * message that needs more, the lock stays held for the first attempt (get_attempt.h), so that a
 * durable get outside syncpoint takes its stripe lock twice: to claim the message, and to remove it
 * after the flush. With wait it takes it once more for each time it is listed.
 */
#include "api/context_pool.h"
#include "api/get_wait.h"
#include "api/listed_wait.h"
#include "api/message_copy.h"
#include "api/unit_handle.h"
#include "base/error.h"
#include "queue/browse_lock.h"

enum {
    QUICK_FLAGS = MQE_GET_WAIT | MQE_GET_ACCEPT_TRUNCATED | MQE_GET_IF_PERSISTENT |
                  MQE_GET_FAIL_IF_QUIESCING | MQE_GET_ROOM_FOR_MDE | MQE_GET_CONFIRM |
                  MQE_GET_REPORT_EXPIRED,
    UNDER_CURSOR_FLAGS = MQE_GET_UNDER_CURSOR | MQE_GET_BROWSE_UNDER_CURSOR,
    BROWSE_FLAGS = MQE_GET_BROWSE_FIRST | MQE_GET_BROWSE_NEXT | MQE_GET_BROWSE_UNDER_CURSOR,
    CURSOR_FLAGS = BROWSE_FLAGS | MQE_GET_UNDER_CURSOR,
};

static bool unlock(mqe_queue *queue)
{
    MQX_ASSERT(queue->handle != 0);
    return mqx_handle_unlock(&queue->manager->store.region, queue->handle);
}

/* Browses and gets under the cursor move or read the cursor of the handle: one at a time. */
static int get_with_cursor(struct mqx_get_call *call)
{
    MQX_ASSERT(!call->held);
    mqe_queue *queue = call->queue;
    const uint32_t flags = call->get->flags;
    struct mqx_stripe_guard guard;
    mqx_cursor_lock(queue);
    call->cursor = queue->cursor;
    if ((flags & MQE_GET_BROWSE_FIRST) != 0) {
        call->cursor = (struct mqx_cursor){0};
    }
    if ((flags & UNDER_CURSOR_FLAGS) == 0) {
        (void)unlock(queue); /* a handle locks one message at most: the next browse unlocks it */
    } else {
        call->wait_left_us = 0;
        call->match.bits = 0;
    }
    const int status = mqx_get_or_wait(call, &guard);
    if (status == MQX_OK || status == MQRC_TRUNCATED_MSG_ACCEPTED) {
        if ((flags & (MQE_GET_BROWSE_FIRST | MQE_GET_BROWSE_NEXT)) != 0) {
            queue->cursor = call->cursor;
        }
    } else if ((flags & MQE_GET_BROWSE_FIRST) != 0) {
        queue->cursor = (struct mqx_cursor){0};
    }
    mqx_cursor_unlock(queue);
    return status;
}

static int unlock_call(mqe_queue *queue)
{
    MQX_ASSERT(queue->manager != NULL);
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

/* The unit, if there is one, has been entered. */
static int get_entered(struct mqx_get_call *call, struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(!call->listed || call->posted != NULL);
    const int status = call->unit == 0 ? MQX_OK : mqx_get_check_unit(call);
    if (status != MQX_OK) {
        return status;
    }
    return (call->get->flags & CURSOR_FLAGS) != 0 ? get_with_cursor(call)
                                                  : mqx_get_or_wait(call, guard);
}

/* What the quick path leaves open; guard holds the lock when `held`. */
static int get_slow_path(struct mqx_get_call *call, const mqe_unit *unit,
                         struct mqx_stripe_guard *guard, bool held)
{
    MQX_ASSERT(!held || unit == NULL);
    struct mqe_get *get = call->get;
    int status = MQX_OK;
    call->unit = unit == NULL ? 0 : unit->context;
    call->held = held;
    call->match.excluded = 0;
    call->match.ends_at_expired = (get->flags & MQE_GET_REPORT_EXPIRED) != 0;
    call->match.expired = 0;
    call->cursor = (struct mqx_cursor){0};
    call->found = (struct mqx_cursor){0};
    call->passed = (struct mqx_cursor){0};
    call->listed = false;
    call->was_listed = false;
    call->woken = true;
    call->posted = (get->flags & MQE_GET_LISTED) != 0 ? get->wait : NULL;
    call->due_at = 0;
    call->known = 0;
    call->take_many = NULL;
    call->truncate = (get->flags & MQE_GET_ACCEPT_TRUNCATED) != 0;
    if (MQX_UNLIKELY(call->posted != NULL)) {
        call->posted->told = 0;
        mqx_wait_resume(call);
    }
    if (unit != NULL) {
        status = mqx_unit_handle_enter(unit);
    }
    if (MQX_LIKELY(status == MQX_OK)) {
        status = get_entered(call, guard);
        if (unit != NULL) {
            mqx_unit_handle_leave(unit);
        }
    }
    if (MQX_UNLIKELY(call->posted != NULL)) {
        mqx_wait_suspend(call, status);
    } else if (call->pool != 0) {
        mqx_pool_give(call->manager, call->pool);
    }
    get->wait_us = call->wait_left_us;
    if (status == MQX_OK || mqx_comp_code(status) == MQCC_WARNING) {
        get->expiry = mqx_expiry_left(&call->manager->store.region, &get->d);
    }
    return status;
}

/* The calls that the quick path may serve. */
static bool has_fast_path(const struct mqx_get_call *call, const mqe_unit *unit)
{
    MQX_ASSERT(call->pool == 0);
    return unit == NULL && (call->get->flags & ~(uint32_t)QUICK_FLAGS) == 0 &&
           call->match.bits == 0 && !mqx_get_may_have_locked(call);
}

int mqe_get(mqe_manager *manager, mqe_unit *unit, mqe_queue *queue, struct mqe_get *get)
{
    MQX_ASSERT(queue->manager == manager);
    MQX_ASSERT(unit == NULL || unit->manager == manager);
    MQX_ASSERT((get->flags & MQE_GET_LISTED) == 0 || (get->flags & MQE_GET_WAIT) == 0);
    struct mqx_get_call call;
    struct mqx_stripe_guard guard;
    enum mqx_next_step next = MQX_STEP_AGAIN;
    bool held = false;
    call.browse = (get->flags & BROWSE_FLAGS) != 0;
    int status = mqx_enter(manager, (get->flags & MQE_GET_FAIL_IF_QUIESCING) != 0);
    /* the queue manager's own get of an expired message is by any handle */
    if (MQX_LIKELY(status == MQX_OK && (get->match & MQE_MATCH_EXPIRED) == 0)) {
        status = mqx_get_check_rights(queue, get->flags, call.browse);
    }
    if (MQX_UNLIKELY(status != MQX_OK)) {
        return status;
    }
    if (MQX_UNLIKELY((get->flags & MQE_GET_UNLOCK) != 0)) {
        return unlock_call(queue);
    }
    if (MQX_UNLIKELY((get->match & MQE_MATCH_DELAYED) != 0 &&
                     (!call.browse || (get->flags & MQE_GET_LOCK) != 0))) {
        return mqx_fail(MQRC_MATCH_OPTIONS_ERROR,
                        "a message that is not due is found by a browse without LOCK alone");
    }
    call.manager = manager;
    call.store = &manager->store;
    call.queue = queue;
    call.get = get;
    call.pool = 0;
    get->header = 0;
    call.wait_left_us = (get->flags & MQE_GET_WAIT) != 0     ? get->wait_us
                        : (get->flags & MQE_GET_LISTED) != 0 ? -1
                                                             : 0;
    call.match.bits = 0;
    if (get->match != 0) {
        mqx_match_init(&manager->store.region, get, &call.match);
    }
    if (has_fast_path(&call, unit)) {
        next = mqx_get_fast_path(&call, &guard, &status);
        held = next == MQX_STEP_AGAIN;
    }
    if (MQX_LIKELY(next == MQX_STEP_DONE)) {
        get->expiry = -1;
        return status;
    }
    if (next == MQX_STEP_NOTHING) {
        get->expiry = -1;
        return mqx_get_no_message(&call);
    }
    return get_slow_path(&call, unit, &guard, held);
}
