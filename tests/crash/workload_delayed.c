/*
 * workload_delayed.c - the part of a workload that takes delayed messages off their queues: no get
 * finds them, so they leave by a cancellation, a clear or with their queue. See workload.h.
 */
#include "workload_steps.h"

static uint32_t first_delayed(const struct wl_queue *queue)
{
    uint32_t index = 0;
    while (index < queue->count && (queue->message[index].delayed == 0 ||
                                    queue->message[index].state != WL_AVAILABLE)) {
        index += 1;
    }
    return index;
}

int wl_cancel(struct workload *w, uint32_t q)
{
    struct wl_queue *queue = &w->model.queue[q];
    const struct wl_model before = w->model;
    const uint32_t index = first_delayed(queue);
    struct ps_descriptor descriptor;
    if (index == queue->count) {
        return wl_get_single(w, q, 0);
    }
    const bool kept = queue->message[index].kept != 0;
    wl_descriptor(&queue->message[index], &descriptor);
    wl_tell(w, "cancel %llu on slot %u", (unsigned long long)queue->message[index].id, queue->slot);
    wl_remove(queue, index);
    if (kept) {
        wl_begin_step(w, false);
    }
    const int reason =
        mqe_cancel_delayed(w->manager, queue->slot, queue->generation, descriptor.msg_id);
    return kept ? wl_settle_step(w, "cancel", reason, &before)
                : wl_settle_call(w, "cancel", reason, &before);
}
