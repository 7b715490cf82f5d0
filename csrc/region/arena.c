/*
 * arena.c - blocks of cells, message entries and slots. See arena.h for terms and the parcel chain.
 *
 * Locks: functions with a hold need its stripe lock; refill and return take the arena lock inside
 * it; slots are taken under the slots lock alone.
 *
 * free_count[] and free_entry_count are hints for trimming: plain stores, possibly off after a
 * death. The lists themselves are the truth.
 */
#include "region/arena.h"

#include "base/error.h"

#include <string.h>

enum { ENTRY_CLASS = MQX_CLASS_COUNT, SMALL_CLASSES = 8 };

/* ---- size classes: 64..512 in steps of 64, then four per doubling up to MQX_BLOCK_MAX ---- */

uint32_t mqx_class_bytes(uint32_t class_no)
{
    mqx_check(class_no < MQX_CLASS_COUNT);
    if (class_no < SMALL_CLASSES) {
        return (class_no + 1) * MQX_CELL;
    }
    const uint32_t doubling = (class_no - SMALL_CLASSES) / 4;
    const uint32_t quarter = (class_no - SMALL_CLASSES) % 4 + 1;
    return (512u << doubling) + quarter * (128u << doubling);
}

uint32_t mqx_class_for(uint32_t bytes)
{
    mqx_check(bytes <= MQX_BLOCK_MAX);
    if (bytes <= 512) {
        return bytes == 0 ? 0 : (bytes - 1) / MQX_CELL;
    }
    const uint32_t doubling = 31u - (uint32_t)__builtin_clz(bytes - 1) - 9u;
    const uint32_t over = bytes - 1 - (512u << doubling);
    return SMALL_CLASSES + doubling * 4 + over / (128u << doubling);
}

static uint32_t parcel_count(uint32_t class_no)
{
    const uint32_t count = MQX_PARCEL_BYTES / mqx_class_bytes(class_no);
    return count == 0 ? 1 : count > MQX_LOCKED_STEPS_MAX ? MQX_LOCKED_STEPS_MAX : count;
}

/* ---- the free-list link of a block or entry ---- */

static uint32_t *link_of(const struct mqx_region *region, uint32_t kind, uint32_t item)
{
    if (kind == 2) {
        struct mqx_message *message = mqx_message(region, item);
        return message == NULL ? NULL : &message->unit_next;
    }
    return mqx_cells(region, item);
}

static MQX_COLD int damaged(const char *what, uint32_t item)
{
    return mqx_fail(MQRC_Q_MGR_NOT_AVAILABLE, "shared region: %s names item %u, which is not there",
                    what, item);
}

/* ---- holds ---- */

int mqx_stripe_guard_take(struct mqx_region *region, uint32_t object,
                          struct mqx_stripe_guard *guard)
{
    guard->region = region;
    guard->stripe = mqx_stripe_of(region, object);
    guard->want = 0;
    return mqx_lock_take(region, &guard->stripe->lock);
}

void mqx_stripe_guard_drop(struct mqx_stripe_guard *guard)
{
    mqx_lock_drop(guard->region, &guard->stripe->lock);
}

/* ---- taking and giving under the stripe lock ---- */

int mqx_cells_take(struct mqx_stripe_guard *guard, uint32_t class_no, uint32_t *out_cell)
{
    struct mqx_stripe *stripe = guard->stripe;
    const uint32_t cell = stripe->free_cells[class_no];
    uint32_t *link;
    if (MQX_UNLIKELY(cell == 0)) {
        guard->want = class_no;
        return MQX_NEED_CELLS;
    }
    link = mqx_cells(guard->region, cell);
    if (MQX_UNLIKELY(link == NULL)) {
        return damaged("a free list of cells", cell);
    }
    mqx_guard_store32(guard, &stripe->free_cells[class_no], *link);
    mqx_guard_store32(guard, link, 0);
    stripe->free_count[class_no] -= stripe->free_count[class_no] > 0;
    *out_cell = cell;
    return MQX_OK;
}

void mqx_cells_give(struct mqx_stripe_guard *guard, uint32_t class_no, uint32_t cell)
{
    struct mqx_stripe *stripe = guard->stripe;
    uint32_t *link = mqx_cells(guard->region, cell);
    mqx_check(link != NULL);
    mqx_check(class_no < MQX_CLASS_COUNT);
    mqx_guard_store32(guard, link, stripe->free_cells[class_no]);
    mqx_guard_store32(guard, &stripe->free_cells[class_no], cell);
    stripe->free_count[class_no] += 1;
}

int mqx_entry_take(struct mqx_stripe_guard *guard, uint32_t *out_slot)
{
    struct mqx_stripe *stripe = guard->stripe;
    const uint32_t slot = stripe->free_entries;
    struct mqx_message *message;
    if (MQX_UNLIKELY(slot == 0)) {
        guard->want = ENTRY_CLASS;
        return MQX_NEED_CELLS;
    }
    message = mqx_message(guard->region, slot);
    if (MQX_UNLIKELY(message == NULL || message->state != MQX_MSG_FREE)) {
        return damaged("a free list of message entries", slot);
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
    struct mqx_stripe *stripe = guard->stripe;
    struct mqx_message *message = mqx_message(guard->region, slot);
    mqx_check(message != NULL);
    mqx_check(message->state != MQX_MSG_FREE);
    mqx_guard_store8(guard, &message->state, MQX_MSG_FREE);
    mqx_guard_store32(guard, &message->unit_next, stripe->free_entries);
    mqx_guard_store32(guard, &stripe->free_entries, slot);
    stripe->free_entry_count += 1;
}

uint64_t mqx_number_take(struct mqx_stripe_guard *guard)
{
    enum { NUMBER_BLOCK = 4096 };
    struct mqx_stripe *stripe = guard->stripe;
    uint64_t number = stripe->next_number;
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
    uint32_t *list =
        parcel->kind == 2 ? &stripe->free_entries : &stripe->free_cells[parcel->class_no];
    uint32_t *link = link_of(guard->region, parcel->kind, parcel->head);
    uint32_t count = 1;
    while (link != NULL && *link != 0 && count <= parcel->count) {
        link = link_of(guard->region, parcel->kind, *link);
        count += 1;
    }
    if (link == NULL || count != parcel->count) {
        return damaged("a parcel of free cells", parcel->head);
    }
    mqx_guard_store32(guard, link, *list);
    mqx_guard_store32(guard, list, parcel->head);
    mqx_guard_store32(guard, &parcel->kind, 0);
    if (parcel->kind == 2) {
        stripe->free_entry_count += count;
    } else {
        stripe->free_count[parcel->class_no] += count;
    }
    mqx_stripe_guard_commit(guard);
    return MQX_OK;
}

static void arena_put32(struct mqx_region *region, uint32_t *at, uint32_t value)
{
    mqx_undo_store32(region->base, &region->header->arena_lock, at, value);
}

/* Cuts up to `want` items off a global list; 0 when it is empty. */
static uint32_t cut_global(struct mqx_region *region, uint32_t kind, uint32_t *list, uint32_t want,
                           uint32_t *out_head)
{
    uint32_t head = *list, last = head, count = head != 0;
    while (count != 0 && count < want) {
        const uint32_t *link = link_of(region, kind, last);
        if (link == NULL || *link == 0) {
            break;
        }
        last = *link;
        count += 1;
    }
    uint32_t *end = count == 0 ? NULL : link_of(region, kind, last);
    if (end == NULL) {
        return 0;
    }
    arena_put32(region, list, *end);
    arena_put32(region, end, 0);
    *out_head = head;
    return count;
}

/* Takes `count` items never used before and strings them together; they are fresh memory until
 * `used` moves. */
static int carve(struct mqx_region *region, enum mqx_area_kind area_kind, uint32_t kind,
                 uint32_t units, uint32_t count, uint32_t *out_head)
{
    struct mqx_area *area = &region->header->area[area_kind];
    const uint64_t first = area->used, end = first + (uint64_t)units * count;
    if (end * area->item_size > mqx_load_acquire(&area->capacity)) {
        return MQX_NEED_GROWTH;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t item = (uint32_t)first + i * units;
        uint32_t *link = link_of(region, kind, item);
        mqx_check(link != NULL);
        *link = i + 1 < count ? item + units : 0;
    }
    mqx_order();
    mqx_undo_store64(region->base, &region->header->arena_lock, &area->used, end);
    *out_head = (uint32_t)first;
    return MQX_OK;
}

/* Arena transaction: fills stripe->incoming with what is wanted. */
static int fill_parcel(struct mqx_stripe_guard *guard)
{
    struct mqx_region *region = guard->region;
    struct mqx_header *header = region->header;
    struct mqx_parcel *parcel = &guard->stripe->incoming;
    const bool entries = guard->want == ENTRY_CLASS;
    const uint32_t kind = entries ? 2 : 1;
    const uint32_t want = entries ? MQX_PARCEL_ENTRIES : parcel_count(guard->want);
    uint32_t *list = entries ? &header->area[MQX_AREA_MESSAGES].free_head
                             : &header->global_cells[guard->want];
    uint32_t head = 0;
    int status = mqx_lock_take(region, &header->arena_lock);
    if (status != MQX_OK) {
        return status;
    }
    uint32_t count = cut_global(region, kind, list, want, &head);
    if (count == 0) {
        count = want;
        status = entries ? carve(region, MQX_AREA_MESSAGES, kind, 1, want, &head)
                         : carve(region, MQX_AREA_ARENA, kind,
                                 mqx_class_bytes(guard->want) / MQX_CELL, want, &head);
    }
    if (status == MQX_OK) {
        arena_put32(region, &parcel->class_no, entries ? 0 : guard->want);
        arena_put32(region, &parcel->head, head);
        arena_put32(region, &parcel->count, count);
        arena_put32(region, &parcel->kind, kind);
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
    const bool entries = want == ENTRY_CLASS;
    const enum mqx_area_kind kind = entries ? MQX_AREA_MESSAGES : MQX_AREA_ARENA;
    const struct mqx_area *area = &region->header->area[kind];
    const uint64_t more = entries ? MQX_PARCEL_ENTRIES * sizeof(struct mqx_message)
                                  : (uint64_t)parcel_count(want) * mqx_class_bytes(want);
    return mqx_region_grow(region, kind, mqx_load_acquire(&area->used) * area->item_size + more);
}

int mqx_stripe_guard_supply(struct mqx_stripe_guard *guard)
{
    const uint32_t want = guard->want;
    bool supplied = false; /* what the roll back gave back was not enough: a parcel of that class
                            * must come */
    mqx_check(want <= ENTRY_CLASS);
    mqx_stripe_guard_rollback(guard);
    while (!supplied) {
        int status = MQX_OK;
        if (guard->stripe->incoming.kind != 0) {
            supplied = guard->stripe->incoming.kind == 2 ? want == ENTRY_CLASS
                                                        : guard->stripe->incoming.class_no == want;
            status = accept_parcel(guard);
        } else {
            guard->want = want;
            status = fill_parcel(guard);
        }
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
    return MQX_OK;
}

/* Stripe transaction: the first parcel's worth of the free list becomes the outgoing parcel. */
static bool pack_outgoing(struct mqx_stripe_guard *guard, uint32_t class_no)
{
    struct mqx_stripe *stripe = guard->stripe;
    const uint32_t want = parcel_count(class_no), head = stripe->free_cells[class_no];
    uint32_t count = 1;
    uint32_t *link = mqx_cells(guard->region, head);
    while (link != NULL && *link != 0 && count < want) {
        link = mqx_cells(guard->region, *link);
        count += 1;
    }
    if (link == NULL) {
        return false;
    }
    mqx_guard_store32(guard, &stripe->free_cells[class_no], *link);
    mqx_guard_store32(guard, link, 0);
    mqx_guard_store32(guard, &stripe->outgoing.class_no, class_no);
    mqx_guard_store32(guard, &stripe->outgoing.head, head);
    mqx_guard_store32(guard, &stripe->outgoing.count, count);
    mqx_guard_store32(guard, &stripe->outgoing.kind, 1);
    stripe->free_count[class_no] -= count;
    mqx_stripe_guard_commit(guard);
    return true;
}

/* Arena transaction: the outgoing parcel goes to the front of the global list. */
static void send_outgoing(struct mqx_stripe_guard *guard)
{
    struct mqx_region *region = guard->region;
    struct mqx_parcel *parcel = &guard->stripe->outgoing;
    uint32_t *list = &region->header->global_cells[parcel->class_no % MQX_CLASS_COUNT];
    uint32_t *link = mqx_cells(region, parcel->head);
    if (mqx_lock_take(region, &region->header->arena_lock) != MQX_OK) {
        return; /* stopped; the parcel stays whole */
    }
    for (uint32_t i = 1; i < parcel->count && link != NULL && *link != 0; i++) {
        link = mqx_cells(region, *link);
    }
    if (link != NULL) {
        arena_put32(region, link, *list);
        arena_put32(region, list, parcel->head);
        arena_put32(region, &parcel->kind, 0);
        mqx_undo_commit(&region->header->arena_lock);
    }
    mqx_lock_drop(region, &region->header->arena_lock);
}

void mqx_stripe_guard_trim(struct mqx_stripe_guard *guard, uint32_t class_no)
{
    struct mqx_stripe *stripe = guard->stripe;
    const uint32_t keep = MQX_STRIPE_KEEP_BYTES / mqx_class_bytes(class_no);
    mqx_check(stripe->lock.undo_count == 0);
    if (stripe->free_count[class_no] <= keep || stripe->free_cells[class_no] == 0) {
        return;
    }
    if (stripe->outgoing.kind != 0 || pack_outgoing(guard, class_no)) {
        send_outgoing(guard);
    }
}

/* ---- slots ---- */

static uint32_t *next_free_of(const struct mqx_region *region, enum mqx_area_kind kind,
                              uint32_t slot)
{
    struct mqx_context *context = kind == MQX_AREA_CONTEXTS ? mqx_context(region, slot) : NULL;
    struct mqx_handle *handle = kind == MQX_AREA_HANDLES ? mqx_handle(region, slot) : NULL;
    struct mqx_object *object = kind == MQX_AREA_OBJECTS ? mqx_object(region, slot) : NULL;
    return context != NULL  ? &context->next_free
           : handle != NULL ? &handle->next_free
           : object != NULL ? &object->next_free
                            : NULL;
}

/* Marks a slot as ours in the slots lock's micro-transaction. */
static void mark_taken(struct mqx_region *region, enum mqx_area_kind kind, uint32_t slot)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    if (kind == MQX_AREA_CONTEXTS) {
        struct mqx_context *context = mqx_context(region, slot);
        mqx_undo_store32(region->base, lock, &context->process, region->process);
        mqx_undo_store32(region->base, lock, &context->state, MQX_CTX_IDLE);
    } else if (kind == MQX_AREA_HANDLES) {
        struct mqx_handle *handle = mqx_handle(region, slot);
        mqx_undo_store32(region->base, lock, &handle->process, region->process);
        mqx_undo_store32(region->base, lock, &handle->state, 1);
    } else {
        struct mqx_object *object = mqx_object(region, slot);
        mqx_undo_store32(region->base, lock, &object->state, MQX_OBJ_DEFINING);
    }
}

static int slot_from_lists(struct mqx_region *region, enum mqx_area_kind kind, uint32_t *out)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_area *area = &region->header->area[kind];
    if (area->free_head != 0) {
        uint32_t *next = next_free_of(region, kind, area->free_head);
        if (next == NULL) {
            return damaged("a list of free slots", area->free_head);
        }
        *out = area->free_head;
        mqx_undo_store32(region->base, lock, &area->free_head, *next);
        mqx_undo_store32(region->base, lock, next, 0);
        return MQX_OK;
    }
    if ((area->used + 1) * area->item_size > mqx_load_acquire(&area->capacity)) {
        return MQX_NEED_GROWTH;
    }
    *out = (uint32_t)area->used;
    mqx_undo_store64(region->base, lock, &area->used, area->used + 1);
    return MQX_OK;
}

int mqx_slot_take(struct mqx_region *region, enum mqx_area_kind kind, uint32_t *hand, uint32_t *out)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_area *area = &region->header->area[kind];
    mqx_check(kind == MQX_AREA_OBJECTS || kind == MQX_AREA_CONTEXTS || kind == MQX_AREA_HANDLES);
    for (;;) {
        int status = mqx_lock_take(region, lock);
        if (status != MQX_OK) {
            return status;
        }
        status = slot_from_lists(region, kind, out);
        if (status == MQX_OK) {
            mark_taken(region, kind, *out);
            if (hand != NULL) {
                mqx_undo_store32(region->base, lock, hand, *out);
            }
            mqx_undo_commit(lock);
        } else {
            mqx_undo_rollback(region, lock);
        }
        const uint64_t wanted = (area->used + 1) * area->item_size;
        mqx_lock_drop(region, lock);
        if (status != MQX_NEED_GROWTH) {
            return status;
        }
        status = mqx_region_grow(region, kind, wanted);
        if (status != MQX_OK) {
            return status;
        }
    }
}

int mqx_slot_give(struct mqx_region *region, enum mqx_area_kind kind, uint32_t slot)
{
    struct mqx_lock *lock = &region->header->slots_lock;
    struct mqx_area *area = &region->header->area[kind];
    uint32_t *next = next_free_of(region, kind, slot);
    mqx_check(next != NULL);
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    if (kind == MQX_AREA_CONTEXTS) {
        mqx_undo_store32(region->base, lock, &mqx_context(region, slot)->state, MQX_CTX_FREE);
    } else if (kind == MQX_AREA_HANDLES) {
        mqx_undo_store32(region->base, lock, &mqx_handle(region, slot)->state, 0);
    } else {
        struct mqx_object *object = mqx_object(region, slot);
        mqx_undo_store32(region->base, lock, &object->generation, object->generation + 1);
        mqx_undo_store32(region->base, lock, &object->state, MQX_OBJ_FREE);
    }
    mqx_undo_store32(region->base, lock, next, area->free_head);
    mqx_undo_store32(region->base, lock, &area->free_head, slot);
    mqx_undo_commit(lock);
    mqx_lock_drop(region, lock);
    return MQX_OK;
}

/* ---- long-lived bytes: a block of the global lists, or a run of fresh cells when it is longer
 * ---- */

static int bytes_from_lists(struct mqx_region *region, uint32_t size, uint32_t *out_cell)
{
    if (size <= MQX_BLOCK_MAX) {
        const uint32_t class_no = mqx_class_for(size);
        if (cut_global(region, 1, &region->header->global_cells[class_no], 1, out_cell) == 1) {
            return MQX_OK;
        }
        return carve(region, MQX_AREA_ARENA, 1, mqx_class_bytes(class_no) / MQX_CELL, 1, out_cell);
    }
    return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE,
                    "an attribute list of %u bytes; at most %u are kept", size,
                    (uint32_t)MQX_BLOCK_MAX);
}

static void name_cell(struct mqx_region *region, uint32_t *owner, uint32_t cell)
{
    if (owner != NULL) {
        arena_put32(region, owner, cell);
    }
}

int mqx_store_bytes(struct mqx_region *region, const void *from, uint32_t size, uint32_t *owner,
                    uint32_t *out_cell)
{
    struct mqx_lock *lock = &region->header->arena_lock;
    const struct mqx_area *area = &region->header->area[MQX_AREA_ARENA];
    for (;;) {
        int status = mqx_lock_take(region, lock);
        if (status != MQX_OK) {
            return status;
        }
        status = bytes_from_lists(region, size, out_cell);
        if (status == MQX_OK) {
            name_cell(region, owner, *out_cell);
            mqx_undo_commit(lock);
        } else {
            mqx_undo_rollback(region, lock);
        }
        const uint64_t wanted = area->used * area->item_size + MQX_BLOCK_MAX;
        mqx_lock_drop(region, lock);
        if (status == MQX_OK) {
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
    struct mqx_lock *lock = &region->header->arena_lock;
    uint32_t *list = &region->header->global_cells[mqx_class_for(size)];
    uint32_t *link = mqx_cells(region, cell);
    mqx_check(link != NULL);
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    arena_put32(region, link, *list);
    arena_put32(region, list, cell);
    name_cell(region, owner, 0);
    mqx_undo_commit(lock);
    mqx_lock_drop(region, lock);
    return MQX_OK;
}
