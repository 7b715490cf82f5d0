/*
 * orphan_region.h - reading the region that dead processes left behind, as untrusted input (rules 28, 46).
 *
 * The file is read with read calls, never mapped: a hole or a cut file is then a status and no
 * signal. Changes that a dead owner had half made (undo lists that are not empty) are taken back in
 * the copies, not in the file.
 *
 * What is wanted from it
 *   - persistent messages that units had got which will not end: BackoutCount + 1. A unit is one of
 *     a context in state ACTIVE or BACKING_OUT, or DECIDED with a COMMIT record that never became
 *     durable, or PREPARED, when that is not durable, or when it was being backed out; calls
 *     outside
 *     syncpoint (context.autocommit) give back uncounted.
 *   - BackoutCounts whose BACKOUT record was not yet durable: when there may be some, every
 *     persistent message present with a count above 0.
 *   - how many non-persistent messages go with it (uncommitted puts do not count, but those of
 *     prepared units do, and what those got does not: it has images in the journal).
 * Nothing here is needed for persistent messages themselves; whatever does not make sense is left
 * out.
 */
#ifndef PENSTOCK_ORPHAN_H
#define PENSTOCK_ORPHAN_H

#include "recovery/restart.h"
#include "region/region.h"

struct mqx_orphan_region_region {
    bool read;              /* it was this directory's region, complete and ready */
    bool broken;            /* it had been stopped by a failed flush or the like (rule 14) */
    uint64_t np_discarded;
    struct mqx_in_flight *in_flight; /* ascending by number, each number once */
    size_t in_flight_count;
};

/* Fills *out (release with mqx_orphan_region_free). A file that is not there, not ours, or not understood
 * leaves it empty. `incarnation` and `qm_id` must match. */
void mqx_orphan_region_read(struct mqx_io *io, int dir, const char *name,
                            const uint8_t incarnation[16], const uint8_t qm_id[16],
                            struct mqx_orphan_region_region *out);
void mqx_orphan_region_free(struct mqx_orphan_region_region *orphan);

/* The pid of a process in the table of that region file which is still alive, 0 when there is none
 * or the file is no region. */
int32_t mqx_orphan_region_living(struct mqx_io *io, int dir, const char *name);

#endif
