/* Claims of put_batch.c: a batch does what single puts would, and what it refuses leaves
 * nothing. */
#include "fixtures/batch_fixture.h"

#include <errno.h>
#include <sys/wait.h>

TEST(a_warning_is_counted_and_kept_by_its_row)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    batch_clear();
    ADD(.text = "a", .priority = 9);
    ADD(.text = "b", .priority = 12);
    ADD(.text = "c", .priority = 4);
    CHECK_INT(put_all(q, NULL), MQRC_PRIORITY_EXCEEDS_MAXIMUM);
    CHECK_INT(batch.count, 3);
    CHECK_INT(batch.warnings, 1);
    CHECK_INT(items[1].reason, MQRC_PRIORITY_EXCEEDS_MAXIMUM);
    CHECK_INT(items[0].reason + items[2].reason, 0);
    CHECK_STR(drain(q), "a b c");
}

TEST(what_can_be_known_is_refused_before_the_first_message_is_put)
{
    static const struct {
        struct row row;
        int reason;
    } cases[] = {
        {{.text = "x", .priority = -2}, MQRC_PRIORITY_ERROR},
        {{.text = "x", .persistent = 3}, MQRC_PERSISTENCE_ERROR},
        {{.text = "x", .expiry = -5}, MQRC_EXPIRY_ERROR},
        {{.length = 101}, MQRC_MSG_TOO_BIG_FOR_Q},
    };
    engine_begin();
    struct queue q = QUEUE("Q", MAXMSGL, 100, MAXDEPTH, 100);
    for (size_t i = 0; i < MQX_ARRAY_COUNT(cases); i++) {
        for (int persistent = 0; persistent < 2; persistent++) {
            batch_clear();
            ADD(.text = "a", .persistent = persistent);
            ADD(.text = "b", .persistent = persistent);
            batch_add(&cases[i].row);
            CHECK_INT(put_all(q, NULL), cases[i].reason);
            CHECK_INT(batch.count, 0);
            CHECK_INT(batch.failed, 2);
            CHECK_INT(depth(q), 0);
        }
    }
    batch_clear();
    for (int i = 0; i < 101; i++) {
        ADD(.text = "x");
    }
    CHECK_INT(put_all(q, NULL), MQRC_Q_FULL);
    CHECK_INT(batch.failed, 100);
    CHECK_INT(ALTER(q, "Q", MAXMSGL, 100, MAXDEPTH, 101, PUT_DISABLED, 1), 0);
    batch.count = 101;
    CHECK_INT(put_all(q, NULL), MQRC_PUT_INHIBITED);
    CHECK_INT(ALTER(q, "Q", MAXMSGL, 100, MAXDEPTH, 101), 0);
    offsets[7] = -1;
    batch.count = 101;
    CHECK_INT(put_all(q, NULL), MQRC_BUFFER_LENGTH_ERROR);
    offsets[7] = 7;
    batch.count = 101;
    CHECK_INT(put_all(q, NULL), 0);
    CHECK_INT(depth(q), 101);
    CHECK(is_quiet());
}

TEST(a_persistent_batch_is_there_after_a_kill_and_uncommitted_ones_are_not)
{
    engine_begin();
    struct queue q = QUEUE("Q", MAXMSGL, 200000);
    mqe_unit *unit = engine_unit();
    batch_clear();
    for (int i = 0; i < 150; i++) {
        ADD(.length = i % 10 == 0 ? 9000 : 100, .persistent = i % 7 != 0, .priority = i % 10);
    }
    CHECK_INT(put_all(q, NULL), 0);
    batch.count = 20;
    CHECK_INT(put_all(q, unit), 0);
    CHECK_INT(mqe_unit_count(unit), 20);
    CHECK_INT(depth(q), 170);
    engine_kill_and_restart();
    q = engine_find("Q");
    CHECK_INT(depth(q), 128); /* of 150 every seventh was not persistent */
    CHECK_INT(get_all(q, NULL), 0);
    CHECK_INT(batch.count, 128);
    for (uint32_t i = 1; i < batch.count; i++) {
        CHECK(items[i].d.placement < items[i - 1].d.placement ||
              (items[i].d.placement == items[i - 1].d.placement &&
               items[i].number > items[i - 1].number));
    }
    engine_kill_and_restart();
    CHECK_INT(depth(engine_find("Q")), 0);
}

TEST(long_bodies_come_whole_persistent_or_not_and_in_the_journal_alone)
{
    enum { LENGTH = 300000 };
    engine_begin();
    struct queue q = QUEUE("Q", MAXMSGL, LENGTH);
    for (int persistent = 0; persistent < 2; persistent++) {
        batch_clear();
        ADD(.length = 4097, .persistent = persistent);
        ADD(.length = LENGTH, .persistent = persistent);
        ADD(.length = 10, .persistent = persistent);
        CHECK_INT(put_all(q, NULL), 0);
        if (persistent != 0) {
            engine_kill_and_restart();
            q = engine_find("Q");
        }
        memset(bodies, 0, sizeof bodies);
        CHECK_INT(get_all(q, NULL), 0);
        CHECK_INT(batch.count, 3);
        for (uint32_t i = 0; i < batch.count; i++) {
            const int64_t length = offsets[i + 1] - offsets[i];
            CHECK_INT(length, i == 0 ? 4097 : i == 1 ? LENGTH : 10);
            for (int64_t k = 0; k < length; k++) {
                CHECK_INT(bodies[offsets[i] + k], (unsigned char)(i + (uint32_t)k));
            }
        }
    }
    CHECK(is_quiet());
}

TEST(as_many_waiters_wake_as_messages_come_whether_committed_or_not)
{
    struct waiter waiters[6];
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int persistent = 0; persistent < 2; persistent++) {
        for (int i = 0; i < 6; i++) {
            WAITER(&waiters[i], q, .wait_us = 60000000);
        }
        CHECK(await_waiters(q, 6));
        batch_clear();
        for (int i = 0; i < 6; i++) {
            ADD(.text = "x", .persistent = persistent);
        }
        CHECK_INT(put_all(q, NULL), 0);
        for (int i = 0; i < 6; i++) {
            CHECK_STR(waiter_end(&waiters[i]), "x");
        }
    }
    CHECK_INT(woken_by_bound(), 0);
    CHECK(is_quiet());
}

TEST(quiescing_refuses_only_who_asks_and_a_stop_everybody)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    const struct mqe_destination to = mqe_direct(q.slot, q.generation);
    struct mqe_get how = {.flags = MQE_GET_FAIL_IF_QUIESCING};
    batch_clear();
    ADD(.text = "a");
    CHECK_INT(mqe_end(engine.manager, MQE_END_CONTROLLED), 0);
    CHECK_INT(mqe_put_batch(engine.manager, NULL, &to, &batch, MQE_PUT_FAIL_IF_QUIESCING),
              MQRC_Q_MGR_QUIESCING);
    batch.count = 1;
    CHECK_INT(put_all(q, NULL), 0);
    CHECK_INT(get_with(q, NULL, &how), MQRC_Q_MGR_QUIESCING);
    CHECK_INT(get_all(q, NULL), 0);
    mqx_region_stop(engine_region(), MQX_STOP_ENDED);
    batch.count = 1;
    CHECK_INT(put_all(q, NULL), MQRC_Q_MGR_STOPPING);
    CHECK_INT(get_all(q, NULL), MQRC_Q_MGR_STOPPING);
}

TEST(a_batch_for_which_the_journal_has_no_room_leaves_what_its_count_says)
{
    for (int in_unit = 0; in_unit < 2; in_unit++) {
        struct mqe_settings settings = engine_settings();
        settings.journal_limit = 2 << 20;
        engine_begin_with(&settings);
        struct queue q = QUEUE("Q", 0);
        mqe_unit *unit = engine_unit();
        uint32_t there = 0, open = 0;
        int status = 0;
        for (int i = 0; i < 40 && status == 0; i++) {
            mqe_unit *const of = in_unit != 0 && i > 2 ? unit : NULL; /* or it gets too long */
            batch_clear();
            for (int k = 0; k < 100; k++) {
                ADD(.length = 4000, .persistent = 1);
            }
            status = put_all(q, of);
            there += batch.count;
            open += of != NULL ? batch.count : 0;
        }
        CHECK_INT(status, MQRC_STORAGE_MEDIUM_FULL);
        CHECK(in_unit != 0 ? batch.count > 0 && batch.count < 100 : batch.count == 0);
        CHECK_INT(batch.failed, in_unit != 0 ? batch.count : batch.failed);
        CHECK_INT(mqe_unit_count(unit), open);
        CHECK_INT(mqe_commit(unit), 0);
        CHECK_INT(depth(q), there);
        CHECK(is_quiet());
        engine_kill_and_restart();
        CHECK_INT(depth(engine_find("Q")), there);
    }
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
