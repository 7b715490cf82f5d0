/*
 * size_class.h - the sizes in which the arena's memory is given out: 64 to 512 bytes in steps of
 * 64, then four per doubling up to MQX_BLOCK_MAX.
 *
 * Message entries, which lie in an area of their own, count as one more class, MQX_ENTRY_CLASS.
 *
 * No locks, no state.
 */
#ifndef PENSTOCK_SIZE_CLASS_H
#define PENSTOCK_SIZE_CLASS_H

#include "region/layout.h"

enum { MQX_BLOCK_MAX = 65536 }; /* bytes of the largest class */

/* Smallest class whose blocks have `bytes` bytes; bytes <= MQX_BLOCK_MAX. For more, which only a
 * damaged length can ask for, a class that has no blocks in use. */
uint32_t mqx_class_for(uint32_t bytes);

/* Bytes of a block, or of an entry. */
uint32_t mqx_class_bytes(uint32_t class_no);

#endif
