/*
 * layer.c - see layer.h.
 */
#include "layer.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char where[256] = "at the start\n";

static uint64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static void tell(int number)
{
    const ssize_t written = write(STDERR_FILENO, where, strlen(where));
    (void)written;
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

void layer_where(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(where, sizeof where - 1, format, args);
    va_end(args);
    (void)strcat(where, "\n");
}

static uint64_t number(const char *name, const char *text)
{
    char *end = NULL;
    const uint64_t value = text != NULL ? strtoull(text, &end, 10) : 0;
    if (text == NULL || end == text || *end != '\0') {
        fprintf(stderr, "%s wants a number\n", name);
        exit(2);
    }
    return value;
}

void layer_arguments(struct layer *layer, int argc, char **argv, uint64_t default_count)
{
    *layer = (struct layer){.count = default_count, .seed = 1, .only = UINT64_MAX, .every = 100};
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--count") == 0) {
            layer->count = number(argv[i], value);
        } else if (strcmp(argv[i], "--seed") == 0) {
            layer->seed = number(argv[i], value);
        } else if (strcmp(argv[i], "--time") == 0) {
            layer->time_s = number(argv[i], value);
        } else if (strcmp(argv[i], "--only") == 0) {
            layer->only = number(argv[i], value);
        } else if (strcmp(argv[i], "--trace") == 0) {
            layer->traced = number(argv[i], value) != 0;
        } else if (strcmp(argv[i], "--keep") == 0 && value != NULL) {
            layer->keep = value;
        } else if (strcmp(argv[i], "--sample") == 0 && value != NULL) {
            layer->sample = value;
        } else if (strcmp(argv[i], "--every") == 0) {
            layer->every = number(argv[i], value);
        } else {
            fprintf(stderr,
                    "%s: what is %s? Known: --count --seed --time --only --trace --keep --sample "
                    "--every\n",
                    argv[0], argv[i]);
            exit(2);
        }
    }
    layer->start_us = now_us();
    (void)signal(SIGABRT, tell);
    (void)signal(SIGSEGV, tell);
    (void)signal(SIGBUS, tell);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
}

bool layer_time_is_up(const struct layer *layer)
{
    return layer->time_s != 0 && now_us() - layer->start_us >= layer->time_s * 1000000u;
}

double layer_seconds(const struct layer *layer)
{
    return (double)(now_us() - layer->start_us) / 1e6;
}
