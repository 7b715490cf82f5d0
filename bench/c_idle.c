/*
 * c_idle.c - processes that are attached and do nothing.
 *
 *   c_idle DIRECTORY COUNT     COUNT processes attach, then on standard input, a line each:
 *     cpu SECONDS        answers how many nanoseconds of processor time they all used together in
 *                        so many seconds
 *
 * The processes are children of the program; they leave when their standard input ends.
 */
#include "c_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CHILDREN_MAX = 1000 };

static pid_t children[CHILDREN_MAX];
static int count;

/* Of a process, all its threads. */
static uint64_t processor_ns(pid_t pid)
{
    struct timespec used;
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        bench_fail("the processor time of a process cannot be read");
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static uint64_t processor_ns_of_all(void)
{
    uint64_t sum = 0;

    for (int i = 0; i < count; i++)
        sum += processor_ns(children[i]);
    return sum;
}

/* Attached until `end` is closed by the parent. */
static void be_idle(const char *path, int ready, int end)
{
    char byte = 'r';
    mqe_manager *manager = bench_attach(path);

    if (write(ready, &byte, 1) != 1)
        bench_fail("the parent is gone");
    while (read(end, &byte, 1) > 0) {
    }
    bench_detach(manager);
    _exit(0);
}

static void start(const char *path, const int ready[2], const int end[2])
{
    char byte;

    children[count] = fork();
    if (children[count] < 0)
        bench_fail("fork");
    if (children[count] == 0) {
        close(end[1]);
        be_idle(path, ready[1], end[0]);
    }
    count++;
    if (read(ready[0], &byte, 1) != 1)
        bench_fail("a process did not attach");
}

int main(int argc, char **argv)
{
    int ready[2], end[2];
    char line[128];

    if (argc != 3 || atoi(argv[2]) < 1 || atoi(argv[2]) > CHILDREN_MAX)
        bench_fail("usage: c_idle DIRECTORY COUNT");
    if (pipe(ready) != 0 || pipe(end) != 0)
        bench_fail("pipe");
    while (count < atoi(argv[2]))
        start(argv[1], ready, end);
    bench_answer("ready");
    while (bench_command(line, sizeof(line))) {
        const uint64_t before = processor_ns_of_all();
        const unsigned seconds = (unsigned)atoi(line + 4);
        struct timespec left = {.tv_sec = seconds};

        while (nanosleep(&left, &left) != 0) {
        }
        bench_answer("%llu", (unsigned long long)(processor_ns_of_all() - before));
    }
    close(end[1]);
    for (int i = 0; i < count; i++)
        waitpid(children[i], NULL, 0);
    return 0;
}
