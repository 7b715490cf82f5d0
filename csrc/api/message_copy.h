/*
 * message_copy.h - copying a message out of the region or the journal.
 *
 * Locks: none is taken. The message cannot go away during the copy: it is claimed by the caller's
 * context, pinned, or its stripe lock is held and what is copied lies in the region and is short.
 */
#ifndef PENSTOCK_MESSAGE_COPY_H
#define PENSTOCK_MESSAGE_COPY_H

#include "region/store.h"

/* Descriptor and the first `bytes` of the body. *ext is filled in when d->has_ext; body NULL: none
 * of it. 2101 2009 */
int mqx_message_copy(struct mqx_store *store, const struct mqx_message *message,
                     struct ps_descriptor *d, struct ps_descriptor_ext *ext, void *body,
                     uint64_t bytes) MQX_MUST_USE;

/* Tenths of a second left, at least 1: an expired message is never returned; -1: unlimited. */
int32_t mqx_expiry_left(const struct mqx_region *region, const struct ps_descriptor *d);

#endif
