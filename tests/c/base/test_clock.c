/* Claims of clock.c: durations never go back, wall time is microseconds since 1970, sleeps last. */
#include "base/clock.h"
#include "fixtures/harness.h"

#include <time.h>

TEST(the_monotonic_clock_never_goes_back)
{
    uint64_t before = mqx_clock_monotonic_us();
    for (int i = 0; i < 10000; i++) {
        const uint64_t now = mqx_clock_monotonic_us();
        CHECK(now >= before);
        before = now;
    }
}

TEST(wall_and_coarse_clock_say_the_time_of_day_within_a_second)
{
    const uint64_t seconds = (uint64_t)time(NULL);
    const uint64_t wall = mqx_clock_wall_us(), coarse = mqx_clock_coarse_us();
    CHECK(wall / 1000000 - seconds <= 1);
    CHECK(coarse <= mqx_clock_wall_us() && wall - coarse < 1000000);
}

TEST(a_sleep_lasts_as_long_as_asked)
{
    static const uint64_t lengths[] = {0, 1, 20000, 1000001};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(lengths); i++) {
        const uint64_t before = mqx_clock_monotonic_us();
        mqx_clock_sleep_us(lengths[i]);
        CHECK(mqx_clock_monotonic_us() - before >= lengths[i]);
    }
}

TEST_MAIN()
