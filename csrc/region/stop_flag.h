/*
 * stop_flag.h - stopping the queue manager in every attached process.
 *
 * The flag is one word of the region's header. Once set it is never cleared; the next restart makes
 * a new region. Every call that could wait or that makes something durable examines it, so that
 * after a stop no process commits.
 *
 * Reasons, and what calls return then
 *
 *   MQX_STOP_BROKEN   failed flush, lock beyond repair, damage, end -p    2009
 *   MQX_STOP_ENDED    end -i                                              2162
 *
 * A BROKEN stop replaces an ENDED one, never the reverse.
 *
 * Locks: none; may be called with any locks held.
 */
#ifndef PENSTOCK_STOP_FLAG_H
#define PENSTOCK_STOP_FLAG_H

#include "base/assert.h"
#include "base/atomic.h"
#include "region/layout.h"

/* Sets the stop flag (MQX_STOP_*) and wakes every sleeper of the region. */
void mqx_region_stop(const struct mqx_region *region, uint32_t how);

/* The same when only the region's header is known; sleepers notice within their bound. */
void mqx_region_stop_header(struct mqx_header *header, uint32_t how);

/* MQX_RUNNING or MQX_STOP_*, as this process is to take it: a process that runs `end -i` continues
 * after the flag that it set itself. */
static inline uint32_t mqx_region_stopped(const struct mqx_region *region)
{
    const uint32_t how = mqx_load_acquire(&region->header->stopped);
    MQX_ASSERT(region->base != NULL);
    return MQX_UNLIKELY(how == MQX_STOP_ENDED && region->ending) ? (uint32_t)MQX_RUNNING : how;
}

/* MQRC_CONNECTION_BROKEN or MQRC_Q_MGR_STOPPING with a text when stopped, else 0. */
int mqx_region_stop_reason(const struct mqx_region *region);

#endif
