/* Claims of lock_watchdog.h: which lock is reported, and how often. */
#include "fixtures/store_fixture.h"

#include "base/clock.h"
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

struct holder { /* a thread that has a lock */
    pthread_t thread;
    struct mqx_lock *lock;
    uint32_t step;
};

static void *hold(void *arg)
{
    struct holder *holder = arg;
    struct mqx_region *region = &process.store->region;
    if (mqx_lock_take(region, holder->lock) != 0) {
        return NULL;
    }
    __atomic_store_n(&holder->step, 1u, __ATOMIC_RELEASE);
    while (__atomic_load_n(&holder->step, __ATOMIC_ACQUIRE) == 1) {
        usleep(1000);
    }
    mqx_lock_drop(region, holder->lock);
    return NULL;
}

static void begin_hold(struct holder *holder, struct mqx_lock *lock)
{
    *holder = (struct holder){.lock = lock};
    CHECK_INT(pthread_create(&holder->thread, NULL, hold, holder), 0);
    WAIT_FOR(__atomic_load_n(&holder->step, __ATOMIC_ACQUIRE) == 1);
}

static void end_hold(struct holder *holder)
{
    __atomic_store_n(&holder->step, 2u, __ATOMIC_RELEASE);
    CHECK_INT(pthread_join(holder->thread, NULL), 0);
}

/* The slow lock of that name, as `penstock status` has it; false when there is none. */
static bool is_slow(const char *name, struct mqx_held_lock *out)
{
    struct mqx_region *region = &process.store->region;
    bool found = false;
    for (uint32_t i = 0; i < mqx_lock_watchdog_count(region) && !found; i++) {
        found = mqx_lock_watchdog_slow(region, i, out) && strcmp(out->name, name) == 0;
    }
    return found;
}

TEST(every_lock_that_can_hold_others_up_is_watched_and_named)
{
    start();
    struct mqx_header *header = process.store->region.header;
    struct {
        struct mqx_lock *lock;
        const char *name;
    } const watched[] = {
        {&header->maintenance_lock, "maintenance"}, {&header->journal.flush_lock, "flush"},
        {&header->growth_lock, "growth"}, {&header->journal.roll_lock, "roll"},
        {&header->catalog_lock, "catalog"}, {&header->slots_lock, "slots"},
        {&header->arena_lock, "arena"}, {&header->journal.ring_lock, "ring"},
        {&process.store->region.stripes[0].lock, "queues"},
    };
    mqx_lock_watchdog_long_us = 20000;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(watched); i++) {
        static struct mqx_lock_watchdog watch;
        struct mqx_held_lock held = {.pid = 0};
        struct holder holder;
        CHECK(!is_slow(watched[i].name, &held));
        begin_hold(&holder, watched[i].lock);
        WAIT_FOR(mqx_lock_watchdog_check(&watch, &process.store->region, &held));
        CHECK_INT(held.pid, getpid());
        CHECK_STR(held.name, watched[i].name);
        CHECK(held.program[0] != '\0');
        CHECK(is_slow(watched[i].name, &held));
        end_hold(&holder);
        CHECK(!is_slow(watched[i].name, &held));
    }
    mqx_lock_watchdog_long_us = 5000000;
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

static void *tell_id(void *arg)
{
    *(int32_t *)arg = mqx_thread_id();
    return NULL;
}

TEST(a_lock_that_is_never_waited_for_and_whose_owner_does_not_exist_stops_the_queue_manager)
{
    static struct mqx_lock_watchdog watch;
    struct mqx_held_lock held;
    pthread_t thread;
    int32_t gone = 0;
    start();
    struct mqx_region *region = &process.store->region;
    struct mqx_lock *lock = &region->header->maintenance_lock;
    const uint64_t before = mqx_lock_stranger_us;
    CHECK_INT(pthread_create(&thread, NULL, tell_id, &gone), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    WAIT_FOR(!mqx_thread_exists(getpid(), gone));
    lock->mutex.__data.__lock = gone;
    mqx_store_relaxed(&lock->holder, 3u);
    mqx_lock_stranger_us = 20000;
    WAIT_FOR((mqx_lock_watchdog_check(&watch, region, &held), mqx_region_stopped(region) != 0));
    mqx_lock_stranger_us = before;
    const char *text = mqx_region_damage_text(region);
    CHECK(text != NULL && strstr(text, "maintenance lock, thread") != NULL);
    (void)fixture_detach(&process, NULL);
}

TEST(a_leader_that_flushes_and_a_round_that_reaps_are_not_reported)
{
    static struct mqx_lock_watchdog watch;
    struct mqx_held_lock held;
    struct holder leader, round;
    start();
    struct mqx_header *header = process.store->region.header;
    mqx_lock_watchdog_long_us = 0;
    begin_hold(&leader, &header->journal.flush_lock);
    begin_hold(&round, &header->maintenance_lock);
    for (int i = 0; i < 100; i++) {
        mqx_add_relaxed(&header->journal.flush_word, 1u);
        mqx_add_relaxed(&header->last_reap_us, UINT64_C(1));
        CHECK(!mqx_lock_watchdog_check(&watch, &process.store->region, &held));
    }
    end_hold(&leader);
    end_hold(&round);
    mqx_lock_watchdog_long_us = 5000000;
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(who_waits_notes_the_owner_and_the_first_of_all_who_wait_long_logs_it)
{
    struct mqx_held_lock held = {.pid = 0};
    struct holder leader;
    start();
    struct mqx_region *region = &process.store->region;
    struct mqx_lock *lock = &region->journal->flush_lock;
    const uint64_t now_us = mqx_clock_monotonic_us();
    begin_hold(&leader, lock);
    mqx_lock_watchdog_waited(region, lock, now_us);
    CHECK(is_slow("flush", &held));
    CHECK_INT(held.pid, getpid());
    CHECK_INT(lock->slow_holder & MQX_SLOW_LOGGED, 0); /* not for 5 s yet */
    mqx_lock_watchdog_long_us = 0;
    mqx_lock_watchdog_waited(region, lock, now_us);
    CHECK((lock->slow_holder & MQX_SLOW_LOGGED) != 0);
    mqx_lock_watchdog_waited(region, lock, now_us);
    CHECK(is_slow("flush", &held));
    end_hold(&leader);
    CHECK(!is_slow("flush", &held));
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
