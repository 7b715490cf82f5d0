/*
 * damage.h - what is done when a value read from the region cannot be true (crash-safety rule 28).
 *
 * Every process that is attached can write to the region, so a stray pointer in any of them may
 * have damaged it. What is read from it is therefore validated, always, in every build: slots,
 * cells, counts and states that address memory or bound a loop. A validation never aborts the host
 * process. It returns a reason code and stops the queue manager, since the rest of the region
 * cannot be believed either; the journal is not touched, and the next restart has everything that
 * was acknowledged.
 *
 * An assertion (base/assert.h) is the other thing: what this code relies on about itself.
 */
#ifndef PENSTOCK_DAMAGE_H
#define PENSTOCK_DAMAGE_H

#include "region/region.h"

/* Stops the queue manager because `structure` (its `item`) holds a value that cannot be true.
 * Returns MQRC_Q_MGR_NOT_AVAILABLE, with a text that names the structure. May be called with locks
 * held; the caller gives up what it does, rolls back and drops them. */
int mqx_region_damage(const struct mqx_region *region, const char *structure,
                      uint64_t item) MQX_COLD;

/* Has this thread met damage since it last asked? For functions that return a slot and no status:
 * they find nothing then. */
bool mqx_region_damaged(void);

#endif
