/*
 * wait_spin.h - the first microseconds of a wait: looking at the futex word before sleeping on it.
 *
 * Purpose. A sleep and a wake-up cost tens of microseconds; a partner on another processor answers
 * in two or three. So a wait begins by spinning, at most MQX_SPIN_US, where that was worth it
 * lately: it never is on one processor, or when answers come later.
 *
 * Terms
 *   served    the word changed while the wait was spinning.
 *   credit    how many spins in a row may go on being tried; 0: the next wait sleeps at once.
 *   near      a wait that slept, and ended within MQX_SPIN_NEAR_US: perhaps both sides sleep only
 *             because the other one does.
 *   trial     a spin of MQX_SPIN_TRIAL_US, long enough for a partner that has to be woken. Without
 *             credit it is made after `patience` near waits, when the thread may run on more than
 *             one processor or has just woken a partner on another one; with credit after a spin in
 *             vain, because a partner that lost its processor for a moment sleeps then, and so
 *             would both from there on.
 *   awake     the thread put a message for a waiter that was spinning: the next answer is near, so
 *             its own wait spins without a trial. This is how the partner of a trial joins in.
 *
 * What a wait changes
 *   served within MQX_SPIN_US   credit + 1, to MQX_SPIN_CREDIT_MAX; patience and misses begin anew
 *   served by a trial, later    credit is 1 at the least; misses begin anew
 *   spun in vain                credit halved; without any left, patience doubles; one miss more
 *   slept, near                 one near wait more
 *   slept longer                credit halved; near waits are counted from 0
 * After MQX_SPIN_MISSES_MAX misses in a row a partner that was awake is no reason to spin any more.
 *
 * Locks: none. The fields belong to a queue handle, which threads may share: they are atomic, and
 * an update that is lost costs a spin or a sleep.
 */
#ifndef PENSTOCK_WAIT_SPIN_H
#define PENSTOCK_WAIT_SPIN_H

#include "queue/wait_list.h"

enum {
    MQX_SPIN_US = 20,
    MQX_SPIN_TRIAL_US = 100,
    MQX_SPIN_NEAR_US = 250,
    MQX_SPIN_CREDIT_MAX = 16,
    MQX_SPIN_MISSES_MAX = 4,
    MQX_SPIN_PATIENCE_LEAST = 4,
    MQX_SPIN_PATIENCE_MOST = 4096,
};

struct mqx_spin { /* starts zeroed: the first waits sleep */
    uint32_t credit;
    uint32_t near_waits; /* since the last trial */
    uint32_t patience;   /* 0: the least */
    uint32_t misses;     /* spins in vain since the last one that was served */
};

/* For how many microseconds the next wait is to spin; 0: it sleeps at once. A trial that is due
 * uses its near waits up. */
uint32_t mqx_spin_length(struct mqx_spin *spin, enum mqx_partner partner);

/* Looks at *word until it is not `seen`, for so long at most; true when it has changed. */
bool mqx_spin_on(const uint32_t *word, uint32_t seen, uint32_t us);

/* Counts a wait that has ended: for how long it was to spin, whether that served it, and how long
 * it was altogether. */
void mqx_spin_count(struct mqx_spin *spin, uint32_t spun_us, bool served, uint64_t us);

#endif
