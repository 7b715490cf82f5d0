/*
 * queue.h - messages in queues: linking, claiming, showing, removing; deletion of queues;
 * loading in a restart, copying for a checkpoint. The header of this folder for callers that need
 * messages.
 *
 * Terms
 *   queue     an object slot (struct mqx_object), its priority index (priority_index.h), its id
 *             indexes (id_index.h), its waiters (wait_list.h).
 *   link      a message enters its queue: available at once, or PUT and invisible in a unit.
 *   claim     an available message is hidden: GOT by a unit, LOCKED by a handle. It keeps its
 *             position.
 *   show      a hidden message becomes available, at its position.
 *   remove    a message leaves its queue and its memory is given back.
 *   image     a non-persistent message of an NPMCLASS(HIGH) queue, kept in the checkpoint of an
 *             orderly end.
 *
 * States of a message
 *   RESERVED -> PUT, AVAILABLE or DELAYED (link) ; PUT, GOT, LOCKED -> AVAILABLE, or DELAYED while
 *   it is not due (show) ; AVAILABLE -> GOT, LOCKED (claim) ; DELAYED -> GOT (cancel, clear) ; any
 *   of them -> FREE (remove), through GONE while it is pinned or a long chain is given back.
 *   DELAYED -> AVAILABLE: due_release.h.
 *
 * Invariants
 *   1. A message is in the priority index of its queue from mqx_queue_link() to the last step of
 *      mqx_queue_remove(); AVAILABLE ones are shown in it and linked in the id indexes that exist,
 *      others are neither.
 *   2. object.got and .uncommitted count the messages in states GOT and PUT.
 *   3. A message in state PUT or GOT is in the list of the context `unit` (head, unit_next ...
 *      tail), in the order of the calls. These links belong to the owner of the unit, and change
 *      together with the message's state, in the micro-transaction of the message's stripe; the
 *      reaper reads a dead unit only after it has repaired every lock that its process held.
 *   4. stripe.persistent_present counts the persistent messages of the stripe's queues, and
 *      body_bytes the payloads of those that were put with their bodies in the region; live_bytes
 *      is the sum of what each has in the journal, computed from its length.
 *   5. object.expiring counts the messages with an expiry.
 *
 * Locks: each function with a guard needs the stripe lock of the queue; those with a store take it.
 * Nothing here flushes, waits, or uses handles. "Left open" means that the stores belong to the
 * caller's micro-transaction. unit.h combines the steps.
 *
 * Damage: a slot or state in the region that cannot be true stops the queue manager
 * (region/damage.h). Functions with a status return its reason; the others do nothing.
 */
#ifndef PENSTOCK_QUEUE_H
#define PENSTOCK_QUEUE_H

#include "queue/delayed.h"
#include "region/message_body.h"
#include "region/store.h"

/* ---- steps of puts and gets; each under a guard of the queue's stripe ---- */

/* What a put asks of the queue. */
struct mqx_put {
    uint32_t object, generation;
    uint32_t context;             /* unit it belongs to: state PUT; 0 = available at once */
    struct ps_descriptor *d;      /* complete except what the link generates: ids */
    const struct ps_descriptor_ext *ext;
    const void *body;
    uint64_t length;
    bool logged;                  /* goes into the journal: persistent, or in a structure */
    bool journal_only;            /* logged, and the region's budget for bodies is used up */
    bool make_msg_id;
    bool make_correl_id;
    uint32_t reserved;            /* entry with a filled chain, the context's pending reference; 0:
                                   * none */
    uint32_t slot;                /* out */
    uint64_t number;              /* out */
};

/* "AMQ " (z/OS "CSQ ") + 12 characters of the queue manager's name (of a restored one the last two
 * are its timeline) + 8 bytes that no other id of this queue manager has: the region's start in
 * microseconds, 12 bits up, plus `number`, which is the message number, or one taken from the
 * journal's counter for the purpose. */
void mqx_queue_make_id(const struct mqx_region *region, uint64_t number, uint8_t id[MQX_ID_SIZE]);

/* 2373 while the failure of the queue's structure is simulated, else 0. */
int mqx_queue_failing(const struct mqx_region *region,
                      const struct mqx_object *queue) MQX_COLD MQX_MUST_USE;

/* May the queue take it? 2052 2051 2030 2031 2041 2048 2053 2373, or 0. */
int mqx_queue_admit(const struct mqx_region *region, const struct mqx_object *queue,
                    const struct mqx_put *put) MQX_MUST_USE;

/* Takes entry and cells (unless reserved) and a message number, writes the body, links: one
 * micro-transaction, left open. MQX_NEED_CELLS: roll back, supply, call again. */
int mqx_queue_link(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                   struct mqx_put *put) MQX_MUST_USE;

/* A message PUT, GOT or LOCKED becomes AVAILABLE at its position; `count` is added to its
 * BackoutCount. Left open. */
void mqx_queue_make_available(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                              uint32_t slot, uint32_t count);

/* An AVAILABLE message is hidden: state GOT (owner = context) or LOCKED (owner = handle); in a
 * restart also PUT (owner = context). Left open. */
void mqx_queue_claim(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                     enum mqx_message_state state, uint32_t owner);

/* Removes the message and gives its memory back, in one micro-transaction, left open: true. False
 * when only a part of a long chain was freed, or the message is pinned (then it is GONE, and the
 * last unpin removes it): commit, and for the chain call again. *out_pinned tells which. With
 * pop_context the message, first in that context's list, leaves the list in the last of these
 * micro-transactions. A damaged message is popped, too, and nothing else: true. */
bool mqx_queue_remove(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                      uint32_t pop_context, bool *out_pinned);

/* The context's list of messages: append; take the first out. A list that is damaged becomes empty.
 * Left open. */
void mqx_unit_push(struct mqx_stripe_guard *guard, uint32_t context, uint32_t slot);
void mqx_unit_pop(struct mqx_stripe_guard *guard, uint32_t context);

/* Removes an available message, or goes on with that (committed). False when it is pinned or only
 * part of its chain is free yet. */
bool mqx_queue_discard(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot);

/* ---- deleted queues; by any process, by several at once; nothing when that life of the slot is
 * over ---- */

struct mqx_purge {               /* one walk over the messages */
    uint32_t object, generation;
    struct mqx_cursor cursor;
    uint32_t freed;              /* out: raised for each message that was freed, at least in part */
    bool at_end;                 /* out */
};
/* Removes available messages; those of units, pinned and locked ones stay. One lock hold. */
int mqx_queue_purge_step(struct mqx_store *store, struct mqx_purge *purge) MQX_MUST_USE;
/* Frees the indexes, when no message is left and there is no waiter; no handle is open. *out_more:
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
    bool taken;                        /* image of a message got in a prepared unit: it is claimed
                                        * next, and never shown */
};
struct mqx_queue_loading {
    struct mqx_store *store;           /* set by the caller, the rest zeroed */
    struct mqx_stripe_guard guard;     /* kept from one message of a queue to the next */
    uint32_t object;                   /* the queue whose stripe lock is held; 0: none is */
};
/* Appends an available message to its queue; to be called in the order (queue, placement
 * descending, number ascending) within a queue. *out_slot is its entry. The stripe lock stays held:
 * mqx_queue_load_end() after the last message, or after a failure. */
int mqx_queue_load(struct mqx_queue_loading *loading, const struct mqx_loaded *loaded,
                   uint32_t *out_slot) MQX_MUST_USE;
void mqx_queue_load_end(struct mqx_queue_loading *loading);

/* ---- checkpoint: copies messages of a queue in delivery order ---- */
/* Persistent messages whose put is committed, those got by units included, MQX_LOCKED_STEPS_MAX
 * entries a lock hold. Moves the cursor; *out_count < max at the end. */
int mqx_queue_copy_entries(struct mqx_store *store, uint32_t object, struct mqx_cursor *cursor,
                           struct psc_message *out, uint32_t max, uint32_t *out_count,
                           bool *out_done) MQX_MUST_USE;

/* Orderly end (alone): the next non-persistent message of an NPMCLASS(HIGH) queue after the cursor:
 * its slot, 0 at the end; its descriptor and body are read with mqx_body_read(). */
uint32_t mqx_queue_next_image(struct mqx_store *store, uint32_t object, struct mqx_cursor *cursor);

#endif
