/*
 * priority_index.h - the messages of a queue in delivery order: which is next, at any depth,
 * whatever is locked before it.
 *
 * Purpose. Key of a message: (placement priority descending, message number ascending). Needed:
 * insert at the end of a priority, find the first available one, make any message available or not
 * at its position, remove any, walk in order from any point. Other systems use a heap for this;
 * here it is ten radix trees with bitmaps, and is called the priority index everywhere.
 *
 * Terms
 *   level     the messages of one placement priority: a sequence of positions 0, 1, 2, ...
 *   position  of a message in its level. It stays from insertion to removal, so a message that was
 *             got and is backed out reappears at its old position by setting one bit.
 *   node      64 children: message slots in a leaf (height 1), nodes above. Two bitmaps: `present`
 *             (the child is there; child[] of a clear bit means nothing), `available` (leaf: the
 *             message is available; above: something below is).
 *   show      to set or clear the `available` bit of a message.
 *   cursor    where a walk stands: it continues behind that position, whether the message is still
 *             there or not.
 *
 * Shape. Over the positions of a level lies a radix tree of fan-out 64. Finding the first available
 * message is one count-trailing-zeros a height: 1 node up to 64 messages, 4 up to 16 million. The
 * bitmap over the levels is object.available_mask.
 *
 * Growth. When the next position does not fit, a new root is put on top. A node without present
 * children is freed, except the last leaf of a level that is empty: the next insertion there
 * begins again at position 0, height 1 (and raises reset_count, so that a cursor with an old
 * position knows that all it saw is gone).
 *
 * Invariants (mqx_priority_index_check verifies them)
 *   1. available is a subset of present at each node; a bit of an inner node is set exactly when
 *      the child's word is non-zero.
 *   2. available in a leaf is set exactly when the message's state is MQX_MSG_AVAILABLE.
 *   3. message.position of the slot in a leaf equals its position there; message.object is the
 *      queue.
 *   4. object.present = sum of level.present; available_mask bit p is set exactly when the root's
 *      available word of level p is not 0.
 *   5. A level without messages has no node, or one leaf (height 1).
 *
 * Locks. Everything here needs the stripe lock of the queue; all stores are part of the caller's
 * micro-transaction:
 *   insert  <= 4 + 2 x height stores   show  <= 1 + height   remove  <= 5 + 2 x height
 *   the usual insertion or removal (one leaf): 5
 *
 * Damage (rule 28). Nodes, slots and counts read from the region are range-checked. What cannot
 * be true stops the queue manager and is remembered for mqx_region_damaged(); the function then
 * does nothing, or finds nothing.
 */
#ifndef PENSTOCK_PRIORITY_INDEX_H
#define PENSTOCK_PRIORITY_INDEX_H

#include "region/arena.h"
#include "region/damage.h"

struct mqx_radix { /* a node; lives in cells of the class for its size */
    uint64_t present;
    uint64_t available;
    uint32_t child[MQX_RADIX_FANOUT]; /* bottom: message slots; above: cells of nodes */
};
MQX_STATIC_ASSERT(sizeof(struct mqx_radix) == 272, "node");

/* Where a walk stands. Zeroed: before the first message. */
struct mqx_cursor {
    uint32_t started;      /* 0: before the first message */
    uint32_t placement;    /* level of the message it stands on */
    uint64_t position;     /* and its position */
    uint32_t reset_count;  /* of that level when it stood there */
    uint32_t message;      /* slot of that message */
    uint64_t number;       /* and its message number: detects that the slot was used again */
};
MQX_STATIC_ASSERT(sizeof(struct mqx_cursor) == 32, "cursor");

/* Appends `slot` (`message`: mqx_message() of it; placement and object set; in no priority index)
 * to its level; sets message.position and counts. `available`: the state is AVAILABLE.
 * MQX_NEED_CELLS when there is no cell for a node; MQRC_STORAGE_NOT_AVAILABLE when the level has
 * used up 64^8 positions; MQRC_Q_MGR_NOT_AVAILABLE when the tree is damaged. After a failure the
 * micro-transaction must be rolled back. */
int mqx_priority_index_insert_entry(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                                    uint32_t slot, struct mqx_message *message,
                                    bool available) MQX_MUST_USE;
/* The same for callers that have not looked at the entry. */
static inline int mqx_priority_index_insert(struct mqx_stripe_guard *guard,
                                            struct mqx_object *queue, uint32_t slot,
                                            bool available)
{
    MQX_ASSERT(guard->region != NULL);
    return mqx_priority_index_insert_entry(guard, queue, slot, mqx_message(guard->region, slot),
                                           available);
}

/* Shows or hides a message at its position; nothing when it is so already. The caller changes its
 * state. */
void mqx_priority_index_set_available(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                                      uint32_t slot, bool available);

/* Takes the message out for good. */
void mqx_priority_index_remove_entry(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                                     uint32_t slot, const struct mqx_message *message);
static inline void mqx_priority_index_remove(struct mqx_stripe_guard *guard,
                                             struct mqx_object *queue, uint32_t slot)
{
    MQX_ASSERT(guard->region != NULL);
    mqx_priority_index_remove_entry(guard, queue, slot, mqx_message(guard->region, slot));
}

/* First available message in delivery order, 0 when there is none. */
uint32_t mqx_priority_index_first(const struct mqx_region *region, const struct mqx_object *queue);

/* The same for a get that takes it at once: prefetches what the next gets of a deep queue will read
 * (a leaf has 64 messages, so this knows the next ones of nearly every get). Of the second message
 * in delivery order that is the descriptor and the beginning of the body: its entry has come by
 * now. Of the third it is the entry. A level of one leaf is in the cache anyway. */
uint32_t mqx_priority_index_first_of_many(const struct mqx_region *region,
                                          const struct mqx_object *queue);

/* Prefetches the leaf that a message will be taken out of. */
void mqx_priority_index_expect(const struct mqx_region *region, const struct mqx_object *queue,
                               const struct mqx_message *message);

/* The next message in delivery order after the cursor (available ones only when asked; otherwise
 * whatever is present), and moves the cursor onto it; 0 at the end, the cursor then stays. */
uint32_t mqx_priority_index_next(const struct mqx_region *region, const struct mqx_object *queue,
                                 struct mqx_cursor *cursor, bool available_only);

/* Moves the cursor so that mqx_priority_index_next() finds the first message of that placement
 * whose message number is greater, then those of lower placements. Numbers of a level rise with
 * positions. */
void mqx_priority_index_seek_after(const struct mqx_region *region, const struct mqx_object *queue,
                                   uint32_t placement, uint64_t number, struct mqx_cursor *cursor);

/* A message of the level that has about `index` of those present before it, estimated as if they
 * were spread evenly over the positions: its slot, 0 when there is none from there on. */
uint32_t mqx_priority_index_sample(const struct mqx_region *region, const struct mqx_object *queue,
                                   uint32_t placement, uint32_t index);

/* The nearest available message before `slot` at the same priority, 0 when there is none. */
uint32_t mqx_priority_index_before(const struct mqx_region *region, const struct mqx_object *queue,
                                   uint32_t slot);

/* Gives back the leaves that the empty levels of a queue kept, when the queue is deleted (<= 40
 * stores). */
void mqx_priority_index_drop(struct mqx_stripe_guard *guard, struct mqx_object *queue);

/* Walks everything and verifies the invariants; 0, or MQRC_OBJECT_DAMAGED with a text. For tests
 * and verification under the lock. */
int mqx_priority_index_check(const struct mqx_region *region,
                             const struct mqx_object *queue) MQX_MUST_USE;

/* Cells that must hold `bytes` bytes; NULL when a part of them lies outside the arena's memory. */
static inline void *mqx_cells_span(const struct mqx_region *region, uint32_t cell, uint64_t bytes)
{
    MQX_ASSERT(bytes != 0);
    const uint64_t at = (uint64_t)cell * MQX_CELL;
    if (MQX_UNLIKELY(cell == 0 || !mqx_area_has(region, MQX_AREA_ARENA, at + bytes))) {
        return NULL;
    }
    return region->area[MQX_AREA_ARENA] + at;
}

/* Two neighbouring 32-bit fields, the first at a multiple of 8, in one undoable store. Fields that
 * are stored so are always stored so: a load of both soon after a store of one of them would
 * stall. */
MQX_STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first field is the low half");
typedef uint64_t mqx_pair __attribute__((may_alias));
static inline mqx_pair mqx_pair_of(uint32_t first, uint32_t second)
{
    return first | (mqx_pair)second << 32;
}
static inline void mqx_guard_store_pair(struct mqx_stripe_guard *guard, uint32_t *at,
                                        uint32_t first, uint32_t second)
{
    mqx_pair *pair = (mqx_pair *)(void *)at;
    MQX_ASSERT((uintptr_t)at % sizeof *pair == 0);
    mqx_undo_note(guard->region->base, &guard->stripe->lock, pair, sizeof *pair, *pair);
    mqx_store_relaxed(pair, mqx_pair_of(first, second));
}

#endif
