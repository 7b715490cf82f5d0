/*
 * extents.c - see extents.h.
 */
#include "region/extents.h"

#include "base/error.h"
#include "region/huge_blocks.h"

enum {
    EXTENT_ENTRIES = MQX_EXTENT_BYTES / sizeof(struct mqx_message),
    EXTENT_CELLS = MQX_EXTENT_BYTES / MQX_CELL,
    GROW_EXTENTS = 16,      /* punched extents that are backed in one hold of the growth lock */
    GRACE_TRIES = 1000,  /* for one stripe lock, a few microseconds each */
};
MQX_STATIC_ASSERT(EXTENT_ENTRIES * sizeof(struct mqx_message) == MQX_EXTENT_BYTES, "whole entries");
MQX_STATIC_ASSERT(MQX_EXTENT_BYTES >= 2 * MQX_BLOCK_MAX, "the first has room for a block, too");
MQX_STATIC_ASSERT(MQX_EXTENT_BYTES % MQX_PAGE_SIZE == 0, "extents are punched in pages");

/* ---- addresses ---- */

static enum mqx_area_kind area_kind(enum mqx_pool_no no)
{
    MQX_ASSERT(no < MQX_POOL_COUNT);
    return no == MQX_POOL_ENTRIES ? MQX_AREA_MESSAGES : MQX_AREA_ARENA;
}

static struct mqx_area *area_of(const struct mqx_region *region, enum mqx_pool_no no)
{
    MQX_ASSERT(region->header != NULL);
    MQX_ASSERT(region->base == (unsigned char *)region->header);
    return &region->header->area[area_kind(no)];
}

/* Items of the pool's area (entries, cells) in an extent. */
static uint32_t extent_items(enum mqx_pool_no no)
{
    MQX_ASSERT(no < MQX_POOL_COUNT);
    return no == MQX_POOL_ENTRIES ? (uint32_t)EXTENT_ENTRIES : (uint32_t)EXTENT_CELLS;
}

/* The record of an extent that lies in memory of its area that this process may touch; else
 * NULL. */
static struct mqx_extent *extent_at(const struct mqx_region *region, enum mqx_pool_no no,
                                    uint64_t extent)
{
    MQX_ASSERT(region->extents[no] != NULL);
    MQX_ASSERT(no < MQX_POOL_COUNT);
    return extent == 0 || extent > region->extent_count[no] ||
                   !mqx_area_has(region, area_kind(no), extent * MQX_EXTENT_BYTES)
               ? NULL
               : region->extents[no] + (extent - 1);
}

static uint32_t extent_of(enum mqx_pool_no no, uint32_t item)
{
    MQX_ASSERT(no < MQX_POOL_COUNT);
    MQX_ASSERT(extent_items(no) > 1);
    return item / extent_items(no) + 1;
}

uint32_t *mqx_item_link(const struct mqx_region *region, uint32_t class_no, uint32_t item)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(class_no < MQX_LIST_COUNT);
    if (class_no != MQX_ENTRY_CLASS) {
        return mqx_cells(region, item);
    }
    struct mqx_message *message = mqx_message(region, item);
    return message == NULL ? NULL : &message->unit_next;
}

static void store32(struct mqx_region *region, uint32_t *at, uint32_t value)
{
    MQX_ASSERT((unsigned char *)at > region->base);
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    mqx_undo_store32(region->base, &region->header->arena_lock, at, value);
}

static MQX_COLD int damaged_extent(const struct mqx_region *region, uint32_t extent)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(region->header != NULL);
    return mqx_region_damage(region, "the record of an extent of items", extent);
}

/* ---- lists of extents ---- */

static bool is_exhausted(const struct mqx_extent *extent)
{
    MQX_ASSERT(extent != NULL);
    MQX_ASSERT(extent->state == MQX_EXTENT_USED);
    return extent->free_head == 0 && extent->carved == extent->total;
}

/* Takes an extent out of the list of its class. */
static int unlink_partial(struct mqx_region *region, enum mqx_pool_no no, struct mqx_extent *extent)
{
    MQX_ASSERT(extent->class_no < MQX_LIST_COUNT);
    struct mqx_extent *next = extent_at(region, no, extent->next);
    struct mqx_extent *prev = extent_at(region, no, extent->prev);
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    if ((next == NULL) != (extent->next == 0) || (prev == NULL) != (extent->prev == 0)) {
        return damaged_extent(region, extent->next);
    }
    store32(region, prev != NULL ? &prev->next : &region->header->partial[extent->class_no],
            extent->next);
    if (next != NULL) {
        store32(region, &next->prev, extent->prev);
    }
    return MQX_OK;
}

static int link_partial(struct mqx_region *region, enum mqx_pool_no no, uint32_t number,
                        struct mqx_extent *extent)
{
    MQX_ASSERT(number != 0);
    uint32_t *list = &region->header->partial[extent->class_no];
    struct mqx_extent *first = extent_at(region, no, *list);
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    if ((first == NULL) != (*list == 0)) {
        return damaged_extent(region, *list);
    }
    store32(region, &extent->next, *list);
    store32(region, &extent->prev, 0);
    store32(region, list, number);
    if (first != NULL) {
        store32(region, &first->prev, number);
    }
    return MQX_OK;
}

/* Moves the first extent of one list of a pool to another, in a state; *out: which, 0: none. */
static int move_first(struct mqx_region *region, enum mqx_pool_no no, uint32_t *from, uint32_t *to,
                      enum mqx_extent_state state, uint32_t *out)
{
    MQX_ASSERT(from != to);
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    MQX_ASSERT(no < MQX_POOL_COUNT);
    struct mqx_pool *pool = &region->header->pool[no];
    struct mqx_extent *extent = extent_at(region, no, *from);
    const uint32_t was = from == &pool->free       ? MQX_EXTENT_FREE
                         : from == &pool->to_punch ? MQX_EXTENT_TO_PUNCH
                                                   : MQX_EXTENT_PUNCHED;
    *out = *from;
    if (extent == NULL || extent->state != was) { /* of a list that is a ring, too */
        return *from == 0 ? MQX_OK : damaged_extent(region, *from);
    }
    store32(region, from, extent->next);
    store32(region, &extent->next, *to);
    store32(region, to, *out);
    store32(region, &extent->state, state);
    if (from == &pool->free || to == &pool->free) {
        store32(region, &pool->free_count,
                to == &pool->free ? pool->free_count + 1 : pool->free_count - 1);
    }
    return MQX_OK;
}

/* ---- an extent for a class ---- */

static int take_free_extent(struct mqx_region *region, enum mqx_pool_no no, uint32_t *out)
{
    MQX_ASSERT(region->header->pool[no].free != 0);
    struct mqx_pool *pool = &region->header->pool[no];
    const struct mqx_extent *extent = extent_at(region, no, pool->free);
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    if (extent == NULL || extent->state != MQX_EXTENT_FREE || pool->free_count == 0) {
        return damaged_extent(region, pool->free);
    }
    *out = pool->free;
    store32(region, &pool->free, extent->next);
    store32(region, &pool->free_count, pool->free_count - 1);
    store32(region, &pool->idle_count, pool->idle_count - 1);
    if (pool->free_count < mqx_load_relaxed(&pool->free_low)) {
        mqx_store_relaxed(&pool->free_low, pool->free_count);
    }
    return MQX_OK;
}

static int take_fresh_extent(struct mqx_region *region, enum mqx_pool_no no, uint32_t *out)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    struct mqx_area *area = area_of(region, no);
    const uint64_t extent = area->used / extent_items(no) + 1, end = extent * extent_items(no);
    MQX_ASSERT(end % extent_items(no) == 0);
    if (area->used == 0 || area->used > UINT32_MAX || end > UINT32_MAX) {
        return mqx_region_damage(region, "the count of used cells or entries", area->used);
    }
    if (extent_at(region, no, extent) == NULL) {
        return MQX_NEED_GROWTH;
    }
    mqx_undo_store64(region->base, &region->header->arena_lock, &area->used, end);
    *out = (uint32_t)extent;
    return MQX_OK;
}

/* Gives a class, which has no partial extent, a free or fresh one. */
static int start_extent(struct mqx_region *region, uint32_t class_no)
{
    const enum mqx_pool_no no = mqx_pool_of(class_no);
    uint32_t number = 0;
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    MQX_ASSERT(region->header->partial[class_no] == 0);
    if (mqx_class_bytes(class_no) > MQX_BLOCK_MAX) {
        return mqx_region_damage(region, "the class of wanted cells", class_no);
    }
    int status = region->header->pool[no].free != 0 ? take_free_extent(region, no, &number)
                                                    : take_fresh_extent(region, no, &number);
    if (status != MQX_OK) {
        return status;
    }
    struct mqx_extent *extent = extent_at(region, no, number);
    MQX_ASSERT(extent != NULL); /* both have looked at it */
    store32(region, &extent->state, MQX_EXTENT_USED);
    store32(region, &extent->class_no, class_no);
    store32(region, &extent->total, MQX_EXTENT_BYTES / mqx_class_bytes(class_no));
    store32(region, &extent->carved, number == 1); /* item 0 of the area means "none" */
    store32(region, &extent->in_use, 0);
    store32(region, &extent->free_head, 0);
    return link_partial(region, no, number, extent);
}

/* ---- taking ---- */

/* Cuts up to `want` items off the extent's list. */
static int cut(struct mqx_region *region, uint32_t class_no, struct mqx_extent *extent,
               uint32_t want, uint32_t *out_count)
{
    MQX_ASSERT(want >= 1);
    MQX_ASSERT(extent->free_head != 0);
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    uint32_t last = extent->free_head, count = 1;
    uint32_t *end = mqx_item_link(region, class_no, last);
    for (; end != NULL && *end != 0 && count < want; count++) {
        last = *end;
        end = mqx_item_link(region, class_no, last);
    }
    if (end == NULL) {
        return mqx_region_damage(region, "the free list of an extent", last);
    }
    store32(region, &extent->free_head, *end);
    store32(region, end, 0);
    *out_count = count;
    return MQX_OK;
}

/* Strings up to `want` items together that were never handed out; nobody reads them before they
 * are. */
static int carve(struct mqx_region *region, uint32_t class_no, uint32_t number,
                 struct mqx_extent *extent, uint32_t want, uint32_t *out_head, uint32_t *out_count)
{
    const enum mqx_pool_no no = mqx_pool_of(class_no);
    MQX_ASSERT(want >= 1);
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    if (extent->carved >= extent->total || extent->total > extent_items(no)) {
        return damaged_extent(region, number);
    }
    const uint32_t left = extent->total - extent->carved, count = left < want ? left : want;
    const uint32_t size = mqx_class_bytes(class_no) / (MQX_EXTENT_BYTES / extent_items(no));
    const uint32_t first = (number - 1) * extent_items(no) + extent->carved * size;
    MQX_ASSERT(first != 0);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *link = mqx_item_link(region, class_no, first + i * size);
        if (link == NULL) {
            return mqx_region_damage(region, "the capacity of an area", first);
        }
        *link = i + 1 < count ? first + (i + 1) * size : 0;
    }
    mqx_order();
    store32(region, &extent->carved, extent->carved + count);
    *out_head = first;
    *out_count = count;
    return MQX_OK;
}

int mqx_extents_take(struct mqx_region *region, uint32_t class_no, uint32_t want,
                     uint32_t *out_head, uint32_t *out_count)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    MQX_ASSERT(want >= 1);
    const enum mqx_pool_no no = mqx_pool_of(class_no);
    const uint32_t *list = &region->header->partial[class_no];
    int status = *list == 0 ? start_extent(region, class_no) : MQX_OK;
    if (status != MQX_OK) {
        return status;
    }
    const uint32_t number = *list;
    struct mqx_extent *extent = extent_at(region, no, number);
    if (extent == NULL || extent->state != MQX_EXTENT_USED || extent->class_no != class_no ||
        extent->in_use >= extent->total) {
        return damaged_extent(region, number);
    }
    *out_head = extent->free_head;
    status = extent->free_head != 0
                 ? cut(region, class_no, extent, want, out_count)
                 : carve(region, class_no, number, extent, want, out_head, out_count);
    if (status != MQX_OK) {
        return status;
    }
    store32(region, &extent->in_use, extent->in_use + *out_count);
    return is_exhausted(extent) ? unlink_partial(region, no, extent) : MQX_OK;
}

/* ---- giving ---- */

/* The last item of an extent has come back. */
static int free_extent(struct mqx_region *region, enum mqx_pool_no no, uint32_t number,
                    struct mqx_extent *extent)
{
    MQX_ASSERT(extent->in_use == 0);
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    struct mqx_pool *pool = &region->header->pool[no];
    store32(region, &extent->state, MQX_EXTENT_FREE);
    store32(region, &extent->next, pool->free);
    store32(region, &pool->free, number);
    store32(region, &pool->free_count, pool->free_count + 1);
    store32(region, &pool->idle_count, pool->idle_count + 1);
    return MQX_OK;
}

/* The link of the last item of the extent at the front of a chain, and how many there are; NULL
 * when a link leads nowhere. */
static uint32_t *follow_within(const struct mqx_region *region, uint32_t class_no, uint32_t head,
                               uint32_t most, uint32_t *out_count)
{
    const enum mqx_pool_no no = mqx_pool_of(class_no);
    const uint32_t number = extent_of(no, head);
    uint32_t *link = mqx_item_link(region, class_no, head);
    uint32_t count = 1;
    MQX_ASSERT(most >= 1);
    MQX_ASSERT(out_count != NULL);
    for (; link != NULL && count < most && *link != 0 && extent_of(no, *link) == number; count++) {
        link = mqx_item_link(region, class_no, *link);
    }
    *out_count = count;
    return link;
}

int mqx_extents_give_chain(struct mqx_region *region, uint32_t class_no, uint32_t head,
                           uint32_t most, uint32_t *out_count, uint32_t *out_rest)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->arena_lock));
    const enum mqx_pool_no no = mqx_pool_of(class_no);
    const uint32_t number = extent_of(no, head);
    struct mqx_extent *extent = extent_at(region, no, number);
    uint32_t *link = follow_within(region, class_no, head, most, out_count);
    MQX_ASSERT(class_no < MQX_LIST_COUNT);
    MQX_ASSERT(out_rest != NULL);
    if (extent == NULL || link == NULL || extent->state != MQX_EXTENT_USED ||
        extent->class_no != class_no || extent->in_use < *out_count) {
        return mqx_region_damage(region, "an item that is given back to its extent", head);
    }
    const bool listed = !is_exhausted(extent);
    *out_rest = *link;
    store32(region, link, extent->free_head);
    store32(region, &extent->free_head, head);
    store32(region, &extent->in_use, extent->in_use - *out_count);
    int status = MQX_OK;
    if (extent->in_use == 0) {
        status = listed ? unlink_partial(region, no, extent) : MQX_OK;
        return status == MQX_OK ? free_extent(region, no, number, extent) : status;
    }
    return listed ? MQX_OK : link_partial(region, no, number, extent);
}

int mqx_extents_give(struct mqx_region *region, uint32_t class_no, uint32_t item)
{
    uint32_t count, rest;
    MQX_ASSERT(item != 0);
    MQX_ASSERT(class_no < MQX_LIST_COUNT);
    return mqx_extents_give_chain(region, class_no, item, 1, &count, &rest);
}

/* ---- backing and punching; the growth lock keeps the lists of extents without memory ---- */

/* One move in a micro-transaction of its own. */
static int move_locked(struct mqx_region *region, enum mqx_pool_no no, uint32_t *from, uint32_t *to,
                       enum mqx_extent_state state, uint32_t *out)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->growth_lock));
    MQX_ASSERT(out != NULL);
    struct mqx_lock *lock = &region->header->arena_lock;
    int status = mqx_lock_take(region, lock);
    if (status != MQX_OK) {
        return status;
    }
    status = move_first(region, no, from, to, state, out);
    MQX_ASSERT(status != MQX_OK || *out == 0 || lock->undo_count > 0);
    if (status == MQX_OK) {
        mqx_undo_commit(lock);
    } else {
        mqx_undo_rollback(region, lock);
    }
    mqx_lock_drop(region, lock);
    return status;
}

/* The first extent of a list that only holders of the growth lock change; a dead one's half-made
 * change is rolled back before. */
static int first_locked(struct mqx_region *region, const uint32_t *list, uint32_t *out)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->growth_lock));
    MQX_ASSERT(out != NULL);
    struct mqx_lock *lock = &region->header->arena_lock;
    const int status = mqx_lock_take(region, lock);
    if (status == MQX_OK) {
        *out = *list;
        mqx_lock_drop(region, lock);
    }
    return status;
}

static uint64_t extent_offset(const struct mqx_region *region, enum mqx_pool_no no, uint32_t number)
{
    MQX_ASSERT(number != 0);
    MQX_ASSERT(number <= region->extent_count[no]);
    return (uint64_t)(region->area[area_kind(no)] - region->base) +
           (uint64_t)(number - 1) * MQX_EXTENT_BYTES;
}

/* Allocates the memory of up to `want` punched extents. *out_backed less than that: there are no
 * more, or the file system is full. */
static int back_punched(struct mqx_region *region, enum mqx_pool_no no, uint32_t want,
                        uint32_t *out_backed)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->growth_lock));
    MQX_ASSERT(*out_backed == 0);
    struct mqx_pool *pool = &region->header->pool[no];
    uint32_t number = 0, moved = 0;
    while (*out_backed < want) {
        int status = first_locked(region, &pool->punched, &number);
        if (status != MQX_OK || number == 0) {
            return status;
        }
        if (extent_at(region, no, number) == NULL) {
            return damaged_extent(region, number);
        }
        status = mqx_region_back(region, area_kind(no), (uint64_t)(number - 1) * MQX_EXTENT_BYTES,
                                 MQX_EXTENT_BYTES);
        if (status != MQX_OK) {
            return *out_backed != 0 ? MQX_OK : status;
        }
        status = move_locked(region, no, &pool->punched, &pool->free, MQX_EXTENT_FREE, &moved);
        if (status != MQX_OK) {
            return status;
        }
        *out_backed += moved == number;
    }
    return MQX_OK;
}

static int grow(struct mqx_region *region, enum mqx_pool_no no, uint32_t extents)
{
    MQX_ASSERT(extents >= 1);
    MQX_ASSERT(no < MQX_POOL_COUNT);
    MQX_ASSERT(!mqx_lock_held(region, &region->header->arena_lock));
    const struct mqx_area *area = area_of(region, no);
    uint32_t backed = 0;
    int status = mqx_lock_enter(region, &region->header->growth_lock);
    if (status != MQX_OK) {
        return status;
    }
    status = back_punched(region, no, extents > GROW_EXTENTS ? extents : (uint32_t)GROW_EXTENTS,
                          &backed);
    mqx_lock_drop(region, &region->header->growth_lock);
    const uint64_t used = mqx_load_acquire(&area->used);
    if (status != MQX_OK || backed != 0) {
        return status;
    }
    if (used > UINT32_MAX) {
        return mqx_region_damage(region, "the count of used cells or entries", used);
    }
    return mqx_region_grow(region, area_kind(no),
                           (used / extent_items(no) + extents) * (uint64_t)MQX_EXTENT_BYTES);
}

int mqx_extents_grow(struct mqx_region *region, enum mqx_pool_no no, uint32_t extents)
{
    MQX_ASSERT(no < MQX_POOL_COUNT);
    MQX_ASSERT(region->header != NULL);
    const int status = grow(region, no, extents);
    if (status == MQRC_STORAGE_NOT_AVAILABLE) {
        mqx_store_relaxed(&region->header->short_looks, (uint32_t)MQX_SHORT_LOOKS);
    }
    return status;
}

/* Every stripe lock has been free at a moment after this call began; false: one was busy for too
 * long. */
static bool pass_grace(struct mqx_region *region)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->growth_lock));
    MQX_ASSERT(!mqx_lock_held(region, &region->header->arena_lock));
    for (uint32_t i = 0; i <= region->stripe_mask; i++) {
        struct mqx_lock *lock = &region->stripes[i].lock;
        int status = MQX_BUSY;
        for (int try = 0; try < GRACE_TRIES && status == MQX_BUSY; try++) {
            status = mqx_lock_try(region, lock);
        }
        if (status != MQX_OK) {
            return false;
        }
        mqx_lock_drop(region, lock);
    }
    return true;
}

/* Makes the holes of the extents that are to be punched. */
static int punch_listed(struct mqx_region *region, enum mqx_pool_no no, uint32_t *out_done)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->growth_lock));
    MQX_ASSERT(out_done != NULL);
    struct mqx_pool *pool = &region->header->pool[no];
    struct mqx_io *io = region->io;
    uint32_t number = 0, moved = 0;
    int status = first_locked(region, &pool->to_punch, &number);
    bool refused = false;
    while (status == MQX_OK && number != 0) {
        if (extent_at(region, no, number) == NULL) {
            return damaged_extent(region, number);
        }
        const uint64_t offset = extent_offset(region, no, number);
        mqx_huge_split(region, offset, MQX_EXTENT_BYTES);
        refused = refused || !mqx_reach_owns_fd(region) ||
                  io->ops->punch(io, region->fd, offset, MQX_EXTENT_BYTES) != 0;
        status = refused ? move_locked(region, no, &pool->to_punch, &pool->free, MQX_EXTENT_FREE,
                                       &moved)
                         : move_locked(region, no, &pool->to_punch, &pool->punched,
                                       MQX_EXTENT_PUNCHED, &moved);
        *out_done += status == MQX_OK && !refused;
        status = status == MQX_OK ? first_locked(region, &pool->to_punch, &number) : status;
    }
    return status;
}

int mqx_extents_punch(struct mqx_region *region, enum mqx_pool_no no, uint32_t count,
                   uint32_t *out_done)
{
    MQX_ASSERT(count <= MQX_PUNCH_BATCH);
    struct mqx_pool *pool = &region->header->pool[no];
    uint32_t number = 1;
    *out_done = 0;
    MQX_ASSERT(no < MQX_POOL_COUNT);
    int status = mqx_lock_enter(region, &region->header->growth_lock);
    if (status != MQX_OK) {
        return status;
    }
    for (uint32_t i = 0; i < count && number != 0 && status == MQX_OK; i++) {
        status =
            move_locked(region, no, &pool->free, &pool->to_punch, MQX_EXTENT_TO_PUNCH, &number);
    }
    if (status == MQX_OK && pass_grace(region)) {
        status = punch_listed(region, no, out_done);
    }
    mqx_lock_drop(region, &region->header->growth_lock);
    return status;
}

/* ---- figures and readers without the arena lock ---- */

uint64_t mqx_extents_available(const struct mqx_region *region, enum mqx_pool_no no)
{
    const struct mqx_area *area = area_of(region, no);
    const uint64_t backed = mqx_load_acquire(&area->capacity) / MQX_EXTENT_BYTES;
    const uint64_t used = mqx_load_relaxed(&area->used) / extent_items(no);
    MQX_ASSERT(no < MQX_POOL_COUNT);
    MQX_ASSERT(region->extents[no] != NULL);
    return mqx_load_relaxed(&region->header->pool[no].free_count) +
           (backed > used ? backed - used : 0);
}

uint64_t mqx_extents_used_bytes(const struct mqx_region *region, enum mqx_pool_no no)
{
    const uint64_t begun = mqx_load_relaxed(&area_of(region, no)->used) / extent_items(no);
    const uint64_t idle = mqx_load_relaxed(&region->header->pool[no].idle_count);
    MQX_ASSERT(no < MQX_POOL_COUNT);
    MQX_ASSERT(region->extents[no] != NULL);
    return begun > idle ? (begun - idle) * MQX_EXTENT_BYTES : 0;
}

uint64_t mqx_extents_punched_bytes(const struct mqx_region *region, enum mqx_pool_no no)
{
    const struct mqx_pool *pool = &region->header->pool[no];
    const uint64_t idle = mqx_load_relaxed(&pool->idle_count);
    const uint64_t free = mqx_load_relaxed(&pool->free_count);
    MQX_ASSERT(no < MQX_POOL_COUNT);
    MQX_ASSERT(region->extents[no] != NULL);
    return idle > free ? (idle - free) * MQX_EXTENT_BYTES : 0;
}

static bool holds_entries(const struct mqx_region *region, uint64_t slot)
{
    MQX_ASSERT(region->header != NULL);
    MQX_ASSERT(region->extents[MQX_POOL_ENTRIES] != NULL);
    const struct mqx_extent *extent =
        extent_at(region, MQX_POOL_ENTRIES, slot / EXTENT_ENTRIES + 1);
    return extent != NULL && mqx_load_acquire(&extent->state) == MQX_EXTENT_USED;
}

struct mqx_message *mqx_message_peek(const struct mqx_region *region, uint32_t slot)
{
    MQX_ASSERT(region != NULL);
    MQX_ASSERT(region->header != NULL);
    return holds_entries(region, slot) ? mqx_message(region, slot) : NULL;
}

uint64_t mqx_message_next_used(const struct mqx_region *region, uint64_t slot)
{
    MQX_ASSERT(region != NULL);
    const uint64_t used = mqx_area_used(region, MQX_AREA_MESSAGES);
    while (slot < used && !holds_entries(region, slot)) {
        slot = (slot / EXTENT_ENTRIES + 1) * EXTENT_ENTRIES;
    }
    MQX_ASSERT(slot >= used || holds_entries(region, slot));
    return slot;
}
