/*
 * process_files.c - see process_files.h.
 */
#include "os/process_files.h"

#include "base/assert.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_file(const struct stat *facts, uint64_t device, uint64_t inode)
{
    MQX_ASSERT(inode != 0);
    return (uint64_t)facts->st_dev == device && (uint64_t)facts->st_ino == inode;
}

/* The process' folder of descriptors, or NULL with errno set. */
static DIR *open_descriptors(int32_t pid)
{
    char path[64];
    MQX_ASSERT(pid > 0);
    (void)snprintf(path, sizeof path, "/proc/%d/fd", pid);
    return opendir(path);
}

/* The first entry that is the file; NULL when there is none. *out_denied: an entry could not be
 * looked at. */
static const struct dirent *find_file(DIR *descriptors, uint64_t device, uint64_t inode,
                                      bool *out_denied)
{
    struct stat facts;
    MQX_ASSERT(descriptors != NULL);
    const struct dirent *entry = readdir(descriptors);
    *out_denied = false;
    while (entry != NULL) {
        const bool seen = fstatat(dirfd(descriptors), entry->d_name, &facts, 0) == 0;
        if (seen && is_file(&facts, device, inode)) {
            break;
        }
        *out_denied = *out_denied || (!seen && errno == EACCES);
        entry = readdir(descriptors);
    }
    return entry;
}

/* Between finding and opening the process may have put another file there. */
static int open_entry(DIR *descriptors, const char *name, uint64_t device, uint64_t inode)
{
    struct stat facts;
    MQX_ASSERT(name != NULL);
    const int fd = openat(dirfd(descriptors), name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    if (fstat(fd, &facts) == 0 && is_file(&facts, device, inode)) {
        return fd;
    }
    (void)close(fd);
    return -ENOENT;
}

static int open_of_one(int32_t pid, uint64_t device, uint64_t inode)
{
    MQX_ASSERT(pid > 0);
    DIR *descriptors = open_descriptors(pid);
    if (descriptors == NULL) {
        return errno == EPERM ? -EACCES : -errno;
    }
    bool denied = false;
    const struct dirent *entry = find_file(descriptors, device, inode, &denied);
    const int fd = entry != NULL ? open_entry(descriptors, entry->d_name, device, inode)
                                 : denied ? -EACCES : -ENOENT;
    (void)closedir(descriptors);
    return fd;
}

/* The next process in a listing of /proc; 0 at its end. */
static int32_t next_process(DIR *all)
{
    MQX_ASSERT(all != NULL);
    const struct dirent *entry = readdir(all);
    while (entry != NULL && strtol(entry->d_name, NULL, 10) <= 0) {
        entry = readdir(all);
    }
    return entry != NULL ? (int32_t)strtol(entry->d_name, NULL, 10) : 0;
}

int mqx_process_file_open(int32_t pid, uint64_t device, uint64_t inode)
{
    MQX_ASSERT(pid >= 0);
    if (pid != 0) {
        return open_of_one(pid, device, inode);
    }
    DIR *all = opendir("/proc");
    int fd = -ENOENT;
    for (int32_t any = all != NULL ? next_process(all) : 0; any != 0 && fd < 0;
         any = next_process(all)) {
        fd = open_of_one(any, device, inode);
    }
    if (all != NULL) {
        (void)closedir(all);
    }
    return fd >= 0 ? fd : -ENOENT;
}

static bool has_file_open(int32_t pid, const struct stat *file)
{
    MQX_ASSERT(file != NULL);
    DIR *descriptors = open_descriptors(pid);
    if (descriptors == NULL) {
        return false;
    }
    bool denied = false;
    const bool found = find_file(descriptors, (uint64_t)file->st_dev, (uint64_t)file->st_ino,
                                 &denied) != NULL;
    (void)closedir(descriptors);
    return found;
}

void mqx_processes_with_file(int fd, char *text, size_t size)
{
    MQX_ASSERT(fd >= 0);
    MQX_ASSERT(size > 0);
    struct stat file;
    size_t used = 0;
    DIR *all = fstat(fd, &file) == 0 ? opendir("/proc") : NULL;
    int32_t pid = all == NULL ? 0 : next_process(all);
    (void)snprintf(text, size, "unknown");
    while (pid != 0 && used + sizeof ", 2147483647" < size) {
        if (pid != (int32_t)getpid() && has_file_open(pid, &file)) {
            used += (size_t)snprintf(text + used, size - used, "%s%d", used == 0 ? "" : ", ", pid);
        }
        pid = next_process(all);
    }
    if (all != NULL) {
        (void)closedir(all);
    }
}
