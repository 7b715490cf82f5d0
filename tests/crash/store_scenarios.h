/*
 * store_scenarios.h - the scenarios of the store points (T2): what each does, and in which fixture.
 *
 * A scenario runs in a child that attaches to the fixture's queue manager. What it finds wrong it
 * leaves in memory that it shares with the supervisor, which ends the run with that text.
 */
#ifndef STORE_SCENARIOS_H
#define STORE_SCENARIOS_H

#include "crash_fixture.h"

struct store_shared { /* between supervisor and children */
    uint64_t points;
    uint32_t returned;  /* the scenario's call returned */
    uint32_t failed;    /* a reason code that should not have come */
    char text[200];
};

struct scenario {
    const char *name;
    void (*run)(mqe_manager *manager);
    uint32_t many;      /* messages on queue B */
    bool in_between;    /* other pictures than before and after are legal (several units) */
    uint32_t prepared;  /* prepared units, 1, 2, ... */
    bool lazily;        /* those, or the one it prepares, without waiting */
    enum { NOTHING, TO_SPARES, TO_ARCHIVE, MOVED } retires; /* a segment that is not needed; MOVED:
                                                             * once its messages are moved */
};

enum { SCENARIOS_MAX = 64 };

extern struct store_shared *shared;
extern struct crash_fixture fixture;
extern const struct scenario scenarios[];
extern const size_t scenario_count; /* SCENARIOS_MAX at most */

/* Notes the first reason code that should not have come. */
void expect(const char *what, int reason);

/* Two scenarios for which the supervisor owns a unit of work, and what it puts into it. */
void back_out_anothers_unit(mqe_manager *m);
void continue_a_back_out(mqe_manager *m);
void fill_unit(mqe_manager *m, mqe_unit *unit);

#endif
