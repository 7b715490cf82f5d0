/*
 * orphan_region.h - reading the region that dead processes left behind, as untrusted input (rules
 * 28, 46).
 *
 * Purpose. When every process has died the region file is still there. A restart does not need it
 * for persistent messages; it takes from it what the journal does not have:
 *   - persistent messages that units had got which will not end: BackoutCount + 1. Such a unit is
 *     one of a context in state ACTIVE or BACKING_OUT; or DECIDED with a COMMIT record that never
 *     became durable; or PREPARED when that is not durable, or when it was being backed out. Calls
 *     outside syncpoint (autocommit) give back uncounted.
 *   - BackoutCounts whose BACKOUT record was not yet durable: when there may be some, every
 *     persistent message present with a count above 0.
 *   - how many non-persistent messages are lost with it. Uncommitted puts do not count, but those
 *     of prepared units do; what those got does not: it has images in the journal.
 *
 * Terms
 *   orphan region   the region file of an earlier start, of which no process is attached. A memory
 *                   file (region/memory_file.h) is gone with the last process: only its reference
 *                   is left, and what the journal has not is lost, as after a reboot. Whether a
 *                   flush had failed is then not known, so it is assumed.
 *   undo entry      of a lock that was held at a death: the bytes before the half-made change.
 *   lost unit       one that will not end, as above.
 *
 * Invariants
 *   1. The file is read with read calls, never mapped, and never written: a hole or a cut file is a
 *      status and no signal.
 *   2. Changes that a dead owner had half made are undone in the copies.
 *   3. Every slot, count and offset read from it is checked against the file's size or the area's
 *      capacity before use; walks along lists are bounded by the number of messages.
 *   4. What does not make sense is left out. No error of this module stops a start.
 *
 * No locks. No status: an unreadable region leaves *out empty.
 */
#ifndef PENSTOCK_ORPHAN_H
#define PENSTOCK_ORPHAN_H

#include "recovery/restart.h"
#include "region/region.h"

struct mqx_orphan_region {
    bool read;              /* it was this directory's region, complete and ready */
    bool broken;            /* it had been stopped by a failed flush or the like, or cannot tell
                             * (rule 14) */
    uint64_t np_discarded;
    struct mqx_in_flight *in_flight; /* ascending by number, each number once */
    size_t in_flight_count;
};

/* Fills *out (release with mqx_orphan_region_free). A file that is not there, belongs to another
 * user or queue manager, or has another layout leaves it empty. `incarnation` and `qm_id` must
 * match. */
void mqx_orphan_region_read(struct mqx_io *io, int dir, const char *name,
                            const uint8_t incarnation[16], const uint8_t qm_id[16],
                            struct mqx_orphan_region *out);
void mqx_orphan_region_free(struct mqx_orphan_region *orphan);

/* Copies the attachment slots of that region file, MQX_PROCESS_MAX of them; `peers` are asked for a
 * memory file. False when it is missing, belongs to another user, or has another layout or
 * incarnation. */
bool mqx_orphan_region_processes(struct mqx_io *io, int dir, const char *name,
                                 const struct mqx_peers *peers, const uint8_t incarnation[16],
                                 struct mqx_process *out) MQX_MUST_USE;

/* The pid of a process that may still live in that region file by its life word, or, when it is a
 * memory file, may have it unseen; 0 when there is none, or the file is no region of this boot. */
int32_t mqx_orphan_region_live_pid(struct mqx_io *io, int dir, const char *name);

#endif
