/*
 * c_pair.c - a non-persistent put and a get through engine.h, in pairs, on one queue.
 *
 *   c_pair DIRECTORY QUEUE BYTES     then on standard input, a line each:
 *     pairs COUNT START   waits for START (ns of CLOCK_MONOTONIC, 0 = now), so that two programs
 *                         begin together; answers "<begin ns> <end ns>"
 *     empty               takes the backlog; answers "empty" when every message put came out
 *
 * Bodies carry a number; priorities come from a fixed random sequence; BACKLOG messages stay in the
 * queue. Numbers put and got are summed, so that a message lost or doubled shows in `empty`. Two of
 * these programs on two queues of one directory show what the second processor brings.
 */
#include "c_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BACKLOG = 100 };

struct pairs {
    mqe_manager *manager;
    struct bench_queue queue;
    unsigned char *body;
    unsigned char *got;
    uint64_t size;
    uint64_t number; /* of the next message */
    uint64_t put_sum;
    uint64_t got_sum;
    uint32_t random;
};

static void put_next(struct pairs *pairs)
{
    uint64_t number = pairs->number++;

    memcpy(pairs->body, &number, sizeof(number));
    pairs->put_sum += number;
    bench_put(pairs->manager, NULL, &pairs->queue, (int32_t)(bench_random(&pairs->random) % 10),
              pairs->body, pairs->size);
}

static void get_next(struct pairs *pairs)
{
    uint64_t number;

    bench_get(pairs->manager, NULL, &pairs->queue, pairs->got, pairs->size);
    memcpy(&number, pairs->got, sizeof(number));
    pairs->got_sum += number;
}

static void run_pairs(struct pairs *pairs, uint64_t count, uint64_t start)
{
    uint64_t begun = bench_now_ns();

    while (begun < start)
        begun = bench_now_ns();
    for (uint64_t i = 0; i < count; i++) {
        put_next(pairs);
        get_next(pairs);
    }
    bench_answer("%llu %llu", (unsigned long long)begun, (unsigned long long)bench_now_ns());
}

static void empty(struct pairs *pairs)
{
    struct mqe_queue_status status;

    for (int i = 0; i < BACKLOG; i++)
        get_next(pairs);
    bench_must(mqe_queue_status(pairs->manager, pairs->queue.to.queue,
                                pairs->queue.to.queue_generation, &status),
               "queue status");
    if (status.depth != 0 || pairs->got_sum != pairs->put_sum)
        bench_answer("wrong: depth %u, sums %llu put and %llu got", status.depth,
                     (unsigned long long)pairs->put_sum, (unsigned long long)pairs->got_sum);
    else
        bench_answer("empty");
}

int main(int argc, char **argv)
{
    struct pairs pairs = {.number = 1, .random = 2463534242u};
    unsigned long long count;
    unsigned long long start;
    char line[64];

    if (argc != 4)
        bench_fail("usage: c_pair DIRECTORY QUEUE BYTES");
    pairs.size = strtoull(argv[3], NULL, 10);
    pairs.body = calloc(1, pairs.size);
    pairs.got = calloc(1, pairs.size);
    if (pairs.size < sizeof(uint64_t) || pairs.body == NULL || pairs.got == NULL)
        bench_fail("BYTES is too small or there is no memory");
    pairs.manager = bench_attach(argv[1]);
    pairs.queue = bench_open(pairs.manager, argv[2], false);
    for (int i = 0; i < BACKLOG; i++)
        put_next(&pairs);
    bench_answer("ready");
    while (bench_command(line, sizeof(line))) {
        if (sscanf(line, "pairs %llu %llu", &count, &start) == 2)
            run_pairs(&pairs, count, start);
        else if (strcmp(line, "empty\n") == 0)
            empty(&pairs);
        else
            bench_fail("unknown command");
    }
    bench_close(&pairs.queue);
    bench_detach(pairs.manager);
    free(pairs.body);
    free(pairs.got);
    return 0;
}
