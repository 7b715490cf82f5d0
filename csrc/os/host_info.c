/*
 * host_info.c - see host_info.h.
 */
#include "os/host_info.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/fork_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

enum { RANDOM_MAX = 256 }; /* bytes that getrandom() gives without being interrupted */

/* The first size - 1 bytes of a small file, NUL-terminated; false when there is none. */
static bool read_text(const char *path, char *to, size_t size)
{
    MQX_ASSERT(path[0] == '/');
    size_t used = 0;
    ssize_t n = -1;
    MQX_ASSERT(size > 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    do {
        n = read(fd, to + used, size - 1 - used);
        used += n > 0 ? (size_t)n : 0;
    } while (used + 1 < size && (n > 0 || (n < 0 && errno == EINTR)));
    close(fd);
    to[used] = '\0';
    return n >= 0 && used > 0;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "01234567-89ab-...": 32 hex digits, hyphens anywhere. */
static bool parse_boot_id(const char *text, uint8_t out[16])
{
    MQX_ASSERT(text != NULL);
    int count = 0;
    memset(out, 0, 16);
    for (const char *c = text; *c != '\0' && *c != '\n' && count < 32; c++) {
        const int digit = hex_digit(*c);
        if (digit >= 0) {
            out[count / 2] = (uint8_t)(out[count / 2] << 4 | digit);
            count++;
        } else if (*c != '-') {
            return false;
        }
    }
    return count == 32;
}

int mqx_host_info_read(struct mqx_host_info *out)
{
    MQX_ASSERT(out != NULL);
    char text[64];
    struct stat facts;
    memset(out, 0, sizeof *out);
    if (!read_text("/proc/sys/kernel/random/boot_id", text, sizeof text) ||
        !parse_boot_id(text, out->boot_id)) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR, "/proc does not give the boot id");
    }
    if (stat("/proc/self/ns/pid", &facts) != 0) {
        return mqx_fail(MQRC_ENVIRONMENT_ERROR, "/proc does not give the PID namespace");
    }
    out->pid_namespace = (uint64_t)facts.st_ino;
#ifdef __GLIBC__
    (void)snprintf(out->libc, sizeof out->libc, "glibc %s", gnu_get_libc_version());
#else
    (void)snprintf(out->libc, sizeof out->libc, "not glibc");
#endif
    return MQX_OK;
}

int mqx_random_bytes(void *to, size_t size)
{
    MQX_ASSERT(to != NULL);
    size_t done = 0;
    MQX_ASSERT(size <= RANDOM_MAX);
    while (done < size) {
        ssize_t n = getrandom((char *)to + done, size - done, 0);
        if (n < 0 && errno != EINTR) {
            return mqx_fail(MQRC_ENVIRONMENT_ERROR, "the system gives no random numbers");
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return MQX_OK;
}

/* Start time and state in the text of a file stat of /proc: "thread (name) state ppid
 * ...". The name may hold anything, so fields are counted from the last parenthesis. Field 3 is the
 * state, field 22 the start time. */
static uint64_t parse_stat(const char *text, char *out_state)
{
    enum { STATE_FIELD = 3, START_TIME_FIELD = 22 };
    MQX_ASSERT(text != NULL);
    const char *at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ') {
        return 0;
    }
    at += 2;
    *out_state = at[0];
    for (int field = STATE_FIELD; field < START_TIME_FIELD && at != NULL; field++) {
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    return at != NULL ? strtoull(at, NULL, 10) : 0;
}

/* False: /proc does not show it. */
static bool read_stat(const char *path, uint64_t *out_start, char *out_state)
{
    char text[1024];
    MQX_ASSERT(path != NULL);
    *out_start = read_text(path, text, sizeof text) ? parse_stat(text, out_state) : 0;
    return *out_start != 0;
}

uint64_t mqx_own_start_time(void)
{
    uint64_t start = 0;
    char state = '?';
    return read_stat("/proc/thread-self/stat", &start, &state) ? start : 0;
}

bool mqx_proc_is_ours(void)
{
    char text[16] = "";
    return readlink("/proc/self", text, sizeof text - 1) > 0 &&
           strtol(text, NULL, 10) == (long)getpid();
}

bool mqx_thread_exists(int32_t pid, int32_t thread)
{
    MQX_ASSERT(pid > 0);
    MQX_ASSERT(thread > 0);
    return syscall(SYS_tgkill, pid, thread, 0) == 0 || errno == EPERM;
}

bool mqx_thread_has_ended(int32_t pid, int32_t thread, uint64_t start_time)
{
    char path[64];
    uint64_t start = 0;
    char state = '?';
    MQX_ASSERT(start_time != 0);
    if (!mqx_thread_exists(pid, thread)) {
        return true;
    }
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, thread);
    return mqx_proc_is_ours() && read_stat(path, &start, &state) &&
           (state == 'Z' || state == 'X' || start != start_time);
}

int32_t mqx_thread_id(void)
{
    MQX_THREAD_LOCAL int32_t id;
    MQX_THREAD_LOCAL uint64_t id_epoch; /* a forked child has another one, or 0 */
    const uint64_t epoch = mqx_fork_epoch();
    if (MQX_UNLIKELY(id == 0 || epoch == 0 || epoch != id_epoch)) {
        id = (int32_t)syscall(SYS_gettid);
        id_epoch = epoch;
    }
    MQX_ASSERT(id > 0);
    return id;
}

bool mqx_task_exists(int32_t id)
{
    MQX_ASSERT(id > 0);
    return syscall(SYS_tkill, id, 0) == 0 || errno != ESRCH; /* signal 0: only the look-up */
}

const char *mqx_program_name(void)
{
    return program_invocation_short_name;
}

uint64_t mqx_address_space_limit(void)
{
    struct rlimit limit;
    const bool limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    MQX_ASSERT(!limited || limit.rlim_cur <= limit.rlim_max);
    return limited ? (uint64_t)limit.rlim_cur : UINT64_MAX;
}

uint64_t mqx_room_at(const char *path)
{
    MQX_ASSERT(path != NULL);
    struct statvfs facts;
    if (statvfs(path, &facts) != 0) {
        return UINT64_MAX;
    }
    return (uint64_t)facts.f_bavail * facts.f_frsize;
}

/* More processors than the set has room for are more than one. */
uint32_t mqx_usable_processors(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return errno == EINVAL ? CPU_SETSIZE : 1;
    }
    const int count = CPU_COUNT(&set);
    MQX_ASSERT(count <= CPU_SETSIZE);
    return count > 0 ? (uint32_t)count : 1;
}

uint32_t mqx_current_processor(void)
{
    const int at = sched_getcpu();
    MQX_ASSERT(at >= -1);
    return at > 0 ? (uint32_t)at : 0;
}

uint64_t mqx_size_at(const char *path)
{
    MQX_ASSERT(path != NULL);
    struct statvfs facts;
    if (statvfs(path, &facts) != 0 || facts.f_blocks == 0) {
        return UINT64_MAX;
    }
    return (uint64_t)facts.f_blocks * facts.f_frsize;
}

uint64_t mqx_physical_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    MQX_ASSERT(page > 0);
    return pages > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
}
