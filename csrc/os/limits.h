/*
 * limits.h - may this process do what an attachment needs? (crash-safety rule 51)
 *
 * A limit that makes work impossible is refused at attach, with its name and what is needed, rather
 * than met later, when others wait for this process.
 *
 *   RLIMIT_NOFILE, and the system's table   descriptors: as many as needed are opened and closed
 *   RLIMIT_FSIZE                            the longest file that this process may write
 *
 * Limits that are lowered later are met where they strike (journal/leadership.h).
 *
 * Locks: none. Threads: any; what another thread opens in between may still use the descriptors up.
 */
#ifndef PENSTOCK_LIMITS_H
#define PENSTOCK_LIMITS_H

#include "base/base.h"

/* Can this process open so many more files (64 at most), and write one of that length?
 * MQRC_RESOURCE_PROBLEM for descriptors, MQRC_ENVIRONMENT_ERROR for the length, naming limit and
 * need. */
int mqx_limits_check(uint32_t descriptors, uint64_t file_size) MQX_MUST_USE;

#endif
