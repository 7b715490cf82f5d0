/* Claims of interrupt.h. */
#include "fixtures/harness.h"
#include "os/interrupt.h"

#include <pthread.h>

static void *take(void *arg)
{
    *(bool *)arg = mqx_interrupt_take(0);
    return NULL;
}

TEST(a_call_is_interrupted_once_and_only_when_it_was_allowed)
{
    CHECK(!mqx_interrupt_take(0));
    CHECK(!mqx_interrupt_was_taken());
    mqx_interrupt_allow(true);
    CHECK(!mqx_interrupt_was_taken());
    CHECK(mqx_interrupt_take(0));
    CHECK(!mqx_interrupt_take(0));
    CHECK(mqx_interrupt_was_taken());
    mqx_interrupt_allow(true);
    mqx_interrupt_allow(false);
    CHECK(!mqx_interrupt_take(0));
}

TEST(a_call_that_may_be_interrupted_while_a_flag_is_set_is_interrupted_then_and_once)
{
    uint32_t flag = 0;
    mqx_interrupt_allow_while(&flag);
    CHECK(!mqx_interrupt_take(0));
    CHECK(!mqx_interrupt_was_taken());
    flag = 1;
    CHECK(mqx_interrupt_take(0));
    CHECK(!mqx_interrupt_take(0));
    CHECK(mqx_interrupt_was_taken());
    mqx_interrupt_allow_while(&flag);
    mqx_interrupt_allow(false);
    CHECK(!mqx_interrupt_take(0));
    flag = 0;
    mqx_interrupt_allow(true);
    CHECK(mqx_interrupt_take(0));
}

TEST(the_wish_belongs_to_the_thread)
{
    pthread_t thread;
    bool taken = true;
    mqx_interrupt_allow(true);
    CHECK_INT(pthread_create(&thread, NULL, take, &taken), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK(!taken);
    CHECK(mqx_interrupt_take(0));
}

static void be_interrupted_twice(void)
{
    mqx_interrupt_allow(true);
    CHECK(mqx_interrupt_take(500));
    mqx_interrupt_allow(false);
    mqx_interrupt_allow(true);
    CHECK_INT(mqx_interrupt_waited_us(), 500);
    CHECK(mqx_interrupt_take(600));
    mqx_interrupt_allow(false);
    CHECK_INT(mqx_interrupt_waited_us(), 1100);
}

TEST(the_time_of_interrupted_calls_adds_up_until_one_is_not_interrupted_or_not_repeated)
{
    be_interrupted_twice();
    mqx_interrupt_allow(true);
    CHECK_INT(mqx_interrupt_waited_us(), 1100);
    mqx_interrupt_allow(false); /* it returned */
    CHECK_INT(mqx_interrupt_waited_us(), 0);
    be_interrupted_twice();
    mqx_interrupt_allow(false); /* a signal handler has raised */
    CHECK_INT(mqx_interrupt_waited_us(), 0);
}

TEST_MAIN()
