/*
 * delayed.c - see delayed.h.
 */
#include "queue/delayed.h"

#include "base/assert.h"
#include "region/damage.h"

bool mqx_delayed_fill(const struct mqx_region *region, struct mqx_message *message, uint64_t due_us)
{
    MQX_ASSERT(due_us != 0);
    message->due.due_us = due_us;
    message->due.key_us = mqx_due_key(region, due_us);
    message->flags |= MQX_MSGF_DUE;
    return true;
}

bool mqx_delayed_settle(const struct mqx_region *region, struct mqx_message *message)
{
    MQX_ASSERT((message->flags & MQX_MSGF_DUE) != 0);
    const bool later = message->due.key_us > mqx_due_now(region);
    if (!later) {
        message->flags &= (uint8_t)~MQX_MSGF_DUE;
    }
    return later;
}

bool mqx_delayed_settle_guarded(struct mqx_stripe_guard *guard, struct mqx_message *message)
{
    MQX_ASSERT((message->flags & MQX_MSGF_DUE) != 0);
    const bool later = message->due.key_us > mqx_due_now(guard->region);
    if (!later) {
        mqx_guard_store8(guard, &message->flags, message->flags & (uint8_t)~MQX_MSGF_DUE);
    }
    return later;
}

void mqx_delayed_set(struct mqx_stripe_guard *guard, struct mqx_message *message, uint64_t key_us,
                     uint64_t due_us)
{
    MQX_ASSERT(message->state == MQX_MSG_GOT);
    MQX_ASSERT(key_us != 0 && due_us != 0);
    mqx_guard_store64(guard, &message->due.key_us, key_us);
    mqx_guard_store64(guard, &message->due.due_us, due_us);
    mqx_guard_store8(guard, &message->flags, message->flags | MQX_MSGF_DUE);
}

void mqx_delayed_enter(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                       struct mqx_message *message)
{
    MQX_ASSERT(message->state != MQX_MSG_AVAILABLE);
    MQX_ASSERT((message->flags & MQX_MSGF_DUE) != 0);
    mqx_guard_store8(guard, &message->state, MQX_MSG_DELAYED);
    mqx_due_index_insert(guard, queue, slot);
}

/* The links of the id indexes lie where the due time is, and are stored as fresh memory: the due
 * time and the links of its trees are noted, so that a death on the way restores them. */
static void note_due(struct mqx_stripe_guard *guard, struct mqx_due *due)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    mqx_guard_store64(guard, &due->key_us, due->key_us);
    mqx_guard_store64(guard, &due->due_us, due->due_us);
    for (int tree = 0; tree < 2; tree++) {
        mqx_guard_store32(guard, &due->child[tree][0], due->child[tree][0]);
        mqx_guard_store32(guard, &due->child[tree][1], due->child[tree][1]);
    }
}

int mqx_delayed_show(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot)
{
    struct mqx_message *message = mqx_message(guard->region, slot);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    if (MQX_UNLIKELY(message == NULL || message->state != MQX_MSG_DELAYED)) {
        return mqx_region_damage(guard->region, "a delayed message", slot);
    }
    const int status = mqx_due_index_remove(guard, queue, slot);
    if (MQX_UNLIKELY(status != MQX_OK)) {
        return status;
    }
    mqx_guard_store8(guard, &message->state, MQX_MSG_AVAILABLE);
    mqx_guard_store8(guard, &message->flags, message->flags & (uint8_t)~MQX_MSGF_DUE);
    mqx_priority_index_set_available(guard, queue, slot, true);
    if (mqx_id_index_any(queue)) {
        note_due(guard, &message->due);
        mqx_id_index_link(guard, queue, slot);
    }
    return MQX_OK;
}

uint64_t mqx_delayed_due_us(const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
    const bool has = message->state != MQX_MSG_AVAILABLE && (message->flags & MQX_MSGF_DUE) != 0;
    return has ? message->due.due_us : 0;
}
