/* Claims of wait_list.c, and of the waiting part of get.c: which waiter is woken by what, exactly
 * once, and never by the bound of the sleep. Threads are real; nothing here depends on how long
 * anything takes. */
#include "fixtures/engine_fixture.h"
#include "queue/wait_list.h"
#include "queue/match.h"

static void *deaf_main(void *arg) /* a waiter whom SIGUSR1 alone interrupts */
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGUSR1);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    return waiter_main(arg);
}

TEST(a_put_a_commit_and_a_backout_each_wake_a_waiter)
{
    struct waiter waiter;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (int persistent = 0; persistent < 2; persistent++) {
        WAITER(&waiter, q, 0);
        CHECK(await_waiters(q, 1));
        CHECK_INT(PUT(q, .text = "put", .persistent = persistent), 0);
        CHECK_STR(waiter_end(&waiter), "put");
        WAITER(&waiter, q, 0);
        CHECK(await_waiters(q, 1));
        CHECK_INT(PUT(q, .text = "unit", .unit = unit, .persistent = persistent), 0);
        CHECK_INT(mqx_object(engine_region(), q.slot)->waiters, 1);
        CHECK_INT(mqe_commit(unit), 0);
        CHECK_STR(waiter_end(&waiter), "unit");
        CHECK_INT(PUT(q, .text = "again", .persistent = persistent), 0);
        CHECK_STR(TAKE(q, .unit = unit), "again");
        WAITER(&waiter, q, 0);
        CHECK(await_waiters(q, 1));
        CHECK_INT(mqe_backout(unit), 0);
        CHECK_STR(waiter_end(&waiter), "again");
        CHECK_INT(waiter.got.backout_count, 1);
    }
    CHECK_INT(woken_by_bound(), 0);
}

TEST(a_long_message_and_an_unlocked_one_wake_a_waiter)
{
    static char body[90000];
    struct waiter waiter;
    memset(body, 'b', sizeof body);
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_queue *other = engine_open(q, MQE_BROWSE);
    WAITER(&waiter, q, 0);
    CHECK(await_waiters(q, 1));
    CHECK_INT(PUT(q, .body = body, .length = sizeof body), 0);
    (void)waiter_end(&waiter);
    CHECK_INT(waiter.got.length, sizeof body);
    CHECK_INT(PUT(q, .text = "x"), 0);
    CHECK_STR(TAKE_BY(other, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK), "x");
    WAITER(&waiter, q, 0);
    CHECK(await_waiters(q, 1));
    CHECK_INT(engine_close(other), 0);
    CHECK_STR(waiter_end(&waiter), "x");
    CHECK_INT(woken_by_bound(), 0);
}

TEST(one_message_wakes_one_getter_the_oldest_first)
{
    enum { COUNT = 20 };
    static struct waiter waiters[COUNT];
    char text[8];
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        WAITER(&waiters[i], q, 0);
        CHECK(await_waiters(q, i + 1));
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(text, sizeof text, "%u", i);
        CHECK_INT(PUT(q, .text = text), 0);
        CHECK_STR(waiter_end(&waiters[i]), text);
        CHECK_INT(mqx_object(engine_region(), q.slot)->waiters, COUNT - 1 - i);
    }
    CHECK_INT(woken_by_bound(), 0);
}

TEST(waiters_for_an_id_come_before_general_ones_and_are_not_woken_for_others)
{
    static struct waiter general, by_correl, by_msg, by_group;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    WAITER(&general, q, 0);
    CHECK(await_waiters(q, 1));
    WAITER(&by_correl, q, .correl = 7);
    WAITER(&by_msg, q, .msg = 8);
    WAITER(&by_group, q, .group = 9);
    CHECK(await_waiters(q, 4));
    CHECK_INT(PUT(q, .text = "correl", .correl = 7), 0);
    CHECK_STR(waiter_end(&by_correl), "correl");
    CHECK_INT(PUT(q, .text = "group", .group = 9, .persistent = 1), 0);
    CHECK_STR(waiter_end(&by_group), "group");
    CHECK_INT(PUT(q, .text = "msg", .msg = 8), 0);
    CHECK_STR(waiter_end(&by_msg), "msg");
    CHECK_INT(mqx_object(engine_region(), q.slot)->waiters, 1);
    CHECK_INT(PUT(q, .text = "any", .msg = 1, .correl = 2, .group = 3), 0);
    CHECK_STR(waiter_end(&general), "any");
    CHECK_INT(woken_by_bound(), 0);
}

TEST(waiters_on_queues_of_one_stripe_with_equal_ids_are_kept_apart)
{
    static struct waiter a, b;
    struct mqe_settings settings = engine_settings();
    settings.stripe_count = 1;
    engine_begin_with(&settings);
    struct queue qa = QUEUE("A", 0), qb = QUEUE("B", 0);
    WAITER(&a, qa, .correl = 5);
    WAITER(&b, qb, .correl = 5);
    CHECK(await_waiters(qa, 1) && await_waiters(qb, 1));
    CHECK_INT(PUT(qb, .text = "b", .correl = 5), 0);
    CHECK_STR(waiter_end(&b), "b");
    CHECK_INT(mqx_object(engine_region(), qa.slot)->waiters, 1);
    CHECK_INT(PUT(qa, .text = "a", .correl = 5), 0);
    CHECK_STR(waiter_end(&a), "a");
}

struct client { /* as a waiter, for a stack of 64 KiB */
    struct queue q;
    uint64_t id;
    int status;
    char text[16];
    pthread_t thread;
};

static void *client_main(void *arg)
{
    struct client *client = arg;
    struct mqe_get get = {.flags = MQE_GET_WAIT, .wait_us = -1, .match = MQE_MATCH_CORREL_ID,
                          .buffer = client->text, .capacity = sizeof client->text - 1};
    id_of(get.correl_id, client->id);
    client->status = mqe_get(engine.manager, NULL, client->q.handle, &get);
    return NULL;
}

/* 1,000 clients on one reply queue. Each context's futex word is raised once: by the put that is
 * its. */
TEST(of_a_thousand_waiters_each_is_woken_once_by_its_own_message)
{
    enum { COUNT = 1000 };
    static struct client clients[COUNT];
    pthread_attr_t attributes;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(pthread_attr_init(&attributes), 0);
    CHECK_INT(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        clients[i].q = q;
        clients[i].id = i + 1;
        CHECK_INT(pthread_create(&clients[i].thread, &attributes, client_main, &clients[i]), 0);
    }
    CHECK(await_waiters(q, COUNT));
    for (uint64_t i = 0; i < COUNT; i++) {
        char text[16];
        const uint64_t id = i * 617 % COUNT + 1;
        snprintf(text, sizeof text, "%" PRIu64, id);
        CHECK_INT(PUT(q, .text = text, .correl = id), 0);
    }
    int good = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        char text[16];
        CHECK_INT(pthread_join(clients[i].thread, NULL), 0);
        snprintf(text, sizeof text, "%u", i + 1);
        good += clients[i].status == 0 && strcmp(text, clients[i].text) == 0;
    }
    CHECK_INT(good, COUNT);
    uint64_t words = 0;
    for (uint32_t slot = 1; slot < engine_region()->header->area[MQX_AREA_CONTEXTS].used; slot++) {
        const uint32_t word = mqx_context(engine_region(), slot)->wait_word;
        CHECK(word <= 1);
        words += word;
    }
    CHECK_INT(words, COUNT);
    CHECK_INT(woken_by_bound(), 0);
    CHECK_INT(depth(q), 0);
}

TEST(a_wait_that_is_over_says_2033_and_leaves_the_list)
{
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "other", .correl = 1), 0);
    CHECK_STR(TAKE(q, .correl = 2, .wait_us = 30000), "(2033)");
    CHECK_STR(TAKE(q, .correl = 2, .wait_us = 1), "(2033)");
    CHECK_INT(mqx_object(engine_region(), q.slot)->waiters, 0);
    CHECK_INT(depth(q), 1);
}

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

TEST(a_signal_ends_the_wait_with_what_is_left_of_it_and_consumes_nothing)
{
    const struct sigaction action = {.sa_handler = on_signal};
    struct sigaction old;
    static struct waiter waiter, second;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(sigaction(SIGUSR1, &action, &old), 0);
    waiter = (struct waiter){.handle = q.handle, .ask = {.wait_us = 60000000}};
    CHECK_INT(pthread_create(&waiter.thread, NULL, deaf_main, &waiter), 0);
    CHECK(await_waiters(q, 1));
    while (mqx_load_relaxed(&mqx_object(engine_region(), q.slot)->waiters) == 1) {
        CHECK_INT(pthread_kill(waiter.thread, SIGUSR1), 0); /* it may not be asleep yet */
        sleep_ms(1);
    }
    (void)waiter_end(&waiter);
    CHECK_INT(waiter.got.status, MQE_INTERRUPTED);
    CHECK_INT(sigaction(SIGUSR1, &old, NULL), 0);
    WAITER(&second, q, 0);
    CHECK(await_waiters(q, 1));
    CHECK_INT(PUT(q, .text = "whole"), 0);
    CHECK_STR(waiter_end(&second), "whole");
    CHECK_INT(depth(q), 0);
}

TEST(disabling_gets_ends_every_wait_with_2016)
{
    static struct waiter waiters[80];
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int i = 0; i < 80; i++) {
        WAITER(&waiters[i], q, .correl = (uint64_t)i);
    }
    CHECK(await_waiters(q, 80));
    CHECK_INT(ALTER(q, "Q", GET_DISABLED, 1), 0);
    for (int i = 0; i < 80; i++) {
        CHECK_STR(waiter_end(&waiters[i]), "(2016)");
    }
    CHECK_INT(mqx_object(engine_region(), q.slot)->waiters, 0);
}

TEST(quiescing_ends_waits_that_ask_for_it_and_no_others)
{
    static struct waiter asks, asks_not;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    WAITER(&asks, q, .flags = MQE_GET_FAIL_IF_QUIESCING);
    WAITER(&asks_not, q, 0);
    CHECK(await_waiters(q, 2));
    CHECK_INT(mqe_end(engine.manager, MQE_END_CONTROLLED), 0);
    CHECK_STR(waiter_end(&asks), "(2161)");
    CHECK(await_waiters(q, 1));
    CHECK_INT(PUT(q, .text = "still"), 0);
    CHECK_STR(waiter_end(&asks_not), "still");
    CHECK_STR(TAKE(q, .flags = MQE_GET_FAIL_IF_QUIESCING, .wait_us = -1), "(2161)");
}

TEST(a_stop_ends_every_wait_at_once)
{
    for (uint32_t how = MQX_STOP_BROKEN; how <= MQX_STOP_ENDED; how++) {
        static struct waiter waiter, browser;
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        WAITER(&waiter, q, .wait_us = -1);
        WAITER(&browser, q, .wait_us = -1, .flags = MQE_GET_BROWSE_NEXT);
        CHECK(await_waiters(q, 2));
        mqx_region_stop(engine_region(), how);
        CHECK_STR(waiter_end(&waiter), how == MQX_STOP_ENDED ? "(2162)" : "(2009)");
        CHECK_STR(waiter_end(&browser), how == MQX_STOP_ENDED ? "(2162)" : "(2009)");
    }
}

TEST(browsers_are_woken_beside_the_getter_not_instead_of_it)
{
    static struct waiter browsers[3], getter;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    for (uint32_t i = 0; i < 3; i++) {
        waiter_start(&browsers[i], engine_open(q, MQE_BROWSE),
                     &(const struct ask){.flags = MQE_GET_BROWSE_NEXT});
    }
    CHECK(await_waiters(q, 3));
    CHECK_INT(PUT(q, .text = "seen"), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_STR(waiter_end(&browsers[i]), "seen");
    }
    CHECK_STR(TAKE(q, .unit = unit), "seen");
    WAITER(&getter, q, 0);
    CHECK(await_waiters(q, 1));
    waiter_start(&browsers[0], engine_open(q, MQE_BROWSE),
                 &(const struct ask){.flags = MQE_GET_BROWSE_NEXT, .wait_us = 20000});
    CHECK_INT(mqe_backout(unit), 0);
    CHECK_STR(waiter_end(&getter), "seen");
    (void)waiter_end(&browsers[0]);
    CHECK_INT(woken_by_bound(), 0);
}

/* ---- the lists themselves ---- */

static uint32_t context_of(struct mqx_stripe_guard *guard, struct queue q, uint64_t correl)
{
    uint32_t slot = 0;
    struct mqx_match match;
    const struct mqe_get get = engine_ask(&(const struct ask){.correl = correl});
    CHECK_INT(mqx_slot_take(engine_region(), MQX_AREA_CONTEXTS, NULL, &slot), 0);
    mqx_match_init(engine_region(), &get, &match);
    struct mqx_context *context = mqx_context(engine_region(), slot);
    context->wait_match = match.bits;
    context->wait_tag[MQX_BY_CORREL_ID] = correl != 0 ? match.tag[MQX_BY_CORREL_ID] : 0;
    context->wait_browse = 0;
    mqx_wait_list_add(guard, q.slot, slot);
    return slot;
}

TEST(more_browsers_than_one_hold_picks_are_all_woken_and_so_is_the_getter_behind_them)
{
    enum { COUNT = 300 };
    static uint32_t slots[COUNT + 1];
    struct mqx_wakeups wakes = {.count = 0};
    struct mqx_stripe_guard guard;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "x"), 0);
    CHECK_INT(mqx_region_grow(engine_region(), MQX_AREA_CONTEXTS,
                              2 * COUNT * mqx_area_item_size(MQX_AREA_CONTEXTS)),
              0); /* it does not grow under the stripe lock */
    CHECK_INT(mqx_stripe_guard_take(engine_region(), q.slot, &guard), 0);
    for (uint32_t i = 0; i <= COUNT; i++) {
        slots[i] = context_of(&guard, q, 0);
        mqx_context(engine_region(), slots[i])->wait_browse = i < COUNT;
    }
    mqx_wait_list_pick(&guard, q.slot,
                       mqx_priority_index_first(engine_region(),
                                                mqx_object(engine_region(), q.slot)),
                       &wakes);
    CHECK_INT(wakes.count, MQX_ARRAY_COUNT(wakes.context));
    mqx_stripe_guard_drop(&guard);
    mqx_wait_list_wake(engine_region(), &wakes);
    for (uint32_t i = 0; i <= COUNT; i++) {
        CHECK_INT(mqx_context(engine_region(), slots[i])->wait_state, MQX_WAIT_WOKEN);
    }
    CHECK_INT(mqx_object(engine_region(), q.slot)->waiters, 0);
}

TEST(a_wake_up_that_is_not_used_is_handed_on_once_to_the_next_that_matches)
{
    struct mqx_wakeups wakes = {.count = 0};
    struct mqx_stripe_guard guard;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(PUT(q, .text = "x", .correl = 3), 0);
    CHECK_INT(mqx_stripe_guard_take(engine_region(), q.slot, &guard), 0);
    const uint32_t other = context_of(&guard, q, 4), first = context_of(&guard, q, 3);
    const uint32_t next = context_of(&guard, q, 0), last = context_of(&guard, q, 0);
    const uint32_t message =
        mqx_priority_index_first(engine_region(), mqx_object(engine_region(), q.slot));
    mqx_wait_list_pick(&guard, q.slot, message, &wakes);
    CHECK_INT(wakes.count, 1);
    CHECK_INT(wakes.context[0], first);
    CHECK_INT(mqx_wait_list_remove(&guard, first), MQX_WAIT_WOKEN);
    CHECK(mqx_wait_list_owes(engine_region(), first));
    mqx_wait_list_hand_on(&guard, first, false, &wakes);
    CHECK_INT(wakes.count, 2);
    CHECK_INT(wakes.context[1], next);
    CHECK(!mqx_wait_list_owes(engine_region(), first));
    mqx_wait_list_hand_on(&guard, first, false, &wakes);
    CHECK_INT(wakes.count, 2);
    CHECK_INT(mqx_wait_list_remove(&guard, last), MQX_WAIT_LISTED);
    CHECK_INT(mqx_wait_list_remove(&guard, last), MQX_WAIT_NONE);
    CHECK_INT(mqx_wait_list_remove(&guard, next), MQX_WAIT_WOKEN);
    mqx_wait_list_hand_on(&guard, next, false, &wakes);
    CHECK_INT(wakes.count, 2);
    CHECK_INT(mqx_wait_list_remove(&guard, other), MQX_WAIT_LISTED);
    CHECK_INT(mqx_object(engine_region(), q.slot)->waiters, 0);
    mqx_stripe_guard_drop(&guard);
}

/* What a woken waiter that has been on the queue first leaves to a second one. */
TEST(a_waiter_with_too_small_a_buffer_hands_its_wake_up_on)
{
    struct waiter small, second;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    for (int persistent = 0; persistent < 2; persistent++) {
        WAITER(&small, q, .capacity = 2);
        CHECK(await_waiters(q, 1));
        WAITER(&second, q, 0);
        CHECK(await_waiters(q, 2));
        CHECK_INT(PUT(q, .text = "longer", .persistent = persistent), 0);
        (void)waiter_end(&small);
        CHECK_INT(small.got.status, MQRC_TRUNCATED_MSG_FAILED);
        CHECK_STR(waiter_end(&second), "longer");
    }
    CHECK_INT(woken_by_bound(), 0);
}

TEST(a_waiter_whose_unit_is_full_hands_its_wake_up_on)
{
    struct waiter full, second;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    WAITER(&full, q, .unit = unit, .flags = MQE_GET_IF_PERSISTENT);
    CHECK(await_waiters(q, 1));
    WAITER(&second, q, 0);
    CHECK(await_waiters(q, 2));
    mqx_store_release(&engine_region()->header->max_uncommitted, 0u);
    CHECK_INT(PUT(q, .text = "x", .persistent = 1), 0);
    CHECK_STR(waiter_end(&full), "(2024)");
    CHECK_STR(waiter_end(&second), "x");
    CHECK_INT(woken_by_bound(), 0);
}

TEST(a_waiter_that_takes_another_message_than_it_was_woken_for_hands_its_wake_up_on)
{
    struct waiter first, last;
    struct mqx_stripe_guard guard;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_unit *unit = engine_unit();
    WAITER(&first, q, 0);
    CHECK(await_waiters(q, 1));
    CHECK_INT(mqx_stripe_guard_take(engine_region(), q.slot, &guard), 0);
    const uint32_t by_correl = context_of(&guard, q, 4);
    mqx_stripe_guard_drop(&guard);
    WAITER(&last, q, 0);
    CHECK(await_waiters(q, 3));
    CHECK_INT(PUT(q, .text = "low", .unit = unit, .priority = 1), 0);
    CHECK_INT(PUT(q, .text = "high", .unit = unit, .priority = 9, .correl = 4), 0);
    CHECK_INT(mqe_commit(unit), 0); /* wakes `first` for the low, the context for the high one */
    CHECK_STR(waiter_end(&first), "high");
    CHECK_STR(waiter_end(&last), "low");
    CHECK_INT(mqx_context(engine_region(), by_correl)->wait_state, MQX_WAIT_WOKEN);
    CHECK(!mqx_wait_list_owes(engine_region(), by_correl)); /* it is gone */
    CHECK_INT(woken_by_bound(), 0);
}

TEST(a_browser_with_lock_whose_cursor_is_behind_the_message_keeps_no_getter_from_it)
{
    struct waiter behind, getter;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    mqe_queue *browser = engine_open(q, MQE_BROWSE);
    CHECK_INT(PUT(q, .text = "low", .priority = 1), 0);
    CHECK_STR(TAKE_BY(browser, .flags = MQE_GET_BROWSE_FIRST), "low");
    waiter_start(&behind, browser,
                 &(const struct ask){.flags = MQE_GET_BROWSE_NEXT | MQE_GET_LOCK,
                                     .wait_us = 500000});
    CHECK(await_waiters(q, 1));
    CHECK_STR(TAKE(q), "low");
    WAITER(&getter, q, 0);
    CHECK(await_waiters(q, 2));
    CHECK_INT(PUT(q, .text = "high", .priority = 9), 0);
    CHECK_STR(waiter_end(&getter), "high");
    CHECK_INT(woken_by_bound(), 0);
    CHECK_STR(waiter_end(&behind), "(2033)");
}

TEST(a_second_look_hands_on_what_a_waiter_that_does_not_run_has_not_taken)
{
    struct mqx_stripe_guard guard;
    struct mqx_wakeups wakes = {.count = 0};
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    struct mqx_region *region = engine_region();
    const uint32_t *doorbell = &mqx_process_slot(region, region->process)->doorbell;
    CHECK_INT(mqx_stripe_guard_take(region, q.slot, &guard), 0);
    const uint32_t alone = context_of(&guard, q, 0);
    mqx_stripe_guard_drop(&guard);
    CHECK_INT(PUT(q, .text = "x"), 0);
    CHECK_INT(mqx_context(region, alone)->wait_state, MQX_WAIT_WOKEN);
    CHECK_INT(*doorbell & MQX_BELL_SECOND_LOOK, 0); /* nobody else waits */
    CHECK_INT(mqx_stripe_guard_take(region, q.slot, &guard), 0);
    const uint32_t other = context_of(&guard, q, 7), second = context_of(&guard, q, 0);
    const uint32_t third = context_of(&guard, q, 0); /* not in the same look */
    mqx_stripe_guard_drop(&guard);
    CHECK_INT(mqx_wait_list_second_look(region), 0);
    CHECK_INT(mqx_context(region, second)->wait_state, MQX_WAIT_WOKEN);
    CHECK_INT(mqx_context(region, other)->wait_state, MQX_WAIT_LISTED);
    CHECK_INT(mqx_context(region, third)->wait_state, MQX_WAIT_LISTED);
    CHECK(!mqx_wait_list_owes(region, alone) && mqx_wait_list_owes(region, second));
    CHECK((*doorbell & MQX_BELL_SECOND_LOOK) != 0);
    CHECK_INT(mqx_wait_list_second_look(region), 0);
    CHECK(!mqx_wait_list_owes(region, second) && mqx_wait_list_owes(region, third));
    CHECK_INT(mqx_wait_list_second_look(region), 0); /* none is left that matches */
    CHECK(mqx_wait_list_owes(region, third));
    CHECK_STR(TAKE(q), "x");
    CHECK_INT(mqx_wait_list_second_look(region), 0);
    CHECK_INT(mqx_context(region, other)->wait_state, MQX_WAIT_LISTED);
    CHECK_INT(mqx_stripe_guard_take(region, q.slot, &guard), 0);
    mqx_wait_list_hand_on(&guard, third, false, &wakes);
    CHECK_INT(wakes.count, 0);
    CHECK_INT(mqx_wait_list_remove(&guard, other), MQX_WAIT_LISTED);
    mqx_stripe_guard_drop(&guard);
}

TEST(a_woken_waiter_that_must_leave_hands_the_wake_up_on)
{
    static struct waiter leaving;
    struct mqx_stripe_guard guard;
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    WAITER(&leaving, q, .flags = MQE_GET_FAIL_IF_QUIESCING);
    CHECK(await_waiters(q, 1));
    CHECK_INT(mqx_stripe_guard_take(engine_region(), q.slot, &guard), 0);
    const uint32_t second = context_of(&guard, q, 0);
    mqx_stripe_guard_drop(&guard);
    mqx_store_release(&engine_region()->header->quiescing, 1); /* and no waiter is cancelled yet */
    CHECK_INT(PUT(q, .text = "x"), 0);
    CHECK_STR(waiter_end(&leaving), "(2161)");
    CHECK_INT(mqx_context(engine_region(), second)->wait_state, MQX_WAIT_WOKEN);
    CHECK_STR(TAKE(q), "x");
}

TEST(waiters_leave_their_lists_in_any_order)
{
    enum { COUNT = 30 };
    uint32_t slots[COUNT];
    struct mqx_stripe_guard guard;
    struct test_random random = {test_seed()};
    engine_begin();
    struct queue q = QUEUE("Q", 0);
    CHECK_INT(mqx_stripe_guard_take(engine_region(), q.slot, &guard), 0);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < COUNT; i++) {
            slots[i] = context_of(&guard, q, (uint64_t)(i % 3) * 9);
        }
        CHECK_INT(mqx_object(engine_region(), q.slot)->waiters, COUNT);
        for (uint32_t left = COUNT; left > 0; left--) {
            const uint32_t i = (uint32_t)test_below(&random, left);
            CHECK_INT(mqx_wait_list_remove(&guard, slots[i]), MQX_WAIT_LISTED);
            CHECK_INT(mqx_slot_give(engine_region(), MQX_AREA_CONTEXTS, slots[i]), 0);
            slots[i] = slots[left - 1];
        }
        CHECK_INT(mqx_object(engine_region(), q.slot)->waiters, 0);
        CHECK_INT(mqx_object(engine_region(), q.slot)->wait_head, 0);
    }
    mqx_stripe_guard_drop(&guard);
}

TEST(a_list_with_a_bad_context_stops_the_queue_manager_and_no_call_crashes_or_hangs)
{
    for (int damage = 0; damage < 4; damage++) {
        struct mqx_wakeups wakes = {.count = 0};
        struct mqx_stripe_guard guard;
        engine_begin();
        struct queue q = QUEUE("Q", 0);
        CHECK_INT(PUT(q, .text = "x"), 0);
        CHECK_INT(mqx_stripe_guard_take(engine_region(), q.slot, &guard), 0);
        const uint32_t first = context_of(&guard, q, 0), second = context_of(&guard, q, 0);
        struct mqx_object *queue = mqx_object(engine_region(), q.slot);
        const uint32_t message = mqx_priority_index_first(engine_region(), queue);
        switch (damage) {
        case 0: queue->wait_head = 1u << 30; break;
        case 1: mqx_context(engine_region(), first)->wait_prev = 1u << 30; break;
        case 2: mqx_context(engine_region(), second)->wait_object = 1u << 30; break;
        default: mqx_context(engine_region(), second)->wait_next = 1u << 30; break;
        }
        (void)mqx_wait_list_remove(&guard, second);
        (void)mqx_wait_list_remove(&guard, first);
        mqx_wait_list_pick(&guard, q.slot, message, &wakes);
        mqx_wait_list_add(&guard, q.slot, second);
        mqx_wait_list_pick(&guard, q.slot, 1u << 30, &wakes);
        mqx_wait_list_hand_on(&guard, first, false, &wakes);
        CHECK_INT(mqx_region_stopped(engine_region()), MQX_STOP_BROKEN);
        CHECK(wakes.count <= 2);
        mqx_stripe_guard_drop(&guard);
        mqx_ignore(mqx_wait_list_cancel_all(&engine.manager->store, q.slot));
    }
}

TEST(the_fixture_is_cleared_away)
{
    engine_end();
}

TEST_MAIN()
