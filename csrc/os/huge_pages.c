/*
 * huge_pages.c - see huge_pages.h.
 */
#include "os/huge_pages.h"

#include "base/assert.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { LINE_BYTES = 4096, STAT_BLOCK = 512 };

/* ---- allocating ---- */

/* Bytes of memory that the file has. */
static uint64_t memory_of(int fd)
{
    struct stat facts;
    MQX_ASSERT(fd >= 0);
    return fstat(fd, &facts) == 0 ? (uint64_t)facts.st_blocks * STAT_BLOCK : 0;
}

/* Maps a block of the file where a huge page fits, and populates its first page. */
static bool touch(int fd, uint64_t offset, unsigned char *at)
{
    MQX_ASSERT((uintptr_t)at % MQX_HUGE_BLOCK == 0);
    MQX_ASSERT(offset % MQX_HUGE_BLOCK == 0);
    void *block = mmap(at, MQX_HUGE_BLOCK, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, (off_t)offset);
    return block != MAP_FAILED && madvise(block, MQX_HUGE_BLOCK, MADV_DONTFORK) == 0 &&
           madvise(block, MQX_HUGE_BLOCK, MADV_HUGEPAGE) == 0 &&
           madvise(block, MQX_PAGE_SIZE, MADV_POPULATE_WRITE) == 0;
}

uint64_t mqx_huge_allocate(int fd, uint64_t offset, uint64_t size)
{
    MQX_ASSERT(offset % MQX_HUGE_BLOCK == 0);
    MQX_ASSERT(size % MQX_HUGE_BLOCK == 0);
    const size_t space = 2 * (size_t)MQX_HUGE_BLOCK; /* has an aligned block in it */
    unsigned char *begin = mmap(NULL, space, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED) {
        return 0;
    }
    unsigned char *at = begin + (MQX_HUGE_BLOCK - (uintptr_t)begin % MQX_HUGE_BLOCK);
    uint64_t got = 0;
    for (bool whole = true; whole && got < size;) {
        const uint64_t before = memory_of(fd);
        whole = touch(fd, offset + got, at) && memory_of(fd) >= before + MQX_HUGE_BLOCK;
        got += whole ? (uint64_t)MQX_HUGE_BLOCK : 0;
    }
    (void)munmap(begin, space);
    return got;
}

/* ---- why there are none ---- */

/* The word in square brackets of a setting; "unreadable". False: there is no such setting. */
static bool read_choice(const char *settings, const char *name, char *out, size_t size)
{
    char line[LINE_BYTES] = "";
    MQX_ASSERT(size > 0);
    (void)snprintf(line, sizeof line, "%s/%s", settings, name);
    FILE *file = fopen(line, "re");
    if (file == NULL && errno == ENOENT) {
        return false;
    }
    const bool read = file != NULL && fgets(line, sizeof line, file) != NULL;
    if (file != NULL) {
        (void)fclose(file);
    }
    char *word = read ? strchr(line, '[') : NULL;
    const size_t length = word != NULL ? strcspn(word, "]") : 0;
    const bool whole = length > 1 && word[length] == ']';
    (void)snprintf(out, size, "%.*s", whole ? (int)length - 1 : (int)size,
                   whole ? word + 1 : "unreadable");
    return true;
}

/* The options of the file system of a device, in a line of the list of mounts: "36 35 98:0 / /mnt
 * rw - tmpfs tmpfs rw,huge=advise"; NULL: the line is of another device. */
static const char *options_of(char *line, uint64_t device)
{
    char number[64];
    MQX_ASSERT(line != NULL);
    (void)snprintf(number, sizeof number, " %u:%u ", major((dev_t)device), minor((dev_t)device));
    char *at = strstr(line, number), *type = strstr(line, " - ");
    if (at == NULL || type == NULL || type < at) {
        return NULL;
    }
    at = strrchr(type, ' ');
    at[strcspn(at, "\n")] = '\0';
    return at + 1;
}

/* The value of huge= in options that commas separate; "never" without. */
static void read_huge(const char *options, char *out, size_t size)
{
    static const char name[] = "huge=";
    const size_t length = sizeof name - 1;
    MQX_ASSERT(size > 0);
    (void)snprintf(out, size, "never");
    for (const char *at = options; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, length) == 0) {
            (void)snprintf(out, size, "%.*s", (int)strcspn(at + length, ","), at + length);
        }
    }
}

static void read_mount(const char *mounts, uint64_t device, char *out, size_t size)
{
    char line[LINE_BYTES];
    MQX_ASSERT(size > 0);
    FILE *file = fopen(mounts, "re");
    (void)snprintf(out, size, "not known");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *options = options_of(line, device);
        if (options != NULL) {
            read_huge(options, out, size);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

static bool lends(const char *choice)
{
    static const char *const lending[] = {"always", "within_size", "advise", "force"};
    MQX_ASSERT(choice != NULL);
    bool found = false;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(lending); i++) {
        found = found || strcmp(choice, lending[i]) == 0;
    }
    return found;
}

void mqx_huge_refusal_in(const char *settings, const char *mounts, bool in_memory, uint64_t device,
                         char out[MQX_HUGE_TEXT])
{
    char all[16], mount[16];
    MQX_ASSERT(settings != NULL && mounts != NULL);
    out[0] = '\0';
    if (!read_choice(settings, "shmem_enabled", all, sizeof all)) {
        (void)snprintf(out, MQX_HUGE_TEXT, "the kernel has no transparent huge pages");
        return;
    }
    const bool decides = in_memory || strcmp(all, "deny") == 0 || strcmp(all, "force") == 0;
    if (decides) {
        if (!lends(all)) {
            (void)snprintf(out, MQX_HUGE_TEXT, "shmem_enabled is %s", all);
        }
        return;
    }
    read_mount(mounts, device, mount, sizeof mount);
    if (!lends(mount)) {
        (void)snprintf(out, MQX_HUGE_TEXT, "the option huge= of the region's file system is %s",
                       mount);
    }
}

void mqx_huge_refusal(bool in_memory, uint64_t device, char out[MQX_HUGE_TEXT])
{
    MQX_ASSERT(out != NULL);
    mqx_huge_refusal_in("/sys/kernel/mm/transparent_hugepage", "/proc/self/mountinfo", in_memory,
                        device, out);
}
