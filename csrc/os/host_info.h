/*
 * host_info.h - what the core asks of the machine besides files and clocks: random numbers, boot
 * id, PID namespace, libc, start times of threads, free space.
 *
 * What is asked of files that other processes have open is in process_files.h. None of this is
 * stored state, so it does not go through the file table.
 */
#ifndef PENSTOCK_HOST_INFO_H
#define PENSTOCK_HOST_INFO_H

#include "base/base.h"

/* What robust mutexes and process ids depend on: processes that differ in it may not share a region
 * (rule 18). */
struct mqx_host_info {
    uint8_t boot_id[16];
    uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
    char libc[32];          /* "glibc 2.36" */
};

/* MQRC_ENVIRONMENT_ERROR when /proc does not give them. */
int mqx_host_info_read(struct mqx_host_info *out) MQX_MUST_USE;

/* At most 256 bytes. MQRC_ENVIRONMENT_ERROR when the system gives none. */
int mqx_random_bytes(void *to, size_t size) MQX_MUST_USE;

/* Start time (clock ticks since boot) of the calling thread; 0 when /proc does not show it. */
uint64_t mqx_own_start_time(void);

/* Does the kernel have such a thread? Cheap (one system call), but a thread that has ended and
 * waits for a debugger counts, and so does a later one with the same two numbers. True also when it
 * is another user's. */
bool mqx_thread_exists(int32_t pid, int32_t thread);

/* Has the thread that had this start time ended? A thread that has, and waits for a debugger,
 * counts as ended. Where /proc does not belong to this PID namespace, a later thread with the same
 * two numbers counts as the same one. */
bool mqx_thread_has_ended(int32_t pid, int32_t thread, uint64_t start_time);

/* Has /proc our pids? In a container that did not mount it anew it has those of another PID
 * namespace. */
bool mqx_proc_is_ours(void);

/* Kernel thread id of the calling thread; asked of the kernel once a thread, and again after a
 * fork. */
int32_t mqx_thread_id(void);

/* How many processors the calling thread may run on now; at least 1. A system call. */
uint32_t mqx_usable_processors(void);
/* The one that this thread runs on at this moment, from 0; 0 where the system does not tell. */
uint32_t mqx_current_processor(void);

/* Bytes of address space that this process may have (RLIMIT_AS); UINT64_MAX without a limit. */
uint64_t mqx_address_space_limit(void);

/* Is there a thread with that kernel id, of whatever process? One of another user counts. */
bool mqx_task_exists(int32_t id);

/* Last component of the program's path. */
const char *mqx_program_name(void);

/* Bytes that this user may still write at that path; UINT64_MAX when that is unknown. */
uint64_t mqx_room_at(const char *path);
/* Bytes of the whole file system at that path; UINT64_MAX when that is unknown or unlimited. */
uint64_t mqx_size_at(const char *path);
/* Bytes of memory of the machine; UINT64_MAX when that is unknown. */
uint64_t mqx_physical_memory(void);

#endif
