/*
 * cancel.c - mqe_cancel_delayed: a delayed message is taken off its queue before it is due.
 *
 * It is got in a unit of this call: claimed from the state DELAYED, logged when it is in the
 * journal, and removed when that is durable. Who comes second, a get after the due time or another
 * cancel, does not find it. Equal tags are no proof (rule 47): the full MsgId is compared with the
 * message claimed, which goes back, and waits on, when it is another.
 */
#include "api/context_pool.h"
#include "api/message_copy.h"
#include "api/queue_handle.h"
#include "api/unit_handle.h"
#include "base/checksum.h"
#include "base/error.h"
#include "queue/due_release.h"
#include "region/damage.h"
#include "unit/unit.h"

#include <string.h>

struct cancel {
    uint32_t object, generation;
    const uint8_t *msg_id;
    struct mqx_cursor made; /* of the tree by MsgId, which the queue's first cancel makes */
    uint32_t claimed;       /* entry of the message */
};

/* Claims a delayed message with the MsgId's tag. 2033 when there is none; MQX_BUSY: the tree is not
 * complete yet, and the call is to be made again. */
static int claim(struct mqx_store *store, uint32_t context, struct cancel *cancel)
{
    struct mqx_stripe_guard guard;
    struct mqx_object *queue;
    const uint64_t tag = mqx_hash64(cancel->msg_id, MQX_ID_SIZE, store->region.tag_key);
    MQX_ASSERT(context != 0);
    int status =
        mqx_queue_lock(&store->region, cancel->object, cancel->generation, &guard, &queue);
    if (status != MQX_OK) {
        return status;
    }
    if (!mqx_due_index_make_ids(&guard, queue, &cancel->made)) {
        mqx_stripe_guard_drop(&guard);
        return MQX_BUSY;
    }
    cancel->claimed = mqx_due_index_find(&store->region, queue, tag);
    if (cancel->claimed != 0) {
        mqx_unit_begin(store, context);
        mqx_queue_claim(&guard, queue, cancel->claimed, MQX_MSG_GOT, context);
        mqx_stripe_guard_commit(&guard);
    }
    mqx_stripe_guard_drop(&guard);
    return cancel->claimed != 0
               ? MQX_OK
               : mqx_fail(MQRC_NO_MSG_AVAILABLE, "no delayed message has that MsgId");
}

/* 2033 when the message claimed has another MsgId. */
static int verify(struct mqx_store *store, const struct cancel *cancel)
{
    const struct mqx_message *message = mqx_message(&store->region, cancel->claimed);
    struct ps_descriptor d;
    MQX_ASSERT(cancel->claimed != 0);
    if (message == NULL) {
        return mqx_region_damage(&store->region, "a delayed message", cancel->claimed);
    }
    const int status = mqx_message_copy(store, message, &d, NULL, NULL, 0);
    if (status == MQX_OK && memcmp(d.msg_id, cancel->msg_id, MQX_ID_SIZE) != 0) {
        return mqx_fail(MQRC_NO_MSG_AVAILABLE, "no delayed message has that MsgId");
    }
    return status;
}

static int do_cancel(struct mqx_store *store, uint32_t context, void *arg)
{
    struct cancel *cancel = arg;
    MQX_ASSERT(context != 0);
    int status = mqx_due_release(store, cancel->object);
    if (status == MQX_OK) {
        do {
            status = claim(store, context, cancel);
        } while (status == MQX_BUSY);
    }
    if (status != MQX_OK) {
        return status;
    }
    status = verify(store, cancel);
    const struct mqx_message *message = mqx_message(&store->region, cancel->claimed);
    if (status == MQX_OK && (message->flags & MQX_MSGF_PERSISTENT) != 0) {
        status = mqx_unit_log_get(store, context, cancel->claimed, false);
    }
    return mqx_unit_end_autocommit(store, context, status);
}

int mqe_cancel_delayed(mqe_manager *manager, uint32_t slot, uint32_t generation,
                       const uint8_t msg_id[24])
{
    struct cancel cancel = {.object = slot, .generation = generation, .msg_id = msg_id};
    MQX_ASSERT(msg_id != NULL);
    if (mqx_object(&manager->store.region, slot) == NULL) {
        return mqx_fail(MQRC_Q_DELETED, "there is no queue in slot %u", slot);
    }
    return mqx_with_context(manager, do_cancel, &cancel);
}
