/*
 * clock.h - all reading of clocks.
 *
 * Four clocks, for four purposes
 *
 *   monotonic   durations and deadlines: never set back
 *   boot        due times of delayed messages: as monotonic, and goes on while the system is
 *               suspended
 *   wall        deadlines of pthread calls, and the file table's clock
 *   coarse      times that people see: the wall clock, to the kernel's tick
 *
 * Times of messages and files are read through the file table (os/io.h, now_us), so that tests can
 * set them.
 *
 * Threads: all functions may be called from anywhere at any time. No locks, no errors.
 */
#ifndef PENSTOCK_CLOCK_H
#define PENSTOCK_CLOCK_H

#include "base/base.h"

/* Microseconds since an unspecified moment; never goes back. */
uint64_t mqx_clock_monotonic_us(void);

/* The same, with the time in which the system was suspended. */
uint64_t mqx_clock_boot_us(void);

/* Wall clock, microseconds since 1970 UTC. */
uint64_t mqx_clock_wall_us(void);

/* The same, to the kernel's tick (a few milliseconds, which PutTime's 10 ms allow; cheaper). */
uint64_t mqx_clock_coarse_us(void);

/* Sleeps for that long, or until a signal arrives: callers check again what they wait for. */
void mqx_clock_sleep_us(uint64_t us);

#endif
