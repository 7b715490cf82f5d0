/*
 * layer.h - what the programs of the crash layers share: arguments, time, the word about where a
 * crash of the engine itself happened.
 *
 * Status of such a program: 0 nothing found, 1 the engine broke a promise, 2 wrong use or a harness
 * that failed, a signal when the engine aborted (a line on stderr says where).
 */
#ifndef PENSTOCK_TESTS_LAYER_H
#define PENSTOCK_TESTS_LAYER_H

#include "base/base.h"

struct layer {
    uint64_t count;     /* cases or states wanted */
    uint64_t seed;
    uint64_t time_s;    /* 0: as long as it takes */
    uint64_t only;      /* one round or case; UINT64_MAX: all */
    bool traced;        /* print every call of the workload on stderr */
    const char *keep;   /* directory for the image of a violation, or NULL */
    const char *sample; /* directory for images and what the core found in them (T11), or NULL */
    uint64_t every;     /* every so many states one */
    uint64_t start_us;
};

/* --count N --seed S --time S --only N --keep DIRECTORY --trace 1 --sample DIRECTORY --every N;
 * ends the process with 2 on anything else. */
void layer_arguments(struct layer *layer, int argc, char **argv, uint64_t default_count);
bool layer_time_is_up(const struct layer *layer);
double layer_seconds(const struct layer *layer);
/* Printed when the process aborts or faults from here on. */
void layer_where(const char *format, ...) MQX_PRINTF(1, 2);

#endif
