/*
 * mapping_cache.h - the mapping of a region that a process has left, kept for its next attachment.
 *
 * A process that attaches again and again, as the tasks of Spark do in one worker, touches the same
 * pages each time: to map tens of thousands of them anew costs more than everything else of an
 * attachment. The kept mapping is memory and nothing else: no life lock, no slot, no descriptor. It
 * does keep the memory of a region that has been unlinked meanwhile, until the process attaches to
 * another one or ends.
 *
 * Invariants
 *   1. One a process at most, of one that asked for it (mqe_settings.keep_mapping).
 *   2. It is given only for the file that it maps: as long as there is a mapping, no other file has
 *      its device and inode.
 *   3. A forked child has none: regions are not inherited (MADV_DONTFORK), and what is known of the
 *      mapping lies in a page that a fork wipes.
 *
 * Locks: a process-local one, last in every order.
 */
#ifndef PENSTOCK_KEPT_H
#define PENSTOCK_KEPT_H

#include "os/io.h"

/* Keeps the mapping instead of unmapping it; one that was kept before is unmapped. */
void mqx_mapping_cache_put(struct mqx_io *io, const struct mqx_io_stat *file, void *base,
                           uint64_t size);

/* The mapping of that file, which is the caller's from now on; NULL: none. One of another file is
 * unmapped. */
void *mqx_mapping_cache_take(struct mqx_io *io, const struct mqx_io_stat *file);

/* Unmaps what is kept: who makes a region anew has seen that the old one is nobody's any more. */
void mqx_mapping_cache_drop(void);

#endif
