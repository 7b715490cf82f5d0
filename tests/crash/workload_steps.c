/*
 * workload_steps.c - see workload_steps.h.
 */
#include "workload_steps.h"

#include "../../csrc/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t wl_next_random(struct workload *w)
{
    return w->random = wl_mix(w->random);
}

uint32_t wl_below(struct workload *w, uint32_t bound)
{
    return (uint32_t)((wl_next_random(w) >> 32) * bound >> 32);
}

int wl_trouble(struct workload *w, const char *format, ...)
{
    if (!w->in_trouble) {
        va_list args;
        va_start(args, format);
        (void)vsnprintf(w->trouble, sizeof w->trouble, format, args);
        va_end(args);
        w->in_trouble = true;
    }
    return STOP;
}

/* With `told` set every call is told on stderr, to follow what led to a violation. */
void wl_tell(const struct workload *w, const char *format, ...)
{
    if (w->told) {
        va_list args;
        va_start(args, format);
        fprintf(stderr, "  step %u: ", w->done);
        (void)vfprintf(stderr, format, args);
        fputc('\n', stderr);
        va_end(args);
    }
}

bool wl_over(const struct workload *w)
{
    return w->in_trouble || w->stopped || w->blind;
}

/* Reasons that a failing file may lead to. */
bool wl_is_clean(int reason)
{
    static const int clean[] = {
        MQRC_CONNECTION_BROKEN, MQRC_Q_MGR_NOT_AVAILABLE, MQRC_STORAGE_NOT_AVAILABLE,
        MQRC_OBJECT_DAMAGED, MQRC_STORAGE_MEDIUM_FULL, MQRC_NOT_AUTHORIZED, MQRC_RESOURCE_PROBLEM,
        MQRC_ENVIRONMENT_ERROR,
    };
    for (size_t i = 0; i < MQX_ARRAY_COUNT(clean); i++) {
        if (clean[i] == reason) {
            return true;
        }
    }
    return false;
}

/* True when the call took effect. What may not happen at all is trouble. */
bool wl_worked(struct workload *w, const char *what, int reason)
{
    wl_tell(w, "%s: %d", what, reason);
    if (w->stopped && reason != MQRC_CONNECTION_BROKEN) {
        (void)wl_trouble(w, "%s: %d after a call had said that the queue manager has stopped", what,
                      reason);
    }
    if (reason == 0 || reason == MQRC_PRIORITY_EXCEEDS_MAXIMUM) {
        return true;
    }
    w->failed = reason;
    w->failures += 1;
    if (!w->tolerant || !(wl_is_clean(reason) || reason == w->also_clean)) {
        (void)wl_trouble(w, "%s: %d %s: %s", what, reason, mqe_reason_name(reason),
                         mqe_error_text());
    }
    if (reason == MQRC_CONNECTION_BROKEN) {
        w->stopped = true;
    }
    return false;
}

/* ---- history and steps ---- */

struct wl_model *wl_append_picture(struct workload *w)
{
    struct wl_history *history = &w->history;
    if (history->count == history->capacity) {
        history->capacity = history->capacity == 0 ? 32 : 2 * history->capacity;
        history->step = realloc(history->step, history->capacity * sizeof history->step[0]);
        mqx_check(history->step != NULL);
    }
    return &history->step[history->count++];
}

/* The model is what the step leads to. */
void wl_begin_step(struct workload *w, bool image)
{
    w->history.count = w->done + 1; /* a step that failed cleanly is forgotten */
    wl_picture(&w->model, image, wl_append_picture(w));
    w->pending = true;
    memory_io_ack(w->files, 2 * (uint64_t)(w->done + 1));
}

void wl_end_step(struct workload *w)
{
    w->done += 1;
    w->pending = false;
    memory_io_ack(w->files, 2 * (uint64_t)w->done + 1);
}

/* The step's call has returned. `before` is the model without it. */
int wl_settle_step(struct workload *w, const char *what, int reason,
                       const struct wl_model *before)
{
    if (wl_worked(w, what, reason)) {
        wl_end_step(w);
        return GO_ON;
    }
    w->model = *before;
    w->pending = reason == MQRC_CONNECTION_BROKEN;
    return wl_over(w) ? STOP : GO_ON;
}

/* A call that writes nothing, so it is no step. */
int wl_settle_call(struct workload *w, const char *what, int reason,
                       const struct wl_model *before)
{
    if (!wl_worked(w, what, reason)) {
        w->model = *before;
    }
    return wl_over(w) ? STOP : GO_ON;
}

/* The newest picture allows a higher BackoutCount: the record of it may reach the disk before the
 * next step. */
void wl_allow_backout(struct workload *w, uint32_t q, uint64_t id, uint32_t count)
{
    for (uint32_t s = w->done; s < w->history.count; s++) {
        struct wl_queue *queue = &w->history.step[s].queue[q];
        for (uint32_t i = 0; i < queue->count; i++) {
            if (queue->message[i].id == id && queue->message[i].backouts < count) {
                queue->message[i].backouts = count;
            }
        }
    }
}
