/*
 * test_catalog.c - proves catalog.h: definitions survive every end, take effect at once or not at
 * all, and what a dead process had pending is finished or undone.
 */
#include "fixtures/catalog_fixture.h"

#include "process/maintenance.h"
#include "process/reaper.h"

#include <pthread.h>

/* ---- define ---- */

static void all_values(struct fixture_attrs *attrs, int shift)
{
    static const int64_t values[][3] = {{5, 1, 0}, {6, 7, 2}, {9, 1, 0}, {10, 1, 0},
                                        {13, 1000, 104857600}, {15, 12, 999999999}, {16, 1, 0},
                                        {78, 10, 0}, {2013, 77, 78}};
    attrs->length = 0;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(values); i++) {
        fixture_attr(attrs, (int32_t)values[i][0], values[i][1 + shift]);
    }
}

static void expect_values(struct fixture_queue queue, int shift)
{
    const struct mqx_object *object = object_of(queue);
    CHECK_INT(object->def_persistence, shift == 0 ? 1 : 0);
    CHECK_INT(object->def_priority, shift == 0 ? 7 : 2);
    CHECK_INT(object->get_inhibited, shift == 0 ? 1 : 0);
    CHECK_INT(object->put_inhibited, shift == 0 ? 1 : 0);
    CHECK_INT(object->max_length, shift == 0 ? 1000 : 104857600);
    CHECK_INT(object->max_depth, shift == 0 ? 12 : 999999999);
    CHECK_INT(object->fifo, shift == 0 ? 1 : 0);
    CHECK_INT(object->npm_class, shift == 0 ? 10 : 0);
    CHECK_INT(object->np_life, shift == 0 ? 1 : 0);
}

TEST(every_value_takes_effect_and_survives_a_kill_and_an_orderly_end)
{
    struct fixture_queue q;
    struct fixture_attrs attrs;
    start();
    all_values(&attrs, 0);
    CHECK_INT(fixture_define(&process, "Q", &attrs, &q), 0);
    for (int round = 0; round < 4; round++) {
        expect_values(q, 0);
        expect_list(q, "Q", &attrs); /* selectors that C does not know included */
        if (round % 2 == 0) {
            restart_killed();
        } else {
            restart_in_order();
        }
        CHECK_INT(fixture_find(&process, "Q", &q), 0);
    }
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_name_can_be_defined_once)
{
    struct fixture_queue q, other;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    uint64_t used = process.store->region.header->area[MQX_AREA_OBJECTS].used;
    for (int i = 0; i < 10; i++) {
        CHECK_INT(fixture_define(&process, "Q", NULL, &other), MQRC_OBJECT_ALREADY_EXISTS);
    }
    CHECK(process.store->region.header->area[MQX_AREA_OBJECTS].used <= used + 1);
    CHECK_INT(count_objects(), 1);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(definitions_with_bad_values_are_refused_before_anything_is_written)
{
    static const struct {
        int32_t selector;
        int64_t value;
        int reason;
    } bad[] = {
        {5, 2, MQRC_PERSISTENCE_ERROR},         {5, -1, MQRC_PERSISTENCE_ERROR},
        {6, 10, MQRC_PRIORITY_ERROR},           {6, -1, MQRC_PRIORITY_ERROR},
        {9, 2, MQRC_INHIBIT_VALUE_ERROR},       {10, 7, MQRC_INHIBIT_VALUE_ERROR},
        {13, 104857601, MQRC_MAX_MSG_LENGTH_ERROR}, {13, -5, MQRC_MAX_MSG_LENGTH_ERROR},
        {15, 1000000000, MQRC_SELECTOR_NOT_FOR_TYPE},
        {16, 2, MQRC_SELECTOR_NOT_FOR_TYPE},    {78, 5, MQRC_SELECTOR_NOT_FOR_TYPE},
        {78, 1, MQRC_SELECTOR_NOT_FOR_TYPE},
    };
    struct fixture_queue q;
    start();
    const uint64_t tail = process.store->region.journal->tail;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(bad); i++) {
        struct fixture_attrs attrs = {.length = 0};
        fixture_attr(&attrs, bad[i].selector, bad[i].value);
        CHECK_INT(fixture_define(&process, "Q", &attrs, &q), bad[i].reason);
    }
    struct fixture_attrs attrs = {.length = 0};
    fixture_attr(&attrs, 6, 1);
    fixture_attr(&attrs, 6, 1);
    CHECK_INT(fixture_define(&process, "Q", &attrs, &q), MQRC_SELECTOR_ERROR); /* twice */
    for (uint32_t cut = 1; cut < 32; cut++) {
        attrs.length = cut;
        if (cut != 16) {
            CHECK_INT(fixture_define(&process, "Q", &attrs, &q), MQRC_SELECTOR_ERROR);
        }
    }
    CHECK_INT(fixture_define(&process, " Q", NULL, &q), MQRC_OBJECT_NAME_ERROR);
    CHECK_INT(fixture_define(&process, "", NULL, &q), MQRC_OBJECT_NAME_ERROR);
    CHECK_INT(process.store->region.journal->tail, tail);
    CHECK_INT(count_objects(), 0);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

/* ---- alter ---- */

TEST(alter_replaces_every_value_at_once_and_survives)
{
    struct fixture_queue q;
    struct fixture_attrs before, after;
    start();
    all_values(&before, 0);
    all_values(&after, 1);
    CHECK_INT(fixture_define(&process, "Q", &before, &q), 0);
    CHECK_INT(alter(q, "Q", &after), 0);
    expect_values(q, 1);
    expect_list(q, "Q", &after);
    struct fixture_queue same;
    CHECK_INT(fixture_find(&process, "Q", &same), 0);
    CHECK_INT(same.generation, q.generation);
    restart_killed();
    CHECK_INT(fixture_find(&process, "Q", &q), 0);
    expect_values(q, 1);
    expect_list(q, "Q", &after);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(alter_keeps_name_type_and_messages_and_refuses_others)
{
    struct fixture_queue q, stale;
    struct fixture_attrs attrs = {.length = 0};
    char text[64];
    uint32_t count;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    CHECK_INT(fixture_put(&process, NULL, q, true, "stays", -1), 0);
    fixture_attr(&attrs, 15, 1);
    CHECK_INT(alter(q, "R", &attrs), MQRC_OBJECT_TYPE_ERROR);
    stale = q;
    stale.generation += 1;
    CHECK_INT(alter(stale, "Q", &attrs), MQRC_UNKNOWN_OBJECT_NAME);
    stale.slot = 12345;
    CHECK_INT(alter(stale, "Q", &attrs), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(alter(q, "Q", &attrs), 0);
    CHECK_INT(fixture_put(&process, NULL, q, true, "too many", -1), MQRC_Q_FULL);
    CHECK_INT(fixture_get(&process, NULL, q, text, &count), 0);
    CHECK_STR(text, "stays");
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

/* ---- delete ---- */

TEST(a_deleted_queue_is_gone_for_good_and_its_slot_comes_back_with_a_higher_generation)
{
    struct fixture_queue q, again;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    CHECK_INT(delete_queue(q, false), 0);
    CHECK_INT(fixture_find(&process, "Q", &again), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(delete_queue(q, false), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(fixture_define(&process, "Q", NULL, &again), 0);
    CHECK_INT(again.slot, q.slot);
    CHECK(again.generation > q.generation);
    CHECK_INT(delete_queue(again, false), 0);
    restart_killed();
    CHECK_INT(fixture_find(&process, "Q", &again), MQRC_UNKNOWN_OBJECT_NAME);
    uint32_t generation = again.generation;
    CHECK_INT(fixture_define(&process, "Q", NULL, &again), 0);
    CHECK(again.slot != q.slot || again.generation > generation);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_queue_with_messages_is_deleted_only_with_purge_and_never_while_units_hold_some)
{
    struct fixture_queue q;
    char text[64];
    uint32_t count;
    mqe_unit *unit = NULL;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    CHECK_INT(mqe_unit_new(process.manager, &unit), 0);
    CHECK_INT(fixture_put(&process, unit, q, true, "in a unit", -1), 0);
    CHECK_INT(delete_queue(q, true), MQRC_Q_NOT_EMPTY);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(delete_queue(q, false), MQRC_Q_NOT_EMPTY);
    CHECK_INT(fixture_get(&process, unit, q, text, &count), 0);
    CHECK_INT(delete_queue(q, true), MQRC_Q_NOT_EMPTY);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_INT(object_of(q)->present, 1); /* all refusals left everything as it was */
    for (int i = 0; i < 300; i++) {
        CHECK_INT(fixture_put(&process, NULL, q, i % 2 == 0, "more", i % 3 == 0 ? 100000 : -1), 0);
    }
    CHECK_INT(delete_queue(q, true), 0);
    CHECK_INT(fixture_put(&process, NULL, q, true, "late", -1), MQRC_Q_DELETED);
    uint64_t persistent = 0;
    for (uint32_t i = 0; i < 4; i++) {
        persistent += process.store->region.stripes[i].persistent_present;
    }
    CHECK_INT(persistent, 0);
    mqe_unit_free(unit);
    restart_killed();
    CHECK_INT(process.report.recovery.messages, 0);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(an_open_queue_is_not_deleted)
{
    struct fixture_queue q;
    mqe_queue *handle = NULL;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    CHECK_INT(mqe_open_direct(process.manager, q.slot, q.generation, MQE_BROWSE, &handle), 0);
    CHECK_INT(delete_queue(q, true), MQRC_OBJECT_IN_USE);
    CHECK_INT(mqe_close(handle, MQE_CLOSE_KEEP), 0);
    CHECK_INT(mqe_open_direct(process.manager, q.slot, q.generation, MQE_OUTPUT, &handle), 0);
    CHECK_INT(delete_queue(q, true), MQRC_OBJECT_IN_USE);
    CHECK_INT(mqe_close(handle, MQE_CLOSE_KEEP), 0);
    CHECK_INT(delete_queue(q, true), 0);
    CHECK(mqe_open_direct(process.manager, q.slot, q.generation, MQE_OUTPUT, &handle) != 0);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(deleting_and_defining_a_thousand_times_uses_no_more_memory)
{
    struct fixture_queue q;
    struct fixture_attrs attrs = {.length = 0};
    char text[64];
    uint32_t count;
    start();
    fixture_attr(&attrs, 2013, 1);
    const struct mqx_area *area = process.store->region.header->area;
    uint64_t cells = 0, objects = 0, messages = 0;
    for (int i = 0; i < 1000; i++) {
        CHECK_INT(fixture_define(&process, "Q", &attrs, &q), 0);
        CHECK_INT(alter(q, "Q", &attrs), 0);
        CHECK_INT(fixture_put(&process, NULL, q, false, "one", -1), 0);
        CHECK_INT(fixture_put(&process, NULL, q, false, "two", -1), 0);
        CHECK_INT(fixture_get(&process, NULL, q, text, &count), 0);
        CHECK_INT(delete_queue(q, true), 0);
        if (i == 10) {
            cells = area[MQX_AREA_ARENA].used;
            objects = area[MQX_AREA_OBJECTS].used;
            messages = area[MQX_AREA_MESSAGES].used;
        }
    }
    CHECK_INT(area[MQX_AREA_ARENA].used, cells);
    CHECK_INT(area[MQX_AREA_OBJECTS].used, objects);
    CHECK_INT(area[MQX_AREA_MESSAGES].used, messages);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

/* ---- many ---- */

enum { MANY = 100000 };

static void many_name(uint32_t i, struct mqx_definition *def)
{
    char name[49];
    int n = snprintf(name, sizeof name, "QUEUE.NUMBER.%06u", i);
    memset(def->name.name, ' ', sizeof def->name.name);
    memcpy(def->name.name, name, (size_t)n);
}

TEST_SERIAL(a_hundred_thousand_queues_are_defined_with_one_flush_found_and_survive)
{
    struct mqx_definition *defs = calloc(MANY, sizeof *defs);
    uint32_t *slots = calloc(MANY, sizeof *slots), *generations = calloc(MANY, sizeof *generations);
    uint32_t done = 0;
    struct mqe_found found;
    CHECK(defs != NULL && slots != NULL && generations != NULL);
    start();
    for (uint32_t i = 0; i < MANY; i++) {
        defs[i] = fixture_definition("X", NULL);
        many_name(i, &defs[i]);
    }
    CHECK_INT(mqx_catalog_define_many(process.store, process.context, defs, MANY, slots,
                                      generations, &done), 0);
    CHECK_INT(done, MANY);
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < MANY; i += 7) {
            CHECK_INT(mqx_catalog_find(process.store, MQX_NAMES_QUEUE, defs[i].name.name, 0,
                                       &found), 0);
            CHECK_INT(found.slot, slots[i]);
        }
        CHECK_INT(count_objects(), MANY);
        if (round == 0) {
            restart_killed();
        } else {
            restart_in_order();
        }
        CHECK_INT(process.report.recovery.objects, MANY);
    }
    CHECK_INT(fixture_detach(&process, NULL), 0);
    free(defs);
    free(slots);
    free(generations);
}

TEST(define_many_stops_at_the_first_bad_one_and_keeps_those_before_it)
{
    struct mqx_definition defs[5];
    uint32_t slots[5], generations[5], done = 99;
    struct fixture_queue found;
    start();
    for (uint32_t i = 0; i < 5; i++) {
        defs[i] = fixture_definition("X", NULL);
        many_name(i == 3 ? 1 : i, &defs[i]);
    }
    CHECK_INT(mqx_catalog_define_many(process.store, process.context, defs, 5, slots, generations,
                                      &done), MQRC_OBJECT_ALREADY_EXISTS);
    CHECK_INT(done, 3);
    CHECK_INT(count_objects(), 3);
    restart_killed();
    CHECK_INT(count_objects(), 3);
    CHECK_INT(fixture_find(&process, "QUEUE.NUMBER.000002", &found), 0);
    CHECK_INT(fixture_find(&process, "QUEUE.NUMBER.000004", &found), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

/* ---- at the same time ---- */

enum { THREADS = 3, NAMES = 60 };

struct racer {
    uint32_t context;
    uint32_t won;
    uint32_t odd;
};

static void *define_all(void *arg)
{
    struct racer *racer = arg;
    for (uint32_t i = 0; i < NAMES; i++) {
        struct mqx_definition def = fixture_definition("X", NULL);
        struct fixture_queue q;
        many_name(i, &def);
        int status = mqx_catalog_define(process.store, racer->context, &def, &q.slot,
                                        &q.generation);
        racer->won += status == 0;
        racer->odd += status != 0 && status != MQRC_OBJECT_ALREADY_EXISTS;
    }
    return NULL;
}

TEST(of_several_that_define_the_same_name_at_the_same_time_one_succeeds)
{
    struct racer racer[THREADS] = {{0, 0, 0}};
    pthread_t thread[THREADS];
    uint32_t won = 0;
    start();
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(mqx_slot_take(&process.store->region, MQX_AREA_CONTEXTS, NULL,
                                &racer[i].context), 0);
        CHECK_INT(pthread_create(&thread[i], NULL, define_all, &racer[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(pthread_join(thread[i], NULL), 0);
        CHECK_INT(racer[i].odd, 0);
        won += racer[i].won;
    }
    CHECK_INT(won, NAMES);
    CHECK_INT(count_objects(), NAMES);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

static void *change_all(void *arg)
{
    struct racer *racer = arg;
    struct test_random random = {.state = racer->context};
    for (uint32_t i = 0; i < 300; i++) {
        struct fixture_attrs attrs = {.length = 0};
        fixture_attr(&attrs, 6, (int64_t)test_below(&random, 10));
        struct mqx_definition def = fixture_definition("SHARED", &attrs);
        struct fixture_queue q;
        int status = fixture_find(&process, "SHARED", &q);
        if (status == 0 && test_below(&random, 3) != 0) {
            status = mqx_catalog_alter(process.store, racer->context, q.slot, q.generation, &def,
                                       0, 0);
        } else if (status == 0) {
            status = mqx_catalog_delete(process.store, q.slot, q.generation, true);
        } else if (status == MQRC_UNKNOWN_OBJECT_NAME) {
            status = mqx_catalog_define(process.store, racer->context, &def, &q.slot,
                                        &q.generation);
        }
        racer->odd += status != 0 && status != MQRC_UNKNOWN_OBJECT_NAME &&
                      status != MQRC_OBJECT_ALREADY_EXISTS && status != MQRC_Q_DELETED;
    }
    return NULL;
}

TEST(alters_deletes_and_defines_of_one_name_by_several_threads_leave_it_whole)
{
    struct racer racer[THREADS] = {{0, 0, 0}};
    pthread_t thread[THREADS];
    start();
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(mqx_slot_take(&process.store->region, MQX_AREA_CONTEXTS, NULL,
                                &racer[i].context), 0);
        CHECK_INT(pthread_create(&thread[i], NULL, change_all, &racer[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(pthread_join(thread[i], NULL), 0);
        CHECK_INT(racer[i].odd, 0);
    }
    uint32_t live = count_objects();
    CHECK(live <= 1);
    restart_killed();
    CHECK_INT(count_objects(), live);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

/* ---- deaths: real processes that are killed at the n-th write to a file ---- */

static struct mqx_io_ops deadly_ops;
static struct mqx_io deadly_io;
static int writes_left;

static int deadly_write(struct mqx_io *io, int fd, const struct iovec *parts, int part_count,
                        uint64_t offset, int flags)
{
    (void)io;
    if (writes_left-- == 0) {
        kill(getpid(), SIGKILL);
    }
    return mqx_io_posix()->ops->write(mqx_io_posix(), fd, parts, part_count, offset, flags);
}

enum what { DEFINE, DEFINE_MANY, ALTER, DELETE };
struct victim {
    const struct fixture_dirs *place;
    enum what what;
    int writes;
};

static int be_killed(void *arg)
{
    const struct victim *victim = arg;
    struct fixture_queue q;
    struct fixture_attrs attrs = {.length = 0};
    deadly_ops = *mqx_io_posix()->ops;
    deadly_ops.write = deadly_write;
    deadly_io.ops = &deadly_ops;
    writes_left = 1000000;
    if (fixture_attach_real(victim->place, &deadly_io, &process) != 0) {
        return 1;
    }
    fixture_attr(&attrs, 6, 9);
    if (victim->what >= ALTER && fixture_find(&process, "OLD", &q) != 0) {
        return 2;
    }
    struct mqx_definition defs[3] = {fixture_definition("NEW1", NULL),
                                     fixture_definition("NEW2", NULL),
                                     fixture_definition("NEW3", NULL)};
    uint32_t slots[3], generations[3], done;
    writes_left = victim->writes;
    switch (victim->what) {
    case DEFINE: return 10 + (fixture_define(&process, "NEW1", NULL, &q) != 0);
    case DEFINE_MANY:
        return 10 + (mqx_catalog_define_many(process.store, process.context, defs, 3, slots,
                                             generations, &done) != 0);
    case ALTER: return 10 + (alter(q, "OLD", &attrs) != 0);
    default: return 10 + (delete_queue(q, true) != 0);
    }
}

static void kill_one(enum what what, const struct fixture_dirs *place)
{
    struct victim victim = {.place = place, .what = what, .writes = 0};
    CHECK_INT(fixture_wait(fixture_child(be_killed, &victim)), 1000 + SIGKILL);
}

TEST(a_define_whose_owner_died_during_the_flush_is_finished_by_the_next_search)
{
    struct fixture_dirs place;
    struct fixture_queue q;
    fixture_make_dirs(&place);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &process), 0);
    kill_one(DEFINE, &place);
    CHECK_INT(fixture_define(&process, "NEW1", NULL, &q), MQRC_OBJECT_ALREADY_EXISTS);
    CHECK_INT(fixture_find(&process, "NEW1", &q), 0);
    CHECK_INT(object_of(q)->state, MQX_OBJ_ACTIVE);
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK_INT(fixture_put(&process, NULL, q, true, "m", -1), 0);
    CHECK_INT(fixture_detach(&process, NULL), 0);
    fixture_remove_dirs(&place);
}

TEST(all_definitions_of_a_dead_owners_batch_come_out_whole)
{
    struct fixture_dirs place;
    fixture_make_dirs(&place);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &process), 0);
    kill_one(DEFINE_MANY, &place);
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK_INT(count_objects(), 3);
    CHECK_INT(fixture_detach(&process, NULL), 0);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &process), 0);
    CHECK_INT(count_objects(), 3);
    CHECK_INT(fixture_detach(&process, NULL), 0);
    fixture_remove_dirs(&place);
}

TEST(an_alter_whose_owner_died_during_the_flush_takes_effect)
{
    struct fixture_dirs place;
    struct fixture_queue q;
    fixture_make_dirs(&place);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &process), 0);
    CHECK_INT(fixture_define(&process, "OLD", NULL, &q), 0);
    kill_one(ALTER, &place);
    CHECK_INT(object_of(q)->def_priority, 0);
    CHECK_INT(object_of(q)->def_priority, 0);
    CHECK_INT(fixture_put(&process, NULL, q, true, "usable", -1), 0);
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK_INT(object_of(q)->def_priority, 9);
    CHECK_INT(object_of(q)->state, MQX_OBJ_ACTIVE);
    CHECK_INT(object_of(q)->pending_attrs, 0);
    CHECK_INT(fixture_detach(&process, NULL), 0);
    fixture_remove_dirs(&place);
}

TEST(a_delete_whose_owner_died_during_the_flush_is_finished)
{
    struct fixture_dirs place;
    struct fixture_queue q, again;
    fixture_make_dirs(&place);
    CHECK_INT(fixture_attach_real(&place, mqx_io_posix(), &process), 0);
    CHECK_INT(fixture_define(&process, "OLD", NULL, &q), 0);
    for (int i = 0; i < 200; i++) {
        CHECK_INT(fixture_put(&process, NULL, q, false, "m", -1), 0);
    }
    kill_one(DELETE, &place);
    CHECK_INT(fixture_find(&process, "OLD", &again), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(fixture_put(&process, NULL, q, false, "m", -1), MQRC_Q_DELETED);
    CHECK_INT(mqx_maintenance_round(process.store), 0);
    CHECK_INT(object_of(q)->state, MQX_OBJ_FREE);
    CHECK_INT(fixture_define(&process, "OLD", NULL, &again), 0);
    CHECK_INT(fixture_detach(&process, NULL), 0);
    fixture_remove_dirs(&place);
}

/* What a process had pending before its record was in the ring, set up without it. */
TEST(a_slot_that_died_before_its_name_was_linked_is_given_back)
{
    uint32_t slot = 0;
    struct fixture_queue q;
    start();
    struct mqx_context *context = mqx_context(&process.store->region, process.context);
    context->pending_object = MQX_ANY_GENERATION;
    context->pending_kind = MQX_PENDING_OBJECT;
    CHECK_INT(mqx_slot_take(&process.store->region, MQX_AREA_OBJECTS, &context->pending_ref,
                            &slot), 0);
    CHECK_INT(mqx_catalog_repair(process.store, process.context, slot), 0);
    CHECK_INT(mqx_object(&process.store->region, slot)->state, MQX_OBJ_FREE);
    CHECK_INT(context->pending_kind, MQX_PENDING_NONE);
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    CHECK_INT(q.slot, slot);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_pending_reference_that_names_an_earlier_life_of_a_slot_does_no_harm)
{
    struct fixture_queue q, other;
    start();
    struct mqx_context *context = mqx_context(&process.store->region, process.context);
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    CHECK_INT(delete_queue(q, false), 0);
    CHECK_INT(fixture_define(&process, "R", NULL, &other), 0);
    CHECK_INT(other.slot, q.slot);
    context->pending_ref = q.slot;
    context->pending_object = q.generation;
    context->pending_kind = MQX_PENDING_OBJECT;
    struct mqx_object *object = mqx_object(&process.store->region, q.slot);
    object->state = MQX_OBJ_DEFINING; /* another process is about to define it */
    CHECK_INT(mqx_catalog_repair(process.store, process.context, q.slot), 0);
    CHECK_INT(object->state, MQX_OBJ_DEFINING);
    object->state = MQX_OBJ_ACTIVE;
    CHECK_INT(fixture_find(&process, "R", &other), 0);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_full_disk_refuses_definitions_and_leaves_no_trace_of_them)
{
    struct fixture_queue q;
    struct fixture_attrs attrs = {.length = 0};
    char name[32];
    int status = 0, defined = 0;
    start();
    fixture_attr(&attrs, 6, 5);
    memory_io_set_space(files, 1 << 20, UINT64_MAX);
    for (int i = 0; i < 100000 && status == 0; i++) {
        snprintf(name, sizeof name, "Q%d", i);
        status = fixture_define(&process, name, NULL, &q);
        defined += status == 0;
    }
    CHECK_INT(status, MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(fixture_find(&process, name, &q), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(count_objects(), defined);
    CHECK_INT(fixture_find(&process, "Q0", &q), 0);
    CHECK_INT(alter(q, "Q0", &attrs), MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(object_of(q)->def_priority, 0);
    CHECK_INT(object_of(q)->state, MQX_OBJ_ACTIVE);
    CHECK_INT(delete_queue(q, false), 0); /* may use the reserve */
    memory_io_set_space(files, UINT64_MAX, UINT64_MAX);
    CHECK_INT(fixture_define(&process, name, NULL, &q), 0);
    restart_killed();
    CHECK_INT(count_objects(), defined);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_failed_flush_of_a_definition_stops_the_queue_manager)
{
    struct fixture_queue q;
    const struct memory_fault fault = {
        .kind = MEMORY_FAULT_ERROR, .at = 1, .for_ever = true, .ops = 1u << MEMORY_WRITE,
        .error = EIO};
    start();
    memory_io_set_fault(files, &fault);
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), MQRC_CONNECTION_BROKEN);
    CHECK(mqx_region_stopped(&process.store->region) == MQX_STOP_BROKEN);
    CHECK_INT(fixture_define(&process, "R", NULL, &q), MQRC_CONNECTION_BROKEN);
    memory_io_set_fault(files, NULL);
    CHECK_INT(fixture_detach(&process, NULL), 0);
    fixture_attach(files, &process);
    CHECK(count_objects() <= 1);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST_MAIN()
