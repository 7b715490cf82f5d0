/*
 * yield.c - see yield.h. One hook per thread, in ordinary thread-local storage; it is touched once
 * a call.
 */
#include "yield.h"

MQX_THREAD_LOCAL mqx_yield_hook armed_hook;
MQX_THREAD_LOCAL void *armed_arg;

void mqx_yield_arm(mqx_yield_hook hook, void *arg)
{
    armed_hook = hook;
    armed_arg = arg;
}

void mqx_about_to_block(void)
{
    const mqx_yield_hook hook = armed_hook;
    armed_hook = NULL; /* at most once a call, also when the hook itself comes back here */
    if (hook != NULL) {
        hook(armed_arg);
    }
}
