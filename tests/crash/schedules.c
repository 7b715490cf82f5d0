/*
 * schedules.c - crash-safety layer T9: pairs of operations in two processes, interleaved at stores.
 *
 * A schedule: worker 0 runs its operation up to a store into the region, chosen at random; then
 * worker 1 runs its own, to the end, up to a store, or to where it first finds a lock taken; then
 * one of them dies or both go on. So there are at most two switches that the plan makes; a worker
 * that would sleep for the other one adds its own. After each schedule a third process repairs, and
 * these must hold: no reason code came that cannot come; the messages are those that the accounts
 * of both operations leave; priority and id indexes hold their invariants; every cell, entry and
 * slot is accounted for; no wait slept to its bound, unless somebody died; from time to time, that
 * recovery from the files gives the same persistent messages.
 *
 *   schedules [--count N] [--seed S] [--first NAME] [--second NAME]
 *             [--at N --then N --ending N]     one schedule, as a failure prints it
 *
 * prints how many schedules were run, how many distinct ones (operations, stores of both pauses,
 * ending), and the seed. Status 0 when nothing was wrong.
 */
#include "operations.h"
#include "turns.h"

#include "region/damage.h"
#include "region/stop_flag.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DEEP_EVERY = 128,
    DISTINCT_BITS = 22,
    PREPARED_MAX = 2,
    OPERATIONS_MAX = 32,
    WAITS_OFTENER = 16,
    PICK_POINTS = 24, /* more of a put that has a waiter to pick */
    ATTACH_PAUSE_US = 100,
    ATTACH_TRIES = 100000, /* 10 s */
};

enum ending {
    BOTH_GO_ON,
    SECOND_RUNS_THROUGH,
    SECOND_IS_REFUSED, /* it pauses where it finds a lock taken */
    FIRST_DIES,
    FIRST_DIES_LATER,
    SECOND_DIES,
    ENDINGS,
};

struct schedule {
    uint32_t operation[TURNS_WORKERS];
    uint64_t at[TURNS_WORKERS];
    enum ending ending;
};

static struct shared {
    struct turns turns;
    uint32_t operation[TURNS_WORKERS];
    struct account account[TURNS_WORKERS];
    uint32_t ready[TURNS_WORKERS]; /* atomic: the worker is attached */
} *shared;

static struct crash_fixture fixture;
static pid_t workers[TURNS_WORKERS];
static uint64_t points[OPERATIONS_MAX];
static struct tally before[PREPARED_MAX];
static uint64_t seed = 1;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- workers ---- */

static _Noreturn void worker_main(uint32_t self)
{
    struct mqe_attach_info info;
    mqe_manager *manager = NULL;
    const int reason = mqe_attach(fixture.path, &fixture.settings, &manager, &info);
    if (reason != 0) {
        fixture_die("attach in a worker", reason);
    }
    turns_join(&shared->turns, self);
    __atomic_store_n(&shared->ready[self], 1u, __ATOMIC_RELEASE);
    for (;;) { /* until it is killed */
        turns_await();
        struct account *account = &shared->account[self];
        turns_begin(manager->store.region.base, manager->store.region.size);
        operations[shared->operation[self]].run(manager, &fixture, account);
        account->over = true;
        mqx_pool_drain(manager); /* idle contexts would look as if a call were in progress */
        turns_end();
    }
}

/* Returns when it is attached: nobody may check the region before. */
static void start_worker(uint32_t self)
{
    shared->ready[self] = 0;
    fflush(NULL);
    workers[self] = fork();
    if (workers[self] == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever ends the supervisor */
        worker_main(self);
    }
    if (workers[self] < 0) {
        fixture_die("fork", errno);
    }
    for (int i = 0; __atomic_load_n(&shared->ready[self], __ATOMIC_ACQUIRE) == 0; i++) {
        if (i == ATTACH_TRIES) {
            fixture_die("a worker does not attach", 0);
        }
        (void)usleep(ATTACH_PAUSE_US);
    }
}

static void end_workers(void)
{
    for (uint32_t i = 0; i < TURNS_WORKERS; i++) {
        if (workers[i] > 0) {
            (void)kill(workers[i], SIGKILL);
            (void)waitpid(workers[i], NULL, 0);
        }
    }
}

/* ---- one schedule ---- */

static _Noreturn void fail(const struct schedule *schedule, const char *why)
{
    fprintf(stderr, "FAILED: %s\n  --first %s --second %s --at %" PRIu64 " --then %" PRIu64
            " --ending %d, seed %" PRIu64 "\n", why, operations[schedule->operation[0]].name,
            operations[schedule->operation[1]].name, schedule->at[0], schedule->at[1],
            (int)schedule->ending, seed);
    for (int i = 0; i < TURNS_WORKERS; i++) {
        const struct account *a = &shared->account[i];
        fprintf(stderr, "  worker %d: %u puts, %u gets, decided %d, over %d, dead %d%s%s\n", i,
                a->puts, a->gets, a->decided, a->over, shared->turns.worker[i].dead,
                a->wrong != 0 ? ": " : "", a->text);
    }
    end_workers();
    exit(1);
}

/* What the fixture has for that operation before it runs. */
static void reset(uint32_t many, uint32_t prepared)
{
    fixture_reset(&fixture, many, prepared, 0);
}

static void plan(const struct schedule *schedule)
{
    static const enum turns_at_pause first[ENDINGS] = {[FIRST_DIES] = TURNS_DIE};
    static const enum turns_at_pause second[ENDINGS] = {[FIRST_DIES_LATER] = TURNS_KILL_OTHER,
                                                        [SECOND_DIES] = TURNS_DIE};
    const bool pauses = schedule->ending == BOTH_GO_ON || second[schedule->ending] != TURNS_SWITCH;
    memset(shared->account, 0, sizeof shared->account);
    fixture.manager->store.region.header->max_unit_age = 0; /* see back_out_old_units() */
    memset(shared->turns.worker, 0, sizeof shared->turns.worker);
    for (uint32_t i = 0; i < TURNS_WORKERS; i++) {
        shared->account[i].worker = i;
        shared->operation[i] = schedule->operation[i];
    }
    shared->turns.worker[0].pause_at = schedule->at[0];
    shared->turns.worker[0].at_pause = first[schedule->ending];
    shared->turns.worker[1].pause_at = pauses ? schedule->at[1] : 0;
    shared->turns.worker[1].pause_when_refused = schedule->ending == SECOND_IS_REFUSED;
    shared->turns.worker[1].at_pause = second[schedule->ending];
}

/* What happened to the workers themselves. */
static void check_outcome(const struct schedule *schedule, enum turns_outcome outcome)
{
    static const char *const texts[] = {[TURNS_HUNG] = "a worker hangs",
                                        [TURNS_CRASHED] = "a worker ended",
                                        [TURNS_LIVELOCK] = "the workers wait for each other"};
    if (outcome != TURNS_OVER) {
        fail(schedule, texts[outcome]);
    }
    for (int i = 0; i < TURNS_WORKERS; i++) {
        if (shared->account[i].wrong != 0) {
            fail(schedule, shared->account[i].text);
        }
    }
    const struct mqx_region *region = &fixture.manager->store.region;
    if (mqx_region_stopped(region) != 0) { /* nobody can attach any more */
        const char *damage = mqx_region_damage_text(region);
        fail(schedule, damage != NULL ? damage : "the queue manager has stopped");
    }
    if (shared->turns.slept) {
        fail(schedule, "a wait slept to its bound: a wake-up was lost");
    }
}

/* What is left of the queue manager; the prepared units are committed first. */
static void check_region(const struct schedule *schedule, const struct tally *was, bool deep)
{
    static struct picture now;
    static struct tally found;
    const struct picture *const seen[] = {&now};
    int reason = mqe_maintain(fixture.manager);
    if (reason != 0) {
        fail(schedule, mqe_error_text());
    }
    fixture_resolve(fixture.manager, UINT32_MAX);
    fixture_look(fixture.manager, &fixture, &now);
    if (!tally_of(&now, &found) || !tally_agrees(was, shared->account, &found)) {
        picture_print("found", &now);
        fail(schedule, "messages are lost, doubled or there against the rules");
    }
    fixture_walk(fixture.manager, &fixture, 1, 7);
    reason = mqe_check(fixture.manager);
    if (reason != 0) {
        fail(schedule, mqe_error_text());
    }
    if (!fixture_audit(&fixture)) {
        fail(schedule, "the audit of the region");
    }
    if (deep && !fixture_recovers_to(&fixture, seen, 1)) {
        fail(schedule, "a restart finds other messages");
    }
}

static void run_one(const struct schedule *schedule, bool deep)
{
    uint32_t many = 0, prepared = 0;
    for (int i = 0; i < TURNS_WORKERS; i++) {
        const struct operation *operation = &operations[schedule->operation[i]];
        many = operation->many > many ? operation->many : many;
        prepared = operation->prepared > prepared ? operation->prepared : prepared;
    }
    static struct tally was;
    was = before[prepared];
    for (uint64_t id = 203; id < 200 + many; id++) {
        was.count[1][id] = 1;
    }
    reset(many, prepared);
    plan(schedule);
    check_outcome(schedule, turns_run(&shared->turns, workers));
    for (uint32_t i = 0; i < TURNS_WORKERS; i++) {
        if (shared->turns.worker[i].dead) {
            start_worker(i);
        }
    }
    check_region(schedule, &was, deep);
}

/* ---- measuring ---- */

/* The points that an operation has by itself. */
static void measure(uint32_t operation)
{
    const struct schedule alone = {.operation = {operation, operation}};
    reset(operations[operation].many, operations[operation].prepared);
    plan(&alone);
    shared->turns.worker[1].over = true;
    check_outcome(&alone, turns_run(&shared->turns, workers));
    points[operation] = shared->turns.worker[0].points;
    if (points[operation] == 0) {
        fail(&alone, "an operation without a store");
    }
}

static void measure_all(void)
{
    static struct picture now;
    for (uint32_t prepared = 0; prepared < PREPARED_MAX; prepared++) {
        reset(3, prepared);
        fixture_resolve(fixture.manager, UINT32_MAX);
        fixture_look(fixture.manager, &fixture, &now);
        if (!tally_of(&now, &before[prepared])) {
            fixture_die("the first picture", 0);
        }
    }
    for (uint32_t i = 0; i < operation_count; i++) {
        if (!operations[i].waits) {
            measure(i);
        } else {
            points[i] = points[0] * 4; /* of its search, its listing and its second search */
        }
    }
}

/* ---- all of them ---- */

/* Schedules told apart by what they did: a table of hashes that forgets none until it is full. */
static bool is_new(uint64_t key)
{
    static uint64_t table[1 << DISTINCT_BITS];
    key = (key | 1) * 0x9e3779b97f4a7c15ull;
    for (uint64_t at = key >> (64 - DISTINCT_BITS), i = 0; i < 64; i++) {
        uint64_t *entry = &table[(at + i) % (1 << DISTINCT_BITS)];
        if (*entry == key) {
            return false;
        }
        if (*entry == 0) {
            *entry = key;
            return true;
        }
    }
    return false;
}

static uint64_t key_of(const struct schedule *schedule)
{
    uint64_t key = schedule->operation[0] * OPERATIONS_MAX + schedule->operation[1];
    key = key * ENDINGS + (uint64_t)schedule->ending;
    for (int i = 0; i < TURNS_WORKERS; i++) {
        key = (key ^ shared->turns.worker[i].site) * 0xff51afd7ed558ccdull;
    }
    return key;
}

static bool may_pair(uint32_t first, uint32_t second)
{
    const struct operation *a = &operations[first], *b = &operations[second];
    return (!a->waits || b->gives) && (!b->waits || a->gives);
}

static int find(const char *name)
{
    for (uint32_t i = 0; i < operation_count; i++) {
        if (strcmp(operations[i].name, name) == 0) {
            return (int)i;
        }
    }
    fprintf(stderr, "no operation is called %s\n", name);
    exit(2);
}

struct options {
    uint64_t count;
    int first, second; /* -1: all */
    uint64_t at, then;
    int ending;        /* -1: all */
};

static struct schedule choose(uint32_t a, uint32_t b, const struct options *options,
                              uint64_t number, uint64_t *random)
{
    const bool waits = operations[a].waits || operations[b].waits;
    const uint64_t endings = waits ? FIRST_DIES : ENDINGS; /* a wait needs the other one alive */
    const uint64_t more = waits ? PICK_POINTS : 0;
    struct schedule schedule = {.operation = {a, b}, .ending = (enum ending)(number % endings)};
    schedule.at[0] = next_random(random) % (points[a] + more) + 1;
    schedule.at[1] = next_random(random) % (points[b] + more) + 1;
    if (options->ending >= 0) {
        schedule.at[0] = options->at;
        schedule.at[1] = options->then;
        schedule.ending = (enum ending)options->ending;
    }
    return schedule;
}

/* What all schedules together were. */
struct sum {
    uint64_t run, distinct, kills, switches;
};

/* How often a pair has its turn in each round. Few pairs wait, and most stores of theirs are those
 * of a plain get. */
static uint64_t turns_of(uint32_t a, uint32_t b, const struct options *options)
{
    if (!may_pair(a, b) || (options->first >= 0 && (uint32_t)options->first != a) ||
        (options->second >= 0 && (uint32_t)options->second != b)) {
        return 0;
    }
    return operations[a].waits || operations[b].waits ? WAITS_OFTENER : 1;
}

static void run_pair(uint32_t a, uint32_t b, const struct options *options, uint64_t round,
                     uint64_t *random, struct sum *sum)
{
    const uint64_t times = turns_of(a, b, options);
    for (uint64_t i = 0; i < times && sum->run < options->count; i++) {
        const struct schedule schedule = choose(a, b, options, round + a + b + i, random);
        run_one(&schedule, sum->run % DEEP_EVERY == 0);
        sum->distinct += is_new(key_of(&schedule));
        sum->kills += shared->turns.worker[0].dead || shared->turns.worker[1].dead;
        sum->switches += shared->turns.switches;
        sum->run += 1;
    }
}

static void run_all(const struct options *options)
{
    uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1;
    struct sum sum = {0};
    for (uint64_t round = 0; sum.run < options->count; round++) {
        for (uint32_t a = 0; a < operation_count; a++) {
            for (uint32_t b = 0; b < operation_count; b++) {
                run_pair(a, b, options, round, &random, &sum);
            }
        }
    }
    printf("T9: %" PRIu64 " schedules, %" PRIu64 " distinct, %" PRIu64 " with a kill, %" PRIu64
           " switches, 0 failed, seed %" PRIu64 "\n", sum.run, sum.distinct, sum.kills,
           sum.switches, seed);
}

static struct options parse(int argc, char **argv)
{
    struct options options = {.count = 20000, .first = -1, .second = -1, .ending = -1};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--count") == 0) {
            options.count = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--first") == 0) {
            options.first = find(value);
        } else if (strcmp(argv[i], "--second") == 0) {
            options.second = find(value);
        } else if (strcmp(argv[i], "--at") == 0) {
            options.at = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--then") == 0) {
            options.then = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--ending") == 0) {
            options.ending = (int)strtol(value, NULL, 10) % ENDINGS;
        }
    }
    return options;
}

int main(int argc, char **argv)
{
    const struct options options = parse(argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        fixture_die("mmap", errno);
    }
    fixture_make(&fixture);
    shared->turns.turn = TURNS_SUPERVISOR;
    for (uint32_t i = 0; i < TURNS_WORKERS; i++) {
        start_worker(i);
    }
    measure_all();
    run_all(&options);
    end_workers();
    fixture_remove(&fixture);
    return 0;
}
