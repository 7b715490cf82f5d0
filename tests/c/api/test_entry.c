/* Claims of entry.c: what every call is refused for. */
#include "fixtures/engine_fixture.h"

struct child_case {
    struct queue q;
    mqe_unit *unit;
};

static int every_call_is_refused(void *arg)
{
    const struct child_case *c = arg;
    const struct ps_object_name name = engine_name("NEW");
    struct mqe_manager_status status;
    struct mqe_queue_status queue_status;
    uint32_t count;
    struct queue made;
    struct mqe_found found;
    mqe_queue *handle;
    mqe_unit *unit;
    uint64_t lost;
    const int results[] = {
        PUT(c->q, .text = "x"),
        (TAKE(c->q), got.status),
        mqe_commit(c->unit),
        mqe_backout(c->unit),
        mqe_unit_new(engine.manager, &unit),
        mqe_open_direct(engine.manager, c->q.slot, c->q.generation, 2, &handle),
        mqe_define(engine.manager, &name, NULL, 0, &made.slot, &made.generation),
        mqe_status(engine.manager, &status),
        mqe_queue_status(engine.manager, c->q.slot, c->q.generation, &queue_status),
        mqe_processes(engine.manager, NULL, 0, &count),
        mqe_units(engine.manager, NULL, 0, &count),
        mqe_handles(engine.manager, NULL, 0, &count),
        mqe_alter(engine.manager, c->q.slot, c->q.generation, &name, NULL, 0, 0, 0),
        mqe_delete(engine.manager, c->q.slot, c->q.generation, 1),
        mqe_clear(engine.manager, c->q.slot, c->q.generation),
        mqe_find(engine.manager, 1, name.name, 0, &found),
        mqe_checkpoint(engine.manager),
        mqe_maintain(engine.manager),
        mqe_check(engine.manager),
        mqe_end(engine.manager, MQE_END_IMMEDIATE),
    };
    for (size_t i = 0; i < MQX_ARRAY_COUNT(results); i++) {
        if (results[i] != MQRC_ENVIRONMENT_ERROR) {
            return 10 + (int)i;
        }
    }
    if (mqe_unit_count(c->unit) != 0) {
        return 9;
    }
    mqe_unit_free(c->unit);
    (void)mqe_close(c->q.handle, MQE_CLOSE_KEEP);
    return mqe_detach(engine.manager, MQE_DETACH_ORDERLY, &lost);
}

TEST(in_a_forked_child_every_call_is_refused_and_closing_harms_nobody)
{
    engine_begin_real();
    struct child_case c = {QUEUE("Q", 0), engine_unit()};
    CHECK_INT(PUT(c.q, .text = "parent's", .unit = c.unit), 0);
    CHECK_INT(in_child(every_call_is_refused, &c), 0);
    CHECK_INT(mqe_unit_count(c.unit), 1);
    CHECK_INT(mqe_commit(c.unit), 0);
    CHECK_STR(TAKE(c.q), "parent's");
    CHECK_INT(engine_status(c.q).open_input, 1);
}

TEST(quiescing_refuses_only_calls_that_ask_for_it)
{
    engine_begin();
    CHECK_INT(mqx_enter(engine.manager, true), 0);
    mqx_store_release(&engine_region()->header->quiescing, 1u);
    CHECK_INT(mqx_enter(engine.manager, true), MQRC_Q_MGR_QUIESCING);
    CHECK_INT(mqx_enter(engine.manager, false), 0);
    mqx_store_release(&engine_region()->header->quiescing, 0u);
}

TEST(file_calls_are_counted_while_they_are_under_way)
{
    engine_begin();
    const struct mqx_process *process =
        mqx_process_slot(engine_region(), engine_region()->process);
    CHECK_INT(process->calls_inside, 0);
    mqx_file_calls_begin(engine.manager);
    mqx_file_calls_begin(engine.manager);
    CHECK_INT(process->calls_inside, 2);
    mqx_file_calls_end(engine.manager);
    CHECK_INT(process->calls_inside, 1);
    mqx_file_calls_end(engine.manager);
    CHECK_INT(process->calls_inside, 0);
}

TEST(every_call_leaves_the_count_of_file_calls_as_it_was)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    const struct mqx_process *process =
        mqx_process_slot(engine_region(), engine_region()->process);
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "a", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "b", .persistent = 1, .unit = unit), 0);
    CHECK_INT(mqe_commit(unit), 0);
    CHECK_STR(drain(q), "a b");
    CHECK_INT(mqe_delete(engine.manager, q.slot, q.generation, 0), MQRC_OBJECT_IN_USE);
    CHECK_INT(process->calls_inside, 0);
}

TEST(the_lock_of_a_queue_is_given_for_its_generation_alone)
{
    struct mqx_stripe_guard guard;
    struct mqx_object *queue = NULL;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(mqx_queue_lock(engine_region(), q.slot, q.generation, &guard, &queue), 0);
    CHECK(queue == mqx_object(engine_region(), q.slot));
    CHECK(mqx_lock_held(engine_region(), &guard.stripe->lock));
    mqx_stripe_guard_drop(&guard);
    CHECK_INT(mqx_queue_lock(engine_region(), q.slot, q.generation + 1, &guard, &queue),
              MQRC_Q_DELETED);
    CHECK(!mqx_lock_held(engine_region(), &mqx_stripe_of(engine_region(), q.slot)->lock));
    CHECK_INT(mqx_queue_lock(engine_region(), UINT32_MAX, 1, &guard, &queue), MQRC_Q_DELETED);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
