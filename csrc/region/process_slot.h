/*
 * process_slot.h - attachment slots of the region: one for each attached process.
 *
 * Locks. Changed under the slots lock; the fields marked atomic are read and written without it.
 * A slot whose state is LIVE is no proof that its process lives: that is the life lock's business
 * (process/life_lock.h, crash-safety rule 25).
 */
#ifndef PENSTOCK_PROCESS_SLOT_H
#define PENSTOCK_PROCESS_SLOT_H

#include "base/base.h"

enum { MQX_PROCESS_MAX = 1024 };

enum { /* mqx_process.state */
    MQX_PROC_FREE = 0,
    MQX_PROC_LIVE = 1,
    MQX_PROC_REAPING = 2,        /* its process is dead; the reaper ends its work */
};

struct mqx_process {
    uint32_t state;
    int32_t pid;
    uint64_t start_time;         /* field 22 of /proc/<pid>/stat, clock ticks since boot */
    uint64_t pid_namespace;      /* inode of /proc/self/ns/pid */
    uint32_t doorbell;           /* atomic: futex word of the maintenance thread */
    uint32_t leaving;            /* set when it leaves in order */
    uint64_t attached_us;
    uint32_t calls_inside;       /* atomic: statistics for the life lock of rule 13 */
    uint32_t keeper;             /* `penstock start` */
    char program[80];            /* last component of the program path, NUL-terminated */
} MQX_ALIGNED(64);
MQX_STATIC_ASSERT(sizeof(struct mqx_process) == 128, "attachment slot");

#endif
