/* Claims of queue_handle.c: an open that is refused leaves nothing. */
#include "fixtures/engine_fixture.h"

#include "os/block_hook.h"

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

static void count_block(void *arg)
{
    mqx_add_relaxed((uint32_t *)arg, 1u);
}

struct second {
    mqe_queue *handle;
    uint32_t blocked; /* atomic: calls of the hook */
    uint32_t locked;  /* atomic */
};

static void *lock_cursor(void *arg)
{
    struct second *second = arg;
    mqx_block_hook_arm(count_block, &second->blocked);
    mqx_cursor_lock(second->handle);
    mqx_store_release(&second->locked, 1u);
    mqx_cursor_unlock(second->handle);
    mqx_block_hook_arm(NULL, NULL);
    return NULL;
}

TEST(a_second_thread_waits_for_the_cursor_and_announces_it_once)
{
    pthread_t thread;
    uint32_t blocked = 0;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    struct second second = {.handle = q.handle};
    mqx_block_hook_arm(count_block, &blocked);
    mqx_cursor_lock(q.handle);
    CHECK_INT(blocked, 0); /* the cursor was free */
    mqx_block_hook_arm(NULL, NULL);
    CHECK_INT(pthread_create(&thread, NULL, lock_cursor, &second), 0);
    for (int i = 0; i < 60000 && mqx_load_acquire(&second.blocked) == 0; i++) {
        sleep_ms(1);
    }
    CHECK_INT(mqx_load_acquire(&second.blocked), 1);
    CHECK_INT(mqx_load_acquire(&second.locked), 0);
    mqx_cursor_unlock(q.handle);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(second.locked, 1);
    CHECK_INT(second.blocked, 1);
}

TEST(an_unknown_way_to_close_is_refused_and_the_handle_stays_open)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(mqe_close(q.handle, MQE_CLOSE_PURGE + 1), MQRC_OPTIONS_ERROR);
    CHECK_INT(PUT(q, .text = "x"), 0);
    CHECK_STR(TAKE(q), "x");
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
