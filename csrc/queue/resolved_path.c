/*
 * resolved_path.c - see resolved_path.h.
 */
#include "queue/resolved_path.h"

#include "base/assert.h"

/* 0 when the definition is the one that the name was resolved through, or why not. */
static int check_step(const struct mqx_region *region, const struct mqe_destination *path,
                      const struct mqe_step *at)
{
    const struct mqx_object *object = mqx_object(region, at->slot);
    MQX_ASSERT(path->step_count <= MQE_STEPS_MAX);
    if (object == NULL || mqx_load_relaxed(&object->generation) != at->generation) {
        return at->slot == path->queue && at->generation == path->queue_generation
                   ? mqx_fail(MQRC_Q_DELETED, "the queue (slot %u) has been deleted", at->slot)
                   : mqx_fail(MQRC_OBJECT_CHANGED, "a definition that the name was resolved "
                              "through (slot %u) has been deleted", at->slot);
    }
    if (at->slot == path->queue && mqx_load_acquire(&object->state) == MQX_OBJ_DELETING) {
        return mqx_fail(MQRC_Q_DELETED, "%.48s has been deleted", object->name);
    }
    if (mqx_load_relaxed(&object->resolution_version) != at->resolution_version) {
        return mqx_fail(MQRC_OBJECT_CHANGED,
                        "%.48s has been altered since the name was resolved through it",
                        object->name);
    }
    return MQX_OK;
}

/* The reason to refuse a call whose `step` has changed or is inhibited: 2052 and 2041 of this and
 * later steps have precedence over its 2051 or 2016. */
static MQX_COLD int refuse(const struct mqx_region *region, const struct mqe_destination *path,
                           uint32_t step, bool output)
{
    MQX_ASSERT(step < path->step_count);
    MQX_ASSERT(path->step_count <= MQE_STEPS_MAX);
    for (uint32_t i = step; i < path->step_count; i++) {
        const int status = check_step(region, path, &path->step[i]);
        if (status != MQX_OK) {
            return status;
        }
    }
    const struct mqx_object *object = mqx_object(region, path->step[step].slot);
    return output ? mqx_fail(MQRC_PUT_INHIBITED, "%.48s has PUT(DISABLED)", object->name)
                  : mqx_fail(MQRC_GET_INHIBITED, "%.48s has GET(DISABLED)", object->name);
}

int mqx_resolved_path_check(const struct mqx_region *region, const struct mqe_destination *path,
                            bool output)
{
    MQX_ASSERT(path->step_count <= MQE_STEPS_MAX);
    for (uint32_t i = 0; i < path->step_count; i++) {
        const struct mqe_step *step = &path->step[i];
        const struct mqx_object *object = mqx_object(region, step->slot);
        if (MQX_UNLIKELY(
                object == NULL || mqx_load_relaxed(&object->generation) != step->generation ||
                mqx_load_relaxed(&object->resolution_version) != step->resolution_version ||
                mqx_load_relaxed(output ? &object->put_inhibited : &object->get_inhibited) != 0)) {
            return refuse(region, path, i, output);
        }
    }
    return MQX_OK;
}
