/*
 * interrupt.c - see interrupt.h.
 */
#include "os/interrupt.h"

#include "base/assert.h"
#include "base/atomic.h"

MQX_THREAD_LOCAL bool interrupt_allowed;
MQX_THREAD_LOCAL bool interrupt_taken;
MQX_THREAD_LOCAL bool interrupt_at_once; /* only while allowed */
MQX_THREAD_LOCAL const uint32_t *interrupt_flag; /* only while it is set; NULL: always */
MQX_THREAD_LOCAL uint64_t interrupted_us;

void mqx_interrupt_allow(bool allowed)
{
    interrupted_us = allowed || interrupt_taken ? interrupted_us : 0;
    interrupt_allowed = allowed;
    interrupt_at_once = false;
    interrupt_taken = false;
    interrupt_flag = NULL;
    MQX_ASSERT(interrupt_allowed == allowed);
}

void mqx_interrupt_allow_while(const uint32_t *flag)
{
    MQX_ASSERT(flag != NULL);
    mqx_interrupt_allow(true);
    interrupt_flag = flag;
}

void mqx_interrupt_at_once(void)
{
    mqx_interrupt_allow(true);
    interrupt_at_once = true;
    MQX_ASSERT(interrupt_allowed);
}

bool mqx_interrupt_take_at_once(void)
{
    MQX_ASSERT(!interrupt_at_once || interrupt_allowed || interrupt_taken);
    return MQX_UNLIKELY(interrupt_at_once) && mqx_interrupt_take(0);
}

bool mqx_interrupt_take(uint64_t waited_us)
{
    const bool allowed = interrupt_allowed;
    if (MQX_UNLIKELY(interrupt_flag != NULL) && mqx_load_acquire(interrupt_flag) == 0) {
        return false;
    }
    interrupt_allowed = false; /* what the call does from here on is undoing */
    interrupt_taken = interrupt_taken || allowed;
    interrupted_us += allowed ? waited_us : 0;
    MQX_ASSERT(!interrupt_allowed);
    return allowed;
}

bool mqx_interrupt_was_taken(void)
{
    MQX_ASSERT(!(interrupt_taken && interrupt_allowed));
    return interrupt_taken;
}

uint64_t mqx_interrupt_waited_us(void)
{
    return interrupted_us;
}
