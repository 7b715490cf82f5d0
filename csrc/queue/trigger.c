/*
 * trigger.c - see trigger.h.
 */
#include "queue/trigger.h"

#include "base/assert.h"
#include "base/clock.h"

enum {
    DUE = 1,
    COUNT_SHIFT = 1,
    MOST_UNDER_WAY = 127,
    TIME_SHIFT = 8,
    TIME_MASK = 0xffffff,
    OVERDUE_S = 5,
    SECOND_US = 1000000,
};

static uint32_t seconds_now(void)
{
    const uint64_t seconds = mqx_clock_monotonic_us() / SECOND_US;
    MQX_ASSERT(seconds != 0);
    return (uint32_t)seconds & TIME_MASK;
}

static uint32_t under_way(uint32_t value)
{
    const uint32_t count = value >> COUNT_SHIFT & MOST_UNDER_WAY;
    MQX_ASSERT(count <= MOST_UNDER_WAY);
    return count;
}

static uint32_t value_of(uint32_t due, uint32_t count, uint32_t seconds)
{
    MQX_ASSERT(due <= DUE);
    MQX_ASSERT(count <= MOST_UNDER_WAY);
    return due | count << COUNT_SHIFT | (count == 0 ? 0 : seconds << TIME_SHIFT);
}

/* Another evaluation is under way. */
static void begin(struct mqx_object *queue)
{
    MQX_ASSERT(queue != NULL);
    uint32_t seen, next;
    do {
        seen = mqx_load_relaxed(&queue->trigger_due);
        const uint32_t count = under_way(seen);
        next = value_of(seen & DUE, count < MOST_UNDER_WAY ? count + 1 : count,
                        count == 0 ? seconds_now() : seen >> TIME_SHIFT);
    } while (seen != next && !mqx_cas32(&queue->trigger_due, seen, next));
}

uint32_t mqx_trigger_count(const struct mqx_object *queue)
{
    MQX_ASSERT(queue != NULL);
    const uint32_t least = mqx_load_relaxed(&queue->trigger_priority);
    uint32_t count = 0;
    if (least == 0 || mqx_load_relaxed(&queue->fifo) != 0) {
        return mqx_load_relaxed(&queue->present);
    }
    for (uint32_t i = least; i < MQX_PRIORITY_COUNT; i++) {
        count += mqx_load_relaxed(&queue->level[i].present);
    }
    return count;
}

uint32_t mqx_trigger_arrived(struct mqx_object *queue, const struct mqx_message *message)
{
    MQX_ASSERT(message->state == MQX_MSG_PUT || message->state == MQX_MSG_AVAILABLE);
    const uint32_t got = mqx_load_relaxed(&queue->got);
    const bool counts = queue->fifo != 0 || message->placement >= queue->trigger_priority;
    const uint32_t all = mqx_trigger_count(queue);
    const uint32_t others = counts && all > 0 ? all - 1 : all;
    begin(queue);
    return others > got ? others - got : 0;
}

void mqx_trigger_set_due(struct mqx_object *queue)
{
    MQX_ASSERT(queue != NULL);
    (void)mqx_fetch_or(&queue->trigger_due, (uint32_t)DUE);
}

bool mqx_trigger_is_due(struct mqx_object *queue)
{
    MQX_ASSERT(queue != NULL);
    const uint32_t seen = mqx_load_relaxed(&queue->trigger_due);
    if (seen == 0) {
        return false;
    }
    const uint32_t now = seconds_now();
    const bool overdue = under_way(seen) != 0 &&
                         ((now - (seen >> TIME_SHIFT)) & TIME_MASK) >= OVERDUE_S;
    return ((seen & DUE) != 0 || overdue) &&
           mqx_cas32(&queue->trigger_due, seen, value_of(0, 1, now));
}

void mqx_trigger_settle(struct mqx_object *queue)
{
    MQX_ASSERT(queue != NULL);
    uint32_t seen, next;
    do {
        seen = mqx_load_relaxed(&queue->trigger_due);
        const uint32_t count = under_way(seen);
        next = value_of(seen & DUE, count > 0 ? count - 1 : 0, seen >> TIME_SHIFT);
    } while (seen != next && !mqx_cas32(&queue->trigger_due, seen, next));
}
