/*
 * region.h - the header of this folder: the shared region and what keeps it whole.
 *
 * Purpose. The region is a sparse file on tmpfs that every attached process maps at an address of
 * its own choice, for as long as it is attached: whole, or in steps where its address space is
 * limited (reach.h). It holds everything that is not the truth on disk: locks, object slots,
 * message index, bodies, the log ring, attachment slots (crash-safety rules 16-18, 22, 29).
 *
 * This header has the life of a region (create, open, grow, close) and includes what other folders
 * need for reading and changing it:
 *
 *   layout.h      header, stripes, areas, and the structs of all slots; terms and invariants
 *   access.h      checked access by slot or cell reference
 *   reach.h       how much of the region this process has mapped
 *   lock.h        robust locks and micro-transactions
 *   memory_file.h regions whose file is in memory and has no name
 *   stop_flag.h   stopping the queue manager in every process
 *   damage.h      validation of what was read from the region
 *
 * arena.h, message_body.h and store.h are included by name.
 *
 * Errors. 2071 when the file system of the region is full, when the region may not use more of the
 * control group's memory, and when this process may have no more address space; 2012 for a region
 * of another build, 2059 for a damaged header.
 */
#ifndef PENSTOCK_REGION_H
#define PENSTOCK_REGION_H

#include "format/format.h"
#include "region/access.h"
#include "region/damage.h"
#include "region/layout.h"
#include "region/lock.h"
#include "region/memory_file.h"
#include "region/stop_flag.h"

void mqx_region_default_plan(struct mqx_region_plan *plan);

/* Hash of every struct size and offset of the layout. */
uint64_t mqx_region_layout(void);

/* Creates the file `name` in directory `dir` (exclusively), or a memory file that it refers to,
 * lays it out and formats it; `ready` stays 0. 2071 with the sizes when the medium has not the room
 * for the first part. */
int mqx_region_create(struct mqx_io *io, int dir, const char *name,
                      const struct mqx_region_plan *plan, struct mqx_region *out) MQX_MUST_USE;
/* Maps an existing one and verifies magic, layout and size. `peers` are asked for a memory file
 * (memory_file.h). */
int mqx_region_open(struct mqx_io *io, int dir, const char *name, const struct mqx_peers *peers,
                    struct mqx_region *out) MQX_MUST_USE;
void mqx_region_close(struct mqx_region *region);
/* The same, but the mapping is kept for the next mqx_region_open() of this process
 * (mapping_cache.h). */
void mqx_region_leave(struct mqx_region *region);

/* Makes at least `bytes` of the area usable; takes the growth lock only. 2071 when it cannot. */
int mqx_region_grow(struct mqx_region *region, enum mqx_area_kind kind,
                    uint64_t bytes) MQX_MUST_USE;

/* Memory for `bytes` bytes of an area below its capacity, which a hole was punched into. The caller
 * holds the growth lock. 2071 when there is none. */
int mqx_region_back(struct mqx_region *region, enum mqx_area_kind kind, uint64_t at,
                    uint64_t bytes) MQX_MUST_USE;

#endif
