/*
 * clock.c - see clock.h.
 */
#include "base/clock.h"

#include "base/assert.h"

#include <time.h>

static uint64_t microseconds(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000u + (uint64_t)time->tv_nsec / 1000u;
}

uint64_t mqx_clock_monotonic_us(void)
{
    struct timespec now = {0};
    const int err = clock_gettime(CLOCK_MONOTONIC, &now);
    MQX_ASSERT(err == 0); /* the clock exists on every Linux */
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
    const struct timespec time = {.tv_sec = (time_t)(us / 1000000),
                                  .tv_nsec = (long)(us % 1000000) * 1000};
    (void)nanosleep(&time, NULL);
}
