/*
 * c_producers.c - durable puts through engine.h by threads of this process.
 *
 *   c_producers DIRECTORY QUEUE BYTES FIRST THREADS     then on standard input, a line each:
 *     put EACH                 every thread puts EACH persistent messages, each a unit of its own;
 *                              answers "<begin ns> <end ns>" of CLOCK_MONOTONIC
 *     drain PRODUCERS EACH     takes PRODUCERS x EACH messages in units of work and checks that
 *                              each producer's came once and in its order; answers "drained"
 *
 * Producers are numbered FIRST, FIRST + 1, ... Eight producers as processes are eight of these
 * programs with one thread.
 */
#include "c_engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PRODUCERS_MAX = 64, UNIT = 1000 };

struct stamp { /* first bytes of a body */
    uint32_t producer;
    uint32_t number;
};

struct job {
    mqe_manager *manager;
    struct bench_queue queue;
    uint64_t size;
    uint32_t threads;
    uint32_t first;
    uint32_t each;
    pthread_barrier_t start;
};

struct producer {
    struct job *job;
    uint32_t index;
    uint64_t begun;
    uint64_t ended;
};

static void *produce(void *arg)
{
    struct producer *me = arg;
    struct job *job = me->job;
    struct stamp stamp = {.producer = job->first + me->index};
    unsigned char *body = calloc(1, job->size);

    if (body == NULL)
        bench_fail("no memory");
    pthread_barrier_wait(&job->start);
    me->begun = bench_now_ns();
    for (stamp.number = 0; stamp.number < job->each; stamp.number++) {
        memcpy(body, &stamp, sizeof(stamp));
        bench_put(job->manager, NULL, &job->queue, 0, body, job->size);
    }
    me->ended = bench_now_ns();
    free(body);
    return NULL;
}

static void put_all(struct job *job, uint32_t each)
{
    struct producer producers[PRODUCERS_MAX];
    pthread_t threads[PRODUCERS_MAX];
    uint64_t begun = UINT64_MAX;
    uint64_t ended = 0;

    job->each = each;
    if (pthread_barrier_init(&job->start, NULL, job->threads) != 0)
        bench_fail("no barrier");
    for (uint32_t i = 0; i < job->threads; i++) {
        producers[i] = (struct producer){.job = job, .index = i};
        if (pthread_create(&threads[i], NULL, produce, &producers[i]) != 0)
            bench_fail("no thread");
    }
    for (uint32_t i = 0; i < job->threads; i++) {
        pthread_join(threads[i], NULL);
        begun = producers[i].begun < begun ? producers[i].begun : begun;
        ended = producers[i].ended > ended ? producers[i].ended : ended;
    }
    pthread_barrier_destroy(&job->start);
    bench_answer("%llu %llu", (unsigned long long)begun, (unsigned long long)ended);
}

/* True when the message is the next one of its producer. */
static bool take_one(struct job *job, mqe_unit *unit, uint32_t producers, uint32_t *next,
                     unsigned char *body)
{
    struct stamp stamp;

    bench_get(job->manager, unit, &job->queue, body, job->size);
    memcpy(&stamp, body, sizeof(stamp));
    return stamp.producer < producers && stamp.number == next[stamp.producer]++;
}

static void drain(struct job *job, uint32_t producers, uint32_t each)
{
    uint32_t next[PRODUCERS_MAX] = {0};
    unsigned char *body = malloc(job->size);
    struct mqe_queue_status status;
    mqe_unit *unit = NULL;
    bool right = true;

    if (body == NULL || producers > PRODUCERS_MAX)
        bench_fail("no memory or too many producers");
    bench_must(mqe_unit_new(job->manager, &unit), "unit");
    for (uint32_t taken = 0; taken < producers * each; taken++) {
        right &= take_one(job, unit, producers, next, body);
        if (taken % UNIT == UNIT - 1)
            bench_must(mqe_commit(unit), "commit");
    }
    bench_must(mqe_commit(unit), "commit");
    mqe_unit_free(unit);
    for (uint32_t i = 0; i < producers; i++)
        right &= next[i] == each;
    bench_must(mqe_queue_status(job->manager, job->queue.to.queue, job->queue.to.queue_generation,
                                &status),
               "queue status");
    free(body);
    if (right && status.depth == 0)
        bench_answer("drained");
    else
        bench_answer("wrong: messages lost, doubled or out of order, depth %u", status.depth);
}

int main(int argc, char **argv)
{
    struct job job = {0};
    char line[64];
    uint32_t producers;
    uint32_t each;

    if (argc != 6)
        bench_fail("usage: c_producers DIRECTORY QUEUE BYTES FIRST THREADS");
    job.size = strtoull(argv[3], NULL, 10);
    job.first = (uint32_t)strtoul(argv[4], NULL, 10);
    job.threads = (uint32_t)strtoul(argv[5], NULL, 10);
    if (job.size < sizeof(struct stamp) || job.threads == 0 || job.threads > PRODUCERS_MAX)
        bench_fail("BYTES or THREADS is out of range");
    job.manager = bench_attach(argv[1]);
    job.queue = bench_open(job.manager, argv[2], true);
    bench_answer("ready");
    while (bench_command(line, sizeof(line))) {
        if (sscanf(line, "put %u", &each) == 1)
            put_all(&job, each);
        else if (sscanf(line, "drain %u %u", &producers, &each) == 2)
            drain(&job, producers, each);
        else
            bench_fail("unknown command");
    }
    bench_close(&job.queue);
    bench_detach(job.manager);
    return 0;
}
