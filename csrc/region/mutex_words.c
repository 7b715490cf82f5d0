/*
 * mutex_words.c - see mutex_words.h.
 */
#include "region/mutex_words.h"

#include "os/host_info.h"

#include <linux/futex.h>

void mqx_mutex_restore(pthread_mutex_t *mutex, int kind, const struct mqx_mutex_links *links)
{
    MQX_ASSERT(mutex != NULL);
    MQX_ASSERT(links != NULL);
#if MQX_MUTEX_WORDS_KNOWN
    mutex->__data.__kind = kind;
    mutex->__data.__list.__next = links->next;
    mutex->__data.__list.__prev = links->prev;
#else
    (void)kind;
#endif
}

int32_t mqx_mutex_owner(const pthread_mutex_t *mutex)
{
    MQX_ASSERT(mutex != NULL);
    MQX_ASSERT((uintptr_t)mutex % sizeof(void *) == 0);
#if MQX_MUTEX_WORDS_KNOWN
    const uint32_t word = (uint32_t)__atomic_load_n(&mutex->__data.__lock, __ATOMIC_ACQUIRE);
    return (word & FUTEX_OWNER_DIED) != 0 ? 0 : (int32_t)(word & FUTEX_TID_MASK);
#else
    return 0;
#endif
}

/* The kernel marks the word of an owner that dies before its id is gone, so a word that still names
 * nobody after the id was looked up was never written by an owner. (One exception: a thread that is
 * not the first one of its process and calls exec is not marked. Nobody else can have its lock
 * either.) */
bool mqx_mutex_has_no_owner(const pthread_mutex_t *mutex)
{
    MQX_ASSERT(mutex != NULL);
    MQX_ASSERT((uintptr_t)mutex % sizeof(void *) == 0);
#if MQX_MUTEX_WORDS_KNOWN
    const uint32_t word = (uint32_t)__atomic_load_n(&mutex->__data.__lock, __ATOMIC_ACQUIRE);
    const int32_t owner = (int32_t)(word & FUTEX_TID_MASK);
    if (word == 0 || (word & FUTEX_OWNER_DIED) != 0) {
        return false;
    }
    if (owner != 0 && owner != mqx_thread_id() && mqx_task_exists(owner)) {
        return false;
    }
    return (uint32_t)__atomic_load_n(&mutex->__data.__lock, __ATOMIC_ACQUIRE) == word;
#else
    return false;
#endif
}
