/* Claims of limits.h: a limit that makes work impossible is refused by its name and with the need;
 * nothing stays open. */
#include "fixtures/harness.h"

#include "base/error.h"
#include "os/limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void set_limit(int resource, rlim_t value)
{
    struct rlimit limit;
    CHECK_INT(getrlimit((__rlimit_resource_t)resource, &limit), 0);
    limit.rlim_cur = value;
    CHECK_INT(setrlimit((__rlimit_resource_t)resource, &limit), 0);
}

static rlim_t hard_limit(int resource)
{
    struct rlimit limit;
    CHECK_INT(getrlimit((__rlimit_resource_t)resource, &limit), 0);
    return limit.rlim_max;
}

/* The limit that leaves so many numbers free. */
static rlim_t limit_that_leaves(uint32_t count)
{
    int fd = 0;
    for (uint32_t left = 0; left < count; fd++) {
        left += fcntl(fd, F_GETFD) < 0;
    }
    return (rlim_t)fd;
}

TEST(descriptors_are_enough_up_to_the_last_one_and_none_stays_open)
{
    const rlim_t limit = limit_that_leaves(14);
    set_limit(RLIMIT_NOFILE, limit);
    CHECK_INT(mqx_limits_check(14, 1), 0);
    CHECK_INT(mqx_limits_check(15, 1), MQRC_RESOURCE_PROBLEM);
    char named[64];
    (void)snprintf(named, sizeof named, "%d files (RLIMIT_NOFILE", (int)limit);
    CHECK(strstr(mqx_error_text(), named) != NULL);
    CHECK(strstr(mqx_error_text(), "fewer than 15 left") != NULL);
    set_limit(RLIMIT_NOFILE, hard_limit(RLIMIT_NOFILE));
    CHECK_INT(limit_that_leaves(14), limit);
}

TEST(the_longest_file_must_hold_a_segment)
{
    set_limit(RLIMIT_FSIZE, 65536);
    CHECK_INT(mqx_limits_check(1, 65536), 0);
    CHECK_INT(mqx_limits_check(1, 65537), MQRC_ENVIRONMENT_ERROR);
    CHECK(strstr(mqx_error_text(), "65536 bytes at most (RLIMIT_FSIZE") != NULL);
    CHECK(strstr(mqx_error_text(), "needs 65537") != NULL);
    set_limit(RLIMIT_FSIZE, hard_limit(RLIMIT_FSIZE));
}

TEST_MAIN()
