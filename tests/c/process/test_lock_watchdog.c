/* Claims of lock_watchdog.h: which lock is reported, and how often. */
#include "fixtures/store_fixture.h"

#include "process/lock_watchdog.h"

#include <pthread.h>

static struct memory_io *files;
static struct fixture_process process;

static void start(void)
{
    memory_io_free(files);
    files = fixture_new();
    fixture_attach(files, &process);
}

#define WAIT_FOR(cond) \
    do { \
        bool wait_over = (cond); \
        for (int wait_ms = 0; wait_ms < 20000 && !wait_over; wait_ms++) { \
            usleep(1000); \
            wait_over = (cond); \
        } \
        CHECK(wait_over); \
    } while (0)

static void *hold_catalog(void *arg)
{
    struct mqx_region *region = &process.store->region;
    uint32_t *step = arg;
    if (mqx_lock_take(region, &region->header->catalog_lock) != 0) {
        return NULL;
    }
    __atomic_store_n(step, 1u, __ATOMIC_RELEASE);
    while (__atomic_load_n(step, __ATOMIC_ACQUIRE) == 1) {
        usleep(1000);
    }
    mqx_lock_drop(region, &region->header->catalog_lock);
    return NULL;
}

TEST(a_lock_that_somebody_sits_on_is_reported_once_with_the_pid)
{
    static struct mqx_lock_watchdog watch;
    struct mqx_held_lock held;
    pthread_t thread;
    uint32_t step = 0;
    start();
    mqx_lock_watchdog_long_us = 20000;
    CHECK_INT(pthread_create(&thread, NULL, hold_catalog, &step), 0);
    WAIT_FOR(__atomic_load_n(&step, __ATOMIC_ACQUIRE) == 1);
    CHECK(!mqx_lock_watchdog_check(&watch, &process.store->region, &held));
    WAIT_FOR(mqx_lock_watchdog_check(&watch, &process.store->region, &held));
    CHECK_INT(held.pid, getpid());
    CHECK_INT(held.rank, MQX_RANK_CATALOG);
    usleep(30000);
    CHECK(!mqx_lock_watchdog_check(&watch, &process.store->region, &held));
    __atomic_store_n(&step, 2u, __ATOMIC_RELEASE);
    CHECK_INT(pthread_join(thread, NULL), 0);
    mqx_lock_watchdog_long_us = 5000000;
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_lock_that_is_merely_busy_is_not_reported)
{
    static struct mqx_lock_watchdog watch;
    struct mqx_held_lock held;
    struct mqx_region *region;
    start();
    region = &process.store->region;
    mqx_lock_watchdog_long_us = 0;
    for (int i = 0; i < 1000; i++) {
        region->header->slots_lock.holder = 7; /* seen in use at every look, and yet to be had */
        CHECK(!mqx_lock_watchdog_check(&watch, region, &held));
    }
    mqx_lock_watchdog_long_us = 5000000;
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

static void *hold_stripe(void *arg)
{
    struct mqx_region *region = &process.store->region;
    uint32_t *step = arg;
    struct mqx_lock *lock = &region->stripes[region->header->stripe_count - 1].lock;
    if (mqx_lock_take(region, lock) != 0) {
        return NULL;
    }
    __atomic_store_n(step, 1u, __ATOMIC_RELEASE);
    while (__atomic_load_n(step, __ATOMIC_ACQUIRE) == 1) {
        usleep(1000);
    }
    mqx_lock_drop(region, lock);
    return NULL;
}

TEST(the_last_stripe_is_watched_too_and_a_lock_that_was_dropped_is_reported_again)
{
    static struct mqx_lock_watchdog watchdog;
    struct mqx_held_lock held = {.pid = 0};
    start();
    mqx_lock_watchdog_long_us = 20000;
    for (int round = 0; round < 2; round++) {
        pthread_t thread;
        uint32_t step = 0;
        CHECK_INT(pthread_create(&thread, NULL, hold_stripe, &step), 0);
        WAIT_FOR(__atomic_load_n(&step, __ATOMIC_ACQUIRE) == 1);
        WAIT_FOR(mqx_lock_watchdog_check(&watchdog, &process.store->region, &held));
        CHECK_INT(held.rank, MQX_RANK_QUEUE);
        __atomic_store_n(&step, 2u, __ATOMIC_RELEASE);
        CHECK_INT(pthread_join(thread, NULL), 0);
        CHECK(!mqx_lock_watchdog_check(&watchdog, &process.store->region, &held));
    }
    mqx_lock_watchdog_long_us = 5000000;
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST_MAIN()
