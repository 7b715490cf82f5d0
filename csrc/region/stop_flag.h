/*
 * stop_flag.h - stopping the queue manager in every attached process, and why it was stopped.
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
 * The cause of a BROKEN stop is kept beside the flag: the call that failed, its errno, the process
 * and its program. The first process to stop writes it, before it sets the flag, so whoever sees
 * the flag finds it; texts of 2009 and 2059 and the error log name it. A process that dies while it
 * writes leaves no cause, and a cause that a stray pointer has damaged is not shown.
 *
 * Locks: none; may be called with any locks held.
 */
#ifndef PENSTOCK_STOP_FLAG_H
#define PENSTOCK_STOP_FLAG_H

#include "base/assert.h"
#include "base/atomic.h"
#include "region/layout.h"

enum { MQX_STOP_TEXT = 256 }; /* bytes that mqx_region_stop_cause() fills at most, NUL included */

/* Sets the stop flag (MQX_STOP_*) and wakes every sleeper of the region. */
void mqx_region_stop(const struct mqx_region *region, uint32_t how);

/* A BROKEN stop because `call` failed ("writing the journal"); `error` is its errno, 0 for none. */
void mqx_region_stop_because(const struct mqx_region *region, const char *call,
                             int error) MQX_COLD;

/* The same as mqx_region_stop() when only the region's header is known; sleepers notice within
 * their bound. */
void mqx_region_stop_header(struct mqx_header *header, uint32_t how);

/* "writing the journal: Input/output error (errno 5), in process 4711 (python3)"; empty when no
 * process has left a cause. False then. */
bool mqx_region_stop_cause(const struct mqx_region *region, char out[MQX_STOP_TEXT]);

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
