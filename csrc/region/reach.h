/*
 * reach.h - how much of the region this process has mapped, and may touch.
 *
 * Purpose. Usually a process maps the whole region at once: address space costs nothing. A process
 * whose address space is limited (RLIMIT_AS) maps it in steps, as the areas grow, and no further
 * than it may. What it cannot map stops nobody else: others grow the region as they need, and this
 * process alone gets 2071.
 *
 * Terms
 *   usable     bytes from the start of an area that this process may touch: mapped here, and backed
 *              by memory when they were last compared with the area's capacity.
 *   mapped     bytes from the start of an area that are mapped here, backed by memory or not.
 *   stepwise   the region is mapped in steps, at an address far from where the kernel and the heap
 *              put things, so that each step finds its place behind the one before it.
 *   ahead      what a stepwise process maps beyond each capacity before it enters a call, so that
 *              others may grow the region during the call.
 *   lost       a call in progress met memory that could not be mapped. It was abandoned between two
 *              micro-transactions, as if its thread had died; so this attachment does nothing any
 *              more, and what it left is cleaned up when it leaves or its process ends.
 *
 * Invariants
 *   1. usable <= mapped <= the area's address space; all three only grow.
 *   2. Who holds a lock of the region has mapped everything that was memory when it was taken:
 *      mqx_lock_take() sees to that. So nothing that is linked under a lock is out of reach there.
 *   3. A value of the region never makes this process touch what it has not mapped, nor what has no
 *      memory: of a capacity only what is sure counts (area.h).
 *
 * Locks: a process-local one around a step, last in every order.
 */
#ifndef PENSTOCK_REACH_H
#define PENSTOCK_REACH_H

#include "base/assert.h"
#include "base/atomic.h"
#include "region/layout.h"

/* Maps a region file of `size` bytes: all of it, or, when there is not so much address space, its
 * first `first` bytes (*stepwise). 0 or a negated errno. */
int mqx_reach_begin(struct mqx_io *io, int fd, uint64_t size, uint64_t first, void **base,
                    bool *stepwise) MQX_MUST_USE;
/* Maps what lies between the first bytes and the areas; the header has been verified. */
int mqx_reach_fixed_part(struct mqx_io *io, int fd, void *base, uint64_t first) MQX_MUST_USE;
/* Unmaps the region, of which the part before the areas is mapped. */
void mqx_reach_end(struct mqx_region *region);

/* Called when `end` is beyond what is usable: compares with the capacity, and maps what is new.
 * False when there is no such memory, or none that this process can map. */
bool mqx_reach_extend(const struct mqx_region *region, enum mqx_area_kind kind, uint64_t end);

/* Of a stepwise process: maps everything that is memory now, and a way ahead (`with_room`). */
bool mqx_reach_follow(const struct mqx_region *region, bool with_room);

/* Is the byte at that offset of the file mapped here? */
bool mqx_reach_has(const struct mqx_region *region, uint64_t offset);

/* Is the descriptor still the region's? The program around the core may have closed it. */
bool mqx_reach_owns_fd(const struct mqx_region *region);

/* Marks the attachment as lost. */
void mqx_reach_lose(const struct mqx_region *region) MQX_COLD;
/* MQRC_STORAGE_NOT_AVAILABLE with a text that names the limit and what to change. */
int mqx_reach_refused(const struct mqx_region *region) MQX_COLD;

/* Do the first `end` bytes of the area lie in memory that this process may touch? */
static MQX_ALWAYS_INLINE bool
mqx_area_has(const struct mqx_region *region, enum mqx_area_kind kind, uint64_t end)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(kind < MQX_AREA_COUNT);
    const bool usable = end <= mqx_load_acquire(&region->reach.usable[kind]);
    return MQX_LIKELY(usable) ? true : mqx_reach_extend(region, kind, end);
}

/* Is everything mapped that is memory now? */
static inline bool mqx_reach_all(const struct mqx_region *region)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(region->header != NULL);
    return MQX_LIKELY(!region->reach.stepwise) ? true : mqx_reach_follow(region, false);
}
/* Is there room, too, for what others may grow during a call? Not when the attachment is lost. */
static inline bool mqx_reach_ahead(const struct mqx_region *region)
{
    MQX_ASSERT(region->base != NULL);
    MQX_ASSERT(region->header != NULL);
    return MQX_LIKELY(!region->reach.stepwise)
               ? true
               : mqx_load_acquire(&region->reach.lost) == 0 && mqx_reach_follow(region, true);
}

#endif
