/*
 * helper.h - the attachment's helper thread (rule 48): maintenance in paced steps.
 *
 * One thread a store, C only, all signals blocked, not inherited by fork. It sleeps on its process slot's
 * doorbell, at most 100 ms while there is unmarked journal, 500 ms otherwise, and then, if it gets the maintenance
 * lock by trylock: sweeps dead processes, writes a mark page after 100 ms of idleness, keeps one full-size spare
 * segment ahead, discards expired messages, takes checkpoints when due, recomputes the journal reserve,
 * grows areas ahead of demand. In a stopped region it drops the life lock once the last call has left.
 */
#ifndef PENSTOCK_HELPER_H
#define PENSTOCK_HELPER_H

#include "store.h"

struct mqx_helper;
int mqx_helper_start(struct mqx_store *store, struct mqx_helper **out) MQX_MUST_USE;
void mqx_helper_stop(struct mqx_helper *helper); /* joins */
/* One round of maintenance in the caller's thread (tests, `end`); MQX_BUSY when somebody else does it. */
int mqx_maintain(struct mqx_store *store) MQX_MUST_USE;
/* Wakes the helper of an attachment slot. */
void mqx_helper_ring(struct mqx_region *region, uint32_t process);

#endif
