/*
 * unit_access.h - owners enter their units of work, waiting for whoever is backing one out.
 *
 * Purpose. unit/long_units.h says by which word the owner of a unit and a helper take turns. What
 * is here is the owner's part when it finds that a helper has come first: the wait, which may find
 * the helper dead, and the reason code when the unit has been backed out.
 *
 * Invariants
 *   1. After MQX_OK only the owner works on the unit, until mqx_unit_leave().
 *   2. After any other status nothing has been entered.
 *
 * Locks. None may be held: the maintenance lock is waited for, as a checkpoint on request does.
 *
 * Errors: 2003; MQE_INTERRUPTED, at most once; those of mqx_reap_helped().
 */
#ifndef PENSTOCK_PROCESS_UNIT_ACCESS_H
#define PENSTOCK_PROCESS_UNIT_ACCESS_H

#include "region/store.h"

/* Claims the context's unit for the caller, its owner. 2003: it has been backed out. */
int mqx_unit_enter(struct mqx_store *store, uint32_t context) MQX_MUST_USE;
/* The same for calls that end the unit: after 2003 the context is IDLE and the owner's, with no
 * trace of the unit. */
int mqx_unit_enter_to_end(struct mqx_store *store, uint32_t context) MQX_MUST_USE;
/* The same for one that is given up, whether it has been backed out or not; waits to the end. */
int mqx_unit_enter_to_free(struct mqx_store *store, uint32_t context) MQX_MUST_USE;
/* That for all contexts of this process, which leaves in order: no call of it is in progress. */
int mqx_unit_enter_all(struct mqx_store *store) MQX_MUST_USE;

#endif
