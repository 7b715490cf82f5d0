/*
 * handle_slot.h - open handles of queues, for the counts of a queue, for DISPLAY and for the
 * reaper, which closes the handles of dead processes.
 *
 * Locks. The slots lock; browse_lock and browse_number the stripe lock of the object.
 */
#ifndef PENSTOCK_HANDLE_SLOT_H
#define PENSTOCK_HANDLE_SLOT_H

#include "base/base.h"

enum { MQX_HANDLE_FREE = 0, MQX_HANDLE_OPEN = 1 };
enum { MQX_HANDLE_STEPS = 4 };

struct mqx_handle {
    uint32_t state;           /* MQX_HANDLE_* */
    uint32_t process;
    uint32_t object;
    uint32_t object_gen;
    uint32_t options;         /* MQOO_* */
    uint32_t browse_lock;     /* message locked through this handle, 0 none */
    uint64_t browse_number;   /* its message number (guards against re-use) */
    uint64_t opened_us;
    uint32_t next_free;
    int32_t pid;
    uint32_t step[MQX_HANDLE_STEPS]; /* objects that its name was resolved through, 0 none; a fifth
                                      * one is `object`: the slot stays one cache line */
} MQX_ALIGNED(64);
MQX_STATIC_ASSERT(sizeof(struct mqx_handle) == 64, "handle");

#endif
