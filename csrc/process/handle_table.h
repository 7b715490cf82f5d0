/*
 * handle_table.h - the handle slots of the region: every open handle of every process, for the open
 * counts of its queue, for DISPLAY, and so that the reaper can close the handles of dead processes.
 *
 * Invariants
 *   1. A slot whose `object` is not 0 is counted once in that object's open counts, as long as its
 *      `object_gen` is the object's generation; both change in one micro-transaction.
 *   2. object.exclusive_input is the slot of the one handle that has the queue open for input, or
 *      0.
 *
 * Locks: none may be held by the caller, but for the maintenance lock; the slots lock, and what
 * deleting a queue needs (catalog.h), are taken inside, one at a time.
 */
#ifndef PENSTOCK_HANDLE_TABLE_H
#define PENSTOCK_HANDLE_TABLE_H

#include "penstock/engine.h"
#include "region/store.h"

struct mqx_handle_request { /* a handle to be registered */
    uint32_t handle;                     /* slot, taken by the caller */
    uint32_t options;                    /* MQE_INPUT ... */
    const struct mqe_destination *path;  /* how its name led to the queue */
    bool defining;                       /* this call is defining the queue: it is not yet ACTIVE */
};

/* Fills the slot and counts the handle, in one micro-transaction. 2042 2043 2052 2085 2009; the
 * slot is then still the caller's. */
int mqx_handle_register(struct mqx_region *region,
                        const struct mqx_handle_request *request) MQX_MUST_USE;

/* Takes the handle out of the counts of its queue, if it was registered, and gives the slot back.
 * 2009 */
int mqx_handle_release(struct mqx_region *region, uint32_t slot) MQX_MUST_USE;

/* Closes the handle in that slot, for mqe_close and the reaper: deletes the queue as `how` and
 * Table 74 of mqi-reference say (on a failure nothing has changed), unlocks its browse-locked
 * message, releases it, and when it was the last handle of a deleted queue, removes that. 2009 2045
 * 2055 */
int mqx_handle_close(struct mqx_store *store, uint32_t slot, uint32_t how) MQX_MUST_USE;

#endif
