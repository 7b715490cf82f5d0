/*
 * liveness.h - is any process attached to a queue manager? (crash-safety rule 50)
 *
 * Purpose. A region may be discarded, and its queue manager restarted from the files, only when
 * nobody lives in it. A wrong "nobody" destroys it: two sets of processes then write one journal.
 *
 * Two signs, independent of each other:
 *   life lock  a lock on the file `lock` (life_lock.h). Lost when the program closes descriptors
 *              that are not its own; kept too long by a child of a bare clone system call.
 *   life word  in the region, with the life thread (process_slot.h). Lost with the region's file,
 *              and when it is damaged. Without a readable region the life table says what it can.
 *              A memory file is read through the processes that the life table names.
 *
 *   lock  word  meaning
 *   ----  ----  -----------------------------------------------------------------------------
 *   no    no    nobody: restart
 *   yes   yes   somebody: join
 *   yes   no    refused: a descriptor outlived its process; the processes that have it are named
 *   no    yes   refused: attached processes have lost their descriptor; they are named
 *
 * The signs differ for moments, too: a process that is killed while one of its children is between
 * vfork and exec, a stopped process that leaves. So a contradiction counts when it lasts.
 *
 * Locks: the caller holds the attach lock, and none of the region.
 */
#ifndef PENSTOCK_LIVENESS_H
#define PENSTOCK_LIVENESS_H

#include "process/life_lock.h"
#include "process/region_file.h"

enum { MQX_LIVING_TEXT_SIZE = 256 };

struct mqx_liveness {
    bool locked;                     /* the first sign */
    uint32_t living;                 /* the second one: how many processes */
    int32_t pids[MQX_PROCESS_MAX];
    char names[MQX_LIVING_TEXT_SIZE]; /* in words: "4711, 4712 and 3 more"; "none" */
};

/* How long a contradiction must last, us; tests shorten it. */
extern uint64_t mqx_liveness_patience_us;

/* Finds out. `record`: NULL when the lock file has none. 2059 with the pids when the signs
 * contradict each other; 2012 2071 2101 2195 */
int mqx_liveness_decide(struct mqx_store *store, const struct mqx_location *location,
                        struct mqx_life_lock *file, const struct mqx_lock_record *record,
                        struct mqx_liveness *out) MQX_MUST_USE;

/* Does any other process than this one still live in the region, by any sign? The attach lock need
 * not be held: the answer "no" stays true unless a process attaches. 2012 2195 */
int mqx_liveness_others(struct mqx_store *store, struct mqx_life_lock *file,
                        bool *out) MQX_MUST_USE;

#endif
