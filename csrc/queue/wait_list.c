/*
 * wait_list.c - see wait_list.h.
 */
#include "queue/wait_list.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/futex.h"
#include "queue/priority_index.h"
#include "region/damage.h"

enum { GENERAL_LIST = 0 }; /* context.wait_list: of the queue; others are a bucket + 1 */

static MQX_COLD void damaged_list(const struct mqx_region *region, uint32_t slot)
{
    (void)mqx_region_damage(region, "a list of waiters, context", slot);
}

/* The word that names the first waiter of a list. */
static uint32_t *head_of(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t list)
{
    MQX_ASSERT(queue != NULL);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    return list == GENERAL_LIST ? &queue->wait_head
                     : &guard->stripe->wait_bucket[(list - 1) % MQX_WAIT_BUCKETS];
}

static uint32_t list_for(const struct mqx_context *context)
{
    MQX_ASSERT(context != NULL);
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        if ((context->wait_match >> k & 1u) != 0) {
            return 1 + (uint32_t)(context->wait_tag[k] % MQX_WAIT_BUCKETS);
        }
    }
    return GENERAL_LIST;
}

/* Is its last element, through wait_prev of the first, there? An empty list has none. */
static bool has_sound_ends(const struct mqx_region *region, uint32_t head)
{
    const struct mqx_context *first = mqx_context(region, head);
    return head == 0 || (first != NULL && mqx_context(region, first->wait_prev) != NULL);
}

void mqx_wait_list_add(struct mqx_stripe_guard *guard, uint32_t object, uint32_t slot)
{
    struct mqx_context *context = mqx_context(guard->region, slot);
    struct mqx_object *queue = mqx_object(guard->region, object);
    MQX_ASSERT(mqx_stripe_of(guard->region, object) == guard->stripe);
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    if (context == NULL || queue == NULL || context->wait_state == MQX_WAIT_LISTED) {
        damaged_list(guard->region, slot);
        return;
    }
    const uint32_t list = list_for(context);
    uint32_t *head = head_of(guard, queue, list);
    if (!has_sound_ends(guard->region, *head)) {
        damaged_list(guard->region, *head);
        return;
    }
    struct mqx_context *first = mqx_context(guard->region, *head);
    mqx_guard_store32(guard, &context->wait_object, object);
    mqx_guard_store32(guard, &context->wait_list, list);
    mqx_guard_store32(guard, &context->wait_next, 0);
    if (first == NULL) {
        mqx_guard_store32(guard, &context->wait_prev, slot);
        mqx_guard_store32(guard, head, slot);
    } else {
        struct mqx_context *last = mqx_context(guard->region, first->wait_prev);
        MQX_ASSERT(last != NULL); /* has_sound_ends */
        mqx_guard_store32(guard, &context->wait_prev, first->wait_prev);
        mqx_guard_store32(guard, &last->wait_next, slot);
        mqx_guard_store32(guard, &first->wait_prev, slot);
    }
    mqx_guard_store32(guard, &context->wait_state, MQX_WAIT_LISTED);
    mqx_guard_store32(guard, &queue->waiters, queue->waiters + 1);
    mqx_stripe_guard_commit(guard);
}

/* Stores that take a listed context off its list; the caller sets the state and commits. */
static void unlink_waiter(struct mqx_stripe_guard *guard, uint32_t slot,
                          struct mqx_context *context)
{
    struct mqx_object *queue = mqx_object(guard->region, context->wait_object);
    MQX_ASSERT(context == mqx_context(guard->region, slot));
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    if (queue == NULL) {
        damaged_list(guard->region, slot);
        return;
    }
    uint32_t *head = head_of(guard, queue, context->wait_list);
    struct mqx_context *next = mqx_context(guard->region, context->wait_next);
    struct mqx_context *prev = mqx_context(guard->region, context->wait_prev);
    struct mqx_context *first = mqx_context(guard->region, *head);
    if (prev == NULL || first == NULL || (next == NULL && context->wait_next != 0)) {
        damaged_list(guard->region, slot);
        return;
    }
    if (*head == slot) {
        mqx_guard_store32(guard, head, context->wait_next);
    } else {
        mqx_guard_store32(guard, &prev->wait_next, context->wait_next);
    }
    if (next != NULL) {
        mqx_guard_store32(guard, &next->wait_prev, context->wait_prev);
    } else if (*head != 0 && *head != slot) {
        mqx_guard_store32(guard, &first->wait_prev, context->wait_prev);
    }
    mqx_guard_store32(guard, &queue->waiters, queue->waiters - 1);
}

enum mqx_wait_state mqx_wait_list_remove(struct mqx_stripe_guard *guard, uint32_t slot)
{
    struct mqx_context *context = mqx_context(guard->region, slot);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    if (context == NULL) {
        damaged_list(guard->region, slot);
        return MQX_WAIT_NONE;
    }
    const uint32_t was = context->wait_state;
    if (was == MQX_WAIT_LISTED) {
        unlink_waiter(guard, slot, context);
    }
    mqx_guard_store32(guard, &context->wait_state, MQX_WAIT_NONE);
    mqx_stripe_guard_commit(guard);
    return (enum mqx_wait_state)was;
}

/* Takes a listed waiter off its list and notes it to be woken. */
static void pick(struct mqx_stripe_guard *guard, uint32_t slot, struct mqx_context *context,
                 enum mqx_wait_state state, struct mqx_wakeups *wakes)
{
    MQX_ASSERT(wakes->count < MQX_ARRAY_COUNT(wakes->context));
    MQX_ASSERT(state == MQX_WAIT_WOKEN || state == MQX_WAIT_CANCELLED);
    unlink_waiter(guard, slot, context);
    mqx_guard_store32(guard, &context->wait_state, state);
    mqx_guard_store32(guard, &context->wait_word, context->wait_word + 1);
    mqx_stripe_guard_commit(guard);
    wakes->context[wakes->count++] = slot;
}

static bool matches(const struct mqx_context *context, uint32_t object,
                    const struct mqx_message *message)
{
    MQX_ASSERT(object != 0);
    if (context->wait_object != object || context->wait_state != MQX_WAIT_LISTED) {
        return false;
    }
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        if ((context->wait_match >> k & 1u) != 0 && context->wait_tag[k] != message->tag[k]) {
            return false;
        }
    }
    return true;
}

/* Walks one list; wakes browsers that match, and one getter. True when a getter was picked. */
static bool pick_from(struct mqx_stripe_guard *guard, uint32_t head, uint32_t object,
                      const struct mqx_message *message, struct mqx_wakeups *wakes)
{
    const uint64_t bound = guard->region->header->area[MQX_AREA_CONTEXTS].used;
    uint32_t slot = head;
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    for (uint64_t i = 0; i < bound && slot != 0; i++) {
        struct mqx_context *context = mqx_context(guard->region, slot);
        if (context == NULL || wakes->count >= MQX_ARRAY_COUNT(wakes->context)) {
            return true; /* waiters that are left find the message by the bound of their wait */
        }
        const uint32_t next = context->wait_next, is_browse = context->wait_browse;
        if (matches(context, object, message)) {
            pick(guard, slot, context, MQX_WAIT_WOKEN, wakes);
            if (!is_browse) {
                return true;
            }
        }
        slot = next;
    }
    return false;
}

void mqx_wait_list_pick(struct mqx_stripe_guard *guard, uint32_t object, uint32_t slot,
                        struct mqx_wakeups *wakes)
{
    struct mqx_object *queue = mqx_object(guard->region, object);
    const struct mqx_message *message = mqx_message(guard->region, slot);
    bool picked = false;
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    if (MQX_UNLIKELY(queue == NULL || message == NULL)) {
        (void)mqx_region_damage(guard->region, "a message that waiters are picked for", slot);
        return;
    }
    for (int k = 0; k < MQX_INDEX_COUNT && !picked && queue->waiters != 0; k++) {
        if (message->tag[k] != 0) {
            picked =
                pick_from(guard, guard->stripe->wait_bucket[message->tag[k] % MQX_WAIT_BUCKETS],
                          object, message, wakes);
        }
    }
    if (!picked && queue->waiters != 0) {
        (void)pick_from(guard, queue->wait_head, object, message, wakes);
    }
}

void mqx_wait_list_pass_wakeup(struct mqx_stripe_guard *guard, uint32_t object,
                               struct mqx_wakeups *wakes)
{
    const struct mqx_object *queue = mqx_object(guard->region, object);
    struct mqx_cursor cursor = {0};
    MQX_ASSERT(mqx_stripe_of(guard->region, object) == guard->stripe);
    if (queue == NULL) {
        (void)mqx_region_damage(guard->region, "a queue whose wake-up is passed on", object);
        return;
    }
    for (int i = 0; i < MQX_LOCKED_STEPS_MAX && queue->waiters != 0; i++) {
        const uint32_t slot = mqx_priority_index_next(guard->region, queue, &cursor, true);
        if (slot == 0) {
            return;
        }
        const uint32_t before = wakes->count;
        mqx_wait_list_pick(guard, object, slot, wakes);
        if (wakes->count != before) {
            return;
        }
    }
}

void mqx_wait_list_wake(struct mqx_region *region, struct mqx_wakeups *wakes)
{
    MQX_ASSERT(wakes->count <= MQX_ARRAY_COUNT(wakes->context));
    for (uint32_t i = 0; i < wakes->count; i++) {
        struct mqx_context *context = mqx_context(region, wakes->context[i]);
        if (context != NULL) {
            mqx_futex_wake(&context->wait_word, 1);
        }
    }
    wakes->count = 0;
}

/* One lock hold: cancels up to 64 waiters of the object. */
static int cancel_some(struct mqx_store *store, uint32_t object, bool *out_more)
{
    struct mqx_region *region = &store->region;
    const struct mqx_area *area = &region->header->area[MQX_AREA_CONTEXTS];
    struct mqx_wakeups wakes = {0};
    struct mqx_stripe_guard guard;
    MQX_ASSERT(object != 0);
    int status = mqx_stripe_guard_take(region, object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    const struct mqx_object *queue = mqx_object(region, object);
    const uint64_t used = mqx_load_acquire(&area->used);
    for (uint64_t slot = 1; slot < used && queue != NULL && queue->waiters != 0; slot++) {
        struct mqx_context *context = mqx_context(region, (uint32_t)slot);
        if (wakes.count >= MQX_LOCKED_STEPS_MAX) {
            break;
        }
        if (context != NULL && context->wait_state == MQX_WAIT_LISTED &&
            context->wait_object == object) {
            pick(&guard, (uint32_t)slot, context, MQX_WAIT_CANCELLED, &wakes);
        }
    }
    *out_more = queue != NULL && queue->waiters != 0 && wakes.count != 0;
    mqx_stripe_guard_drop(&guard);
    mqx_wait_list_wake(region, &wakes);
    return MQX_OK;
}

int mqx_wait_list_cancel_all(struct mqx_store *store, uint32_t object)
{
    bool more = true;
    int status = MQX_OK;
    MQX_ASSERT(object != 0);
    while (more && status == MQX_OK) {
        status = cancel_some(store, object, &more);
    }
    return status;
}

int mqx_wait_list_cancel_everywhere(struct mqx_store *store)
{
    const struct mqx_area *area = &store->region.header->area[MQX_AREA_OBJECTS];
    const uint64_t used = mqx_load_acquire(&area->used);
    int status = MQX_OK;
    for (uint64_t slot = 1; slot < used && status == MQX_OK; slot++) {
        const struct mqx_object *queue = mqx_object(&store->region, (uint32_t)slot);
        if (queue != NULL && mqx_load_relaxed(&queue->waiters) != 0) {
            status = mqx_wait_list_cancel_all(store, (uint32_t)slot);
        }
    }
    return status;
}
