/*
 * radix_sort.h - a stable sort of (key, index) pairs, byte by byte from the least significant one.
 *
 * Purpose. Sorting millions of pairs that are nearly in order already: a pass is linear, and passes
 * that would change nothing are left out. The pairs say where something else is; nothing is known
 * of that here.
 *
 * Terms
 *   key     a number of 96 bits: `major` above `minor`.
 *   stable  pairs with equal keys keep their order.
 *
 * No locks, no allocation: the caller gives memory for a second copy. Cannot fail.
 */
#ifndef PENSTOCK_RADIX_SORT_H
#define PENSTOCK_RADIX_SORT_H

#include "base/base.h"

struct mqx_sort_item {
    uint64_t minor;
    uint32_t major;
    uint32_t index;
};

/* Sorts `count` items ascending by (major, minor). `items` and `spare` are arrays of `count`
 * that do not overlap; the result is in one of them, which is returned. */
struct mqx_sort_item *mqx_radix_sort(struct mqx_sort_item *items, struct mqx_sort_item *spare,
                                     size_t count);

#endif
