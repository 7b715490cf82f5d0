/*
 * reclaim.h - returns memory that nobody uses to the file system, in service.
 *
 * One step of maintenance, at most twice a second:
 *
 *   quiet lists   A stripe's free list whose head has not moved since the last look is returned to
 *                 the extents: its queues have neither taken nor given an item of that class.
 *   free extents  Of the extents that were free at every moment of a window, which is the last
 *                 MQX_STRETCHES stretches of time, all but MQX_EXTENTS_KEPT are punched: loads that
 *                 come and go every few seconds keep their memory, which takes a third as long to
 *                 make and to map as the puts that need it. Where memory was refused lately
 *                 (MQX_SHORT_LOOKS), a window is one look. A stretch ends at the next look while
 *                 more is free than a step punches.
 *
 * So the file has no memory but that of the extents in use, a little kept ahead, and what was laid
 * out at the start, less than ten seconds after the queues have been emptied: two looks, the rest
 * of a stretch, and a window. A survivor keeps its extent.
 *
 * Locks. The maintenance lock is held by the caller; stripe, growth and arena locks are taken
 * inside, one after another.
 */
#ifndef PENSTOCK_RECLAIM_H
#define PENSTOCK_RECLAIM_H

#include "region/region.h"

enum {
    MQX_EXTENTS_KEPT = 16, /* free extents of each pool that stay as they are: 2 MiB */
    MQX_STRETCH_US = 900000,
};

/* Nothing when the last step was less than half a second ago. 2009 2059 */
int mqx_reclaim_step(struct mqx_region *region, uint64_t now_us) MQX_MUST_USE;

/* Sees to it that a pool has a step of its area, and at least an extent, of free memory. 2071 */
int mqx_reclaim_ahead(struct mqx_region *region, enum mqx_pool_no no) MQX_MUST_USE;

#endif
