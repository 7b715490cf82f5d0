/*
 * context.h - contexts: what a unit of work, a single call or a waiter needs in the region.
 *
 * A context belongs to one thread of one process at a time. When its process dies the reaper ends
 * its work; a PREPARED one belongs to no process and waits for the call that resolves it by its
 * xid.
 *
 * Terms
 *   pending reference  between two steps of a chain (LOCKING.md): the entry, pin or object that the
 *                      context is responsible for, so that a death leaks nothing. pending_kind says
 *                      which, pending_ref is its slot, pending_object the object it belongs to.
 *   autocommit         a call outside syncpoint.
 *   resolver           the context that commits or backs out a prepared unit.
 *   unreferenced attributes  an attribute list that no object names yet, or no longer.
 *
 *   access             whose turn it is to work on an open unit: its owner's, or that of a
 *                      maintenance thread which backs it out (unit/long_units.h).
 *
 * Locks. The owner's fields need none; the exceptions stand beside them. `head`, `tail` and `count`
 * change in stripe micro-transactions of the message concerned, the wait_ fields under the stripe
 * lock of wait_object.
 */
#ifndef PENSTOCK_CONTEXT_H
#define PENSTOCK_CONTEXT_H

#include "base/assert.h"
#include "penstock/descriptor.h"
#include "region/entry.h"

enum mqx_context_state {
    MQX_CTX_FREE = 0,
    MQX_CTX_IDLE = 1,         /* owned, no unit of work */
    MQX_CTX_ACTIVE = 2,       /* unit in progress: back out when the owner dies */
    MQX_CTX_DECIDED = 3,      /* COMMIT record is in the ring: roll forward when the owner dies */
    MQX_CTX_BACKING_OUT = 4,  /* continue backing out */
    MQX_CTX_PREPARED = 5,     /* of no process (0); waits for the resolver that names its xid */
};
enum mqx_wait_state {
    MQX_WAIT_NONE = 0,
    MQX_WAIT_LISTED = 1,      /* in a wait list of its queue's stripe */
    MQX_WAIT_WOKEN = 2,       /* taken off the list because a message became available */
    MQX_WAIT_CANCELLED = 3,   /* taken off: look at the queue's and manager's state (2016, 2052,
                               * 2161) */
};
enum mqx_pending_kind {
    MQX_PENDING_NONE = 0,
    MQX_PENDING_RESERVED = 1, /* a message entry with reserved cells, not yet linked: free it */
    MQX_PENDING_PINNED = 2,   /* a message whose `pins` counts this context: unpin it */
    MQX_PENDING_OBJECT = 3,   /* an object slot being defined, altered or deleted */
};
enum mqx_leads { /* what a resolver makes of the units that name it */
    MQX_LEADS_NONE = 0,
    MQX_LEADS_COMMIT = 1,
    MQX_LEADS_BACKOUT = 2,
};

enum mqx_access { /* 0, as in fresh memory: nobody but the owner touches the unit */
    MQX_ACCESS_OWNER = 0,      /* the owner is inside a call, or has no open unit */
    MQX_ACCESS_OPEN = 1,       /* an ACTIVE unit whose owner is outside: either may claim it */
    MQX_ACCESS_BACKING = 2,    /* the holder of the maintenance lock backs the unit out; its
                                * attachment slot stands above MQX_ACCESS_BITS */
    MQX_ACCESS_BACKED_OUT = 3, /* it has; the owner has not been told by the end of the unit */
    MQX_ACCESS_BITS = 8,
    MQX_ACCESS_MASK = 255,
};
enum mqx_why_ended { /* why the queue manager backed a unit out */
    MQX_WHY_NONE = 0,
    MQX_WHY_LONG = 1,   /* most of the allowed journal was written since its first record */
    MQX_WHY_SPACE = 2,  /* the journal was nearly full, and it was the oldest */
    MQX_WHY_AGE = 3,    /* older than max_unit_age */
};

struct mqx_context {
    uint32_t state;           /* enum mqx_context_state */
    uint32_t process;         /* attachment slot of the owner */
    uint64_t unit_id;         /* of the journal; 0 until the unit's first record */
    uint64_t first_lsn;       /* of the unit's first record; 0 = no record yet. Changed in ring
                               * micro-transactions, read by checkpoints under the ring lock */
    uint64_t decided_lsn;     /* DECIDED: durable at or above this means committed on disk;
                               * PREPARED: the same of the preparation */
    uint32_t record_count;    /* records so far, CHUNKs included */
    uint32_t running_crc;     /* over their crc fields */
    uint32_t head;            /* messages put or got in it, oldest first (message.unit_next) */
    uint32_t count;           /* of that list: MAXUMSGS */
    uint32_t pending_kind;    /* enum mqx_pending_kind */
    uint32_t pending_ref;     /* its slot */
    uint32_t pending_object;  /* object slot that it belongs to */
    uint32_t next_free;       /* slots lock */
    uint64_t must_back_out;   /* atomic: first_lsn of the unit that the queue manager wants backed
                               * out (2003), because it holds 80 % of the journal. A value that is
                               * not the present first_lsn was meant for an earlier unit */
    uint64_t started_us;      /* when the unit began */
    int32_t thread;           /* kernel thread id of the owner */
    /* waiter */
    uint32_t wait_word;       /* atomic: futex; raised to wake */
    uint32_t wait_state;      /* enum mqx_wait_state */
    uint32_t wait_object;
    uint32_t wait_list;       /* 0 general list of the object, else bucket + 1 */
    uint32_t wait_next;
    uint32_t wait_prev;
    uint32_t wait_browse;     /* 1: others are woken, too: a browse without lock, or a match that
                               * tags do not decide */
    uint32_t wait_match;      /* MQMO_* bits of the tags below that count */
    uint32_t wait_message;    /* entry of the message it was woken for, 0 none (wait_list.h) */
    uint64_t wait_number;     /* that message's number */
    uint64_t wait_tag[MQX_INDEX_COUNT];
    uint32_t wait_asleep;     /* atomic: the owner sleeps on the word, or is about to: 1 + the
                               * processor that it runs on; 0: it does not */
    uint32_t tail;            /* last message of the list at `head` */
    uint32_t autocommit;      /* 1: a call outside syncpoint; what it claimed goes back uncounted */
    uint32_t access;          /* atomic: enum mqx_access, and the helper's slot */
    uint32_t ended_why;       /* enum mqx_why_ended; this and the next two: stored while BACKING */
    int32_t ended_by;         /* the process that backed the unit out */
    uint32_t ended_count;     /* messages that it had then */
    uint32_t unreferenced_attrs; /* cell of unreferenced attributes: the reaper frees them */
    uint32_t unreferenced_length;
    uint32_t deleted;         /* object slot of a deleted queue of which the unit held a message */
    /* prepared units: unit/prepared.h */
    uint32_t resolver;        /* slots lock: PREPARED: context slot of its resolver, 0 none */
    uint32_t leads;           /* enum mqx_leads: of those whose resolver this context is */
    uint32_t xid_next;        /* slots lock: hash chain */
    uint32_t xid_listed;      /* slots lock: 1: in the chain of its xid, which is fixed then */
    uint32_t puts;            /* PREPARED: fixed, as the next four */
    uint32_t gets;
    uint32_t nonpersistent;
    uint32_t discarded;       /* while it is backed out: messages that could not be given back */
    uint64_t bytes;
    uint64_t prepared_us;
    struct ps_xid xid;
    uint64_t unit_sum;        /* mqx_unit_sum() since the unit's first record, 0 before */
    /* waiters without a thread: queue/wake_channel.h */
    uint64_t channel_rung;    /* atomic: bits of the waiters picked since the last answer */
    uint32_t wait_channel;    /* atomic: context slot of the channel that is rung, 0: the owner has
                               * a thread; its own slot: the context is a channel */
    uint32_t zero;
    uint64_t wait_until_us;   /* listed: when it looks again at the latest, time of the run */
    uint64_t retry_key_us;    /* while the unit is backed out: when what it had got is due, time of
                               * the run; 0: at once */
    uint64_t retry_due_us;    /* the same by the wall clock */
} MQX_ALIGNED(64);
MQX_STATIC_ASSERT(sizeof(struct mqx_context) == 448, "context");

/* Covers what the unit's last record will state about the others: a journal in which it is wrong is
 * refused by every restart. Changed in the micro-transactions that change these words. */
static inline uint64_t mqx_unit_sum(const struct mqx_context *unit)
{
    MQX_ASSERT(unit != NULL);
    MQX_ASSERT((uintptr_t)unit % MQX_CACHE_LINE == 0);
    return ~(unit->unit_id * UINT64_C(0x9E3779B97F4A7C15) +
             unit->first_lsn * UINT64_C(0xC2B2AE3D27D4EB4F) +
             (unit->record_count | (uint64_t)unit->running_crc << 32) *
                 UINT64_C(0xD6E8FEB86659FD93));
}
static inline bool mqx_unit_is_sound(const struct mqx_context *unit)
{
    MQX_ASSERT(unit != NULL);
    MQX_ASSERT((uintptr_t)unit % MQX_CACHE_LINE == 0);
    return unit->first_lsn != 0
               ? unit->unit_sum == mqx_unit_sum(unit)
               : (unit->unit_sum | unit->record_count | unit->running_crc) == 0;
}

#endif
