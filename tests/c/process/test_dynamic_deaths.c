/* Claims of catalog_delete.c about deaths: dynamic queues of several processes, which are real and
 * are ended by SIGKILL. */
#include "fixtures/death_fixture.h"
#include "fixtures/dynamic_fixture.h"

/* ---- other processes: real ones, ended by SIGKILL ---- */

static bool only_we_are_left(void)
{
    const struct mqe_manager_status status = totals();
    return status.attached == 1 && status.deleted == 0 && is_sound();
}

static int make_both_and_die(const struct part *part)
{
    struct queue t = make("T", TEMPORARY), p = make("P", PERMANENT);
    (void)part;
    mqx_ignore(PUT(t, .text = "np"));
    mqx_ignore(PUT(p, .text = "np"));
    TAKE(t, .flags = MQE_GET_BROWSE_FIRST | MQE_GET_LOCK);
    TAKE(t, .unit = engine_unit());
    return 0;
}

TEST(the_temporary_queues_of_a_dead_process_are_deleted_and_its_permanent_ones_stay)
{
    struct waiter waiter;
    engine_begin_real();
    after_death_in(make_both_and_die, (struct queue){0}, 0);
    struct queue t = engine_find("T"); /* no process has noticed yet */
    waiter_start(&waiter, t.handle, &(const struct ask){.correl = 1});
    CHECK(await_waiters(t, 1));
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_STR(waiter_end(&waiter), "(2052)");
    CHECK_INT(find("T"), MQRC_UNKNOWN_OBJECT_NAME);
    CHECK_INT(state_of(t), MQX_OBJ_DELETING); /* we have it open */
    CHECK_INT(shut(t.handle, KEEP), 0);
    CHECK_STR(drain(engine_find("P")), "np");
    CHECK_INT(totals().objects, 1);
    CHECK(only_we_are_left());
}

static int die_while_making(const struct part *part)
{
    struct queue q;
    (void)part;
    writes_left = 0;
    (void)try_make("P", PERMANENT, ALL, &q);
    return 5;
}

TEST(a_permanent_queue_whose_maker_died_during_the_flush_is_there_and_nobodys)
{
    engine_begin_real();
    after_death_in(die_while_making, (struct queue){0}, 0);
    CHECK_INT(mqe_maintain(engine.manager), 0);
    struct queue q = {0}, made = engine_find("P");
    CHECK_INT(engine_status(made).open_input, 1); /* our own handle */
    CHECK_INT(try_make("P", TEMPORARY, ALL, &q), MQRC_OBJECT_ALREADY_EXISTS);
    CHECK_INT(shut(made.handle, DELETE), 0);
    CHECK(only_we_are_left());
}

static int die_while_deleting(const struct part *part)
{
    struct queue q = part->q;
    q.handle = engine_open(q, INQUIRE);
    writes_left = 0;
    (void)shut(q.handle, PURGE);
    return 5;
}

TEST(a_deletion_whose_owner_died_during_the_flush_is_finished_and_others_see_2052)
{
    struct waiter waiter;
    engine_begin_real();
    struct queue q = make("P", PERMANENT);
    CHECK_INT(PUT(q, .text = "gone", .persistent = 1, .correl = 1), 0);
    waiter_start(&waiter, q.handle, &(const struct ask){.correl = 2});
    CHECK(await_waiters(q, 1));
    after_death_in(die_while_deleting, q, 0);
    /* before the flush */
    CHECK_INT(mqx_load_relaxed(&mqx_object(engine_region(), q.slot)->waiters), 0);
    CHECK_STR(waiter_end(&waiter), "(2052)");
    CHECK_INT(PUT(q, .text = "late"), MQRC_Q_DELETED);
    CHECK_INT(state_of(q), MQX_OBJ_DELETING);
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_INT(mqx_object(engine_region(), q.slot)->present, 0);
    CHECK_INT(shut(q.handle, PURGE), 0);
    CHECK_INT(state_of(q), MQX_OBJ_FREE);
    CHECK(only_we_are_left());
    engine_restart();
    CHECK_INT(find("P"), MQRC_UNKNOWN_OBJECT_NAME);
}

static int get_and_put_in_a_unit(const struct part *part)
{
    struct queue q = part->q;
    mqe_unit *unit = engine_unit();
    q.handle = engine_open(q, ALL);
    TAKE(q, .unit = unit);
    return got.status != 0 || PUT(q, .text = "put", .unit = unit) != 0;
}

TEST(uncommitted_work_of_a_dead_process_on_a_queue_deleted_before_or_after_goes_with_it)
{
    engine_begin_real();
    for (int before = 0; before < 2; before++) {
        struct queue q = make("T", TEMPORARY);
        CHECK_INT(PUT(q, .text = "m"), 0);
        after_death_in(get_and_put_in_a_unit, q, 0);
        if (before != 0) {
            CHECK_INT(shut(q.handle, KEEP), 0);
            CHECK_INT(state_of(q), MQX_OBJ_DELETING);
        }
        CHECK_INT(mqe_maintain(engine.manager), 0);
        if (before == 0) {
            CHECK_STR(peruse(q), "m");
            CHECK_INT(shut(q.handle, KEEP), 0);
        }
        CHECK_INT(state_of(q), MQX_OBJ_FREE);
        CHECK(only_we_are_left());
    }
    struct queue p = make("P", PERMANENT);
    CHECK_INT(PUT(p, .text = "m", .persistent = 1), 0);
    after_death_in(get_and_put_in_a_unit, p, 0);
    CHECK_INT(shut(p.handle, PURGE), MQRC_Q_NOT_EMPTY); /* until a process has noticed */
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_INT(shut(p.handle, PURGE), 0);
    CHECK(only_we_are_left());
}

static int wait_for_a_message(const struct part *part)
{
    struct queue q = part->q;
    q.handle = engine_open(q, 2);
    TAKE(q, .wait_us = 60000000);
    return got.status == MQRC_Q_DELETED && shut(q.handle, DELETE) == 0 ? 77 : 1;
}

static void *wait_in_a_child(void *arg)
{
    struct part *part = arg;
    part->q.generation = in_child(act, part) == 77;
    return NULL;
}

TEST(a_getter_that_waits_in_another_process_wakes_with_2052_when_the_creator_closes)
{
    struct part part = {.play = wait_for_a_message};
    pthread_t thread;
    engine_begin_real();
    struct queue q = make("T", TEMPORARY);
    part.q = q;
    CHECK_INT(pthread_create(&thread, NULL, wait_in_a_child, &part), 0);
    CHECK(await_waiters(q, 1));
    CHECK_INT(shut(q.handle, KEEP), 0);
    CHECK_INT(pthread_join(thread, NULL), 0);
    CHECK_INT(part.q.generation, 1);
    CHECK_INT(mqe_maintain(engine.manager), 0);
    CHECK_INT(state_of(q), MQX_OBJ_FREE);
    CHECK(only_we_are_left());
}

TEST_MAIN()
