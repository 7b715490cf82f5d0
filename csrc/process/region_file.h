/*
 * region_file.h - the region file of a directory: making it, joining it, getting rid of it.
 *
 * Everything here happens under the attach lock (byte 0 of the lock file).
 */
#ifndef PENSTOCK_ATTACH_REGION_H
#define PENSTOCK_ATTACH_REGION_H

#include "process/lock_record.h"
#include "region/store.h"

struct mqx_place { /* what a region must agree with */
    struct mqx_host_info here;
    uint64_t device; /* of the queue manager's directory */
    uint64_t inode;
    const char *region_path;
};

/* Is the record about this directory, this boot, namespace, libc and layout? */
bool mqx_record_is_here(const struct mqx_lock_record *record, const struct mqx_place *place);

/* Makes store->region: a new incarnation, recorded in the lock file and flushed before the file is
 * created; identity filled in, `ready` still 0. */
int mqx_region_make(struct mqx_store *store, const struct mqx_place *place) MQX_MUST_USE;

/* Maps the region that the record names and verifies owner, mode, incarnation and identity.
 * `holders` names the living processes for the error text. */
int mqx_region_join(struct mqx_store *store, const struct mqx_place *place,
                    const struct mqx_lock_record *record, const char *holders) MQX_MUST_USE;

/* Deletes the file; one that is not there is fine. */
void mqx_region_discard(struct mqx_store *store, const char *name);

/* Deletes region files of this directory that the record does not know: left from a lock file that
 * was torn or deleted. MQRC_ENVIRONMENT_ERROR when a process in one of them is alive: then the lock
 * file was replaced under a running queue manager. */
int mqx_region_discard_strays(struct mqx_store *store, const struct mqx_place *place) MQX_MUST_USE;

#endif
