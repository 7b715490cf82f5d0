/*
 * lock.c - robust locks and roll back. See lock.h for terms and invariants.
 */
#include "region/lock.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/block_hook.h"
#include "os/host_info.h"
#include "os/interrupt.h"
#include "penstock/engine.h"
#include "region/damage.h"
#include "region/layout.h"
#include "region/mutex_words.h"
#include "region/reach.h"
#include "region/stop_flag.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { SPIN_COUNT = 200, WAIT_BOUND_US = 1000000 };

uint64_t mqx_lock_stranger_us = 10000000;

static const char *const rank_names[MQX_RANK_COUNT] = {
    [MQX_RANK_MAINTENANCE] = "maintenance",
    [MQX_RANK_FLUSH] = "flush",
    [MQX_RANK_GROWTH] = "growth",
    [MQX_RANK_ROLL] = "roll",
    [MQX_RANK_CATALOG] = "catalog",
    [MQX_RANK_QUEUE] = "queues",
    [MQX_RANK_SLOTS] = "slots",
    [MQX_RANK_ARENA] = "arena",
    [MQX_RANK_RING] = "ring",
};

const char *mqx_rank_name(uint32_t rank)
{
    const char *name = rank < MQX_RANK_COUNT ? rank_names[rank] : NULL;
    MQX_ASSERT(rank_names[MQX_RANK_RING] != NULL);
    MQX_ASSERT(rank_names[0] == NULL);
    return name != NULL ? name : "unknown";
}

struct held { /* a lock of this thread, and what its mutex's links must be when it is dropped */
    const struct mqx_lock *lock;
    struct mqx_mutex_links links;
};
/* The locks that this thread holds: lets the rank rule be checked, and tells whether blocking may
 * release the GIL (only while no lock is held). */
MQX_THREAD_LOCAL struct held held[MQX_RANK_COUNT]; /* held_count of them */
MQX_THREAD_LOCAL uint32_t held_count;

static int init_mutex(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    MQX_ASSERT(mutex != NULL);
    MQX_ASSERT((uintptr_t)mutex % sizeof(void *) == 0);
    int err = pthread_mutexattr_init(&attributes);
    if (err != 0) {
        return mqx_fail(MQRC_RESOURCE_PROBLEM, "mutex attributes: error %d", err);
    }
    err = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (err == 0) {
        err = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    }
    if (err == 0) {
        err = pthread_mutex_init(mutex, &attributes);
    }
    (void)pthread_mutexattr_destroy(&attributes);
    return err == 0
               ? MQX_OK
               : mqx_fail(MQRC_RESOURCE_PROBLEM, "robust process-shared mutex: error %d", err);
}

int mqx_lock_init(struct mqx_lock *lock, enum mqx_rank rank)
{
    MQX_ASSERT(lock != NULL);
    MQX_ASSERT(rank > 0 && rank < MQX_RANK_COUNT);
    const int status = init_mutex(&lock->mutex);
    lock->rank = rank;
    return status;
}

int mqx_lock_mutex_kind(void)
{
    pthread_mutex_t mutex;
    int kind = 0;
    MQX_ASSERT(held_count < MQX_RANK_COUNT);
    MQX_ASSERT(sizeof mutex == sizeof(((struct mqx_lock *)0)->mutex));
    if (init_mutex(&mutex) == MQX_OK) {
        kind = mqx_mutex_kind(&mutex);
        (void)pthread_mutex_destroy(&mutex);
    }
    return kind;
}

/* ---- the undo list: in shared memory, so it is validated before it is followed ---- */

static bool undo_one(const struct mqx_region *region, const struct mqx_undo *entry)
{
    MQX_ASSERT(entry != NULL);
    MQX_ASSERT(region->size > sizeof(uint64_t));
    const uint64_t offset = entry->location >> MQX_UNDO_SIZE_BITS;
    const uint32_t size = (uint32_t)(entry->location & MQX_UNDO_SIZE_MASK);
    if (offset > region->size - sizeof(uint64_t) || size == 0 || offset % size != 0) {
        return false;
    }
    if (MQX_UNLIKELY(!mqx_reach_has(region, offset))) { /* and it may be impossible to map it */
        return mqx_reach_owns_fd(region) &&
               mqx_io_write_all(region->io, region->fd, &entry->old, size, offset, 0) == 0;
    }
    void *at = region->base + offset;
    switch (size) {
    case 1: mqx_store_relaxed((uint8_t *)at, (uint8_t)entry->old); return true;
    case 4: mqx_store_relaxed((uint32_t *)at, (uint32_t)entry->old); return true;
    case 8: mqx_store_relaxed((uint64_t *)at, entry->old); return true;
    default: return false;
    }
}

/* False when the list is damaged: the queue manager is stopped then, and what can be undone has
 * been. */
static bool roll_back(const struct mqx_region *region, struct mqx_lock *lock)
{
    MQX_ASSERT((unsigned char *)lock > region->base);
    MQX_ASSERT((unsigned char *)lock < region->base + region->size);
    bool sound = lock->undo_count <= MQX_UNDO_MAX;
    uint32_t n = sound ? lock->undo_count : 0;
    while (n > 0) {
        sound = undo_one(region, &lock->undo[n - 1]) && sound;
        mqx_order();
        n -= 1;
        *(volatile uint32_t *)&lock->undo_count = n; /* each step may be the last one we execute */
    }
    if (MQX_UNLIKELY(!sound)) {
        (void)mqx_region_damage(region, "the undo list of a lock of rank", lock->rank);
    }
    return sound;
}

void mqx_undo_rollback(struct mqx_region *region, struct mqx_lock *lock)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT((unsigned char *)lock > region->base);
    if (MQX_UNLIKELY(!roll_back(region, lock))) {
        lock->undo_count = 0; /* the caller can drop the lock */
    }
    MQX_ASSERT(lock->undo_count == 0);
}

void mqx_undo_overflow(const void *base, const struct mqx_lock *lock)
{
    /* the region begins with its header */
    struct mqx_header *header = (struct mqx_header *)(uintptr_t)base;
    MQX_ASSERT(base != NULL);
    MQX_ASSERT((const void *)lock > base);
    (void)mqx_region_damage_header(header, "the full undo list of a lock of rank", lock->rank);
}

/* ---- the mutex's links ----
 *
 * libc keeps a list of the robust mutexes that a thread has: the newest first, linked in both
 * directions through the mutexes. Taking or dropping one changes a link of its neighbours.
 */

/* The lock was just taken, with others held: libc has written its links, and one of the lock that
 * was the first of its list, which is the one taken before it. */
static void remember_nested(const struct mqx_lock *lock)
{
    struct held *newest = &held[held_count];
    MQX_ASSERT(held_count > 0 && held_count < MQX_RANK_COUNT);
    MQX_ASSERT(lock != NULL);
    MQX_ASSERT(lock != newest[-1].lock);
    *newest = (struct held){lock, mqx_mutex_links(&lock->mutex)};
    if (newest->links.next == mqx_mutex_node(&newest[-1].lock->mutex)) {
        newest[-1].links.prev = (void *)(uintptr_t)mqx_mutex_node(&lock->mutex);
    }
    held_count += 1;
}

/* The newest lock is about to be dropped: the one before it will be the first again. */
static void forget_newest(void)
{
    const struct held *gone = &held[held_count - 1];
    MQX_ASSERT(held_count > 0);
    MQX_ASSERT(gone->lock != NULL);
    held_count -= 1;
    if (held_count > 0 && held[held_count - 1].links.prev == mqx_mutex_node(&gone->lock->mutex)) {
        held[held_count - 1].links.prev = gone->links.prev;
    }
}

/* One of the locks is about to be dropped: its neighbours will be linked to each other. */
static MQX_COLD void forget_links(uint32_t index)
{
    const struct held gone = held[index];
    const void *node = mqx_mutex_node(&gone.lock->mutex);
    MQX_ASSERT(index < held_count);
    MQX_ASSERT(gone.lock != NULL);
    held_count -= 1;
    for (uint32_t i = index; i < held_count; i++) {
        held[i] = held[i + 1];
    }
    for (uint32_t i = 0; i < held_count; i++) {
        held[i].links.next = held[i].links.next == node ? gone.links.next : held[i].links.next;
        held[i].links.prev = held[i].links.prev == node ? gone.links.prev : held[i].links.prev;
    }
}

/* Which of the locks of this thread it is; the newest in most cases. */
static uint32_t index_of(const struct mqx_lock *lock)
{
    uint32_t i = held_count - 1;
    MQX_ASSERT(held_count > 0);
    while (held[i].lock != lock && i > 0) {
        i -= 1;
    }
    MQX_ASSERT(held[i].lock == lock);
    return i;
}

static bool mutex_is_sound(const struct mqx_region *region, const struct held *one)
{
    const struct mqx_mutex_links links = mqx_mutex_links(&one->lock->mutex);
    MQX_ASSERT(one->lock != NULL);
    MQX_ASSERT((const unsigned char *)one->lock > region->base);
    return mqx_mutex_kind(&one->lock->mutex) == region->mutex_kind &&
           links.next == one->links.next && links.prev == one->links.prev;
}

/* ---- taking and dropping ---- */

static uint32_t rank_bit(const struct mqx_lock *lock)
{
    MQX_ASSERT(lock != NULL);
    return 1u << (lock->rank & 31u); /* whatever stands in the region */
}

/* The ranks of the locks that this thread holds, a bit each. */
static uint32_t held_ranks(void)
{
    uint32_t ranks = 0;
    MQX_ASSERT(held_count <= MQX_RANK_COUNT);
    MQX_ASSERT(held_count == 0 || held[held_count - 1].lock != NULL);
    for (uint32_t i = 0; i < held_count; i++) {
        ranks |= rank_bit(held[i].lock);
    }
    return ranks;
}

/* Of the rank rule: a rank that was damaged proves nothing about the callers. */
static bool has_its_rank(const struct mqx_region *region, const struct mqx_lock *lock)
{
    const struct mqx_header *header = region->header;
    const struct mqx_lock *const of_rank[MQX_RANK_COUNT] = {
        [MQX_RANK_MAINTENANCE] = &header->maintenance_lock,
        [MQX_RANK_FLUSH] = &header->journal.flush_lock,
        [MQX_RANK_GROWTH] = &header->growth_lock,
        [MQX_RANK_ROLL] = &header->journal.roll_lock,
        [MQX_RANK_CATALOG] = &header->catalog_lock,
        [MQX_RANK_SLOTS] = &header->slots_lock,
        [MQX_RANK_ARENA] = &header->arena_lock,
        [MQX_RANK_RING] = &header->journal.ring_lock,
    };
    MQX_ASSERT(header != NULL);
    MQX_ASSERT(lock != NULL);
    const bool of_stripe = (const unsigned char *)lock >= (const unsigned char *)(header + 1);
    return of_stripe ? lock->rank == MQX_RANK_QUEUE
                     : lock->rank < MQX_RANK_COUNT && of_rank[lock->rank] == lock;
}

/* The lock and those that this thread has. */
static bool have_their_ranks(const struct mqx_region *region, const struct mqx_lock *lock)
{
    bool sound = has_its_rank(region, lock);
    MQX_ASSERT(held_count <= MQX_RANK_COUNT);
    MQX_ASSERT(region->header != NULL);
    for (uint32_t i = 0; i < held_count; i++) {
        sound = sound && has_its_rank(region, held[i].lock);
    }
    return sound;
}

static inline void note_taken(struct mqx_region *region, struct mqx_lock *lock)
{
    MQX_ASSERT(region->process <= MQX_PROCESS_MAX);
    MQX_ASSERT(held_ranks() < rank_bit(lock) || /* ascending ranks only */
               !have_their_ranks(region, lock));
    if (MQX_LIKELY(held_count == 0)) {
        held[0] = (struct held){lock, mqx_mutex_links(&lock->mutex)};
        held_count = 1;
    } else {
        remember_nested(lock);
    }
    mqx_store_relaxed(&lock->holder, region->process + 1);
    mqx_order();
}

/* The owner died: its half-made change is undone, then the mutex is made consistent (invariant
 * 3). */
static MQX_COLD int repair(struct mqx_region *region, struct mqx_lock *lock)
{
    MQX_ASSERT((unsigned char *)lock > region->base);
    if (!roll_back(region, lock)) {
        (void)pthread_mutex_unlock(&lock->mutex); /* not made consistent: unusable from now on */
        return mqx_fail(MQRC_CONNECTION_BROKEN, "undo list of a dead owner's lock is damaged");
    }
    MQX_ASSERT(lock->undo_count == 0);
    lock->repairs += 1;
    mqx_order();
    const int err = pthread_mutex_consistent(&lock->mutex);
    if (err != 0) {
        mqx_region_stop_because(region, "making a dead owner's lock consistent", err);
        return mqx_fail(MQRC_CONNECTION_BROKEN, "a dead owner's lock cannot be made consistent");
    }
    note_taken(region, lock);
    return MQX_OK;
}

/* The lock is marked as taken by a thread that cannot have it. */
static MQX_COLD void report_owner(const struct mqx_region *region, const struct mqx_lock *lock)
{
    char what[64];
    const int length = snprintf(what, sizeof what, "the owner of the %s lock, thread",
                                mqx_rank_name(lock->rank));
    MQX_ASSERT(length > 0 && (size_t)length < sizeof what);
    MQX_ASSERT((const unsigned char *)lock > region->base);
    (void)length;
    (void)mqx_region_damage(region, what, (uint64_t)mqx_mutex_owner(&lock->mutex));
}

static MQX_COLD int take_failed(struct mqx_region *region, struct mqx_lock *lock, int err)
{
    MQX_ASSERT((unsigned char *)lock > region->base);
    MQX_ASSERT(err != 0 && err != EBUSY);
    if (err == EOWNERDEAD) {
        return repair(region, lock);
    }
    if (mqx_mutex_owner(&lock->mutex) != 0 && mqx_mutex_has_no_owner(&lock->mutex)) {
        report_owner(region, lock);
    } else {
        (void)mqx_region_damage(region, "the mutex of a lock of rank", lock->rank);
    }
    return mqx_fail(MQRC_CONNECTION_BROKEN, "lock of rank %u cannot be taken: error %d", lock->rank,
                    err);
}

/* No lock but the maintenance lock, for which nobody waits. */
static bool holds_no_other(void)
{
    MQX_ASSERT(held_count < MQX_RANK_COUNT);
    return (held_ranks() & ~(1u << MQX_RANK_MAINTENANCE)) == 0;
}

void mqx_lock_waited(struct mqx_region *region, struct mqx_lock *lock, uint64_t since_us)
{
    MQX_ASSERT((unsigned char *)lock > region->base);
    MQX_ASSERT(since_us != 0);
    if (region->long_wait != NULL && holds_no_other()) {
        region->long_wait(region, lock, since_us);
    }
}

/* A lock that seems to be taken: was the mutex's word damaged? Its owner names itself in `holder`
 * an instant after it was taken, so the kernel is asked only about owners without a name. */
static bool seems_ownerless(const struct mqx_lock *lock)
{
    MQX_ASSERT(lock != NULL);
    MQX_ASSERT(held_count < MQX_RANK_COUNT);
    return mqx_load_relaxed(&lock->holder) == 0 && mqx_mutex_has_no_owner(&lock->mutex);
}

/* A process that is attaching is not in the table yet: it names itself as number 0, and has locks
 * only to clean up after dead processes when no slot of the table is free. */
static bool is_strangers(const struct mqx_region *region, const struct mqx_lock *lock)
{
    const int32_t owner = mqx_mutex_owner(&lock->mutex);
    bool full = true;
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(region->process < MQX_PROCESS_MAX);
    if (owner == 0 || mqx_thread_exists(getpid(), owner)) {
        return false;
    }
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX; slot++) {
        const struct mqx_process *process = &region->header->process[slot];
        const int32_t pid = process->pid;
        const bool taken = mqx_load_acquire(&process->state) != MQX_PROC_FREE;
        if (taken && pid > 0 && mqx_thread_exists(pid, owner)) {
            return false;
        }
        full = full && taken;
    }
    const bool attaching = full && mqx_load_relaxed(&lock->holder) == 1;
    return !attaching && mqx_mutex_owner(&lock->mutex) == owner;
}

bool mqx_lock_is_strangers(struct mqx_region *region, struct mqx_lock *lock)
{
    const bool strange = is_strangers(region, lock);
    MQX_ASSERT(!mqx_lock_held(region, lock));
    MQX_ASSERT((unsigned char *)lock > region->base);
    if (strange) {
        report_owner(region, lock);
    }
    return strange;
}

/* Blocks until this thread has the lock; EBUSY when the region was stopped in between, EINTR when
 * the caller wants to look at signals. glibc's trylock keeps a mutex that it found beyond repair,
 * forever: threads that wait for it must not wait as long. */
static int wait_for(struct mqx_region *region, struct mqx_lock *lock, bool may_end)
{
    MQX_ASSERT((unsigned char *)lock > region->base);
    MQX_ASSERT(held_count < MQX_RANK_COUNT);
    const uint64_t since_us = mqx_clock_monotonic_us();
    int err = seems_ownerless(lock) ? ENOTRECOVERABLE : ETIMEDOUT;
    if (may_end && err == ETIMEDOUT && mqx_interrupt_take_at_once()) {
        return EINTR;
    }
    while (err == ETIMEDOUT) {
        if (mqx_mutex_kind(&lock->mutex) != region->mutex_kind) {
            return ENOTRECOVERABLE;
        }
        /* a wall clock deadline: pthread_mutex_clocklock is unknown to thread sanitizers */
        const uint64_t us = mqx_clock_wall_us() + WAIT_BOUND_US;
        const struct timespec until = {.tv_sec = (time_t)(us / 1000000),
                                       .tv_nsec = (long)(us % 1000000) * 1000};
        err = pthread_mutex_timedlock(&lock->mutex, &until);
        if (err == ETIMEDOUT && mqx_region_stopped(region) != MQX_RUNNING) {
            return EBUSY;
        }
        if (err == ETIMEDOUT) {
            mqx_lock_waited(region, lock, since_us);
        }
        const uint64_t here_us = mqx_clock_monotonic_us() - since_us;
        if (err == ETIMEDOUT && (mqx_mutex_has_no_owner(&lock->mutex) ||
                                 (here_us + mqx_interrupt_waited_us() >= mqx_lock_stranger_us &&
                                  mqx_lock_is_strangers(region, lock)))) {
            return ENOTRECOVERABLE;
        }
        if (err == ETIMEDOUT && may_end && mqx_interrupt_take(here_us)) {
            return EINTR; /* the caller looks at signals and waits again */
        }
    }
    if (mqx_load_relaxed(&lock->slow_holder) != 0) {
        mqx_store_relaxed(&lock->slow_holder, 0u);
    }
    return err;
}

/* libc must not see a mutex of another kind. */
static int try_mutex(const struct mqx_region *region, struct mqx_lock *lock)
{
    MQX_ASSERT((unsigned char *)lock > region->base);
    MQX_ASSERT(held_count < MQX_RANK_COUNT);
    return MQX_LIKELY(mqx_mutex_kind(&lock->mutex) == region->mutex_kind)
               ? pthread_mutex_trylock(&lock->mutex)
               : ENOTRECOVERABLE;
}

static MQX_COLD int take_slow_path(struct mqx_region *region, struct mqx_lock *lock, bool may_end)
{
    MQX_ASSERT((unsigned char *)lock > region->base);
    MQX_ASSERT(held_count < MQX_RANK_COUNT);
    int err = EBUSY;
    for (int i = 0; i < SPIN_COUNT && err == EBUSY; i++) {
        if (mqx_load_relaxed(&lock->holder) == 0) {
            err = try_mutex(region, lock);
        }
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    if (err == EBUSY) {
        if (held_count == 0) {
            mqx_about_to_block();
        }
        err = wait_for(region, lock, may_end && holds_no_other());
    }
    if (err == EBUSY) {
        return mqx_region_stop_reason(region);
    }
    if (err == EINTR) {
        return MQE_INTERRUPTED;
    }
    if (err == 0) {
        note_taken(region, lock);
        return MQX_OK;
    }
    return take_failed(region, lock, err);
}

/* A process that maps the region stepwise maps what it may find under the lock just taken. If it
 * cannot, its call ends here, with no micro-transaction open. */
static MQX_COLD int keep_up(struct mqx_region *region, struct mqx_lock *lock)
{
    MQX_ASSERT(region->reach.stepwise);
    MQX_ASSERT(lock->undo_count == 0);
    if (mqx_reach_all(region)) {
        return MQX_OK;
    }
    mqx_reach_lose(region);
    mqx_lock_drop(region, lock);
    return mqx_reach_refused(region);
}

static inline int take(struct mqx_region *region, struct mqx_lock *lock, bool may_end)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT((unsigned char *)lock > region->base);
    const int err = try_mutex(region, lock);
    int status = MQX_OK;
    if (MQX_LIKELY(err == 0)) {
        note_taken(region, lock);
    } else {
        status = err == EBUSY ? take_slow_path(region, lock, may_end)
                              : take_failed(region, lock, err);
    }
    return MQX_UNLIKELY(region->reach.stepwise && status == MQX_OK) ? keep_up(region, lock)
                                                                    : status;
}

int mqx_lock_take(struct mqx_region *region, struct mqx_lock *lock)
{
    MQX_ASSERT(region->header != NULL);
    MQX_ASSERT(lock != NULL);
    MQX_ASSERT(held_count < MQX_RANK_COUNT);
    return take(region, lock, false);
}

int mqx_lock_enter(struct mqx_region *region, struct mqx_lock *lock)
{
    MQX_ASSERT(region->header != NULL);
    MQX_ASSERT(lock != NULL);
    MQX_ASSERT(held_count < MQX_RANK_COUNT);
    return take(region, lock, true);
}

int mqx_lock_try(struct mqx_region *region, struct mqx_lock *lock)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT((unsigned char *)lock > region->base);
    const int err = try_mutex(region, lock);
    int status = MQX_OK;
    if (err == 0) {
        note_taken(region, lock);
    } else {
        status = err == EBUSY && !seems_ownerless(lock)
                     ? MQX_BUSY
                     : take_failed(region, lock, err == EBUSY ? ENOTRECOVERABLE : err);
    }
    return MQX_UNLIKELY(region->reach.stepwise && status == MQX_OK) ? keep_up(region, lock)
                                                                    : status;
}

/* Is all that the release of a held lock relies on as it must be? */
static inline bool is_sound(const struct mqx_region *region, const struct held *one)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT((const unsigned char *)one->lock > region->base);
    return one->lock->undo_count == 0 &&
           mqx_load_relaxed(&one->lock->holder) == region->process + 1 &&
           mutex_is_sound(region, one);
}

/* A lock that is not the newest, or one that was damaged: marked as free or as owned by another, a
 * change that is neither committed nor rolled back, or other links than libc wrote. After damage
 * nothing under this lock can be trusted. */
static MQX_COLD void forget_or_repair(const struct mqx_region *region, struct mqx_lock *lock)
{
    MQX_ASSERT(held_count > 0);
    MQX_ASSERT((unsigned char *)lock > region->base);
    if (MQX_UNLIKELY(lock->undo_count != 0 ||
                     mqx_load_relaxed(&lock->holder) != region->process + 1)) {
        (void)mqx_region_damage(region, "the state of a lock to be released, of rank", lock->rank);
        (void)roll_back(region, lock);
    }
    const uint32_t index = index_of(lock);
    if (MQX_UNLIKELY(!mutex_is_sound(region, &held[index]))) {
        (void)mqx_region_damage(region, "the mutex of a held lock of rank", lock->rank);
        mqx_mutex_restore(&lock->mutex, region->mutex_kind, &held[index].links);
    }
    forget_links(index);
}

void mqx_lock_drop(struct mqx_region *region, struct mqx_lock *lock)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(held_count > 0);
    MQX_ASSERT(mqx_lock_held(region, lock));
    if (MQX_LIKELY(held_count == 1 && held[0].lock == lock && is_sound(region, &held[0]))) {
        held_count = 0;
    } else if (held[held_count - 1].lock == lock && is_sound(region, &held[held_count - 1])) {
        forget_newest();
    } else {
        forget_or_repair(region, lock);
    }
    mqx_store_relaxed(&lock->holder, 0u);
    mqx_order();
    (void)pthread_mutex_unlock(&lock->mutex);
}

bool mqx_lock_held(const struct mqx_region *region, const struct mqx_lock *lock)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(lock != NULL);
    uint32_t i = 0;
    while (i < held_count && held[i].lock != lock) {
        i += 1;
    }
    return i < held_count;
}
