/* Claims of context_pool.c: contexts are used again, by one call at a time. */
#include "fixtures/engine_fixture.h"

#include "region/damage.h"

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

TEST(an_idle_context_is_taken_from_the_pool_and_an_empty_pool_has_none)
{
    uint32_t first = 0, second = 0;
    engine_begin();
    mqx_pool_drain(engine.manager);
    CHECK(!mqx_pool_take_idle(engine.manager, true, &first));
    CHECK_INT(mqx_pool_take(engine.manager, true, &first), 0);
    CHECK_INT(mqx_context(engine_region(), first)->autocommit, 1);
    CHECK_INT(mqx_context(engine_region(), first)->process, engine_region()->process);
    mqx_pool_give(engine.manager, first);
    CHECK(mqx_pool_take_idle(engine.manager, false, &second));
    CHECK_INT(second, first);
    CHECK_INT(mqx_context(engine_region(), first)->autocommit, 0);
    mqx_pool_give(engine.manager, second);
}

TEST(a_context_beyond_the_room_of_the_pool_goes_back_to_the_region)
{
    static uint32_t slot[MQX_POOL_SIZE + 1];
    engine_begin();
    for (uint32_t i = 0; i <= MQX_POOL_SIZE; i++) {
        CHECK_INT(mqx_pool_take(engine.manager, true, &slot[i]), 0);
    }
    for (uint32_t i = 0; i <= MQX_POOL_SIZE; i++) {
        mqx_pool_give(engine.manager, slot[i]);
    }
    CHECK_INT(mqx_context(engine_region(), slot[MQX_POOL_SIZE])->state, MQX_CTX_FREE);
    CHECK_INT(mqx_context(engine_region(), slot[MQX_POOL_SIZE - 1])->state, MQX_CTX_IDLE);
    mqx_pool_drain(engine.manager);
    CHECK_INT(mqx_context(engine_region(), slot[0])->state, MQX_CTX_FREE);
}

TEST(a_context_whose_call_did_not_end_is_not_kept)
{
    uint32_t slot = 0, other = 0;
    engine_begin();
    mqx_pool_drain(engine.manager);
    CHECK_INT(mqx_pool_take(engine.manager, true, &slot), 0);
    mqx_store_release(&mqx_context(engine_region(), slot)->state, (uint32_t)MQX_CTX_ACTIVE);
    mqx_pool_give(engine.manager, slot);
    CHECK(!mqx_pool_take_idle(engine.manager, true, &other));
    mqx_store_release(&mqx_context(engine_region(), slot)->state, (uint32_t)MQX_CTX_IDLE);
    mqx_pool_give(engine.manager, slot);
}

TEST(a_damaged_context_stops_the_queue_manager_and_not_the_process)
{
    for (int what = 0; what < 4; what++) {
        uint32_t slot = 0;
        engine_begin();
        mqx_pool_drain(engine.manager);
        CHECK_INT(mqx_pool_take(engine.manager, true, &slot), 0);
        mqx_pool_give(engine.manager, slot);
        struct mqx_context *context = mqx_context(engine_region(), slot);
        context->head = what == 0 ? 5 : 0;
        context->pending_kind = what == 1 ? 77 : MQX_PENDING_NONE;
        context->process += what == 2;
        mqx_store_release(&context->state, what == 3 ? 77u : (uint32_t)MQX_CTX_IDLE);
        CHECK(!mqx_pool_take_idle(engine.manager, true, &slot));
        CHECK(mqx_region_damage_text(engine_region()) != NULL);
        CHECK_INT(mqx_enter(engine.manager, false), MQRC_CONNECTION_BROKEN);
    }
}

enum { THREADS = 4, TURNS = 20000 };
static uint32_t users[100000]; /* of each context */
static uint32_t doubles;

static void *take_and_give(void *arg)
{
    for (int i = 0; i < TURNS; i++) {
        uint32_t slot = 0;
        if (mqx_pool_take(engine.manager, true, &slot) != 0) {
            return arg;
        }
        if (mqx_fetch_add(&users[slot], 1u) != 0) {
            mqx_add_relaxed(&doubles, 1u);
        }
        (void)mqx_fetch_add(&users[slot], UINT32_MAX);
        mqx_pool_give(engine.manager, slot);
    }
    return NULL;
}

TEST(no_two_threads_have_the_same_context)
{
    pthread_t thread[THREADS];
    engine_begin();
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(pthread_create(&thread[i], NULL, take_and_give, &thread), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        CHECK_INT(pthread_join(thread[i], &failed), 0);
        CHECK(failed == NULL);
    }
    CHECK_INT(doubles, 0);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
