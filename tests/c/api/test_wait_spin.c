/* Claims of wait_spin.h: when a wait spins, for how long, and how it learns that from waits. */
#include "fixtures/harness.h"

#include "api/wait_spin.h"
#include "os/host_info.h"

#include <sched.h>

static void near_waits(struct mqx_spin *spin, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        CHECK_INT(mqx_spin_length(spin, MQX_PARTNER_UNKNOWN), 0);
        mqx_spin_count(spin, 0, false, MQX_SPIN_NEAR_US);
    }
}

TEST(the_first_waits_sleep_and_after_some_near_ones_comes_a_trial_where_it_can_serve)
{
    struct mqx_spin spin = {0};
    const uint32_t trial = mqx_usable_processors() > 1 ? MQX_SPIN_TRIAL_US : 0;
    near_waits(&spin, MQX_SPIN_PATIENCE_LEAST);
    CHECK_INT(mqx_spin_length(&spin, MQX_PARTNER_UNKNOWN), trial);
    CHECK_INT(mqx_spin_length(&spin, MQX_PARTNER_UNKNOWN), 0); /* its near waits are used up */
}

TEST(a_thread_bound_to_one_processor_tries_when_it_has_woken_a_partner_on_another)
{
    struct mqx_spin spin = {0};
    cpu_set_t all, one;
    CHECK_INT(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)mqx_current_processor(), &one);
    CHECK_INT(sched_setaffinity(0, sizeof one, &one), 0);
    near_waits(&spin, MQX_SPIN_PATIENCE_LEAST);
    CHECK_INT(mqx_spin_length(&spin, MQX_PARTNER_UNKNOWN), 0);
    near_waits(&spin, MQX_SPIN_PATIENCE_LEAST);
    CHECK_INT(mqx_spin_length(&spin, MQX_PARTNER_ELSEWHERE), MQX_SPIN_TRIAL_US);
    CHECK_INT(sched_setaffinity(0, sizeof all, &all), 0);
}

TEST(waits_that_are_long_never_lead_to_a_spin)
{
    struct mqx_spin spin = {0};
    for (int i = 0; i < 1000; i++) {
        CHECK_INT(mqx_spin_length(&spin, MQX_PARTNER_UNKNOWN), 0);
        mqx_spin_count(&spin, 0, false, i % 4 == 0 ? MQX_SPIN_NEAR_US + 1 : MQX_SPIN_NEAR_US);
    }
}

TEST(a_spin_that_serves_is_followed_by_others_until_some_were_in_vain)
{
    struct mqx_spin spin = {0};
    int spins = 0;
    mqx_spin_count(&spin, MQX_SPIN_TRIAL_US, true, 3);
    for (int i = 0; i < 100; i++) {
        CHECK_INT(mqx_spin_length(&spin, MQX_PARTNER_UNKNOWN), MQX_SPIN_US);
        mqx_spin_count(&spin, MQX_SPIN_US, true, 3);
    }
    while (spins < 100 && mqx_spin_length(&spin, MQX_PARTNER_UNKNOWN) != 0) {
        mqx_spin_count(&spin, MQX_SPIN_US, false, 5000);
        spins += 1;
    }
    CHECK_INT(spins, 5); /* 16, 8, 4, 2, 1 */
}

TEST(one_long_wait_among_short_ones_is_followed_by_a_trial_and_does_not_end_the_spins)
{
    struct mqx_spin spin = {0};
    for (int i = 0; i < 100; i++) {
        mqx_spin_count(&spin, MQX_SPIN_US, true, 3);
    }
    mqx_spin_count(&spin, MQX_SPIN_US, false, 5000);
    CHECK_INT(mqx_spin_length(&spin, MQX_PARTNER_UNKNOWN), MQX_SPIN_TRIAL_US);
    mqx_spin_count(&spin, MQX_SPIN_TRIAL_US, true, 40); /* the partner had to be woken */
    CHECK_INT(mqx_spin_length(&spin, MQX_PARTNER_UNKNOWN), MQX_SPIN_US);
    CHECK(spin.credit > 1);
}

TEST(trials_in_vain_become_rare)
{
    struct mqx_spin spin = {0};
    uint32_t before = 0;
    for (int i = 0; i < 20; i++) {
        uint32_t waits = 0;
        for (; spin.near_waits < MQX_SPIN_PATIENCE_MOST && waits <= before * 2 + 4; waits++) {
            mqx_spin_count(&spin, 0, false, 80);
            if (mqx_spin_length(&spin, MQX_PARTNER_UNKNOWN) != 0) {
                break;
            }
        }
        mqx_spin_count(&spin, MQX_SPIN_TRIAL_US, false, 200);
        CHECK(spin.patience >= before);
        before = spin.patience;
    }
    CHECK_INT(spin.patience, MQX_SPIN_PATIENCE_MOST);
}

TEST(a_trial_that_served_late_gives_one_spin_and_keeps_its_patience)
{
    struct mqx_spin spin = {.patience = 64};
    mqx_spin_count(&spin, MQX_SPIN_TRIAL_US, true, MQX_SPIN_US + 1);
    CHECK_INT(mqx_spin_length(&spin, MQX_PARTNER_UNKNOWN), MQX_SPIN_US);
    mqx_spin_count(&spin, MQX_SPIN_US, false, 100);
    CHECK_INT(mqx_spin_length(&spin, MQX_PARTNER_UNKNOWN), 0);
    CHECK_INT(spin.patience, 128);
}

TEST(a_partner_that_is_awake_is_a_reason_to_spin_until_it_was_in_vain_some_times)
{
    struct mqx_spin spin = {0};
    CHECK_INT(mqx_spin_length(&spin, MQX_PARTNER_UNKNOWN), 0);
    for (int i = 0; i < MQX_SPIN_MISSES_MAX; i++) {
        CHECK_INT(mqx_spin_length(&spin, MQX_PARTNER_AWAKE), MQX_SPIN_US);
        mqx_spin_count(&spin, MQX_SPIN_US, false, 70);
    }
    CHECK_INT(mqx_spin_length(&spin, MQX_PARTNER_AWAKE), 0);
}

TEST(a_spin_ends_with_the_change_of_the_word_or_with_its_time)
{
    uint32_t word = 7;
    CHECK(mqx_spin_on(&word, 6, MQX_SPIN_US));
    CHECK(!mqx_spin_on(&word, 7, MQX_SPIN_US));
}

TEST_MAIN()
