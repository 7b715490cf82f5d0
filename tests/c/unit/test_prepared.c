/* Claims of prepared.c and prepare.c: units that are prepared have no process, survive everything,
 * and are ended by name, some of them at once. */
#include "fixtures/dynamic_fixture.h"
#include "fixtures/prepared_fixture.h"

#include <errno.h>

/* ---- preparing ---- */

TEST(a_prepared_unit_has_no_process_and_is_invisible_until_it_is_committed)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "got", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "stays"), 0);
    mqe_unit *unit = engine_unit();
    CHECK_STR(TAKE(q, .unit = unit), "got");
    CHECK_INT(PUT(q, .text = "put", .unit = unit, .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "np", .unit = unit), 0);
    CHECK_INT(prepare(unit, 1), 0);
    CHECK_INT(mqe_unit_count(unit), 0);
    CHECK_STR(peruse(q), "stays");
    CHECK_INT(engine_status(q).got, 1);
    CHECK_INT(engine_status(q).uncommitted, 2);
    const struct mqe_prepared row = only_one();
    const struct ps_xid xid = xid_of(1);
    CHECK(mqx_xid_equal(&row.xid, &xid));
    CHECK_INT(row.puts, 2);
    CHECK_INT(row.gets, 1);
    CHECK_INT(row.nonpersistent, 1);
    CHECK_INT(row.bytes, 8);
    CHECK(row.unit_id != 0 && row.prepared_us != 0);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_INT(prepared_count(), 1);
    CHECK_INT(commit(1), 0);
    CHECK_INT(prepared_count(), 0);
    CHECK_STR(drain(q), "stays put np");
    CHECK_INT(commit(1), MQRC_UOW_NOT_AVAILABLE);
    CHECK(strstr(mqe_error_text(), "PSKT:0x01000000:0x07") != NULL);
    CHECK(is_all_sound());
}

TEST(a_backout_gives_everything_back_in_its_place_and_counts_it)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(PUT(q, .text = "b", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "c"), 0);
    for (uint32_t n = 1; n <= 3; n++) {
        mqe_unit *unit = engine_unit();
        TAKE(q, .unit = unit);
        TAKE(q, .unit = unit);
        CHECK_INT(PUT(q, .text = "never", .unit = unit), 0);
        CHECK_INT(prepare(unit, n), 0);
        CHECK_STR(peruse(q), "c");
        CHECK_INT(back_out(n), 0);
        CHECK_INT(discarded, 0);
        CHECK_STR(peruse(q), "a b c");
        TAKE(q, .flags = MQE_GET_BROWSE_FIRST);
        CHECK_INT(got.backout_count, n);
    }
    engine_kill_and_restart();
    q = engine_find("Q");
    TAKE(q);
    CHECK_STR(got.text, "b");
    CHECK_INT(got.backout_count, 3);
    CHECK(is_all_sound());
}

TEST(a_prepared_unit_survives_restarts_and_is_ended_after_them)
{
    for (int way = 0; way < 4; way++) {
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        CHECK_INT(PUT(q, .text = "a", .persistent = 1), 0);
        CHECK_INT(PUT(q, .text = "np"), 0);
        CHECK_INT(PUT(q, .text = "b", .persistent = 1), 0);
        mqe_unit *unit = engine_unit();
        CHECK_STR(TAKE(q, .unit = unit), "a");
        CHECK_STR(TAKE(q, .unit = unit), "np");
        CHECK_INT(PUT(q, .text = "put", .unit = unit, .persistent = 1), 0);
        CHECK_INT(PUT(q, .text = "np put", .unit = unit), 0);
        CHECK_INT(prepare(unit, 5), 0);
        for (int i = 0; i < 3; i++) {
            way % 2 == 0 ? engine_restart() : engine_kill_and_restart();
            q = engine_find("Q");
            CHECK_STR(peruse(q), "b");
            CHECK_INT(engine_status(q).got, 2);
            CHECK_INT(engine_status(q).uncommitted, 1);
            CHECK_INT(only_one().gets, 2);
            CHECK_INT(only_one().puts, 1);
            CHECK_INT(only_one().nonpersistent, 1);
            CHECK_INT(only_one().bytes, 6);
            CHECK(is_all_sound());
        }
        CHECK_INT(way < 2 ? commit(5) : back_out(5), 0);
        CHECK_STR(peruse(q), way < 2 ? "b put" : "a b");
        CHECK_INT(way < 2 ? 1 : discarded, 1);
        CHECK_INT(prepared_count(), 0);
        CHECK(is_all_sound());
        engine_kill_and_restart();
        q = engine_find("Q");
        CHECK_STR(drain(q), way < 2 ? "b put" : "a b");
        CHECK_INT(prepared_count(), 0);
        CHECK(is_all_sound());
    }
}

TEST(a_refused_preparation_leaves_the_unit_as_it_was)
{
    const struct ps_xid bad[] = {
        {.format_id = 1},
        {.format_id = 1, .gtrid_length = 65},
        {.format_id = 1, .gtrid_length = 1, .bqual_length = 65},
        {.format_id = 1, .gtrid_length = 1, .gtrid = {1, 2}},
        {.format_id = 1, .gtrid_length = 1, .bqual = {1}},
        {.format_id = -1, .gtrid_length = 1},
    };
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit(), *other = engine_unit();
    CHECK_INT(PUT(q, .text = "np"), 0);
    CHECK_INT(PUT(q, .text = "first", .unit = unit), 0);
    CHECK_INT(PUT(q, .text = "second", .unit = other, .persistent = 1), 0);
    CHECK_STR(TAKE(q, .unit = other), "np");
    CHECK_INT(prepare(unit, 1), 0);
    const uint64_t tail = engine_region()->journal->tail;
    const struct ps_xid used = xid_of(1);
    const struct mqx_prepare facts = {.nonpersistent = 1};
    uint64_t lsn = 0;
    CHECK_INT(mqx_prepared_decide(&engine.manager->store, other->context, &used, &facts, &lsn),
              MQRC_UOW_IN_PROGRESS); /* another leader was faster */
    CHECK_INT(prepare(other, 1), MQRC_UOW_IN_PROGRESS);
    CHECK(strstr(mqe_error_text(), "PSKT:0x01000000:0x07") != NULL);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(bad); i++) {
        CHECK_INT(mqe_prepare(other, &bad[i], 0), MQRC_OPTIONS_ERROR);
        CHECK_INT(mqe_commit_prepared(engine.manager, &bad[i], 1), MQRC_OPTIONS_ERROR);
    }
    const struct ps_xid xid = xid_of(2);
    CHECK_INT(mqe_prepare(other, &xid, 4), MQRC_OPTIONS_ERROR);
    CHECK_INT(prepare(unit, 2), MQRC_UOW_NOT_AVAILABLE); /* empty */
    CHECK_INT(engine_region()->journal->tail, tail);
    CHECK_INT(mqe_unit_count(other), 2);
    CHECK_INT(mqe_commit(other), 0);
    CHECK_INT(prepared_count(), 1);
    CHECK_STR(peruse(q), "second");
    CHECK_INT(commit(1), 0);
    CHECK_INT(PUT(q, .text = "third", .unit = unit), 0);
    CHECK_INT(prepare(unit, 1), 0); /* the name is free again */
    CHECK_INT(back_out(1), 0);
    CHECK_STR(drain(q), "first second");
}

TEST(a_preparation_for_which_the_disk_has_no_room_frees_its_name)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    uint32_t number = 0;
    int status = 0;
    memory_io_set_space(engine.files, 0, UINT64_MAX);
    while (status == 0 && number < 20000) {
        CHECK_INT(PUT(q, .text = "np", .unit = unit), 0);
        status = prepare(unit, ++number);
    }
    CHECK_INT(status, MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(prepare(unit, number), MQRC_STORAGE_MEDIUM_FULL); /* not 2128 */
    CHECK_INT(mqe_unit_count(unit), 1);
    memory_io_set_space(engine.files, UINT64_MAX, UINT64_MAX);
    CHECK_INT(prepare(unit, number), 0);
    CHECK_INT(prepared_count(), number);
    CHECK_INT(commit(number), 0);
    CHECK_STR(drain(q), "np");
    CHECK(is_all_sound());
}

TEST(names_that_share_a_chain_leave_it_one_by_one_in_any_order)
{
    enum { MANY = 2500 }; /* more than there are chains */
    engine_begin();
    mqe_unit *unit = engine_unit();
    for (uint32_t number = 1; number <= MANY; number++) {
        const struct ps_xid xid = xid_of(number);
        CHECK_INT(mqe_prepare(unit, &xid, MQE_PREPARE_EMPTY), 0);
    }
    for (uint32_t number = MANY; number > 0; number -= 5) { /* the newest of a chain is its head */
        CHECK_INT(commit(number), 0);
    }
    for (uint32_t number = 1; number <= MANY; number++) {
        CHECK_INT(back_out(number), number % 5 == 0 ? MQRC_UOW_NOT_AVAILABLE : 0);
    }
    CHECK_INT(prepared_count(), 0);
    CHECK(is_all_sound());
}

TEST(an_empty_unit_is_prepared_when_that_is_asked_for_and_lasts_like_any_other)
{
    const struct ps_xid xid = xid_of(9);
    engine_begin();
    mqe_unit *unit = engine_unit();
    CHECK_INT(mqe_prepare(unit, &xid, MQE_PREPARE_EMPTY), 0);
    CHECK_INT(mqe_prepare(unit, &xid, MQE_PREPARE_EMPTY), MQRC_UOW_IN_PROGRESS);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(rows(9), "");
    engine_restart();
    CHECK_INT(only_one().puts + only_one().gets, 0);
    engine_kill_and_restart();
    CHECK_STR(rows(9), "");
    CHECK_INT(commit(9), 0);
    engine_restart();
    CHECK_INT(prepared_count(), 0);
}

TEST(a_unit_that_is_prepared_without_waiting_lasts_once_it_was_reported)
{
    const struct ps_xid xid = xid_of(9), after = xid_of(10);
    for (int how = 0; how < 3; how++) {
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        mqe_unit *unit = engine_unit();
        CHECK_INT(PUT(q, .text = "first", .persistent = 1), 0);
        CHECK_INT(PUT(q, .text = "second", .persistent = 1), 0);
        CHECK_STR(TAKE(q, .unit = unit), "first");
        CHECK_INT(mqe_prepare(unit, &xid, MQE_PREPARE_LAZY), 0);
        CHECK_STR(TAKE(q, .unit = unit), "second");
        CHECK_INT(mqe_prepare(unit, &after, how == 1 ? 0 : MQE_PREPARE_LAZY), 0);
        if (how == 2) {
            CHECK_INT(prepared_count(), 2);
        }
        engine_kill_and_restart();
        q = engine_find("Q");
        CHECK_INT(prepared_count(), how == 0 ? 0 : 2);
        if (how != 0) {
            CHECK_INT(back_out(9), 0);
            CHECK_INT(commit(10), 0);
        }
        CHECK_STR(drain(q), how == 0 ? "first second" : "first");
    }
}

/* ---- what else there is ---- */

TEST(queues_of_a_prepared_unit_are_neither_deleted_nor_cleared_also_after_a_restart)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0), r = QUEUE("R", 0);
    CHECK_INT(PUT(q, .text = "np"), 0);
    mqe_unit *unit = engine_unit();
    CHECK_STR(TAKE(q, .unit = unit), "np");
    CHECK_INT(PUT(r, .text = "put", .unit = unit, .persistent = 1), 0);
    CHECK_INT(prepare(unit, 1), 0);
    for (int i = 0; i < 3; i++) {
        const struct queue all[] = {q, r};
        engine_close_all();
        for (int k = 0; k < 2; k++) {
            CHECK_INT(mqe_delete(engine.manager, all[k].slot, all[k].generation, 1),
                      MQRC_Q_NOT_EMPTY);
            CHECK_INT(mqe_clear(engine.manager, all[k].slot, all[k].generation), MQRC_Q_NOT_EMPTY);
        }
        i % 2 == 0 ? engine_kill_and_restart() : engine_restart();
    }
    CHECK_INT(back_out(1), 0);
    CHECK_INT(mqe_delete(engine.manager, q.slot, q.generation, 0), 0);
    CHECK_INT(mqe_delete(engine.manager, r.slot, r.generation, 0), 0);
    engine_kill_and_restart();
    CHECK(is_all_sound());
}

TEST(messages_of_a_temporary_queue_end_with_it_and_are_counted)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0), t = make("T", TEMPORARY);
    CHECK_INT(PUT(t, .text = "temporary"), 0);
    CHECK_INT(PUT(q, .text = "np"), 0);
    mqe_unit *unit = engine_unit();
    CHECK_STR(TAKE(t, .unit = unit), "temporary");
    CHECK_STR(TAKE(q, .unit = unit), "np");
    CHECK_INT(PUT(q, .text = "lost", .unit = unit), 0);
    CHECK_INT(prepare(unit, 1), 0);
    CHECK_STR(rows(1), "temporary np +lost");
    CHECK_INT(shut(t.handle, KEEP), 0);
    CHECK_STR(rows(1), "temporary np +lost");
    CHECK_INT(PUT(q, .text = "other"), 0);
    engine_kill_and_restart();
    CHECK_INT(engine.info.np_discarded, 2); /* "lost" and "other"; the queue's own went with it */
    CHECK_STR(rows(1), "np");
    CHECK_INT(only_one().gets, 1);
    engine_kill_and_restart();
    CHECK_INT(engine.info.np_discarded, 0);
    CHECK_INT(back_out(1), 0);
    CHECK_INT(discarded, 1);
    CHECK(is_all_sound());
}

TEST(an_orderly_end_counts_what_it_loses_of_prepared_units)
{
    uint64_t lost = 0;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "got"), 0);
    CHECK_INT(PUT(q, .text = "stays"), 0);
    mqe_unit *unit = engine_unit();
    CHECK_STR(TAKE(q, .unit = unit), "got");
    CHECK_INT(PUT(q, .text = "a", .unit = unit), 0);
    CHECK_INT(PUT(q, .text = "b", .unit = unit), 0);
    CHECK_INT(prepare(unit, 1), 0);
    CHECK_INT(engine_detach(MQE_DETACH_ORDERLY, &lost), 0);
    CHECK_INT(lost, 3);
    CHECK_INT(engine_attach(), 0);
    CHECK_INT(engine.info.clean, 1);
    CHECK_STR(rows(1), "got");
}

TEST(images_of_an_orderly_end_come_back_each_time_while_a_prepared_unit_keeps_the_journal)
{
    engine_begin();
    struct queue q = QUEUE("Q", NPMCLASS, 10);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "put", .unit = unit, .persistent = 1), 0);
    CHECK_INT(prepare(unit, 1), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(PUT(q, .text = "high", .priority = 3), 0);
        engine_restart();
        CHECK_INT(engine.info.clean, 1);
        q = engine_find("Q");
        CHECK_INT(depth(q), i + 2);
        CHECK_INT(engine_status(q).uncommitted, 1);
    }
    engine_kill_and_restart(); /* the image was used up */
    q = engine_find("Q");
    CHECK_INT(depth(q), 1);
    CHECK_INT(PUT(q, .text = "last"), 0);
    engine_restart();
    CHECK_INT(commit(1), 0);
    engine_restart();
    CHECK_STR(drain(engine_find("Q")), "put last");
}

TEST(checkpoints_keep_what_a_prepared_unit_needs)
{
    static char body[50000];
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    memset(body, 'x', sizeof body);
    CHECK_INT(PUT(q, .text = "before", .persistent = 1), 0);
    CHECK_INT(mqe_checkpoint(engine.manager), 0);
    mqe_unit *unit = engine_unit();
    CHECK_STR(TAKE(q, .unit = unit), "before");
    CHECK_INT(PUT(q, .text = "put", .unit = unit, .persistent = 1), 0);
    CHECK_INT(prepare(unit, 1), 0);
    for (int i = 0; i < 200; i++) { /* several segments */
        CHECK_INT(PUT(q, .body = body, .length = sizeof body, .persistent = 1), 0);
        CHECK_INT(TAKE(q)[0], 'x');
        if (i % 20 == 0) {
            CHECK_INT(mqe_maintain(engine.manager), 0);
            CHECK_INT(mqe_checkpoint(engine.manager), 0);
        }
    }
    engine_kill_and_restart();
    CHECK_STR(rows(1), "before +put");
    engine_restart();
    CHECK_STR(rows(1), "before +put");
    struct mqe_manager_status before, after;
    CHECK_INT(mqe_status(engine.manager, &before), 0);
    CHECK_INT(commit(1), 0);
    CHECK_STR(TAKE(engine_find("Q")), "put");
    CHECK_INT(mqe_checkpoint(engine.manager), 0);
    CHECK_INT(PUT(engine_find("Q"), .text = "between", .persistent = 1), 0);
    CHECK_STR(TAKE(engine_find("Q")), "between");
    CHECK_INT(mqe_checkpoint(engine.manager), 0); /* the older one needs them no more either */
    CHECK_INT(mqe_status(engine.manager, &after), 0);
    CHECK(after.segments < before.segments); /* nothing keeps them any more */
    engine_kill_and_restart();
    CHECK_STR(drain(engine_find("Q")), "");
}

TEST(a_unit_ended_before_a_checkpoint_that_keeps_a_part_of_its_records_is_over)
{
    for (int way = 0; way < 2; way++) {
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        CHECK_INT(PUT(q, .text = "a", .persistent = 1), 0);
        mqe_unit *unit = engine_unit(), *keeps = engine_unit();
        CHECK_STR(TAKE(q, .unit = unit), "a");
        CHECK_INT(PUT(q, .text = "kept", .unit = keeps, .persistent = 1), 0);
        CHECK_INT(prepare(keeps, 7), 0);
        CHECK_INT(PUT(q, .text = "put", .unit = unit, .persistent = 1), 0);
        CHECK_INT(prepare(unit, 1), 0);
        CHECK_INT(way == 0 ? commit(1) : back_out(1), 0);
        CHECK_INT(mqe_checkpoint(engine.manager), 0);
        engine_kill_and_restart();
        CHECK_STR(peruse(engine_find("Q")), way == 0 ? "put" : "a");
        CHECK_STR(rows(7), "+kept");
        CHECK_INT(prepared_count(), 1);
        CHECK(is_all_sound());
    }
}

/* ---- size ---- */

TEST(a_unit_larger_than_the_ring_is_prepared_read_and_ended)
{
    static char body[30000];
    for (int way = 0; way < 2; way++) {
        engine_begin();
        struct queue q = QUEUE("Q", MAXDEPTH, 100000), r = QUEUE("R", MAXDEPTH, 100000);
        for (int i = 0; i < 300; i++) { /* 9 MB, 4.5 of them to be written at the preparation */
            memset(body, 'a' + i % 26, sizeof body);
            CHECK_INT(PUT(q, .body = body, .length = sizeof body, .persistent = i % 2), 0);
        }
        mqe_unit *unit = engine_unit();
        for (int i = 0; i < 300; i++) {
            CHECK_INT(TAKE(q, .unit = unit)[0], 'a' + i % 26);
            if (i % 3 == 0) {
                CHECK_INT(PUT(r, .body = body, .length = 20000, .unit = unit, .persistent = 1), 0);
            }
        }
        CHECK_INT(prepare(unit, 1), 0);
        CHECK_INT(depth(q), 0);
        for (int restart = 0; restart < 2; restart++) {
            struct mqe_prepared_cursor cursor = {0};
            uint32_t seen = 0;
            do {
                CHECK_INT(browse_some(1, &cursor, 25, BODIES), 0);
                for (uint32_t i = 0; i < batch.count; i++, seen++) {
                    const bool put = seen % 4 == 1;
                    CHECK_INT(items[i].work, put ? MQE_ITEM_PUT : MQE_ITEM_GOT);
                    CHECK_INT(items[i].length, put ? 20000 : 30000);
                    const int n = (int)(seen / 4 * 3 + (seen % 4 == 0 ? 0 : seen % 4 - 1));
                    CHECK(put || bodies[offsets[i] + 29999] == 'a' + n % 26);
                }
            } while (batch.count != 0);
            CHECK_INT(seen, 400);
            engine_kill_and_restart();
        }
        CHECK_INT(way == 0 ? commit(1) : back_out(1), 0);
        CHECK_INT(depth(engine_find("Q")), way == 0 ? 0 : 150);
        CHECK_INT(depth(engine_find("R")), way == 0 ? 100 : 0);
        CHECK(is_all_sound());
        engine_restart();
        CHECK_INT(depth(engine_find("Q")), way == 0 ? 0 : 150);
        CHECK_INT(depth(engine_find("R")), way == 0 ? 100 : 0);
    }
}

static void prepare_many(struct queue q, uint32_t count)
{
    mqe_unit *unit = engine_unit();
    for (uint32_t n = 1; n <= count; n++) {
        CHECK_INT(PUT(q, .body = &n, .length = sizeof n, .unit = unit, .persistent = n % 2), 0);
        CHECK_INT(prepare(unit, n), 0);
    }
}

static struct ps_xid many[MQE_PREPARED_MAX + 1];

TEST(four_thousand_units_are_committed_or_backed_out_as_one)
{
    for (int way = 0; way < 2; way++) {
        engine_begin();
        struct queue q = QUEUE("Q", MAXDEPTH, 100000);
        prepare_many(q, MQE_PREPARED_MAX);
        for (uint32_t i = 0; i < MQE_PREPARED_MAX; i++) {
            many[i] = xid_of(MQE_PREPARED_MAX - i);
        }
        many[MQE_PREPARED_MAX] = xid_of(1000000);
        const uint64_t flushes = engine_region()->journal->flushes;
        CHECK_INT(mqe_commit_prepared(engine.manager, many, MQE_PREPARED_MAX + 1),
                  MQRC_OPTIONS_ERROR);
        CHECK_INT(mqe_commit_prepared(engine.manager, many, 0), MQRC_OPTIONS_ERROR);
        CHECK_INT(mqe_commit_prepared(engine.manager, many + 1, MQE_PREPARED_MAX),
                  MQRC_UOW_NOT_AVAILABLE);
        CHECK(strstr(mqe_error_text(), "0x40420f00") != NULL);
        many[MQE_PREPARED_MAX] = many[100];
        CHECK_INT(mqe_commit_prepared(engine.manager, many + 1, MQE_PREPARED_MAX),
                  MQRC_OPTIONS_ERROR);
        CHECK(strstr(mqe_error_text(), "twice") != NULL);
        CHECK_INT(prepared_count(), MQE_PREPARED_MAX);
        CHECK_INT(engine_region()->journal->flushes, flushes);
        CHECK_INT(way == 0 ? mqe_commit_prepared(engine.manager, many, MQE_PREPARED_MAX)
                           : mqe_backout_prepared(engine.manager, many, MQE_PREPARED_MAX,
                                                  &discarded), 0);
        CHECK_INT(engine_region()->journal->flushes, flushes + 1);
        CHECK_INT(prepared_count(), 0);
        CHECK_INT(depth(q), way == 0 ? MQE_PREPARED_MAX : 0);
        struct mqe_manager_status status;
        CHECK_INT(mqe_status(engine.manager, &status), 0);
        CHECK_INT(status.prepared, 0);
        CHECK_INT(status.units, 0);
        engine_kill_and_restart();
        CHECK_INT(depth(engine_find("Q")), way == 0 ? MQE_PREPARED_MAX / 2 : 0);
        CHECK_INT(prepared_count(), 0);
        CHECK(is_all_sound());
    }
}

TEST(a_list_has_the_oldest_unit_first_and_the_number_of_units)
{
    struct mqe_prepared some[10];
    uint32_t count = 0;
    engine_begin();
    prepare_many(QUEUE("Q", 0), 20);
    CHECK_INT(mqe_prepared_list(engine.manager, some, 10, &count), 0);
    CHECK_INT(count, 20);
    for (uint32_t i = 1; i < 10; i++) {
        CHECK(some[i - 1].prepared_us < some[i].prepared_us);
        CHECK(some[i - 1].unit_id < some[i].unit_id);
    }
    struct mqe_unit_status unit;
    CHECK_INT(mqe_units(engine.manager, &unit, 1, &count), 0);
    CHECK_INT(count, 0);
}

/* ---- no room ---- */

TEST(a_prepared_unit_outlasts_a_journal_that_is_full_and_is_ended_in_it)
{
    static char body[60000];
    for (int way = 0; way < 2; way++) {
        struct mqe_settings settings = engine_settings();
        settings.journal_limit = 4 << 20;
        engine_begin_with(&settings);
        struct queue q = QUEUE("Q", 0), busy = QUEUE("BUSY", 0);
        mqe_unit *unit = engine_unit();
        int status = 0;
        CHECK_INT(PUT(q, .text = "a", .persistent = 1), 0);
        CHECK_INT(PUT(q, .text = "b"), 0);
        CHECK_STR(TAKE(q, .unit = unit), "a");
        CHECK_STR(TAKE(q, .unit = unit), "b");
        CHECK_INT(prepare(unit, 1), 0);
        for (int i = 0; i < 200 && status == 0; i++) {
            status = PUT(busy, .body = body, .length = sizeof body, .persistent = 1);
            CHECK_INT(mqe_maintain(engine.manager), 0);
        }
        CHECK_INT(status, MQRC_STORAGE_MEDIUM_FULL);
        while (depth(busy) > 0) {
            TAKE(busy);
        }
        CHECK_INT(PUT(busy, .text = "np"), 0);
        CHECK_STR(TAKE(busy, .unit = unit), "np");
        CHECK_STR(rows(1), "a b");
        memory_io_set_space(engine.files, 0, UINT64_MAX); /* and the disk is full */
        CHECK_INT(way == 0 ? commit(1) : back_out(1), 0);
        CHECK_STR(peruse(q), way == 0 ? "" : "a b");
        memory_io_set_space(engine.files, UINT64_MAX, UINT64_MAX);
        CHECK_INT(mqe_backout(unit), 0);
        CHECK_STR(drain(q), way == 0 ? "" : "a b"); /* "a" lies in the oldest segment */
        CHECK_INT(mqe_maintain(engine.manager), 0);
        CHECK_INT(mqe_checkpoint(engine.manager), 0);
        CHECK_INT(PUT(busy, .body = body, .length = sizeof body, .persistent = 1), 0);
        engine_kill_and_restart();
        CHECK_STR(drain(engine_find("Q")), "");
        CHECK_INT(depth(engine_find("BUSY")), 1);
    }
}

TEST(a_prepared_unit_leaves_the_journal_to_others_however_much_they_write)
{
    static char body[60000];
    for (int way = 0; way < 2; way++) {
        struct mqe_settings settings = engine_settings();
        settings.journal_limit = 4 << 20;
        engine_begin_with(&settings);
        struct queue q = QUEUE("Q", 0), busy = QUEUE("BUSY", 0);
        mqe_unit *unit = engine_unit();
        CHECK_INT(PUT(q, .text = "a", .persistent = 1), 0);
        CHECK_STR(TAKE(q, .unit = unit), "a");
        CHECK_INT(PUT(q, .text = "b", .unit = unit, .persistent = 1), 0);
        CHECK_INT(prepare(unit, 1), 0);
        for (int i = 0; i < 300; i++) { /* 18 MB */
            CHECK_INT(PUT(busy, .body = body, .length = sizeof body, .persistent = 1), 0);
            TAKE(busy);
            CHECK_INT(got.status, 0);
            CHECK_INT(mqe_maintain(engine.manager), 0);
            if (i % 60 == 59) {
                engine_kill_and_restart();
                busy = engine_find("BUSY");
            }
        }
        CHECK_STR(rows(1), "a +b");
        CHECK_INT(way == 0 ? commit(1) : back_out(1), 0);
        engine_kill_and_restart();
        CHECK_STR(drain(engine_find("Q")), way == 0 ? "b" : "a");
    }
}

TEST(images_for_which_the_journal_has_no_room_leave_the_unit_open)
{
    static char body[60000];
    struct mqe_settings settings = engine_settings();
    settings.journal_limit = 2 << 20;
    engine_begin_with(&settings);
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (int i = 0; i < 60; i++) {
        CHECK_INT(PUT(q, .body = body, .length = sizeof body), 0);
        TAKE(q, .unit = unit);
        CHECK_INT(got.status, 0);
    }
    CHECK_INT(PUT(q, .text = "put", .unit = unit, .persistent = 1), 0);
    CHECK_INT(prepare(unit, 1), MQRC_STORAGE_MEDIUM_FULL);
    CHECK_INT(prepared_count(), 0);
    CHECK_INT(mqe_unit_count(unit), 61);
    CHECK_INT(mqe_commit(unit), 0); /* images and all: they mean nothing */
    engine_kill_and_restart();
    CHECK_STR(drain(engine_find("Q")), "put");
    CHECK(is_all_sound());
}

TEST(a_second_attempt_to_prepare_writes_images_again_and_they_count_once)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(PUT(q, .text = "b", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "c"), 0);
    mqe_unit *unit = engine_unit(), *other = engine_unit();
    for (int i = 0; i < 3; i++) {
        TAKE(q, .unit = unit);
    }
    CHECK_INT(PUT(q, .text = "d", .unit = other, .persistent = 1), 0);
    /* what a failed attempt leaves: the images of the unit, and the unit open */
    struct ps_descriptor d = {.md_version = 2};
    const struct ps_taken taken = {0};
    const struct mqx_record_head head = {
        .type = PS_REC_TAKEN,
        .unit_id = mqx_unit_id(&engine.manager->store, unit->context),
        .object = q.slot,
        .object_gen = q.generation,
        .number = mqx_message(engine_region(),
                              mqx_context(engine_region(), unit->context)->head)->number,
    };
    unsigned char *record = mqx_scratch(1024);
    const uint32_t length = mqx_encode_taken(record, &head, &d, NULL, &taken, NULL, "a", 1);
    CHECK_INT(mqx_unit_append(&engine.manager->store, unit->context, record, length, 0, 0), 0);
    CHECK_INT(prepare(unit, 1), 0);
    CHECK_INT(prepare(other, 2), 0);
    engine_kill_and_restart();
    CHECK_STR(rows(1), "a b c");
    CHECK_STR(rows(2), "+d");
    CHECK_INT(back_out(1), 0);
    CHECK_INT(discarded, 2);
    CHECK_STR(drain(engine_find("Q")), "b");
    CHECK(is_all_sound());
}

/* ---- the medium ---- */

/* Only what was flushed is there after a power cut: the file as it was at the last flush. */
static uint32_t dsyncs;

static void count_writes(void *arg, enum memory_op op, uint64_t number)
{
    (void)arg;
    (void)number;
    dsyncs += op == MEMORY_WRITE || op == MEMORY_SYNC;
}

TEST(no_preparation_and_no_end_returns_before_its_flush)
{
    const struct ps_xid empty = xid_of(2);
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    const struct mqx_journal *journal = engine_region()->journal;
    CHECK_INT(PUT(q, .text = "a", .unit = unit, .persistent = 1), 0);
    memory_io_set_hook(engine.files, count_writes, NULL);
    for (int step = 0; step < 4; step++) {
        const uint64_t tail = journal->tail;
        dsyncs = 0;
        CHECK_INT(step == 0 ? prepare(unit, 1)
                  : step == 1 ? commit(1)
                  : step == 2 ? mqe_prepare(unit, &empty, MQE_PREPARE_EMPTY)
                              : back_out(2), 0);
        CHECK(dsyncs > 0);
        CHECK(journal->durable > tail || step == 0);
        CHECK_INT(journal->batch_records, 0);
    }
    memory_io_set_hook(engine.files, NULL, NULL);
}

TEST(a_preparation_whose_flush_fails_never_says_yes_and_stops_everything)
{
    const struct memory_fault fault = {.kind = MEMORY_FAULT_FLUSH, .at = 1, .for_ever = true,
                                       .ops = 1u << MEMORY_WRITE | 1u << MEMORY_SYNC,
                                       .error = EIO};
    for (int what = 0; what < 3; what++) {
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        mqe_unit *unit = engine_unit();
        CHECK_INT(PUT(q, .text = "a", .unit = unit, .persistent = 1), 0);
        if (what > 0) {
            CHECK_INT(prepare(unit, 1), 0);
        }
        memory_io_set_fault(engine.files, &fault);
        CHECK_INT(what == 0 ? prepare(unit, 1) : what == 1 ? commit(1) : back_out(1),
                  MQRC_CONNECTION_BROKEN);
        CHECK_INT(PUT(q, .text = "b"), MQRC_CONNECTION_BROKEN);
        memory_io_set_fault(engine.files, NULL);
        engine_kill_and_restart();
        const uint32_t prepared = prepared_count(), shown = depth(engine_find("Q"));
        CHECK(prepared + shown <= 1 || engine_status(engine_find("Q")).uncommitted == 1);
        CHECK(is_all_sound());
    }
}

/* ---- reading ---- */

TEST(a_browse_shows_what_was_got_and_put_in_the_order_of_the_calls_also_after_restarts)
{
    static char longer[ENGINE_TEXT];
    memset(longer, 'L', sizeof longer);
    engine_begin();
    struct queue q = QUEUE("Q", 0), r = QUEUE("R", 0);
    CHECK_INT(PUT(q, .text = "p1", .persistent = 1, .priority = 4), 0);
    CHECK_INT(PUT(q, .text = "n1", .priority = 9, .correl = 77, .expiry = 100000), 0);
    CHECK_INT(PUT(r, .text = "n2"), 0);
    CHECK_INT(PUT(r, .body = longer, .length = 5000), 0);
    CHECK_INT(PUT(r, .body = longer, .length = 90000), 0);
    CHECK_INT(PUT(r, .body = longer, .length = 70000, .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = ""), 0);
    mqe_unit *unit = engine_unit();
    CHECK_STR(TAKE(r, .unit = unit), "n2");
    CHECK_STR(TAKE(q, .unit = unit), "n1");
    CHECK_INT(PUT(q, .text = "put", .unit = unit, .persistent = 1, .group = 5), 0);
    CHECK_INT(TAKE(r, .unit = unit)[4999], 'L');
    CHECK_STR(TAKE(q, .unit = unit), "p1");
    CHECK_INT(TAKE(r, .unit = unit)[89999], 'L');
    CHECK_INT(TAKE(r, .unit = unit)[69999], 'L');
    CHECK_STR(TAKE(q, .unit = unit), "");
    CHECK_INT(prepare(unit, 1), 0);
    const char *want =
        "n2 n1 +put LLLLLLLLLLLLLLLLLLLL p1 LLLLLLLLLLLLLLLLLLLL LLLLLLLLLLLLLLLLLLLL ";
    CHECK_STR(rows(1), want);
    for (int restart = 0; restart < 3; restart++) {
        restart % 2 == 0 ? engine_kill_and_restart() : engine_restart();
        for (uint32_t a_call = 1; a_call < 10; a_call += 2) {
            CHECK_STR(rows_from(1, 0, a_call), want);
        }
        struct mqe_prepared_cursor cursor = {.index = 1};
        CHECK_INT(browse_some(1, &cursor, ROWS, BODIES), 0);
        CHECK_INT(batch.count, 7);
        CHECK_INT(items[0].d.priority, 9);
        CHECK_INT(items[0].d.persistence, 0);
        CHECK_INT(number_of(items[0].d.correl_id), 77);
        CHECK(items[0].expiry > 0 && items[0].expiry <= 100000);
        CHECK_INT(items[0].ext.msg_seq_number, 1);
        CHECK_INT(number_of(items[1].ext.group_id), 5);
        CHECK_INT(offsets[5] - offsets[4], 90000);
        for (int64_t i = offsets[2]; i < offsets[6]; i++) {
            CHECK(bodies[i] == 'L' || (i >= offsets[3] && i < offsets[4]));
        }
        CHECK_INT(cursor.index, 8);
        CHECK_INT(browse_some(1, &cursor, ROWS, BODIES), 0);
        CHECK_INT(batch.count, 0);
    }
    q = engine_find("Q");
    r = engine_find("R");
    CHECK_INT(back_out(1), 0);
    CHECK_INT(discarded, 5);
    CHECK_STR(drain(q), "p1");
    CHECK_INT(depth(r), 1);
    CHECK(is_all_sound());
}

TEST(an_image_keeps_the_backout_count_and_a_cursor_from_before_a_restart_its_place)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0), r = QUEUE("R", 0);
    mqe_unit *unit = engine_unit();
    for (int i = 0; i < 7; i++) {
        CHECK_INT(PUT(r, .text = "other entries after the restart"), 0);
    }
    CHECK_INT(PUT(q, .text = "lost", .unit = unit), 0);
    CHECK_INT(PUT(q, .text = "np"), 0);
    CHECK_INT(PUT(q, .text = "p", .persistent = 1), 0);
    mqe_unit *first = engine_unit();
    CHECK_STR(TAKE(q, .unit = first), "np");
    CHECK_INT(mqe_backout(first), 0);
    CHECK_STR(TAKE(q, .unit = unit), "np");
    CHECK_STR(TAKE(q, .unit = unit), "p");
    CHECK_INT(PUT(q, .text = "last", .unit = unit, .persistent = 1), 0);
    CHECK_INT(prepare(unit, 1), 0);
    struct mqe_prepared_cursor cursor = {0};
    CHECK_INT(browse_some(1, &cursor, 2, BODIES), 0);
    CHECK_INT(items[1].d.backout_count, 1);
    for (int restart = 0; restart < 2; restart++) {
        engine_kill_and_restart();
        struct mqe_prepared_cursor from = {0}, old = cursor;
        CHECK_INT(browse_some(1, &from, 1, BODIES), 0);
        CHECK(memcmp(bodies, "np", 2) == 0);
        CHECK_INT(items[0].d.backout_count, 1);
        CHECK_INT(browse_some(1, &old, 1, BODIES), 0); /* the third row now: "lost" is */
        CHECK(batch.count == 1 && memcmp(bodies, "last", 4) == 0);
    }
    CHECK_INT(back_out(1), 0);
    CHECK_INT(discarded, 1);
    CHECK_STR(drain(engine_find("Q")), "p");
}

TEST(a_browse_ends_where_the_room_does_and_goes_on_there)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (int i = 0; i < 10; i++) {
        char text[20];
        snprintf(text, sizeof text, "message %d", i);
        CHECK_INT(PUT(q, .text = text, .unit = unit, .persistent = i % 2), 0);
    }
    CHECK_INT(prepare(unit, 1), 0);
    struct mqe_prepared_cursor cursor = {0};
    CHECK_INT(browse_some(1, &cursor, 8, 50), 0);
    CHECK_INT(batch.count, 5);
    CHECK_INT(batch.needed, 9);
    CHECK_INT(browse_some(1, &cursor, 8, 8), MQRC_TRUNCATED_MSG_FAILED);
    CHECK_INT(batch.needed, 9);
    CHECK_INT(cursor.index, 5);
    CHECK_INT(browse_some(1, &cursor, 3, 50), 0);
    CHECK_INT(batch.count, 3);
    CHECK(memcmp(bodies, "message 5message 6message 7", 27) == 0);
    engine_kill_and_restart(); /* the np ones are gone; the cursor's entry is another's */
    CHECK_STR(rows_from(1, 1, 2), "+message 3 +message 5 +message 7 +message 9");
    cursor.index = 4;
    CHECK_INT(browse_some(1, &cursor, 8, 50), 0);
    CHECK_INT(batch.count, 1);
    CHECK(memcmp(bodies, "message 9", 9) == 0);
    CHECK_INT(commit(1), 0);
    CHECK_INT(browse_some(1, &cursor, 8, 50), MQRC_UOW_NOT_AVAILABLE);
    CHECK_INT(batch.count, 0);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
