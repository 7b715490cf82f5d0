/*
 * assert.c - see assert.h.
 *
 * The guards are a fixed table of pointers, each entry taken and given back by one atomic exchange,
 * so that a failing thread can read them at any moment without a lock. Nothing on the failing path
 * allocates or locks.
 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { GUARD_COUNT = MQX_STORES_MAX };
static uint32_t *guards[GUARD_COUNT];

/* Replaces `from` by `to` in the first entry that holds it; false when none does. */
static bool guard_swap(uint32_t *from, uint32_t *to)
{
    MQX_ASSERT(from != to);
    for (int i = 0; i < GUARD_COUNT; i++) {
        uint32_t *expected = from;
        if (__atomic_compare_exchange_n(&guards[i], &expected, to, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            return true;
        }
    }
    return false;
}

void mqx_assert_guard(uint32_t *stop_flag)
{
    MQX_ASSERT(stop_flag != NULL);
    const bool added = guard_swap(NULL, stop_flag);
    MQX_ASSERT(added); /* GUARD_COUNT stores are registered already */
    (void)added;
}

void mqx_assert_unguard(uint32_t *stop_flag)
{
    MQX_ASSERT(stop_flag != NULL);
    const bool removed = guard_swap(stop_flag, NULL);
    MQX_ASSERT(removed); /* it was registered */
    (void)removed;
}

_Noreturn void mqx_assert_failed(const char *cond, const char *file, int line)
{
    for (int i = 0; i < GUARD_COUNT; i++) {
        uint32_t *flag = __atomic_load_n(&guards[i], __ATOMIC_ACQUIRE);
        if (flag != NULL) {
            __atomic_store_n(flag, 1u, __ATOMIC_RELEASE);
        }
    }
    char text[512];
    int length = snprintf(text, sizeof text, "penstock: assertion failed at %s:%d: %s\n", file,
                          line, cond);
    if (length > 0) {
        size_t size = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
        ssize_t written = write(STDERR_FILENO, text, size);
        (void)written; /* a failure to report cannot be reported */
    }
    abort();
}
