/*
 * life_lock.c - see life_lock.h.
 */
#include "process/life_lock.h"

#include "base/clock.h"
#include "base/error.h"
#include "os/fork_guard.h"
#include "os/host_info.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PAUSE_MIN_US = 1000,
    PAUSE_MAX_US = 5000,
    DISAGREEMENT_US = 1000000,
};

struct disagreement { /* about a slot: see mqx_life_lock_is_missing() */
    uint64_t start_time;
    uint64_t since_us;
    bool reported;
};

struct mqx_life_lock {
    struct mqx_life_lock *next;
    struct mqx_io *io;
    uint64_t device, inode; /* of the directory */
    int fd;
    uint32_t users;
    bool entered;           /* a thread of this process has byte 0 */
    const void *owner[MQX_PROCESS_MAX]; /* of each life lock of this process; NULL: not held */
    struct disagreement disagreement[MQX_PROCESS_MAX];
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
static int verify_lock_file(struct mqx_io *io, int fd)
{
    MQX_ASSERT(fd >= 0);
    struct mqx_io_stat facts;
    const int err = io->ops->stat(io, fd, &facts);
    if (err < 0) {
        return mqx_io_reason(err, "reading the state of the file lock");
    }
    if (facts.owner != (uint32_t)geteuid() || (facts.mode & 022u) != 0) {
        return mqx_fail(MQRC_NOT_AUTHORIZED,
                        "the file lock belongs to user %u with mode %03o; expected user %u, 0600",
                        facts.owner, facts.mode & 0777u, (unsigned)geteuid());
    }
    return MQX_OK;
}

static int open_lock_file(struct mqx_io *io, int dir, int *out)
{
    MQX_ASSERT(dir >= 0);
    MQX_ASSERT(*out == -1);
    int fd = io->ops->open(io, dir, MQX_LOCK_FILE, MQX_IO_WRITE, 0);
    if (fd == -ENOENT) {
        fd = io->ops->open(io, dir, MQX_LOCK_FILE, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    }
    if (fd == -EEXIST) { /* another process was faster */
        fd = io->ops->open(io, dir, MQX_LOCK_FILE, MQX_IO_WRITE, 0);
    }
    if (fd < 0) {
        return mqx_io_reason(fd, "opening the file lock");
    }
    const int status = verify_lock_file(io, fd);
    if (status != MQX_OK) {
        (void)io->ops->close(io, fd);
        return status;
    }
    *out = fd;
    return MQX_OK;
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
    int fd = -1;
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
    const int status = open_lock_file(io, dir, &fd);
    take_guard();
    if (status == MQX_OK) {
        fresh->fd = fd;
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
        (void)file->io->ops->close(file->io, file->fd);
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
    const int err = file->io->ops->lock(file->io, file->fd, MQX_LOCK_BYTE_ATTACH, 1,
                                        MQX_IO_LOCK_EXCLUSIVE);
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
    int32_t pid = 0;
    const int err = file->io->ops->test_lock(file->io, file->fd, MQX_LOCK_BYTE_ATTACH, 1, &pid);
    if (err < 0) {
        return mqx_io_reason(err, "asking for the attach lock");
    }
    return mqx_fail(MQRC_Q_MGR_NOT_AVAILABLE,
                    "process %d has been attaching to or leaving the queue manager for %u s",
                    pid != 0 ? pid : (int)getpid(), (unsigned)(waited_us / 1000000));
}

int mqx_life_lock_enter(struct mqx_life_lock *file, uint64_t patience_us)
{
    MQX_ASSERT(file != NULL);
    struct mqx_io_stat facts;
    const uint64_t start_us = mqx_clock_monotonic_us();
    uint64_t pause_us = PAUSE_MIN_US;
    int err = try_enter(file);
    while (err == -EAGAIN) {
        const uint64_t waited_us = mqx_clock_monotonic_us() - start_us;
        if (waited_us >= patience_us) {
            return report_busy(file, waited_us);
        }
        mqx_clock_sleep_us(pause_us);
        pause_us = pause_us < PAUSE_MAX_US ? pause_us + PAUSE_MIN_US : pause_us;
        err = try_enter(file);
    }
    if (err < 0) {
        return mqx_io_reason(err, "taking the attach lock");
    }
    err = file->io->ops->stat(file->io, file->fd, &facts);
    if (err == 0 && facts.links == 1) {
        return MQX_OK;
    }
    mqx_life_lock_leave(file);
    return err < 0 ? mqx_io_reason(err, "reading the state of the file lock")
                   : mqx_fail(MQRC_ENVIRONMENT_ERROR,
                              "the file lock was removed from the queue manager's directory while "
                              "it is in use; end every process that is attached");
}

void mqx_life_lock_leave(struct mqx_life_lock *file)
{
    MQX_ASSERT(file->fd >= 0);
    (void)file->io->ops->lock(file->io, file->fd, MQX_LOCK_BYTE_ATTACH, 1, MQX_IO_UNLOCK);
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
    const int err = file->io->ops->lock(file->io, file->fd, MQX_LOCK_BYTE_LIFE + slot, 1,
                                        MQX_IO_LOCK_EXCLUSIVE);
    if (err != 0) {
        take_guard();
        file->owner[slot] = NULL;
        drop_guard();
    }
    return err == 0 ? MQX_OK : err == -EAGAIN ? MQX_BUSY : mqx_io_reason(err, "taking a life lock");
}

void mqx_life_lock_release(struct mqx_life_lock *file, uint32_t slot, const void *owner)
{
    MQX_ASSERT(slot < MQX_PROCESS_MAX);
    MQX_ASSERT(owner != NULL);
    take_guard();
    const bool held = slot > 0 && file->owner[slot] == owner;
    drop_guard();
    if (held) {
        (void)file->io->ops->lock(file->io, file->fd, MQX_LOCK_BYTE_LIFE + slot, 1, MQX_IO_UNLOCK);
        take_guard();
        file->owner[slot] = NULL;
        drop_guard();
    }
}

bool mqx_life_lock_is_own(struct mqx_life_lock *file, uint32_t slot)
{
    MQX_ASSERT(slot < MQX_PROCESS_MAX);
    take_guard();
    const bool mine = file->owner[slot] != NULL;
    drop_guard();
    return mine;
}

int mqx_life_lock_holder(struct mqx_life_lock *file, uint32_t slot, int32_t *out_pid)
{
    MQX_ASSERT(slot < MQX_PROCESS_MAX);
    if (mqx_life_lock_is_own(file, slot)) {
        *out_pid = (int32_t)getpid();
        return MQX_OK;
    }
    const int err = file->io->ops->test_lock(file->io, file->fd, MQX_LOCK_BYTE_LIFE + slot, 1,
                                             out_pid);
    return err == 0 ? MQX_OK : mqx_io_reason(err, "asking for a life lock");
}

int mqx_life_lock_is_any_held(struct mqx_life_lock *file, uint32_t except, bool *out)
{
    MQX_ASSERT(except < MQX_PROCESS_MAX);
    int32_t pid = 0;
    *out = false;
    take_guard();
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX && !*out; slot++) {
        *out = slot != except && file->owner[slot] != NULL;
    }
    drop_guard();
    if (*out) {
        return MQX_OK;
    }
    /* The kernel never reports our own locks, so one probe covers all other processes. */
    const int err = file->io->ops->test_lock(file->io, file->fd, MQX_LOCK_BYTE_LIFE,
                                             MQX_PROCESS_MAX, &pid);
    *out = pid != 0;
    return err == 0 ? MQX_OK : mqx_io_reason(err, "asking for life locks");
}

/* Are the life locks of these slots free according to the kernel? */
static bool are_free(struct mqx_life_lock *file, uint32_t slot, uint32_t count)
{
    MQX_ASSERT(count > 0);
    MQX_ASSERT(slot + count <= MQX_PROCESS_MAX);
    int32_t pid = 0;
    bool own = false;
    take_guard();
    for (uint32_t i = slot; i < slot + count && !own; i++) {
        own = file->owner[i] != NULL;
    }
    drop_guard();
    return !own && file->io->ops->test_lock(file->io, file->fd, MQX_LOCK_BYTE_LIFE + slot, count,
                                            &pid) == 0 && pid == 0;
}

/* How many slots from this one on can be skipped, at least one: blocks of a power of two are probed
 * as a whole, since most slots are free and each probe is a system call. */
static uint32_t count_free_from(struct mqx_life_lock *file, uint32_t slot)
{
    MQX_ASSERT(slot > 0);
    MQX_ASSERT(slot < MQX_PROCESS_MAX);
    uint32_t count = slot & (~slot + 1);
    while (count > 1 && (slot + count > MQX_PROCESS_MAX || !are_free(file, slot, count))) {
        count /= 2;
    }
    return count;
}

void mqx_life_lock_holders(struct mqx_life_lock *file, char *text, size_t size)
{
    MQX_ASSERT(size >= MQX_HOLDERS_TEXT_MIN);
    enum { NAMED_MAX = 8 };
    uint32_t count = 0, step = 1;
    size_t used = 0;
    (void)snprintf(text, size, "none");
    for (uint32_t slot = 1; slot < MQX_PROCESS_MAX; slot += step) {
        int32_t pid = 0;
        step = count_free_from(file, slot);
        if (step > 1 || mqx_life_lock_holder(file, slot, &pid) != MQX_OK || pid == 0) {
            continue;
        }
        if (count < NAMED_MAX) {
            used += (size_t)snprintf(text + used, size - used, "%s%d", count == 0 ? "" : ", ", pid);
        }
        count++;
    }
    if (count > NAMED_MAX) {
        (void)snprintf(text + used, size - used, " and %u more", count - NAMED_MAX);
    }
}

bool mqx_life_lock_is_missing(struct mqx_life_lock *file, uint32_t slot, uint64_t start_time)
{
    MQX_ASSERT(slot < MQX_PROCESS_MAX);
    MQX_ASSERT(start_time != 0);
    const uint64_t now_us = mqx_clock_monotonic_us();
    take_guard();
    struct disagreement *disagreement = &file->disagreement[slot];
    if (disagreement->start_time != start_time) {
        *disagreement = (struct disagreement){.start_time = start_time, .since_us = now_us};
    }
    const bool tell = !disagreement->reported && now_us - disagreement->since_us >= DISAGREEMENT_US;
    disagreement->reported = disagreement->reported || tell;
    drop_guard();
    return tell;
}
