/*
 * io.c - the file table that talks to Linux; see io.h for the contract.
 *
 * Notes on what is not obvious
 *   - Descriptors 0, 1 and 2 are never returned: a program that closed its stderr would otherwise
 *     print into a journal.
 *   - Files are opened with O_NONBLOCK so that opening a FIFO cannot block before fstat() shows
 *     that it is no regular file; it has no effect on regular files.
 *   - RWF_DSYNC makes the bytes of that call durable. Where the file system does not know the
 *     flag, the whole file is flushed after the write, which is more than was asked.
 *   - A file's facts are asked for without its times. Where the kernel keeps fine-grained times
 *     (Linux 6.13: ext4, xfs, btrfs, tmpfs), a write to a file whose times were asked for since the
 *     last one changes them, and so its inode: a flush of the journal, which looks at its file
 *     first, took 30 to 45 us longer.
 *   - A failed flush is reported to the caller and never repeated here (rule 13); only EINTR is.
 */
#include "os/io.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "os/host_info.h"
#include "os/huge_pages.h"
#include "os/process_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef STATX_TYPE
#include <linux/stat.h> /* C libraries that do not know statx */
#endif

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum {
    FIRST_FD = 3,      /* lowest descriptor returned */
    PARTS_AT_ONCE = 64, /* parts of an iovec given to one system call */
    /* From this size on the kernel is asked to start writing at once what was written without
     * waiting, so that a later flush finds most of it done. A hint: nothing depends on it. */
    EARLY_BYTES = 1 << 20,
};

/* True when pwritev2 with RWF_DSYNC turned out to be unknown here; only ever goes to true. */
static bool dsync_unknown;
/* The same of statx, which may also be forbidden. */
static bool statx_unknown;

static bool is_component(const char *name)
{
    MQX_ASSERT(name != NULL);
    return name[0] != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

/* Replaces a descriptor 0..2 by a higher one; passes others and errors on. */
static int raise_fd(int fd)
{
    MQX_ASSERT(fd >= -1);
    if (fd < 0) {
        return -errno;
    }
    int result = fd;
    if (fd < FIRST_FD) {
        const int higher = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD);
        result = higher >= 0 ? higher : -errno;
        close(fd);
    }
    return result;
}

static int posix_open_dir(struct mqx_io *io, const char *path)
{
    MQX_ASSERT(path != NULL);
    (void)io;
    return raise_fd(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int posix_open_sub(struct mqx_io *io, int dir, const char *name)
{
    (void)io;
    if (!is_component(name)) {
        return -EINVAL;
    }
    return raise_fd(openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

static int posix_close(struct mqx_io *io, int fd)
{
    MQX_ASSERT(fd >= FIRST_FD);
    (void)io;
    return close(fd) == 0 || errno == EINTR ? 0 : -errno; /* after EINTR Linux has closed it */
}

static int posix_remove_sub(struct mqx_io *io, int dir, const char *name)
{
    (void)io;
    if (!is_component(name)) {
        return -EINVAL;
    }
    return unlinkat(dir, name, AT_REMOVEDIR) == 0 ? 0 : -errno;
}

/* Gives what was created its group and mode, whatever the umask and the directory say. */
static int set_access(const struct mqx_io *io, int fd, mode_t mode)
{
    MQX_ASSERT((mode & 022) == 0);
    MQX_ASSERT(fd >= FIRST_FD);
    if (io->shared) {
        if (fchown(fd, (uid_t)-1, (gid_t)io->group) != 0) {
            return -errno;
        }
        const bool directory = (mode & 0100) != 0;
        mode = (mode & 0700) | (mode & 0700) >> 3 | (directory ? S_ISGID : 0);
    }
    return fchmod(fd, mode) == 0 ? 0 : -errno;
}

static int posix_make_sub(struct mqx_io *io, int dir, const char *name, uint32_t mode)
{
    if (!is_component(name)) {
        return -EINVAL;
    }
    if (mkdirat(dir, name, (mode_t)(mode & 0700)) != 0) {
        return -errno;
    }
    int fd = posix_open_sub(io, dir, name);
    int result = fd < 0 ? fd : set_access(io, fd, (mode_t)mode);
    if (fd >= 0) {
        (void)posix_close(io, fd);
    }
    if (result != 0) {
        (void)posix_remove_sub(io, dir, name);
    }
    return result;
}

/* -ENOSYS also when the file system does not say everything. */
static int facts_without_times(int fd, struct mqx_io_stat *out)
{
    const unsigned wanted = STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_UID | STATX_GID |
                            STATX_INO | STATX_SIZE;
    struct statx st;
    MQX_ASSERT(out != NULL);
    if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, wanted, &st) != 0) {
        return -errno;
    }
    *out = (struct mqx_io_stat){
        .size = st.stx_size,
        .device = makedev(st.stx_dev_major, st.stx_dev_minor),
        .inode = st.stx_ino,
        .mode = st.stx_mode,
        .owner = st.stx_uid,
        .group = st.stx_gid,
        .links = st.stx_nlink,
    };
    return (st.stx_mask & wanted) == wanted ? 0 : -ENOSYS;
}

static int facts_by_fstat(int fd, struct mqx_io_stat *out)
{
    MQX_ASSERT(out != NULL);
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return -errno;
    }
    *out = (struct mqx_io_stat){
        .size = (uint64_t)st.st_size,
        .device = (uint64_t)st.st_dev,
        .inode = (uint64_t)st.st_ino,
        .mode = (uint32_t)st.st_mode,
        .owner = (uint32_t)st.st_uid,
        .group = (uint32_t)st.st_gid,
        .links = (uint32_t)st.st_nlink,
    };
    return 0;
}

static int posix_stat(struct mqx_io *io, int fd, struct mqx_io_stat *out)
{
    MQX_ASSERT(out != NULL);
    (void)io;
    if (!mqx_load_relaxed(&statx_unknown)) {
        const int err = facts_without_times(fd, out);
        if (err != -ENOSYS && err != -EPERM) {
            return err;
        }
        mqx_store_relaxed(&statx_unknown, true);
    }
    return facts_by_fstat(fd, out);
}

/* What open() promises of the file behind a name: regular, under that name only, and ours, unless
 * the flags say otherwise. */
static int verify_file(struct mqx_io *io, int fd, int flags)
{
    MQX_ASSERT(fd >= FIRST_FD);
    struct mqx_io_stat facts;
    const int err = posix_stat(io, fd, &facts);
    if (err != 0) {
        return err;
    }
    if (S_ISDIR(facts.mode)) {
        return -EISDIR;
    }
    if (!S_ISREG(facts.mode)) {
        return -EINVAL;
    }
    if (facts.links != 1 && (flags & MQX_IO_LINKED) == 0) {
        return -EMLINK;
    }
    return (flags & MQX_IO_LOOK) != 0 || mqx_io_is_ours(io, &facts) ? 0 : -MQX_EFOREIGN;
}

static int posix_open(struct mqx_io *io, int dir, const char *name, int flags, uint32_t mode)
{
    MQX_ASSERT((flags & ~(MQX_IO_WRITE | MQX_IO_CREATE | MQX_IO_LOOK | MQX_IO_LINKED)) == 0);
    const bool create = (flags & MQX_IO_CREATE) != 0, look = (flags & MQX_IO_LOOK) != 0;
    int how = O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

    if (!is_component(name) || (create && (flags & MQX_IO_WRITE) == 0) ||
        (look && (flags & MQX_IO_WRITE) != 0)) {
        return -EINVAL;
    }
    how |= (flags & MQX_IO_WRITE) != 0 ? O_RDWR : O_RDONLY;
    how |= create ? O_CREAT | O_EXCL : 0;
    int fd = raise_fd(openat(dir, name, how, (mode_t)(mode & 0600)));
    if (fd < 0) {
        return fd;
    }
    int result = create ? set_access(io, fd, (mode_t)mode) : 0;
    if (result == 0) {
        result = verify_file(io, fd, flags);
    }
    if (result == 0) {
        return fd;
    }
    close(fd);
    if (create) {
        unlinkat(dir, name, 0);
    }
    return result;
}

/* Kernels from 6.3 on may insist that such a file can never be executed; older ones do not know the
 * flag. */
static int posix_memory_file(struct mqx_io *io, const char *label)
{
    MQX_ASSERT(label[0] != '\0');
    int fd = memfd_create(label, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) {
        fd = memfd_create(label, MFD_CLOEXEC);
    }
    fd = raise_fd(fd);
    const int result = fd < 0 ? fd : set_access(io, fd, 0600);
    if (fd >= 0 && result != 0) {
        (void)close(fd);
    }
    return result != 0 ? result : fd;
}

static int posix_open_of_process(struct mqx_io *io, int32_t pid, uint64_t device, uint64_t inode)
{
    MQX_ASSERT(pid >= 0);
    struct mqx_io_stat facts;
    const int fd = mqx_process_file_open(pid, device, inode);
    const int raised = fd < 0 ? fd : raise_fd(fd);
    if (raised < 0) {
        return raised;
    }
    int result = posix_stat(io, raised, &facts);
    if (result == 0) {
        result = !S_ISREG(facts.mode) ? -EINVAL : mqx_io_is_ours(io, &facts) ? 0 : -MQX_EFOREIGN;
    }
    if (result != 0) {
        (void)close(raised);
    }
    return result != 0 ? result : raised;
}

static int64_t posix_read(struct mqx_io *io, int fd, void *to, size_t size, uint64_t offset)
{
    MQX_ASSERT(to != NULL || size == 0);
    MQX_ASSERT(offset <= INT64_MAX);
    size_t done = 0;

    (void)io;
    while (done < size) {
        ssize_t n = pread(fd, (char *)to + done, size - done, (off_t)(offset + done));
        if (n == 0) {
            break;
        }
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return (int64_t)done;
}

/* One call of the kernel; -1 with errno. Sets *flush_after when RWF_DSYNC is unknown. */
static ssize_t write_some(int fd, const struct iovec *parts, int count, uint64_t offset, bool dsync,
                          bool *flush_after)
{
    MQX_ASSERT(count > 0 && count <= PARTS_AT_ONCE);
    MQX_ASSERT(offset <= INT64_MAX);
    if (!dsync || __atomic_load_n(&dsync_unknown, __ATOMIC_RELAXED)) {
        ssize_t written = pwritev(fd, parts, count, (off_t)offset);
        *flush_after = dsync;
        if (written >= EARLY_BYTES) {
            (void)sync_file_range(fd, (off_t)offset, (off_t)written, SYNC_FILE_RANGE_WRITE);
        }
        return written;
    }
    ssize_t n = pwritev2(fd, parts, count, (off_t)offset, RWF_DSYNC);
    if (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) {
        __atomic_store_n(&dsync_unknown, true, __ATOMIC_RELAXED);
        *flush_after = true;
        n = pwritev(fd, parts, count, (off_t)offset);
    }
    return n;
}

/* Fills `window` with what of `parts` lies behind the first `skip` bytes; returns its count. */
static int window_of(const struct iovec *parts, int part_count, uint64_t skip, struct iovec *window)
{
    MQX_ASSERT(parts != NULL || part_count == 0);
    int count = 0;
    for (int i = 0; i < part_count && count < PARTS_AT_ONCE; i++) {
        if (skip >= parts[i].iov_len) {
            skip -= parts[i].iov_len;
            continue;
        }
        window[count].iov_base = (char *)parts[i].iov_base + skip;
        window[count].iov_len = parts[i].iov_len - (size_t)skip;
        skip = 0;
        count++;
    }
    return count;
}

static int posix_sync(struct mqx_io *io, int fd)
{
    int result;
    (void)io;
    do {
        result = fdatasync(fd) == 0 ? 0 : -errno;
    } while (result == -EINTR);
    return result;
}

static int posix_write(struct mqx_io *io, int fd, const struct iovec *parts, int part_count,
                       uint64_t offset, int flags)
{
    MQX_ASSERT((flags & ~MQX_IO_DSYNC) == 0);
    struct iovec window[PARTS_AT_ONCE];
    bool dsync = (flags & MQX_IO_DSYNC) != 0;
    bool flush_after = false;
    uint64_t done = 0;
    int count;

    MQX_ASSERT(part_count >= 0);
    while ((count = window_of(parts, part_count, done, window)) > 0) {
        ssize_t n = write_some(fd, window, count, offset + done, dsync, &flush_after);
        if (n == 0) {
            return -EIO; /* a regular file that takes nothing and gives no reason */
        }
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        done += n > 0 ? (uint64_t)n : 0;
    }
    const int flushed = flush_after ? posix_sync(io, fd) : 0;
    return flushed != 0 && mqx_io_write_is_own_fault(flushed) ? -EIO : flushed;
}

static int posix_sync_dir(struct mqx_io *io, int dir)
{
    int result;
    (void)io;
    do {
        result = fsync(dir) == 0 ? 0 : -errno;
    } while (result == -EINTR);
    return result;
}

static int posix_truncate(struct mqx_io *io, int fd, uint64_t size)
{
    MQX_ASSERT(size <= INT64_MAX);
    int result;
    (void)io;
    do {
        result = ftruncate(fd, (off_t)size) == 0 ? 0 : -errno;
    } while (result == -EINTR);
    return result;
}

static int posix_allocate(struct mqx_io *io, int fd, uint64_t offset, uint64_t size)
{
    MQX_ASSERT(size > 0);
    int error;
    (void)io;
    do {
        error = posix_fallocate(fd, (off_t)offset, (off_t)size);
    } while (error == EINTR);
    return -error;
}

static uint64_t posix_allocate_huge(struct mqx_io *io, int fd, uint64_t offset, uint64_t size)
{
    MQX_ASSERT(size > 0);
    (void)io;
    return mqx_huge_allocate(fd, offset, size);
}

static int posix_punch(struct mqx_io *io, int fd, uint64_t offset, uint64_t size)
{
    MQX_ASSERT(size > 0);
    int result;
    (void)io;
    do {
        result = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                           (off_t)size) == 0 ? 0 : -errno;
    } while (result == -EINTR);
    return result;
}

static int posix_rename(struct mqx_io *io, int dir, const char *from, const char *to)
{
    (void)io;
    if (!is_component(from) || !is_component(to)) {
        return -EINVAL;
    }
    return renameat(dir, from, dir, to) == 0 ? 0 : -errno;
}

enum { NO_REPLACE = 1 }; /* RENAME_NOREPLACE; older C libraries do not know renameat2 */

/* For file systems that cannot refuse by themselves (-EINVAL, -ENOSYS). Between the look and the
 * rename only a program that is not ours could take the name: callers hold a lock. */
static int move_unless_there(int from, const char *name, int to, const char *to_name)
{
    struct stat facts;
    MQX_ASSERT(from >= 0);
    if (fstatat(to, to_name, &facts, AT_SYMLINK_NOFOLLOW) == 0) {
        return -EEXIST;
    }
    if (errno != ENOENT) {
        return -errno;
    }
    return renameat(from, name, to, to_name) == 0 ? 0 : -errno;
}

static int posix_move(struct mqx_io *io, int from, const char *name, int to, const char *to_name)
{
    (void)io;
    if (!is_component(name) || !is_component(to_name)) {
        return -EINVAL;
    }
    if (syscall(SYS_renameat2, from, name, to, to_name, NO_REPLACE) == 0) {
        return 0;
    }
    return errno == EINVAL || errno == ENOSYS ? move_unless_there(from, name, to, to_name) : -errno;
}

static int posix_unlink(struct mqx_io *io, int dir, const char *name)
{
    (void)io;
    if (!is_component(name)) {
        return -EINVAL;
    }
    return unlinkat(dir, name, 0) == 0 ? 0 : -errno;
}

static int posix_list(struct mqx_io *io, int dir, mqx_io_visit visit, void *arg)
{
    MQX_ASSERT(visit != NULL);
    struct dirent *entry;
    int result = 0;

    (void)io;
    /* another descriptor: it has a read position */
    int fd = raise_fd(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) {
        return fd;
    }
    DIR *listing = fdopendir(fd);
    if (listing == NULL) {
        result = -errno;
        close(fd);
        return result;
    }
    while (result == 0 && (errno = 0, entry = readdir(listing)) != NULL) {
        if (is_component(entry->d_name) && visit(arg, entry->d_name) != 0) {
            break;
        }
    }
    if (entry == NULL) {
        result = -errno;
    }
    closedir(listing);
    return result;
}

static int posix_medium(struct mqx_io *io, int dir, enum mqx_io_medium *out)
{
    MQX_ASSERT(out != NULL);
    static const struct {
        uint64_t magic;
        enum mqx_io_medium medium;
    } known[] = {
        {0xef53u, MQX_MEDIUM_DISK},       /* ext2, ext3, ext4 */
        {0x58465342u, MQX_MEDIUM_DISK},   /* xfs */
        {0xf2f52010u, MQX_MEDIUM_DISK},   /* f2fs */
        {0x794c7630u, MQX_MEDIUM_DISK},   /* overlayfs */
        {0x9123683eu, MQX_MEDIUM_COW},    /* btrfs */
        {0x2fc12fc1u, MQX_MEDIUM_COW},    /* zfs */
        {0x01021994u, MQX_MEDIUM_MEMORY}, /* tmpfs */
    };
    struct statfs st;

    (void)io;
    if (fstatfs(dir, &st) != 0) {
        return -errno;
    }
    *out = MQX_MEDIUM_REFUSED;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(known); i++) {
        if ((uint64_t)(uint32_t)st.f_type == known[i].magic) {
            *out = known[i].medium;
        }
    }
    return 0;
}

/* A whole number of bytes, so that "until the end of the file" (length 0) is never meant. */
static int lock_range(uint64_t offset, uint64_t size, int type, struct flock *out)
{
    MQX_ASSERT(out != NULL);
    if (size == 0 || size > INT64_MAX || offset > INT64_MAX - size) {
        return -EINVAL;
    }
    *out = (struct flock){
        .l_type = (short)type,
        .l_whence = SEEK_SET,
        .l_start = (off_t)offset,
        .l_len = (off_t)size,
    };
    return 0;
}

static int posix_lock(struct mqx_io *io, int fd, uint64_t offset, uint64_t size, int kind)
{
    static const int types[] = {F_UNLCK, F_RDLCK, F_WRLCK};
    struct flock range;

    (void)io;
    MQX_ASSERT(kind >= MQX_IO_UNLOCK && kind <= MQX_IO_LOCK_EXCLUSIVE);
    int result = lock_range(offset, size, types[kind], &range);
    if (result == 0 && fcntl(fd, F_OFD_SETLK, &range) != 0) {
        result = errno == EACCES ? -EAGAIN : -errno;
    }
    return result;
}

static int posix_test_lock(struct mqx_io *io, int fd, uint64_t offset, uint64_t size,
                           bool *out_held)
{
    MQX_ASSERT(out_held != NULL);
    struct flock range;

    (void)io;
    int result = lock_range(offset, size, F_WRLCK, &range);
    if (result == 0 && fcntl(fd, F_OFD_GETLK, &range) != 0) {
        result = -errno;
    }
    *out_held = result == 0 && range.l_type != F_UNLCK;
    return result;
}

static int posix_map(struct mqx_io *io, int fd, uint64_t size, int kind, void **out)
{
    MQX_ASSERT(out != NULL);
    bool region = kind == MQX_IO_MAP_REGION;
    int protection = region ? PROT_READ | PROT_WRITE : PROT_READ;
    int flags = region ? MAP_SHARED | MAP_NORESERVE : MAP_SHARED;

    (void)io;
    MQX_ASSERT(region || kind == MQX_IO_MAP_READ);
    void *at = mmap(NULL, (size_t)size, protection, flags, fd, 0);
    if (at == MAP_FAILED) {
        return -errno;
    }
    if (region && madvise(at, (size_t)size, MADV_DONTFORK) != 0) {
        int result = -errno;
        munmap(at, (size_t)size);
        return result;
    }
    *out = at;
    return 0;
}

static int posix_map_part(struct mqx_io *io, int fd, uint64_t offset, uint64_t size, void *at)
{
    MQX_ASSERT(offset % MQX_PAGE_SIZE == 0);
    MQX_ASSERT((uintptr_t)at % MQX_PAGE_SIZE == 0);
    (void)io;
    void *got = mmap(at, (size_t)size, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, (off_t)offset);
    if (got == MAP_FAILED) {
        return -errno;
    }
    int result = got == at ? 0 : -EEXIST; /* kernels before 4.17 take the address for a hint */
    if (result == 0 && madvise(got, (size_t)size, MADV_DONTFORK) != 0) {
        result = -errno;
    }
    if (result != 0) {
        munmap(got, (size_t)size);
    }
    return result;
}

static int posix_unmap(struct mqx_io *io, void *at, uint64_t size)
{
    MQX_ASSERT((uintptr_t)at % MQX_PAGE_SIZE == 0);
    MQX_ASSERT(size > 0);
    (void)io;
    return munmap(at, (size_t)size) == 0 ? 0 : -errno;
}

static int posix_populate(struct mqx_io *io, const void *at, uint64_t size)
{
    MQX_ASSERT(at != NULL);
    uintptr_t first = (uintptr_t)at & ~(uintptr_t)(MQX_PAGE_SIZE - 1);
    size_t length = (uintptr_t)at + (size_t)size - first;
    int result;

    (void)io;
    do {
        result = madvise((void *)first, length, MADV_POPULATE_READ) == 0 ? 0 : -errno;
    } while (result == -EINTR);
    if (result == -EINVAL) {
        return 0; /* the kernel is older than the call: pages come as they are touched */
    }
    return result == -EFAULT || result == -EHWPOISON ? -EIO : result;
}

static int posix_populate_write(struct mqx_io *io, void *at, uint64_t size)
{
    MQX_ASSERT((uintptr_t)at % MQX_PAGE_SIZE == 0);
    MQX_ASSERT(size % MQX_PAGE_SIZE == 0);
    int result;

    (void)io;
    do {
        result = madvise(at, (size_t)size, MADV_POPULATE_WRITE) == 0 ? 0 : -errno;
    } while (result == -EINTR);
    return result;
}

static int posix_drop_cache(struct mqx_io *io, int fd)
{
    (void)io;
    return -posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static int posix_random(struct mqx_io *io, void *to, size_t size)
{
    (void)io;
    MQX_ASSERT(to != NULL);
    return mqx_random_bytes(to, size) == MQX_OK ? 0 : -EIO;
}

static uint64_t posix_now_us(struct mqx_io *io)
{
    (void)io;
    return mqx_clock_wall_us();
}

static const struct mqx_io_ops posix_ops = {
    .open_dir = posix_open_dir,
    .open_sub = posix_open_sub,
    .make_sub = posix_make_sub,
    .remove_sub = posix_remove_sub,
    .open = posix_open,
    .memory_file = posix_memory_file,
    .open_of_process = posix_open_of_process,
    .close = posix_close,
    .read = posix_read,
    .write = posix_write,
    .sync = posix_sync,
    .sync_dir = posix_sync_dir,
    .truncate = posix_truncate,
    .allocate = posix_allocate,
    .allocate_huge = posix_allocate_huge,
    .punch = posix_punch,
    .rename = posix_rename,
    .move = posix_move,
    .unlink = posix_unlink,
    .list = posix_list,
    .stat = posix_stat,
    .medium = posix_medium,
    .lock = posix_lock,
    .test_lock = posix_test_lock,
    .map = posix_map,
    .map_part = posix_map_part,
    .unmap = posix_unmap,
    .populate = posix_populate,
    .populate_write = posix_populate_write,
    .drop_cache = posix_drop_cache,
    .random = posix_random,
    .now_us = posix_now_us,
};

struct mqx_io *mqx_io_posix(void)
{
    static struct mqx_io posix = {.ops = &posix_ops};
    return &posix;
}

struct shared_table {
    struct mqx_io io;
    struct shared_table *next;
};
static struct shared_table *shared_tables; /* only ever grows, at its head */

struct mqx_io *mqx_io_posix_shared(uint32_t group)
{
    struct shared_table *first = __atomic_load_n(&shared_tables, __ATOMIC_ACQUIRE);
    struct shared_table *fresh = NULL;
    MQX_ASSERT(posix_ops.open != NULL);
    do {
        for (struct shared_table *it = first; it != NULL; it = it->next) {
            if (it->io.group == group) {
                free(fresh);
                return &it->io;
            }
        }
        fresh = fresh != NULL ? fresh : malloc(sizeof *fresh);
        if (fresh == NULL) {
            return NULL;
        }
        *fresh = (struct shared_table){
            .io = {.ops = &posix_ops, .shared = true, .group = group}, .next = first};
    } while (!__atomic_compare_exchange_n(&shared_tables, &first, fresh, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return &fresh->io;
}

bool mqx_io_is_ours(const struct mqx_io *io, const struct mqx_io_stat *facts)
{
    MQX_ASSERT(io != NULL);
    MQX_ASSERT(facts != NULL);
    if (io->shared) {
        return facts->group == io->group && (facts->mode & 07u) == 0;
    }
    return facts->owner == (uint32_t)geteuid() && (facts->mode & 022u) == 0;
}

bool mqx_io_is_member(uint32_t group)
{
    if ((uint32_t)getegid() == group) {
        return true;
    }
    const int count = getgroups(0, NULL);
    gid_t *groups = count > 0 ? malloc((size_t)count * sizeof *groups) : NULL;
    const int filled = groups != NULL ? getgroups(count, groups) : 0;
    bool found = false;
    for (int i = 0; i < filled && !found; i++) {
        found = (uint32_t)groups[i] == group;
    }
    free(groups);
    MQX_ASSERT(!found || filled > 0);
    return found;
}

static int reason_of(int error)
{
    MQX_ASSERT(error > 0);
    switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return MQRC_STORAGE_MEDIUM_FULL;
    case EIO:
    case ESTALE: /* another file stands where ours was */
        return MQRC_OBJECT_DAMAGED;
    case ENOMEM:
        return MQRC_STORAGE_NOT_AVAILABLE;
    case EACCES:
    case EPERM:
    case EROFS:
    case MQX_EFOREIGN:
        return MQRC_NOT_AUTHORIZED;
    case EMFILE:
    case ENFILE:
        return MQRC_RESOURCE_PROBLEM;
    case EMLINK:
    case EBADF:
        return MQRC_ENVIRONMENT_ERROR;
    default:
        return MQRC_UNEXPECTED_ERROR;
    }
}

int mqx_io_reason(int negated_errno, const char *what)
{
    MQX_ASSERT(what != NULL);
    char text[128];

    MQX_ASSERT(negated_errno < 0);
    const char *meaning = strerror_r(-negated_errno, text, sizeof text);
    if (negated_errno == -MQX_EFOREIGN) {
        meaning = "it belongs to another user or group, or others may write it";
    } else if (negated_errno == -EBADF) {
        meaning = "Bad file descriptor: this program has closed or replaced one that penstock had "
                  "opened. Let it close only what it has opened, and connect again";
    } else if (negated_errno == -EMLINK) {
        meaning = "the file has another name, too (a hard link, as cp -al and some backup tools "
                  "make them): what is written changes the copy. Remove the copy, or give this "
                  "queue manager a file of its own (cp -p FILE FILE.new; mv FILE.new FILE); find . "
                  "-type f -links +1 in its directory lists such files";
    }
    return mqx_fail(reason_of(-negated_errno), "%s: %s", what, meaning);
}

bool mqx_io_write_is_own_fault(int negated_errno)
{
    MQX_ASSERT(negated_errno < 0);
    return negated_errno == -EFBIG || negated_errno == -EBADF;
}

int mqx_io_read_all(struct mqx_io *io, int fd, void *to, size_t size, uint64_t offset)
{
    MQX_ASSERT(io != NULL && io->ops != NULL);
    MQX_ASSERT(to != NULL || size == 0);
    int64_t n = io->ops->read(io, fd, to, size, offset);
    if (n < 0) {
        return (int)n;
    }
    MQX_ASSERT((uint64_t)n <= size);
    return (size_t)n == size ? 0 : -EIO;
}

int mqx_io_write_all(struct mqx_io *io, int fd, const void *from, size_t size, uint64_t offset,
                     int flags)
{
    MQX_ASSERT(io != NULL && io->ops != NULL);
    MQX_ASSERT(from != NULL || size == 0);
    /* iovec has no const; a write does not change what it names. */
    struct iovec part = {.iov_base = (void *)(uintptr_t)from, .iov_len = size};
    return io->ops->write(io, fd, &part, 1, offset, flags);
}
