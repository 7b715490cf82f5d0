/* Claims of unit_access.c: what an owner meets that wants to enter its unit while another process
 * backs it out. */
#include "fixtures/engine_fixture.h"
#include "process/unit_access.h"
#include "unit/long_units.h"

static mqe_unit *unit_of_one(struct queue q)
{
    mqe_unit *unit = engine_unit();
    CHECK_INT(PUT(q, .text = "a", .unit = unit, .persistent = 1), 0);
    return unit;
}

static struct mqx_context *context_of(const mqe_unit *unit)
{
    return mqx_context(engine_region(), unit->context);
}

struct helper {
    pthread_t thread;
    mqe_unit *unit;
    uint32_t claimed, go_on; /* atomic */
};

static void *helper_main(void *arg)
{
    struct helper *helper = arg;
    struct mqx_store *store = &engine.manager->store;
    struct mqx_context *context = context_of(helper->unit);
    if (mqx_lock_take(engine_region(), &engine_region()->header->maintenance_lock) == 0) {
        (void)mqx_cas32(&context->access, MQX_ACCESS_OPEN,
                        MQX_ACCESS_BACKING | store->region.process << MQX_ACCESS_BITS);
        mqx_store_release(&helper->claimed, 1u);
        while (mqx_load_acquire(&helper->go_on) == 0) {
            sleep_ms(1);
        }
        mqx_ignore(mqx_long_units_continue(store, helper->unit->context));
        mqx_lock_drop(engine_region(), &engine_region()->header->maintenance_lock);
    }
    return NULL;
}

static void helper_start(struct helper *helper, mqe_unit *unit)
{
    *helper = (struct helper){.unit = unit};
    CHECK_INT(pthread_create(&helper->thread, NULL, helper_main, helper), 0);
    for (int i = 0; i < 20000 && mqx_load_acquire(&helper->claimed) == 0; i++) {
        sleep_ms(1);
    }
    CHECK_INT(mqx_load_acquire(&helper->claimed), 1);
}

static void helper_end(struct helper *helper)
{
    mqx_store_release(&helper->go_on, 1u);
    CHECK_INT(pthread_join(helper->thread, NULL), 0);
}

static void *free_soon(void *arg)
{
    struct helper *helper = arg;
    sleep_ms(50);
    mqx_store_release(&helper->go_on, 1u);
    return NULL;
}

TEST(an_owner_waits_until_the_helper_has_backed_its_unit_out)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = unit_of_one(q);
    struct helper helper;
    pthread_t other;
    helper_start(&helper, unit);
    CHECK_INT(pthread_create(&other, NULL, free_soon, &helper), 0);
    CHECK_INT(PUT(q, .text = "b", .unit = unit, .persistent = 1), MQRC_BACKED_OUT);
    CHECK_INT(context_of(unit)->access, MQX_ACCESS_BACKED_OUT);
    CHECK_INT(context_of(unit)->state, MQX_CTX_IDLE);
    CHECK_INT(pthread_join(other, NULL), 0);
    helper_end(&helper);
    CHECK_INT(mqe_commit(unit), MQRC_BACKED_OUT);
    CHECK_STR(drain(q), "");
}

TEST(a_process_that_leaves_waits_for_the_helper_of_each_of_its_units)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = unit_of_one(q), *other_unit = unit_of_one(q);
    struct helper helper;
    pthread_t other;
    helper_start(&helper, unit);
    CHECK_INT(pthread_create(&other, NULL, free_soon, &helper), 0);
    CHECK_INT(mqx_unit_enter_all(&engine.manager->store), 0);
    CHECK_INT(context_of(unit)->access, MQX_ACCESS_OWNER);
    CHECK_INT(context_of(unit)->state, MQX_CTX_IDLE);
    CHECK_INT(context_of(other_unit)->access, MQX_ACCESS_OWNER);
    CHECK_INT(context_of(other_unit)->state, MQX_CTX_ACTIVE);
    CHECK_INT(pthread_join(other, NULL), 0);
    helper_end(&helper);
}

TEST(a_wait_for_a_helper_ends_when_the_owner_wants_to_look_at_signals)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = unit_of_one(q);
    struct helper helper;
    helper_start(&helper, unit);
    mqe_interrupt_allow(1);
    CHECK_INT(PUT(q, .text = "b", .unit = unit, .persistent = 1), MQE_INTERRUPTED);
    mqe_interrupt_allow(1);
    CHECK_INT(mqe_commit(unit), MQE_INTERRUPTED);
    mqe_interrupt_allow(0);
    mqe_interrupt_allow(0);
    CHECK_INT(context_of(unit)->access & MQX_ACCESS_MASK, MQX_ACCESS_BACKING);
    helper_end(&helper);
    CHECK_INT(mqe_commit(unit), MQRC_BACKED_OUT);
}

TEST(a_word_that_cannot_be_true_stops_the_queue_manager)
{
    const uint32_t words[] = {77, MQX_ACCESS_BACKING, 1u << MQX_ACCESS_BITS,
                              MQX_ACCESS_BACKING | 0xffff00u, MQX_ACCESS_BACKED_OUT};
    for (size_t i = 0; i < MQX_ARRAY_COUNT(words); i++) {
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        mqe_unit *unit = unit_of_one(q);
        mqx_store_release(&context_of(unit)->access, words[i]);
        CHECK_INT(mqe_commit(unit), MQRC_Q_MGR_NOT_AVAILABLE);
        CHECK_INT(mqx_region_stopped(engine_region()), MQX_STOP_BROKEN);
        engine_kill_and_restart();
        CHECK_STR(drain(engine_find("Q")), "");
    }
}

TEST(a_word_that_gives_an_autocommit_call_a_helper_stops_the_queue_manager_at_the_next_round)
{
    engine_begin();
    uint32_t idle = 0;
    CHECK_INT(mqx_pool_take(engine.manager, true, &idle), 0);
    mqx_unit_begin(&engine.manager->store, idle);
    struct mqx_context *context = mqx_context(engine_region(), idle);
    mqx_store_release(&context->access, MQX_ACCESS_BACKING | 5u << MQX_ACCESS_BITS);
    CHECK(mqe_maintain(engine.manager) != 0);
    CHECK_INT(context->state, MQX_CTX_ACTIVE);
    CHECK_INT(mqx_region_stopped(engine_region()), MQX_STOP_BROKEN);
    engine_kill_and_restart();
}

TEST(a_unit_that_nobody_has_claimed_is_entered_without_a_lock)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = unit_of_one(q);
    struct mqx_lock *lock = &engine_region()->header->maintenance_lock;
    CHECK_INT(context_of(unit)->access, MQX_ACCESS_OPEN);
    CHECK_INT(mqx_lock_take(engine_region(), lock), 0);
    CHECK_INT(mqx_unit_enter(&engine.manager->store, unit->context), 0);
    CHECK_INT(context_of(unit)->access, MQX_ACCESS_OWNER);
    mqx_lock_drop(engine_region(), lock);
    mqx_unit_leave(&engine.manager->store, unit->context);
    CHECK_INT(context_of(unit)->access, MQX_ACCESS_OPEN);
    CHECK_INT(mqx_unit_enter_all(&engine.manager->store), 0);
    CHECK_INT(context_of(unit)->access, MQX_ACCESS_OWNER);
    CHECK_INT(mqe_commit(unit), 0);
    mqx_unit_leave(&engine.manager->store, unit->context);
    CHECK_INT(context_of(unit)->access, MQX_ACCESS_OWNER);
    CHECK_STR(drain(q), "a");
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
