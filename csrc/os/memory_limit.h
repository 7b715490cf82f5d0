/*
 * memory_limit.h - how much memory the control group of this process may use.
 *
 * A process whose control group is out of memory is killed, so the limit has to be known before it
 * is reached: pages of a tmpfs count as well (docs/operations.md, containers).
 *
 * Where it is found
 *
 *   version 2   line "0::PATH" of /proc/self/cgroup; memory.max and memory.high in
 *               /sys/fs/cgroup/PATH and in each folder above it
 *   version 1   line "N:...memory...:PATH"; memory.limit_in_bytes in /sys/fs/cgroup/memory/PATH and
 *               above
 *
 * In a container PATH may be one of the host that is not visible; then the folders above it are,
 * the last of which is the container's own.
 *
 * None of this is stored state, so it does not go through the file table. No locks, no errors: what
 * cannot be read sets no limit.
 */
#ifndef PENSTOCK_MEMORY_LIMIT_H
#define PENSTOCK_MEMORY_LIMIT_H

#include "base/base.h"

/* The least limit that applies, in bytes; UINT64_MAX when there is none. */
uint64_t mqx_memory_limit(void);

/* The same with other places: the list of control groups, where version 2 and version 1 are
 * mounted (tests). */
uint64_t mqx_memory_limit_in(const char *list, const char *version2, const char *version1);

#endif
