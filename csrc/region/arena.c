/*
 * arena.c - blocks of cells and message entries. See arena.h for terms, parcels and locks.
 */
#include "region/arena.h"

#include "base/error.h"

#include <string.h>

/* ---- size classes: 64..512 in steps of 64, then four per doubling up to MQX_BLOCK_MAX ---- */

enum {
    ENTRY_CLASS = MQX_CLASS_COUNT, /* guard.want: message entries */
    SMALL_CLASSES = 8,
    SMALL_BYTES = SMALL_CLASSES * MQX_CELL,
    QUARTERS = 4, /* classes per doubling */
    UNUSED_CLASS = MQX_CLASS_COUNT - 1,
};

uint32_t mqx_class_bytes(uint32_t class_no)
{
    MQX_ASSERT(class_no < MQX_CLASS_COUNT);
    if (class_no < SMALL_CLASSES) {
        return (class_no + 1) * MQX_CELL;
    }
    const uint32_t doubling = (class_no - SMALL_CLASSES) / QUARTERS;
    const uint32_t quarter = (class_no - SMALL_CLASSES) % QUARTERS + 1;
    return ((uint32_t)SMALL_BYTES << doubling) +
           quarter * ((uint32_t)SMALL_BYTES / QUARTERS << doubling);
}

uint32_t mqx_class_for(uint32_t bytes)
{
    if (bytes <= SMALL_BYTES) {
        return bytes == 0 ? 0 : (bytes - 1) / MQX_CELL;
    }
    if (MQX_UNLIKELY(bytes > MQX_BLOCK_MAX)) {
        return UNUSED_CLASS;
    }
    const uint32_t doubling = (uint32_t)__builtin_clz(SMALL_BYTES) -
                              (uint32_t)__builtin_clz(bytes - 1);
    const uint32_t over = bytes - 1 - ((uint32_t)SMALL_BYTES << doubling);
    const uint32_t class_no =
        SMALL_CLASSES + doubling * QUARTERS + over / ((uint32_t)SMALL_BYTES / QUARTERS << doubling);
    MQX_ASSERT(mqx_class_bytes(class_no) >= bytes);
    MQX_ASSERT(mqx_class_bytes(class_no - 1) < bytes);
    return class_no;
}

static uint32_t parcel_count(uint32_t class_no)
{
    MQX_ASSERT(class_no < MQX_CLASS_COUNT);
    const uint32_t count = MQX_PARCEL_BYTES / mqx_class_bytes(class_no);
    return count == 0 ? 1 : count > MQX_PARCEL_ITEMS ? MQX_PARCEL_ITEMS : count;
}

/* ---- the free-list link of a block or entry ---- */

static uint32_t *link_of(const struct mqx_region *region, uint32_t kind, uint32_t item)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(kind == MQX_PARCEL_OF_CELLS || kind == MQX_PARCEL_OF_ENTRIES);
    if (kind == MQX_PARCEL_OF_ENTRIES) {
        struct mqx_message *message = mqx_message(region, item);
        return message == NULL ? NULL : &message->unit_next;
    }
    return mqx_cells(region, item);
}

/* Follows up to `steps` links; NULL when one of them leads nowhere. The last link, and how many
 * items there are up to it. */
static uint32_t *follow(const struct mqx_region *region, uint32_t kind, uint32_t head,
                        uint32_t steps, uint32_t *out_count)
{
    MQX_ASSERT(out_count != NULL);
    uint32_t *link = link_of(region, kind, head);
    uint32_t count = 1;
    MQX_ASSERT(steps <= MQX_PARCEL_ITEMS);
    for (; link != NULL && *link != 0 && count <= steps; count++) {
        link = link_of(region, kind, *link);
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

/* ---- stripe guards ---- */

int mqx_stripe_guard_take(struct mqx_region *region, uint32_t object,
                          struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(guard != NULL);
    guard->region = region;
    guard->stripe = mqx_stripe_of(region, object);
    guard->want = 0;
    return mqx_lock_take(region, &guard->stripe->lock);
}

int mqx_stripe_guard_enter(struct mqx_region *region, uint32_t object,
                           struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(guard != NULL);
    guard->region = region;
    guard->stripe = mqx_stripe_of(region, object);
    guard->want = 0;
    return mqx_lock_enter(region, &guard->stripe->lock);
}

void mqx_stripe_guard_drop(struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(guard->region != NULL);
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    mqx_lock_drop(guard->region, &guard->stripe->lock);
}

/* ---- taking and giving under the stripe lock ---- */

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
    mqx_guard_store32(guard, &stripe->free_cells[class_no], *link);
    mqx_guard_store32(guard, link, 0);
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
    mqx_guard_store32(guard, link, stripe->free_cells[class_no]);
    mqx_guard_store32(guard, &stripe->free_cells[class_no], cell);
    stripe->free_count[class_no] += 1;
}

int mqx_entry_take(struct mqx_stripe_guard *guard, uint32_t *out_slot)
{
    struct mqx_stripe *stripe = guard->stripe;
    const uint32_t slot = stripe->free_entries;
    struct mqx_message *message;
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(out_slot != NULL);
    if (MQX_UNLIKELY(slot == 0)) {
        guard->want = ENTRY_CLASS;
        return MQX_NEED_CELLS;
    }
    message = mqx_message(guard->region, slot);
    if (MQX_UNLIKELY(message == NULL || message->state != MQX_MSG_FREE)) {
        return mqx_region_damage(guard->region, "a free list of message entries", slot);
    }
    mqx_guard_store32(guard, &stripe->free_entries, message->unit_next);
    mqx_guard_store8(guard, &message->state, MQX_MSG_RESERVED);
    mqx_guard_store32(guard, &message->unit_next, 0);
    stripe->free_entry_count -= stripe->free_entry_count > 0;
    *out_slot = slot;
    return MQX_OK;
}

void mqx_entry_give(struct mqx_stripe_guard *guard, uint32_t slot)
{
    MQX_ASSERT(guard->stripe != NULL);
    struct mqx_stripe *stripe = guard->stripe;
    struct mqx_message *message = mqx_message(guard->region, slot);
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    if (MQX_UNLIKELY(message == NULL || message->state == MQX_MSG_FREE)) {
        (void)mqx_region_damage(guard->region, "a message entry to be given back", slot);
        return;
    }
    mqx_guard_store8(guard, &message->state, MQX_MSG_FREE);
    mqx_guard_store32(guard, &message->unit_next, stripe->free_entries);
    mqx_guard_store32(guard, &stripe->free_entries, slot);
    stripe->free_entry_count += 1;
}

uint64_t mqx_number_take(struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(guard->stripe != NULL);
    enum { NUMBER_BLOCK = 4096 };
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
    uint32_t count = 0;
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(parcel->kind != MQX_PARCEL_NONE);
    uint32_t *link = parcel_is_sound(parcel)
                         ? follow(guard->region, parcel->kind, parcel->head, parcel->count, &count)
                         : NULL;
    if (link == NULL || count != parcel->count) {
        return mqx_region_damage(guard->region, "a parcel of free cells", parcel->head);
    }
    const bool entries = parcel->kind == MQX_PARCEL_OF_ENTRIES;
    uint32_t *list = entries ? &stripe->free_entries : &stripe->free_cells[parcel->class_no];
    mqx_guard_store32(guard, link, *list);
    mqx_guard_store32(guard, list, parcel->head);
    mqx_guard_store32(guard, &parcel->kind, MQX_PARCEL_NONE);
    *(entries ? &stripe->free_entry_count : &stripe->free_count[parcel->class_no]) += count;
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

/* Cuts up to `want` items off a global list; *out_count is 0 when it is empty. */
static int cut_global(struct mqx_region *region, uint32_t kind, uint32_t *list, uint32_t want,
                      uint32_t *out_head, uint32_t *out_count)
{
    MQX_ASSERT(out_head != NULL);
    const uint32_t head = *list;
    uint32_t last = head;
    MQX_ASSERT(want >= 1 && want <= MQX_PARCEL_ITEMS);
    *out_count = 0;
    if (head == 0) {
        return MQX_OK;
    }
    uint32_t *end = link_of(region, kind, head);
    uint32_t count = 1;
    for (; end != NULL && *end != 0 && count < want; count++) {
        last = *end;
        end = link_of(region, kind, last);
    }
    if (end == NULL) {
        return mqx_region_damage(region, "a global free list", last);
    }
    arena_store32(region, list, *end);
    arena_store32(region, end, 0);
    *out_head = head;
    *out_count = count;
    MQX_ASSERT(count <= want);
    return MQX_OK;
}

/* Takes `count` items never used before, of `bytes` bytes each, and strings them together; they are
 * fresh memory until `used` moves. */
static int carve(struct mqx_region *region, uint32_t kind, uint32_t bytes, uint32_t count,
                 uint32_t *out_head)
{
    MQX_ASSERT(out_head != NULL);
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    const bool entries = kind == MQX_PARCEL_OF_ENTRIES;
    const uint32_t unit = entries ? (uint32_t)sizeof(struct mqx_message) : (uint32_t)MQX_CELL;
    struct mqx_area *area =
        &region->header->area[entries ? MQX_AREA_MESSAGES : MQX_AREA_ARENA];
    const uint64_t first = area->used, end = first + (uint64_t)(bytes / unit) * count;
    MQX_ASSERT(bytes % unit == 0);
    MQX_ASSERT(count >= 1);
    if (first == 0 || end > UINT32_MAX) {
        return mqx_region_damage(region, "the count of used cells or entries", first);
    }
    if (end * unit > mqx_load_acquire(&area->capacity)) {
        return MQX_NEED_GROWTH;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t item = (uint32_t)first + i * (bytes / unit);
        uint32_t *link = link_of(region, kind, item);
        if (link == NULL) {
            return mqx_region_damage(region, "the capacity of an area", item);
        }
        *link = i + 1 < count ? item + bytes / unit : 0;
    }
    mqx_order();
    mqx_undo_store64(region->base, &region->header->arena_lock, &area->used, end);
    *out_head = (uint32_t)first;
    return MQX_OK;
}

/* From the global list, else from fresh memory. `bytes` of one item; *count: how many at most. */
static int take_global(struct mqx_region *region, uint32_t kind, uint32_t *list, uint32_t bytes,
                       uint32_t *count, uint32_t *out_head)
{
    MQX_ASSERT(*count >= 1);
    MQX_ASSERT(*count <= MQX_PARCEL_ITEMS);
    MQX_ASSERT(bytes % MQX_CELL == 0);
    uint32_t cut = 0;
    int status = cut_global(region, kind, list, *count, out_head, &cut);
    if (status == MQX_OK && cut == 0) {
        return carve(region, kind, bytes, *count, out_head);
    }
    *count = cut;
    return status;
}

/* Arena transaction: fills stripe->incoming with what is wanted. */
static int fill_parcel(struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(guard->want <= ENTRY_CLASS);
    struct mqx_region *region = guard->region;
    struct mqx_header *header = region->header;
    struct mqx_parcel *parcel = &guard->stripe->incoming;
    const bool entries = guard->want == ENTRY_CLASS;
    const uint32_t kind = entries ? MQX_PARCEL_OF_ENTRIES : MQX_PARCEL_OF_CELLS;
    const uint32_t bytes =
        entries ? (uint32_t)sizeof(struct mqx_message) : mqx_class_bytes(guard->want);
    uint32_t *list = entries ? &header->area[MQX_AREA_MESSAGES].free_head
                             : &header->global_cells[guard->want];
    uint32_t head = 0, count = entries ? MQX_PARCEL_ITEMS : parcel_count(guard->want);
    MQX_ASSERT(parcel->kind == MQX_PARCEL_NONE);
    int status = mqx_lock_take(region, &header->arena_lock);
    if (status != MQX_OK) {
        return status;
    }
    status = take_global(region, kind, list, bytes, &count, &head);
    if (status == MQX_OK) {
        arena_store32(region, &parcel->class_no, entries ? 0 : guard->want);
        arena_store32(region, &parcel->head, head);
        arena_store32(region, &parcel->count, count);
        arena_store32(region, &parcel->kind, kind);
        mqx_undo_commit(&header->arena_lock);
    } else {
        mqx_undo_rollback(region, &header->arena_lock);
    }
    mqx_lock_drop(region, &header->arena_lock);
    return status;
}

/* Outside all locks: room for one parcel of what is wanted. */
static int grow_for(struct mqx_region *region, uint32_t want)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(want <= ENTRY_CLASS);
    const bool entries = want == ENTRY_CLASS;
    const enum mqx_area_kind kind = entries ? MQX_AREA_MESSAGES : MQX_AREA_ARENA;
    const struct mqx_area *area = &region->header->area[kind];
    const uint64_t unit = entries ? sizeof(struct mqx_message) : (uint64_t)MQX_CELL;
    const uint64_t more = entries ? MQX_PARCEL_ITEMS * unit
                                  : (uint64_t)parcel_count(want) * mqx_class_bytes(want);
    const uint64_t used = mqx_load_acquire(&area->used);
    if (used > UINT32_MAX) {
        return mqx_region_damage(region, "the count of used cells or entries", used);
    }
    return mqx_region_grow(region, kind, used * unit + more);
}

/* One step of supplying: finishes a parcel that is there, else fills one. */
static int supply_step(struct mqx_stripe_guard *guard, uint32_t want, bool *supplied)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(want <= ENTRY_CLASS);
    MQX_ASSERT(!*supplied);
    const struct mqx_parcel *incoming = &guard->stripe->incoming;
    if (incoming->kind != MQX_PARCEL_NONE) {
        *supplied = incoming->kind == MQX_PARCEL_OF_ENTRIES ? want == ENTRY_CLASS
                                                            : incoming->class_no == want;
        return accept_parcel(guard);
    }
    guard->want = want;
    return fill_parcel(guard);
}

int mqx_stripe_guard_supply(struct mqx_stripe_guard *guard)
{
    const uint32_t want = guard->want;
    bool supplied = false; /* a parcel of that class has come: the roll back gave too little */
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(want <= ENTRY_CLASS);
    mqx_stripe_guard_rollback(guard);
    while (!supplied) {
        int status = supply_step(guard, want, &supplied);
        if (status == MQX_NEED_GROWTH) {
            mqx_stripe_guard_drop(guard);
            status = grow_for(guard->region, want);
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

/* Stripe transaction: the first parcel's worth of the free list becomes the outgoing parcel. */
static bool pack_outgoing(struct mqx_stripe_guard *guard, uint32_t class_no)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(class_no < MQX_CLASS_COUNT);
    struct mqx_stripe *stripe = guard->stripe;
    const uint32_t head = stripe->free_cells[class_no];
    uint32_t count = 0;
    uint32_t *link = follow(guard->region, MQX_PARCEL_OF_CELLS, head, parcel_count(class_no) - 1,
                            &count);
    MQX_ASSERT(stripe->outgoing.kind == MQX_PARCEL_NONE);
    if (link == NULL) {
        (void)mqx_region_damage(guard->region, "a free list of cells", head);
        return false;
    }
    mqx_guard_store32(guard, &stripe->free_cells[class_no], *link);
    mqx_guard_store32(guard, link, 0);
    mqx_guard_store32(guard, &stripe->outgoing.class_no, class_no);
    mqx_guard_store32(guard, &stripe->outgoing.head, head);
    mqx_guard_store32(guard, &stripe->outgoing.count, count);
    mqx_guard_store32(guard, &stripe->outgoing.kind, MQX_PARCEL_OF_CELLS);
    stripe->free_count[class_no] -= count;
    mqx_stripe_guard_commit(guard);
    return true;
}

/* Arena transaction: the outgoing parcel goes to the front of the global list. */
static void send_outgoing(struct mqx_stripe_guard *guard)
{
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(guard->stripe->outgoing.kind != MQX_PARCEL_NONE);
    struct mqx_region *region = guard->region;
    struct mqx_parcel *parcel = &guard->stripe->outgoing;
    uint32_t count = 0;
    uint32_t *link = parcel_is_sound(parcel)
                         ? follow(region, MQX_PARCEL_OF_CELLS, parcel->head, parcel->count - 1,
                                  &count)
                         : NULL;
    if (link == NULL || count != parcel->count) {
        (void)mqx_region_damage(region, "a parcel of free cells", parcel->head);
        return;
    }
    uint32_t *list = &region->header->global_cells[parcel->class_no];
    if (mqx_lock_take(region, &region->header->arena_lock) != MQX_OK) {
        return; /* stopped; the parcel stays whole */
    }
    arena_store32(region, link, *list);
    arena_store32(region, list, parcel->head);
    arena_store32(region, &parcel->kind, MQX_PARCEL_NONE);
    mqx_undo_commit(&region->header->arena_lock);
    mqx_lock_drop(region, &region->header->arena_lock);
}

void mqx_stripe_guard_trim(struct mqx_stripe_guard *guard, uint32_t class_no)
{
    MQX_ASSERT(class_no < MQX_CLASS_COUNT);
    struct mqx_stripe *stripe = guard->stripe;
    const uint32_t keep = MQX_STRIPE_KEEP_BYTES / mqx_class_bytes(class_no);
    MQX_ASSERT(mqx_stripe_guard_held(guard));
    MQX_ASSERT(stripe->lock.undo_count == 0);
    if (stripe->free_count[class_no] <= keep || stripe->free_cells[class_no] == 0) {
        return;
    }
    if (stripe->outgoing.kind != MQX_PARCEL_NONE || pack_outgoing(guard, class_no)) {
        send_outgoing(guard);
    }
}

/* ---- long-lived bytes: a block of the global lists ---- */

static int block_from_lists(struct mqx_region *region, uint32_t size, uint32_t *out_cell)
{
    MQX_ASSERT(out_cell != NULL);
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    const uint32_t class_no = mqx_class_for(size);
    uint32_t count = 1;
    if (size > MQX_BLOCK_MAX) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                        "an attribute list of %u bytes; at most %u are kept", size,
                        (uint32_t)MQX_BLOCK_MAX);
    }
    return take_global(region, MQX_PARCEL_OF_CELLS, &region->header->global_cells[class_no],
                       mqx_class_bytes(class_no), &count, out_cell);
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
    const struct mqx_area *area = &region->header->area[MQX_AREA_ARENA];
    MQX_ASSERT(from != NULL || size == 0);
    MQX_ASSERT(out_cell != NULL);
    for (;;) {
        int status = mqx_lock_take(region, lock);
        if (status != MQX_OK) {
            return status;
        }
        status = block_from_lists(region, size, out_cell);
        if (status == MQX_OK) {
            name_cell(region, owner, *out_cell);
            mqx_undo_commit(lock);
        } else {
            mqx_undo_rollback(region, lock);
        }
        const uint64_t wanted = area->used * MQX_CELL + MQX_BLOCK_MAX;
        mqx_lock_drop(region, lock);
        if (status == MQX_OK) {
            MQX_ASSERT(mqx_cells(region, *out_cell) != NULL);
            memcpy(mqx_cells(region, *out_cell), from, size);
            return MQX_OK;
        }
        if (status == MQX_NEED_GROWTH) {
            status = mqx_region_grow(region, MQX_AREA_ARENA, wanted);
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
    uint32_t *list = &region->header->global_cells[mqx_class_for(size)];
    uint32_t *link = mqx_cells(region, cell);
    if (link == NULL || size > MQX_BLOCK_MAX) {
        return mqx_region_damage(region, "an attribute list to be given back", cell);
    }
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    arena_store32(region, link, *list);
    arena_store32(region, list, cell);
    name_cell(region, owner, 0);
    mqx_undo_commit(lock);
    mqx_lock_drop(region, lock);
    return MQX_OK;
}
