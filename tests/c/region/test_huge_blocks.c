/* Claims of huge_blocks.h: an area asks for whole blocks of what it grows by and for nothing else;
 * a block counts from when it has come until a part of it is punched. */
#include "fixtures/region_fixture.h"
#include "region/extents.h"
#include "region/huge_blocks.h"

enum { MIB = 1 << 20 };

/* A system that lends so many blocks; what it was asked for last. */
static struct mqx_io_ops lending;
static uint64_t lent, asked_from, asked_bytes, asked_count;

static uint64_t lend(struct mqx_io *io, int fd, uint64_t offset, uint64_t size)
{
    const uint64_t most = lent * MQX_HUGE_BLOCK, got = size < most ? size : most;
    CHECK(io == region.io && fd == region.fd);
    CHECK(offset % MQX_HUGE_BLOCK == 0 && size % MQX_HUGE_BLOCK == 0 && size > 0);
    CHECK(mqx_lock_held(&region, &region.header->growth_lock));
    asked_from = offset;
    asked_bytes = size;
    asked_count += 1;
    lent -= got / MQX_HUGE_BLOCK;
    return got;
}

static void begin(uint64_t blocks)
{
    struct mqx_region_plan plan = region_plan();
    plan.growth_step = MIB;
    region_begin_with(&plan);
    lending = *region.io->ops;
    lending.allocate_huge = lend;
    region.io->ops = &lending;
    lent = blocks;
    asked_count = 0;
}

static uint64_t capacity_of(enum mqx_area_kind kind)
{
    return region.header->area[kind].capacity;
}

TEST(a_growth_ends_at_the_end_of_a_block_and_never_beyond_what_it_was)
{
    struct test_random random = {test_seed()};
    for (int i = 0; i < 100000; i++) {
        const uint64_t offset = test_below(&random, 1u << 20) * 4096;
        const uint64_t capacity = test_below(&random, 1u << 16) * 4096;
        const uint64_t target = capacity + 4096 * (1 + test_below(&random, 4096));
        const uint64_t wanted = test_below(&random, target + 1);
        const uint64_t end = mqx_huge_target(offset, capacity, wanted, target);
        CHECK(end > capacity && end >= wanted && end <= target);
        CHECK(target - end < MQX_HUGE_BLOCK);
        CHECK(end == target || (offset + end) % MQX_HUGE_BLOCK == 0);
        CHECK(end == target || target - capacity >= MQX_HUGE_BLOCK);
        const uint64_t last = (offset + target) / MQX_HUGE_BLOCK * MQX_HUGE_BLOCK;
        CHECK(target - capacity < MQX_HUGE_BLOCK || last < offset + wanted ||
              last <= offset + capacity || offset + end == last);
    }
}

TEST(an_area_that_is_small_asks_for_nothing)
{
    begin(1000);
    for (int i = 0; i < 10; i++) {
        CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, capacity_of(MQX_AREA_ARENA) + 1), 0);
        CHECK_INT(mqx_region_grow(&region, MQX_AREA_MESSAGES,
                                  capacity_of(MQX_AREA_MESSAGES) + 1), 0);
    }
    CHECK(capacity_of(MQX_AREA_ARENA) >= 10 * MIB && capacity_of(MQX_AREA_ARENA) < 11 * MIB);
    CHECK_INT(asked_count, 0);
    CHECK_INT(mqx_huge_bytes(&region), 0);
}

TEST(a_growing_area_asks_once_for_each_block_that_lies_wholly_in_what_is_new)
{
    char text[MQX_HUGE_TEXT];
    begin(1000);
    const uint64_t offset = (uint64_t)(region.area[MQX_AREA_ARENA] - region.base);
    uint64_t huge = 0, end = 0;
    while (capacity_of(MQX_AREA_ARENA) < 300 * (uint64_t)MIB) {
        const uint64_t from = offset + capacity_of(MQX_AREA_ARENA), count = asked_count;
        CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, capacity_of(MQX_AREA_ARENA) + 1), 0);
        const uint64_t to = offset + capacity_of(MQX_AREA_ARENA);
        if (asked_count != count) {
            CHECK_INT(asked_count, count + 1);
            CHECK(asked_from >= from && asked_from < from + MQX_HUGE_BLOCK);
            CHECK(asked_from + asked_bytes <= to && asked_from + asked_bytes > to - MQX_HUGE_BLOCK);
            CHECK(end == 0 || asked_from == end); /* no block is left out once they have begun */
            end = asked_from + asked_bytes;
            huge += asked_bytes;
        }
        CHECK_INT(mqx_huge_bytes(&region), huge);
    }
    CHECK(huge > 270 * (uint64_t)MIB);
    mqx_huge_explain(&region, text);
    CHECK_STR(text, "");
}

TEST(blocks_that_the_system_refuses_do_not_count_and_have_memory_all_the_same)
{
    char text[MQX_HUGE_TEXT];
    begin(3);
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, 40 * MIB), 0);
    CHECK_INT(mqx_huge_bytes(&region), 3 * MQX_HUGE_BLOCK);
    memset(region.area[MQX_AREA_ARENA], 1, 40 * MIB);
    begin(0);
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, 40 * MIB), 0);
    CHECK_INT(asked_count, 1);
    CHECK_INT(mqx_huge_bytes(&region), 0);
    mqx_huge_explain(&region, text);
    CHECK(text[0] != '\0');
    lending.allocate_huge = NULL; /* a table that knows none */
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, 80 * MIB), 0);
    CHECK_INT(mqx_huge_bytes(&region), 0);
}

TEST(a_block_counts_no_more_when_an_extent_in_it_is_punched)
{
    begin(1000);
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, 40 * MIB), 0);
    const uint64_t before = mqx_huge_bytes(&region);
    const uint64_t offset = (uint64_t)(region.area[MQX_AREA_ARENA] - region.base);
    const uint64_t block = mqx_round_up(offset, MQX_HUGE_BLOCK);
    CHECK(before >= 38 * (uint64_t)MIB);
    CHECK_INT(mqx_lock_take(&region, &region.header->growth_lock), 0);
    mqx_huge_split(&region, block + MQX_EXTENT_BYTES, MQX_EXTENT_BYTES);
    CHECK_INT(mqx_huge_bytes(&region), before - MQX_HUGE_BLOCK);
    mqx_huge_split(&region, block + 5 * MQX_EXTENT_BYTES, MQX_EXTENT_BYTES); /* the same block */
    CHECK_INT(mqx_huge_bytes(&region), before - MQX_HUGE_BLOCK);
    mqx_huge_split(&region, block + 2 * MQX_HUGE_BLOCK - 4096, MQX_EXTENT_BYTES); /* two of them */
    CHECK_INT(mqx_huge_bytes(&region), before - 3 * MQX_HUGE_BLOCK);
    mqx_lock_drop(&region, &region.header->growth_lock);
}

TEST(all_blocks_of_an_area_that_is_emptied_are_punched_and_count_no_more)
{
    enum { COUNT = 400, CLASS_BYTES = 65536 };
    static uint32_t item[COUNT];
    begin(1000);
    const uint32_t class_no = mqx_class_for(CLASS_BYTES);
    CHECK_INT(mqx_region_grow(&region, MQX_AREA_ARENA, 40 * MIB), 0);
    const uint64_t before = mqx_huge_bytes(&region);
    uint32_t count = 0, done = 0, all = 0;
    for (int i = 0; i < COUNT; i++) {
        CHECK_INT(mqx_lock_take(&region, &region.header->arena_lock), 0);
        CHECK_INT(mqx_extents_take(&region, class_no, 1, &item[i], &count), 0);
        mqx_undo_commit(&region.header->arena_lock);
        mqx_lock_drop(&region, &region.header->arena_lock);
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK_INT(mqx_lock_take(&region, &region.header->arena_lock), 0);
        CHECK_INT(mqx_extents_give(&region, class_no, item[i]), 0);
        mqx_undo_commit(&region.header->arena_lock);
        mqx_lock_drop(&region, &region.header->arena_lock);
    }
    CHECK_INT(mqx_huge_bytes(&region), before);
    do {
        CHECK_INT(mqx_extents_punch(&region, MQX_POOL_CELLS, MQX_PUNCH_BATCH, &done), 0);
        all += done;
    } while (done != 0);
    CHECK_INT(mqx_extents_punched_bytes(&region, MQX_POOL_CELLS), all * (uint64_t)MQX_EXTENT_BYTES);
    CHECK(all * (uint64_t)MQX_EXTENT_BYTES >= 24 * (uint64_t)MIB);
    CHECK(mqx_huge_bytes(&region) <= before - 22 * (uint64_t)MIB);
    CHECK(mqx_huge_bytes(&region) > 0); /* those that nothing was ever in */
}

TEST(blocks_beyond_the_last_bit_are_allocated_and_not_counted)
{
    begin(UINT64_C(1) << 40);
    const uint64_t size = region.size, far = (uint64_t)MQX_HUGE_WORDS * 64 * MQX_HUGE_BLOCK;
    CHECK_INT(mqx_lock_take(&region, &region.header->growth_lock), 0);
    region.size = far + 100 * (uint64_t)MIB;
    mqx_huge_back(&region, far - 4 * MIB, 20 * MIB);
    CHECK_INT(mqx_huge_bytes(&region), 4 * MIB);
    mqx_huge_split(&region, far - 4096, 8 * MIB);
    CHECK_INT(mqx_huge_bytes(&region), 2 * MIB);
    region.size = size;
    mqx_lock_drop(&region, &region.header->growth_lock);
}

TEST(the_fixture_is_removed)
{
    region_end();
}

TEST_MAIN()
