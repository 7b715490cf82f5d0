/*
 * browse_lock.h - the message that a handle has locked by browsing it.
 *
 * A handle has at most one (handle.browse_lock, its message number in handle.browse_number). The
 * message is in state LOCKED: no other handle sees it; gets and browses under the cursor through
 * the handle itself do. The lock is no part of a unit of work and ends with the handle at the
 * latest.
 *
 * Invariant: a message in state LOCKED has unit = the slot of a handle whose browse_lock is the
 * message's slot and whose browse_number is its message number; both change in one
 * micro-transaction under the stripe lock.
 *
 * Locks: functions with a guard need the stripe lock of the queue; mqx_handle_unlock takes it.
 *
 * Damage: a message or handle that cannot be true stops the queue manager; nothing is done then.
 */
#ifndef PENSTOCK_BROWSE_LOCK_H
#define PENSTOCK_BROWSE_LOCK_H

#include "queue/queue.h"

/* Without a lock: may the handle have a message locked? */
static inline bool mqx_browse_lock_maybe(const struct mqx_region *region, uint32_t handle_slot)
{
    MQX_ASSERT(region != NULL);
    const struct mqx_handle *handle = mqx_handle(region, handle_slot);
    return handle != NULL && mqx_load_relaxed(&handle->browse_lock) != 0;
}

/* Slot of the message of that queue that the handle has locked, 0 when there is none. */
uint32_t mqx_browse_lock_find(const struct mqx_stripe_guard *guard, uint32_t object,
                              uint32_t handle_slot);

/* Locks an available message for a handle that has none locked. Committed. */
void mqx_browse_lock_set(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                         uint32_t handle_slot);

/* The handle gets the message that it has locked: it is made available; no other thread can take it
 * before the stripe lock is dropped. Nothing when it is not locked. Committed. */
void mqx_browse_lock_end(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                         uint32_t handle_slot);

/* Ends the browse lock of a handle, if there is one: the message is available to all, a waiter for
 * it is woken. Takes the stripe lock. True when there was one. */
bool mqx_handle_unlock(struct mqx_region *region, uint32_t handle_slot);

#endif
