/*
 * queue_handle.h - open queues as engine.h shows them: a handle slot of the region and the browse
 * cursor.
 *
 * Threads: puts and gets may share a handle. Browses and gets under the cursor are serialized by
 * cursor_mutex, which is taken before any lock of the region and, the one exception among
 * process-local mutexes, held across the whole call, since its cursor is one.
 */
#ifndef PENSTOCK_QUEUE_HANDLE_H
#define PENSTOCK_QUEUE_HANDLE_H

#include "api/entry.h"
#include "api/wait_spin.h"
#include "queue/priority_index.h"

#include <pthread.h>

struct mqe_queue {
    mqe_manager *manager;
    uint32_t object, generation;
    struct mqe_destination path; /* how its name led to the queue */
    uint32_t options;            /* MQE_INPUT ... */
    uint32_t handle;             /* slot in the region */
    pthread_mutex_t cursor_mutex;
    struct mqx_cursor cursor;
    struct mqx_spin spin;        /* how the waits of its gets begin */
};

/* Takes the cursor of the handle; announces to the environment that the thread may sleep. */
void mqx_cursor_lock(mqe_queue *queue);
void mqx_cursor_unlock(mqe_queue *queue);

#endif
