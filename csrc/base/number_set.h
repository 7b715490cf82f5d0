/*
 * number_set.h - a set of 64-bit numbers that come in runs.
 *
 * Purpose. Remembering millions of message numbers in less than a byte each: numbers are given out
 * one after the other, so those that have gone lie close together. Open addressing with linear
 * probing; an entry holds MQX_SET_GROUP neighbouring numbers, one bit each.
 *
 *   numbers                  memory, at most
 *   without gaps             0.7 bytes each
 *   64 or more apart         43 bytes each (three times that while the table doubles)
 *
 * Invariants
 *   1. Numbers are never taken out.
 *   2. capacity is 0 or a power of two, 4 * used <= 3 * capacity; an entry in use has bits.
 *
 * All bytes zero is an empty set. No locks: a set belongs to one thread.
 */
#ifndef PENSTOCK_NUMBER_SET_H
#define PENSTOCK_NUMBER_SET_H

#include "base/base.h"

enum { MQX_SET_GROUP = 64 };

struct mqx_number_group {
    uint64_t first; /* number / MQX_SET_GROUP */
    uint64_t bits;  /* 0: the entry is free */
};

struct mqx_number_set {
    struct mqx_number_group *groups;
    size_t capacity;
    size_t used;
};

/* MQRC_STORAGE_NOT_AVAILABLE without memory; the set is unchanged. */
int mqx_number_set_add(struct mqx_number_set *set, uint64_t number) MQX_MUST_USE;
bool mqx_number_set_has(const struct mqx_number_set *set, uint64_t number);
void mqx_number_set_free(struct mqx_number_set *set);

#endif
