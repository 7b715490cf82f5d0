/*
 * c_priority_index.c - the engine's priority index alone, in a separate region.
 *
 *   c_priority_index DIRECTORY       (on tmpfs) then on standard input, a line each:
 *     DEPTH COUNT      answers "<insert> <pop_insert> <remove_any> <back_out>", nanoseconds for one
 *
 * The same operations as raw_binary_heap, each a micro-transaction under the stripe lock, which
 * stays taken; message entries are made before. A message got by a unit of work is hidden at its
 * position and shown again by a backout. Numbers rise in the order of insertion.
 */
#include "c_engine.h"

#include "queue/priority_index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct index_bench {
    struct mqx_region region;
    struct mqx_stripe_guard guard;
    uint32_t queue;
    uint32_t *slots; /* message entries, `depth` of them */
    uint64_t number;
    uint32_t random;
};

struct times { /* nanoseconds for one operation */
    double insert;
    double pop_insert;
    double remove_any;
    double back_out;
};

static struct mqx_object *queue_of(struct index_bench *bench)
{
    return mqx_object(&bench->region, bench->queue);
}

static struct mqx_message *message_of(struct index_bench *bench, uint32_t slot)
{
    return mqx_message(&bench->region, slot);
}

static void make_entries(struct index_bench *bench, uint32_t depth)
{
    for (uint32_t i = 0; i < depth;) {
        int status = mqx_entry_take(&bench->guard, &bench->slots[i]);
        if (status == MQX_NEED_CELLS) {
            bench_must(mqx_stripe_guard_supply(&bench->guard), "supply");
            continue;
        }
        bench_must(status, "entry");
        message_of(bench, bench->slots[i])->object = bench->queue;
        mqx_stripe_guard_commit(&bench->guard);
        i++;
    }
}

static void insert(struct index_bench *bench, uint32_t slot)
{
    struct mqx_message *message = message_of(bench, slot);
    uint8_t placement = (uint8_t)(bench_random(&bench->random) % 10);
    int status;

    do {
        mqx_guard_store8(&bench->guard, &message->placement, placement);
        mqx_guard_store8(&bench->guard, &message->state, MQX_MSG_AVAILABLE);
        mqx_guard_store64(&bench->guard, &message->number, bench->number);
        status = mqx_priority_index_insert(&bench->guard, queue_of(bench), slot, true);
        if (status == MQX_NEED_CELLS)
            bench_must(mqx_stripe_guard_supply(&bench->guard), "supply");
    } while (status == MQX_NEED_CELLS);
    bench_must(status, "insert");
    mqx_stripe_guard_commit(&bench->guard);
    bench->number++;
}

static void take_out(struct index_bench *bench, uint32_t slot)
{
    mqx_priority_index_remove(&bench->guard, queue_of(bench), slot);
    mqx_stripe_guard_commit(&bench->guard);
}

static void show(struct index_bench *bench, uint32_t slot, bool available)
{
    mqx_guard_store8(&bench->guard, &message_of(bench, slot)->state,
                     available ? MQX_MSG_AVAILABLE : MQX_MSG_GOT);
    mqx_priority_index_set_available(&bench->guard, queue_of(bench), slot, available);
    mqx_stripe_guard_commit(&bench->guard);
}

static uint32_t first_of(struct index_bench *bench)
{
    return mqx_priority_index_first(&bench->region, queue_of(bench));
}

static double per_operation(uint64_t begun, uint32_t count)
{
    return (double)(bench_now_ns() - begun) / count;
}

/* Fills and empties the index once: the measured part finds its memory allocated. */
static void warm_up(struct index_bench *bench, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++)
        insert(bench, bench->slots[i]);
    for (uint32_t i = 0; i < depth; i++)
        take_out(bench, bench->slots[i]);
}

static struct times measure(struct index_bench *bench, uint32_t depth, uint32_t count)
{
    struct times times;
    uint64_t begun = bench_now_ns();

    for (uint32_t i = 0; i < depth; i++)
        insert(bench, bench->slots[i]);
    times.insert = per_operation(begun, depth);
    begun = bench_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = first_of(bench);
        take_out(bench, slot);
        insert(bench, slot);
    }
    times.pop_insert = per_operation(begun, count);
    begun = bench_now_ns();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = first_of(bench);
        show(bench, slot, false);
        show(bench, slot, true);
    }
    times.back_out = per_operation(begun, count);
    begun = bench_now_ns();
    for (uint32_t left = depth; left > depth - count; left--) {
        uint32_t at = bench_random(&bench->random) % left;
        take_out(bench, bench->slots[at]);
        bench->slots[at] = bench->slots[left - 1];
        bench->slots[left - 1] = 0;
    }
    times.remove_any = per_operation(begun, count);
    return times;
}

/* Empties the index: priority falls, the number rises within it. False when it does not. */
static bool drain(struct index_bench *bench, uint32_t expected)
{
    uint32_t priority = MQX_MAX_PRIORITY;
    uint64_t number = 0;
    bool right = mqx_priority_index_check(&bench->region, queue_of(bench)) == 0;
    uint32_t slot;

    for (; (slot = first_of(bench)) != 0 && expected > 0; expected--) {
        const struct mqx_message *message = message_of(bench, slot);
        if (message->placement < priority) {
            priority = message->placement;
            number = 0;
        }
        right &= message->placement == priority && message->number > number;
        number = message->number;
        take_out(bench, slot);
    }
    return right && expected == 0 && slot == 0;
}

static void run(struct mqx_io *io, int directory, uint32_t depth, uint32_t count)
{
    struct index_bench bench = {.number = 1, .random = 2463534242u};
    struct mqx_region_plan plan;
    struct times times;

    mqx_region_default_plan(&plan);
    bench.slots = calloc(depth, sizeof(*bench.slots));
    if (bench.slots == NULL)
        bench_fail("no memory");
    bench_must(mqx_region_create(io, directory, "bench", &plan, &bench.region), "region");
    bench.region.process = 1;
    bench_must(mqx_slot_take(&bench.region, MQX_AREA_OBJECTS, NULL, &bench.queue), "object");
    bench_must(mqx_stripe_guard_take(&bench.region, bench.queue, &bench.guard), "lock");
    make_entries(&bench, depth);
    warm_up(&bench, depth);
    times = measure(&bench, depth, count);
    if (drain(&bench, depth - count))
        bench_answer("%f %f %f %f", times.insert, times.pop_insert, times.remove_any,
                     times.back_out);
    else
        bench_answer("wrong: the bench's order or count");
    mqx_stripe_guard_drop(&bench.guard);
    mqx_region_close(&bench.region);
    bench_must(io->ops->unlink(io, directory, "bench") < 0, "unlink");
    free(bench.slots);
}

int main(int argc, char **argv)
{
    struct mqx_io *io = mqx_io_posix();
    char line[64];
    uint32_t depth;
    uint32_t count;
    int directory;

    if (argc != 2)
        bench_fail("usage: c_priority_index DIRECTORY");
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
