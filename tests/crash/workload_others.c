/*
 * workload_others.c - the part of a workload that is about objects other than queues: a structure
 * and its failures, a process. See workload.h.
 */
#include "workload_steps.h"

#include <string.h>

static bool is_named(const struct workload *w)
{
    bool named = false;
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        named |= w->model.queue[q].defined && w->model.queue[q].attributes.structure != 0;
    }
    return named;
}

static int define_other(struct workload *w, uint32_t o)
{
    const struct wl_model before = w->model;
    struct wl_other *other = &w->model.other[o];
    struct ps_object_name name;
    unsigned char attrs[256];
    uint32_t slot = 0, generation = 0;
    const int32_t mark = (int32_t)wl_below(w, 1000000);
    const uint32_t length = wl_encode_other(o, mark, attrs);
    wl_other_name(o, &name);
    *other = (struct wl_other){.defined = true, .mark = mark};
    wl_begin_step(w, false);
    const int reason = mqe_define(w->manager, &name, attrs, length, &slot, &generation);
    other->slot = slot;
    other->generation = generation;
    return wl_settle_step(w, "define another object", reason, &before);
}

static int alter_other(struct workload *w, uint32_t o)
{
    const struct wl_model before = w->model;
    struct wl_other *other = &w->model.other[o];
    struct ps_object_name name;
    unsigned char attrs[256];
    other->mark = (int32_t)wl_below(w, 1000000);
    const uint32_t length = wl_encode_other(o, other->mark, attrs);
    wl_other_name(o, &name);
    wl_begin_step(w, false);
    return wl_settle_step(w, "alter another object",
                          mqe_alter(w->manager, other->slot, other->generation, &name, attrs,
                                    length, 0, wl_below(w, 2)), &before);
}

static int delete_other(struct workload *w, uint32_t o)
{
    const struct wl_model before = w->model;
    struct wl_other *other = &w->model.other[o];
    if (o == WL_STRUCTURE && is_named(w)) {
        return GO_ON;
    }
    other->defined = false;
    wl_begin_step(w, false);
    return wl_settle_step(w, "delete another object",
                          mqe_delete(w->manager, other->slot, other->generation, 0), &before);
}

/* How many queues of the structure hold what its failure takes; `busy`: units hold messages. */
static uint32_t hit_by_failure(const struct workload *w, bool *busy)
{
    uint32_t hit = 0;
    *busy = false;
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        const struct wl_queue *queue = &w->model.queue[q];
        bool any = false;
        for (uint32_t i = 0; i < queue->count && queue->attributes.structure != 0; i++) {
            any |= queue->message[i].persistent == 0;
            *busy |= queue->message[i].state != WL_AVAILABLE;
        }
        hit += any;
    }
    return hit;
}

/* A failure takes queue after queue, each in one unit: it is a step when one queue is hit. */
static int fail_structure(struct workload *w)
{
    const struct wl_model before = w->model;
    const struct wl_other *structure = &w->model.other[WL_STRUCTURE];
    uint64_t lost = 0, expected = 0;
    bool busy = false;
    if (hit_by_failure(w, &busy) != 1 || busy) {
        return GO_ON;
    }
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        struct wl_queue *queue = &w->model.queue[q];
        for (uint32_t i = queue->count; i-- > 0 && queue->attributes.structure != 0;) {
            if (queue->message[i].persistent == 0) {
                wl_remove(queue, i);
                expected += 1;
            }
        }
    }
    wl_begin_step(w, false);
    const int reason =
        mqe_fail_structure(w->manager, structure->slot, structure->generation, &lost);
    if (reason == 0 && lost != expected) {
        return wl_trouble(w, "a failure lost %llu messages, not %llu", (unsigned long long)lost,
                          (unsigned long long)expected);
    }
    return wl_settle_step(w, "failure of the structure", reason, &before);
}

int wl_change_other(struct workload *w)
{
    const uint32_t o = wl_below(w, 4) == 0 ? WL_OTHERS - 1 : WL_STRUCTURE;
    const uint32_t way = wl_below(w, 10);
    if (!w->model.other[o].defined) {
        return define_other(w, o);
    }
    if (way < 7 && o == WL_STRUCTURE) {
        return fail_structure(w);
    }
    return way < 9 ? alter_other(w, o) : delete_other(w, o);
}
