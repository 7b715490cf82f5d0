/*
 * lock.h - robust process-shared locks and the micro-transactions made under them.
 *
 * Purpose. Any process can be killed at any instruction. A structure in the region is therefore
 * changed only under a lock of this kind, store by store through mqx_set*(): each store first
 * writes an undo entry (where, old value). mqx_undo_commit() empties the list: that one store is the
 * moment the change happens. Whoever finds the owner dead rolls the list back, so a reader under
 * the lock always sees a whole state (rules 19, 20).
 *
 * Terms
 *   micro-transaction  the stores between two mqx_undo_commit() under one lock; at most
 *                      MQX_UNDO_MAX of them. Rolling back is also how a caller gives up half way.
 *   hold               take ... drop; may contain several micro-transactions one after another.
 *   rank               locks are taken in ascending rank only; checked by mqx_lock_take().
 *   fresh memory       a cell or entry that nothing reachable names: may be filled by plain stores.
 *                      (Its free-list link is reachable: taking it off a list is an mqx_set.)
 *
 * Invariants
 *   1. Outside a hold undo_count is 0.
 *   2. undo_count is raised after its entry is complete and before the store it undoes.
 *   3. pthread_mutex_consistent() comes after the roll back; unlocking without it never happens.
 *   4. `holder` names the attachment slot + 1 of the owner from just after the mutex is taken until
 *   just
 *      before it is released; a value left by a dead process tells the sweep which locks to repair.
 *   5. An entry's offset is relative to the region's start: the region is mapped at different
 *      addresses in different processes.
 */
#ifndef PENSTOCK_LOCK_H
#define PENSTOCK_LOCK_H

#include "base/atomic.h"
#include "base/base.h"
#include "base/assert.h"

#include <pthread.h>

enum { MQX_UNDO_MAX = 96 };

enum mqx_rank { /* ascending order in which locks may be nested; LOCKING.md gives the reasons */
    MQX_RANK_MAINTENANCE = 1, /* who does checkpoints, spares, sweep; held for long, taken by
                               * trylock */
    MQX_RANK_FLUSH = 2,       /* leader of the group commit; held during the write */
    MQX_RANK_GROWTH = 3,      /* growth of areas; held during posix_fallocate */
    MQX_RANK_ROLL = 4,        /* making and retiring segment files */
    MQX_RANK_CATALOG = 5,     /* names -> objects */
    MQX_RANK_QUEUE = 6,       /* one lock stripe: queues, their messages, units' lists */
    MQX_RANK_SLOTS = 7,       /* attachment, context, handle and object slots */
    MQX_RANK_ARENA = 8,       /* global free cells and message entries */
    MQX_RANK_RING = 9,        /* log ring and segment table */
    MQX_RANK_COUNT = 10,
};

struct mqx_undo {
    uint64_t place; /* offset in the region << 4 | size in bytes (1, 2, 4, 8) */
    uint64_t old;
};

struct mqx_lock {
    pthread_mutex_t mutex; /* robust, process-shared, error-checking not used */
    uint32_t holder;       /* attachment slot + 1 of the owner, 0 when free */
    uint32_t rank;
    uint32_t undo_count;
    uint32_t repairs;      /* statistics: how often an owner was found dead */
    struct mqx_undo undo[MQX_UNDO_MAX];
} MQX_ALIGNED(64);

struct mqx_region; /* region.h: process-local view of the region */

/* Prepares a lock in fresh memory. */
int mqx_lock_init(struct mqx_lock *lock, enum mqx_rank rank) MQX_MUST_USE;

/* Takes the lock; a dead owner's micro-transaction is rolled back first. Spins briefly, then tells
 * the caller's environment that this thread is about to block (block_hook.h) unless it holds another
 * lock. MQRC_CONNECTION_BROKEN when the region is stopped or the lock is beyond repair (then it
 * stops it). */
int mqx_lock_take(struct mqx_region *region, struct mqx_lock *lock) MQX_MUST_USE;

/* The same without waiting: MQX_BUSY when somebody has it. */
int mqx_lock_try(struct mqx_region *region, struct mqx_lock *lock) MQX_MUST_USE;

/* Releases it; the current micro-transaction must have been committed or rolled back. */
void mqx_lock_drop(struct mqx_region *region, struct mqx_lock *lock);

/* True when this thread holds the lock (debug checks). */
bool mqx_lock_held(const struct mqx_region *region, const struct mqx_lock *lock);

/* Undoes the current micro-transaction, newest store first. */
void mqx_undo_rollback(struct mqx_region *region, struct mqx_lock *lock);

/* Remembers the old value at `at` (size 1, 2, 4, 8; naturally aligned). */
static inline void mqx_undo_note(const void *base, struct mqx_lock *lock, const void *at,
                                 uint32_t size, uint64_t old)
{
    uint32_t n = lock->undo_count;
    mqx_check(n < MQX_UNDO_MAX);
    lock->undo[n].place =
        (uint64_t)((const unsigned char *)at - (const unsigned char *)base) << 4 | size;
    lock->undo[n].old = old;
    mqx_order();
    *(volatile uint32_t *)&lock->undo_count = n + 1;
    mqx_order();
}

/* One undoable store each; `at` must lie in the region and belong to `lock`. */
static inline void mqx_undo_store8(const void *base, struct mqx_lock *lock, uint8_t *at,
                                   uint8_t value)
{
    mqx_undo_note(base, lock, at, 1, *at);
    mqx_store_relaxed(at, value); /* hints may be read without the lock */
}
static inline void mqx_undo_store16(const void *base, struct mqx_lock *lock, uint16_t *at,
                                    uint16_t value)
{
    mqx_undo_note(base, lock, at, 2, *at);
    mqx_store_relaxed(at, value);
}
static inline void mqx_undo_store32(const void *base, struct mqx_lock *lock, uint32_t *at,
                                    uint32_t value)
{
    mqx_undo_note(base, lock, at, 4, *at);
    mqx_store_relaxed(at, value);
}
static inline void mqx_undo_store64(const void *base, struct mqx_lock *lock, uint64_t *at,
                                    uint64_t value)
{
    mqx_undo_note(base, lock, at, 8, *at);
    mqx_store_relaxed(at, value);
}

/* The change happens here: the list is emptied by one store. */
static inline void mqx_undo_commit(struct mqx_lock *lock)
{
    mqx_order();
    *(volatile uint32_t *)&lock->undo_count = 0;
    mqx_order();
}

#endif
