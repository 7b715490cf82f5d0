/*
 * number_map.c - see number_map.h.
 */
#include "base/number_map.h"

#include "base/assert.h"
#include "base/error.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 64, GROUP = 8 };

/* Neighbouring numbers share a cache line, groups of 8 are scattered. */
static size_t first_bucket(const struct mqx_number_map *map, uint64_t number)
{
    const uint64_t group = (number / GROUP) * 0x9e3779b97f4a7c15u;
    MQX_ASSERT(map->capacity >= FIRST_CAPACITY);
    MQX_ASSERT((map->capacity & (map->capacity - 1)) == 0);
    return (size_t)((group >> 20) * GROUP + number % GROUP) & (map->capacity - 1);
}

/* Where the number is, or the free entry where it would be. One entry in two is free. */
static size_t probe(const struct mqx_number_map *map, uint64_t number)
{
    size_t at = first_bucket(map, number);
    MQX_ASSERT(number != 0);
    MQX_ASSERT(map->count < map->capacity); /* so the search ends */
    while (map->numbers[at] != 0 && map->numbers[at] != number) {
        at = (at + 1) & (map->capacity - 1);
    }
    return at;
}

static int grow(struct mqx_number_map *map)
{
    struct mqx_number_map larger = {
        .capacity = map->capacity == 0 ? FIRST_CAPACITY : map->capacity * 2, .count = map->count};
    MQX_ASSERT(map->capacity == 0 || map->values != NULL);
    larger.numbers = calloc(larger.capacity, sizeof *larger.numbers);
    larger.values = malloc(larger.capacity * sizeof *larger.values);
    if (larger.numbers == NULL || larger.values == NULL) {
        free(larger.numbers);
        free(larger.values);
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a table of %zu numbers",
                        larger.capacity);
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->numbers[i] != 0) {
            const size_t at = probe(&larger, map->numbers[i]);
            larger.numbers[at] = map->numbers[i];
            larger.values[at] = map->values[i];
        }
    }
    free(map->numbers);
    free(map->values);
    *map = larger;
    return MQX_OK;
}

int mqx_number_map_add(struct mqx_number_map *map, uint64_t number, size_t *out, bool *out_new)
{
    MQX_ASSERT(number != 0);
    if (2 * map->count >= map->capacity) {
        int status = grow(map);
        if (status != MQX_OK) {
            return status;
        }
    }
    *out = probe(map, number);
    *out_new = map->numbers[*out] == 0;
    if (*out_new) {
        map->numbers[*out] = number;
        map->count += 1;
    }
    MQX_ASSERT(map->numbers[*out] == number);
    return MQX_OK;
}

bool mqx_number_map_find(const struct mqx_number_map *map, uint64_t number, size_t *out)
{
    if (map->count == 0 || number == 0) {
        return false;
    }
    const size_t at = probe(map, number);
    if (out != NULL) {
        *out = at;
    }
    MQX_ASSERT(map->numbers[at] == number || map->numbers[at] == 0);
    return map->numbers[at] != 0;
}

void mqx_number_map_free(struct mqx_number_map *map)
{
    MQX_ASSERT(map != NULL);
    free(map->numbers);
    free(map->values);
    *map = (struct mqx_number_map){0};
}
