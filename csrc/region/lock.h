/*
 * lock.h - robust process-shared locks and the micro-transactions made under them.
 *
 * Purpose. Any process can be killed at any instruction. A structure in the region is therefore
 * changed only under a lock of this kind, store by store through mqx_undo_store*(): each store
 * first writes an undo entry (where, old value). mqx_undo_commit() empties the list: that one store
 * is the moment the change happens. The next owner after a death rolls the list back, so that a
 * reader under the lock always sees a whole state (crash-safety rules 19, 20).
 *
 * Terms
 *   micro-transaction  the stores between two mqx_undo_commit() under one lock; at most
 *                      MQX_UNDO_MAX of them. Rolling back is also how a caller abandons a change.
 *   hold               take ... drop; may contain several micro-transactions one after another.
 *   rank               locks are taken in ascending rank only; mqx_lock_take() asserts it.
 *   slow               a lock for which somebody has waited a second: slow_holder names the owner
 *                      then, slow_since_s when that was first noticed. A hint: it counts while
 *                      slow_holder is `holder`, and the next who takes the lock after a wait clears
 *                      it.
 *   fresh memory       a cell or entry that nothing reachable names: may be filled by plain stores.
 *                      (Its free-list link is reachable: taking it off a list is an undoable
 *                      store.)
 *
 * Invariants
 *   1. Outside a hold undo_count is 0.
 *   2. undo_count is raised after its entry is complete and before the store it undoes.
 *   3. pthread_mutex_consistent() comes after the roll back; unlocking without it never happens.
 *   4. `holder` names the attachment slot + 1 of the owner from just after the mutex is taken until
 *      just before it is released; a value left by a dead process tells the reaper which locks to
 *      repair.
 *   5. An entry's offset is relative to the region's start: the region is mapped at different
 *      addresses in different processes.
 *
 * Waits. Each second of a wait, and before a waiting thread gives up, region->long_wait is called:
 * the watchdog (process/lock_watchdog.h) names the owner to whoever asks and, after 5 s, in the
 * log. It is not called while the thread holds other locks than the maintenance lock.
 *
 * Errors. 2009 when the region is stopped or a lock is beyond repair; 2071 when this process cannot
 * map what it might find under the lock (reach.h). The undo list lies in the
 * region and is validated: a list that is too long or points outside the region stops the queue
 * manager (damage.h); no store is made that could not be undone. So is the mutex, before libc
 * acts on its words (mutex_words.h).
 */
#ifndef PENSTOCK_LOCK_H
#define PENSTOCK_LOCK_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/base.h"

#include <pthread.h>

enum { MQX_UNDO_MAX = 96 };

enum mqx_rank { /* ascending order in which locks may be nested; LOCKING.md gives the reasons */
    MQX_RANK_MAINTENANCE = 1, /* checkpoints, spare segments, reaper; held long, taken by trylock */
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
    uint64_t location; /* offset in the region << 4 | size in bytes (1, 4, 8) */
    uint64_t old;
};
enum { MQX_UNDO_SIZE_BITS = 4, MQX_UNDO_SIZE_MASK = 15 }; /* of `location` */

struct mqx_lock {
    pthread_mutex_t mutex; /* robust, process-shared, error-checking not used */
    uint32_t holder;       /* attachment slot + 1 of the owner, 0 when free */
    uint32_t rank;
    uint32_t undo_count;
    uint32_t repairs;      /* statistics: how often an owner was found dead */
    struct mqx_undo undo[MQX_UNDO_MAX];
    uint32_t slow_holder;  /* atomic hint, 0 none; MQX_SLOW_LOGGED: it is in the log */
    uint32_t slow_since_s; /* atomic: monotonic clock, which processes share */
} MQX_ALIGNED(64);
#define MQX_SLOW_LOGGED UINT32_C(0x80000000)

struct mqx_region; /* layout.h: process-local view of the region */

/* What the lock of a rank is called for people; "unknown" for a number that is none. */
const char *mqx_rank_name(uint32_t rank);

/* Prepares a lock in fresh memory. */
int mqx_lock_init(struct mqx_lock *lock, enum mqx_rank rank) MQX_MUST_USE;

/* What mqx_mutex_kind() says of the mutex of every lock. */
int mqx_lock_mutex_kind(void);

/* Takes the lock; a dead owner's micro-transaction is rolled back first. Spins briefly, then calls
 * the block hook (block_hook.h) unless this thread holds another lock, and sleeps. 2009 when the
 * region is stopped or the lock is beyond repair (which stops it). */
int mqx_lock_take(struct mqx_region *region, struct mqx_lock *lock) MQX_MUST_USE;

/* The same where the call can still leave without a trace: MQE_INTERRUPTED when the caller wants to
 * look at signals (os/interrupt.h), a second has passed, and the thread holds no other lock but the
 * maintenance lock. */
int mqx_lock_enter(struct mqx_region *region, struct mqx_lock *lock) MQX_MUST_USE;

/* A second of a wait for `lock` that began at `since_us` (monotonic clock) has passed; has no other
 * lock but the maintenance lock. */
void mqx_lock_waited(struct mqx_region *region, struct mqx_lock *lock, uint64_t since_us) MQX_COLD;

/* The same without waiting: MQX_BUSY when another thread has it. */
int mqx_lock_try(struct mqx_region *region, struct mqx_lock *lock) MQX_MUST_USE;

/* For callers that found the lock taken again and again, for mqx_lock_stranger_us in all (10 s;
 * tests shorten it): is it marked as taken by a thread that belongs to no attached process? So it
 * is when a thread that is not the first of its process executed another program inside the lock:
 * the kernel then marks nothing (rule 50). Then the queue manager is stopped; the log names lock
 * and thread. */
extern uint64_t mqx_lock_stranger_us;
bool mqx_lock_is_strangers(struct mqx_region *region, struct mqx_lock *lock);

/* Releases it; the current micro-transaction must have been committed or rolled back. One that is
 * still open is rolled back, and the queue manager is stopped. */
void mqx_lock_drop(struct mqx_region *region, struct mqx_lock *lock);

/* True when this thread holds the lock (for assertions). */
bool mqx_lock_held(const struct mqx_region *region, const struct mqx_lock *lock);

/* Undoes the current micro-transaction, newest store first. */
void mqx_undo_rollback(struct mqx_region *region, struct mqx_lock *lock);

/* The undo list of `lock` is full or its count is damaged: stops the queue manager whose region
 * begins at `base`. Sleepers are not woken; they notice within their bound (rule 21). */
void mqx_undo_overflow(const void *base, const struct mqx_lock *lock) MQX_COLD;

/* Is there room for `count` more undo entries? When not, the queue manager has been stopped. */
static inline bool mqx_undo_has_room(const void *base, const struct mqx_lock *lock, uint32_t count)
{
    MQX_ASSERT(base != NULL);
    MQX_ASSERT(count > 0 && count <= MQX_UNDO_MAX);
    if (MQX_UNLIKELY(lock->undo_count > MQX_UNDO_MAX - count)) {
        mqx_undo_overflow(base, lock);
        return false;
    }
    return true;
}

/* Remembers the old value at `at` (size 1, 4, 8; naturally aligned). False when it could not be
 * remembered: the caller must not store, and the queue manager has been stopped. */
static inline bool mqx_undo_note(const void *base, struct mqx_lock *lock, const void *at,
                                 uint32_t size, uint64_t old)
{
    const uint32_t n = lock->undo_count;
    MQX_ASSERT(size == 1 || size == 4 || size == 8);
    MQX_ASSERT((uintptr_t)at % size == 0);
    MQX_ASSERT(at > base);
    if (!mqx_undo_has_room(base, lock, 1)) {
        return false;
    }
    lock->undo[n].location =
        (uint64_t)((const unsigned char *)at - (const unsigned char *)base) << MQX_UNDO_SIZE_BITS |
        size;
    lock->undo[n].old = old;
    mqx_order();
    *(volatile uint32_t *)&lock->undo_count = n + 1;
    mqx_order();
    return true;
}

/* Several stores whose number is known before: their entries, from lock->undo[undo_count] on, are
 * filled first, and counted by one store, so that no count waits for the one before it. The caller
 * has made sure of the room, and stores after the count (invariant 2). */
static inline void mqx_undo_fill(struct mqx_undo *entry, const void *base, const void *at,
                                 uint32_t size, uint64_t old)
{
    MQX_ASSERT(size == 1 || size == 4 || size == 8);
    MQX_ASSERT((uintptr_t)at % size == 0 && at > base);
    entry->location =
        (uint64_t)((const unsigned char *)at - (const unsigned char *)base) << MQX_UNDO_SIZE_BITS |
        size;
    entry->old = old;
}
static inline void mqx_undo_count(struct mqx_lock *lock, uint32_t count)
{
    MQX_ASSERT(count <= MQX_UNDO_MAX);
    MQX_ASSERT(count > lock->undo_count);
    mqx_order();
    *(volatile uint32_t *)&lock->undo_count = count;
    mqx_order();
}

/* One undoable store each; `at` must lie in the region and belong to `lock`. The store is atomic
 * because hints may be read without the lock. */
static inline void mqx_undo_store8(const void *base, struct mqx_lock *lock, uint8_t *at,
                                   uint8_t value)
{
    MQX_ASSERT(lock != NULL);
    if (mqx_undo_note(base, lock, at, 1, *at)) {
        mqx_store_relaxed(at, value);
    }
}
static inline void mqx_undo_store32(const void *base, struct mqx_lock *lock, uint32_t *at,
                                    uint32_t value)
{
    MQX_ASSERT(lock != NULL);
    if (mqx_undo_note(base, lock, at, 4, *at)) {
        mqx_store_relaxed(at, value);
    }
}
static inline void mqx_undo_store64(const void *base, struct mqx_lock *lock, uint64_t *at,
                                    uint64_t value)
{
    MQX_ASSERT(lock != NULL);
    if (mqx_undo_note(base, lock, at, 8, *at)) {
        mqx_store_relaxed(at, value);
    }
}

/* The change happens here: the list is emptied by one store. */
static inline void mqx_undo_commit(struct mqx_lock *lock)
{
    MQX_ASSERT(lock != NULL);
    MQX_ASSERT(mqx_load_relaxed(&lock->holder) != 0);
    mqx_order();
    *(volatile uint32_t *)&lock->undo_count = 0;
    mqx_order();
}

#endif
