/*
 * reaper.h - ends the work of dead processes (rules 19, 26, 46).
 *
 * First every lock that any dead process held is taken, which repairs it (1). Then, for each
 * attachment slot whose process is dead: (2) finish or undo what its contexts have in hand; (3)
 * DECIDED units are rolled forward, others backed out; (4) its handles are closed (open counts,
 * browse locks); (5) its waiters are unlisted, a wake-up it had been given is passed on; (6)
 * contexts and slot are freed. Each step is resumable: whoever sweeps may be killed.
 *
 * Caller holds the maintenance lock, or is alone.
 */
#ifndef PENSTOCK_SWEEP_H
#define PENSTOCK_SWEEP_H

#include "region/store.h"

/* Sweeps every dead slot; *out_dead counts them. */
int mqx_reap(struct mqx_store *store, uint32_t *out_dead) MQX_MUST_USE;
/* The same under the maintenance lock; nothing when another process or thread has that. */
int mqx_reap_unless_busy(struct mqx_store *store, uint32_t *out_dead) MQX_MUST_USE;
/* The work of one slot: known to be dead, its locks repaired (mqx_reap does), or the own one, from
 * the thread that detaches. */
int mqx_reap_process(struct mqx_store *store, uint32_t slot) MQX_MUST_USE;
/* Frees one context: backs out or rolls forward its unit, unpins, unlists. */
int mqx_reap_context(struct mqx_store *store, uint32_t context) MQX_MUST_USE;

#endif
