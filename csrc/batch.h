/*
 * batch.h - rows of a batch, for whoever fills one with messages: the item of mqe.h from a message.
 */
#ifndef PENSTOCK_BATCH_H
#define PENSTOCK_BATCH_H

#include "mqe.h"
#include "store.h"

struct mqx_message;

/* item->ext as that of a message without an extension: blanks, sequence number 1. */
void mqx_item_clear(struct mqe_item *item);

/* Everything of the item, and the whole body into `body` (message->length bytes). The message must
 * be claimed or pinned, or the stripe lock held and the message short and in the region. */
int mqx_item_read(struct mqx_store *store, const struct mqx_message *message,
                  struct mqe_item *item, void *body) MQX_MUST_USE;

#endif
