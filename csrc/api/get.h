/*
 * get.h - the steps of a get, for single gets (get.c) and for many at once (batch.c).
 *
 * An attempt takes the stripe lock, looks whether the queue may be got from, and then either finds
 * and deals with one message, or hands over to take_many(). mqx_get_or_wait() makes attempts until
 * one takes something, and sleeps in between when the call waits.
 *
 * Locks: none may be held by the caller, but where a hold is passed.
 */
#ifndef PENSTOCK_GET_H
#define PENSTOCK_GET_H

#include "process/attachment.h"
#include "queue/resolved_path.h"
#include "queue/match.h"
#include "unit/unit.h"

enum mqx_next_step {
    STEP_DONE,        /* the status says it all */
    STEP_NOTHING,     /* no message */
    STEP_COPY,        /* claimed, pinned or locked: copy, then finish */
    STEP_AGAIN,       /* the message went away meanwhile: look for another */
};

struct mqx_getting {
    mqe_manager *manager;
    struct mqx_store *store;
    mqe_queue *queue;
    struct mqe_get *get;
    struct mqx_match match;
    uint32_t unit;          /* context of the caller's unit, 0 outside syncpoint */
    uint32_t pool;          /* context from the pool, 0 while none was needed */
    bool browse;
    bool truncate;          /* 2079 instead of 2080 */
    uint32_t slot;          /* the message */
    uint64_t number;
    bool logged;            /* in the journal */
    bool short_of_room;     /* 2080: described only */
    int64_t wait_left_us;
    struct mqx_cursor cursor; /* working copy: the handle's cursor moves only when the call
                               * succeeds */
    struct mqx_cursor found;  /* where a search without an index stands */
    struct mqx_cursor passed; /* nothing up to there matches; not started: nothing known */
    uint64_t known;           /* number of a message in the journal of which is known: */
    bool known_matches;       /* that its ids are those asked for */
    bool known_heads;         /* that it takes an MQMDE */
    bool listed;              /* the context of the pool may be on the queue's list of waiters */
    bool woken;               /* the last sleep was ended by somebody, not by its bound */
    /* NULL, or what an attempt does under the lock instead of dealing with one message. It drops
     * the lock, but for STEP_NOTHING with `keep`. */
    enum mqx_next_step (*take_many)(struct mqx_getting *call, struct mqx_stripe_guard *guard,
                                    bool keep, int *status);
};

/* A context in call->pool. */
int mqx_get_context(struct mqx_getting *call) MQX_MUST_USE;

/* 2036 or 2037 when the handle was not opened for it. */
int mqx_get_rights(const mqe_queue *queue, uint32_t flags, bool browse) MQX_MUST_USE;

/* 2003 when the caller's unit has been backed out; else 2024 when its MAXUMSGS is reached. */
int mqx_get_unit(const struct mqx_getting *call) MQX_MUST_USE;

/* Says why nothing can be got from the queue; 0 when it can after all: it is in a structure that
 * has not failed. */
int mqx_get_refuse(const struct mqx_getting *call,
                   const struct mqx_object *queue) MQX_COLD MQX_MUST_USE;

/* 2052, 2041, 2016 or 2373 as queue and path are now, else 0. */
static inline int mqx_get_check(const struct mqx_getting *call, const struct mqx_object *queue)
{
    const uint32_t state = queue == NULL ? (uint32_t)MQX_OBJ_FREE : mqx_load_relaxed(&queue->state);
    if (MQX_LIKELY((state == MQX_OBJ_ACTIVE || state == MQX_OBJ_LOGGED) &&
                   queue->generation == call->queue->generation &&
                   mqx_load_relaxed(&queue->get_inhibited) == 0 &&
                   mqx_load_relaxed(&queue->np_life) != MQX_NP_IN_STRUCTURE &&
                   mqx_resolved_path_is_direct(&call->queue->path, queue))) {
        return MQX_OK;
    }
    return mqx_get_refuse(call, queue);
}

/* Descriptor and the first `bytes` of the body, from the region or the journal; nobody else can
 * take the message away. *ext is filled in when d->has_ext. */
int mqx_get_copy(struct mqx_store *store, const struct mqx_message *message,
                 struct ps_descriptor *d, struct ps_descriptor_ext *ext, void *buffer,
                 uint64_t bytes) MQX_MUST_USE;

/* The message that the handle has locked becomes the one found, when it matches and comes before
 * that in delivery order. To be called once more after the lock of the queue was let go. */
void mqx_get_own(struct mqx_getting *call, const struct mqx_stripe_guard *guard, uint64_t now);

/* Removes an available, unlogged message of one block under the hold: one micro-transaction,
 * committed. */
void mqx_get_remove(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot);

/* Tenths of a second left, at least 1: an expired message is never returned; -1: unlimited. */
int32_t mqx_expiry_left(const struct ps_descriptor *d);

/* One attempt. STEP_NOTHING leaves the lock held only when `keep` is set. */
enum mqx_next_step mqx_get_attempt(struct mqx_getting *call, struct mqx_stripe_guard *guard,
                                   bool keep, int *status);

/* Attempts until there is a message, the time is up, or something ends the wait. */
int mqx_get_or_wait(struct mqx_getting *call) MQX_MUST_USE;

#endif
