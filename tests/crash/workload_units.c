/*
 * workload_units.c - the part of a workload that ends units of work. See workload.h.
 */
#include "workload_steps.h"

/* Of a unit that is open, not of a prepared one. */
static bool is_in_unit(const struct wl_message *message, uint32_t u)
{
    return (message->state == WL_PUT || message->state == WL_GOT) && message->unit == u;
}

/* What the commit makes of the model. True: it has a record. */
static bool commit_in_model(struct workload *w, uint32_t u)
{
    bool kept = false;
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        struct wl_queue *queue = &w->model.queue[q];
        for (uint32_t i = queue->count; i-- > 0;) {
            struct wl_message *message = &queue->message[i];
            if (!is_in_unit(message, u)) {
                continue;
            }
            kept |= message->kept != 0;
            if (message->state == WL_GOT) {
                wl_remove(queue, i);
            } else {
                message->state = WL_AVAILABLE;
            }
        }
    }
    return kept;
}

int wl_commit(struct workload *w, uint32_t u)
{
    const struct wl_model before = w->model;
    if (w->unit[u] == NULL) {
        return GO_ON;
    }
    if (!commit_in_model(w, u)) {
        return wl_settle_call(w, "commit", mqe_commit(w->unit[u]), &before);
    }
    wl_begin_step(w, false);
    return wl_settle_step(w, "commit", mqe_commit(w->unit[u]), &before);
}

/* The first step is unsure while the second one is pending: a crash leaves neither, the first one
 * or both. `first`: the model with the first one alone. */
static int settle_both(struct workload *w, int reason, uint32_t count,
                       const struct wl_model *before, const struct wl_model *first)
{
    if (wl_worked(w, "commit of two", reason)) {
        wl_end_step(w);
        return GO_ON;
    }
    w->pending = reason == MQRC_CONNECTION_BROKEN;
    if (w->pending) {
        return STOP;
    }
    if (count != 0) { /* the second one could not be decided, and the first one was flushed */
        wl_is_durable(w, wl_newest(w));
        w->model = *first;
    } else {
        w->unsure -= 1;
        w->model = *before;
    }
    return wl_over(w) ? STOP : GO_ON;
}

int wl_commit_together(struct workload *w, uint32_t u)
{
    const uint32_t other = (u + 1) % WL_UNITS;
    const struct wl_model before = w->model;
    mqe_unit *const units[2] = {w->unit[u], w->unit[other]};
    uint32_t count = 0;
    if (units[0] == NULL || units[1] == NULL) {
        return wl_commit(w, units[0] != NULL ? u : other);
    }
    const bool first_kept = commit_in_model(w, u);
    const struct wl_model first = w->model;
    if (!first_kept || !commit_in_model(w, other)) { /* no two records: one after the other */
        w->model = before;
        const int result = wl_commit(w, u);
        return result == GO_ON ? wl_commit(w, other) : result;
    }
    const struct wl_model both = w->model;
    w->model = first;
    wl_begin_step(w, false);
    w->unsure += 1;
    w->model = both;
    wl_begin_step(w, false);
    const int reason = mqe_commit_many(units, 2, &count);
    return settle_both(w, reason, count, &before, &first);
}

int wl_back_out(struct workload *w, uint32_t u)
{
    const bool failed_before = w->failures > 0;
    if (w->unit[u] == NULL || !wl_worked(w, "backout", mqe_backout(w->unit[u]))) {
        return wl_over(w) ? STOP : GO_ON;
    }
    for (uint32_t q = 0; q < WL_QUEUES; q++) {
        struct wl_queue *queue = &w->model.queue[q];
        for (uint32_t i = queue->count; i-- > 0;) {
            struct wl_message *message = &queue->message[i];
            if (!is_in_unit(message, u)) {
                continue;
            }
            if (message->state == WL_PUT) {
                wl_remove(queue, i);
                continue;
            }
            message->state = WL_AVAILABLE;
            message->backouts += 1;
            if (!failed_before) { /* the record goes before the next step's */
                message->sure = message->backouts;
            }
            wl_allow_backout(w, q, message->id, message->backouts, UINT32_MAX);
        }
    }
    return GO_ON;
}
