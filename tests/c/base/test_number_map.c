/*
 * test_number_map.c - proves number_map.h: what was added is found with its value, nothing else is.
 */
#include "fixtures/harness.h"

#include "base/number_map.h"

TEST(an_empty_map_holds_nothing)
{
    struct mqx_number_map map = {0};
    CHECK(!mqx_number_map_find(&map, 1, NULL));
    CHECK(!mqx_number_map_find(&map, 0, NULL));
    mqx_number_map_free(&map);
}

TEST(numbers_keep_their_values_while_the_map_grows)
{
    struct mqx_number_map map = {0};
    enum { COUNT = 20000 };
    size_t slot = 0;
    bool is_new = false;
    for (uint32_t i = 0; i < COUNT; i++) { /* runs of five, far apart, and extreme ones */
        const uint64_t number = i == 0 ? UINT64_MAX : (uint64_t)i / 5 * 0x100000001u + i % 5 + 1;
        CHECK_INT(mqx_number_map_add(&map, number, &slot, &is_new), 0);
        CHECK(is_new);
        map.values[slot] = i;
        CHECK_INT(mqx_number_map_add(&map, number, &slot, &is_new), 0);
        CHECK(!is_new);
        CHECK_INT(map.values[slot], i);
    }
    CHECK_INT(map.count, COUNT);
    CHECK(2 * map.count <= map.capacity);
    for (uint32_t i = 1; i < COUNT; i++) {
        const uint64_t number = (uint64_t)i / 5 * 0x100000001u + i % 5 + 1;
        CHECK(mqx_number_map_find(&map, number, &slot));
        CHECK_INT(map.values[slot], i);
        CHECK(!mqx_number_map_find(&map, number + 5, NULL) || i % 5 != 4);
    }
    CHECK(mqx_number_map_find(&map, UINT64_MAX, &slot));
    CHECK_INT(map.values[slot], 0);
    CHECK(!mqx_number_map_find(&map, UINT64_MAX - 1, NULL));
    mqx_number_map_free(&map);
    CHECK_INT(map.capacity, 0);
}

TEST_MAIN()
