/*
 * fork_guard.c - see fork_guard.h.
 *
 * The page is made at the first registration and stays. Readers take no lock: they see a list that
 * is changed by one aligned store at a time.
 */
#include "os/fork_guard.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"

#include <sys/mman.h>
#include <unistd.h>

/* ---- the local lock ---- */

bool mqx_local_take_for(struct mqx_local_lock *lock, uint64_t patience_us)
{
    MQX_ASSERT(lock != NULL);
    enum { PAUSE_MIN_US = 50, PAUSE_DOUBLINGS = 5 };
    const int32_t self = (int32_t)getpid();
    uint64_t pause_us = PAUSE_MIN_US;
    for (uint64_t waited_us = 0;; waited_us += pause_us) {
        int32_t seen = 0;
        if (__atomic_compare_exchange_n(&lock->owner, &seen, self, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            return true;
        }
        /* Another pid than ours was copied by fork: its thread does not exist here. */
        if (seen != self && __atomic_compare_exchange_n(&lock->owner, &seen, self, false,
                                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return true;
        }
        if (waited_us >= patience_us) {
            return false;
        }
        mqx_clock_sleep_us(pause_us);
        pause_us = pause_us < (PAUSE_MIN_US << PAUSE_DOUBLINGS) ? 2 * pause_us : pause_us;
    }
}

void mqx_local_take(struct mqx_local_lock *lock)
{
    MQX_ASSERT(lock != NULL);
    const bool taken = mqx_local_take_for(lock, UINT64_MAX);
    MQX_ASSERT(taken);
    (void)taken;
}

void mqx_local_drop(struct mqx_local_lock *lock)
{
    MQX_ASSERT(lock != NULL);
    MQX_ASSERT(mqx_load_relaxed(&lock->owner) == (int32_t)getpid());
    __atomic_store_n(&lock->owner, 0, __ATOMIC_RELEASE);
}

/* ---- the wiped page ---- */

int mqx_fork_wiped_page(void **out)
{
    MQX_ASSERT(out != NULL);
    void *at = mmap(NULL, MQX_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0);
    if (at == MAP_FAILED) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for an attachment");
    }
    if (madvise(at, MQX_PAGE_SIZE, MADV_WIPEONFORK) != 0) {
        (void)munmap(at, MQX_PAGE_SIZE);
        return mqx_fail(MQRC_ENVIRONMENT_ERROR, "this kernel cannot wipe a page at fork");
    }
    *out = at;
    return MQX_OK;
}

/* ---- owners ---- */

struct page {
    uint64_t epoch; /* when this process registered its first owner, us; 0: it has not */
    uint64_t count; /* entries ever used: the others are NULL */
    const void *owner[MQX_FORK_GUARDS_MAX];
};
MQX_STATIC_ASSERT(sizeof(struct page) <= MQX_PAGE_SIZE, "one page");

static struct page *page;
static struct mqx_local_lock guard;

bool mqx_forked(const void *owner)
{
    MQX_ASSERT(owner != NULL);
    struct page *list = mqx_load_acquire(&page);
    const uint64_t count = list == NULL ? 0 : mqx_load_acquire(&list->count);
    for (uint64_t i = 0; i < count; i++) {
        if (MQX_LIKELY(mqx_load_relaxed(&list->owner[i]) == owner)) {
            return false;
        }
    }
    return true;
}

uint64_t mqx_fork_epoch(void)
{
    const struct page *list = mqx_load_acquire(&page);
    return list == NULL ? 0 : mqx_load_acquire(&list->epoch);
}

static int make_page(void)
{
    MQX_ASSERT(page == NULL);
    MQX_ASSERT(guard.owner == (int32_t)getpid());
    void *at = NULL;
    const int status = mqx_fork_wiped_page(&at);
    if (status == MQX_OK) {
        mqx_store_release(&page, (struct page *)at);
    }
    return status;
}

/* guard held */
static int enter(const void *owner)
{
    MQX_ASSERT(page != NULL);
    MQX_ASSERT(page->count <= MQX_FORK_GUARDS_MAX);
    MQX_ASSERT(guard.owner == (int32_t)getpid());
    uint64_t i = 0;
    while (i < page->count && page->owner[i] != NULL) {
        i++;
    }
    if (i == MQX_FORK_GUARDS_MAX) {
        return mqx_fail(MQRC_RESOURCE_PROBLEM,
                        "this process has %d queue managers attached, which is the most",
                        MQX_FORK_GUARDS_MAX);
    }
    if (page->epoch == 0) {
        mqx_store_release(&page->epoch, mqx_clock_monotonic_us() + 1);
    }
    mqx_store_release(&page->owner[i], owner);
    if (i == page->count) {
        mqx_store_release(&page->count, i + 1);
    }
    return MQX_OK;
}

int mqx_fork_guard_add(const void *owner)
{
    int status = MQX_OK;
    MQX_ASSERT(owner != NULL);
    mqx_local_take(&guard);
    if (page == NULL) {
        status = make_page();
    }
    if (status == MQX_OK) {
        status = enter(owner);
    }
    mqx_local_drop(&guard);
    return status;
}

void mqx_fork_guard_remove(const void *owner)
{
    MQX_ASSERT(owner != NULL);
    mqx_local_take(&guard);
    for (uint64_t i = 0; page != NULL && i < page->count; i++) {
        if (page->owner[i] == owner) {
            mqx_store_release(&page->owner[i], NULL);
        }
    }
    mqx_local_drop(&guard);
}
