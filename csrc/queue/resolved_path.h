/*
 * resolved_path.h - revalidates a resolved name: has any definition on its path changed since?
 *
 * Terms
 *   destination         what a name was resolved to (struct mqe_destination): a queue, and the
 *                       definitions on the path to it: aliases, local definitions of remote queues,
 *                       queue-manager aliases.
 *   step                one of these definitions: slot, generation, resolution version.
 *   resolution version  raised by each alter of an attribute by which names are resolved.
 *
 * Each put and get checks its destination. No lock is needed: a call that runs while a definition
 * is altered may come before or after the change.
 */
#ifndef PENSTOCK_RESOLVED_PATH_H
#define PENSTOCK_RESOLVED_PATH_H

#include "base/error.h"
#include "penstock/engine.h"
#include "region/region.h"

/* Checks every step. 2041 when a definition has been altered or deleted, 2052 when the queue itself
 * has been deleted, 2051 (output) or 2016 when one of them is inhibited. */
int mqx_resolved_path_check(const struct mqx_region *region, const struct mqe_destination *path,
                            bool output) MQX_MUST_USE;

/* For a caller that checks generation and inhibition of the queue itself: true when the path has no
 * other step and the queue's resolution version is still the same. */
static inline bool mqx_resolved_path_is_direct(const struct mqe_destination *path,
                                               const struct mqx_object *queue)
{
    MQX_ASSERT(path->step_count <= MQE_STEPS_MAX);
    return path->step_count == 0 ||
           (path->step_count == 1 && path->step[0].slot == path->queue &&
            mqx_load_relaxed(&queue->resolution_version) == path->step[0].resolution_version);
}

#endif
