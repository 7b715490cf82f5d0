/*
 * Claims of get_attempt.h: which message an attempt finds when the handle has one locked, what must
 * be read from the journal first, and what is left when there is no room.
 */
#include "fixtures/engine_fixture.h"
#include "queue/priority_index.h"

static const char *const KIND_NAME[] = {"QUICK", "LOGGED", "LOADED"};

/* Messages a b c d of one kind on a new queue; with `restart` their bodies are in the journal only.
 */
static struct queue four(const char *name, int persistent, bool restart)
{
    struct queue q = QUEUE(name, 0);
    for (int i = 0; i < 4; i++) {
        const char text[2] = {(char)('a' + i), '\0'};
        CHECK_INT(PUT(q, .text = text, .persistent = persistent, .priority = i == 3 ? 9 : 5,
                      .correl = 10 + (uint64_t)i, .group = 20), 0);
    }
    if (restart) {
        engine_kill_and_restart();
        q = engine_find(name);
    }
    return q;
}

TEST(a_get_by_the_handle_that_locked_a_message_finds_it_in_its_place_and_ends_the_lock)
{
    engine_begin();
    for (int kind = 0; kind < 3; kind++) {
        struct queue q = four(KIND_NAME[kind], kind != 0, kind == 2);
        mqe_queue *other = engine_open(q, 2 | MQE_BROWSE);
        mqe_unit *unit = engine_unit();
        TAKE(q, .flags = MQE_GET_BROWSE_FIRST);
        TAKE(q, .flags = MQE_GET_BROWSE_NEXT);
        CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_NEXT | MQE_GET_LOCK), "b");
        CHECK_STR(TAKE(q), "d"); /* what comes before it comes first */
        CHECK_STR(TAKE(q), "a");
        CHECK_STR(TAKE_BY(other), "c"); /* others do not see it */
        CHECK_STR(TAKE_BY(other), "(2033)");
        CHECK_STR(TAKE(q, .unit = unit), "b");
        CHECK_STR(TAKE(q, .flags = MQE_GET_UNLOCK), "(2209)");
        CHECK_INT(mqe_backout(unit), 0);
        CHECK_STR(TAKE_BY(other), "b");
        CHECK_INT(got.backout_count, 1);
        CHECK_INT(depth(q), 0);
    }
}

TEST(a_get_by_the_locking_handle_takes_the_locked_message_by_what_it_matches)
{
    engine_begin();
    for (int kind = 0; kind < 3; kind++) {
        struct queue q = four(KIND_NAME[kind], kind != 0, kind == 2);
        mqe_queue *other = engine_open(q, 2 | MQE_BROWSE);
        CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "d");
        const uint64_t number = got.number;
        CHECK_STR(TAKE(q, .correl = 13, .group = 21), "(2033)");
        CHECK_STR(TAKE(q, .correl = 11), "b");
        CHECK_STR(TAKE_BY(other, .correl = 13), "(2033)");
        CHECK_STR(TAKE(q, .correl = 13, .group = 20), "d");
        CHECK_STR(TAKE(q, .flags = MQE_GET_UNLOCK), "(2209)");
        CHECK_STR(TAKE_BY(other, .number = number), "(2033)");
        CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "a");
        CHECK_STR(TAKE_BY(other, .number = got.number), "(2033)");
        CHECK_STR(TAKE(q, .number = got.number), "a");
        CHECK_STR(drain(q), "c");
    }
}

TEST(a_get_that_does_not_take_the_locked_message_leaves_it_locked)
{
    engine_begin();
    for (int kind = 0; kind < 3; kind++) {
        struct queue q = four(KIND_NAME[kind], kind != 0, kind == 2);
        mqe_queue *other = engine_open(q, 2 | MQE_BROWSE);
        char body[8];
        struct mqe_get get = {.buffer = body, .capacity = sizeof body, .seq_number = 7,
                              .match = MQE_MATCH_SEQ_NUMBER};
        CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "d");
        CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 2033);
        CHECK_STR(TAKE(q, .capacity = NONE), "(2080)");
        CHECK_STR(TAKE(q, .capacity = NONE, .flags = MQE_GET_UNDER_CURSOR), "(2080)");
        CHECK_STR(TAKE_BY(other), "a");
        get.seq_number = 1;
        CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 0);
        CHECK_INT(body[0], 'd');
        CHECK_STR(drain(q), "b c");
    }
}

TEST(a_long_message_that_is_locked_is_taken_by_its_handle)
{
    static char body[20000], room[20000];
    memset(body, 'x', sizeof body);
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int persistent = 0; persistent < 2; persistent++) {
        struct mqe_get get = {.flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK,
                              .buffer = room, .capacity = sizeof room};
        CHECK_INT(PUT(q, .body = body, .length = sizeof body, .persistent = persistent), 0);
        CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 0);
        get.flags = 0;
        memset(room, 0, sizeof room);
        CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 0);
        CHECK_MEM(room, body, sizeof room);
        CHECK_STR(TAKE(q, .flags = MQE_GET_UNLOCK), "(2209)");
        CHECK_INT(depth(q), 0);
    }
}

TEST(room_for_an_mqmde_counts_where_the_message_has_values_of_version_2)
{
    engine_begin();
    for (int kind = 0; kind < 3; kind++) {
        struct queue q = four(KIND_NAME[kind], kind != 0, kind == 2);
        char body[100] = "";
        struct mqe_get get = {.flags = MQE_GET_ROOM_FOR_MDE, .buffer = body, .capacity = 72};
        CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 2080);
        CHECK_INT(get.length, 1);
        CHECK_INT(get.header, 72);
        CHECK_INT(body[0], 0);
        get.capacity = 73;
        CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 0);
        CHECK_INT(body[0], 'd');
        get.flags |= MQE_GET_BROWSE_FIRST | MQE_GET_LOCK;
        CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 0);
        CHECK_INT(body[0], 'a');
        get.flags = MQE_GET_ROOM_FOR_MDE | MQE_GET_ACCEPT_TRUNCATED;
        for (get.capacity = 72; get.capacity >= 71; get.capacity--) {
            body[0] = '\0';
            CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 2079);
            CHECK_INT(get.header, 72);
            CHECK_INT(body[0], 0);
        }
        get.capacity = 1;
        get.flags = 0;
        CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 0);
        CHECK_INT(get.header, 0);
        CHECK_INT(body[0], 'c');
        CHECK_INT(depth(q), 0);
    }
}

/* An extension without values of version 2: a reply queue alone. */
static int put_with_reply_queue(struct queue q, int persistent)
{
    const struct mqe_destination to = mqe_direct(q.slot, q.generation);
    struct ps_descriptor d = {.persistence = (uint8_t)persistent, .md_version = 2};
    const struct ps_descriptor_ext ext = {.reply_to_q = "R", .msg_seq_number = 1,
                                          .original_length = -1};
    return mqe_put(engine.manager, NULL, &to, &d, &ext, "a", 1, -1, 0);
}

TEST(a_message_that_takes_no_mqmde_has_the_whole_buffer)
{
    engine_begin();
    for (int kind = 0; kind < 3; kind++) {
        struct queue q = QUEUE(KIND_NAME[kind], 0);
        char body[8] = "";
        struct mqe_get get = {.flags = MQE_GET_ROOM_FOR_MDE, .buffer = body, .capacity = 1};
        CHECK_INT(put_with_reply_queue(q, kind != 0), 0);
        CHECK_INT(PUT(q, .text = "b", .persistent = kind != 0), 0);
        if (kind == 2) {
            engine_kill_and_restart();
            q = engine_find(KIND_NAME[kind]);
        }
        for (const char *text = "ab"; *text != '\0'; text++) {
            CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 0);
            CHECK_INT(get.header, 0);
            CHECK_INT(get.length, 1);
            CHECK_INT(body[0], *text);
        }
    }
}

TEST(a_get_at_the_head_reads_nothing_of_the_cold_half_of_an_entry)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    char text[16];
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof text, "m%d", i);
        CHECK_INT(PUT(q, .text = text, .correl = 1 + (uint64_t)i), 0);
    }
    const struct mqx_region *region = engine_region();
    const struct mqx_object *queue = mqx_object(region, q.slot);
    for (int i = 0; i < 200; i++) {
        struct mqx_message *head = mqx_message(region, mqx_priority_index_first(region, queue));
        memset((char *)head + MQX_MESSAGE_HOT, 0xee, sizeof *head - MQX_MESSAGE_HOT);
        snprintf(text, sizeof text, "m%d", i);
        CHECK_STR(TAKE(q), text);
        CHECK_INT(got.backout_count, 0);
        for (const char *at = (const char *)head + MQX_MESSAGE_HOT; at < (const char *)(head + 1);
             at++) {
            CHECK_INT((unsigned char)*at, 0xee); /* nor does it write there */
        }
    }
    CHECK_INT(depth(q), 0);
}

TEST(a_get_that_finds_no_idle_context_takes_one_and_gets_the_same_message)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "first", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "second", .persistent = 1), 0);
    mqx_pool_drain(engine.manager);
    CHECK_STR(TAKE(q), "first");
    mqx_pool_drain(engine.manager);
    CHECK_STR(TAKE(q, .wait_us = 1000000), "second");
    mqx_pool_drain(engine.manager);
    CHECK_STR(TAKE(q, .wait_us = 1000), "(2033)");
    CHECK_INT(depth(q), 0);
}

TEST(a_message_that_asks_for_a_confirmation_is_described_and_stays_as_it_was)
{
    static char body[20000];
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (int n = 0; n < 8; n++) {
        const bool persistent = n % 2 != 0;
        mqe_unit *in = n / 2 % 2 != 0 ? unit : NULL;
        CHECK_INT(PUT(q, .body = body, .length = n < 4 ? 8 : sizeof body, .msg = 7,
                      .persistent = persistent, .report = MQRO_COD), 0);
        CHECK_STR(TAKE(q, .unit = in, .flags = MQE_GET_CONFIRM), "(90103)");
        CHECK_INT(got.msg, 7);
        CHECK_INT(got.persistence, persistent);
        CHECK_INT(mqe_unit_count(unit), 0);
        CHECK_INT(depth(q), 1);
        const uint64_t number = got.number;
        (void)TAKE(q, .flags = MQE_GET_CONFIRM | MQE_GET_BROWSE_FIRST);
        CHECK_INT(got.status, 0);
        (void)TAKE(q, .unit = unit, .number = number);
        CHECK_INT(got.status, 0);
        CHECK_INT(got.backout_count, 0);
        CHECK_INT(got.number, number);
        CHECK_INT(mqe_commit(unit), 0);
        CHECK_INT(depth(q), 0);
    }
}

TEST(a_message_in_the_journal_of_another_id_is_no_message_to_confirm)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "other", .msg = 7, .persistent = 1, .report = MQRO_COD), 0);
    CHECK_INT(PUT(q, .text = "plain", .msg = 8, .persistent = 1), 0);
    engine_restart();
    q = engine_find("Q");
    CHECK_STR(TAKE(q, .msg = 8, .flags = MQE_GET_CONFIRM), "plain");
    CHECK_STR(TAKE(q, .msg = 9, .flags = MQE_GET_CONFIRM), "(2033)");
    CHECK_STR(TAKE(q, .msg = 7, .flags = MQE_GET_CONFIRM), "(90103)");
    CHECK_STR(TAKE(q, .msg = 7), "other");
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
