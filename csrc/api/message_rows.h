/*
 * message_rows.h - rows of a message batch: making the item of engine.h from a message, and
 * deciding what fits and what may be copied where.
 *
 * A batch without bodies (mqe_get_batch, mqe_browse_batch) takes what stands in the region under
 * the lock, however long the body is; a batch without items copies nothing.
 *
 * Terms
 *   row   one message of the batch: items[i], offsets[i] and its bytes in bodies.
 *   near  what the batch wants of a message is short and in the region: it may be copied under the
 *         lock.
 *
 * Invariants
 *   1. offsets[0] is 0 and offsets[count] is `bytes`, when the batch has bodies.
 *   2. count <= capacity, bytes <= body_capacity.
 *
 * Locks: none is taken. A message must not go away during the call: see message_copy.h.
 */
#ifndef PENSTOCK_MESSAGE_ROWS_H
#define PENSTOCK_MESSAGE_ROWS_H

#include "penstock/engine.h"
#include "region/store.h"

enum { MQX_GROUP_BYTES = 65536 }; /* bytes of bodies that one lock hold copies, about */

/* Makes item->ext that of a message without an extension: blanks, sequence number 1. */
void mqx_msg_batch_item_clear(struct mqe_item *item);

/* All fields of the item, and the whole body into `body` (message->length bytes; NULL: none of it).
 * 2009 2101 */
int mqx_msg_batch_item_read(struct mqx_store *store, const struct mqx_message *message,
                            struct mqe_item *item, void *body) MQX_MUST_USE;

/* Empties the batch. */
void mqx_msg_batch_begin(struct mqe_batch *batch);

/* Bytes of bodies that the batch may have beyond the first one's. */
uint64_t mqx_msg_batch_room(const struct mqe_batch *batch, uint64_t max_bytes);

/* Does the body of one more message fit? If not, batch->needed is its size. */
bool mqx_msg_batch_fits(struct mqe_batch *batch, uint64_t room, const struct mqx_message *message);

/* Is what the batch wants of the message near? */
bool mqx_msg_batch_is_near(const struct mqe_batch *batch, const struct mqx_message *message);

/* Copies what the batch wants of the message into row i, whose offset is known. 2009 2101 */
int mqx_msg_batch_read(struct mqx_store *store, struct mqe_batch *batch, uint32_t i,
                       const struct mqx_message *message) MQX_MUST_USE;

/* Counts one more row with a body of `length` bytes. */
void mqx_msg_batch_count(struct mqe_batch *batch, uint32_t length);

#endif
