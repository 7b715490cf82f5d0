/*
 * get_attempt.h - one attempt of a get or browse, and what every get checks before.
 *
 * Purpose. An attempt takes the stripe lock, checks whether the queue may be got from, and then
 * either finds one message and takes or browses it, or calls take_many(). Single gets (get.c),
 * waits (get_wait.c), message batches (get_batch.c) and browses of many (browse_batch.c) are made
 * of attempts.
 *
 * Terms
 *   quick     a non-persistent message, outside a unit, short, in one block: copied and removed in
 *             one lock hold, without a context.
 *   claimed   the message becomes GOT in a context: the caller's unit, or one of the pool, which
 *             then commits by itself. What is long or lies in the journal is copied with no lock
 *             held.
 *   pinned    the message stays, but its memory does not go away while it is copied.
 *   near      short and in the region: copied under the lock.
 *   false match  a message whose tag matched, but whose identifiers, read from the journal, do not
 *             (rule 47).
 *
 * Invariants
 *   1. An attempt returns with the stripe lock held only after MQX_STEP_NOTHING with `keep`.
 *   2. A destructive get that fails leaves the message as it was: claims go back uncounted.
 *   3. Nothing runs between the removal of a message outside syncpoint and the return but memory
 *      copies into the caller's buffer (rule 34).
 *
 * Locks: none may be held by the caller but the one of the guard when call->held is set. The stripe
 * lock, and after it the ring lock, are taken inside, one after the other.
 *
 * What is due (queue/due_release.h) is made available before each attempt, in holds of its own.
 *
 * Errors: 2009 2016 2024 2041 2052 2071 2079 2080 2101 2162 2192 2373; MQE_CONFIRM MQE_EXPIRED.
 */
#ifndef PENSTOCK_GET_ATTEMPT_H
#define PENSTOCK_GET_ATTEMPT_H

#include "api/queue_handle.h"
#include "queue/browse_lock.h"
#include "queue/match.h"
#include "queue/resolved_path.h"
#include "unit/unit.h"

enum mqx_next_step {
    MQX_STEP_DONE,    /* the status is the outcome */
    MQX_STEP_NOTHING, /* no message */
    MQX_STEP_COPY,    /* claimed and copied: log and finish the claim */
    MQX_STEP_AGAIN,   /* the message went away, or a context was needed: make another attempt */
};

struct mqx_get_call {
    mqe_manager *manager;
    struct mqx_store *store;
    mqe_queue *queue;
    struct mqe_get *get;
    struct mqx_match match;
    uint32_t unit;          /* context of the caller's unit, 0 outside syncpoint */
    uint32_t pool;          /* context from the pool, 0 while none was needed */
    bool held;              /* the guard of the next attempt holds the lock already, and the queue
                             * passed mqx_get_check_queue() in that hold */
    bool browse;
    bool truncate;          /* 2079 instead of 2080 */
    uint32_t slot;          /* the message found, 0 none */
    uint64_t number;        /* its number */
    bool logged;            /* it is in the journal */
    bool short_of_room;     /* 2080: described only */
    int64_t wait_left_us;   /* -1 unlimited, 0 no wait */
    struct mqx_cursor cursor; /* working copy: the handle's cursor moves only when the call
                               * succeeds */
    struct mqx_cursor found;  /* where a search without an index stands */
    struct mqx_cursor passed; /* nothing up to there matches; not started: nothing known */
    uint64_t known;           /* number of a message in the journal that has been read: */
    bool known_matches;       /* its identifiers are those requested */
    bool known_heads;         /* it takes an MQMDE */
    bool listed;              /* the context of the pool may be on the queue's wait list */
    bool was_listed;          /* it has been: it may have been woken for a message */
    struct mqe_wait *posted;  /* NULL, or of a call that is listed and does not sleep */
    bool woken;               /* the last sleep was ended by a wake-up, not by its bound */
    uint64_t due_at;          /* the last sleep was bounded by a due time, of the run; else 0 */
    /* NULL, or what an attempt does under the lock instead of serving one message. It drops the
     * lock, but for MQX_STEP_NOTHING with `keep`. */
    enum mqx_next_step (*take_many)(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                                    bool keep, int *status);
};

/* ---- before the first attempt ---- */

/* 2036 or 2037 when the handle was not opened for it. */
int mqx_get_check_rights(const mqe_queue *queue, uint32_t flags, bool browse) MQX_MUST_USE;

/* 2003 when the caller's unit has been backed out; else 2024 when its MAXUMSGS is reached. */
int mqx_get_check_unit(const struct mqx_get_call *call) MQX_MUST_USE;

/* Without a lock: may a get through the handle find a message that other handles do not see? */
static inline bool mqx_get_may_have_locked(const struct mqx_get_call *call)
{
    return MQX_UNLIKELY((call->queue->options & MQE_BROWSE) != 0) &&
           mqx_browse_lock_maybe(&call->store->region, call->queue->handle);
}

/* Makes sure that call->pool has a context; no lock of the region is held. 2071 2009 */
int mqx_get_take_context(struct mqx_get_call *call) MQX_MUST_USE;
/* The same under any lock; false when the pool has no idle one. */
bool mqx_get_has_context(struct mqx_get_call *call);

/* ---- under the lock ---- */

/* The reason why nothing can be got from the queue; 0 when something can after all: it is in a
 * structure that has not failed. */
int mqx_get_refusal(const struct mqx_get_call *call,
                    const struct mqx_object *queue) MQX_COLD MQX_MUST_USE;

/* 2052, 2041, 2016 or 2373 as queue and path are now, else 0. */
static inline int mqx_get_check_queue(const struct mqx_get_call *call,
                                      const struct mqx_object *queue)
{
    const uint32_t state = queue == NULL ? (uint32_t)MQX_OBJ_FREE : mqx_load_relaxed(&queue->state);
    if (MQX_LIKELY((state == MQX_OBJ_ACTIVE || state == MQX_OBJ_LOGGED) &&
                   queue->generation == call->queue->generation &&
                   mqx_load_relaxed(&queue->get_inhibited) == 0 &&
                   mqx_load_relaxed(&queue->np_life) != MQX_NP_IN_STRUCTURE &&
                   mqx_resolved_path_is_direct(&call->queue->path, queue))) {
        return MQX_OK;
    }
    return mqx_get_refusal(call, queue);
}

/* An expired message ended the search: the caller makes its report first. MQE_EXPIRED; drops the
 * lock. */
int mqx_get_stop_at_expired(struct mqx_get_call *call, struct mqx_stripe_guard *guard);

/* The message that the handle has locked becomes the one found, when it matches and comes before it
 * in delivery order. To be called once more after the lock of the queue was dropped. */
void mqx_get_prefer_locked(struct mqx_get_call *call, const struct mqx_stripe_guard *guard,
                           uint64_t now);

/* Removes an available, unlogged message of one block under the hold: one micro-transaction,
 * committed. */
void mqx_get_remove(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot);

/* ---- attempts ---- */

/* The common case: outside a unit, any message, and the first one is non-persistent, short and does
 * not expire. MQX_STEP_DONE: the outcome is in *status. MQX_STEP_NOTHING: the queue is empty and
 * the call does not wait. Both with the lock dropped. MQX_STEP_AGAIN: nothing has been touched, the
 * lock is held by *guard, and call->held is to be set for an attempt in the same hold. */
enum mqx_next_step mqx_get_fast_path(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                                     int *status);

/* One attempt. MQX_STEP_NOTHING leaves the lock held only when `keep` is set. A waiter leaves its
 * list under the hold in which it searches, so a put either finds it listed or is seen by the
 * search. */
enum mqx_next_step mqx_get_attempt(struct mqx_get_call *call, struct mqx_stripe_guard *guard,
                                   bool keep, int *status);

#endif
