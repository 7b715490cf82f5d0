/*
 * fork_files.c - see fork_files.h.
 *
 * The handler in a child uses what is allowed there only: loads, fstat, close.
 */
#include "os/fork_files.h"

#include "base/assert.h"
#include "base/error.h"
#include "os/fork_guard.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

struct registered {
    bool used;
    int fd;
    uint64_t device;
    uint64_t inode;
};

static struct mqx_local_lock forking; /* covers all below; a child finds it free */
static struct registered files[MQX_FORK_FILES_MAX];
static uint32_t count; /* entries ever used */
static bool installed;

static bool is_file(int fd, uint64_t device, uint64_t inode)
{
    MQX_ASSERT(fd >= 0);
    struct stat facts;
    return fstat(fd, &facts) == 0 && (uint64_t)facts.st_dev == device &&
           (uint64_t)facts.st_ino == inode;
}

static void before_fork(void)
{
    mqx_local_take(&forking);
}

static void after_fork_in_parent(void)
{
    mqx_local_drop(&forking);
}

/* The lock is left: it names the parent, so the child takes it as free. */
static void after_fork_in_child(void)
{
    MQX_ASSERT(count <= MQX_FORK_FILES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (files[i].used && is_file(files[i].fd, files[i].device, files[i].inode)) {
            (void)close(files[i].fd);
        }
        files[i].used = false;
    }
}

/* forking held; the index of a free entry, MQX_FORK_FILES_MAX when there is none */
static uint32_t find_free(void)
{
    MQX_ASSERT(count <= MQX_FORK_FILES_MAX);
    uint32_t i = 0;
    while (i < count && files[i].used) {
        i++;
    }
    return i;
}

int mqx_fork_files_begin(void)
{
    int status = MQX_OK;
    mqx_local_take(&forking);
    if (!installed) {
        installed =
            pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
        status = installed ? MQX_OK
                           : mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a fork handler");
    }
    if (status == MQX_OK && find_free() == MQX_FORK_FILES_MAX) {
        status = mqx_fail(MQRC_RESOURCE_PROBLEM, "this process has %d queue managers attached, "
                          "which is the most", MQX_FORK_FILES_MAX);
    }
    if (status != MQX_OK) {
        mqx_local_drop(&forking);
    }
    return status;
}

void mqx_fork_files_end(int fd, uint64_t device, uint64_t inode)
{
    MQX_ASSERT(installed);
    const uint32_t i = find_free();
    MQX_ASSERT(i < MQX_FORK_FILES_MAX);
    if (fd >= 0 && is_file(fd, device, inode)) {
        files[i] = (struct registered){.used = true, .fd = fd, .device = device, .inode = inode};
        count = i < count ? count : i + 1;
    }
    mqx_local_drop(&forking);
}

void mqx_fork_files_remove(int fd)
{
    MQX_ASSERT(fd >= 0);
    mqx_local_take(&forking);
    for (uint32_t i = 0; i < count; i++) {
        files[i].used = files[i].used && files[i].fd != fd;
    }
    mqx_local_drop(&forking);
}
