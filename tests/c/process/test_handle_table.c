/* Claims of handle_table.c: who may open what together, counts, the pool of contexts, forked children. */
#include "fixtures/engine_fixture.h"

TEST(opens_are_counted_by_what_they_are_for_and_closes_count_back)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_queue *input = engine_open(q, 1), *browse = engine_open(q, MQE_BROWSE);
    mqe_queue *output = engine_open(q, MQE_OUTPUT);
    struct mqe_queue_status status = engine_status(q);
    CHECK_INT(status.open_input, 2); /* the bed's own handle is for all */
    CHECK_INT(status.open_output, 2);
    CHECK_INT(status.open_other, 1);
    CHECK_INT(engine_close(input), 0);
    CHECK_INT(engine_close(browse), 0);
    CHECK_INT(engine_close(output), 0);
    CHECK_INT(engine_close(q.handle), 0);
    status = engine_status(q);
    CHECK_INT(status.open_input + status.open_output + status.open_other, 0);
}

TEST(exclusive_input_excludes_every_other_input_and_nothing_else)
{
    mqe_queue *handle = NULL;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(mqe_open_direct(engine.manager, q.slot, q.generation, MQE_INPUT_EXCLUSIVE, &handle),
              MQRC_OBJECT_IN_USE);
    CHECK_INT(engine_close(q.handle), 0);
    mqe_queue *exclusive = engine_open(q, MQE_INPUT_EXCLUSIVE);
    CHECK_INT(mqe_open_direct(engine.manager, q.slot, q.generation, 2, &handle),
              MQRC_OBJECT_IN_USE);
    CHECK_INT(mqe_open_direct(engine.manager, q.slot, q.generation, MQE_INPUT_EXCLUSIVE, &handle),
              MQRC_OBJECT_IN_USE);
    (void)engine_open(q, MQE_OUTPUT);
    (void)engine_open(q, MQE_BROWSE);
    CHECK_INT(engine_close(exclusive), 0);
    (void)engine_open(q, 2);
}

TEST(a_queue_that_is_gone_cannot_be_opened_and_a_refused_open_leaves_no_handle)
{
    mqe_queue *handle = NULL;
    struct mqe_manager_status before, after;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(mqe_status(engine.manager, &before), 0);
    CHECK_INT(mqe_open_direct(engine.manager, q.slot, q.generation + 1, 2, &handle), 2085);
    CHECK_INT(mqe_open_direct(engine.manager, 99999999, 1, 2, &handle), 2085);
    CHECK_INT(mqe_open_direct(engine.manager, 0, 0, 2, &handle), 2085);
    CHECK_INT(mqe_open_direct(engine.manager, q.slot, q.generation, MQE_INPUT_EXCLUSIVE, &handle),
              2042);
    CHECK_INT(mqe_status(engine.manager, &after), 0);
    CHECK_INT(after.handles, before.handles);
}

TEST(a_thousand_calls_outside_units_use_the_same_contexts_again)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    const struct mqx_area *contexts = &engine_region()->header->area[MQX_AREA_CONTEXTS];
    const struct mqx_area *handles = &engine_region()->header->area[MQX_AREA_HANDLES];
    CHECK_INT(PUT(q, .text = "x", .persistent = 1), 0);
    CHECK_STR(TAKE(q), "x");
    CHECK_INT(engine_close(engine_open(q, 2)), 0);
    const uint64_t context_count = contexts->used, handle_count = handles->used;
    for (int i = 0; i < 1000; i++) {
        mqe_unit *unit = NULL;
        CHECK_INT(mqe_unit_new(engine.manager, &unit), 0);
        CHECK_INT(PUT(q, .text = "x", .persistent = 1, .unit = i % 2 ? unit : NULL), 0);
        CHECK_INT(mqe_commit(unit), 0);
        CHECK_STR(TAKE(q), "x");
        mqe_unit_free(unit);
        CHECK_INT(engine_close(engine_open(q, 2)), 0);
    }
    CHECK(contexts->used <= context_count + 1);
    CHECK_INT(handles->used, handle_count);
}

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

TEST(the_bed_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
