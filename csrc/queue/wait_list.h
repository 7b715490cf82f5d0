/*
 * wait_list.h - who sleeps for which message, and who is woken (rule 21; mqi-reference 5.5).
 *
 * A waiter is a context in a wait list of the stripe of its queue: with match tags in the bucket of
 * its first tag, else in the general list of the queue. It lists itself under the stripe lock after
 * it found nothing, and sleeps on its own futex word. Whoever makes a message available picks,
 * under the same lock, the first waiter that matches (MsgId, CorrelId, GroupId waiters before
 * general ones, oldest first) and every browser; picking unlists the waiter (WOKEN) and raises its
 * word; the futex call follows after the lock is dropped. One message wakes one getter.
 *
 * A woken waiter tries again. If it leaves without a message (signal, quiesce, death) while one
 * that it was woken for may still be there, the wake-up is handed on (mqx_wait_list_hand_on).
 *
 * Locks: the stripe lock of the queue; no micro-transaction may be open (each change here is one of
 * its own).
 */
#ifndef PENSTOCK_NOTIFY_H
#define PENSTOCK_NOTIFY_H

#include "region/arena.h"
#include "region/store.h"

struct mqx_wakes { /* contexts to be woken once no lock is held */
    uint32_t count;
    uint32_t context[2 * MQX_LOCKED_STEPS_MAX];
};

/* Lists the context as waiter of `object`; match and tags were set in it. */
void mqx_wait_list_add(struct mqx_stripe_guard *guard, uint32_t object, uint32_t context);
/* Takes it off (when it is still listed) and returns the state it was in. */
enum mqx_wait_state mqx_wait_list_remove(struct mqx_stripe_guard *guard, uint32_t context);

/* Picks waiters for the available message `slot`. */
void mqx_wait_list_pick(struct mqx_stripe_guard *guard, uint32_t object, uint32_t slot,
                        struct mqx_wakes *wakes);
/* Picks a waiter for whatever is available first (a wake-up is handed on). */
void mqx_wait_list_hand_on(struct mqx_stripe_guard *guard, uint32_t object,
                           struct mqx_wakes *wakes);

/* The futex calls; no lock held. */
void mqx_wait_list_wake(struct mqx_region *region, struct mqx_wakes *wakes);

/* Unlists everybody who waits on the queue with state CANCELLED and wakes them: GET(DISABLED),
 * deletion. */
int mqx_wait_list_cancel_all(struct mqx_store *store, uint32_t object) MQX_MUST_USE;
/* The same for every queue (quiescing). */
int mqx_wait_list_cancel_everywhere(struct mqx_store *store) MQX_MUST_USE;

#endif
