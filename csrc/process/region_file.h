/*
 * region_file.h - the region file of a directory: creating, joining and removing it (rules 17, 18).
 *
 * Terms
 *   location   what a region must agree with: host, directory, directory of regions.
 *   automatic  the directory of regions was not chosen: where its file system is small, as in a
 *              container, the region is a memory file (region/memory_file.h).
 *   stray      a region file of this directory that the lock record does not name: left from a lock
 *              file that was torn or deleted.
 *
 * Invariant: the lock record names a region, durably, before its file exists; so a file that no
 * record names belongs to no attach in progress.
 *
 * Locks: the caller holds the attach lock (byte 0 of the lock file) and no lock of the region.
 */
#ifndef PENSTOCK_REGION_FILE_H
#define PENSTOCK_REGION_FILE_H

#include "process/lock_record.h"
#include "region/store.h"

struct mqx_location {
    struct mqx_host_info here;
    uint64_t device; /* of the queue manager's directory */
    uint64_t inode;
    const char *region_path;
    bool automatic;
};

/* File systems below this size are small; tests change it. */
extern uint64_t mqx_region_file_small;

/* Is the record about this directory, this boot, namespace, libc and layout? */
bool mqx_record_matches(const struct mqx_lock_record *record, const struct mqx_location *location);

/* Creates store->region: a new incarnation, recorded in the lock file and flushed before the file
 * is created; identity filled in, `ready` still 0. 2071 with the bytes free, 2101 2192 2195 */
int mqx_region_file_create(struct mqx_store *store,
                           const struct mqx_location *location) MQX_MUST_USE;

/* Maps the region that the record names and verifies owner, mode, incarnation and identity.
 * `holders` names the living processes for the error text, `peers` are they. 2012 2035 2101 */
int mqx_region_file_join(struct mqx_store *store, const struct mqx_location *location,
                         const struct mqx_lock_record *record, const char *holders,
                         const struct mqx_peers *peers) MQX_MUST_USE;

/* Does the name begin as those of this directory's regions do? A name that was read from a file is
 * no reason to unlink another's (rule 38). */
bool mqx_region_file_is_named_for(const struct mqx_location *location, const char *name);

/* Unlinks the file; one that is missing is no error. One that another member of the group created
 * in a directory with the sticky bit is emptied. */
void mqx_region_file_remove(struct mqx_store *store, const char *name);

/* Removes the strays of this directory. MQRC_ENVIRONMENT_ERROR when a process in one of them is
 * alive: then the lock file was replaced under a running queue manager. */
int mqx_region_file_remove_strays(struct mqx_store *store,
                                  const struct mqx_location *location) MQX_MUST_USE;

#endif
