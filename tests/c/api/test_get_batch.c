/* Claims of get_batch.c: a batch takes what single gets would, and a failed one gives it back. */
#include "fixtures/batch_fixture.h"
#include "os/interrupt.h"

#include <errno.h>

TEST(a_batch_comes_out_by_priority_then_arrival_with_every_field)
{
    engine_begin();
    struct queue q = QUEUE("Q", DEFPRTY, 3, DEFPSIST, 1);
    batch_clear();
    ADD(.text = "a", .priority = 1);
    ADD(.text = "b", .priority = 9, .msg = 42, .persistent = 1);
    ADD(.text = "c", .priority = -1, .persistent = 2);
    ADD(.text = "d", .priority = 9, .group = 7);
    ADD(.text = "", .priority = 5, .expiry = 6000);
    CHECK_INT(put_all(q, NULL), 0);
    CHECK_INT(batch.count, 5);
    CHECK_INT(items[2].d.priority, 3);
    CHECK_INT(items[2].d.persistence, 1);
    CHECK(items[1].lsn != 0 && items[2].lsn > items[1].lsn && items[0].lsn == 0);
    CHECK(items[4].number > items[3].number);
    CHECK_INT(get_all(q, NULL), 0);
    CHECK_STR(texts(), "b d  c a");
    CHECK_INT(number_of(items[0].d.msg_id), 42);
    CHECK_INT(items[0].d.has_ext, 0);
    CHECK_INT(items[0].ext.msg_seq_number, 1);
    CHECK_INT(items[0].ext.reply_to_q[47], ' ');
    CHECK_INT(number_of(items[1].ext.group_id), 7);
    CHECK(items[2].expiry > 5900 && items[2].expiry <= 6000);
    CHECK_INT(items[3].expiry, -1);
    CHECK(is_quiet());
    CHECK_INT(depth(q), 0);
}

TEST(room_for_messages_and_bytes_ends_a_batch_and_the_next_goes_on)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    struct mqe_get how = {.max_bytes = 25};
    for (int persistent = 0; persistent < 2; persistent++) {
        batch_clear();
        for (int i = 0; i < 10; i++) {
            ADD(.length = 10, .persistent = persistent);
        }
        ADD(.length = 2000, .persistent = persistent);
        CHECK_INT(put_all(q, NULL), 0);
        batch_clear();
        batch.capacity = 1;
        CHECK_INT(get_with(q, NULL, &how), 0);
        CHECK_INT(batch.count, 1);
        CHECK_INT(batch.needed, 0);
        batch.capacity = MOST;
        CHECK_INT(get_with(q, NULL, &how), 0);
        CHECK_INT(batch.count, 2);
        CHECK_INT(batch.needed, 10);
        how.max_bytes = 0;
        batch.body_capacity = 1999;
        CHECK_INT(get_with(q, NULL, &how), 0);
        CHECK_INT(batch.count, 7);
        CHECK_INT(batch.needed, 2000);
        CHECK_INT(get_with(q, NULL, &how), MQRC_TRUNCATED_MSG_FAILED);
        CHECK_INT(batch.count, 0);
        CHECK_INT(batch.needed, 2000);
        CHECK_INT(depth(q), 1);
        how.max_bytes = 25; /* the first is got whatever that says */
        batch.body_capacity = 2000;
        CHECK_INT(get_with(q, NULL, &how), 0);
        CHECK_INT(batch.count, 1);
        CHECK_INT(get_with(q, NULL, &how), MQRC_NO_MSG_AVAILABLE);
    }
    CHECK(is_quiet());
}

TEST(persistent_only_and_up_to_leave_the_others_alone)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    batch_clear();
    for (int i = 0; i < 300; i++) {
        ADD(.length = 8, .persistent = i % 3 == 0, .priority = i % 2);
    }
    CHECK_INT(put_all(q, NULL), 0);
    struct mqe_get how = {.match = MQE_MATCH_PERSISTENT | MQE_MATCH_UP_TO,
                          .up_to = items[199].number};
    batch_clear();
    CHECK_INT(get_with(q, NULL, &how), 0);
    CHECK_INT(batch.count, 67);
    for (uint32_t i = 0; i < batch.count; i++) {
        CHECK_INT(items[i].d.persistence, 1);
        CHECK(items[i].number <= how.up_to);
    }
    how.match = MQE_MATCH_PERSISTENT;
    CHECK_INT(get_with(q, NULL, &how), 0);
    CHECK_INT(batch.count, 33);
    CHECK_INT(get_with(q, NULL, &how), MQRC_NO_MSG_AVAILABLE);
    CHECK_INT(depth(q), 200);
    how.match = MQE_MATCH_MSG_ID;
    CHECK_INT(get_with(q, NULL, &how), MQRC_MATCH_OPTIONS_ERROR);
    how = (struct mqe_get){.flags = MQE_GET_LOCK};
    CHECK_INT(get_with(q, NULL, &how), MQRC_OPTIONS_ERROR);
}

TEST(a_batch_through_the_handle_that_locked_a_message_takes_it_in_its_place)
{
    for (int persistent = 0; persistent < 2; persistent++) {
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        mqe_queue *other = engine_open(q, 2 | MQE_BROWSE);
        struct mqe_get how = {.match = persistent ? MQE_MATCH_PERSISTENT : 0};
        for (int i = 0; i < 4; i++) {
            const char text[2] = {(char)('a' + i), '\0'};
            CHECK_INT(PUT(q, .text = text, .persistent = persistent), 0);
        }
        TAKE(q, .flags = MQE_GET_BROWSE_FIRST);
        CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_NEXT | MQE_GET_LOCK), "b");
        batch_clear();
        CHECK_INT(mqe_get_batch(engine.manager, NULL, other, &how, &batch), 0);
        CHECK_STR(texts(), "a c d");
        CHECK_INT(PUT(q, .text = "e", .persistent = persistent), 0);
        batch_clear();
        CHECK_INT(get_with(q, NULL, &how), 0);
        CHECK_STR(texts(), "b e");
        CHECK_STR(TAKE(q, .flags = MQE_GET_UNLOCK), "(2209)");
        CHECK_INT(depth(q), 0);
    }
}

TEST(a_batch_in_a_unit_counts_backs_out_and_ends_at_maxumsgs)
{
    struct mqe_settings settings = engine_settings();
    settings.max_uncommitted = 100;
    engine_begin_with(&settings);
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (int persistent = 0; persistent < 2; persistent++) {
        batch_clear();
        for (int i = 0; i < 101; i++) {
            ADD(.text = "x", .persistent = persistent);
        }
        CHECK_INT(put_all(q, unit), MQRC_SYNCPOINT_LIMIT_REACHED);
        CHECK_INT(batch.count, 0);
        CHECK_INT(batch.failed, 100);
        CHECK_INT(mqe_unit_count(unit), 0);
        batch.count = 101;
        CHECK_INT(put_all(q, NULL), 0); /* MAXUMSGS is for units of the application */
        CHECK_INT(get_all(q, unit), 0);
        CHECK_INT(batch.count, 100);
        CHECK_INT(get_all(q, unit), MQRC_SYNCPOINT_LIMIT_REACHED);
        CHECK_INT(depth(q), 1);
        CHECK_INT(mqe_backout(unit), 0);
        CHECK_INT(get_all(q, NULL), 0);
        CHECK_INT(batch.count, 101);
        CHECK_INT(items[99].d.backout_count, 1);
        CHECK_INT(items[100].d.backout_count, 0);
    }
    CHECK(is_quiet());
}

/* Persistent ones between others, some of them long. */
static void put_mixed(struct queue q)
{
    batch_clear();
    for (uint64_t i = 0; i < 130; i++) {
        ADD(.length = i % 13 == 0 ? 20000 : i, .persistent = i % 3 == 0, .group = i % 4);
    }
    CHECK_INT(put_all(q, NULL), 0);
}

static uint64_t bytes_of(uint32_t from, uint32_t to)
{
    uint64_t bytes = 0;
    for (uint64_t i = from; i < to; i++) {
        bytes += i % 13 == 0 ? 20000 : i;
    }
    return bytes;
}

TEST(without_bodies_or_rows_a_unit_takes_the_same_messages_and_they_come_back_whole)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    put_mixed(q);
    for (int rows = 1; rows >= 0; rows--) {
        struct mqe_get how = {0};
        batch = (struct mqe_batch){.items = rows != 0 ? items : NULL, .capacity = 100};
        CHECK_INT(get_with(q, unit, &how), 0);
        CHECK_INT(batch.count, 100);
        CHECK_INT(batch.bytes, bytes_of(0, 100));
        for (uint64_t i = 0; i < 100 && rows != 0; i++) {
            CHECK_INT(items[i].length, i % 13 == 0 ? 20000 : i);
            CHECK_INT(items[i].d.persistence, i % 3 == 0);
            CHECK_INT(number_of(items[i].ext.group_id), i % 4);
        }
        how.max_bytes = 20000;
        CHECK_INT(get_with(q, unit, &how), 0);
        CHECK_INT(batch.count, 4);
        CHECK_INT(batch.bytes, bytes_of(100, 104));
        CHECK_INT(batch.needed, 20000);
        CHECK_INT(mqe_unit_count(unit), 104);
        how.max_bytes = 1; /* one message is got whatever it says */
        CHECK_INT(get_with(q, unit, &how), 0);
        CHECK_INT(batch.count, 1);
        CHECK_INT(mqe_backout(unit), 0);
    }
    CHECK_INT(get_all(q, NULL), 0);
    CHECK_INT(batch.count, 130);
    CHECK_INT(items[104].d.backout_count, 2);
    CHECK_INT(items[105].d.backout_count, 0);
    for (uint64_t i = 0; i < 130; i++) {
        CHECK_INT(offsets[i + 1] - offsets[i], i % 13 == 0 ? 20000 : i);
        CHECK(i == 0 || offsets[i] == offsets[i + 1] || bodies[offsets[i]] == (unsigned char)i);
    }
    CHECK(is_quiet());
}

TEST(descriptors_of_messages_in_the_journal_alone_are_read_there_and_their_commit_is_kept)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    struct mqe_get how = {0};
    put_mixed(q);
    engine_kill_and_restart();
    q = engine_find("Q");
    mqe_unit *unit = engine_unit();
    batch = (struct mqe_batch){.items = items, .capacity = 30};
    CHECK_INT(get_with(q, unit, &how), 0);
    CHECK_INT(batch.count, 30);
    for (uint64_t i = 0; i < 30; i++) {
        CHECK_INT(items[i].length, 3 * i % 13 == 0 ? 20000 : 3 * i);
        CHECK_INT(number_of(items[i].ext.group_id), 3 * i % 4);
        CHECK(items[i].lsn != 0);
    }
    batch = (struct mqe_batch){.capacity = 100};
    CHECK_INT(get_with(q, unit, &how), 0);
    CHECK_INT(batch.count, 14);
    CHECK_INT(mqe_commit(unit), 0);
    engine_kill_and_restart();
    q = engine_find("Q");
    CHECK_INT(get_all(q, NULL), MQRC_NO_MSG_AVAILABLE);
    CHECK(is_quiet());
}

TEST(a_get_outside_a_unit_that_would_lose_what_it_removes_is_refused)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    batch_clear();
    ADD(.text = "a");
    CHECK_INT(put_all(q, NULL), 0);
    for (int rows = 1; rows >= 0; rows--) {
        struct mqe_get how = {0};
        batch = (struct mqe_batch){.items = rows != 0 ? items : NULL, .capacity = MOST};
        CHECK_INT(get_with(q, NULL, &how), MQRC_OPTIONS_ERROR);
        CHECK_INT(batch.count, 0);
    }
    batch_clear();
    batch.items = NULL;
    struct mqe_get how = {0};
    CHECK_INT(get_with(q, NULL, &how), MQRC_OPTIONS_ERROR);
    CHECK_STR(drain(q), "a");
}

TEST(expired_messages_are_not_got_and_a_handle_without_input_gets_none)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    batch_clear();
    ADD(.text = "a", .expiry = 1);
    ADD(.text = "b");
    ADD(.text = "c", .expiry = 1);
    CHECK_INT(put_all(q, NULL), 0);
    sleep_ms(250);
    CHECK_INT(get_all(q, NULL), 0);
    CHECK_STR(texts(), "b");
    q.handle = engine_open(q, MQE_OUTPUT);
    CHECK_INT(get_all(q, NULL), MQRC_NOT_OPEN_FOR_INPUT);
}

struct batch_waiter {
    pthread_t thread;
    struct queue q;
    uint32_t match;
    struct mqe_item items[8];
    unsigned char bodies[64];
    int64_t offsets[9];
    struct mqe_batch batch;
    int status;
};

static void *wait_for_batch(void *arg)
{
    struct batch_waiter *waiter = arg;
    struct mqe_get how = {.flags = MQE_GET_WAIT, .wait_us = 60000000, .match = waiter->match};
    waiter->batch = (struct mqe_batch){.items = waiter->items, .capacity = 8,
                                       .bodies = waiter->bodies, .body_capacity = 64,
                                       .offsets = waiter->offsets};
    waiter->status =
        mqe_get_batch(engine.manager, NULL, waiter->q.handle, &how, &waiter->batch);
    return NULL;
}

TEST(a_batch_waits_for_its_first_message_and_a_choosy_one_lets_others_have_theirs)
{
    static struct batch_waiter choosy, any;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    choosy.q = any.q = q;
    choosy.match = MQE_MATCH_PERSISTENT;
    CHECK_INT(pthread_create(&choosy.thread, NULL, wait_for_batch, &choosy), 0);
    CHECK(await_waiters(q, 1));
    CHECK_INT(pthread_create(&any.thread, NULL, wait_for_batch, &any), 0);
    CHECK(await_waiters(q, 2));
    CHECK_INT(PUT(q, .text = "plain"), 0);
    CHECK_INT(pthread_join(any.thread, NULL), 0);
    CHECK_INT(any.status, 0);
    CHECK_INT(any.batch.count, 1);
    CHECK_MEM(any.bodies, "plain", 5);
    CHECK(await_waiters(q, 1));
    CHECK_INT(PUT(q, .text = "kept", .persistent = 1), 0);
    CHECK_INT(pthread_join(choosy.thread, NULL), 0);
    CHECK_INT(choosy.status, 0);
    CHECK_MEM(choosy.bodies, "kept", 4);
    CHECK_INT(woken_by_bound(), 0);
}

/* The segments in which messages lie are the first ones: LSN and offset are the same there. */
static void damage(uint64_t lsn)
{
    const struct mqx_segment *first = &engine_region()->journal->segment[0];
    char path[200];
    CHECK(first->number == 1 && lsn < first->size);
    snprintf(path, sizeof path, "%s/journal/0000000001.psj", engine.path);
    memory_io_flip_bit(engine.files, path, (lsn + 200) * 8);
}

TEST(a_batch_ends_before_a_message_that_cannot_be_read_and_those_behind_it_stay)
{
    for (int in_unit = 0; in_unit < 2; in_unit++) {
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        batch_clear();
        for (int i = 0; i < 5; i++) {
            ADD(.length = 300, .persistent = 1);
        }
        CHECK_INT(put_all(q, NULL), 0);
        const uint64_t second = items[1].number, lsn = items[1].lsn;
        engine_kill_and_restart();
        q = engine_find("Q");
        damage(lsn);
        mqe_unit *unit = engine_unit();
        CHECK_INT(get_all(q, in_unit != 0 ? unit : NULL), 0);
        CHECK_INT(batch.count, 1);
        CHECK_INT(batch.bytes, 300);
        CHECK_INT(mqe_unit_count(unit), in_unit);
        CHECK_INT(get_all(q, in_unit != 0 ? unit : NULL), MQRC_OBJECT_DAMAGED);
        CHECK_INT(batch.count, 0);
        CHECK_INT(mqe_unit_count(unit), in_unit);
        CHECK_INT(depth(q), 4);
        struct mqe_get how = {.match = MQE_MATCH_UP_TO, .up_to = second};
        batch_clear();
        CHECK_INT(get_with(q, unit, &how), MQRC_OBJECT_DAMAGED);
        CHECK_INT(mqe_commit(unit), 0);
        CHECK_INT(depth(q), 4);
        CHECK(is_quiet());
    }
}

TEST(a_choosy_batch_takes_the_message_for_which_it_began_a_unit_in_its_place)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    batch_clear();
    ADD(.text = "a");
    ADD(.text = "b", .persistent = 1);
    ADD(.text = "c");
    ADD(.text = "d", .persistent = 1);
    CHECK_INT(put_all(q, NULL), 0);
    struct mqe_get how = {.match = MQE_MATCH_UP_TO, .up_to = items[2].number};
    batch_clear();
    CHECK_INT(get_with(q, NULL, &how), 0);
    CHECK_STR(texts(), "a b c");
    CHECK_STR(drain(q), "d");
}

TEST(a_batch_whose_commit_fails_counts_only_what_had_left_the_queue_before)
{
    const struct memory_fault fault = {.kind = MEMORY_FAULT_FLUSH, .at = 1, .for_ever = true,
                                       .ops = 1u << MEMORY_WRITE | 1u << MEMORY_SYNC,
                                       .error = EIO};
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    batch_clear();
    ADD(.text = "a");
    ADD(.text = "b", .persistent = 1);
    ADD(.text = "c");
    CHECK_INT(put_all(q, NULL), 0);
    memory_io_set_fault(engine.files, &fault);
    CHECK_INT(get_all(q, NULL), MQRC_CONNECTION_BROKEN);
    CHECK_INT(batch.count, 1);
    memory_io_set_fault(engine.files, NULL);
}

TEST(a_batch_in_which_a_wait_was_interrupted_goes_back_instead_of_waiting_for_its_commit)
{
    for (int plain = 0; plain < 2; plain++) {
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        batch_clear();
        for (int i = 0; i < 5; i++) {
            ADD(.length = 8, .persistent = plain == 0 || i > 0);
        }
        CHECK_INT(put_all(q, NULL), 0);
        batch_clear();
        mqx_interrupt_allow(true);
        CHECK(mqx_interrupt_take(0)); /* as a wait for room behind the first records does */
        CHECK_INT(get_all(q, NULL), plain != 0 ? 0 : MQE_INTERRUPTED);
        mqx_interrupt_allow(false);
        CHECK_INT(batch.count, plain); /* what had left the queue before is the caller's */
        CHECK_INT(depth(q), 5 - plain);
        batch_clear();
        CHECK_INT(get_all(q, NULL), 0);
        CHECK_INT(batch.count, 5 - plain);
        CHECK_INT(items[0].d.backout_count, 0);
    }
    CHECK(is_quiet());
}

TEST(a_batch_ends_before_a_message_that_asks_for_a_confirmation_and_tells_its_number)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int n = 0; n < 8; n++) {
        struct mqe_get how = {.flags = MQE_GET_CONFIRM};
        mqe_unit *unit = n / 2 % 2 != 0 ? engine_unit() : NULL;
        const uint64_t length = n < 4 ? 2 : 20000;
        batch_clear();
        ADD(.length = length, .persistent = n % 2);
        ADD(.length = length, .persistent = n % 2, .report = MQRO_COD);
        ADD(.length = length, .persistent = n % 2, .report = MQRO_COD);
        CHECK_INT(put_all(q, NULL), 0);
        batch_clear();
        CHECK_INT(get_with(q, unit, &how), 0);
        CHECK_INT(batch.count, 1);
        CHECK_INT(batch.bytes, length);
        const uint64_t number = batch.confirm;
        CHECK(number > items[0].number);
        batch_clear();
        CHECK_INT(get_with(q, unit, &how), MQE_CONFIRM);
        CHECK_INT(batch.count, 0);
        CHECK(batch.confirm == number);
        CHECK_INT(depth(q), 2);
        how = (struct mqe_get){.match = MQE_MATCH_NUMBER, .match_number = number};
        batch_clear();
        CHECK_INT(get_with(q, unit, &how), 0);
        CHECK_INT(batch.count, 1);
        CHECK(items[0].number == number && batch.confirm == 0);
        CHECK_INT(get_all(q, unit), 0);
        CHECK_INT(batch.count, 1);
        CHECK_INT(items[0].d.backout_count, 0);
        CHECK_INT(unit == NULL ? 0 : mqe_commit(unit), 0);
    }
    CHECK_INT(depth(q), 0);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
