/*
 * due_index.c - see due_index.h.
 *
 * Fresh memory (lock.h) here: message.due.child of a message that is in no tree.
 */
#include "queue/due_index.h"

#include "base/assert.h"
#include "base/error.h"
#include "region/damage.h"

enum { BY_TIME = 0, BY_ID = 1, TREES = 2 };
enum { NEAR_US = 2, READINGS_MAX = 5 };
enum {
    WORD_BITS = 64,
    DEPTH_MAX = 2 * WORD_BITS, /* of two different keys a bit differs before */
    TIME_UNUSED = 5,           /* bits of a time that are 0: until the year 9999 */
    FINGER_DEPTH = WORD_BITS - TIME_UNUSED - 4, /* times of the same 16 us have so many bits in
                                                 * common */
};
MQX_STATIC_ASSERT(sizeof(((struct mqx_message *)0)->due.child) == TREES * 2 * sizeof(uint32_t),
                  "two links in each tree");

/* What the wall clock is ahead of the boot clock: some microseconds too much rather than one too
 * little, which would make a message late. A thread that is suspended between both readings reads
 * again. */
static uint64_t read_both_clocks(void)
{
    uint64_t before = 0, wall = 0, after = 0;
    for (int i = 0; i < READINGS_MAX && (i == 0 || after - before > NEAR_US); i++) {
        before = mqx_clock_boot_us();
        wall = mqx_clock_wall_us();
        after = mqx_clock_boot_us();
    }
    MQX_ASSERT(before > 0);
    MQX_ASSERT(after >= before);
    return wall - before + 1;
}

/* The same, read once a tick of the kernel: a wall clock that is set has another tick. */
static uint64_t wall_ahead_of_boot(void)
{
    MQX_THREAD_LOCAL uint64_t tick_us, ahead_us;
    const uint64_t now_us = mqx_clock_coarse_us();
    MQX_ASSERT(now_us != 0);
    if (now_us != tick_us) {
        tick_us = now_us;
        ahead_us = read_both_clocks();
    }
    MQX_ASSERT(tick_us == now_us);
    return ahead_us;
}

/* By the difference of both clocks since the start of the run; what the clock of queues was
 * advanced by is in both times. */
uint64_t mqx_due_key(const struct mqx_region *region, uint64_t due_us)
{
    const uint64_t then = region->header->run_offset_us, now = wall_ahead_of_boot();
    MQX_ASSERT(due_us != 0);
    const uint64_t set_back = then > now ? then - now : 0;
    const uint64_t set_on = now > then ? now - then : 0;
    return due_us + set_back > set_on ? due_us + set_back - set_on : 1;
}

static MQX_COLD int damaged(const struct mqx_region *region, uint32_t slot)
{
    MQX_ASSERT(region->base != NULL);
    return mqx_region_damage(region, "the index of delayed messages, message", slot);
}

/* ---- keys ---- */

/* Two words: a tree branches at depth d by bit d from the top of the first, then by the bits of the
 * second from the lowest on, which differ most. */
struct key {
    uint64_t first;
    uint64_t number;
};

static struct key key_of(const struct mqx_message *message, int tree)
{
    MQX_ASSERT(tree == BY_TIME || tree == BY_ID);
    return (struct key){tree == BY_TIME ? message->due.key_us << TIME_UNUSED : message->tag[0],
                        message->number};
}

static uint32_t digit(const struct key *key, uint32_t depth)
{
    MQX_ASSERT(depth < DEPTH_MAX);
    return depth < WORD_BITS ? (uint32_t)(key->first >> (WORD_BITS - 1 - depth) & 1)
                             : (uint32_t)(key->number >> (depth - WORD_BITS) & 1);
}

static bool is_before(const struct mqx_message *a, const struct mqx_message *b)
{
    MQX_ASSERT(a != NULL && b != NULL);
    return a->due.key_us < b->due.key_us ||
           (a->due.key_us == b->due.key_us && a->number < b->number);
}

/* ---- walks ---- */

struct place {
    uint32_t *link;  /* NULL: damaged */
    uint32_t depth;  /* of the node that it names, or may name */
    uint64_t finger; /* the last node before it that is no deeper than FINGER_DEPTH; 0: none */
};

static uint64_t finger_at(uint32_t depth, uint32_t slot)
{
    MQX_ASSERT(slot != 0);
    MQX_ASSERT(depth <= FINGER_DEPTH);
    return (uint64_t)depth << 32 | slot;
}

/* From *place on: the link that names `slot`, or, when it is in no tree, the empty one where it
 * belongs. In place: a copy of what was just stored in parts would wait for the stores. */
static void descend(const struct mqx_region *region, struct place *place, int tree, uint32_t slot,
                    const struct key *key)
{
    uint32_t *link = place->link;
    uint32_t depth = place->depth;
    uint64_t finger = place->finger;
    MQX_ASSERT(slot != 0);
    MQX_ASSERT(link != NULL);
    while (*link != 0 && *link != slot) {
        struct mqx_message *node = mqx_message(region, *link);
        if (MQX_UNLIKELY(node == NULL || depth >= DEPTH_MAX)) {
            link = NULL;
            break;
        }
        if (depth <= FINGER_DEPTH) {
            finger = finger_at(depth, *link);
        }
        link = &node->due.child[tree][digit(key, depth)];
        depth += 1;
    }
    place->link = link;
    place->depth = depth;
    place->finger = finger;
}

/* The same from the root. */
static void find_place(const struct mqx_region *region, struct mqx_object *queue, int tree,
                       uint32_t slot, const struct mqx_message *message, struct place *out)
{
    const struct key key = key_of(message, tree);
    MQX_ASSERT(tree == BY_TIME || tree == BY_ID);
    MQX_ASSERT(slot != 0);
    out->link = &queue->due_root[tree];
    out->depth = 0;
    out->finger = 0;
    descend(region, out, tree, slot, &key);
}

/* Digits that two keys have in common, at most those of the first word. */
static uint32_t common_digits(const struct key *a, const struct key *b)
{
    MQX_STATIC_ASSERT(WORD_BITS == 64, "what __builtin_clzll counts in");
    return a->first == b->first ? WORD_BITS : (uint32_t)__builtin_clzll(a->first ^ b->first);
}

/* The place in the tree by time of a message that is in none: from the finger on where it has the
 * bits of that path. A finger that cannot be right, which damage alone leaves, is not followed. */
static void find_new_place(const struct mqx_region *region, struct mqx_object *queue, uint32_t slot,
                           const struct mqx_message *message, struct place *out)
{
    const uint32_t finger = (uint32_t)queue->due_finger;
    const uint32_t depth = (uint32_t)(queue->due_finger >> 32);
    struct mqx_message *node = finger != 0 ? mqx_message(region, finger) : NULL;
    MQX_ASSERT(slot != 0);
    MQX_ASSERT(message != NULL);
    if (node != NULL && finger != slot && depth <= FINGER_DEPTH &&
        node->state == MQX_MSG_DELAYED) {
        const struct key key = key_of(message, BY_TIME), other = key_of(node, BY_TIME);
        if (common_digits(&key, &other) >= depth) {
            out->link = &node->due.child[BY_TIME][digit(&key, depth)];
            out->depth = depth + 1;
            out->finger = queue->due_finger;
            descend(region, out, BY_TIME, slot, &key);
            return;
        }
    }
    find_place(region, queue, BY_TIME, slot, message, out);
}

/* The link to a leaf below the node; NULL: damaged, or the node is a leaf. */
static uint32_t *find_leaf(const struct mqx_region *region, struct mqx_message *node, int tree)
{
    uint32_t *link = NULL;
    MQX_ASSERT(node != NULL);
    for (uint32_t depth = 0; depth <= DEPTH_MAX; depth++) {
        uint32_t *child = node->due.child[tree];
        if (child[0] == 0 && child[1] == 0) {
            return link;
        }
        link = child[0] != 0 ? &child[0] : &child[1];
        node = mqx_message(region, *link);
        if (MQX_UNLIKELY(node == NULL)) {
            return NULL;
        }
    }
    return NULL;
}

/* The first by time: on the leftmost path, as what lies to the left is before what lies to the
 * right. */
uint32_t mqx_due_index_first(const struct mqx_region *region, const struct mqx_object *queue)
{
    uint32_t slot = queue->due_root[BY_TIME], first = 0;
    const struct mqx_message *best = NULL;
    MQX_ASSERT(region->base != NULL);
    for (uint32_t depth = 0; slot != 0; depth++) {
        const struct mqx_message *node = mqx_message(region, slot);
        if (MQX_UNLIKELY(node == NULL || depth > DEPTH_MAX)) {
            (void)damaged(region, slot);
            return first;
        }
        if (best == NULL || is_before(node, best)) {
            best = node;
            first = slot;
        }
        const uint32_t *child = node->due.child[BY_TIME];
        slot = child[0] != 0 ? child[0] : child[1];
    }
    return first;
}

/* ---- changes ---- */

/* The message enters the tree at that link. False: damaged. */
static bool enter(struct mqx_stripe_guard *guard, int tree, uint32_t slot,
                  struct mqx_message *message, uint32_t *link)
{
    MQX_ASSERT(slot != 0);
    if (MQX_UNLIKELY(link == NULL || *link == slot)) {
        (void)damaged(guard->region, slot);
        return false;
    }
    message->due.child[tree][0] = 0;
    message->due.child[tree][1] = 0;
    mqx_guard_store32(guard, link, slot);
    return true;
}

/* A delayed message that may lack in the tree by MsgId enters it. */
static void enter_id(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot,
                     struct mqx_message *message)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(queue->due_ids != MQX_DUE_IDS_NONE);
    if ((message->flags & MQX_MSGF_DUE_ID) != 0) {
        return;
    }
    struct place place;
    find_place(guard->region, queue, BY_ID, slot, message, &place);
    if (enter(guard, BY_ID, slot, message, place.link)) {
        mqx_guard_store8(guard, &message->flags, message->flags | MQX_MSGF_DUE_ID);
    }
}

void mqx_due_index_insert(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot)
{
    const struct mqx_region *region = guard->region;
    struct mqx_message *message = mqx_message(region, slot);
    MQX_ASSERT(mqx_lock_held(region, &guard->stripe->lock));
    if (MQX_UNLIKELY(message == NULL)) {
        (void)damaged(region, slot);
        return;
    }
    MQX_ASSERT((message->flags & MQX_MSGF_DUE) != 0);
    struct place place;
    find_new_place(region, queue, slot, message, &place);
    if (!enter(guard, BY_TIME, slot, message, place.link)) {
        return;
    }
    const uint64_t finger =
        place.depth <= FINGER_DEPTH ? finger_at(place.depth, slot) : place.finger;
    if (finger != queue->due_finger) {
        mqx_guard_store64(guard, &queue->due_finger, finger);
    }
    if (queue->due_ids != MQX_DUE_IDS_NONE) {
        enter_id(guard, queue, slot, message);
    }
    if (queue->delayed == 0 || message->due.key_us < queue->next_due_us) {
        mqx_guard_store64(guard, &queue->next_due_us, message->due.key_us);
    }
    mqx_guard_store32(guard, &queue->delayed, queue->delayed + 1);
}

/* What becomes delayed meanwhile enters the tree by itself. */
bool mqx_due_index_make_ids(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                            struct mqx_cursor *cursor)
{
    uint32_t slot = 1;
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    if (queue->due_ids == MQX_DUE_IDS_NONE) {
        mqx_guard_store32(guard, &queue->due_ids, MQX_DUE_IDS_SOME);
        mqx_stripe_guard_commit(guard);
    }
    for (int i = 0; i < MQX_LOCKED_STEPS_MAX && slot != 0 && queue->delayed != 0 &&
                    queue->due_ids != MQX_DUE_IDS_ALL; i++) {
        slot = mqx_priority_index_next(guard->region, queue, cursor, false);
        struct mqx_message *message = slot != 0 ? mqx_message(guard->region, slot) : NULL;
        if (message != NULL && message->state == MQX_MSG_DELAYED) {
            enter_id(guard, queue, slot, message);
            mqx_stripe_guard_commit(guard);
        }
    }
    if (queue->due_ids != MQX_DUE_IDS_ALL && (slot == 0 || queue->delayed == 0)) {
        mqx_guard_store32(guard, &queue->due_ids, MQX_DUE_IDS_ALL);
        mqx_stripe_guard_commit(guard);
    }
    return queue->due_ids == MQX_DUE_IDS_ALL;
}

/* A leaf below takes the place of the node. False: damaged. */
static bool remove_from(struct mqx_stripe_guard *guard, struct mqx_object *queue, int tree,
                        uint32_t slot, struct mqx_message *message)
{
    const struct mqx_region *region = guard->region;
    const uint32_t *child = message->due.child[tree];
    struct place place;
    MQX_ASSERT(slot != 0);
    find_place(region, queue, tree, slot, message, &place);
    uint32_t *link = place.link;
    if (MQX_UNLIKELY(link == NULL || *link != slot)) {
        return false;
    }
    if (child[0] == 0 && child[1] == 0) {
        mqx_guard_store32(guard, link, 0);
        return true;
    }
    uint32_t *leaf_link = find_leaf(region, message, tree);
    struct mqx_message *leaf = leaf_link == NULL ? NULL : mqx_message(region, *leaf_link);
    if (MQX_UNLIKELY(leaf == NULL)) {
        return false;
    }
    if (tree == BY_TIME && *leaf_link == (uint32_t)queue->due_finger) {
        mqx_guard_store64(guard, &queue->due_finger, 0);
    }
    mqx_guard_store32(guard, link, *leaf_link);
    mqx_guard_store32(guard, leaf_link, 0);
    mqx_guard_store32(guard, &leaf->due.child[tree][0], child[0]);
    mqx_guard_store32(guard, &leaf->due.child[tree][1], child[1]);
    return true;
}

int mqx_due_index_remove(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot)
{
    struct mqx_message *message = mqx_message(guard->region, slot);
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    if (MQX_UNLIKELY(message == NULL || queue->delayed == 0)) {
        return damaged(guard->region, slot);
    }
    const bool has_id = (message->flags & MQX_MSGF_DUE_ID) != 0;
    if (slot == (uint32_t)queue->due_finger) {
        mqx_guard_store64(guard, &queue->due_finger, 0);
    }
    if (MQX_UNLIKELY(!remove_from(guard, queue, BY_TIME, slot, message) ||
                     (has_id && !remove_from(guard, queue, BY_ID, slot, message)))) {
        return damaged(guard->region, slot);
    }
    if (has_id) {
        mqx_guard_store8(guard, &message->flags, message->flags & (uint8_t)~MQX_MSGF_DUE_ID);
    }
    if (message->due.key_us == queue->next_due_us) {
        const struct mqx_message *first =
            mqx_message(guard->region, mqx_due_index_first(guard->region, queue));
        mqx_guard_store64(guard, &queue->next_due_us,
                          first != NULL ? first->due.key_us : UINT64_MAX);
    }
    mqx_guard_store32(guard, &queue->delayed, queue->delayed - 1);
    return MQX_OK;
}

uint32_t mqx_due_index_find(const struct mqx_region *region, const struct mqx_object *queue,
                            uint64_t tag)
{
    const struct key key = {tag, 0};
    uint32_t slot = queue->delayed != 0 && tag != 0 ? queue->due_root[BY_ID] : 0;
    MQX_ASSERT(region->base != NULL);
    for (uint32_t depth = 0; slot != 0 && depth <= WORD_BITS; depth++) {
        const struct mqx_message *node = mqx_message(region, slot);
        if (MQX_UNLIKELY(node == NULL)) {
            (void)damaged(region, slot);
            return 0;
        }
        if (node->tag[0] == tag) {
            return slot;
        }
        slot = depth < WORD_BITS ? node->due.child[BY_ID][digit(&key, depth)] : 0;
    }
    return 0;
}

/* ---- verification ---- */

struct check {
    const struct mqx_region *region;
    uint32_t object;
    int tree;
    uint32_t count;                    /* nodes visited */
    uint32_t ids;                      /* of those by time with MQX_MSGF_DUE_ID */
    uint64_t finger;
    bool finger_found;
    const struct mqx_message *first;
    struct { /* nodes to be visited, with the bits that their paths say */
        uint32_t slot, depth;
        struct key key;
    } stack[2 * DEPTH_MAX];
    uint32_t height;
};

static int unsound(const struct check *check, const char *what, uint64_t got)
{
    MQX_ASSERT(what != NULL);
    return mqx_fail(MQRC_OBJECT_DAMAGED, "queue slot %u, delayed messages: %s (%llu)",
                    check->object, what, (unsigned long long)got);
}

/* Do the first `depth` digits agree? */
static bool agrees(const struct key *a, const struct key *b, uint32_t depth)
{
    bool same = true;
    MQX_ASSERT(depth <= DEPTH_MAX);
    for (uint32_t d = 0; d < depth && same; d++) {
        same = digit(a, d) == digit(b, d);
    }
    return same;
}

/* One node off the stack; its children onto it. */
static int check_node(struct check *check, uint32_t most)
{
    MQX_ASSERT(check->height > 0);
    check->height -= 1;
    const uint32_t slot = check->stack[check->height].slot;
    const uint32_t depth = check->stack[check->height].depth;
    const struct key path = check->stack[check->height].key;
    const struct mqx_message *message = mqx_message(check->region, slot);
    if (message == NULL || message->state != MQX_MSG_DELAYED ||
        (message->flags & MQX_MSGF_DUE) == 0 || message->object != check->object) {
        return unsound(check, "a node that is no delayed message of the queue", slot);
    }
    const struct key key = key_of(message, check->tree);
    if (!agrees(&key, &path, depth) || check->count == most) {
        return unsound(check, "a node in the wrong place, or too many", slot);
    }
    check->count += 1;
    if (check->tree == BY_TIME) {
        check->ids += (message->flags & MQX_MSGF_DUE_ID) != 0;
        check->finger_found |= check->finger == ((uint64_t)depth << 32 | slot);
    }
    if (check->first == NULL || is_before(message, check->first)) {
        check->first = message;
    }
    for (uint32_t side = 0; side < 2; side++) {
        const uint32_t child = message->due.child[check->tree][side];
        if (child == 0) {
            continue;
        }
        if (depth == DEPTH_MAX || check->height == MQX_ARRAY_COUNT(check->stack)) {
            return unsound(check, "a path that is too long", child);
        }
        struct key below = key;
        if (digit(&key, depth) != side && depth < WORD_BITS) {
            below.first ^= UINT64_C(1) << (WORD_BITS - 1 - depth);
        } else if (digit(&key, depth) != side) {
            below.number ^= UINT64_C(1) << (depth - WORD_BITS);
        }
        check->stack[check->height].slot = child;
        check->stack[check->height].depth = depth + 1;
        check->stack[check->height].key = below;
        check->height += 1;
    }
    return MQX_OK;
}

int mqx_due_index_check(const struct mqx_region *region, const struct mqx_object *queue)
{
    const unsigned char *objects = region->area[MQX_AREA_OBJECTS];
    struct check check = {
        .region = region,
        .object = (uint32_t)((size_t)((const unsigned char *)queue - objects) / sizeof *queue),
        .finger = queue->due_finger,
    };
    int status = MQX_OK;
    MQX_ASSERT(mqx_object(region, check.object) == queue);
    for (check.tree = 0; check.tree < TREES && status == MQX_OK; check.tree++) {
        check.count = 0;
        check.height = queue->due_root[check.tree] != 0;
        check.stack[0].slot = queue->due_root[check.tree];
        check.stack[0].depth = 0;
        while (check.height > 0 && status == MQX_OK) {
            status = check_node(&check, queue->delayed);
        }
        const uint32_t count = check.tree == BY_TIME ? queue->delayed : check.ids;
        if (status == MQX_OK && check.count != count) {
            status = unsound(&check, "the number of messages is not what the queue says",
                             check.count);
        }
    }
    if (status == MQX_OK && check.finger != 0 && !check.finger_found) {
        status = unsound(&check, "the place of the last insertion", check.finger);
    }
    if (status == MQX_OK && (queue->due_ids > MQX_DUE_IDS_ALL ||
                             (queue->due_ids == MQX_DUE_IDS_ALL && check.ids != queue->delayed) ||
                             (queue->due_ids == MQX_DUE_IDS_NONE && check.ids != 0))) {
        status = unsound(&check, "messages in the tree by MsgId", check.ids);
    }
    if (status == MQX_OK && queue->delayed != 0 &&
        check.first->due.key_us != queue->next_due_us) {
        status = unsound(&check, "the next due time is another", queue->next_due_us);
    }
    return status;
}
