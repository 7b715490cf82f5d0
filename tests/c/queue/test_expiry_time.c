/* Claims of expiry_time.h: rounding, and that it stays the same through restarts. */
#include "fixtures/engine_fixture.h"

#include "queue/expiry_time.h"

TEST(an_expiry_is_rounded_up_to_tenths_once_and_never_becomes_none)
{
    engine_begin();
    const struct mqx_region *region = engine_region();
    const uint64_t base = mqx_expiry_base(region);
    CHECK_INT(mqx_expiry_of(region, 0), 0);
    CHECK_INT(mqx_expiry_of(region, 1), 1);
    CHECK_INT(mqx_expiry_of(region, base), 1);
    CHECK_INT(mqx_expiry_of(region, base + 100000), 1);
    CHECK_INT(mqx_expiry_of(region, base + 100001), 2);
    CHECK_INT(mqx_expiry_of(region, UINT64_MAX), UINT32_MAX);
    for (uint64_t at = base + 1; at < base + 2000000; at += 77777) {
        struct mqx_message message = {.expiry = mqx_expiry_of(region, at)};
        const uint64_t rounded = mqx_expiry_us_of(region, &message);
        CHECK(rounded >= at);
        CHECK(rounded < at + 100000);
        CHECK_INT(mqx_expiry_of(region, rounded), message.expiry);
        CHECK(!mqx_queue_expired(region, &message, rounded - 1));
        CHECK(mqx_queue_expired(region, &message, rounded));
    }
    const struct mqx_message unlimited = {.expiry = 0};
    CHECK_INT(mqx_expiry_us_of(region, &unlimited), 0);
    CHECK(!mqx_queue_expired(region, &unlimited, UINT64_MAX));
}

TEST_MAIN()
