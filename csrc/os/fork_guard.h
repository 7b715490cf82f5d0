/*
 * fork_guard.h - distinguishing a forked child from its parent, and a lock that both may use
 * (crash-safety rule 32: the child owns nothing).
 *
 * Terms
 *   wiped page   a page of memory that reads as zeroes in a forked child (MADV_WIPEONFORK).
 *   owner        an object of this process, by its address. It is registered in a wiped page, so a
 *                child, whatever copy of the memory it has, finds it in no list. The child may
 *                register its own objects; they enter its copy of the page.
 *   local lock   a lock among the threads of one process that a forked child finds free, whatever
 *                the parent's threads were doing. For short, rare sections; the word is the owner's
 *                pid, 0 when free.
 *
 * Locks: the local lock of the list of owners, inside the functions that change it; readers take
 * none. Errors: 2071 without memory, 2012 when the kernel does not know MADV_WIPEONFORK.
 */
#ifndef PENSTOCK_FORK_GUARD_H
#define PENSTOCK_FORK_GUARD_H

#include "base/base.h"

enum { MQX_FORK_GUARDS_MAX = MQX_STORES_MAX }; /* owners at a time in one process */

/* MQX_PAGE_SIZE bytes of zeroes, MADV_WIPEONFORK; they stay until the process ends. 2012 2071 */
int mqx_fork_wiped_page(void **out) MQX_MUST_USE;

/* Is this a fork of the process that registered `owner`? About 5 ns. */
bool mqx_forked(const void *owner);
/* 2012 2071; MQRC_RESOURCE_PROBLEM when there are MQX_FORK_GUARDS_MAX already. */
int mqx_fork_guard_add(const void *owner) MQX_MUST_USE;
void mqx_fork_guard_remove(const void *owner);

/* A number that a process and its forked children have not in common, so that what was cached
 * before a fork is recognized; 0 while this process has registered no owner. */
uint64_t mqx_fork_epoch(void);

struct mqx_local_lock {
    int32_t owner;
};
void mqx_local_take(struct mqx_local_lock *lock);
/* The same, waiting `patience_us` at most; false when the lock was not free by then. */
bool mqx_local_take_for(struct mqx_local_lock *lock, uint64_t patience_us) MQX_MUST_USE;
void mqx_local_drop(struct mqx_local_lock *lock);

#endif
