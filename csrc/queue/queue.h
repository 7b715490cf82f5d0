/*
 * queue.h - messages in queues: linking, claiming, finishing; and what restart and checkpoints
 * need.
 *
 * A queue is an object slot (region.h), its heap (priority_index.h), its lookups (id_index.h), its waiters
 * (wait_list.h). All functions here work under one stripe lock and in whole micro-transactions;
 * nothing here flushes, waits, or knows of handles. unit.h strings the steps together.
 */
#ifndef PENSTOCK_QUEUE_H
#define PENSTOCK_QUEUE_H

#include "queue/id_index.h"
#include "region/store.h"

#include "region/message_body.h"

/* ---- steps of puts and gets; each under a hold of the queue's stripe ---- */

/* What a put asks of the queue. */
struct mqx_put {
    uint32_t object, generation;
    uint32_t context;             /* unit it belongs to: state PUT; 0 = available at once */
    struct ps_descriptor *d;      /* complete but for what the put fixes: msg_id, placement */
    const struct ps_descriptor_ext *ext;
    const void *body;
    uint64_t length;
    bool logged;                  /* goes into the journal: persistent, or in a structure */
    bool journal_only;            /* logged, and the region's budget for bodies is used up */
    bool make_msg_id;
    bool make_correl_id;
    uint32_t reserved;            /* entry with a filled chain in the context's hand, or 0 */
    uint32_t slot;                /* out */
    uint64_t number;              /* out */
};

/* "AMQ " (z/OS "CSQ ") + 12 characters of the queue manager's name + 8 bytes that no other id of
 * this queue manager has: the region's start in microseconds, 12 bits up, plus the number, which is
 * a message's own, or one taken from the journal's counter for the purpose. */
void mqx_queue_make_id(const struct mqx_region *region, uint64_t number, uint8_t id[MQX_ID_SIZE]);

/* 2373 while the failure of the queue's structure is simulated, else 0. */
int mqx_queue_failing(const struct mqx_region *region,
                      const struct mqx_object *queue) MQX_COLD MQX_MUST_USE;

/* May the queue take it? 2052 2051 2030 2031 2041 2048 2053 2373, or 0. */
int mqx_queue_admit(const struct mqx_region *region, const struct mqx_object *queue,
                    const struct mqx_put *put) MQX_MUST_USE;

/* Takes entry and cells (unless reserved), numbers, links: one micro-transaction, left open.
 * MQX_NEED_CELLS. */
int mqx_queue_link(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                   struct mqx_put *put) MQX_MUST_USE;

/* A message PUT, GOT or LOCKED becomes AVAILABLE in its place; `count` is added to its
 * BackoutCount. Stores of one micro-transaction, left open. */
void mqx_queue_show(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                    uint32_t count);

/* An AVAILABLE message is hidden: state GOT (owner = context) or LOCKED (owner = handle); restart:
 * PUT (owner = context). Left open. */
void mqx_queue_claim(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                     enum mqx_message_state state, uint32_t owner);

/* Out of the queue for good, memory back, in one micro-transaction, left open: true. False when
 * only a part of a long chain was freed, or the message is pinned (then it is GONE and whoever
 * unpins it removes it): commit, and for the chain call again. `out_pinned` tells which. With
 * pop_context the message, first in that context's list, leaves the list in the micro-transaction
 * that is the last one here. */
bool mqx_queue_remove(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                      uint32_t pop_context, bool *out_pinned);

/* The context's list of messages: append, and drop the first. Left open. */
void mqx_unit_push(struct mqx_stripe_guard *guard, uint32_t context, uint32_t slot);
void mqx_unit_pop(struct mqx_stripe_guard *guard, uint32_t context);

/* Is the message past its expiry? */
bool mqx_queue_expired(const struct mqx_region *region, const struct mqx_message *message,
                       uint64_t now_us);

/* Discards an expired, available message (one micro-transaction, committed); a persistent one needs
 * no record: it expires again after a restart. False when it is pinned or only part of its chain is
 * free yet. */
bool mqx_queue_expire(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot);

/* One lock hold of at most 64 messages; resumable from anywhere. */
int mqx_queue_expire_step(struct mqx_store *store, uint32_t object, uint64_t now_us,
                          bool *out_more) MQX_MUST_USE;

/* ---- deleted queues; by anybody, by several at once; nothing when that life of the slot is over
 * ---- */

struct mqx_purge {               /* one walk over the messages */
    uint32_t object, generation;
    struct mqx_cursor cursor;
    uint32_t freed;              /* out: raised for each message that went, at least in part */
    bool at_end;                 /* out */
};
/* Frees what nobody holds: messages of units, pinned and locked ones stay. One lock hold. */
int mqx_queue_purge_step(struct mqx_store *store, struct mqx_purge *purge) MQX_MUST_USE;
/* Frees indexes and heap, when no message is left and nobody waits; no handle is open. *out_more:
 * again; *out_gone: nothing of it is left. */
int mqx_queue_drop_step(struct mqx_store *store, uint32_t object, uint32_t generation,
                        bool *out_more, bool *out_gone) MQX_MUST_USE;

/* ---- restart: one thread, region not ready ---- */
struct mqx_loaded {
    struct psc_message m;              /* as in a checkpoint; lsn 0 for image messages */
    const struct ps_descriptor *descriptor; /* image messages only: kept in the region with the
                                             * body */
    const struct ps_descriptor_ext *ext;
    const void *body;                  /* image messages: the body; else NULL */
    bool taken;                        /* image of a message got in a prepared unit: it will be
                                        * claimed, and never shown */
};
/* Appends an available message to its queue; to be called in the order (queue, placement
 * descending, number ascending) within a queue. *out_slot is its entry. */
int mqx_queue_load(struct mqx_store *store, const struct mqx_loaded *loaded,
                   uint32_t *out_slot) MQX_MUST_USE;

/* ---- checkpoint: copies messages of a queue in heap order ---- */
/* Persistent messages whose put is committed, those got by units included, MQX_LOCKED_STEPS_MAX
 * entries a lock hold. Moves the cursor; *out_count < max at the end. */
int mqx_queue_copy_entries(struct mqx_store *store, uint32_t object, struct mqx_cursor *cursor,
                           struct psc_message *out, uint32_t max, uint32_t *out_count,
                           bool *out_done) MQX_MUST_USE;

/* Orderly end (alone): the next non-persistent message of an NPMCLASS(HIGH) queue after the cursor:
 * its slot, 0 at the end; its descriptor and body are read with mqx_queue_read_body(). */
uint32_t mqx_queue_next_image(struct mqx_store *store, uint32_t object, struct mqx_cursor *cursor);

/* The message's body is read with mqx_body_read() (message_body.h); mqx_queue_read_body is the same. */
int mqx_queue_read_body(const struct mqx_region *region, const struct mqx_message *message,
                        struct ps_descriptor *descriptor, struct ps_descriptor_ext *ext, void *body,
                        uint64_t capacity) MQX_MUST_USE;

#endif
