/*
 * workload_steps.c - see workload_steps.h.
 */
#include "workload_steps.h"
#include "fixtures/require.h"

#include "base/error.h"

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

/* With `traced` set every call is printed on stderr, to follow what led to a violation. */
void wl_tell(const struct workload *w, const char *format, ...)
{
    if (w->traced) {
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
        REQUIRE(history->step != NULL);
    }
    return &history->step[history->count++];
}

/* The model is what the step leads to. */
void wl_begin_step(struct workload *w, bool image)
{
    const uint32_t next = wl_newest(w) + 1;
    w->history.count = next; /* a step that failed cleanly is forgotten */
    wl_picture(&w->model, image, wl_append_picture(w));
    w->pending = true;
    memory_io_ack(w->files, 2 * (uint64_t)next);
}

static void acknowledge(struct workload *w, uint32_t step)
{
    w->before = w->done;
    w->done = step;
    memory_io_ack(w->files, 2 * (uint64_t)step + 1);
}

/* What was unsure went before it. */
void wl_end_step(struct workload *w)
{
    acknowledge(w, wl_newest(w) + 1);
    w->unsure = 0;
    w->pending = false;
}

uint32_t wl_newest(const struct workload *w)
{
    return w->done + w->unsure;
}

void wl_is_durable(struct workload *w, uint32_t step)
{
    REQUIRE(step <= wl_newest(w));
    if (step > w->done) {
        w->unsure -= step - w->done;
        acknowledge(w, step);
    }
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

int wl_settle_unsure(struct workload *w, const char *what, int reason,
                     const struct wl_model *before)
{
    if (wl_worked(w, what, reason)) {
        w->unsure += 1;
        w->pending = false;
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

/* The newest pictures, up to that of step `end`, allow a higher BackoutCount: the record of it may
 * reach the disk before the next step. */
void wl_allow_backout(struct workload *w, uint32_t q, uint64_t id, uint32_t count, uint32_t end)
{
    for (uint32_t s = w->done; s < end && s < w->history.count; s++) {
        struct wl_queue *queue = &w->history.step[s].queue[q];
        for (uint32_t i = 0; i < queue->count; i++) {
            if (queue->message[i].id == id && queue->message[i].backouts < count) {
                queue->message[i].backouts = count;
            }
        }
    }
}

/* ---- messages to be put ---- */

static uint32_t random_length(struct workload *w)
{
    const uint32_t way = wl_below(w, 20);
    if (w->profile == WL_LARGE) {
        return way < 4 ? wl_below(w, 3000) : 50000 + wl_below(w, 100000);
    }
    if (way < 18) {
        return wl_below(w, way < 14 ? 200 : 2500);
    }
    return way < 19 ? 3000 + wl_below(w, 6000) : 12000 + wl_below(w, 24000);
}

struct wl_order wl_random_order(struct workload *w)
{
    static const int32_t priorities[] = {AS_Q_DEF, AS_Q_DEF, 0, 1, 2, 4, 5, 9, 12, 2147483647};
    return (struct wl_order){
        .priority = priorities[wl_below(w, MQX_ARRAY_COUNT(priorities))],
        .persistence = (uint8_t)(wl_below(w, 4) == 0 ? 0 : 1 + wl_below(w, 2)),
        .has_ext = wl_below(w, 4) == 0,
        .delayed = wl_below(w, 8) == 0,
        .length = random_length(w),
    };
}

struct wl_message wl_message_for(struct workload *w, const struct wl_queue *queue,
                                 const struct wl_order *order)
{
    const struct wl_attributes *attributes = &queue->attributes;
    struct wl_message message = {
        .id = w->next_id++,
        .priority = order->priority == AS_Q_DEF ? attributes->def_priority : order->priority,
        .length = order->length,
        .persistent = order->persistence == 2 ? (uint8_t)attributes->def_persistence
                                              : order->persistence,
        .has_ext = order->has_ext,
        .delayed = order->delayed,
        .state = WL_AVAILABLE,
    };
    message.kept = message.persistent != 0 || attributes->structure != 0;
    message.placement = (uint8_t)(attributes->fifo != 0 ? attributes->def_priority
                                  : message.priority > 9 ? 9
                                                         : message.priority);
    return message;
}
