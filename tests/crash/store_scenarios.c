/*
 * store_scenarios.c - what the store points (T2) are tried in: one function a scenario, and the
 * table of them. See store_points.c for what is done with each.
 */
#include "store_scenarios.h"
#include "dynamic.h"
#include "base/clock.h"
#include "region/arena.h"
#include "region/extents.h"
#include "unit/long_units.h"

#include <stdio.h>
#include <string.h>

void expect(const char *what, int reason)
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

/* ---- delayed messages ---- */

enum { LATER_US = 3600u * 1000000u, SOON_US = 20000 };

static void put_delayed(mqe_manager *m)
{
    expect("put", fixture_put_later(m, NULL, &fixture, 0, 990, false, 100, LATER_US));
}

static void put_delayed_persistent(mqe_manager *m)
{
    expect("put", fixture_put_later(m, NULL, &fixture, 0, 991, true, 500, LATER_US));
}

/* Several, so that both trees have inner nodes when one is cancelled and others become due; with an
 * id index, whose links lie where the due times were. The cancel makes the tree by MsgId, which the
 * put after it enters at once. */
static void delay_and_release(mqe_manager *m)
{
    uint64_t id;
    uint8_t msg_id[24] = {0};
    struct mqe_queue_status status;
    expect("get", fixture_get(m, NULL, &fixture, 1, 0, 0, 230, &id));
    for (uint64_t i = 0; i < 6; i++) {
        expect("put", fixture_put_later(m, NULL, &fixture, 1, 1000 + i, i % 2 != 0, 100,
                                        i % 3 == 0 ? LATER_US : SOON_US));
    }
    id = 1003;
    memcpy(msg_id, &id, sizeof id);
    expect("cancel", mqe_cancel_delayed(m, fixture.slot[1], fixture.generation[1], msg_id));
    expect("put", fixture_put_later(m, NULL, &fixture, 1, 1006, false, 100, SOON_US));
    mqx_clock_sleep_us(2 * SOON_US);
    expect("status", mqe_queue_status(m, fixture.slot[1], fixture.generation[1], &status));
    if (status.delayed != 1) {
        expect("one delayed message", MQRC_UNEXPECTED_ERROR);
    }
}

static void back_out_later(mqe_manager *m)
{
    uint64_t id;
    mqe_unit *unit = NULL;
    expect("unit", mqe_unit_new(m, &unit));
    expect("get", fixture_get(m, unit, &fixture, 2, 0, 0, 0, &id));
    expect("get", fixture_get(m, unit, &fixture, 1, 0, 0, 0, &id));
    expect("put", fixture_put(m, unit, &fixture, 0, 992, true, 100));
    expect("backout", mqe_backout_later(unit, LATER_US));
    mqe_unit_free(unit);
}

static void commit_delayed(mqe_manager *m)
{
    mqe_unit *unit = NULL;
    expect("unit", mqe_unit_new(m, &unit));
    expect("put", fixture_put_later(m, unit, &fixture, 0, 993, true, 100, LATER_US));
    expect("put", fixture_put_later(m, unit, &fixture, 0, 994, true, 100, 1));
    expect("commit", mqe_commit(unit));
    mqe_unit_free(unit);
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

void fill_unit(mqe_manager *m, mqe_unit *unit)
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

static void commit_units_together(mqe_manager *m)
{
    mqe_unit *units[3] = {NULL, NULL, NULL};
    uint32_t count = 0;
    uint64_t id;
    for (uint32_t i = 0; i < 3; i++) {
        expect("unit", mqe_unit_new(m, &units[i]));
        expect("put", fixture_put(m, units[i], &fixture, 0, 920 + i, i != 1, 300));
        expect("get", fixture_get(m, units[i], &fixture, 0, 0, 0, 0, &id));
    }
    expect("commit", mqe_commit_many(units, 3, &count));
    if (count != 3) {
        expect("three units", MQRC_UNEXPECTED_ERROR);
    }
    shared->returned = 1;
    for (uint32_t i = 0; i < 3; i++) {
        mqe_unit_free(units[i]);
    }
}

static void back_out_unit(mqe_manager *m)
{
    mqe_unit *unit = NULL;
    expect("unit", mqe_unit_new(m, &unit));
    fill_unit(m, unit);
    expect("backout", mqe_backout(unit));
    mqe_unit_free(unit);
}

/* A trigger message stays, whoever backs the unit out. */
static void back_out_triggered(mqe_manager *m)
{
    mqe_unit *unit = NULL;
    expect("unit", mqe_unit_new(m, &unit));
    expect("put", fixture_put(m, unit, &fixture, 0, 910, true, 300));
    expect("put", fixture_put_flagged(m, unit, &fixture, 1, 911, MQE_PUT_STAYS));
    expect("put", fixture_put(m, unit, &fixture, 1, 912, false, 200));
    expect("backout", mqe_backout(unit));
    mqe_unit_free(unit);
}

void back_out_anothers_unit(mqe_manager *m)
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
void continue_a_back_out(mqe_manager *m)
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

enum { LISTED_WAITS = 3, AWAITED = 930 };

/* The get of a waiter without a thread: what it must return, MQE_LISTED or nothing. */
static void get_listed(mqe_manager *m, mqe_queue *queue, struct mqe_wait *wait, int wanted)
{
    unsigned char buffer[1024];
    const uint64_t correl = AWAITED;
    struct mqe_get get = {.flags = MQE_GET_LISTED, .match = MQE_MATCH_CORREL_ID, .wait = wait,
                          .buffer = buffer, .capacity = sizeof buffer};
    memcpy(get.correl_id, &correl, sizeof correl);
    const int reason = mqe_get(m, NULL, queue, &get);
    expect("listed get", reason == wanted ? 0 : reason == 0 ? MQRC_UNEXPECTED_ERROR : reason);
}

/* Three waiters of an event loop. The first is picked and ends without its message, which goes to
 * the second; the third ends unpicked. */
static void wait_without_a_thread(mqe_manager *m)
{
    mqe_queue *queue = NULL;
    mqe_channel *channel = NULL;
    struct mqe_wait waits[LISTED_WAITS], *picked[LISTED_WAITS] = {NULL};
    memset(waits, 0, sizeof waits);
    expect("open", mqe_open_direct(m, fixture.slot[2], fixture.generation[2], MQE_INPUT, &queue));
    expect("channel", mqe_channel_new(m, &channel));
    if (shared->failed != 0) {
        return;
    }
    for (int i = 0; i < LISTED_WAITS; i++) {
        waits[i].channel = channel;
        get_listed(m, queue, &waits[i], MQE_LISTED);
    }
    expect("put", fixture_put(m, NULL, &fixture, 2, AWAITED, true, 300));
    if (mqe_channel_picked(channel, 0, picked, LISTED_WAITS) == 1) {
        mqe_wait_end(picked[0]);
    }
    if (mqe_channel_picked(channel, 0, picked, LISTED_WAITS) == 1) {
        get_listed(m, queue, picked[0], 0);
    } else {
        expect("the second waiter, picked behind the first", MQRC_UNEXPECTED_ERROR);
    }
    for (int i = 0; i < LISTED_WAITS; i++) {
        mqe_wait_end(&waits[i]);
    }
    mqe_channel_free(channel);
    (void)mqe_close(queue, MQE_CLOSE_KEEP);
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

/* Depth and service events of a queue, which is filled and emptied; what is owed is taken. */
static void performance_events(mqe_manager *m)
{
    static const struct {
        struct ps_attr head;
        int64_t value;
    } manager_attrs[] = {{{53, 1, 8}, 1}},
      queue_attrs[] = {{{15, 1, 8}, 3}, {{40, 1, 8}, 50}, {{43, 1, 8}, 1}, {{46, 1, 8}, 2}};
    const struct ps_object_name manager_name = object_name(105, 5, "QM"),
                                q_name = object_name(1, 1, "EQ");
    const struct mqe_found own = define_once(m, &manager_name, manager_attrs, sizeof manager_attrs);
    const struct mqe_found queue = define_once(m, &q_name, queue_attrs, sizeof queue_attrs);
    const struct crash_fixture q = {.slot = {queue.slot}, .generation = {queue.generation}};
    struct mqe_queue_statistics found;
    uint32_t slot = 0, generation = 0;
    uint64_t id;
    expect("clear", mqe_clear(m, queue.slot, queue.generation));
    for (uint64_t i = 1; i < 4; i++) {
        expect("put", fixture_put(m, NULL, &q, 0, i, i == 2, 100));
    }
    if (fixture_put(m, NULL, &q, 0, 4, false, 100) != MQRC_Q_FULL) {
        expect("a put to the full queue", MQRC_UNEXPECTED_ERROR);
    }
    for (uint64_t i = 1; i < 4; i++) {
        expect("get", fixture_get(m, NULL, &q, 0, 0, 0, 0, &id));
    }
    if (!mqe_performance_take(m, &slot, &generation, &found)) {
        expect("an event", MQRC_UNEXPECTED_ERROR);
    }
    do {
        expect("statistics", mqe_queue_statistics_reset(m, slot, generation, &found));
    } while (mqe_performance_take(m, &slot, &generation, &found));
    expect("delete", mqe_delete(m, queue.slot, queue.generation, 1));
    expect("delete", mqe_delete(m, own.slot, own.generation, 0));
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

const struct scenario scenarios[] = {
    {"put_nonpersistent", put_nonpersistent, 3, false, 0, false, NOTHING},
    {"put_persistent", put_persistent, 3, false, 0, false, NOTHING},
    {"put_long_nonpersistent", put_long_nonpersistent, 3, false, 0, false, NOTHING},
    {"put_long_persistent", put_long_persistent, 3, false, 0, false, NOTHING},
    {"get_nonpersistent", get_nonpersistent, 3, false, 0, false, NOTHING},
    {"get_persistent", get_persistent, 3, false, 0, false, NOTHING},
    {"get_long_nonpersistent", get_long_nonpersistent, 3, false, 0, false, NOTHING},
    {"get_by_correl", get_by_correl, 80, false, 0, false, NOTHING},
    {"put_batch", put_batch, 3, false, 0, false, NOTHING},
    {"put_delayed", put_delayed, 3, false, 0, false, NOTHING},
    {"put_delayed_persistent", put_delayed_persistent, 3, false, 0, false, NOTHING},
    {"delay_and_release", delay_and_release, 80, true, 0, false, NOTHING},
    {"back_out_later", back_out_later, 3, false, 0, false, NOTHING},
    {"commit_delayed", commit_delayed, 3, false, 0, false, NOTHING},
    {"put_batch_nonpersistent", put_batch_nonpersistent, 3, true, 0, false, NOTHING},
    {"get_batch", get_batch, 3, false, 0, false, NOTHING},
    {"get_batch_nonpersistent", get_batch_nonpersistent, 80, true, 0, false, NOTHING},
    {"commit_batches", commit_batches, 3, false, 0, false, NOTHING},
    {"commit_unit", commit_unit, 3, false, 0, false, NOTHING},
    {"commit_units_together", commit_units_together, 3, true, 0, false, NOTHING},
    {"back_out_unit", back_out_unit, 3, false, 0, false, NOTHING},
    {"back_out_triggered", back_out_triggered, 3, false, 0, false, NOTHING},
    {"back_out_anothers_unit", back_out_anothers_unit, 3, false, 0, false, NOTHING},
    {"continue_a_back_out", continue_a_back_out, 3, false, 0, false, NOTHING},
    {"back_out_anothers_indexed", back_out_anothers_unit, 80, false, 0, false, NOTHING},
    {"commit_unit_indexed", commit_unit, 80, false, 0, false, NOTHING},
    {"browse_long", browse_long, 3, false, 0, false, NOTHING},
    {"wait_in_vain", wait_in_vain, 3, false, 0, false, NOTHING},
    {"wait_without_a_thread", wait_without_a_thread, 3, true, 0, false, NOTHING},
    {"define_and_delete", define_and_delete, 3, false, 0, false, NOTHING},
    {"temporary_queue", temporary_queue, 3, false, 0, false, NOTHING},
    {"temporary_queue_in_use", temporary_queue_in_use, 3, false, 0, false, NOTHING},
    {"permanent_queue", permanent_queue, 3, false, 0, false, NOTHING},
    {"structure", structure, 3, false, 0, false, NOTHING},
    {"performance_events", performance_events, 3, false, 0, false, NOTHING},
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

const size_t scenario_count = sizeof scenarios / sizeof scenarios[0];
