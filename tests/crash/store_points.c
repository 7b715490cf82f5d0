/*
 * store_points.c - crash-safety layer T2: SIGKILL before every store into the region.
 *
 * For each scenario: run it once to the end in a child and count its points; the pictures before
 * and after are the two legal outcomes. Then, for the chosen points: reset the fixture, run the
 * scenario in a child that is killed there, let a survivor repair (in the nested runs the repairer,
 * too, is killed, at each of its own points in turn), and check: the picture is one of the two (the
 * second when the scenario's call had returned); priority and id indexes hold their invariants;
 * every cell and entry is accounted for; from time to time, that recovery from the files gives the
 * same persistent messages. Where a unit is prepared without waiting, the same is examined before
 * anybody asks for it: the files hold the picture before, after, or that without the unit.
 *
 *   store_points [--count N] [--pairs N] [--seed S] [--scenario NAME]
 *
 * In the scenario of a unit that another process backs out, the supervisor is its owner. It asks
 * after the unit before the repair or after it, by turns; the first may find a dead helper's work.
 *
 * prints for each scenario how many points there are and how many were tried, in the end the sums,
 * distinct sites and the seed. Status 0 when nothing was wrong.
 */
#include "store_scenarios.h"
#include "store_hook.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct store_shared *shared;
struct crash_fixture fixture;
static uint64_t seed = 1;
static mqe_unit *forgotten; /* of the supervisor, too old */

/* ---- children ---- */

/* Attaches again (a child owns nothing), runs with the hook armed, reports. Never returns.
 * Repairing (no scenario, or the one that is about repairing) begins with the attach itself, so
 * does the scenario that is about attaching. */
static _Noreturn void child_main(const struct scenario *scenario, uint64_t kill_at)
{
    struct mqe_attach_info info;
    mqe_manager *manager = NULL;
    const bool repairs = scenario == NULL || scenario->run == continue_a_back_out;
    const bool from_attach = repairs || scenario->run == NULL;
    if (from_attach) {
        store_hook_arm_on_map(fixture.manager->store.region.size, kill_at);
    }
    const int reason = mqe_attach(fixture.path, &fixture.settings, &manager, &info);
    if (reason != 0) {
        fixture_die("attach in a child", reason);
    }
    manager->store.plan.linear = fixture.manager->store.plan.linear;
    const struct mqx_region *region = &manager->store.region;
    if (!from_attach) {
        store_hook_arm(region->base, region->size, kill_at);
        scenario->run(manager);
        shared->returned = 1;
    } else if (repairs) {
        expect("repair", mqe_maintain(manager));
    } else {
        uint64_t lost;
        expect("detach", mqe_detach(manager, MQE_DETACH_ORDERLY, &lost));
    }
    shared->points = store_hook_disarm();
    _exit(0); /* like a death: whatever it still has is the survivors' to clean up */
}

static int run_child(const struct scenario *scenario, uint64_t kill_at)
{
    memset(shared, 0, sizeof *shared);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        child_main(scenario, kill_at);
    }
    int outcome = 0;
    if (child < 0 || waitpid(child, &outcome, 0) != child) {
        fixture_die("waiting for a child", errno);
    }
    const bool killed = WIFSIGNALED(outcome) && WTERMSIG(outcome) == SIGKILL;
    if (!killed && !(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0)) {
        fprintf(stderr, "child of %s killed at %llu ended with status 0x%x\n",
                scenario == NULL ? "repair" : scenario->name, (unsigned long long)kill_at, outcome);
        exit(1);
    }
    if (shared->failed != 0) {
        fprintf(stderr, "%s: %s\n", scenario == NULL ? "repair" : scenario->name, shared->text);
        exit(1);
    }
    return killed;
}

/* ---- the owner of the unit that another process backs out ---- */

static bool has_owner(const struct scenario *scenario)
{
    return scenario->run == back_out_anothers_unit || scenario->run == continue_a_back_out;
}

static void begin_forgotten(const struct scenario *scenario)
{
    enum { HALF_WAY = 200 };
    static const struct scenario first = {.name = "half a back-out", .run = back_out_anothers_unit};
    struct mqx_region *region = &fixture.manager->store.region;
    region->header->max_unit_age = has_owner(scenario) ? 1 : 0;
    if (has_owner(scenario)) {
        if (mqe_unit_new(fixture.manager, &forgotten) != 0) {
            fixture_die("a unit of the supervisor", MQRC_UNEXPECTED_ERROR);
        }
        fill_unit(fixture.manager, forgotten);
        mqx_store_release(&mqx_context(region, forgotten->context)->started_us, UINT64_C(1));
    }
    if (scenario->run == continue_a_back_out && !run_child(&first, HALF_WAY)) {
        fixture_die("a death half way through a back-out", MQRC_UNEXPECTED_ERROR);
    }
}

/* Ends it; before a repair it may be there yet, and after it, it has been backed out. */
static void end_forgotten(const struct scenario *scenario, bool repaired)
{
    if (has_owner(scenario) && forgotten != NULL) {
        const int reason = repaired ? mqe_commit(forgotten) : mqe_backout(forgotten);
        if (reason != (repaired ? MQRC_BACKED_OUT : 0)) {
            fixture_die(repaired ? "commit of what was backed out" : "backout", reason);
        }
        mqe_unit_free(forgotten);
        forgotten = NULL;
    }
}

/* ---- checks ---- */

static void repair(void)
{
    const int reason = mqe_maintain(fixture.manager);
    if (reason != 0) {
        fixture_die("repair", reason);
    }
}

struct outcomes { /* legal pictures */
    struct picture before, after;
    struct picture without; /* as before, but for a unit without an acknowledgement */
};

/* The death of everybody, with a unit that nobody has requested. What is ended is durable, what is
 * prepared need not be. */
static bool recovers_unasked(const struct scenario *scenario, const struct outcomes *legal,
                             bool returned)
{
    const struct picture *const all[] = {&legal->after, &legal->before, &legal->without};
    const bool ends = scenario->prepared != 0;
    return fixture_recovers_to(&fixture, all, returned && ends ? 1 : MQX_ARRAY_COUNT(all));
}

static void verify(const struct scenario *scenario, uint64_t at, uint64_t nested,
                   const struct outcomes *legal, bool returned, bool deep)
{
    static struct picture now;
    const struct picture *const seen[] = {&now};
    const bool whole =
        !deep || !scenario->lazily || recovers_unasked(scenario, legal, returned);
    fixture_look(fixture.manager, &fixture, &now);
    const bool is_after = pictures_equal(&now, &legal->after);
    const bool is_before = pictures_equal(&now, &legal->before);
    bool good = whole && (scenario->in_between || is_after ||
                          (is_before && !returned && !has_owner(scenario)));
    const int reason = mqe_check(fixture.manager);
    if (reason != 0) {
        fprintf(stderr, "check: %s %s\n", mqe_reason_name(reason), mqe_error_text());
        good = false;
    }
    good = fixture_audit(&fixture) && good;
    if (good && deep) {
        good = fixture_recovers_to(&fixture, seen, 1);
    }
    if (!good) {
        fprintf(stderr, "FAILED: %s killed before store %llu%s%llu (returned %d), seed %llu\n",
                scenario->name, (unsigned long long)at, nested != 0 ? ", repair before store " : "",
                (unsigned long long)nested, returned, (unsigned long long)seed);
        picture_print("before", &legal->before);
        picture_print("after", &legal->after);
        picture_print("found", &now);
        exit(1);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void reset(const struct scenario *scenario)
{
    fixture_set_linear(&fixture, scenario->retires == TO_ARCHIVE);
    if (scenario->retires != NOTHING) {
        fixture_fill_segment(&fixture); /* what the reset puts then lies behind it */
    }
    fixture_reset(&fixture, scenario->many, scenario->prepared,
                  scenario->lazily ? (uint32_t)MQE_PREPARE_LAZY : 0);
    if (scenario->retires == MOVED) {
        fixture_fill_segment(&fixture); /* what the reset put lies in a full segment */
    }
    begin_forgotten(scenario);
}

static void one_point(const struct scenario *scenario, uint64_t at, uint64_t nested,
                      const struct outcomes *legal, bool deep)
{
    reset(scenario);
    (void)run_child(scenario, at);
    const bool returned = shared->returned != 0;
    if (nested != 0) {
        (void)run_child(NULL, nested);
    }
    if (at % 2 != 0) {
        end_forgotten(scenario, false);
    }
    repair();
    end_forgotten(scenario, true);
    verify(scenario, at, nested, legal, returned, deep);
}

/* Points a repair after a kill there has. */
static uint64_t repair_points(const struct scenario *scenario, uint64_t at)
{
    reset(scenario);
    (void)run_child(scenario, at);
    (void)run_child(NULL, 0);
    const uint64_t points = shared->points;
    repair();
    end_forgotten(scenario, true);
    return points;
}

struct plan { /* of one scenario */
    uint64_t points, tried, pairs;
};

/* Runs it to the end: how many points it has, and the legal pictures. */
static uint64_t measure(const struct scenario *scenario, struct outcomes *legal)
{
    if (scenario->lazily) {
        fixture_reset(&fixture, scenario->many, 0, 0);
        fixture_look(fixture.manager, &fixture, &legal->without);
    }
    reset(scenario);
    fixture_look(fixture.manager, &fixture, &legal->before);
    (void)run_child(scenario, 0);
    const uint64_t points = shared->points;
    repair();
    end_forgotten(scenario, true);
    fixture_look(fixture.manager, &fixture, &legal->after);
    /* a retirement comes last, behind a checkpoint whose stores are more at one time than another
     * */
    return scenario->retires == NOTHING ? points : points + points / 2;
}

/* `total` points over the scenarios: each its even share; what a short one cannot use goes to the
 * long ones. */
static void share_out(struct plan *plans, size_t count, uint64_t total)
{
    uint64_t left = total;
    for (size_t round = 0; round < count && left > 0; round++) {
        size_t open = 0;
        for (size_t i = 0; i < count; i++) {
            open += plans[i].tried < plans[i].points;
        }
        const uint64_t share = open == 0 ? 0 : (left + open - 1) / open;
        for (size_t i = 0; i < count && left > 0; i++) {
            uint64_t more = plans[i].points - plans[i].tried;
            more = more < share ? more : share;
            more = more < left ? more : left;
            plans[i].tried += more;
            left -= more;
        }
    }
}

static void run_scenario(const struct scenario *scenario, const struct plan *plan, uint64_t *random)
{
    static struct outcomes legal;
    const uint64_t points = measure(scenario, &legal), tried = plan->tried;
    for (uint64_t i = 0; i < tried && points > 0; i++) {
        /* all of them, or one at random in each of as many stretches */
        const uint64_t first = i * points / tried, next = (i + 1) * points / tried;
        const uint64_t stretch = next > first ? next - first : 1;
        one_point(scenario, first + next_random(random) % stretch + 1, 0, &legal,
                  i % (scenario->lazily ? 8 : 64) == 0);
    }
    for (uint64_t i = 0; i < plan->pairs && points > 0; i++) {
        const uint64_t at = next_random(random) % points + 1;
        const uint64_t inner = repair_points(scenario, at);
        if (inner != 0) {
            one_point(scenario, at, next_random(random) % inner + 1, &legal, i % 64 == 0);
        }
    }
    printf("%-24s %6llu points, %6llu tried, %5llu nested\n", scenario->name,
           (unsigned long long)points, (unsigned long long)tried, (unsigned long long)plan->pairs);
}

static void run_all(const char *only, uint64_t count, uint64_t pairs)
{
    static struct outcomes legal;
    struct plan plans[SCENARIOS_MAX] = {{0}};
    const size_t count_all = scenario_count;
    uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1, tried = 0, points = 0, nested = 0;
    for (size_t i = 0; i < count_all; i++) {
        if (only == NULL || strcmp(only, scenarios[i].name) == 0) {
            plans[i].points = measure(&scenarios[i], &legal);
            plans[i].pairs = only != NULL ? pairs : (pairs + count_all - 1) / count_all;
        }
    }
    share_out(plans, count_all, count);
    for (size_t i = 0; i < count_all; i++) {
        if (plans[i].points != 0) {
            run_scenario(&scenarios[i], &plans[i], &random);
        }
        tried += plans[i].tried;
        points += plans[i].points;
        nested += plans[i].pairs;
    }
    printf("T2: %llu store points tried of %llu, all distinct, %llu nested, 0 failed, seed %llu\n",
           (unsigned long long)tried, (unsigned long long)points, (unsigned long long)nested,
           (unsigned long long)seed);
}

int main(int argc, char **argv)
{
    uint64_t count = 10000, pairs = 2000;
    const char *only = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--count") == 0) {
            count = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--pairs") == 0) {
            pairs = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0) {
            seed = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--scenario") == 0) {
            only = argv[i + 1];
        }
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        fixture_die("mmap", errno);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    fixture_make_linear(&fixture);
    run_all(only, count, pairs);
    fixture_remove(&fixture);
    return 0;
}
