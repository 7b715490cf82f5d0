/*
 * context_pool.h - idle contexts of this process, kept for calls outside syncpoint and for waiters.
 *
 * A context (region.h) is what a unit of work, a call of more than one micro-transaction, or a
 * waiter needs in the region. Taking one from the region costs the slots lock; a manager therefore
 * keeps up to MQX_POOL_SIZE idle ones.
 *
 * Invariants
 *   1. Every non-zero entry of manager->pool names a context of this process in state IDLE.
 *   2. A context is in at most one entry, and in none while a call uses it.
 *
 * Locks: the pool is an array of atomic words, so mqx_pool_take_idle() may be called under any
 * lock. mqx_pool_take() and mqx_pool_give() take the slots lock, and the growth lock, when the pool
 * is empty or full: no lock of the region may be held.
 *
 * The pool is process-local and needs no repair: the reaper frees the contexts of a dead process.
 */
#ifndef PENSTOCK_CONTEXT_POOL_H
#define PENSTOCK_CONTEXT_POOL_H

#include "api/entry.h"

/* An idle context of the pool: true, *out. `autocommit`: for a call outside syncpoint, whose claims
 * go back uncounted. False: the pool is empty. */
bool mqx_pool_take_idle(mqe_manager *manager, bool autocommit, uint32_t *out);

/* The same, or a new context of the region. 2071 2009 */
int mqx_pool_take(mqe_manager *manager, bool autocommit, uint32_t *out) MQX_MUST_USE;

/* Gives a context back. One that is not IDLE, because its call ended in a stopped region, is left
 * to the next restart. */
void mqx_pool_give(mqe_manager *manager, uint32_t context);

/* Gives all idle contexts back to the region; no other call of the manager is in progress. */
void mqx_pool_drain(mqe_manager *manager);

/* Enters the core, calls `change` with a context of the pool, counted as a file call, and gives the
 * context back. As mqx_enter() and mqx_pool_take(), or what `change` returns. */
typedef int (*mqx_context_change)(struct mqx_store *store, uint32_t context, void *arg);
int mqx_with_context(mqe_manager *manager, mqx_context_change change, void *arg) MQX_MUST_USE;

#endif
