/* Claims of base.h: rounding up, counting arrays, and limits that fit each other. */
#include "base/base.h"
#include "fixtures/harness.h"

TEST(rounding_up_gives_the_next_multiple_of_a_power_of_two)
{
    for (uint64_t a = 1; a <= 4096; a *= 2) {
        for (uint64_t n = 0; n <= 3 * a; n += a < 8 ? 1 : a / 8) {
            const uint64_t up = mqx_round_up(n, a);
            CHECK(up >= n && up - n < a && up % a == 0);
        }
    }
    CHECK(mqx_round_up(UINT64_MAX - 4095, 4096) == UINT64_MAX - 4095);
}

static int fails(void) MQX_MUST_USE;
static int fails(void)
{
    return 2053;
}

TEST(a_must_use_status_can_be_ignored_in_so_many_words_and_arrays_are_counted)
{
    const struct { char a[3]; } three[3] = {{{0}}};
    mqx_ignore(fails());
    CHECK_INT(MQX_ARRAY_COUNT(three), 3);
    CHECK_INT(MQX_ARRAY_COUNT(three[0].a), 3);
}

TEST(the_limits_fit_each_other)
{
    CHECK_INT(MQX_MAX_PRIORITY, MQX_PRIORITY_COUNT - 1);
    CHECK(MQX_LOCKED_COPY_MAX < MQX_RING_RECORD_MAX);
    CHECK_INT(MQX_RING_RECORD_MAX % MQX_PAGE_SIZE, 0);
    CHECK(MQX_MAX_BODY > MQX_RING_RECORD_MAX);
}

TEST_MAIN()
