/*
 * clock.c - see clock.h.
 */
#include "base/clock.h"

#include "base/assert.h"

#include <time.h>

enum { /* of a second; nanoseconds of a microsecond */
    MICROSECONDS = 1000000,
    NANOSECONDS = 1000000000,
    PER_MICROSECOND = 1000,
};

static uint64_t microseconds(const struct timespec *time)
{
    MQX_ASSERT(time->tv_sec >= 0);
    MQX_ASSERT(time->tv_nsec >= 0 && time->tv_nsec < NANOSECONDS);
    return (uint64_t)time->tv_sec * MICROSECONDS + (uint64_t)time->tv_nsec / PER_MICROSECOND;
}

uint64_t mqx_clock_monotonic_us(void)
{
    struct timespec now = {0};
    const int err = clock_gettime(CLOCK_MONOTONIC, &now);
    MQX_ASSERT(err == 0); /* the clock exists on every Linux */
    (void)err;
    return microseconds(&now);
}

uint64_t mqx_clock_boot_us(void)
{
    struct timespec now = {0};
    const int err = clock_gettime(CLOCK_BOOTTIME, &now);
    MQX_ASSERT(err == 0); /* Linux 2.6.39 */
    (void)err;
    return microseconds(&now);
}

uint64_t mqx_clock_wall_us(void)
{
    struct timespec now = {0};
    const int err = clock_gettime(CLOCK_REALTIME, &now);
    MQX_ASSERT(err == 0);
    (void)err;
    return microseconds(&now);
}

uint64_t mqx_clock_coarse_us(void)
{
    struct timespec now = {0};
    const int err = clock_gettime(CLOCK_REALTIME_COARSE, &now);
    MQX_ASSERT(err == 0);
    (void)err;
    return microseconds(&now);
}

void mqx_clock_sleep_us(uint64_t us)
{
    MQX_ASSERT(us / MICROSECONDS <= INT32_MAX); /* a mistaken unit, not 68 years */
    const struct timespec time = {.tv_sec = (time_t)(us / MICROSECONDS),
                                  .tv_nsec = (long)(us % MICROSECONDS) * PER_MICROSECOND};
    MQX_ASSERT(time.tv_sec >= 0);
    MQX_ASSERT(time.tv_nsec < NANOSECONDS);
    (void)nanosleep(&time, NULL);
}
