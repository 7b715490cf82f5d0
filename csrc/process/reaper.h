/*
 * reaper.h - ending the work of dead processes (rules 19, 26, 46).
 *
 * Order
 *   1. Every lock that any dead process held is taken, which repairs it (lock.h).
 *      Then units that a dead one was backing out for their owners are backed out
 *      (unit/long_units.h), so that those of a dead owner are nobody else's.
 *   Then, for each attachment slot whose process is dead:
 *   2. the pending reference of each of its contexts is finished or undone;
 *   3. units that are DECIDED are rolled forward, others backed out;
 *   4. its waiters are unlisted, a wake-up that it had been given is passed on;
 *   5. its handles are closed (open counts, browse locks);
 *   6. the segments that its backup had pinned are let go;
 *   7. its slot is freed.
 *
 * Invariants
 *   1. No unit, handle or context of a dead process is changed before all locks of step 1 are
 *      repaired: a reaper that died before may have been working on any of them.
 *   2. Each step can be repeated: the reaper may be killed, too.
 *   3. Prepared units belong to no process and are not touched.
 *
 * Locks: the caller holds the maintenance lock, or is the only process; the others are taken
 * inside, one at a time.
 *
 * Errors: 2009 when the region was stopped, 2101 when the region is damaged, 2192.
 */
#ifndef PENSTOCK_REAPER_H
#define PENSTOCK_REAPER_H

#include "region/store.h"

/* Reaps every dead slot; *out_dead counts them. */
int mqx_reap(struct mqx_store *store, uint32_t *out_dead) MQX_MUST_USE;
/* The same with the maintenance lock taken inside; nothing when another thread or process has
 * it. */
int mqx_reap_unless_busy(struct mqx_store *store, uint32_t *out_dead) MQX_MUST_USE;
/* The work of one slot: known to be dead, with its locks repaired (mqx_reap does that), or of this
 * process, from the thread that detaches. */
int mqx_reap_process(struct mqx_store *store, uint32_t slot) MQX_MUST_USE;
/* When somebody has begun to back out this unit of another process, and has died: continues it.
 * Maintenance lock held. Errors: those of mqx_unit_backout(). */
int mqx_reap_helped(struct mqx_store *store, uint32_t context) MQX_MUST_USE;
/* Frees one context: backs out or rolls forward its unit, unpins, unlists. */
int mqx_reap_context(struct mqx_store *store, uint32_t context) MQX_MUST_USE;

#endif
