/*
 * message_rows.c - see message_rows.h.
 */
#include "api/message_rows.h"

#include "api/message_copy.h"

#include <string.h>

/* ---- a row ---- */

void mqx_msg_batch_item_clear(struct mqe_item *item)
{
    MQX_ASSERT(item != NULL);
    struct ps_descriptor_ext *ext = &item->ext;
    memset(ext, 0, sizeof *ext);
    memset(ext->reply_to_q, ' ', sizeof ext->reply_to_q);
    memset(ext->reply_to_qmgr, ' ', sizeof ext->reply_to_qmgr);
    memset(ext->appl_identity_data, ' ', sizeof ext->appl_identity_data);
    ext->msg_seq_number = 1;
    ext->original_length = -1;
}

int mqx_msg_batch_item_read(struct mqx_store *store, const struct mqx_message *message,
                            struct mqe_item *item, void *body)
{
    MQX_ASSERT(item != NULL);
    MQX_ASSERT(message != NULL);
    if ((message->flags & MQX_MSGF_HAS_EXT) == 0) {
        mqx_msg_batch_item_clear(item);
    }
    item->number = message->number;
    item->lsn = message->lsn;
    item->length = message->length;
    item->reason = MQX_OK;
    item->work = 0;
    const int status = mqx_message_copy(store, message, &item->d, &item->ext, body,
                                        body == NULL ? 0 : message->length);
    item->expiry = mqx_expiry_left(&store->region, &item->d);
    return status;
}

int mqx_msg_batch_read(struct mqx_store *store, struct mqe_batch *batch, uint32_t i,
                       const struct mqx_message *message)
{
    MQX_ASSERT(i < batch->capacity);
    if (batch->items == NULL) {
        return MQX_OK;
    }
    void *body = batch->bodies == NULL ? NULL : batch->bodies + batch->offsets[i];
    return mqx_msg_batch_item_read(store, message, &batch->items[i], body);
}

/* ---- the batch ---- */

void mqx_msg_batch_begin(struct mqe_batch *batch)
{
    MQX_ASSERT(batch->bodies == NULL || batch->offsets != NULL);
    batch->count = 0;
    batch->bytes = 0;
    batch->needed = 0;
    batch->confirm = 0;
    if (batch->bodies != NULL) {
        batch->offsets[0] = 0;
    }
}

void mqx_msg_batch_count(struct mqe_batch *batch, uint32_t length)
{
    MQX_ASSERT(batch->count < batch->capacity);
    MQX_ASSERT(batch->bodies == NULL || batch->bytes + length <= batch->body_capacity);
    batch->bytes += length;
    batch->count += 1;
    if (batch->bodies != NULL) {
        batch->offsets[batch->count] = (int64_t)batch->bytes;
    }
}

uint64_t mqx_msg_batch_room(const struct mqe_batch *batch, uint64_t max_bytes)
{
    MQX_ASSERT(batch != NULL);
    const uint64_t most = batch->bodies == NULL ? UINT64_MAX : batch->body_capacity;
    return max_bytes != 0 && max_bytes < most ? max_bytes : most;
}

bool mqx_msg_batch_fits(struct mqe_batch *batch, uint64_t room, const struct mqx_message *message)
{
    MQX_ASSERT(batch->bodies == NULL || batch->bytes <= batch->body_capacity);
    const uint64_t most = batch->count == 0 ? mqx_msg_batch_room(batch, 0) : room;
    if (message->length <= most && batch->bytes <= most - message->length) {
        return true;
    }
    batch->needed = message->length;
    return false;
}

bool mqx_msg_batch_is_near(const struct mqe_batch *batch, const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
    if (batch->bodies == NULL) {
        return batch->items == NULL || message->cells != 0;
    }
    return message->cells != 0 && message->length <= MQX_LOCKED_COPY_MAX;
}
