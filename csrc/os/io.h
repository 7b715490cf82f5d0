/*
 * io.h - the file table: all access of the core to files goes through it (crash-safety rules 2, 15,
 * 33, 37, 40).
 *
 * Every file operation goes through `struct mqx_io`, a table of functions with a context. The real
 * table (mqx_io_posix) talks to Linux; tests put another table in its place that keeps files
 * in memory, records every call, and fails or stops at a chosen one (tests/c/fixtures/memory_io.h).
 *
 * Conventions
 *   - A result below 0 is a negated errno; 0 or more is success. Use mqx_io_reason() to turn it
 *     into a reason code.
 *   - EINTR and partial transfers are retried inside the table: read returns less than asked only
 *     at end of file, write writes everything or fails.
 *   - A file or directory is a small int >= 0 ("fd"), private to the table that returned it.
 *   - Names are single components relative to an open directory; never a path, never followed
 *     through a symbolic link (O_NOFOLLOW), always O_CLOEXEC.
 *   - open() verifies: regular file, one link, and mqx_io_is_ours(). create uses O_EXCL and sets
 *     the mode whatever the umask. A file with more links (cp -al, a backup tool) is -EMLINK: two
 *     queue managers might write it. MQX_IO_LINKED admits it where one that runs goes on.
 *   - Whose files: one user's (modes 0600 and 0700), or those of a group whose members share them:
 *     what a table of that group creates has the group, with the owner's rights, whoever creates it
 *     (0660; directories 02770, so that what other programs create there has the group, too).
 *   - write(..., MQX_IO_DSYNC) returns when data of *this call* is on the medium (RWF_DSYNC), which
 *     does not cover bytes written earlier without it; sync() covers the whole file.
 *
 * Threads: every function may be called from any thread. No function takes a lock of the region.
 */
#ifndef PENSTOCK_IO_H
#define PENSTOCK_IO_H

#include "base/base.h"

#include <errno.h>
#include <sys/uio.h>

enum { /* flags of open */
    MQX_IO_READ = 0,
    MQX_IO_WRITE = 1,
    MQX_IO_CREATE = 2, /* with WRITE: must not exist yet (O_EXCL) */
    MQX_IO_LOOK = 4,   /* without WRITE: another user's file, too, if it may be read */
    MQX_IO_LINKED = 8, /* one that has other names, too */
};

enum { MQX_IO_DSYNC = 1 }; /* flag of write */

enum { /* kinds of map */
    MQX_IO_MAP_READ = 0,   /* journal segments: PROT_READ, MAP_SHARED */
    MQX_IO_MAP_REGION = 1, /* PROT_READ|PROT_WRITE, MAP_SHARED|MAP_NORESERVE, MADV_DONTFORK */
};

enum { /* kinds of lock; of the open file description (F_OFD_SETLK), never blocking */
    MQX_IO_UNLOCK = 0,
    MQX_IO_LOCK_SHARED = 1,
    MQX_IO_LOCK_EXCLUSIVE = 2,
};

struct mqx_io_stat {
    uint64_t size;
    uint64_t device;
    uint64_t inode;
    uint32_t mode; /* permission bits and type as in st_mode */
    uint32_t owner;
    uint32_t group;
    uint32_t links;
};

enum mqx_io_medium { /* what the directory lies on, by statfs (rule 40) */
    MQX_MEDIUM_DISK,     /* ext4, xfs, f2fs, overlayfs */
    MQX_MEDIUM_COW,      /* btrfs, zfs: allowed with a warning, rule 12's reserve is not
                          * guaranteed */
    MQX_MEDIUM_MEMORY,   /* tmpfs: for tests */
    MQX_MEDIUM_REFUSED,  /* NFS, SMB, FUSE, 9p, anything unknown */
};

struct mqx_io;
typedef int (*mqx_io_visit)(void *arg, const char *name); /* non-zero stops the listing */

struct mqx_io_ops {
    int (*open_dir)(struct mqx_io *io, const char *path);             /* -> dir fd */
    int (*open_sub)(struct mqx_io *io, int dir, const char *name);    /* subdirectory -> dir fd */
    int (*make_sub)(struct mqx_io *io, int dir, const char *name, uint32_t mode);
    int (*remove_sub)(struct mqx_io *io, int dir, const char *name);
    int (*open)(struct mqx_io *io, int dir, const char *name, int flags, uint32_t mode); /* -> fd */
    /* An empty file in memory, of this user and without a name: it lasts while a process has it
     * open or mapped, and no file system limits it. `label` is what /proc shows for it. -> fd;
     * -ENOSYS, -EPERM or -EACCES where such files are not allowed. */
    int (*memory_file)(struct mqx_io *io, const char *label);
    /* A file that the process has open, for reading and writing, if it is ours; pid 0: that any
     * process has. -> fd; -ENOENT, -EACCES: process_files.h */
    int (*open_of_process)(struct mqx_io *io, int32_t pid, uint64_t device, uint64_t inode);
    int (*close)(struct mqx_io *io, int fd);                          /* files and directories */
    int64_t (*read)(struct mqx_io *io, int fd, void *to, size_t size, uint64_t offset);
    int (*write)(struct mqx_io *io, int fd, const struct iovec *parts, int part_count,
                 uint64_t offset, int flags);
    int (*sync)(struct mqx_io *io, int fd);                           /* fdatasync */
    int (*sync_dir)(struct mqx_io *io, int dir);                      /* fsync of a directory */
    int (*truncate)(struct mqx_io *io, int fd, uint64_t size);
    int (*allocate)(struct mqx_io *io, int fd, uint64_t offset,
                    uint64_t size);                               /* posix_fallocate */
    /* whole blocks without memory, as huge pages where the system lends them: how many bytes have
     * come so (os/huge_pages.h). NULL: none ever do */
    uint64_t (*allocate_huge)(struct mqx_io *io, int fd, uint64_t offset, uint64_t size);
    /* whole pages become a hole that reads as zeroes; -EOPNOTSUPP where there are no holes */
    int (*punch)(struct mqx_io *io, int fd, uint64_t offset, uint64_t size);
    int (*rename)(struct mqx_io *io, int dir, const char *from, const char *to);
    /* To another directory of the same file system, in one step. Never replaces a file: -EEXIST. */
    int (*move)(struct mqx_io *io, int from, const char *name, int to, const char *to_name);
    int (*unlink)(struct mqx_io *io, int dir, const char *name);
    int (*list)(struct mqx_io *io, int dir, mqx_io_visit visit, void *arg); /* any order */
    int (*stat)(struct mqx_io *io, int fd, struct mqx_io_stat *out);
    int (*medium)(struct mqx_io *io, int dir, enum mqx_io_medium *out);
    int (*lock)(struct mqx_io *io, int fd, uint64_t offset, uint64_t size, int kind); /* -EAGAIN */
    /* does another open file description hold a lock on a byte of that range? Never takes one */
    int (*test_lock)(struct mqx_io *io, int fd, uint64_t offset, uint64_t size, bool *out_held);
    int (*map)(struct mqx_io *io, int fd, uint64_t size, int kind, void **out);
    /* of the region: these bytes of the file at that address, where nothing may be mapped
     * (-EEXIST) */
    int (*map_part)(struct mqx_io *io, int fd, uint64_t offset, uint64_t size, void *at);
    int (*unmap)(struct mqx_io *io, void *at, uint64_t size);
    /* MADV_POPULATE_READ: rule 30 */
    int (*populate)(struct mqx_io *io, const void *at, uint64_t size);
    /* MADV_POPULATE_WRITE: maps whole pages that have memory for writing, before they are touched
     * one by one. NULL: cannot be done */
    int (*populate_write)(struct mqx_io *io, void *at, uint64_t size);
    /* POSIX_FADV_DONTNEED: rule 14 */
    int (*drop_cache)(struct mqx_io *io, int fd);
    /* Bytes that nobody can predict, at most 256; a test's table gives the same ones each run. */
    int (*random)(struct mqx_io *io, void *to, size_t size);
    uint64_t (*now_us)(struct mqx_io *io);             /* wall clock, microseconds since 1970 UTC */
};

struct mqx_io {
    const struct mqx_io_ops *ops;
    void *context; /* of the table */
    bool shared;   /* the files belong to the members of `group`, not to one user */
    uint32_t group;
};

/* The table that talks to Linux. One object, immutable, shared by all stores of the process. */
struct mqx_io *mqx_io_posix(void);
/* The same for files of a group: one object a group, never freed. NULL: no memory. */
struct mqx_io *mqx_io_posix_shared(uint32_t group);

/* Rule 37. Does a file or directory belong to the user of this process, and can no other write it?
 * In a table of a group: does it belong to the group, and have others no access at all? */
bool mqx_io_is_ours(const struct mqx_io *io, const struct mqx_io_stat *facts);
/* Is this process in the group? The kernel lets root in without it. */
bool mqx_io_is_member(uint32_t group);

/* Result of open() for a file that is not ours; no file system returns it. */
#define MQX_EFOREIGN EBADE

/* The reason code for a negated errno: ENOSPC, EDQUOT, EFBIG -> MQRC_STORAGE_MEDIUM_FULL;
 * EIO, ESTALE -> MQRC_OBJECT_DAMAGED; ENOMEM -> MQRC_STORAGE_NOT_AVAILABLE; EACCES, EPERM, EROFS
 * and MQX_EFOREIGN -> MQRC_NOT_AUTHORIZED; EMFILE, ENFILE -> MQRC_RESOURCE_PROBLEM; EMLINK and
 * EBADF (the program closed the descriptor) -> MQRC_ENVIRONMENT_ERROR; others ->
 * MQRC_UNEXPECTED_ERROR. Also remembers "<what>: <strerror>" with mqx_fail(). */
int mqx_io_reason(int negated_errno, const char *what) MQX_MUST_USE;

/* Is a write that failed so the fault of this process (EFBIG: its limit of file sizes, EBADF: its
 * program closed the descriptor), not of the device? A failed sync never is (rule 51): the table
 * reports one that follows a write as EIO. */
bool mqx_io_write_is_own_fault(int negated_errno);

/* Reads exactly `size` bytes or fails (-EIO when the file is shorter). */
int mqx_io_read_all(struct mqx_io *io, int fd, void *to, size_t size, uint64_t offset) MQX_MUST_USE;
/* One buffer instead of an iovec. */
int mqx_io_write_all(struct mqx_io *io, int fd, const void *from, size_t size, uint64_t offset,
                     int flags) MQX_MUST_USE;

#endif
