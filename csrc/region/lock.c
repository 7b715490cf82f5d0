/*
 * lock.c - robust locks and roll back. See lock.h for terms and invariants.
 */
#include "region/lock.h"

#include "base/error.h"
#include "region/region.h"
#include "os/block_hook.h"

#include <errno.h>
#include <time.h>

enum { SPIN_COUNT = 200 };

/* Ranks this thread holds, as a bit set per nesting; lets the rank rule be checked and tells
 * whether blocking may release the GIL (only while nothing is held). */
MQX_THREAD_LOCAL uint32_t held_ranks;
MQX_THREAD_LOCAL uint32_t held_count;

int mqx_lock_init(struct mqx_lock *lock, enum mqx_rank rank)
{
    pthread_mutexattr_t attributes;
    int err = pthread_mutexattr_init(&attributes);
    if (err != 0) {
        return mqx_fail(MQRC_RESOURCE_PROBLEM, "mutex attributes: error %d", err);
    }
    err = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (err == 0) {
        err = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    }
    if (err == 0) {
        err = pthread_mutex_init(&lock->mutex, &attributes);
    }
    (void)pthread_mutexattr_destroy(&attributes);
    if (err != 0) {
        return mqx_fail(MQRC_RESOURCE_PROBLEM, "robust process-shared mutex: error %d", err);
    }
    lock->rank = rank;
    return MQX_OK;
}

static void undo_one(unsigned char *base, const struct mqx_undo *entry)
{
    void *at = base + (entry->place >> 4);
    switch (entry->place & 15u) {
    case 1: mqx_store_relaxed((uint8_t *)at, (uint8_t)entry->old); break;
    case 2: mqx_store_relaxed((uint16_t *)at, (uint16_t)entry->old); break;
    case 4: mqx_store_relaxed((uint32_t *)at, (uint32_t)entry->old); break;
    case 8: mqx_store_relaxed((uint64_t *)at, entry->old); break;
    default: mqx_check(false && "undo entry of a known size");
    }
}

void mqx_undo_rollback(struct mqx_region *region, struct mqx_lock *lock)
{
    uint32_t n = lock->undo_count;
    mqx_check(n <= MQX_UNDO_MAX);
    while (n > 0) {
        mqx_check((lock->undo[n - 1].place >> 4) < region->size);
        undo_one(region->base, &lock->undo[n - 1]);
        mqx_order();
        n -= 1;
        *(volatile uint32_t *)&lock->undo_count = n; /* each step may be the last one we execute */
    }
}

static void note_taken(struct mqx_region *region, struct mqx_lock *lock)
{
    MQX_ASSERT((held_ranks >> lock->rank) == 0);
    held_ranks |= 1u << lock->rank;
    held_count += 1;
    mqx_store_relaxed(&lock->holder, region->process + 1);
    mqx_order();
}

/* The owner died: its half-made change is undone, then the mutex is declared consistent (invariant
 * 3). */
static MQX_COLD int repair(struct mqx_region *region, struct mqx_lock *lock)
{
    if (lock->undo_count > MQX_UNDO_MAX) {
        mqx_region_stop(region, MQX_STOP_BROKEN);
        (void)pthread_mutex_unlock(&lock->mutex); /* not made consistent: dead for everybody */
        return mqx_fail(MQRC_CONNECTION_BROKEN, "undo list of a dead owner's lock is damaged");
    }
    mqx_undo_rollback(region, lock);
    lock->repairs += 1;
    mqx_order();
    if (pthread_mutex_consistent(&lock->mutex) != 0) {
        mqx_region_stop(region, MQX_STOP_BROKEN);
        return mqx_fail(MQRC_CONNECTION_BROKEN, "a dead owner's lock cannot be made consistent");
    }
    note_taken(region, lock);
    return MQX_OK;
}

static MQX_COLD int take_failed(struct mqx_region *region, struct mqx_lock *lock, int err)
{
    if (err == EOWNERDEAD) {
        return repair(region, lock);
    }
    mqx_region_stop(region, MQX_STOP_BROKEN);
    return mqx_fail(MQRC_CONNECTION_BROKEN, "lock of rank %u cannot be taken: error %d", lock->rank,
                    err);
}

/* Blocks until the lock is ours; EBUSY when the region was stopped meanwhile. glibc's trylock keeps
 * a mutex that it found beyond repair, for ever: whoever is behind it must not wait as long. */
static int wait_for(struct mqx_region *region, struct mqx_lock *lock)
{
    int err = ETIMEDOUT;
    while (err == ETIMEDOUT) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until); /* clocklock is unknown to thread sanitizers */
        until.tv_sec += 1;
        err = pthread_mutex_timedlock(&lock->mutex, &until);
        if (err == ETIMEDOUT && mqx_region_stopped(region) != MQX_RUNNING) {
            return EBUSY;
        }
    }
    return err;
}

static MQX_COLD int take_slowly(struct mqx_region *region, struct mqx_lock *lock)
{
    int err = EBUSY;
    for (int i = 0; i < SPIN_COUNT && err == EBUSY; i++) {
        if (mqx_load_relaxed(&lock->holder) == 0) {
            err = pthread_mutex_trylock(&lock->mutex);
        }
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    if (err == EBUSY) {
        if (held_count == 0) {
            mqx_about_to_block();
        }
        err = wait_for(region, lock);
    }
    if (err == EBUSY) {
        return mqx_region_stop_reason(region);
    }
    if (err == 0) {
        note_taken(region, lock);
        return MQX_OK;
    }
    return take_failed(region, lock, err);
}

int mqx_lock_take(struct mqx_region *region, struct mqx_lock *lock)
{
    int err = pthread_mutex_trylock(&lock->mutex);
    if (MQX_LIKELY(err == 0)) {
        note_taken(region, lock);
        return MQX_OK;
    }
    return err == EBUSY ? take_slowly(region, lock) : take_failed(region, lock, err);
}

int mqx_lock_try(struct mqx_region *region, struct mqx_lock *lock)
{
    int err = pthread_mutex_trylock(&lock->mutex);
    if (err == 0) {
        note_taken(region, lock);
        return MQX_OK;
    }
    return err == EBUSY ? MQX_BUSY : take_failed(region, lock, err);
}

void mqx_lock_drop(struct mqx_region *region, struct mqx_lock *lock)
{
    mqx_check(lock->undo_count == 0);
    mqx_check(mqx_load_relaxed(&lock->holder) == region->process + 1);
    held_ranks &= ~(1u << lock->rank);
    held_count -= 1;
    mqx_store_relaxed(&lock->holder, 0u);
    mqx_order();
    (void)pthread_mutex_unlock(&lock->mutex);
}

bool mqx_lock_held(const struct mqx_region *region, const struct mqx_lock *lock)
{
    return (held_ranks >> lock->rank & 1u) != 0 &&
           mqx_load_relaxed(&lock->holder) == region->process + 1;
}
