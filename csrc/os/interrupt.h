/*
 * interrupt.h - whether the present call of a thread may be ended because a signal may have arrived
 * (crash-safety rule 53).
 *
 * Purpose. Signal handlers of Python run between calls. A call that waits for a process that is
 * stopped would keep them waiting as long. So a caller that wants to look at signals says so before
 * its call; a wait in which nothing is decided then ends after about a second with MQE_INTERRUPTED,
 * with nothing done, and the caller calls again.
 *
 * Waits ask: mqx_interrupt_take() is called where a second has passed, or a signal has ended a
 * sleep, and the call can still leave without a trace. Where something was decided, or is being
 * undone, waits do not ask.
 *
 * What a call does after that is undoing, and does not wait for what the call has given up:
 * mqx_interrupt_was_taken() says so until the caller takes its permission back.
 *
 * A wait with a longest time of its own goes on counting when it is called again: what calls have
 * waited that were interrupted is added up. Taking the permission back after another call ends the
 * sum; so does taking it back twice, for a caller that does not repeat its call.
 *
 * The maintenance thread asks in the same way whether its process leaves: its permission holds
 * while that is so.
 *
 * Threads: permission and time belong to the thread.
 */
#ifndef PENSTOCK_INTERRUPT_H
#define PENSTOCK_INTERRUPT_H

#include "base/base.h"

/* May the waits of this thread's next call end with MQE_INTERRUPTED? */
void mqx_interrupt_allow(bool allowed);
/* As allow(true), but only while the flag (atomic) is not 0: for a thread that gives up what it
 * waits for when its process leaves. */
void mqx_interrupt_allow_while(const uint32_t *flag);
/* As allow(true), but the call must not wait at all: it ends so where it would wait for the first
 * time, or flush. For the thread of an event loop, which has the call made again by another one. */
void mqx_interrupt_at_once(void);
/* Before a wait, where the call can still leave without a trace: true, once, when it must not
 * begin. */
bool mqx_interrupt_take_at_once(void);
/* True once, when they may: the caller, which has waited so long in this call, ends its wait. */
bool mqx_interrupt_take(uint64_t waited_us);
/* Has this call ended a wait that way? */
bool mqx_interrupt_was_taken(void);
/* What calls before this one, which it repeats, had waited when they were interrupted. */
uint64_t mqx_interrupt_waited_us(void);

#endif
