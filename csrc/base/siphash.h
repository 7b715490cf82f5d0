/*
 * siphash.h - SipHash-2-4, 64 bits: a keyed hash that nobody can forge or predict without the key
 * (Aumasson and Bernstein, 2012). It tells headers of flush batches from bytes of message bodies
 * that look like them (FORMAT.md 3.2); the key is the salt of their segment.
 *
 * The value is that of the reference implementation, written as a little-endian number.
 *
 * Threads: all functions may be called from anywhere at any time.
 */
#ifndef PENSTOCK_SIPHASH_H
#define PENSTOCK_SIPHASH_H

#include "base/base.h"

enum { MQX_SIPHASH_KEY = 16 };

/* A message that is hashed in parts. */
struct mqx_siphash {
    uint64_t v[4];
    uint64_t size; /* of the parts so far */
};
void mqx_siphash_begin(struct mqx_siphash *hash, const uint8_t key[MQX_SIPHASH_KEY]);
/* `size` is a multiple of 8. */
void mqx_siphash_add(struct mqx_siphash *hash, const void *data, size_t size);
/* The last part, of any size. */
uint64_t mqx_siphash_finish(struct mqx_siphash *hash, const void *data, size_t size);

/* A whole message. */
uint64_t mqx_siphash(const uint8_t key[MQX_SIPHASH_KEY], const void *data, size_t size);

#endif
