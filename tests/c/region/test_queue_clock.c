/* Claims of queue_clock.h: the wall clock, and what it was advanced by. */
#include "fixtures/engine_fixture.h"
#include "region/queue_clock.h"

#define DAY_US 86400000000ull

TEST(the_clock_of_queues_is_the_wall_clock_until_it_is_advanced)
{
    engine_begin();
    struct mqx_region *region = engine_region();
    CHECK_INT(mqx_queue_advanced_us(region), 0);
    const uint64_t before = mqx_clock_wall_us(), now = mqx_queue_now_us(region);
    CHECK(before <= now && now <= mqx_clock_wall_us());
    mqx_store_relaxed(&region->header->advanced_us, DAY_US);
    CHECK(mqx_queue_now_us(region) >= now + DAY_US);
    CHECK(mqx_queue_coarse_us(region) >= now + DAY_US - 1000000);
    CHECK(mqx_queue_coarse_us(region) <= mqx_queue_now_us(region));
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
