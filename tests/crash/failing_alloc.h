/*
 * failing_alloc.h - malloc, calloc, realloc and aligned_alloc of the core, some of which fail (T5).
 *
 * The linker replaces the calls (--wrap), so memory that the C library takes for itself does not
 * count. Only the thread that armed the failure is hit; all threads are counted.
 */
#ifndef PENSTOCK_TESTS_FAILING_ALLOC_H
#define PENSTOCK_TESTS_FAILING_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

/* Counts the allocations of this thread from now on. The one with the number `fail_at` (1 = the
 * first; 0: none) fails, and with `for_ever` all after it. */
void failing_alloc_arm(uint64_t fail_at, bool for_ever);
/* How many there were since. */
uint64_t failing_alloc_disarm(void);
/* Blocks that are allocated and not yet freed, of all threads. */
int64_t failing_alloc_live(void);

#endif
