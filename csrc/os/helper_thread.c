/*
 * helper_thread.c - see helper_thread.h.
 */
#include "os/helper_thread.h"

#include "base/assert.h"

#include <signal.h>

bool mqx_helper_thread_start(struct mqx_helper_thread *helper, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    MQX_ASSERT(!helper->runs);
    MQX_ASSERT(run != NULL);
    (void)sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) {
        return false;
    }
    helper->runs = pthread_create(&helper->thread, NULL, run, arg) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (helper->runs) {
        (void)pthread_setname_np(helper->thread, "penstock-helper");
    }
    return helper->runs;
}

void mqx_helper_thread_join(struct mqx_helper_thread *helper)
{
    MQX_ASSERT(helper != NULL);
    if (helper->runs) {
        (void)pthread_join(helper->thread, NULL);
        helper->runs = false;
    }
}
