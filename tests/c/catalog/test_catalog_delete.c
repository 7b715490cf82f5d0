/* Claims of catalog_delete.c and of mqe_open_new and mqe_close: Table 74 row by row (MQCLOSE
 * Options), logical and physical deletion, what survives which death. */
#include "fixtures/dynamic_fixture.h"

#include "catalog/catalog.h"
#include "unit/unit.h"

/* ---- Table 74 ---- */

TEST(a_predefined_queue_is_retained_and_delete_and_purge_are_not_valid_for_it)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "stays"), 0);
    CHECK_INT(shut(q.handle, DELETE), MQRC_OPTION_NOT_VALID_FOR_TYPE);
    CHECK_INT(shut(q.handle, PURGE), MQRC_OPTION_NOT_VALID_FOR_TYPE);
    CHECK_STR(TAKE(q), "stays"); /* the handle is still open */
    CHECK_INT(shut(q.handle, DELETE), MQRC_OPTION_NOT_VALID_FOR_TYPE); /* empty, too */
    CHECK_INT(shut(q.handle, KEEP), 0);
    CHECK_INT(find("Q"), 0);
}

TEST(an_object_that_is_not_a_queue_is_retained_and_delete_and_purge_are_not_valid_for_it)
{
    struct ps_object_name process = engine_name("PROC"), model = engine_name("MODEL");
    const struct attributes attrs = engine_attributes((const int[]){DEFTYPE, TEMPORARY, 0});
    struct queue q = {0};
    process.name_space = 103;
    process.type = 3;
    model.type = 2; /* the DEFTYPE of a model is that of the queues made from it */
    engine_begin();
    for (int i = 0; i < 2; i++) {
        const struct ps_object_name *name = i == 0 ? &process : &model;
        CHECK_INT(mqe_define(engine.manager, name, attrs.bytes, attrs.length, &q.slot,
                             &q.generation), 0);
        q.handle = engine_open(q, INQUIRE);
        CHECK_INT(shut(q.handle, DELETE), MQRC_OPTION_NOT_VALID_FOR_TYPE);
        CHECK_INT(shut(q.handle, PURGE), MQRC_OPTION_NOT_VALID_FOR_TYPE);
        CHECK_INT(shut(q.handle, KEEP), 0);
        engine_kill_and_restart();
        struct mqe_found found;
        CHECK_INT(mqe_find(engine.manager, name->name_space, name->name, 0, &found), 0);
    }
}

TEST(a_permanent_dynamic_queue_is_retained_by_none_with_its_messages)
{
    engine_begin();
    struct queue q = make("P", PERMANENT);
    CHECK_INT(PUT(q, .text = "stays", .persistent = 1), 0);
    CHECK_INT(shut(q.handle, KEEP), 0);
    engine_kill_and_restart();
    CHECK_STR(drain(engine_find("P")), "stays");
}

TEST(a_permanent_dynamic_queue_is_deleted_by_delete_when_it_is_empty_whatever_the_handle_was_for)
{
    static const uint32_t options[] = {1, 2, 4, MQE_BROWSE, MQE_OUTPUT, INQUIRE, ALL};
    engine_begin();
    for (size_t i = 0; i < MQX_ARRAY_COUNT(options); i++) {
        for (uint32_t how = DELETE; how <= PURGE; how++) {
            struct queue q = {0};
            CHECK_INT(try_make("P", PERMANENT, INQUIRE, &q), 0);
            mqe_queue *other = engine_open(q, options[i]);
            CHECK_INT(shut(q.handle, KEEP), 0);
            CHECK_INT(shut(other, how), 0);
            CHECK_INT(find("P"), MQRC_UNKNOWN_OBJECT_NAME);
            CHECK_INT(state_of(q), MQX_OBJ_FREE);
        }
    }
    CHECK_INT(totals().objects, 0);
    CHECK_INT(totals().handles, 0);
}

TEST(delete_of_a_permanent_dynamic_queue_with_messages_is_2055_and_nothing_changes)
{
    engine_begin();
    struct queue q = make("P", PERMANENT);
    mqe_queue *other = engine_open(q, INQUIRE);
    CHECK_INT(PUT(q, .text = "stays", .persistent = 1), 0);
    CHECK_INT(shut(q.handle, DELETE), MQRC_Q_NOT_EMPTY);
    CHECK_INT(shut(other, DELETE), MQRC_Q_NOT_EMPTY);
    CHECK_STR(peruse(q), "stays");
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "stays");
    CHECK_INT(shut(q.handle, DELETE), MQRC_Q_NOT_EMPTY);
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNLOCK), ""); /* even the lock is where it was */
    CHECK_STR(TAKE(q), "stays");
    CHECK_INT(shut(q.handle, DELETE), 0);
    CHECK_INT(shut(other, KEEP), 0);
    CHECK_INT(state_of(q), MQX_OBJ_FREE);
}

/* Both options, by the unit's own process and through a handle that has nothing to do with it. */
static void expect_busy(struct queue q, mqe_queue *other)
{
    for (uint32_t how = DELETE; how <= PURGE; how++) {
        CHECK_INT(shut(q.handle, how), MQRC_Q_NOT_EMPTY);
        CHECK_INT(shut(other, how), MQRC_Q_NOT_EMPTY);
    }
}

TEST(delete_and_purge_of_a_permanent_dynamic_queue_with_uncommitted_work_are_2055)
{
    engine_begin();
    struct queue q = make("P", PERMANENT);
    mqe_queue *other = engine_open(q, INQUIRE);
    mqe_unit *unit = engine_unit();
    for (int persistent = 0; persistent < 2; persistent++) {
        CHECK_INT(PUT(q, .text = "m", .persistent = persistent, .unit = unit), 0);
        expect_busy(q, other); /* an uncommitted put */
        CHECK_INT(mqe_commit(unit), 0);
        CHECK_STR(TAKE(q, .unit = unit), "m");
        CHECK_INT(depth(q), 0);
        expect_busy(q, other); /* an uncommitted get: CURDEPTH reads 0 */
        CHECK_INT(mqe_backout(unit), 0);
        CHECK_STR(drain(q), "m");
    }
    CHECK_INT(PUT(q, .text = "one"), 0);
    CHECK_INT(PUT(q, .text = "two", .unit = unit), 0);
    expect_busy(q, other);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(peruse(q), "one two"); /* neither the queue nor a message has changed */
    CHECK_INT(shut(other, PURGE), 0);
    CHECK_INT(shut(q.handle, KEEP), 0);
    CHECK_INT(state_of(q), MQX_OBJ_FREE);
    CHECK(is_sound());
}

TEST(purge_deletes_a_permanent_dynamic_queue_and_its_messages_for_good)
{
    static char body[300000];
    engine_begin();
    struct queue q = make("P", PERMANENT);
    for (int i = 0; i < 300; i++) {
        CHECK_INT(PUT(q, .body = body, .length = (uint64_t)i * 50, .persistent = i % 2,
                      .correl = 1 + (uint64_t)i % 7), 0);
    }
    CHECK_INT(PUT(q, .body = body, .length = sizeof body, .persistent = 1), 0);
    TAKE(q, .correl = 3); /* builds an index */
    CHECK_INT(got.status, 0);
    CHECK_INT(shut(q.handle, PURGE), 0);
    CHECK_INT(state_of(q), MQX_OBJ_FREE);
    for (uint32_t i = 0; i < engine_region()->header->stripe_count; i++) {
        CHECK_INT(engine_region()->stripes[i].persistent_present, 0);
    }
    engine_kill_and_restart();
    CHECK_INT(engine.info.messages, 0);
    CHECK_INT(engine.info.np_discarded, 0);
    CHECK_INT(find("P"), MQRC_UNKNOWN_OBJECT_NAME);
}

TEST(a_temporary_dynamic_queue_is_deleted_with_its_messages_by_any_close_of_its_creator)
{
    engine_begin();
    for (uint32_t how = KEEP; how <= PURGE; how++) {
        struct queue q = make("T", TEMPORARY);
        CHECK_INT(PUT(q, .text = "gone"), 0);
        CHECK_INT(shut(q.handle, how), 0);
        CHECK_INT(find("T"), MQRC_UNKNOWN_OBJECT_NAME);
        CHECK_INT(state_of(q), MQX_OBJ_FREE);
    }
    CHECK_INT(totals().handles, 0);
}

TEST(a_temporary_dynamic_queue_is_retained_by_other_handles_and_not_theirs_to_delete)
{
    engine_begin();
    struct queue q = make("T", TEMPORARY);
    mqe_queue *other = engine_open(q, ALL);
    CHECK_INT(PUT(q, .text = "stays"), 0);
    for (int i = 0; i < 2; i++) { /* also when it is empty */
        CHECK_INT(shut(other, DELETE), MQRC_OPTION_NOT_VALID_FOR_TYPE);
        CHECK_INT(shut(other, PURGE), MQRC_OPTION_NOT_VALID_FOR_TYPE);
        if (i == 0) {
            CHECK_STR(TAKE_BY(other), "stays");
        }
    }
    CHECK_INT(shut(other, KEEP), 0);
    CHECK_INT(find("T"), 0);
    CHECK_INT(PUT(q, .text = "still usable"), 0);
}

TEST(a_temporary_dynamic_queue_is_deleted_by_its_creator_under_uncommitted_work_of_anybody)
{
    engine_begin();
    const struct mqe_manager_status before = totals();
    for (int round = 0; round < 4; round++) {
        struct queue q = make("T", TEMPORARY), p = QUEUE("OTHER", 0);
        mqe_queue *other = engine_open(q, ALL);
        mqe_unit *getter = engine_unit(), *putter = engine_unit();
        CHECK_INT(PUT(q, .text = "got"), 0);
        CHECK_STR(TAKE_BY(other, .unit = getter), "got");
        CHECK_INT(PUT(p, .text = "elsewhere", .unit = putter, .persistent = 1), 0);
        CHECK_INT(PUT(q, .text = "put", .unit = putter), 0);
        CHECK_INT(shut(q.handle, round % 2 == 0 ? KEEP : PURGE), 0);
        CHECK_INT(find("T"), MQRC_UNKNOWN_OBJECT_NAME);
        CHECK_INT(PUT(q, .text = "late", .unit = putter), MQRC_Q_DELETED);
        CHECK_STR(TAKE_BY(other, .unit = getter), "(2052)");
        CHECK_INT(state_of(q), MQX_OBJ_DELETING);
        CHECK(is_sound());
        CHECK_INT(round < 2 ? mqe_commit(putter) : mqe_backout(putter), 0); /* do not fail */
        CHECK_INT(shut(other, KEEP), 0);
        CHECK_INT(state_of(q), MQX_OBJ_DELETING); /* a unit still holds a message */
        CHECK_INT(round < 2 ? mqe_backout(getter) : mqe_commit(getter), 0);
        CHECK_INT(state_of(q), MQX_OBJ_FREE);
        CHECK_STR(drain(p), round < 2 ? "elsewhere" : "");
        CHECK_INT(shut(p.handle, KEEP), 0);
        CHECK_INT(mqe_delete(engine.manager, p.slot, p.generation, 0), 0);
    }
    CHECK_INT(totals().handles, before.handles);
    CHECK_INT(totals().objects, before.objects);
}

TEST(an_unknown_close_option_is_refused_and_leaves_the_handle_open)
{
    engine_begin();
    struct queue q = make("P", PERMANENT);
    CHECK_INT(shut(q.handle, 3), MQRC_OPTIONS_ERROR);
    CHECK_INT(PUT(q, .text = "usable"), 0);
}

/* ---- defining and opening in one ---- */

TEST(open_new_defines_and_opens_and_the_handle_counts_like_any_other)
{
    struct queue q = {0}, other = {0};
    mqe_queue *second = NULL;
    engine_begin();
    CHECK_INT(try_make("T", TEMPORARY, MQE_INPUT_EXCLUSIVE | MQE_OUTPUT, &q), 0);
    CHECK_INT(find("T"), 0);
    CHECK_INT(engine_status(q).open_input, 1);
    CHECK_INT(engine_status(q).open_output, 1);
    CHECK_INT(mqe_open_direct(engine.manager, q.slot, q.generation, 2, &second),
              MQRC_OBJECT_IN_USE);
    CHECK_INT(PUT(q, .text = "hello"), 0);
    CHECK_STR(TAKE(q), "hello");
    CHECK_INT(try_make("T", PERMANENT, INQUIRE, &other), MQRC_OBJECT_ALREADY_EXISTS);
    CHECK_INT(totals().objects, 1);
    CHECK_INT(totals().handles, 1);
    CHECK(is_sound());
}

TEST(an_open_new_that_fails_leaves_nothing)
{
    static const int bad[][3] = {{DEFTYPE, 1, 0}, {DEFTYPE, 5, 0}, {DEFTYPE, 0, 0},
                                 {DEFPRTY, 10, 0}, {DEFPRTY, 3, 0}};
    const struct ps_object_name name = engine_name("T"), unnamed = engine_name(" T");
    struct mqe_found found;
    mqe_queue *handle = NULL;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    (void)q;
    const struct mqe_manager_status before = totals();
    const uint64_t tail = engine_region()->journal->tail;
    for (size_t i = 0; i < MQX_ARRAY_COUNT(bad); i++) {
        const struct attributes attrs = engine_attributes(bad[i]);
        CHECK(mqe_open_new(engine.manager, &name, attrs.bytes, attrs.length, ALL, &handle,
                           &found) != 0);
    }
    const struct attributes good = engine_attributes((const int[]){DEFTYPE, TEMPORARY, 0});
    CHECK_INT(mqe_open_new(engine.manager, &unnamed, good.bytes, good.length, ALL, &handle,
                           &found), MQRC_OBJECT_NAME_ERROR);
    struct queue taken = {0};
    for (int i = 0; i < 100; i++) {
        CHECK_INT(try_make("Q", TEMPORARY + i % 2 * (PERMANENT - TEMPORARY), ALL, &taken),
                  MQRC_OBJECT_ALREADY_EXISTS);
    }
    const struct mqe_manager_status after = totals();
    CHECK_INT(after.objects, before.objects);
    CHECK_INT(after.handles, before.handles);
    CHECK_INT(engine_region()->journal->tail, tail);
    CHECK(engine_region()->header->area[MQX_AREA_OBJECTS].used <= 3);
    CHECK(engine_region()->header->area[MQX_AREA_HANDLES].used <= 3);
}

TEST(a_temporary_queue_is_defined_by_opening_alone_and_deftype_cannot_be_altered)
{
    struct queue q = {0};
    const struct ps_object_name name = engine_name("X");
    const struct attributes attrs = engine_attributes((const int[]){DEFTYPE, TEMPORARY, 0});
    engine_begin();
    CHECK_INT(mqe_define(engine.manager, &name, attrs.bytes, attrs.length, &q.slot,
                         &q.generation), MQRC_SELECTOR_NOT_FOR_TYPE);
    CHECK_INT(find("X"), MQRC_UNKNOWN_OBJECT_NAME);
    q = make("T", TEMPORARY);
    CHECK_INT(ALTER(q, "T", DEFPRTY, 3), MQRC_SELECTOR_NOT_FOR_TYPE);
    CHECK_INT(ALTER(q, "T", DEFTYPE, PERMANENT), MQRC_SELECTOR_NOT_FOR_TYPE);
    CHECK_INT(ALTER(q, "T", DEFTYPE, TEMPORARY, DEFPRTY, 3), 0);
    CHECK_INT(PUT(q, .text = "m", .priority = -1), 0);
    TAKE(q);
    CHECK_INT(got.priority, 3);
}

TEST(a_temporary_queue_refuses_persistent_messages_and_a_permanent_one_takes_them)
{
    engine_begin();
    struct queue t = make("T", TEMPORARY), p = make("P", PERMANENT);
    CHECK_INT(PUT(t, .text = "m", .persistent = 1), MQRC_PERSISTENT_NOT_ALLOWED);
    CHECK_INT(PUT(p, .text = "m", .persistent = 1), 0);
}

TEST(a_temporary_queue_leaves_no_byte_in_the_journal_and_waits_for_no_flush)
{
    engine_begin();
    struct queue q = make("FIRST", TEMPORARY); /* grows what has to grow */
    const struct mqx_journal *journal = engine_region()->journal;
    const uint64_t tail = journal->tail, flushes = journal->flushes;
    for (int i = 0; i < 50; i++) {
        struct queue t = make("T", TEMPORARY);
        CHECK_INT(PUT(t, .text = "m"), 0);
        CHECK_INT(ALTER(t, "T", DEFTYPE, TEMPORARY, DEFPRTY, 1), 0);
        CHECK_INT(shut(t.handle, (uint32_t)i % 3), 0);
    }
    CHECK_INT(journal->tail, tail);
    CHECK_INT(journal->flushes, flushes);
    CHECK_INT(shut(q.handle, KEEP), 0);
}

TEST(a_permanent_queue_is_on_disk_when_open_new_and_a_deleting_close_return)
{
    engine_begin();
    struct queue q = make("P", PERMANENT);
    CHECK_INT(PUT(q, .text = "kept", .persistent = 1), 0);
    CHECK(engine_region()->journal->durable >= engine_region()->journal->batch_start);
    engine_kill_and_restart();
    q = engine_find("P");
    CHECK_INT(mqx_object(engine_region(), q.slot)->definition_type, MQX_PERMANENT);
    CHECK_STR(TAKE(q), "kept");
    CHECK_INT(shut(q.handle, DELETE), 0);
    engine_kill_and_restart();
    CHECK_INT(find("P"), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(totals().objects, 0);
}

/* ---- logical deletion ---- */

static void expect_deleted(struct queue q, mqe_queue *handle)
{
    struct mqe_queue_status status;
    struct ps_object_name name;
    uint32_t length;
    uint64_t version;
    CHECK_INT(PUT(q, .text = "late"), MQRC_Q_DELETED);
    CHECK_STR(TAKE_BY(handle), "(2052)");
    CHECK_STR(TAKE_BY(handle, .correl = 5), "(2052)");
    CHECK_STR(TAKE_BY(handle, .wait_us = 60000000), "(2052)");
    CHECK_STR(TAKE_BY(handle, .flags = MQE_GET_BROWSE_FIRST), "(2052)");
    CHECK_STR(TAKE_BY(handle, .flags = MQE_GET_UNLOCK), "(2052)");
    CHECK_INT(mqe_queue_status(engine.manager, q.slot, q.generation, &status), MQRC_Q_DELETED);
    CHECK_INT(mqe_read_object(engine.manager, q.slot, q.generation, &name, NULL, 0, &length,
                              &version), MQRC_Q_DELETED);
    CHECK_INT(ALTER(q, "P", DEFPRTY, 1), MQRC_Q_DELETED);
    CHECK_INT(mqe_clear(engine.manager, q.slot, q.generation), MQRC_OBJECT_IN_USE);
}

static uint32_t handles_of_deleted(struct queue q)
{
    struct mqe_handle_status rows[16];
    uint32_t count = 0, deleted = 0;
    CHECK_INT(mqe_handles(engine.manager, rows, MQX_ARRAY_COUNT(rows), &count), 0);
    for (uint32_t i = 0; i < count; i++) {
        deleted += rows[i].deleted != 0 && rows[i].object == q.slot &&
                   rows[i].generation == q.generation;
    }
    return deleted;
}

TEST(a_deleted_queue_is_2052_for_every_call_through_older_handles_but_close)
{
    engine_begin();
    for (int definition = PERMANENT; definition <= TEMPORARY; definition++) {
        struct queue q = make("P", definition);
        mqe_queue *others[] = {engine_open(q, ALL), engine_open(q, ALL), engine_open(q, ALL)};
        CHECK_INT(handles_of_deleted(q), 0);
        CHECK_INT(shut(q.handle, PURGE), 0);
        CHECK_INT(handles_of_deleted(q), 3);
        CHECK_INT(totals().deleted, 1);
        for (uint32_t how = KEEP; how <= PURGE; how++) {
            expect_deleted(q, others[how]);
            CHECK_INT(state_of(q), MQX_OBJ_DELETING);
            CHECK_INT(shut(others[how], how), 0); /* closing succeeds with any option */
        }
        CHECK_INT(state_of(q), MQX_OBJ_FREE); /* the last one took it away */
        CHECK_INT(totals().deleted, 0);
    }
}

TEST(on_unix_the_name_of_a_deleted_queue_is_free_at_once_and_the_two_are_never_confused)
{
    engine_begin();
    struct queue old = make("P", PERMANENT);
    mqe_queue *older = engine_open(old, ALL);
    CHECK_INT(PUT(old, .text = "old", .persistent = 1), 0);
    CHECK_INT(shut(old.handle, PURGE), 0);
    struct queue fresh = make("P", PERMANENT);
    CHECK(fresh.slot != old.slot);
    CHECK_INT(PUT(fresh, .text = "new", .persistent = 1), 0);
    expect_deleted(old, older);
    CHECK_STR(peruse(fresh), "new");
    struct queue found = engine_find("P");
    CHECK_INT(found.slot, fresh.slot);
    CHECK_INT(shut(older, KEEP), 0);
    CHECK_STR(peruse(fresh), "new");
    engine_kill_and_restart();
    CHECK_STR(drain(engine_find("P")), "new");
}

TEST(on_zos_the_name_of_a_deleted_queue_is_in_use_until_its_last_handle_is_closed)
{
    struct mqe_settings settings = engine_settings();
    settings.platform = 1;
    engine_begin_with(&settings);
    for (uint32_t how = KEEP; how <= PURGE; how++) {
        for (int definition = PERMANENT; definition <= TEMPORARY; definition++) {
            struct queue q = make("P", definition), again = {0};
            mqe_queue *last = engine_open(q, ALL), *none = NULL;
            const struct ps_object_name name = engine_name("P");
            CHECK_INT(shut(q.handle, PURGE), 0);
            CHECK_INT(try_make("P", TEMPORARY, ALL, &again), MQRC_NAME_IN_USE);
            CHECK_INT(mqe_define(engine.manager, &name, NULL, 0, &again.slot, &again.generation),
                      MQRC_NAME_IN_USE);
            CHECK_INT(find("P"), 0); /* it can be seen ... */
            CHECK_INT(mqe_open_direct(engine.manager, q.slot, q.generation, INQUIRE, &none),
                      MQRC_Q_DELETED); /* ... and no more */
            CHECK_INT(shut(last, how), 0);
            CHECK_INT(find("P"), MQRC_UNKNOWN_OBJECT_NAME);
        }
    }
    struct queue q = QUEUE("P", 0); /* predefined ones need no waiting */
    CHECK_INT(shut(q.handle, KEEP), 0);
    CHECK_INT(mqe_delete(engine.manager, q.slot, q.generation, 0), 0);
    CHECK_INT(find("P"), MQRC_UNKNOWN_OBJECT_NAME);
    (void)make("P", TEMPORARY);
}

TEST(every_waiter_of_a_deleted_queue_wakes_with_2052_at_once)
{
    struct waiter waiter[4];
    engine_begin();
    for (int definition = PERMANENT; definition <= TEMPORARY; definition++) {
        struct queue q = make("P", definition);
        mqe_queue *other = engine_open(q, ALL), *browser = engine_open(q, ALL);
        const uint64_t bound = woken_by_bound();
        waiter_start(&waiter[0], other, &(const struct ask){0});
        waiter_start(&waiter[1], other, &(const struct ask){.correl = 4});
        waiter_start(&waiter[2], browser, &(const struct ask){.flags = MQE_GET_BROWSE_NEXT});
        waiter_start(&waiter[3], other, &(const struct ask){.group = 9, .persistent = 1});
        CHECK(await_waiters(q, 4));
        CHECK_INT(shut(q.handle, definition == PERMANENT ? DELETE : KEEP), 0);
        for (int i = 0; i < 4; i++) {
            CHECK_STR(waiter_end(&waiter[i]), "(2052)");
        }
        CHECK_INT(woken_by_bound(), bound);
        CHECK_INT(shut(other, KEEP), 0);
        CHECK_INT(shut(browser, KEEP), 0);
        CHECK_INT(state_of(q), MQX_OBJ_FREE);
    }
}

TEST(a_message_locked_by_a_browser_goes_with_the_browsers_handle)
{
    engine_begin();
    struct queue q = make("P", PERMANENT);
    mqe_queue *browser = engine_open(q, MQE_BROWSE);
    CHECK_INT(PUT(q, .text = "locked", .persistent = 1), 0);
    CHECK_STR(TAKE_BY(browser, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "locked");
    CHECK_INT(shut(q.handle, DELETE), MQRC_Q_NOT_EMPTY);
    CHECK_INT(shut(q.handle, PURGE), 0); /* a lock is no unit of work */
    CHECK_STR(TAKE_BY(browser, .flags = MQE_GET_BROWSE_UNDER_CURSOR), "(2052)");
    CHECK_INT(shut(browser, KEEP), 0);
    CHECK_INT(state_of(q), MQX_OBJ_FREE);
    CHECK(is_sound());
}

TEST(a_message_that_is_gone_but_for_a_browser_copying_it_does_not_make_a_queue_not_empty)
{
    struct mqx_stripe_guard guard;
    engine_begin();
    struct queue q = make("P", PERMANENT);
    const struct mqx_object *queue = mqx_object(engine_region(), q.slot);
    const uint32_t slot = engine_unit()->context;
    struct mqx_context *copier = mqx_context(engine_region(), slot);
    CHECK_INT(PUT(q, .text = "m"), 0);
    const uint32_t message = mqx_priority_index_first(engine_region(), queue);
    CHECK_INT(mqx_stripe_guard_take(engine_region(), q.slot, &guard), 0);
    mqx_guard_store8(&guard, &mqx_message(engine_region(), message)->pins, 1);
    mqx_stripe_guard_commit(&guard);
    mqx_stripe_guard_drop(&guard);
    copier->pending_ref = message;
    copier->pending_object = q.slot;
    copier->pending_kind = MQX_PENDING_PINNED;
    CHECK_STR(TAKE(q), "m");
    CHECK_INT(mqx_message(engine_region(), message)->state, MQX_MSG_GONE);
    CHECK_INT(shut(q.handle, DELETE), 0);
    CHECK_INT(state_of(q), MQX_OBJ_DELETING); /* its memory is still being read */
    CHECK_INT(mqx_pending_release(&engine.manager->store, slot), 0);
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_INT(state_of(q), MQX_OBJ_FREE);
    CHECK(is_sound());
}

TEST(what_a_unit_held_of_several_deleted_queues_goes_with_the_maintenance_round)
{
    struct queue q[5];
    engine_begin();
    mqe_unit *unit = engine_unit();
    for (int i = 0; i < 5; i++) {
        q[i] = make((const char[]){(char)('A' + i), 0}, TEMPORARY);
        CHECK_INT(PUT(q[i], .text = "m", .unit = unit), 0);
        CHECK_INT(shut(q[i].handle, KEEP), 0);
    }
    CHECK_INT(totals().deleted, 5);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(totals().deleted, 4); /* one went with the unit */
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_INT(totals().deleted, 0);
    CHECK(is_sound());
}

TEST(a_hundred_lives_of_dynamic_queues_use_no_more_memory)
{
    static char body[30000];
    engine_begin();
    const struct mqx_area *area = engine_region()->header->area;
    uint64_t used[MQX_AREA_COUNT] = {0};
    for (int i = 0; i < 100; i++) {
        struct queue q = make("D", PERMANENT + i % 2);
        mqe_queue *other = engine_open(q, ALL);
        mqe_unit *unit = engine_unit();
        for (uint64_t n = 1; n < 80; n++) {
            CHECK_INT(PUT(q, .body = body, .length = n * 370, .correl = n), 0);
        }
        TAKE(q, .correl = 70, .unit = i % 2 == 1 ? unit : NULL);
        TAKE_BY(other, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK);
        CHECK_INT(shut(q.handle, PURGE), 0);
        CHECK_INT(mqe_commit(unit), 0);
        CHECK_INT(shut(other, KEEP), 0);
        CHECK_INT(totals().deleted, 0);
        for (int kind = 0; kind < MQX_AREA_COUNT; kind++) {
            used[kind] = i == 10 ? area[kind].used : used[kind];
            CHECK(i <= 10 || kind == MQX_AREA_CONTEXTS || area[kind].used == used[kind]);
        }
    }
}

/* ---- MQSC DELETE ---- */

TEST(mqe_delete_refuses_open_queues_and_temporary_ones)
{
    engine_begin();
    struct queue p = make("P", PERMANENT), t = make("T", TEMPORARY);
    mqe_unit *unit = engine_unit();
    CHECK_INT(mqe_delete(engine.manager, p.slot, p.generation, 1), MQRC_OBJECT_IN_USE);
    CHECK_INT(mqe_delete(engine.manager, t.slot, t.generation, 1), MQRC_OBJECT_IN_USE);
    CHECK_INT(PUT(p, .text = "m", .unit = unit), 0);
    CHECK_INT(shut(p.handle, KEEP), 0);
    CHECK_INT(mqe_delete(engine.manager, p.slot, p.generation, 1), MQRC_Q_NOT_EMPTY);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(mqe_delete(engine.manager, p.slot, p.generation, 0), MQRC_Q_NOT_EMPTY);
    CHECK_INT(mqe_delete(engine.manager, p.slot, p.generation, 1), 0);
    CHECK_INT(mqe_delete(engine.manager, p.slot, p.generation, 1), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(find("T"), 0);
}

/* ---- ends of the queue manager ---- */

TEST(temporary_queues_are_gone_after_an_orderly_end_a_kill_and_in_every_checkpoint)
{
    engine_begin();
    struct queue q = QUEUE("Q", NPMCLASS, 10);
    for (int round = 0; round < 3; round++) {
        const struct ps_object_name name = engine_name("T");
        const struct attributes attrs =
            engine_attributes((const int[]){DEFTYPE, TEMPORARY, NPMCLASS, 10, 0});
        struct queue t = {0};
        struct mqe_found found;
        CHECK_INT(mqe_open_new(engine.manager, &name, attrs.bytes, attrs.length, ALL, &t.handle,
                               &found), 0);
        engine.handles[engine.handle_count++] = t.handle;
        t.slot = found.slot;
        t.generation = found.generation;
        CHECK_INT(PUT(t, .text = "np"), 0);
        CHECK_INT(PUT(q, .text = "np"), 0);
        if (round == 1) {
            CHECK_INT(PUT(q, .text = "moves the journal", .persistent = 1), 0);
            CHECK_INT(mqe_checkpoint(engine.manager), 0);
        }
        if (round == 0) {
            engine_restart();
            CHECK_STR(peruse(engine_find("Q")), "np"); /* its NPMCLASS(HIGH) ones are there */
        } else {
            engine_kill_and_restart();
        }
        q = engine_find("Q");
        CHECK_INT(find("T"), MQRC_UNKNOWN_OBJECT_NAME);
        CHECK_INT(totals().objects, 1);
        CHECK(is_sound());
    }
}

TEST(the_messages_of_a_temporary_queue_that_was_deleted_are_none_that_the_restart_discarded)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0), t = make("T", TEMPORARY), u = make("U", TEMPORARY);
    mqe_queue *other = engine_open(t, ALL);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "discarded"), 0);
    CHECK_INT(PUT(u, .text = "discarded, too"), 0);
    CHECK_INT(PUT(t, .text = "got"), 0);
    CHECK_STR(TAKE_BY(other, .unit = unit), "got");
    CHECK_INT(PUT(t, .text = "put", .unit = unit), 0);
    CHECK_INT(shut(t.handle, KEEP), 0);
    CHECK_INT(state_of(t), MQX_OBJ_DELETING);
    engine_kill_and_restart();
    CHECK_INT(engine.info.np_discarded, 2);
}

TEST(a_restart_between_the_logical_and_the_physical_deletion_comes_up_without_the_queue)
{
    engine_begin();
    for (int round = 0; round < 2; round++) {
        struct queue q = make("P", PERMANENT);
        (void)engine_open(q, ALL);
        CHECK_INT(PUT(q, .text = "m", .persistent = 1), 0);
        CHECK_INT(shut(q.handle, PURGE), 0);
        CHECK_INT(state_of(q), MQX_OBJ_DELETING);
        if (round == 1) {
            CHECK_INT(mqe_checkpoint(engine.manager), 0);
        }
        engine_kill_and_restart();
        CHECK_INT(totals().objects, 0);
        CHECK_INT(engine.info.messages, 0);
    }
}

TEST(a_slot_that_unjournalled_queues_had_is_never_confused_by_a_restart)
{
    engine_begin();
    for (int round = 0; round < 6; round++) {
        struct queue p = make("P", PERMANENT);
        CHECK_INT(PUT(p, .text = "older", .persistent = 1), 0);
        CHECK_INT(shut(p.handle, PURGE), 0);
        for (int i = 0; i < 3 + round; i++) { /* the slot lives on without a record */
            struct queue t = make("T", TEMPORARY);
            CHECK_INT(t.slot, p.slot);
            CHECK_INT(shut(t.handle, KEEP), 0);
        }
        p = make("P", PERMANENT);
        CHECK_INT(PUT(p, .text = "m", .persistent = 1), 0);
        if (round % 3 == 0) {
            CHECK_INT(mqe_checkpoint(engine.manager), 0);
        }
        engine_kill_and_restart();
        CHECK_INT(totals().objects, 1);
        p = engine_find("P");
        CHECK_STR(drain(p), "m");
        CHECK_INT(shut(p.handle, DELETE), 0);
        engine_kill_and_restart();
        CHECK_INT(totals().objects, 0);
    }
}

/* ---- at the same time ---- */

enum { RACERS = 3, TURNS = 400 };

struct racer {
    pthread_t thread;
    uint32_t number, won, odd;
};

/* Everybody makes the same queue, uses it, deletes it while others may have it open. */
static void *race(void *arg)
{
    struct racer *racer = arg;
    const struct ps_object_name name = engine_name("R");
    for (uint32_t i = 0; i < TURNS; i++) {
        const int definition = (i + racer->number) % 5 == 0 ? PERMANENT : TEMPORARY;
        const struct attributes attrs = engine_attributes((const int[]){DEFTYPE, definition, 0});
        struct queue q = {0};
        struct mqe_found found;
        struct got out;
        struct ps_descriptor d;
        int status = mqe_open_new(engine.manager, &name, attrs.bytes, attrs.length, ALL,
                                  &q.handle, &found);
        racer->won += status == 0;
        q.slot = found.slot;
        q.generation = found.generation;
        if (status == MQRC_OBJECT_ALREADY_EXISTS &&
            mqe_find(engine.manager, 1, name.name, 0, &found) == 0 &&
            mqe_open_direct(engine.manager, found.slot, found.generation, ALL, &q.handle) == 0) {
            q.slot = found.slot;
            q.generation = found.generation;
            status = 0;
        }
        if (status != 0) {
            racer->odd += status != MQRC_OBJECT_ALREADY_EXISTS;
            continue;
        }
        status = engine_put_with(q, &(const struct ask){.text = "m"}, &d);
        racer->odd += status != 0 && status != MQRC_Q_DELETED;
        status = engine_take_with(q.handle, &(const struct ask){.correl = i % 2}, &out);
        racer->odd += status != 0 && status != MQRC_Q_DELETED && status != MQRC_NO_MSG_AVAILABLE;
        status = mqe_close(q.handle, i % 3);
        if (status == MQRC_OPTION_NOT_VALID_FOR_TYPE || status == MQRC_Q_NOT_EMPTY) {
            status = mqe_close(q.handle, KEEP);
        }
        racer->odd += status != 0;
    }
    return NULL;
}

/* The older checkpoint still knows the first object and its messages. */
TEST(a_generation_of_a_deleted_object_never_comes_back)
{
    char newest[96];
    engine_begin();
    const struct queue first = QUEUE("FIRST");
    CHECK_INT(PUT(first, .text = "of the first", .persistent = 1), 0);
    CHECK_INT(mqe_checkpoint(engine.manager), 0);
    engine_close_all();
    CHECK_INT(mqe_delete(engine.manager, first.slot, first.generation, 1), 0);
    CHECK_INT(mqe_checkpoint(engine.manager), 0);
    (void)snprintf(newest, sizeof newest, ENGINE_HOME "/checkpoint/%016" PRIx64 ".psc",
                   engine_region()->journal->checkpoint_begin);
    engine_kill_and_restart();
    const struct queue second = QUEUE("SECOND");
    CHECK_INT(second.slot, first.slot);
    CHECK(second.generation > first.generation);
    CHECK_INT(PUT(second, .text = "of the second", .persistent = 1), 0);
    engine_kill();
    memory_io_flip_bit(engine.files, newest, 8 * 2000 + 3);
    CHECK_INT(engine_attach(), 0);
    CHECK(engine_region()->journal->checkpoint_damaged != 0);
    const struct queue found = engine_find("SECOND");
    CHECK_STR(TAKE(found), "of the second");
    (void)TAKE(found);
    CHECK_INT(got.status, MQRC_NO_MSG_AVAILABLE);
}

TEST(makers_users_and_deleters_of_one_name_at_the_same_time_leave_it_whole)
{
    struct racer racer[RACERS];
    uint32_t won = 0;
    engine_begin();
    for (uint32_t i = 0; i < RACERS; i++) {
        racer[i] = (struct racer){.number = i};
        CHECK_INT(pthread_create(&racer[i].thread, NULL, race, &racer[i]), 0);
    }
    for (uint32_t i = 0; i < RACERS; i++) {
        CHECK_INT(pthread_join(racer[i].thread, NULL), 0);
        CHECK_INT(racer[i].odd, 0);
        won += racer[i].won;
    }
    CHECK(won > 0);
    CHECK_INT(totals().handles, 0);
    CHECK_INT(totals().deleted, 0);
    CHECK(is_sound());
    const uint32_t left = totals().objects; /* a permanent one may have been kept */
    CHECK(left <= 1);
    engine_kill_and_restart();
    CHECK_INT(totals().objects, left);
}

TEST(a_deleted_queue_is_read_for_displays_and_not_when_its_list_is_gone)
{
    engine_begin();
    engine.manager->store.region.header->platform = MQX_PLATFORM_ZOS;
    struct queue q = QUEUE("P", DEFPRTY, 7, DEFTYPE, 2);
    struct ps_object_name name;
    unsigned char list[256];
    uint32_t length = 0;
    struct mqx_object *object = mqx_object(&engine.manager->store.region, q.slot);
    const uint32_t state = object->state, attrs = object->attrs;
    object->state = MQX_OBJ_DELETING;
    CHECK_INT(mqe_read_deleted(engine.manager, q.slot, q.generation, &name, list, sizeof list,
                               &length), 0);
    CHECK(length > 0);
    object->attrs = 0; /* who gives the slot back was killed */
    CHECK_INT(mqe_read_deleted(engine.manager, q.slot, q.generation, &name, list, sizeof list,
                               &length), MQRC_Q_DELETED);
    object->attrs = attrs;
    object->state = state;
    CHECK_INT(mqe_read_deleted(engine.manager, q.slot, q.generation + 1, &name, list, sizeof list,
                               &length), MQRC_UNKNOWN_OBJECT_NAME);
}

TEST_MAIN()
