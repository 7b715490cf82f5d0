/*
 * number_map.h - a map from 64-bit numbers to 32-bit values (a set: number_set.h).
 *
 * Purpose. Remembering hundreds of thousands of message numbers without an allocation for each.
 * Open addressing with linear probing, at most half full; numbers are never removed. Neighbouring
 * numbers share a cache line, since callers come with runs of them.
 *
 * Terms
 *   slot   index of an entry; it holds until the next number is added.
 *
 * Invariants
 *   1. Number 0 marks a free entry, so it cannot be in a map.
 *   2. capacity is 0 or a power of two, 2 * count <= capacity + 1.
 *
 * All bytes zero is an empty map. No locks: a map belongs to one thread.
 */
#ifndef PENSTOCK_NUMBER_MAP_H
#define PENSTOCK_NUMBER_MAP_H

#include "base/base.h"

struct mqx_number_map {
    uint64_t *numbers;
    uint32_t *values;
    size_t capacity;
    size_t count;
};

/* The slot of the number, which is in the map afterwards; *out_new: it was not before, and its
 * value is to be set by the caller. MQRC_STORAGE_NOT_AVAILABLE without memory; the map is
 * unchanged. */
int mqx_number_map_add(struct mqx_number_map *map, uint64_t number, size_t *out,
                       bool *out_new) MQX_MUST_USE;
/* Is the number in the map? *out is its slot then; may be NULL. */
bool mqx_number_map_find(const struct mqx_number_map *map, uint64_t number, size_t *out);
void mqx_number_map_free(struct mqx_number_map *map);

#endif
