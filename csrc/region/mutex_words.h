/*
 * mutex_words.h - the words of a robust mutex that libc believes, and what they must be.
 *
 * Purpose. The mutexes lie in the region, where a stray pointer may have changed them. libc follows
 * two of their words as pointers (the owner's list of robust mutexes) and chooses what to do by a
 * third one (the kind): damage there ends the host process inside libc. So they are compared with
 * what this process knows before libc reads them.
 *
 * Terms
 *   kind     robust and shared between processes; the same for every mutex of the region.
 *   links    of the owner's list: addresses of its process, written when it takes the mutex, read
 *            when it drops it. A mutex that is free has none that matter.
 *   word     0, or the kernel's id of the owning thread with two flag bits.
 *
 * What is covered: glibc on 64-bit machines. Elsewhere everything counts as sound.
 * What is not: damage in the nanoseconds between a comparison and libc's own read.
 *
 * Locks: none.
 */
#ifndef PENSTOCK_MUTEX_WORDS_H
#define PENSTOCK_MUTEX_WORDS_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/base.h"

#include <pthread.h>

#if defined(__GLIBC__) && defined(__PTHREAD_MUTEX_HAVE_PREV) && __PTHREAD_MUTEX_HAVE_PREV
#define MQX_MUTEX_WORDS_KNOWN 1
#else
#define MQX_MUTEX_WORDS_KNOWN 0
#endif

struct mqx_mutex_links { /* of a mutex that this thread has */
    void *next;
    void *prev;
};

/* The kind of a mutex that was just made. */
static inline int mqx_mutex_kind(const pthread_mutex_t *mutex)
{
    MQX_ASSERT(mutex != NULL);
    MQX_ASSERT((uintptr_t)mutex % sizeof(void *) == 0);
#if MQX_MUTEX_WORDS_KNOWN
    return __atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED);
#else
    return 0;
#endif
}

static inline struct mqx_mutex_links mqx_mutex_links(const pthread_mutex_t *mutex)
{
    MQX_ASSERT(mutex != NULL);
    MQX_ASSERT((uintptr_t)mutex % sizeof(void *) == 0);
#if MQX_MUTEX_WORDS_KNOWN
    return (struct mqx_mutex_links){mutex->__data.__list.__next, mutex->__data.__list.__prev};
#else
    return (struct mqx_mutex_links){NULL, NULL};
#endif
}

/* Where the links of other mutexes of the list point when they name this one. */
static inline const void *mqx_mutex_node(const pthread_mutex_t *mutex)
{
    MQX_ASSERT(mutex != NULL);
    MQX_ASSERT((uintptr_t)mutex % sizeof(void *) == 0);
#if MQX_MUTEX_WORDS_KNOWN
    return &mutex->__data.__list.__next; /* the kernel's view of a node */
#else
    return mutex;
#endif
}

/* Puts right what damage changed, so that the mutex can be dropped. */
void mqx_mutex_restore(pthread_mutex_t *mutex, int kind, const struct mqx_mutex_links *links);

/* Kernel id of the thread that the mutex is marked as taken by; 0: none, or it died. */
int32_t mqx_mutex_owner(const pthread_mutex_t *mutex);

/* Is the mutex marked as taken by a thread that cannot have it: one that does not exist, or the
 * calling one, which does not? Asks the kernel; for a mutex that was found taken. */
bool mqx_mutex_has_no_owner(const pthread_mutex_t *mutex);

#endif
