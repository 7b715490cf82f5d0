/* Claims of reaper.c: what a dead process had in progress is finished or undone, and live processes
 * go on. Processes are real and die by SIGKILL. */
#include "fixtures/engine_fixture.h"
#include "format/record_codec.h"
#include "queue/wait_list.h"
#include "queue/match.h"
#include "process/reaper.h"
#include "unit/unit.h"

/* A child that attaches for itself, does the deed and dies. */
struct deed {
    void (*run)(struct queue q, mqe_unit *unit);
    struct queue q;
};

static int die_with(void *arg)
{
    const struct deed *deed = arg;
    mqe_unit *unit = NULL;
    if (mqe_attach(engine.path, &engine.settings, &engine.manager, &engine.info) != 0) {
        return 3;
    }
    struct queue q = deed->q;
    if (mqe_open_direct(engine.manager, q.slot, q.generation, 2 | MQE_BROWSE | MQE_OUTPUT,
                        &q.handle) ||
        mqe_unit_new(engine.manager, &unit)) {
        return 4;
    }
    deed->run(q, unit);
    (void)kill(getpid(), SIGKILL);
    return 5;
}

static void after_death_of(void (*run)(struct queue q, mqe_unit *unit), struct queue q)
{
    struct deed deed = {run, q};
    CHECK_INT(in_child(die_with, &deed), 1000 + SIGKILL);
}

static uint32_t reap(void)
{
    uint32_t dead = 0;
    struct mqx_region *region = engine_region();
    CHECK_INT(mqx_lock_take(region, &region->header->maintenance_lock), 0);
    const int status = mqx_reap(&engine.manager->store, &dead);
    mqx_lock_drop(region, &region->header->maintenance_lock);
    CHECK_INT(status, 0);
    return dead;
}

/* Nothing of any other process is left in the tables. */
static bool only_we_are_left(void)
{
    const struct mqx_region *region = engine_region();
    struct mqe_manager_status status;
    bool clean = mqe_status(engine.manager, &status) == 0 && status.attached == 1 &&
                 mqe_check(engine.manager) == 0;
    for (uint32_t i = 1; i < region->header->area[MQX_AREA_CONTEXTS].used; i++) {
        const struct mqx_context *context = mqx_context(region, i);
        clean = clean && (context->state == MQX_CTX_FREE || context->process == region->process);
    }
    for (uint32_t i = 1; i < region->header->area[MQX_AREA_HANDLES].used; i++) {
        const struct mqx_handle *handle = mqx_handle(region, i);
        clean = clean && (handle->state == 0 || handle->process == region->process);
    }
    return clean;
}

static void put_and_get_in_a_unit(struct queue q, mqe_unit *unit)
{
    TAKE(q, .unit = unit);
    TAKE(q, .unit = unit);
    mqx_ignore(PUT(q, .text = "uncommitted", .unit = unit));
    mqx_ignore(PUT(q, .text = "uncommitted", .unit = unit, .persistent = 1));
}

TEST(the_unit_of_a_dead_process_is_backed_out_and_counted)
{
    engine_begin_real();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "np"), 0);
    CHECK_INT(PUT(q, .text = "p", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "last"), 0);
    for (uint32_t n = 1; n <= 3; n++) {
        after_death_of(put_and_get_in_a_unit, q);
        CHECK_STR(peruse(q), "last");
        CHECK_INT(depth(q), 3);
        CHECK_INT(reap(), 1);
        CHECK_STR(peruse(q), "np p last");
        TAKE(q, .flags = MQE_GET_BROWSE_FIRST);
        CHECK_INT(got.backout_count, n);
    }
    CHECK_INT(reap(), 0);
    CHECK(only_we_are_left());
}

static void decide_without_records(struct queue q, mqe_unit *unit)
{
    TAKE(q, .unit = unit);
    mqx_ignore(PUT(q, .text = "decided", .unit = unit));
    mqx_store_release(&mqx_context(engine_region(), unit->context)->state, MQX_CTX_DECIDED);
}

/* The COMMIT record is in the ring, nothing has been flushed. */
static void decide_with_records(struct queue q, mqe_unit *unit)
{
    TAKE(q, .unit = unit);
    mqx_ignore(PUT(q, .text = "decided", .unit = unit, .persistent = 1));
    const struct mqx_context *context = mqx_context(engine_region(), unit->context);
    const struct mqx_record_head head = {.type = PS_REC_COMMIT, .unit_id = context->unit_id};
    const struct ps_commit commit = {.first_lsn = context->first_lsn,
                                     .record_count = context->record_count,
                                     .running_crc = context->running_crc};
    unsigned char *record = mqx_scratch(256);
    const uint32_t length = mqx_encode_commit(record, &head, &commit);
    mqx_ignore(mqx_unit_append(&engine.manager->store, unit->context, record, length,
                               MQX_APPEND_DECIDES, 0));
}

TEST(a_unit_whose_owner_died_after_the_decision_is_rolled_forward)
{
    engine_begin_real();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "taken"), 0);
    after_death_of(decide_without_records, q);
    CHECK_INT(reap(), 1);
    CHECK_STR(drain(q), "decided");
    CHECK_INT(PUT(q, .text = "taken", .persistent = 1), 0);
    after_death_of(decide_with_records, q);
    const uint64_t durable = engine_region()->journal->durable;
    CHECK_INT(reap(), 1);
    CHECK(engine_region()->journal->durable > durable);
    CHECK_STR(peruse(q), "decided");
    CHECK(only_we_are_left());
    engine_restart();
    CHECK_STR(drain(engine_find("Q")), "decided");
}

static void lock_by_browse(struct queue q, mqe_unit *unit)
{
    (void)unit;
    TAKE(q, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK);
}

TEST(handles_and_browse_locks_of_a_dead_process_are_released)
{
    engine_begin_real();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "locked"), 0);
    after_death_of(lock_by_browse, q);
    CHECK_STR(peruse(q), "");
    CHECK_INT(engine_status(q).open_input, 2);
    CHECK_INT(reap(), 1);
    CHECK_INT(engine_status(q).open_input, 1);
    CHECK_INT(engine_status(q).open_output, 1);
    CHECK_STR(peruse(q), "locked");
    CHECK(only_we_are_left());
}

static void wait_for_correl_7(struct queue q, mqe_unit *unit)
{
    struct mqx_stripe_guard guard;
    struct mqx_match match;
    const struct mqe_get get = engine_ask(&(const struct ask){.correl = 7});
    struct mqx_context *context = mqx_context(engine_region(), unit->context);
    mqx_match_init(engine_region(), &get, &match);
    context->wait_match = match.bits;
    context->wait_tag[MQX_BY_CORREL_ID] = match.tag[MQX_BY_CORREL_ID];
    mqx_ignore(mqx_stripe_guard_take(engine_region(), q.slot, &guard));
    mqx_wait_list_add(&guard, q.slot, unit->context);
    mqx_stripe_guard_drop(&guard);
}

TEST(a_wake_up_that_a_dead_waiter_had_been_given_goes_to_another)
{
    struct mqx_stripe_guard guard;
    engine_begin_real();
    struct queue q = QUEUE("Q", 0);
    after_death_of(wait_for_correl_7, q); /* the oldest, and the more specific one */
    struct mqx_context *general = mqx_context(engine_region(), engine_unit()->context);
    CHECK_INT(mqx_stripe_guard_take(engine_region(), q.slot, &guard), 0);
    mqx_wait_list_add(&guard, q.slot,
                      engine.units[0]->context); /* takes anything; does not sleep */
    mqx_stripe_guard_drop(&guard);
    CHECK_INT(PUT(q, .text = "x", .correl = 7), 0);
    CHECK_INT(general->wait_state, MQX_WAIT_LISTED); /* the dead one was picked */
    CHECK_INT(reap(), 1);
    CHECK_INT(general->wait_state, MQX_WAIT_WOKEN);
    CHECK_INT(general->wait_word, 1);
    CHECK(only_we_are_left());
}

static void take_exclusively(struct queue q, mqe_unit *unit)
{
    mqe_queue *exclusive = NULL;
    (void)unit;
    (void)mqe_close(q.handle, MQE_CLOSE_KEEP);
    mqx_ignore(
        mqe_open_direct(engine.manager, q.slot, q.generation, MQE_INPUT_EXCLUSIVE, &exclusive));
}

TEST(exclusive_input_of_a_dead_process_is_free_again)
{
    engine_begin_real();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(engine_close(q.handle), 0);
    after_death_of(take_exclusively, q);
    CHECK(mqx_object(engine_region(), q.slot)->exclusive_input != 0);
    CHECK_INT(reap(), 1);
    (void)engine_open(q, MQE_INPUT_EXCLUSIVE);
    CHECK(only_we_are_left());
}

static void hold_the_stripe(struct queue q, mqe_unit *unit)
{
    struct mqx_stripe_guard guard;
    TAKE(q, .unit = unit);
    mqx_ignore(mqx_stripe_guard_take(engine_region(), q.slot, &guard));
    mqx_queue_make_available(&guard, mqx_object(engine_region(), q.slot),
                             mqx_context(engine_region(), unit->context)->head,
                             9); /* and no commit */
}

TEST(locks_of_the_dead_are_repaired_before_their_units_are_looked_at)
{
    engine_begin_real();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "x"), 0);
    after_death_of(hold_the_stripe, q);
    CHECK_INT(reap(), 1);
    CHECK_STR(TAKE(q), "x");
    CHECK_INT(got.backout_count, 1);
    CHECK(only_we_are_left());
}

static void fill_the_hand(struct queue q, mqe_unit *unit)
{
    struct mqx_stripe_guard guard;
    struct mqx_context *context = mqx_context(engine_region(), unit->context);
    uint64_t have = 0;
    uint32_t slot = 0;
    bool done = false;
    mqx_ignore(mqx_stripe_guard_take(engine_region(), q.slot, &guard));
    while (mqx_entry_take(&guard, &slot) != 0) {
        mqx_ignore(mqx_stripe_guard_supply(&guard));
    }
    mqx_guard_store32(&guard, &mqx_message(engine_region(), slot)->cells, 0);
    mqx_guard_store32(&guard, &context->pending_ref, slot);
    mqx_guard_store32(&guard, &context->pending_object, q.slot);
    mqx_guard_store32(&guard, &context->pending_kind, MQX_PENDING_RESERVED);
    mqx_stripe_guard_commit(&guard);
    while (!done && have < 2000000) {
        const uint64_t before = have;
        if (mqx_body_extend(&guard, mqx_message(engine_region(), slot), 3000000, &have, &done)) {
            have = before;
            mqx_ignore(mqx_stripe_guard_supply(&guard));
        } else {
            mqx_stripe_guard_commit(&guard);
        }
    }
}

TEST(memory_reserved_for_a_long_message_of_a_dead_process_is_free_again)
{
    engine_begin_real();
    struct queue q = QUEUE("Q", MAXMSGL, 5000000);
    after_death_of(fill_the_hand, q);
    CHECK_INT(reap(), 1);
    const uint64_t used = engine_region()->header->area[MQX_AREA_ARENA].used;
    for (int i = 0; i < 5; i++) {
        after_death_of(fill_the_hand, q);
        CHECK_INT(reap(), 1);
    }
    const uint64_t now = engine_region()->header->area[MQX_AREA_ARENA].used;
    CHECK(now - used <= 2 * MQX_BLOCK_MAX / MQX_CELL);
    CHECK(only_we_are_left());
}

TEST(many_that_die_at_once_are_swept_together)
{
    engine_begin_real();
    struct queue q = QUEUE("Q", 0);
    for (int i = 0; i < 30; i++) {
        CHECK_INT(PUT(q, .text = i % 2 ? "b" : "a"), 0);
    }
    /* deaths one after another: each attach cleans up after its predecessors, this process after
     * the last */
    for (int i = 0; i < 10; i++) {
        after_death_of(put_and_get_in_a_unit, q);
    }
    CHECK(reap() >= 1);
    CHECK_INT(depth(q), 30);
    TAKE(q, .flags = MQE_GET_BROWSE_FIRST);
    CHECK_INT(got.backout_count, 10);
    CHECK(only_we_are_left());
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
