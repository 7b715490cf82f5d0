/* Claims of page_memory.h: memory is zero, and goes back to the system when it is freed. */
#include "fixtures/harness.h"

#include "os/page_memory.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 1536 * 1024, KIB = 1024 };

TEST(memory_is_zero_aligned_to_a_page_and_writable)
{
    unsigned char *memory = mqx_pages_alloc(SIZE);
    CHECK(memory != NULL);
    for (size_t i = 0; i < SIZE; i++) {
        CHECK(memory[i] == 0);
    }
#if !defined(__SANITIZE_ADDRESS__) /* there malloc makes it */
    CHECK_INT((uintptr_t)memory % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
#endif
    memset(memory, 1, SIZE);
    mqx_pages_free(memory, SIZE);
    mqx_pages_free(NULL, 0); /* none: nothing to do */
}

/* Does the mapping of that address have the flag, as smaps shows it? */
static bool mapping_has(const void *at, const char *flag)
{
    char line[512];
    unsigned long first = 0, end = 0;
    bool has = false;
    FILE *maps = fopen("/proc/self/smaps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long from = 0, to = 0;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            first = from;
            end = to;
        }
        has = has || (strncmp(line, "VmFlags:", 8) == 0 && (uintptr_t)at >= first &&
                      (uintptr_t)at < end && strstr(line, flag) != NULL);
    }
    CHECK_INT(fclose(maps), 0);
    return has;
}

TEST(huge_pages_are_asked_for_in_large_blocks_whose_bytes_stay)
{
    enum { LARGE = 16 << 20, SMALL = 1 << 20 };
    unsigned char *large = mqx_pages_alloc(LARGE), *small = mqx_pages_alloc(SMALL);
    CHECK(large != NULL && small != NULL);
    memset(large, 7, LARGE);
    memset(small, 8, SMALL);
    mqx_pages_prefer_huge(large, LARGE);
    mqx_pages_prefer_huge(small, SMALL);
    const bool lent = access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0;
    CHECK_INT(mapping_has(large + LARGE / 2, " hg"), lent);
    CHECK(!mapping_has(small + SMALL / 2, " hg"));
    CHECK(large[0] == 7 && large[LARGE - 1] == 7 && small[0] == 8 && small[SMALL - 1] == 8);
    mqx_pages_free(large, LARGE);
    mqx_pages_free(small, SMALL);
}

/* The sanitizers' allocators keep what is freed, and hide it. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

/* Private memory of this process that is in use by the system's count, in KiB. */
static long resident(void)
{
    char line[256];
    long found = -1;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    while (fgets(line, sizeof line, status) != NULL) {
        (void)sscanf(line, "RssAnon: %ld", &found);
    }
    CHECK_INT(fclose(status), 0);
    CHECK(found >= 0);
    return found;
}

TEST(what_is_freed_is_not_kept_however_often)
{
    const long before = resident();
    for (int i = 0; i < 16; i++) {
        unsigned char *memory = mqx_pages_alloc(SIZE);
        CHECK(memory != NULL);
        memset(memory, i, SIZE);
        CHECK(resident() - before >= SIZE / KIB / 2);
        mqx_pages_free(memory, SIZE);
        CHECK(resident() - before < SIZE / KIB / 2);
    }
}

TEST(mallocs_own_blocks_are_where_they_were_before)
{
    const size_t mapped = mallinfo2().hblkhd;
    void *memory = mqx_pages_alloc(SIZE);
    mqx_pages_free(memory, SIZE);
    void *volatile block = malloc(SIZE / 2); /* as large as what malloc maps at first */
    CHECK(block != NULL);
    CHECK(mallinfo2().hblkhd > mapped); /* still mapped: its bound has not moved */
    free(block);
}
#endif

TEST_MAIN()
