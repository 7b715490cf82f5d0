/*
 * due_index.h - the delayed messages of a queue: which is due first, and which has a MsgId.
 *
 * Purpose. A delayed message stands in the priority index, present and not available (rule 45). The
 * due index finds it: by its due time, so that it is made available then, and by its MsgId, so that
 * it can be cancelled. No memory is taken, so nothing here can fail, and a queue without delayed
 * messages has nothing of it.
 *
 * Terms
 *   time of the run  microseconds: the wall clock when the region was made, and what the boot clock
 *                    has counted since. No step of the wall clock changes it. A due time is turned
 *                    into it once, at the put, the backout or the restart (message.due.key_us).
 *   tree             a digital search tree over the messages themselves (message.due.child): a node
 *                    at depth d has its key's first d bits in common with all below it, which lie
 *                    left or right by their next bit. Keys: due time, then message number; and the
 *                    tag of the MsgId, then message number.
 *   finger           a node on the path to the last insertion into the tree by time, far enough up
 *                    for the times of the same 16 us to lie below it. Their places are
 *                    looked for from there: usual where a queue's delays are alike.
 *
 * Why this tree. Insertion stores one link, removal at most four (a leaf below takes the place), at
 * any number of messages: both fit into the caller's micro-transaction. There is no rotation. A
 * walk visits at most one node a bit, in practice the bits that the due times have in common (those
 * near the root, which stay in the cache) and log2(n) more. The first message by time lies on the
 * leftmost path.
 *
 * The tree by MsgId is for cancels alone, and a walk through it waits for memory at each step: tags
 * are random. So a queue has none until its first cancel, which enters the messages that are there.
 *
 * Invariants (mqx_due_index_check verifies them)
 *   1. The messages in state DELAYED are in the tree by time, and no others; queue.delayed counts
 *      them. Those with MQX_MSGF_DUE_ID are in the other one, and no others.
 *   2. A node's key has the bits that its path says.
 *   3. queue.next_due_us is the least time; it means nothing while queue.delayed is 0.
 *   4. queue.due_finger names a node and its depth, or nothing.
 *   5. While queue.due_ids is MQX_DUE_IDS_SOME each message that becomes delayed gets
 *      MQX_MSGF_DUE_ID; with MQX_DUE_IDS_ALL all have it, with MQX_DUE_IDS_NONE none.
 *
 * Locks. The stripe lock of the queue; stores are part of the caller's micro-transaction:
 *   insert <= 6 stores   remove <= 12
 * mqx_due_is_due() reads without a lock: a hint.
 *
 * Damage is treated as in priority_index.h; no walk is longer than a key has bits.
 */
#ifndef PENSTOCK_DUE_INDEX_H
#define PENSTOCK_DUE_INDEX_H

#include "queue/priority_index.h"
#include "region/queue_clock.h"

enum mqx_due_ids {
    MQX_DUE_IDS_NONE = 0,
    MQX_DUE_IDS_SOME = 1,
    MQX_DUE_IDS_ALL = 2,
};

/* The time of the run. */
static inline uint64_t mqx_due_now(const struct mqx_region *region)
{
    MQX_ASSERT(region->header != NULL);
    return mqx_clock_boot_us() + region->header->run_offset_us + mqx_queue_advanced_us(region);
}

/* A due time by the wall clock, as time of the run; never 0. */
uint64_t mqx_due_key(const struct mqx_region *region, uint64_t due_us);

/* Has the queue a delayed message that is due? */
static inline bool mqx_due_is_due(const struct mqx_region *region, const struct mqx_object *queue)
{
    MQX_ASSERT(queue != NULL);
    return MQX_UNLIKELY(mqx_load_relaxed(&queue->delayed) != 0) &&
           mqx_load_relaxed(&queue->next_due_us) <= mqx_due_now(region);
}

/* The message, whose `due` has its times, enters the index / leaves it. The caller changes its
 * state. A removal is MQX_OK, or what mqx_region_damage() said. */
void mqx_due_index_insert(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot);
int mqx_due_index_remove(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot);

/* The message that is due first, 0 when there is none. */
uint32_t mqx_due_index_first(const struct mqx_region *region, const struct mqx_object *queue);

/* Makes the tree by MsgId of a queue that has none, or goes on with that: MQX_LOCKED_STEPS_MAX
 * messages after the cursor (zeroed first), each in a micro-transaction of its own (none may be
 * open). True: it is complete. */
bool mqx_due_index_make_ids(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                            struct mqx_cursor *cursor);

/* A delayed message with that tag of its MsgId (0: none is looked for), 0 when there is none. With
 * MQX_DUE_IDS_ALL. */
uint32_t mqx_due_index_find(const struct mqx_region *region, const struct mqx_object *queue,
                            uint64_t tag);

/* Walks everything and verifies the invariants; 0, or MQRC_OBJECT_DAMAGED with a text. */
int mqx_due_index_check(const struct mqx_region *region,
                        const struct mqx_object *queue) MQX_MUST_USE;

#endif
