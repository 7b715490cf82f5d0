/*
 * test_lock_counts.c - how often each call takes which lock of the region: the table "What is taken
 * by whom" in csrc/LOCKING.md.
 *
 * The program is linked so that the core's calls of pthread_mutex_trylock() and _timedlock() come
 * here (tests/c/Makefile). A mutex that lies in the region is a struct mqx_lock, which knows its
 * rank; any other is process-local and is counted apart.
 */
#include "fixtures/batch_fixture.h"

/* of this thread */
static __thread uint32_t taken[MQX_RANK_COUNT];
static __thread uint32_t local;
static __thread bool counting;

static void count(const pthread_mutex_t *mutex)
{
    if (!counting) {
        return;
    }
    const struct mqx_region *region = engine_region();
    const unsigned char *at = (const unsigned char *)mutex;
    if (at < region->base || at >= region->base + region->size) {
        local += 1;
        return;
    }
    taken[((const struct mqx_lock *)(const void *)at)->rank] += 1;
}

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __real_pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    count(mutex);
    return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    const int err = __real_pthread_mutex_trylock(mutex);
    if (err == 0) {
        count(mutex);
    }
    return err;
}

int __wrap_pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
    const int err = __real_pthread_mutex_timedlock(mutex, until);
    if (err == 0) {
        count(mutex);
    }
    return err;
}

static void begin_count(void)
{
    memset(taken, 0, sizeof taken);
    local = 0;
    counting = true;
}

/* "queue 2 ring 1 flush 1": what was taken since begin_count(), in the order of ranks. */
static const char *counted(void)
{
    static const char *const name[MQX_RANK_COUNT] = {
        [MQX_RANK_MAINTENANCE] = "maintenance", [MQX_RANK_FLUSH] = "flush",
        [MQX_RANK_GROWTH] = "growth",           [MQX_RANK_ROLL] = "roll",
        [MQX_RANK_CATALOG] = "catalog",         [MQX_RANK_QUEUE] = "queue",
        [MQX_RANK_SLOTS] = "slots",             [MQX_RANK_ARENA] = "arena",
        [MQX_RANK_RING] = "ring",
    };
    static char text[200];
    size_t used = 0;
    counting = false;
    text[0] = '\0';
    for (int rank = 1; rank < MQX_RANK_COUNT; rank++) {
        if (taken[rank] != 0) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %u",
                                     used != 0 ? " " : "", name[rank], taken[rank]);
        }
    }
    if (local != 0) {
        (void)snprintf(text + used, sizeof text - used, "%slocal %u", used != 0 ? " " : "", local);
    }
    return text;
}

/* What the call takes when everything it needs has been made before: memory of the stripe, a
 * context of the pool, a segment of the journal. */
#define COUNT(call) (begin_count(), (void)((call) != 0), counted())

static struct queue warm_queue(void)
{
    engine_begin_real(); /* the file table in memory has a mutex */
    struct queue q = QUEUE("Q", 0);
    for (int persistent = 0; persistent < 2; persistent++) {
        CHECK_INT(PUT(q, .text = "warm", .persistent = persistent), 0);
        CHECK_INT(PUT(q, .text = "warm", .persistent = persistent), 0);
        CHECK_STR(drain(q), "warm warm");
    }
    return q;
}

TEST(a_non_persistent_put_or_get_takes_its_stripe_once_and_nothing_else)
{
    struct queue q = warm_queue();
    CHECK_STR(COUNT(PUT(q, .text = "a")), "queue 1");
    CHECK_STR(COUNT(TAKE(q)), "queue 1");
    CHECK_STR(got.text, "a");
    CHECK_STR(COUNT(TAKE(q)), "queue 1");
    CHECK_STR(got.text, "(2033)");
    CHECK_INT(PUT(q, .text = "b"), 0);
    CHECK_STR(COUNT(TAKE(q, .wait_us = 1000000)), "queue 1");
    CHECK_STR(got.text, "b");
}

TEST(a_durable_put_or_get_takes_its_stripe_twice)
{
    struct queue q = warm_queue();
    CHECK_STR(COUNT(PUT(q, .text = "a", .persistent = 1)), "flush 1 queue 2 ring 3");
    CHECK_STR(COUNT(TAKE(q)), "flush 1 queue 2 ring 3");
    CHECK_STR(got.text, "a");
}

TEST(a_durable_get_with_wait_takes_its_stripe_twice_when_the_message_is_there)
{
    struct queue q = warm_queue();
    CHECK_INT(PUT(q, .text = "a", .persistent = 1), 0);
    CHECK_STR(COUNT(TAKE(q, .wait_us = 1000000)), "flush 1 queue 2 ring 3");
    CHECK_STR(got.text, "a");
}

TEST(a_wait_in_vain_takes_the_stripe_to_list_itself_and_once_after_each_sleep)
{
    struct queue q = warm_queue();
    CHECK_STR(COUNT(TAKE(q, .wait_us = 1000)), "queue 2");
    CHECK_STR(got.text, "(2033)");
}

static void *put_after_a_while(void *arg)
{
    const struct queue *q = arg;
    struct ps_descriptor d;
    const struct ask ask = {.text = "late", .persistent = 1};
    (void)await_waiters(*q, 1);
    const int status = engine_put_with(*q, &ask, &d);
    return status == 0 ? NULL : arg;
}

TEST(a_get_that_sleeps_lists_itself_in_the_hold_in_which_it_found_nothing)
{
    struct queue q = warm_queue();
    pthread_t thread;
    void *failed = NULL;
    CHECK_INT(pthread_create(&thread, NULL, put_after_a_while, &q), 0);
    const char *text = COUNT(TAKE(q, .wait_us = 60000000));
    CHECK_INT(pthread_join(thread, &failed), 0);
    CHECK(failed == NULL);
    CHECK_STR(got.text, "late");
    CHECK_STR(text, "flush 1 queue 3 ring 3"); /* listed, claimed, removed */
}

TEST(in_a_unit_a_put_or_get_takes_its_stripe_once_and_the_commit_once_a_stripe)
{
    struct queue q = warm_queue();
    mqe_unit *unit = engine_unit();
    CHECK_STR(COUNT(PUT(q, .text = "a", .persistent = 1, .unit = unit)), "queue 1 ring 1");
    CHECK_STR(COUNT(PUT(q, .text = "b", .unit = unit)), "queue 1");
    CHECK_STR(COUNT(mqe_commit(unit)), "flush 1 queue 1 ring 3");
    CHECK_STR(COUNT(TAKE(q, .unit = unit)), "queue 1 ring 1");
    CHECK_STR(COUNT(TAKE(q, .unit = unit)), "queue 1");
    CHECK_STR(got.text, "b");
    CHECK_STR(COUNT(mqe_backout(unit)), "queue 1 ring 1");
}

TEST(a_long_non_persistent_put_takes_its_stripe_to_reserve_and_to_link)
{
    struct queue q = warm_queue();
    static char body[5000];
    memset(body, 'x', sizeof body - 1);
    CHECK_INT(PUT(q, .text = body), 0);
    CHECK_INT(strlen(TAKE(q)), sizeof body - 1);
    CHECK_STR(COUNT(PUT(q, .text = body)), "queue 2");
    CHECK_STR(COUNT(TAKE(q)), "queue 2");
    CHECK_INT(strlen(got.text), sizeof body - 1);
}

TEST(a_batch_takes_its_stripe_to_check_and_once_for_64_messages)
{
    struct queue q = warm_queue();
    batch_clear();
    for (int i = 0; i < 64; i++) {
        ADD(.text = "m");
    }
    CHECK_INT(put_all(q, NULL), 0);
    CHECK_INT(get_all(q, NULL), 0);
    CHECK_INT(batch.count, 64);
    batch_clear();
    for (int i = 0; i < 64; i++) {
        ADD(.text = "m");
    }
    CHECK_STR(COUNT(put_all(q, NULL)), "queue 2");
    batch_clear();
    CHECK_STR(COUNT(get_all(q, NULL)), "queue 2"); /* the second finds that there are no more */
    CHECK_INT(batch.count, 64);
}

TEST(a_browse_takes_its_stripe_once_and_the_cursor_of_its_handle)
{
    struct queue q = warm_queue();
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_STR(COUNT(TAKE(q, .flags = MQE_GET_BROWSE_FIRST)), "queue 1 local 1");
    CHECK_STR(got.text, "a");
}

TEST(open_and_close_take_the_slots_lock_alone)
{
    struct queue q = warm_queue();
    mqe_queue *handle = NULL;
    CHECK_INT(engine_close(engine_open(q, MQE_OUTPUT)), 0);
    begin_count();
    CHECK_INT(mqe_open_direct(engine.manager, q.slot, q.generation, MQE_OUTPUT, &handle), 0);
    CHECK_STR(counted(), "slots 2");
    CHECK_STR(COUNT(mqe_close(handle, MQE_CLOSE_KEEP)), "slots 2");
}

TEST(a_durable_batch_outside_a_unit_takes_the_ring_for_32_records_and_commits_once)
{
    struct queue q = warm_queue();
    batch_clear();
    for (int i = 0; i < 64; i++) {
        ADD(.text = "m", .persistent = 1);
    }
    CHECK_STR(COUNT(put_all(q, NULL)), "flush 1 queue 3 ring 5");
    batch_clear();
    CHECK_STR(COUNT(get_all(q, NULL)), "flush 1 queue 4 ring 5");
    CHECK_INT(batch.count, 64);
}

static const struct ps_xid *some_xid(void)
{
    static const struct ps_xid xid = {.format_id = 1, .gtrid_length = 1, .gtrid = {1}};
    return &xid;
}

TEST(a_prepared_unit_takes_the_slots_lock_for_its_xid_and_for_its_resolver)
{
    struct queue q = warm_queue();
    mqe_unit *unit = engine_unit();
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(PUT(q, .text = "a", .persistent = 1, .unit = unit), 0);
    CHECK_STR(COUNT(mqe_prepare(unit, some_xid(), 0)), "flush 1 slots 3 ring 3");
    CHECK_STR(COUNT(mqe_commit_prepared(engine.manager, some_xid(), 1)),
              "flush 1 queue 1 slots 4 ring 3");
    CHECK_STR(TAKE(q), "a");
}

TEST(definitions_take_the_catalog_lock_and_flush_once)
{
    struct queue q = warm_queue();
    const struct ps_object_name name = engine_name("NEW");
    mqe_manager *m = engine.manager;
    CHECK_STR(COUNT(mqe_define(m, &name, NULL, 0, &q.slot, &q.generation)),
              "flush 1 catalog 2 slots 1 arena 1 ring 3");
    CHECK_STR(COUNT(mqe_alter(m, q.slot, q.generation, &name, NULL, 0, 0, 0)),
              "flush 1 catalog 2 arena 2 ring 3");
    CHECK_STR(COUNT(mqe_delete(m, q.slot, q.generation, 0)),
              "flush 1 catalog 3 queue 5 slots 3 arena 1 ring 3");
}

TEST(status_takes_no_lock_and_verification_one_queue_at_a_time)
{
    struct queue q = warm_queue();
    struct mqe_queue_status status;
    struct mqe_manager_status all;
    CHECK_STR(COUNT(mqe_queue_status(engine.manager, q.slot, q.generation, &status)), "");
    CHECK_STR(COUNT(mqe_status(engine.manager, &all)), "");
    CHECK_STR(COUNT(mqe_check(engine.manager)), "catalog 1 queue 1 slots 1");
}

TEST(a_round_of_maintenance_without_work_takes_its_own_lock_and_the_ring_once)
{
    (void)warm_queue();
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_STR(COUNT(mqe_maintain(engine.manager)), "maintenance 1 ring 1");
}

TEST(the_fixture_is_cleared_away)
{
    counting = false;
    engine_end();
}

TEST_MAIN()
