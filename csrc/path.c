/*
 * path.c - see path.h.
 */
#include "path.h"

/* Says what is wrong with that step. */
static MQX_COLD int refuse(const struct mqx_region *region, const struct mqe_destination *path,
                           uint32_t step, bool output)
{
    const struct mqe_step *at = &path->step[step];
    const struct mqx_object *object = mqx_object(region, at->slot);
    mqx_check(step < MQE_STEPS_MAX);
    if (object == NULL || mqx_load_relaxed(&object->generation) != at->generation) {
        return at->slot == path->queue && at->generation == path->queue_generation
                   ? mqx_fail(MQRC_Q_DELETED, "the queue (slot %u) has been deleted", at->slot)
                   : mqx_fail(MQRC_OBJECT_CHANGED, "a definition that the name was resolved "
                              "through (slot %u) has been deleted", at->slot);
    }
    if (mqx_load_relaxed(&object->resolution) != at->resolution) {
        return mqx_fail(MQRC_OBJECT_CHANGED,
                        "%.48s has been altered since the name was resolved through it",
                        object->name);
    }
    return output ? mqx_fail(MQRC_PUT_INHIBITED, "%.48s has PUT(DISABLED)", object->name)
                  : mqx_fail(MQRC_GET_INHIBITED, "%.48s has GET(DISABLED)", object->name);
}

int mqx_path_walk(const struct mqx_region *region, const struct mqe_destination *path, bool output)
{
    for (uint32_t i = 0; i < path->step_count; i++) {
        const struct mqe_step *step = &path->step[i];
        const struct mqx_object *object = mqx_object(region, step->slot);
        if (MQX_UNLIKELY(object == NULL ||
                         mqx_load_relaxed(&object->generation) != step->generation ||
                         mqx_load_relaxed(&object->resolution) != step->resolution ||
                         mqx_load_relaxed(output ? &object->put_inhibited
                                                 : &object->get_inhibited) != 0)) {
            return refuse(region, path, i, output);
        }
    }
    return MQX_OK;
}
