/*
 * test_radix_sort.c - proves radix_sort.h: ascending by (major, minor), stable, nothing lost.
 */
#include "fixtures/harness.h"

#include "base/radix_sort.h"

enum { MOST = 3000 };
static struct mqx_sort_item items[MOST], spare[MOST];

static bool is_before(const struct mqx_sort_item *a, const struct mqx_sort_item *b)
{
    return a->major != b->major   ? a->major < b->major
           : a->minor != b->minor ? a->minor < b->minor
                                  : a->index < b->index;
}

static void check_sorted(const struct mqx_sort_item *sorted, uint32_t count)
{
    static uint8_t seen[MOST];
    memset(seen, 0, sizeof seen);
    CHECK(sorted == items || sorted == spare);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(sorted[i].index < count);
        CHECK_INT(seen[sorted[i].index]++, 0);
        CHECK(i == 0 || is_before(&sorted[i - 1], &sorted[i]));
    }
}

TEST(random_pairs_come_out_in_order_and_equal_ones_keep_theirs)
{
    struct test_random random = {test_seed()};
    for (uint32_t turn = 0; turn < 60; turn++) {
        const uint32_t count = turn < 4 ? turn : 2 + (uint32_t)test_below(&random, MOST - 2);
        const uint64_t minors = turn % 3 == 0 ? 7 : UINT64_MAX; /* many equal ones, or none */
        for (uint32_t i = 0; i < count; i++) {
            const uint64_t minor = test_below(&random, minors);
            const uint64_t major = test_below(&random, turn % 2 ? 3 : 1u << 31);
            items[i] = (struct mqx_sort_item){minor, (uint32_t)major, i};
        }
        check_sorted(mqx_radix_sort(items, spare, count), count);
    }
}

TEST(pairs_in_order_of_their_minor_are_sorted_by_major_alone)
{
    for (uint32_t i = 0; i < MOST; i++) {
        items[i] = (struct mqx_sort_item){1000000 + i / 2, 70000u * (i % 5), i};
    }
    check_sorted(mqx_radix_sort(items, spare, MOST), MOST);
}

TEST(pairs_in_order_stay_where_they_are)
{
    for (uint32_t i = 0; i < MOST; i++) {
        items[i] = (struct mqx_sort_item){i, 9, i};
    }
    CHECK(mqx_radix_sort(items, spare, MOST) == items);
    check_sorted(items, MOST);
}

TEST_MAIN()
