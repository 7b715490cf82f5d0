/*
 * checksum.h - CRC-32C for what is stored, a keyed 64-bit hash for what is looked up.
 *
 * CRC-32C is the Castagnoli polynomial, bits reflected, start and end inverted: "123456789" gives
 * 0xe3069283. Start with 0 and chain: crc(crc(0, a), b) is the crc of a followed by b.
 *
 * There are two implementations with equal results, a portable one (slicing by 8) and one that uses
 * the processor's instructions in three interleaved lanes. mqx_crc32c() takes the faster one that
 * this machine has, chosen once when the library is loaded; tests call both by name.
 *
 * Threads: all functions may be called from anywhere at any time.
 */
#ifndef PENSTOCK_CHECKSUM_H
#define PENSTOCK_CHECKSUM_H

#include "base/base.h"

uint32_t mqx_crc32c(uint32_t crc, const void *data, size_t size);

uint32_t mqx_crc32c_portable(uint32_t crc, const void *data, size_t size);
/* Only where mqx_crc32c_has_hardware() is true; a check fails otherwise. */
uint32_t mqx_crc32c_hardware(uint32_t crc, const void *data, size_t size);
bool mqx_crc32c_has_hardware(void);

/* A keyed 64-bit tag of the bytes, never 0 (0 means "no tag"). Made for 24-byte identifiers, good
 * for any size. The value is stored in checkpoints: it must not change within a format version. */
uint64_t mqx_hash64(const void *data, size_t size, uint64_t key);

#endif
