/*
 * reclaim.c - see reclaim.h.
 */
#include "region/reclaim.h"

#include "base/error.h"
#include "region/arena.h"
#include "region/extents.h"

enum {
    LOOK_US = 450000,       /* a little less than the time between rounds of maintenance */
    PUNCHED_A_STEP = 8192,  /* extents: 1 GiB, about 0.3 s of the maintenance thread */
};

/* The classes of which the stripe's free list has items that nobody has touched since the last
 * look. */
static uint64_t quiet_classes(struct mqx_stripe *stripe)
{
    MQX_ASSERT(stripe != NULL);
    MQX_ASSERT((uintptr_t)stripe % MQX_CELL == 0);
    uint64_t classes = 0;
    MQX_STATIC_ASSERT(MQX_LIST_COUNT <= 64, "a bit a class");
    for (uint32_t c = 0; c < MQX_LIST_COUNT; c++) {
        const uint32_t head = mqx_arena_head(stripe, c);
        classes |= (uint64_t)(head != 0 && head == stripe->seen_head[c]) << c;
        stripe->seen_head[c] = head;
    }
    return classes;
}

static int return_quiet_lists(struct mqx_region *region)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->maintenance_lock));
    MQX_ASSERT(region->stripe_mask < MQX_STRIPE_MAX);
    int status = MQX_OK;
    for (uint32_t i = 0; i <= region->stripe_mask && status == MQX_OK; i++) {
        const uint64_t classes = quiet_classes(&region->stripes[i]);
        status = classes == 0 ? MQX_OK : mqx_arena_return(region, i, classes);
    }
    return status;
}

/* How many extents of the pool were free throughout the window, or where memory is short since the
 * last stretch ended; the next one begins. */
static uint32_t always_free(struct mqx_pool *pool, bool is_short)
{
    MQX_ASSERT(pool != NULL);
    MQX_ASSERT((uintptr_t)pool % sizeof pool->extents_offset == 0);
    const uint32_t now = mqx_load_relaxed(&pool->free_count);
    const uint32_t low = mqx_load_relaxed(&pool->free_low);
    uint32_t least = low < now ? low : now;
    mqx_store_relaxed(&pool->free_low, now);
    pool->lows[pool->next_low % MQX_STRETCHES] = least;
    pool->next_low = (pool->next_low + 1) % MQX_STRETCHES;
    for (uint32_t i = 0; i < MQX_STRETCHES && !is_short; i++) {
        least = pool->lows[i] < least ? pool->lows[i] : least;
    }
    return least;
}

/* *out_more: there are more than a step punches. */
static int punch_free_extents(struct mqx_region *region, enum mqx_pool_no no, bool is_short,
                              bool *out_more)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->maintenance_lock));
    struct mqx_pool *pool = &region->header->pool[no];
    const uint32_t free = always_free(pool, is_short);
    uint32_t left = free > MQX_EXTENTS_KEPT ? free - MQX_EXTENTS_KEPT : 0;
    bool more = left != 0 || mqx_load_relaxed(&pool->to_punch) != 0;
    int status = MQX_OK;
    MQX_ASSERT(no < MQX_POOL_COUNT);
    *out_more = *out_more || left > PUNCHED_A_STEP;
    left = left < PUNCHED_A_STEP ? left : (uint32_t)PUNCHED_A_STEP;
    while (more && status == MQX_OK) {
        const uint32_t want = left < MQX_PUNCH_BATCH ? left : (uint32_t)MQX_PUNCH_BATCH;
        uint32_t done = 0;
        status = mqx_extents_punch(region, no, want, &done);
        left -= want;
        more = left != 0 && done != 0;
    }
    return status;
}

/* Was memory refused lately? A refusal at this moment may be lost: puts that wait are refused
 * again. */
static bool is_memory_short(struct mqx_header *header)
{
    const uint32_t looks = mqx_load_relaxed(&header->short_looks);
    MQX_ASSERT(header->reclaimed_us != 0);
    MQX_STATIC_ASSERT(MQX_SHORT_LOOKS > 0, "a refusal is seen");
    if (looks != 0) {
        mqx_store_relaxed(&header->short_looks, looks <= MQX_SHORT_LOOKS ? looks - 1 : 0);
    }
    return looks != 0;
}

static bool is_stretch_over(const struct mqx_header *header, uint64_t now_us)
{
    MQX_ASSERT(now_us != 0);
    MQX_ASSERT(header->reclaimed_us == now_us);
    return now_us < header->stretch_us || now_us - header->stretch_us >= MQX_STRETCH_US;
}

int mqx_reclaim_step(struct mqx_region *region, uint64_t now_us)
{
    MQX_ASSERT(mqx_lock_held(region, &region->header->maintenance_lock));
    MQX_ASSERT(region->stripe_mask < MQX_STRIPE_MAX);
    struct mqx_header *header = region->header;
    const uint64_t last_us = header->reclaimed_us;
    if (now_us >= last_us && now_us - last_us < LOOK_US) { /* a clock may be set back */
        return MQX_OK;
    }
    header->reclaimed_us = now_us;
    int status = return_quiet_lists(region);
    if (status != MQX_OK) {
        return status;
    }
    const bool is_short = is_memory_short(header);
    if (!is_short && !is_stretch_over(header, now_us)) {
        return MQX_OK;
    }
    bool more = false;
    for (int no = 0; no < MQX_POOL_COUNT && status == MQX_OK; no++) {
        status = punch_free_extents(region, (enum mqx_pool_no)no, is_short, &more);
    }
    header->stretch_us = more ? header->stretch_us : now_us;
    return status;
}

int mqx_reclaim_ahead(struct mqx_region *region, enum mqx_pool_no no)
{
    const enum mqx_area_kind kind = no == MQX_POOL_ENTRIES ? MQX_AREA_MESSAGES : MQX_AREA_ARENA;
    MQX_ASSERT(no < MQX_POOL_COUNT);
    MQX_ASSERT(!mqx_lock_held(region, &region->header->growth_lock));
    const uint64_t step = region->header->area[kind].step;
    const uint64_t extents = step < MQX_EXTENT_BYTES ? 1 : step / MQX_EXTENT_BYTES;
    const bool full = (mqx_load_acquire(&region->header->area[kind].used) + 1) *
                          region->header->area[kind].item_size + extents * MQX_EXTENT_BYTES >
                      region->header->area[kind].reserved_bytes;
    if (mqx_extents_available(region, no) >= extents ||
        (full && mqx_extents_punched_bytes(region, no) == 0)) {
        return MQX_OK;
    }
    return mqx_extents_grow(region, no, (uint32_t)extents);
}
