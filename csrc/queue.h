/*
 * queue.h - messages in queues: linking, claiming, finishing; and what restart and checkpoints need.
 *
 * A queue is an object slot (region.h), its heap (heap.h), its lookups (lookup.h), its waiters (notify.h).
 * All functions here work under one stripe lock and in whole micro-transactions; nothing here flushes,
 * waits, or knows of handles. uow.h strings the steps together.
 */
#ifndef PENSTOCK_QUEUE_H
#define PENSTOCK_QUEUE_H

#include "lookup.h"
#include "store.h"

#include "format.h"

/* ---- restart: one thread, region not ready ---- */
struct mqx_loaded {
    struct psc_message m;              /* as in a checkpoint; lsn 0 for image messages */
    const struct ps_descriptor *descriptor; /* image messages only: kept in the region with the body */
    const struct ps_descriptor_ext *ext;
    const void *body;                  /* image messages: the body; else NULL */
};
/* Appends an available message to its queue; to be called in the order (queue, placement descending,
 * number ascending) within a queue. *out_slot is its entry. */
int mqx_queue_load(struct mqx_store *store, const struct mqx_loaded *loaded,
                   uint32_t *out_slot) MQX_MUST_USE;

/* ---- checkpoint: copies messages of a queue in heap order ---- */
/* Persistent messages whose put is committed, those got by units included, MQX_LOCKED_STEPS_MAX entries a
 * lock hold. Moves the cursor; *out_count < max at the end. */
int mqx_queue_snapshot(struct mqx_store *store, uint32_t object, struct mqx_cursor *cursor,
                       struct psc_message *out, uint32_t max, uint32_t *out_count,
                       bool *out_done) MQX_MUST_USE;

/* Orderly end (alone): the next non-persistent message of an NPMCLASS(HIGH) queue after the cursor: its slot, 0 at
 * the end; its descriptor and body are read with mqx_queue_read_body(). */
uint32_t mqx_queue_next_image(struct mqx_store *store, uint32_t object, struct mqx_cursor *cursor);

/* Copies descriptor, extension and body (capacity bytes at most) of a message whose cells are in the region;
 * caller holds the stripe lock, or has the message claimed or pinned, or is alone. */
int mqx_queue_read_body(const struct mqx_region *region, const struct mqx_message *message,
                        struct ps_descriptor *descriptor, struct ps_descriptor_ext *ext, void *body,
                        uint64_t capacity) MQX_MUST_USE;

#endif
