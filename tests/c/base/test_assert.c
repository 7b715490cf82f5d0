/* Claims of assert.c: an assertion that fails stops every registered store and ends the process
 * with a line that says where; one that holds does nothing. */
#include "base/assert.h"
#include "fixtures/harness.h"

#include <signal.h>
#include <sys/mman.h>

static void fail_an_assertion(void *arg)
{
    uint32_t *flags = arg;
    int answer = 41;

    mqx_assert_guard(&flags[0]);
    mqx_assert_guard(&flags[1]);
    mqx_assert_guard(&flags[2]);
    mqx_assert_unguard(&flags[1]);
    MQX_ASSERT(answer == 42);
}

TEST(a_failed_assertion_sets_every_stop_flag_names_the_condition_and_aborts)
{
    char text[600];
    uint32_t *flags = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(flags != MAP_FAILED);
    CHECK(test_dies(SIGABRT, fail_an_assertion, flags, text, sizeof text));
    CHECK(strstr(text, "answer == 42") != NULL);
    CHECK(strstr(text, "test_assert.c:") != NULL);
    CHECK_INT(flags[0], 1);
    CHECK_INT(flags[1], 0);
    CHECK_INT(flags[2], 1);
    munmap(flags, 4096);
}

static void register_too_many(void *arg)
{
    static uint32_t flags[MQX_STORES_MAX + 1];
    (void)arg;
    for (int i = 0; i <= MQX_STORES_MAX; i++) {
        mqx_assert_guard(&flags[i]);
    }
}

static void remove_a_stranger(void *arg)
{
    uint32_t flag = 0;
    (void)arg;
    mqx_assert_unguard(&flag);
}

TEST(a_guard_too_many_and_an_unknown_guard_are_caught)
{
    char text[600];

    CHECK(test_dies(SIGABRT, register_too_many, NULL, text, sizeof text));
    CHECK(test_dies(SIGABRT, remove_a_stranger, NULL, text, sizeof text));
}

static void pass_assertions(void *arg)
{
    (void)arg;
    int calls = 0;
    MQX_ASSERT(++calls == 1);
    MQX_ASSERT(calls == 1); /* evaluated once */
}

TEST(an_assertion_that_holds_does_nothing)
{
    char text[600];

    CHECK(!test_dies(SIGABRT, pass_assertions, NULL, text, sizeof text));
    CHECK_STR(text, "");
}

static void register_again_and_again(void *arg)
{
    uint32_t *flags = arg;
    for (int i = 0; i < 1000; i++) {
        mqx_assert_guard(&flags[0]);
        mqx_assert_unguard(&flags[0]);
    }
    mqx_assert_failed("planted", "here.c", 7);
}

TEST(a_removed_guard_leaves_room_for_another_and_is_not_set)
{
    char text[600];
    uint32_t *flags = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(flags != MAP_FAILED);
    CHECK(test_dies(SIGABRT, register_again_and_again, flags, text, sizeof text));
    CHECK(strstr(text, "here.c:7: planted") != NULL);
    CHECK_INT(flags[0], 0);
    munmap(flags, 4096);
}

TEST_MAIN()
