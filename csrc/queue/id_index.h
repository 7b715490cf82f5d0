/*
 * id_index.h - finding messages by MsgId, CorrelId or GroupId at any depth.
 *
 * Purpose. Three optional indexes a queue, one for each kind of id, built at the first use and kept
 * up to date from then on.
 *
 * Terms
 *   tag       64-bit keyed hash of an id; 0: the message has no such id. Tags are hints: equal tags
 *             do not prove equal ids. The caller verifies the full id and asks for the next.
 *   key       of an index: (tag, placement priority).
 *   ring      the messages of one key, in the order of their positions, through
 *             message.key[k].next and .prev.
 *   leader    of a ring: its oldest message. Only leaders are chained in a bucket
 *             (message.key[k].chain).
 *   order     the hash of a key. Chains are sorted by it; its top 32 bits, reversed, number the
 *             buckets.
 *
 * Shape. The first match in delivery order is found by one probe for each placement priority that
 * the queue has, and a million messages with one CorrelId cost what one costs; unlinking is O(1)
 * except for the bucket's few leaders.
 *
 * Only available messages whose tag is not 0 are linked: a message is linked when it becomes
 * available and unlinked when it is got, locked, or removed. One that reappears older than its
 * ring's leader becomes the leader. Else its position in the ring is searched from three sides at
 * once: from both ends of the ring, and through the available messages before it in the priority
 * index; with n messages of c keys that takes at most about min(c, n / c) steps.
 *
 * Growth is linear hashing: one bucket is split with each new leader while there are more leaders
 * than buckets. As chains are sorted, the end of the chain leaves a bucket that is split: three
 * stores, however long it is. Buckets lie in blocks of 64, 64, 128, 256, ... 16,384, then of 16,384
 * each, whose cells are in a directory.
 *
 * Memory is taken ahead, at the put: mqx_id_index_reserve() keeps `capacity` (buckets that have
 * memory) at least as large as the number of leaders there could be if every message of the queue
 * were shown. So linking never fails, also where nothing may fail (backout, the roll-forward of a
 * commit).
 *
 * Building goes in steps of MQX_LOCKED_STEPS_MAX messages over the priority index in order, with a
 * cursor in the header; messages that become available during the build are linked at once, and
 * the builder passes over linked ones (flag MQX_MSGF_KEY << k). Until the index is complete
 * searches must not use it.
 *
 * Invariants (mqx_id_index_check verifies them)
 *   1. A message is linked in index k exactly when its flag MQX_MSGF_KEY << k is set; its key[k]
 *      means nothing otherwise.
 *   2. A ring holds the linked messages of one key, positions ascending from the leader on;
 *      key[k].chain is MQX_NOT_LEADER in all but the leader.
 *   3. A bucket's chain holds the leaders whose hash belongs to it, hashes ascending.
 *   4. In a complete index every available message with a tag is linked.
 *   5. leaders and linked are the numbers of leaders and of linked messages;
 *      MQX_ID_INDEX_BUCKETS <= bucket_count <= capacity.
 *
 * Locks. The queue's stripe lock; stores are part of the caller's micro-transaction unless said
 * otherwise. For each index:
 *   reserve <= 7 stores   link <= 9   unlink <= 4
 *
 * Damage is treated as in priority_index.h.
 */
#ifndef PENSTOCK_ID_INDEX_H
#define PENSTOCK_ID_INDEX_H

#include "base/error.h"
#include "queue/priority_index.h"

enum { MQX_BY_MSG_ID = 0, MQX_BY_CORREL_ID = 1, MQX_BY_GROUP_ID = 2 };

enum {
    MQX_ID_INDEX_BUCKETS = 64,          /* buckets of a new index */
    MQX_ID_INDEX_BLOCK_BUCKETS = 16384, /* buckets of the largest block */
    MQX_ID_INDEX_SEGMENTS = 10,         /* blocks of 64, 64, 128, ... 16,384 buckets */
    MQX_ID_INDEX_FAR = 32768,           /* first bucket in a block of the directory */
    MQX_ID_INDEX_DIRECTORY = 4096,      /* blocks it can name */
    MQX_ID_INDEX_MAX = MQX_ID_INDEX_FAR + MQX_ID_INDEX_DIRECTORY * MQX_ID_INDEX_BLOCK_BUCKETS,
};
#define MQX_NOT_LEADER UINT32_MAX

enum mqx_id_index_state {
    MQX_ID_INDEX_BUILDING = 1,
    MQX_ID_INDEX_COMPLETE = 2,
    MQX_ID_INDEX_DROPPING = 3
};

struct mqx_id_index { /* header of an index; object.index[k] names its cells */
    uint32_t state;
    uint32_t bucket_count; /* buckets in use */
    uint32_t capacity;     /* buckets that have memory */
    uint32_t directory;    /* cells of uint32_t[MQX_ID_INDEX_DIRECTORY]; 0 while not needed */
    uint32_t leaders;      /* both changed in one store */
    uint32_t linked;
    struct mqx_cursor built; /* BUILDING: every available message up to here is linked */
    uint32_t segment[MQX_ID_INDEX_SEGMENTS];
};
MQX_STATIC_ASSERT(offsetof(struct mqx_id_index, leaders) == 16, "leaders and linked make a pair");
MQX_STATIC_ASSERT(sizeof(struct mqx_id_index) == 96, "header of an index");

/* True when index k of the queue exists and is complete. */
bool mqx_id_index_ready(const struct mqx_region *region, const struct mqx_object *queue, int k);

/* Creates index k if absent and links up to MQX_LOCKED_STEPS_MAX more messages, each in
 * micro-transactions of its own (so none may be open). *out_done: it is complete.
 * MQX_NEED_CELLS: supply and call again. MQRC_Q_DELETED when the index is being dropped. */
int mqx_id_index_build(struct mqx_stripe_guard *guard, struct mqx_object *queue, int k,
                       bool *out_done) MQX_MUST_USE;

int mqx_id_index_reserve_all(struct mqx_stripe_guard *guard, struct mqx_object *queue) MQX_MUST_USE;
void mqx_id_index_link_all(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot);
void mqx_id_index_unlink_all(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                             uint32_t slot);

/* Has the queue an id index, complete or not? */
static inline bool mqx_id_index_any(const struct mqx_object *queue)
{
    MQX_ASSERT(queue != NULL);
    return (queue->index[0] | queue->index[1] | queue->index[2]) != 0;
}

/* Makes room in every index that exists for one more message of the queue: to be called before each
 * mqx_priority_index_insert() of a put, whether the message is available at once or not.
 * MQX_NEED_CELLS as above. */
static inline int mqx_id_index_reserve(struct mqx_stripe_guard *guard, struct mqx_object *queue)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    return MQX_LIKELY(!mqx_id_index_any(queue)) ? MQX_OK : mqx_id_index_reserve_all(guard, queue);
}

/* Links an available message (shown in the priority index) into every index that exists / unlinks
 * it. Linking twice or unlinking a message that is not linked does nothing. Neither can fail. */
static inline void mqx_id_index_link(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                                     uint32_t slot)
{
    MQX_ASSERT(slot != 0);
    if (MQX_UNLIKELY(mqx_id_index_any(queue))) {
        mqx_id_index_link_all(guard, queue, slot);
    }
}
static inline void mqx_id_index_unlink(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                                       uint32_t slot)
{
    MQX_ASSERT(slot != 0);
    if (MQX_UNLIKELY(mqx_id_index_any(queue))) {
        mqx_id_index_unlink_all(guard, queue, slot);
    }
}

/* The first message in delivery order whose tag k equals `tag`, or the next one after `after` (a
 * slot that an earlier call of the same search returned, still linked); 0 when there is none. */
uint32_t mqx_id_index_find(const struct mqx_region *region, const struct mqx_object *queue, int k,
                           uint64_t tag, uint32_t after);

/* Frees an index's memory when the queue is deleted, up to MQX_LOCKED_STEPS_MAX blocks in
 * micro-transactions of its own (none may be open); *out_done as above. Messages need not be
 * unlinked before, but must not be looked for again. */
void mqx_id_index_drop(struct mqx_stripe_guard *guard, struct mqx_object *queue, int k,
                       bool *out_done);

/* Verifies rings, buckets, counts; 0 or MQRC_OBJECT_DAMAGED with a text. */
int mqx_id_index_check(const struct mqx_region *region, const struct mqx_object *queue,
                       int k) MQX_MUST_USE;

#endif
