/*
 * memory_limit.c - see memory_limit.h.
 */
#include "os/memory_limit.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, LEVELS_MAX = 64 };

/* Version 1 writes "no limit" as the largest multiple of a page. */
static const uint64_t NO_LIMIT_FROM = UINT64_C(1) << 62;

/* The number in a file; UINT64_MAX when there is none ("max", no such file, no limit). */
static uint64_t read_number(const char *folder, const char *name)
{
    char path[PATH_BYTES + 64], text[64] = "";
    MQX_ASSERT(folder[0] == '/');
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return UINT64_MAX;
    }
    const bool read = fgets(text, sizeof text, file) != NULL;
    (void)fclose(file);
    if (!read || text[0] < '0' || text[0] > '9') {
        return UINT64_MAX;
    }
    const uint64_t number = strtoull(text, NULL, 10);
    return number >= NO_LIMIT_FROM ? UINT64_MAX : number;
}

/* The least of the named files in `mount`/`group` and in each folder from there up to `mount`. */
static uint64_t least_upwards(const char *mount, const char *group, const char *const names[2])
{
    char folder[PATH_BYTES];
    uint64_t least = UINT64_MAX;
    const size_t top = strlen(mount);
    const int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
    MQX_ASSERT(top > 0);
    if (length < 0 || (size_t)length >= sizeof folder) {
        return UINT64_MAX;
    }
    for (int level = 0; level < LEVELS_MAX; level++) {
        for (int i = 0; i < 2; i++) {
            const uint64_t limit = names[i] != NULL ? read_number(folder, names[i]) : UINT64_MAX;
            least = limit < least ? limit : least;
        }
        char *last = strrchr(folder, '/');
        if (last == NULL || last < folder + top) {
            break; /* that was the mount itself */
        }
        *last = '\0';
    }
    return least;
}

/* Is "memory" among the controllers of version 1, which are separated by commas? */
static bool has_memory(const char *controllers)
{
    static const char name[] = "memory";
    const size_t length = sizeof name - 1;
    MQX_ASSERT(controllers != NULL);
    for (const char *at = controllers; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* A line of the list: number, controllers, path, separated by colons. */
static uint64_t limit_of_line(char *line, const char *version2, const char *version1)
{
    static const char *const names2[2] = {"memory.max", "memory.high"};
    static const char *const names1[2] = {"memory.limit_in_bytes", NULL};
    char *controllers = strchr(line, ':');
    char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    MQX_ASSERT(version2[0] == '/' && version1[0] == '/');
    if (group == NULL) {
        return UINT64_MAX;
    }
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (strcmp(group, "/") == 0) {
        group[0] = '\0';
    }
    if (controllers[0] == '\0') {
        return least_upwards(version2, group, names2);
    }
    return has_memory(controllers) ? least_upwards(version1, group, names1) : UINT64_MAX;
}

uint64_t mqx_memory_limit_in(const char *list, const char *version2, const char *version1)
{
    char line[PATH_BYTES];
    uint64_t least = UINT64_MAX;
    MQX_ASSERT(list != NULL);
    FILE *file = fopen(list, "re");
    if (file == NULL) {
        return UINT64_MAX;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        const uint64_t limit = limit_of_line(line, version2, version1);
        least = limit < least ? limit : least;
    }
    (void)fclose(file);
    return least;
}

uint64_t mqx_memory_limit(void)
{
    const uint64_t limit =
        mqx_memory_limit_in("/proc/self/cgroup", "/sys/fs/cgroup", "/sys/fs/cgroup/memory");
    MQX_ASSERT(limit > 0);
    return limit;
}
