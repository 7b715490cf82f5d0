/* Claims of queue.c: counts, clearing in steps, copying for checkpoints, loading,
 * damage. */
#include "fixtures/engine_fixture.h"

#include "base/clock.h"
#include "queue/queue.h"
#include "queue/wait_list.h"

static void expect_counts(struct queue q, uint32_t present, uint32_t got_now, uint32_t uncommitted)
{
    const struct mqx_object *queue = mqx_object(engine_region(), q.slot);
    CHECK_INT(queue->present, present);
    CHECK_INT(queue->got, got_now);
    CHECK_INT(queue->uncommitted, uncommitted);
    CHECK_INT(depth(q), present - got_now);
}

TEST(counts_follow_every_change_of_a_message)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (int persistent = 0; persistent < 2; persistent++) {
        expect_counts(q, 0, 0, 0);
        CHECK_INT(PUT(q, .text = "a", .persistent = persistent), 0);
        CHECK_INT(PUT(q, .text = "b", .persistent = persistent, .unit = unit), 0);
        expect_counts(q, 2, 0, 1);
        CHECK_STR(TAKE(q, .unit = unit), "a");
        expect_counts(q, 2, 1, 1);
        CHECK_INT(mqe_backout(unit), 0);
        expect_counts(q, 1, 0, 0);
        CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "a");
        expect_counts(q, 1, 0, 0);
        CHECK_STR(TAKE(q, .flags = MQE_GET_UNDER_CURSOR, .unit = unit), "a");
        expect_counts(q, 1, 1, 0);
        CHECK_INT(mqe_commit(unit), 0);
        expect_counts(q, 0, 0, 0);
    }
    const struct mqe_queue_status status = engine_status(q);
    CHECK_INT(status.put_count, 4);
    CHECK_INT(status.get_count, 2);
}

TEST(the_stripe_counts_its_persistent_messages)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    const struct mqx_stripe *stripe = mqx_stripe_of(engine_region(), q.slot);
    CHECK_INT(PUT(q, .text = "a", .persistent = 1), 0);
    CHECK_INT(PUT(q, .text = "b"), 0);
    CHECK_INT(PUT(q, .text = "c", .persistent = 1), 0);
    CHECK_INT(stripe->persistent_present, 2);
    engine_kill_and_restart();
    q = engine_find("Q");
    CHECK_INT(mqx_stripe_of(engine_region(), q.slot)->persistent_present, 2);
    CHECK_STR(drain(q), "a c");
    CHECK_INT(mqx_stripe_of(engine_region(), q.slot)->persistent_present, 0);
}

/* Marks the queue as logically deleted, as catalog_delete.c does. */
static void set_deleted(struct queue q, bool deleted)
{
    mqx_store_release(&mqx_object(engine_region(), q.slot)->state,
                      (uint32_t)(deleted ? MQX_OBJ_DELETING : MQX_OBJ_ACTIVE));
}

static uint32_t purge_all(struct queue q, uint32_t generation)
{
    struct mqx_purge purge = {.object = q.slot, .generation = generation};
    for (int i = 0; i < 100 && !purge.at_end; i++) {
        CHECK_INT(mqx_queue_purge_step(&engine.manager->store, &purge), 0);
    }
    CHECK(purge.at_end);
    return purge.freed;
}

TEST(purging_a_deleted_queue_removes_the_messages_that_are_not_held_of_it_alone)
{
    static char body[200000];
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (int i = 0; i < 200; i++) {
        CHECK_INT(PUT(q, .text = "x", .priority = i % 10), 0);
    }
    CHECK_INT(PUT(q, .body = body, .length = sizeof body), 0);
    CHECK_STR(TAKE(q, .unit = unit), "x");
    CHECK_INT(PUT(q, .text = "put", .unit = unit), 0);
    CHECK_STR(TAKE(q, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "x");
    CHECK_INT(purge_all(q, q.generation), 0); /* it is not deleted */
    set_deleted(q, true);
    CHECK_INT(purge_all(q, q.generation + 1), 0); /* another life of the slot is */
    CHECK_INT(purge_all(q, q.generation), 199);
    set_deleted(q, false);
    expect_counts(q, 3, 1, 1); /* got, put and locked ones */
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_STR(TAKE(q, .flags = MQE_GET_UNLOCK), "");
    CHECK_STR(drain(q), "x x");
}

TEST(indexes_of_a_deleted_queue_are_freed_when_it_is_empty_and_nobody_waits)
{
    bool more = true, gone = false;
    struct waiter waiter;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    struct mqx_store *store = &engine.manager->store;
    struct mqx_object *object = mqx_object(engine_region(), q.slot);
    for (uint64_t i = 1; i <= 300; i++) {
        CHECK_INT(PUT(q, .text = "x", .correl = i, .group = i), 0);
    }
    CHECK_STR(TAKE(q, .correl = 300), "x");
    CHECK_STR(TAKE(q, .group = 299), "x");
    CHECK(object->index[MQX_BY_CORREL_ID] != 0 && object->index[MQX_BY_GROUP_ID] != 0);
    set_deleted(q, true);
    CHECK_INT(mqx_queue_drop_step(store, q.slot, q.generation, &more, &gone), 0);
    CHECK(!more && !gone); /* messages are left */
    CHECK_INT(purge_all(q, q.generation), 298);
    set_deleted(q, false);
    WAITER(&waiter, q, .correl = 7);
    CHECK(await_waiters(q, 1));
    set_deleted(q, true);
    CHECK_INT(mqx_queue_drop_step(store, q.slot, q.generation, &more, &gone), 0);
    CHECK(!more && !gone);
    CHECK_INT(mqx_wait_list_cancel_all(store, q.slot), 0);
    CHECK_STR(waiter_end(&waiter), "(2052)");
    CHECK_INT(mqx_queue_drop_step(store, q.slot, q.generation + 1, &more, &gone), 0);
    CHECK(!more && !gone);
    for (int i = 0; i < 1000 && !gone; i++) {
        CHECK_INT(mqx_queue_drop_step(store, q.slot, q.generation, &more, &gone), 0);
        CHECK(more != gone);
    }
    CHECK(gone);
    for (int p = 0; p < MQX_PRIORITY_COUNT; p++) {
        CHECK_INT(object->level[p].root, 0);
    }
    CHECK_INT(object->index[0] + object->index[1] + object->index[2], 0);
    set_deleted(q, false);
}

TEST(a_checkpoint_lists_committed_persistent_messages_those_got_by_units_included)
{
    static struct psc_message out[500];
    struct mqx_cursor cursor = {0};
    uint32_t count = 0, total = 0;
    bool done = false;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (int i = 0; i < 200; i++) {
        CHECK_INT(PUT(q, .text = "x", .priority = 9 - i % 10, .persistent = i % 2, .correl = 5), 0);
    }
    CHECK_INT(PUT(q, .text = "y", .persistent = 1, .unit = unit), 0);
    for (int i = 0; i < 10; i++) {
        TAKE(q, .unit = unit);
        CHECK_INT(got.status, 0);
    }
    while (!done) {
        CHECK_INT(mqx_queue_copy_entries(&engine.manager->store, q.slot, &cursor, out + total,
                                         (uint32_t)(500 - total), &count, &done),
                  0);
        CHECK(count <= MQX_LOCKED_STEPS_MAX);
        total += count;
    }
    CHECK_INT(total, 100);
    for (uint32_t i = 1; i < total; i++) {
        CHECK(out[i - 1].placement > out[i].placement ||
              (out[i - 1].placement == out[i].placement && out[i - 1].number < out[i].number));
        CHECK(out[i].lsn != 0 && out[i].object_gen == q.generation);
    }
}

TEST(loading_refuses_what_names_no_queue_and_keeps_what_it_is_given)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    uint32_t slot = 0;
    struct mqx_queue_loading loading = {.store = &engine.manager->store};
    struct mqx_loaded loaded = {.m = {.object = q.slot, .number = 70001, .lsn = 8192, .length = 3,
                                      .placement = 4, .priority = 44, .backout_count = 6,
                                      .tag_correl_id = 123, .record_length = 300}};
    struct mqx_loaded bad = loaded;
    bad.m.object = 5000;
    CHECK_INT(mqx_queue_load(&loading, &bad, &slot), MQRC_OBJECT_DAMAGED);
    bad = loaded;
    bad.m.placement = 10;
    CHECK_INT(mqx_queue_load(&loading, &bad, &slot), MQRC_OBJECT_DAMAGED);
    CHECK_INT(mqx_queue_load(&loading, &loaded, &slot), 0);
    CHECK(mqx_stripe_guard_held(&loading.guard));
    mqx_queue_load_end(&loading);
    CHECK(!mqx_stripe_guard_held(&loading.guard));
    const struct mqx_message *message = mqx_message(engine_region(), slot);
    CHECK_INT(message->state, MQX_MSG_AVAILABLE);
    CHECK(message->number == 70001 && message->priority == 44 && message->backout_count == 6);
    CHECK(message->tag[MQX_BY_CORREL_ID] == 123 && message->cells == 0);
    expect_counts(q, 1, 0, 0);
    CHECK_INT(mqe_check(engine.manager), 0);
    engine_kill(); /* a message without a record is nothing to end in order with */
}

TEST(every_entry_and_cell_is_free_again_when_everything_has_been_taken)
{
    static char body[30000];
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    uint64_t used = 0, entries = 0;
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < 500; i++) {
            CHECK_INT(PUT(q, .body = body, .length = (uint64_t)(i * 53) % sizeof body,
                          .priority = i % 10, .persistent = i % 2, .correl = (uint64_t)i % 7,
                          .unit = i % 5 == 0 ? unit : NULL), 0);
        }
        CHECK_INT(round % 2 ? mqe_commit(unit) : mqe_backout(unit), 0);
        TAKE(q, .correl = 3);
        while (TAKE(q), got.status == 0) {
        }
        used = round == 1 ? engine_region()->header->area[MQX_AREA_ARENA].used : used;
        entries = round == 1 ? engine_region()->header->area[MQX_AREA_MESSAGES].used : entries;
    }
    CHECK(engine_region()->header->area[MQX_AREA_ARENA].used <= used + used / 8);
    CHECK_INT(engine_region()->header->area[MQX_AREA_MESSAGES].used, entries);
}

TEST(a_message_whose_state_cannot_be_stops_the_queue_manager_and_stays_as_it_is)
{
    for (int step = 0; step < 5; step++) {
        struct mqx_stripe_guard guard;
        bool pinned = true;
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        CHECK_INT(PUT(q, .text = "x"), 0);
        struct mqx_object *queue = mqx_object(engine_region(), q.slot);
        mqe_unit *unit = engine_unit();
        CHECK_INT(mqx_stripe_guard_take(engine_region(), q.slot, &guard), 0);
        const uint32_t slot = mqx_priority_index_first(engine_region(), queue);
        struct mqx_message *message = mqx_message(engine_region(), slot);
        switch (step) {
        case 0: mqx_queue_make_available(&guard, queue, slot, 0); break; /* it is shown */
        case 1:
            message->state = MQX_MSG_GOT;
            mqx_queue_claim(&guard, queue, slot, MQX_MSG_GOT, unit->context);
            break;
        case 2:
            message->state = MQX_MSG_FREE;
            CHECK(mqx_queue_remove(&guard, queue, slot, 0, &pinned));
            CHECK(!pinned);
            break;
        case 3: mqx_queue_claim(&guard, queue, 1u << 30, MQX_MSG_GOT, unit->context); break;
        default: mqx_unit_pop(&guard, unit->context); break; /* its list is empty */
        }
        mqx_stripe_guard_commit(&guard);
        mqx_stripe_guard_drop(&guard);
        CHECK_INT(mqx_region_stopped(engine_region()), MQX_STOP_BROKEN);
        CHECK_INT(queue->got + queue->uncommitted, 0);
        CHECK_INT(mqx_context(engine_region(), unit->context)->count, 0);
        CHECK_STR(TAKE(q), "(2009)");
    }
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
