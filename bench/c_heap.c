/*
 * c_heap.c - the engine's priority heap by itself, in a region of its own.
 *
 *   c_heap DIRECTORY                 (on tmpfs) then on standard input, a line each:
 *     DEPTH COUNT      answers "<insert> <pop_insert> <remove_any> <back_out>", nanoseconds for one
 *
 * The same operations as raw_binary_heap, each a micro-transaction under the stripe lock, which
 * stays taken; message entries are made before. A message got by a unit of work is hidden in its
 * place and shown again by a backout. Arrival is the order of insertion.
 */
#include "c_engine.h"

#include "queue/priority_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_heap {
    struct mqx_region region;
    struct mqx_stripe_guard guard;
    uint32_t queue;
    uint32_t *slots; /* message entries, `depth` of them */
    uint64_t arrival;
    uint32_t random;
};

struct times { /* nanoseconds for one operation */
    double insert;
    double pop_insert;
    double remove_any;
    double back_out;
};

static struct mqx_object *queue_of(struct bench_heap *heap)
{
    return mqx_object(&heap->region, heap->queue);
}

static struct mqx_message *message_of(struct bench_heap *heap, uint32_t slot)
{
    return mqx_message(&heap->region, slot);
}

static void make_entries(struct bench_heap *heap, uint32_t depth)
{
    for (uint32_t i = 0; i < depth;) {
        int status = mqx_entry_take(&heap->guard, &heap->slots[i]);
        if (status == MQX_NEED_CELLS) {
            bench_must(mqx_stripe_guard_supply(&heap->guard), "supply");
            continue;
        }
        bench_must(status, "entry");
        message_of(heap, heap->slots[i])->object = heap->queue;
        mqx_stripe_guard_commit(&heap->guard);
        i++;
    }
}

static void insert(struct bench_heap *heap, uint32_t slot)
{
    struct mqx_message *message = message_of(heap, slot);
    uint8_t placement = (uint8_t)(bench_random(&heap->random) % 10);
    int status;

    do {
        mqx_guard_store8(&heap->guard, &message->placement, placement);
        mqx_guard_store8(&heap->guard, &message->state, MQX_MSG_AVAILABLE);
        mqx_guard_store64(&heap->guard, &message->number, heap->arrival);
        status = mqx_priority_index_insert(&heap->guard, queue_of(heap), slot, true);
        if (status == MQX_NEED_CELLS)
            bench_must(mqx_stripe_guard_supply(&heap->guard), "supply");
    } while (status == MQX_NEED_CELLS);
    bench_must(status, "insert");
    mqx_stripe_guard_commit(&heap->guard);
    heap->arrival++;
}

static void take_out(struct bench_heap *heap, uint32_t slot)
{
    mqx_priority_index_remove(&heap->guard, queue_of(heap), slot);
    mqx_stripe_guard_commit(&heap->guard);
}

static void show(struct bench_heap *heap, uint32_t slot, bool available)
{
    mqx_guard_store8(&heap->guard, &message_of(heap, slot)->state,
                     available ? MQX_MSG_AVAILABLE : MQX_MSG_GOT);
    mqx_priority_index_set_available(&heap->guard, queue_of(heap), slot, available);
    mqx_stripe_guard_commit(&heap->guard);
}

static uint32_t first_of(struct bench_heap *heap)
{
    return mqx_priority_index_first(&heap->region, queue_of(heap));
}

static double per_operation(uint64_t begun, uint32_t count)
{
    return (double)(bench_now_ns() - begun) / count;
}

/* Fills and empties the heap once: the measured part finds its memory allocated. */
static void warm_up(struct bench_heap *heap, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++)
        insert(heap, heap->slots[i]);
    for (uint32_t i = 0; i < depth; i++)
        take_out(heap, heap->slots[i]);
}

static struct times measure(struct bench_heap *heap, uint32_t depth, uint32_t count)
{
    struct times times;
    uint64_t begun = bench_now_ns();

    for (uint32_t i = 0; i < depth; i++)
        insert(heap, heap->slots[i]);
    times.insert = per_operation(begun, depth);
    begun = bench_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = first_of(heap);
        take_out(heap, slot);
        insert(heap, slot);
    }
    times.pop_insert = per_operation(begun, count);
    begun = bench_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = first_of(heap);
        show(heap, slot, false);
        show(heap, slot, true);
    }
    times.back_out = per_operation(begun, count);
    begun = bench_now_ns();
    for (uint32_t left = depth; left > depth - count; left--) {
        uint32_t at = bench_random(&heap->random) % left;
        take_out(heap, heap->slots[at]);
        heap->slots[at] = heap->slots[left - 1];
        heap->slots[left - 1] = 0;
    }
    times.remove_any = per_operation(begun, count);
    return times;
}

/* Empties the heap: priority falls, arrival rises within it. False when it does not. */
static bool drain(struct bench_heap *heap, uint32_t expected)
{
    uint32_t priority = MQX_MAX_PRIORITY;
    uint64_t arrival = 0;
    bool right = mqx_priority_index_check(&heap->region, queue_of(heap)) == 0;
    uint32_t slot;

    for (; (slot = first_of(heap)) != 0 && expected > 0; expected--) {
        const struct mqx_message *message = message_of(heap, slot);
        if (message->placement < priority) {
            priority = message->placement;
            arrival = 0;
        }
        right &= message->placement == priority && message->number > arrival;
        arrival = message->number;
        take_out(heap, slot);
    }
    return right && expected == 0 && slot == 0;
}

static void run(struct mqx_io *io, int directory, uint32_t depth, uint32_t count)
{
    struct bench_heap heap = {.arrival = 1, .random = 2463534242u};
    struct mqx_region_plan plan;
    struct times times;

    mqx_region_default_plan(&plan);
    heap.slots = calloc(depth, sizeof(*heap.slots));
    if (heap.slots == NULL)
        bench_fail("no memory");
    bench_must(mqx_region_create(io, directory, "heap", &plan, &heap.region), "region");
    heap.region.process = 1;
    bench_must(mqx_slot_take(&heap.region, MQX_AREA_OBJECTS, NULL, &heap.queue), "object");
    bench_must(mqx_stripe_guard_take(&heap.region, heap.queue, &heap.guard), "lock");
    make_entries(&heap, depth);
    warm_up(&heap, depth);
    times = measure(&heap, depth, count);
    if (drain(&heap, depth - count))
        bench_answer("%f %f %f %f", times.insert, times.pop_insert, times.remove_any,
                     times.back_out);
    else
        bench_answer("wrong: the heap's order or count");
    mqx_stripe_guard_drop(&heap.guard);
    mqx_region_close(&heap.region);
    bench_must(io->ops->unlink(io, directory, "heap") < 0, "unlink");
    free(heap.slots);
}

int main(int argc, char **argv)
{
    struct mqx_io *io = mqx_io_posix();
    char line[64];
    uint32_t depth;
    uint32_t count;
    int directory;

    if (argc != 2)
        bench_fail("usage: c_heap DIRECTORY");
    directory = io->ops->open_dir(io, argv[1]);
    if (directory < 0)
        bench_fail("the directory cannot be opened");
    bench_answer("ready");
    while (bench_command(line, sizeof(line))) {
        if (sscanf(line, "%u %u", &depth, &count) != 2 || count == 0 || count >= depth)
            bench_fail("unknown command");
        run(io, directory, depth, count);
    }
    io->ops->close(io, directory);
    return 0;
}
