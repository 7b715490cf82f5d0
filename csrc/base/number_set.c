/*
 * number_set.c - see number_set.h.
 */
#include "base/number_set.h"

#include "base/assert.h"
#include "base/error.h"

#include <stdlib.h>

enum { FIRST_CAPACITY = 16 };

/* The entry of the group, or the free one where it would be. One entry in four is free. */
static struct mqx_number_group *probe(const struct mqx_number_set *set, uint64_t first)
{
    const size_t mask = set->capacity - 1;
    size_t at = (size_t)(first * 0x9e3779b97f4a7c15u >> 32) & mask;
    MQX_ASSERT((set->capacity & mask) == 0);
    MQX_ASSERT(set->used < set->capacity); /* so the search ends */
    while (set->groups[at].bits != 0 && set->groups[at].first != first) {
        at = (at + 1) & mask;
    }
    return &set->groups[at];
}

static int grow(struct mqx_number_set *set)
{
    struct mqx_number_set larger = {
        .capacity = set->capacity == 0 ? FIRST_CAPACITY : set->capacity * 2, .used = set->used};
    MQX_ASSERT(set->used <= set->capacity);
    larger.groups = calloc(larger.capacity, sizeof *larger.groups);
    if (larger.groups == NULL) {
        return mqx_fail(MQRC_STORAGE_NOT_AVAILABLE, "no memory for a set of %zu groups of numbers",
                        larger.capacity);
    }
    for (size_t i = 0; i < set->capacity; i++) {
        if (set->groups[i].bits != 0) {
            *probe(&larger, set->groups[i].first) = set->groups[i];
        }
    }
    free(set->groups);
    *set = larger;
    return MQX_OK;
}

int mqx_number_set_add(struct mqx_number_set *set, uint64_t number)
{
    if (4 * (set->used + 1) > 3 * set->capacity) {
        const int status = grow(set);
        if (status != MQX_OK) {
            return status;
        }
    }
    struct mqx_number_group *group = probe(set, number / MQX_SET_GROUP);
    if (group->bits == 0) {
        group->first = number / MQX_SET_GROUP;
        set->used += 1;
    }
    group->bits |= 1ull << number % MQX_SET_GROUP;
    MQX_ASSERT(mqx_number_set_has(set, number));
    return MQX_OK;
}

bool mqx_number_set_has(const struct mqx_number_set *set, uint64_t number)
{
    if (set->used == 0) {
        return false;
    }
    MQX_ASSERT(set->groups != NULL);
    return (probe(set, number / MQX_SET_GROUP)->bits >> number % MQX_SET_GROUP & 1) != 0;
}

void mqx_number_set_free(struct mqx_number_set *set)
{
    MQX_ASSERT(set != NULL);
    free(set->groups);
    *set = (struct mqx_number_set){0};
}
