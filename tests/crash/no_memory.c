/*
 * no_memory.c - crash-safety layer T5: every allocation of the core fails, once and from then on.
 *
 * Each scenario runs once to count its allocations, then once for each of them and each of the two
 * kinds of failure, in a thread of its own, so that memory kept for a thread is asked for again. A
 * step that fails must fail with MQRC_STORAGE_NOT_AVAILABLE. Afterwards, with memory again: what is
 * on the queues is what was there before or after the scenario's deciding call; the indexes hold
 * their invariants, every cell, entry and slot is accounted for; the scenario succeeds; as many
 * blocks are allocated as before.
 *
 *   no_memory [--scenario NAME]
 *
 * prints a line a scenario, in the end the sums. Status 0 when nothing was wrong.
 */
#include "crash_fixture.h"
#include "failing_alloc.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BODY_MAX = 200000 };

static struct crash_fixture fixture;
static char copy[160];
static unsigned char body[BODY_MAX];

/* ---- steps: those of the fixture allocate memory of their own ---- */

static int put(mqe_unit *unit, int q, uint64_t id, bool persistent, uint64_t length)
{
    const struct mqe_destination to = mqe_direct(fixture.slot[q], fixture.generation[q]);
    struct ps_descriptor d = {.priority = (int32_t)(id % 3), .persistence = persistent};
    memcpy(d.correl_id, &id, sizeof id);
    fixture_fill_body(body, id, length);
    return mqe_put(fixture.manager, unit, &to, &d, NULL, body, length, -1, 0);
}

static int get(mqe_unit *unit, int q, uint64_t correl)
{
    uint64_t id;
    return fixture_get(fixture.manager, unit, &fixture, q, 0, 0, correl, &id);
}

/* ---- scenarios: the first reason code that is not 0 ---- */

static int put_and_get(void)
{
    int reason = put(NULL, 1, 900, true, 150000);
    if (reason == 0) {
        reason = get(NULL, 1, 900);
    }
    return reason;
}

static int work_in_unit(mqe_unit *unit)
{
    int reason = put(unit, 0, 910, true, 300);
    reason = reason == 0 ? put(unit, 2, 911, true, 90000) : reason;
    reason = reason == 0 ? put(unit, 1, 912, false, 80000) : reason;
    return reason == 0 ? get(unit, 0, 101) : reason;
}

static int commit_unit(void)
{
    mqe_unit *unit = NULL;
    int reason = mqe_unit_new(fixture.manager, &unit);
    if (reason != 0) {
        return reason;
    }
    reason = work_in_unit(unit);
    if (reason == 0) {
        reason = mqe_commit(unit);
    } else {
        const int ended = mqe_backout(unit); /* needs no memory */
        reason = ended != 0 ? ended : reason;
    }
    mqe_unit_free(unit);
    return reason;
}

static int prepare_and_resolve(void)
{
    mqe_unit *unit = NULL;
    struct ps_xid xid;
    fixture_xid(9, FIXTURE_COMMITS, &xid);
    int reason = mqe_unit_new(fixture.manager, &unit);
    if (reason != 0) {
        return reason;
    }
    reason = work_in_unit(unit);
    if (reason == 0) {
        reason = mqe_prepare(unit, &xid, 0);
    }
    if (reason != 0) {
        const int ended = mqe_backout(unit);
        reason = ended != 0 ? ended : reason;
    }
    mqe_unit_free(unit);
    return reason == 0 ? mqe_commit_prepared(fixture.manager, &xid, 1) : reason;
}

static int batches(void)
{
    int reason =
        fixture_put_batch(fixture.manager, NULL, &fixture, 0, 920, 9, true);
    return reason == 0 ? fixture_get_batch(fixture.manager, NULL, &fixture, 0, 5) : reason;
}

static int checkpoint(void)
{
    int reason = put(NULL, 2, 930, true, 1000);
    return reason == 0 ? mqe_checkpoint(fixture.manager) : reason;
}

static int define_and_delete(void)
{
    struct ps_object_name name = {.name_space = 1, .type = 1};
    struct mqe_found found = {0};
    memset(name.name, ' ', sizeof name.name);
    memcpy(name.name, "NEW", 3);
    int reason = 0;
    if (mqe_find(fixture.manager, 1, name.name, 0, &found) != 0) {
        reason = mqe_define(fixture.manager, &name, NULL, 0, &found.slot, &found.generation);
    }
    return reason == 0 ? mqe_delete(fixture.manager, found.slot, found.generation, 1) : reason;
}

static int maintain(void)
{
    return mqe_maintain(fixture.manager);
}

/* Restart recovery of what a death of all processes left, and the orderly end. */
static int restart(void)
{
    struct mqe_attach_info info;
    struct mqe_settings settings = fixture.settings;
    mqe_manager *manager = NULL;
    uint64_t lost;
    settings.no_maintenance = 0;
    int reason = mqe_attach(copy, &settings, &manager, &info);
    return reason == 0 ? mqe_detach(manager, MQE_DETACH_ORDERLY, &lost) : reason;
}

static const struct scenario {
    const char *name;
    int (*run)(void);
    bool restarts;      /* on a copy of the files */
    bool in_pieces;     /* other pictures than before and after are legal */
} scenarios[] = {
    {"put_and_get", put_and_get, false, true},
    {"commit_unit", commit_unit, false, false},
    {"prepare_and_resolve", prepare_and_resolve, false, false},
    {"batches", batches, false, true},
    {"checkpoint", checkpoint, false, true},
    {"define_and_delete", define_and_delete, false, false},
    {"maintain", maintain, false, false},
    {"restart", restart, true, false},
};

/* ---- one run ---- */

struct run {
    const struct scenario *scenario;
    uint64_t fail_at;
    bool for_ever;
    uint64_t allocations;
    int reason;
    char text[200];
};

static void *run_armed(void *arg)
{
    struct run *run = arg;
    failing_alloc_arm(run->fail_at, run->for_ever);
    run->reason = run->scenario->run();
    run->allocations = failing_alloc_disarm();
    snprintf(run->text, sizeof run->text, "%s", mqe_error_text());
    return NULL;
}

static void run_in_thread(struct run *run)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_armed, run) != 0 || pthread_join(thread, NULL) != 0) {
        fixture_die("a thread", errno);
    }
}

static void reset(const struct scenario *scenario)
{
    fixture_reset(&fixture, 3, scenario->restarts ? 2 : 0, 0);
    if (scenario->restarts) {
        fixture_copy(&fixture, copy);
    }
}

static _Noreturn void fail(const struct run *run, const char *why)
{
    fprintf(stderr, "FAILED: %s, allocation %" PRIu64 " fails %s: %s (%s: %s)\n",
            run->scenario->name, run->fail_at, run->for_ever ? "and all after it" : "once", why,
            mqe_reason_name(run->reason), run->text);
    exit(1);
}

static void check(const struct run *run, const struct picture *before, const struct picture *after)
{
    static struct picture now;
    fixture_resolve(fixture.manager, UINT32_MAX);
    fixture_look(fixture.manager, &fixture, &now);
    if (!run->scenario->in_pieces && !pictures_equal(&now, before) &&
        !pictures_equal(&now, after)) {
        picture_print("before", before);
        picture_print("after", after);
        picture_print("found", &now);
        fail(run, "the messages are neither those before nor those after");
    }
    if (mqe_maintain(fixture.manager) != 0 || mqe_check(fixture.manager) != 0) {
        fail(run, mqe_error_text());
    }
    mqx_pool_drain(fixture.manager);
    if (!fixture_audit(&fixture)) {
        fail(run, "the audit of the region");
    }
}

static void one(const struct scenario *scenario, uint64_t fail_at, bool for_ever,
                const struct picture *before, const struct picture *after)
{
    struct run run = {.scenario = scenario, .fail_at = fail_at, .for_ever = for_ever};
    struct run again = {.scenario = scenario};
    reset(scenario);
    const int64_t live = failing_alloc_live();
    run_in_thread(&run);
    if (run.reason != 0 && run.reason != MQRC_STORAGE_NOT_AVAILABLE) {
        fail(&run, "the reason code");
    }
    check(&run, before, after);
    if (failing_alloc_live() != live) {
        fail(&run, "blocks are still allocated");
    }
    if (!scenario->restarts) {
        reset(scenario);
    }
    run_in_thread(&again); /* with memory it works: nothing has stopped */
    if (again.reason != 0) {
        fail(&again, "the run after it");
    }
    if (failing_alloc_live() != live) {
        fail(&again, "blocks are still allocated after it");
    }
}

/* The allocations of a run that has all it asks for, and the pictures around it. */
static uint64_t measure(const struct scenario *scenario, struct picture *before,
                        struct picture *after)
{
    struct run run = {.scenario = scenario};
    reset(scenario);
    fixture_resolve(fixture.manager, UINT32_MAX);
    fixture_look(fixture.manager, &fixture, before);
    reset(scenario);
    run_in_thread(&run);
    if (run.reason != 0) {
        fail(&run, "a run with all memory");
    }
    fixture_resolve(fixture.manager, UINT32_MAX);
    fixture_look(fixture.manager, &fixture, after);
    return run.allocations;
}

int main(int argc, char **argv)
{
    static struct picture before, after;
    const char *only = argc == 3 && strcmp(argv[1], "--scenario") == 0 ? argv[2] : NULL;
    uint64_t failures = 0, allocations = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    fixture_make(&fixture);
    snprintf(copy, sizeof copy, "%s-copy", fixture.path);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(scenarios); i++) {
        const struct scenario *scenario = &scenarios[i];
        if (only != NULL && strcmp(only, scenario->name) != 0) {
            continue;
        }
        const uint64_t count = measure(scenario, &before, &after);
        for (uint64_t at = 1; at <= count; at++) {
            one(scenario, at, false, &before, &after);
            one(scenario, at, true, &before, &after);
        }
        printf("%-20s %3" PRIu64 " allocations, each failed once and for ever\n", scenario->name,
               count);
        allocations += count;
        failures += 2 * count;
    }
    fixture_drop_copy(copy);
    fixture_remove(&fixture);
    printf("T5: %" PRIu64 " failures of %" PRIu64 " allocations of the core, 0 failed\n", failures,
           allocations);
    return 0;
}
