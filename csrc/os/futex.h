/*
 * futex.h - sleeping on and waking a 32-bit word in the region, across processes.
 *
 * The word is raised first (release), then woken; a sleeper passes the value it saw, so a raise
 * between the load and the sleep is not missed. All sleeps are bounded by the caller (rule 21).
 */
#ifndef PENSTOCK_FUTEX_H
#define PENSTOCK_FUTEX_H

#include "base/atomic.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Sleeps while *word == seen, at most `timeout_us`. 0 woken or changed, -ETIMEDOUT, -EINTR. */
static inline int mqx_futex_wait(uint32_t *word, uint32_t seen, uint64_t timeout_us)
{
    MQX_ASSERT((uintptr_t)word % sizeof *word == 0);
    struct timespec left = {.tv_sec = (time_t)(timeout_us / 1000000),
                            .tv_nsec = (long)(timeout_us % 1000000) * 1000};
    if (syscall(SYS_futex, word, FUTEX_WAIT, seen, &left, NULL, 0) == 0 || errno == EAGAIN) {
        return 0;
    }
    return errno == ETIMEDOUT || errno == EINTR ? -errno : 0;
}

static inline void mqx_futex_wake(uint32_t *word, int how_many)
{
    MQX_ASSERT((uintptr_t)word % sizeof *word == 0);
    MQX_ASSERT(how_many > 0);
    (void)syscall(SYS_futex, word, FUTEX_WAKE, how_many, NULL, NULL, 0);
}

static inline void mqx_futex_raise(uint32_t *word, int how_many)
{
    MQX_ASSERT(how_many > 0);
    (void)mqx_fetch_add(word, 1u);
    mqx_futex_wake(word, how_many);
}

#endif
