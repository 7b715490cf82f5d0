/*
 * id_index.c - see id_index.h for shape, terms, invariants and locks.
 *
 * Bounds: no chain or ring is longer than the number of message entries that have memory
 * (limit_of); every loop ends there, on any damage.
 *
 * Fresh memory (lock.h) here: key[k] of a message that is not linked, buckets from bucket_count on.
 * The first is filled by plain stores before the undoable stores that link it.
 */
#include "queue/id_index.h"

#include "base/assert.h"

#include <string.h>

enum { BITS_OF_FIRST = 6, STEPS_PER_CALL = MQX_LOCKED_STEPS_MAX };
MQX_STATIC_ASSERT(1 << BITS_OF_FIRST == MQX_ID_INDEX_BUCKETS, "first block");
MQX_STATIC_ASSERT(MQX_ID_INDEX_BUCKETS << (MQX_ID_INDEX_SEGMENTS - 1) == MQX_ID_INDEX_FAR,
                  "blocks");
MQX_STATIC_ASSERT(MQX_ID_INDEX_FAR % MQX_ID_INDEX_BLOCK_BUCKETS == 0, "blocks of the directory");
MQX_STATIC_ASSERT(MQX_ID_INDEX_BLOCK_BUCKETS * sizeof(uint32_t) <= MQX_BLOCK_MAX, "largest block");

struct index { /* one index at work */
    const struct mqx_region *region;
    const struct mqx_object *queue;
    struct mqx_id_index *head;
    int k;
};

/* ---- hashes and buckets ---- */

static inline uint64_t order_of(uint64_t tag, uint32_t placement)
{
    MQX_ASSERT(placement <= UINT8_MAX); /* of a message: one byte */
    uint64_t x = tag + (placement + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

static inline uint32_t reversed(uint32_t x)
{
    x = __builtin_bswap32(x);
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    return (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
}

static inline uint32_t log2_of(uint32_t x)
{
    MQX_ASSERT(x != 0);
    return 31u - (uint32_t)__builtin_clz(x);
}

/* Linear hashing: the largest number of low bits that give a bucket that exists. */
static inline uint32_t bucket_of(uint64_t order, uint32_t bucket_count)
{
    MQX_ASSERT(bucket_count != 0);
    const uint32_t whole = 1u << log2_of(bucket_count);
    const uint32_t number = reversed((uint32_t)(order >> 32));
    const uint32_t bucket = number & (2 * whole - 1);
    MQX_ASSERT(whole <= bucket_count);
    return bucket < bucket_count ? bucket : bucket & (whole - 1);
}

static inline uint64_t order_at(const struct index *index, const struct mqx_message *message)
{
    return order_of(message->tag[index->k], message->placement);
}

static inline bool same_key(const struct index *index, const struct mqx_message *a,
                            const struct mqx_message *b)
{
    return a->tag[index->k] == b->tag[index->k] && a->placement == b->placement;
}

static inline uint8_t flag_of(int k)
{
    MQX_ASSERT(k >= 0);
    MQX_ASSERT(k < MQX_INDEX_COUNT);
    return (uint8_t)(MQX_MSGF_KEY << k);
}

static uint64_t limit_of(const struct mqx_region *region)
{
    return mqx_area_items(region, MQX_AREA_MESSAGES);
}

/* The directory's word for a block of 16,384 buckets; NULL: damaged. */
static uint32_t *directory_entry(const struct mqx_region *region, const struct mqx_id_index *head,
                                 uint32_t block)
{
    uint32_t *directory =
        mqx_cells_span(region, head->directory, MQX_ID_INDEX_DIRECTORY * sizeof(uint32_t));
    return directory == NULL || block >= MQX_ID_INDEX_DIRECTORY ? NULL : &directory[block];
}

/* The bucket's word; NULL: damaged. */
static uint32_t *bucket_at(const struct mqx_region *region, const struct mqx_id_index *head,
                           uint32_t bucket)
{
    uint32_t count = MQX_ID_INDEX_BUCKETS, within = bucket, cell = head->segment[0];
    MQX_ASSERT(head != NULL);
    if (bucket >= MQX_ID_INDEX_FAR) {
        const uint32_t far = bucket - MQX_ID_INDEX_FAR;
        const uint32_t *entry = directory_entry(region, head, far / MQX_ID_INDEX_BLOCK_BUCKETS);
        count = MQX_ID_INDEX_BLOCK_BUCKETS;
        within = far % MQX_ID_INDEX_BLOCK_BUCKETS;
        cell = entry == NULL ? 0 : *entry;
    } else if (bucket >= MQX_ID_INDEX_BUCKETS) {
        const uint32_t log = log2_of(bucket);
        count = 1u << log;
        within = bucket - count;
        cell = head->segment[log - BITS_OF_FIRST + 1];
    }
    uint32_t *block = mqx_cells_span(region, cell, count * sizeof(uint32_t));
    MQX_ASSERT(within < count);
    return block == NULL ? NULL : &block[within];
}

/* ---- headers ---- */

/* A number of buckets that whole blocks make. */
static bool is_capacity(uint32_t capacity)
{
    return capacity >= MQX_ID_INDEX_BUCKETS && capacity <= MQX_ID_INDEX_MAX &&
           (capacity <= MQX_ID_INDEX_FAR ? (capacity & (capacity - 1)) == 0
                                         : capacity % MQX_ID_INDEX_BLOCK_BUCKETS == 0);
}

static bool head_is_sound(const struct mqx_id_index *head)
{
    MQX_ASSERT(head != NULL);
    return head->state >= MQX_ID_INDEX_BUILDING && head->state <= MQX_ID_INDEX_DROPPING &&
           head->bucket_count >= MQX_ID_INDEX_BUCKETS && head->bucket_count <= MQX_ID_INDEX_MAX &&
           (head->capacity >= head->bucket_count || head->state == MQX_ID_INDEX_DROPPING) &&
           is_capacity(head->capacity);
}

/* False when the index does not exist, or is damaged. */
static bool open_any(const struct mqx_region *region, const struct mqx_object *queue, int k,
                     struct index *out)
{
    MQX_ASSERT(k >= 0);
    MQX_ASSERT(k < MQX_INDEX_COUNT);
    const uint32_t cell = queue->index[k];
    if (cell == 0) {
        return false;
    }
    struct mqx_id_index *head = mqx_cells_span(region, cell, sizeof *head);
    if (head == NULL || !head_is_sound(head)) {
        (void)mqx_region_damage(region, "the header of an id index", cell);
        return false;
    }
    *out = (struct index){region, queue, head, k};
    return true;
}

/* The same for one that is in use. */
static bool open_index(const struct mqx_region *region, const struct mqx_object *queue, int k,
                       struct index *out)
{
    return open_any(region, queue, k, out) && out->head->state != MQX_ID_INDEX_DROPPING;
}

bool mqx_id_index_ready(const struct mqx_region *region, const struct mqx_object *queue, int k)
{
    struct index index;
    MQX_ASSERT(queue != NULL);
    return open_any(region, queue, k, &index) && index.head->state == MQX_ID_INDEX_COMPLETE;
}

static inline void put_counts(struct mqx_stripe_guard *guard, struct mqx_id_index *head,
                              uint32_t leaders, uint32_t linked)
{
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    mqx_guard_store_pair(guard, &head->leaders, leaders, linked);
}

/* ---- chains ---- */

struct spot { /* where the leader of a key is in its chain, or would be */
    uint32_t *from;   /* the word that names `here`: a bucket, or the chain word of a leader */
    uint32_t here;    /* the key's leader, or the leader that would follow it */
    bool found;       /* `here` is the key's leader */
};

static bool find_chain_position(const struct index *index, uint64_t tag, uint32_t placement,
                                struct spot *out)
{
    const uint64_t order = order_of(tag, placement), limit = limit_of(index->region);
    MQX_ASSERT(tag != 0);
    uint32_t *from = bucket_at(index->region, index->head,
                               bucket_of(order, index->head->bucket_count));
    for (uint64_t steps = 0; from != NULL && steps <= limit; steps++) {
        *out = (struct spot){from, *from, false};
        if (*from == 0) {
            return true;
        }
        struct mqx_message *message = mqx_message(index->region, *from);
        if (message == NULL) {
            break;
        }
        const uint64_t other = order_at(index, message);
        out->found = message->tag[index->k] == tag && message->placement == placement;
        if (out->found || other > order) {
            return true;
        }
        from = &message->key[index->k].chain;
    }
    (void)mqx_region_damage(index->region, "a bucket of an id index, order", order);
    return false;
}

/* One bucket more: the end of the chain of the bucket that is split moves there. */
static void split(struct mqx_stripe_guard *guard, const struct index *index)
{
    struct mqx_id_index *head = index->head;
    const uint32_t fresh = head->bucket_count, log = log2_of(fresh);
    MQX_ASSERT(fresh < head->capacity);
    const uint64_t bit = 1ull << (63 - log), limit = limit_of(index->region);
    uint32_t *to = bucket_at(index->region, head, fresh);
    uint32_t *from = bucket_at(index->region, head, fresh - (1u << log));
    for (uint64_t steps = 0; to != NULL && from != NULL && steps <= limit; steps++) {
        struct mqx_message *message = mqx_message(index->region, *from);
        if (*from != 0 && message == NULL) {
            break;
        }
        if (message == NULL || (order_at(index, message) & bit) != 0) {
            mqx_guard_store32(guard, to, *from);
            if (message != NULL) {
                mqx_guard_store32(guard, from, 0);
            }
            mqx_guard_store32(guard, &head->bucket_count, fresh + 1);
            return;
        }
        from = &message->key[index->k].chain;
    }
    (void)mqx_region_damage(guard->region, "a bucket of an id index to be split", fresh);
}

/* ---- rings ---- */

static bool is_linked(const struct index *index, const struct mqx_message *message)
{
    MQX_ASSERT(message != NULL);
    return (message->flags & flag_of(index->k)) != 0;
}

/* The slot after which `message` belongs in the ring of `leader`: neither the first nor the last.
 * 0: damaged. */
static uint32_t find_neighbour(const struct index *index, uint32_t leader, uint32_t slot,
                               const struct mqx_message *message)
{
    const struct mqx_region *region = index->region;
    const uint64_t limit = limit_of(region);
    uint32_t up = leader, down = leader, near_slot = slot; /* the three searches */
    MQX_ASSERT(leader != 0);
    for (uint64_t steps = 0; steps <= limit; steps++) {
        const struct mqx_message *low = mqx_message(region, up);
        const struct mqx_message *high = mqx_message(region, down);
        if (low == NULL || high == NULL) {
            break;
        }
        const uint32_t next = low->key[index->k].next, prev = high->key[index->k].prev;
        const struct mqx_message *above = mqx_message(region, next);
        const struct mqx_message *below = mqx_message(region, prev);
        if (above == NULL || below == NULL) {
            break;
        }
        if (above->position > message->position) {
            return up;
        }
        if (below->position < message->position) {
            return prev;
        }
        up = next;
        down = prev;
        near_slot =
            near_slot == 0 ? 0 : mqx_priority_index_before(region, index->queue, near_slot);
        const struct mqx_message *near = mqx_message(region, near_slot);
        if (near != NULL && is_linked(index, near) && same_key(index, near, message)) {
            return near_slot;
        }
    }
    (void)mqx_region_damage(index->region, "a ring of an id index", leader);
    return 0;
}

/* `slot` becomes the leader of a ring, in front of the present one. */
static void set_leader(struct mqx_stripe_guard *guard, const struct index *index,
                       const struct spot *spot, uint32_t slot, struct mqx_message *message)
{
    const int k = index->k;
    struct mqx_message *leader = mqx_message(index->region, spot->here);
    struct mqx_message *tail = mqx_message(index->region, leader->key[k].prev);
    MQX_ASSERT(spot->found);
    MQX_ASSERT(tail != NULL); /* join_ring() has validated it */
    message->key[k].next = spot->here;
    message->key[k].prev = leader->key[k].prev;
    message->key[k].chain = leader->key[k].chain;
    mqx_guard_store32(guard, &tail->key[k].next, slot);
    mqx_guard_store32(guard, &leader->key[k].prev, slot);
    mqx_guard_store32(guard, &leader->key[k].chain, MQX_NOT_LEADER);
    mqx_guard_store32(guard, spot->from, slot);
}

/* Puts `slot` into the ring whose leader has been found; false: damaged, nothing done. */
static bool join_ring(struct mqx_stripe_guard *guard, const struct index *index,
                      const struct spot *spot, uint32_t slot, struct mqx_message *message)
{
    const struct mqx_region *region = index->region;
    const int k = index->k;
    const struct mqx_message *leader = mqx_message(region, spot->here);
    uint32_t before = leader->key[k].prev;
    MQX_ASSERT(spot->found);
    MQX_ASSERT(slot != 0);
    const struct mqx_message *tail = mqx_message(region, before);
    if (tail == NULL || tail->key[k].next != spot->here) {
        (void)mqx_region_damage(guard->region, "the end of a ring of an id index", before);
        return false;
    }
    if (message->position < leader->position) {
        set_leader(guard, index, spot, slot, message);
        return true;
    }
    if (message->position < tail->position) {
        before = find_neighbour(index, spot->here, slot, message);
    }
    struct mqx_message *prev = mqx_message(region, before);
    struct mqx_message *next = prev == NULL ? NULL : mqx_message(region, prev->key[k].next);
    if (next == NULL) {
        (void)mqx_region_damage(guard->region, "a neighbour in a ring of an id index", before);
        return false;
    }
    message->key[k].next = prev->key[k].next;
    message->key[k].prev = before;
    message->key[k].chain = MQX_NOT_LEADER;
    mqx_guard_store32(guard, &prev->key[k].next, slot);
    mqx_guard_store32(guard, &next->key[k].prev, slot);
    return true;
}

/* ---- link, unlink ---- */

/* False: damaged. */
static bool link_one(struct mqx_stripe_guard *guard, const struct index *index, uint32_t slot,
                     struct mqx_message *message)
{
    struct mqx_id_index *head = index->head;
    const int k = index->k;
    struct spot spot;
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    if (is_linked(index, message) || message->tag[k] == 0) {
        return true;
    }
    if (!find_chain_position(index, message->tag[k], message->placement, &spot)) {
        return false;
    }
    if (spot.found) {
        if (!join_ring(guard, index, &spot, slot, message)) {
            return false;
        }
        put_counts(guard, head, head->leaders, head->linked + 1);
    } else {
        message->key[k].next = slot;
        message->key[k].prev = slot;
        message->key[k].chain = spot.here;
        mqx_guard_store32(guard, spot.from, slot);
        put_counts(guard, head, head->leaders + 1, head->linked + 1);
        if (head->leaders > head->bucket_count && head->bucket_count < head->capacity) {
            split(guard, index);
        }
    }
    mqx_guard_store8(guard, &message->flags, message->flags | flag_of(k));
    return true;
}

void mqx_id_index_link_all(struct mqx_stripe_guard *guard, struct mqx_object *queue, uint32_t slot)
{
    struct mqx_message *message = mqx_message(guard->region, slot);
    struct index index;
    if (message == NULL) {
        (void)mqx_region_damage(guard->region, "a message to be linked by id", slot);
        return;
    }
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        if (open_index(guard->region, queue, k, &index)) {
            (void)link_one(guard, &index, slot, message);
        }
    }
}

/* Takes a leader out; the next of its ring, if there is one, becomes the leader. */
static bool unlink_leader(struct mqx_stripe_guard *guard, const struct index *index, uint32_t slot,
                          const struct mqx_message *message)
{
    const int k = index->k;
    const uint32_t heir = message->key[k].next;
    struct mqx_message *next = mqx_message(index->region, heir);
    struct mqx_message *tail = mqx_message(index->region, message->key[k].prev);
    struct spot spot;
    MQX_ASSERT(message->key[k].chain != MQX_NOT_LEADER);
    if (!find_chain_position(index, message->tag[k], message->placement, &spot)) {
        return false;
    }
    if (spot.here != slot || next == NULL || tail == NULL) {
        (void)mqx_region_damage(guard->region, "a leader of an id index", slot);
        return false;
    }
    if (heir == slot) {
        mqx_guard_store32(guard, spot.from, message->key[k].chain);
        return true;
    }
    mqx_guard_store32(guard, &next->key[k].prev, message->key[k].prev);
    mqx_guard_store32(guard, &next->key[k].chain, message->key[k].chain);
    mqx_guard_store32(guard, &tail->key[k].next, heir);
    mqx_guard_store32(guard, spot.from, heir);
    return true;
}

static bool unlink_follower(struct mqx_stripe_guard *guard, const struct index *index,
                            uint32_t slot, const struct mqx_message *message)
{
    const int k = index->k;
    struct mqx_message *next = mqx_message(index->region, message->key[k].next);
    struct mqx_message *prev = mqx_message(index->region, message->key[k].prev);
    MQX_ASSERT(message->key[k].chain == MQX_NOT_LEADER);
    if (next == NULL || prev == NULL || next->key[k].prev != slot || prev->key[k].next != slot) {
        (void)mqx_region_damage(guard->region, "a message in a ring of an id index", slot);
        return false;
    }
    mqx_guard_store32(guard, &prev->key[k].next, message->key[k].next);
    mqx_guard_store32(guard, &next->key[k].prev, message->key[k].prev);
    return true;
}

static void unlink_one(struct mqx_stripe_guard *guard, const struct index *index, uint32_t slot,
                       struct mqx_message *message)
{
    struct mqx_id_index *head = index->head;
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    if (!is_linked(index, message)) {
        return;
    }
    const bool leader = message->key[index->k].chain != MQX_NOT_LEADER;
    const bool alone = leader && message->key[index->k].next == slot;
    if (!(leader ? unlink_leader(guard, index, slot, message)
                 : unlink_follower(guard, index, slot, message))) {
        return;
    }
    put_counts(guard, head, head->leaders - alone, head->linked - 1);
    mqx_guard_store8(guard, &message->flags, message->flags & (uint8_t)~flag_of(index->k));
}

void mqx_id_index_unlink_all(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                             uint32_t slot)
{
    struct mqx_message *message = mqx_message(guard->region, slot);
    struct index index;
    if (message == NULL) {
        (void)mqx_region_damage(guard->region, "a message to be unlinked by id", slot);
        return;
    }
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        if (open_index(guard->region, queue, k, &index)) {
            unlink_one(guard, &index, slot, message);
        }
    }
}

/* ---- memory ahead ---- */

/* Memory for the next block of buckets. Left open. */
static int add_block(struct mqx_stripe_guard *guard, const struct index *index)
{
    struct mqx_id_index *head = index->head;
    const uint32_t capacity = head->capacity;
    const bool far = capacity >= MQX_ID_INDEX_FAR;
    const uint32_t more = far ? MQX_ID_INDEX_BLOCK_BUCKETS : capacity;
    uint32_t cell, directory;
    MQX_ASSERT(capacity < MQX_ID_INDEX_MAX);
    if (far && head->directory == 0) {
        const uint32_t bytes = MQX_ID_INDEX_DIRECTORY * sizeof(uint32_t);
        int status = mqx_cells_take(guard, mqx_class_for(bytes), &directory);
        if (status != MQX_OK) {
            return status;
        }
        mqx_guard_store32(guard, &head->directory, directory);
    }
    int status = mqx_cells_take(guard, mqx_class_for(more * (uint32_t)sizeof(uint32_t)), &cell);
    if (status != MQX_OK) {
        return status;
    }
    uint32_t *entry =
        far ? directory_entry(index->region, head,
                              (capacity - MQX_ID_INDEX_FAR) / MQX_ID_INDEX_BLOCK_BUCKETS)
            : &head->segment[log2_of(capacity) - BITS_OF_FIRST + 1];
    if (entry == NULL) {
        return mqx_region_damage(guard->region, "the directory of an id index", head->directory);
    }
    mqx_guard_store32(guard, entry, cell);
    mqx_guard_store32(guard, &head->capacity, capacity + more);
    return MQX_OK;
}

/* Is there room for the leaders that the queue's messages and `more` new ones could make? */
static bool has_room(const struct index *index, uint32_t more)
{
    const struct mqx_id_index *head = index->head;
    MQX_ASSERT(more <= 1);
    const uint32_t present = index->queue->present;
    const uint64_t unlinked = present > head->linked ? present - head->linked : 0;
    return head->capacity >= head->leaders + unlinked + more || head->capacity == MQX_ID_INDEX_MAX;
}

int mqx_id_index_reserve_all(struct mqx_stripe_guard *guard, struct mqx_object *queue)
{
    struct index index;
    MQX_ASSERT(mqx_id_index_any(queue));
    for (int k = 0; k < MQX_INDEX_COUNT; k++) {
        if (open_index(guard->region, queue, k, &index) && !has_room(&index, 1)) {
            int status = add_block(guard, &index);
            if (status != MQX_OK) {
                return status;
            }
        }
    }
    return MQX_OK;
}

/* ---- find ---- */

/* The leader of a key at the highest priority below `end`. */
static uint32_t first_below(const struct index *index, uint64_t tag, uint32_t end)
{
    struct spot spot;
    MQX_ASSERT(end <= MQX_PRIORITY_COUNT);
    for (uint32_t p = end; p-- > 0;) {
        if ((index->queue->available_mask >> p & 1) == 0) {
            continue;
        }
        if (!find_chain_position(index, tag, p, &spot)) {
            return 0;
        }
        if (spot.found) {
            return spot.here;
        }
    }
    return 0;
}

uint32_t mqx_id_index_find(const struct mqx_region *region, const struct mqx_object *queue, int k,
                           uint64_t tag, uint32_t after)
{
    struct index index;
    MQX_ASSERT(k >= 0);
    MQX_ASSERT(k < MQX_INDEX_COUNT);
    if (!open_index(region, queue, k, &index) || tag == 0) {
        return 0;
    }
    if (after == 0) {
        return first_below(&index, tag, MQX_PRIORITY_COUNT);
    }
    const struct mqx_message *message = mqx_message(region, after);
    if (message == NULL || !is_linked(&index, message) || message->tag[k] != tag ||
        message->placement >= MQX_PRIORITY_COUNT) {
        (void)mqx_region_damage(region, "the message that a search goes on from", after);
        return 0;
    }
    const uint32_t next = message->key[k].next;
    const struct mqx_message *following = mqx_message(region, next);
    if (following == NULL) {
        (void)mqx_region_damage(region, "the next message of a ring", next);
        return 0;
    }
    return following->position > message->position
               ? next
               : first_below(&index, tag, message->placement);
}

/* ---- build ---- */

/* One micro-transaction: an empty index. */
static int create(struct mqx_stripe_guard *guard, struct mqx_object *queue, int k)
{
    uint32_t cell, buckets;
    MQX_ASSERT(queue->index[k] == 0);
    int status = mqx_cells_take(guard, mqx_class_for(sizeof(struct mqx_id_index)), &cell);
    if (status == MQX_OK) {
        status =
            mqx_cells_take(guard, mqx_class_for(MQX_ID_INDEX_BUCKETS * sizeof(uint32_t)), &buckets);
    }
    if (status != MQX_OK) {
        return status;
    }
    struct mqx_id_index *head = mqx_cells_span(guard->region, cell, sizeof *head);
    uint32_t *block = mqx_cells_span(guard->region, buckets, MQX_ID_INDEX_BUCKETS * sizeof *block);
    if (head == NULL || block == NULL) {
        return mqx_region_damage(guard->region, "fresh cells for an id index", cell);
    }
    memset(block, 0, MQX_ID_INDEX_BUCKETS * sizeof *block);
    *head = (struct mqx_id_index){
        .state = MQX_ID_INDEX_BUILDING,
        .bucket_count = MQX_ID_INDEX_BUCKETS,
        .capacity = MQX_ID_INDEX_BUCKETS,
        .segment = {buckets},
    };
    mqx_guard_store32(guard, &queue->index[k], cell);
    mqx_stripe_guard_commit(guard);
    return MQX_OK;
}

static void put_cursor(struct mqx_stripe_guard *guard, struct mqx_cursor *at,
                       const struct mqx_cursor *from)
{
    MQX_ASSERT(from->started != 0);
    mqx_guard_store32(guard, &at->started, from->started);
    mqx_guard_store32(guard, &at->placement, from->placement);
    mqx_guard_store64(guard, &at->position, from->position);
    mqx_guard_store32(guard, &at->reset_count, from->reset_count);
    mqx_guard_store32(guard, &at->message, from->message);
    mqx_guard_store64(guard, &at->number, from->number);
}

/* One step, left open: memory for one more leader, or one message linked, or *out_done. */
static int build_step(struct mqx_stripe_guard *guard, const struct index *index, bool *out_done)
{
    struct mqx_id_index *head = index->head;
    struct mqx_cursor cursor = head->built;
    MQX_ASSERT(!*out_done);
    if (head->capacity <= head->leaders && head->capacity < MQX_ID_INDEX_MAX) {
        return add_block(guard, index);
    }
    (void)mqx_region_damaged(); /* of an earlier call, of another region perhaps */
    const uint32_t slot = mqx_priority_index_next(index->region, index->queue, &cursor, true);
    if (slot == 0) {
        if (mqx_region_damaged()) {
            return mqx_region_damage(guard->region, "a queue to be indexed", index->queue->present);
        }
        if (!has_room(index, 0)) {
            return add_block(guard, index);
        }
        mqx_guard_store32(guard, &head->state, MQX_ID_INDEX_COMPLETE);
        *out_done = true;
        return MQX_OK;
    }
    if (!link_one(guard, index, slot, mqx_message(index->region, slot))) {
        return mqx_region_damage(guard->region, "an id index that is being built", slot);
    }
    put_cursor(guard, &head->built, &cursor);
    return MQX_OK;
}

int mqx_id_index_build(struct mqx_stripe_guard *guard, struct mqx_object *queue, int k,
                       bool *out_done)
{
    struct index index;
    *out_done = false;
    MQX_ASSERT(mqx_lock_held(guard->region, &guard->stripe->lock));
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    int status = queue->index[k] == 0 ? create(guard, queue, k) : MQX_OK;
    if (status == MQX_OK && !open_any(guard->region, queue, k, &index)) {
        status = mqx_region_damage(guard->region, "an id index to be built", queue->index[k]);
    }
    if (status == MQX_OK && index.head->state == MQX_ID_INDEX_DROPPING) {
        status = mqx_fail(MQRC_Q_DELETED, "%.48s is being deleted", queue->name);
    }
    if (status == MQX_OK) {
        *out_done = index.head->state == MQX_ID_INDEX_COMPLETE;
    }
    for (int i = 0; i < STEPS_PER_CALL && status == MQX_OK && !*out_done; i++) {
        status = build_step(guard, &index, out_done);
        if (status == MQX_OK) {
            mqx_stripe_guard_commit(guard);
        }
    }
    if (status != MQX_OK && status != MQX_NEED_CELLS) {
        mqx_stripe_guard_rollback(guard);
    }
    return status;
}

/* ---- drop ---- */

/* Gives a block back, unless it lies outside the arena. */
static void give_block(struct mqx_stripe_guard *guard, uint32_t cell, uint32_t bytes)
{
    MQX_ASSERT(bytes <= MQX_BLOCK_MAX);
    if (mqx_cells_span(guard->region, cell, bytes) == NULL) {
        (void)mqx_region_damage(guard->region, "cells of an id index", cell);
        return;
    }
    mqx_cells_give(guard, mqx_class_for(bytes), cell);
}

/* One micro-transaction: frees the last block; true when the index is gone with it. */
static bool drop_block(struct mqx_stripe_guard *guard, struct mqx_object *queue,
                       const struct index *index)
{
    struct mqx_id_index *head = index->head;
    const uint32_t word = sizeof(uint32_t), capacity = head->capacity;
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    if (capacity > MQX_ID_INDEX_FAR) {
        const uint32_t fewer = capacity - MQX_ID_INDEX_BLOCK_BUCKETS;
        const uint32_t *entry = directory_entry(
            index->region, head, (fewer - MQX_ID_INDEX_FAR) / MQX_ID_INDEX_BLOCK_BUCKETS);
        give_block(guard, entry == NULL ? 0 : *entry, MQX_ID_INDEX_BLOCK_BUCKETS * word);
        mqx_guard_store32(guard, &head->capacity, fewer);
    } else if (capacity > MQX_ID_INDEX_BUCKETS) {
        const uint32_t log = log2_of(capacity - 1);
        give_block(guard, head->segment[log - BITS_OF_FIRST + 1], (1u << log) * word);
        mqx_guard_store32(guard, &head->capacity, 1u << log);
    } else {
        if (head->directory != 0) {
            give_block(guard, head->directory, MQX_ID_INDEX_DIRECTORY * word);
        }
        give_block(guard, head->segment[0], MQX_ID_INDEX_BUCKETS * word);
        give_block(guard, queue->index[index->k], sizeof *head);
        mqx_guard_store32(guard, &queue->index[index->k], 0);
    }
    mqx_stripe_guard_commit(guard);
    return queue->index[index->k] == 0;
}

void mqx_id_index_drop(struct mqx_stripe_guard *guard, struct mqx_object *queue, int k,
                       bool *out_done)
{
    struct index index;
    *out_done = true;
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    if (!open_any(guard->region, queue, k, &index)) {
        if (queue->index[k] != 0) { /* damaged: nothing of it can be used */
            mqx_guard_store32(guard, &queue->index[k], 0);
            mqx_stripe_guard_commit(guard);
        }
        return;
    }
    if (index.head->state != MQX_ID_INDEX_DROPPING) {
        mqx_guard_store32(guard, &index.head->state, MQX_ID_INDEX_DROPPING);
        mqx_stripe_guard_commit(guard);
    }
    *out_done = false;
    for (int i = 0; i < STEPS_PER_CALL && !*out_done; i++) {
        *out_done = drop_block(guard, queue, &index);
    }
}

/* ---- check ---- */

struct tally {
    uint64_t leaders, linked;
};

static int unsound(const struct index *index, const char *what, uint64_t item)
{
    MQX_ASSERT(index->queue != NULL);
    return mqx_fail(MQRC_OBJECT_DAMAGED, "%.48s, index %d: %s (%llu)", index->queue->name,
                    index->k, what, (unsigned long long)item);
}

static int check_ring(const struct index *index, uint32_t object, uint32_t leader,
                      struct tally *tally)
{
    const int k = index->k;
    const struct mqx_message *first = mqx_message(index->region, leader);
    const struct mqx_message *message = first;
    uint32_t slot = leader;
    MQX_ASSERT(first != NULL);
    do {
        const uint32_t next = message->key[k].next;
        const struct mqx_message *after = mqx_message(index->region, next);
        if (!is_linked(index, message) || message->state != MQX_MSG_AVAILABLE ||
            message->object != object || message->tag[k] == 0 || !same_key(index, message, first)) {
            return unsound(index, "a linked message is not available, or has another key", slot);
        }
        if (after == NULL || after->key[k].prev != slot) {
            return unsound(index, "a ring is broken behind a message", slot);
        }
        if ((message->key[k].chain != MQX_NOT_LEADER) != (slot == leader)) {
            return unsound(index, "a follower in a ring is marked as its leader", slot);
        }
        if (next != leader && after->position <= message->position) {
            return unsound(index, "a ring is out of order behind a message", slot);
        }
        tally->linked += 1;
        slot = next;
        message = after;
    } while (slot != leader && tally->linked <= index->head->linked);
    return MQX_OK;
}

static int check_bucket(const struct index *index, uint32_t object, uint32_t bucket,
                        struct tally *tally)
{
    const uint32_t *word = bucket_at(index->region, index->head, bucket);
    uint64_t last = 0;
    MQX_ASSERT(bucket < index->head->bucket_count);
    if (word == NULL) {
        return unsound(index, "a bucket that is not there", bucket);
    }
    for (uint32_t slot = *word; slot != 0;) {
        const struct mqx_message *message = mqx_message(index->region, slot);
        if (message == NULL || tally->leaders >= index->head->leaders) {
            return unsound(index, "a chain with a bad or a surplus leader", slot);
        }
        const uint64_t order = order_at(index, message);
        struct spot spot;
        if (bucket_of(order, index->head->bucket_count) != bucket || order < last) {
            return unsound(index, "a leader in the wrong bucket or order", slot);
        }
        if (!find_chain_position(index, message->tag[index->k], message->placement, &spot) ||
            !spot.found || spot.here != slot) {
            return unsound(index, "a key with two leaders", slot);
        }
        tally->leaders += 1;
        int status = check_ring(index, object, slot, tally);
        if (status != MQX_OK) {
            return status;
        }
        last = order;
        slot = message->key[index->k].chain;
    }
    return MQX_OK;
}

/* The flags of the queue's messages agree with what the rings hold. */
static int check_flags(const struct index *index)
{
    const bool complete = index->head->state == MQX_ID_INDEX_COMPLETE;
    struct mqx_cursor cursor = {0};
    uint64_t linked = 0;
    for (uint32_t slot;
         (slot = mqx_priority_index_next(index->region, index->queue, &cursor, false)) != 0;) {
        const struct mqx_message *message = mqx_message(index->region, slot);
        linked += message->state == MQX_MSG_AVAILABLE && is_linked(index, message);
        if (complete && message->state == MQX_MSG_AVAILABLE && message->tag[index->k] != 0 &&
            !is_linked(index, message)) {
            return unsound(index, "an available message is not linked", slot);
        }
    }
    return linked == index->head->linked
               ? MQX_OK
               : unsound(index, "the number of messages marked as linked", linked);
}

int mqx_id_index_check(const struct mqx_region *region, const struct mqx_object *queue, int k)
{
    const unsigned char *first = region->area[MQX_AREA_OBJECTS];
    const uint32_t object =
        (uint32_t)((size_t)((const unsigned char *)queue - first) / sizeof *queue);
    struct tally tally = {0};
    struct index index = {region, queue, NULL, k};
    MQX_ASSERT(mqx_object(region, object) == queue);
    if (queue->index[k] == 0) {
        return MQX_OK;
    }
    if (!open_any(region, queue, k, &index)) {
        return unsound(&index, "the header", queue->index[k]);
    }
    if (index.head->state == MQX_ID_INDEX_DROPPING) {
        return MQX_OK;
    }
    if (bucket_at(region, index.head, index.head->capacity - 1) == NULL) {
        return unsound(&index, "the memory of its buckets", index.head->capacity);
    }
    for (uint32_t bucket = 0; bucket < index.head->bucket_count; bucket++) {
        int status = check_bucket(&index, object, bucket, &tally);
        if (status != MQX_OK) {
            return status;
        }
    }
    if (tally.leaders != index.head->leaders || tally.linked != index.head->linked) {
        return unsound(&index, "the counts do not fit the rings", tally.linked);
    }
    return check_flags(&index);
}
