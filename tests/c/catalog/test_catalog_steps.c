/*
 * test_catalog_steps.c - proves catalog_steps.h: waiting for an idle object, making a logged
 * definition active, giving a slot back.
 */
#include "fixtures/catalog_fixture.h"

#include <pthread.h>
#include <unistd.h>

static int take_idle(struct fixture_queue q)
{
    struct mqx_object *object = NULL;
    const int status = mqx_catalog_take_idle(process.store, q.slot, q.generation, &object);
    if (status == 0) {
        CHECK(object == object_of(q));
        CHECK(mqx_lock_held(region_of(), &region_of()->header->catalog_lock));
        mqx_catalog_drop_lock(region_of());
    }
    CHECK(!mqx_lock_held(region_of(), &region_of()->header->catalog_lock));
    return status;
}

TEST(an_idle_object_is_taken_with_the_lock_and_one_that_is_gone_is_not)
{
    struct fixture_queue q, stale;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    CHECK_INT(take_idle(q), 0);
    stale = q;
    stale.generation += 1;
    CHECK_INT(take_idle(stale), MQRC_UNKNOWN_OBJECT_NAME);
    stale.slot = 1u << 30;
    CHECK_INT(take_idle(stale), MQRC_UNKNOWN_OBJECT_NAME);
    mqx_object(region_of(), q.slot)->state = MQX_OBJ_DELETING;
    CHECK_INT(take_idle(q), MQRC_Q_DELETED);
}

static void *end_change(void *arg)
{
    struct mqx_object *object = arg;
    (void)usleep(30000);
    CHECK_INT(mqx_catalog_take_lock(region_of()), 0);
    mqx_undo_store32(region_of()->base, &region_of()->header->catalog_lock, &object->changer, 0);
    mqx_catalog_commit_and_drop(region_of());
    return NULL;
}

TEST(an_object_that_another_context_changes_is_waited_for)
{
    struct fixture_queue q;
    pthread_t thread;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    struct mqx_object *object = mqx_object(region_of(), q.slot);
    object->changer = 77;
    CHECK_INT(pthread_create(&thread, NULL, end_change, object), 0);
    CHECK_INT(take_idle(q), 0);
    CHECK_INT(object->changer, 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_logged_definition_becomes_active_and_one_with_a_pending_list_does_not)
{
    struct fixture_queue q;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    struct mqx_object *object = mqx_object(region_of(), q.slot);
    object->state = MQX_OBJ_LOGGED;
    object->pending_attrs = object->attrs;
    CHECK_INT(mqx_catalog_activate(process.store, q.slot), 0);
    CHECK_INT(object->state, MQX_OBJ_LOGGED);
    object->pending_attrs = 0;
    CHECK_INT(mqx_catalog_set_active(region_of(), q.slot, q.generation + 1), 0);
    CHECK_INT(object->state, MQX_OBJ_LOGGED); /* another life of the slot */
    CHECK(mqx_object_is_stored(object));
    CHECK_INT(mqx_catalog_activate(process.store, q.slot), 0);
    CHECK_INT(object->state, MQX_OBJ_ACTIVE);
    CHECK_INT(mqx_catalog_activate(process.store, 1u << 30), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_flush_makes_everything_in_the_ring_durable)
{
    struct fixture_queue q;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    const struct mqx_journal *journal = region_of()->journal;
    CHECK_INT(mqx_catalog_flush(process.store), 0);
    CHECK(journal->durable >= journal->batch_start);
    CHECK_INT(fixture_detach(&process, NULL), 0);
}

TEST(a_slot_is_given_back_with_its_name_and_its_cells_and_a_higher_generation)
{
    struct fixture_queue q, again;
    start();
    CHECK_INT(fixture_define(&process, "Q", NULL, &q), 0);
    CHECK_INT(mqx_catalog_take_lock(region_of()), 0);
    CHECK_INT(mqx_catalog_give_slot(region_of(), q.slot), 0);
    mqx_catalog_commit_and_drop(region_of());
    const struct mqx_object *object = object_of(q);
    CHECK_INT(object->state, MQX_OBJ_FREE);
    CHECK_INT(object->attrs, 0);
    CHECK_INT(object->name_next, 0);
    CHECK_INT(object->generation, q.generation + 1);
    CHECK_INT(fixture_find(&process, "Q", &again), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(mqx_catalog_take_lock(region_of()), 0);
    CHECK_INT(mqx_catalog_give_slot(region_of(), 1u << 30), MQRC_Q_MGR_NOT_AVAILABLE);
    mqx_catalog_commit_and_drop(region_of());
    CHECK(is_stopped_by_damage("object slot"));
}

TEST(the_fixture_is_cleared_away)
{
    stop();
    CHECK(process.store->files == NULL);
}

TEST_MAIN()
