/*
 * failing_alloc.c - see failing_alloc.h.
 */
#include "failing_alloc.h"

#include <errno.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *block);
void *__real_mqx_pages_alloc(size_t size);
void __real_mqx_pages_free(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void __wrap_free(void *block);
void *__wrap_mqx_pages_alloc(size_t size);
void __wrap_mqx_pages_free(void *memory, size_t size);

static _Thread_local bool armed, goes_on;
static _Thread_local uint64_t made, failing;
static int64_t live;

void failing_alloc_arm(uint64_t fail_at, bool for_ever)
{
    made = 0;
    failing = fail_at;
    goes_on = for_ever;
    armed = true;
}

uint64_t failing_alloc_disarm(void)
{
    armed = false;
    return made;
}

int64_t failing_alloc_live(void)
{
    return __atomic_load_n(&live, __ATOMIC_ACQUIRE);
}

static bool fails(void)
{
    if (!armed) {
        return false;
    }
    made += 1;
    const bool fail = failing != 0 && (made == failing || (goes_on && made > failing));
    if (fail) {
        errno = ENOMEM;
    }
    return fail;
}

static void *counted(void *block)
{
    if (block != NULL) {
        (void)__atomic_fetch_add(&live, 1, __ATOMIC_ACQ_REL);
    }
    return block;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : counted(__real_aligned_alloc(alignment, size));
}

void *__wrap_realloc(void *block, size_t size)
{
    if (fails()) {
        return NULL;
    }
    void *result = __real_realloc(block, size);
    return block == NULL ? counted(result) : result;
}

void __wrap_free(void *block)
{
    if (block != NULL) {
        (void)__atomic_fetch_sub(&live, 1, __ATOMIC_ACQ_REL);
    }
    __real_free(block);
}

void *__wrap_mqx_pages_alloc(size_t size)
{
    return fails() ? NULL : counted(__real_mqx_pages_alloc(size));
}

void __wrap_mqx_pages_free(void *memory, size_t size)
{
    if (memory != NULL) {
        (void)__atomic_fetch_sub(&live, 1, __ATOMIC_ACQ_REL);
    }
    __real_mqx_pages_free(memory, size);
}
