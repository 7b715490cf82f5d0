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

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
