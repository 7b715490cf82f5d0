/*
 * maintenance.h - the maintenance thread of an attachment (rule 48): upkeep in paced steps.
 *
 * One thread an attachment, C only, all signals blocked, not inherited by fork. It sleeps on the
 * doorbell of its process slot. When it is rung, or when no process has made a round for 500 ms
 * (100 ms while there is unmarked journal), it makes one, if it gets the maintenance lock by
 * trylock:
 *
 *   reap        ends the work of dead processes (reaper.h)
 *   mark        writes a mark page after 100 ms of idleness (rule 9)
 *   reserve     recomputes the journal reserve (rule 12)
 *   bodies      counts the persistent bodies that the region holds, for their budget
 *   spare       keeps one full-size spare segment ahead once the first segment is in use
 *   objects     discards expired messages; completes deletions and definitions
 *   reclaim     returns memory that nobody uses (region/reclaim.h)
 *   grow        grows the areas of the region ahead of demand
 *   checkpoint  takes a checkpoint when one is due
 *   long units  backs out open units of work that are too old (unit/long_units.h)
 *
 * Invariants
 *   1. A step that fails does not keep the others from running; the thread logs it when it begins
 *      to fail and when it works again.
 *   2. One thread of all processes runs a round at a time.
 *
 * Turns. The thread that made a round makes the next one, too: it is the active one. The others
 * stand by: about 16 of them look in each 500 ms whether the rounds go on, the others sleep longer,
 * so that the cost of idle processes does not grow with their square. The death of the active
 * process delays a round by half a second; then another thread is the active one.
 *
 * Whether active or not, a thread takes the second look of wakers in its process
 * (queue/wait_list.h), which starts no round, and when it is woken, as between the steps of a long
 * round, it leads a flush for processes that cannot write the journal themselves and have rung its
 * doorbell (journal/leadership.h). It logs once when its own process cannot, and unmaps what its
 * process has of journal files that were retired.
 *
 * The active thread reports locks of the region that a process has held for 5 s (rule 24). In a
 * stopped region each thread logs the stop once, with what failed, its errno, process and program,
 * and the structure that was found damaged if there is one, and releases the life lock when the
 * last file call has left the core (rule 13).
 *
 * Locks: the maintenance lock by trylock around a round; the steps take what they need. No line is
 * logged while it is held.
 */
#ifndef PENSTOCK_MAINTENANCE_H
#define PENSTOCK_MAINTENANCE_H

#include "region/store.h"

struct mqx_maintenance;

/* 2071 2102 */
int mqx_maintenance_start(struct mqx_store *store, struct mqx_maintenance **out) MQX_MUST_USE;

/* Joins the thread; a checkpoint that it takes is left to another process, if there is one and it
 * is not late. In a forked child, where there is no thread, only the memory is freed. */
void mqx_maintenance_stop(struct mqx_maintenance *maintenance);

/* One round in the caller's thread (tests, `end`). MQX_BUSY when another thread is running one,
 * else the status of the first step that failed. */
int mqx_maintenance_round(struct mqx_store *store) MQX_MUST_USE;

/* For a put that has found the journal full: backs out units that take its space, as a round does,
 * and logs them; waits for a round that is under way. MQE_INTERRUPTED, as such waits do. */
int mqx_maintenance_back_out_units(struct mqx_store *store) MQX_MUST_USE;
/* What is reserved for a full disk, made for as many messages as there are: the step of a round,
 * for a put that needs it at once. MQRC_STORAGE_MEDIUM_FULL: the disk has no room for it. */
int mqx_maintenance_way_out(struct mqx_store *store) MQX_MUST_USE;

/* After the restart of a queue manager that was killed, before anybody works with it: on a full
 * disk its next segment is a reserved file, and processes that are killed one after the other would
 * use up all of them before a round frees one. So what is lacking is made or freed here. A failure
 * takes nothing away: rounds try again. */
int mqx_maintenance_refill(struct mqx_store *store) MQX_MUST_USE;

/* Wakes the maintenance thread of an attachment slot. */
void mqx_maintenance_ring(struct mqx_region *region, uint32_t process);

#endif
