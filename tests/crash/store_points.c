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
#include "dynamic.h"
#include "region/arena.h"
#include "region/extents.h"
#include "unit/long_units.h"
#include "store_hook.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared { /* between supervisor and children */
    uint64_t points;
    uint32_t returned;  /* the scenario's call returned */
    uint32_t failed;    /* a reason code that should not have come */
    char text[200];
};
static struct shared *shared;
static struct crash_fixture fixture;
static uint64_t seed = 1;

static void expect(const char *what, int reason)
{
    if (reason != 0 && shared->failed == 0) {
        shared->failed = (uint32_t)reason;
        snprintf(shared->text, sizeof shared->text, "%s: %s %s", what, mqe_reason_name(reason),
                 mqe_error_text());
    }
}

/* ---- scenarios ---- */

static void put_nonpersistent(mqe_manager *m)
{
    expect("put", fixture_put(m, NULL, &fixture, 0, 900, false, 100));
}

static void put_persistent(mqe_manager *m)
{
    expect("put", fixture_put(m, NULL, &fixture, 0, 901, true, 500));
}

static void put_long_nonpersistent(mqe_manager *m)
{
    expect("put", fixture_put(m, NULL, &fixture, 1, 902, false, 150000));
}

static void put_long_persistent(mqe_manager *m)
{
    expect("put", fixture_put(m, NULL, &fixture, 1, 903, true, 150000));
}

static void get_nonpersistent(mqe_manager *m)
{
    uint64_t id;
    expect("get", fixture_get(m, NULL, &fixture, 1, 0, 0, 0, &id));
}

static void get_persistent(mqe_manager *m)
{
    uint64_t id;
    expect("get", fixture_get(m, NULL, &fixture, 2, 0, 0, 0, &id));
}

static void get_long_nonpersistent(mqe_manager *m)
{
    uint64_t id;
    expect("get", fixture_get(m, NULL, &fixture, 0, 0, 0, 110, &id));
}

static void get_by_correl(mqe_manager *m)
{
    uint64_t id;
    expect("get", fixture_get(m, NULL, &fixture, 1, 0, 0, 230, &id));
}

/* Persistent ones among them: whole or not there. */
static void put_batch(mqe_manager *m)
{
    expect("put batch", fixture_put_batch(m, NULL, &fixture, 0, 920, 9, true));
}

/* Message by message. */
static void put_batch_nonpersistent(mqe_manager *m)
{
    expect("put batch", fixture_put_batch(m, NULL, &fixture, 0, 940, 9, false));
}

/* The first is persistent, so that the whole batch is one unit. */
static void get_batch(mqe_manager *m)
{
    expect("get batch", fixture_get_batch(m, NULL, &fixture, 0, 5));
}

static void get_batch_nonpersistent(mqe_manager *m)
{
    expect("get batch", fixture_get_batch(m, NULL, &fixture, 1, 80));
}

/* A batch put and a batch got in one unit. */
static void commit_batches(mqe_manager *m)
{
    mqe_unit *unit = NULL;
    expect("unit", mqe_unit_new(m, &unit));
    expect("put batch", fixture_put_batch(m, unit, &fixture, 2, 960, 9, true));
    expect("get batch", fixture_get_batch(m, unit, &fixture, 0, 4));
    expect("commit", mqe_commit(unit));
    shared->returned = 1;
    mqe_unit_free(unit);
}

static void fill_unit(mqe_manager *m, mqe_unit *unit)
{
    uint64_t id;
    expect("put", fixture_put(m, unit, &fixture, 0, 910, true, 300));
    expect("put", fixture_put(m, unit, &fixture, 1, 911, false, 200));
    expect("put", fixture_put(m, unit, &fixture, 2, 912, true, 9000));
    expect("get", fixture_get(m, unit, &fixture, 0, 0, 0, 101, &id));
    expect("get", fixture_get(m, unit, &fixture, 1, 0, 0, 0, &id));
    expect("put", fixture_put(m, unit, &fixture, 1, 913, false, 80000));
}

static void commit_unit(mqe_manager *m)
{
    mqe_unit *unit = NULL;
    expect("unit", mqe_unit_new(m, &unit));
    fill_unit(m, unit);
    expect("commit", mqe_commit(unit));
    shared->returned = 1;
    mqe_unit_free(unit);
}

static void back_out_unit(mqe_manager *m)
{
    mqe_unit *unit = NULL;
    expect("unit", mqe_unit_new(m, &unit));
    fill_unit(m, unit);
    expect("backout", mqe_backout(unit));
    mqe_unit_free(unit);
}

static mqe_unit *forgotten; /* of the supervisor, too old */

static void back_out_anothers_unit(mqe_manager *m)
{
    struct mqx_region *region = &m->store.region;
    struct mqx_long_units units = {.count = 0};
    expect("maintenance lock", mqx_lock_take(region, &region->header->maintenance_lock));
    expect("back-out", mqx_long_units_back_out(&m->store, false, &units));
    mqx_lock_drop(region, &region->header->maintenance_lock);
    if (units.count != 1) {
        expect("one unit that is backed out", MQRC_UNEXPECTED_ERROR);
    }
}

/* The process that backs the unit out has been killed half way (begin_forgotten()). */
static void continue_a_back_out(mqe_manager *m)
{
    expect("maintenance", mqe_maintain(m));
}

static void browse_long(mqe_manager *m)
{
    static unsigned char buffer[1 << 20];
    mqe_queue *queue = NULL;
    expect("open", mqe_open_direct(m, fixture.slot[0], fixture.generation[0], MQE_BROWSE, &queue));
    for (int i = 0; i < 5; i++) {
        struct mqe_get get = {.flags = MQE_GET_BROWSE_NEXT | (i % 2 != 0 ? MQE_GET_LOCK : 0u),
                              .buffer = buffer, .capacity = sizeof buffer};
        expect("browse", mqe_get(m, NULL, queue, &get));
    }
    (void)mqe_close(queue, MQE_CLOSE_KEEP);
}

static void wait_in_vain(mqe_manager *m)
{
    uint64_t id;
    (void)fixture_get(m, NULL, &fixture, 2, 0, 2000, 777, &id);
}

static void define_and_delete(mqe_manager *m)
{
    struct ps_object_name name = {.name_space = 1, .type = 1};
    struct mqe_found found = {0};
    memset(name.name, ' ', sizeof name.name);
    memcpy(name.name, "NEW", 3);
    if (mqe_find(m, 1, name.name, 0, &found) != 0) {
        expect("define", mqe_define(m, &name, NULL, 0, &found.slot, &found.generation));
    }
    expect("alter", mqe_alter(m, found.slot, found.generation, &name, NULL, 0, 0, 0));
    expect("delete", mqe_delete(m, found.slot, found.generation, 1));
}

static struct ps_object_name object_name(uint32_t name_space, uint32_t type, const char *text)
{
    struct ps_object_name name = {.name_space = name_space, .type = type};
    memset(name.name, ' ', sizeof name.name);
    memcpy(name.name, text, strlen(text));
    return name;
}

/* What an earlier experiment has left is used. */
static struct mqe_found define_once(mqe_manager *m, const struct ps_object_name *name,
                                    const void *attrs, uint32_t length)
{
    struct mqe_found found = {0};
    if (mqe_find(m, name->name_space, name->name, 0, &found) != 0) {
        expect("define", mqe_define(m, name, attrs, length, &found.slot, &found.generation));
    }
    return found;
}

/* A structure with a queue: messages of both kinds, its failure, another level; the queue is
 * altered in what resolves names. */
static void structure(mqe_manager *m)
{
    static const struct {
        struct ps_attr level_head;
        int64_t level;
        struct ps_attr recover_head;
        int64_t recover;
    } structure_attrs = {{70, 1, 8}, 5, {71, 1, 8}, 1};
    static const struct {
        struct ps_attr head;
        char text[8];
    } queue_attrs = {{2039, 2, 1}, "S"};
    const struct ps_object_name s_name = object_name(110, 10, "S"),
                                q_name = object_name(1, 1, "SQ");
    const struct mqe_found s = define_once(m, &s_name, &structure_attrs, sizeof structure_attrs);
    const struct mqe_found queue = define_once(m, &q_name, &queue_attrs, sizeof queue_attrs);
    const struct crash_fixture q = {.slot = {queue.slot}, .generation = {queue.generation}};
    uint64_t lost = 0;
    expect("clear", mqe_clear(m, queue.slot, queue.generation));
    for (uint64_t i = 1; i < 6; i++) {
        expect("put", fixture_put(m, NULL, &q, 0, i, i == 3, i * 900));
    }
    expect("alter", mqe_alter(m, queue.slot, queue.generation, &q_name, &queue_attrs,
                              sizeof queue_attrs, 0, MQE_ALTER_RESOLUTION));
    expect("fail", mqe_fail_structure(m, s.slot, s.generation, &lost));
    expect("alter", mqe_alter(m, s.slot, s.generation, &s_name, &structure_attrs,
                              sizeof structure_attrs, 0, 0));
    expect("clear", mqe_clear(m, queue.slot, queue.generation));
    expect("delete", mqe_delete(m, queue.slot, queue.generation, 1));
    expect("delete", mqe_delete(m, s.slot, s.generation, 0));
}

static void checkpoint(mqe_manager *m)
{
    expect("checkpoint", mqe_checkpoint(m));
}

static void compact(mqe_manager *m)
{
    const uint64_t before = m->store.region.journal->moved_messages;
    expect("compact", mqe_compact(m));
    if (m->store.region.journal->moved_messages == before) {
        expect("a message that is moved", MQRC_UNEXPECTED_ERROR);
    }
}

/* What the stripes keep goes back to its extents, free extents to the file system; then some get
 * memory again, for blocks of another class. */
static void return_memory(mqe_manager *m)
{
    struct mqx_region *region = &m->store.region;
    uint64_t id = 0;
    expect("put", fixture_put(m, NULL, &fixture, 0, 1, false, 300000));
    expect("get", fixture_get(m, NULL, &fixture, 2, 0, 0, 0, &id));
    expect("return of lists", mqx_arena_return_all(region, MQX_STRIPE_MAX));
    for (int no = 0; no < MQX_POOL_COUNT; no++) {
        uint32_t done = 0;
        expect("punch", mqx_extents_punch(region, (enum mqx_pool_no)no, 3, &done));
    }
    expect("grow", mqx_extents_grow(region, MQX_POOL_CELLS, 1));
    expect("put", fixture_put(m, NULL, &fixture, 1, 2, true, 3000));
    expect("return of lists", mqx_arena_return_all(region, MQX_STRIPE_MAX));
}

/* The first checkpoint still keeps what the one before it needs; the second begins later. */
static void retire(mqe_manager *m)
{
    expect("checkpoint", mqe_checkpoint(m));
    define_and_delete(m); /* so that there is something in between */
    expect("checkpoint", mqe_checkpoint(m));
    if (m->store.plan.linear != 0 && fixture_archived(&fixture) == 0) {
        expect("a segment in the archive", MQRC_UNEXPECTED_ERROR);
    }
}

static void clear_queue(mqe_manager *m)
{
    expect("clear", mqe_clear(m, fixture.slot[1], fixture.generation[1]));
}

/* A whole life: used, deleted by its creator under a unit and another handle, which end later. */
static void temporary_queue(mqe_manager *m)
{
    mqe_queue *creator = NULL, *other = NULL;
    mqe_unit *unit = NULL;
    struct crash_fixture q;
    uint64_t id;
    expect("open_new", dynamic_make(m, "T", DYNAMIC_TEMPORARY, &creator, &q));
    expect("open", dynamic_open(m, "T", 2 | MQE_BROWSE, &other, &q));
    expect("unit", mqe_unit_new(m, &unit));
    for (uint64_t i = 1; i < 5; i++) {
        expect("put", fixture_put(m, i % 2 != 0 ? unit : NULL, &q, 0, i, false, i * 3000));
    }
    expect("get", fixture_get(m, unit, &q, 0, 0, 0, 0, &id));
    expect("close", mqe_close(creator, MQE_CLOSE_PURGE));
    expect("commit", mqe_commit(unit));
    expect("close", mqe_close(other, MQE_CLOSE_KEEP));
    mqe_unit_free(unit);
}

/* The creator goes first; with an index, a locked message, and a message got by a unit that is
 * backed out. */
static void temporary_queue_in_use(mqe_manager *m)
{
    static unsigned char buffer[64];
    struct mqe_get browse = {.flags = MQE_GET_BROWSE_NEXT | MQE_GET_LOCK, .buffer = buffer,
                             .capacity = sizeof buffer};
    mqe_queue *creator = NULL, *other = NULL;
    mqe_unit *unit = NULL;
    struct crash_fixture q;
    uint64_t id;
    expect("open_new", dynamic_make(m, "T", DYNAMIC_TEMPORARY, &creator, &q));
    expect("open", dynamic_open(m, "T", 2 | MQE_BROWSE, &other, &q));
    expect("unit", mqe_unit_new(m, &unit));
    for (uint64_t i = 1; i < 70; i++) {
        expect("put", fixture_put(m, NULL, &q, 0, i, false, 40));
    }
    expect("get", fixture_get(m, unit, &q, 0, 0, 0, 66, &id));
    expect("browse", mqe_get(m, NULL, other, &browse));
    expect("close", mqe_close(creator, MQE_CLOSE_KEEP));
    expect("close", mqe_close(other, MQE_CLOSE_DELETE));
    expect("backout", mqe_backout(unit));
    mqe_unit_free(unit);
}

/* One that an earlier experiment has left is used up first. */
static void permanent_queue(mqe_manager *m)
{
    mqe_queue *first = NULL, *other = NULL;
    struct crash_fixture q;
    if (dynamic_make(m, "P", DYNAMIC_PERMANENT, &first, &q) != 0) {
        expect("open", dynamic_open(m, "P", MQE_OUTPUT, &first, &q));
    }
    expect("open", dynamic_open(m, "P", 2 | MQE_BROWSE, &other, &q));
    expect("put", fixture_put(m, NULL, &q, 0, 1, true, 500));
    expect("put", fixture_put(m, NULL, &q, 0, 2, false, 20000));
    if (mqe_close(other, MQE_CLOSE_DELETE) != MQRC_Q_NOT_EMPTY) {
        expect("delete", MQRC_UNEXPECTED_ERROR);
    }
    expect("purge", mqe_close(first, MQE_CLOSE_PURGE));
    expect("close", mqe_close(other, MQE_CLOSE_KEEP));
}

static void prepare(mqe_manager *m)
{
    mqe_unit *unit = NULL;
    struct ps_xid xid;
    fixture_xid(9, FIXTURE_COMMITS, &xid);
    expect("unit", mqe_unit_new(m, &unit));
    fill_unit(m, unit);
    expect("prepare", mqe_prepare(unit, &xid, 0));
    mqe_unit_free(unit);
}

static void prepare_nothing(mqe_manager *m)
{
    mqe_unit *unit = NULL;
    struct ps_xid xid;
    fixture_xid(8, FIXTURE_BACKS_OUT, &xid);
    expect("unit", mqe_unit_new(m, &unit));
    expect("prepare", mqe_prepare(unit, &xid, MQE_PREPARE_EMPTY));
    mqe_unit_free(unit);
}

/* Nothing follows: only who is told of the unit makes it durable. */
static void prepare_lazily(mqe_manager *m)
{
    mqe_unit *unit = NULL;
    struct ps_xid xid;
    fixture_xid(7, FIXTURE_COMMITS, &xid);
    expect("unit", mqe_unit_new(m, &unit));
    fill_unit(m, unit);
    expect("prepare", mqe_prepare(unit, &xid, MQE_PREPARE_LAZY));
    shared->returned = 1;
    mqe_unit_free(unit);
}

/* Units 1 to `count`. */
static void end_units(mqe_manager *m, uint32_t count, bool commit)
{
    struct ps_xid xids[4];
    uint64_t discarded = 0;
    for (uint32_t i = 0; i < count; i++) {
        fixture_xid(i + 1, FIXTURE_COMMITS, &xids[i]);
    }
    expect("ending prepared units", commit ? mqe_commit_prepared(m, xids, count)
                                           : mqe_backout_prepared(m, xids, count, &discarded));
}

static void commit_prepared(mqe_manager *m)
{
    end_units(m, 1, true);
}

static void commit_several_prepared(mqe_manager *m)
{
    end_units(m, 3, true);
}

static void back_out_prepared(mqe_manager *m)
{
    end_units(m, 1, false);
}

static void back_out_several_prepared(mqe_manager *m)
{
    end_units(m, 3, false);
}

static void browse_prepared(mqe_manager *m)
{
    static struct picture seen;
    fixture_look(m, &fixture, &seen);
    if (seen.units != 2) {
        expect("two prepared units", MQRC_UNEXPECTED_ERROR);
    }
}

static const struct scenario {
    const char *name;
    void (*run)(mqe_manager *manager);
    uint32_t many;      /* messages on queue B */
    bool in_between;    /* other pictures than before and after are legal (several units) */
    uint32_t prepared;  /* prepared units, 1, 2, ... */
    bool lazily;        /* those, or the one it prepares, without waiting */
    enum { NOTHING, TO_SPARES, TO_ARCHIVE, MOVED } retires; /* a segment that is not needed; MOVED:
                                                             * once its messages are moved */
} scenarios[] = {
    {"put_nonpersistent", put_nonpersistent, 3, false, 0, false, NOTHING},
    {"put_persistent", put_persistent, 3, false, 0, false, NOTHING},
    {"put_long_nonpersistent", put_long_nonpersistent, 3, false, 0, false, NOTHING},
    {"put_long_persistent", put_long_persistent, 3, false, 0, false, NOTHING},
    {"get_nonpersistent", get_nonpersistent, 3, false, 0, false, NOTHING},
    {"get_persistent", get_persistent, 3, false, 0, false, NOTHING},
    {"get_long_nonpersistent", get_long_nonpersistent, 3, false, 0, false, NOTHING},
    {"get_by_correl", get_by_correl, 80, false, 0, false, NOTHING},
    {"put_batch", put_batch, 3, false, 0, false, NOTHING},
    {"put_batch_nonpersistent", put_batch_nonpersistent, 3, true, 0, false, NOTHING},
    {"get_batch", get_batch, 3, false, 0, false, NOTHING},
    {"get_batch_nonpersistent", get_batch_nonpersistent, 80, true, 0, false, NOTHING},
    {"commit_batches", commit_batches, 3, false, 0, false, NOTHING},
    {"commit_unit", commit_unit, 3, false, 0, false, NOTHING},
    {"back_out_unit", back_out_unit, 3, false, 0, false, NOTHING},
    {"back_out_anothers_unit", back_out_anothers_unit, 3, false, 0, false, NOTHING},
    {"continue_a_back_out", continue_a_back_out, 3, false, 0, false, NOTHING},
    {"back_out_anothers_indexed", back_out_anothers_unit, 80, false, 0, false, NOTHING},
    {"commit_unit_indexed", commit_unit, 80, false, 0, false, NOTHING},
    {"browse_long", browse_long, 3, false, 0, false, NOTHING},
    {"wait_in_vain", wait_in_vain, 3, false, 0, false, NOTHING},
    {"define_and_delete", define_and_delete, 3, false, 0, false, NOTHING},
    {"temporary_queue", temporary_queue, 3, false, 0, false, NOTHING},
    {"temporary_queue_in_use", temporary_queue_in_use, 3, false, 0, false, NOTHING},
    {"permanent_queue", permanent_queue, 3, false, 0, false, NOTHING},
    {"structure", structure, 3, false, 0, false, NOTHING},
    {"checkpoint", checkpoint, 3, false, 0, false, NOTHING},
    {"return_memory", return_memory, 80, true, 0, false, NOTHING},
    {"clear_queue", clear_queue, 80, true, 0, false, NOTHING},
    {"prepare", prepare, 3, false, 0, false, NOTHING},
    {"prepare_nothing", prepare_nothing, 3, false, 1, false, NOTHING},
    {"prepare_lazily", prepare_lazily, 3, false, 0, true, NOTHING},
    {"commit_prepared", commit_prepared, 3, false, 1, false, NOTHING},
    {"commit_several_prepared", commit_several_prepared, 80, false, 3, false, NOTHING},
    {"commit_prepared_lazily", commit_prepared, 3, false, 1, true, NOTHING},
    {"back_out_prepared", back_out_prepared, 3, false, 1, false, NOTHING},
    {"back_out_several_prepared", back_out_several_prepared, 80, false, 3, false, NOTHING},
    {"browse_prepared", browse_prepared, 3, false, 2, false, NOTHING},
    {"checkpoint_with_prepared", checkpoint, 3, false, 3, false, NOTHING},
    {"retire_to_spares", retire, 3, false, 0, false, TO_SPARES},
    {"retire_to_archive", retire, 3, false, 0, false, TO_ARCHIVE},
    {"compact", compact, 3, false, 0, false, MOVED},
    {"compact_many", compact, 80, false, 0, false, MOVED},
    {"attach_and_leave", NULL, 3, false, 1, false, NOTHING},
};

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

enum { SCENARIOS = sizeof scenarios / sizeof scenarios[0] };

static void run_all(const char *only, uint64_t count, uint64_t pairs)
{
    static struct outcomes legal;
    struct plan plans[SCENARIOS] = {{0}};
    uint64_t random = seed * 0x9e3779b97f4a7c15ull + 1, tried = 0, points = 0, nested = 0;
    for (size_t i = 0; i < SCENARIOS; i++) {
        if (only == NULL || strcmp(only, scenarios[i].name) == 0) {
            plans[i].points = measure(&scenarios[i], &legal);
            plans[i].pairs = only != NULL ? pairs : (pairs + SCENARIOS - 1) / SCENARIOS;
        }
    }
    share_out(plans, SCENARIOS, count);
    for (size_t i = 0; i < SCENARIOS; i++) {
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
