/*
 * store.h - one open store: a region, its journal, its directory. The first argument of everything
 * above the region; there is no process-wide state besides it, so several stores can be open in one
 * process. A queue manager has one.
 *
 * Descriptors of directories. The program around the core may close them and open others that get
 * the same numbers (os/file_id.h). A file made or removed through such a descriptor would be one of
 * the program's. So their identities are noted when the store is opened, and whoever is about to
 * make, rename or remove files asks mqx_store_check() first.
 *
 * Locks: none; everything but `files` and `life` is set while the store is opened and read
 * afterwards.
 */
#ifndef PENSTOCK_STORE_H
#define PENSTOCK_STORE_H

#include "os/file_id.h"
#include "region/region.h"

enum { MQX_STORE_DIRS = 6 }; /* descriptors of directories in a store */

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
    struct mqx_file_id dir_id[MQX_STORE_DIRS]; /* of the directories, in the order above */
    uint8_t qm_id[16];
    struct mqx_files *files;
    struct mqx_region_plan plan;
    bool control;         /* may attach while the queue manager is quiescing */
    bool keep_mapping;    /* of the region, when it is left (mapping_cache.h) */
    uint32_t leaving;     /* atomic: this process leaves, and waits for its maintenance */
    char name[49];        /* of the queue manager */
    char region_name[80];
    /* Optional hook that long maintenance steps (checkpoints) call, with the maintenance lock
     * held, so that dead processes are still cleaned up within a second. MQX_LEAVING: the step
     * is to be given up. NULL: none. */
    int (*maintenance_hook)(struct mqx_store *store);
    /* Optional: frees what the journal no longer needs; called without a lock by an append that
     * would have to go beyond the journal's limit. NULL: none. */
    int (*free_journal)(struct mqx_store *store);
    /* Optional: makes what is reserved for a full disk, for as many messages as there are; called
     * without a lock by a put that it does not cover. NULL: none. */
    int (*keep_way_out)(struct mqx_store *store);
};

/* Notes what the open descriptors of directories belong to. One that cannot be asked is not
 * checked later. */
void mqx_store_note(struct mqx_store *store);

/* Are the descriptors of all directories still those that were noted? MQRC_ENVIRONMENT_ERROR,
 * naming the first that is not, when the program has closed or replaced one. */
int mqx_store_check(const struct mqx_store *store) MQX_MUST_USE;
/* The same without a text. */
bool mqx_store_is_whole(const struct mqx_store *store);
/* Journal bytes of all persistent messages, those of open units included. Read without locks. */
uint64_t mqx_store_live_bytes(const struct mqx_region *region);

/* Closes the directories that are open, and forgets those that are not ours any more. */
void mqx_store_close(struct mqx_store *store);

#endif
