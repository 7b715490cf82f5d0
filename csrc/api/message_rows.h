/*
 * message_rows.h - rows of a batch, for whoever fills one with messages: the item of engine.h from a message,
 * what fits, and what may be copied where. A batch without bodies (mqe_get_batch) takes what
 * stands in the region under the lock, however long the body is; one without items needs nothing.
 */
#ifndef PENSTOCK_MESSAGE_ROWS_H
#define PENSTOCK_MESSAGE_ROWS_H

#include "penstock/engine.h"
#include "region/store.h"

enum { MQX_GROUP_BYTES = 65536 }; /* bytes of bodies that one lock hold copies, about */

struct mqx_message;

/* item->ext as that of a message without an extension: blanks, sequence number 1. */
void mqx_msg_batch_item_clear(struct mqe_item *item);

/* Everything of the item, and the whole body into `body` (message->length bytes; NULL: none of it).
 * The message must be claimed or pinned, or the stripe lock held and what is copied be short and in
 * the region. */
int mqx_msg_batch_item_read(struct mqx_store *store, const struct mqx_message *message,
                            struct mqe_item *item, void *body) MQX_MUST_USE;

/* Nothing in it yet. */
void mqx_msg_batch_begin(struct mqe_batch *batch);

/* Bytes of bodies that may be taken beyond the first one's. */
uint64_t mqx_msg_batch_room(const struct mqe_batch *batch, uint64_t max_bytes);

/* Does the body of one more message fit? If not, batch->needed tells its size. */
bool mqx_msg_batch_fits(struct mqe_batch *batch, uint64_t room, const struct mqx_message *message);

/* Is what the batch wants of the message short and in the region? */
bool mqx_msg_batch_is_near(const struct mqe_batch *batch, const struct mqx_message *message);

/* What the batch wants of the message, into row i, whose offset is known. */
int mqx_msg_batch_read(struct mqx_store *store, struct mqe_batch *batch, uint32_t i,
                       const struct mqx_message *message) MQX_MUST_USE;

/* One more message, of so many bytes. */
void mqx_msg_batch_count(struct mqe_batch *batch, uint32_t length);

#endif
