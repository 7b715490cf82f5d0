/*
 * radix_sort.c - the puts of a replay in delivery order: a stable sort byte by byte, because
 * there may be millions, nearly in order. See replay.h.
 */
#include "recovery/replay.h"

#include "base/error.h"

#include <stdlib.h>

enum { DIGITS = 12, DIGIT_SIZE = 256 };

struct sort_item {
    uint64_t number;
    uint32_t major; /* object and placement */
    uint32_t index;
};

/* Byte `digit` of the key, the least significant is 0. */
static inline uint32_t digit_of(const struct sort_item *item, int digit)
{
    return digit < 8 ? (uint32_t)(item->number >> digit * 8) & 0xff
                     : item->major >> (digit - 8) * 8 & 0xff;
}

/* One stable pass by one byte of the key; false when all have the same byte. */
static bool pass(const struct sort_item *from, struct sort_item *to, size_t count, int digit)
{
    size_t place[DIGIT_SIZE] = {0};
    for (size_t i = 0; i < count; i++) {
        place[digit_of(&from[i], digit)] += 1;
    }
    if (place[digit_of(&from[0], digit)] == count) {
        return false;
    }
    size_t sum = 0;
    for (int i = 0; i < DIGIT_SIZE; i++) {
        const size_t here = place[i];
        place[i] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++) {
        to[place[digit_of(&from[i], digit)]++] = from[i];
    }
    return true;
}

/* Numbers usually ascend in the journal: then there is little left to sort. */
static struct sort_item *sort_items(struct sort_item *from, struct sort_item *to, size_t count)
{
    bool ascending = true;
    for (size_t i = 1; i < count && ascending; i++) {
        ascending = from[i - 1].number <= from[i].number;
    }
    for (int digit = ascending ? 8 : 0; digit < DIGITS && count > 1; digit++) {
        if (pass(from, to, count, digit)) {
            struct sort_item *other = from;
            from = to;
            to = other;
        }
    }
    return from;
}

int mqx_replay_sort(const struct mqx_replay *replay, uint32_t **out, size_t *out_count)
{
    size_t count = 0;
    struct sort_item *items = malloc((2 * replay->put_count + 1) * sizeof *items);
    uint32_t *indexes = malloc((replay->put_count + 1) * sizeof *indexes);
    if (items == NULL || indexes == NULL) {
        free(items);
        free(indexes);
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory to sort what was replayed");
    }
    for (size_t i = 0; i < replay->put_count; i++) {
        const struct psc_message *m = &replay->puts[i].m;
        if (replay->puts[i].state == MQX_PUT_EFFECTIVE) {
            const uint32_t below_top = (uint32_t)(MQX_MAX_PRIORITY - m->placement);
            items[count++] =
                (struct sort_item){m->number, m->object << 4 | below_top, (uint32_t)i};
        }
    }
    const struct sort_item *sorted = sort_items(items, items + replay->put_count, count);
    for (size_t i = 0; i < count; i++) {
        indexes[i] = sorted[i].index;
    }
    free(items);
    *out = indexes;
    *out_count = count;
    return MQX_OK;
}
