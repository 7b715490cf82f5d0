/*
 * life_lock.h - the file `lock` of a queue manager's directory: record locks that say which process
 * is attaching and which processes are alive (rules 25, 33).
 *
 * Bytes of the file
 *
 *   0          attach lock: exclusive while attaching, recovering, or leaving as perhaps the last
 *              one
 *   1 + slot   life lock of that attachment slot: exclusive for as long as the process is attached
 *   LOG        the process that appends to the error log
 *
 * The text in the file (lock_record.h) is covered by byte 0 alone.
 *
 * Record locks belong to the process and are lost at any close of the file (rule 33), and the
 * kernel does not report to a process its own locks. One object a process and directory therefore
 * keeps the only descriptor, counts its users, and remembers which life locks this process has, and
 * for which store.
 *
 * Invariants
 *   1. The descriptor is closed only by the last user in this process.
 *   2. A life lock that the kernel has for this process is in `owner[]`.
 *   3. A forked child shares nothing of this: it starts with an empty registry, and never closes
 *      the descriptors of its parent.
 *
 * Threads: every function may be called from any thread.
 * Locks: no lock of the region may be held, except that mqx_life_lock_holder() and
 * mqx_life_lock_is_own() may be called under the maintenance lock.
 */
#ifndef PENSTOCK_LIFE_LOCK_H
#define PENSTOCK_LIFE_LOCK_H

#include "region/region.h"

#define MQX_LOCK_FILE "lock"
enum {
    MQX_HOLDERS_TEXT_MIN = 160, /* bytes that mqx_life_lock_holders() needs at least */
};
enum {
    MQX_LOCK_BYTE_ATTACH = 0,
    MQX_LOCK_BYTE_LIFE = 1,
    MQX_LOCK_BYTE_LOG = 1 + MQX_PROCESS_MAX,
};

struct mqx_life_lock;

/* Opens, or creates when it is missing, the lock file of the directory `dir`, whose device and
 * inode are in `facts`. 2035 2071 2101 */
int mqx_life_lock_open(struct mqx_io *io, int dir, const struct mqx_io_stat *facts,
                       struct mqx_life_lock **out) MQX_MUST_USE;
void mqx_life_lock_close(struct mqx_life_lock *file);
/* Frees the object, whatever its users; no descriptor is closed, no lock released. */
void mqx_life_lock_forget(struct mqx_life_lock *file);
int mqx_life_lock_fd(const struct mqx_life_lock *file);
/* The object behind a descriptor that mqx_life_lock_fd() gave in this process; NULL when there is
 * none. */
struct mqx_life_lock *mqx_life_lock_find(const struct mqx_io *io, int fd);

/* Takes the attach lock, also against other threads of this process. Waits in short sleeps,
 * `patience_us` at most, then MQRC_Q_MGR_NOT_AVAILABLE with the holder's pid.
 * MQRC_ENVIRONMENT_ERROR when the file is no longer the one in the directory. */
int mqx_life_lock_enter(struct mqx_life_lock *file, uint64_t patience_us) MQX_MUST_USE;
void mqx_life_lock_leave(struct mqx_life_lock *file);

/* Takes the life lock of a slot for `owner`; MQX_BUSY when it is held. */
int mqx_life_lock_claim(struct mqx_life_lock *file, uint32_t slot, const void *owner) MQX_MUST_USE;
/* Drops it if it is held for that owner. */
void mqx_life_lock_release(struct mqx_life_lock *file, uint32_t slot, const void *owner);
/* Does this process hold the life lock? */
bool mqx_life_lock_is_own(struct mqx_life_lock *file, uint32_t slot);
/* The pid of its holder, also when that is this process; -1 when it is not visible from this PID
 * namespace; 0 when the lock is free. */
int mqx_life_lock_holder(struct mqx_life_lock *file, uint32_t slot, int32_t *out_pid) MQX_MUST_USE;
/* Is there a life lock besides the one of `except` (a slot of this process, 0: no exception)? */
int mqx_life_lock_is_any_held(struct mqx_life_lock *file, uint32_t except, bool *out) MQX_MUST_USE;
/* "4711, 4712 and 3 more": the holders of life locks; "none". */
void mqx_life_lock_holders(struct mqx_life_lock *file, char *text, size_t size);

/* Notes that the life lock of a slot is free while the kernel's process table has the process with
 * that start time. True, once for each such process, when that has been so for a second. */
bool mqx_life_lock_is_missing(struct mqx_life_lock *file, uint32_t slot, uint64_t start_time);

#endif
