/* Claims of context.h: any one changed word of a unit that has records shows in its sum. */
#include "fixtures/region_fixture.h"

static struct mqx_context unit_with_records(void)
{
    struct mqx_context unit = {.unit_id = 7, .first_lsn = 4160, .record_count = 3,
                               .running_crc = 0x1234};
    unit.unit_sum = mqx_unit_sum(&unit);
    return unit;
}

TEST(a_unit_without_records_needs_no_sum_and_has_none)
{
    struct mqx_context unit = {.unit_id = 9};
    CHECK(mqx_unit_is_sound(&unit));
    unit.first_lsn = 4096; /* one that no append has written */
    CHECK(!mqx_unit_is_sound(&unit));
}

/* The first append would count on from them, and its sum would make them true. */
TEST(a_count_or_crc_before_the_first_record_shows)
{
    for (uint32_t bit = 0; bit < 32; bit++) {
        CHECK(!mqx_unit_is_sound(&(struct mqx_context){.record_count = 1u << bit}));
        CHECK(!mqx_unit_is_sound(&(struct mqx_context){.running_crc = 1u << bit}));
    }
}

TEST(every_changed_bit_of_a_unit_with_records_shows)
{
    for (uint32_t bit = 0; bit < 64; bit++) {
        struct mqx_context unit = unit_with_records();
        CHECK(mqx_unit_is_sound(&unit));
        unit.unit_id ^= UINT64_C(1) << bit;
        CHECK(!mqx_unit_is_sound(&unit));
        unit = unit_with_records();
        unit.first_lsn ^= UINT64_C(1) << bit;
        CHECK(!mqx_unit_is_sound(&unit));
        unit = unit_with_records();
        unit.record_count ^= 1u << bit % 32;
        CHECK(!mqx_unit_is_sound(&unit));
        unit = unit_with_records();
        unit.running_crc ^= 1u << bit % 32;
        CHECK(!mqx_unit_is_sound(&unit));
    }
}

TEST(a_first_lsn_that_was_zeroed_shows)
{
    struct mqx_context unit = unit_with_records();
    unit.first_lsn = 0;
    CHECK(!mqx_unit_is_sound(&unit));
}

TEST_MAIN()
