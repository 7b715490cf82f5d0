/*
 * store.h - one open store: a region, its journal, its directory. The object everything above the
 * region takes as its first argument; there is no process-wide state beside it, so several stores
 * can be open in one process. A queue manager has one.
 */
#ifndef PENSTOCK_STORE_H
#define PENSTOCK_STORE_H

#include "region/region.h"

struct mqx_files; /* journal.c: descriptors and mappings of segment files, process-local */

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
    uint8_t qm_id[16];
    struct mqx_files *files;
    struct mqx_region_plan plan;
    bool control;         /* is let in while the queue manager is quiescing */
    bool keep_mapping;    /* of the region, when it is left (mapping_cache.h) */
    char name[49];        /* of the queue manager */
    char region_name[80];
    /* Called now and then by long steps of maintenance, which hold the maintenance lock: the sweep,
     * so that a checkpoint does not keep the work of the dead from the living. NULL: nothing. */
    int (*between)(struct mqx_store *store);
};

#endif
