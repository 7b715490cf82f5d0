/*
 * lookup.h - finding messages by MsgId, CorrelId or GroupId at any depth.
 *
 * Purpose. Three optional indexes a queue, one a kind of id, built at the first use and kept up to date from
 * then on. Key of an index: (64-bit keyed tag of the id, placement priority). Messages with the same key
 * form a ring in arrival order through message.key[k].next / prev; the oldest is the ring's leader, and only
 * leaders are chained in a bucket (message.key[k].chain). So the first match in delivery order is found by
 * one probe per placement priority that the queue has, and a million messages with one CorrelId cost what
 * one costs; unlinking is O(1) but for the bucket's few leaders.
 *
 * Only available messages are linked: a message is linked when it becomes available and unlinked when it is
 * got, locked, or removed. A message that reappears older than its ring's leader becomes the leader; else it
 * is placed by walking from the ring's end.
 *
 * Growth is linear hashing: one bucket is split per insertion while there are more leaders than buckets, so
 * no step is long. Bucket arrays are doubling segments (64, 64, 128, 256, ... buckets) in cells.
 * Segments longer than a block are split into blocks; the header keeps the directory.
 *
 * Building goes in steps of MQX_LOCKED_STEPS_MAX messages over the heap in order, with a cursor in the header;
 * messages that become available meanwhile are linked at once, and the builder passes over linked ones
 * (flag MQX_MSGF_KEY << k). Until the index is complete lookups must not use it.
 *
 * Locks. The queue's stripe lock; stores are part of the caller's micro-transaction.
 * Tags are hints: equal tags do not prove equal ids. The caller verifies the full id and asks for the next.
 */
#ifndef PENSTOCK_LOOKUP_H
#define PENSTOCK_LOOKUP_H

#include "heap.h"

enum { MQX_BY_MSG_ID = 0, MQX_BY_CORREL_ID = 1, MQX_BY_GROUP_ID = 2 };

/* True when index k of the queue exists and is complete. */
bool mqx_lookup_ready(const struct mqx_region *region, const struct mqx_object *queue, int k);

/* Creates index k if absent and links up to MQX_LOCKED_STEPS_MAX more messages, each in micro-transactions of
 * its own (so none may be open). *out_done says whether it is complete.
 * MQX_NEED_CELLS: supply and call again. */
int mqx_lookup_build(struct mqx_hold *hold, struct mqx_object *queue, int k,
                     bool *out_done) MQX_MUST_USE;

/* Links an available message into every index that exists / unlinks it. Linking twice or unlinking what is
 * not linked does nothing. MQX_NEED_CELLS as above (link only). */
int mqx_lookup_link(struct mqx_hold *hold, struct mqx_object *queue, uint32_t slot) MQX_MUST_USE;
void mqx_lookup_unlink(struct mqx_hold *hold, struct mqx_object *queue, uint32_t slot);

/* The first message in delivery order whose tag k equals `tag`, or the next one after `after` (a slot that an
 * earlier call of the same search returned, still linked); 0 when there is none. */
uint32_t mqx_lookup_find(const struct mqx_region *region, const struct mqx_object *queue, int k,
                         uint64_t tag, uint32_t after);

/* Frees an index's memory in steps when the queue is deleted; *out_done as above. Messages need not be
 * unlinked before. */
void mqx_lookup_drop(struct mqx_hold *hold, struct mqx_object *queue, int k, bool *out_done);

/* Verifies rings, buckets, counts; 0 or MQRC_OBJECT_DAMAGED with a text. */
int mqx_lookup_check(const struct mqx_region *region, const struct mqx_object *queue,
                     int k) MQX_MUST_USE;

#endif
