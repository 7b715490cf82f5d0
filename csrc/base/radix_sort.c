/*
 * radix_sort.c - see radix_sort.h.
 */
#include "base/radix_sort.h"

#include "base/assert.h"

enum {
    MINOR_DIGITS = 8, /* bytes of `minor`, then those of `major` */
    DIGITS = 12,
    DIGIT_SIZE = 256,
};

/* Byte `digit` of the key, the least significant is 0. */
static inline uint32_t digit_of(const struct mqx_sort_item *item, int digit)
{
    MQX_ASSERT(digit >= 0 && digit < DIGITS);
    return digit < MINOR_DIGITS ? (uint32_t)(item->minor >> digit * 8) & 0xff
                                : item->major >> (digit - MINOR_DIGITS) * 8 & 0xff;
}

/* One stable pass by one byte of the key; false when all have the same byte. */
static bool sort_by_byte(const struct mqx_sort_item *from, struct mqx_sort_item *to, size_t count,
                         int digit)
{
    size_t position[DIGIT_SIZE] = {0};
    MQX_ASSERT(count > 1);
    for (size_t i = 0; i < count; i++) {
        position[digit_of(&from[i], digit)] += 1;
    }
    if (position[digit_of(&from[0], digit)] == count) {
        return false;
    }
    size_t sum = 0;
    for (int i = 0; i < DIGIT_SIZE; i++) {
        const size_t here = position[i];
        position[i] = sum;
        sum += here;
    }
    MQX_ASSERT(sum == count);
    for (size_t i = 0; i < count; i++) {
        to[position[digit_of(&from[i], digit)]++] = from[i];
    }
    return true;
}

/* When `minor` ascends already, as numbers in a log usually do, only `major` is left to sort. */
struct mqx_sort_item *mqx_radix_sort(struct mqx_sort_item *items, struct mqx_sort_item *spare,
                                     size_t count)
{
    struct mqx_sort_item *from = items, *to = spare;
    bool ascending = true;
    MQX_ASSERT(count == 0 || items != NULL);
    MQX_ASSERT(count < 2 || (spare != NULL && spare != items));
    for (size_t i = 1; i < count && ascending; i++) {
        ascending = from[i - 1].minor <= from[i].minor;
    }
    for (int digit = ascending ? MINOR_DIGITS : 0; digit < DIGITS && count > 1; digit++) {
        if (sort_by_byte(from, to, count, digit)) {
            struct mqx_sort_item *other = from;
            from = to;
            to = other;
        }
    }
    MQX_ASSERT(count < 2 || from[0].major <= from[count - 1].major);
    return from;
}
