/*
 * resolved_path.h - is what a name was resolved through still what it was?
 *
 * A name leads to a queue through definitions: aliases, local definitions of remote queues,
 * queue-manager aliases. Whoever resolved it keeps them as steps (struct mqe_destination); each put
 * and get looks at them again. No lock is needed: a call that runs while a definition is altered
 * may come before or after the change.
 */
#ifndef PENSTOCK_PATH_H
#define PENSTOCK_PATH_H

#include "base/error.h"
#include "penstock/engine.h"
#include "region/region.h"

/* Looks at every step: 0; 2041; 2052 when it is the queue itself that is gone; 2051 (output) or
 * 2016. */
int mqx_resolved_path_check(const struct mqx_region *region, const struct mqe_destination *path,
                            bool output) MQX_MUST_USE;

/* For a caller that has the queue at hand and looks at its generation and inhibition for itself:
 * true when the path has no other step and the queue's stamp is still the same. */
static inline bool mqx_resolved_path_is_direct(const struct mqe_destination *path,
                                               const struct mqx_object *queue)
{
    return path->step_count == 0 ||
           (path->step_count == 1 && path->step[0].slot == path->queue &&
            mqx_load_relaxed(&queue->resolution_version) == path->step[0].resolution);
}

#endif
