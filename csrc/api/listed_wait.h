/*
 * listed_wait.h - gets that wait without a thread: mqe_channel and mqe_wait of engine.h.
 *
 * A get with MQE_GET_LISTED that finds nothing stays on the wait list of its queue and returns.
 * Between its calls the wait (mqe_wait) keeps what a waiting thread would have on its stack: the
 * context from the pool, whether that is listed, and whether it may owe a wake-up. The next call
 * goes on from there, or mqe_wait_end() gives everything back.
 *
 * Terms
 *   channel    what the loop watches (queue/wake_channel.h), and the waits that ring there.
 *   suspended  said of a wait that has a context: it is listed, or was picked, or its call was not
 *              allowed to wait or flush (MQE_INTERRUPTED) and is to be made again.
 *
 * Invariants
 *   1. A suspended wait is in one bucket of its channel, by its context; no other wait is in one.
 *   2. A wait that was woken for a message, and interrupted, keeps its wake-up: it is about to be
 *      called again. mqe_wait_end() hands it on.
 *
 * Locks: a process-local one for the buckets, with no lock of the region held; it is held for the
 * walk over those who may have been picked, too.
 */
#ifndef PENSTOCK_LISTED_WAIT_H
#define PENSTOCK_LISTED_WAIT_H

#include "api/get_attempt.h"
#include "os/fork_guard.h"
#include "queue/wake_channel.h"

enum { MQX_CHANNEL_BUCKETS = 64 };

struct mqe_channel {
    mqe_manager *manager;
    uint32_t context; /* whose slot it has */
    int fd;
    struct mqx_file_id file;
    struct mqx_local_lock lock;
    struct mqe_wait *bucket[MQX_CHANNEL_BUCKETS];
};

/* The call goes on from what its wait has; nothing when that has no context. */
void mqx_wait_resume(struct mqx_get_call *call);
/* The call ends: after MQE_LISTED and MQE_INTERRUPTED the wait keeps the context, else it has
 * none. */
void mqx_wait_suspend(struct mqx_get_call *call, int status);

#endif
