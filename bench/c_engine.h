/*
 * c_engine.h - what the C programs on the engine share: attach, define, fail, read commands.
 *
 * Each program attaches to the queue manager in the directory given as its first argument (an empty
 * directory becomes one), says "ready", and then carries out one command a line from standard input
 * until it ends. It answers a line for each: numbers, or "wrong: <what>" when a result is not what
 * it must be. A call that fails ends the program with the reason on standard error.
 */
#ifndef PENSTOCK_BENCH_C_ENGINE_H
#define PENSTOCK_BENCH_C_ENGINE_H

#include "penstock/engine.h"

enum { BENCH_QUEUE_SLOTS = 4 };

struct bench_queue {
    struct mqe_destination to;
    mqe_queue *handle;
};

uint64_t bench_now_ns(void);

/* Ends the program unless reason is 0. */
void bench_must(int reason, const char *what);
/* Ends the program with a text. */
_Noreturn void bench_fail(const char *text);

/* Attaches to `path`; the directory is made a queue manager first when it is empty. */
mqe_manager *bench_attach(const char *path);
void bench_detach(mqe_manager *manager);

/* Opens a local queue for input and output; defines it without practical limits when missing. */
struct bench_queue bench_open(mqe_manager *manager, const char *name, bool persistent);
void bench_close(struct bench_queue *queue);

/* One put or get of `size` bytes; `unit` may be NULL. */
void bench_put(mqe_manager *manager, mqe_unit *unit, const struct bench_queue *queue,
               int32_t priority, const void *body, uint64_t size);
void bench_get(mqe_manager *manager, mqe_unit *unit, const struct bench_queue *queue, void *body,
               uint64_t size);

/* Reads the next command line; false at the end of the input. */
bool bench_command(char *line, int size);
/* Prints an answer and flushes it. */
void bench_answer(const char *format, ...) MQX_PRINTF(1, 2);

uint32_t bench_random(uint32_t *state);

#endif
