/* Claims of long_units.c: units that are open for too long are backed out by whoever maintains the
 * queue manager, never under the hands of their owner, once, and wholly although helpers die. */
#include "fixtures/death_fixture.h"
#include "fixtures/prepared_fixture.h"
#include "unit/long_units.h"

enum { AGE_S = 10, SECOND = 1000000 };

static uint64_t clock_us;

static void pass_seconds(uint64_t seconds)
{
    clock_us += seconds * SECOND;
    memory_io_set_clock(engine.files, clock_us);
}

/* A queue manager in memory whose units may be AGE_S old. */
static struct queue begin(uint32_t max_age_s)
{
    struct mqe_settings settings = engine_settings();
    settings.max_unit_age = max_age_s;
    engine_begin_with(&settings);
    clock_us = UINT64_C(1800000000) * SECOND;
    pass_seconds(0);
    return QUEUE("Q", 0);
}

static struct mqx_context *context_of(const mqe_unit *unit)
{
    return mqx_context(engine_region(), unit->context);
}

static uint32_t access_of(const mqe_unit *unit)
{
    return mqx_load_acquire(&context_of(unit)->access);
}

/* A unit that has got "a" and put "b". */
static mqe_unit *unit_of_two(struct queue q, int persistent)
{
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "a", .persistent = persistent), 0);
    CHECK_STR(TAKE(q, .unit = unit), "a");
    CHECK_INT(PUT(q, .text = "b", .unit = unit, .persistent = persistent), 0);
    CHECK_INT(access_of(unit), MQX_ACCESS_OPEN);
    return unit;
}

static struct mqx_lock *helpers_lock(void)
{
    return &engine_region()->header->maintenance_lock;
}

static uint32_t help(bool full)
{
    struct mqx_long_units units;
    CHECK_INT(mqx_lock_take(engine_region(), helpers_lock()), 0);
    CHECK_INT(mqx_long_units_back_out(&engine.manager->store, full, &units), 0);
    mqx_lock_drop(engine_region(), helpers_lock());
    return units.count;
}

/* ---- which, and what the owner is told ---- */

TEST(a_unit_that_is_too_old_is_backed_out_by_a_round_whatever_it_holds)
{
    for (int persistent = 0; persistent < 2; persistent++) {
        struct queue q = begin(AGE_S);
        mqe_unit *unit = unit_of_two(q, persistent);
        pass_seconds(AGE_S - 1);
        CHECK_INT(mqe_maintain(engine.manager), 0);
        CHECK_INT(access_of(unit), MQX_ACCESS_OPEN);
        CHECK_INT(depth(q), 1);
        pass_seconds(2);
        CHECK_INT(mqe_maintain(engine.manager), 0);
        CHECK_INT(access_of(unit), MQX_ACCESS_BACKED_OUT);
        CHECK_INT(context_of(unit)->state, MQX_CTX_IDLE);
        CHECK_STR(TAKE(q), "a");
        CHECK_INT(got.backout_count, 1);
        CHECK_STR(TAKE(q), "(2033)");
        CHECK_INT(mqe_unit_count(unit), 2);
        CHECK_INT(mqe_check(engine.manager), 0);
    }
}

TEST(each_call_in_a_unit_that_was_backed_out_is_2003_until_it_is_ended)
{
    struct queue q = begin(AGE_S);
    const struct ps_xid xid = xid_of(1);
    struct mqe_get get = {.flags = 0};
    int64_t ends[2] = {0};
    struct mqe_batch batch = {.capacity = 1, .offsets = ends};
    for (int end = 0; end < 4; end++) {
        mqe_unit *unit = unit_of_two(q, 1);
        pass_seconds(AGE_S + 1);
        CHECK_INT(mqe_maintain(engine.manager), 0);
        CHECK_INT(PUT(q, .text = "c", .unit = unit), MQRC_BACKED_OUT);
        CHECK(strstr(mqe_error_text(), "older than limits.max_unit_age") != NULL);
        CHECK_STR(TAKE(q, .unit = unit), "(2003)");
        CHECK_INT(mqe_get_batch(engine.manager, unit, q.handle, &get, &batch), MQRC_BACKED_OUT);
        CHECK_INT(PUT(q, .text = "c", .unit = unit, .persistent = 1), MQRC_BACKED_OUT);
        if (end == 0) {
            CHECK_INT(mqe_commit(unit), MQRC_BACKED_OUT);
        } else if (end == 1) {
            CHECK_INT(mqe_backout(unit), 0);
            CHECK_STR(mqe_error_text(), "");
        } else if (end == 2) {
            CHECK_INT(mqe_prepare(unit, &xid, 0), MQRC_BACKED_OUT);
        }
        if (end < 3) {
            CHECK_INT(access_of(unit), MQX_ACCESS_OWNER);
            CHECK_INT(mqe_unit_count(unit), 0);
            CHECK_INT(PUT(q, .text = "next", .unit = unit, .persistent = 1), 0);
            CHECK_INT(mqe_commit(unit), 0);
            CHECK_STR(drain(q), "a next");
        } else {
            mqe_unit_free(engine.units[--engine.unit_count]);
            CHECK_STR(drain(q), "a");
        }
    }
    CHECK_INT(prepared_count(), 0);
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(without_a_limit_no_unit_is_too_old_and_with_one_none_that_holds_nothing)
{
    struct queue q = begin(0);
    mqe_unit *unit = unit_of_two(q, 1);
    pass_seconds(1000000);
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_INT(mqe_commit(unit), 0);
    q = begin(AGE_S);
    unit = engine_unit();
    ALTER(q, "Q", PUT_DISABLED, 1);
    CHECK_INT(PUT(q, .text = "x", .unit = unit), MQRC_PUT_INHIBITED);
    pass_seconds(1000000);
    CHECK_INT(mqe_maintain(engine.manager), 0);
    ALTER(q, "Q", PUT_DISABLED, 0);
    CHECK_INT(PUT(q, .text = "x", .unit = unit), 0);
    CHECK_INT(mqe_commit(unit), 0);
}

TEST(a_clock_that_is_set_back_makes_no_unit_old)
{
    struct queue q = begin(AGE_S);
    mqe_unit *unit = unit_of_two(q, 1);
    clock_us -= UINT64_C(1000000) * SECOND;
    pass_seconds(0);
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_INT(mqe_commit(unit), 0);
}

TEST(prepared_units_and_those_of_autocommit_calls_are_never_backed_out)
{
    struct queue q = begin(AGE_S);
    mqe_unit *unit = unit_of_two(q, 1);
    const struct ps_xid xid = xid_of(7);
    uint32_t idle = 0;
    CHECK_INT(mqe_prepare(unit, &xid, 0), 0);
    CHECK_INT(mqx_pool_take(engine.manager, true, &idle), 0);
    mqx_unit_begin(&engine.manager->store, idle);
    pass_seconds(1000000);
    CHECK_INT(help(true), 0);
    CHECK_INT(mqx_context(engine_region(), idle)->state, MQX_CTX_ACTIVE);
    CHECK_INT(mqx_unit_backout(&engine.manager->store, idle), 0);
    mqx_pool_give(engine.manager, idle);
    CHECK_INT(prepared_count(), 1);
    CHECK_INT(mqe_commit_prepared(engine.manager, &xid, 1), 0);
    CHECK_STR(drain(q), "b");
}

TEST(an_owner_inside_a_call_keeps_its_unit_however_old_it_is)
{
    struct queue q = begin(AGE_S), other = QUEUE("OTHER", 0);
    mqe_unit *unit = unit_of_two(q, 1);
    struct waiter waiter;
    WAITER(&waiter, other, .unit = unit);
    CHECK(await_waiters(other, 1));
    CHECK_INT(access_of(unit), MQX_ACCESS_OWNER);
    pass_seconds(1000000);
    CHECK_INT(help(true), 0);
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_INT(PUT(other, .text = "wake", .persistent = 1), 0);
    CHECK_STR(waiter_end(&waiter), "wake");
    CHECK_INT(access_of(unit), MQX_ACCESS_OPEN);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(drain(q), "b");
}

/* ---- the journal ---- */

static char body[60000];

static struct queue begin_small(uint64_t limit)
{
    struct mqe_settings settings = engine_settings();
    settings.journal_limit = limit;
    engine_begin_with(&settings);
    return QUEUE("Q", MAXDEPTH, 100000);
}

static int put_body(struct queue q, mqe_unit *unit)
{
    return PUT(q, .body = body, .length = sizeof body, .persistent = 1, .unit = unit);
}

TEST(a_unit_since_whose_first_record_80_percent_of_the_journal_were_written_is_backed_out)
{
    struct queue q = begin_small(4 << 20), busy = QUEUE("BUSY", 0);
    const struct mqx_journal *journal = engine_region()->journal;
    mqe_unit *unit = unit_of_two(q, 1);
    const uint64_t first = context_of(unit)->first_lsn;
    int turns = 0;
    for (; turns < 700 && access_of(unit) == MQX_ACCESS_OPEN; turns++) { /* ten times the limit */
        const uint64_t tail = journal->tail;
        CHECK_INT(mqe_maintain(engine.manager), 0);
        CHECK_INT(access_of(unit) == MQX_ACCESS_BACKED_OUT, mqx_unit_is_long(journal, tail, first));
        CHECK_INT(put_body(busy, NULL), 0);
        CHECK_INT((TAKE(busy), got.status), 0);
    }
    CHECK(turns < 100);
    CHECK_INT(mqe_commit(unit), MQRC_BACKED_OUT);
    CHECK(strstr(mqe_error_text(), "80 % of journal.limit") != NULL);
    CHECK_STR(drain(q), "a");
}

TEST(a_put_that_finds_the_journal_full_backs_out_the_oldest_unit_that_takes_its_space)
{
    struct queue q = begin_small(8 << 20), busy = QUEUE("BUSY", MAXDEPTH, 100000);
    mqe_unit *old = engine_unit(), *young = engine_unit();
    for (int i = 0; i < 50; i++) {
        CHECK_INT(put_body(q, old), 0);
    }
    CHECK_INT(PUT(q, .text = "young", .unit = young, .persistent = 1), 0);
    int status = 0;
    for (int i = 0; i < 70 && status == 0; i++) {
        status = put_body(busy, NULL);
    }
    CHECK_INT(status, 0);
    CHECK_INT(access_of(old), MQX_ACCESS_BACKED_OUT);
    CHECK_INT(mqe_commit(young), 0);
    CHECK_INT(mqe_commit(old), MQRC_BACKED_OUT);
    CHECK_STR(drain(q), "young");
    CHECK_INT(depth(busy), 70);
}

TEST(a_round_backs_out_one_unit_when_live_messages_take_80_percent_of_what_puts_may_use)
{
    struct queue q = begin_small(8 << 20);
    mqe_unit *units[2] = {engine_unit(), engine_unit()};
    const uint64_t most = mqx_journal_live_limit(engine_region()->journal);
    CHECK_INT(PUT(q, .text = "x", .unit = units[0], .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "y", .unit = units[1], .persistent = 1), 0);
    while (mqx_store_live_bytes(engine_region()) <= most / 10 * 8) {
        CHECK_INT(mqe_maintain(engine.manager), 0);
        CHECK_INT(access_of(units[0]), MQX_ACCESS_OPEN);
        CHECK_INT(put_body(q, NULL), 0);
    }
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_INT(access_of(units[0]), MQX_ACCESS_BACKED_OUT);
    CHECK_INT(access_of(units[1]), MQX_ACCESS_OPEN);
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_INT(access_of(units[1]), MQX_ACCESS_BACKED_OUT);
}

/* ---- claims and deaths ---- */

TEST(a_claim_for_a_unit_that_is_not_the_one_that_was_too_old_changes_nothing)
{
    struct queue q = begin(AGE_S);
    mqe_unit *unit = unit_of_two(q, 1);
    CHECK_INT(help(true), 0);
    CHECK_INT(access_of(unit), MQX_ACCESS_OPEN);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(drain(q), "b");
}

static uint32_t backing_word(void)
{
    return MQX_ACCESS_BACKING | engine_region()->process << MQX_ACCESS_BITS;
}

static void claim_and_die(uint32_t slot, uint32_t how)
{
    struct mqx_context *unit = mqx_context(engine_region(), slot);
    struct mqx_store *store = &engine.manager->store;
    if (mqx_lock_take(engine_region(), helpers_lock()) != 0 ||
        !mqx_cas32(&unit->access, MQX_ACCESS_OPEN, backing_word())) {
        _exit(20);
    }
    if (how == 1) { /* as far as its record */
        mqx_store_release(&unit->state, MQX_CTX_BACKING_OUT);
    } else if (how == 2 && mqx_unit_backout(store, slot) != 0) {
        _exit(21);
    }
}

static int help_and_die(const struct part *part)
{
    claim_and_die(part->how >> 8, part->how & 0xff);
    return 0;
}

TEST(whoever_finds_what_a_dead_helper_left_finishes_it_the_owner_or_the_reaper)
{
    for (uint32_t how = 0; how < 6; how++) {
        engine_begin_real();
        struct queue q = QUEUE("Q", 0);
        mqe_unit *unit = unit_of_two(q, 1);
        after_death_in(help_and_die, q, unit->context << 8 | how % 3);
        CHECK_INT(access_of(unit) & MQX_ACCESS_MASK, MQX_ACCESS_BACKING);
        CHECK(mqe_unit_count(unit) != 0);
        if (how >= 3) {
            CHECK_INT(mqe_maintain(engine.manager), 0);
            CHECK_INT(access_of(unit), MQX_ACCESS_BACKED_OUT);
        }
        CHECK_INT(PUT(q, .text = "c", .unit = unit), MQRC_BACKED_OUT);
        CHECK_INT(mqe_commit(unit), MQRC_BACKED_OUT);
        CHECK_STR(drain(q), "a");
        CHECK_INT(mqe_check(engine.manager), 0);
        CHECK_INT(mqe_maintain(engine.manager), 0);
    }
}

/* An owner whose unit another process was backing out when both were killed. */
static int own_and_die(const struct part *part)
{
    struct queue q = part->q;
    q.handle = engine_open(q, 2 | MQE_BROWSE | MQE_OUTPUT);
    mqe_unit *unit = engine_unit();
    TAKE(q, .unit = unit);
    if (got.status != 0 || PUT(q, .text = "b", .unit = unit, .persistent = 1) != 0) {
        return 10;
    }
    if (part->how < 3) {
        claim_and_die(unit->context, part->how);
    } else if (part->how == 3) {
        mqx_store_release(&context_of(unit)->access, MQX_ACCESS_OWNER);
    }
    return 0;
}

TEST(the_unit_of_a_dead_owner_is_the_reapers_wherever_its_helper_was)
{
    for (uint32_t how = 0; how < 5; how++) {
        engine_begin_real();
        struct queue q = QUEUE("Q", 0);
        CHECK_INT(PUT(q, .text = "a", .persistent = 1), 0);
        after_death_in(own_and_die, q, how);
        CHECK_INT(mqe_maintain(engine.manager), 0);
        CHECK_STR(TAKE(q), "a");
        CHECK_INT(got.backout_count, 1);
        CHECK_STR(TAKE(q), "(2033)");
        for (uint32_t slot = 1; slot < mqx_area_used(engine_region(), MQX_AREA_CONTEXTS); slot++) {
            CHECK_INT(mqx_context(engine_region(), slot)->access, MQX_ACCESS_OWNER);
        }
        CHECK_INT(mqe_check(engine.manager), 0);
    }
}

TEST(a_process_leaves_in_order_with_a_unit_that_was_backed_out_or_is_half_so)
{
    for (uint32_t how = 0; how < 3; how++) {
        engine_begin_real();
        struct queue q = QUEUE("Q", 0);
        mqe_unit *unit = unit_of_two(q, 1);
        after_death_in(help_and_die, q, unit->context << 8 | how);
        CHECK_INT(engine_detach(MQE_DETACH_ORDERLY, NULL), 0);
        CHECK_INT(engine_attach(), 0);
        CHECK_STR(drain(engine_find("Q")), "a");
    }
}

/* ---- owner and helper at once ---- */

struct helper {
    pthread_t thread;
    uint32_t stop, backed_out; /* atomic */
};

static void *helper_main(void *arg)
{
    struct helper *helper = arg;
    struct mqx_long_units units;
    while (mqx_load_acquire(&helper->stop) == 0) {
        if (mqx_lock_take(engine_region(), helpers_lock()) == 0) {
            if (mqx_long_units_back_out(&engine.manager->store, false, &units) == 0) {
                mqx_add_relaxed(&helper->backed_out, units.count);
            }
            mqx_lock_drop(engine_region(), helpers_lock());
        }
    }
    return NULL;
}

/* The clock stands far ahead of the moment that each unit is said to have begun, so all are too
 * old as soon as their owner is outside. */
TEST(units_are_whole_or_backed_out_while_a_helper_tries_to_take_each_from_its_owner)
{
    struct queue q = (begin(AGE_S), QUEUE("DEEP", MAXDEPTH, 100000));
    struct helper helper = {.stop = 0};
    mqe_unit *unit = engine_unit();
    uint32_t committed = 0, refused = 0;
    CHECK_INT(pthread_create(&helper.thread, NULL, helper_main, &helper), 0);
    for (int i = 0; i < 20000 && (refused < 50 || committed < 50); i++) {
        int status = 0;
        for (int k = 0; k < 2 && status == 0; k++) {
            status = PUT(q, .text = "x", .unit = unit, .persistent = i % 2);
            if (i % 3 == 0) {
                pass_seconds(AGE_S + 1);
                usleep(20);
            }
        }
        CHECK_INT(status != MQRC_BACKED_OUT ? status : 0, 0);
        const int ended = mqe_commit(unit);
        CHECK(ended == MQRC_BACKED_OUT || (ended == 0 && status == 0));
        committed += ended == 0;
        refused += ended != 0;
    }
    mqx_store_release(&helper.stop, 1u);
    CHECK_INT(pthread_join(helper.thread, NULL), 0);
    CHECK(refused >= 50 && committed >= 50);
    CHECK_INT(helper.backed_out, refused);
    CHECK_INT(depth(q), 2 * committed);
    CHECK_INT(mqe_check(engine.manager), 0);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
    CHECK(engine.manager == NULL);
}

TEST_MAIN()
