/*
 * damage.h - what is done when a value read from the region cannot be true (crash-safety rule 28).
 *
 * Every attached process can write to the region, so a stray pointer in any of them may have
 * damaged it. What is read from it is therefore validated, always, in every build: slots, cells,
 * counts and states that address memory or bound a loop. A validation never aborts the host
 * process. It returns a reason code and stops the queue manager, since the rest of the region
 * cannot be trusted either; the journal is not touched, and the next restart recovers everything
 * that was acknowledged.
 *
 * The first process that finds damage leaves a text in the region's header, from which the
 * maintenance thread of any process writes a log entry that names the structure.
 *
 * A process that cannot map the whole region (reach.h) may miss what is there: it stops nobody and
 * gets MQRC_STORAGE_NOT_AVAILABLE.
 *
 * An assertion (base/assert.h) is a different thing: what this code relies on about itself.
 *
 * Locks: none; all functions may be called with locks held.
 */
#ifndef PENSTOCK_DAMAGE_H
#define PENSTOCK_DAMAGE_H

#include "region/layout.h"

/* Stops the queue manager because `structure` holds a value (`item`) that cannot be true. Returns
 * MQRC_Q_MGR_NOT_AVAILABLE, with a text that names both. The caller abandons what it does, rolls
 * back and drops its locks. */
int mqx_region_damage(const struct mqx_region *region, const char *structure,
                      uint64_t item) MQX_COLD;

/* The same when only the header is known; sleepers are not woken (stop_flag.h). */
int mqx_region_damage_header(struct mqx_header *header, const char *structure,
                             uint64_t item) MQX_COLD;

/* Has this thread met damage since it last asked? For functions that return a slot and no status:
 * they find nothing then. */
bool mqx_region_damaged(void);

/* The text of the first process that found damage: "a free list of cells (123)"; NULL when none
 * was found, or while that process is still writing. */
const char *mqx_region_damage_text(const struct mqx_region *region);

#endif
