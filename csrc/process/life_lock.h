/*
 * life_lock.h - locks on the file `lock` of a queue manager's directory: which process is
 * attaching, and, as the second sign beside the life words of the region, whether any process is
 * attached (crash-safety rules 33, 50).
 *
 * Bytes of the file that are locked
 *
 *   0          attach lock: exclusive while attaching, recovering, or leaving as perhaps the last
 *              one
 *   1 + slot   life lock of that attachment slot: exclusive for as long as the process is attached
 *   LOG        the process that appends to the error log
 *
 * Contents: the lock record (lock_record.h), covered by byte 0, and the table of attached processes
 * (life_table.h).
 *
 * The locks belong to an open file description (F_OFD_SETLK). The record locks of POSIX, which
 * belong to a process, are dropped when the process closes any descriptor of the file: reading the
 * file, or a backup of the directory, would do. Ours are dropped when our descriptor is closed, in
 * this process and in all children that inherited it; forked children close it (fork_files.h). The
 * kernel does not tell whose lock it is; the life table does.
 *
 * One object a process and directory keeps the descriptor, counts its users, and remembers which
 * life locks this process has, and for which store, since the kernel does not report to a
 * description its own locks.
 *
 * A program may close descriptors that are not its own (closerange). Before each use the descriptor
 * is compared with the file that was opened; when it is lost, calls fail with
 * MQRC_ENVIRONMENT_ERROR, and the number, which may be another file's by then, is left alone.
 *
 * Invariants
 *   1. The descriptor is closed only by the last user in this process.
 *   2. A life lock that the kernel has for this process is in `owner[]`.
 *   3. A forked child shares nothing of this: it starts with an empty registry.
 *
 * Threads: every function may be called from any thread.
 * Locks: no lock of the region may be held.
 */
#ifndef PENSTOCK_LIFE_LOCK_H
#define PENSTOCK_LIFE_LOCK_H

#include "region/region.h"

#define MQX_LOCK_FILE "lock"
enum {
    MQX_LOCK_BYTE_ATTACH = 0,
    MQX_LOCK_BYTE_LIFE = 1,
    MQX_LOCK_BYTE_LOG = 1 + MQX_PROCESS_MAX,
};

struct mqx_life_lock;

/* Opens, or creates when it is missing, the lock file of the directory `dir`, whose device and
 * inode are in `facts`. 2035 2071 2101 2102 */
int mqx_life_lock_open(struct mqx_io *io, int dir, const struct mqx_io_stat *facts,
                       struct mqx_life_lock **out) MQX_MUST_USE;
void mqx_life_lock_close(struct mqx_life_lock *file);
/* Frees the object, whatever its users; no descriptor is closed, no lock released. */
void mqx_life_lock_forget(struct mqx_life_lock *file);
int mqx_life_lock_fd(const struct mqx_life_lock *file);
/* Is the descriptor still that of the lock file? Asked before anything is written to it. */
bool mqx_life_lock_is_usable(const struct mqx_life_lock *file);
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
/* The turn to append to the error log: takes or gives it back. MQX_BUSY while another process has
 * it; other errors leave no text. */
int mqx_life_lock_take_log(struct mqx_life_lock *file) MQX_MUST_USE;
void mqx_life_lock_give_log(struct mqx_life_lock *file);
/* Is there a life lock besides the one of `except` (a slot of this process, 0: no exception)? */
int mqx_life_lock_is_any_held(struct mqx_life_lock *file, uint32_t except, bool *out) MQX_MUST_USE;

#endif
