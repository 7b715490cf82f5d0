#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

uint64_t raw_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int fill_with_zeroes(int fd, uint64_t bytes)
{
    char *zeroes = calloc(1, RAW_BLOCK);
    int rc = 0;

    if (zeroes == NULL)
        return -ENOMEM;
    for (uint64_t at = 0; at < bytes && rc == 0;) {
        size_t size = bytes - at < RAW_BLOCK ? (size_t)(bytes - at) : RAW_BLOCK;
        ssize_t done = pwrite(fd, zeroes, size, (off_t)at);
        if (done < 0)
            rc = -errno;
        else
            at += (uint64_t)done;
    }
    free(zeroes);
    return rc;
}

int raw_make_whole(const char *path, uint64_t bytes, int *out_fd)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    int rc;

    if (fd < 0)
        return -errno;
    rc = -posix_fallocate(fd, 0, (off_t)bytes);
    if (rc == 0)
        rc = fill_with_zeroes(fd, bytes);
    if (rc == 0 && fdatasync(fd) != 0)
        rc = -errno;
    if (rc != 0) {
        close(fd);
        return rc;
    }
    *out_fd = fd;
    return 0;
}

int raw_write_flushed(int fd, const void *from, size_t size, uint64_t offset, bool *dsync)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)from, .iov_len = size};
    ssize_t done;

    if (*dsync) {
        done = pwritev2(fd, &part, 1, (off_t)offset, RWF_DSYNC);
        if (done == (ssize_t)size)
            return 0;
        if (done >= 0)
            return -EIO;
        if (errno != EOPNOTSUPP && errno != ENOSYS)
            return -errno;
        *dsync = false;
    }
    done = pwrite(fd, from, size, (off_t)offset);
    if (done != (ssize_t)size)
        return done < 0 ? -errno : -EIO;
    return fdatasync(fd) == 0 ? 0 : -errno;
}

int raw_read_all(int fd, void *to, size_t size, uint64_t offset)
{
    char *at = to;

    while (size > 0) {
        ssize_t done = pread(fd, at, size, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -EIO;
        at += done;
        offset += (uint64_t)done;
        size -= (size_t)done;
    }
    return 0;
}

void raw_futex_wait(uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

void raw_futex_wake(uint32_t *word, int count)
{
    syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
}
