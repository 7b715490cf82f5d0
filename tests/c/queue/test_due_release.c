/* Claims of due_release.h: all that is due is there for a search, and waiters wake for it. */
#include "fixtures/due_fixture.h"

TEST(more_messages_than_one_hold_releases_are_all_there_at_the_first_get)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    enum { MANY = 3 * MQX_LOCKED_STEPS_MAX + 1 };
    for (int i = 0; i < MANY; i++) {
        CHECK_INT(PUT(q, .text = i == MANY - 1 ? "last" : "x", .delay_us = LONG,
                      .priority = i == MANY - 1 ? 9 : 0), 0);
    }
    pass(LONG);
    CHECK_STR(TAKE(q), "last"); /* the one of the highest priority, though it was put last */
    CHECK_INT(object(q)->delayed, 0);
}

TEST(waiters_get_what_becomes_due_while_they_sleep_though_it_was_put_later_or_is_due_earlier)
{
    static struct waiter waiter[3];
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "x", .delay_us = 600000), 0);
    for (int i = 0; i < 3; i++) {
        WAITER(&waiter[i], q, .wait_us = 30 * (int64_t)SECOND);
    }
    CHECK(await_waiters(q, 3));
    const uint64_t start = mqx_clock_monotonic_us();
    CHECK_INT(PUT(q, .text = "x", .delay_us = 100000), 0);
    CHECK_INT(PUT(q, .text = "x", .delay_us = 50000), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_STR(waiter_end(&waiter[i]), "x");
    }
    CHECK(mqx_clock_monotonic_us() - start < 10 * (uint64_t)SECOND);
    CHECK_INT(engine_region()->header->woken_by_bound, 0);
}

static void lose_tree(struct mqx_object *queue) { queue->due_root[0] = 0; }
static void lose_id_tree(struct mqx_object *queue) { queue->due_root[1] = 0; }
static void name_another(struct mqx_object *queue) { queue->due_root[0] = UINT32_MAX; }
static void lose_state(struct mqx_object *queue)
{
    mqx_message(engine_region(), queue->due_root[0])->state = MQX_MSG_GOT;
}

/* A search that finds damage must not try again and again. */
TEST(a_damaged_index_of_delayed_messages_ends_the_call_and_stops_the_queue_manager)
{
    void (*const damage[])(struct mqx_object *) = {lose_tree, lose_id_tree, name_another,
                                                   lose_state};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(damage); i++) {
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        CHECK_INT(PUT(q, .text = "x", .msg = 1, .delay_us = LONG), 0);
        CHECK(!cancel(q, 2)); /* makes the tree by MsgId */
        pass(LONG);
        damage[i](object(q));
        CHECK_STR(TAKE(q), "(2059)");
        CHECK(mqx_region_damaged());
        CHECK_INT(mqx_region_stopped(engine_region()), MQX_STOP_BROKEN);
    }
}

TEST_MAIN()
