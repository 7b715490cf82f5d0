/*
 * process_slot.h - attachment slots of the region: one for each attached process.
 *
 * A slot whose state is LIVE is no proof that its process lives. Its life word (os/life_thread.h)
 * and its life thread say so (crash-safety rule 50); a lock on the file `lock` is the second,
 * independent sign (process/liveness.h).
 *
 * Two questions, since an error costs differently:
 *   May it live?  Asked before a region is discarded. The slot's process counts as over as soon as
 *                 one of word and thread says so; the file locks have to agree.
 *   Is it gone?   Asked before the work of a process is ended by others. Only when its thread is
 *                 gone, whatever the word says.
 *
 * Locks. Changed under the slots lock; the fields marked atomic are read and written without it.
 */
#ifndef PENSTOCK_PROCESS_SLOT_H
#define PENSTOCK_PROCESS_SLOT_H

#include "base/base.h"

enum { MQX_PROCESS_MAX = 1024, MQX_PROGRAM_SIZE = 72 };

enum { /* mqx_process.state */
    MQX_PROC_FREE = 0,
    MQX_PROC_LIVE = 1,
    MQX_PROC_REAPING = 2,        /* its process is dead; the reaper ends its work */
};

/* In the doorbell: a waiter was woken while others wait (queue/wait_list.h). */
enum { MQX_BELL_ROUNDS = 0x7fffffff };
#define MQX_BELL_SECOND_LOOK UINT32_C(0x80000000)

struct mqx_process {
    uint32_t state;
    int32_t pid;
    uint64_t start_time;         /* of the life thread, clock ticks since boot */
    uint64_t pid_namespace;      /* inode of /proc/self/ns/pid */
    uint32_t doorbell;           /* atomic: futex word of the maintenance thread: raised to start a
                                  * round; MQX_BELL_SECOND_LOOK is a flag */
    uint32_t leaving;            /* set when it leaves in order */
    uint64_t attached_us;
    uint32_t calls_inside;       /* atomic: statistics for the life lock of rule 13 */
    uint32_t keeper;             /* `penstock start` */
    uint32_t life_word;          /* atomic: os/life_thread.h */
    int32_t life_thread;         /* kernel id of the life thread */
    char program[MQX_PROGRAM_SIZE]; /* last component of the program path, NUL-terminated */
} MQX_ALIGNED(64);
MQX_STATIC_ASSERT(sizeof(struct mqx_process) == 128, "attachment slot");

/* Can the thread of this slot be asked for: is it of this PID namespace, with possible numbers? */
bool mqx_process_is_askable(const struct mqx_process *process, uint64_t pid_namespace);

/* Can the process of this slot, or of a copy of it, still live? `pid_namespace`: the caller's; of a
 * process in another one only the word is known. */
bool mqx_process_may_live(const struct mqx_process *process, uint64_t pid_namespace);

/* Has the process of this slot certainly ended, or executed another program? */
bool mqx_process_is_gone(const struct mqx_process *process, uint64_t pid_namespace);

#endif
