/*
 * copy.c - the floor of a non-persistent put and get: a robust lock and a copy, each way.
 *
 * A message of `bytes` is copied into a ring in shared memory under a robust process-shared mutex
 * and copied out again under it. No queue, no descriptor, no result object.
 */
#include "common.h"

#include "raw.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { RING = 4 << 20 };

struct copy_area {
    pthread_mutex_t mutex;
    unsigned char ring[RING] __attribute__((aligned(4096)));
};

static int init_robust(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    int rc = -pthread_mutexattr_init(&attributes);

    if (rc == 0)
        rc = -pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (rc == 0)
        rc = -pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    if (rc == 0)
        rc = -pthread_mutex_init(mutex, &attributes);
    return rc;
}

static void copy_under(pthread_mutex_t *mutex, void *to, const void *from, size_t bytes)
{
    pthread_mutex_lock(mutex);
    memcpy(to, from, bytes);
    pthread_mutex_unlock(mutex);
}

int raw_copy_pairs(uint32_t bytes, uint32_t count, uint64_t *elapsed_ns)
{
    uint64_t step = raw_round_up(bytes, 64);
    struct copy_area *area;
    unsigned char *message;
    unsigned char *got;
    uint64_t begun;
    int rc;

    if (bytes < 8 || step > RING)
        return -EINVAL;
    area = mmap(NULL, sizeof(*area), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED)
        return -errno;
    memset(area->ring, 0, RING);
    message = malloc(bytes);
    got = malloc(bytes);
    rc = message == NULL || got == NULL ? -ENOMEM : init_robust(&area->mutex);
    if (rc != 0)
        goto done;
    memset(message, 'm', bytes);
    begun = raw_now_ns();
    for (uint64_t i = 0, at = 0; i < count; i++, at = at + 2 * step <= RING ? at + step : 0) {
        memcpy(message, &i, sizeof(i));
        copy_under(&area->mutex, area->ring + at, message, bytes);
        copy_under(&area->mutex, got, area->ring + at, bytes);
        if (memcmp(got, &i, sizeof(i)) != 0)
            rc = -EBADMSG;
    }
    *elapsed_ns = raw_now_ns() - begun;
done:
    free(message);
    free(got);
    munmap(area, sizeof(*area));
    return rc;
}
