/*
 * performance.c - performance events and queue statistics as engine.h shows them
 * (queue/performance.h).
 *
 * Locks: the stripe lock of the queue, taken inside. Errors: as mqx_enter(); 2052 for a queue that
 * is gone, 2009 from the lock.
 */
#include "queue/performance.h"

#include "api/entry.h"
#include "base/error.h"

MQX_STATIC_ASSERT((int)MQE_EVENT_FULL == (int)MQX_EVENT_FULL &&
                      (int)MQE_EVENT_DEPTH_HIGH == (int)MQX_EVENT_HIGH &&
                      (int)MQE_EVENT_DEPTH_LOW == (int)MQX_EVENT_LOW &&
                      (int)MQE_EVENT_SERVICE_HIGH == (int)MQX_EVENT_SERVICE_HIGH &&
                      (int)MQE_EVENT_SERVICE_OK == (int)MQX_EVENT_SERVICE_OK,
                  "the same numbers");

const uint32_t *mqe_performance_flag(const mqe_manager *manager)
{
    MQX_ASSERT(manager != NULL);
    return &manager->store.region.events_fired;
}

bool mqe_performance_due(const mqe_manager *manager)
{
    MQX_ASSERT(manager != NULL);
    const struct mqx_header *header = manager->store.region.header;
    uint32_t any = 0;
    for (uint32_t i = 0; header != NULL && i < MQX_PERFORMANCE_MAX; i++) {
        any |= mqx_load_relaxed(&header->performance[i]);
    }
    return any != 0;
}

/* The lock of a local queue. */
static int lock_queue(mqe_manager *manager, uint32_t slot, struct mqx_stripe_guard *guard,
                      struct mqx_object **out)
{
    MQX_ASSERT(manager != NULL);
    *out = mqx_object(&manager->store.region, slot);
    if (*out == NULL || mqx_load_relaxed(&(*out)->type) != MQX_LOCAL_QUEUE) {
        return mqx_fail(MQRC_Q_DELETED, "slot %u has no local queue", slot);
    }
    return mqx_stripe_guard_take(&manager->store.region, slot, guard);
}

static void copy_report(const struct mqx_performance_report *report,
                        struct mqe_queue_statistics *out)
{
    MQX_ASSERT(out != NULL);
    *out = (struct mqe_queue_statistics){
        .event = report->event,
        .seconds = report->seconds,
        .high_depth = report->high_depth,
        .put_count = report->puts,
        .get_count = report->gets,
    };
}

bool mqe_performance_take(mqe_manager *manager, uint32_t *slot, uint32_t *generation,
                          struct mqe_queue_statistics *out)
{
    MQX_ASSERT(slot != NULL && generation != NULL);
    struct mqx_region *region = &manager->store.region;
    struct mqx_performance_report report = {.event = 0};
    if (region->header == NULL) {
        return false;
    }
    mqx_store_relaxed(&region->events_fired, 0u);
    for (uint32_t i = 0; i < MQX_PERFORMANCE_MAX && report.event == 0; i++) {
        struct mqx_stripe_guard guard;
        struct mqx_object *queue = NULL;
        const uint32_t seen = mqx_load_relaxed(&region->header->performance[i]);
        if (seen == 0 || !mqx_cas32(&region->header->performance[i], seen, 0) ||
            lock_queue(manager, seen, &guard, &queue) != MQX_OK) {
            continue;
        }
        if (mqx_performance_take(queue, &report)) {
            *slot = seen;
            *generation = mqx_load_relaxed(&queue->generation);
            /* there may be another one, which the next call takes */
            (void)mqx_cas32(&region->header->performance[i], 0, seen);
        }
        mqx_stripe_guard_drop(&guard);
    }
    copy_report(&report, out);
    return report.event != 0;
}

int mqe_queue_statistics_reset(mqe_manager *manager, uint32_t slot, uint32_t generation,
                               struct mqe_queue_statistics *out)
{
    MQX_ASSERT(out != NULL);
    struct mqx_performance_report report = {.event = 0};
    struct mqx_stripe_guard guard;
    struct mqx_object *queue = NULL;
    int status = mqx_enter(manager, false);
    if (status == MQX_OK) {
        status = lock_queue(manager, slot, &guard, &queue);
    }
    if (status != MQX_OK) {
        return status;
    }
    if (mqx_load_relaxed(&queue->generation) == generation) {
        mqx_performance_reset(queue, &report);
    } else {
        status = mqx_fail(MQRC_Q_DELETED, "the queue (slot %u) has been deleted", slot);
    }
    mqx_stripe_guard_drop(&guard);
    copy_report(&report, out);
    return status;
}
