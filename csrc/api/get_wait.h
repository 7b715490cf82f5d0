/*
 * get_wait.h - attempts until a get has a message, its time is up, or something ends the wait.
 *
 * Waiting: the call lists its context as a waiter in the lock hold in which it found nothing,
 * spins for some microseconds where that was worth it lately (wait_spin.h), then sleeps at most 1 s
 * at a time on the context's own futex word, and makes another attempt (queue/wait_list.h). The
 * bound covers deaths only: a waker that died between the list and the futex call.
 *
 * Locks: none may be held by the caller but the one of `guard` when call->held is set. No lock is
 * held while the thread sleeps.
 */
#ifndef PENSTOCK_GET_WAIT_H
#define PENSTOCK_GET_WAIT_H

#include "api/get_attempt.h"

/* 0, or what an attempt returns; 2033 or 2034 when there is no message; MQE_INTERRUPTED when a
 * signal ended the sleep, with what is left of the time in call->wait_left_us; MQE_LISTED when a
 * call that is not to sleep has been listed. */
int mqx_get_or_wait(struct mqx_get_call *call, struct mqx_stripe_guard *guard) MQX_MUST_USE;

/* Off the list for good, if it is listed; a wake-up that was not used goes to another waiter. */
int mqx_get_leave_list(struct mqx_store *store, uint32_t object, uint32_t context,
                       bool listed) MQX_MUST_USE;

/* 2033, or 2034 for a get under the cursor. */
int mqx_get_no_message(const struct mqx_get_call *call) MQX_COLD MQX_MUST_USE;

#endif
