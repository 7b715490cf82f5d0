/*
 * arena.c - blocks of cells and message entries. See arena.h for terms, parcels and locks.
 */
#include "region/arena.h"

#include "base/error.h"
#include "region/extents.h"

#include <string.h>

/* ---- classes ---- */

enum {
    SEND_EXTENTS = 8,    /* that get items of an outgoing parcel back in one micro-transaction */
    RETURN_PARCELS = 16, /* of a class, in one lock hold */
    RETURN_HOLDS = 1024, /* until a free list of that stripe should be empty */
    RELIEFS_MAX = 8,     /* a guard */
};

/* Items of a class that a stripe keeps before it returns some: MQX_STRIPE_KEEP_BYTES of them and a
 * parcel, so that they are not returned one by one. */
#define KEEP(bytes) \
    (MQX_STRIPE_KEEP_BYTES / (bytes) + \
     ((bytes) >= MQX_PARCEL_BYTES ? 1 : MQX_PARCEL_BYTES / (bytes)))
#define KEEP_4(bytes) KEEP(5 * (bytes) / 4), KEEP(6 * (bytes) / 4), KEEP(7 * (bytes) / 4), \
    KEEP(2 * (bytes))
static const uint32_t keep_max[MQX_LIST_COUNT] = {
    KEEP(64), KEEP(128), KEEP(192), KEEP(256), KEEP(320), KEEP(384), KEEP(448), KEEP(512),
    KEEP_4(512), KEEP_4(512 << 1), KEEP_4(512 << 2), KEEP_4(512 << 3), KEEP_4(512 << 4),
    KEEP_4(512 << 5), KEEP_4(512 << 6), 0, 0, 0, 0, /* and 0 for classes without blocks */
    KEEP(sizeof(struct mqx_message)),
};

static uint32_t parcel_count(uint32_t class_no)
{
    MQX_ASSERT(class_no < MQX_LIST_COUNT);
    const uint32_t count = MQX_PARCEL_BYTES / mqx_class_bytes(class_no);
    return count == 0 ? 1 : count > MQX_PARCEL_ITEMS ? MQX_PARCEL_ITEMS : count;
}

/* ---- lists and parcels ---- */

static uint32_t *list_of(struct mqx_stripe *stripe, uint32_t class_no)
{
    MQX_ASSERT(stripe != NULL);
    MQX_ASSERT(class_no < MQX_LIST_COUNT);
    return class_no == MQX_ENTRY_CLASS ? &stripe->free_entries : &stripe->free_cells[class_no];
}

static uint32_t *count_of(struct mqx_stripe *stripe, uint32_t class_no)
{
    MQX_ASSERT(stripe != NULL);
    MQX_ASSERT(class_no < MQX_LIST_COUNT);
    return class_no == MQX_ENTRY_CLASS ? &stripe->free_entry_count : &stripe->free_count[class_no];
}

uint32_t mqx_arena_head(const struct mqx_stripe *stripe, uint32_t class_no)
{
    MQX_ASSERT(stripe != NULL);
    MQX_ASSERT(class_no < MQX_LIST_COUNT);
    return mqx_load_relaxed(class_no == MQX_ENTRY_CLASS ? &stripe->free_entries
                                                        : &stripe->free_cells[class_no]);
}

/* Follows up to `steps` links; NULL when one of them leads nowhere. The last link, and how many
 * items there are up to it. */
static uint32_t *follow(const struct mqx_region *region, uint32_t class_no, uint32_t head,
                        uint32_t steps, uint32_t *out_count)
{
    MQX_ASSERT(out_count != NULL);
    uint32_t *link = mqx_item_link(region, class_no, head);
    uint32_t count = 1;
    MQX_ASSERT(steps <= MQX_PARCEL_ITEMS);
    for (; link != NULL && *link != 0 && count <= steps; count++) {
        link = mqx_item_link(region, class_no, *link);
    }
    *out_count = count;
    return link;
}

/* The number of a parcel's items, which is walked in one lock hold, and its class index arrays. */
static bool parcel_is_sound(const struct mqx_parcel *parcel)
{
    MQX_ASSERT(parcel != NULL);
    return (parcel->kind == MQX_PARCEL_OF_CELLS || parcel->kind == MQX_PARCEL_OF_ENTRIES) &&
           parcel->class_no < MQX_CLASS_COUNT && parcel->count >= 1 &&
           parcel->count <= MQX_PARCEL_ITEMS;
}

static uint32_t parcel_class(const struct mqx_parcel *parcel)
{
    MQX_ASSERT(parcel != NULL);
    return parcel->kind == MQX_PARCEL_OF_ENTRIES ? (uint32_t)MQX_ENTRY_CLASS : parcel->class_no;
}

static uint32_t parcel_kind(uint32_t class_no)
{
    MQX_ASSERT(class_no < MQX_LIST_COUNT);
    return class_no == MQX_ENTRY_CLASS ? MQX_PARCEL_OF_ENTRIES : MQX_PARCEL_OF_CELLS;
}

/* ---- stripe guards ---- */

static void begin_guard(struct mqx_region *region, uint32_t object,
                        struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(guard != NULL);
    guard->region = region;
    guard->stripe = mqx_stripe_of(region, object);
    guard->reliefs = 0;
    guard->surplus = 0;
}

int mqx_stripe_guard_take(struct mqx_region *region, uint32_t object,
                          struct mqx_stripe_guard *guard)
{
    begin_guard(region, object, guard);
    MQX_ASSERT(!mqx_stripe_guard_held(guard));
    return mqx_lock_take(region, &guard->stripe->lock);
}

int mqx_stripe_guard_enter(struct mqx_region *region, uint32_t object,
                           struct mqx_stripe_guard *guard)
{
    begin_guard(region, object, guard);
    MQX_ASSERT(!mqx_stripe_guard_held(guard));
    return mqx_lock_enter(region, &guard->stripe->lock);
}

static MQX_COLD void return_surplus(struct mqx_stripe_guard *guard);

void mqx_stripe_guard_drop(struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(guard->region != NULL);
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    if (MQX_UNLIKELY(guard->surplus != 0)) {
        return_surplus(guard);
    }
    mqx_lock_drop(guard->region, &guard->stripe->lock);
}

/* ---- taking and giving under the stripe lock ---- */

/* The stores that take a block off its free list or put it there: its link, and the list's head.
 * False: there is no room for them, and the queue manager has been stopped. */
static inline bool store_cell(struct mqx_stripe_guard *guard, uint32_t class_no, uint32_t *link,
                              uint32_t new_link, uint32_t head)
{
    enum { STORES = 2 };
    const unsigned char *base = guard->region->base;
    struct mqx_lock *lock = &guard->stripe->lock;
    uint32_t *list = &guard->stripe->free_cells[class_no];
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(class_no < MQX_CLASS_COUNT);
    if (!mqx_undo_has_room(base, lock, STORES)) {
        return false;
    }
    struct mqx_undo *undo = &lock->undo[lock->undo_count];
    mqx_undo_fill(&undo[0], base, link, sizeof *link, *link);
    mqx_undo_fill(&undo[1], base, list, sizeof *list, *list);
    mqx_undo_count(lock, lock->undo_count + STORES);
    mqx_store_relaxed(link, new_link);
    mqx_store_relaxed(list, head);
    return true;
}

int mqx_cells_take(struct mqx_stripe_guard *guard, uint32_t class_no, uint32_t *out_cell)
{
    MQX_ASSERT(out_cell != NULL);
    struct mqx_stripe *stripe = guard->stripe;
    const uint32_t cell = stripe->free_cells[class_no];
    uint32_t *link;
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(class_no < MQX_CLASS_COUNT);
    if (MQX_UNLIKELY(cell == 0)) {
        guard->want = class_no;
        return MQX_NEED_CELLS;
    }
    link = mqx_cells(guard->region, cell);
    if (MQX_UNLIKELY(link == NULL)) {
        return mqx_region_damage(guard->region, "a free list of cells", cell);
    }
    if (!store_cell(guard, class_no, link, 0, *link)) {
        return mqx_region_damage(guard->region, "the undo list of a stripe", cell);
    }
    stripe->free_count[class_no] -= stripe->free_count[class_no] > 0;
    *out_cell = cell;
    return MQX_OK;
}

void mqx_cells_give(struct mqx_stripe_guard *guard, uint32_t class_no, uint32_t cell)
{
    MQX_ASSERT(guard->stripe != NULL);
    struct mqx_stripe *stripe = guard->stripe;
    uint32_t *link = mqx_cells(guard->region, cell);
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    if (MQX_UNLIKELY(link == NULL || class_no >= MQX_CLASS_COUNT)) {
        (void)mqx_region_damage(guard->region, "a block to be given back", cell);
        return;
    }
    if (!store_cell(guard, class_no, link, stripe->free_cells[class_no], cell)) {
        return;
    }
    stripe->free_count[class_no] += 1;
    if (MQX_UNLIKELY(stripe->free_count[class_no] > keep_max[class_no])) {
        guard->surplus |= UINT64_C(1) << class_no;
    }
}

/* The stores that take an entry off the free list or put it there: its state and link, and the
 * list's head. False: there is no room for them, and the queue manager has been stopped. */
static inline bool store_entry(struct mqx_stripe_guard *guard, struct mqx_message *message,
                               uint8_t state, uint32_t link, uint32_t head)
{
    enum { STORES = 3 };
    const unsigned char *base = guard->region->base;
    struct mqx_lock *lock = &guard->stripe->lock;
    uint32_t *list = &guard->stripe->free_entries;
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT((unsigned char *)message > base);
    if (!mqx_undo_has_room(base, lock, STORES)) {
        return false;
    }
    struct mqx_undo *undo = &lock->undo[lock->undo_count];
    mqx_undo_fill(&undo[0], base, &message->state, sizeof message->state, message->state);
    mqx_undo_fill(&undo[1], base, &message->unit_next, sizeof *list, message->unit_next);
    mqx_undo_fill(&undo[2], base, list, sizeof *list, *list);
    mqx_undo_count(lock, lock->undo_count + STORES);
    mqx_store_relaxed(&message->state, state);
    mqx_store_relaxed(&message->unit_next, link);
    mqx_store_relaxed(list, head);
    return true;
}

int mqx_entry_take(struct mqx_stripe_guard *guard, uint32_t *out_slot)
{
    struct mqx_stripe *stripe = guard->stripe;
    const uint32_t slot = stripe->free_entries;
    struct mqx_message *message;
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(out_slot != NULL);
    if (MQX_UNLIKELY(slot == 0)) {
        guard->want = MQX_ENTRY_CLASS;
        return MQX_NEED_CELLS;
    }
    message = mqx_message(guard->region, slot);
    if (MQX_UNLIKELY(message == NULL || message->state != MQX_MSG_FREE)) {
        return mqx_region_damage(guard->region, "a free list of message entries", slot);
    }
    const uint32_t next = message->unit_next;
    if (!store_entry(guard, message, MQX_MSG_RESERVED, 0, next)) {
        return mqx_region_damage(guard->region, "the undo list of a stripe", slot);
    }
    stripe->free_entry_count -= stripe->free_entry_count > 0;
    *out_slot = slot;
    return MQX_OK;
}

void mqx_entry_give_back(struct mqx_stripe_guard *guard, uint32_t slot, struct mqx_message *message)
{
    MQX_ASSERT(guard->stripe != NULL);
    struct mqx_stripe *stripe = guard->stripe;
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    if (MQX_UNLIKELY(message == NULL || message->state == MQX_MSG_FREE)) {
        (void)mqx_region_damage(guard->region, "a message entry to be given back", slot);
        return;
    }
    if (!store_entry(guard, message, MQX_MSG_FREE, stripe->free_entries, slot)) {
        return;
    }
    stripe->free_entry_count += 1;
    if (MQX_UNLIKELY(stripe->free_entry_count > keep_max[MQX_ENTRY_CLASS])) {
        guard->surplus |= UINT64_C(1) << MQX_ENTRY_CLASS;
    }
}

enum { NUMBER_BLOCK = 4096 }; /* numbers that a stripe gets at once */

uint64_t mqx_numbers_given(const struct mqx_region *region)
{
    uint64_t left = 0;
    MQX_ASSERT(region->stripe_mask < MQX_STRIPE_MAX);
    for (uint32_t i = 0; i <= region->stripe_mask; i++) {
        const uint64_t next = mqx_load_relaxed(&region->stripes[i].next_number);
        const uint64_t end = mqx_load_relaxed(&region->stripes[i].end_number);
        left += end > next && end - next <= NUMBER_BLOCK ? end - next : 0;
    }
    return mqx_load_relaxed(&region->journal->next_number) - left;
}

uint64_t mqx_number_take(struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(guard->stripe != NULL);
    struct mqx_stripe *stripe = guard->stripe;
    uint64_t number = stripe->next_number;
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    if (MQX_UNLIKELY(number == stripe->end_number)) {
        number = mqx_fetch_add(&guard->region->journal->next_number, (uint64_t)NUMBER_BLOCK);
        mqx_guard_store64(guard, &stripe->end_number, number + NUMBER_BLOCK);
    }
    mqx_guard_store64(guard, &stripe->next_number, number + 1);
    return number;
}

/* ---- parcels ---- */

/* Stripe transaction: the incoming parcel becomes the front of the free list. */
static int accept_parcel(struct mqx_stripe_guard *guard)
{
    struct mqx_stripe *stripe = guard->stripe;
    struct mqx_parcel *parcel = &stripe->incoming;
    const uint32_t class_no = parcel_class(parcel);
    uint32_t count = 0;
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(parcel->kind != MQX_PARCEL_NONE);
    uint32_t *link = parcel_is_sound(parcel)
                         ? follow(guard->region, class_no, parcel->head, parcel->count, &count)
                         : NULL;
    if (link == NULL || count != parcel->count) {
        return mqx_region_damage(guard->region, "a parcel of free cells", parcel->head);
    }
    uint32_t *list = list_of(stripe, class_no);
    mqx_guard_store32(guard, link, *list);
    mqx_guard_store32(guard, list, parcel->head);
    mqx_guard_store32(guard, &parcel->kind, MQX_PARCEL_NONE);
    *count_of(stripe, class_no) += count;
    mqx_stripe_guard_commit(guard);
    return MQX_OK;
}

static void arena_store32(struct mqx_region *region, uint32_t *at, uint32_t value)
{
    MQX_ASSERT((unsigned char *)at > region->base);
    MQX_ASSERT((uintptr_t)at % sizeof *at == 0);
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    mqx_undo_store32(region->base, &region->header->arena_lock, at, value);
}

/* Arena transaction: fills stripe->incoming with what is wanted. */
static int fill_parcel(struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(guard->want < MQX_LIST_COUNT);
    struct mqx_region *region = guard->region;
    struct mqx_lock *lock = &region->header->arena_lock;
    struct mqx_parcel *parcel = &guard->stripe->incoming;
    const bool entries = guard->want == MQX_ENTRY_CLASS;
    uint32_t head = 0, count = 0;
    MQX_ASSERT(parcel->kind == MQX_PARCEL_NONE);
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_extents_take(region, guard->want,
                           entries ? (uint32_t)MQX_PARCEL_ITEMS : parcel_count(guard->want), &head,
                           &count);
    if (status == MQX_OK) {
        arena_store32(region, &parcel->class_no, entries ? 0 : guard->want);
        arena_store32(region, &parcel->head, head);
        arena_store32(region, &parcel->count, count);
        arena_store32(region, &parcel->kind, parcel_kind(guard->want));
        mqx_undo_commit(lock);
    } else {
        mqx_undo_rollback(region, lock);
    }
    mqx_lock_drop(region, lock);
    return status;
}

/* One step of supplying: finishes a parcel that is there, else fills one. */
static int supply_step(struct mqx_stripe_guard *guard, uint32_t want, bool *supplied)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(want < MQX_LIST_COUNT);
    MQX_ASSERT(!*supplied);
    const struct mqx_parcel *incoming = &guard->stripe->incoming;
    if (incoming->kind != MQX_PARCEL_NONE) {
        *supplied = parcel_class(incoming) == want;
        return accept_parcel(guard);
    }
    guard->want = want;
    return fill_parcel(guard);
}

/* Outside all locks: a free extent for a class, with what stripes (but `except`) and the other area
 * do not use when the region cannot grow. *reliefs counts how often that was done. */
static int grow_for(struct mqx_region *region, uint32_t want, uint32_t except, uint32_t *reliefs)
{
    MQX_ASSERT(reliefs != NULL);
    MQX_ASSERT(want < MQX_LIST_COUNT);
    const enum mqx_pool_no no = mqx_pool_of(want);
    const enum mqx_pool_no other = no == MQX_POOL_CELLS ? MQX_POOL_ENTRIES : MQX_POOL_CELLS;
    uint32_t punched = 0;
    int status = mqx_extents_grow(region, no, 1);
    if (status != MQRC_STORAGE_NOT_AVAILABLE || *reliefs >= RELIEFS_MAX) {
        return status;
    }
    *reliefs += 1;
    int relief = mqx_arena_return_all(region, except);
    if (relief == MQX_OK && (mqx_load_relaxed(&region->header->pool[no].free) != 0 ||
                             mqx_load_relaxed(&region->header->partial[want]) != 0)) {
        return MQX_OK;
    }
    if (relief == MQX_OK) {
        relief = mqx_extents_punch(region, other, MQX_PUNCH_BATCH, &punched);
    }
    return relief != MQX_OK ? relief : punched == 0 ? status : mqx_extents_grow(region, no, 1);
}

int mqx_stripe_guard_supply(struct mqx_stripe_guard *guard)
{
    const uint32_t want = guard->want;
    bool supplied = false; /* a parcel of that class has come: the roll back gave too little */
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(want < MQX_LIST_COUNT);
    mqx_stripe_guard_rollback(guard);
    while (!supplied) {
        int status = supply_step(guard, want, &supplied);
        if (status == MQX_NEED_GROWTH) {
            const uint32_t own = (uint32_t)(guard->stripe - guard->region->stripes);
            mqx_stripe_guard_drop(guard);
            status = grow_for(guard->region, want,
                              guard->reliefs == 0 ? (uint32_t)MQX_STRIPE_MAX : own,
                              &guard->reliefs);
            if (status == MQX_OK) {
                status = mqx_lock_take(guard->region, &guard->stripe->lock);
            }
            if (status != MQX_OK) {
                return status;
            }
        } else if (status != MQX_OK) {
            mqx_stripe_guard_rollback(guard);
            mqx_stripe_guard_drop(guard);
            return status;
        }
    }
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    return MQX_OK;
}

/* ---- returning ---- */

/* Stripe transaction: up to `want` items at the front of the free list become the outgoing
 * parcel. */
static bool pack_outgoing(struct mqx_stripe_guard *guard, uint32_t class_no, uint32_t want)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(want >= 1 && want <= MQX_PARCEL_ITEMS);
    struct mqx_stripe *stripe = guard->stripe;
    struct mqx_parcel *parcel = &stripe->outgoing;
    uint32_t *list = list_of(stripe, class_no), *free_count = count_of(stripe, class_no);
    const uint32_t head = *list;
    uint32_t count = 0;
    uint32_t *link = follow(guard->region, class_no, head, want - 1, &count);
    MQX_ASSERT(parcel->kind == MQX_PARCEL_NONE);
    if (link == NULL) {
        (void)mqx_region_damage(guard->region, "a free list of cells", head);
        return false;
    }
    mqx_guard_store32(guard, list, *link);
    mqx_guard_store32(guard, link, 0);
    mqx_guard_store32(guard, &parcel->class_no, class_no == MQX_ENTRY_CLASS ? 0 : class_no);
    mqx_guard_store32(guard, &parcel->head, head);
    mqx_guard_store32(guard, &parcel->count, count);
    mqx_guard_store32(guard, &parcel->kind, parcel_kind(class_no));
    *free_count -= *free_count < count ? *free_count : count;
    mqx_stripe_guard_commit(guard);
    return true;
}

/* Arena transaction: the first items of the outgoing parcel go back to their extents. */
static int send_some(struct mqx_region *region, struct mqx_parcel *parcel)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    MQX_ASSERT(parcel->count >= 1);
    const uint32_t class_no = parcel_class(parcel);
    uint32_t item = parcel->head, left = parcel->count;
    for (int i = 0; i < SEND_EXTENTS && left > 0; i++) {
        uint32_t count, next;
        const int status = mqx_extents_give_chain(region, class_no, item, left, &count, &next);
        if (status != MQX_OK) {
            return status;
        }
        if ((next == 0) != (left == count)) {
            return mqx_region_damage(region, "a parcel of free cells", item);
        }
        MQX_ASSERT(count >= 1 && count <= left);
        item = next;
        left -= count;
    }
    arena_store32(region, &parcel->head, item);
    arena_store32(region, &parcel->count, left);
    if (left == 0) {
        arena_store32(region, &parcel->kind, MQX_PARCEL_NONE);
    }
    mqx_undo_commit(&region->header->arena_lock);
    return MQX_OK;
}

/* Empties the outgoing parcel. After a failure, which stops the queue manager, it stays whole. */
static int send_outgoing(struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(guard->stripe->outgoing.kind != MQX_PARCEL_NONE);
    struct mqx_region *region = guard->region;
    struct mqx_parcel *parcel = &guard->stripe->outgoing;
    if (!parcel_is_sound(parcel)) {
        return mqx_region_damage(region, "a parcel of free cells", parcel->head);
    }
    int status = mqx_lock_take(region, &region->header->arena_lock);
    if (status != MQX_OK) {
        return status;
    }
    while (parcel->kind != MQX_PARCEL_NONE && status == MQX_OK) {
        status = send_some(region, parcel);
    }
    if (status != MQX_OK) {
        mqx_undo_rollback(region, &region->header->arena_lock);
    }
    mqx_lock_drop(region, &region->header->arena_lock);
    return status;
}

/* Returns parcels until the free list has `keep` items or fewer, or RETURN_PARCELS times. With 0
 * the list decides, not the count. */
static int return_some(struct mqx_stripe_guard *guard, uint32_t class_no, uint32_t keep)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(guard->stripe->lock.undo_count == 0);
    struct mqx_stripe *stripe = guard->stripe;
    uint32_t *count = count_of(stripe, class_no);
    int status = stripe->outgoing.kind != MQX_PARCEL_NONE ? send_outgoing(guard) : MQX_OK;
    for (int i = 0; i < RETURN_PARCELS && status == MQX_OK; i++) {
        if (*list_of(stripe, class_no) == 0) {
            *count = 0;
        }
        if (*count <= keep && (keep != 0 || *list_of(stripe, class_no) == 0)) {
            break;
        }
        const uint32_t over = keep == 0 ? (uint32_t)MQX_PARCEL_ITEMS : *count - keep;
        const uint32_t want = over < MQX_PARCEL_ITEMS ? over : (uint32_t)MQX_PARCEL_ITEMS;
        status = pack_outgoing(guard, class_no, want) ? send_outgoing(guard)
                                                      : mqx_region_stop_reason(guard->region);
    }
    return status;
}

/* What the calls of this hold have left over. A micro-transaction that is still open belongs to a
 * queue manager that has stopped. */
static MQX_COLD void return_surplus(struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(guard->surplus >> MQX_LIST_COUNT == 0);
    int status = guard->stripe->lock.undo_count == 0 ? MQX_OK : MQRC_CONNECTION_BROKEN;
    for (; guard->surplus != 0 && status == MQX_OK; guard->surplus &= guard->surplus - 1) {
        const uint32_t class_no = (uint32_t)__builtin_ctzll(guard->surplus);
        status = return_some(guard, class_no, MQX_STRIPE_KEEP_BYTES / mqx_class_bytes(class_no));
    }
    guard->surplus = 0;
}

/* One lock hold; *out_more: there is more on these lists. Nothing when the lock is busy: whoever
 * asks must not wait for a process that was stopped in it. */
static int return_classes(struct mqx_region *region, uint32_t stripe, uint64_t classes,
                          bool *out_more)
{
    struct mqx_stripe_guard guard = {.region = region, .stripe = &region->stripes[stripe]};
    MQX_ASSERT(classes != 0);
    MQX_ASSERT(stripe <= region->stripe_mask);
    int status = mqx_lock_try(region, &guard.stripe->lock);
    *out_more = false;
    if (status != MQX_OK) {
        return status == MQX_BUSY ? MQX_OK : status;
    }
    if (guard.stripe->incoming.kind != MQX_PARCEL_NONE) {
        status = accept_parcel(&guard); /* of a process that died */
    }
    for (uint64_t rest = classes; rest != 0 && status == MQX_OK; rest &= rest - 1) {
        const uint32_t class_no = (uint32_t)__builtin_ctzll(rest);
        status = return_some(&guard, class_no, 0);
        *out_more = *out_more || *list_of(guard.stripe, class_no) != 0;
    }
    if (status != MQX_OK) {
        mqx_stripe_guard_rollback(&guard);
    }
    mqx_stripe_guard_drop(&guard);
    return status;
}

int mqx_arena_return(struct mqx_region *region, uint32_t stripe, uint64_t classes)
{
    MQX_ASSERT(classes >> MQX_LIST_COUNT == 0);
    MQX_ASSERT(!mqx_lock_held(region, &region->header->arena_lock));
    bool more = classes != 0;
    int status = MQX_OK;
    for (int i = 0; i < RETURN_HOLDS && more && status == MQX_OK; i++) {
        status = return_classes(region, stripe, classes, &more);
    }
    return status;
}

int mqx_arena_return_all(struct mqx_region *region, uint32_t except)
{
    MQX_ASSERT(region->stripe_mask < MQX_STRIPE_MAX);
    MQX_ASSERT(except <= MQX_STRIPE_MAX);
    int status = MQX_OK;
    for (uint32_t i = 0; i <= region->stripe_mask && status == MQX_OK; i++) {
        uint64_t classes = 0;
        for (uint32_t c = 0; c < MQX_LIST_COUNT; c++) {
            classes |= (uint64_t)(mqx_arena_head(&region->stripes[i], c) != 0) << c;
        }
        status = i == except ? MQX_OK : mqx_arena_return(region, i, classes);
    }
    return status;
}

/* ---- long-lived bytes: a block of the extents ---- */

static int one_block(struct mqx_region *region, uint32_t size, uint32_t *out_cell)
{
    MQX_ASSERT(out_cell != NULL);
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    uint32_t count = 0;
    if (size > MQX_BLOCK_MAX) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                        "an attribute list of %u bytes; at most %u are kept", size,
                        (uint32_t)MQX_BLOCK_MAX);
    }
    return mqx_extents_take(region, mqx_class_for(size), 1, out_cell, &count);
}

static void name_cell(struct mqx_region *region, uint32_t *owner, uint32_t cell)
{
    MQX_ASSERT(owner == NULL || (unsigned char *)owner > region->base);
    if (owner != NULL) {
        arena_store32(region, owner, cell);
    }
}

int mqx_store_bytes(struct mqx_region *region, const void *from, uint32_t size, uint32_t *owner,
                    uint32_t *out_cell)
{
    MQX_ASSERT(region != NULL);
    struct mqx_lock *lock = &region->header->arena_lock;
    uint32_t reliefs = 0;
    MQX_ASSERT(from != NULL || size == 0);
    MQX_ASSERT(out_cell != NULL);
    for (;;) {
        int status = mqx_lock_take(region, lock);
        if (status != MQX_OK) {
            return status;
        }
        status = one_block(region, size, out_cell);
        if (status == MQX_OK) {
            name_cell(region, owner, *out_cell);
            mqx_undo_commit(lock);
        } else {
            mqx_undo_rollback(region, lock);
        }
        mqx_lock_drop(region, lock);
        if (status == MQX_OK) {
            MQX_ASSERT(mqx_cells(region, *out_cell) != NULL);
            memcpy(mqx_cells(region, *out_cell), from, size);
            return MQX_OK;
        }
        if (status == MQX_NEED_GROWTH) {
            status = grow_for(region, mqx_class_for(size), MQX_STRIPE_MAX, &reliefs);
        }
        if (status != MQX_OK) {
            return status;
        }
    }
}

int mqx_free_bytes(struct mqx_region *region, uint32_t cell, uint32_t size, uint32_t *owner)
{
    MQX_ASSERT(region != NULL);
    struct mqx_lock *lock = &region->header->arena_lock;
    if (mqx_cells(region, cell) == NULL || size > MQX_BLOCK_MAX) {
        return mqx_region_damage(region, "an attribute list to be given back", cell);
    }
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    status = mqx_extents_give(region, mqx_class_for(size), cell);
    if (status == MQX_OK) {
        name_cell(region, owner, 0);
        mqx_undo_commit(lock);
    } else {
        mqx_undo_rollback(region, lock);
    }
    mqx_lock_drop(region, lock);
    return status;
}
