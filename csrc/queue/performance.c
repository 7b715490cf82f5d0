/*
 * performance.c - see performance.h.
 */
#include "queue/performance.h"

#include "base/assert.h"
#include "base/clock.h"

enum {
    PERCENT = 100,
    MS_US = 1000,
    SECOND_US = 1000000,
    SERVICE_EVENTS = MQX_EVENT_SERVICE_HIGH | MQX_EVENT_SERVICE_OK,
    EVENT_END = MQX_EVENT_SERVICE_OK << 1,
};

static uint32_t depth_of(const struct mqx_object *queue)
{
    MQX_ASSERT(queue != NULL);
    return queue->present > queue->got ? queue->present - queue->got : 0;
}

static uint32_t opposite_of(uint32_t event)
{
    switch (event) {
    case MQX_EVENT_FULL:
        return MQX_EVENT_LOW;
    case MQX_EVENT_HIGH:
        return MQX_EVENT_LOW | MQX_EVENT_FULL;
    case MQX_EVENT_LOW:
        return MQX_EVENT_HIGH | MQX_EVENT_FULL;
    case MQX_EVENT_SERVICE_HIGH:
        return MQX_EVENT_SERVICE_OK;
    default:
        MQX_ASSERT(event == MQX_EVENT_SERVICE_OK);
        return MQX_EVENT_SERVICE_HIGH;
    }
}

/* Tells who makes event messages. */
static MQX_COLD void tell(struct mqx_region *region, uint32_t slot)
{
    MQX_ASSERT(slot != 0);
    mqx_store_relaxed(&region->header->performance[slot % MQX_PERFORMANCE_MAX], slot);
    mqx_store_relaxed(&region->events_fired, 1u);
}

/* The event occurs, if nobody was quicker. */
static MQX_COLD void fire(struct mqx_region *region, struct mqx_object *queue, uint32_t slot,
                          uint32_t event)
{
    struct mqx_performance *performance = &queue->performance;
    MQX_ASSERT((event & (event - 1)) == 0);
    uint32_t seen;
    do {
        seen = mqx_load_relaxed(&performance->enabled);
        if ((seen & event) == 0) {
            return;
        }
    } while (!mqx_cas32(&performance->enabled, seen, (seen & ~event) | opposite_of(event)));
    (void)mqx_fetch_or(&performance->pending, event);
    tell(region, slot);
}

static bool reaches(const struct mqx_object *queue, uint32_t depth, uint32_t percent)
{
    MQX_ASSERT(percent <= UINT8_MAX);
    return (uint64_t)depth * PERCENT >= (uint64_t)mqx_load_relaxed(&queue->max_depth) * percent;
}

static bool is_at_most(const struct mqx_object *queue, uint32_t depth, uint32_t percent)
{
    MQX_ASSERT(percent <= UINT8_MAX);
    return (uint64_t)depth * PERCENT <= (uint64_t)mqx_load_relaxed(&queue->max_depth) * percent;
}

/* The service timer at a put or get, of which the depth is `before` and `after`. */
static void time_service(struct mqx_region *region, struct mqx_object *queue, uint32_t slot,
                         uint32_t before, uint32_t after)
{
    struct mqx_performance *performance = &queue->performance;
    MQX_ASSERT(before != after);
    const bool gets = after < before;
    const uint64_t now = mqx_clock_monotonic_us();
    const uint64_t since = mqx_load_relaxed(&performance->service_us);
    if (before != 0 && since <= now) { /* it runs */
        const uint64_t most = (uint64_t)mqx_load_relaxed(&performance->interval_ms) * MS_US;
        if (now - since > most) {
            fire(region, queue, slot, MQX_EVENT_SERVICE_HIGH);
        } else if (gets) {
            fire(region, queue, slot, MQX_EVENT_SERVICE_OK);
        }
    }
    if (gets || before == 0) {
        mqx_store_relaxed(&performance->service_us, after == 0 ? MQX_SERVICE_OFF : now);
    }
}

/* What every put and get does. */
static void look(struct mqx_region *region, struct mqx_object *queue, uint32_t slot,
                 uint32_t before, uint32_t after)
{
    const struct mqx_performance *performance = &queue->performance;
    MQX_ASSERT(slot != 0);
    if (mqx_load_relaxed(&region->header->performance_events) == 0) {
        return;
    }
    const uint32_t enabled = mqx_load_relaxed(&performance->enabled);
    if (after > before && (enabled & MQX_EVENT_HIGH) != 0 &&
        reaches(queue, after, performance->high_percent)) {
        fire(region, queue, slot, MQX_EVENT_HIGH);
    }
    if (after < before && (enabled & MQX_EVENT_LOW) != 0 &&
        is_at_most(queue, after, performance->low_percent)) {
        fire(region, queue, slot, MQX_EVENT_LOW);
    }
    if ((enabled & SERVICE_EVENTS) != 0) {
        time_service(region, queue, slot, before, after);
    }
    if (mqx_load_relaxed(&performance->pending) != 0) {
        tell(region, slot); /* also of a process that was killed before it made the message */
    }
}

void mqx_performance_put(struct mqx_region *region, struct mqx_object *queue, uint32_t slot)
{
    const uint32_t depth = depth_of(queue);
    MQX_ASSERT(queue != NULL);
    look(region, queue, slot, depth > 0 ? depth - 1 : 0, depth > 0 ? depth : 1);
}

void mqx_performance_get(struct mqx_region *region, struct mqx_object *queue, uint32_t slot)
{
    const uint32_t depth = depth_of(queue);
    MQX_ASSERT(queue != NULL);
    look(region, queue, slot, depth + 1, depth);
}

void mqx_performance_full(struct mqx_region *region, uint32_t slot)
{
    struct mqx_object *queue = mqx_object(region, slot);
    MQX_ASSERT(region->header != NULL);
    if (queue != NULL && mqx_load_relaxed(&region->header->performance_events) != 0) {
        fire(region, queue, slot, MQX_EVENT_FULL);
    }
}

void mqx_performance_reset(struct mqx_object *queue, struct mqx_performance_report *out)
{
    struct mqx_performance *performance = &queue->performance;
    const uint64_t now = mqx_clock_monotonic_us();
    const uint32_t depth = depth_of(queue);
    const uint64_t gets = queue->get_count + queue->got;
    MQX_ASSERT(out != NULL);
    *out = (struct mqx_performance_report){
        .seconds = now > performance->reset_us
                       ? (uint32_t)((now - performance->reset_us) / SECOND_US)
                       : 0,
        .high_depth = depth > queue->high_depth ? depth : queue->high_depth,
        .puts = queue->put_count - performance->puts_before,
        .gets = gets > performance->gets_before ? gets - performance->gets_before : 0,
    };
    performance->reset_us = now;
    performance->puts_before = queue->put_count;
    performance->gets_before = gets;
    queue->high_depth = depth;
}

bool mqx_performance_take(struct mqx_object *queue, struct mqx_performance_report *out)
{
    MQX_ASSERT(out != NULL);
    for (uint32_t event = 1; event < EVENT_END; event <<= 1) {
        if ((mqx_fetch_and(&queue->performance.pending, ~event) & event) != 0) {
            mqx_performance_reset(queue, out);
            out->event = event;
            return true;
        }
    }
    return false;
}
