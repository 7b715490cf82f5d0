/* Claims of put.c: what a put stores, what it refuses, and that a refused put leaves nothing. */
#include "fixtures/engine_fixture.h"

#include "base/clock.h"

/* No message, no memory, nothing in a hand: as if the put had never been. */
static bool nothing_is_left(struct queue q)
{
    const struct mqx_region *region = engine_region();
    const uint64_t used = region->header->area[MQX_AREA_CONTEXTS].used;
    bool clean = depth(q) == 0 && mqe_check(engine.manager) == 0;
    for (uint32_t slot = 1; slot < used; slot++) {
        const struct mqx_context *context = mqx_context(region, slot);
        clean = clean && context->pending_kind == MQX_PENDING_NONE && context->head == 0 &&
                context->state <= MQX_CTX_IDLE;
    }
    return clean;
}

TEST(as_q_def_means_the_defaults_at_the_time_of_the_put)
{
    engine_begin();
    struct queue q = QUEUE("Q", DEFPRTY, 3, DEFPSIST, 1);
    CHECK_INT(PUT(q, .text = "a", .priority = -1, .persistent = 2), 0);
    CHECK_INT(put_descriptor.priority, 3);
    CHECK_INT(put_descriptor.persistence, 1);
    CHECK_INT(ALTER(q, "Q", DEFPRTY, 7, DEFPSIST, 0), 0);
    CHECK_INT(PUT(q, .text = "b", .priority = -1, .persistent = 2), 0);
    CHECK_INT(put_descriptor.priority, 7);
    CHECK_INT(put_descriptor.persistence, 0);
    CHECK_STR(TAKE(q), "b");
    CHECK_INT(got.persistence, 0);
    CHECK_STR(TAKE(q), "a");
    CHECK_INT(got.priority, 3);
    CHECK_INT(got.persistence, 1);
}

TEST(defaults_come_from_the_first_definition_in_the_path_not_from_the_queue)
{
    engine_begin();
    struct queue q = QUEUE("Q", DEFPRTY, 1);
    struct queue alias = QUEUE("ALIAS", DEFPRTY, 8, DEFPSIST, 1);
    const struct mqe_destination to = {
        .queue = q.slot, .queue_generation = q.generation,
        .first = alias.slot, .first_generation = alias.generation};
    struct ps_descriptor d = {.priority = -1, .persistence = 2};
    CHECK_INT(mqe_put(engine.manager, NULL, &to, &d, NULL, "x", 1, -1, 0), 0);
    CHECK_INT(d.priority, 8);
    CHECK_INT(d.persistence, 1);
    CHECK_STR(TAKE(q), "x");
}

TEST(priorities_0_to_9_are_kept_and_order_delivery)
{
    static const char digits[] = "3705182946";
    char body[2] = "";
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int i = 0; i < 10; i++) {
        body[0] = digits[i];
        CHECK_INT(PUT(q, .text = body, .priority = digits[i] - '0'), 0);
        CHECK_INT(put_descriptor.placement, digits[i] - '0');
    }
    CHECK_STR(drain(q), "9 8 7 6 5 4 3 2 1 0");
}

TEST(a_priority_above_9_is_a_warning_that_keeps_the_field_and_queues_at_9)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "nine", .priority = 9), 0);
    CHECK_INT(PUT(q, .text = "twelve", .priority = 12), MQRC_PRIORITY_EXCEEDS_MAXIMUM);
    CHECK_INT(mqe_comp_code(MQRC_PRIORITY_EXCEEDS_MAXIMUM), MQCC_WARNING);
    CHECK_INT(PUT(q, .text = "most", .priority = INT32_MAX, .persistent = 1), 2049);
    CHECK_INT(PUT(q, .text = "late", .priority = 9), 0);
    CHECK_STR(drain(q), "nine twelve most late");
    CHECK_INT(PUT(q, .text = "twelve", .priority = 12), 2049);
    CHECK_STR(TAKE(q), "twelve");
    CHECK_INT(got.priority, 12);
    CHECK_INT(got.placement, 9);
}

TEST(values_out_of_range_are_refused_by_their_own_reason_and_leave_nothing)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "x", .priority = -2), MQRC_PRIORITY_ERROR);
    CHECK_INT(PUT(q, .text = "x", .priority = INT32_MIN), MQRC_PRIORITY_ERROR);
    CHECK_INT(PUT(q, .text = "x", .persistent = 3), MQRC_PERSISTENCE_ERROR);
    CHECK_INT(PUT(q, .text = "x", .expiry = -5), MQRC_EXPIRY_ERROR);
    CHECK_INT(PUT(q, .text = "x", .expiry = 1000000000), MQRC_EXPIRY_ERROR);
    CHECK_INT(PUT(q, .text = "x", .expiry = 999999999), 0);
    CHECK_STR(TAKE(q), "x");
    CHECK(nothing_is_left(q));
}

/* The issue's own case: fields as given, order as put, whatever happens to the queue. */
TEST(a_fifo_queue_places_at_its_defprty_and_keeps_fields_over_restarts_and_alters)
{
    static const int32_t fields[] = {12, INT32_MAX, 7};
    engine_begin();
    struct queue q = QUEUE("Q", FIFO, 1, DEFPRTY, 4, DEFPSIST, 1);
    CHECK_INT(PUT(q, .text = "a", .priority = 12, .persistent = 2), 2049);
    CHECK_INT(PUT(q, .text = "b", .priority = INT32_MAX, .persistent = 2), 2049);
    CHECK_INT(PUT(q, .text = "c", .priority = 7, .persistent = 2), 0);
    CHECK_INT(put_descriptor.placement, 4);
    CHECK_STR(peruse(q), "a b c");
    engine_kill_and_restart();
    q = engine_find("Q");
    CHECK_STR(peruse(q), "a b c");
    CHECK_INT(ALTER(q, "Q", FIFO, 1, DEFPRTY, 9, DEFPSIST, 1), 0);
    CHECK_STR(peruse(q), "a b c");
    engine_restart();
    q = engine_find("Q");
    for (int i = 0; i < 3; i++) {
        CHECK_STR(TAKE(q), i == 0 ? "a" : i == 1 ? "b" : "c");
        CHECK_INT(got.priority, fields[i]);
        CHECK_INT(got.placement, 4);
    }
}

TEST(each_refusal_has_its_reason_and_leaves_nothing)
{
    static const char body[1200];
    struct mqe_settings settings = engine_settings();
    settings.max_message = 1000;
    engine_begin_with(&settings);
    struct queue q = QUEUE("Q", MAXMSGL, 100);
    struct queue wide = QUEUE("WIDE", MAXMSGL, 2000);
    struct queue shut = QUEUE("SHUT", PUT_DISABLED, 1);
    for (int persistent = 0; persistent < 2; persistent++) {
        CHECK_INT(PUT(q, .body = body, .length = 101, .persistent = persistent),
                  MQRC_MSG_TOO_BIG_FOR_Q);
        CHECK_INT(PUT(wide, .body = body, .length = 1001, .persistent = persistent),
                  MQRC_MSG_TOO_BIG_FOR_Q_MGR);
        CHECK_INT(PUT(shut, .text = "x", .persistent = persistent), MQRC_PUT_INHIBITED);
        CHECK_INT(PUT(q, .body = body, .length = 100, .persistent = persistent), 0);
        CHECK_INT((TAKE(q), got.status), 0);
    }
    mqx_object(engine_region(), q.slot)->may_persist = 0;
    CHECK_INT(PUT(q, .text = "x", .persistent = 1), MQRC_PERSISTENT_NOT_ALLOWED);
    CHECK(nothing_is_left(q));
    CHECK(nothing_is_left(wide));
    CHECK(nothing_is_left(shut));
    CHECK_INT(ALTER(shut, "SHUT", PUT_DISABLED, 0), 0);
    CHECK_INT(PUT(shut, .text = "x"), 0);
}

TEST(a_long_message_is_refused_before_memory_is_taken_for_it)
{
    static char body[300000];
    engine_begin();
    struct queue q = QUEUE("Q", MAXMSGL, 200000);
    const uint64_t used = engine_region()->header->area[MQX_AREA_ARENA].used;
    CHECK_INT(PUT(q, .body = body, .length = sizeof body), MQRC_MSG_TOO_BIG_FOR_Q);
    CHECK_INT(PUT(q, .body = body, .length = sizeof body, .persistent = 1),
              MQRC_MSG_TOO_BIG_FOR_Q);
    CHECK_INT(engine_region()->header->area[MQX_AREA_ARENA].used, used);
    CHECK(nothing_is_left(q));
}

TEST(a_full_queue_refuses_at_the_put_uncommitted_messages_included)
{
    engine_begin();
    struct queue q = QUEUE("Q", MAXDEPTH, 3);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(PUT(q, .text = "b", .unit = unit), 0);
    CHECK_INT(PUT(q, .text = "c", .unit = unit, .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "d"), MQRC_Q_FULL);
    CHECK_INT(PUT(q, .text = "d", .unit = unit), MQRC_Q_FULL);
    CHECK_INT(PUT(q, .text = "d", .persistent = 1), MQRC_Q_FULL);
    CHECK_INT(mqe_unit_count(unit), 2);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_INT(PUT(q, .text = "e"), 0);
    CHECK_STR(drain(q), "a e");
    CHECK(nothing_is_left(q));
}

TEST(a_put_to_a_deleted_queue_says_2052_even_when_the_slot_has_a_new_queue)
{
    engine_begin();
    struct queue old = QUEUE("OLD", 0);
    CHECK_INT(engine_close(old.handle), 0);
    CHECK_INT(mqe_delete(engine.manager, old.slot, old.generation, 0), 0);
    CHECK_INT(PUT(old, .text = "x"), MQRC_Q_DELETED);
    struct queue new = QUEUE("NEW", 0);
    CHECK_INT(new.slot, old.slot);
    CHECK_INT(PUT(old, .text = "x"), MQRC_Q_DELETED);
    CHECK_INT(PUT(old, .text = "x", .persistent = 1), MQRC_Q_DELETED);
    const struct queue nowhere = {.slot = 4000000, .generation = 1};
    CHECK_INT(PUT(nowhere, .text = "x"), MQRC_Q_DELETED);
    CHECK(nothing_is_left(new));
}

TEST(generated_message_ids_carry_product_and_manager_and_never_repeat)
{
    static uint8_t ids[2000][24];
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int i = 0; i < 2000; i++) {
        if (i == 1000) {
            engine_restart();
            q = engine_find("Q");
        }
        CHECK_INT(PUT(q, .text = "x", .msg = i % 3 == 0 ? 77 : 0,
                      .flags = MQE_PUT_NEW_MSG_ID, .persistent = i % 50 == 0), 0);
        memcpy(ids[i], put_descriptor.msg_id, 24);
        CHECK_MEM(ids[i], "AMQ QM1         ", 16);
        TAKE(q);
        CHECK_INT(got.status, 0);
    }
    qsort(ids, 2000, 24, (int (*)(const void *, const void *))(void *)memcmp);
    for (int i = 1; i < 2000; i++) {
        CHECK(memcmp(ids[i - 1] + 8, ids[i] + 8, 16) != 0);
    }
}

TEST(a_given_message_id_is_kept_and_a_long_message_has_its_generated_one)
{
    static char body[20000];
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "x", .msg = 42), 0);
    TAKE(q);
    CHECK_INT(got.msg, 42);
    CHECK_INT(PUT(q, .body = body, .length = sizeof body), 0);
    const uint64_t given = number_of(put_descriptor.msg_id + 16);
    struct mqe_get get = {.buffer = body, .capacity = sizeof body};
    CHECK_INT(mqe_get(engine.manager, NULL, q.handle, &get), 0);
    CHECK(given != 0 && number_of(get.d.msg_id + 16) == given);
}

TEST(quiescing_refuses_only_those_who_ask_for_it_and_a_stop_everybody)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(mqe_end(engine.manager, MQE_END_CONTROLLED), 0);
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(PUT(q, .text = "b", .flags = MQE_PUT_FAIL_IF_QUIESCING), MQRC_Q_MGR_QUIESCING);
    CHECK_STR(drain(q), "a");
    mqx_region_stop(engine_region(), MQX_STOP_ENDED);
    CHECK_INT(PUT(q, .text = "c"), MQRC_Q_MGR_STOPPING);
    mqx_region_stop(engine_region(), MQX_STOP_BROKEN);
    CHECK_INT(PUT(q, .text = "c", .persistent = 1), MQRC_CONNECTION_BROKEN);
}

TEST(a_generated_correl_id_replaces_the_given_one_and_differs_from_the_message_id)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    const struct mqe_destination to = mqe_direct(q.slot, q.generation);
    struct ps_descriptor d = {.correl_id = "given"}, second = {.correl_id = "given"};
    CHECK_INT(mqe_put(engine.manager, NULL, &to, &d, NULL, "x", 1, -1, MQE_PUT_NEW_CORREL_ID), 0);
    CHECK_MEM(d.correl_id, "AMQ QM1         ", 16);
    CHECK(memcmp(d.correl_id, d.msg_id, 24) != 0);
    CHECK_INT(
        mqe_put(engine.manager, NULL, &to, &second, NULL, "x", 1, -1, MQE_PUT_NEW_CORREL_ID), 0);
    CHECK(memcmp(d.correl_id, second.correl_id, 24) != 0);
    uint64_t stored;
    memcpy(&stored, d.correl_id, sizeof stored);
    TAKE(q);
    CHECK_INT(got.correl, stored);
}

/* What the next call finds on its stack. */
static __attribute__((noinline)) void fill_stack(int byte)
{
    unsigned char below[16384];
    memset(below, byte, sizeof below);
    __asm__ volatile("" : : "r"(below) : "memory");
}

TEST(a_put_looks_at_nothing_that_an_earlier_call_left_behind)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    const struct mqe_destination to = mqe_direct(q.slot, q.generation);
    for (int persistent = 0; persistent <= 1; persistent++) {
        struct ps_descriptor d = {.persistence = (uint8_t)persistent};
        const uint64_t before = mqx_clock_coarse_us();
        fill_stack(0xa5);
        CHECK_INT(mqe_put(engine.manager, NULL, &to, &d, NULL, "x", 1, 10, 0), 0);
        const uint64_t after = mqx_clock_coarse_us();
        CHECK(d.put_time_us >= before && d.put_time_us <= after);
        CHECK(d.expiry_us >= before + 1000000 && d.expiry_us <= after + 1000000);
    }
}

TEST(time_is_stamped_unless_it_is_given)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    const uint64_t before = mqx_clock_coarse_us();
    CHECK_INT(PUT(q, .text = "x"), 0);
    CHECK(put_descriptor.put_time_us >= before &&
          put_descriptor.put_time_us <= mqx_clock_coarse_us());
    const struct mqe_destination to = mqe_direct(q.slot, q.generation);
    struct ps_descriptor d = {.put_time_us = 1234567};
    CHECK_INT(mqe_put(engine.manager, NULL, &to, &d, NULL, "x", 1, -1, MQE_PUT_KEEP_TIME), 0);
    CHECK_INT(d.put_time_us, 1234567);
}

TEST(a_given_put_time_after_the_year_9999_is_refused)
{
    const uint64_t last = 253402300799999999u;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    const struct mqe_destination to = mqe_direct(q.slot, q.generation);
    struct ps_descriptor d = {.put_time_us = last};
    CHECK_INT(mqe_put(engine.manager, NULL, &to, &d, NULL, "x", 1, -1, MQE_PUT_KEEP_TIME), 0);
    CHECK_STR(TAKE(q), "x");
    for (int shift = 0; shift < 2; shift++) {
        d = (struct ps_descriptor){.put_time_us = shift == 0 ? last + 1 : UINT64_C(1) << 63};
        CHECK_INT(mqe_put(engine.manager, NULL, &to, &d, NULL, "x", 1, -1, MQE_PUT_KEEP_TIME),
                  MQRC_MD_ERROR);
        CHECK(nothing_is_left(q));
        CHECK_INT(mqe_put(engine.manager, NULL, &to, &d, NULL, "x", 1, -1, 0), 0);
        CHECK_STR(TAKE(q), "x");
    }
}

TEST(on_z_os_a_group_index_places_first_messages_of_low_priority_at_2_and_keeps_the_field)
{
    enum { ZOS = 1, BY_GROUP = 5, BY_MSG = 1 };
    static const struct {
        uint32_t platform;
        int index, fifo, priority, number; /* number 0: no extension at all */
        int placed;
    } cases[] = {
        {ZOS, BY_GROUP, 0, 0, 1, 2}, {ZOS, BY_GROUP, 0, 1, 1, 2}, {ZOS, BY_GROUP, 0, 2, 1, 2},
        {ZOS, BY_GROUP, 0, 3, 1, 3}, {ZOS, BY_GROUP, 0, 0, 2, 0}, {ZOS, BY_GROUP, 0, 1, 7, 1},
        {ZOS, BY_GROUP, 0, 0, 0, 2}, {ZOS, BY_GROUP, 0, -1, 1, 2}, {ZOS, BY_MSG, 0, 0, 1, 0},
        {ZOS, 0, 0, 1, 1, 1}, {ZOS, BY_GROUP, 1, 1, 1, 0}, {0, BY_GROUP, 0, 0, 1, 0},
        {0, BY_GROUP, 0, 1, 0, 1},
    };
    struct mqe_settings settings = engine_settings();
    for (size_t i = 0; i < MQX_ARRAY_COUNT(cases); i++) {
        settings.platform = cases[i].platform;
        engine_begin_with(&settings);
        struct queue q = QUEUE("Q", INDXTYPE, cases[i].index, FIFO, cases[i].fifo);
        const struct mqe_destination to = mqe_direct(q.slot, q.generation);
        const struct ps_descriptor_ext ext = {.msg_seq_number = cases[i].number};
        CHECK_INT(PUT(q, .text = "before"), 0); /* the second put finds a queue that was used */
        CHECK_STR(TAKE(q), "before");
        struct ps_descriptor d = {.priority = cases[i].priority, .persistence = 1};
        CHECK_INT(mqe_put(engine.manager, NULL, &to, &d, cases[i].number != 0 ? &ext : NULL, "x", 1,
                          -1, 0), 0);
        CHECK_INT(d.placement, cases[i].placed);
        engine_kill_and_restart();
        q = engine_find("Q");
        CHECK_STR(TAKE(q), "x");
        CHECK_INT(got.placement, cases[i].placed);
        CHECK_INT(got.priority, cases[i].priority == -1 ? 0 : cases[i].priority);
    }
}

TEST(a_note_from_the_reserve_is_put_into_a_journal_that_takes_no_other_message)
{
    static char body[60000];
    struct mqe_settings settings = engine_settings();
    settings.journal_limit = 2 << 20;
    engine_begin_with(&settings);
    struct queue q = QUEUE("Q", 0), notes = QUEUE("NOTES", 0);
    const struct ask note = {.text = "n", .persistent = 1, .flags = MQE_PUT_FROM_RESERVE};
    int status = 0, taken = 0;
    for (size_t length = sizeof body; length > 0; length = length == 1 ? 0 : 1) {
        for (status = 0; status == 0;) {
            status = PUT(q, .body = body, .length = length, .persistent = 1);
        }
        CHECK_INT(status, MQRC_STORAGE_MEDIUM_FULL);
    }
    CHECK_INT(PUT(notes, .text = "n", .persistent = 1), MQRC_STORAGE_MEDIUM_FULL);
    for (mqe_unit *unit = engine_unit(); depth(q) > 0; taken++) { /* each get with its note */
        TAKE(q, .unit = unit);
        CHECK_INT(got.status, 0);
        CHECK_INT(engine_put(notes, &(struct ask){.text = "n", .persistent = 1, .unit = unit,
                                                  .flags = MQE_PUT_FROM_RESERVE}), 0);
        CHECK_INT(mqe_commit(unit), 0);
    }
    CHECK_INT(engine_put(notes, &note), 0);
    engine_kill_and_restart();
    CHECK_INT(depth(engine_find("Q")), 0);
    CHECK_INT(depth(engine_find("NOTES")), taken + 1);
}

TEST(puts_end_at_seventy_percent_and_single_gets_keep_the_files_within_the_limit)
{
    static char body[3000];
    struct mqe_settings settings = engine_settings();
    struct mqe_manager_status now;
    settings.journal_limit = 8 << 20;
    engine_begin_with(&settings);
    struct queue q = QUEUE("Q", 0);
    int status = 0;
    while (status == 0) {
        status = PUT(q, .body = body, .length = sizeof body, .persistent = 1);
    }
    CHECK_INT(status, MQRC_STORAGE_MEDIUM_FULL);
    CHECK(strstr(mqx_error_text(), "70 %") != NULL);
    CHECK(strstr(mqx_error_text(), "the deepest queue is Q with ") != NULL);
    CHECK_INT(mqe_status(engine.manager, &now), 0);
    CHECK(now.live_bytes <= now.live_limit + MQX_RING_RECORD_MAX + sizeof body);
    CHECK(now.live_bytes > now.live_limit - 2 * sizeof body);
    CHECK(now.journal_bytes <= now.journal_limit);
    while (depth(q) > 0) { /* each get takes a page of journal */
        CHECK_STR(TAKE(q), "");
        CHECK_INT(got.status, 0);
        CHECK_INT(mqe_status(engine.manager, &now), 0);
        CHECK(now.journal_bytes <= now.journal_limit);
    }
    CHECK_INT(now.live_bytes, 0);
    CHECK_INT(PUT(q, .body = body, .length = sizeof body, .persistent = 1), 0);
}

TEST(a_forgotten_message_does_not_stop_the_traffic_of_others)
{
    static char body[20000];
    struct mqe_settings settings = engine_settings();
    settings.journal_limit = 8 << 20;
    engine_begin_with(&settings);
    struct queue q = QUEUE("Q", 0), dead = QUEUE("DEAD", 0);
    for (int i = 0; i < 2000; i++) { /* five times the limit */
        if (i % 40 == 0) {
            CHECK_INT(PUT(dead, .text = "a dead letter", .persistent = 1), 0);
        }
        CHECK_INT(PUT(q, .body = body, .length = sizeof body, .persistent = 1), 0);
        CHECK_STR(TAKE(q), "");
        CHECK_INT(got.status, 0);
    }
    CHECK_INT(depth(dead), 50);
    engine_kill_and_restart();
    CHECK_INT(depth(engine_find("DEAD")), 50);
    CHECK_INT(depth(engine_find("Q")), 0);
    CHECK_STR(TAKE(engine_find("DEAD")), "a dead letter");
}

TEST(on_z_os_generated_ids_begin_with_csq)
{
    struct mqe_settings settings = engine_settings();
    uint8_t id[24];
    settings.platform = 1;
    engine_begin_with(&settings);
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "x"), 0);
    CHECK_MEM(put_descriptor.msg_id, "CSQ QM1         ", 16);
    CHECK_INT(mqe_new_id(engine.manager, id), 0);
    CHECK_MEM(id, "CSQ QM1         ", 16);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
