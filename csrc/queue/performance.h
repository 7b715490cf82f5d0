/*
 * performance.h - performance events of a queue (full, depth high, depth low, service interval high
 * and OK) and the statistics that they report: when one occurs, and who makes its event message.
 *
 * Terms
 *   depth          messages on the queue: those put by open units count, those got by them do not.
 *   enabled        an event of this kind can occur. MQ's attributes say so; an event disables its
 *                  own kind and enables the opposite ones. The core does both at once, and the host
 *                  program alters the definition when it makes the message.
 *   owed           (pending) the event has occurred, and its message has not been made.
 *   service timer  runs while there are messages: it begins with a put to an empty queue and anew
 *                  with each get that leaves some, and a get that leaves none ends it.
 *   statistics     most messages, puts and gets since they were last reset: by the restart, by an
 *                  event, on request.
 *
 * Who makes the message. The call that has caused the event, when it has ended: region.events_fired
 * tells the binding of this process, header.performance which queue it is. When its process is
 * killed before, whoever looks there next. An event whose taker is killed before it has made the
 * message is lost. A hint that another queue's overwrites is given again by the next put or get on
 * the queue.
 *
 * Invariants
 *   1. Nothing happens while PERFMEV is disabled, but that statistics are kept.
 *   2. An event that has occurred is owed until somebody takes it, and taken once.
 *   3. Nothing here changes what a put or get does.
 *
 * Locks: the stripe lock of the queue, but for mqx_performance_full(). `enabled` and `pending` are
 * atomic: an ALTER writes the former under the catalog lock.
 *
 * Sources: "Performance events", "Rules for queue service interval events", "Queue depth events".
 */
#ifndef PENSTOCK_PERFORMANCE_H
#define PENSTOCK_PERFORMANCE_H

#include "region/region.h"

struct mqx_performance_report {
    uint32_t event;       /* enum mqx_performance_event, of which engine.h has the same; 0:
                           * statistics only */
    uint32_t seconds;     /* since the statistics were reset */
    uint32_t high_depth;
    uint64_t puts, gets;  /* since then */
};

/* A message has been linked, or claimed or removed by a get: of a queue with MQX_SPECIAL_EVENTS. */
void mqx_performance_put(struct mqx_region *region, struct mqx_object *queue, uint32_t slot);
void mqx_performance_get(struct mqx_region *region, struct mqx_object *queue, uint32_t slot);

/* A put has been refused because the queue is full. No lock is needed. */
void mqx_performance_full(struct mqx_region *region, uint32_t slot) MQX_COLD;

/* The statistics, which begin anew. */
void mqx_performance_reset(struct mqx_object *queue, struct mqx_performance_report *out);

/* One event that is owed: it becomes the caller's, with the statistics, which begin anew. False
 * when there is none. */
bool mqx_performance_take(struct mqx_object *queue, struct mqx_performance_report *out);

#endif
