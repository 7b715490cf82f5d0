/*
 * huge_blocks.h - which stretches of the region's file the system gave as huge pages.
 *
 * Purpose. The index and the bodies of a deep queue lie in memory that is read all over; a page of
 * 2 MiB saves the walk through the page tables beside each read (os/huge_pages.h). So an area that
 * grows by blocks asks for them as such, where the system lends huge pages.
 *
 * Terms
 *   block   MQX_HUGE_BLOCK bytes of the file, at a multiple of their size.
 *   marked  a bit of header.huge_block is set: the block came as a huge page, and no part of it has
 *           been punched since.
 *
 * What it costs. Nothing that an area would not have taken: only blocks that lie wholly in what it
 * grows by are asked for, and it grows by 2 MiB from a size of 16 MiB on (region.c). Growth then
 * ends at the end of a block, so that the next one begins there. An extent in a block is punched as
 * any other: the kernel splits the page, and memory of the extent goes back.
 *
 * Order and deaths. A block is allocated before the area's capacity covers it, as other memory is,
 * and what it refuses is allocated in small pages by the caller; so a death leaves memory above the
 * capacity at most, which the next growth uses. The bits are for the status alone, no address and
 * no decision follows from them: plain atomic stores without undo entries. One is set after its
 * block has come, and cleared before an extent in it is punched; a death between leaves one bit
 * less than there are huge pages, or the clear bit of a whole one.
 *
 * Locks. The growth lock; the count is taken without a lock. No errors: a block that does not come
 * is one of small pages.
 */
#ifndef PENSTOCK_HUGE_BLOCKS_H
#define PENSTOCK_HUGE_BLOCKS_H

#include "os/huge_pages.h"
#include "region/layout.h"

enum { MQX_HUGE_FROM = 18 << 20 }; /* an area of this size has grown by a block */

/* Where an area that begins at `offset` of the file ends its growth from `capacity` to `target`
 * bytes: at most there, at least at `wanted`, at the end of a block when it grows by one. */
uint64_t mqx_huge_target(uint64_t offset, uint64_t capacity, uint64_t wanted, uint64_t target);

/* Allocates the whole blocks among `bytes` bytes of the file from `offset` on, which have no
 * memory, as far as the system gives them, and marks them. Growth lock. */
void mqx_huge_back(const struct mqx_region *region, uint64_t offset, uint64_t bytes);

/* These bytes are about to be punched. Growth lock. */
void mqx_huge_split(const struct mqx_region *region, uint64_t offset, uint64_t bytes);

/* Bytes of the marked blocks. */
uint64_t mqx_huge_bytes(const struct mqx_region *region);

/* Why there are none, or "": the system lends none, or the region is small, or there were none. */
void mqx_huge_explain(const struct mqx_region *region, char out[MQX_HUGE_TEXT]);

#endif
