/*
 * store_hook.h - stopping this process at its n-th store into the region (crash-safety layer T2).
 *
 * The core is compiled with -fsanitize=thread, which puts a call before each load and store, and
 * linked with our own functions of those names (store_hook.c) instead of the sanitizer's library.
 * Each store into the armed range counts as one point; so do each call of memcpy into it and the
 * moments around taking and releasing a mutex. When the count reaches the chosen number the process
 * sends itself SIGKILL, before the store happens.
 */
#ifndef PENSTOCK_TESTS_STORE_HOOK_H
#define PENSTOCK_TESTS_STORE_HOOK_H

#include <stdint.h>

/* Counts points from now on; kills at point `kill_at` (1 = the first), never when 0. */
void store_hook_arm(const void *start, uint64_t size, uint64_t kill_at);
/* The same, from the moment a mapping of exactly `size` bytes is made: for what runs during an
 * attach. */
void store_hook_arm_on_map(uint64_t size, uint64_t kill_at);
/* From now on `instead` is called at the chosen point and not the kill, and `refused` whenever a
 * lock was tried that another process has; NULL: as before. */
void store_hook_call(void (*instead)(void), void (*refused)(void));
/* Where in the core the chosen point, or the refused lock, was. */
const void *store_hook_site(void);
/* Stops counting; returns how many points there were. */
uint64_t store_hook_disarm(void);
#endif
