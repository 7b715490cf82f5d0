/*
 * binary_heap.c - the other way to keep a priority queue: one binary heap of all messages.
 *
 * Key: (placement priority descending, arrival ascending) as one 64-bit number, smaller is earlier.
 * `place` gives each entry's position in the heap, so that any entry can be removed. A message that
 * a unit of work has got must leave the heap, or every get would have to step over it: a backout is
 * an insert with the old key.
 *
 * The four measured operations are those a queue needs; their order of removal is compared with the
 * keys as they come.
 */
#include "common.h"

#include "raw.h"

#include <errno.h>
#include <stdlib.h>

struct heap {
    uint64_t *key;   /* of each entry */
    uint32_t *place; /* of each entry in `order` */
    uint32_t *order; /* entries, children of i at 2i + 1 and 2i + 2 */
    uint32_t count;
};

static uint64_t make_key(uint32_t priority, uint64_t arrival)
{
    return (uint64_t)(9 - priority) << 56 | arrival;
}

static void put_at(struct heap *heap, uint32_t place, uint32_t entry)
{
    heap->order[place] = entry;
    heap->place[entry] = place;
}

static void sift_up(struct heap *heap, uint32_t place, uint32_t entry)
{
    while (place > 0) {
        uint32_t parent = (place - 1) / 2;
        if (heap->key[heap->order[parent]] <= heap->key[entry])
            break;
        put_at(heap, place, heap->order[parent]);
        place = parent;
    }
    put_at(heap, place, entry);
}

static void sift_down(struct heap *heap, uint32_t place, uint32_t entry)
{
    for (;;) {
        uint32_t child = 2 * place + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count &&
            heap->key[heap->order[child + 1]] < heap->key[heap->order[child]])
            child++;
        if (heap->key[entry] <= heap->key[heap->order[child]])
            break;
        put_at(heap, place, heap->order[child]);
        place = child;
    }
    put_at(heap, place, entry);
}

static void insert(struct heap *heap, uint32_t entry)
{
    sift_up(heap, heap->count++, entry);
}

static void remove_entry(struct heap *heap, uint32_t entry)
{
    uint32_t place = heap->place[entry];
    uint32_t last = heap->order[--heap->count];

    if (last == entry)
        return;
    if (place > 0 && heap->key[last] < heap->key[heap->order[(place - 1) / 2]])
        sift_up(heap, place, last);
    else
        sift_down(heap, place, last);
}

static uint32_t pop(struct heap *heap)
{
    uint32_t first = heap->order[0];

    remove_entry(heap, first);
    return first;
}

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static double per_operation(uint64_t begun, uint32_t count)
{
    return (double)(raw_now_ns() - begun) / count;
}

/* Empties the heap; every key must be larger than the one before. */
static int drain(struct heap *heap)
{
    uint64_t before = 0;

    while (heap->count > 0) {
        uint64_t key = heap->key[pop(heap)];
        if (key <= before)
            return -EBADMSG;
        before = key;
    }
    return 0;
}

static void measure(struct heap *heap, uint32_t depth, uint32_t count, struct raw_index_result *out)
{
    uint32_t random = 2463534242u;
    uint64_t arrival = 1;
    uint64_t begun = raw_now_ns();

    for (uint32_t i = 0; i < depth; i++) {
        heap->key[i] = make_key(next_random(&random) % 10, arrival++);
        insert(heap, i);
    }
    out->insert = per_operation(begun, depth);
    begun = raw_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t entry = pop(heap);
        heap->key[entry] = make_key(next_random(&random) % 10, arrival++);
        insert(heap, entry);
    }
    out->pop_insert = per_operation(begun, count);
    begun = raw_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t entry = pop(heap);
        insert(heap, entry);
    }
    out->back_out = per_operation(begun, count);
    begun = raw_now_ns();
    for (uint32_t i = 0; i < count; i++)
        remove_entry(heap, heap->order[next_random(&random) % heap->count]);
    out->remove_any = per_operation(begun, count);
}

int raw_binary_heap(uint32_t depth, uint32_t count, struct raw_index_result *out)
{
    struct heap heap = {0};
    int rc = -ENOMEM;

    if (depth == 0 || count == 0 || count >= depth)
        return -EINVAL;
    heap.key = malloc(depth * sizeof(*heap.key));
    heap.place = malloc(depth * sizeof(*heap.place));
    heap.order = malloc(depth * sizeof(*heap.order));
    if (heap.key != NULL && heap.place != NULL && heap.order != NULL) {
        measure(&heap, depth, count, out);
        rc = heap.count == depth - count ? drain(&heap) : -EBADMSG;
    }
    free(heap.key);
    free(heap.place);
    free(heap.order);
    return rc;
}
