/*
 * test_browse_lock.c - proves browse_lock.h: one locked message a handle, hidden from all others,
 * and available again in the same position when the lock ends.
 */
#include "fixtures/engine_fixture.h"
#include "queue/browse_lock.h"
#include "queue/wait_list.h"
#include "region/damage.h"

static struct queue q;
static struct mqx_stripe_guard guard;

/* Three messages; the guard of their stripe is held. */
static void begin(void)
{
    engine_begin();
    q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "a"), 0);
    CHECK_INT(PUT(q, .text = "b"), 0);
    CHECK_INT(PUT(q, .text = "c"), 0);
    CHECK_INT(mqx_stripe_guard_take(engine_region(), q.slot, &guard), 0);
}

static void end(void)
{
    mqx_stripe_guard_drop(&guard);
}

static struct mqx_object *object(void)
{
    return mqx_object(engine_region(), q.slot);
}

static uint32_t first(void)
{
    return mqx_priority_index_first(engine_region(), object());
}

static uint32_t find(void)
{
    return mqx_browse_lock_find(&guard, q.slot, q.handle->handle);
}

static struct queue through_another_handle(void)
{
    return (struct queue){q.slot, q.generation, engine_open(q, 2)};
}

TEST(a_locked_message_is_found_by_its_handle_and_hidden_from_all_others)
{
    begin();
    CHECK_INT(find(), 0);
    CHECK(!mqx_browse_lock_maybe(engine_region(), q.handle->handle));
    const uint32_t slot = first();
    mqx_browse_lock_set(&guard, object(), slot, q.handle->handle);
    CHECK_INT(find(), slot);
    CHECK(mqx_browse_lock_maybe(engine_region(), q.handle->handle));
    CHECK(first() != slot);
    CHECK_INT(mqx_browse_lock_find(&guard, q.slot + 1, q.handle->handle), 0); /* another queue */
    CHECK_INT(mqx_browse_lock_find(&guard, q.slot, 1u << 30), 0);             /* no handle */
    end();
    CHECK_STR(drain(through_another_handle()), "b c");
    CHECK_STR(drain(q), "a"); /* the handle itself gets it */
}

TEST(a_lock_that_ends_shows_the_message_at_its_old_position)
{
    begin();
    const uint32_t slot = first();
    mqx_browse_lock_set(&guard, object(), slot, q.handle->handle);
    mqx_browse_lock_end(&guard, object(), slot, q.handle->handle);
    CHECK_INT(find(), 0);
    CHECK_INT(first(), slot);
    mqx_browse_lock_end(&guard, object(), slot, q.handle->handle); /* not locked: nothing */
    CHECK_INT(guard.stripe->lock.undo_count, 0);
    end();
    CHECK_STR(drain(q), "a b c");
}

TEST(unlocking_a_handle_shows_its_message_and_returns_whether_there_was_one)
{
    begin();
    mqx_browse_lock_set(&guard, object(), first(), q.handle->handle);
    end();
    CHECK(mqx_handle_unlock(engine_region(), q.handle->handle));
    CHECK(!mqx_handle_unlock(engine_region(), q.handle->handle));
    CHECK(!mqx_handle_unlock(engine_region(), 1u << 30));
    CHECK_STR(drain(q), "a b c");
}

TEST(a_lock_whose_message_is_another_by_now_locks_nothing_and_is_forgotten)
{
    begin();
    const uint32_t slot = first();
    mqx_browse_lock_set(&guard, object(), slot, q.handle->handle);
    mqx_handle(engine_region(), q.handle->handle)->browse_number += 1;
    CHECK_INT(find(), 0);
    end();
    CHECK(!mqx_handle_unlock(engine_region(), q.handle->handle));
    CHECK_INT(mqx_handle(engine_region(), q.handle->handle)->browse_lock, 0);
    CHECK_INT(mqx_message(engine_region(), slot)->state, MQX_MSG_LOCKED);
}

TEST(a_waiting_get_takes_the_message_whose_lock_ends)
{
    begin();
    mqx_browse_lock_set(&guard, object(), first(), q.handle->handle);
    end();
    const struct queue other = through_another_handle();
    static struct waiter waiter;
    CHECK_STR(drain(other), "b c");
    WAITER(&waiter, other);
    CHECK(await_waiters(q, 1));
    CHECK(mqx_handle_unlock(engine_region(), q.handle->handle));
    CHECK_STR(waiter_end(&waiter), "a");
    CHECK_INT(woken_by_bound(), 0);
}

TEST(a_lock_that_cannot_be_true_stops_the_queue_manager)
{
    begin();
    const uint32_t slot = first();
    mqx_browse_lock_set(&guard, object(), slot, q.handle->handle);
    mqx_browse_lock_set(&guard, object(), first(), q.handle->handle); /* a second one */
    CHECK_INT(mqx_region_stopped(engine_region()), MQX_STOP_BROKEN);
    CHECK_INT(find(), slot);
    end();
    begin();
    const uint32_t other = first();
    mqx_browse_lock_set(&guard, object(), other, q.handle->handle);
    mqx_handle(engine_region(), q.handle->handle)->browse_lock = other + 1;
    mqx_browse_lock_end(&guard, object(), other, q.handle->handle);
    CHECK_INT(mqx_region_stopped(engine_region()), MQX_STOP_BROKEN);
    CHECK_INT(mqx_message(engine_region(), other)->state, MQX_MSG_LOCKED);
    end();
    CHECK(mqx_region_damaged());
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
