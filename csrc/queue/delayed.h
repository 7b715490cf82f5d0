/*
 * delayed.h - messages that become available later: the state DELAYED of a message.
 *
 * Terms
 *   due       the time before which no get and no browse finds the message. It is given by a put
 *             (ps_descriptor.due_us) or by a backout with a delay. The message keeps its position.
 *   delayed   committed, and not due yet.
 *   settle    to see whether a message that has a due time is to be delayed now: false, and it has
 *             none any more, when it is due.
 *
 * A message that is put in a unit, or got and backed out with a delay, carries its due time through
 * the states PUT and GOT (flag MQX_MSGF_DUE, message.due): it is visible when it is committed and
 * due, whichever comes last. Nothing here takes memory, so nothing fails.
 *
 * Locks. The stripe lock of the queue. mqx_delayed_fill() and mqx_delayed_settle() store plainly
 * into an entry that is in no list yet; the others are part of the caller's micro-transaction.
 */
#ifndef PENSTOCK_DELAYED_H
#define PENSTOCK_DELAYED_H

#include "queue/due_index.h"
#include "queue/id_index.h"

/* Is it in its queue, and in no unit and not locked? */
static inline bool mqx_delayed_or_available(const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
    return message->state == MQX_MSG_AVAILABLE || message->state == MQX_MSG_DELAYED;
}

/* Gives a fresh entry that due time; true. */
bool mqx_delayed_fill(const struct mqx_region *region, struct mqx_message *message,
                      uint64_t due_us);

/* Of a fresh entry, and of one in its queue. */
bool mqx_delayed_settle(const struct mqx_region *region, struct mqx_message *message) MQX_MUST_USE;
bool mqx_delayed_settle_guarded(struct mqx_stripe_guard *guard,
                                struct mqx_message *message) MQX_MUST_USE;

/* A GOT message gets that due time, in both of its forms (message.due). */
void mqx_delayed_set(struct mqx_stripe_guard *guard, struct mqx_message *message, uint64_t key_us,
                     uint64_t due_us);

/* A hidden message with a due time becomes DELAYED. */
void mqx_delayed_enter(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                       struct mqx_message *message);

/* A DELAYED message becomes AVAILABLE; `slot` is what mqx_due_index_first() found. 2009 (or 2071,
 * damage.h): the indexes say what cannot be true; the micro-transaction must be rolled back. */
int mqx_delayed_show(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                     uint32_t slot) MQX_MUST_USE;

/* Its due time as files have it; 0: none. */
uint64_t mqx_delayed_due_us(const struct mqx_message *message);

#endif
