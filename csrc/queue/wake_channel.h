/*
 * wake_channel.h - where the wake-ups of waiters go that have no thread.
 *
 * A waiter whose thread sleeps is woken by its futex word. Thousands of waiters of one event loop
 * have no thread that could sleep: they share a *channel*, whose descriptor the loop watches. A
 * waiter's context names its channel in wait_channel; who picks the waiter rings there.
 *
 * Terms
 *   channel   a context of the process, which lends its slot: the name of its socket
 *             (os/wake_socket.h) follows from that, and `channel_rung` collects who was picked. Its
 *             own wait_channel is its own slot, which tells the reaper to remove the name.
 *   ring      to set the waiter's bit in channel_rung, and to send a datagram when no bit was set
 *             before: many wake-ups, one system call.
 *   answer    to take the datagram and then all bits, and to look at those waiters.
 *
 * Protocol. The waker rings after the pick, with no lock held; so whoever answers sees the waiter
 * off its list. Datagram before bits in the answer, bits before datagram in the ring: a bit that an
 * answer has not seen is followed by a datagram that it has not taken.
 *
 * Death. A waker that dies between pick and ring, or between bit and datagram, leaves a waiter that
 * does not know: each channel looks at all its waiters once a second, as a thread does whose sleep
 * is bounded (rule 21).
 *
 * Names: "wake-", the region's name without its last part, incarnation and slot. A channel that was
 * freed and made again has the same name, and gets hints that were meant for the old one, which do
 * no harm.
 *
 * Locks: none.
 */
#ifndef PENSTOCK_WAKE_CHANNEL_H
#define PENSTOCK_WAKE_CHANNEL_H

#include "os/wake_socket.h"
#include "region/store.h"

/* The bit of a waiter in channel_rung. */
static inline uint64_t mqx_wake_bit(uint32_t waiter)
{
    return UINT64_C(1) << (waiter % 64);
}

/* The path of the channel's socket; false where there can be none: the queue manager's files are
 * not real ones, or the path of region_dir is too long. */
bool mqx_wake_channel_path(const struct mqx_region *region, uint32_t channel,
                           char out[MQX_WAKE_PATH]) MQX_MUST_USE;

/* After a pick, with no lock held. What is no channel is not rung. */
void mqx_wake_channel_ring(const struct mqx_region *region, uint32_t channel, uint32_t waiter);
/* All bits since the last answer. */
uint64_t mqx_wake_channel_answer(const struct mqx_region *region, uint32_t channel);

/* Removes the name of a channel's socket; one that is missing is no error. */
void mqx_wake_channel_unlink(const struct mqx_store *store, uint32_t channel);

#endif
