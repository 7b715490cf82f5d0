/*
 * entry.h - entering the core: the manager object, and what every call asks first.
 *
 * Terms
 *   manager     the process-local object of one attachment (mqe_manager of engine.h). All calls of
 *               a process that are about one directory share one (manager.c).
 *   file calls  calls that may write or read files of the queue manager. They are counted in the
 *               attachment slot between mqx_file_calls_begin() and mqx_file_calls_end(), because a
 *               restart after a stop must wait until none is left in any process (rule 13).
 *
 * Invariants
 *   1. A call that mqx_enter() refuses has touched neither region nor files: in a forked child the
 *      region is not mapped (rule 32).
 *   2. calls_inside of an attachment slot is the number of file calls in progress in that process.
 *
 * Locks: nothing here waits. mqx_queue_lock() takes the stripe lock of a queue; the others take
 * none.
 */
#ifndef PENSTOCK_API_ENTRY_H
#define PENSTOCK_API_ENTRY_H

#include "penstock/engine.h"
#include "region/arena.h"
#include "region/store.h"

struct mqx_maintenance;

enum { MQX_POOL_SIZE = 256 }; /* idle contexts that an attachment keeps */

struct mqe_manager {
    struct mqx_store store;
    uint64_t device, inode;         /* identity of the directory */
    uint32_t references;            /* mqe_attach calls not yet given back (registry mutex of
                                     * manager.c) */
    struct mqx_maintenance *maintenance; /* NULL: this attachment has no maintenance thread */
    uint32_t pool[MQX_POOL_SIZE];   /* atomic; context_pool.h: idle contexts, 0 = empty entry */
    struct mqe_manager *next;       /* registry of this process */
};

/* What every call asks first: forked (2012), stopped (2009, 2162), quiescing when the caller cares
 * (2161), a region that has outgrown this process's address space (2071). */
int mqx_enter(mqe_manager *manager, bool fail_if_quiescing) MQX_MUST_USE;

/* Brackets calls that may touch files. After a stop, restart waits until this counter is 0 in every
 * process. */
void mqx_file_calls_begin(mqe_manager *manager);
void mqx_file_calls_end(mqe_manager *manager);

/* Takes the stripe lock of the queue in `slot` and gives the queue: 2052, without the lock, when
 * the slot has another generation or the queue is being deleted. 2009 */
int mqx_queue_lock(struct mqx_region *region, uint32_t slot, uint32_t generation,
                   struct mqx_stripe_guard *guard, struct mqx_object **out) MQX_MUST_USE;

#endif
