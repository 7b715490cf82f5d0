/*
 * attach.h - joining and leaving a queue manager's region; who is alive (rules 13, 17, 18, 25,
 * 36-40).
 *
 * Files: `lock` in the queue manager's directory (record locks: life_lock.h, text: lock_record.h); the
 * region `penstock-<16 hex of device and inode>-<16 hex of incarnation>` on a tmpfs.
 *
 * Attach: open and verify the directory (type, owner, not writable by others, file system allowed),
 * lock byte 0 (waits, bounded), ask whether any life byte is locked by anybody:
 *   nobody  -> the region, if there is one, is an orphan: when boot, namespace, libc and layout are
 *              the same, read as untrusted input what units in flight had got (rule 46, orphan_region.h);
 *              unlink it; write the record of a new one; create it; take a slot; recover; ready.
 *   somebody -> compare boot id, namespace, libc, layout: refuse with MQRC_ENVIRONMENT_ERROR and
 *              text when one differs; a region file that is gone under living processes is refused
 *              too, never made anew. Stopped region (rule 13): MQRC_Q_MGR_NOT_AVAILABLE naming the
 *              pids until they have left. Quiescing: MQRC_Q_MGR_QUIESCING, but for a store whose
 *              `control` is set. Else take a slot, and sweep what dead processes left.
 * then unlock byte 0. Slot 0 belongs to nobody: locks taken before the slot is known name it.
 *
 * Detach in order: under byte 0; own contexts and handles are swept; when this is the last one: the
 * dead are swept, orderly end (checkpoint, clean), unlink the region. Then the life lock goes, then
 * byte 0.
 *
 * Rule 39: a directory is used by its owner only; root in somebody's directory is refused.
 */
#ifndef PENSTOCK_ATTACH_H
#define PENSTOCK_ATTACH_H

#include "recovery/restart.h"
#include "os/fork_guard.h"
#include "os/host_info.h"

#define MQX_REGION_DIRECTORY "/dev/shm"

struct mqx_attach_report {
    bool first;                          /* this process ran restart recovery */
    bool same_boot_orphan;               /* and an orphan region was read */
    uint64_t np_discarded;               /* non-persistent messages the restart or end discarded */
    struct mqx_recovery_report recovery;
};

/* How long an attach or detach waits for byte 0; tests shorten it. */
extern uint64_t mqx_attach_patience_us;

/* `store` is filled; its io, plan, name, control, keep_mapping and qm_id have been set by the
 * caller (from qm.toml). region_path NULL means MQX_REGION_DIRECTORY. 2009 2012 2025 2035 2059 2071
 * 2101 2161 2192. */
int mqx_attach(struct mqx_store *store, const char *path, const char *region_path,
               struct mqx_attach_report *out) MQX_MUST_USE;

/* 2161 when the region's queue manager is quiescing and takes no more connections, but those of
 * `control`; `holders`: pids that it waits for, NULL: this process. */
int mqx_attach_may_enter(const struct mqx_store *store, bool control, const char *holders)
    MQX_MUST_USE;

/* Leaves. `mode` is MQX_CHECKPOINT_CLEAN or ..._NO_IMAGE for the case that it is the last one; a
 * region that was stopped is left without a checkpoint. The helper thread has been stopped, no
 * other thread uses the store. Always releases everything; the status says whether the orderly end,
 * if it was ours, is on disk. *out_np_discarded counts what it discarded. */
int mqx_detach(struct mqx_store *store, int mode, uint64_t *out_np_discarded);

/* Drops this process' life lock only (rule 13: stopped region, last call has left the core). */
void mqx_attach_drop_life(struct mqx_store *store);

/* Does any other process have its life lock? */
int mqx_attach_others(struct mqx_store *store, bool *anyone) MQX_MUST_USE;

/* In a forked child: forgets the store without touching locks, region or files (rule 32). Tests
 * call it, too, for a process of theirs that is only a number and has been killed. */
void mqx_attach_forget(struct mqx_store *store);

/* Is the process of that attachment slot alive? Dead only if its life lock is free and (pid, start
 * time, namespace) say so too; disagreement counts as alive and is logged once, when it lasts (rule
 * 25). */
bool mqx_process_alive(struct mqx_store *store, uint32_t slot);

#endif
