/* Claims of unit.c: units are whole, keep positions and counts, and commit only what is on the
 * disk. */
#include "fixtures/engine_fixture.h"
#include "os/interrupt.h"
#include "unit/unit.h"

#include <errno.h>

TEST(what_a_unit_puts_and_gets_is_nobody_elses_until_it_commits)
{
    engine_begin();
    struct queue a = QUEUE("A", 0), b = QUEUE("B", 0);
    mqe_unit *unit = engine_unit(), *other = engine_unit();
    for (int persistent = 0; persistent < 2; persistent++) {
        CHECK_INT(PUT(a, .text = "one", .persistent = persistent), 0);
        CHECK_STR(TAKE(a, .unit = unit), "one");
        CHECK_INT(PUT(b, .text = "two", .unit = unit, .persistent = persistent), 0);
        CHECK_STR(TAKE(a), "(2033)");
        CHECK_STR(TAKE(b), "(2033)");
        CHECK_STR(TAKE(b, .unit = other), "(2033)");
        CHECK_STR(TAKE(b, .unit = unit), "(2033)");
        CHECK_STR(TAKE(b, .flags = MQE_GET_BROWSE_FIRST), "(2033)");
        CHECK_INT(depth(a), 0);
        CHECK_INT(depth(b), 1);
        CHECK_INT(engine_status(a).got, 1);
        CHECK_INT(engine_status(b).uncommitted, 1);
        CHECK_INT(mqe_unit_count(unit), 2);
        CHECK_INT(mqe_commit(unit), 0);
        CHECK_INT(mqe_unit_count(unit), 0);
        CHECK_STR(TAKE(a), "(2033)");
        CHECK_STR(TAKE(b), "two");
        CHECK_INT(engine_status(a).got, 0);
        CHECK_INT(engine_status(b).uncommitted, 0);
    }
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(order_is_put_order_not_commit_order_within_a_priority_also_after_a_kill)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *early = engine_unit(), *late = engine_unit();
    CHECK_INT(PUT(q, .text = "1", .unit = early, .priority = 4, .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "2", .unit = late, .priority = 4, .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "3", .priority = 4, .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "4", .unit = early, .priority = 4, .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "0", .unit = late, .priority = 9, .persistent = 1), 0);
    CHECK_STR(peruse(q), "3");
    CHECK_INT(mqe_commit(late), 0);
    CHECK_STR(peruse(q), "0 2 3");
    CHECK_INT(mqe_commit(early), 0);
    CHECK_STR(peruse(q), "0 1 2 3 4");
    engine_kill_and_restart();
    CHECK_STR(drain(engine_find("Q")), "0 1 2 3 4");
}

TEST(a_backed_out_message_is_back_in_its_place_and_counts_it)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (int persistent = 0; persistent < 2; persistent++) {
        for (int i = 0; i < 4; i++) {
            const char text[2] = {(char)('a' + i), '\0'};
            CHECK_INT(PUT(q, .text = text, .priority = i < 3 ? 5 : 1, .persistent = persistent), 0);
        }
        for (uint32_t n = 0; n < 3; n++) {
            CHECK_STR(TAKE(q, .unit = unit), "a");
            CHECK_INT(got.backout_count, n);
            CHECK_STR(TAKE(q, .unit = unit), "b");
            CHECK_INT(PUT(q, .text = "gone", .priority = 5, .unit = unit,
                          .persistent = persistent), 0);
            CHECK_STR(peruse(q), "c d");
            CHECK_INT(mqe_backout(unit), 0);
            CHECK_STR(peruse(q), "a b c d");
        }
        CHECK_STR(TAKE(q), "a");
        CHECK_INT(got.backout_count, 3);
        CHECK_STR(drain(q), "b c d");
    }
}

TEST(a_unit_may_get_from_and_put_to_many_queues_and_is_whole_after_a_kill)
{
    struct queue q[20];
    char name[16], text[24];
    engine_begin();
    mqe_unit *kept = engine_unit(), *lost = engine_unit();
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "Q%d", i);
        snprintf(text, sizeof text, "from %d", i);
        q[i] = QUEUE(name, 0);
        CHECK_INT(PUT(q[i], .text = text, .persistent = 1), 0);
        CHECK_INT(PUT(q[i], .text = "second", .persistent = 1), 0);
    }
    for (int i = 0; i < 20; i++) {
        CHECK_INT((TAKE(q[i], .unit = kept), got.status), 0);
        CHECK_INT(PUT(q[(i + 7) % 20], .text = got.text, .unit = kept, .persistent = 1), 0);
        CHECK_INT((TAKE(q[i], .unit = lost), got.status), 0);
        CHECK_INT(PUT(q[i], .text = "never", .unit = lost, .persistent = 1), 0);
    }
    CHECK_INT(mqe_commit(kept), 0);
    engine_kill_and_restart();
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "Q%d", (i + 7) % 20);
        snprintf(text, sizeof text, "second from %d", i);
        CHECK_STR(drain(engine_find(name)), text);
    }
}

TEST(the_limit_of_a_unit_counts_puts_and_gets_and_the_unit_goes_on)
{
    struct mqe_settings settings = engine_settings();
    settings.max_uncommitted = 4;
    engine_begin_with(&settings);
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_STR(TAKE(q, .unit = unit), "a");
    for (int i = 0; i < 3; i++) {
        CHECK_INT(PUT(q, .text = "b", .unit = unit, .persistent = 1), 0);
    }
    CHECK_INT(PUT(q, .text = "c", .unit = unit), MQRC_SYNCPOINT_LIMIT_REACHED);
    CHECK_INT(PUT(q, .text = "d"), 0);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(drain(q), "b b b d");
}

TEST(ending_an_empty_unit_is_nothing_and_a_freed_unit_is_backed_out)
{
    mqe_unit *unit = NULL;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(mqe_unit_new(engine.manager, &unit), 0);
    const uint64_t tail = engine_region()->journal->tail;
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_INT(engine_region()->journal->tail, tail);
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(PUT(q, .text = "b", .unit = unit), 0);
    CHECK_STR(TAKE(q, .unit = unit), "a");
    mqe_unit_free(unit);
    CHECK_STR(TAKE(q), "a");
    CHECK_INT(got.backout_count, 1);
    CHECK_STR(TAKE(q), "(2033)");
}

TEST(units_of_ten_thousand_messages_commit_and_back_out_whole)
{
    engine_begin();
    struct queue q[3] = {QUEUE("A", MAXDEPTH, 99999), QUEUE("B", MAXDEPTH, 99999),
                         QUEUE("C", MAXDEPTH, 99999)};
    mqe_unit *unit = engine_unit();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 10000; i++) {
            CHECK_INT(PUT(q[i % 3], .text = "x", .unit = unit, .persistent = i % 2), 0);
        }
        CHECK_INT(round == 0 ? mqe_backout(unit) : mqe_commit(unit), 0);
        CHECK_INT(depth(q[0]) + depth(q[1]) + depth(q[2]), round == 0 ? 0 : 10000);
    }
    for (int i = 0; i < 9999; i++) {
        TAKE(q[i % 3], .unit = unit);
        CHECK_INT(got.status, 0);
    }
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_INT(depth(q[0]) + depth(q[1]) + depth(q[2]), 10000);
    CHECK_INT(mqe_check(engine.manager), 0);
    engine_kill_and_restart();
    CHECK_INT(engine.info.messages, 5000);
}

/* ---- durability, by the recorder ---- */

static bool contains(const struct memory_event *event, const char *text)
{
    return event->data != NULL && memmem(event->data, event->size, text, strlen(text)) != NULL;
}

/* Between the acks number - 1 and number: the text is in a durable write, and nothing that was
 * written is left without a flush. */
static bool flushed_before_ack(const struct memory_trace *trace, uint64_t number, const char *text)
{
    uint64_t acks = 0;
    bool durable = false, dirty = false, seen = false;
    for (uint32_t i = 0; i < trace->event_count && acks < number; i++) {
        const struct memory_event *event = &trace->events[i];
        switch (event->kind) {
        case MEMORY_EV_DWRITE: durable = durable || contains(event, text); break;
        case MEMORY_EV_WRITE:
            dirty = true;
            seen = seen || contains(event, text);
            break;
        case MEMORY_EV_SYNC:
            durable = durable || seen;
            dirty = false;
            break;
        case MEMORY_EV_ACK: acks++; break;
        default: break;
        }
    }
    return acks == number && durable && !dirty;
}

TEST(no_commit_put_or_get_of_a_persistent_message_returns_before_its_flush)
{
    static char text[30][24], long_body[150000];
    engine_begin();
    struct queue q = QUEUE("Q", MAXMSGL, 1000000);
    mqe_unit *unit = engine_unit();
    memset(long_body, 'z', sizeof long_body);
    memory_io_record(engine.files, engine.path);
    for (uint64_t i = 0; i < 30; i++) {
        snprintf(text[i], sizeof text[i], "message number %d!", (int)i);
        if (i % 3 == 0) {
            CHECK_INT(PUT(q, .text = text[i], .persistent = 1), 0);
        } else {
            CHECK_INT(PUT(q, .text = text[i], .persistent = 1, .unit = unit), 0);
            if (i % 3 == 2) {
                CHECK_INT(PUT(q, .body = long_body, .length = sizeof long_body, .persistent = 1,
                              .unit = unit, .priority = 0), 0);
            }
            CHECK_INT(mqe_commit(unit), 0);
        }
        memory_io_ack(engine.files, i);
    }
    struct memory_trace *trace = memory_io_take_trace(engine.files);
    bool all = true;
    for (uint64_t i = 0; i < 30; i++) {
        all = all && flushed_before_ack(trace, i + 1, text[i]);
    }
    memory_trace_free(trace);
    CHECK(all);
}

TEST(a_persistent_get_is_on_the_disk_when_it_returns_and_a_non_persistent_writes_nothing)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "p", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "np"), 0);
    memory_io_record(engine.files, engine.path);
    CHECK_STR(TAKE(q), "p");
    memory_io_ack(engine.files, 1);
    struct memory_trace *trace = memory_io_take_trace(engine.files);
    const bool flushed = flushed_before_ack(trace, 1, "");
    memory_trace_free(trace);
    CHECK(flushed);
    const uint64_t calls = memory_io_calls(engine.files, MEMORY_OP_COUNT);
    CHECK_STR(TAKE(q), "np");
    CHECK_INT(PUT(q, .text = "np"), 0);
    CHECK_INT(memory_io_calls(engine.files, MEMORY_OP_COUNT), calls);
    engine_kill_and_restart();
    CHECK_STR(TAKE(engine_find("Q")), "(2033)");
}

TEST(a_commit_whose_flush_fails_never_says_yes_and_stops_everything)
{
    const struct memory_fault fault = {.kind = MEMORY_FAULT_FLUSH, .at = 1, .for_ever = true,
                                       .ops = 1u << MEMORY_WRITE | 1u << MEMORY_SYNC,
                                       .error = EIO};
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "a", .unit = unit, .persistent = 1), 0);
    memory_io_set_fault(engine.files, &fault);
    CHECK_INT(mqe_commit(unit), MQRC_CONNECTION_BROKEN);
    CHECK_INT(PUT(q, .text = "b"), MQRC_CONNECTION_BROKEN);
    CHECK_STR(TAKE(q), "(2009)");
    CHECK_INT(mqe_commit(unit), MQRC_CONNECTION_BROKEN);
    memory_io_set_fault(engine.files, NULL);
}

TEST(a_unit_that_keeps_the_journal_too_long_is_backed_out_at_its_next_call)
{
    static char body[60000];
    struct mqe_settings settings = engine_settings();
    settings.journal_limit = 4 << 20;
    engine_begin_with(&settings);
    struct queue q = QUEUE("Q", 0), busy = QUEUE("BUSY", 0);
    mqe_unit *unit = engine_unit();
    uint32_t marked = 0;
    CHECK_INT(PUT(q, .text = "a", .persistent = 1), 0);
    CHECK_STR(TAKE(q, .unit = unit), "a");
    for (int i = 0; i < 80 && marked == 0; i++) {
        const int status = PUT(busy, .body = body, .length = sizeof body, .persistent = 1);
        if (status == 0) {
            TAKE(busy);
        }
        mqx_unit_mark_long(&engine.manager->store, &marked);
        marked += mqx_unit_must_back_out(mqx_context(engine_region(), unit->context));
    }
    CHECK(marked != 0);
    CHECK_INT(PUT(q, .text = "b", .unit = unit), MQRC_BACKED_OUT);
    CHECK_INT(mqe_commit(unit), MQRC_BACKED_OUT);
    CHECK_INT(mqe_unit_count(unit), 0);
    CHECK_STR(TAKE(q, .unit = unit), "a");
    CHECK_INT(got.backout_count, 1);
    CHECK_INT(mqe_commit(unit), 0);
}

/* A maintenance thread reads the tail, is preempted, and then looks at the units. */
TEST(a_unit_that_begins_after_the_tail_was_read_is_not_a_long_one)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    struct mqx_journal *journal = engine_region()->journal;
    mqe_unit *unit = engine_unit();
    uint32_t marked = 0;
    const uint64_t tail = journal->tail;
    CHECK_INT(PUT(q, .text = "a", .unit = unit, .persistent = 1), 0);
    const struct mqx_context *context = mqx_context(engine_region(), unit->context);
    CHECK(context->first_lsn >= tail);
    CHECK(!mqx_unit_is_long(journal, tail, context->first_lsn));
    CHECK(!mqx_unit_is_long(journal, context->first_lsn - 8, context->first_lsn));
    const uint64_t now = journal->tail;
    journal->tail = context->first_lsn - 8; /* as it was read before */
    mqx_unit_mark_long(&engine.manager->store, &marked);
    journal->tail = now;
    CHECK_INT(marked, 0);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(drain(q), "a");
}

TEST(a_mark_that_was_meant_for_an_earlier_unit_does_not_back_out_the_next_one)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    struct mqx_context *context = mqx_context(engine_region(), unit->context);
    CHECK_INT(PUT(q, .text = "a", .unit = unit, .persistent = 1), 0);
    const uint64_t earlier = context->first_lsn;
    CHECK_INT(mqe_commit(unit), 0);
    mqx_store_release(&context->must_back_out, earlier);
    CHECK_INT(PUT(q, .text = "b", .unit = unit, .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "c", .unit = unit), 0);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(drain(q), "a b c");
}

TEST(a_get_and_a_put_outside_a_unit_neither_join_one_nor_count)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "in", .unit = unit, .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "out", .persistent = 1), 0);
    CHECK_STR(TAKE(q), "out");
    CHECK_INT(mqe_unit_count(unit), 1);
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_STR(TAKE(q), "(2033)");
}

/* ---- damage: a reason code, never an abort; the next restart has what was acknowledged ---- */

static int commit_damaged(struct queue *q, void (*damage)(struct mqx_context *context))
{
    engine_begin();
    *q = QUEUE("Q", 0);
    CHECK_INT(PUT(*q, .text = "kept", .persistent = 1), 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(*q, .text = "a", .unit = unit, .persistent = 1), 0);
    CHECK_INT(PUT(*q, .text = "b", .unit = unit, .persistent = 1), 0);
    damage(mqx_context(engine_region(), unit->context));
    return mqe_commit(unit);
}

static void lose_the_head(struct mqx_context *context)
{
    context->head = 1u << 30;
}

static void close_a_circle(struct mqx_context *context)
{
    struct mqx_message *last = mqx_message(engine_region(), context->tail);
    last->unit_next = context->head;
}

static void take_a_free_entry(struct mqx_context *context)
{
    mqx_message(engine_region(), context->head)->state = MQX_MSG_FREE;
}

static void name_no_queue(struct mqx_context *context)
{
    mqx_message(engine_region(), context->head)->object = 1u << 30;
}

TEST(a_unit_is_not_decided_in_a_call_in_which_a_wait_was_interrupted)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "x", .unit = unit, .persistent = 1), 0);
    mqx_interrupt_allow(true);
    CHECK(mqx_interrupt_take(0));
    CHECK_INT(mqe_commit(unit), MQE_INTERRUPTED);
    CHECK_INT(mqe_unit_count(unit), 1);
    mqx_interrupt_allow(false);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(TAKE(q), "x");
}

TEST(a_commit_of_a_damaged_list_stops_the_queue_manager_with_a_reason_code)
{
    static void (*const damages[])(struct mqx_context *) = {lose_the_head, close_a_circle,
                                                            take_a_free_entry, name_no_queue};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(damages); i++) {
        struct queue q;
        CHECK(commit_damaged(&q, damages[i]) != 0);
        CHECK_INT(mqx_region_stopped(engine_region()), MQX_STOP_BROKEN);
        engine_kill_and_restart();
        CHECK_STR(drain(engine_find("Q")), "kept a b"); /* the COMMIT record was durable before */
    }
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
