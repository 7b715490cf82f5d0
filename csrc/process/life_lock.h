/*
 * life_lock.h - the file `lock` of a queue manager's directory: record locks that say who attaches
 * and who lives.
 *
 * Bytes
 *   0          attach lock: exclusive while attaching, recovering, or leaving as perhaps the last
 *   one 1 + slot   life lock of that attachment slot, exclusive, for as long as the process is
 *   attached LOG        whoever appends to the error log
 * The text in the file (lock_record.h) is not covered by locks other than byte 0.
 *
 * Record locks belong to the process and are lost at any close of the file (rule 33), and the
 * kernel does not tell a process about its own locks. So one object a process and directory keeps
 * the only descriptor, counts its users, and remembers which life locks this process has and for
 * which store.
 *
 * Invariants
 *   1. The descriptor is closed only by the last user in this process.
 *   2. A life lock that the kernel has for us is in `life[]`.
 *   3. A forked child shares nothing of this: it starts with an empty registry, and its descriptors
 *      of the parent's are never closed by us.
 *
 * Threads: every function may be called from any thread; no lock of the region may be held, except
 * that mqx_life_lock_holder() and mqx_life_lock_mine() may be asked under the maintenance lock.
 */
#ifndef PENSTOCK_LOCKFILE_H
#define PENSTOCK_LOCKFILE_H

#include "region/region.h"

#define MQX_LOCK_FILE "lock"
enum {
    MQX_LOCK_BYTE_ATTACH = 0,
    MQX_LOCK_BYTE_LIFE = 1,
    MQX_LOCK_BYTE_LOG = 1 + MQX_PROCESS_MAX,
};

struct mqx_life_lock;

/* Opens, or creates when it is missing, the lock file of the directory `dir`, whose device and
 * inode are in `facts`. */
int mqx_life_lock_open(struct mqx_io *io, int dir, const struct mqx_io_stat *facts,
                       struct mqx_life_lock **out) MQX_MUST_USE;
void mqx_life_lock_close(struct mqx_life_lock *file);
/* The object goes, whatever its users; no descriptor is closed, no lock dropped. */
void mqx_life_lock_forget(struct mqx_life_lock *file);
int mqx_life_lock_fd(const struct mqx_life_lock *file);
/* The object behind a descriptor that mqx_life_lock_fd() gave in this process; NULL when there is
 * none. */
struct mqx_life_lock *mqx_life_lock_find(const struct mqx_io *io, int fd);

/* Takes byte 0, also against other threads of this process. Waits in short sleeps, `patience_us` at
 * most, then MQRC_Q_MGR_NOT_AVAILABLE with the holder's pid. MQRC_ENVIRONMENT_ERROR when the file
 * is no longer the one in the directory. */
int mqx_life_lock_enter(struct mqx_life_lock *file, uint64_t patience_us) MQX_MUST_USE;
void mqx_life_lock_leave(struct mqx_life_lock *file);

/* Takes the life lock of a slot for `owner`; MQX_BUSY when somebody has it. */
int mqx_life_lock_claim(struct mqx_life_lock *file, uint32_t slot, const void *owner) MQX_MUST_USE;
/* Drops it if it is held for that owner. */
void mqx_life_lock_release(struct mqx_life_lock *file, uint32_t slot, const void *owner);
/* Does this process hold it? */
bool mqx_life_lock_mine(struct mqx_life_lock *file, uint32_t slot);
/* Who holds it: a pid, our own included, -1 when it is not visible from here, 0 when nobody
 * does. */
int mqx_life_lock_holder(struct mqx_life_lock *file, uint32_t slot, int32_t *out_pid) MQX_MUST_USE;
/* Is there a life lock of anybody but the one of `except` (a slot of ours, 0: no exception)? */
int mqx_life_lock_anyone(struct mqx_life_lock *file, uint32_t except, bool *out) MQX_MUST_USE;
/* "4711, 4712 and 3 more": who has life locks; "nobody". */
void mqx_life_lock_holders(struct mqx_life_lock *file, char *text, size_t size);

/* When the life lock of a slot and the process table have disagreed about the process with that
 * start time for a second; true once for each such process. */
bool mqx_life_lock_odd(struct mqx_life_lock *file, uint32_t slot, uint64_t start_time);

#endif
