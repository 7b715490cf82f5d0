/*
 * process_table.h - the attachment slots of the region: which processes are attached, and which of
 * them are gone (crash-safety rule 50).
 *
 * Terms
 *   attachment slot   struct mqx_process in the region's header, 1 to MQX_PROCESS_MAX - 1. Slot 0
 *                     belongs to no process: locks taken before the slot is known name it.
 *   life sign         word and thread of a slot: process_slot.h, os/life_thread.h.
 *
 * Invariants
 *   1. A slot is LIVE only between mqx_process_publish() and mqx_process_free().
 *   2. The fields of a LIVE slot do not change, but for `leaving`, `calls_inside`, `doorbell`,
 *      `keeper` and `life_word`.
 *   3. A process has a life sign before its slot is LIVE, and until it has left the region.
 *
 * Locks: mqx_process_publish() and mqx_process_free() take the slots lock. mqx_process_alive()
 * takes none and may be called under the maintenance lock.
 */
#ifndef PENSTOCK_PROCESS_TABLE_H
#define PENSTOCK_PROCESS_TABLE_H

#include "region/store.h"

/* Fills the FREE slot `slot` for this process, whose life lock is held, starts its life thread and
 * makes it LIVE. The caller holds the attach lock, so no other process touches the slot. 2009 2071
 * 2102 */
int mqx_process_publish(struct mqx_store *store, uint32_t slot,
                        uint64_t pid_namespace) MQX_MUST_USE;

/* LIVE -> FREE. Nothing that the process owned is left in the region. 2009 */
int mqx_process_free(struct mqx_region *region, uint32_t slot) MQX_MUST_USE;

/* Withdraws this process's life sign: nobody waits for it any more. `left`: in order; otherwise as
 * if it had died (tests; harmless in a forked child, which has none). May be repeated. */
void mqx_process_end_life(struct mqx_store *store, bool left);

/* Must the process of that attachment slot be regarded as alive? No, when the slot is FREE or its
 * thread is gone; during `end -i`, also when it has withdrawn its life sign. */
bool mqx_process_alive(const struct mqx_store *store, uint32_t slot);

#endif
