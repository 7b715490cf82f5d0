/*
 * life_lock.c - see life_lock.h.
 */
#include "process/life_lock.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/file_id.h"
#include "os/fork_files.h"
#include "os/fork_guard.h"
#include "os/interrupt.h"
#include "penstock/engine.h"
#include "process/life_table.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PAUSE_MIN_US = 1000,
    PAUSE_MAX_US = 5000,
    INTERRUPT_AFTER_US = 500000, /* callers that look at signals do so that often */
};

struct mqx_life_lock {
    struct mqx_life_lock *next;
    struct mqx_io *io;
    uint64_t device, inode; /* of the directory */
    struct mqx_file_id id; /* of the descriptor's file */
    int fd;
    uint32_t users;
    bool entered;           /* a thread of this process has byte 0 */
    const void *owner[MQX_PROCESS_MAX]; /* of each life lock of this process; NULL: not held */
};

/* The registry; `guard` covers it and all fields above but the fixed ones. It is not held across
 * calls of the file table, except at the last close: `entered` and `owner` are set before the
 * kernel is asked, so that of two threads one asks. */
static struct mqx_local_lock guard;
static struct mqx_life_lock *files;
static int32_t files_pid;

static void take_guard(void)
{
    mqx_local_take(&guard);
    if (files_pid != (int32_t)getpid()) {
        files = NULL; /* objects of the parent process (invariant 3) */
        files_pid = (int32_t)getpid();
    }
}

static void drop_guard(void)
{
    mqx_local_drop(&guard);
}

/* ---- the descriptor ---- */

/* Owner and mode as for everything in the directory (rules 37, 39). */
static int verify_lock_file(struct mqx_io *io, int fd, struct mqx_io_stat *facts)
{
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(facts != NULL);
    const int err = io->ops->stat(io, fd, facts);
    if (err < 0) {
        return mqx_io_reason(err, "reading the state of the file lock");
    }
    if (!mqx_io_is_ours(io, facts)) {
        return mqx_fail(MQRC_NOT_AUTHORIZED,
                        "the file lock belongs to user %u with mode %03o; expected user %u, 0600",
                        facts->owner, facts->mode & 0777u, (unsigned)geteuid());
    }
    return MQX_OK;
}

static int open_or_create(struct mqx_io *io, int dir)
{
    MQX_ASSERT(dir >= 0);
    const int flags = MQX_IO_WRITE | MQX_IO_LINKED;
    int fd = io->ops->open(io, dir, MQX_LOCK_FILE, flags, 0);
    if (fd == -ENOENT) {
        fd = io->ops->open(io, dir, MQX_LOCK_FILE, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    }
    if (fd == -EEXIST) { /* another process was faster */
        fd = io->ops->open(io, dir, MQX_LOCK_FILE, flags, 0);
    }
    return fd;
}

static int open_lock_file(struct mqx_io *io, int dir, struct mqx_life_lock *file)
{
    MQX_ASSERT(dir >= 0);
    MQX_ASSERT(file->fd == -1);
    struct mqx_io_stat facts = {.inode = 0};
    int status = mqx_fork_files_begin();
    if (status != MQX_OK) {
        return status;
    }
    int fd = open_or_create(io, dir);
    if (fd < 0) {
        status = mqx_io_reason(fd, "opening the file lock");
    } else {
        status = verify_lock_file(io, fd, &facts);
    }
    if (status != MQX_OK && fd >= 0) {
        (void)io->ops->close(io, fd);
        fd = -1;
    }
    mqx_fork_files_end(fd, facts.device, facts.inode);
    file->fd = fd;
    file->id = mqx_file_id_of(&facts);
    return status;
}

/* Is the descriptor still that of the file that was opened? -EBADF when the program has closed it;
 * another error when that cannot be found out. */
static int check_descriptor(const struct mqx_life_lock *file)
{
    MQX_ASSERT(file->fd >= 0);
    return mqx_file_id_check(file->io, file->fd, &file->id);
}

static int fail_descriptor(int err, const char *what)
{
    MQX_ASSERT(err < 0);
    return err != -EBADF
               ? mqx_io_reason(err, what)
               : mqx_fail(MQRC_ENVIRONMENT_ERROR,
                          "this program has closed the queue manager's descriptor of the file "
                          "lock; connect again after closing all connections to it");
}

static int lock_byte(struct mqx_life_lock *file, uint64_t byte)
{
    MQX_ASSERT(file->io != NULL);
    const int err = check_descriptor(file);
    return err == 0 ? file->io->ops->lock(file->io, file->fd, byte, 1, MQX_IO_LOCK_EXCLUSIVE)
                    : err;
}

static void unlock_byte(struct mqx_life_lock *file, uint64_t byte)
{
    MQX_ASSERT(file->io != NULL);
    if (check_descriptor(file) != -EBADF) {
        (void)file->io->ops->lock(file->io, file->fd, byte, 1, MQX_IO_UNLOCK);
    }
}

/* guard held; the object of that directory or NULL */
static struct mqx_life_lock *find_directory(const struct mqx_io *io,
                                            const struct mqx_io_stat *facts)
{
    MQX_ASSERT(files_pid == (int32_t)getpid());
    struct mqx_life_lock *file = files;
    while (file != NULL && (file->io != io || file->device != facts->device ||
                            file->inode != facts->inode)) {
        file = file->next;
    }
    return file;
}

/* guard held */
static void remove_and_free(struct mqx_life_lock *file)
{
    MQX_ASSERT(file != NULL);
    MQX_ASSERT(files_pid == (int32_t)getpid());
    struct mqx_life_lock **link = &files;
    while (*link != file) {
        MQX_ASSERT(*link != NULL);
        link = &(*link)->next;
    }
    *link = file->next;
    free(file);
}

/* Finds the object, with a descriptor, and counts a user: true. Otherwise enters an object without
 * descriptor for the caller to open (*out), or, when another thread is doing that just now, nothing
 * (*out NULL). */
static bool find_or_enter(struct mqx_io *io, const struct mqx_io_stat *facts,
                          struct mqx_life_lock *fresh, struct mqx_life_lock **out)
{
    MQX_ASSERT(fresh != NULL);
    take_guard();
    struct mqx_life_lock *file = find_directory(io, facts);
    const bool found = file != NULL && file->fd >= 0;
    if (found) {
        file->users++;
        *out = file;
    } else if (file == NULL) {
        *fresh = (struct mqx_life_lock){.next = files, .io = io, .device = facts->device,
                                       .inode = facts->inode, .fd = -1, .users = 1};
        files = fresh;
        *out = fresh;
    } else {
        *out = NULL;
    }
    drop_guard();
    return found;
}

int mqx_life_lock_open(struct mqx_io *io, int dir, const struct mqx_io_stat *facts,
                       struct mqx_life_lock **out)
{
    MQX_ASSERT(io != NULL);
    MQX_ASSERT(dir >= 0);
    struct mqx_life_lock *fresh = malloc(sizeof *fresh);
    if (fresh == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for an attachment");
    }
    bool found = find_or_enter(io, facts, fresh, out);
    while (!found && *out == NULL) {
        mqx_clock_sleep_us(PAUSE_MIN_US);
        found = find_or_enter(io, facts, fresh, out);
    }
    if (found) {
        free(fresh);
        return MQX_OK;
    }
    struct mqx_life_lock opened = {.fd = -1};
    const int status = open_lock_file(io, dir, &opened);
    take_guard();
    if (status == MQX_OK) {
        fresh->id = opened.id;
        fresh->fd = opened.fd;
    } else {
        remove_and_free(fresh);
        *out = NULL;
    }
    drop_guard();
    return status;
}

void mqx_life_lock_close(struct mqx_life_lock *file)
{
    take_guard();
    MQX_ASSERT(file->users > 0);
    MQX_ASSERT(file->fd >= 0);
    file->users--;
    if (file->users == 0) {
        mqx_fork_files_remove(file->fd);
        mqx_file_id_close(file->io, &file->fd, &file->id);
        remove_and_free(file);
    }
    drop_guard();
}

void mqx_life_lock_forget(struct mqx_life_lock *file)
{
    MQX_ASSERT(file != NULL);
    take_guard();
    remove_and_free(file);
    drop_guard();
}

int mqx_life_lock_fd(const struct mqx_life_lock *file)
{
    MQX_ASSERT(file->fd >= 0);
    return file->fd;
}

bool mqx_life_lock_is_usable(const struct mqx_life_lock *file)
{
    return check_descriptor(file) == 0;
}

struct mqx_life_lock *mqx_life_lock_find(const struct mqx_io *io, int fd)
{
    MQX_ASSERT(io != NULL);
    take_guard();
    struct mqx_life_lock *file = files;
    while (file != NULL && (file->io != io || file->fd != fd)) {
        file = file->next;
    }
    drop_guard();
    return file;
}

/* ---- byte 0 ---- */

static int try_enter(struct mqx_life_lock *file)
{
    MQX_ASSERT(file->fd >= 0);
    take_guard();
    const bool busy = file->entered;
    file->entered = true;
    drop_guard();
    if (busy) {
        return -EAGAIN;
    }
    const int err = lock_byte(file, MQX_LOCK_BYTE_ATTACH);
    if (err != 0) {
        take_guard();
        file->entered = false;
        drop_guard();
    }
    return err;
}

static int report_busy(struct mqx_life_lock *file, uint64_t waited_us)
{
    MQX_ASSERT(file != NULL);
    struct mqx_life_entry holder;
    const int status = mqx_life_table_read(file->io, file->fd, MQX_LIFE_TABLE_ATTACH, &holder);
    return status != MQX_OK
               ? status
               : mqx_fail(MQRC_Q_MGR_NOT_AVAILABLE,
                          "process %d has been attaching to or leaving the queue manager for %u s",
                          holder.pid, (unsigned)(waited_us / 1000000));
}

/* The file must still be the one that the directory names. */
static int verify_entered(struct mqx_life_lock *file)
{
    MQX_ASSERT(file->fd >= 0);
    struct mqx_io_stat facts;
    int err = check_descriptor(file);
    err = err == 0 ? file->io->ops->stat(file->io, file->fd, &facts) : err;
    if (err != 0) {
        return fail_descriptor(err, "reading the state of the file lock");
    }
    if (facts.links == 0) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                        "the file lock was removed from the queue manager's directory while "
                        "it is in use; end every process that is attached");
    }
    const struct mqx_life_entry self = {.pid = (int32_t)getpid()};
    return mqx_life_table_write(file->io, file->fd, MQX_LIFE_TABLE_ATTACH, &self);
}

int mqx_life_lock_enter(struct mqx_life_lock *file, uint64_t patience_us)
{
    MQX_ASSERT(file != NULL);
    const uint64_t start_us = mqx_clock_monotonic_us();
    uint64_t pause_us = PAUSE_MIN_US;
    int err = try_enter(file);
    while (err == -EAGAIN) {
        const uint64_t here_us = mqx_clock_monotonic_us() - start_us;
        const uint64_t waited_us = here_us + mqx_interrupt_waited_us();
        if (waited_us >= patience_us) {
            return report_busy(file, waited_us);
        }
        if (here_us >= INTERRUPT_AFTER_US && mqx_interrupt_take(here_us)) {
            return MQE_INTERRUPTED;
        }
        mqx_clock_sleep_us(pause_us);
        pause_us = pause_us < PAUSE_MAX_US ? pause_us + PAUSE_MIN_US : pause_us;
        err = try_enter(file);
    }
    if (err < 0) {
        return fail_descriptor(err, "taking the attach lock");
    }
    const int status = verify_entered(file);
    if (status != MQX_OK) {
        mqx_life_lock_leave(file);
    }
    return status;
}

void mqx_life_lock_leave(struct mqx_life_lock *file)
{
    MQX_ASSERT(file->fd >= 0);
    unlock_byte(file, MQX_LOCK_BYTE_ATTACH);
    take_guard();
    MQX_ASSERT(file->entered);
    file->entered = false;
    drop_guard();
}

/* ---- life locks ---- */

int mqx_life_lock_claim(struct mqx_life_lock *file, uint32_t slot, const void *owner)
{
    MQX_ASSERT(slot > 0);
    MQX_ASSERT(slot < MQX_PROCESS_MAX);
    MQX_ASSERT(owner != NULL);
    take_guard();
    const bool ours = file->owner[slot] == NULL;
    if (ours) {
        file->owner[slot] = owner;
    }
    drop_guard();
    if (!ours) {
        return MQX_BUSY;
    }
    const int err = lock_byte(file, MQX_LOCK_BYTE_LIFE + slot);
    if (err != 0) {
        take_guard();
        file->owner[slot] = NULL;
        drop_guard();
    }
    return err == 0          ? MQX_OK
           : err == -EAGAIN ? MQX_BUSY
                            : fail_descriptor(err, "taking a life lock");
}

void mqx_life_lock_release(struct mqx_life_lock *file, uint32_t slot, const void *owner)
{
    MQX_ASSERT(slot < MQX_PROCESS_MAX);
    MQX_ASSERT(owner != NULL);
    take_guard();
    const bool held = slot > 0 && file->owner[slot] == owner;
    drop_guard();
    if (held) {
        unlock_byte(file, MQX_LOCK_BYTE_LIFE + slot);
        take_guard();
        file->owner[slot] = NULL;
        drop_guard();
    }
}

int mqx_life_lock_take_log(struct mqx_life_lock *file)
{
    const int err = lock_byte(file, MQX_LOCK_BYTE_LOG);
    return err == 0 ? MQX_OK : err == -EAGAIN ? MQX_BUSY : MQRC_ENVIRONMENT_ERROR;
}

void mqx_life_lock_give_log(struct mqx_life_lock *file)
{
    unlock_byte(file, MQX_LOCK_BYTE_LOG);
}

int mqx_life_lock_is_any_held(struct mqx_life_lock *file, uint32_t except, bool *out)
{
    MQX_ASSERT(except < MQX_PROCESS_MAX);
    *out = false;
    take_guard();
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX && !*out; slot++) {
        *out = slot != except && file->owner[slot] != NULL;
    }
    drop_guard();
    if (*out) {
        return MQX_OK;
    }
    int err = check_descriptor(file);
    if (err != 0) {
        return fail_descriptor(err, "reading the state of the file lock");
    }
    /* The kernel never reports our own locks, so one probe covers all other processes. */
    err = file->io->ops->test_lock(file->io, file->fd, MQX_LOCK_BYTE_LIFE, MQX_PROCESS_MAX, out);
    return err == 0 ? MQX_OK : mqx_io_reason(err, "asking for life locks");
}
