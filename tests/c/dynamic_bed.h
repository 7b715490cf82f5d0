/*
 * dynamic_bed.h - dynamic queues for tests on engine_bed.h: making them, closing with an option,
 * what is left of them.
 */
#ifndef PENSTOCK_TESTS_DYNAMIC_BED_H
#define PENSTOCK_TESTS_DYNAMIC_BED_H

#include "engine_bed.h"

enum { PERMANENT = 2, TEMPORARY = 3 }; /* of DEFTYPE */
enum { INQUIRE = 32, KEEP = MQE_CLOSE_KEEP, DELETE = MQE_CLOSE_DELETE, PURGE = MQE_CLOSE_PURGE };
enum { ALL = 2 | MQE_BROWSE | MQE_OUTPUT };

__attribute__((unused)) static int try_make(const char *name, int definition, uint32_t options,
                                            struct queue *out)
{
    const struct ps_object_name object = engine_name(name);
    const struct attributes attrs = engine_attributes((const int[]){DEFTYPE, definition, 0});
    struct mqe_found found = {0};
    int status = mqe_open_new(engine.manager, &object, attrs.bytes, attrs.length, options,
                              &out->handle, &found);
    out->slot = found.slot;
    out->generation = found.generation;
    if (status == 0) {
        CHECK(engine.handle_count < ENGINE_KEPT);
        engine.handles[engine.handle_count++] = out->handle;
    }
    return status;
}

__attribute__((unused)) static struct queue make(const char *name, int definition)
{
    struct queue q = {0};
    CHECK_INT(try_make(name, definition, ALL, &q), 0);
    return q;
}

/* Closes with that option; the bed forgets the handle when it is closed. */
__attribute__((unused)) static int shut(mqe_queue *handle, uint32_t how)
{
    const int status = mqe_close(handle, how);
    for (uint32_t i = 0; i < engine.handle_count && status == 0; i++) {
        if (engine.handles[i] == handle) {
            engine.handles[i] = engine.handles[--engine.handle_count];
            break;
        }
    }
    return status;
}

__attribute__((unused)) static int find(const char *name)
{
    const struct ps_object_name object = engine_name(name);
    struct mqe_found found;
    return mqe_find(engine.manager, 1, object.name, 0, &found);
}

__attribute__((unused)) static uint32_t state_of(struct queue q)
{
    const struct mqx_object *object = mqx_object(engine_region(), q.slot);
    return object->generation == q.generation ? object->state : (uint32_t)MQX_OBJ_FREE;
}

__attribute__((unused)) static struct mqe_manager_status totals(void)
{
    struct mqe_manager_status status;
    CHECK_INT(mqe_status(engine.manager, &status), 0);
    return status;
}

__attribute__((unused)) static bool is_sound(void)
{
    const int status = mqe_check(engine.manager);
    if (status != 0) {
        printf("\n    %s", mqe_error_text());
    }
    return status == 0;
}

#endif
