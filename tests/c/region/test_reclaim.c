/* Claims of reclaim.c: what stripes and extents do not use leaves the file after a few seconds, or
 * at once where memory was refused; a load that comes and goes keeps its memory. */
#include "fixtures/region_fixture.h"
#include "region/arena.h"
#include "region/extents.h"
#include "region/reclaim.h"

enum {
    CLASS = 23, COUNT = 1024, OF_EXTENT = 16, /* 8 MiB in blocks of 8 KiB */
    WINDOW = MQX_STRETCHES,  /* looks, one a second: each ends a stretch */
    GONE = WINDOW + 3,       /* looks after which free memory has gone back */
};
static const uint64_t SECOND = 1000000;
static struct mqx_stripe_guard guard;
static uint64_t now;
static uint32_t cells[COUNT];

static void look_after(uint64_t us)
{
    now += us;
    CHECK_INT(mqx_lock_take(&region, &region.header->maintenance_lock), 0);
    CHECK_INT(mqx_reclaim_step(&region, now), 0);
    mqx_lock_drop(&region, &region.header->maintenance_lock);
}

static void look(void)
{
    look_after(SECOND);
}

static void take(uint32_t from, uint32_t to)
{
    CHECK_INT(mqx_stripe_guard_take(&region, 1, &guard), 0);
    for (uint32_t i = from; i < to; i++) {
        while (mqx_cells_take(&guard, CLASS, &cells[i]) == MQX_NEED_CELLS) {
            CHECK_INT(mqx_stripe_guard_supply(&guard), 0);
        }
        mqx_stripe_guard_commit(&guard);
    }
    mqx_stripe_guard_drop(&guard);
}

static void give(uint32_t from, uint32_t to)
{
    CHECK_INT(mqx_stripe_guard_take(&region, 1, &guard), 0);
    for (uint32_t i = from; i < to; i++) {
        mqx_cells_give(&guard, CLASS, cells[i]);
        mqx_stripe_guard_commit(&guard);
    }
    mqx_stripe_guard_drop(&guard);
}

static uint64_t punched(void)
{
    return mqx_extents_punched_bytes(&region, MQX_POOL_CELLS) / MQX_EXTENT_BYTES;
}

static void begin(void)
{
    region_begin();
    now = 1000 * SECOND;
    look();
}

TEST(what_a_quiet_stripe_keeps_is_returned_and_free_extents_are_punched)
{
    begin();
    take(0, COUNT);
    give(0, COUNT);
    CHECK(region.stripes[1].free_cells[CLASS] != 0);
    for (int i = 0; i < GONE; i++) {
        look();
    }
    CHECK_INT(region.stripes[1].free_cells[CLASS], 0);
    CHECK_INT(mqx_extents_used_bytes(&region, MQX_POOL_CELLS), 0);
    CHECK_INT(region.header->pool[MQX_POOL_CELLS].free_count, MQX_EXTENTS_KEPT);
    CHECK(punched() >= COUNT / OF_EXTENT - MQX_EXTENTS_KEPT);
}

TEST(survivors_keep_their_extents_and_no_others)
{
    enum { SURVIVORS = 10 };
    begin();
    take(0, COUNT);
    give(0, COUNT - SURVIVORS);
    for (int i = 0; i < GONE; i++) {
        look();
    }
    CHECK(mqx_extents_used_bytes(&region, MQX_POOL_CELLS) <= 2 * MQX_EXTENT_BYTES);
    CHECK(punched() >= COUNT / OF_EXTENT - MQX_EXTENTS_KEPT - 2);
}

TEST(a_list_that_is_in_use_stays_and_a_load_that_comes_and_goes_keeps_its_memory)
{
    begin();
    for (int i = 0; i < 10; i++) {
        take(0, COUNT);
        give(0, COUNT);
        take(0, 1); /* another head than at the last look */
        look();
        give(0, 1);
    }
    CHECK(region.stripes[1].free_cells[CLASS] != 0);
    CHECK_INT(punched(), 0);
}

TEST(a_load_that_comes_in_each_window_keeps_its_memory_in_between)
{
    begin();
    for (int i = 0; i < 5; i++) {
        take(0, COUNT);
        give(0, COUNT);
        for (int second = 1; second < WINDOW; second++) { /* as maintenance looks */
            look_after(SECOND / 2);
            look_after(SECOND / 2);
        }
    }
    CHECK_INT(region.stripes[1].free_cells[CLASS], 0);
    CHECK(region.header->pool[MQX_POOL_CELLS].free_count >= COUNT / OF_EXTENT);
    CHECK_INT(punched(), 0);
}

TEST(memory_that_is_free_goes_back_at_once_where_some_was_refused)
{
    begin();
    take(0, COUNT);
    give(0, COUNT);
    look();
    look();
    CHECK_INT(punched(), 0);
    const uint64_t limit = region.header->memory_limit;
    region.header->memory_limit = 1;
    CHECK_INT(mqx_extents_grow(&region, MQX_POOL_ENTRIES, 1), MQRC_STORAGE_NOT_AVAILABLE);
    region.header->memory_limit = limit;
    look();
    look();
    CHECK(punched() >= COUNT / OF_EXTENT - MQX_EXTENTS_KEPT);
}

TEST(a_number_of_looks_that_a_stray_pointer_wrote_does_no_harm)
{
    begin();
    region.header->short_looks = UINT32_MAX;
    look();
    CHECK_INT(region.header->short_looks, 0);
}

TEST(looks_that_follow_at_once_do_nothing_and_a_clock_that_is_set_back_does_not_stop_them)
{
    begin();
    take(0, COUNT);
    give(0, COUNT);
    for (int i = 0; i < 10; i++) {
        now -= SECOND - 1;
        look();
    }
    CHECK_INT(punched(), 0);
    now -= 500 * SECOND;
    for (int i = 0; i < GONE; i++) {
        look();
    }
    CHECK(punched() > 0);
}

TEST(a_pool_has_a_step_of_free_memory_ahead_and_takes_punched_extents_first)
{
    begin();
    for (int no = 0; no < MQX_POOL_COUNT; no++) {
        CHECK_INT(mqx_reclaim_ahead(&region, (enum mqx_pool_no)no), 0);
        CHECK(mqx_extents_available(&region, (enum mqx_pool_no)no) >= 1);
    }
    take(0, COUNT);
    give(0, COUNT);
    for (int i = 0; i < GONE; i++) {
        look();
    }
    const uint64_t capacity = region.header->area[MQX_AREA_ARENA].capacity;
    take(0, COUNT);
    CHECK_INT(mqx_reclaim_ahead(&region, MQX_POOL_CELLS), 0);
    CHECK(region.header->area[MQX_AREA_ARENA].capacity <= capacity + MQX_EXTENT_BYTES);
}

TEST(the_fixture_is_removed)
{
    region_end();
}

TEST_MAIN()
