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
 *   woken for      the message for which a getter was picked: wait_message and wait_number of its
 *                  context. It alone was woken for that message.
 *   hand on        a getter that ends its call without the message that it was woken for (no room,
 *                  no right, a full unit, a signal, the end of its time, another message that came
 *                  first, death) has another waiter picked, when that message is still there (rule
 *                  54).
 *   second look    a waiter that is stopped or gets no processor keeps its wake-up. So when others
 *                  wait on the queue, the waker has the maintenance thread of its process look 10
 *                  ms later whether the message was taken, and hand the wake-up on otherwise.
 *
 * Protocol. A waiter lists itself under the stripe lock after it found nothing, and sleeps on its
 * own futex word. A thread that makes a message available picks, under the same lock, the first
 * waiter that matches (MsgId, CorrelId, GroupId waiters before general ones, in the order of
 * arrival) and every browser. One message wakes one getter. A woken waiter searches again. The
 * futex call is made for those who sleep: a waiter announces that (wait_asleep) before its own
 * futex call, and the waker raises the word before it reads the announcement.
 *
 * Due times. A waiter sleeps no longer than to the queue's next due time (due_release.h). The list
 * notes for each until when that is, or the caller, if it looks again earlier anyway.
 *
 * Invariants
 *   1. A context in state LISTED is in exactly one list, that of wait_list and wait_object; in any
 *      other state it is in none.
 *   2. The lists are chained by wait_next; wait_prev of the first names the last.
 *   3. object.waiters counts the listed waiters of the queue, in the general list and in buckets.
 *   4. While a message is available and a getter that matches it is listed, another one that was
 *      woken for it has not yet ended its call.
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

enum { MQX_SECOND_LOOK_US = 10000 };

struct mqx_wakeups { /* contexts to be woken once no lock is held */
    uint32_t count;
    uint32_t second_look; /* 1: others wait on the queue; set when count is not 0 */
    uint32_t rest_object; /* set when count is not 0; 0, or the queue of a message that has more */
    uint32_t rest_entry;  /* waiters than there was room for: the next lock hold picks on */
    uint64_t rest_number;
    uint32_t context[2 * MQX_LOCKED_STEPS_MAX];
};

/* Lists the context as waiter of `object`; match and tags were set in it. */
void mqx_wait_list_add(struct mqx_stripe_guard *guard, uint32_t object, uint32_t context);
/* Takes it off (when it is still listed) and returns the state it was in. */
enum mqx_wait_state mqx_wait_list_remove(struct mqx_stripe_guard *guard, uint32_t context);

/* Picks waiters for the available message `slot`. For a delayed one that is the first to be due:
 * all those that mean to sleep longer (context.wait_until_us). */
void mqx_wait_list_pick(struct mqx_stripe_guard *guard, uint32_t object, uint32_t slot,
                        struct mqx_wakeups *wakes);
/* Without the lock: may the message that the context was woken for still be there, so that its
 * wake-up is to be handed on? False at once when it was not woken for one. */
bool mqx_wait_list_owes(const struct mqx_region *region, uint32_t context);
/* Hands on the wake-up of a context that is off its list: picks another waiter when the message is
 * still available, and when there is one owes none any more. `untagged`: only one without match
 * tags, because those who have the same tags as the context have not found it either. */
void mqx_wait_list_hand_on(struct mqx_stripe_guard *guard, uint32_t context, bool untagged,
                           struct mqx_wakeups *wakes);

/* The futex calls, and the ring for the second look; no lock held. When a message has more browsers
 * waiting than one hold picks, the others are picked in holds of its own. */
void mqx_wait_list_wake(struct mqx_region *region, struct mqx_wakeups *wakes);

/* Whom this thread has woken: what that says of its own next wait. */
enum mqx_partner {
    MQX_PARTNER_UNKNOWN,   /* nobody, or one that slept on this processor */
    MQX_PARTNER_ELSEWHERE, /* one that slept, on another processor */
    MQX_PARTNER_AWAKE,     /* one that did not sleep */
};
/* Of the wakes since it was last asked, the last in that order. */
enum mqx_partner mqx_wait_list_partner(void);

/* The second look: every wake-up that was given and not used yet, while others wait on that queue,
 * is handed on; 64 messages at most. 2009 */
int mqx_wait_list_second_look(struct mqx_region *region) MQX_MUST_USE;

/* Picks every waiter of the queue with state CANCELLED and wakes it: GET(DISABLED), deletion. */
int mqx_wait_list_cancel_all(struct mqx_store *store, uint32_t object) MQX_MUST_USE;
/* The same for every queue (quiescing). */
int mqx_wait_list_cancel_everywhere(struct mqx_store *store) MQX_MUST_USE;

#endif
