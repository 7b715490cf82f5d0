/*
 * block_hook.c - see block_hook.h. One hook per thread, in thread-local storage that is touched
 * once a call.
 */
#include "os/block_hook.h"

#include "base/assert.h"
#include "base/atomic.h"

static mqx_spin_rule spin_rule; /* atomic */
MQX_THREAD_LOCAL mqx_block_hook armed_hook;
MQX_THREAD_LOCAL void *armed_arg;

void mqx_block_hook_arm(mqx_block_hook hook, void *arg)
{
    MQX_ASSERT(hook != NULL || arg == NULL);
    armed_hook = hook;
    armed_arg = arg;
}

void mqx_about_to_block(void)
{
    const mqx_block_hook hook = armed_hook;
    armed_hook = NULL; /* at most once a call, also when the hook itself calls this function */
    if (hook != NULL) {
        hook(armed_arg);
    }
}

void mqx_spin_rule_set(mqx_spin_rule rule)
{
    MQX_ASSERT(rule == NULL || armed_hook == NULL);
    mqx_store_release(&spin_rule, rule);
}

void mqx_about_to_spin(void)
{
    const mqx_spin_rule rule = mqx_load_acquire(&spin_rule);
    if (armed_hook != NULL && (rule == NULL || rule() == 0)) {
        mqx_about_to_block();
    }
}
