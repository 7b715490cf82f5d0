/*
 * test_siphash.c - proves siphash.h: the reference implementation's test vectors, and messages in
 * parts.
 */
#include "base/siphash.h"
#include "fixtures/harness.h"

/* Key 00 01 .. 0f; the n-th value is that of the message 00 01 .. n-1 ("vectors_sip64" of the
 * reference implementation). */
static const uint64_t vectors[64] = {
    0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
    0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
    0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
    0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5,
    0x3f2acc7f57c29bdb, 0x699ae9f52cbe4794, 0x4bc1b3f0968dd39c, 0xbb6dc91da77961bd,
    0xbed65cf21aa2ee98, 0xd0f2cbb02e3b67c7, 0x93536795e3a33e88, 0xa80c038ccd5ccec8,
    0xb8ad50c6f649af94, 0xbce192de8a85b8ea, 0x17d835b85bbb15f3, 0x2f2e6163076bcfad,
    0xde4daaaca71dc9a5, 0xa6a2506687956571, 0xad87a3535c49ef28, 0x32d892fad841c342,
    0x7127512f72f27cce, 0xa7f32346f95978e3, 0x12e0b01abb051238, 0x15e034d40fa197ae,
    0x314dffbe0815a3b4, 0x027990f029623981, 0xcadcd4e59ef40c4d, 0x9abfd8766a33735c,
    0x0e3ea96b5304a7d0, 0xad0c42d6fc585992, 0x187306c89bc215a9, 0xd4a60abcf3792b95,
    0xf935451de4f21df2, 0xa9538f0419755787, 0xdb9acddff56ca510, 0xd06c98cd5c0975eb,
    0xe612a3cb9ecba951, 0xc766e62cfcadaf96, 0xee64435a9752fe72, 0xa192d576b245165a,
    0x0a8787bf8ecb74b2, 0x81b3e73d20b49b6f, 0x7fa8220ba3b2ecea, 0x245731c13ca42499,
    0xb78dbfaf3a8d83bd, 0xea1ad565322a1a0b, 0x60e61c23a3795013, 0x6606d7e446282b93,
    0x6ca4ecb15c5f91e1, 0x9f626da15c9625f3, 0xe51b38608ef25f57, 0x958a324ceb064572,
};

static const uint8_t *counting(uint8_t *to, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        to[i] = (uint8_t)i;
    }
    return to;
}

TEST(every_vector_of_the_reference_holds)
{
    uint8_t key[MQX_SIPHASH_KEY], message[64];
    (void)counting(key, sizeof key);
    (void)counting(message, sizeof message);
    for (size_t n = 0; n < MQX_ARRAY_COUNT(vectors); n++) {
        CHECK(mqx_siphash(key, message, n) == vectors[n]);
    }
}

TEST(a_message_in_parts_has_the_hash_of_the_whole)
{
    uint8_t key[MQX_SIPHASH_KEY], message[64];
    (void)counting(key, sizeof key);
    (void)counting(message, sizeof message);
    for (size_t n = 0; n < sizeof message; n++) {
        for (size_t first = 0; first <= n; first += 8) {
            struct mqx_siphash hash;
            mqx_siphash_begin(&hash, key);
            mqx_siphash_add(&hash, message, first);
            CHECK(mqx_siphash_finish(&hash, message + first, n - first) == vectors[n]);
        }
    }
}

TEST(every_bit_of_key_and_message_counts)
{
    uint8_t key[MQX_SIPHASH_KEY] = {0}, message[24] = {0};
    const uint64_t before = mqx_siphash(key, message, sizeof message);
    for (uint32_t bit = 0; bit < 8 * (sizeof key + sizeof message); bit++) {
        uint8_t *at = bit < 8 * sizeof key ? &key[bit / 8] : &message[bit / 8 - sizeof key];
        *at ^= (uint8_t)(1u << bit % 8);
        CHECK(mqx_siphash(key, message, sizeof message) != before);
        *at ^= (uint8_t)(1u << bit % 8);
    }
    CHECK(mqx_siphash(key, message, sizeof message) == before);
}

TEST_MAIN()
