/*
 * limits.c - see limits.h.
 */
#include "os/limits.h"

#include "base/assert.h"
#include "base/error.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

enum { DESCRIPTORS_MAX = 64 };

static unsigned long long limit_of(int resource)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    const int err = getrlimit((__rlimit_resource_t)resource, &limit);
    MQX_ASSERT(err == 0);
    (void)err;
    return (unsigned long long)limit.rlim_cur;
}

/* 0, or the errno with which opening so many ended. */
static int try_descriptors(uint32_t count)
{
    MQX_ASSERT(count <= DESCRIPTORS_MAX);
    int fd[DESCRIPTORS_MAX];
    uint32_t opened = 0;
    int err = 0;
    while (opened < count && err == 0) {
        fd[opened] = eventfd(0, EFD_CLOEXEC); /* of no file */
        err = fd[opened] < 0 ? errno : 0;
        opened += err == 0;
    }
    while (opened > 0) {
        opened -= 1;
        (void)close(fd[opened]);
    }
    return err;
}

int mqx_limits_check(uint32_t descriptors, uint64_t file_size)
{
    MQX_ASSERT(file_size > 0);
    const unsigned long long longest = limit_of(RLIMIT_FSIZE);
    if (longest < file_size) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR,
                        "this process may write files of %llu bytes at most (RLIMIT_FSIZE, "
                        "ulimit -f); a journal segment needs %llu", longest,
                        (unsigned long long)file_size);
    }
    const int err = try_descriptors(descriptors);
    if (err == EMFILE) {
        return mqx_fail(MQRC_RESOURCE_PROBLEM,
                        "this process may open %llu files (RLIMIT_NOFILE, ulimit -n) and has fewer "
                        "than %u left, which a connection needs", limit_of(RLIMIT_NOFILE),
                        descriptors);
    }
    return err == 0 ? MQX_OK
                    : mqx_fail(MQRC_ENVIRONMENT_ERROR,
                               "this process cannot open the %u files that a connection needs: %s",
                               descriptors, strerror(err));
}
