/* Claims of match.c: which message a selective get finds, by scan and by index, and never a wrong
 * one. */
#include "fixtures/engine_fixture.h"
#include "queue/match.h"

enum { DEEP = 1000 };

/* `count` messages whose ids follow from their number: unique MsgId, 10 to a CorrelId, 50 to a
 * group. */
static struct queue filled(int count, int persistent)
{
    char text[16];
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "m%d", i);
        CHECK_INT(PUT(q, .text = text, .msg = 1000 + (uint64_t)i, .persistent = persistent,
                      .correl = 1 + (uint64_t)i % 100, .group = 1 + (uint64_t)i % 20), 0);
    }
    return q;
}

static bool has_index(struct queue q, int k)
{
    return mqx_object(engine_region(), q.slot)->index[k] != 0;
}

static void find_in(int count, int persistent)
{
    struct queue q = filled(count, persistent);
    CHECK_STR(TAKE(q, .msg = 1003), "m3");
    CHECK_STR(TAKE(q, .msg = 1003), "(2033)");
    CHECK_STR(TAKE(q, .correl = 6), "m5");
    CHECK_STR(TAKE(q, .group = 8), "m7");
    CHECK_STR(TAKE(q, .msg = 1008, .correl = 9, .group = 9), "m8");
    CHECK_STR(TAKE(q, .msg = 1009, .correl = 9), "(2033)");
    CHECK_STR(TAKE(q, .correl = 3, .group = 2), "(2033)");
    CHECK_STR(TAKE(q, .correl = 3, .group = 3), "m2");
    CHECK_STR(TAKE(q, .correl = 5000), "(2033)");
    CHECK_STR(TAKE(q, .match = 7), "m0");
    CHECK_STR(TAKE(q, .match = MQE_MATCH_MSG_ID, .correl = 2), "m1");
    CHECK_INT(depth(q), count - 7);
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(ids_and_their_combinations_are_found_among_few_messages_without_an_index)
{
    find_in(10, 0);
    find_in(10, 1);
    struct queue q = filled(10, 0);
    CHECK_STR(TAKE(q, .msg = 1009), "m9");
    CHECK(!has_index(q, MQX_BY_MSG_ID));
}

TEST(ids_and_their_combinations_are_found_among_many_messages_by_an_index)
{
    find_in(DEEP, 0);
    find_in(DEEP, 1);
    struct queue q = filled(DEEP, 0);
    CHECK_STR(TAKE(q, .msg = 1999), "m999");
    CHECK(has_index(q, MQX_BY_MSG_ID));
    CHECK(!has_index(q, MQX_BY_CORREL_ID));
    CHECK_STR(TAKE(q, .correl = 99), "m98");
    CHECK_STR(TAKE(q, .correl = 99), "m198");
    CHECK(has_index(q, MQX_BY_CORREL_ID));
    CHECK_STR(TAKE(q, .group = 20), "m19");
    CHECK(has_index(q, MQX_BY_GROUP_ID));
    CHECK_INT(mqe_check(engine.manager), 0);
}

/* All four ways to search must give the same order: scan, index, browse, and what is left over. */
TEST(matching_messages_come_by_priority_then_put_order_by_scan_and_by_index)
{
    for (int deep = 0; deep < 2; deep++) {
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        for (int i = 0; i < 100 * deep; i++) {
            CHECK_INT(PUT(q, .text = "other", .correl = 9, .priority = i % 10), 0);
        }
        CHECK_INT(PUT(q, .text = "a", .correl = 7, .priority = 3), 0);
        CHECK_INT(PUT(q, .text = "b", .correl = 7, .priority = 8), 0);
        CHECK_INT(PUT(q, .text = "c", .correl = 7, .priority = 3), 0);
        CHECK_INT(PUT(q, .text = "d", .correl = 7, .priority = 8), 0);
        CHECK_STR(TAKE(q, .correl = 7, .flags = MQE_GET_BROWSE_FIRST), "b");
        CHECK_STR(TAKE(q, .correl = 7, .flags = MQE_GET_BROWSE_NEXT), "d");
        CHECK_STR(TAKE(q, .correl = 7, .flags = MQE_GET_BROWSE_NEXT), "a");
        CHECK_STR(TAKE(q, .correl = 7), "b");
        CHECK_STR(TAKE(q, .correl = 7), "d");
        CHECK_STR(TAKE(q, .correl = 7), "a");
        CHECK_STR(TAKE(q, .correl = 7), "c");
        CHECK_STR(TAKE(q, .correl = 7), "(2033)");
    }
}

TEST(messages_that_a_unit_holds_are_not_found_and_come_back_in_their_place)
{
    struct queue q = filled(DEEP, 1);
    mqe_unit *unit = engine_unit();
    CHECK_STR(TAKE(q, .correl = 1, .unit = unit), "m0");
    CHECK_STR(TAKE(q, .correl = 1), "m100");
    CHECK_STR(TAKE(q, .msg = 1000), "(2033)");
    CHECK_INT(PUT(q, .text = "unseen", .correl = 777, .unit = unit), 0);
    CHECK_STR(TAKE(q, .correl = 777), "(2033)");
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_STR(TAKE(q, .correl = 1), "m0");
    CHECK_STR(TAKE(q, .correl = 777), "(2033)");
    CHECK_INT(PUT(q, .text = "seen", .correl = 777, .unit = unit), 0);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(TAKE(q, .correl = 777), "seen");
}

TEST(an_index_is_not_misled_by_expired_messages)
{
    struct queue q = filled(100, 0);
    CHECK_INT(PUT(q, .text = "old", .correl = 500, .expiry = 1), 0);
    CHECK_INT(PUT(q, .text = "old", .correl = 500, .expiry = 1), 0);
    CHECK_INT(PUT(q, .text = "new", .correl = 500), 0);
    sleep_ms(250);
    CHECK_STR(TAKE(q, .correl = 500), "new");
    CHECK_STR(TAKE(q, .correl = 500), "(2033)");
    CHECK_INT(depth(q), 100);
}

TEST(sequence_number_and_offset_can_be_matched)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    const struct mqe_destination to = mqe_direct(q.slot, q.generation);
    for (int i = 1; i <= 3; i++) {
        struct ps_descriptor d = {.priority = 0};
        struct ps_descriptor_ext ext = {.msg_seq_number = i, .offset = 100 * i, .group_id = {9}};
        const char text[2] = {(char)('0' + i), '\0'};
        CHECK_INT(mqe_put(engine.manager, NULL, &to, &d, &ext, text, 1, -1, 0), 0);
    }
    char text[8] = "";
    struct mqe_get get = {.match = MQE_MATCH_GROUP_ID | MQE_MATCH_SEQ_NUMBER, .group_id = {9},
                          .seq_number = 3, .buffer = text, .capacity = 8};
    CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 0);
    CHECK_MEM(text, "3", 1);
    get = (struct mqe_get){.match = MQE_MATCH_OFFSET, .offset = 200, .buffer = text, .capacity = 8};
    CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 0);
    CHECK_MEM(text, "2", 1);
    get.match = MQE_MATCH_OFFSET;
    get.flags = 0;
    CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), MQRC_NO_MSG_AVAILABLE);
    CHECK_INT(depth(q), 1);
}

/* Two ids with one tag cannot be had by trying: the entries are forged. Where the body lies in the
 * journal, the full id is seen only after the claim. */
TEST(an_equal_tag_with_another_id_is_never_delivered_and_goes_back_uncounted)
{
    for (int restart = 0; restart < 2; restart++) {
        struct queue q = filled(restart ? 100 : 3, 1);
        CHECK_INT(PUT(q, .text = "false", .correl = 900, .persistent = 1), 0);
        CHECK_INT(PUT(q, .text = "true", .correl = 901, .persistent = 1), 0);
        if (restart) {
            engine_kill_and_restart();
            q = engine_find("Q");
        }
        const struct mqx_region *region = engine_region();
        struct mqx_message *forged = NULL, *real = NULL;
        for (uint32_t slot = 1; slot < region->header->area[MQX_AREA_MESSAGES].used; slot++) {
            struct mqx_message *message = mqx_message(region, slot);
            if (message->state == MQX_MSG_AVAILABLE) {
                forged = message->length == 5 ? message : forged;
                real = message->length == 4 && message->key[0].next == 0 ? message : real;
            }
        }
        CHECK(forged != NULL && real != NULL);
        CHECK((forged->cells == 0) == (restart != 0));
        struct mqx_match match;
        struct mqe_get get = engine_ask(&(const struct ask){.correl = 901});
        mqx_match_init(region, &get, &match);
        forged->tag[MQX_BY_CORREL_ID] = match.tag[MQX_BY_CORREL_ID];
        CHECK_STR(TAKE(q, .correl = 901), "true");
        CHECK_STR(TAKE(q, .correl = 901), "(2033)");
        CHECK_STR(TAKE(q, .correl = 901, .flags = MQE_GET_BROWSE_FIRST), "(2033)");
        CHECK_INT(forged->backout_count, 0);
        CHECK_INT(depth(q), restart ? 101 : 4);
    }
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
