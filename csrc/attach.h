/*
 * attach.h - joining and leaving a queue manager's region; who is alive (rules 13, 17, 18, 25, 36-40).
 *
 * File `lock` in the queue manager's directory: text (JSON-free, one key=value a line) naming boot id, directory
 * device and inode, PID-namespace inode, libc, incarnation and region file of the present region; and record
 * locks on bytes: byte 0 = attach lock (exclusive while attaching, recovering or leaving), byte 1 + slot = life
 * lock of that attachment slot. One descriptor a process, never closed before the last detach (rule 33).
 *
 * Attach: open and verify the directory (type, owner, not writable by others, file system allowed), lock byte 0
 * (waits, bounded, with progress to the error text), ask whether any life byte is locked by anybody:
 *   nobody  -> the region, if there is one, is an orphan: when boot, namespace and layout are the same, read as
 *              untrusted input what units in flight had got (rule 46); unlink it; create a new one; recover; ready.
 *   somebody -> compare boot id, namespace, libc, layout: refuse with MQRC_ENVIRONMENT_ERROR and text when one
 *              differs; a region file that is gone under living processes is refused too, never made anew.
 *              Stopped region (rule 13): MQRC_Q_MGR_NOT_AVAILABLE naming the pids until they have left.
 * then take a slot and its life lock, unlock byte 0.
 *
 * Detach in order: under byte 0, when this is the last one: orderly end (checkpoint, clean), unlink the region.
 */
#ifndef PENSTOCK_ATTACH_H
#define PENSTOCK_ATTACH_H

#include "recovery.h"

struct mqx_attach_report {
    bool first;                          /* this process ran restart recovery */
    bool same_boot_orphan;               /* and an orphan region was read */
    uint64_t np_discarded;               /* non-persistent messages the restart or end discarded */
    struct mqx_recovery_report recovery;
};

/* `store` is filled; its plan, name and qm_id have been set by the caller (from qm.toml). */
int mqx_attach(struct mqx_store *store, const char *path, const char *region_path,
               struct mqx_attach_report *out) MQX_MUST_USE;

/* Leaves. `mode` is MQX_CHECKPOINT_CLEAN or ..._NO_IMAGE for the case that it is the last one; a region that was
 * stopped is left without a checkpoint. Always releases everything; the status says whether the orderly
 * end, if it was ours, is on disk. *out_np_discarded counts what it discarded. */
int mqx_detach(struct mqx_store *store, int mode, uint64_t *out_np_discarded);

/* Drops this process' life lock only (rule 13: stopped region, last call has left the core). */
void mqx_attach_drop_life(struct mqx_store *store);

/* In a forked child: forgets the store without touching locks, region or files (rule 32). */
void mqx_attach_forget(struct mqx_store *store);

/* Is the process of that attachment slot alive? Dead only if its life lock is free and (pid, start time,
 * namespace) say so too; disagreement counts as alive and is logged once (rule 25). */
bool mqx_process_alive(struct mqx_store *store, uint32_t slot);

/* Start time (clock ticks since boot) of a pid from /proc/<pid>/stat, 0 when there is no such process. */
uint64_t mqx_start_time(int32_t pid);

/* True in a process that is not the one that attached (MADV_WIPEONFORK page, ~5 ns). */
bool mqx_forked(const struct mqx_store *store);

#endif
