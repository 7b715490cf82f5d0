/*
 * wait_list.c - see wait_list.h.
 */
#include "queue/wait_list.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/futex.h"
#include "os/host_info.h"
#include "queue/expiry_time.h"
#include "queue/queue.h"
#include "queue/wake_channel.h"
#include "region/damage.h"
#include "region/extents.h"
#include "region/queue_clock.h"

MQX_THREAD_LOCAL enum mqx_partner partner; /* whom this thread's last wakes met */

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
    mqx_guard_store32(guard, &context->wait_message, 0);
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
    mqx_store_relaxed(&context->wait_until_us,
                      queue->delayed != 0 ? queue->next_due_us : UINT64_MAX);
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

/* Takes a listed waiter off its list and notes it to be woken; `entry`: the message that it alone
 * is woken for, 0 none. */
static void pick(struct mqx_stripe_guard *guard, uint32_t slot, struct mqx_context *context,
                 enum mqx_wait_state state, uint32_t entry, struct mqx_wakeups *wakes)
{
    MQX_ASSERT(wakes->count < MQX_ARRAY_COUNT(wakes->context));
    MQX_ASSERT(state == MQX_WAIT_WOKEN || state == MQX_WAIT_CANCELLED);
    unlink_waiter(guard, slot, context);
    if (entry != 0) {
        mqx_guard_store32(guard, &context->wait_message, entry);
        mqx_guard_store64(guard, &context->wait_number, mqx_message(guard->region, entry)->number);
    }
    mqx_guard_store32(guard, &context->wait_state, state);
    mqx_guard_store32(guard, &context->wait_word, context->wait_word + 1);
    mqx_stripe_guard_commit(guard);
    wakes->second_look = wakes->count != 0 ? wakes->second_look : 0;
    wakes->rest_object = wakes->count != 0 ? wakes->rest_object : 0;
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
                      uint32_t entry, struct mqx_wakeups *wakes)
{
    const struct mqx_message *message = mqx_message(guard->region, entry);
    const uint64_t bound = mqx_area_used(guard->region, MQX_AREA_CONTEXTS);
    uint32_t slot = head;
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    for (uint64_t i = 0; i < bound && slot != 0; i++) {
        struct mqx_context *context = mqx_context(guard->region, slot);
        if (context == NULL) {
            return true;
        }
        if (wakes->count >= MQX_ARRAY_COUNT(wakes->context)) {
            wakes->rest_object = object;
            wakes->rest_entry = entry;
            wakes->rest_number = message->number;
            return true;
        }
        const uint32_t next = context->wait_next, is_browse = context->wait_browse;
        if (matches(context, object, message)) {
            pick(guard, slot, context, MQX_WAIT_WOKEN, is_browse ? 0 : entry, wakes);
            if (!is_browse) {
                wakes->second_look |= mqx_object(guard->region, object)->waiters != 0;
                return true;
            }
        }
        slot = next;
    }
    return false;
}

/* A message was put that is due before all others of the queue: those who mean to sleep longer look
 * again, and then sleep no longer than that. */
static MQX_COLD void pick_late(struct mqx_stripe_guard *guard, const struct mqx_object *queue,
                               uint32_t object, uint32_t entry, struct mqx_wakeups *wakes)
{
    const uint64_t used = mqx_area_used(guard->region, MQX_AREA_CONTEXTS);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(entry != 0);
    for (uint64_t slot = 1; slot < used && queue->waiters != 0; slot++) {
        struct mqx_context *context = mqx_context(guard->region, (uint32_t)slot);
        if (context == NULL || context->wait_state != MQX_WAIT_LISTED ||
            context->wait_object != object || context->wait_until_us <= queue->next_due_us) {
            continue;
        }
        if (wakes->count >= MQX_ARRAY_COUNT(wakes->context)) {
            wakes->rest_object = object;
            wakes->rest_entry = entry;
            wakes->rest_number = mqx_message(guard->region, entry)->number;
            return;
        }
        pick(guard, (uint32_t)slot, context, MQX_WAIT_WOKEN, 0, wakes);
    }
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
    if (MQX_UNLIKELY(message->state == MQX_MSG_DELAYED)) {
        if (message->due.key_us == queue->next_due_us) {
            pick_late(guard, queue, object, slot, wakes);
        }
        return;
    }
    for (int k = 0; k < MQX_INDEX_COUNT && !picked && queue->waiters != 0; k++) {
        if (message->tag[k] != 0) {
            picked =
                pick_from(guard, guard->stripe->wait_bucket[message->tag[k] % MQX_WAIT_BUCKETS],
                          object, slot, wakes);
        }
    }
    if (!picked && queue->waiters != 0) {
        (void)pick_from(guard, queue->wait_head, object, slot, wakes);
    }
}

bool mqx_wait_list_owes(const struct mqx_region *region, uint32_t slot)
{
    const struct mqx_context *context = mqx_context(region, slot);
    MQX_ASSERT(region->base != NULL);
    if (context == NULL || mqx_load_relaxed(&context->wait_message) == 0) {
        return false;
    }
    const struct mqx_message *message =
        mqx_message(region, mqx_load_relaxed(&context->wait_message));
    return message != NULL && mqx_load_relaxed(&message->state) == MQX_MSG_AVAILABLE;
}

void mqx_wait_list_hand_on(struct mqx_stripe_guard *guard, uint32_t slot, bool untagged,
                           struct mqx_wakeups *wakes)
{
    struct mqx_region *region = guard->region;
    struct mqx_context *context = mqx_context(region, slot);
    MQX_ASSERT(mqx_lock_held(region, &guard->stripe->lock));
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    if (context == NULL || context->wait_message == 0) {
        return;
    }
    const uint32_t entry = context->wait_message, object = context->wait_object;
    struct mqx_object *queue = mqx_object(region, object);
    const struct mqx_message *message = mqx_message(region, entry);
    if (MQX_UNLIKELY(queue == NULL || message == NULL ||
                     mqx_stripe_of(region, object) != guard->stripe)) {
        damaged_list(region, slot);
        return;
    }
    if (queue->waiters == 0 || message->state != MQX_MSG_AVAILABLE ||
        message->number != context->wait_number || message->object != object ||
        (message->expiry != 0 && mqx_queue_expired(region, message, mqx_queue_coarse_us(region)))) {
        return;
    }
    const uint32_t before = wakes->count;
    if (untagged) {
        (void)pick_from(guard, queue->wait_head, object, entry, wakes);
    } else {
        mqx_wait_list_pick(guard, object, entry, wakes);
    }
    if (wakes->count != before) {
        mqx_guard_store32(guard, &context->wait_message, 0);
        mqx_stripe_guard_commit(guard);
    }
}

/* Has the maintenance thread of this process take a second look, if it is not to do that already.
 */
static void ring_for_second_look(struct mqx_region *region)
{
    uint32_t *doorbell = &mqx_process_slot(region, region->process)->doorbell;
    MQX_ASSERT(region->process < MQX_PROCESS_MAX);
    if ((mqx_load_relaxed(doorbell) & MQX_BELL_SECOND_LOOK) == 0 &&
        (mqx_fetch_or(doorbell, MQX_BELL_SECOND_LOOK) & MQX_BELL_SECOND_LOOK) == 0) {
        mqx_futex_wake(doorbell, 1);
    }
}

/* Those whom the last hold had no room for. A message that has left wakes nobody. */
static MQX_COLD void pick_rest(struct mqx_region *region, struct mqx_wakeups *wakes)
{
    const uint32_t object = wakes->rest_object;
    struct mqx_stripe_guard guard;
    MQX_ASSERT(object != 0);
    MQX_ASSERT(wakes->count == 0);
    if (mqx_stripe_guard_take(region, object, &guard) != MQX_OK) {
        return;
    }
    const struct mqx_message *message = mqx_message_peek(region, wakes->rest_entry);
    if (message != NULL && mqx_delayed_or_available(message) &&
        message->number == wakes->rest_number && message->object == object) {
        mqx_wait_list_pick(&guard, object, wakes->rest_entry, wakes);
    }
    mqx_stripe_guard_drop(&guard);
}

/* `asleep` as in the context of the one that is woken. */
static void note_partner(uint32_t asleep)
{
    enum mqx_partner met = MQX_PARTNER_AWAKE;
    MQX_ASSERT(partner <= MQX_PARTNER_AWAKE);
    if (asleep != 0) {
        met = asleep - 1 != mqx_current_processor() ? MQX_PARTNER_ELSEWHERE : MQX_PARTNER_UNKNOWN;
    }
    partner = met > partner ? met : partner;
}

/* The futex calls, and rings of channels, for those who were picked in one hold; true when there
 * may be more. */
static bool wake_picked(struct mqx_region *region, struct mqx_wakeups *wakes)
{
    MQX_ASSERT(wakes->count <= MQX_ARRAY_COUNT(wakes->context));
    if (wakes->count == 0) {
        return false;
    }
    mqx_fence(); /* the words were raised before it is read who sleeps */
    for (uint32_t i = 0; i < wakes->count; i++) {
        struct mqx_context *context = mqx_context(region, wakes->context[i]);
        const uint32_t channel = context != NULL ? mqx_load_relaxed(&context->wait_channel) : 0;
        if (channel != 0) {
            mqx_wake_channel_ring(region, channel, wakes->context[i]);
            continue;
        }
        const uint32_t asleep = context != NULL ? mqx_load_relaxed(&context->wait_asleep) : 0;
        note_partner(asleep);
        if (asleep != 0) {
            mqx_futex_wake(&context->wait_word, 1);
        }
    }
    if (wakes->second_look != 0) {
        ring_for_second_look(region);
    }
    wakes->count = 0;
    return wakes->rest_object != 0;
}

void mqx_wait_list_wake(struct mqx_region *region, struct mqx_wakeups *wakes)
{
    MQX_ASSERT(region->base != NULL);
    while (MQX_UNLIKELY(wake_picked(region, wakes))) {
        pick_rest(region, wakes);
    }
}

enum mqx_partner mqx_wait_list_partner(void)
{
    const enum mqx_partner met = partner;
    partner = MQX_PARTNER_UNKNOWN;
    MQX_ASSERT(met <= MQX_PARTNER_AWAKE);
    return met;
}

struct handed { /* messages whose wake-ups a second look has handed on */
    uint32_t count;
    uint64_t number[MQX_LOCKED_STEPS_MAX];
};

static bool was_handed(const struct handed *handed, uint64_t number)
{
    bool found = false;
    MQX_ASSERT(handed->count <= MQX_LOCKED_STEPS_MAX);
    for (uint32_t i = 0; i < handed->count && !found; i++) {
        found = handed->number[i] == number;
    }
    return found;
}

/* One wake-up that may be unused. Who is woken for a message in this look has time until the next
 * one. */
static int look_again(struct mqx_region *region, uint32_t slot, uint32_t object,
                      struct handed *handed)
{
    struct mqx_wakeups wakes = {.count = 0};
    struct mqx_stripe_guard guard;
    MQX_ASSERT(slot != 0 && object != 0);
    MQX_ASSERT(handed->count < MQX_LOCKED_STEPS_MAX);
    const int status = mqx_stripe_guard_take(region, object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    const struct mqx_context *context = mqx_context(region, slot);
    MQX_ASSERT(context != NULL); /* the caller has validated the slot */
    if (context->wait_state == MQX_WAIT_WOKEN && context->wait_object == object &&
        !was_handed(handed, context->wait_number)) {
        handed->number[handed->count++] = context->wait_number;
        mqx_wait_list_hand_on(&guard, slot, false, &wakes);
    }
    mqx_stripe_guard_drop(&guard);
    mqx_wait_list_wake(region, &wakes);
    return MQX_OK;
}

int mqx_wait_list_second_look(struct mqx_region *region)
{
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    struct handed handed = {.count = 0};
    int status = MQX_OK;
    MQX_ASSERT(region->base != NULL);
    for (uint64_t slot = 1;
         slot < used && status == MQX_OK && handed.count < MQX_LOCKED_STEPS_MAX; slot++) {
        const struct mqx_context *context = mqx_context(region, (uint32_t)slot);
        if (context == NULL || mqx_load_relaxed(&context->wait_state) != MQX_WAIT_WOKEN ||
            !mqx_wait_list_owes(region, (uint32_t)slot)) {
            continue;
        }
        const uint32_t object = mqx_load_relaxed(&context->wait_object);
        const struct mqx_object *queue = mqx_object(region, object);
        if (queue != NULL && mqx_load_relaxed(&queue->waiters) != 0) {
            status = look_again(region, (uint32_t)slot, object, &handed);
        }
    }
    return status;
}

/* One lock hold: cancels up to 64 waiters of the object. */
static int cancel_some(struct mqx_store *store, uint32_t object, bool *out_more)
{
    struct mqx_region *region = &store->region;
    struct mqx_wakeups wakes = {0};
    struct mqx_stripe_guard guard;
    MQX_ASSERT(object != 0);
    int status = mqx_stripe_guard_take(region, object, &guard);
    if (status != MQX_OK) {
        return status;
    }
    const struct mqx_object *queue = mqx_object(region, object);
    const uint64_t used = mqx_area_used(region, MQX_AREA_CONTEXTS);
    for (uint64_t slot = 1; slot < used && queue != NULL && queue->waiters != 0; slot++) {
        struct mqx_context *context = mqx_context(region, (uint32_t)slot);
        if (wakes.count >= MQX_LOCKED_STEPS_MAX) {
            break;
        }
        if (context != NULL && context->wait_state == MQX_WAIT_LISTED &&
            context->wait_object == object) {
            pick(&guard, (uint32_t)slot, context, MQX_WAIT_CANCELLED, 0, &wakes);
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
    const uint64_t used = mqx_area_used(&store->region, MQX_AREA_OBJECTS);
    int status = MQX_OK;
    for (uint64_t slot = 1; slot < used && status == MQX_OK; slot++) {
        const struct mqx_object *queue = mqx_object(&store->region, (uint32_t)slot);
        if (queue != NULL && mqx_load_relaxed(&queue->waiters) != 0) {
            status = mqx_wait_list_cancel_all(store, (uint32_t)slot);
        }
    }
    return status;
}
