/*
 * path.c - see path.h.
 */
#include "path.h"

int mqx_path_refuse(const struct mqx_region *region, const struct mqe_destination *path,
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
