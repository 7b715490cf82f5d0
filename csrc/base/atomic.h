/*
 * atomic.h - the memory orderings we use, in words.
 *
 * Two different readers care about order:
 *
 *  1. Other CPUs. A release store makes everything stored before it visible to a thread that reads
 *     the new value with an acquire load. Used for words that are read without the
 *     lock: durable LSN, capacities, attribute values, futex words, counters.
 *
 *  2. The process that cleans up after a SIGKILL. The dead process executed an exact prefix of its
 *     instructions, so only the *compiler's* order matters: mqx_order() keeps it from moving stores
 *     across. Undo entries are written, mqx_order(), then the store that they undo (rule 19).
 *
 * Plain (relaxed) loads and stores are used for statistics only.
 */
#ifndef PENSTOCK_ATOMIC_H
#define PENSTOCK_ATOMIC_H

#include "base/assert.h"
#include "base/base.h"

#define mqx_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define mqx_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define mqx_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define mqx_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define mqx_add_relaxed(p, v) ((void)__atomic_fetch_add((p), (v), __ATOMIC_RELAXED))
#define mqx_fetch_add(p, v) __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define mqx_fetch_or(p, v) __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define mqx_fetch_and(p, v) __atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL)
#define mqx_exchange(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)

/* Strong compare and swap; true when *p was `expected` and is now `desired`. */
static inline bool mqx_cas32(uint32_t *p, uint32_t expected, uint32_t desired)
{
    MQX_ASSERT((uintptr_t)p % sizeof *p == 0);
    MQX_ASSERT(expected != desired);
    return __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

static inline bool mqx_cas64(uint64_t *p, uint64_t expected, uint64_t desired)
{
    MQX_ASSERT((uintptr_t)p % sizeof *p == 0);
    MQX_ASSERT(expected != desired);
    return __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

/* No load after this line is done before every store before it is visible: for two threads of which
 * each stores a word and then reads the other's. */
static inline void mqx_fence(void)
{
#ifdef __SANITIZE_THREAD__ /* which knows no fences, but sees both words as atomic */
    static uint32_t shared;
    (void)__atomic_fetch_add(&shared, 0u, __ATOMIC_SEQ_CST);
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* The compiler may not move a load or store across this line (case 2 above). */
static inline void mqx_order(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

#endif
