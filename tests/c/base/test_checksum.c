/*
 * test_checksum.c - proves checksum.h: known values, chaining, agreement of the implementations,
 * and the quality of the hash that identifiers are looked up by.
 */
#include "base/checksum.h"
#include "fixtures/harness.h"

enum { POOL = 40000 };
static uint8_t pool[POOL];

static void fill_pool(void)
{
    struct test_random random = {test_seed()};
    for (size_t i = 0; i < POOL; i++) {
        pool[i] = (uint8_t)test_next(&random);
    }
}

/* One bit at a time, straight from the definition. */
static uint32_t crc_by_definition(uint32_t crc, const uint8_t *at, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= at[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc & 1u) != 0 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
        }
    }
    return ~crc;
}

TEST(crc32c_gives_the_published_check_values)
{
    uint8_t zeroes[32] = {0};
    uint8_t ones[32];
    uint8_t rising[32];

    memset(ones, 0xff, sizeof ones);
    for (size_t i = 0; i < sizeof rising; i++) {
        rising[i] = (uint8_t)i;
    }
    CHECK_INT(mqx_crc32c(0, "123456789", 9), 0xe3069283u);
    CHECK_INT(mqx_crc32c(0, zeroes, 32), 0x8a9136aau); /* RFC 3720, B.4 */
    CHECK_INT(mqx_crc32c(0, ones, 32), 0x62a8ab43u);
    CHECK_INT(mqx_crc32c(0, rising, 32), 0x46dd794eu);
    CHECK_INT(mqx_crc32c(0, "", 0), 0);
    CHECK_INT(mqx_crc32c(77, NULL, 0), 77);
}

TEST(portable_and_chosen_crc_equal_the_definition_at_every_small_size_and_alignment)
{
    fill_pool();
    for (size_t size = 0; size < 800; size++) {
        for (size_t start = 0; start < 9; start++) {
            uint32_t want = crc_by_definition((uint32_t)size, pool + start, size);
            CHECK_INT(mqx_crc32c_portable((uint32_t)size, pool + start, size), want);
            CHECK_INT(mqx_crc32c((uint32_t)size, pool + start, size), want);
        }
    }
}

TEST(hardware_crc_equals_portable_crc_at_sizes_around_its_lanes)
{
    struct test_random random = {test_seed()};

    fill_pool();
    if (!mqx_crc32c_has_hardware()) { /* then the chosen one is the portable one */
        CHECK_INT(mqx_crc32c(9, pool, POOL), mqx_crc32c_portable(9, pool, POOL));
        return;
    }
    for (int round = 0; round < 3000; round++) {
        static const size_t centres[] = {768, 1536, 12288, 24576, 13056};
        size_t size = centres[round % 5] - 20 + test_below(&random, 40);
        size_t start = test_below(&random, 64);
        uint32_t seed = (uint32_t)test_next(&random);
        CHECK_INT(mqx_crc32c_hardware(seed, pool + start, size),
                  mqx_crc32c_portable(seed, pool + start, size));
    }
}

TEST(crc_of_a_concatenation_is_the_chained_crc)
{
    struct test_random random = {test_seed()};

    fill_pool();
    uint32_t whole = mqx_crc32c(0, pool, POOL);
    for (int round = 0; round < 200; round++) {
        size_t cut = test_below(&random, POOL + 1);
        CHECK_INT(mqx_crc32c(mqx_crc32c(0, pool, cut), pool + cut, POOL - cut), whole);
    }
}

TEST(every_single_flipped_bit_changes_the_crc)
{
    fill_pool();
    uint32_t whole = mqx_crc32c(0, pool, 1024);
    for (size_t bit = 0; bit < 8 * 1024; bit++) {
        pool[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(mqx_crc32c(0, pool, 1024) != whole);
        pool[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

TEST(hash_depends_on_key_size_and_every_bit_and_is_never_zero)
{
    uint8_t id[48] = {0};
    uint64_t plain = mqx_hash64(id, 24, 1);

    CHECK(plain != mqx_hash64(id, 24, 2));
    CHECK(plain != mqx_hash64(id, 23, 1));
    CHECK(plain != mqx_hash64(id, 25, 1));
    for (size_t bit = 0; bit < 24 * 8; bit++) {
        id[bit / 8] ^= (uint8_t)(1u << bit % 8);
        uint64_t other = mqx_hash64(id, 24, 1);
        CHECK(other != plain);
        int changed = __builtin_popcountll(other ^ plain);
        CHECK(changed >= 10 && changed <= 54); /* about half of 64 */
        id[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (uint64_t key = 0; key < 100000; key++) {
        CHECK(mqx_hash64(id, key % 49, key) != 0);
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

TEST(counting_identifiers_spread_evenly_and_without_collision)
{
    enum { COUNT = 200000, BUCKETS = 1024 };
    static uint64_t tags[COUNT];
    static uint32_t buckets[BUCKETS];
    uint8_t id[24] = "AMQ QM1         ";

    for (uint32_t i = 0; i < COUNT; i++) {
        memcpy(id + 20, &i, sizeof i);
        tags[i] = mqx_hash64(id, sizeof id, test_seed());
        buckets[tags[i] % BUCKETS]++;
    }
    for (int i = 0; i < BUCKETS; i++) { /* mean 195, deviation 14 */
        CHECK(buckets[i] > 110 && buckets[i] < 290);
        buckets[i] = 0;
    }
    qsort(tags, COUNT, sizeof tags[0], by_value);
    for (int i = 1; i < COUNT; i++) {
        CHECK(tags[i] != tags[i - 1]);
    }
}

TEST(hash_values_are_fixed_because_checkpoints_store_them)
{
    CHECK_INT(mqx_hash64("", 0, 0), 0x4cf24c5f750e3f81u);
    CHECK_INT(mqx_hash64("abcdefghijklmnopqrstuvwx", 24, 42), 0xc696c2c16ccd437fu);
}

TEST_MAIN()
