/*
 * siphash.c - see siphash.h. Two rounds for each word of 8 bytes, four at the end; the last word
 * has the bytes that are left and, highest, the message's size modulo 256.
 */
#include "base/siphash.h"

#include "base/assert.h"

#include <string.h>

static inline uint64_t rotate(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static inline void round_of(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static inline void compress(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    round_of(v);
    round_of(v);
    v[0] ^= word;
}

void mqx_siphash_begin(struct mqx_siphash *hash, const uint8_t key[MQX_SIPHASH_KEY])
{
    uint64_t k[2];
    MQX_ASSERT(hash != NULL);
    MQX_ASSERT(key != NULL);
    memcpy(k, key, sizeof k);
    *hash = (struct mqx_siphash){
        .v = {k[0] ^ UINT64_C(0x736f6d6570736575), k[1] ^ UINT64_C(0x646f72616e646f6d),
              k[0] ^ UINT64_C(0x6c7967656e657261), k[1] ^ UINT64_C(0x7465646279746573)},
    };
}

void mqx_siphash_add(struct mqx_siphash *hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    uint64_t v[4];
    MQX_ASSERT(size % sizeof v[0] == 0);
    MQX_ASSERT(hash->size % sizeof v[0] == 0);
    memcpy(v, hash->v, sizeof v); /* in registers meanwhile */
    for (size_t at = 0; at < size; at += sizeof v[0]) {
        uint64_t word;
        memcpy(&word, bytes + at, sizeof word);
        compress(v, word);
    }
    memcpy(hash->v, v, sizeof v);
    hash->size += size;
}

uint64_t mqx_siphash_finish(struct mqx_siphash *hash, const void *data, size_t size)
{
    const size_t rest = size % sizeof(uint64_t);
    uint64_t last = 0;
    MQX_ASSERT(data != NULL || size == 0);
    mqx_siphash_add(hash, data, size - rest);
    if (rest > 0) {
        memcpy(&last, (const unsigned char *)data + size - rest, rest);
    }
    last |= (hash->size + rest) << 56;
    compress(hash->v, last);
    hash->v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) {
        round_of(hash->v);
    }
    return hash->v[0] ^ hash->v[1] ^ hash->v[2] ^ hash->v[3];
}

uint64_t mqx_siphash(const uint8_t key[MQX_SIPHASH_KEY], const void *data, size_t size)
{
    struct mqx_siphash hash;
    mqx_siphash_begin(&hash, key);
    MQX_ASSERT(hash.size == 0);
    return mqx_siphash_finish(&hash, data, size);
}
