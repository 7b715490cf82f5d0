/*
 * maintenance.h - the attachment's helper thread (rule 48): maintenance in paced steps.
 *
 * One thread a store, C only, all signals blocked, not inherited by fork. It sleeps on its process
 * slot's doorbell, at most 100 ms while there is unmarked journal, 500 ms otherwise, and then, if
 * it gets the maintenance lock by trylock: sweeps dead processes, writes a mark page after 100 ms
 * of idleness, recomputes the journal reserve, keeps one full-size spare segment ahead, discards
 * expired messages and finishes what is left of deletes and defines, grows areas ahead of demand,
 * takes checkpoints when due. A step that fails does not keep the others from being done; the
 * helper logs it when it begins to fail and when it works again.
 *
 * It also reports locks of the region that somebody has held for 5 s (rule 24), and in a stopped
 * region drops the life lock once the last call has left the core (rule 13).
 */
#ifndef PENSTOCK_HELPER_H
#define PENSTOCK_HELPER_H

#include "region/store.h"

struct mqx_maintenance;
int mqx_maintenance_start(struct mqx_store *store, struct mqx_maintenance **out) MQX_MUST_USE;
void mqx_maintenance_stop(
    struct mqx_maintenance *helper); /* joins; in a forked child it only forgets */
/* One round of maintenance in the caller's thread (tests, `end`); MQX_BUSY when somebody else does
 * it, else the status of the first step that failed. */
int mqx_maintenance_round(struct mqx_store *store) MQX_MUST_USE;
/* Wakes the helper of an attachment slot. */
void mqx_maintenance_ring(struct mqx_region *region, uint32_t process);

#endif
