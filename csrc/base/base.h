/*
 * base.h - the vocabulary every other file of the core starts from.
 *
 * Fixed-width types, compile-time checks, the few attributes we use, and the limits that several
 * modules share. Nothing here has state or calls anything.
 *
 * Prefixes: mqe_ means MQ engine and is public (penstock/engine.h), mqx_ is internal to the core,
 * static functions have none.
 */
#ifndef PENSTOCK_BASE_H
#define PENSTOCK_BASE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MQX_MUST_USE __attribute__((warn_unused_result))
#define MQX_COLD __attribute__((cold, noinline))
#define MQX_ALWAYS_INLINE inline __attribute__((always_inline))
/* For a must-use status that cannot change what the caller does; a comment there says why. */
#define mqx_ignore(status) ((void)((status) != 0))
#define MQX_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define MQX_LIKELY(x) __builtin_expect(!!(x), 1)
#define MQX_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define MQX_CACHE_LINE 64u
#define MQX_ALIGNED(n) __attribute__((aligned(n)))
#define MQX_STATIC_ASSERT(cond, why) _Static_assert(cond, why)
#define MQX_ARRAY_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Thread-local words that the hot path reads: no call into the dynamic linker. */
#define MQX_THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))

/* n rounded up to a multiple of the power of two a. */
static inline uint64_t mqx_round_up(uint64_t n, uint64_t a)
{
    return (n + a - 1) & ~(a - 1);
}

enum {
    MQX_PAGE_SIZE = 4096,           /* unit of a flush batch (crash-safety rule 6) */
    MQX_STORES_MAX = 500,           /* queue managers that one process is attached to */
    MQX_PRIORITY_COUNT = 10,        /* placement priorities 0..9; MaxPriority is 9 */
    MQX_MAX_PRIORITY = 9,
    MQX_NAME_SIZE = 48,             /* MQ_Q_NAME_LENGTH, blank padded */
    MQX_ID_SIZE = 24,               /* MsgId, CorrelId, GroupId */
    MQX_MAX_BODY = 104857600,       /* 100 MiB, the largest MAXMSGL */
    MQX_LOCKED_COPY_MAX = 4096,     /* bytes copied under a lock at most (rule 23) */
    MQX_LOCKED_STEPS_MAX = 64,      /* messages handled in one lock hold at most (rule 23) */
    MQX_RING_RECORD_MAX = 65536,    /* longest record in the log ring (rule 23) */
};

#endif
