/*
 * priority_index.c - see priority_index.h for shape, invariants and locks.
 *
 * Terms
 *   height  of a node: 1 = leaf. Its word is one of its two bitmaps.
 *   digit   of a position at a height: which child of a node of that height leads there.
 *   path    the nodes from the root down to where a position is.
 *
 * Fresh memory (lock.h) here: message.position of a message in no priority index, and child[] of a
 * clear present bit. Both are filled by plain stores before the undoable store of the present bit
 * makes them count.
 *
 * The hot functions handle height 1 with the same code as any other: their loops then do not run.
 */
#include "queue/priority_index.h"

#include "base/assert.h"
#include "base/error.h"
#include "region/message_body.h"

enum {
    NODE_CLASS = (sizeof(struct mqx_radix) + MQX_CELL - 1) / MQX_CELL - 1, /* see arena.c */
    DIGIT_BITS = 6,
    POSITION_BITS = DIGIT_BITS * MQX_RADIX_HEIGHT_MAX,
};
MQX_STATIC_ASSERT(sizeof(struct mqx_radix) <= 512, "classes are multiples of a cell up to here");
MQX_STATIC_ASSERT(offsetof(struct mqx_level, root) % 8 == 0, "root and height make a pair");
MQX_STATIC_ASSERT(offsetof(struct mqx_level, height) == 4, "root and height make a pair");
MQX_STATIC_ASSERT(offsetof(struct mqx_level, present) == 16, "present and reset_count make a pair");
MQX_STATIC_ASSERT(offsetof(struct mqx_level, reset_count) == 20, "present, reset_count");
MQX_STATIC_ASSERT(offsetof(struct mqx_radix, available) == 8, "the words of a leaf are pairs");
MQX_STATIC_ASSERT(offsetof(struct mqx_level, next_position) % 8 == 0, "a pair");
MQX_STATIC_ASSERT(offsetof(struct mqx_object, level) % 8 == 0, "levels are aligned");
MQX_STATIC_ASSERT(offsetof(struct mqx_object, available_mask) % 8 == 0, "mask and present");
MQX_STATIC_ASSERT(offsetof(struct mqx_object, present) ==
                      offsetof(struct mqx_object, available_mask) + 4, "mask and present");

struct path {
    uint32_t height;                                /* of the tree */
    struct mqx_radix *node[MQX_RADIX_HEIGHT_MAX];   /* [height - 1] = root ... [0] = leaf */
    uint32_t cell[MQX_RADIX_HEIGHT_MAX];            /* their cells */
};

/* ---- digits, bits, nodes ---- */

static inline uint32_t digit_of(uint64_t position, uint32_t height)
{
    MQX_ASSERT(height - 1 < MQX_RADIX_HEIGHT_MAX);
    return (uint32_t)(position >> DIGIT_BITS * (height - 1)) & (MQX_RADIX_FANOUT - 1);
}

static inline bool fits(uint64_t position, uint32_t height)
{
    MQX_ASSERT(height <= MQX_RADIX_HEIGHT_MAX + 1);
    return position >> DIGIT_BITS * height == 0;
}

static inline uint64_t with_bit(uint64_t word, uint32_t digit, bool on)
{
    MQX_ASSERT(digit < MQX_RADIX_FANOUT);
    return on ? word | 1ull << digit : word & ~(1ull << digit);
}

static inline struct mqx_radix *node_at(const struct mqx_region *region, uint32_t cell)
{
    return mqx_cells_span(region, cell, sizeof(struct mqx_radix));
}

/* Follows the digits of `position` as far as there are nodes, and gives the height of the last
 * one: 1 when the leaf is there. 0: damaged, or beyond the tree. */
static inline uint32_t descend(const struct mqx_region *region, const struct mqx_level *level,
                               uint64_t position, struct path *path)
{
    uint32_t cell = level->root, height = level->height;
    path->height = height;
    if (MQX_UNLIKELY(height - 1 >= MQX_RADIX_HEIGHT_MAX || !fits(position, height))) {
        return 0;
    }
    for (;; height--) {
        struct mqx_radix *node = node_at(region, cell);
        if (MQX_UNLIKELY(node == NULL)) {
            return 0;
        }
        path->node[height - 1] = node;
        path->cell[height - 1] = cell;
        const uint32_t digit = digit_of(position, height);
        if (height == 1 || (node->present >> digit & 1) == 0) {
            return height;
        }
        cell = node->child[digit];
    }
}

/* The same for a message that is in the index: true when its leaf holds it. */
static inline bool descend_to(const struct mqx_region *region, const struct mqx_level *level,
                              uint32_t slot, uint64_t position, struct path *path)
{
    MQX_ASSERT(slot != 0);
    if (MQX_UNLIKELY(descend(region, level, position, path) != 1)) {
        return false;
    }
    const uint32_t digit = digit_of(position, 1);
    return (path->node[0]->present >> digit & 1) != 0 && path->node[0]->child[digit] == slot;
}

/* The available word at `height` has become zero (on = false) or non-zero: changes the bits of its
 * ancestors. True when this reached the top, so that the queue's mask changes. */
static inline bool spread(struct mqx_stripe_guard *guard, const struct path *path, uint32_t height,
                          uint64_t position, bool on)
{
    MQX_ASSERT(height >= 1);
    MQX_ASSERT(height <= path->height);
    for (uint32_t h = height; h < path->height; h++) {
        struct mqx_radix *node = path->node[h];
        const uint64_t old = node->available;
        const uint64_t new = with_bit(old, digit_of(position, h + 1), on);
        if (new == old) {
            return false;
        }
        mqx_guard_store64(guard, &node->available, new);
        if ((on ? old : new) != 0) {
            return false;
        }
    }
    return true;
}

/* The mask (and the zero beside it) and the number of messages present, one store. */
static inline void put_summary(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                               uint32_t mask, uint32_t present)
{
    MQX_ASSERT(mask >> MQX_PRIORITY_COUNT == 0);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    mqx_guard_store_pair(guard, (uint32_t *)(void *)&queue->available_mask, mask, present);
}

/* ---- height 1: most queues, most of the time ----
 *
 * One leaf, and a number of stores known before: their undo entries are written together and
 * counted by one store of undo_count, so that no count waits for the one before. That keeps to
 * lock.h: an entry is complete before it counts, and counts before its store. Written out, without
 * a loop: this is most of what a put and a get do to the index. */

enum { LEAF_STORES = 4, INSERT_STORES = LEAF_STORES + 1 };

/* The leaf's words become `present` and `available`; the counts of its level and queue go with
 * them, and when one is inserted the level's next position. */
static MQX_ALWAYS_INLINE void
put_leaf(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t placement,
         struct mqx_radix *leaf, uint64_t present, uint64_t available, uint32_t level_present,
         uint32_t reset_count, uint32_t queue_present, bool inserted, uint64_t next_position)
{
    struct mqx_level *level = &queue->level[placement];
    struct mqx_lock *lock = &guard->stripe->lock;
    const unsigned char *base = guard->region->base;
    const uint32_t n = lock->undo_count, count = inserted ? INSERT_STORES : LEAF_STORES;
    mqx_pair *words = (mqx_pair *)(void *)leaf, *counts = (mqx_pair *)(void *)&level->present;
    mqx_pair *summary = (mqx_pair *)(void *)&queue->available_mask;
    mqx_pair *next = (mqx_pair *)(void *)&level->next_position;
    MQX_ASSERT(placement < MQX_PRIORITY_COUNT);
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    if (MQX_UNLIKELY(n > MQX_UNDO_MAX - count)) { /* too many stores, or a damaged count */
        (void)mqx_region_damage(guard->region, "the undo list of a stripe", n);
        return;
    }
    struct mqx_undo *undo = &lock->undo[n];
    const uint64_t mask = with_bit(queue->available_mask, placement, available != 0);
    mqx_undo_fill(&undo[0], base, &words[0], sizeof(mqx_pair), words[0]);
    mqx_undo_fill(&undo[1], base, &words[1], sizeof(mqx_pair), words[1]);
    mqx_undo_fill(&undo[2], base, counts, sizeof(mqx_pair), *counts);
    mqx_undo_fill(&undo[3], base, summary, sizeof(mqx_pair), *summary);
    if (inserted) {
        mqx_undo_fill(&undo[4], base, next, sizeof(mqx_pair), *next);
    }
    mqx_undo_count(lock, n + count);
    mqx_store_relaxed(&words[0], present);
    mqx_store_relaxed(&words[1], available);
    mqx_store_relaxed(counts, mqx_pair_of(level_present, reset_count));
    mqx_store_relaxed(summary, mqx_pair_of((uint32_t)mask, queue_present));
    if (inserted) {
        mqx_store_relaxed(next, next_position);
    }
}

/* The leaf of a level of height 1 whose `position` is empty (slot 0) or holds `slot`; NULL: the
 * general code is needed. */
static inline struct mqx_radix *only_leaf(const struct mqx_region *region,
                                          const struct mqx_level *level, uint64_t position,
                                          uint32_t slot)
{
    if (level->height != 1 || position >= MQX_RADIX_FANOUT) {
        return NULL;
    }
    struct mqx_radix *leaf = node_at(region, level->root);
    if (leaf == NULL || (leaf->present >> position & 1) != (slot != 0) ||
        (slot != 0 && leaf->child[position] != slot)) {
        return NULL;
    }
    return leaf;
}

/* ---- insert ---- */

/* Fresh nodes of heights 1 .. `height` that lead to `slot`; the topmost in *out_cell. */
static int make_chain(struct mqx_stripe_guard *guard, uint64_t position, uint32_t height,
                      uint32_t slot, bool available, uint32_t *out_cell)
{
    uint32_t below = slot;
    MQX_ASSERT(slot != 0);
    MQX_ASSERT(height <= MQX_RADIX_HEIGHT_MAX);
    for (uint32_t h = 1; h <= height; h++) {
        uint32_t cell;
        int status = mqx_cells_take(guard, NODE_CLASS, &cell);
        if (status != MQX_OK) {
            return status;
        }
        struct mqx_radix *node = node_at(guard->region, cell);
        if (node == NULL) {
            return mqx_region_damage(guard->region, "a free node", cell);
        }
        const uint32_t digit = digit_of(position, h);
        node->present = 1ull << digit;
        node->available = available ? node->present : 0;
        node->child[digit] = below;
        below = cell;
    }
    *out_cell = below;
    return MQX_OK;
}

/* Puts a root on top of the present one (or the first leaf), with the path down to `slot`. */
static MQX_COLD int grow(struct mqx_stripe_guard *guard, struct mqx_level *level, uint64_t position,
                         uint32_t slot, bool available, bool *out_top)
{
    const uint32_t height = level->height;
    uint32_t cell;
    MQX_ASSERT(!*out_top);
    if (position >> POSITION_BITS != 0) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "a priority of the queue has used up its "
                        "positions; it begins again when it has been empty");
    }
    if (height >= MQX_RADIX_HEIGHT_MAX || (height == 0) != (level->root == 0) ||
        !fits(position, height + 1)) {
        return mqx_region_damage(guard->region, "the height of a level", height);
    }
    int status = make_chain(guard, position, height + 1, slot, available, &cell);
    if (status != MQX_OK) {
        return status;
    }
    *out_top = available;
    if (height != 0) {
        const struct mqx_radix *old = node_at(guard->region, level->root);
        struct mqx_radix *root = node_at(guard->region, cell);
        if (old == NULL || digit_of(position, height + 1) == 0) {
            return mqx_region_damage(guard->region, "the root of a level", level->root);
        }
        root->child[0] = level->root;
        root->present |= 1;
        root->available |= old->available != 0;
        *out_top = available && old->available == 0;
    }
    mqx_guard_store_pair(guard, &level->root, cell, height + 1);
    return MQX_OK;
}

/* Makes the position lead to `slot`. *out_top: the level, without available messages before, has
 * one now. */
static inline int set_position(struct mqx_stripe_guard *guard, struct mqx_level *level,
                               uint64_t position, uint32_t slot, bool available, bool *out_top)
{
    struct path path;
    uint32_t below = slot;
    MQX_ASSERT(slot != 0);
    if (MQX_UNLIKELY(level->height - 1 >= MQX_RADIX_HEIGHT_MAX ||
                     !fits(position, level->height))) {
        return grow(guard, level, position, slot, available, out_top);
    }
    const uint32_t height = descend(guard->region, level, position, &path);
    if (MQX_UNLIKELY(height == 0)) {
        return mqx_region_damage(guard->region, "a node on the way to a position", position);
    }
    if (MQX_UNLIKELY(height > 1)) {
        int status = make_chain(guard, position, height - 1, slot, available, &below);
        if (status != MQX_OK) {
            return status;
        }
    }
    struct mqx_radix *node = path.node[height - 1];
    const uint32_t digit = digit_of(position, height);
    if (MQX_UNLIKELY((node->present >> digit & 1) != 0)) {
        return mqx_region_damage(guard->region, "a used position for a new message", position);
    }
    node->child[digit] = below;
    mqx_guard_store64(guard, &node->present, node->present | 1ull << digit);
    if (available) {
        const uint64_t old = node->available;
        mqx_guard_store64(guard, &node->available, old | 1ull << digit);
        *out_top = old == 0 && spread(guard, &path, height, position, true);
    }
    return MQX_OK;
}

int mqx_priority_index_insert_entry(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                                    uint32_t slot, struct mqx_message *message, bool available)
{
    const uint32_t placement = message == NULL ? MQX_PRIORITY_COUNT : message->placement;
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    if (MQX_UNLIKELY(placement >= MQX_PRIORITY_COUNT)) {
        return mqx_region_damage(guard->region, "a message to be inserted", slot);
    }
    struct mqx_level *level = &queue->level[placement];
    const uint32_t present = level->present;
    const bool reset = present == 0 && level->next_position != 0;
    const uint64_t position = reset ? 0 : level->next_position;
    struct mqx_radix *leaf = only_leaf(guard->region, level, position, 0);
    message->position = position;
    if (MQX_LIKELY(leaf != NULL)) {
        const uint64_t bit = 1ull << position;
        leaf->child[position] = slot;
        put_leaf(guard, queue, placement, leaf, leaf->present | bit,
                 leaf->available | (available ? bit : 0), present + 1, level->reset_count + reset,
                 queue->present + 1, true, position + 1);
        return MQX_OK;
    }
    const uint32_t mask = queue->available_mask;
    bool top = false;
    int status = set_position(guard, level, position, slot, available, &top);
    if (MQX_UNLIKELY(status != MQX_OK)) {
        return status;
    }
    mqx_guard_store_pair(guard, &level->present, present + 1, level->reset_count + reset);
    put_summary(guard, queue, top ? mask | 1u << placement : mask, queue->present + 1);
    mqx_guard_store64(guard, &level->next_position, position + 1);
    return MQX_OK;
}

/* ---- show, remove ---- */

/* The level and the path of a message in the index; NULL when something is damaged. */
static inline struct mqx_level *locate(const struct mqx_region *region, struct mqx_object *queue,
                                       uint32_t slot, const struct mqx_message *message,
                                       struct path *path)
{
    if (MQX_UNLIKELY(message == NULL || message->placement >= MQX_PRIORITY_COUNT ||
                     !descend_to(region, &queue->level[message->placement], slot,
                                 message->position, path))) {
        (void)mqx_region_damage(region, "the position of a message in its queue", slot);
        return NULL;
    }
    return &queue->level[message->placement];
}

void mqx_priority_index_set_available(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                                      uint32_t slot, bool available)
{
    const struct mqx_message *message = mqx_message(guard->region, slot);
    struct path path;
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    if (MQX_UNLIKELY(locate(guard->region, queue, slot, message, &path) == NULL)) {
        return;
    }
    struct mqx_radix *leaf = path.node[0];
    const uint64_t position = message->position, old = leaf->available;
    const uint64_t new = with_bit(old, digit_of(position, 1), available);
    if (MQX_UNLIKELY(new == old)) {
        return;
    }
    mqx_guard_store64(guard, &leaf->available, new);
    if ((available ? old : new) == 0 && spread(guard, &path, 1, position, available)) {
        put_summary(guard, queue,
                    (uint32_t)with_bit(queue->available_mask, message->placement, available),
                    queue->present);
    }
}

/* Takes one child out of a node of the path and changes the ancestors' bits; true when the mask's
 * bit is to be cleared. */
static inline bool clear_child(struct mqx_stripe_guard *guard, const struct path *path,
                               uint32_t height, uint64_t position)
{
    struct mqx_radix *node = path->node[height - 1];
    MQX_ASSERT(height <= path->height);
    const uint64_t bit = 1ull << digit_of(position, height), available = node->available;
    mqx_guard_store64(guard, &node->present, node->present & ~bit);
    if ((available & bit) == 0) {
        return false;
    }
    mqx_guard_store64(guard, &node->available, available & ~bit);
    return (available & ~bit) == 0 && spread(guard, path, height, position, false);
}

/* Takes a message out of a level that has more, and frees the nodes that this empties. */
static inline bool take_out(struct mqx_stripe_guard *guard, const struct path *path,
                            uint64_t position)
{
    uint32_t height = 1;
    MQX_ASSERT(path->height >= 1);
    while (height < path->height &&
           path->node[height - 1]->present == 1ull << digit_of(position, height)) {
        height += 1;
    }
    MQX_ASSERT(height <= path->height);
    const bool top = clear_child(guard, path, height, position);
    for (uint32_t h = 1; h < height; h++) {
        mqx_cells_give(guard, NODE_CLASS, path->cell[h - 1]);
    }
    return top;
}

/* Takes the level's last message out: only its leaf stays, for the next insertion. */
static inline bool take_last(struct mqx_stripe_guard *guard, struct mqx_level *level,
                             const struct path *path)
{
    struct mqx_radix *leaf = path->node[0];
    const bool available = leaf->available != 0;
    MQX_ASSERT(path->height >= 1);
    mqx_guard_store64(guard, &leaf->present, 0);
    if (available) {
        mqx_guard_store64(guard, &leaf->available, 0);
    }
    if (MQX_UNLIKELY(path->height > 1)) {
        for (uint32_t h = 2; h <= path->height; h++) {
            mqx_cells_give(guard, NODE_CLASS, path->cell[h - 1]);
        }
        mqx_guard_store_pair(guard, &level->root, path->cell[0], 1);
    }
    return available;
}

static __attribute__((noinline)) void remove_deep(struct mqx_stripe_guard *guard,
                                                  struct mqx_object *queue, uint32_t slot,
                                                  const struct mqx_message *message)
{
    struct path path;
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    struct mqx_level *level = locate(guard->region, queue, slot, message, &path);
    if (level == NULL) {
        return;
    }
    const uint32_t present = level->present, mask = queue->available_mask;
    const uint64_t others = with_bit(path.node[0]->present, digit_of(message->position, 1), false);
    if (present == 0 || queue->present < present || (present == 1 && others != 0)) {
        (void)mqx_region_damage(guard->region, "the number of messages at a priority", present);
        return;
    }
    const bool top =
        present == 1 ? take_last(guard, level, &path) : take_out(guard, &path, message->position);
    mqx_guard_store_pair(guard, &level->present, present - 1, level->reset_count);
    put_summary(guard, queue, top ? mask & ~(1u << message->placement) : mask, queue->present - 1);
}

void mqx_priority_index_remove_entry(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                                     uint32_t slot, const struct mqx_message *message)
{
    const uint32_t placement = message == NULL ? MQX_PRIORITY_COUNT : message->placement;
    MQX_ASSERT(queue != NULL);
    if (MQX_LIKELY(slot != 0 && placement < MQX_PRIORITY_COUNT)) {
        const struct mqx_level *level = &queue->level[placement];
        const uint64_t position = message->position;
        struct mqx_radix *leaf = only_leaf(guard->region, level, position, slot);
        const bool last = level->present == 1;
        if (MQX_LIKELY(leaf != NULL && level->present != 0 && queue->present >= level->present &&
                       last == ((leaf->present & (leaf->present - 1)) == 0))) {
            put_leaf(guard, queue, placement, leaf, leaf->present & ~(1ull << position),
                     leaf->available & ~(1ull << position), level->present - 1, level->reset_count,
                     queue->present - 1, false, 0);
            return;
        }
    }
    remove_deep(guard, queue, slot, message);
}

void mqx_priority_index_drop(struct mqx_stripe_guard *guard, struct mqx_object *queue)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    for (uint32_t p = 0; p < MQX_PRIORITY_COUNT; p++) {
        struct mqx_level *level = &queue->level[p];
        if (level->root == 0) {
            continue;
        }
        if (level->present != 0 || level->height != 1 ||
            node_at(guard->region, level->root) == NULL) {
            (void)mqx_region_damage(guard->region, "the root of an emptied level", level->root);
            continue;
        }
        mqx_cells_give(guard, NODE_CLASS, level->root);
        mqx_guard_store_pair(guard, &level->root, 0, 0);
        mqx_guard_store64(guard, &level->next_position, 0);
    }
}

/* ---- searching ---- */

/* The first available message; the leaf that names it, when the level has several leaves. */
static inline uint32_t first_in(const struct mqx_region *region, const struct mqx_object *queue,
                                const struct mqx_radix **out_leaf)
{
    const uint32_t mask = queue->available_mask;
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(*out_leaf == NULL);
    if (mask == 0) {
        return 0;
    }
    const uint32_t placement = 31u - (uint32_t)__builtin_clz(mask);
    if (MQX_UNLIKELY(placement >= MQX_PRIORITY_COUNT)) {
        (void)mqx_region_damage(region, "a queue's mask of priorities", mask);
        return 0;
    }
    const struct mqx_level *level = &queue->level[placement];
    uint32_t item = level->root, height = level->height;
    if (MQX_UNLIKELY(height - 1 >= MQX_RADIX_HEIGHT_MAX)) {
        (void)mqx_region_damage(region, "the height of a level", height);
        return 0;
    }
    const bool several = height > 1;
    const struct mqx_radix *node = NULL;
    for (; height > 0; height--) {
        node = node_at(region, item);
        if (MQX_UNLIKELY(node == NULL || node->available == 0)) {
            (void)mqx_region_damage(region, "a node on the way to the first message", item);
            return 0;
        }
        item = node->child[__builtin_ctzll(node->available)];
    }
    if (MQX_UNLIKELY(mqx_message(region, item) == NULL)) {
        (void)mqx_region_damage(region, "a message in a leaf", item);
        return 0;
    }
    *out_leaf = several ? node : NULL;
    return item;
}

uint32_t mqx_priority_index_first(const struct mqx_region *region, const struct mqx_object *queue)
{
    const struct mqx_radix *leaf = NULL;
    MQX_ASSERT(queue != NULL);
    return first_in(region, queue, &leaf);
}

/* The words of a leaf are hints here: the slots are range-checked, and nothing is done with what
 * lies there but prefetching. */
static void expect_after_first(const struct mqx_region *region, const struct mqx_radix *leaf)
{
    MQX_ASSERT(leaf->available != 0);
    const uint64_t second = leaf->available & (leaf->available - 1);
    if (second == 0) {
        return;
    }
    const struct mqx_message *next = mqx_message(region, leaf->child[__builtin_ctzll(second)]);
    if (next != NULL) {
        mqx_body_expect_read(region, next);
    }
    const uint64_t third = second & (second - 1);
    next = third == 0 ? NULL : mqx_message(region, leaf->child[__builtin_ctzll(third)]);
    if (next != NULL) {
        __builtin_prefetch(next, 1);
    }
}

uint32_t mqx_priority_index_first_of_many(const struct mqx_region *region,
                                          const struct mqx_object *queue)
{
    const struct mqx_radix *leaf = NULL;
    const uint32_t slot = first_in(region, queue, &leaf);
    MQX_ASSERT(leaf == NULL || slot != 0);
    if (leaf != NULL) {
        expect_after_first(region, leaf);
    }
    return slot;
}

void mqx_priority_index_expect(const struct mqx_region *region, const struct mqx_object *queue,
                               const struct mqx_message *message)
{
    const uint32_t placement = message->placement;
    const struct mqx_level *level = &queue->level[placement % MQX_PRIORITY_COUNT];
    const uint64_t position = message->position;
    MQX_ASSERT(queue != NULL);
    uint32_t cell = level->root, height = level->height;
    if (height - 1 >= MQX_RADIX_HEIGHT_MAX || !fits(position, height)) {
        return;
    }
    const struct mqx_radix *node = node_at(region, cell);
    for (; node != NULL && height > 1; height--) {
        cell = node->child[digit_of(position, height)];
        node = node_at(region, cell);
    }
    if (node != NULL) {
        __builtin_prefetch(node, 1);
        __builtin_prefetch(&node->child[digit_of(position, 1)]);
    }
}

enum direction { UP, DOWN };

/* The word's bits from `digit` on (UP) or up to it (DOWN); `beyond` leaves out the digit itself. */
static inline uint64_t bits_from(uint64_t word, uint32_t digit, enum direction way, bool beyond)
{
    MQX_ASSERT(digit < MQX_RADIX_FANOUT);
    const uint64_t bit = 1ull << digit;
    const uint64_t smaller = bit - 1;
    if (way == UP) {
        return word & ~smaller & (beyond ? ~bit : ~0ull);
    }
    return word & (smaller | (beyond ? 0 : bit));
}

/* The child nearest to where the search came from, and the position that a search below it begins
 * at. */
static inline uint32_t choose(uint64_t rest, enum direction way, uint32_t height,
                              uint64_t *position)
{
    MQX_ASSERT(rest != 0);
    const uint32_t digit = way == UP ? (uint32_t)__builtin_ctzll(rest)
                                     : 63u - (uint32_t)__builtin_clzll(rest);
    if (digit != digit_of(*position, height)) {
        const uint64_t above = *position >> DIGIT_BITS * height << DIGIT_BITS * height;
        const uint64_t low = way == UP ? 0 : (1ull << DIGIT_BITS * (height - 1)) - 1;
        *position = above | (uint64_t)digit << DIGIT_BITS * (height - 1) | low;
    }
    return digit;
}

/* The nearest child at or beyond *position in that direction, present or available: its slot, 0
 * when there is none. A sound tree is left and entered at most once per height. */
static uint32_t seek(const struct mqx_region *region, const struct mqx_level *level,
                     enum direction way, bool available, uint64_t *position)
{
    const struct mqx_radix *node[MQX_RADIX_HEIGHT_MAX];
    const uint32_t top = level->height;
    uint32_t height = top, item = level->root;
    MQX_ASSERT(way == UP || way == DOWN);
    if (top == 0 || (top <= MQX_RADIX_HEIGHT_MAX && !fits(*position, top))) {
        return 0;
    }
    for (uint32_t steps = 0; top <= MQX_RADIX_HEIGHT_MAX && steps <= 2 * top; steps++) {
        const struct mqx_radix *here = node_at(region, item);
        if (here == NULL) {
            break;
        }
        node[height - 1] = here;
        uint64_t rest = bits_from(available ? here->available : here->present,
                                  digit_of(*position, height), way, false);
        while (rest == 0) {
            if (height == top) {
                return 0;
            }
            height += 1;
            here = node[height - 1];
            rest = bits_from(available ? here->available : here->present,
                             digit_of(*position, height), way, true);
        }
        item = here->child[choose(rest, way, height, position)];
        if (height == 1) {
            return item;
        }
        height -= 1;
    }
    (void)mqx_region_damage(region, "a node of a level", item);
    return 0;
}

/* The message that a search found, when its entry has that position; else NULL: damaged. */
static const struct mqx_message *found(const struct mqx_region *region, uint32_t slot,
                                       uint32_t placement, uint64_t position)
{
    MQX_ASSERT(placement < MQX_PRIORITY_COUNT);
    const struct mqx_message *message = mqx_message(region, slot);
    if (MQX_UNLIKELY(message == NULL || message->placement != placement ||
                     message->position != position)) {
        (void)mqx_region_damage(region, "a message in a leaf", slot);
        return NULL;
    }
    return message;
}

uint32_t mqx_priority_index_next(const struct mqx_region *region, const struct mqx_object *queue,
                                 struct mqx_cursor *cursor, bool available_only)
{
    const bool started = cursor->started != 0;
    MQX_ASSERT(queue != NULL);
    uint32_t p = started ? cursor->placement : MQX_MAX_PRIORITY;
    if (MQX_UNLIKELY(p > MQX_MAX_PRIORITY)) {
        (void)mqx_region_damage(region, "the priority of a cursor", p);
        return 0;
    }
    for (p += 1; p-- > 0;) {
        const struct mqx_level *level = &queue->level[p];
        const bool here = started && p == cursor->placement &&
                          level->reset_count == cursor->reset_count;
        uint64_t position = here ? cursor->position + 1 : 0;
        if (level->present == 0 || (available_only && (queue->available_mask >> p & 1) == 0)) {
            continue;
        }
        const uint32_t slot = seek(region, level, UP, available_only, &position);
        if (slot == 0) {
            continue;
        }
        const struct mqx_message *message = found(region, slot, p, position);
        if (message == NULL) {
            return 0;
        }
        *cursor = (struct mqx_cursor){1, p, position, level->reset_count, slot, message->number};
        return slot;
    }
    return 0;
}

void mqx_priority_index_seek_after(const struct mqx_region *region, const struct mqx_object *queue,
                                   uint32_t placement, uint64_t number, struct mqx_cursor *cursor)
{
    MQX_ASSERT(placement <= MQX_MAX_PRIORITY);
    const struct mqx_level *level = &queue->level[placement];
    uint64_t low = 0, high = level->present == 0 ? 0 : level->next_position;
    while (low < high) { /* at `high` and later all numbers are greater, before `low` none */
        const uint64_t middle = low + (high - low) / 2;
        uint64_t position = middle;
        const uint32_t slot = seek(region, level, UP, false, &position);
        const struct mqx_message *message =
            slot == 0 ? NULL : found(region, slot, placement, position);
        if (message == NULL || message->number > number) {
            high = middle;
        } else {
            low = position + 1;
        }
    }
    *cursor = (struct mqx_cursor){.started = 1, .placement = placement};
    if (low != 0) {
        cursor->position = low - 1;
        cursor->reset_count = level->reset_count;
    } else {
        cursor->reset_count = level->reset_count - 1; /* from before a reset: all are behind it */
    }
}

uint32_t mqx_priority_index_sample(const struct mqx_region *region, const struct mqx_object *queue,
                                   uint32_t placement, uint32_t index)
{
    MQX_ASSERT(placement <= MQX_MAX_PRIORITY);
    const struct mqx_level *level = &queue->level[placement];
    uint64_t first = 0;
    if (level->present == 0 || seek(region, level, UP, false, &first) == 0) {
        return 0;
    }
    const uint64_t span = level->next_position - first;
    uint64_t position = first + (uint64_t)((double)span * index / level->present);
    const uint32_t slot = seek(region, level, UP, false, &position);
    return slot == 0 || found(region, slot, placement, position) == NULL ? 0 : slot;
}

uint32_t mqx_priority_index_before(const struct mqx_region *region, const struct mqx_object *queue,
                                   uint32_t slot)
{
    const struct mqx_message *message = mqx_message(region, slot);
    MQX_ASSERT(slot != 0);
    if (message == NULL || message->placement >= MQX_PRIORITY_COUNT) {
        (void)mqx_region_damage(region, "a message to look before", slot);
        return 0;
    }
    if (message->position == 0) {
        return 0;
    }
    uint64_t position = message->position - 1;
    const uint32_t before = seek(region, &queue->level[message->placement], DOWN, true, &position);
    if (before == 0) {
        return 0;
    }
    return found(region, before, message->placement, position) == NULL ? 0 : before;
}

/* ---- check ---- */

struct check {
    const struct mqx_region *region;
    uint32_t object;     /* slot of the queue */
    uint32_t placement;
    uint64_t present;    /* messages met so far at this level */
};

static int unsound(const struct check *check, const char *what, uint64_t got)
{
    MQX_ASSERT(check->placement <= MQX_PRIORITY_COUNT);
    return mqx_fail(MQRC_OBJECT_DAMAGED, "queue slot %u, priority %u: %s (%llu)", check->object,
                    check->placement, what, (unsigned long long)got);
}

static int check_message(struct check *check, uint32_t slot, uint64_t position, bool available)
{
    const struct mqx_message *message = mqx_message(check->region, slot);
    MQX_ASSERT(position >> POSITION_BITS == 0);
    if (message == NULL) {
        return unsound(check, "a leaf names an entry that is not there", slot);
    }
    if (message->position != position || message->placement != check->placement) {
        return unsound(check, "a message is not where its entry says", slot);
    }
    if (message->object != check->object) {
        return unsound(check, "a message of another queue", slot);
    }
    if ((message->state == MQX_MSG_AVAILABLE) != available ||
        message->state == MQX_MSG_FREE || message->state == MQX_MSG_RESERVED) {
        return unsound(check, "the state of a message does not fit its bits", slot);
    }
    check->present += 1;
    return MQX_OK;
}

/* Not the hot path: recursion of at most MQX_RADIX_HEIGHT_MAX. It ends on any tree: a leaf that is
 * met a second time has other positions than the entries of its messages, an empty one is
 * refused. */
static int check_node(struct check *check, uint32_t cell, uint32_t height, uint64_t position,
                      bool available)
{
    const struct mqx_radix *node = node_at(check->region, cell);
    MQX_ASSERT(height >= 1);
    MQX_ASSERT(height <= MQX_RADIX_HEIGHT_MAX);
    if (node == NULL) {
        return unsound(check, "a node that is not there", cell);
    }
    if ((node->available & ~node->present) != 0 || node->present == 0) {
        return unsound(check, "the bitmaps of a node", cell);
    }
    if ((node->available != 0) != available) {
        return unsound(check, "the bit above a node does not fit its word", cell);
    }
    for (uint64_t rest = node->present; rest != 0; rest &= rest - 1) {
        const uint32_t digit = (uint32_t)__builtin_ctzll(rest);
        const bool bit = (node->available >> digit & 1) != 0;
        const uint64_t at = position << DIGIT_BITS | digit;
        int status = height == 1 ? check_message(check, node->child[digit], at, bit)
                                 : check_node(check, node->child[digit], height - 1, at, bit);
        if (status != MQX_OK) {
            return status;
        }
    }
    return MQX_OK;
}

static int check_level(struct check *check, const struct mqx_level *level, bool available)
{
    MQX_ASSERT(check->present == 0);
    if (level->present == 0) {
        const struct mqx_radix *leaf = node_at(check->region, level->root);
        if (available || (level->root == 0 && level->height != 0)) {
            return unsound(check, "an empty level with an available message", level->height);
        }
        if (level->root != 0 && (level->height != 1 || leaf == NULL || leaf->present != 0 ||
                                 leaf->available != 0)) {
            return unsound(check, "an empty level with more than an empty leaf", level->root);
        }
        return MQX_OK;
    }
    if (level->height - 1 >= MQX_RADIX_HEIGHT_MAX || level->next_position > 1ull << POSITION_BITS ||
        !fits(level->next_position - 1, level->height)) {
        return unsound(check, "a level's height does not fit its positions", level->height);
    }
    int status = check_node(check, level->root, level->height, 0, available);
    if (status == MQX_OK && check->present != level->present) {
        status = unsound(check, "the number of messages is not what the level says",
                         check->present);
    }
    return status;
}

int mqx_priority_index_check(const struct mqx_region *region, const struct mqx_object *queue)
{
    const unsigned char *first = region->area[MQX_AREA_OBJECTS];
    struct check check = {
        .region = region,
        .object = (uint32_t)((size_t)((const unsigned char *)queue - first) / sizeof *queue),
    };
    uint64_t present = 0;
    MQX_ASSERT(mqx_object(region, check.object) == queue);
    for (uint32_t p = 0; p < MQX_PRIORITY_COUNT; p++) {
        check.placement = p;
        check.present = 0;
        int status = check_level(&check, &queue->level[p], (queue->available_mask >> p & 1) != 0);
        if (status != MQX_OK) {
            return status;
        }
        present += check.present;
    }
    if (present != queue->present || queue->available_mask >> MQX_PRIORITY_COUNT != 0 ||
        queue->zero != 0) {
        return unsound(&check, "the queue's summary of its messages", queue->present);
    }
    return MQX_OK;
}
