/*
 * process_table.h - the attachment slots of the region: which processes are attached, and which of
 * them are alive (rule 25).
 *
 * Terms
 *   attachment slot   struct mqx_process in the region's header, 1 to MQX_PROCESS_MAX - 1. Slot 0
 *                     belongs to no process: locks taken before the slot is known name it.
 *   life lock         the record lock of a slot on the file `lock` (life_lock.h). The kernel drops
 *                     it when the process ends.
 *
 * Invariants
 *   1. A slot is LIVE only between mqx_process_publish() and mqx_process_free().
 *   2. The fields of a LIVE slot do not change, but for `leaving`, `calls_inside`, `doorbell` and
 *      `keeper`.
 *   3. A process that holds its life lock is alive, whatever the process table of the kernel has.
 *
 * Locks: mqx_process_publish() and mqx_process_free() take the slots lock. mqx_process_alive()
 * takes none and may be called under the maintenance lock.
 */
#ifndef PENSTOCK_PROCESS_TABLE_H
#define PENSTOCK_PROCESS_TABLE_H

#include "region/store.h"

/* Fills the FREE slot `slot` for this process, whose life lock is held, and makes it LIVE. The
 * caller holds the attach lock, so no other process touches the slot. 2009 */
int mqx_process_publish(struct mqx_store *store, uint32_t slot,
                        uint64_t pid_namespace) MQX_MUST_USE;

/* LIVE -> FREE. Nothing that the process owned is left in the region. 2009 */
int mqx_process_free(struct mqx_region *region, uint32_t slot) MQX_MUST_USE;

/* Is the process of that attachment slot alive? Dead only when its life lock is free and pid, start
 * time and PID namespace agree. When these disagree it counts as alive; a disagreement that
 * lasts is logged once (rule 25). */
bool mqx_process_alive(struct mqx_store *store, uint32_t slot);

#endif
