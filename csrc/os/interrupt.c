/*
 * interrupt.c - see interrupt.h.
 */
#include "os/interrupt.h"

#include "base/assert.h"

MQX_THREAD_LOCAL bool interrupt_allowed;
MQX_THREAD_LOCAL bool interrupt_taken;
MQX_THREAD_LOCAL uint64_t interrupted_us;

void mqx_interrupt_allow(bool allowed)
{
    interrupted_us = allowed || interrupt_taken ? interrupted_us : 0;
    interrupt_allowed = allowed;
    interrupt_taken = false;
    MQX_ASSERT(interrupt_allowed == allowed);
}

bool mqx_interrupt_take(uint64_t waited_us)
{
    const bool allowed = interrupt_allowed;
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
