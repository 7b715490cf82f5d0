/*
 * path.h - is what a name was resolved through still what it was?
 *
 * A name leads to a queue through definitions: aliases, local definitions of remote queues,
 * queue-manager aliases. Whoever resolved it keeps them as steps (struct mqe_destination); each put
 * and get looks at them again. No lock is needed: a call that runs while a definition is altered
 * may come before or after the change.
 */
#ifndef PENSTOCK_PATH_H
#define PENSTOCK_PATH_H

#include "error.h"
#include "mqe.h"
#include "region.h"

/* Says what is wrong with that step: 2041; 2052 when it is the queue itself that is gone; 2051
 * (output) or 2016. */
int mqx_path_refuse(const struct mqx_region *region, const struct mqe_destination *path,
                    uint32_t step, bool output) MQX_COLD MQX_MUST_USE;

/* 0, or what mqx_path_refuse() says of the first step that does not hold. */
static inline MQX_MUST_USE int mqx_path_check(const struct mqx_region *region,
                                              const struct mqe_destination *path, bool output)
{
    for (uint32_t i = 0; i < path->step_count; i++) {
        const struct mqe_step *step = &path->step[i];
        const struct mqx_object *object = mqx_object(region, step->slot);
        if (MQX_UNLIKELY(object == NULL ||
                         mqx_load_relaxed(&object->generation) != step->generation ||
                         mqx_load_relaxed(&object->resolution) != step->resolution ||
                         mqx_load_relaxed(output ? &object->put_inhibited
                                                 : &object->get_inhibited) != 0)) {
            return mqx_path_refuse(region, path, i, output);
        }
    }
    return MQX_OK;
}

#endif
