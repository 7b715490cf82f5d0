/*
 * failing_preload.c - malloc, calloc and realloc of a whole process, some of which fail (T5).
 *
 * Loaded before the C library (LD_PRELOAD) into a Python that takes all its memory from malloc
 * (PYTHONMALLOC=malloc). Only the thread that armed the failure is hit, so the maintenance thread
 * is not. A run of failures ends by itself: the call that disarms it needs memory, too.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void __libc_free(void *block);
void failing_preload_arm(uint64_t fail_at, uint64_t fail_count);
uint64_t failing_preload_disarm(void);
int64_t failing_preload_live(void);
void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *block, size_t size);
void free(void *block);

static _Thread_local bool armed __attribute__((tls_model("initial-exec")));
static _Thread_local uint64_t made __attribute__((tls_model("initial-exec")));
static _Thread_local uint64_t first __attribute__((tls_model("initial-exec")));
static _Thread_local uint64_t last __attribute__((tls_model("initial-exec")));
static int64_t live;

/* The allocations `fail_at` to `fail_at + fail_count - 1` of this thread fail. */
void failing_preload_arm(uint64_t fail_at, uint64_t fail_count)
{
    made = 0;
    first = fail_at;
    last = fail_at + fail_count;
    armed = true;
}

/* How many allocations there were since. */
uint64_t failing_preload_disarm(void)
{
    armed = false;
    return made;
}

/* Blocks that are allocated and not yet freed. */
int64_t failing_preload_live(void)
{
    return __atomic_load_n(&live, __ATOMIC_ACQUIRE);
}

static bool fails(void)
{
    if (!armed) {
        return false;
    }
    made += 1;
    if (made < first || made >= last) {
        return false;
    }
    errno = ENOMEM;
    return true;
}

static void *counted(void *block)
{
    if (block != NULL) {
        (void)__atomic_fetch_add(&live, 1, __ATOMIC_RELAXED);
    }
    return block;
}

void *malloc(size_t size)
{
    return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size)
{
    if (fails()) {
        return NULL;
    }
    void *result = __libc_realloc(block, size);
    return block == NULL ? counted(result) : result;
}

void free(void *block)
{
    if (block != NULL) {
        (void)__atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
    }
    __libc_free(block);
}
