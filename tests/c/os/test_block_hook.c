/* Claims of block_hook.c: the hook is called once per call of its thread, and not when removed. */
#include "os/block_hook.h"
#include "fixtures/harness.h"

#include <pthread.h>

static void count_call(void *arg)
{
    *(int *)arg += 1;
    mqx_about_to_block(); /* as a hook that itself blocks would */
}

TEST(the_hook_is_called_once_until_it_is_armed_again)
{
    int calls = 0;
    mqx_about_to_block();
    mqx_block_hook_arm(count_call, &calls);
    CHECK_INT(calls, 0);
    mqx_about_to_block();
    mqx_about_to_block();
    CHECK_INT(calls, 1);
    mqx_block_hook_arm(count_call, &calls);
    mqx_about_to_block();
    CHECK_INT(calls, 2);
}

TEST(a_removed_hook_is_not_called)
{
    int calls = 0;
    mqx_block_hook_arm(count_call, &calls);
    mqx_block_hook_arm(NULL, NULL);
    mqx_about_to_block();
    CHECK_INT(calls, 0);
}

static void *block(void *arg)
{
    mqx_about_to_block();
    return arg;
}

TEST(a_hook_belongs_to_its_thread)
{
    pthread_t thread;
    int calls = 0;
    mqx_block_hook_arm(count_call, &calls);
    CHECK_INT(pthread_create(&thread, NULL, block, NULL), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(calls, 0);
    mqx_about_to_block();
    CHECK_INT(calls, 1);
}

static int never(void)
{
    return 0;
}

static int always(void)
{
    return 1;
}

TEST(a_spin_calls_the_hook_unless_the_rule_of_the_process_says_it_may_go_without)
{
    int calls = 0;
    mqx_spin_rule_set(NULL);
    mqx_about_to_spin(); /* no hook: nothing to call */
    mqx_block_hook_arm(count_call, &calls);
    mqx_about_to_spin();
    CHECK_INT(calls, 1);
    mqx_spin_rule_set(always);
    mqx_block_hook_arm(count_call, &calls);
    mqx_about_to_spin();
    CHECK_INT(calls, 1);
    mqx_about_to_block(); /* it is still installed */
    CHECK_INT(calls, 2);
    mqx_spin_rule_set(never);
    mqx_block_hook_arm(count_call, &calls);
    mqx_about_to_spin();
    mqx_about_to_block();
    CHECK_INT(calls, 3);
    mqx_spin_rule_set(NULL);
}

TEST_MAIN()
