/*
 * attachment.h - the process-local objects behind engine.h: manager, unit, queue handle, pool of
 * contexts.
 *
 * Locks here are process-local pthread mutexes, taken before any lock of the region and never held
 * across a wait or a flush: manager.pool_mutex (list of idle contexts), queue.cursor_mutex (browse
 * cursor, held during a browse).
 */
#ifndef PENSTOCK_ATTACHMENT_H
#define PENSTOCK_ATTACHMENT_H

#include "queue/priority_index.h"
#include "process/maintenance.h"
#include "penstock/engine.h"
#include "region/store.h"

#include <pthread.h>

struct mqe_manager {
    struct mqx_store store;
    uint64_t device, inode;      /* identity of the directory */
    uint32_t references;         /* mqe_attach calls not yet given back (registry mutex of
                                  * manager.c) */
    struct mqx_maintenance *helper;
    pthread_mutex_t pool_mutex;
    uint32_t pool_count;
    uint32_t pool[256];          /* idle contexts for single calls and waiters */
    struct mqe_manager *next;    /* registry of this process */
};

struct mqe_unit {
    mqe_manager *manager;
    uint32_t context;
};

struct mqe_queue {
    mqe_manager *manager;
    uint32_t object, generation;
    struct mqe_destination path; /* how its name led to the queue */
    uint32_t options;
    uint32_t handle;             /* slot in the region */
    pthread_mutex_t cursor_mutex;
    struct mqx_cursor cursor;
};

/* mqe_create and mqe_attach on any file table (tests: tests/c/memory_io.h). */
int mqx_manager_create(struct mqx_io *io, const char *path,
                       const struct mqe_settings *settings) MQX_MUST_USE;
int mqx_manager_attach(struct mqx_io *io, const char *path, const struct mqe_settings *settings,
                       mqe_manager **out, struct mqe_attach_info *info) MQX_MUST_USE;

/* An idle context for one call, from the pool or new; and back. */
int mqx_pool_take(mqe_manager *manager, bool single, uint32_t *out) MQX_MUST_USE;
void mqx_pool_give(mqe_manager *manager, uint32_t context);

/* What every call asks first: forked (2012), stopped (2009, 2162), quiescing when the caller cares
 * (2161). */
int mqx_enter(mqe_manager *manager, bool fail_if_quiescing) MQX_MUST_USE;

/* Around what may write or read files: a stopped region's next restart waits for it (rule 13). */
static inline void mqx_inside(mqe_manager *manager, int32_t by)
{
    struct mqx_region *region = &manager->store.region;
    mqx_add_relaxed(&mqx_process_slot(region, region->process)->calls_inside, (uint32_t)by);
}

/* Closes the handle in that slot, for mqe_close and the sweep: deletes the queue as `how` and Table
 * 74 say (on a failure nothing has changed), takes the handle out of the counts, gives the slot
 * back, and when it was the last one of a deleted queue, removes that. */
int mqx_handle_close(struct mqx_store *store, uint32_t slot, uint32_t how) MQX_MUST_USE;

#endif
