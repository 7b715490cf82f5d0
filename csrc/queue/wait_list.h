/*
 * wait_list.h - which contexts wait for which messages, and which are woken (rule 21; mqi-reference
 * 5.5).
 *
 * Terms
 *   waiter         a context whose get or browse found nothing and waits. With match tags it is
 *                  listed in the stripe's bucket of its first tag, else in the general list of the
 *                  queue. Lists are in the order of arrival.
 *   pick           to take a waiter off its list (state WOKEN, or CANCELLED) and to raise its futex
 *                  word, under the stripe lock. The futex call follows after the lock is dropped.
 *   pass on        a woken waiter that leaves without a message (signal, quiesce, death), while one
 *                  that it was woken for may still be there, has another waiter picked.
 *
 * Protocol. A waiter lists itself under the stripe lock after it found nothing, and sleeps on its
 * own futex word. A thread that makes a message available picks, under the same lock, the first
 * waiter that matches (MsgId, CorrelId, GroupId waiters before general ones, in the order of
 * arrival) and every browser. One message wakes one getter. A woken waiter searches again.
 *
 * Invariants
 *   1. A context in state LISTED is in exactly one list, that of wait_list and wait_object; in any
 *      other state it is in none.
 *   2. The lists are chained by wait_next; wait_prev of the first names the last.
 *   3. object.waiters counts the listed waiters of the queue, in the general list and in buckets.
 *
 * Locks: the stripe lock of the queue (guard), with no micro-transaction open: each change here is
 * one, and committed. mqx_wait_list_wake needs that no lock is held.
 *
 * Damage: a context or queue that cannot be true stops the queue manager; nothing is done then.
 * Sleepers notice a stopped queue manager within the bound of rule 21.
 */
#ifndef PENSTOCK_WAIT_LIST_H
#define PENSTOCK_WAIT_LIST_H

#include "region/arena.h"
#include "region/store.h"

struct mqx_wakeups { /* contexts to be woken once no lock is held */
    uint32_t count;
    uint32_t context[2 * MQX_LOCKED_STEPS_MAX];
};

/* Lists the context as waiter of `object`; match and tags were set in it. */
void mqx_wait_list_add(struct mqx_stripe_guard *guard, uint32_t object, uint32_t context);
/* Takes it off (when it is still listed) and returns the state it was in. */
enum mqx_wait_state mqx_wait_list_remove(struct mqx_stripe_guard *guard, uint32_t context);

/* Picks waiters for the available message `slot`. */
void mqx_wait_list_pick(struct mqx_stripe_guard *guard, uint32_t object, uint32_t slot,
                        struct mqx_wakeups *wakes);
/* Passes a wake-up on: picks a waiter for the first available message that one waits for. */
void mqx_wait_list_pass_wakeup(struct mqx_stripe_guard *guard, uint32_t object,
                               struct mqx_wakeups *wakes);

/* The futex calls; no lock held. */
void mqx_wait_list_wake(struct mqx_region *region, struct mqx_wakeups *wakes);

/* Picks every waiter of the queue with state CANCELLED and wakes it: GET(DISABLED), deletion. */
int mqx_wait_list_cancel_all(struct mqx_store *store, uint32_t object) MQX_MUST_USE;
/* The same for every queue (quiescing). */
int mqx_wait_list_cancel_everywhere(struct mqx_store *store) MQX_MUST_USE;

#endif
