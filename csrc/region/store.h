/*
 * store.h - one open store: a region, its journal, its directory. The first argument of everything
 * above the region; there is no process-wide state besides it, so several stores can be open in one
 * process. A queue manager has one.
 *
 * Locks: none; everything but `files` and `life` is set while the store is opened and read
 * afterwards.
 */
#ifndef PENSTOCK_STORE_H
#define PENSTOCK_STORE_H

#include "region/region.h"

struct mqx_life_thread; /* os/life_thread.h */
struct mqx_files; /* journal/: descriptors and mappings of segment files, process-local */

struct mqx_store {
    struct mqx_region region;
    struct mqx_io *io;
    int dir;              /* the queue manager's directory */
    int journal_dir;
    int checkpoint_dir;
    int archive_dir;      /* -1 unless plan.linear */
    int errors_dir;
    int region_dir;       /* where the region file lies (tmpfs) */
    int lock_fd;          /* opened once per process, rule 33 */
    struct mqx_life_thread *life; /* atomic: NULL when this process has no slot, or left it */
    uint8_t qm_id[16];
    struct mqx_files *files;
    struct mqx_region_plan plan;
    bool control;         /* may attach while the queue manager is quiescing */
    bool keep_mapping;    /* of the region, when it is left (mapping_cache.h) */
    char name[49];        /* of the queue manager */
    char region_name[80];
    /* Optional hook that long maintenance steps (checkpoints) call, with the maintenance lock
     * held, so that dead processes are still cleaned up within a second. NULL: none. */
    int (*maintenance_hook)(struct mqx_store *store);
};

#endif
