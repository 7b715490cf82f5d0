/*
 * get_wait.c - see get_wait.h.
 */
#include "api/get_wait.h"

#include "api/listed_wait.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/block_hook.h"
#include "os/futex.h"
#include "os/host_info.h"
#include "queue/due_index.h"

#include <errno.h>

enum {
    WAIT_BOUND_US = 1000000,
    TAG_MATCHES = MQE_MATCH_MSG_ID | MQE_MATCH_CORREL_ID | MQE_MATCH_GROUP_ID,
    UNDER_CURSOR_FLAGS = MQE_GET_UNDER_CURSOR | MQE_GET_BROWSE_UNDER_CURSOR,
};
MQX_STATIC_ASSERT((uint32_t)TAG_MATCHES == (1u << MQX_INDEX_COUNT) - 1, "one tag for each index");

/* Until when the call sleeps at the latest: not beyond the queue's next due time. A wait without a
 * thread may last longer than the bound of a sleep, and asks for the due time itself
 * (mqe_wait_due_in). */
static void bound_by_due(struct mqx_get_call *call, struct mqx_context *context)
{
    const uint64_t bound = mqx_due_now(&call->store->region) + WAIT_BOUND_US;
    MQX_ASSERT(context->wait_state == MQX_WAIT_LISTED);
    if (call->posted != NULL) {
        return;
    }
    call->due_at = context->wait_until_us < bound ? context->wait_until_us : 0;
    if (call->due_at == 0) {
        mqx_store_relaxed(&context->wait_until_us, bound);
    }
}

/* Lists this call's context as a waiter, under the lock. */
static void list_as_waiter(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                           uint32_t *out_seen)
{
    MQX_ASSERT(!call->listed);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    struct mqx_context *context = mqx_context(guard->region, call->pool);
    MQX_ASSERT(context != NULL); /* validated when it was taken */
    context->wait_match = call->match.bits & TAG_MATCHES;
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        context->wait_tag[k] = (call->match.bits >> k & 1u) != 0 ? call->match.tag[k] : 0;
    }
    mqx_store_relaxed(&context->wait_channel,
                      call->posted == NULL ? 0u : call->posted->channel->context);
    context->wait_browse = call->browse || call->match.bits >> MQX_INDEX_COUNT != 0;
    mqx_wait_list_add(guard, call->queue->object, call->pool);
    bound_by_due(call, context);
    *out_seen = mqx_load_acquire(&context->wait_word);
    call->listed = true;
    call->was_listed = true;
}

int mqx_get_leave_list(struct mqx_store *store, uint32_t object, uint32_t context, bool listed)
{
    MQX_ASSERT(context != 0);
    struct mqx_wakeups wakes = {.count = 0};
    struct mqx_stripe_guard guard;
    const int status = mqx_stripe_guard_take(&store->region, object, &guard);
    if (status == MQX_OK) {
        if (listed) {
            (void)mqx_wait_list_remove(&guard, context);
        }
        mqx_wait_list_hand_on(&guard, context, false, &wakes);
        mqx_stripe_guard_drop(&guard);
        mqx_wait_list_wake(&store->region, &wakes);
    }
    return status;
}

static int leave_list(struct mqx_get_call *call)
{
    MQX_ASSERT(call->pool != 0);
    const int status =
        mqx_get_leave_list(call->store, call->queue->object, call->pool, call->listed);
    call->listed = call->listed && status != MQX_OK;
    return status;
}

/* Lists the call, which has found nothing, and drops the lock. A wake-up that was no use to it goes
 * to another waiter first, so that it does not come back to this one. */
static void begin_wait(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                       uint32_t *out_seen)
{
    MQX_ASSERT(call->pool != 0);
    struct mqx_wakeups wakes;
    wakes.count = 0;
    if (call->was_listed) {
        mqx_wait_list_hand_on(guard, call->pool, true, &wakes);
    }
    list_as_waiter(call, guard, out_seen);
    mqx_stripe_guard_drop(guard);
    mqx_wait_list_wake(&call->store->region, &wakes);
}

/* Takes the time of a sleep off what is left of the wait, and returns it. */
static uint64_t count_sleep(struct mqx_get_call *call, uint64_t start_us)
{
    MQX_ASSERT(call->wait_left_us >= -1);
    const int64_t spent = (int64_t)(mqx_clock_monotonic_us() - start_us);
    if (call->wait_left_us >= 0) {
        call->wait_left_us = spent < call->wait_left_us ? call->wait_left_us - spent : 0;
    }
    return (uint64_t)spent;
}

/* Spins when that is worth it, else or after that sleeps; 0, -ETIMEDOUT, -EINTR. */
static int spin_or_sleep(struct mqx_get_call *call, struct mqx_context *context, uint32_t seen)
{
    MQX_ASSERT(context != NULL);
    struct mqx_spin *spin = &call->queue->spin;
    const uint64_t start_us = mqx_clock_monotonic_us();
    uint64_t bound = call->wait_left_us >= 0 && call->wait_left_us < WAIT_BOUND_US
                         ? (uint64_t)call->wait_left_us
                         : (uint64_t)WAIT_BOUND_US;
    if (MQX_UNLIKELY(call->due_at != 0)) {
        const uint64_t now = mqx_due_now(&call->store->region);
        const uint64_t left = call->due_at > now ? call->due_at - now : 0;
        bound = left < bound ? left : bound;
    }
    const enum mqx_partner partner = mqx_wait_list_partner();
    const uint32_t spin_us = bound > MQX_SPIN_TRIAL_US ? mqx_spin_length(spin, partner) : 0;
    bool served = false;
    int slept = 0;
    if (spin_us != 0) {
        mqx_about_to_spin();
        served = mqx_spin_on(&context->wait_word, seen, spin_us);
    }
    if (!served) {
        mqx_about_to_block();
        mqx_store_relaxed(&context->wait_asleep, 1u + mqx_current_processor());
        mqx_fence(); /* a waker that does not see it has raised the word */
        slept = mqx_futex_wait(&context->wait_word, seen, bound);
        mqx_store_relaxed(&context->wait_asleep, 0);
    }
    mqx_spin_count(spin, spin_us, served, count_sleep(call, start_us));
    return slept;
}

/* Waits once and stays listed. MQE_INTERRUPTED or a reason that ends the wait: not listed. */
static int sleep_once(struct mqx_get_call *call, uint32_t seen)
{
    MQX_ASSERT(call->listed);
    MQX_ASSERT(call->pool != 0);
    const int slept = spin_or_sleep(call, mqx_context(&call->store->region, call->pool), seen);
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

int mqx_get_no_message(const struct mqx_get_call *call)
{
    MQX_ASSERT(call->get != NULL);
    if ((call->get->flags & UNDER_CURSOR_FLAGS) != 0) {
        return mqx_fail(MQRC_NO_MSG_UNDER_CURSOR, "the browse cursor is on no retrievable message");
    }
    return mqx_fail(MQRC_NO_MSG_AVAILABLE, "no message that matches");
}

/* The status of a call that has copied a message: 0, 2079 or 2080. */
static int result_of(const struct mqx_get_call *call)
{
    MQX_ASSERT(call->get->header == 0 || call->get->header == MQE_MDE_SIZE);
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

/* A waiter needs a context before it takes the lock: a new one may need the growth lock, which
 * comes before stripe locks. */
static int take_waiter_context(struct mqx_get_call *call, struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(call->wait_left_us != 0);
    if (mqx_get_has_context(call)) {
        return MQX_OK;
    }
    if (call->held) {
        mqx_stripe_guard_drop(guard);
        call->held = false;
    }
    return mqx_get_take_context(call);
}

/* The attempt took or copied something, or failed. */
static int end_attempts(const struct mqx_get_call *call, int status)
{
    MQX_ASSERT(!call->listed || status != MQX_OK);
    if (!call->woken && call->due_at == 0 && status == MQX_OK) {
        mqx_add_relaxed(&call->store->region.header->woken_by_bound, 1u);
    }
    return status != MQX_OK ? status : result_of(call);
}

static int attempt_until_served(struct mqx_get_call *call, struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(guard != NULL);
    MQX_ASSERT(!call->listed || call->posted != NULL);
    const struct mqx_cursor start = call->cursor;
    for (;;) {
        const bool wait = call->wait_left_us != 0;
        int status = wait ? take_waiter_context(call, guard) : MQX_OK;
        if (status != MQX_OK) {
            return status;
        }
        const enum mqx_next_step next = mqx_get_attempt(call, guard, wait, &status);
        if (next == MQX_STEP_AGAIN) {
            call->cursor = call->passed.started != 0 ? call->passed : start;
            continue;
        }
        if (next == MQX_STEP_DONE) {
            return end_attempts(call, status);
        }
        if (!wait) {
            return mqx_get_no_message(call);
        }
        uint32_t seen;
        begin_wait(call, guard, &seen);
        call->passed = (struct mqx_cursor){0};
        if (call->posted != NULL) {
            return MQE_LISTED;
        }
        status = sleep_once(call, seen);
        if (status != MQX_OK) {
            return status;
        }
    }
}

/* However the call ends: one that was woken for a message and has not taken it hands the wake-up
 * on. */
int mqx_get_or_wait(struct mqx_get_call *call, struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(!call->was_listed || call->posted != NULL);
    const int status = attempt_until_served(call, guard);
    MQX_ASSERT(!call->listed || status != MQX_OK);
    if (call->posted != NULL && (status == MQE_LISTED || status == MQE_INTERRUPTED)) {
        return status; /* the wait goes on (listed_wait.h) */
    }
    if (MQX_UNLIKELY(call->was_listed) && mqx_wait_list_owes(&call->store->region, call->pool)) {
        mqx_ignore(leave_list(call)); /* what the call has got stays got */
    }
    return status;
}
