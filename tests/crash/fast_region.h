/*
 * fast_region.h - a file table in memory whose shared region is always the same piece of memory.
 *
 * Recovering a disk state takes less time than the kernel needs to hand out and take back the pages
 * of a region. So the region of such a table is one buffer of the process, zeroed where it was
 * allocated when it is unmapped. At most one attachment at a time, by one process; regions do not
 * outlive it (a power cut leaves none).
 */
#ifndef PENSTOCK_TESTS_FAST_REGION_H
#define PENSTOCK_TESTS_FAST_REGION_H

#include "fixtures/memory_io.h"

/* The table over `files`, valid until the next call. region_size: of every region that will be
 * made. */
struct mqx_io *fast_region_table(struct memory_io *files, uint64_t region_size);

#endif
