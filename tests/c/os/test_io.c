/*
 * test_io.c - proves csrc/io.c: the promises of io.h on a real directory, and that the table in
 * memory (memory_io.c) gives the same results and contents for the same calls.
 */
#include "base/error.h"
#include "fixtures/harness.h"
#include "os/io.h"
#include "fixtures/memory_io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

static char scratch[PATH_MAX];

static unsigned statx_wanted; /* what the newest statx asked for */
static bool statx_forbidden;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (number == SYS_statx) {
        statx_wanted = (unsigned)d;
        if (statx_forbidden) {
            errno = EPERM;
            return -1;
        }
    }
    return __real_syscall(number, a, b, c, d, e, f);
}

static struct mqx_io *posix(void)
{
    return mqx_io_posix();
}

static void remove_scratch(void)
{
    char command[PATH_MAX + 16];
    if (scratch[0] != '\0') {
        snprintf(command, sizeof command, "rm -rf '%s'", scratch);
        if (system(command) != 0) {
            fprintf(stderr, "cannot remove %s\n", scratch);
        }
    }
}

/* An empty directory of this program, opened through the table. */
static int fresh_dir(void)
{
    const char *base = getenv("TMPDIR");
    remove_scratch();
    snprintf(scratch, sizeof scratch, "%s/penstock-io-XXXXXX", base != NULL ? base : "/tmp");
    CHECK(mkdtemp(scratch) != NULL);
    static bool registered;
    if (!registered) {
        registered = true;
        atexit(remove_scratch);
    }
    int dir = posix()->ops->open_dir(posix(), scratch);
    CHECK(dir >= 3);
    return dir;
}

static int make_file(int dir, const char *name, const char *text)
{
    int fd = posix()->ops->open(posix(), dir, name, MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    CHECK(fd >= 3);
    CHECK_INT(mqx_io_write_all(posix(), fd, text, strlen(text), 0, 0), 0);
    return fd;
}

static void check_content(int dir, const char *name, const char *text)
{
    char found[64] = "";
    const int fd = posix()->ops->open(posix(), dir, name, MQX_IO_READ, 0);
    CHECK(fd >= 3);
    CHECK_INT(mqx_io_read_all(posix(), fd, found, strlen(text), 0), 0);
    CHECK(strcmp(found, text) == 0);
    CHECK_INT(posix()->ops->close(posix(), fd), 0);
}

/* ---- a kernel that cuts transfers short: this program's own versions of some system calls ---- */

static bool shim_on;        /* every second call is interrupted, the others move few bytes */
static bool shim_old;       /* pwritev2 does not know RWF_DSYNC */
static uint32_t shim_calls;
static uint32_t shim_flushes;

/* Cuts the parts down to at most 1000 bytes; returns how many parts are left. */
static int cut_parts(const struct iovec *parts, int count, struct iovec *out)
{
    size_t left = 1000;
    int used = 0;
    for (; used < count && left > 0; used++) {
        out[used] = parts[used];
        out[used].iov_len = parts[used].iov_len < left ? parts[used].iov_len : left;
        left -= out[used].iov_len;
    }
    return used;
}

ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    struct iovec cut[64];
    if (shim_old && flags != 0) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (shim_on && shim_calls++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    if (shim_on && count <= 64) {
        count = cut_parts(parts, count, cut);
        parts = cut;
    }
    return syscall(SYS_pwritev2, fd, parts, count, offset, 0, flags);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    return pwritev2(fd, parts, count, offset, 0);
}

ssize_t pread(int fd, void *to, size_t size, off_t offset)
{
    if (shim_on && shim_calls++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return syscall(SYS_pread64, fd, to, shim_on && size > 700 ? 700 : size, offset);
}

int fdatasync(int fd)
{
    shim_flushes++;
    if (shim_on && shim_calls++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}

TEST(create_sets_the_mode_whatever_the_umask_and_refuses_an_existing_name)
{
    const struct mqx_io_ops *ops = posix()->ops;
    struct mqx_io_stat st;
    int dir = fresh_dir();
    mode_t old = umask(077);
    int fd = ops->open(posix(), dir, "a", MQX_IO_WRITE | MQX_IO_CREATE, 0644);
    int made = ops->make_sub(posix(), dir, "sub", 0755);
    umask(old);

    CHECK(fd >= 3);
    CHECK_INT(made, 0);
    CHECK_INT(ops->stat(posix(), fd, &st), 0);
    CHECK_INT(st.mode, S_IFREG | 0644);
    CHECK_INT(st.links, 1);
    CHECK_INT(st.owner, geteuid());
    int sub = ops->open_sub(posix(), dir, "sub");
    CHECK_INT(ops->stat(posix(), sub, &st), 0);
    CHECK_INT(st.mode, S_IFDIR | 0755);
    CHECK_INT(ops->open(posix(), dir, "a", MQX_IO_WRITE | MQX_IO_CREATE, 0600), -EEXIST);
    CHECK_INT(ops->make_sub(posix(), dir, "sub", 0700), -EEXIST);
    CHECK_INT(ops->open(posix(), dir, "b", MQX_IO_CREATE, 0600), -EINVAL);
    CHECK_INT(ops->remove_sub(posix(), dir, "sub"), 0);
    CHECK_INT(ops->close(posix(), fd), 0);
    CHECK_INT(ops->close(posix(), sub), 0);
    CHECK_INT(ops->close(posix(), dir), 0);
}

TEST(links_fifos_and_directories_are_refused_as_files)
{
    const struct mqx_io_ops *ops = posix()->ops;
    int dir = fresh_dir();

    CHECK_INT(ops->close(posix(), make_file(dir, "file", "x")), 0);
    CHECK_INT(symlinkat("file", dir, "symlink"), 0);
    CHECK_INT(linkat(dir, "file", dir, "hard", 0), 0);
    CHECK_INT(mkfifoat(dir, "fifo", 0600), 0);
    CHECK_INT(mkdirat(dir, "sub", 0700), 0);
    CHECK_INT(symlinkat("sub", dir, "sublink"), 0);
    CHECK_INT(ops->open(posix(), dir, "symlink", MQX_IO_READ, 0), -ELOOP);
    CHECK_INT(ops->open(posix(), dir, "hard", MQX_IO_READ, 0), -EMLINK);
    CHECK_INT(ops->open(posix(), dir, "file", MQX_IO_WRITE, 0), -EMLINK);
    CHECK_INT(ops->open(posix(), dir, "fifo", MQX_IO_READ, 0), -EINVAL);
    CHECK_INT(ops->open(posix(), dir, "sub", MQX_IO_READ, 0), -EISDIR);
    CHECK_INT(ops->open(posix(), dir, "sub", MQX_IO_WRITE, 0), -EISDIR);
    CHECK_INT(ops->open_sub(posix(), dir, "sublink"), -ENOTDIR);
    CHECK_INT(ops->open_sub(posix(), dir, "file"), -ENOTDIR);
    CHECK_INT(ops->open(posix(), dir, "none", MQX_IO_READ, 0), -ENOENT);
    CHECK_INT(ops->close(posix(), dir), 0);
}

/* ---- whose files ---- */

TEST(a_file_that_others_may_write_or_own_is_refused)
{
    const struct mqx_io_ops *ops = posix()->ops;
    int dir = fresh_dir();
    int fd = make_file(dir, "file", "x");
    CHECK_INT(fchmod(fd, 0620), 0);
    CHECK_INT(ops->open(posix(), dir, "file", MQX_IO_READ, 0), -MQX_EFOREIGN);
    CHECK_INT(fchmod(fd, 0602), 0);
    CHECK_INT(ops->open(posix(), dir, "file", MQX_IO_WRITE, 0), -MQX_EFOREIGN);
    CHECK_INT(mqx_io_reason(-MQX_EFOREIGN, "opening it"), MQRC_NOT_AUTHORIZED);
    CHECK(strstr(mqx_error_text(), "opening it: it belongs to another user") != NULL);
    CHECK_INT(fchmod(fd, 0644), 0);
    if (geteuid() == 0) {
        CHECK_INT(fchown(fd, 65534, 0), 0);
        CHECK_INT(ops->open(posix(), dir, "file", MQX_IO_READ, 0), -MQX_EFOREIGN);
        CHECK_INT(fchown(fd, 0, 65534), 0);
    }
    int again = ops->open(posix(), dir, "file", MQX_IO_READ, 0);
    CHECK(again >= 3);
    CHECK_INT(ops->close(posix(), again), 0);
    CHECK_INT(ops->close(posix(), fd), 0);
    CHECK_INT(ops->close(posix(), dir), 0);
}

TEST(what_a_table_of_a_group_creates_is_shared_by_the_group_whatever_the_umask)
{
    const uint32_t group = geteuid() == 0 ? 65534 : (uint32_t)getegid();
    struct mqx_io *io = mqx_io_posix_shared(group);
    struct mqx_io_stat st;
    CHECK(io != NULL && io->shared && io->group == group);
    CHECK(mqx_io_posix_shared(group) == io);
    CHECK(mqx_io_posix_shared(group + 1) != io);
    CHECK(!posix()->shared);
    int dir = fresh_dir();
    mode_t old = umask(077);
    int fd = io->ops->open(io, dir, "a", MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    int made = io->ops->make_sub(io, dir, "sub", 0700);
    umask(old);
    CHECK_INT(made, 0);
    CHECK_INT(io->ops->stat(io, fd, &st), 0);
    CHECK_INT(st.mode, S_IFREG | 0660);
    CHECK_INT(st.group, group);
    int sub = io->ops->open_sub(io, dir, "sub");
    CHECK_INT(io->ops->stat(io, sub, &st), 0);
    CHECK_INT(st.mode, S_IFDIR | S_ISGID | 0770);
    CHECK_INT(st.group, group);
    CHECK_INT(fchmod(fd, 0664), 0);
    CHECK_INT(io->ops->open(io, dir, "a", MQX_IO_READ, 0), -MQX_EFOREIGN);
    CHECK_INT(fchmod(fd, 0660), 0);
    CHECK_INT(posix()->ops->open(posix(), dir, "a", MQX_IO_READ, 0), -MQX_EFOREIGN);
    struct mqx_io *other = mqx_io_posix_shared(group + 1);
    CHECK_INT(other->ops->open(other, dir, "a", MQX_IO_READ, 0), -MQX_EFOREIGN);
    int again = io->ops->open(io, dir, "a", MQX_IO_WRITE, 0);
    CHECK(again >= 3);
    const int opened[] = {again, fd, sub, dir};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(opened); i++) {
        CHECK_INT(io->ops->close(io, opened[i]), 0);
    }
}

TEST(a_process_is_in_its_effective_group_and_in_its_other_groups)
{
    gid_t groups[256];
    const int count = getgroups(256, groups);
    CHECK(mqx_io_is_member((uint32_t)getegid()));
    for (int i = 0; i < count; i++) {
        CHECK(mqx_io_is_member((uint32_t)groups[i]));
    }
    CHECK(!mqx_io_is_member(4294967));
}

TEST(a_name_is_one_component)
{
    static const char *const bad[] = {"", ".", "..", "a/b", "/a", "a/"};
    const struct mqx_io_ops *ops = posix()->ops;
    int dir = fresh_dir();

    for (size_t i = 0; i < MQX_ARRAY_COUNT(bad); i++) {
        CHECK_INT(ops->open(posix(), dir, bad[i], MQX_IO_WRITE | MQX_IO_CREATE, 0600), -EINVAL);
        CHECK_INT(ops->open_sub(posix(), dir, bad[i]), -EINVAL);
        CHECK_INT(ops->make_sub(posix(), dir, bad[i], 0700), -EINVAL);
        CHECK_INT(ops->remove_sub(posix(), dir, bad[i]), -EINVAL);
        CHECK_INT(ops->unlink(posix(), dir, bad[i]), -EINVAL);
        CHECK_INT(ops->rename(posix(), dir, bad[i], "x"), -EINVAL);
        CHECK_INT(ops->rename(posix(), dir, "x", bad[i]), -EINVAL);
    }
    CHECK_INT(ops->close(posix(), dir), 0);
}

TEST(descriptors_are_close_on_exec_and_never_a_standard_stream)
{
    const struct mqx_io_ops *ops = posix()->ops;
    int dir = fresh_dir();
    int saved = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    int fd = ops->open(posix(), dir, "a", MQX_IO_WRITE | MQX_IO_CREATE, 0600);
    int again = ops->open_dir(posix(), scratch);
    if (saved >= 0) {
        dup2(saved, STDIN_FILENO);
        close(saved);
    }

    CHECK(fd >= 3 && again >= 3);
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK((fcntl(again, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK_INT(ops->close(posix(), fd), 0);
    CHECK_INT(ops->close(posix(), again), 0);
    CHECK_INT(ops->close(posix(), dir), 0);
    CHECK_INT(ops->close(posix(), fd), -EBADF);
}

TEST(a_vectored_write_of_many_parts_arrives_whole_with_and_without_dsync)
{
    enum { PARTS = 300, SIZE = 1000 };
    static char bytes[PARTS][SIZE];
    static char back[PARTS * SIZE];
    struct iovec parts[PARTS];
    const struct mqx_io_ops *ops = posix()->ops;
    int dir = fresh_dir();
    int fd = make_file(dir, "a", "");
    size_t total = 0;

    for (int i = 0; i < PARTS; i++) {
        size_t length = i % 7 == 0 ? 0 : (size_t)(i * 3);
        memset(bytes[i], 'a' + i % 26, SIZE);
        parts[i] = (struct iovec){bytes[i], length};
        total += length;
    }
    for (int flags = 0; flags <= MQX_IO_DSYNC; flags++) {
        CHECK_INT(ops->write(posix(), fd, parts, PARTS, 5 + (uint64_t)flags, flags), 0);
        CHECK_INT(mqx_io_read_all(posix(), fd, back, total, 5 + (uint64_t)flags), 0);
        for (size_t i = 0, at = 0; i < PARTS; at += parts[i].iov_len, i++) {
            CHECK_MEM(back + at, bytes[i], parts[i].iov_len);
        }
    }
    CHECK_INT(ops->write(posix(), fd, parts, 0, 0, MQX_IO_DSYNC), 0);
    CHECK_INT(ops->close(posix(), fd), 0);
    CHECK_INT(ops->close(posix(), dir), 0);
}

TEST(a_read_is_short_only_at_the_end_of_the_file)
{
    char back[20];
    int dir = fresh_dir();
    int fd = make_file(dir, "a", "0123456789");

    CHECK_INT(posix()->ops->read(posix(), fd, back, 20, 0), 10);
    CHECK_INT(posix()->ops->read(posix(), fd, back, 20, 4), 6);
    CHECK_MEM(back, "456789", 6);
    CHECK_INT(posix()->ops->read(posix(), fd, back, 20, 10), 0);
    CHECK_INT(mqx_io_read_all(posix(), fd, back, 6, 4), 0);
    CHECK_INT(mqx_io_read_all(posix(), fd, back, 7, 4), -EIO);
    CHECK_INT(mqx_io_read_all(posix(), 9999, back, 7, 4), -EBADF);
    CHECK_INT(posix()->ops->close(posix(), fd), 0);
    CHECK_INT(posix()->ops->close(posix(), dir), 0);
}

static void write_beyond_the_limit(void *arg)
{
    int *fd = arg;
    struct rlimit limit = {8192, 8192};
    static char bytes[16384];
    struct iovec part = {bytes, sizeof bytes};

    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    int result = posix()->ops->write(posix(), *fd, &part, 1, 0, MQX_IO_DSYNC);
    raise(result == -EFBIG ? SIGUSR1 : SIGUSR2);
}

TEST(a_write_that_stays_short_is_an_error_not_a_short_success)
{
    char text[16];
    int dir = fresh_dir();
    int fd = make_file(dir, "a", "");

    CHECK(test_dies(SIGUSR1, write_beyond_the_limit, &fd, text, sizeof text));
    CHECK_INT(posix()->ops->close(posix(), fd), 0);
    CHECK_INT(posix()->ops->close(posix(), dir), 0);
}

static int count_names(void *arg, const char *name)
{
    char *seen = arg;
    strcat(strcat(seen, name), " ");
    return strcmp(name, "stop") == 0;
}

TEST(list_gives_every_name_once_without_dots_and_can_be_repeated)
{
    const struct mqx_io_ops *ops = posix()->ops;
    int dir = fresh_dir();
    char seen[64] = "";

    CHECK_INT(ops->list(posix(), dir, count_names, seen), 0);
    CHECK_STR(seen, "");
    CHECK_INT(ops->close(posix(), make_file(dir, "only", "")), 0);
    for (int i = 0; i < 2; i++) {
        seen[0] = '\0';
        CHECK_INT(ops->list(posix(), dir, count_names, seen), 0);
        CHECK_STR(seen, "only ");
    }
    CHECK_INT(ops->list(posix(), 9999, count_names, seen), -EBADF);
    CHECK_INT(ops->close(posix(), dir), 0);
}

static void take_lock_elsewhere(void *arg)
{
    const char *name = arg;
    bool held = false;
    int dir = posix()->ops->open_dir(posix(), scratch);
    int fd = posix()->ops->open(posix(), dir, name, MQX_IO_WRITE, 0);
    bool refused = posix()->ops->lock(posix(), fd, 5, 1, MQX_IO_LOCK_EXCLUSIVE) == -EAGAIN &&
                   posix()->ops->lock(posix(), fd, 5, 1, MQX_IO_LOCK_SHARED) == -EAGAIN &&
                   posix()->ops->lock(posix(), fd, 6, 1, MQX_IO_LOCK_SHARED) == 0 &&
                   posix()->ops->lock(posix(), fd, 6, 1, MQX_IO_LOCK_EXCLUSIVE) == -EAGAIN &&
                   posix()->ops->lock(posix(), fd, 7, 1, MQX_IO_LOCK_EXCLUSIVE) == 0 &&
                   posix()->ops->test_lock(posix(), fd, 5, 1, &held) == 0 && held;
    raise(refused ? SIGUSR1 : SIGUSR2);
}

TEST(locks_exclude_other_processes_by_byte_and_closing_another_descriptor_keeps_them)
{
    const struct mqx_io_ops *ops = posix()->ops;
    char text[16];
    char name[] = "lock";
    bool held = true;
    int dir = fresh_dir();
    int fd = make_file(dir, name, "");

    CHECK_INT(ops->lock(posix(), fd, 5, 1, MQX_IO_LOCK_EXCLUSIVE), 0);
    CHECK_INT(ops->lock(posix(), fd, 6, 1, MQX_IO_LOCK_SHARED), 0);
    CHECK_INT(ops->close(posix(), ops->open(posix(), dir, name, MQX_IO_READ, 0)), 0);
    CHECK(test_dies(SIGUSR1, take_lock_elsewhere, name, text, sizeof text));
    CHECK_INT(ops->test_lock(posix(), fd, 5, 1, &held), 0);
    CHECK(!held); /* its own lock */
    CHECK_INT(ops->lock(posix(), fd, 5, 1, MQX_IO_UNLOCK), 0);
    CHECK(test_dies(SIGUSR2, take_lock_elsewhere, name, text, sizeof text));
    CHECK_INT(ops->lock(posix(), fd, 5, 0, MQX_IO_LOCK_SHARED), -EINVAL);
    CHECK_INT(ops->lock(posix(), fd, UINT64_MAX, 2, MQX_IO_LOCK_SHARED), -EINVAL);
    CHECK_INT(ops->close(posix(), fd), 0);
    CHECK_INT(ops->close(posix(), dir), 0);
}

static void store_into(void *arg)
{
    *(volatile char *)arg = 1;
}

TEST(a_read_mapping_shows_the_file_and_a_region_mapping_is_shared_but_not_inherited)
{
    const struct mqx_io_ops *ops = posix()->ops;
    char text[16384];
    void *view = NULL;
    void *region = NULL;
    void *again = NULL;
    int dir = fresh_dir();
    int fd = make_file(dir, "a", "0123456789");

    CHECK_INT(ops->map(posix(), fd, 4096, MQX_IO_MAP_READ, &view), 0);
    CHECK_MEM(view, "0123456789", 10);
    CHECK_INT(ops->populate(posix(), (char *)view + 100, 200), 0);
    CHECK_INT(ops->truncate(posix(), fd, 65536), 0);
    CHECK_INT(ops->allocate(posix(), fd, 0, 65536), 0);
    CHECK_INT(ops->map(posix(), fd, 65536, MQX_IO_MAP_REGION, &region), 0);
    CHECK_INT(ops->map(posix(), fd, 65536, MQX_IO_MAP_REGION, &again), 0);
    ((char *)region)[60000] = 'x';
    CHECK_INT(((char *)again)[60000], 'x');
    CHECK(test_dies(SIGSEGV, store_into, region, text, sizeof text) ||
          strstr(text, "SEGV") != NULL); /* gone in the child; a sanitizer says so itself */
    CHECK_INT(ops->unmap(posix(), region, 65536), 0);
    CHECK_INT(ops->unmap(posix(), again, 65536), 0);
    CHECK_INT(ops->unmap(posix(), view, 4096), 0);
    CHECK_INT(ops->map(posix(), fd, 0, MQX_IO_MAP_READ, &view), -EINVAL);
    CHECK_INT(ops->drop_cache(posix(), fd), 0);
    CHECK_INT(ops->close(posix(), fd), 0);
    CHECK_INT(ops->close(posix(), dir), 0);
}

TEST(a_part_is_mapped_where_it_is_wanted_and_never_over_another)
{
    const struct mqx_io_ops *ops = posix()->ops;
    void *whole = NULL;
    int dir = fresh_dir();
    int fd = make_file(dir, "a", "");
    CHECK_INT(ops->truncate(posix(), fd, 65536), 0);
    CHECK_INT(ops->map(posix(), fd, 65536, MQX_IO_MAP_REGION, &whole), 0);
    CHECK_INT(ops->map_part(posix(), fd, 0, 8192, whole), -EEXIST);
    CHECK_INT(ops->unmap(posix(), (char *)whole + 8192, 65536 - 8192), 0);
    CHECK_INT(ops->map_part(posix(), fd, 8192, 4096, (char *)whole + 8192), 0);
    ((char *)whole)[8192] = 'y';
    char byte = 0;
    CHECK_INT(ops->read(posix(), fd, &byte, 1, 8192), 1);
    CHECK_INT(byte, 'y');
    CHECK_INT(ops->unmap(posix(), whole, 12288), 0);
    CHECK_INT(ops->close(posix(), fd), 0);
    CHECK_INT(ops->close(posix(), dir), 0);
}

TEST(a_memory_file_has_no_name_is_ours_and_is_opened_again_while_somebody_has_it)
{
    const struct mqx_io_ops *ops = posix()->ops;
    struct mqx_io_stat facts;
    char byte = 0;
    const int fd = ops->memory_file(posix(), "penstock-test");
    CHECK(fd >= 3 && (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK_INT(ops->stat(posix(), fd, &facts), 0);
    CHECK_INT(facts.links, 0);
    CHECK_INT(facts.mode & 07777, 0600);
    CHECK_INT(facts.owner, geteuid());
    CHECK_INT(mqx_io_write_all(posix(), fd, "m", 1, 0, 0), 0);
    const int again = ops->open_of_process(posix(), (int32_t)getpid(), facts.device, facts.inode);
    CHECK(again >= 3 && again != fd);
    CHECK_INT(ops->allocate(posix(), again, 0, 8192), 0);
    CHECK_INT(ops->punch(posix(), again, 4096, 4096), 0);
    CHECK_INT(mqx_io_read_all(posix(), again, &byte, 1, 0), 0);
    CHECK_INT(byte, 'm');
    CHECK_INT(fchmod(again, 0666), 0);
    CHECK_INT(ops->open_of_process(posix(), 0, facts.device, facts.inode), -MQX_EFOREIGN);
    CHECK_INT(ops->close(posix(), again), 0);
    CHECK_INT(ops->close(posix(), fd), 0);
    CHECK_INT(ops->open_of_process(posix(), 0, facts.device, facts.inode), -ENOENT);
}

TEST(populating_behind_the_end_of_the_file_is_an_error_not_a_signal)
{
    const struct mqx_io_ops *ops = posix()->ops;
    void *view = NULL;
    int dir = fresh_dir();
    int fd = make_file(dir, "a", "0123456789");

    CHECK_INT(ops->map(posix(), fd, 8192, MQX_IO_MAP_READ, &view), 0);
    CHECK_INT(ops->populate(posix(), view, 4096), 0);
    int result = ops->populate(posix(), (char *)view + 4096, 4096);
    CHECK(result == -EIO || result == 0); /* 0 where the kernel lacks MADV_POPULATE_READ */
    CHECK_INT(ops->unmap(posix(), view, 8192), 0);
    CHECK_INT(ops->close(posix(), fd), 0);
    CHECK_INT(ops->close(posix(), dir), 0);
}

TEST(a_move_takes_a_file_to_a_name_in_another_directory_and_replaces_none)
{
    const struct mqx_io_ops *ops = posix()->ops;
    int dir = fresh_dir();
    CHECK_INT(ops->make_sub(posix(), dir, "other", 0700), 0);
    int other = ops->open_sub(posix(), dir, "other");
    CHECK_INT(ops->close(posix(), make_file(dir, "a", "abc")), 0);
    CHECK_INT(ops->close(posix(), make_file(other, "b", "there")), 0);
    CHECK_INT(ops->move(posix(), dir, "../a", other, "a"), -EINVAL);
    CHECK_INT(ops->move(posix(), dir, "a", other, "../a"), -EINVAL);
    CHECK_INT(ops->move(posix(), dir, "b", other, "c"), -ENOENT);
    CHECK_INT(ops->move(posix(), dir, "a", other, "b"), -EEXIST);
    CHECK_INT(ops->move(posix(), dir, "a", other, "c"), 0);
    CHECK_INT(ops->unlink(posix(), dir, "a"), -ENOENT);
    check_content(other, "b", "there");
    check_content(other, "c", "abc");
    CHECK_INT(ops->unlink(posix(), other, "b"), 0);
    CHECK_INT(ops->unlink(posix(), other, "c"), 0);
    CHECK_INT(ops->remove_sub(posix(), dir, "other"), 0);
    CHECK_INT(ops->close(posix(), other), 0);
    CHECK_INT(ops->close(posix(), dir), 0);
}

TEST(a_punched_hole_reads_as_zeroes_and_what_is_around_it_and_the_size_stay)
{
    enum { PAGES = 3 };
    static unsigned char page[MQX_PAGE_SIZE], zeroes[MQX_PAGE_SIZE];
    const struct mqx_io_ops *ops = posix()->ops;
    struct mqx_io_stat st;
    int dir = fresh_dir();
    int fd = make_file(dir, "a", "abc");

    memset(page, 0x5a, sizeof page);
    for (uint64_t i = 0; i < PAGES; i++) {
        CHECK_INT(mqx_io_write_all(posix(), fd, page, sizeof page, i * sizeof page, 0), 0);
    }
    CHECK_INT(ops->punch(posix(), fd, sizeof page, sizeof page), 0);
    for (uint64_t i = 0; i < PAGES; i++) {
        CHECK_INT(mqx_io_read_all(posix(), fd, page, sizeof page, i * sizeof page), 0);
        memset(zeroes, i == 1 ? 0 : 0x5a, sizeof zeroes);
        CHECK_MEM(page, zeroes, sizeof page);
    }
    CHECK_INT(ops->stat(posix(), fd, &st), 0);
    CHECK_INT(st.size, PAGES * sizeof page);
    CHECK_INT(ops->punch(posix(), -1, 0, sizeof page), -EBADF);
    CHECK_INT(ops->close(posix(), fd), 0);
    CHECK_INT(ops->close(posix(), dir), 0);
}

TEST(allocate_truncate_sync_rename_and_unlink_do_what_they_say)
{
    const struct mqx_io_ops *ops = posix()->ops;
    struct mqx_io_stat st;
    int dir = fresh_dir();
    int fd = make_file(dir, "a", "abc");

    CHECK_INT(ops->allocate(posix(), fd, 4096, 4096), 0);
    CHECK_INT(ops->stat(posix(), fd, &st), 0);
    CHECK_INT(st.size, 8192);
    CHECK_INT(ops->truncate(posix(), fd, 2), 0);
    CHECK_INT(ops->sync(posix(), fd), 0);
    CHECK_INT(ops->sync_dir(posix(), dir), 0);
    CHECK_INT(ops->close(posix(), make_file(dir, "b", "other")), 0);
    CHECK_INT(ops->rename(posix(), dir, "a", "b"), 0);
    CHECK_INT(ops->rename(posix(), dir, "a", "b"), -ENOENT);
    CHECK_INT(ops->close(posix(), fd), 0);
    fd = ops->open(posix(), dir, "b", MQX_IO_READ, 0);
    CHECK_INT(ops->stat(posix(), fd, &st), 0);
    CHECK_INT(st.size, 2);
    CHECK_INT(ops->truncate(posix(), fd, 0), -EINVAL);
    CHECK_INT(mqx_io_write_all(posix(), fd, "x", 1, 0, 0), -EBADF);
    CHECK_INT(ops->unlink(posix(), dir, "b"), 0);
    CHECK_INT(ops->unlink(posix(), dir, "b"), -ENOENT);
    CHECK_INT(ops->sync(posix(), 9999), -EBADF);
    CHECK_INT(ops->close(posix(), fd), 0);
    CHECK_INT(ops->close(posix(), dir), 0);
}

TEST(the_medium_of_procfs_is_refused_and_that_of_shared_memory_is_memory)
{
    enum mqx_io_medium medium = MQX_MEDIUM_DISK;
    int dir = posix()->ops->open_dir(posix(), "/proc");

    CHECK(dir >= 3);
    CHECK_INT(posix()->ops->medium(posix(), dir, &medium), 0);
    CHECK_INT(medium, MQX_MEDIUM_REFUSED);
    CHECK_INT(posix()->ops->close(posix(), dir), 0);
    dir = posix()->ops->open_dir(posix(), "/dev/shm");
    CHECK_INT(posix()->ops->medium(posix(), dir, &medium), 0);
    CHECK_INT(medium, MQX_MEDIUM_MEMORY);
    CHECK_INT(posix()->ops->close(posix(), dir), 0);
    CHECK_INT(posix()->ops->medium(posix(), dir, &medium), -EBADF);
}

TEST(the_clock_is_wall_time_in_microseconds)
{
    uint64_t now = posix()->ops->now_us(posix());
    CHECK(now / 1000000 >= (uint64_t)time(NULL) - 2 && now / 1000000 <= (uint64_t)time(NULL) + 2);
}

TEST(every_errno_with_a_mapped_reason_gives_it_and_a_text_that_names_the_file)
{
    static const int mapped[][2] = {
        {ENOSPC, MQRC_STORAGE_MEDIUM_FULL}, {EDQUOT, MQRC_STORAGE_MEDIUM_FULL},
        {EFBIG, MQRC_STORAGE_MEDIUM_FULL},  {EIO, MQRC_OBJECT_DAMAGED},
        {ESTALE, MQRC_OBJECT_DAMAGED},
        {ENOMEM, MQRC_STORAGE_NOT_AVAILABLE}, {EACCES, MQRC_NOT_AUTHORIZED},
        {EPERM, MQRC_NOT_AUTHORIZED},       {EROFS, MQRC_NOT_AUTHORIZED},
        {EMFILE, MQRC_RESOURCE_PROBLEM},    {ENFILE, MQRC_RESOURCE_PROBLEM},
        {EBADF, MQRC_ENVIRONMENT_ERROR},    {ELOOP, MQRC_UNEXPECTED_ERROR},
    };
    for (size_t i = 0; i < MQX_ARRAY_COUNT(mapped); i++) {
        CHECK_INT(mqx_io_reason(-mapped[i][0], "0000000001.psj"), mapped[i][1]);
        CHECK(strstr(mqx_error_text(), "0000000001.psj: ") == mqx_error_text());
        CHECK(strstr(mqx_error_text(), strerror(mapped[i][0])) != NULL);
    }
}

/* ---- the two tables side by side ---- */

enum { NAMES = 5, HELD = 6, STEPS = 20000, SPAN = 30000 };

struct side {
    struct mqx_io *io;
    int dir;
    int held[HELD]; /* descriptors, -1: none */
};

static const char *const names[NAMES] = {"a", "b", "c", "sub", "d"};
static uint8_t noise[SPAN];

/* Carries out random step `kind`; `to` gets what a read gave. Equal numbers, equal arguments. */
static int64_t step(struct side *side, uint64_t kind, const uint64_t r[6], uint8_t *to)
{
    const struct mqx_io_ops *ops = side->io->ops;
    const char *name = names[r[0] % NAMES];
    int *held = &side->held[r[1] % HELD];
    uint64_t offset = r[2] % SPAN;
    size_t size = 1 + r[3] % (SPAN / 2);
    struct iovec parts[3] = {
        {noise + r[4] % 500, size / 3 + 1}, {noise, r[4] % 99}, {noise + 1, size / 2}};

    switch (kind) {
    case 0:
    case 1:
        if (*held >= 0 && r[4] % 8 != 0) {
            return 0;
        }
        if (*held >= 0) {
            int result = ops->close(side->io, *held);
            *held = -1;
            return result;
        }
        *held = ops->open(side->io, side->dir, name, (int)(r[5] % 4), 0600);
        return *held >= 0 ? 0 : *held;
    case 2:
        return r[5] % 4 == 0 ? ops->rename(side->io, side->dir, name, names[r[4] % NAMES]) : 0;
    case 3:
        return r[5] % 3 == 0 ? ops->unlink(side->io, side->dir, name) : 0;
    case 4:
        return r[5] % 2 == 0 ? ops->make_sub(side->io, side->dir, name, 0700)
                             : ops->remove_sub(side->io, side->dir, name);
    case 5:
        return ops->truncate(side->io, *held, offset);
    case 6:
        return ops->allocate(side->io, *held, offset, size);
    case 7:
        return ops->sync(side->io, *held);
    case 8:
    case 9:
    case 10:
        return ops->read(side->io, *held, to, size, offset);
    default:
        return ops->write(side->io, *held, parts, 1 + (int)(r[5] % 3), offset, (int)(r[5] / 8 % 2));
    }
}

static int sum_names(void *arg, const char *name)
{
    uint64_t *sum = arg;
    *sum += UINT64_C(1) << (8 * (unsigned)(name[0] - 'a') % 64);
    return 0;
}

/* A digest of what the side shows: names, and size and bytes of every held file. */
static uint64_t digest(struct side *side, uint8_t *buffer)
{
    uint64_t sum = 0;
    (void)side->io->ops->list(side->io, side->dir, sum_names, &sum);
    for (int i = 0; i < HELD; i++) {
        struct mqx_io_stat st;
        if (side->held[i] < 0 || side->io->ops->stat(side->io, side->held[i], &st) != 0) {
            continue;
        }
        sum = sum * 31 + st.size + 7 * (st.mode & 0170000u) + st.links;
        int64_t n = side->io->ops->read(side->io, side->held[i], buffer, 4 * SPAN, 0);
        for (int64_t k = 0; k < n; k++) {
            sum = sum * 1099511628211u + buffer[k];
        }
    }
    return sum;
}

TEST(memory_and_linux_give_the_same_results_and_contents_for_20000_random_calls)
{
    static uint8_t buffers[2][4 * SPAN];
    struct test_random random = {test_seed()};
    struct memory_io *files = memory_io_new();
    memory_io_make_dirs(files, "/x");
    struct side sides[2] = {{.io = posix(), .dir = fresh_dir()}, {.io = memory_io_table(files)}};
    sides[1].dir = sides[1].io->ops->open_dir(sides[1].io, "/x");

    for (size_t i = 0; i < SPAN; i++) {
        noise[i] = (uint8_t)test_next(&random);
    }
    for (int i = 0; i < HELD; i++) {
        sides[0].held[i] = sides[1].held[i] = -1;
    }
    uint64_t succeeded = 0;
    for (int i = 0; i < STEPS; i++) {
        uint64_t kind = test_below(&random, 16);
        uint64_t r[6];
        for (int k = 0; k < 6; k++) {
            r[k] = test_next(&random);
        }
        r[5] &= i % 100 == 0 ? ~UINT64_C(0) : ~UINT64_C(8); /* few with DSYNC: they are slow */
        int64_t got[2];
        for (int k = 0; k < 2; k++) {
            got[k] = step(&sides[k], kind, r, buffers[k]);
        }
        CHECK_INT(got[1], got[0]);
        succeeded += got[0] >= 0;
        size_t read = kind >= 8 && kind <= 10 && got[0] > 0 ? (size_t)got[0] : 0;
        CHECK_MEM(buffers[1], buffers[0], read);
        if (i % 16 == 0) {
            CHECK_INT(digest(&sides[1], buffers[1]), digest(&sides[0], buffers[0]));
        }
    }
    CHECK(succeeded > STEPS / 2);
    for (int i = 0; i < HELD; i++) {
        if (sides[0].held[i] >= 0) {
            CHECK_INT(posix()->ops->close(posix(), sides[0].held[i]), 0);
        }
    }
    CHECK_INT(posix()->ops->close(posix(), sides[0].dir), 0);
    memory_io_free(files);
}

static void write_and_compare(int fd, int flags)
{
    static uint8_t bytes[3][9000];
    static uint8_t back[27000];
    struct iovec parts[3];
    struct test_random random = {test_seed()};

    for (int i = 0; i < 3; i++) {
        for (size_t k = 0; k < sizeof bytes[i]; k++) {
            bytes[i][k] = (uint8_t)test_next(&random);
        }
        parts[i] = (struct iovec){bytes[i], sizeof bytes[i] - (size_t)i * 333};
    }
    shim_on = true;
    int written = posix()->ops->write(posix(), fd, parts, 3, 77, flags);
    int64_t read = posix()->ops->read(posix(), fd, back, sizeof back, 77);
    shim_on = false;
    CHECK_INT(written, 0);
    CHECK_INT(read, 27000 - 999);
    CHECK_MEM(back, bytes[0], 9000);
    CHECK_MEM(back + 9000, bytes[1], 8667);
    CHECK_MEM(back + 17667, bytes[2], 8334);
}

TEST(short_and_interrupted_transfers_go_on_where_they_stopped)
{
    int dir = fresh_dir();
    int fd = make_file(dir, "a", "");

    shim_flushes = 0;
    write_and_compare(fd, 0);
    write_and_compare(fd, MQX_IO_DSYNC);
    CHECK_INT(shim_flushes, 0);
    CHECK_INT(posix()->ops->close(posix(), fd), 0);
    CHECK_INT(posix()->ops->close(posix(), dir), 0);
}

TEST(where_the_dsync_flag_is_unknown_the_write_is_followed_by_a_flush)
{
    int dir = fresh_dir();
    int fd = make_file(dir, "a", "");

    shim_old = true;
    shim_flushes = 0;
    CHECK_INT(mqx_io_write_all(posix(), fd, "x", 1, 0, MQX_IO_DSYNC), 0);
    CHECK_INT(shim_flushes, 1);
    CHECK_INT(mqx_io_write_all(posix(), fd, "x", 1, 0, 0), 0);
    CHECK_INT(shim_flushes, 1);
    write_and_compare(fd, MQX_IO_DSYNC);
    CHECK_INT(shim_flushes >= 2, 1); /* interrupted once, then done */
    shim_old = false;
    CHECK_INT(posix()->ops->close(posix(), fd), 0);
    CHECK_INT(posix()->ops->close(posix(), dir), 0);
}

static void compare_facts(int fd)
{
    struct mqx_io_stat facts;
    struct stat st;
    CHECK_INT(posix()->ops->stat(posix(), fd, &facts), 0);
    CHECK_INT(fstat(fd, &st), 0);
    CHECK_INT(facts.size, (uint64_t)st.st_size);
    CHECK_INT(facts.device, (uint64_t)st.st_dev);
    CHECK_INT(facts.inode, (uint64_t)st.st_ino);
    CHECK_INT(facts.mode, st.st_mode);
    CHECK_INT(facts.owner, st.st_uid);
    CHECK_INT(facts.group, st.st_gid);
    CHECK_INT(facts.links, (uint32_t)st.st_nlink);
}

TEST(a_files_facts_are_asked_for_without_its_times_where_the_kernel_can)
{
    int dir = fresh_dir();
    int fd = make_file(dir, "a", "four");
    struct mqx_io_stat facts;

    CHECK_INT(posix()->ops->stat(posix(), 9999, &facts), -EBADF);
    statx_wanted = 0;
    compare_facts(fd);
    compare_facts(dir);
    CHECK(statx_wanted != 0);
    CHECK_INT(statx_wanted & (STATX_ATIME | STATX_MTIME | STATX_CTIME | STATX_BTIME), 0);
    statx_forbidden = true;
    compare_facts(fd);
    compare_facts(dir);
    CHECK_INT(posix()->ops->stat(posix(), 9999, &facts), -EBADF);
    statx_forbidden = false;
    CHECK_INT(posix()->ops->close(posix(), fd), 0);
    CHECK_INT(posix()->ops->close(posix(), dir), 0);
}

TEST_MAIN()
