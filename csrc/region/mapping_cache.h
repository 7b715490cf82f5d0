/*
 * mapping_cache.h - the mapping of a region that a process has left, kept for its next attachment.
 *
 * A process that attaches again and again, as the tasks of Spark do in one worker, touches the same
 * pages each time: mapping tens of thousands of them again costs more than everything else of an
 * attachment. The kept mapping is memory and nothing else: no life lock, no slot, no descriptor. It
 * keeps the memory of a region alive that has been unlinked, until the process attaches to another
 * one or ends.
 *
 * Invariants
 *   1. At most one mapping per process, and only when it was requested
 *      (mqe_settings.keep_mapping).
 *   2. It is given only for the file that it maps: as long as there is a mapping, no other file has
 *      its device and inode.
 *   3. A forked child has none: regions are not inherited (MADV_DONTFORK), and what is known of the
 *      mapping lies in a page that a fork wipes.
 *
 * Locks: a process-local one, last in every order. No errors: a mapping that cannot be kept is
 * unmapped.
 */
#ifndef PENSTOCK_MAPPING_CACHE_H
#define PENSTOCK_MAPPING_CACHE_H

#include "os/io.h"

/* Keeps the mapping instead of unmapping it; one that was kept before is unmapped. */
void mqx_mapping_cache_put(struct mqx_io *io, const struct mqx_io_stat *file, void *base,
                           uint64_t size);

/* The kept mapping of that file, which belongs to the caller then; NULL: none. A mapping of another
 * file is unmapped. */
void *mqx_mapping_cache_take(struct mqx_io *io, const struct mqx_io_stat *file);

/* Unmaps what is kept: before a new region is created, since no process uses the old one then. */
void mqx_mapping_cache_drop(void);

#endif
