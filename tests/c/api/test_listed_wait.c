/* Claims of listed_wait.h and queue/wake_channel.h: gets that wait without a thread. */
#include "fixtures/due_fixture.h"

#include "api/listed_wait.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static mqe_channel *channel;

/* The files of the fixture are in memory; the names of channels are real ones. */
static void channel_begin(void)
{
    engine_begin();
    struct mqx_region *region = &engine.manager->store.region;
    (void)snprintf(region->wake_prefix, sizeof region->wake_prefix, "/tmp/penstock-wake-%d-",
                   (int)getpid());
    CHECK_INT(mqe_channel_new(engine.manager, &channel), 0);
}

static void channel_end(void)
{
    char path[MQX_WAKE_PATH];
    CHECK(mqx_wake_channel_path(&engine.manager->store.region, channel->context, path));
    mqe_channel_free(channel);
    CHECK_INT(unlink(path), 0);
}

static bool is_readable(void)
{
    struct pollfd one = {.fd = mqe_channel_fd(channel), .events = POLLIN};
    return poll(&one, 1, 0) == 1;
}

static int get_listed(struct queue q, struct mqe_wait *wait, uint32_t flags)
{
    static char body[64];
    struct mqe_get get = {.flags = MQE_GET_LISTED | flags,
                          .wait = wait,
                          .buffer = body,
                          .capacity = sizeof body};
    wait->channel = channel;
    return mqe_get(engine.manager, NULL, q.handle, &get);
}

static uint32_t picked(struct mqe_wait **out, int all)
{
    return mqe_channel_picked(channel, all, out, 8);
}

TEST(a_get_that_finds_nothing_is_listed_and_returns)
{
    struct mqe_wait wait = {0}, *out[8];
    channel_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(get_listed(q, &wait, 0), MQE_LISTED);
    CHECK_INT(engine_status(q).waiters, 1);
    CHECK(!is_readable());
    CHECK_INT(PUT(q, .text = "x"), 0);
    CHECK(is_readable());
    CHECK_INT(picked(out, 0), 1);
    CHECK(out[0] == &wait && !is_readable());
    CHECK_INT(picked(out, 1), 0); /* told once */
    CHECK_INT(get_listed(q, &wait, 0), 0);
    CHECK_INT(wait.context, 0);
    channel_end();
}

static const struct mqx_context *context_of(uint32_t slot)
{
    return mqx_context(&engine.manager->store.region, slot);
}

enum { TOLD_ROUNDS = 5000 };

static uint32_t rounds_begun;

static void *put_one_a_round(void *queue)
{
    for (uint32_t i = 1; i <= TOLD_ROUNDS; i++) {
        while (mqx_load_acquire(&rounds_begun) < i) {
            (void)sched_yield();
        }
        (void)PUT(*(struct queue *)queue, .text = "x");
    }
    return NULL;
}

TEST(what_a_channel_tells_has_been_picked_already)
{
    struct mqe_wait wait = {0}, *out[8];
    channel_begin();
    struct queue q = QUEUE("TOLD", 0);
    pthread_t thread;
    mqx_store_release(&rounds_begun, 0u);
    CHECK_INT(pthread_create(&thread, NULL, put_one_a_round, &q), 0);
    for (uint32_t i = 1; i <= TOLD_ROUNDS; i++) {
        CHECK_INT(get_listed(q, &wait, 0), MQE_LISTED);
        mqx_store_release(&rounds_begun, i);
        while (mqx_load_acquire(&context_of(channel->context)->channel_rung) == 0) {
        }
        CHECK(mqx_load_acquire(&context_of(wait.context)->wait_state) == MQX_WAIT_WOKEN);
        while (!is_readable()) {
        }
        CHECK_INT(picked(out, 0), 1);
        CHECK_INT(get_listed(q, &wait, 0), 0);
    }
    CHECK_INT(pthread_join(thread, NULL), 0);
    channel_end();
}

TEST(a_wait_that_ends_hands_its_wake_up_on)
{
    struct mqe_wait first = {0}, second = {0}, *out[8];
    channel_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(get_listed(q, &first, 0), MQE_LISTED);
    CHECK_INT(get_listed(q, &second, 0), MQE_LISTED);
    CHECK_INT(PUT(q, .text = "x"), 0);
    CHECK_INT(engine_status(q).waiters, 1);
    mqe_wait_end(&first);
    CHECK_INT(engine_status(q).waiters, 0);
    CHECK_INT(picked(out, 0), 1);
    CHECK(out[0] == &second);
    CHECK_INT(get_listed(q, &second, 0), 0);
    channel_end();
}

TEST(a_wait_that_was_faster_served_elsewhere_is_listed_again)
{
    struct mqe_wait wait = {0}, *out[8];
    channel_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(get_listed(q, &wait, 0), MQE_LISTED);
    CHECK_INT(PUT(q, .text = "x"), 0);
    CHECK_STR(TAKE(q), "x");
    CHECK_INT(picked(out, 0), 1);
    CHECK_INT(get_listed(q, &wait, 0), MQE_LISTED);
    CHECK_INT(engine_status(q).waiters, 1);
    mqe_wait_end(&wait);
    CHECK_INT(engine_status(q).waiters, 0);
    channel_end();
}

TEST(what_may_not_flush_says_so_and_does_nothing)
{
    struct mqe_wait wait = {0}, other = {0}, *out[8];
    channel_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(get_listed(q, &wait, 0), MQE_LISTED);
    CHECK_INT(get_listed(q, &other, 0), MQE_LISTED);
    CHECK_INT(PUT(q, .text = "x", .persistent = 1), 0);
    mqe_interrupt_at_once();
    CHECK_INT(get_listed(q, &wait, 0), MQE_INTERRUPTED);
    mqe_interrupt_allow(0);
    CHECK(wait.context != 0);
    CHECK_INT(picked(out, 0), 0); /* it keeps its wake-up: it has been called, and the other not */
    CHECK_INT(engine_status(q).waiters, 1);
    CHECK_INT(get_listed(q, &wait, 0), 0); /* as another thread does */
    CHECK_INT(wait.context, 0);
    mqe_wait_end(&other);
    mqe_interrupt_at_once();
    CHECK_INT(PUT(q, .text = "y", .persistent = 1), MQE_INTERRUPTED);
    CHECK_INT(PUT(q, .text = "z"), 0);
    mqe_interrupt_allow(0);
    CHECK_STR(TAKE(q), "z");
    CHECK_STR(TAKE(q), "(2033)");
    channel_end();
}

TEST(an_interrupted_wait_that_ends_hands_its_wake_up_on)
{
    struct mqe_wait wait = {0}, other = {0}, *out[8];
    channel_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(get_listed(q, &wait, 0), MQE_LISTED);
    CHECK_INT(get_listed(q, &other, 0), MQE_LISTED);
    CHECK_INT(PUT(q, .text = "x", .persistent = 1), 0);
    CHECK_INT(picked(out, 0), 1);
    mqe_interrupt_at_once();
    CHECK_INT(get_listed(q, &wait, 0), MQE_INTERRUPTED);
    mqe_interrupt_allow(0);
    mqe_wait_end(&wait);
    CHECK_INT(picked(out, 0), 1);
    CHECK(out[0] == &other);
    CHECK_INT(get_listed(q, &other, 0), 0);
    channel_end();
}

TEST(a_wait_knows_when_a_message_is_due_and_a_sooner_one_picks_it)
{
    struct mqe_wait wait = {0}, *out[8];
    channel_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(get_listed(q, &wait, 0), MQE_LISTED);
    CHECK_INT(mqe_wait_due_in(&wait), -1);
    CHECK_INT(PUT(q, .text = "1", .delay_us = 10 * LONG), 0);
    CHECK_INT(picked(out, 0), 1); /* it did not know of any */
    CHECK_INT(get_listed(q, &wait, 0), MQE_LISTED);
    pass(9 * LONG);
    CHECK(mqe_wait_due_in(&wait) > 0 && mqe_wait_due_in(&wait) <= (int64_t)LONG);
    CHECK_INT(PUT(q, .text = "2", .delay_us = LONG / 2), 0);
    CHECK_INT(picked(out, 0), 1);
    CHECK_INT(get_listed(q, &wait, 0), MQE_LISTED);
    CHECK_INT(PUT(q, .text = "3", .delay_us = 5 * LONG), 0);
    CHECK_INT(picked(out, 0), 0); /* that one is later */
    pass(LONG / 2 + 1);
    CHECK_INT(mqe_wait_due_in(&wait), 0);
    CHECK_INT(get_listed(q, &wait, 0), 0);
    CHECK_INT(mqe_wait_due_in(&wait), -1);
    CHECK_INT(engine.manager->store.region.header->woken_by_bound, 0);
    channel_end();
}

TEST(a_channel_ends_its_waits)
{
    struct mqe_wait wait = {0};
    channel_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(get_listed(q, &wait, 0), MQE_LISTED);
    channel_end();
    CHECK_INT(wait.context, 0);
    CHECK_INT(engine_status(q).waiters, 0);
    mqe_wait_end(&wait);
}

TEST(where_files_are_not_real_there_is_no_channel)
{
    engine_begin();
    CHECK_INT(mqe_channel_new(engine.manager, &channel), MQRC_ENVIRONMENT_ERROR);
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
