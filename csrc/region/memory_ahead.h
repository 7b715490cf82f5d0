/*
 * memory_ahead.h - memory for message entries, made and touched by a second thread while a restart
 * reads the journal.
 *
 * Purpose. The entries of a million messages are 32,768 pages of shared memory. To allocate them
 * and to map each at its first touch is a third of a restart after an orderly end. Both can be done
 * before the entries are filled, on another processor: the helper grows the area of messages up to
 * what is wanted, piece by piece, and populates each piece.
 *
 * Invariants
 *   1. What the helper does is what the loading would do later: growths of the area, under the
 *      growth lock, within all limits. It writes nothing else into the region.
 *   2. Without the helper (one processor, a small backlog, a table of files that cannot populate,
 *      a process with little address space, a system that refuses the thread) the result is the
 *      same.
 *   3. It ends at its first failure: the loading meets the same one, and reports it.
 *   4. The region is not ready before mqx_memory_ahead_end() has returned.
 *
 * Locks: the helper takes the growth lock. No errors.
 */
#ifndef PENSTOCK_MEMORY_AHEAD_H
#define PENSTOCK_MEMORY_AHEAD_H

#include "os/helper_thread.h"
#include "region/region.h"

enum { MQX_AHEAD_LEAST = 1 << 16 }; /* fewer messages are not worth a thread */

struct mqx_memory_ahead {
    struct mqx_region *region;
    struct mqx_helper_thread helper;
    uint32_t wanted; /* atomic, futex word: MiB of entries; MQX_AHEAD_END: no more */
};

void mqx_memory_ahead_begin(struct mqx_memory_ahead *ahead, struct mqx_region *region);
/* So many messages will be loaded, at least; a smaller number than before changes nothing. */
void mqx_memory_ahead_want(struct mqx_memory_ahead *ahead, uint64_t messages);
/* Ends the helper, whatever it still had to do. */
void mqx_memory_ahead_end(struct mqx_memory_ahead *ahead);

#endif
