/*
 * store_hook.c - the functions that -fsanitize=thread calls, ours. See store_hook.h.
 *
 * This file itself is compiled without the sanitizer.
 */
#include "store_hook.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

static uintptr_t range_start;
static uint64_t range_size;
static uint64_t points;
static uint64_t kill_point;
static bool armed;
static uint64_t awaited_size; /* of the mapping that becomes the range */
static void (*at_point)(void); /* instead of the kill */
static void (*at_refusal)(void);
static const void *site;

void store_hook_arm(const void *start, uint64_t size, uint64_t kill_at)
{
    range_start = (uintptr_t)start;
    range_size = size;
    points = 0;
    kill_point = kill_at;
    armed = true;
}

void store_hook_arm_on_map(uint64_t size, uint64_t kill_at)
{
    store_hook_arm(NULL, 0, kill_at);
    awaited_size = size;
}

uint64_t store_hook_disarm(void)
{
    armed = false;
    return points;
}

void store_hook_call(void (*instead)(void), void (*refused)(void))
{
    at_point = instead;
    at_refusal = refused;
}

const void *store_hook_site(void)
{
    return site;
}

/* Inlined, so that the return address is one in the core. */
__attribute__((always_inline)) static inline void point(const void *at)
{
    if (!armed || (uintptr_t)at - range_start >= range_size || ++points != kill_point) {
        return;
    }
    site = __builtin_return_address(0);
    if (at_point != NULL) {
        at_point();
    } else if (getpid() > 1) {
        kill(getpid(), SIGKILL);
    }
}

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_init(void) {}
void __tsan_func_entry(void *pc) { (void)pc; }
void __tsan_func_exit(void) {}

#define LOADS_AND_STORES(n)                                          \
    void __tsan_read##n(void *at);                                   \
    void __tsan_write##n(void *at);                                  \
    void __tsan_unaligned_read##n(void *at);                         \
    void __tsan_unaligned_write##n(void *at);                        \
    void __tsan_read##n(void *at) { (void)at; }                      \
    void __tsan_write##n(void *at) { point(at); }              \
    void __tsan_unaligned_read##n(void *at) { (void)at; }            \
    void __tsan_unaligned_write##n(void *at) { point(at); }
LOADS_AND_STORES(1)
LOADS_AND_STORES(2)
LOADS_AND_STORES(4)
LOADS_AND_STORES(8)
LOADS_AND_STORES(16)

void __tsan_read_range(void *at, size_t size);
void __tsan_write_range(void *at, size_t size);
void __tsan_read_range(void *at, size_t size) { (void)at; (void)size; }
void __tsan_write_range(void *at, size_t size) { (void)size; point(at); }

#define ATOMICS(bits, type)                                                                       \
    type __tsan_atomic##bits##_load(const volatile type *at, int order);                          \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order);                   \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order);                \
    type __tsan_atomic##bits##_fetch_add(volatile type *at, type value, int order);               \
    type __tsan_atomic##bits##_fetch_sub(volatile type *at, type value, int order);               \
    type __tsan_atomic##bits##_fetch_or(volatile type *at, type value, int order);                \
    type __tsan_atomic##bits##_fetch_and(volatile type *at, type value, int order);               \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *expected,          \
                                                      type desired, int order, int failure);      \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *at, type *expected,            \
                                                    type desired, int order, int failure);        \
    type __tsan_atomic##bits##_load(const volatile type *at, int order)                           \
    {                                                                                             \
        (void)order;                                                                              \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                             \
    }                                                                                             \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order)                    \
    {                                                                                             \
        (void)order;                                                                              \
        point((const void *)at);                                                            \
        __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                            \
    }                                                                                             \
    type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order)                 \
    {                                                                                             \
        (void)order;                                                                              \
        point((const void *)at);                                                            \
        return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                                  \
    }                                                                                             \
    type __tsan_atomic##bits##_fetch_add(volatile type *at, type value, int order)                \
    {                                                                                             \
        (void)order;                                                                              \
        point((const void *)at);                                                            \
        return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);                                   \
    }                                                                                             \
    type __tsan_atomic##bits##_fetch_sub(volatile type *at, type value, int order)                \
    {                                                                                             \
        (void)order;                                                                              \
        point((const void *)at);                                                            \
        return __atomic_fetch_sub(at, value, __ATOMIC_SEQ_CST);                                   \
    }                                                                                             \
    type __tsan_atomic##bits##_fetch_or(volatile type *at, type value, int order)                 \
    {                                                                                             \
        (void)order;                                                                              \
        point((const void *)at);                                                            \
        return __atomic_fetch_or(at, value, __ATOMIC_SEQ_CST);                                    \
    }                                                                                             \
    type __tsan_atomic##bits##_fetch_and(volatile type *at, type value, int order)                \
    {                                                                                             \
        (void)order;                                                                              \
        point((const void *)at);                                                            \
        return __atomic_fetch_and(at, value, __ATOMIC_SEQ_CST);                                   \
    }                                                                                             \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *at, type *expected,          \
                                                      type desired, int order, int failure)       \
    {                                                                                             \
        (void)order;                                                                              \
        (void)failure;                                                                            \
        point((const void *)at);                                                            \
        return __atomic_compare_exchange_n(at, expected, desired, false, __ATOMIC_SEQ_CST,        \
                                           __ATOMIC_SEQ_CST);                                     \
    }                                                                                             \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *at, type *expected,            \
                                                    type desired, int order, int failure)         \
    {                                                                                             \
        return __tsan_atomic##bits##_compare_exchange_strong(at, expected, desired, order,        \
                                                             failure);                            \
    }
ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int order)
{
    (void)order;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* ---- wrapped by the linker (--wrap) ---- */

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    void *result = __real_mmap(at, size, protection, flags, fd, offset);
    if (armed && awaited_size == size) {
        range_start = (uintptr_t)result;
        range_size = size;
        awaited_size = 0;
    }
    return result;
}

void *__real_memcpy(void *to, const void *from, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size)
{
    point(to);
    if (size > 8) { /* half a copy is a separate state */
        (void)__real_memcpy(to, from, size / 2);
        point(to);
    }
    return __real_memcpy(to, from, size);
}

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    point(mutex);
    const int result = __real_pthread_mutex_lock(mutex);
    point(mutex);
    return result;
}

int __real_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    point(mutex);
    const int result = __real_pthread_mutex_trylock(mutex);
    point(mutex);
    if (result == EBUSY && armed && at_refusal != NULL) {
        site = __builtin_return_address(0);
        at_refusal();
    }
    return result;
}

int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    point(mutex);
    const int result = __real_pthread_mutex_unlock(mutex);
    point(mutex);
    return result;
}

int __real_pthread_mutex_consistent(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_consistent(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_consistent(pthread_mutex_t *mutex)
{
    point(mutex);
    const int result = __real_pthread_mutex_consistent(mutex);
    point(mutex);
    return result;
}
