/*
 * host_info.h - what the core asks of the machine beside files: random numbers, which boot,
 * which PID namespace and libc this is, when a process started, time that never goes back.
 *
 * The only place that reads /proc. None of this is stored state, so it does not go through the file
 * table.
 */
#ifndef PENSTOCK_SURROUNDINGS_H
#define PENSTOCK_SURROUNDINGS_H

#include "base/base.h"

/* What robust mutexes and process ids depend on: processes that differ in it may not share a region
 * (rule 18). */
struct mqx_host_info {
    uint8_t boot_id[16];
    uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
    char libc[32];          /* "glibc 2.36" */
};

/* MQRC_ENVIRONMENT_ERROR when /proc does not tell. */
int mqx_host_info_read(struct mqx_host_info *out) MQX_MUST_USE;

int mqx_random_bytes(void *to, size_t size) MQX_MUST_USE;

/* Start time (clock ticks since boot) of a process; 0 when there is none or it has ended and only
 * waits for its parent to take notice. */
uint64_t mqx_process_start_time(int32_t pid);

/* Last component of the program's path. */
const char *mqx_program_name(void);

/* Bytes free for us on the file system at that path; UINT64_MAX when it does not say. */
uint64_t mqx_room_at(const char *path);

#endif
