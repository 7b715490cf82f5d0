/*
 * clock.h - all reading of clocks.
 *
 * Three clocks, for three purposes: durations (monotonic, not set back by anybody), times that
 * people see (wall clock, to the kernel's tick), and times of messages and files, which come from
 * the file table (io.h, now_us) so that tests can set them.
 */
#ifndef PENSTOCK_CLOCK_H
#define PENSTOCK_CLOCK_H

#include "base/base.h"

/* Microseconds since some moment in the past; never goes back. */
uint64_t mqx_clock_monotonic_us(void);

/* Wall clock, microseconds since 1970 UTC, to the kernel's tick (cheap: PutTime has 10 ms). */
uint64_t mqx_clock_coarse_us(void);

/* Sleeps for that long; a signal shortens it, so callers look again. */
void mqx_clock_sleep_us(uint64_t us);

#endif
