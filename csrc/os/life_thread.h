/*
 * life_thread.h - the life sign of a process: a word of shared memory that the kernel marks when
 * the process ends or executes another program (crash-safety rule 50).
 *
 * Purpose. No lock on a file is a reliable sign of life: record locks of a process are dropped when
 * it closes any descriptor of that file (a backup script is enough), and locks of a descriptor live
 * on in forked children. The kernel's list of robust futexes involves no file and no child.
 *
 * Terms
 *   life thread  a thread that sleeps for as long as the process is attached. It has told the
 *                kernel (set_robust_list) of one futex word, through a list that lies in private
 *                memory: damage in the shared region cannot lead the kernel or glibc astray, as it
 *                could if the list node of a glibc mutex lay there.
 *   life word    that futex word, in the region: the kernel's id of the life thread while it lives.
 *                0: the process has left. MQX_LIFE_MARKED: the thread has ended.
 *
 * What the kernel does when the life thread ends with the word unchanged: it stores MQX_LIFE_MARKED
 * there. The thread ends at SIGKILL, exit and OOM kill, and when any thread of the process calls
 * exec. A fork, vfork or posix_spawn does not touch it: a child does not inherit the list, and has
 * no such thread. SIGSTOP leaves the word as it is, and the process is alive.
 *
 * The mark is missing when the region is no longer mapped at that moment, and on systems without
 * robust futexes (qemu-user). So whoever reads the word also asks whether the thread exists
 * (host_info.h): process_slot.h combines the two.
 *
 * The thread blocks all signals, never needs Python's GIL, and takes no lock.
 *
 * Errors. 2071 when there is no memory; 2102 when the system refuses the thread (RLIMIT_NPROC);
 * 2012 when /proc does not show it.
 */
#ifndef PENSTOCK_LIFE_THREAD_H
#define PENSTOCK_LIFE_THREAD_H

#include "base/base.h"

enum { /* bits of a life word, as the kernel has them */
    MQX_LIFE_MARKED = 0x40000000,    /* FUTEX_OWNER_DIED */
    MQX_LIFE_ID_MASK = 0x3fffffff,   /* FUTEX_TID_MASK */
};

struct mqx_life_thread;

/* Starts a life thread for the word, which is 0, and stores the thread's id there. */
int mqx_life_thread_start(uint32_t *word, struct mqx_life_thread **out) MQX_MUST_USE;

/* Its id; the same value as the word's. */
int32_t mqx_life_thread_id(const struct mqx_life_thread *life);
/* When it started, clock ticks since boot; tells it from a later thread with the same id. */
uint64_t mqx_life_thread_start_time(const struct mqx_life_thread *life);

/* Ends the thread and frees the object. `left`: the word becomes 0 first; otherwise the kernel
 * marks it, as if the process had died. In a forked child, which has no such thread, only frees. */
void mqx_life_thread_end(struct mqx_life_thread *life, bool left);

#endif
