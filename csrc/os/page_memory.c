/*
 * page_memory.c - see page_memory.h.
 */
#include "os/page_memory.h"

#include "base/assert.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { HUGE_FROM = 4 << 20 }; /* bytes: smaller blocks may come from the C library's heap */

void *mqx_pages_alloc(size_t size)
{
    MQX_ASSERT(size != 0);
#if defined(__SANITIZE_ADDRESS__)
    return calloc(1, size);
#else
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at != MAP_FAILED ? at : NULL;
#endif
}

void mqx_pages_free(void *memory, size_t size)
{
    MQX_ASSERT(size != 0 || memory == NULL);
#if defined(__SANITIZE_ADDRESS__)
    (void)size;
    free(memory);
#else
    if (memory != NULL) {
        (void)munmap(memory, size);
    }
#endif
}

void mqx_pages_prefer_huge(void *memory, size_t size)
{
    const uintptr_t first = mqx_round_up((uintptr_t)memory, MQX_PAGE_SIZE);
    const uintptr_t end = ((uintptr_t)memory + size) / MQX_PAGE_SIZE * MQX_PAGE_SIZE;
    MQX_ASSERT(memory != NULL);
    if (size >= HUGE_FROM) {
        MQX_ASSERT(first < end);
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
    }
}
