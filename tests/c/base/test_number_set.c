/*
 * test_number_set.c - proves number_set.h: what was added is in the set, nothing else is, and runs
 * of numbers take little memory.
 */
#include "fixtures/harness.h"

#include "base/number_set.h"

TEST(an_empty_set_has_nothing)
{
    struct mqx_number_set set = {0};
    CHECK(!mqx_number_set_has(&set, 0));
    CHECK(!mqx_number_set_has(&set, 1));
    mqx_number_set_free(&set);
}

TEST(a_set_has_what_was_added_while_it_grows)
{
    struct mqx_number_set set = {0};
    enum { COUNT = 20000 };
    for (uint64_t i = 0; i < COUNT; i++) { /* every third number, runs far apart */
        const uint64_t number = i / 50 * 0x100000001u + i % 50 * 3;
        CHECK(!mqx_number_set_has(&set, number));
        CHECK_INT(mqx_number_set_add(&set, number), 0);
        CHECK_INT(mqx_number_set_add(&set, number), 0);
        CHECK(4 * set.used <= 3 * set.capacity);
    }
    for (uint64_t i = 0; i < COUNT; i++) {
        const uint64_t number = i / 50 * 0x100000001u + i % 50 * 3;
        CHECK(mqx_number_set_has(&set, number));
        CHECK(!mqx_number_set_has(&set, number + 1));
        CHECK(!mqx_number_set_has(&set, number + 2));
    }
    mqx_number_set_free(&set);
    CHECK_INT(set.capacity, 0);
}

TEST(the_lowest_and_the_highest_number_are_numbers_like_others)
{
    struct mqx_number_set set = {0};
    CHECK_INT(mqx_number_set_add(&set, UINT64_MAX), 0);
    CHECK(!mqx_number_set_has(&set, 0));
    CHECK(!mqx_number_set_has(&set, UINT64_MAX - 1));
    CHECK_INT(mqx_number_set_add(&set, 0), 0);
    CHECK(mqx_number_set_has(&set, 0) && mqx_number_set_has(&set, UINT64_MAX));
    CHECK(!mqx_number_set_has(&set, 1));
    mqx_number_set_free(&set);
}

TEST(a_run_of_numbers_takes_less_than_a_byte_each)
{
    struct mqx_number_set set = {0};
    enum { COUNT = 1000000 };
    for (uint64_t number = 1; number <= COUNT; number++) {
        CHECK_INT(mqx_number_set_add(&set, number), 0);
    }
    CHECK(set.capacity * sizeof *set.groups < COUNT);
    mqx_number_set_free(&set);
}

TEST_MAIN()
