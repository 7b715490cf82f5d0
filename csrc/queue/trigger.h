/*
 * trigger.h - what the core knows of triggering: how many messages count, and which queues owe an
 * evaluation. The conditions of a trigger event, and its message, are the caller's (engine.h,
 * "triggers").
 *
 * Terms
 *   special queue  one with MQX_SPECIAL_TRIGGER: TRIGGER, and a TRIGTYPE other than NONE.
 *   to count       a message counts when its placement priority is TRIGMPRI or higher; on a queue
 *                  of MSGDLVSQ(FIFO), where placement says nothing, each does.
 *   due            somebody has to evaluate the conditions of the queue: its last handle for input
 *                  was closed, or a process was killed between a put and its evaluation.
 *   under way      an evaluation that a process has claimed: with a put, or because it was due.
 *
 * object.trigger_due
 *   bit 0        due
 *   bits 1..7    evaluations under way, MOST_UNDER_WAY at most
 *   bits 8..31   when the oldest of them began: seconds of the host's monotonic clock, modulo 2^24
 *
 * Those that are under way for OVERDUE_S seconds are due again: a process was killed, or is so slow
 * that a second trigger message does less harm than none.
 *
 * Invariants
 *   1. mqx_trigger_is_due() is true to one caller at a time; what was due, or overdue, is then one
 *      evaluation under way.
 *   2. A process that is killed while its evaluation is under way leaves it so.
 *   3. Nothing here changes what a put or get does.
 *
 * Locks: none but where stated; the fields are atomic. A value that a damaged region holds leads to
 * an evaluation too many or too few, no more.
 */
#ifndef PENSTOCK_TRIGGER_H
#define PENSTOCK_TRIGGER_H

#include "region/region.h"

/* Messages that count, put by units and got by units included, as they may come back. The stripe
 * lock of the queue, or as a hint without it. */
uint32_t mqx_trigger_count(const struct mqx_object *queue);

/* Of these, how many there were before the message was linked, without those that units have got.
 * Its evaluation is under way. Stripe lock. */
uint32_t mqx_trigger_arrived(struct mqx_object *queue, const struct mqx_message *message);

/* The last handle for input has been closed. */
void mqx_trigger_set_due(struct mqx_object *queue);

/* Is an evaluation due? Then it is the caller's, and under way. */
bool mqx_trigger_is_due(struct mqx_object *queue);

/* An evaluation has ended. What became due since stays. */
void mqx_trigger_settle(struct mqx_object *queue);

#endif
