/* Claims of fork_guard.c: a forked child finds no owner of its parent and every local lock free. */
#include "os/fork_guard.h"
#include "base/clock.h"
#include "base/error.h"
#include "fixtures/harness.h"

#include <pthread.h>

static int owners[MQX_FORK_GUARDS_MAX + 1];

/* body() in a forked child: true when it returned true. */
static bool in_child(bool (*body)(void))
{
    int status = 0;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        _exit(body() ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static bool child_owns_nothing_and_may_register(void)
{
    if (!mqx_forked(&owners[0]) || !mqx_forked(&owners[1])) {
        return false;
    }
    return mqx_fork_guard_add(&owners[1]) == MQX_OK && !mqx_forked(&owners[1]) &&
           mqx_forked(&owners[0]);
}

TEST(a_child_owns_nothing_of_its_parent_and_may_register_for_itself)
{
    CHECK(mqx_forked(&owners[0]));
    CHECK_INT(mqx_fork_guard_add(&owners[0]), 0);
    CHECK(!mqx_forked(&owners[0]));
    CHECK(mqx_forked(&owners[1]));
    CHECK(in_child(child_owns_nothing_and_may_register));
    CHECK(!mqx_forked(&owners[0]));
    mqx_fork_guard_remove(&owners[0]);
    CHECK(mqx_forked(&owners[0]));
    mqx_fork_guard_remove(&owners[0]); /* once more does nothing */
}

TEST(there_is_room_for_so_many_owners_and_a_removed_one_makes_room)
{
    for (int i = 0; i < MQX_FORK_GUARDS_MAX; i++) {
        CHECK_INT(mqx_fork_guard_add(&owners[i]), 0);
    }
    CHECK_INT(mqx_fork_guard_add(&owners[MQX_FORK_GUARDS_MAX]), MQRC_RESOURCE_PROBLEM);
    mqx_fork_guard_remove(&owners[3]);
    CHECK_INT(mqx_fork_guard_add(&owners[MQX_FORK_GUARDS_MAX]), 0);
    for (int i = 0; i <= MQX_FORK_GUARDS_MAX; i++) {
        CHECK(mqx_forked(&owners[i]) == (i == 3));
        mqx_fork_guard_remove(&owners[i]);
    }
}

static uint64_t *page;

static bool page_is_zero(void)
{
    return page[0] == 0 && page[511] == 0;
}

TEST(a_wiped_page_reads_as_zeroes_in_a_child_alone)
{
    void *at = NULL;
    CHECK_INT(mqx_fork_wiped_page(&at), 0);
    page = at;
    CHECK(page_is_zero());
    page[0] = page[511] = 7;
    CHECK(in_child(page_is_zero));
    CHECK(page[0] == 7 && page[511] == 7);
}

static struct mqx_local_lock lock;
static uint64_t shared_count;

static void *count_under_the_lock(void *arg)
{
    for (int i = 0; i < 200; i++) {
        mqx_local_take(&lock);
        shared_count += 1;
        mqx_local_drop(&lock);
    }
    return arg;
}

TEST(threads_exclude_each_other)
{
    pthread_t threads[4];
    shared_count = 0;
    for (int i = 0; i < 4; i++) {
        CHECK_INT(pthread_create(&threads[i], NULL, count_under_the_lock, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        CHECK_INT(pthread_join(threads[i], NULL), 0);
    }
    CHECK_INT(shared_count, 800);
    CHECK_INT(lock.owner, 0);
}

static bool child_finds_it_free(void)
{
    if (!mqx_local_take_for(&lock, 0)) {
        return false;
    }
    mqx_local_drop(&lock);
    return lock.owner == 0;
}

TEST(a_child_finds_the_lock_free_that_its_parent_holds_and_a_thread_waits_as_long_as_it_says)
{
    mqx_local_take(&lock);
    CHECK(in_child(child_finds_it_free));
    const uint64_t before = mqx_clock_monotonic_us();
    CHECK(!mqx_local_take_for(&lock, 20000));
    CHECK(mqx_clock_monotonic_us() - before >= 20000);
    mqx_local_drop(&lock);
    CHECK(mqx_local_take_for(&lock, 0));
    mqx_local_drop(&lock);
}

TEST_MAIN()
