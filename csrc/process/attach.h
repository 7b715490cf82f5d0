/*
 * attach.h - joining and leaving a queue manager's region (crash-safety rules 13, 17, 18, 36-40).
 *
 * Files: `lock` in the queue manager's directory (life_lock.h, lock_record.h, life_table.h);
 * the region `penstock-<16 hex of device and inode>-<16 hex of incarnation>` on a tmpfs, or the
 * reference of that name to a memory file (region_file.h).
 *
 * Terms
 *   attach lock   byte 0 of the file `lock`; held through an attach, a restart and a detach.
 *   first         the process that attaches while nobody is attached (liveness.h): it runs restart
 *                 recovery.
 *   last          the process that detaches while no other is attached: it runs the orderly end.
 *   life signs    life word and life lock of a slot (liveness.h).
 *   orphan region the region file of processes that have all died.
 *
 * Attach
 *   1. Open and verify the directories (type, owner, not writable by others, file system allowed).
 *   2. Take the attach lock (waits, bounded) and find out whether anybody is attached; refuse when
 *      the life signs contradict each other.
 *   3a. Nobody: read an orphan region as untrusted input, if boot, namespace, libc and layout are
 *       the same (rule 46, orphan_region.h); unlink it; write the record of a new region; create
 *       that; take a slot; recover; publish `ready`.
 *   3b. Somebody: compare boot id, namespace, libc and layout, and refuse with
 *       MQRC_ENVIRONMENT_ERROR when one differs. A region file that is missing while processes are
 *       alive is refused, too, and never created again. Stopped region (rule 13):
 *       MQRC_Q_MGR_NOT_AVAILABLE with the pids until they have left. Quiescing:
 *       MQRC_Q_MGR_QUIESCING, unless store->control is set. Else take a slot and clean up after
 *       dead processes.
 *   4. Release the attach lock.
 *
 * Detach, under the attach lock
 *   1. Contexts and handles of this process are reaped.
 *   2. The last one: dead processes are reaped, the orderly end is written, the region unlinked.
 *   3. The life signs are withdrawn, the region is unmapped, the attach lock is released.
 *
 * Invariants
 *   1. A process whose slot is LIVE has both life signs of that slot until it has left the region.
 *   2. The file `lock` names the region before the region's file exists.
 *   3. A failed attach leaves no descriptor, mapping, life sign or slot; it leaves a region only
 *      when that tells the next start that a flush has failed (rule 14).
 *
 * Locks: none of the region may be held. The attach lock comes before all locks of the region.
 *
 * Rule 39: a directory is used by its owner only; root is refused in a directory of another user.
 */
#ifndef PENSTOCK_ATTACH_H
#define PENSTOCK_ATTACH_H

#include "os/fork_guard.h"
#include "os/host_info.h"
#include "process/process_table.h"
#include "process/region_file.h"
#include "recovery/restart.h"

#define MQX_REGION_DIRECTORY "/dev/shm"

struct mqx_attach_report {
    bool first;                          /* this process ran restart recovery */
    bool same_boot_orphan;               /* and an orphan region was read */
    uint64_t np_discarded;               /* non-persistent messages the restart or end discarded */
    struct mqx_recovery_report recovery;
};

/* How long an attach or detach waits for the attach lock, us; tests shorten it. */
extern uint64_t mqx_attach_timeout_us;

/* `store` is filled; its io, plan, name, control, keep_mapping and qm_id have been set by the
 * caller (from qm.toml). region_path NULL means MQX_REGION_DIRECTORY, and a region in memory where
 * that is small (region_file.h). 2009 2012 2025 2035 2059 2071
 * 2101 2161 2192 */
int mqx_attach(struct mqx_store *store, const char *path, const char *region_path,
               struct mqx_attach_report *out) MQX_MUST_USE;

/* 2161 when the region's queue manager is quiescing and takes no more connections, but those of
 * `control`; `holders`: pids that it waits for, NULL: this process. */
int mqx_attach_check_quiescing(const struct mqx_store *store, bool control,
                               const char *holders) MQX_MUST_USE;

/* Leaves. `mode` is MQX_CHECKPOINT_CLEAN or ..._NO_IMAGE for the case that it is the last one; a
 * region that was stopped is left without a checkpoint. The maintenance thread has been stopped,
 * and no other thread uses the store. Always releases everything; the status tells whether the
 * orderly end, if this process ran it, is on disk. *out_np_discarded counts the messages that the
 * end discarded. */
int mqx_detach(struct mqx_store *store, int mode, uint64_t *out_np_discarded);

/* The first step of an attach: opens and verifies the directories `dir` and `region_dir` of a store
 * whose io is set, and fills in the location's device and inode. Also for those who do not attach.
 * 2012 2035 2101 */
int mqx_attach_open_roots(struct mqx_store *store, const char *path, struct mqx_location *location,
                          bool *out_cow) MQX_MUST_USE;
/* Closes all directories of a store without a region, and those that an error left open. */
void mqx_attach_close_directories(struct mqx_store *store);

/* Withdraws this process's life signs only (rule 13: stopped region, the last call has left the
 * core). May be repeated. */
void mqx_attach_release_life(struct mqx_store *store);

/* Is any other process attached, by any sign? 2012 2195 */
int mqx_attach_has_others(struct mqx_store *store, bool *anyone) MQX_MUST_USE;

/* In a forked child: forgets the store without touching locks, region or files (rule 32). Tests
 * call it, too, for a simulated process that has been killed. */
void mqx_attach_forget(struct mqx_store *store);

#endif
