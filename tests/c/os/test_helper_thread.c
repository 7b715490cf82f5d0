/* Claims of helper_thread.h: it runs what it is given, takes no signal, and has ended after the
 * join. */
#include "os/helper_thread.h"

#include "base/atomic.h"
#include "fixtures/harness.h"

#include <signal.h>

struct work {
    pthread_t starter;
    uint32_t done;
    int blocked; /* of two signals */
    bool elsewhere;
};

static void *work(void *arg)
{
    struct work *out = arg;
    sigset_t mask;
    CHECK_INT(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    out->blocked = sigismember(&mask, SIGUSR1) + sigismember(&mask, SIGTERM);
    out->elsewhere = pthread_equal(pthread_self(), out->starter) == 0;
    mqx_store_release(&out->done, 1u);
    return NULL;
}

TEST(the_work_is_done_in_another_thread_that_blocks_signals_and_over_after_the_join)
{
    struct mqx_helper_thread helper = {.runs = false};
    struct work out = {.starter = pthread_self()};
    sigset_t before, after;
    CHECK_INT(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    CHECK(mqx_helper_thread_start(&helper, work, &out));
    CHECK(helper.runs);
    CHECK_INT(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    CHECK_INT(sigismember(&after, SIGUSR1), sigismember(&before, SIGUSR1));
    mqx_helper_thread_join(&helper);
    CHECK(!helper.runs);
    CHECK_INT(out.done, 1);
    CHECK_INT(out.blocked, 2);
    CHECK(out.elsewhere);
}

TEST(joining_none_returns_at_once)
{
    struct mqx_helper_thread helper = {.runs = false};
    mqx_helper_thread_join(&helper);
    CHECK(!helper.runs);
}

TEST_MAIN()
